"""Who judged, and who was never asked: from what a metric yields to each judge's figure."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics import (
    CONVERSATION,
    HIGHER,
    Need,
    Observation,
    Subject,
    measured,
    metric,
    not_applicable,
    unmeasured,
)
from convoscope.runs import make as making
from convoscope.runs.run import Run
from convoscope.statistics.panels import panel, panel_name
from convoscope.statistics.summary import Figure
from convoscope.views.items import WHOLE
from support.chats import chat, user
from support.tables import turn

PANEL = panel_name(["p/a", "p/b"])


def said(a: float, b: float, about: Subject = WHOLE) -> list[Observation]:
    """What the two judges say of a subject."""
    return [measured(about, a, judge="p/a"), measured(about, b, judge="p/b")]


class TestPanel:
    def test_a_judge_may_find_that_there_was_no_opportunity(self) -> None:
        one = not_applicable(WHOLE, "off_topic", judge="p/a")
        assert (one.status, one.reason, one.judge) == ("not_applicable", "off_topic", "p/a")

    def test_nobody_is_not_a_member(self) -> None:
        first, second = panel([*said(2, 4, turn(1)), not_applicable(turn(2), "no_words")])
        # 2 and 4, by two judges: whoever found that turn 2 has no words is not a third
        assert first.value == 3.0
        assert first.details is not None
        assert first.details["values"] == {"p/a": 2.0, "p/b": 4.0}
        assert (second.status, second.reason) == ("not_applicable", "no_words")
        assert {first.judge, second.judge} == {PANEL}

    def test_one_judge_and_nobody_are_no_panel(self) -> None:
        assert panel([measured(turn(1), 4, judge="p/a"), not_applicable(turn(2), "no_words")]) == []

    def test_what_all_judges_find_not_applicable_is_not_applicable(self) -> None:
        (one,) = panel([not_applicable(turn(1), "off_topic", judge=judge) for judge in ("p/a", "p/b")])
        assert (one.status, one.reason, one.judge) == ("not_applicable", "off_topic", PANEL)

    def test_what_one_judge_finds_not_applicable_and_another_measures_has_no_verdict(self) -> None:
        (one,) = panel([not_applicable(turn(1), "off_topic", judge="p/a"), measured(turn(1), 1, judge="p/b")])
        assert (one.status, one.reason, one.detail) == ("unmeasured", "judge_missing", "p/a")


LABEL = Need(code="no_label", field="labels", unlock="a label", present=lambda conversation: conversation.id[0] != "l")


@metric("test.judged", version=1, observes=CONVERSATION, unit="points", better=HIGHER, needs=(LABEL,))
def judged(conversation: Conversation) -> Iterator[Observation]:
    """How good is it, as two judges see it?"""
    match conversation.id:
        case "one":
            yield from said(2, 4)
        case "two":
            yield from said(6, 6)
        case "partly":
            yield from said(4, 8, turn(1))
            yield not_applicable(turn(2), "no_words")
        case "off":
            yield not_applicable(WHOLE, "off_topic", judge="p/a")
            yield not_applicable(WHOLE, "off_topic", judge="p/b")
        case "short":
            yield not_applicable(WHOLE, "too_short")
        case "raises":
            raise RuntimeError("the judges are out")


def score(folder: Path, *ids: str) -> Run:
    conversations = [chat(user("hi"), id=id) for id in ids]
    return making.make_run(conversations, metrics=[judged], out=folder / "run", workers=1)


def figures(run: Run) -> dict[str, Figure]:
    """The headline of each judge."""
    return {one.judge: one for one in run.summary.figures}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("judged")
    return score(folder, "one", "two", "partly", "off", "short", "label", "raises")


class TestConversationsThatNeverReachedTheJudges:
    def test_nobody_is_not_among_the_judges(self, run: Run) -> None:
        assert [one.judge for one in run.summary.figures] == ["p/a", "p/b", PANEL]

    def test_the_figure_is_of_what_each_has_judged(self, run: Run) -> None:
        assert {judge: one.value for judge, one in figures(run).items()} == {
            "p/a": 4.0,  # (2 + 6 + 4) ÷ 3
            "p/b": 6.0,  # (4 + 6 + 8) ÷ 3
            PANEL: 5.0,  # medians 3, 6, 6
        }

    @pytest.mark.parametrize("judge", ["p/a", "p/b", PANEL])
    def test_the_others_count_with_the_reason_that_they_have(self, run: Run, judge: str) -> None:
        one = figures(run)[judge]
        assert one.skipped_reasons == {"metric_raised": 1, "no_label": 1, "off_topic": 1, "too_short": 1}
        assert (one.samples_total, one.samples_measured, one.samples_skipped) == (7, 3, 4)

    @pytest.mark.parametrize("judge", ["p/a", "p/b", PANEL])
    def test_and_with_the_status_that_they_have(self, run: Run, judge: str) -> None:
        one = figures(run)[judge]
        assert one.samples_not_applicable == 2  # off, short; label is unmeasured, raises is an error
        assert one.coverage == 0.6  # 3 ÷ (7 − 2)

    def test_a_turn_without_a_judge_is_a_row_of_each_and_a_whole_conversation_of_none(self, run: Run) -> None:
        found = run.scores(all=True)
        rows = {(one.conversation, one.judge): (one.status, one.reason) for one in found if one.value is None}
        assert rows == {
            ("partly", "p/a"): ("not_applicable", "no_words"),
            ("partly", "p/b"): ("not_applicable", "no_words"),
            ("partly", PANEL): ("not_applicable", "no_words"),
            ("off", "p/a"): ("not_applicable", "off_topic"),
            ("off", "p/b"): ("not_applicable", "off_topic"),
            ("off", PANEL): ("not_applicable", "off_topic"),
            ("short", "(computed)"): ("not_applicable", "too_short"),
            ("label", "(computed)"): ("unmeasured", "no_label"),
            ("raises", "(computed)"): ("error", "metric_raised"),
        }

    def test_where_none_reached_them_nobody_is_all_there_is(self, tmp_path: Path) -> None:
        found = figures(score(tmp_path, "short", "label", "raises"))
        assert list(found) == ["(computed)"]
        assert (found["(computed)"].status, found["(computed)"].reason) == ("error", "metric_raised")


def test_a_judge_that_was_not_asked_about_a_conversation_has_not_scored_it(tmp_path: Path) -> None:
    @metric("test.one_judge", version=1, observes=CONVERSATION, unit="points", better=HIGHER)
    def uneven(conversation: Conversation) -> Iterator[Observation]:
        """Only p/a is asked about the second."""
        yield measured(conversation, 1, judge="p/a")
        yield (
            unmeasured(conversation, "refused", judge="p/b")
            if conversation.id == "one"
            else measured(turn(1), 3, judge="p/a")
        )

    conversations = [chat(user("hi"), id="one"), chat(user("hi"), id="two")]
    found = figures(making.make_run(conversations, metrics=[uneven], out=tmp_path / "run", workers=1))
    assert found["p/a"].value == 1.5  # (1 + (1 + 3) ÷ 2) ÷ 2
    assert found["p/b"].value is None
    assert found["p/b"].skipped_reasons == {"not_scored": 1, "refused": 1}
