"""How sure is a figure? 95 % intervals that know that turns of one conversation go together.

Clusters are scenarios where conversations have one, else the conversations themselves.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.scores.reducers import Sums
from convoscope.statistics.across import Floats, percentile, ratio_of

LEVEL = 0.95
Z = 1.959963984540054
MAX_BOOTSTRAP_CLUSTERS = 5000
DRAWS = 1000
_CELLS = 1_000_000
_NEAR = 32_768
"""Cells that stay near the processor while they are counted."""
_WINDOW = 4
"""Standard deviations around the percentile of the data; a draw beyond them is looked for among all values."""

Codes = NDArray[np.int64]
Draws = NDArray[np.uint16]


class Interval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the figure plausibly lies, and how that was computed."""

    low: float
    high: float
    level: float = LEVEL
    method: str
    clusters: int


def ratio_interval(sums: Sums, clusters: Codes, *, share: bool) -> Interval | None:
    """The interval of Σ numerator ÷ Σ denominator; None where one cluster leaves no way to tell.

    Shares made of whole counts: Wilson, with the sample size that the clustering leaves. Others:
    bootstrap over clusters up to 5,000 of them, the cluster-robust formula above.
    """
    value = ratio_of(sums)
    if value is None:
        return None
    if share and _is_trials(sums):
        return _share_interval(sums, value, clusters)
    above, below = _by_cluster(sums.above, clusters), _by_cluster(sums.below, clusters)
    if len(above) < 2:
        return None
    if len(above) <= MAX_BOOTSTRAP_CLUSTERS:
        low, high = _bootstrap_ratio(above, below)
        return _interval(low, high, "cluster_bootstrap", len(above))
    spread = Z * math.sqrt(_ratio_variance(above, below, value))
    low, high = value - spread, value + spread
    if share:
        low, high = max(0.0, low), min(1.0, high)
    return _interval(low, high, "cluster_robust", len(above))


def percentile_interval(values: Floats, clusters: Codes, q: float) -> Interval | None:
    """The interval of a percentile of pooled values: bootstrap, or Woodruff's above 5,000 clusters."""
    codes, dense = np.unique(clusters, return_inverse=True)
    if len(codes) < 2:
        return None
    if len(codes) <= MAX_BOOTSTRAP_CLUSTERS:
        low, high = _bootstrap_percentile(values, dense, len(codes), q)
        return _interval(low, high, "cluster_bootstrap", len(codes))
    # Woodruff: the uncertainty of "the share of values at or below this one", read back as values.
    at = percentile(values, q)
    below = _by_cluster((values <= at).astype(np.float64), dense)
    every = _by_cluster(np.ones_like(values), dense)
    spread = Z * math.sqrt(_ratio_variance(below, every, float(below.sum() / every.sum()))) * 100
    low, high = max(0.0, q - spread), min(100.0, q + spread)
    return _interval(percentile(values, low), percentile(values, high), "woodruff", len(codes))


def wilson(successes: float, trials: float) -> tuple[float, float]:
    """Wilson's score interval; `trials` may be an effective number, not whole."""
    p = successes / trials
    centre = (p + Z * Z / (2 * trials)) / (1 + Z * Z / trials)
    spread = Z / (1 + Z * Z / trials) * math.sqrt(p * (1 - p) / trials + Z * Z / (4 * trials * trials))
    # By arithmetic, the interval always holds p; by rounding, it may miss an end that it only touches.
    return max(0.0, min(p, centre - spread)), min(1.0, max(p, centre + spread))


def _is_trials(sums: Sums) -> bool:
    """Whole counts, none above its opportunities: the share is one of trials."""
    above, below = sums.above, sums.below
    return bool(np.all(above == np.floor(above)) and np.all(below == np.floor(below)) and np.all(above <= below))


def _share_interval(sums: Sums, value: float, clusters: Codes) -> Interval | None:
    above, below = _by_cluster(sums.above, clusters), _by_cluster(sums.below, clusters)
    trials = float(below.sum())
    if np.all(below == 1):
        low, high = wilson(value * trials, trials)
        return _interval(low, high, "wilson", len(below))
    if len(below) < 2:
        return None
    if value in (0.0, 1.0):
        # All or none: clusters cannot show a spread, so each counts once, which errs to the wide side.
        effective = float(len(below))
    else:
        variance = _ratio_variance(above, below, value)
        effective = min(trials, value * (1 - value) / variance) if variance > 0 else trials
    low, high = wilson(value * effective, effective)
    return _interval(low, high, "wilson_effective_n", len(below))


def _ratio_variance(above: Floats, below: Floats, value: float) -> float:
    """Linearised variance of a ratio of sums over independent clusters."""
    clusters = len(above)
    residuals = above - value * below
    return float(clusters / (clusters - 1) * np.sum(residuals * residuals) / np.sum(below) ** 2)


def _bootstrap_ratio(above: Floats, below: Floats) -> tuple[float, float]:
    weights = _draws(len(above))
    if (below == below[0]).all() and below[0] > 0:
        return _ends(_drawn_sums(weights, above) / (below[0] * len(below)))
    sums = _drawn_sums(weights, below)
    usable = sums > 0
    return _ends(_drawn_sums(weights, above)[usable] / sums[usable])


def _drawn_sums(weights: Draws, values: Floats) -> Floats:
    """The sum of each draw. Not by `@`, whose threads cost more than the product, and add in an order of their own."""
    sums: Floats = np.einsum("dc,c->d", weights, values)
    return sums


def _bootstrap_percentile(values: Floats, clusters: Codes, count: int, q: float) -> tuple[float, float]:
    order = np.argsort(values, kind="stable")
    ranked = _Ranked(values[order], clusters[order], count)
    # The percentile of a draw lies near that of the data: it is enough to look at the ranks around it.
    near = _WINDOW * ranked.deviation(q)
    low, high = max(0.0, q / 100 - near), min(1.0, q / 100 + near)
    window = slice(int(low * len(values)), math.ceil(high * len(values)))
    draws: list[Floats] = []
    block = max(1, min(DRAWS, _CELLS // max(count, window.stop - window.start)))
    for start in range(0, DRAWS, block):
        weights = _draws(count)[start : start + block]
        percentiles = ranked.percentiles(weights, q, window)
        missed = np.flatnonzero(np.isnan(percentiles))
        at_once = max(1, _CELLS // len(values))
        for first in range(0, len(missed), at_once):
            rows = missed[first : first + at_once]
            percentiles[rows] = ranked.percentiles(weights[rows], q, slice(0, len(values)))
        draws.append(percentiles)
    return _ends(np.concatenate(draws))


class _Ranked(NamedTuple):
    """Values in ascending order, each with the cluster that it belongs to."""

    values: Floats
    owner: Codes
    clusters: int

    def deviation(self, q: float) -> float:
        """Standard deviation of the share of values below the q-th percentile."""
        below = np.bincount(self.owner[: int(q / 100 * len(self.values)) + 1], minlength=self.clusters)
        every = np.bincount(self.owner, minlength=self.clusters).astype(np.float64)
        return math.sqrt(_ratio_variance(below.astype(np.float64), every, q / 100))

    def percentiles(self, weights: Draws, q: float, window: slice) -> Floats:
        """The q-th percentile of each draw; NaN for one that lies outside the window of ranks."""
        every = np.bincount(self.owner, minlength=self.clusters).astype(np.float64)
        below = np.bincount(self.owner[: window.start], minlength=self.clusters).astype(np.float64)
        before = _drawn_sums(weights, below)
        rank = (_drawn_sums(weights, every) - 1) * q / 100
        reached = np.cumsum(np.take(weights, self.owner[window], axis=1), axis=1, dtype=np.float64)
        values = self.values[window]
        ends: list[Floats] = []
        for end in (np.floor(rank) - before, np.ceil(rank) - before):
            place = np.array([row.searchsorted(at, side="right") for row, at in zip(reached, end, strict=True)])
            outside = (place == len(values)) | (end < 0)
            ends.append(np.where(outside, np.nan, values[np.minimum(place, len(values) - 1)]))
        return ends[0] + (ends[1] - ends[0]) * (rank - np.floor(rank))


@lru_cache(maxsize=16)
def _draws(count: int) -> Draws:
    """How often each of so many clusters is drawn, one row per draw.

    They depend on the number alone: figures over equally many clusters share them, and no metric moves the
    interval of another.
    """
    random = np.random.default_rng(count)
    weights = np.empty((DRAWS, count), dtype=np.uint16)
    block = max(1, min(DRAWS, _NEAR // count))
    for start in range(0, DRAWS, block):
        picks = random.integers(0, count, size=(min(block, DRAWS - start), count), dtype=np.int32)
        flat = (picks + count * np.arange(len(picks), dtype=np.int64)[:, None]).ravel()
        weights[start : start + block] = np.bincount(flat, minlength=picks.size).reshape(picks.shape)
    weights.flags.writeable = False
    return weights


def _ends(draws: Floats) -> tuple[float, float]:
    low, high = np.percentile(draws, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


def _by_cluster(values: Floats, clusters: Codes) -> Floats:
    _, dense = np.unique(clusters, return_inverse=True)
    return np.bincount(dense, weights=values).astype(np.float64)


def _interval(low: float, high: float, method: str, clusters: int) -> Interval:
    # Ten digits: enough for anybody, and equal on machines that add in another order.
    return Interval(low=float(f"{low:.10g}"), high=float(f"{high:.10g}"), method=method, clusters=clusters)
