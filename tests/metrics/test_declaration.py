"""A metric is one small pure function with a declaration (design, idea 3)."""

from collections.abc import Iterator
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.errors import DeclarationError
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    LOWER,
    TURN,
    Derived,
    Metric,
    Observation,
    Reduce,
    Subject,
    TenPoints,
    derived,
    measured,
    metric,
)
from convoscope.scores.reducers import MAXIMUM_OF_SUBJECTS, MEAN, MEAN_OF_CONVERSATIONS, Percentile, percentile
from support.chats import agent, chat, user

HELLO = chat(user("hi"), agent("hello"), user("bye"), agent("bye"))


def measure(conversation: Conversation) -> Observation:
    """How long is it?

    The number of turns.
    """
    return measured(conversation, len(conversation.turns))


def declare(name: str = "test.length", function: Any = measure, **facts: Any) -> Metric:
    facts = {"version": 1, "observes": CONVERSATION, "unit": "count", "better": HIGHER} | facts
    return metric(name, **facts)(function)


def derive(**facts: Any) -> Derived:
    facts = {
        "version": 1,
        "over": "conversation",
        "unit": "share",
        "better": HIGHER,
        "inputs": ("test.length",),
    } | facts
    return derived("test.passed", **facts)(measure)


class TestNames:
    def test_family_and_name(self) -> None:
        one = declare("voice.response_latency")
        assert (one.name, one.family, one.key, one.variant) == (
            "voice.response_latency",
            "voice",
            "voice.response_latency",
            "",
        )

    def test_a_variant_prints_behind_the_name(self) -> None:
        one = declare("dialogue.jga", variant="tomiinek")
        assert (one.name, one.family, one.key) == ("dialogue.jga", "dialogue", "dialogue.jga@tomiinek")

    def test_a_name_may_have_more_than_two_parts(self) -> None:
        one = declare("state.guard.errors")
        assert (one.family, one.key) == ("state", "state.guard.errors")

    @pytest.mark.parametrize(
        "name",
        ["", "length", "Test.length", "test.Length", "test.", ".length", "test length", "1test.x", "t.x@v", "t.é"],
    )
    def test_what_is_not_a_name_is_refused(self, name: str) -> None:
        with pytest.raises(DeclarationError, match=r"family\.name"):
            declare(name)

    @pytest.mark.parametrize("variant", ["Tomiinek", "a b", "-x", "a@b", "_x"])
    def test_what_is_not_a_variant_is_refused(self, variant: str) -> None:
        with pytest.raises(DeclarationError, match="variant"):
            declare(variant=variant)

    @pytest.mark.parametrize("version", [0, -1])
    def test_versions_count_from_one(self, version: int) -> None:
        with pytest.raises(DeclarationError, match="count from 1"):
            declare(version=version)


class TestDefinition:
    def test_the_docstring_is_the_definition(self) -> None:
        one = declare()
        assert one.question == "How long is it?"
        assert one.description == "How long is it?\n\nThe number of turns."

    @pytest.mark.parametrize("docstring", [None, "", "   ", "\n", "\n    \n    ", "\t\n"])
    def test_without_one_it_is_refused(self, docstring: str | None) -> None:
        def silent(conversation: Conversation) -> Observation:
            return measured(conversation, 1)

        silent.__doc__ = docstring
        with pytest.raises(DeclarationError, match="docstring"):
            declare(function=silent)

    def test_the_usual_reduction_is_the_mean_of_conversation_means(self) -> None:
        assert declare().reduce == Reduce(MEAN, MEAN_OF_CONVERSATIONS)

    @pytest.mark.parametrize("q", [0, 100, -5, 250])
    def test_a_percentile_lies_between_0_and_100(self, q: float) -> None:
        with pytest.raises(ValueError, match="between 0 and 100"):
            percentile(q)

    def test_a_percentile_says_which(self) -> None:
        assert (percentile(95), percentile(99.9)) == (Percentile(95), Percentile(99.9))
        assert (percentile(95).name, MAXIMUM_OF_SUBJECTS.name) == ("percentile:95", "max_of_subjects")

    @pytest.mark.parametrize("facts", [{"inputs": ()}, {"version": 0}, {"variant": "A"}])
    def test_a_derived_figure_is_checked_as_well(self, facts: dict[str, Any]) -> None:
        with pytest.raises(DeclarationError):
            derive(**facts)

    def test_a_derived_figure_names_its_inputs(self) -> None:
        one = derive()
        assert (one.key, one.inputs, one.over, one.unscored) == (
            "test.passed",
            ("test.length",),
            "conversation",
            "not_enough",
        )


class TestTenPoints:
    def test_the_best_may_lie_in_the_middle(self) -> None:
        # 10 from 85 to 255; 72.5 is half of the way up from 60, 327.5 half of the way down to 400
        pitch = TenPoints(zero=60, ten=85, falls=(255, 400))
        worth = {50: 0, 60: 0, 72.5: 5, 85: 10, 180: 10, 255: 10, 327.5: 5, 400: 0, 500: 0}
        assert {value: pitch.score(value) for value in worth} == pytest.approx(worth)

    @pytest.mark.parametrize("falls", [(80.0, 400.0), (255.0, 255.0), (400.0, 255.0)])
    def test_a_map_that_falls_again_needs_its_values_in_order(self, falls: tuple[float, float]) -> None:
        with pytest.raises(DeclarationError, match="four values in ascending order"):
            TenPoints(60, 85, falls=falls)

    @pytest.mark.parametrize(
        ("value", "points"),
        [(0.0, 0.0), (0.25, 2.5), (0.7, 7.0), (1.0, 10.0), (-3.0, 0.0), (1.5, 10.0)],
    )
    def test_higher_is_better(self, value: float, points: float) -> None:
        assert TenPoints(zero=0.0, ten=1.0).score(value) == pytest.approx(points)

    @pytest.mark.parametrize(
        ("value", "points"),
        # From 5 s (worth 0) down to 1 s (worth 10): 4 s ↦ (4 − 5) ÷ (1 − 5) · 10 = 2.5.
        [(5.0, 0.0), (4.0, 2.5), (3.0, 5.0), (1.0, 10.0), (9.0, 0.0), (0.2, 10.0)],
    )
    def test_lower_is_better(self, value: float, points: float) -> None:
        assert TenPoints(zero=5.0, ten=1.0).score(value) == pytest.approx(points)

    @pytest.mark.parametrize("value", [5, 5.0, 0, -1.5])
    def test_it_needs_two_different_values(self, value: float) -> None:
        # (value − zero) ÷ (ten − zero) would divide by zero
        with pytest.raises(DeclarationError, match="must differ"):
            TenPoints(value, value)

    def test_it_passes_at_seven_unless_said_otherwise(self) -> None:
        assert (TenPoints(0, 1).passes_at, TenPoints(0, 1, 5.0).passes_at) == (7.0, 5.0)
        assert (TenPoints(0, 1, 0).passes_at, TenPoints(0, 1, 10).passes_at) == (0, 10)

    @pytest.mark.parametrize("mark", [-0.1, 10.1, float("nan")])
    def test_a_pass_mark_is_of_10_points(self, mark: float) -> None:
        with pytest.raises(DeclarationError, match="passes_at must be between 0 and 10"):
            TenPoints(0, 1, mark)


class TestCalling:
    def test_one_observation_may_come_by_itself(self) -> None:
        (one,) = declare()(HELLO)
        assert one.value == 2.0  # hi, bye

    def test_or_several(self) -> None:
        def lengths(conversation: Conversation) -> Iterator[Observation]:
            """How long is each turn?"""
            for turn in conversation.turns:
                yield measured(turn, len(turn.user_text))

        observations = declare(observes=TURN, function=lengths)(HELLO)
        assert [(str(one.subject), one.value) for one in observations] == [("turn 1", 2.0), ("turn 2", 3.0)]

    def test_or_none(self) -> None:
        def silent(conversation: Conversation) -> list[Observation]:
            """Nothing."""
            return []

        assert declare(function=silent)(HELLO) == ()

    def test_two_scores_for_one_subject_are_refused(self) -> None:
        def twice(conversation: Conversation) -> Iterator[Observation]:
            """Twice."""
            yield measured(conversation, 1)
            yield measured(conversation, 0)

        with pytest.raises(ValueError, match=r"test\.length gave two scores for one subject"):
            declare(function=twice)(HELLO)

    def test_two_judges_and_two_repeats_are_four_scores(self) -> None:
        def judged(conversation: Conversation) -> Iterator[Observation]:
            """Judged."""
            for judge in ("p/a", "p/b"):
                for repeat in (0, 1):
                    yield measured(Subject("turn", "1", 1), 1, judge=judge, repeat=repeat)

        assert len(declare(function=judged)(HELLO)) == 4

    def test_the_same_repeat_of_the_same_judge_twice_is_refused(self) -> None:
        def judged(conversation: Conversation) -> Iterator[Observation]:
            """Judged."""
            for value in (0, 1):
                yield measured(conversation, value, judge="p/a", repeat=1)

        with pytest.raises(ValueError, match="two scores"):
            declare(function=judged)(HELLO)

    def test_a_declaration_cannot_be_changed(self) -> None:
        with pytest.raises(AttributeError):
            declare(better=LOWER).version = 2  # type: ignore[misc]


@pytest.mark.parametrize(("old", "new"), [("notices", "sensitive_to"), ("falls_silent", "undefined_under")])
def test_an_option_that_was_renamed_is_refused_with_its_new_name(old: str, new: str) -> None:
    with pytest.raises(DeclarationError, match=f"the option {old} is now {new}"):
        declare(**{old: ()})
    with pytest.raises(DeclarationError, match=f"the option {old} is now {new}"):
        derive(**{old: ()})
