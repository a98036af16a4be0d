"""The layers of a flow: which edges close a cycle, and how far down each state stands."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

Pair = tuple[int, int]
"""An edge between two states by their places in the order of the flow."""


def closing_edges(weights: Mapping[Pair, float]) -> set[Pair]:
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


def layers_of(edges: Sequence[Pair], abreast: int) -> dict[int, int]:
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
        layer = max((layers[one] + 1 for one in before.get(node, ())), default=0)
        while full.get(layer, 0) >= abreast:
            layer += 1
        layers[node] = layer
        full[layer] = full.get(layer, 0) + 1
        for target in after.get(node, ()):
            left[target] -= 1
            if not left[target]:
                heapq.heappush(ready, target)
    return layers
