"""Intervals hold the truth as often as they say: the simulation of `benchmarks/intervals.py`, with its fixed seeds."""

import math

import pytest
from benchmarks.intervals import (
    CONTINUOUS,
    PERCENTILES,
    SHARES,
    SIZES,
    Continuous,
    mean_coverage,
    percentile_coverage,
    share_coverage,
)

TRIALS = 600
CHANCE = 2 * math.sqrt(0.95 * 0.05 / TRIALS)
"""How far the share of so many trials may be off by chance, twice its standard deviation: 1.8 %."""
MEANS = [pytest.param(case, size, id=f"{case.name}, n={size}") for case in CONTINUOUS for size in case.sizes]


@pytest.mark.parametrize("in_clusters", [False, True], ids=["alone", "clustered"])
@pytest.mark.parametrize(("case", "size"), MEANS)
def test_means(case: Continuous, size: int, in_clusters: bool) -> None:
    coverage = mean_coverage(case, size, TRIALS, in_clusters=in_clusters)
    assert coverage.share >= case.at_least - CHANCE
    if not case.at_ceiling:  # nearly discrete: wider than need be where few scores are off the ceiling
        assert coverage.share <= case.at_most + CHANCE


@pytest.mark.parametrize("in_clusters", [False, True], ids=["alone", "clustered"])
@pytest.mark.parametrize("size", SIZES)
def test_shares(size: int, in_clusters: bool) -> None:
    shares = [share_coverage(share, size, TRIALS // 3, in_clusters=in_clusters).share for share in SHARES]
    assert sum(shares) / len(shares) >= 0.93
    assert min(shares) >= 0.85 - 2 * CHANCE  # of a third of the trials, and the least of nineteen


@pytest.mark.parametrize("in_clusters", [False, True], ids=["alone", "clustered"])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("q", PERCENTILES)
def test_percentiles(q: float, size: int, in_clusters: bool) -> None:
    coverage = percentile_coverage(q, size, TRIALS, in_clusters=in_clusters)
    if coverage.intervals:
        assert coverage.share >= 0.93 - CHANCE
