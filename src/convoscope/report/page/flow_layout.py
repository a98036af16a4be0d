"""Where the states and edges of a flow go: layers from top to bottom, few crossings, nothing on top of anything.

In the manner of Sugiyama: cycles are broken, states put into layers, long edges led through the layers between, the
layers ordered by barycentres, and at last everything is moved as close to its neighbours as the others allow.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right, insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

Pair = tuple[int, int]
"""An edge between two states by their positions in the order of the flow."""
SWEEPS = 12


class LaidNode(NamedTuple):
    """A state, and its position in the order that the flow declares or that conversations went in."""

    key: str
    order: float


class Edge(NamedTuple):
    source: str
    target: str
    weight: float


class Size(NamedTuple):
    """Of a box, the room between boxes, a lane for a long edge, a loop; and how many boxes are side by side."""

    width: float = 180
    height: float = 46
    across: float = 22
    down: float = 52
    lane: float = 12
    loop: float = 30
    abreast: int = 5


class Box(NamedTuple):
    x: float
    y: float
    width: float
    height: float


class Point(NamedTuple):
    x: float
    y: float


class Route(NamedTuple):
    """An edge: curves between its points 0 and 1, 2 and 3, …; straight through a layer between 1 and 2, 3 and 4, …"""

    source: str
    target: str
    weight: float
    back: bool
    """It closes a cycle, and leads upwards."""
    points: tuple[Point, ...]
    """Of an edge from a state to itself: where the loop begins and ends."""


class Layout(NamedTuple):
    width: float
    height: float
    boxes: dict[str, Box]
    layers: dict[str, int]
    """Layers of the states that an edge leads to or from; the others are below."""
    routes: tuple[Route, ...]


def lay_out(nodes: Sequence[LaidNode], edges: Iterable[Edge], size: Size | None = None) -> Layout:
    """The same states and edges give the same layout, in whatever sequence they come."""
    size = size or Size()
    keys = [node.key for node in sorted(nodes, key=lambda node: (node.order, node.key))]
    at = {key: position for position, key in enumerate(keys)}
    weights: dict[Pair, float] = {}
    for edge in sorted(edges):
        pair = at[edge.source], at[edge.target]
        weights[pair] = weights.get(pair, 0.0) + edge.weight
    loops = {source for source, target in weights if source == target}
    apart = {pair: weight for pair, weight in weights.items() if pair[0] != pair[1]}
    back = _closing_edges(apart)
    drawing = _Drawing(size, loops)
    drawing.put(_layers_of([pair for pair in apart if pair not in back], size.abreast))
    for pair in sorted(apart):
        drawing.lead(pair, apart[pair], pair in back)
    drawing.untangle()
    drawing.straighten()
    return drawing.finish(keys, weights)


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


def _layers_of(edges: Sequence[Pair], abreast: int) -> dict[int, int]:
    """Each state below all that lead to it, and no layer wider than so many states."""
    before: dict[int, list[int]] = {}
    after: dict[int, list[int]] = {}
    for source, target in edges:
        after.setdefault(source, []).append(target)
        before.setdefault(target, []).append(source)
    left = {node: len(before.get(node, ())) for node in {*before, *after}}
    ready = sorted(node for node, count in left.items() if not count)
    layers: dict[int, int] = {}
    full: dict[int, int] = {}
    while ready:
        node = heapq.heappop(ready)
        layer = max((layers[above] + 1 for above in before.get(node, ())), default=0)
        while full.get(layer, 0) >= abreast:
            layer += 1
        layers[node] = layer
        full[layer] = full.get(layer, 0) + 1
        for target in after.get(node, ()):
            left[target] -= 1
            if not left[target]:
                heapq.heappush(ready, target)
    return layers


class _Drawing:
    """Vertices are states, and the lanes in which long edges pass a layer; segments join neighbouring layers."""

    def __init__(self, size: Size, loops: set[int]) -> None:
        self.size, self.loops = size, loops
        self.layer: dict[int, int] = {}
        self.rows: list[list[int]] = []
        self.lanes: dict[tuple[bool, int, int], int] = {}
        self.chains: dict[Pair, tuple[bool, list[int]]] = {}
        self.up: dict[int, dict[int, float]] = {}
        self.down: dict[int, dict[int, float]] = {}
        self.below: dict[int, set[tuple[int, bool]]] = {}
        self.above: dict[int, set[tuple[int, bool]]] = {}
        self.x: dict[int, float] = {}

    def put(self, layers: Mapping[int, int]) -> None:
        self.layer = dict(layers)
        self.rows = [[] for _ in range(max(layers.values(), default=-1) + 1)]
        for node in sorted(layers):
            self.rows[layers[node]].append(node)

    def lead(self, pair: Pair, weight: float, back: bool) -> None:
        """From the upper end to the lower one. Edges to one state share lanes: they join, and never part again."""
        upper, lower = reversed(pair) if back else pair
        between = range(self.layer[upper] + 1, self.layer[lower])
        chain = [upper, *(self._lane(back, pair[1], layer) for layer in between), lower]
        for start, end in pairwise(chain):
            for side, here, there in ((self.down, start, end), (self.up, end, start)):
                joined = side.setdefault(here, {})
                joined[there] = joined.get(there, 0.0) + weight
        self.chains[pair] = back, chain
        self.below.setdefault(upper, set()).add((chain[1], back))
        self.above.setdefault(lower, set()).add((chain[-2], back))

    def _lane(self, back: bool, target: int, layer: int) -> int:
        key = back, target, layer
        if key not in self.lanes:
            # Below zero, so that a lane is never taken for a state.
            self.lanes[key] = -1 - len(self.lanes)
            self.layer[self.lanes[key]] = layer
            self.rows[layer].append(self.lanes[key])
        return self.lanes[key]

    def untangle(self) -> None:
        best, fewest = [list(row) for row in self.rows], self._crossings()
        for sweep in range(SWEEPS):
            falling = sweep % 2 == 0
            for row in self.rows[1:] if falling else self.rows[-2::-1]:
                positions = {node: float(at) for other in self.rows for at, node in enumerate(other)}
                neighbours = self.up if falling else self.down
                wanted = {node: _mean(neighbours.get(node, {}), positions, positions[node]) for node in row}
                row.sort(key=lambda node: (wanted[node], positions[node]))
            crossings = self._crossings()
            if crossings < fewest:
                best, fewest = [list(row) for row in self.rows], crossings
        self.rows = best

    def _crossings(self) -> int:
        count = 0
        for upper, lower in pairwise(self.rows):
            position = {node: at for at, node in enumerate(lower)}
            passed: list[int] = []
            for node in upper:
                ends = sorted(position[other] for other in self.down.get(node, ()))
                count += sum(len(passed) - bisect_right(passed, end) for end in ends)
                for end in ends:
                    insort(passed, end)
        return count

    def straighten(self) -> None:
        """Everything as near to its neighbours as the order and the room between allow."""
        for row in self.rows:
            self._arrange(row, dict.fromkeys(row, 0.0))
        for sweep in range(2 * SWEEPS):
            falling = sweep % 2 == 0
            for row in self.rows if falling else reversed(self.rows):
                neighbours = self.up if falling else self.down
                wanted = {node: _mean(neighbours.get(node) or self._around(node), self.x, self.x[node]) for node in row}
                self._arrange(row, wanted)
        for row in self.rows:
            self._arrange(row, {node: _mean(self._around(node), self.x, self.x[node]) for node in row})

    def _arrange(self, row: Sequence[int], wanted: Mapping[int, float]) -> None:
        """Least squares to what is wanted, in order and apart: neighbours that would collide move as one block."""
        offsets, offset = [], 0.0
        for at, node in enumerate(row):
            offset += self._apart(row[at - 1], node) if at else 0.0
            offsets.append(offset)
        blocks: list[tuple[float, float, int]] = []
        for node, offset in zip(row, offsets, strict=True):
            # Lanes pull harder, so that long edges are straight.
            weight = 4.0 if node < 0 else 1.0
            mean, count = wanted[node] - offset, 1
            while blocks and blocks[-1][0] > mean:
                other, heavy, many = blocks.pop()
                mean = (mean * weight + other * heavy) / (weight + heavy)
                weight, count = weight + heavy, count + many
            blocks.append((mean, weight, count))
        means = [mean for mean, _, count in blocks for _ in range(count)]
        for node, mean, offset in zip(row, means, offsets, strict=True):
            self.x[node] = mean + offset

    def _apart(self, left: int, right: int) -> float:
        """From the middle of one to the middle of the other."""
        gap = self.size.across if left >= 0 or right >= 0 else 0.0
        loop = self.size.loop if left in self.loops else 0.0
        return self._half(left) + loop + gap + self._half(right)

    def _half(self, node: int) -> float:
        return (self.size.lane if node < 0 else self.size.width) / 2

    def _around(self, node: int) -> dict[int, float]:
        return {**self.up.get(node, {}), **self.down.get(node, {})}

    def finish(self, keys: Sequence[str], weights: Mapping[Pair, float]) -> Layout:
        size = self.size
        left = min((x - self._half(node) for node, x in self.x.items()), default=0.0)
        self.x = {node: round(x - left, 1) for node, x in self.x.items()}
        boxes = {
            node: Box(round(self.x[node] - size.width / 2, 1), self._top(layer), size.width, size.height)
            for node, layer in self.layer.items()
            if node >= 0
        }
        lone = [node for node in range(len(keys)) if node not in boxes]
        for at, node in enumerate(lone):
            row, column = divmod(at, size.abreast)
            x = column * (size.width + size.across + size.loop)
            boxes[node] = Box(x, self._top(len(self.rows)) + row * (size.height + size.across), size.width, size.height)
        routes = tuple(self._route(keys, pair, weight, boxes) for pair, weight in sorted(weights.items()))
        right = [box.x + box.width + size.loop * (node in self.loops) for node, box in boxes.items()]
        right += [x + size.lane / 2 for node, x in self.x.items() if node < 0]
        return Layout(
            width=max(right, default=0.0),
            height=max((box.y + box.height for box in boxes.values()), default=0.0),
            boxes={keys[node]: boxes[node] for node in range(len(keys))},
            layers={keys[node]: layer for node, layer in self.layer.items() if node >= 0},
            routes=routes,
        )

    def _top(self, layer: int) -> float:
        return layer * (self.size.height + self.size.down)

    def _route(self, keys: Sequence[str], pair: Pair, weight: float, boxes: Mapping[int, Box]) -> Route:
        source, target = pair
        if source == target:
            box = boxes[source]
            points = [Point(box.x + box.width, box.y + box.height * part) for part in (0.28, 0.72)]
            return Route(keys[source], keys[target], weight, False, tuple(points))
        back, chain = self.chains[pair]
        upper, lower, height = chain[0], chain[-1], self.size.height
        points = [Point(self._port(upper, self.below, (chain[1], back)), self._top(self.layer[upper]) + height)]
        for lane in chain[1:-1]:
            top = self._top(self.layer[lane])
            points += [Point(self.x[lane], top), Point(self.x[lane], top + height)]
        points.append(Point(self._port(lower, self.above, (chain[-2], back)), self._top(self.layer[lower])))
        return Route(keys[source], keys[target], weight, back, tuple(reversed(points) if back else points))

    def _port(self, node: int, ports: Mapping[int, set[tuple[int, bool]]], port: tuple[int, bool]) -> float:
        """Where an edge touches its box: side by side with the others."""
        ordered = sorted(ports[node], key=lambda one: (self.x[one[0]], one))
        step = min(22.0, 0.8 * self.size.width / len(ordered))
        return round(self.x[node] + step * (ordered.index(port) - (len(ordered) - 1) / 2), 1)


def _mean(around: Mapping[int, float], at: Mapping[int, float], default: float) -> float:
    if not around:
        return default
    # The root, so that a strong edge does not leave the weak ones lying across.
    heavy = {node: math.sqrt(max(weight, 1e-9)) for node, weight in around.items()}
    return sum(at[node] * weight for node, weight in heavy.items()) / sum(heavy.values())
