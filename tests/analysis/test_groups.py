"""Which groups stand apart from the whole run, and which figures of them could tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.answer.groups import MIN_CLUSTERS, comparable, groups_apart
from convoscope.metrics import NEITHER
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure
from support import figures
from support.chats import call, chat, result, user
from support.figures import group

ALL = 100
ORDERS = {"flow": "orders"}


def figure(value: float | None, low: float | None = None, high: float | None = None, **facts: Any) -> Figure:
    """A figure of tools.success, unless it is of another metric; without `low` it has no interval."""
    return figures.figure(facts.pop("metric", "tools.success"), value, low, high, **facts)


class TestWhatCanBeCompared:
    def test_a_headline_with_a_direction_and_an_interval(self) -> None:
        mine = figure(0.6, 0.5, 0.7)
        assert list(comparable(group(ORDERS, mine), ALL)) == [mine]

    @pytest.mark.parametrize(
        "mine",
        [
            figure(0.6, 0.5, 0.7, better=NEITHER),
            figure(0.6),
            figure(2, 1, 3, reduction="p95"),  # few values have no tail: it is further off by nature
            figure(0.6, 0.5, 0.7, variant="eva"),
        ],
        ids=["no direction", "no interval", "another reduction", "a published rule"],
    )
    def test_what_tells_nothing(self, mine: Figure) -> None:
        assert list(comparable(group(ORDERS, mine), ALL)) == []

    @pytest.mark.parametrize(("clusters", "compared"), [(MIN_CLUSTERS - 1, 0), (MIN_CLUSTERS, 1)])
    def test_an_interval_of_too_few_clusters(self, clusters: int, compared: int) -> None:
        assert len(list(comparable(group(ORDERS, figure(0.6, 0.5, 0.7, clusters=clusters)), ALL))) == compared

    def test_a_group_that_is_the_whole_run(self) -> None:
        assert list(comparable(group(ORDERS, figure(0.6, 0.5, 0.7), conversations=ALL), ALL)) == []


FLOWS = ("orders", "refunds", "returns")


def flows_run(folder: Path, succeeds: Callable[[str, int], bool]) -> Run:
    """Three flows of twelve conversations, each with three calls; whether all calls of one come back is said."""
    conversations = [
        chat(
            user("hi"),
            *(
                event
                for place in range(3)
                for event in (
                    call("find", str(place)),
                    result("find", str(place), success=succeeds(flow, number)),
                )
            ),
            id=f"{flow}-{number}",
            dimensions={"flow": flow},
        )
        for flow in FLOWS
        for number in range(12)
    ]
    return score(conversations, metrics=["tools.success"], out=folder / "run", workers=1)


class TestARealRun:
    @pytest.mark.parametrize("succeeds", [True, False], ids=["all at 100 %", "all at 0 %"])
    def test_in_which_all_groups_are_the_same_has_none_that_stands_apart(self, succeeds: bool, tmp_path: Path) -> None:
        run = flows_run(tmp_path, lambda flow, number: succeeds)
        assert [one.by["flow"] for one in run.summary.groups] == list(FLOWS)
        assert groups_apart(run.summary, "chat") == ((), "Like the rest: orders, refunds, returns.")

    def test_in_which_one_fails_has_one_that_does(self, tmp_path: Path) -> None:
        """Refunds: 0 of 12 against two thirds of the run; who is better is not told."""
        apart, alike = groups_apart(flows_run(tmp_path, lambda flow, number: flow != "refunds").summary, "chat")
        assert [(dict(one.by), one.sentence) for one in apart] == [
            ({"flow": "refunds"}, "flow refunds: tool calls that succeed 0.0 % against 66.7 % of all")
        ]
        assert alike == "Like the rest: orders, returns."
