"""Where the states of a flow are drawn: each once, none on another, edges downwards unless they close a cycle."""

from __future__ import annotations

import random
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.report.page.flow_layout import Box, Edge, LaidNode, Layout, Size, lay_out

NAMES = [f"s{number}" for number in range(14)]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[LaidNode], list[Edge]]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=14, unique=True))
    orders = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.5, 7.0]), min_size=len(names), max_size=len(names)))
    ends = st.sampled_from(names)
    edges = draw(st.lists(st.builds(Edge, ends, ends, st.integers(1, 1000).map(float)), max_size=40))
    return [LaidNode(name, order) for name, order in zip(names, orders, strict=True)], edges


def overlap(one: Box, other: Box) -> bool:
    apart = one.x + one.width <= other.x or other.x + other.width <= one.x
    return not (apart or one.y + one.height <= other.y or other.y + other.height <= one.y)


def middle(box: Box) -> float:
    return box.x + box.width / 2


def chain(*names: str) -> Layout:
    nodes = [LaidNode(name, place) for place, name in enumerate(names)]
    return lay_out(nodes, [Edge(one.key, other.key, 1) for one, other in pairwise(nodes)])


class TestWhateverTheFlow:
    @given(graphs())
    def test_every_state_has_one_place_and_no_two_overlap(self, graph: tuple[list[LaidNode], list[Edge]]) -> None:
        nodes, edges = graph
        layout = lay_out(nodes, edges)
        assert set(layout.boxes) == {node.key for node in nodes}
        for one, other in combinations(layout.boxes.values(), 2):
            assert not overlap(one, other)
        for box in layout.boxes.values():
            assert box.x >= 0
            assert box.y >= 0
            assert box.x + box.width <= layout.width
            assert box.y + box.height <= layout.height

    @given(graphs())
    def test_edges_lead_down_and_those_that_close_a_cycle_lead_up(
        self, graph: tuple[list[LaidNode], list[Edge]]
    ) -> None:
        layout = lay_out(*graph)
        for route in layout.routes:
            if route.source == route.target:
                continue
            down = layout.layers[route.target] > layout.layers[route.source]
            assert down != route.back

    @given(graphs())
    def test_what_is_marked_as_leading_back_does_close_a_cycle(self, graph: tuple[list[LaidNode], list[Edge]]) -> None:
        layout = lay_out(*graph)
        after: dict[str, set[str]] = {}
        for route in layout.routes:
            if not route.back:
                after.setdefault(route.source, set()).add(route.target)
        for route in layout.routes:
            if route.back:
                assert route.source in reached(after, route.target)

    @given(graphs())
    def test_every_edge_is_led_once_from_its_source_to_its_target(
        self, graph: tuple[list[LaidNode], list[Edge]]
    ) -> None:
        nodes, edges = graph
        layout = lay_out(nodes, edges)
        weights: dict[tuple[str, str], float] = {}
        for edge in edges:
            weights[edge.source, edge.target] = weights.get((edge.source, edge.target), 0) + edge.weight
        assert {(one.source, one.target): one.weight for one in layout.routes} == weights
        for route in layout.routes:
            begin, end = layout.boxes[route.source], layout.boxes[route.target]
            first, last = route.points[0], route.points[-1]
            assert begin.x <= first.x <= begin.x + begin.width
            assert end.x <= last.x <= end.x + end.width
            if route.source != route.target:
                assert first.y == (begin.y if route.back else begin.y + begin.height)
                assert last.y == (end.y + end.height if route.back else end.y)

    @given(graphs())
    def test_no_edge_passes_through_a_state(self, graph: tuple[list[LaidNode], list[Edge]]) -> None:
        layout = lay_out(*graph)
        for route in layout.routes:
            if route.source == route.target:
                continue
            # Curves stay between two layers: only where an edge passes a layer could it meet a state.
            for one, other in zip(route.points[1:-1:2], route.points[2:-1:2], strict=True):
                assert one.x == other.x
                for box in layout.boxes.values():
                    if box.y == min(one.y, other.y):
                        assert not box.x <= one.x <= box.x + box.width

    @given(graphs(), st.randoms(use_true_random=False))
    def test_the_sequence_of_states_and_edges_does_not_matter(
        self, graph: tuple[list[LaidNode], list[Edge]], chance: random.Random
    ) -> None:
        nodes, edges = graph
        expected = lay_out(nodes, edges)
        chance.shuffle(nodes)
        chance.shuffle(edges)
        assert lay_out(nodes, edges) == expected

    @given(graphs(), st.integers(1, 4))
    def test_no_layer_is_wider_than_asked(self, graph: tuple[list[LaidNode], list[Edge]], abreast: int) -> None:
        layout = lay_out(*graph, Size(abreast=abreast))
        tops = [box.y for box in layout.boxes.values()]
        assert max(tops.count(top) for top in tops) <= abreast


def reached(after: dict[str, set[str]], start: str) -> set[str]:
    found, waiting = {start}, [start]
    while waiting:
        for next in after.get(waiting.pop(), set()) - found:
            found.add(next)
            waiting.append(next)
    return found


class TestSmallFlows:
    def test_nothing(self) -> None:
        layout = lay_out([], [])
        assert (layout.boxes, layout.routes, layout.width, layout.height) == ({}, (), 0, 0)

    def test_a_chain_is_straight(self) -> None:
        layout = chain("greet", "collect", "confirm", "book")
        assert {middle(box) for box in layout.boxes.values()} == {middle(layout.boxes["greet"])}
        assert list(layout.layers.values()) == [0, 1, 2, 3]

    def test_an_edge_against_the_order_leads_down_where_it_closes_no_cycle(self) -> None:
        layout = lay_out([LaidNode("late", 1), LaidNode("early", 0)], [Edge("late", "early", 1)])
        assert layout.layers == {"late": 0, "early": 1}
        assert not layout.routes[0].back

    def test_of_a_cycle_the_edge_against_the_order_leads_back(self) -> None:
        nodes = [LaidNode("ask", 0), LaidNode("check", 1)]
        layout = lay_out(nodes, [Edge("ask", "check", 1), Edge("check", "ask", 99)])
        assert [(one.source, one.back) for one in layout.routes] == [("ask", False), ("check", True)]

    def test_there_and_back_do_not_lie_on_each_other(self) -> None:
        nodes = [LaidNode("ask", 0), LaidNode("check", 1)]
        there, back = lay_out(nodes, [Edge("ask", "check", 9), Edge("check", "ask", 3)]).routes
        assert abs(there.points[0].x - back.points[-1].x) >= 10

    def test_a_state_that_leads_to_itself_has_room_for_the_loop(self) -> None:
        layout = lay_out([LaidNode("ask", 0)], [Edge("ask", "ask", 1)])
        (loop,) = layout.routes
        assert {point.x for point in loop.points} == {180}
        assert layout.width == 180 + Size().loop

    def test_states_without_edges_stand_below_the_others(self) -> None:
        nodes = [LaidNode("greet", 1), LaidNode("book", 2), LaidNode("never", 0)]
        layout = lay_out(nodes, [Edge("greet", "book", 1)])
        assert layout.boxes["never"].y > layout.boxes["book"].y
        assert "never" not in layout.layers

    def test_long_edges_to_one_state_join(self) -> None:
        names = ["a", "b", "c", "d", "lost"]
        nodes = [LaidNode(name, place) for place, name in enumerate(names)]
        edges = [Edge(one, other, 9) for one, other in pairwise(names[:4])]
        layout = lay_out(nodes, [*edges, *(Edge(one, "lost", 1) for one in names[:4])])
        lanes = [route.points[-3].x for route in layout.routes if route.target == "lost" and len(route.points) > 2]
        assert len(lanes) == 3
        assert len(set(lanes)) == 1

    @pytest.mark.parametrize("seed", range(4))
    def test_of_many_states_each_has_its_place(self, seed: int) -> None:
        chance = random.Random(seed)
        nodes = [LaidNode(f"state {number}", number) for number in range(150)]
        pairs = [(number, min(149, number + chance.randint(-9, 12))) for number in range(150) for _ in range(3)]
        layout = lay_out(nodes, [Edge(nodes[a].key, nodes[max(0, b)].key, 1 + a % 7) for a, b in pairs])
        assert len(layout.boxes) == 150
