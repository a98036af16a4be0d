"""How often a comparison claims a difference where there is none, and how often it finds one that is there.

Designs, sizes, kinds of figures, effects and the naive rule below were fixed before the first run. Every case has its
own seed, so that the same code prints the same table.
"""

from __future__ import annotations

import math
import sys
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import items, scoring
from convoscope.analysis.answer.comparison import GroupComparison, interval_of, paired, redrawn, whole
from convoscope.statistics.differences import LEVEL, Codes, FigureSample, Floats, holm

Random = np.random.Generator
Rows = NDArray[np.bool_]
ROUNDS = 20_000
NAIVE = (0.02, 0.05)
"""What people take for a difference without statistics: 2 points of a share, 5 % of another value."""


class Design(NamedTuple):
    """Two sides: how many clusters each has, how many conversations in a cluster, and what they share."""

    name: str
    first: int
    second: int
    trials: Sequence[int] = (1,)
    shared: bool = False
    """Both sides have the same scenarios, and pairs are compared."""
    correlation: float = 0.0
    """Of two conversations of one cluster."""


DESIGNS = (
    Design("unpaired, 10 and 10", 10, 10),
    Design("unpaired, 30 and 30", 30, 30),
    Design("unpaired, 300 and 300", 300, 300),
    Design("unpaired, 10 and 200", 10, 200),
    Design("clustered, 12 and 12 scenarios of 1 to 8", 12, 12, (1, 2, 3, 4, 8), correlation=0.3),
    Design("clustered, 100 and 60 scenarios of 1 to 8", 100, 60, (1, 2, 3, 4, 8), correlation=0.3),
    Design("paired, 10 scenarios", 10, 10, (1, 2, 3), shared=True, correlation=0.3),
    Design("paired, 40 scenarios", 40, 40, (1, 2, 3), shared=True, correlation=0.3),
    Design("paired, 200 scenarios", 200, 200, (1, 2, 3), shared=True, correlation=0.3),
)
FIGURES = (5, 20, 50)


class Sides(NamedTuple):
    """The conversations of both sides."""

    design: Design
    first: Rows
    clusters: Codes


def sides_of(random: Random, design: Design) -> Sides:
    """Draw how many conversations each cluster has."""
    clusters: list[int] = []
    first: list[bool] = []
    for is_first, count in ((True, design.first), (False, design.second)):
        start = 0 if is_first or design.shared else design.first
        sizes = random.choice(design.trials, count)
        clusters += np.repeat(np.arange(start, start + count), sizes).tolist()
        first += [is_first] * int(sizes.sum())
    return Sides(design, np.array(first), np.array(clusters, dtype=np.int64))


def latent(random: Random, sides: Sides) -> Floats:
    """A standard normal number for each conversation; those of a cluster go together."""
    count, share = len(sides.clusters), sides.design.correlation
    common = random.normal(size=int(sides.clusters.max()) + 1)[sides.clusters]
    return math.sqrt(share) * common + math.sqrt(1 - share) * random.normal(size=count)


KINDS = ("share 3 %", "share 50 %", "share 95 %", "waits", "turns", "counts")


def figure_of(random: Random, sides: Sides, kind: str, effect: float = 0.0) -> FigureSample:
    """A figure of this kind. `effect` shifts the second side by so many standard deviations of a conversation."""
    values = latent(random, sides) + np.where(sides.first, 0.0, effect)
    ones = np.ones(len(values))
    if kind.startswith("share"):
        cut = {"share 3 %": 1.881, "share 50 %": 0.0, "share 95 %": -1.645}[kind]
        return FigureSample((values > cut).astype(np.float64), ones, bounded=True)
    if kind == "waits":
        return FigureSample(np.exp(values), ones, least=0.0)
    if kind == "counts":
        return FigureSample(random.poisson(np.exp(0.8 * values - 1.5)).astype(np.float64), ones, least=0.0)
    turns = random.integers(1, 12, len(values)).astype(np.float64)
    return FigureSample(random.binomial(turns.astype(np.int64), 0.3 / (1 + np.exp(-values))).astype(float), turns, True)


def compared(sample: FigureSample, sides: Sides) -> tuple[GroupComparison | None, float]:
    """The comparison of a figure, and the probability that a claim rests on."""
    first, second, codes = sides.first, ~sides.first, sides.clusters
    raw = (paired if sides.design.shared else whole)(sample, first, second, codes)
    return raw, 1.0 if raw is None else redrawn(raw, sample, first, second, codes, ROUNDS)


def claims(samples: Sequence[FigureSample], sides: Sides) -> list[bool]:
    """Which figures a comparison claims: the corrected probability, and an interval without zero."""
    found = [compared(sample, sides) for sample in samples]
    kept = [p <= LEVEL for p in holm([p for _, p in found])]
    for index, (raw, _) in enumerate(found):
        if kept[index] and raw is not None:
            interval = interval_of(raw, samples[index], sides.first, ~sides.first, sides.clusters)
            kept[index] = interval.excludes_zero
    return kept


def is_naive(sample: FigureSample, sides: Sides) -> bool:
    """Whether the two values are further apart than the naive rule allows."""
    values = [float(sample.above[rows].sum() / sample.below[rows].sum()) for rows in (sides.first, ~sides.first)]
    if sample.bounded:
        return abs(values[1] - values[0]) > NAIVE[0]
    return abs(values[1] - values[0]) > NAIVE[1] * abs(values[0])


class Rate(NamedTuple):
    """How often something happened, of so many."""

    times: int
    runs: int

    @property
    def error(self) -> float:
        share = self.times / self.runs
        return math.sqrt(max(share * (1 - share), 0.05 * 0.95) / self.runs)

    def __str__(self) -> str:
        return f"{100 * self.times / self.runs:5.1f} %"


def false_alarms(design: Design, figures: int, runs: int) -> tuple[Rate, Rate]:
    """Runs with any claim, and runs in which the naive rule sees a difference, where none is."""
    random = np.random.default_rng(zlib.crc32(f"{design.name} {figures}".encode()))
    count = naive = 0
    for _ in range(runs):
        sides = sides_of(random, design)
        samples = [figure_of(random, sides, KINDS[index % len(KINDS)]) for index in range(figures)]
        count += any(claims(samples, sides))
        naive += any(is_naive(sample, sides) for sample in samples)
    return Rate(count, runs), Rate(naive, runs)


EFFECTS = (0.2, 0.5, 1.0)


def power(design: Design, effect: float, runs: int, figures: int = 20) -> tuple[Rate, Rate, Rate]:
    """Of the planted changes, in the first three figures, how many are claimed, and how many the naive rule sees.

    The third is how many runs have a false claim beside them.
    """
    random = np.random.default_rng(zlib.crc32(f"{design.name} {effect}".encode()))
    found = naive = wrong = 0
    planted = ("share 50 %", "waits", "turns")
    for _ in range(runs):
        sides = sides_of(random, design)
        samples = [figure_of(random, sides, kind, effect) for kind in planted]
        samples += [figure_of(random, sides, KINDS[index % len(KINDS)]) for index in range(figures - len(planted))]
        kept = claims(samples, sides)
        found += sum(kept[: len(planted)])
        naive += sum(is_naive(sample, sides) for sample in samples[: len(planted)])
        wrong += any(kept[len(planted) :])
    return Rate(found, runs * len(planted)), Rate(naive, runs * len(planted)), Rate(wrong, runs)


def run(runs: int) -> None:
    """Print both tables."""
    print(f"no change, {runs:,} runs each: runs with any claim (naive rule: more than 2 points, or 5 %)")
    worst = 0.0
    for design in DESIGNS:
        cells = []
        for figures in FIGURES:
            rate, naive = false_alarms(design, figures, runs)
            worst = max(worst, (rate.times / rate.runs - LEVEL) / rate.error)
            cells.append(f"{figures:3} figures {rate} ({naive})")
        print(f"  {design.name:42} {'  '.join(cells)}", flush=True)
    print(f"  the largest excess over 5 %: {worst:.1f} standard errors of the simulation")
    print(f"planted changes in 3 of 20 figures, {runs:,} runs each: found (naive rule), runs with a false claim")
    for design in DESIGNS:
        cells = []
        for effect in EFFECTS:
            found, naive, wrong = power(design, effect, runs)
            cells.append(f"{effect} sd {found} ({naive}) {wrong}")
        print(f"  {design.name:42} {'  '.join(cells)}", flush=True)


_SCRIPT = """
import sys, convoscope
convoscope.compare(sys.argv[1], sys.argv[2])
"""


def size(folder: Path, count: int) -> None:
    """Print the time and memory of a comparison of two runs with so many items each."""
    runs = []
    for seed in (1, 2):
        log, made = folder / f"compared-{seed}.jsonl", folder / f"compared-{seed}"
        items.write_items(log, count, seed)
        scoring.score(log, made, workers=2, metrics=items.METRICS)
        runs.append(made)
        log.unlink()
    measured = scoring.watched([sys.executable, "-c", _SCRIPT, *map(str, runs)])
    print(f"two runs of {count:,} items each, {len(items.METRICS)} figures: {measured.cpu:.1f} s of CPU time, ", end="")
    print(f"peak memory {measured.peak_mb:.0f} MB")


if __name__ == "__main__":
    run(2000)
