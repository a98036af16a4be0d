"""Which groups stand apart from the others, which are alike, and what cannot be known."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.answer.differences import Groups, comparable, groups_apart
from convoscope.analysis.answer.samples import Samples
from convoscope.conversation import Outcome
from convoscope.metrics import NEITHER
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric
from convoscope.statistics.summary import Figure
from support import figures
from support.chats import agent, call, chat, result, user


def figure(value: float | None, low: float | None = None, high: float | None = None, **facts: Any) -> Figure:
    """A figure of tools.success, unless it is of another metric; without `low` it has no interval."""
    return figures.figure(facts.pop("metric", "tools.success"), value, low, high, **facts)


def declared(figure: Figure, importance: int = 5) -> DeclaredMetric:
    facts = {"family": "test", "version": 1, "question": "?", "unit": figure.unit, "better": figure.better}
    return DeclaredMetric(metric=figure.key, observes="conversation", importance=importance, **facts)


class TestWhatCanBeCompared:
    def test_a_headline_with_a_direction_that_matters(self) -> None:
        mine = figure(0.6, 0.5, 0.7)
        assert [one for one, _ in comparable(figures.summary(mine, declared=[declared(mine)]))] == [mine]

    @pytest.mark.parametrize(
        ("mine", "importance"),
        [
            (figure(0.6, 0.5, 0.7, better=NEITHER), 5),
            (figure(2, 1, 3, reduction="p95"), 5),  # few values have no tail: it is further off by nature
            (figure(0.6, 0.5, 0.7, variant="eva"), 5),
            (figure(0.6, 0.5, 0.7), 4),
        ],
        ids=["no direction", "another reduction", "a published rule", "matters little"],
    )
    def test_what_says_nothing(self, mine: Figure, importance: int) -> None:
        assert list(comparable(figures.summary(mine, declared=[declared(mine, importance)]))) == []


FLOWS = ("orders", "refunds", "returns")


def flows_run(folder: Path, succeeds: Callable[[str, int], bool], each: int = 12) -> Run:
    """Three flows of some conversations, each with three calls; whether all calls of one come back is said."""
    conversations = [
        chat(
            user("hi"),
            *(
                event
                for index in range(3)
                for event in (
                    call("find", str(index)),
                    result("find", str(index), success=succeeds(flow, number)),
                )
            ),
            id=f"{flow}-{number}",
            dimensions={"flow": flow},
        )
        for flow in FLOWS
        for number in range(each)
    ]
    return score(conversations, metrics=["tools.success"], out=folder / "run", workers=1)


def apart(run: Run) -> Groups:
    return groups_apart(run.summary, "chat", Samples(run), None)


class TestARealRun:
    @pytest.mark.parametrize("succeeds", [True, False], ids=["all at 100 %", "all at 0 %"])
    def test_twelve_that_agree_are_not_yet_alike(self, succeeds: bool, tmp_path: Path) -> None:
        run = flows_run(tmp_path, lambda flow, number: succeeds)
        assert [one.by["flow"] for one in run.summary.groups] == list(FLOWS)
        # What was not seen in 12 chats may still happen in 3 of 12, which is far more than 5 points.
        words = "No clear difference yet: orders (n 12), refunds (n 12), returns (n 12)."
        assert apart(run) == ((), words)

    def test_sixty_that_agree_are_alike(self, tmp_path: Path) -> None:
        # 3 ÷ 60 is 5 points, the margin.
        run = flows_run(tmp_path, lambda flow, number: True, each=60)
        assert apart(run) == ((), "Like the others in tool calls that succeed: orders, refunds, returns.")

    def test_in_which_one_fails_has_one_that_does(self, tmp_path: Path) -> None:
        """Refunds: 0 of 12 against 24 of 24; that the two others are better is not repeated."""
        groups, others = apart(flows_run(tmp_path, lambda flow, number: flow != "refunds"))
        assert [(dict(one.by), one.sentence) for one in groups] == [
            ({"flow": "refunds"}, "flow refunds: tool calls that succeed 0.0 % against 100.0 % of the others")
        ]
        # orders and returns: 12 of 12 against 12 of 24, which differs too
        assert others == ""


Cell = tuple[str, str, int, int]
"""A channel, a second dimension's value, how many chats, and how many of them reached their goal."""


def cells_apart(folder: Path, *cells: Cell, by: str = "domain") -> Groups:
    conversations = [
        chat(
            user("Book it."),
            agent("Done."),
            id=f"{channel}-{kind}-{number}",
            dimensions={"channel": channel, by: kind},
            outcome=Outcome(completed=number < good),
        )
        for channel, kind, size, good in cells
        for number in range(size)
    ]
    return apart(score(conversations, metrics=["outcome.success"], by=[["channel"]], out=folder / "run", workers=1))


class TestAnotherMix:
    """The app has more hard chats than the web."""

    def test_the_opposite_holds_within_each_domain(self, tmp_path: Path) -> None:
        cells = (
            ("web", "easy", 300, 270),
            ("web", "hard", 100, 30),
            ("app", "easy", 100, 100),
            ("app", "hard", 300, 130),
        )
        groups, _ = cells_apart(tmp_path, *cells)
        # Both domains weigh 300 × 100 ÷ 400: (90 + 30) ÷ 2 and (100 + 43.3) ÷ 2. Together 300 and 230 of 400.
        assert [one.sentence for one in groups] == [
            "channel web: chats that reach their goal 60.0 % against 71.7 % of the others, within domain; "
            "together 75.0 % against 57.5 %, because it has more easy chats"
        ]

    def test_nothing_is_claimed_where_nothing_holds_within(self, tmp_path: Path) -> None:
        # Together 60 of 120 against 96 of 120, which chance does not explain; within domains the app is better.
        cells = (("web", "easy", 100, 90), ("web", "hard", 20, 6), ("app", "easy", 20, 20), ("app", "hard", 100, 40))
        assert cells_apart(tmp_path, *cells) == ((), "No clear difference yet within domain: app (n 120), web (n 120).")

    def test_better_here_and_worse_there(self, tmp_path: Path) -> None:
        cells = (("web", "easy", 100, 50), ("web", "hard", 60, 54), ("app", "easy", 60, 57), ("app", "hard", 100, 40))
        words = "Better or worse than the others by domain: app (n 160), web (n 160)."
        assert cells_apart(tmp_path, *cells) == ((), words)

    def test_alike_together_is_not_alike(self, tmp_path: Path) -> None:
        # Together 600 of 1,000 both; in the easy ones 80 against 65 %, in the hard ones 40 against 30 %.
        cells = (
            ("web", "easy", 500, 400),
            ("web", "hard", 500, 200),
            ("app", "easy", 857, 557),
            ("app", "hard", 143, 43),
        )
        groups, others = cells_apart(tmp_path, *cells)
        assert [one.by for one in groups] == [{"channel": "app"}]
        assert ", within domain" in groups[0].sentence
        assert "Like the others" not in others

    def test_the_same_mix_needs_no_word(self, tmp_path: Path) -> None:
        cells = (("web", "easy", 50, 48), ("web", "hard", 50, 40), ("app", "easy", 50, 30), ("app", "hard", 50, 20))
        groups, _ = cells_apart(tmp_path, *cells)
        assert [one.sentence for one in groups] == [
            "channel app: chats that reach their goal 50.0 % against 88.0 % of the others"
        ]

    def test_a_language_of_its_own(self, tmp_path: Path) -> None:
        groups, _ = cells_apart(tmp_path, ("web", "en", 50, 45), ("app", "de", 50, 20), by="language")
        assert [one.sentence for one in groups] == [
            "channel app: chats that reach their goal 40.0 % against 90.0 % of the others; "
            "but their languages differ too, so the cause is not known"
        ]

    def test_a_version_can_be_the_mix(self, tmp_path: Path) -> None:
        cells = (("web", "a", 100, 90), ("web", "b", 20, 6), ("app", "a", 20, 20), ("app", "b", 100, 40))
        groups, others = cells_apart(tmp_path, *cells, by="version")
        assert (groups, others) == ((), "No clear difference yet within version: app (n 120), web (n 120).")
