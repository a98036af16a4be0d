"""Languages that an annotator knows, annotators that fail, and texts of any kind and length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.annotate.annotator import (
    NO_WORDS,
    annotated,
    annotations_of,
    annotator_named,
    failure_of,
)
from convoscope.annotate.rules.annotator import ANNOTATOR
from convoscope.annotate.rules.sentences import _sentences as pieces
from convoscope.annotate.rules.signs import rules_hash
from convoscope.conversation import Annotations, Conversation, Risk
from convoscope.errors import UsageError
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED
from support.annotated_calls import call
from support.steps import steps


class TestLanguage:
    @pytest.mark.parametrize(
        "line",
        [
            "Ich möchte mein Abo kündigen, das ist nicht in Ordnung.",
            "Je veux annuler mon abonnement, ce n'est pas acceptable.",
            "Quiero cancelar mi suscripción, no está bien.",
            "解約したいです。",
            "Я хочу отменить подписку.",
        ],
    )
    def test_another_language_is_not_annotated(self, line: str) -> None:
        annotations = annotations_of(call(f"u: {line}"), ANNOTATOR)
        assert (annotations.topics, annotations.risks, annotations.actions) == (None, None, None)
        failure = failure_of(annotations)
        assert failure is not None
        assert failure.reason == LANGUAGE_NOT_SUPPORTED

    @pytest.mark.parametrize(
        ("told", "measured"), [("en-US", True), ("English", True), ("de", False), ("fr-FR", False)]
    )
    def test_the_log_is_believed(self, told: str, measured: bool) -> None:
        annotations = annotations_of(call("u: Ja, taxi.", extras={"language": told}), ANNOTATOR)
        assert (annotations.risks is not None) == measured

    @pytest.mark.parametrize("line", ["OK.", "Yes.", "No. No, no.", "Where's my parcel? It's late."])
    def test_short_english_is_english(self, line: str) -> None:
        assert failure_of(annotations_of(call(f"u: {line}"), ANNOTATOR)) is None

    @pytest.mark.parametrize(
        "lines",
        [
            (
                "a: Guten Tag, hier ist der Kundendienst.",
                "u: Ich bin sehr wütend, das ist nicht in Ordnung und ich möchte kündigen.",
            ),
            (
                "a: Buenos días, ¿en qué puedo ayudarle?",
                "u: Estoy muy enfadado, no me han devuelto el dinero y quiero hablar con el jefe.",
            ),
            (
                "a: Bonjour, comment puis-je vous aider ?",
                "u: Je suis furieux, ce n'est pas normal et je veux parler à votre responsable.",
            ),
            ("u: Siparişim hâlâ gelmedi ve kimse bana cevap vermiyor, müdürünüzle konuşmak istiyorum lütfen.",),
        ],
    )
    @pytest.mark.parametrize("extras", [{}, {"language": "en"}])
    def test_words_of_another_language_are_not_annotated_whatever_the_log_says(
        self, lines: tuple[str, ...], extras: dict[str, str]
    ) -> None:
        annotations = annotations_of(call(*lines, extras=extras), ANNOTATOR)
        assert annotations.risks is None
        assert failure_of(annotations) is not None
        assert failure_of(annotations).reason == LANGUAGE_NOT_SUPPORTED  # type: ignore[union-attr]

    def test_an_english_call_with_foreign_names_is_english(self) -> None:
        lines = ("a: Hotel Bellavista, Via Roma.", "u: Hola! Is this the Casa del Sol, or La Perla? I booked with you.")
        assert failure_of(annotations_of(call(*lines), ANNOTATOR)) is None

    def test_no_words_at_all(self) -> None:
        failure = failure_of(annotations_of(Conversation(id="c"), ANNOTATOR))
        assert failure is not None
        assert failure.reason == NO_WORDS


class TestAnnotators:
    def test_a_failure_is_not_found_nothing(self) -> None:
        class Broken:
            name = "broken"
            provides = ANNOTATOR.provides
            identity = "broken/1"

            def annotate(self, conversation: Conversation) -> Annotations:
                raise ValueError(conversation.id)

        annotations = annotations_of(call("u: Hi."), Broken())
        assert (annotations.topics, annotations.risks, annotations.actions) == (None, None, None)
        assert annotations.extraction == {"topics": "error", "risks": "error", "actions": "error"}
        assert failure_of(annotations) == ("annotation_failed", "ValueError: c")

    def test_what_is_not_provided_is_null_or_skipped(self) -> None:
        class Tags:
            """Finds types of risk without severity, and no topics."""

            name = "tags"
            provides = frozenset({"risks"})
            identity = "tags/1"

            def annotate(self, conversation: Conversation) -> Annotations:
                return Annotations(origin="predicted", topics=(), risks=(Risk(type="escalation"),))

        annotations = annotations_of(call("u: Hi."), Tags())  # type: ignore[arg-type]
        assert (annotations.topics, annotations.actions) == (None, None)
        assert annotations.risks == (Risk(type="escalation"),)
        assert annotations.extraction == dict.fromkeys(
            ("topics", "severity", "actions", "assignee_role", "due", "verbatim"), "skipped"
        )

    def test_it_is_added_once_beside_others(self) -> None:
        gold = Annotations(origin="gold", topics=())
        conversation = annotated(call("u: My bill is wrong.", annotations=(gold,)), ANNOTATOR)
        assert conversation.annotations[0] == gold
        assert conversation.annotations[1].model == f"rules/3@{rules_hash()}"
        assert annotated(conversation, ANNOTATOR) is conversation

    def test_by_name(self) -> None:
        assert annotator_named("rules") is ANNOTATOR
        with pytest.raises(UsageError, match="unknown annotator 'gpt'"):
            annotator_named("gpt")


@given(st.lists(st.text(max_size=200), min_size=1, max_size=5))
def test_any_words_can_be_annotated(lines: list[str]) -> None:
    """Whatever is said, findings point at what was said, and the same words give the same findings."""
    conversation = call(*(f"u: {line}" for line in lines))
    annotations = annotations_of(conversation, ANNOTATOR)
    assert annotations == annotations_of(conversation, ANNOTATOR)
    assert failure_of(annotations) is None or failure_of(annotations).reason != "annotation_failed"  # type: ignore[union-attr]
    for finding in (*(annotations.topics or ()), *(annotations.risks or ()), *(annotations.actions or ())):
        assert finding.events


@pytest.mark.parametrize(
    "text",
    ["a", " ", ". ", "the bill is wrong and ", "I'll send you the form ", ".\"'", "five hundred and ", "not about "],
)
def test_a_long_segment_is_read_piece_by_piece(text: str) -> None:
    """No pattern sees more than a thousand letters, whatever a segment of a million holds."""
    conversation = call(f"u: {(text * 1_000_000)[:1_000_000]}")
    assert all(len(one.text) <= 1_000 for one in pieces(conversation))


def test_the_work_grows_with_the_text_only() -> None:
    """Four times as many promises, each another one: far less than the sixteen times of a square."""

    def work(promises: int) -> int:
        text = " ".join(f"I'll send the form{number} and the list{number}." for number in range(promises))
        conversation = call(f"a: {text}", extras={"language": "en"})
        assert len(annotations_of(conversation, ANNOTATOR).actions or ()) == promises
        return steps(annotations_of, conversation, ANNOTATOR)

    assert work(400) < 5 * work(100)
