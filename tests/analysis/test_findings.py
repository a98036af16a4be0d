"""Which groups stand apart from the whole run, and which only seem to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.findings import MIN_CLUSTERS, findings, side
from convoscope.metrics import LOWER, NEITHER
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.runs.summary import Group, Summary
from convoscope.statistics.summary import Figure
from support import figures
from support.chats import call, chat, result, user
from support.figures import group


def figure(value: float | None, low: float | None = None, high: float | None = None, **facts: Any) -> Figure:
    """A figure of tools.success, unless it is of another metric; without `low` it has no interval."""
    return figures.figure(facts.pop("metric", "tools.success"), value, low, high, **facts)


def summary(whole: Figure, *groups: Group) -> Summary:
    return figures.summary(whole, groups=groups)


def apart(whole: Figure, *groups: Group) -> list[tuple[dict[str, str], str]]:
    return [(dict(one.by), one.side) for one in findings(summary(whole, *groups)).apart]


ORDERS, REFUNDS = {"flow": "orders"}, {"flow": "refunds"}


class TestStandingApart:
    def test_a_group_whose_whole_interval_is_below_is_worse_where_higher_is_better(self) -> None:
        assert apart(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7))) == [(ORDERS, "worse")]

    def test_and_better_where_lower_is(self) -> None:
        assert apart(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7, better=LOWER))) == [(ORDERS, "better")]

    def test_a_group_whose_whole_interval_is_above_is_better_where_higher_is_better(self) -> None:
        assert apart(figure(0.8), group(ORDERS, figure(0.9, 0.85, 0.95))) == [(ORDERS, "better")]

    def test_and_worse_where_lower_is(self) -> None:
        assert apart(figure(0.8), group(ORDERS, figure(0.9, 0.85, 0.95, better=LOWER))) == [(ORDERS, "worse")]

    @pytest.mark.parametrize(("low", "high"), [(0.7, 0.9), (0.8, 0.9), (0.7, 0.8)])
    def test_an_interval_that_reaches_the_figure_of_the_run_says_nothing(self, low: float, high: float) -> None:
        assert apart(figure(0.8), group(ORDERS, figure(0.85, low, high))) == []

    def test_worse_are_those_to_look_at(self) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7)), group(REFUNDS, figure(1, 0.9, 1))))
        assert [dict(one.by) for one in found.worse] == [ORDERS]
        assert len(found.apart) == 2


class TestWhatTellsNothing:
    def test_a_metric_without_a_direction(self) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7, better=NEITHER))))
        assert (found.apart, found.compared) == ([], 0)

    def test_a_figure_without_an_interval(self) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6))))
        assert (found.apart, found.compared) == ([], 0)

    @pytest.mark.parametrize(("clusters", "compared"), [(MIN_CLUSTERS - 1, 0), (MIN_CLUSTERS, 1)])
    def test_an_interval_of_too_few_clusters(self, clusters: int, compared: int) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7, clusters=clusters))))
        assert (len(found.apart), found.compared) == (compared, compared)

    @pytest.mark.parametrize("value", [0.0, 0.5, 1.0, 12.5])
    def test_a_group_at_the_figure_of_the_run_itself(self, value: float) -> None:
        # An interval that misses its own figure by a hair, which rounding may do, is no news of the group.
        assert side(figure(value, value + 1e-13, value + 1), figure(value)) is None
        assert side(figure(value, value - 1, value - 1e-13), figure(value)) is None

    @pytest.mark.parametrize(("value", "whole"), [(0.1 + 0.2, 0.3), (1e-13, 0.0), (1e9 * (1 + 1e-12), 1e9)])
    def test_or_at_it_but_for_rounding(self, value: float, whole: float) -> None:
        assert side(figure(value, value + 1e-6, value + 1e-5), figure(whole)) is None

    def test_but_a_little_beside_it_is_beside_it(self) -> None:
        # 1e-6 apart, and the interval from 5e-7 above on: closer than anybody would print, and apart all the same
        assert side(figure(0.500001, 0.5000005, 0.6), figure(0.5)) == "better"

    def test_a_group_that_is_the_whole_run(self) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7), conversations=100)))
        assert (found.apart, found.compared) == ([], 0)

    def test_another_reduction_of_the_same_metric(self) -> None:
        # A p95 of a group is further from the run's p95 by nature: few values have no tail.
        whole = figure(5, reduction="p95")
        assert apart(whole, group(ORDERS, figure(2, 1, 3, reduction="p95"))) == []

    def test_a_run_without_a_figure(self) -> None:
        found = findings(summary(figure(None), group(ORDERS, figure(0.6, 0.5, 0.7))))
        assert (found.apart, found.compared) == ([], 0)

    def test_a_metric_that_the_run_does_not_have(self) -> None:
        found = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7, metric="answer.f1"))))
        assert (found.apart, found.compared) == ([], 0)

    def test_no_groups(self) -> None:
        assert findings(summary(figure(0.8))) == ([], 0)

    def test_a_single_figure_is_told_in_the_same_way(self) -> None:
        assert side(figure(0.6, 0.5, 0.7), figure(0.8)) == "worse"
        assert side(figure(0.6, 0.5, 0.7), figure(None)) is None
        assert side(figure(0.6), figure(0.8)) is None
        assert side(figure(0.6, 0.5, 0.7, better=NEITHER), figure(0.8)) is None


class TestJudgesAndVariants:
    def test_each_judge_is_compared_with_itself(self) -> None:
        whole = [figure(0.9, judge="p/a"), figure(0.6, judge="p/b")]
        facts = figures.summary(*whole, groups=[group(ORDERS, figure(0.6, 0.5, 0.7, judge="p/b"))])
        assert findings(facts) == ([], 1)  # 0.6 lies inside 0.5 to 0.7; p/a's 0.9 would not

    def test_each_variant_is_compared_with_itself(self) -> None:
        whole = [figure(0.9), figure(0.6, variant="strict")]
        facts = figures.summary(*whole, groups=[group(ORDERS, figure(0.6, 0.5, 0.7))])
        assert [one.whole.value for one in findings(facts).apart] == [0.9]


class TestTheOrder:
    def test_furthest_first_in_widths_of_the_interval(self) -> None:
        found = findings(
            summary(
                figure(0.8),
                group(ORDERS, figure(0.4, 0.2, 0.6)),
                group(REFUNDS, figure(0.65, 0.6, 0.7)),
            )
        ).apart
        # refunds: (0.8 − 0.7) ÷ 0.1 = 1.0 widths; orders: (0.8 − 0.6) ÷ 0.4 = 0.5 widths
        assert [(dict(one.by), round(one.distance, 9)) for one in found] == [(REFUNDS, 1.0), (ORDERS, 0.5)]

    def test_above_counts_as_much_as_below(self) -> None:
        (one,) = findings(summary(figure(0.5), group(ORDERS, figure(0.9, 0.75, 1.0)))).apart
        assert one.distance == 1.0  # (0.75 − 0.5) ÷ 0.25

    def test_ties_go_by_name(self) -> None:
        twins = [group({"flow": name}, figure(0.4, 0.25, 0.5)) for name in ("b", "c", "a")]
        assert [one["flow"] for one, _ in apart(figure(0.8), *twins)] == ["a", "b", "c"]

    def test_all_that_was_compared_is_counted(self) -> None:
        groups = [group(ORDERS, figure(0.6, 0.5, 0.7)), group(REFUNDS, figure(0.8, 0.7, 0.9))]
        found = findings(summary(figure(0.8), *groups))
        assert (len(found.apart), found.compared) == (1, 2)

    def test_the_group_comes_with_its_size(self) -> None:
        (one,) = findings(summary(figure(0.8), group(ORDERS, figure(0.6, 0.5, 0.7), conversations=33))).apart
        assert (one.conversations, one.figure.value, one.whole.value) == (33, 0.6, 0.8)


FLOWS = ("orders", "refunds", "returns")


def flows_run(folder: Path, succeeds: Callable[[str, int], bool]) -> Run:
    """Three flows of seven conversations, each with three calls; whether all calls of one come back is said."""
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
        for number in range(7)
    ]
    return score(conversations, metrics=["tools.success"], out=folder / "run", workers=1)


class TestARealRun:
    @pytest.mark.parametrize("succeeds", [True, False], ids=["all at 100 %", "all at 0 %"])
    def test_in_which_all_groups_are_the_same_has_none_that_stands_apart(self, succeeds: bool, tmp_path: Path) -> None:
        run = flows_run(tmp_path, lambda flow, number: succeeds)
        found = findings(run.summary)
        assert [one.by["flow"] for one in run.summary.groups] == list(FLOWS)
        assert (found.apart, found.compared) == ([], 3)

    def test_in_which_one_fails_has_one_that_does(self, tmp_path: Path) -> None:
        found = findings(flows_run(tmp_path, lambda flow, number: flow != "refunds").summary)
        # the run is at 2/3. Refunds: 0 of 7, whose interval goes up to 3.84 ÷ (7 + 3.84) = 0.354, below 0.667.
        # The others: 7 of 7, from 7 ÷ (7 + 3.84) = 0.646, so that 0.667 lies inside.
        assert [(dict(one.by), one.side) for one in found.apart] == [(REFUNDS, "worse")]
        assert found.compared == 3


class TestWhatIsTold:
    """What a larger group says already is not said again of its parts."""

    PART = {"flow": "orders", "agent": "clover"}
    OTHER = {"flow": "refunds", "agent": "clover"}

    def told(self, *groups: Group) -> list[dict[str, str]]:
        return sorted((dict(one.by) for one in findings(summary(figure(0.8), *groups)).telling), key=len)

    def test_a_part_of_a_group_that_stands_apart_is_left_out(self) -> None:
        bad = figure(0.6, 0.5, 0.7)
        found = findings(summary(figure(0.8), group(ORDERS, bad), group(self.PART, bad), group(self.OTHER, bad)))
        assert len(found.worse) == 3
        assert self.told(group(ORDERS, bad), group(self.PART, bad), group(self.OTHER, bad)) == [ORDERS, self.OTHER]

    def test_not_where_the_larger_is_apart_in_something_else(self) -> None:
        bad, slow = figure(0.6, 0.5, 0.7), figure(0.6, 0.5, 0.7, metric="answer.f1")
        both = (figure(0.8), figure(0.8, metric="answer.f1"))
        whole = figures.summary(*both, groups=[group(ORDERS, slow), group(self.PART, bad)])
        assert sorted((dict(one.by) for one in findings(whole).telling), key=len) == [ORDERS, self.PART]

    def test_nor_where_the_larger_is_better(self) -> None:
        good, bad = figure(0.9, 0.85, 0.95), figure(0.6, 0.5, 0.7)
        assert self.told(group(ORDERS, good), group(self.PART, bad)) == [self.PART]
