"""Two sets of conversations in one figure: by pairs of a scenario where they share scenarios, within strata, or whole.

The error of a difference is computed as if there were none: residuals are taken from the common ratio. So shares of
0 and 1 have an error, and trials of one scenario count as one cluster.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.answer.samples import Codes, FigureSample, Floats
from convoscope.statistics.intervals import student_quantile, student_tail

Rows = NDArray[np.bool_]
LEVEL = 0.05
MANY_DEGREES = 1000
"""From so many on, Student's distribution is the normal one."""
NOT_SEEN = 3.0
MIN_CLUSTERS = 5
"""Fewer independent clusters on a side, or fewer pairs, say too little."""


class GroupComparison(NamedTuple):
    """The second set against the first."""

    first: float
    second: float
    error: float
    degrees: float
    p: float
    """How likely so large a difference is by chance."""
    clusters: int
    """Of the smaller side; of pairs, their number."""
    pairs: int = 0
    """Scenarios that both have, where these are compared; both values are over them alone."""

    @property
    def difference(self) -> float:
        return self.second - self.first

    def lies_within(self, margin: float, *, bounded: bool) -> bool:
        """Whether the whole 95 % interval of the difference is so close to zero.

        Of shares, what has not happened in n clusters may still happen in 3 ÷ n of them.
        """
        reach = student_quantile(self.degrees) * self.error
        return abs(self.difference) + max(reach, NOT_SEEN / self.clusters if bounded else 0.0) <= margin


class Stratum(NamedTuple):
    """Both sets inside of one value of a dimension."""

    value: int
    comparison: GroupComparison
    weight: float


def paired(sample: FigureSample, first: Rows, second: Rows, scenarios: Codes) -> GroupComparison | None:
    """The mean difference inside of the scenarios that both have; None where these are too few."""
    known = scenarios >= 0
    if not known.any():
        return None
    a, b = (_by_cluster(sample, rows & known, scenarios) for rows in (first, second))
    shared, left, right = np.intersect1d(a.codes, b.codes, assume_unique=True, return_indices=True)
    if len(shared) < MIN_CLUSTERS:
        return None
    before, after = a.above[left] / a.below[left], b.above[right] / b.below[right]
    differences = after - before
    error = float(np.std(differences, ddof=1)) / math.sqrt(len(shared))
    degrees = len(shared) - 1.0
    moved = int(np.count_nonzero(differences))
    # With all signs drawn anew, the least probability of so many that moved: few pairs never prove much.
    least = 2.0 ** (1 - moved) if moved else 1.0
    p = max(least, _probability(float(differences.mean()), error, degrees))
    return GroupComparison(
        float(before.mean()), float(after.mean()), error, degrees, min(1.0, p), len(shared), len(shared)
    )


def whole(
    sample: FigureSample, first: Rows, second: Rows, clusters: Codes, least_clusters: int = MIN_CLUSTERS
) -> GroupComparison | None:
    """The difference of the two ratios, clusters being independent."""
    a, b = _by_cluster(sample, first, clusters), _by_cluster(sample, second, clusters)
    if min(len(a.codes), len(b.codes)) < least_clusters:
        return None
    common = (a.above.sum() + b.above.sum()) / (a.below.sum() + b.below.sum())
    error = _error(a, b, common)
    degrees = max(1.0, len(a.codes) + len(b.codes) - 2.0)
    p = _probability(b.ratio - a.ratio, error, degrees)
    return GroupComparison(a.ratio, b.ratio, error, degrees, p, min(len(a.codes), len(b.codes)))


def strata_of(sample: FigureSample, first: Rows, second: Rows, clusters: Codes, codes: Codes) -> list[Stratum]:
    """The same inside of each value of a dimension that both sets have; weighted by Mantel and Haenszel."""
    has_value = (sample.below > 0) & (codes >= 0)
    strata = []
    for value in np.intersect1d(codes[first & has_value], codes[second & has_value]).tolist():
        inside = codes == value
        within = whole(sample, first & inside, second & inside, clusters, 1)
        sizes = [int(np.count_nonzero(rows & inside & has_value)) for rows in (first, second)]
        if within is not None:
            strata.append(Stratum(value, within, sizes[0] * sizes[1] / sum(sizes)))
    return strata


def standardised(strata: Sequence[Stratum]) -> GroupComparison:
    """The weighted mean of the differences inside of strata."""
    weights = np.array([one.weight for one in strata])
    weights = weights / weights.sum()
    before, after = (float(weights @ [getattr(one.comparison, side) for one in strata]) for side in ("first", "second"))
    error = math.sqrt(float(weights**2 @ np.array([one.comparison.error**2 for one in strata])))
    degrees = sum(one.comparison.degrees for one in strata)
    clusters = sum(one.comparison.clusters for one in strata)
    return GroupComparison(before, after, error, degrees, _probability(after - before, error, degrees), clusters)


def holm(probabilities: Sequence[float]) -> list[bool]:
    """Which of many differences hold, if the chance of any false one is to stay at 5 %."""
    order = sorted(range(len(probabilities)), key=lambda index: probabilities[index])
    kept = [False] * len(probabilities)
    for rank, index in enumerate(order):
        if probabilities[index] * (len(probabilities) - rank) > LEVEL:
            break
        kept[index] = True
    return kept


class _Clusters(NamedTuple):
    """The sums of each cluster that has any."""

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


def _error(first: _Clusters, second: _Clusters, ratio: float) -> float:
    """The standard error of the difference. What a cluster of both sides has in common falls out."""
    residuals = np.zeros(1 + max(int(first.codes.max()), int(second.codes.max())))
    residuals[first.codes] -= first.residuals(ratio)
    residuals[second.codes] += second.residuals(ratio)
    scale = float(np.max(np.abs(residuals))) or 1.0  # squares of the largest numbers would be infinite
    return scale * math.sqrt(float(np.sum((residuals / scale) ** 2)))


def _by_cluster(sample: FigureSample, rows: Rows, clusters: Codes) -> _Clusters:
    indices = np.flatnonzero(rows & (sample.below > 0))
    dense = clusters[indices]
    above: Floats = np.bincount(dense, weights=sample.above[indices]).astype(np.float64)
    below: Floats = np.bincount(dense, weights=sample.below[indices]).astype(np.float64)
    codes = np.flatnonzero(below)
    return _Clusters(codes, above[codes], below[codes])


def _probability(difference: float, error: float, degrees: float) -> float:
    if not difference:
        return 1.0
    if not error or not math.isfinite(error):
        return 0.0 if not error else 1.0
    size = abs(difference) / error
    return math.erfc(size / math.sqrt(2)) if degrees > MANY_DEGREES else min(1.0, 2 * student_tail(size, degrees))
