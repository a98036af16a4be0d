"""Histories of runs: which nights count, what changed when and with which version, and what is said of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import convoscope
from convoscope.analysis.history import History, make_history
from convoscope.analysis.history.levels import Series, series_of
from convoscope.analysis.history.model import HistoryNight
from convoscope.analysis.history.series import FigureKey, FigureNight, Identity, NightData
from convoscope.analysis.history.words import breaks_of, versions_text
from convoscope.errors import UsageError
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric
from support.nightly import FIRST, chat, make_night, write_night

METRICS = ["outcome.success", "timing.response_latency"]


def days(count: int) -> Iterator[date]:
    return (FIRST + timedelta(days=index) for index in range(count))


def scored(folder: Path, chats: list[dict[str, Any]], name: str, **options: Any) -> Run:
    """A run of one file of chats."""
    file = write_night(folder / "logs" / name, FIRST, chats)
    return convoscope.score(file, out=folder / "runs" / name, metrics=METRICS, label="resolved", **options)


@pytest.fixture(scope="module")
def month(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """30 days in one run. From day 15 on, half of the chats are of v2, which replies sooner; from day 22 on, fewer
    chats are resolved, whatever the version. Day 7 is missing, day 13 has 17 chats."""
    chats = []
    for index, day in enumerate(days(30)):
        if index != 7:
            chats += make_night(
                day,
                index,
                count=17 if index == 13 else 60,
                share=0.75 if index < 22 else 0.4,
                wait=2.0 if index < 15 else 1.0,
                versions={"v1": 1} if index < 15 else {"v1": 0.5, "v2": 0.5},
            )
    return scored(tmp_path_factory.mktemp("month"), chats, "month")


@pytest.fixture(scope="module")
def history(month: Run) -> History:
    return make_history(month.folder, by="day", targets=["outcome.success >= 70%"])


class TestChanges:
    def test_each_has_its_date_and_what_came_with_it(self, history: History) -> None:
        goal, wait = history["outcome.success"], history["timing.response_latency p50"]
        assert [(one.date, one.direction) for one in goal.changes] == [("2026-11-09", "worse")]
        assert [(one.date, one.direction) for one in wait.changes] == [("2026-11-02", "better")]
        levels = [one for one in history.changes if one.kind == "level"]
        assert [(one.date, one.version) for one in levels] == [
            ("2026-11-09", "no new version"),
            ("2026-11-02", "with v2"),
        ]
        assert "timing.response_latency p95" in levels[1].figures  # it moved with the median

    def test_without_a_new_version_both_are_compared(self, history: History) -> None:
        (change,) = history["outcome.success"].changes
        assert list(change.by_version) == ["v1", "v2"]
        assert all(before > 0.6 and now < 0.5 for before, now in change.by_version.values())

    def test_the_answer_comes_first(self, history: History) -> None:
        goal = history["outcome.success"]
        assert goal.level is not None
        assert goal.change is not None
        points = round(100 * (goal.change.before - goal.change.now))
        shown = f"{100 * goal.level.value:.1f} %"
        assert history.verdict[0].text == (
            f"{shown} of the chats reach their goal since 9 Nov, {points} points fewer than before."
        )
        assert history.verdict[1].text.startswith("Since 2 Nov, with v2, the agent replies sooner: ")

    def test_a_level_is_over_its_nights_and_inside_its_interval(self, month: Run, history: History) -> None:
        goal = history["outcome.success"]
        counted = [one for one in goal.nights[22 - 1 :] if one is not None]  # day 7 is no night
        resolved = sum(one.value * one.conversations for one in counted)
        assert goal.level is not None
        assert goal.level.nights == len(counted) == 8
        assert goal.level.value == pytest.approx(resolved / sum(one.conversations for one in counted))
        assert goal.level.low is not None
        assert goal.level.high is not None
        assert goal.level.low < 0.4 < goal.level.high  # what was planted
        assert goal.target_verdict == "missed"

    def test_nights_without_a_run_and_with_few_chats(self, history: History) -> None:
        assert history.word == "day"
        assert len(history.nights) == 29
        few = [one for one in history.nights if one.few]
        assert [(one.date, one.conversations) for one in few] == [("2026-10-31", 17)]
        assert history["outcome.success"].nights[12] is not None
        assert history["outcome.success"].nights[12].few

    def test_nights_in_which_nothing_happened(self, tmp_path: Path) -> None:
        chats = [
            one
            for index, day in enumerate(days(12))
            for one in make_night(day, index, count=30, share=0.7, wait=1.0, versions={"v1": 1})
        ]
        made = make_history(scored(tmp_path, chats, "calm").folder, by="day")
        assert made.changes == ()
        assert made.verdict[0].text.endswith("of the chats reach their goal; no change in 12 days.")
        assert made.verdict[1].text == "No change in any of 3 figures."


class TestNights:
    def test_a_night_has_the_figures_of_its_run(self, month: Run) -> None:
        """The same values, intervals and n as the summary of the run has."""
        made = make_history(month.folder)
        for name in ("outcome.success", "timing.response_latency p50", "timing.response_latency p95"):
            figure, (night,) = month[name], made[name].nights
            assert night is not None
            assert figure.interval is not None
            assert (night.value, night.low, night.high, night.n, night.conversations) == (
                figure.value,
                figure.interval.low,
                figure.interval.high,
                figure.n,
                figure.samples_measured,
            )

    def test_few_nights_say_their_values_alone(self, tmp_path: Path) -> None:
        for index, day in enumerate(days(3)):
            # 30, 33 and 36 of 60 are resolved: 50, 55 and 60 %.
            chats = [
                chat(day, number, resolved=number < 30 + 3 * index, wait=1.0, version="v1") for number in range(60)
            ]
            scored(tmp_path, chats, day.isoformat())
        made = make_history(tmp_path / "runs")
        assert [clause.text for clause in made.verdict] == [
            "3 nights are too few to name a change.",
            "50.0 %, 55.0 % and 60.0 % of the chats reach their goal.",
        ]
        assert made.looked_at == 0
        assert all(not figure.levels and not figure.changes for figure in made.figures)
        assert [one.date for one in made.nights] == ["2026-10-18", "2026-10-19", "2026-10-20"]
        assert {one.dated_by for one in made.nights} == {"logs"}

    def test_logs_without_clocks_are_dated_by_the_run(self, tmp_path: Path) -> None:
        chats = make_night(FIRST, 1, count=25, share=0.5, wait=1.0, versions={"v1": 1})
        for one in chats:
            for message in one["messages"]:
                del message["timestamp"]
        run = scored(tmp_path, chats, "timeless")
        made = make_history(run.folder)
        assert [(one.date, one.dated_by) for one in made.nights] == [(run.receipt.started_at[:10], "receipt")]
        assert made.notes == ("the logs have no clocks: dated by when they were scored",)
        with pytest.raises(UsageError, match="no conversation has a date"):
            make_history(run.folder, by="day")


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of two nights."""
    folder = tmp_path_factory.mktemp("nights")
    for index, day in enumerate(days(2)):
        scored(folder, make_night(day, index, count=25, share=0.6, wait=1.0, versions={"v1": 1}), day.isoformat())
    return folder


@pytest.fixture
def copied(nights: Path, tmp_path: Path) -> Callable[[str], Path]:
    """The two nights, with a third folder that is made of the second one."""

    def copy(name: str) -> Path:
        shutil.copytree(nights, tmp_path / "copy")
        return shutil.copytree(nights / "runs" / "2026-10-19", tmp_path / "copy" / "runs" / name)

    return copy


class TestWhatIsLeftOut:
    def test_the_same_input_counts_once(self, copied: Callable[[str], Path]) -> None:
        made = make_history(copied("again").parent)
        assert len(made.nights) == 2
        assert made.left_out in (("2026-10-19: same input as again",), ("again: same input as 2026-10-19",))

    def test_a_damaged_run(self, copied: Callable[[str], Path]) -> None:
        folder = copied("broken")
        (folder / "summary.json").write_text("{")
        made = make_history(folder.parent)
        assert len(made.nights) == 2
        (line,) = made.left_out
        assert line.startswith("damaged: ")
        assert "broken" in line

    def test_an_invalid_run(self, copied: Callable[[str], Path]) -> None:
        folder = copied("wrong")
        Run.open(folder).invalidate("the wrong prompt")
        made = make_history(folder.parent)
        assert made.left_out == ("wrong: invalid, the wrong prompt",)

    def test_an_unfinished_run(self, copied: Callable[[str], Path]) -> None:
        folder = copied("cut")
        shutil.rmtree(folder)
        (folder / ".partial").mkdir(parents=True)
        assert make_history(folder.parent).left_out == ("cut: not finished",)

    def test_logs_that_grow_count_once(self, tmp_path: Path) -> None:
        """Each night scores all chats so far: of the second night, only the new ones count."""
        first = make_night(FIRST, 1, count=30, share=1.0, wait=1.0, versions={"v1": 1})
        second = make_night(FIRST + timedelta(days=1), 2, count=30, share=0.0, wait=1.0, versions={"v1": 1})
        scored(tmp_path, first, "one")
        # The same file name: the conversations are the same to the letter.
        scored(tmp_path, [*first, *second], "two")
        made = make_history(tmp_path / "runs")
        assert [(one.date, one.conversations) for one in made.nights] == [("2026-10-18", 30), ("2026-10-19", 30)]
        assert [one.value for one in made["outcome.success"].nights if one is not None] == [1.0, 0.0]
        assert made.notes == ("30 conversations of earlier runs counted once",)

    def test_nothing_to_look_at(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="there is no folder"):
            make_history(tmp_path / "none")
        with pytest.raises(UsageError, match="no run to look at"):
            make_history(tmp_path)
        with pytest.raises(UsageError, match="by run or by day"):
            make_history(tmp_path, by="week")


KEY = FigureKey("judged.faithfulness")
DECLARED = DeclaredMetric(
    metric=KEY.key, family="judged", version=1, question="", unit="share", better="higher", observes="conversation"
)


def night_data(*, judge: str = "a", version: int = 1, label: str = "", scenarios: range = range(0), n: int = 20) -> Any:
    clusters = np.array(list(scenarios) or list(range(1000, 1000 + n)))
    values = np.ones(len(clusters))
    figure = FigureNight(
        1.0, None, n, len(clusters), Identity(judge, version, label), clusters, values, values, np.arange(len(clusters))
    )
    return NightData(
        SimpleNamespace(conversations=len(clusters)),  # type: ignore[arg-type]
        {KEY: figure},
        {},
        {},
        dict.fromkeys(scenarios, 1),
    )


def series(nights: list[Any]) -> Series:
    return series_of(KEY, DECLARED, nights)


class TestWhatIsNotComparable:
    @pytest.mark.parametrize(
        ("change", "reason"), [({"judge": "b"}, "judge"), ({"version": 2}, "metric"), ({"label": "csat"}, "label")]
    )
    def test_another_judge_metric_or_label(self, change: dict[str, Any], reason: str) -> None:
        made = series([night_data()] * 5 + [night_data(**change)] * 3)
        assert (made.nights, made.broken) == ([5, 6, 7], reason)

    def test_the_break_has_its_date(self) -> None:
        made = series([night_data(judge="atlas-1@x")] + [night_data(judge="atlas-2@x")] * 2)
        (event,) = breaks_of({KEY: made}, ["2026-10-27", "2026-10-28", "2026-10-29"])
        assert (event.date, event.title) == ("2026-10-28", "judge atlas-1 -> atlas-2: not comparable")

    def test_nights_of_few_do_not_count(self) -> None:
        assert series([night_data(), night_data(n=19), night_data()]).nights == [0, 2]
        assert series([night_data(n=19)]).nights == []

    def test_other_scenarios(self) -> None:
        made = series([night_data(scenarios=range(30))] * 3 + [night_data(scenarios=range(20, 50))] * 2)
        assert (made.nights, made.broken) == ([3, 4], "scenarios")

    def test_scenarios_that_all_nights_share(self) -> None:
        """30 of the first night, 27 of the second, 24 of them in both: the level is that of the 24."""
        made = series([night_data(scenarios=range(30)), night_data(scenarios=range(6, 33))])
        assert made.recurring
        assert [len(one.clusters) for one in made.data] == [24, 24]


def test_how_versions_are_called() -> None:
    assert versions_text({"v1": 1.0}, "call") == "v1, all calls"
    assert versions_text({"v1": 0.52, "v2": 0.48}, "call") == "v1 and v2, half each"
    assert versions_text({"v1": 0.8, "v2": 0.2}, "call") == "v1 80 %, v2 20 %"
    assert HistoryNight(date="2026-11-09", run="r", conversations=3).versions == {}
