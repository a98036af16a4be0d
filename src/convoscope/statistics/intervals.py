"""How sure is a figure? 95 % intervals that know that turns of one conversation go together.

Clusters are scenarios where conversations have one, else the conversations themselves. Nothing is drawn by lot: the
same data give the same interval. How often intervals hold the truth is simulated in `benchmarks/intervals.py`.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import chain
from math import fsum
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.scores.reducers import Sums

LEVEL = 0.95
Z = 1.959963984540054
_TAIL = (1 - LEVEL) / 2
_MAX_DEGREES = 1000
"""Degrees of freedom above which Student's quantile is the normal one to two digits and more."""
_FEW_OFF_THE_BOUND = 5
_FAR = 8
"""With so few clusters off a bound of 0 or 1, their spread says little of how far off the others could be."""
_LEAST_ERROR = 0.04
"""Of a mean of scores between 0 and 1, times the number of clusters: two scores may agree by chance."""
_PRIOR_CLUSTERS = 2
"""Clusters that the assumed design effect counts for, in addition to those that were seen."""
_TRIALS_CORRELATE = 1.0
_SCORES_CORRELATE = 0.5
"""Of two values of one cluster, where clusters are too few: trials may all come out alike, scores hardly ever do."""

Codes = NDArray[np.int64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


class Interval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the figure plausibly lies, and how that was computed. An end that is null is unknown."""

    low: float | None
    high: float | None
    level: float = LEVEL
    method: str
    clusters: int

    @property
    def lowest(self) -> float:
        """The low end; where it is open, nothing lies below it."""
        return -math.inf if self.low is None else self.low

    @property
    def highest(self) -> float:
        """The high end; where it is open, nothing lies above it."""
        return math.inf if self.high is None else self.high


def ratio_interval(
    sums: Sums,
    clusters: Codes,
    *,
    bounded: bool,
    least: float = -math.inf,
    most: float = math.inf,
    value: float | None = None,
) -> Interval | None:
    """The interval of Σ numerator ÷ Σ denominator, which may be given as `value`; None where the data leave it unknown.

    `least`, `most`: no value lies below or above them. `bounded`: every ratio lies between 0 and 1. Counted trials, and
    scores of which nearly all are at a bound: Wilson, with the sample size that the clustering leaves. Others:
    Student's t on the cluster-robust standard error, corrected for skewness.
    """
    value = ratio_of(sums) if value is None else value
    if value is None:
        return None
    above, below = _by_cluster(clusters, sums.above, sums.below)
    has_any = below > 0  # a cluster without an opportunity says nothing
    data = _Clustered(above[has_any], below[has_any], value)
    if data.count < 2:
        return None
    is_trials = bounded and _is_trials(sums)
    if is_trials and np.all(data.below == 1):
        return _interval(*wilson(value * data.size, data.size), "wilson", data.count)
    if is_trials or (bounded and data.is_at_bound()):
        trials = data.effective_size(_TRIALS_CORRELATE if is_trials else _SCORES_CORRELATE)
        return _interval(*wilson(value * trials, trials), "wilson_effective_n", data.count)
    if data.standard_error <= 0:
        return None
    low, high = data.student(bounded=bounded)
    if bounded:
        least, most = 0.0, 1.0
    return _interval(max(least, low), min(most, high), "student_t", data.count)


def percentile_interval(values: Floats, clusters: Codes, q: float) -> Interval | None:
    """The interval of a percentile of pooled values, by order statistics; None where both ends would be open.

    The binomial distribution says between which ranks the percentile lies, with the sample size that the clustering
    leaves. Where no rank is far enough out, that end is open.
    """
    count, share = len(values), q / 100
    below = (values <= percentile(values, q)).astype(np.float64)
    data = _Clustered(*_by_cluster(clusters, below, np.ones_like(values)), share)
    if data.count < 2 or share in (0.0, 1.0):  # beyond the least and the greatest value nothing says how far
        return None
    size = count if data.count == count else max(1, math.floor(data.effective_size(_TRIALS_CORRELATE)))
    first, last = _ranks(size, share)
    ordered = np.sort(values)
    scale = count / size
    low = None if first is None else float(ordered[max(0, math.floor(first * scale) - 1)])
    high = None if last is None else float(ordered[min(count, math.ceil(last * scale)) - 1])
    if low is None and high is None:
        return None
    return _interval(low, high, "order_statistics", data.count)


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """Wilson's score interval; `trials` may be an effective number, not whole."""
    share = successes / trials
    centre = (share + Z * Z / (2 * trials)) / (1 + Z * Z / trials)
    spread = Z / (1 + Z * Z / trials) * math.sqrt(share * (1 - share) / trials + Z * Z / (4 * trials * trials))
    # By arithmetic, the interval always holds the share; by rounding, it may miss an end that it only touches.
    return max(0.0, min(share, centre - spread)), min(1.0, max(share, centre + spread))


class _Clustered:
    """A ratio of sums over independent clusters."""

    def __init__(self, above: Floats, below: Floats, value: float) -> None:
        self.above, self.below, self.value = above, below, value
        self.count = len(below)
        self.size = float(below.sum())
        self._leverage = below / self.size
        residuals = above - value * below
        self._scale = float(np.max(np.abs(residuals))) or 1.0
        self._residuals = residuals / self._scale  # the squares of the largest numbers would be infinite

    @property
    def standard_error(self) -> float:
        """Linearised, of the ratio; each residual is corrected for how far its cluster draws the ratio to it."""
        squares = float(np.sum(self._residuals**2 / np.maximum(1 - self._leverage, 1e-12)))
        return self._scale * (math.sqrt(squares) / self.size)

    def degrees(self) -> float:
        """Degrees of freedom of that variance (Bell and McCaffrey): fewer where few clusters are much of the data.

        The variance is a quadratic form of independent errors. The trace of its matrix is 1, because the variance is
        unbiased; this is the inverse of the trace of the square.
        """
        share = self._leverage
        if np.all(share == share[0]):
            return self.count - 1.0
        scale = 1 / np.maximum(1 - share, 1e-12)
        pull = scale * share
        mean, square = float(np.sum(share * pull)), float(np.sum(share * pull**2))
        diagonal = float(np.sum(share**2 * (scale**2 + 2 * scale * (mean - 2 * pull))))
        return 1 / (2 * square - mean**2 + diagonal)

    def student(self, *, bounded: bool) -> tuple[float, float]:
        """Student's t, corrected for skewness by Hall's transformation.

        Scores that are not bounded: each end is at least as far out as without the correction, because few values
        say little of how skewed they are. Bounded ones: the error is at least what so few could hide.
        """
        error, quantile = self.standard_error, student_quantile(self.degrees())
        if bounded:
            error = max(error, _LEAST_ERROR / self.count)
        skewness = self._skewness() / math.sqrt(self.count)
        low = self.value - error * _hall(quantile, skewness)
        high = self.value - error * _hall(-quantile, skewness)
        if not bounded:
            low, high = min(low, self.value - error * quantile), max(high, self.value + error * quantile)
        return low, high

    def _skewness(self) -> float:
        spread = math.sqrt(float(np.mean(self._residuals**2)))
        standard = self._residuals / spread
        return float(np.mean(standard * standard * standard))  # a power of 3 takes ten times as long

    def is_at_bound(self) -> bool:
        """Whether some clusters are at 0, or at 1, and only few do not."""
        off_one = int(np.sum(self.above < self.below))
        off_zero = int(np.sum(self.above > 0))
        return any(off < self.count and off <= _FEW_OFF_THE_BOUND for off in (off_one, off_zero))

    def effective_size(self, correlation: float) -> float:
        """How many independent trials would say as much.

        The design effect that the clusters show, and, as if two more clusters had shown it, the one that such a
        correlation inside of clusters would have: few clusters may agree by chance.
        """
        assumed = 1 + correlation * (float(np.sum(self.below**2)) / self.size - 1)
        largest = self.value * (1 - self.value) / self.size
        if largest <= 0:
            return self.size / assumed
        seen = self.standard_error**2 / largest
        weight = self.count - 1
        return self.size / ((seen * weight + assumed * _PRIOR_CLUSTERS) / (weight + _PRIOR_CLUSTERS))


def _hall(quantile: float, skewness: float) -> float:
    """The inverse of Hall's transformation: the quantile of Student's statistic of skewed data."""
    if abs(skewness) < 1e-9:
        return quantile
    return 3 / skewness * (float(np.cbrt(1 + skewness * (quantile - skewness / 6))) - 1)


def student_quantile(degrees: float) -> float:
    """The 97.5th percentile of Student's t."""
    if degrees > _MAX_DEGREES:
        return Z * (1 + (Z * Z + 1) / (4 * degrees))
    return _student_quantile(round(degrees, 2))


@lru_cache(maxsize=1024)
def _student_quantile(degrees: float) -> float:
    low, high = Z, 1e4
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if student_tail(middle, degrees) > _TAIL else (low, middle)
    return low


def student_tail(at: float, degrees: float) -> float:
    """The probability of a larger value: Gauss and Legendre's rule over the angle whose tangent is t ÷ √degrees."""
    start = math.atan(at / math.sqrt(degrees))
    half = (math.pi / 2 - start) / 2
    area = half * float(np.sum(_WEIGHTS * np.cos(start + half * (_NODES + 1)) ** (degrees - 1)))
    return area * math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(math.pi)


@lru_cache(maxsize=4096)
def _ranks(size: int, share: float) -> tuple[int | None, int | None]:
    """The ranks, from 1, between which a percentile of so many values lies; None for one that no rank reaches."""
    # Of very many values only those that the percentile could lie at: ten standard deviations to either side.
    far = 10 * math.sqrt(size * share * (1 - share)) + 10
    start, stop = max(0, math.floor(size * share - far)), min(size, math.ceil(size * share + far))
    successes = np.arange(start, stop)
    # The probability that so many values lie below the percentile, from that of one less.
    ratios = np.log((size - successes) / (successes + 1)) + math.log(share) - math.log1p(-share)
    reached = np.cumsum(np.exp(_log_binomial(start, size, share) + np.concatenate(([0.0], np.cumsum(ratios)))))
    below = int(np.searchsorted(reached, _TAIL, side="right")) + start
    last = int(np.searchsorted(reached, 1 - _TAIL, side="left")) + start + 1
    return below or None, last if last <= size else None


def _log_binomial(successes: int, size: int, share: float) -> float:
    ways = math.lgamma(size + 1) - math.lgamma(successes + 1) - math.lgamma(size - successes + 1)
    return ways + successes * math.log(share) + (size - successes) * math.log1p(-share)


def _is_trials(sums: Sums) -> bool:
    """Whole counts, none above its opportunities: the share is one of trials."""
    above, below = sums.above, sums.below
    return bool(np.all(above == np.floor(above)) and np.all(below == np.floor(below)) and np.all(above <= below))


def _by_cluster(clusters: Codes, above: Floats, below: Floats) -> tuple[Floats, Floats]:
    """The sums of each cluster."""
    rows: NDArray[np.bool_] | slice = slice(None)
    # Codes that lie close are counted as they are, which gives the same sums in the same order.
    if len(clusters) and clusters.min() >= 0 and clusters.max() <= _FAR * len(clusters):
        rows = np.bincount(clusters) > 0
    else:
        clusters = np.unique(clusters, return_inverse=True)[1]
    sums = [np.bincount(clusters, weights=values).astype(np.float64)[rows] for values in (above, below)]
    return sums[0], sums[1]


def _interval(low: float | None, high: float | None, method: str, clusters: int) -> Interval:
    return Interval(low=_rounded(low), high=_rounded(high), method=method, clusters=clusters)


def _rounded(end: float | None) -> float | None:
    # Ten digits: enough for anybody, and equal on machines that add in another order.
    return None if end is None or math.isinf(end) else float(f"{end:.10g}")


Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """The measured conversations of a group, in the order of their ids, column by column."""

    value: Floats
    n: Floats
    total: Floats
    numerator: Floats
    denominator: Floats
    tp: Floats
    fp: Floats
    fn: Floats

    def at(self, rows: NDArray[np.bool_]) -> Columns:
        """Those of some conversations. A column that holds one value takes no room, and two that are one stay one."""
        count = int(rows.sum())
        computed: dict[int, Floats] = {}
        for column in self:
            if id(column) not in computed:
                single = column.strides == (0,)
                computed[id(column)] = np.broadcast_to(column[:1].sum(), count) if single else column[rows]
        return Columns(*(computed[id(column)] for column in self))


def ratio_of(sums: Sums) -> float | None:
    """Σ above ÷ Σ below; None where that below is zero."""
    below = total(sums.below)
    return total(sums.above) / below if below else None


def percentile(values: Floats, q: float) -> float:
    """Linear interpolation between the two nearest ranks."""
    return float(np.percentile(values, q))


_EXACT = 2.0**53
"""Sums of whole numbers below this are exact in whatever order they are added."""


def are_whole(values: Floats) -> bool:
    """Whether all are whole numbers, so few and small that any order gives their exact sum."""
    return bool((values == np.floor(values)).all() and np.abs(values).max() < _EXACT / len(values))


def total(values: Floats, block: int = 65536) -> float:
    """The exactly rounded sum: the same on every machine and in every order."""
    if len(values) and are_whole(values):
        return float(values.sum()) + 0.0
    blocks = (values[start : start + block].tolist() for start in range(0, len(values), block))
    return fsum(chain.from_iterable(blocks))
