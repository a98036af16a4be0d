"""Is a difference chance, where may it lie, and how much more data would decide it?

A figure of one side is Σ above ÷ Σ below over independent clusters. Sides may share clusters: the same scenario, the
same user. Pairs are the case in which they share all of them, each with a weight of one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Z, ratio_interval, student_quantile, student_tail

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
LEVEL = 0.05
POWER = 0.8416212335729143
"""The normal quantile of 80 % power."""
MANY_DEGREES = 1000
"""From so many on, Student's distribution is the normal one."""
MAX_PERMUTED = 20_000
"""Clusters beyond which the distribution of a mean is known well enough without permutations."""
SURE = 1e-8
"""Probabilities below this stay below any level that is asked for, whatever the distribution."""
ENOUGH_HITS = 100
"""Permutations as extreme as the data after which their share is known well enough."""
_SEED = 95
_CHUNK = 2_000_000
_FIRST_DRAWS = 200


def distinct(codes: Codes) -> int:
    """How many different codes there are; -1 counts, too."""
    return int(np.count_nonzero(np.bincount(codes + 1)))


class ClusterSums(NamedTuple):
    """The sums of each cluster of one side that has any, by the ascending codes of the clusters."""

    codes: Codes
    above: Floats
    below: Floats

    @property
    def ratio(self) -> float:
        return float(self.above.sum() / self.below.sum())

    def residuals(self, ratio: float) -> Floats:
        """What each cluster adds to the error of the ratio, were it this one."""
        count = len(self.codes)
        return (self.above - ratio * self.below) / float(self.below.sum()) * math.sqrt(count / max(1, count - 1))


def probability(difference: float, error: float, degrees: float) -> float:
    """How likely so large a difference is by chance, by Student's distribution."""
    if not difference:
        return 1.0
    if not error or not math.isfinite(error):
        return 0.0 if not error else 1.0
    size = abs(difference) / error
    return math.erfc(size / math.sqrt(2)) if degrees > MANY_DEGREES else min(1.0, 2 * student_tail(size, degrees))


def pooled_degrees(first: Floats, second: Floats) -> float:
    """Degrees of freedom of the error of a difference, from the residuals of both sides (Welch and Satterthwaite)."""
    scale = float(max(np.abs(first).max(initial=0.0), np.abs(second).max(initial=0.0))) or 1.0
    parts = [float(np.sum((side / scale) ** 2)) for side in (first, second)]
    spread = sum(part**2 / max(1, len(side) - 1) for part, side in zip(parts, (first, second), strict=True))
    return max(1.0, sum(parts) ** 2 / spread) if spread else max(1.0, len(first) + len(second) - 2.0)


def permuted(first: ClusterSums, second: ClusterSums, rounds: int) -> float:
    """How likely so large a difference is if sides were drawn anew: exact where both are draws of the same.

    Clusters of one side alone are dealt to the sides anew, in the same numbers; those of both swap their sides or do
    not. What is compared is the difference over its error, so that sides of unlike spread do no harm (Janssen 1997).
    The draws have a fixed seed: the same data give the same number.
    """
    _, left, right = np.intersect1d(first.codes, second.codes, assume_unique=True, return_indices=True)
    alone = [np.ones(len(side.codes), dtype=np.bool_) for side in (first, second)]
    alone[0][left], alone[1][right] = False, False
    lone = np.concatenate([_products(side.above[rows], side.below[rows]) for side, rows in _zip(first, second, alone)])
    dealt = int(alone[1].sum())
    swaps = _Swaps.of(first.above[left], first.below[left], second.above[right], second.below[right])
    counts = (len(first.codes), len(second.codes))
    seen = _statistic(lone[len(lone) - dealt :].sum(axis=0)[None], lone.sum(axis=0), swaps, None, counts)[0]
    if not seen:
        return 1.0
    random = np.random.default_rng(_SEED)
    hits = done = 0
    most = max(50, min(2000, _CHUNK // max(1, len(lone) + len(left))))
    while done < rounds and hits < ENOUGH_HITS:
        # Few at first: what is likely by chance shows soon.
        size = min(most, max(_FIRST_DRAWS, done), rounds - done)
        dealt_sums = _dealt(random, lone, dealt, size)
        flips = random.integers(0, 2, (size, len(left))).astype(np.float64) if len(left) else None
        drawn = _statistic(dealt_sums, lone.sum(axis=0), swaps, flips, counts)
        hits += int(np.count_nonzero(drawn >= seen * (1 - 1e-9)))
        done += size
    return (1 + hits) / (1 + done)


def _zip(
    first: ClusterSums, second: ClusterSums, rows: Sequence[NDArray[np.bool_]]
) -> list[tuple[ClusterSums, NDArray[np.bool_]]]:
    return [(first, rows[0]), (second, rows[1])]


def _products(above: Floats, below: Floats) -> Floats:
    """Of each cluster, what the ratio and its error are sums of."""
    return np.stack([above, below, above * above, above * below, below * below], axis=1)


class _Swaps(NamedTuple):
    """The clusters of both sides: what each side has of them, and their products across the sides."""

    first: Floats
    second: Floats
    across: Floats
    """above × above, below × below, second below × first above, second above × first below."""

    @classmethod
    def of(cls, above: Floats, below: Floats, later_above: Floats, later_below: Floats) -> _Swaps:
        across = np.stack([above * later_above, below * later_below, later_below * above, later_above * below], axis=1)
        return cls(_products(above, below), _products(later_above, later_below), across)


def _dealt(random: np.random.Generator, lone: Floats, dealt: int, size: int) -> Floats:
    """The sums of the second side over so many draws of its clusters."""
    if not dealt or dealt == len(lone):
        return np.broadcast_to(lone.sum(axis=0) * bool(dealt), (size, lone.shape[1]))
    few = min(dealt, len(lone) - dealt)  # the smaller side is drawn, the other is what is left
    keys = random.random((size, len(lone)))
    is_drawn = keys <= np.partition(keys, few - 1, axis=1)[:, few - 1 : few]
    sums: Floats = is_drawn.astype(np.float64) @ lone
    return sums if few == dealt else lone.sum(axis=0) - sums


def _statistic(dealt: Floats, lone: Floats, swaps: _Swaps, flips: Floats | None, counts: tuple[int, int]) -> Floats:
    """The size of the difference of two ratios over its error, for many draws at once."""
    later, across = dealt, np.zeros(4)
    whole = lone
    if len(swaps.first):
        swapped = np.zeros((len(dealt), len(swaps.first))) if flips is None else flips
        later = dealt + swaps.second.sum(axis=0) + swapped @ (swaps.first - swaps.second)
        whole = lone + swaps.first.sum(axis=0) + swaps.second.sum(axis=0)
        turned = swapped @ (swaps.across[:, 3] - swaps.across[:, 2])
        across = np.tile(swaps.across.sum(axis=0), (len(dealt), 1))
        across[:, 2] += turned
        across[:, 3] -= turned
        across = across.T
    earlier = whole - later
    ratios = [side[:, 0] / side[:, 1] for side in (earlier, later)]
    spread = np.zeros(len(dealt))
    for side, ratio, count in zip((earlier, later), ratios, counts, strict=True):
        squares = side[:, 2] - 2 * ratio * side[:, 3] + ratio**2 * side[:, 4]
        spread += squares / side[:, 1] ** 2 * (count / max(1, count - 1))
    both = across[0] - ratios[1] * across[2] - ratios[0] * across[3] + ratios[0] * ratios[1] * across[1]
    factor = math.sqrt(math.prod(count / max(1, count - 1) for count in counts))
    spread -= 2 * both / (earlier[:, 1] * later[:, 1]) * factor
    difference = np.abs(ratios[1] - ratios[0])
    # Rounding leaves a little spread where there is none.
    least = 1e-12 * (np.abs(ratios[0]) + np.abs(ratios[1])) + 1e-300
    return np.where(difference <= least, 0.0, difference / np.maximum(np.sqrt(np.maximum(spread, 0.0)), least))


class FigureSample(NamedTuple):
    """A figure as Σ above ÷ Σ below over conversations; below is 0 where a conversation has no value."""

    above: Floats
    below: Floats
    bounded: bool = False
    """All values lie between 0 and 1."""
    least: float = -math.inf
    """No value lies below it."""


class DifferenceInterval(NamedTuple):
    """The 95 % interval of a difference. An end that is None is open."""

    low: float | None
    high: float | None

    @property
    def excludes_zero(self) -> bool:
        return (self.low is not None and self.low > 0) or (self.high is not None and self.high < 0)


OPEN = DifferenceInterval(None, None)


def difference_interval(first: FigureSample, second: FigureSample, clusters: tuple[Codes, Codes]) -> DifferenceInterval:
    """Where the difference of two figures lies, from the interval of each (MOVER; Zou and Donner 2008).

    The intervals of the sides know few clusters, shares near 0 and 1, and skewed values. Where sides share clusters
    their errors go together: the correlation of the two makes the interval narrower (Newcombe 1998, method 10).
    """
    ends = []
    for sample, codes in zip((first, second), clusters, strict=True):
        interval = ratio_interval(
            Sums("", sample.above, sample.below), codes, bounded=sample.bounded, least=sample.least
        )
        if interval is None:
            return OPEN
        value = float(sample.above.sum() / sample.below.sum())
        ends.append((value, interval.low, interval.high))
    together = _correlation(first, second, clusters)
    (before, before_low, before_high), (after, after_low, after_high) = ends
    difference = after - before
    low = _reach(_gap(after, after_low), _gap(before_high, before), together)
    high = _reach(_gap(after_high, after), _gap(before, before_low), together)
    return DifferenceInterval(None if low is None else difference - low, None if high is None else difference + high)


def _gap(upper: float | None, lower: float | None) -> float | None:
    return None if upper is None or lower is None else max(0.0, upper - lower)


def _reach(first: float | None, second: float | None, together: float) -> float | None:
    if first is None or second is None:
        return None
    return math.sqrt(max(0.0, first**2 - 2 * together * first * second + second**2))


def _correlation(first: FigureSample, second: FigureSample, clusters: tuple[Codes, Codes]) -> float:
    """How far the errors of the two figures go together, by the clusters that they share."""
    sides = [cluster_sums(sample, codes) for sample, codes in zip((first, second), clusters, strict=True)]
    _, left, right = np.intersect1d(sides[0].codes, sides[1].codes, assume_unique=True, return_indices=True)
    if len(left) < 2:
        return 0.0
    residuals = [side.residuals(side.ratio) for side in sides]
    sizes = [float(np.sum(one**2)) for one in residuals]
    if min(sizes) <= 0:
        return 0.0
    together = float(np.sum(residuals[0][left] * residuals[1][right])) / math.sqrt(sizes[0] * sizes[1])
    return max(-1.0, min(1.0, together))


def cluster_sums(sample: FigureSample, clusters: Codes) -> ClusterSums:
    """The sums of each cluster. All rows count that have a value."""
    above: Floats = np.bincount(clusters, weights=sample.above).astype(np.float64)
    below: Floats = np.bincount(clusters, weights=sample.below).astype(np.float64)
    codes = np.flatnonzero(below)
    return ClusterSums(codes, above[codes], below[codes])


def holm(probabilities: Sequence[float], weights: Sequence[float] | None = None) -> list[float]:
    """Probabilities corrected so that the chance of any false claim stays at the level (Holm 1979).

    A figure of more weight gets more of the level. Weights are fixed before the data are seen.
    """
    shares = np.ones(len(probabilities)) if weights is None else np.asarray(weights, dtype=np.float64)
    scaled = [p / share if share > 0 else math.inf for p, share in zip(probabilities, shares, strict=True)]
    corrected = [1.0] * len(probabilities)
    left, highest = float(shares.sum()), 0.0
    for index in sorted(range(len(scaled)), key=scaled.__getitem__):
        highest = min(1.0, max(highest, scaled[index] * left))
        corrected[index] = highest
        left -= float(shares[index])
    return corrected


def benjamini_hochberg(probabilities: Sequence[float]) -> list[float]:
    """For each figure, the share of false ones among those that are as clear or clearer (Benjamini, Hochberg 1995)."""
    count, lowest = len(probabilities), 1.0
    shares = [1.0] * count
    order = sorted(range(count), key=probabilities.__getitem__, reverse=True)
    for rank, index in zip(range(count, 0, -1), order, strict=True):
        lowest = min(lowest, probabilities[index] * count / rank)
        shares[index] = lowest
    return shares


def clusters_for(effect: float, error: float, clusters: float, *, level: float = LEVEL) -> float:
    """How many clusters would show an effect of this size with 80 % power, given the error with so many."""
    if not effect or not math.isfinite(error):
        return math.inf
    quantile = Z if level == LEVEL else normal_quantile(1 - level / 2)
    return clusters * ((quantile + POWER) * error / effect) ** 2


def normal_quantile(share: float) -> float:
    """The value below which this share of a normal distribution lies."""
    low, high = -40.0, 40.0
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if math.erfc(-middle / math.sqrt(2)) / 2 < share else (low, middle)
    return (low + high) / 2


def wald(difference: float, error: float, degrees: float) -> DifferenceInterval:
    """The interval by the error alone."""
    reach = student_quantile(degrees) * error
    return DifferenceInterval(difference - reach, difference + reach)
