"""Where the states of a flow go: columns from left to right, bars and ribbons as high as their traffic.

Cycles are broken, each state is put to the right of all that lead to it, and a ribbon that skips a column passes it in
a lane of its own. Within a column, what comes from above lies above.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

Pair = tuple[int, int]
"""An edge between two states, by their numbers."""
Slot = int | tuple[int, int, int]
"""What has a place in a column: a state, or the lane of an edge in that column."""


class ColumnOrder(NamedTuple):
    """The order of a flow: which states and lanes are in each column, from top to bottom."""

    rows: list[list[Slot]]
    at: dict[int, int]
    """The column of each state."""
    back: set[Pair]
    """Edges that close a cycle: they lead back."""

    def chain(self, pair: Pair) -> list[Slot]:
        """What an edge passes, from its source to its target."""
        lanes: list[Slot] = [(*pair, column) for column in range(self.at[pair[0]] + 1, self.at[pair[1]])]
        return [pair[0], *lanes, pair[1]]


class Reach(NamedTuple):
    """From where to where something reaches in its column."""

    top: float
    bottom: float


class RibbonPart(NamedTuple):
    """A ribbon between two columns: where it leaves the one and meets the next."""

    column: int
    left: Reach
    right: Reach


class Layout(NamedTuple):
    height: float
    bars: dict[int, Reach]
    """By the numbers of states."""
    ribbons: dict[Pair, list[RibbonPart]]


def arrange(order: Sequence[float], edges: Mapping[Pair, int], abreast: int = 6) -> ColumnOrder:
    """The columns of states in a given order. The same states and edges give the same columns."""
    ranked = sorted(range(len(order)), key=lambda number: (order[number], number))
    rank = {number: at for at, number in enumerate(ranked)}
    weights = {(rank[one], rank[other]): count for (one, other), count in sorted(edges.items()) if one != other}
    back = _closing_edges(weights)
    column = _columns_of((pair for pair in weights if pair not in back), abreast)
    at = {ranked[index]: column.get(index, 0) for index in range(len(ranked))}
    rows: list[list[Slot]] = [[] for _ in range(1 + max(at.values(), default=0))]
    columns = ColumnOrder(rows, at, {(ranked[source], ranked[target]) for source, target in back})
    for number in ranked:
        columns.rows[at[number]].append(number)
    ahead = {pair: count for pair, count in edges.items() if pair[0] != pair[1] and pair not in columns.back}
    for pair in sorted(ahead):
        for slot in columns.chain(pair)[1:-1]:
            columns.rows[slot[2]].append(slot)  # type: ignore[index]
    _untangle(columns, ahead)
    return columns


def _untangle(columns: ColumnOrder, edges: Mapping[Pair, int]) -> None:
    """Column by column: what comes from above lies above; of equals, what is heavier."""
    before: dict[Slot, dict[Slot, int]] = {}
    for pair, count in edges.items():
        for start, end in pairwise(columns.chain(pair)):
            before.setdefault(end, {})[start] = count
    at: dict[Slot, float] = {}

    def height(slot: Slot) -> tuple[float, float, bool, Slot | tuple[int]]:
        sources = before.get(slot, {})
        weight = sum(sources.values())
        mean = sum(at[one] * count for one, count in sources.items()) / weight if weight else 0.0
        return mean, -weight, isinstance(slot, tuple), slot if isinstance(slot, tuple) else (slot,)

    for row in columns.rows:
        row.sort(key=height)
        at |= {slot: (position + 0.5) / len(row) for position, slot in enumerate(row)}


def lay_out(
    columns: ColumnOrder, bars: Mapping[int, float], edges: Mapping[Pair, float], label: float, gap: float = 14
) -> Layout:
    """Bars of given heights with room for a label above each, and the ribbons between them.

    Ribbons leave a bar from its top, and meet the next one in the order in which they come.
    """
    ahead = {pair: high for pair, high in edges.items() if pair not in columns.back and high > 0}
    chains = {pair: columns.chain(pair) for pair in ahead}
    spans: dict[Slot, Reach] = {}
    height = 0.0
    for row in columns.rows:
        y = 0.0
        for slot in row:
            if isinstance(slot, int) and bars.get(slot):
                top, high, after = y + label, bars[slot], gap
            elif isinstance(slot, tuple) and slot[:2] in ahead:
                top, high, after = (y or label), ahead[slot[0], slot[1]], gap / 2
            else:
                continue
            spans[slot] = Reach(top, top + high)
            y = top + high + after
        height = max(height, y)
    outgoing = _ends(chains, ahead, spans, leaving=True)
    incoming = _ends(chains, ahead, spans, leaving=False)
    ribbons = {
        pair: [
            RibbonPart(columns.at[pair[0]] + step, outgoing[pair, one], incoming[pair, other])
            for step, (one, other) in enumerate(pairwise(chain))
        ]
        for pair, chain in chains.items()
    }
    return Layout(height, {slot: span for slot, span in spans.items() if isinstance(slot, int)}, ribbons)


def _ends(
    chains: Mapping[Pair, Sequence[Slot]], edges: Mapping[Pair, float], spans: Mapping[Slot, Reach], *, leaving: bool
) -> dict[tuple[Pair, Slot], Reach]:
    """Where each ribbon touches each bar or lane that it leaves, or meets: one below the other."""
    touching: dict[Slot, list[tuple[float, Pair]]] = {}
    for pair, chain in chains.items():
        for start, end in pairwise(chain):
            here, there = (start, end) if leaving else (end, start)
            touching.setdefault(here, []).append((spans[there].top, pair))
    ends: dict[tuple[Pair, Slot], Reach] = {}
    for slot, ribbons in touching.items():
        y = spans[slot].top
        for _, pair in sorted(ribbons):
            ends[pair, slot] = Reach(y, y + edges[pair])
            y += edges[pair]
    return ends


def _closing_edges(weights: Mapping[Pair, float]) -> set[Pair]:
    """The edges that close a cycle: against the order, and with a way back. The strongest may stay first."""
    after: dict[int, set[int]] = {}
    for source, target in weights:
        if source < target:
            after.setdefault(source, set()).add(target)
    closing = set()
    for source, target in sorted(
        (pair for pair in weights if pair[0] > pair[1]), key=lambda pair: (-weights[pair], pair)
    ):
        if _leads(after, target, source):
            closing.add((source, target))
        else:
            after.setdefault(source, set()).add(target)
    return closing


def _leads(after: Mapping[int, set[int]], source: int, target: int) -> bool:
    seen, waiting = {source}, [source]
    while waiting:
        for next in after.get(waiting.pop(), ()):
            if next == target:
                return True
            if next not in seen:
                seen.add(next)
                waiting.append(next)
    return False


def _columns_of(edges: Iterable[Pair], abreast: int) -> dict[int, int]:
    """Each state to the right of all that lead to it, and no column of more than so many states."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)
    left = {node: len(before.get(node, ())) for node in {*before, *after}}
    ready = sorted(node for node, count in left.items() if not count)
    columns: dict[int, int] = {}
    full: dict[int, int] = {}
    while ready:
        node = heapq.heappop(ready)
        column = max((columns[earlier] + 1 for earlier in before.get(node, ())), default=0)
        while full.get(column, 0) >= abreast:
            column += 1
        columns[node] = column
        full[column] = full.get(column, 0) + 1
        for target in after.get(node, ()):
            left[target] -= 1
            if not left[target]:
                heapq.heappush(ready, target)
    return columns
