"""Which figures have a row each, which are told with their whole, and which are only named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from convoscope.report.run_tables import UnmeasuredFigures, VisibleFigures, headlines, visible_figures
from convoscope.statistics.summary import Figure
from support import figures


def figure(name: str, value: float | None = None, reason: str = "no_clock", **facts: Any) -> Figure:
    """A figure of a summary: with a value, or without one and why."""
    return figures.figure(name, value, **({"reason": reason} if value is None else {}), **facts)


def over_group(name: str, value: float | None = None, **facts: Any) -> Figure:
    return figure(name, value, judge="(derived)", **facts)


def sorted_out(*some: Figure, asked: tuple[str, ...] = ()) -> VisibleFigures:
    return visible_figures(figures.summary(*some), asked)


def names(some: Sequence[Figure]) -> list[str]:
    return [one.metric for one in some]


class TestRows:
    def test_a_figure_with_a_value_has_one(self) -> None:
        shown = sorted_out(figure("a.one", 1.0), figure("b.two", 0.0))
        assert names(shown.figures) == ["a.one", "b.two"]
        assert (shown.parts, shown.silent) == ([], [])

    def test_without_a_value_it_is_told_with_the_others_of_its_family(self) -> None:
        shown = sorted_out(figure("a.one", 1.0), figure("a.two"), figure("b.three"))
        assert names(shown.figures) == ["a.one"]
        assert [one.names for one in shown.silent] == [["a.two"], ["b.three"]]

    def test_families_are_told_by_the_first_part_of_the_name(self) -> None:
        shown = sorted_out(figure("tool.one", 1.0), figure("tools.two"))
        assert names(shown.figures) == ["tool.one"]

    def test_one_that_broke_has_one_wherever_it_stands(self) -> None:
        broken = {"status": "error", "reason": "metric_raised"}
        some = [figure("b.one", **broken), figure("b.one.part", **broken), over_group("b.one.pass_at", **broken)]
        assert names(sorted_out(figure("a.one", 1.0), *some).figures) == ["a.one", *names(some)]

    def test_one_that_a_target_asks_for_has_one_wherever_it_stands(self) -> None:
        some = [figure("a.one", 1.0), figure("a.one.part", 0.5), figure("b.two"), figure("b.two", reduction="p95")]
        assert names(sorted_out(*some, asked=("a.one.part",)).figures) == ["a.one", "a.one.part"]
        shown = sorted_out(*some, asked=("b.two p95",))
        assert [(one.metric, one.reduction) for one in shown.figures] == [("a.one", ""), ("b.two", "p95")]
        assert [one.names for one in shown.silent] == [["b.two"]]

    def test_where_nothing_at_all_was_measured_everything_is_shown(self) -> None:
        some = [figure("a.one"), figure("a.one.part"), over_group("a.one.pass_at")]
        assert sorted_out(*some) == VisibleFigures(some, (), ())

    def test_nothing_has_none(self) -> None:
        assert not any(sorted_out())


class TestParts:
    def test_with_a_value_they_are_told_apart(self) -> None:
        shown = sorted_out(figure("a.one", 1.0), figure("a.one.part", 0.5), figure("a.one.deep.part", 0.0))
        assert names(shown.figures) == ["a.one"]
        assert names(shown.parts) == ["a.one.part", "a.one.deep.part"]

    def test_without_one_they_are_silent_though_the_whole_speaks(self) -> None:
        shown = sorted_out(figure("a.one", 1.0), figure("a.one.part"))
        assert (names(shown.figures), shown.parts) == (["a.one"], [])
        assert shown.silent == [UnmeasuredFigures("a", ["a.one.part"], {"no_clock": 1})]

    def test_where_the_whole_was_not_scored_they_stand_for_themselves(self) -> None:
        assert names(sorted_out(figure("a.one.part", 0.5), figure("a.two", 1.0)).figures) == ["a.one.part", "a.two"]

    def test_a_figure_over_a_group_has_a_row_with_a_value_and_none_without(self) -> None:
        whole = figure("a.one", 1.0)
        assert names(sorted_out(whole, over_group("a.one.pass_at", 0.5)).figures) == ["a.one", "a.one.pass_at"]
        shown = sorted_out(whole, over_group("a.one.pass_at"), over_group("a.mean"))
        assert names(shown.figures) == ["a.one"]
        assert [one.names for one in shown.silent] == [["a.one.pass_at", "a.mean"]]


class TestSilence:
    def test_is_gathered_by_family_in_the_order_of_the_figures(self) -> None:
        shown = sorted_out(figure("a.one", 1.0), figure("c.x"), figure("b.x"), figure("c.y", reason="no_turns"))
        assert [(one.family, one.names) for one in shown.silent] == [("c", ["c.x", "c.y"]), ("b", ["b.x"])]

    @pytest.mark.parametrize(
        ("count", "told"),
        [(1, "b.m0"), (4, "b.m0, b.m1, b.m2, b.m3"), (5, "5 figures of b")],
    )
    def test_a_few_are_named_and_more_are_counted(self, count: int, told: str) -> None:
        (silence,) = sorted_out(figure("a.one", 1.0), *(figure(f"b.m{number}") for number in range(count))).silent
        assert silence.text == f"{told} (no clock)"

    def test_reasons_come_commonest_first_and_only_three(self) -> None:
        codes = ["no_a", "no_b", "no_b", "no_c", "no_c", "no_c", "no_d"]
        (silence,) = sorted_out(
            figure("a.one", 1.0), *(figure(f"b.m{number}", reason=code) for number, code in enumerate(codes))
        ).silent
        assert silence.reasons == {"no_c": 3, "no_b": 2, "no_a": 1, "no_d": 1}
        assert silence.text == "7 figures of b (no c, no b, no a, …)"

    def test_a_figure_is_named_once_with_its_variant_and_its_reduction(self) -> None:
        some = [figure("b.m", variant="k3"), figure("b.m", variant="k3"), figure("b.m", reduction="p95")]
        (silence,) = sorted_out(figure("a.one", 1.0), *some).silent
        assert silence.text == "b.m@k3, b.m p95 (no clock)"


class TestHeadlines:
    """Figures at the head of a table of groups."""

    def heads(self, *some: Figure, group: tuple[Figure, ...]) -> list[str]:
        return names(headlines(figures.summary(*some), [figures.group({}), figures.group({}, *group)]))

    def test_have_a_value_in_the_whole_and_in_a_group(self) -> None:
        some = (figure("a.one", 1.0), figure("a.two", 2.0), figure("a.three"))
        group = (figure("a.one", 1.0), figure("a.two"), figure("a.three", 3.0))
        assert self.heads(*some, group=group) == ["a.one"]

    def test_groups_that_only_parts_have_show_these(self) -> None:
        """Failure modes: how often each is flagged, and not only in how many conversations it was asked for."""
        some = (figure("a.one", 1.0), figure("a.one.flagged", 0.5))
        assert self.heads(*some, group=(figure("a.one.flagged", 0.0),)) == ["a.one.flagged"]

    def test_are_no_part_and_no_further_reduction(self) -> None:
        some = (figure("a.one", 1.0), figure("a.one", 2.0, reduction="p95"), figure("a.one.part", 0.5))
        assert self.heads(*some, group=some) == ["a.one"]

    def test_are_none_where_nothing_was_measured(self) -> None:
        assert self.heads(figure("a.one"), group=(figure("a.one"),)) == []
