"""How often a 95 % interval holds the truth, by simulation.

The distributions, sizes, cluster sizes and correlations below were fixed before the first run. Every case has its own
seed, so that the same code prints the same table.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Interval, percentile_interval, ratio_interval

Floats = NDArray[np.float64]
Random = np.random.Generator

SIZES = (2, 3, 5, 10, 20, 50, 100)
SHARES = tuple(round(0.05 * step, 2) for step in range(1, 20))
PERCENTILES = (50.0, 90.0, 95.0)
CLUSTER_SIZES = (1, 2, 3, 4, 8)
"""Values in a cluster: one of these, by lot."""
CORRELATION = 0.3
"""Of two values of one cluster."""


class Sample(NamedTuple):
    """Values and the cluster of each."""

    values: Floats
    clusters: NDArray[np.int64]


class Continuous(NamedTuple):
    """A distribution of values, its mean, and whether its values are scores between 0 and 1."""

    name: str
    draw: Callable[[Random, int], Floats]
    mean: float
    bounded: bool = False
    at_ceiling: bool = False
    at_least: float = 0.93
    at_most: float = 0.98
    sizes: Sequence[int] = SIZES


def _ceiling(random: Random, count: int) -> Floats:
    """Scores of which 80 % are 1, the others anywhere below."""
    return np.where(random.random(count) < 0.8, 1.0, random.random(count))


CONTINUOUS = (
    Continuous("normal", lambda random, count: random.normal(0.0, 1.0, count), 0.0),
    Continuous("uniform between 0 and 1", lambda random, count: random.random(count), 0.5, bounded=True),
    Continuous("80 % at the ceiling of 1", _ceiling, 0.9, bounded=True, at_ceiling=True),
    Continuous(
        "lognormal, σ 1",
        lambda random, count: random.lognormal(0.0, 1.0, count),
        math.exp(0.5),
        at_least=0.90,
        at_most=1.0,
        sizes=(10, 20, 50, 100),
    ),
)


class Coverage(NamedTuple):
    """What came of one case: the share of intervals that hold the truth, their mean width, and how many there were."""

    share: float
    width: float
    intervals: float
    """Of all trials, those that have an interval; the others say that there is none."""


def seed(*facts: object) -> Random:
    return np.random.default_rng(zlib.crc32(repr(facts).encode()))


def clustered(random: Random, clusters: int, draw: Callable[[Random, int], Floats]) -> Sample:
    """Values of clusters of several sizes: some share their cluster's value, so that two correlate by `CORRELATION`."""
    sizes = random.choice(CLUSTER_SIZES, size=clusters)
    owner = np.repeat(np.arange(clusters, dtype=np.int64), sizes)
    common, own = draw(random, clusters), draw(random, len(owner))
    shared = random.random(len(owner)) < math.sqrt(CORRELATION)
    return Sample(np.where(shared, common[owner], own), owner)


def coverage(intervals: Sequence[Interval | None], truth: float) -> Coverage:
    """An end that is open holds everything on its side. No interval is no claim, and is counted apart."""
    given = [interval for interval in intervals if interval is not None]
    if not given:
        return Coverage(math.nan, math.nan, 0.0)
    held = sum(interval.lowest <= truth <= interval.highest for interval in given)
    width = float(np.mean([interval.highest - interval.lowest for interval in given]))
    return Coverage(held / len(given), width, len(given) / len(intervals))


def mean_coverage(case: Continuous, size: int, trials: int, *, in_clusters: bool) -> Coverage:
    random = seed(case.name, size, in_clusters)
    intervals = []
    for _ in range(trials):
        if in_clusters:
            sample = clustered(random, size, case.draw)
        else:
            sample = Sample(case.draw(random, size), np.arange(size, dtype=np.int64))
        sums = Sums("", sample.values, np.ones_like(sample.values))
        intervals.append(ratio_interval(sums, sample.clusters, bounded=case.bounded))
    return coverage(intervals, case.mean)


def share_coverage(share: float, size: int, trials: int, *, in_clusters: bool) -> Coverage:
    random = seed("share", share, size, in_clusters)

    def draw(generator: Random, count: int) -> Floats:
        return (generator.random(count) < share).astype(np.float64)

    intervals = []
    for _ in range(trials):
        if in_clusters:
            sample = clustered(random, size, draw)
        else:
            sample = Sample(draw(random, size), np.arange(size, dtype=np.int64))
        sums = Sums("", sample.values, np.ones_like(sample.values))
        intervals.append(ratio_interval(sums, sample.clusters, bounded=True))
    return coverage(intervals, share)


def percentile_coverage(q: float, size: int, trials: int, *, in_clusters: bool) -> Coverage:
    random = seed("percentile", q, size, in_clusters)

    def draw(generator: Random, count: int) -> Floats:
        return generator.random(count)

    intervals = []
    for _ in range(trials):
        if in_clusters:
            sample = clustered(random, size, draw)
        else:
            sample = Sample(draw(random, size), np.arange(size, dtype=np.int64))
        intervals.append(percentile_interval(sample.values, sample.clusters, q))
    return coverage(intervals, q / 100)


def run(trials: int) -> None:
    """Print the table."""
    print(f"share of 95 % intervals that hold the truth (mean width), {trials:,} trials each")
    for in_clusters in (False, True):
        where = (
            f"clusters of {', '.join(map(str, CLUSTER_SIZES))}, correlation {CORRELATION}" if in_clusters else "alone"
        )
        print(f"  {where:42}" + "".join(f"{f'n={size}':>15}" for size in SIZES))
        for case in CONTINUOUS:
            found = {size: mean_coverage(case, size, trials, in_clusters=in_clusters) for size in SIZES}
            print(f"  mean, {case.name:36}" + "".join(_cell(found[size]) for size in SIZES))
        for name, pick in (("average over", np.mean), ("lowest of", min)):
            cells = []
            for size in SIZES:
                each = [share_coverage(share, size, trials // 4, in_clusters=in_clusters) for share in SHARES]
                width = float(np.mean([one.width for one in each]))
                given = float(np.mean([one.intervals for one in each]))
                cells.append(_cell(Coverage(float(pick([one.share for one in each])), width, given)))
            print(f"  {f'share, {name} p from 0.05 to 0.95':42}" + "".join(cells))
        for q in PERCENTILES:
            found = {size: percentile_coverage(q, size, trials, in_clusters=in_clusters) for size in SIZES}
            print(f"  {f'percentile {q:g}':42}" + "".join(_cell(found[size]) for size in SIZES))
    print()


def _cell(one: Coverage) -> str:
    if not one.intervals:
        return f"{'none':>15}"
    return f"{f'{100 * one.share:.1f} % ({one.width:.2f})':>15}"
