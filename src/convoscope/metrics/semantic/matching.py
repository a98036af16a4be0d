"""Which predicted action is which gold action: one to one, as many as possible, then as similar as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import zip_longest
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from convoscope.text.folding import exact_threshold, plain_description

THRESHOLD = Fraction(4, 5)
"""The similarity that makes two descriptions the same action; reached is enough."""

_FINE = 2**30
"""Similarities are added up as whole numbers of this fineness, so that sums do not depend on their order."""


class Match(NamedTuple):
    """A predicted action and the gold action that it is, by their indices."""

    predicted: int
    gold: int
    similarity: float


def match_actions(
    predicted: Sequence[str], gold: Sequence[str], threshold: float | Fraction = THRESHOLD
) -> tuple[Match, ...]:
    """The pairs of a one-to-one matching with the most pairs; of these the most similar, then the first in order.

    Only pairs count whose similarity reaches the threshold. A text that is empty without its punctuation is never
    matched.
    """
    return match_at(predicted, gold, (threshold,))[0]


def match_at(
    predicted: Sequence[str], gold: Sequence[str], thresholds: Sequence[float | Fraction]
) -> list[tuple[Match, ...]]:
    """The matching at each threshold; texts are compared once, at the lowest."""
    limits, loosest = _limits(tuple(thresholds))
    near = _near([plain_description(text) for text in predicted], [plain_description(text) for text in gold], loosest)
    matchings: dict[int, tuple[Match, ...]] = {0: ()}
    results: list[tuple[Match, ...]] = []
    for above, below in limits if near else ():
        pairs = [pair for pair in near if pair.edits * below <= above * pair.length]
        # A higher threshold leaves some of the pairs of a lower one: where as many are left, the same are.
        if len(pairs) not in matchings:
            matchings[len(pairs)] = _matching(pairs)
        results.append(matchings[len(pairs)])
    return results or [()] * len(limits)


def match_in_any_wording(
    predicted: Sequence[Sequence[str]], gold: Sequence[Sequence[str]], threshold: float | Fraction = THRESHOLD
) -> tuple[Match, ...]:
    """As `match_actions`, for actions of which each has several texts: two are as similar as their nearest texts."""
    _, limit = _limits((threshold,))
    nearest: dict[tuple[int, int], _Near] = {}
    gold_wordings = [[plain_description(text) for text in texts] for texts in zip_longest(*gold, fillvalue="")]
    for texts in zip_longest(*predicted, fillvalue=""):
        plain = [plain_description(text) for text in texts]
        for pair in [pair for wording in gold_wordings for pair in _near(plain, wording, limit)]:
            known = nearest.get(pair[:2])
            if known is None or pair.edits * known.length < known.edits * pair.length:
                nearest[pair[:2]] = pair
    return _matching(sorted(nearest.values()))


class _Limit(NamedTuple):
    """The share of the longer length that edits may be, as two whole numbers."""

    above: int
    below: int


@lru_cache(64)
def _limits(thresholds: tuple[float | Fraction, ...]) -> tuple[tuple[_Limit, ...], _Limit]:
    """The limit of each threshold, and the one that leaves the most pairs."""
    shares = [1 - exact_threshold(threshold) for threshold in thresholds]
    if not all(0 <= share <= 1 for share in shares):
        raise ValueError(f"a threshold lies between 0 and 1, not at {', '.join(map(str, thresholds))}")
    limits = tuple(_Limit(share.numerator, share.denominator) for share in shares)
    return limits, limits[shares.index(max(shares))]


class _Near(NamedTuple):
    """A prediction and a gold action that are not too far apart: the edits, and the longer of the two lengths."""

    predicted: int
    gold: int
    edits: int
    length: int


def _near(predicted: Sequence[str], gold: Sequence[str], limit: _Limit) -> list[_Near]:
    above, below = limit
    pairs: list[_Near] = []
    sized = [(column, text, len(text)) for column, text in enumerate(gold) if text]
    for row, text in enumerate(predicted):
        length = len(text)
        for column, other, size in sized if text else ():
            longer = max(length, size)
            allowed = above * longer // below
            if abs(length - size) <= allowed:
                edits = Levenshtein.distance(text, other, score_cutoff=allowed)
                if edits <= allowed:
                    pairs.append(_Near(row, column, edits, longer))
    return pairs


Edges = dict[int, dict[int, float]]
"""For each prediction: the gold actions that it could be, with the similarity."""


def _matching(pairs: Sequence[_Near]) -> tuple[Match, ...]:
    matches = [Match(pair.predicted, pair.gold, 1 - pair.edits / pair.length) for pair in pairs]
    if len({match.predicted for match in matches}) == len({match.gold for match in matches}) == len(matches):
        return tuple(matches)  # no two of them compete
    edges: Edges = {}
    for row, column, similarity in matches:
        edges.setdefault(row, {})[column] = similarity
    return tuple(sorted(match for component in _components(edges) for match in _solve(component, edges)))


def _components(edges: Edges) -> list[list[int]]:
    """Predictions that could be the same gold action, directly or through others. Each such set is solved by itself."""
    by_gold: dict[int, list[int]] = {}
    for row, near in edges.items():
        for column in near:
            by_gold.setdefault(column, []).append(row)
    seen: set[int] = set()
    components: list[list[int]] = []
    for start in edges:
        if start in seen:
            continue
        seen.add(start)
        component = [start]
        for row in component:
            for column in edges[row]:
                for other in by_gold.pop(column, ()):
                    if other not in seen:
                        seen.add(other)
                        component.append(other)
        components.append(sorted(component))
    return components


def _solve(rows: Sequence[int], edges: Edges) -> list[Match]:
    if len(rows) == 1:
        near = edges[rows[0]]
        best = max(sorted(near), key=near.__getitem__)
        return [Match(rows[0], best, near[best])]
    columns = sorted({column for row in rows for column in edges[row]})
    if len(columns) == 1:
        best = max(rows, key=lambda row: edges[row][columns[0]])
        return [Match(best, columns[0], edges[best][columns[0]])]
    chosen = _assignment(rows, columns, edges)
    return [Match(row, column, edges[row][column]) for row, column in chosen.items() if column in edges[row]]


def _assignment(rows: Sequence[int], columns: Sequence[int], edges: Edges) -> Mapping[int, int]:
    """The most pairs, then the most similar: a pair gains much by being one, and a little by its similarity."""
    index = {column: number for number, column in enumerate(columns)}
    pairs = min(len(rows), len(columns)) + 1
    gains = [[0] * len(columns) for _ in rows]
    for number, row in enumerate(rows):
        for column, similarity in edges[row].items():
            gains[number][index[column]] = pairs * _FINE + round(similarity * _FINE)
    return {rows[row]: columns[column] for row, column in best_pairs(gains)}


def best_pairs(gains: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """Rows and columns paired one to one so that the gains, whole numbers, are the greatest in all."""
    if not gains or not gains[0]:
        return []
    costs = [[-gain for gain in row] for row in gains]
    if len(costs) <= len(costs[0]):
        return sorted(_cheapest(costs))
    return sorted((row, column) for column, row in _cheapest([list(column) for column in zip(*costs, strict=True)]))


_FAR = (2**63 - 1) // 4


def _cheapest(costs: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The Hungarian method: for each row a column of its own, at the least cost in all. No fewer columns than rows.

    Rows come one after another; each time the shortest way to a free column is taken, by the potentials `u`, `v`.
    """
    import numpy as np
    from numpy.typing import NDArray

    table: NDArray[np.int64] = np.array(costs, np.int64)
    height, width = table.shape
    u, v = np.zeros(height + 1, np.int64), np.zeros(width + 1, np.int64)
    owner = np.zeros(width + 1, np.int64)
    for row in range(1, height + 1):
        owner[0] = row
        column = 0
        least = np.full(width + 1, _FAR)
        way = np.zeros(width + 1, np.int64)
        used = np.zeros(width + 1, bool)
        while owner[column]:
            used[column] = True
            current = owner[column]
            reduced = table[current - 1] - u[current] - v[1:]
            shorter = ~used[1:] & (reduced < least[1:])
            least[1:][shorter] = reduced[shorter]
            way[1:][shorter] = column
            column = int(np.where(used[1:], _FAR, least[1:]).argmin()) + 1
            step = least[column]
            u[owner[used]] += step
            v[used] -= step
            least[~used] -= step
        while column:
            previous = int(way[column])
            owner[column] = owner[previous]
            column = previous
    return [(int(owner[column]) - 1, column - 1) for column in range(1, width + 1) if owner[column]]
