"""Where the states of a flow are drawn: from left to right, none on another, ribbons as high as their traffic."""

from __future__ import annotations

from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.report.page.flow_layout import ColumnOrder, Layout, Pair, arrange, lay_out

LABEL = 40.0


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[float], dict[Pair, int]]:
    order = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 7.0]), min_size=1, max_size=12))
    ends = st.integers(0, len(order) - 1)
    edges = draw(st.dictionaries(st.tuples(ends, ends), st.integers(1, 90), max_size=30))
    return order, edges


def laid(order: list[float], edges: dict[Pair, int]) -> tuple[ColumnOrder, Layout]:
    columns = arrange(order, edges)
    apart = {pair: float(count) for pair, count in edges.items() if pair[0] != pair[1]}
    return columns, lay_out(columns, dict.fromkeys(range(len(order)), 200.0), apart, LABEL)


class TestWhateverTheFlow:
    @given(graphs())
    def test_every_state_has_one_place_and_room_for_its_label(self, graph: tuple[list[float], dict[Pair, int]]) -> None:
        order, edges = graph
        columns, layout = laid(order, edges)
        assert set(layout.bars) == set(range(len(order)))
        for one, other in combinations(layout.bars, 2):
            if columns.at[one] == columns.at[other]:
                upper, lower = sorted((layout.bars[one], layout.bars[other]))
                assert lower.top - LABEL >= upper.bottom
        assert all(bar.top >= LABEL and bar.bottom <= layout.height for bar in layout.bars.values())

    @given(graphs())
    def test_ribbons_lead_to_the_right_and_what_leads_back_closes_a_cycle(
        self, graph: tuple[list[float], dict[Pair, int]]
    ) -> None:
        order, edges = graph
        columns, layout = laid(order, edges)
        apart = {pair for pair in edges if pair[0] != pair[1]}
        assert set(layout.ribbons) == apart - columns.back
        for source, target in layout.ribbons:
            assert columns.at[source] < columns.at[target]
        for source, target in columns.back:
            assert leads({pair for pair in apart if pair not in columns.back}, target, source)

    @given(graphs())
    def test_a_ribbon_is_as_high_as_its_traffic_and_hangs_together(
        self, graph: tuple[list[float], dict[Pair, int]]
    ) -> None:
        order, edges = graph
        columns, layout = laid(order, edges)
        for (source, target), segments in layout.ribbons.items():
            assert [one.column for one in segments] == list(range(columns.at[source], columns.at[target]))
            for segment in segments:
                for span in (segment.left, segment.right):
                    assert span.bottom - span.top == pytest.approx(edges[source, target])
            for one, other in pairwise(segments):
                assert one.right.top == pytest.approx(other.left.top)  # through the lane of a column
            assert segments[0].left.top >= layout.bars[source].top
            assert segments[-1].right.top >= layout.bars[target].top

    @given(graphs())
    def test_the_same_flow_is_drawn_the_same_way(self, graph: tuple[list[float], dict[Pair, int]]) -> None:
        order, edges = graph
        assert laid(order, edges) == laid(order, dict(reversed(edges.items())))


def leads(edges: set[Pair], source: int, target: int) -> bool:
    seen, waiting = {source}, [source]
    while waiting:
        here = waiting.pop()
        if here == target:
            return True
        for one, other in edges:
            if one == here and other not in seen:
                seen.add(other)
                waiting.append(other)
    return False


def test_a_chain_is_one_line_at_the_top() -> None:
    columns, layout = laid([0.0, 1.0, 2.0], {(0, 1): 9, (1, 2): 5})
    assert [columns.at[number] for number in range(3)] == [0, 1, 2]
    assert {bar.top for bar in layout.bars.values()} == {LABEL}


def test_of_two_ways_the_one_with_more_traffic_lies_above() -> None:
    _, layout = laid([0.0, 1.0, 2.0], {(0, 1): 2, (0, 2): 7})
    assert layout.bars[2].top < layout.bars[1].top


def test_a_ribbon_passes_beside_the_states_between() -> None:
    columns, layout = laid([0.0, 1.0, 2.0], {(0, 1): 8, (1, 2): 8, (0, 2): 3})
    assert columns.rows[1] == [1, (0, 2, 1)]
    assert layout.ribbons[0, 2][0].right.top > layout.bars[1].bottom


def test_against_the_order_and_without_a_way_back_is_no_cycle() -> None:
    assert arrange([0.0, 1.0], {(1, 0): 4}).back == set()
    assert arrange([0.0, 1.0], {(0, 1): 4, (1, 0): 9}).back == {(1, 0)}


def test_a_column_of_very_many_states_goes_on_in_the_next() -> None:
    edges = {(0, number): 1 for number in range(1, 20)}
    columns = arrange([float(number) for number in range(20)], edges, abreast=6)
    assert max(len([one for one in row if isinstance(one, int)]) for row in columns.rows) == 6


def test_what_has_no_traffic_takes_no_room() -> None:
    columns = arrange([0.0, 1.0, 2.0], {(0, 1): 8, (0, 2): 3})
    layout = lay_out(columns, {0: 100.0, 1: 80.0, 2: 0.0}, {(0, 1): 80.0, (0, 2): 0.0}, LABEL)
    assert set(layout.bars) == {0, 1}
    assert set(layout.ribbons) == {(0, 1)}
