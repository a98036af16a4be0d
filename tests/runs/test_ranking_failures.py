"""What fails comes before what is behind: outcomes, targets, pass marks; a value that passes is no reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from convoscope.conversation import Conversation, Outcome
from convoscope.metrics import CONVERSATION, HIGHER, LOWER, SHARE, Metric, Observation, TenPoints, measured, metric
from convoscope.metrics.declaration import Better, Target
from convoscope.runs.make import make_run
from convoscope.runs.ranking import worst
from convoscope.runs.run import Run
from support.chats import chat, user


def marked(name: str, better: Better = LOWER, unit: str = "s", **facts: Any) -> Metric:
    """Reads its value from the log, and has a mark or a target."""

    @metric(name, version=1, observes=CONVERSATION, unit=unit, better=better, **facts)
    def read(conversation: Conversation) -> Observation:
        """What does the log say?"""
        return measured(conversation, conversation.extras[name])

    return read


def run_of(folder: Path, grades: dict[str, dict[str, float]], metrics: list[Metric], **options: Any) -> Run:
    conversations = [
        chat(user("hi"), id=id, extras=dict(values), dimensions={"agent": "x" if id < "c" else "y"})
        for id, values in grades.items()
    ]
    return make_run(conversations, metrics=metrics, out=folder / "run", workers=1, **options)


def order(run: Run) -> list[str]:
    return [one.conversation for one in worst(run, 99)]


def because(run: Run) -> dict[str, list[tuple[str, str]]]:
    return {one.conversation: [(each.headline.key, each.failure) for each in one.because] for one in worst(run, 99)}


# 0 s is worth 10 points, 10 s none, and 7 pass: up to 3 s
LATENCY = marked("test.latency", ten=TenPoints(zero=10.0, ten=0.0))
QUALITY = marked("test.quality", HIGHER, "points")
DONE = marked("outcome.done", HIGHER, SHARE)


class TestPassMarks:
    def test_a_value_that_passes_is_no_reason(self, tmp_path: Path) -> None:
        # a is the slowest and passes (3 s: 7 points); b is behind in quality, of which no mark is known
        grades = {"a": {"test.latency": 3.0, "test.quality": 2.0}, "b": {"test.latency": 0.1, "test.quality": 1.0}}
        run = run_of(tmp_path, grades, [LATENCY, QUALITY])
        assert because(run) == {"b": [("test.quality", "")], "a": []}
        assert order(run) == ["b", "a"]

    def test_one_that_fails_comes_before_all_that_are_only_behind(self, tmp_path: Path) -> None:
        grades = {
            "a": {"test.latency": 1.0, "test.quality": 1.0},
            "b": {"test.latency": 3.1, "test.quality": 9.0},  # 6.9 points
            "c": {"test.latency": 2.0, "test.quality": 5.0},
        }
        run = run_of(tmp_path, grades, [LATENCY, QUALITY])
        assert order(run) == ["b", "a", "c"]
        assert because(run)["b"] == [("test.latency", "mark")]

    def test_it_is_a_reason_also_where_all_fail(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, {"a": {"test.latency": 9.0}, "b": {"test.latency": 9.0}}, [LATENCY])
        assert because(run) == {"a": [("test.latency", "mark")], "b": [("test.latency", "mark")]}

    def test_more_failures_come_first(self, tmp_path: Path) -> None:
        other = marked("more.other", ten=TenPoints(zero=10.0, ten=0.0))
        grades = {"a": {"test.latency": 9.9, "more.other": 0.0}, "b": {"test.latency": 4.0, "more.other": 4.0}}
        assert order(run_of(tmp_path, grades, [LATENCY, other])) == ["b", "a"]


class TestTargets:
    def test_a_target_that_is_given_is_held_against_each(self, tmp_path: Path) -> None:
        grades = {"a": {"test.quality": 5.0}, "b": {"test.quality": 3.0}, "c": {"test.quality": 4.0}}
        run = run_of(tmp_path, grades, [QUALITY], targets=["test.quality >= 4"])
        # c meets it, though it is behind a
        assert because(run) == {"b": [("test.quality", "target")], "a": [], "c": []}

    def test_of_a_group_against_its_conversations(self, tmp_path: Path) -> None:
        grades = {id: {"test.quality": 1.0} for id in "abcd"}
        run = run_of(tmp_path, grades, [QUALITY], targets=["test.quality[agent=y] >= 4"], by=[["agent"]])
        assert because(run) == {"c": [("test.quality", "target")], "d": [("test.quality", "target")], "a": [], "b": []}

    def test_one_that_the_metric_declares(self, tmp_path: Path) -> None:
        quality = marked("test.quality", HIGHER, "points", target=Target(">", 2.0))
        run = run_of(tmp_path, {"a": {"test.quality": 3.0}, "b": {"test.quality": 2.0}}, [quality])
        assert because(run) == {"b": [("test.quality", "target")], "a": []}


class TestOutcomes:
    def test_a_failed_outcome_comes_before_any_number_of_other_failures(self, tmp_path: Path) -> None:
        other = marked("more.other", ten=TenPoints(zero=10.0, ten=0.0))
        grades = {
            "a": {"outcome.done": 1.0, "test.latency": 9.0, "test.other": 9.0},
            "b": {"outcome.done": 0.0, "test.latency": 1.0, "test.other": 1.0},
        }
        run = run_of(tmp_path, grades, [DONE, LATENCY, other])
        assert order(run) == ["b", "a"]
        assert because(run)["b"][0] == ("outcome.done", "outcome")

    def test_what_the_log_calls_lost_comes_before_that_and_what_is_done_last(self, tmp_path: Path) -> None:
        conversations = [
            chat(user("hi"), id=id, extras={"outcome.done": done}, outcome=outcome)
            for id, done, outcome in [
                ("a", 1.0, Outcome(completed=True)),
                ("b", 0.0, Outcome()),
                ("c", 1.0, Outcome(completed=False)),
            ]
        ]
        run = make_run(conversations, metrics=[DONE], out=tmp_path / "run", workers=1)
        assert [(one.conversation, one.outcome) for one in worst(run, 9)] == [
            ("c", "lost"),
            ("b", "unknown"),
            ("a", "done"),
        ]


def rated(judge: str) -> Metric:
    """What a judge says; 7 of 10 points pass."""

    @metric(
        "test.rated", version=1, observes=CONVERSATION, unit="points", better=HIGHER, ten=TenPoints(zero=0.0, ten=10.0)
    )
    def read(conversation: Conversation) -> Observation:
        """What does the judge say?"""
        return measured(conversation, conversation.extras["test.rated"], judge=judge)

    return read


class TestJudges:
    """a waits too long; of b a judge says the worst."""

    GRADES: ClassVar = {"a": {"test.latency": 9.0, "test.rated": 9.0}, "b": {"test.latency": 1.0, "test.rated": 0.0}}

    def test_one_that_is_not_calibrated_decides_nothing(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, self.GRADES, [LATENCY, rated("openai/tiny@1")], targets=["test.rated >= 9"])
        assert because(run) == {"a": [("test.latency", "mark")], "b": []}
        assert order(run) == ["a", "b"]

    def test_unless_judges_are_trusted(self, tmp_path: Path) -> None:
        # 0 of 10 points are below 7.
        run = run_of(tmp_path, self.GRADES, [LATENCY, rated("openai/tiny@1")], trust_judge=True)
        assert because(run) == {"a": [("test.latency", "mark")], "b": [("test.rated", "mark")]}

    def test_people_need_no_calibration(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, self.GRADES, [LATENCY, rated("human:ann")])
        assert because(run)["b"] == [("test.rated", "mark")]

    def test_where_there_is_nothing_else_it_orders_and_fails_none(self, tmp_path: Path) -> None:
        run = run_of(tmp_path, self.GRADES, [rated("openai/tiny@1")])
        assert order(run) == ["b", "a"]
        assert because(run) == {"b": [("test.rated", "")], "a": []}
