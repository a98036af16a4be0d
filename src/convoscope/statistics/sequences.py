"""A figure over many nights: has its level changed, since when, and where does it lie now? Looking daily costs nothing.

The evidence for a change is an e-process: under no change, the chance that it ever exceeds 1 ÷ α is at most α, however
often one looks and whenever one stops. It is the sum over all nights at which the level may have changed, with weights
that add up to 1, of a mixture likelihood ratio of the difference between the two sides:

- the normal mixture of Robbins (1970, "Statistical methods related to the law of the iterated logarithm"), with an
  estimated variance as in Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (2024, "Time-uniform central limit theory and
  asymptotic confidence sequences", Annals of Statistics 52);
- in the form of Student's t for a level and a spread that are unknown (Lai 1976; Wang and Ramdas 2025, "Anytime-valid
  t-tests and confidence sequences for Gaussian means with unknown variance", Sequential Analysis 44);
- summed over the start of the change as the e-detectors of Shin, Ramdas and Rinaldo (2024, "E-detectors: a
  nonparametric framework for sequential change detection", NEJSDS 2), but with weights, so that the chance of a false
  alarm is bounded for ever and not only their rate.

What is independent? Each night adds noise of its own. A scenario or user that is there every night adds the same each
time, and drops out. So noise is how far what each scenario, user or conversation adds to a night is from what it adds
on average: for those that come every night that is the spread between their nights, for those that come once it is all
of them. A second ratio takes the spread between nights as they are, which also holds what makes whole nights
differ. The smaller ratio counts: false alarms are held if either description of the noise is right. How often that is,
is simulated in `benchmarks/nights.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
Marks = NDArray[np.bool_]

MIN_NIGHTS = 8
"""With fewer, no change is named."""
MIN_BEFORE = 3
MIN_AFTER = 2
"""Nights on each side of a change: one night is no level."""
LEVEL = 0.05
_SHIFTS = (1.0, 9.0)
"""Variances of the shifts that are looked for, in variances of one night."""
_LIKELIER = 3.0
"""How much likelier a change is dated to a night with a new version than to the one next to it."""
_NEARLY = 2.0
"""In logarithms: a first night that is less likely by more is not taken for the true one."""
_CHUNK = 20_000
"""Clusters that are in memory as rows of nights at the same time."""


class NightSums(NamedTuple):
    """A figure as Σ above ÷ Σ below in each night, and the products of what each cluster adds to two nights.

    The last axes are nights; there may be others before them. Products come as three arrays.
    """

    above: Floats
    below: Floats
    squares: Floats
    """Σ over the clusters of each night of above × above, above × below, and below × below."""
    blocks: Floats
    """The same of each two nights, summed over all nights before one and all before another."""
    cells: Floats
    """Clusters that have a value, in each night."""
    fresh: Floats
    """Of these, the ones that no night before had."""

    def nights(self, start: int, end: int) -> NightSums:
        """Some nights that follow each other."""
        inside, edges = slice(start, end), slice(start, end + 1)
        return NightSums(
            self.above[..., inside],
            self.below[..., inside],
            self.squares[..., inside],
            self.blocks[..., edges, edges],
            self.cells[..., inside],
            self.fresh[..., inside],
        )


class LevelChange(NamedTuple):
    """The level changed."""

    at: int
    """The first night of the new level."""
    named_at: int
    """The night after which the evidence was strong enough."""
    earliest: int
    latest: int
    """The nights between which it began, nearly as likely as the likeliest one."""


class LevelInterval(NamedTuple):
    """A level, and where it lies at every look at once."""

    value: Floats
    low: Floats
    high: Floats


def night_sums(above: Floats, below: Floats, clusters: Codes, nights: Codes, count: int) -> NightSums:
    """The sums of conversations, each with its cluster and its night; one without a value has nothing below."""
    has_value = below > 0
    above, below, clusters, nights = above[has_value], below[has_value], clusters[has_value], nights[has_value]
    _, dense = np.unique(clusters, return_inverse=True)
    cell, index = np.unique(dense * count + nights, return_inverse=True)
    a, b = (np.bincount(index, weights=one, minlength=len(cell)) for one in (above, below))
    owner, night = cell // count, cell % count
    is_fresh = np.diff(owner, prepend=-1) > 0  # cells are in the order of clusters, and then of nights
    again = np.bincount(owner)[owner] > 1 if len(owner) else np.zeros(0, dtype=np.bool_)
    products = np.zeros((3, count, count))
    diagonal = np.arange(count)
    for matrix, (left, right) in zip(products, ((a, a), (a, b), (b, b)), strict=True):
        # What comes once meets itself alone.
        matrix[diagonal, diagonal] = np.bincount(night, left * right * ~again, minlength=count)
    owners = np.unique(owner[again])
    for start in range(0, len(owners), _CHUNK):
        some = owners[start : start + _CHUNK]
        inside = again & (owner >= some[0]) & (owner <= some[-1])
        rows = np.zeros((2, len(some), count))
        at = np.searchsorted(some, owner[inside])
        rows[0, at, night[inside]], rows[1, at, night[inside]] = a[inside], b[inside]
        products += np.stack([rows[0].T @ rows[0], rows[0].T @ rows[1], rows[1].T @ rows[1]])
    above, below, cells, fresh = (
        np.bincount(night, one, minlength=count).astype(np.float64) for one in (a, b, np.ones(len(cell)), is_fresh)
    )
    return summed(above, below, products, cells, fresh)


def summed(above: Floats, below: Floats, products: Floats, cells: Floats, fresh: Floats) -> NightSums:
    """The sums of nights, from the products of each two of them."""
    edges = [(0, 0)] * (products.ndim - 2) + [(1, 0), (1, 0)]
    blocks = np.pad(np.cumsum(np.cumsum(products, -1), -2), edges)
    return NightSums(above, below, np.diagonal(products, axis1=-2, axis2=-1), blocks, cells, fresh)


def noise(sums: NightSums) -> Floats:
    """The variance of a night's value, times what is below it, as the clusters show it."""
    ratio = sums.above.sum(-1) / sums.below.sum(-1)
    own = (_squares(sums.squares, ratio[..., None]) / sums.below).sum(-1)
    last = sums.below.shape[-1]
    common = _squares(_block(sums.blocks, 0, last, 0, last), ratio) / sums.below.sum(-1)
    return np.asarray(np.maximum(own - common, 0.0) / (last - 1))


def _squares(products: Floats, ratio: Floats) -> Floats:
    """Σ of squares of what clusters add beyond a ratio."""
    aa, ab, bb = products
    return np.asarray(aa - 2 * ratio * ab + ratio**2 * bb)


def _block(blocks: Floats, i: Codes | int, j: Codes | int, k: Codes | int, m: Codes | int) -> Floats:
    """The sums over the nights from i to j, and from k to m."""
    return np.asarray(blocks[..., j, m] - blocks[..., i, m] - blocks[..., j, k] + blocks[..., i, k])


class ChangeEvidence(NamedTuple):
    """How strongly the nights speak for a change, and at which night it would be."""

    log: Floats
    """The natural logarithm of the e-value."""
    at: Codes
    """The likeliest first night of a new level."""
    by_night: Floats
    """The logarithm of how likely each first night is, from the one after `MIN_BEFORE` others on."""


def evidence(sums: NightSums, marked: Marks | None = None) -> ChangeEvidence:
    """The evidence for a change somewhere in these nights.

    `marked`: nights at which a change is likelier beforehand, because a new version came.
    """
    count = sums.below.shape[-1]
    splits = np.arange(MIN_BEFORE, count - MIN_AFTER + 1)
    sides = _Sides(sums, splits)
    per_night = np.median(sums.below, axis=-1)[..., None]
    by_shift = []
    for shift in _SHIFTS:
        shrink = sides.spread / (sides.spread + shift / per_night)
        by_shift.append(np.minimum(_log_ratio(*sides.sampling, shrink), _log_ratio(*sides.between, shrink)))
    ratios = np.logaddexp(*by_shift) - math.log(2)
    likelier = 0.0 if marked is None else np.where(marked[splits], math.log(_LIKELIER), 0.0)
    whole = np.logaddexp.reduce(ratios + np.log(_weights(count, marked)[splits]), axis=-1)
    return ChangeEvidence(whole, MIN_BEFORE + np.argmax(ratios + likelier, axis=-1), ratios + likelier)


def _weights(count: int, marked: Marks | None) -> Floats:
    """Of a change at each night. All nights that ever come share one half: their weights fall slowly. Marked nights
    share the other: 1 ÷ 2, 1 ÷ 6, 1 ÷ 12 of it and so on. Without marks, all nights have the whole."""
    index = np.arange(count, dtype=np.float64) + 40
    weights = 1 / (index * np.log(index / 10) ** 2 * _ALL_WEIGHTS)
    if marked is None:
        return np.asarray(weights)
    before = np.cumsum(marked)
    return np.asarray(weights / 2 + np.where(marked, 1 / np.maximum(before * (before + 1), 1), 0.0) / 2)


_ALL_WEIGHTS = 0.728
"""Σ 1 ÷ (k ln²(k ÷ 10)) from k = 40 on, rounded up."""


def _log_ratio(squared: Floats, degrees: Floats | float, shrink: Floats) -> Floats:
    """The mixture likelihood ratio of Student's t, as a logarithm."""
    part = squared / degrees
    return np.asarray(0.5 * np.log(shrink) + (np.asarray(degrees) + 1) / 2 * (np.log1p(part) - np.log1p(shrink * part)))


class _Sides:
    """What lies before and after each split."""

    def __init__(self, sums: NightSums, splits: Codes) -> None:
        above, below = np.cumsum(sums.above, -1), np.cumsum(sums.below, -1)
        a_before, b_before = above[..., splits - 1], below[..., splits - 1]
        a_after, b_after = above[..., -1:] - a_before, below[..., -1:] - b_before
        before, after = a_before / b_before, a_after / b_after
        self.spread = 1 / b_before + 1 / b_after
        squares = (after - before) ** 2
        cells, clusters = sums.cells.sum(-1)[..., None], sums.fresh.sum(-1)[..., None]
        across, size = _across(sums, splits, before, after, b_before, b_after)
        variance = np.maximum(noise(sums)[..., None] * self.spread, across)
        degrees = np.minimum(np.maximum(cells - clusters, clusters - 1), size - 1)
        nights = sums.below.shape[-1]
        total = _scatter(sums)
        explained = squares / self.spread
        rest = np.maximum(total - explained, 1e-12 * total)
        with np.errstate(divide="ignore", invalid="ignore"):  # values that are all alike have no noise, and no shift
            self.sampling = (np.where(squares > 0, squares / variance, 0.0), degrees)
            self.between = (np.where(squares > 0, explained / rest, 0.0) * (nights - 2), nights - 2.0)


def _scatter(sums: NightSums) -> Floats:
    """Σ of squares of how far the nights are from their level, each times what is below it."""
    level = sums.above.sum(-1, keepdims=True) / sums.below.sum(-1, keepdims=True)
    return np.asarray((sums.below * (sums.above / sums.below - level) ** 2).sum(-1, keepdims=True))


def _across(
    sums: NightSums, splits: Codes, before: Floats, after: Floats, b_before: Floats, b_after: Floats
) -> tuple[Floats, Floats]:
    """The variance of the difference by clusters that may be on both sides, and in many nights of one.

    And the number of clusters of one size that would say as much: few, where few hold most of a side.
    """
    first, last = np.zeros_like(splits), np.full_like(splits, sums.below.shape[-1])
    early, late = (_block(sums.blocks, *one, *one) for one in ((first, splits), (splits, last)))
    cross, back = _block(sums.blocks, first, splits, splits, last), _block(sums.blocks, splits, last, first, splits)
    both = cross[0] - after * cross[1] - before * back[1] + before * after * cross[2]
    own = _squares(early, before) / b_before**2 + _squares(late, after) / b_after**2
    shares = early[2] / b_before**2 + late[2] / b_after**2 - 2 * cross[2] / (b_before * b_after)
    size = 1 / np.clip(shares, 1e-9, 0.5)
    return np.maximum(own - 2 * both / (b_before * b_after), 0.0) * size / (size - 1), size


def find_changes(sums: NightSums, level: float = LEVEL, marked: Marks | None = None) -> list[LevelChange]:
    """The changes that looks after each night name, in their order; after each, the search begins anew."""
    changes: list[LevelChange] = []
    start, end = 0, len(sums.below)
    look = start + MIN_NIGHTS
    while look <= end:
        seen = evidence(sums.nights(start, look), None if marked is None else _after_first(marked[start:look]))
        if seen.log >= -math.log(level):
            at = start + int(seen.at)
            changes.append(LevelChange(at, look - 1, at, at))
            start = at
            look = max(look + 1, start + MIN_BEFORE + MIN_AFTER)
        else:
            look += 1
    return _dated(sums, changes, marked)


def _dated(sums: NightSums, changes: Sequence[LevelChange], marked: Marks | None) -> list[LevelChange]:
    """The same changes with the dates that all nights of both levels say, not only those until they were named."""
    edges = [0, *(one.at for one in changes), len(sums.below)]
    dated: list[LevelChange] = []
    for change, start, end in zip(changes, edges, edges[2:], strict=False):
        marks = None if marked is None else _after_first(marked[start:end])
        seen = evidence(sums.nights(start, end), marks)
        likely = start + MIN_BEFORE + np.flatnonzero(seen.by_night >= seen.by_night.max() - _NEARLY)
        dated.append(change._replace(at=start + int(seen.at), earliest=int(likely[0]), latest=int(likely[-1])))
    return dated


def _after_first(marked: Marks) -> Marks:
    """What came with the first night of a level is no later change of it."""
    return np.concatenate(([False], marked[1:]))


def night_noise(levels: Sequence[NightSums]) -> tuple[Floats, Floats]:
    """The variance of a night's value, times what is below it, around the levels of several stretches of nights.

    The larger of what clusters show and of how far the nights lie from their levels; and the degrees of freedom.
    """
    degrees = np.asarray(sum(one.below.shape[-1] - 1 for one in levels))
    with np.errstate(divide="ignore", invalid="ignore"):
        sampling = sum(_degrees(one) * noise(one) for one in levels if _degrees(one)) / degrees
        between = sum(_scatter(one)[..., 0] for one in levels) / degrees
    return np.asarray(np.maximum(sampling, between)), degrees


def level_of(sums: NightSums, variance: Floats, degrees: Floats, *, recurring: bool) -> LevelInterval:
    """The level of some nights, with an interval that holds it at every look at once.

    `variance` and `degrees` are those of `night_noise`. `recurring`: the same clusters come each night, and the level
    is theirs; else it is that of all from which they are drawn, and one that comes in many nights counts as one.
    """
    below = sums.below.sum(-1)
    value = sums.above.sum(-1) / below
    last = sums.below.shape[-1]
    if not recurring:
        clusters = np.maximum(sums.fresh.sum(-1), 2.0)
        across = _squares(_block(sums.blocks, 0, last, 0, last), value) / below * clusters / (clusters - 1)
        variance = np.maximum(variance, across)
    per_night = np.median(sums.below, axis=-1)
    shrink = 1 / (1 + _SHIFTS[-1] * below / per_night)
    grown = (1 / (LEVEL * np.sqrt(shrink))) ** (2 / (degrees + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        squared = np.where(grown * shrink < 1, degrees * (grown - 1) / (1 - grown * shrink), math.inf)
        reach = np.where(variance > 0, np.sqrt(squared * variance / below), 0.0)
    return LevelInterval(value, value - reach, value + reach)


def not_seen(clusters: float) -> float:
    """How large a share may be that so many clusters do not show, at every look at once.

    The mixture likelihood ratio of a coin with the uniform distribution (Robbins 1970), for heads that never came.
    """
    return float(1.0 - (LEVEL / (clusters + 1)) ** (1 / clusters))


def _degrees(sums: NightSums) -> int:
    return int(sums.below.shape[-1]) - 1
