"""How often `convoscope history` names a change that is none, and how soon it finds a real one, by simulation.

The cases, figures, sizes and rules below were fixed before the first run. A run is 60 nights of eight figures, looked
at after each night. Every case has its own seed, so that the same code prints the same table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.intervals import Random, seed
from convoscope.statistics.sequences import (
    LEVEL,
    MIN_NIGHTS,
    NightSums,
    evidence,
    find_changes,
    level_of,
    night_noise,
    summed,
)

Floats = NDArray[np.float64]
NIGHTS = 60
CHANGE = 20
"""The first night of a planted change."""
VERSIONS = np.isin(np.arange(NIGHTS), (15, 30, 45))
"""Nights that come with a new version, which changes nothing."""
CHUNK = 100
NEVER = 10_000


class Figure(NamedTuple):
    """A figure of the simulation: its importance, and how one conversation's value is drawn.

    `spread` is drawn once for a cluster, from 0 to 1, evenly; a value is drawn given its cluster's.
    """

    name: str
    importance: int
    draw: Callable[[Random, Floats], Floats]


def _share(mean: float, correlation: float = 0.3) -> Callable[[Random, Floats], Floats]:
    """Yes or no. Clusters differ: some are always yes or no, so that two values of one correlate."""

    def draw(random: Random, spread: Floats) -> Floats:
        fixed = random.random(spread.shape) < math.sqrt(correlation)
        return (np.where(fixed, spread, random.random(spread.shape)) < mean).astype(np.float64)

    return draw


def _wait(sigma: float, correlation: float = 0.3) -> Callable[[Random, Floats], Floats]:
    """Lognormal waits: the larger sigma, the heavier the tail."""

    def draw(random: Random, spread: Floats) -> Floats:
        common = np.sqrt(2.0) * _erfinv(2 * spread - 1)
        own = random.standard_normal(spread.shape)
        return np.asarray(np.exp(sigma * (math.sqrt(correlation) * common + math.sqrt(1 - correlation) * own)))

    return draw


def _erfinv(x: Floats) -> Floats:
    """Winitzki's approximation: close enough to draw with."""
    log = np.log(np.maximum(1 - x * x, 1e-300))
    part = 2 / (math.pi * 0.147) + log / 2
    return np.asarray(np.sign(x) * np.sqrt(np.sqrt(part * part - log / 0.147) - part))


def _slow(random: Random, spread: Floats) -> Floats:
    """Whether a wait is among the slowest 5 %, by the limit of the first nights."""
    waits = _wait(1.0)(random, spread)
    limit = np.quantile(waits[:, :MIN_NIGHTS].reshape(len(waits), -1), 0.95, axis=1)
    return (waits > limit.reshape(-1, *[1] * (waits.ndim - 1))).astype(np.float64)


def _count(random: Random, spread: Floats) -> Floats:
    return random.poisson(0.5 + spread).astype(np.float64)


FIGURES = (
    Figure("share of 70 %", 10, _share(0.7)),
    Figure("share of 95 %", 8, _share(0.95)),
    Figure("share of 5 %", 8, _share(0.05)),
    Figure("share of 1 %", 7, _share(0.01)),
    Figure("wait, σ 1", 8, _wait(1.0)),
    Figure("wait, σ 2", 5, _wait(2.0)),
    Figure("slowest 5 % of waits", 8, _slow),
    Figure("count", 5, _count),
)
IMPORTANCE = sum(figure.importance for figure in FIGURES)


class Case(NamedTuple):
    """How many conversations a night has, and what they have in common."""

    name: str
    sizes: Callable[[Random], NDArray[np.int64]]
    """Conversations of each night; of scenarios, their number."""
    trials: int = 1
    """Of each scenario, the same each night; 1: conversations are independent."""
    users: int = 0
    """So many, each in about ten nights that follow each other, some with many conversations."""
    night_effect: float = 0.0
    """Beyond what is promised: whole nights differ, by so many standard errors of a night."""
    weekend_effect: float = 0.0
    """Beyond what is promised: two nights of seven are lower, by so many standard errors of a night."""


def _equal(size: int) -> Callable[[Random], NDArray[np.int64]]:
    return lambda _: np.full(NIGHTS, size)


CASES = (
    Case("20 a night", _equal(20)),
    Case("300 a night", _equal(300)),
    Case("2,000 a night", _equal(2_000)),
    Case("20 to 2,000 a night, by lot", lambda random: np.exp(random.uniform(3, 7.6, NIGHTS)).astype(np.int64)),
    Case("10 scenarios, 3 times each night", _equal(10), trials=3),
    Case("100 scenarios, 3 times each night", _equal(100), trials=3),
    Case("300 a night of 400 users", _equal(300), users=400),
    Case("300 a night, whole nights differ as much again", _equal(300), night_effect=1.0),
    Case("300 a night, weekends lower by 2 errors", _equal(300), weekend_effect=2.0),
)


def family(case: Case, figure: Figure, random: Random, runs: int) -> NightSums:
    """The nights of one figure, in many runs."""
    sizes = case.sizes(random)
    if case.trials > 1:
        return _scenarios(case, figure, random, runs, int(sizes[0]))
    if case.users:
        return _users(case, figure, random, runs, int(sizes[0]))
    above, squares = np.zeros((runs, NIGHTS)), np.zeros((runs, NIGHTS))
    if figure.draw is _slow:  # one limit for all nights: all at once
        most = int(sizes.max())
        values = _slow(random, random.random((runs, NIGHTS, most)))
        values *= np.arange(most) < sizes[:, None]
        above[:], squares[:] = values.sum(2), (values**2).sum(2)
    else:
        for night, size in enumerate(sizes.tolist()):
            values = figure.draw(random, random.random((runs, size)))
            above[:, night], squares[:, night] = values.sum(1), (values**2).sum(1)
    if case.night_effect or case.weekend_effect:
        mean = above.sum(1, keepdims=True) / sizes.sum()
        error = np.sqrt(np.maximum(squares.sum(1, keepdims=True) / sizes.sum() - mean**2, 0) * sizes)
        above += case.night_effect * error * random.standard_normal(above.shape)
        above -= case.weekend_effect * error * (np.arange(NIGHTS) % 7 >= 5)
    below = np.broadcast_to(sizes.astype(np.float64), above.shape)
    products = np.zeros((3, runs, NIGHTS, NIGHTS))
    diagonal = np.arange(NIGHTS)
    for matrix, values in zip(products, (squares, above, below), strict=True):
        matrix[:, diagonal, diagonal] = values
    return summed(above, below, products, below, below)


def _scenarios(case: Case, figure: Figure, random: Random, runs: int, count: int) -> NightSums:
    spread = np.broadcast_to(random.random((runs, 1, count, 1)), (runs, NIGHTS, count, case.trials))
    above = figure.draw(random, spread).sum(3)
    below = np.full(above.shape, float(case.trials))
    fresh = np.zeros((runs, NIGHTS))
    fresh[:, 0] = count
    return _of_clusters(above, below, np.full((runs, NIGHTS), float(count)), fresh)


def _users(case: Case, figure: Figure, random: Random, runs: int, size: int) -> NightSums:
    """Each user has a spell of about ten nights, and takes part as often as they are active."""
    activity = random.pareto(1.5, (runs, case.users)) + 0.2
    centre = random.uniform(-5, NIGHTS + 5, (runs, case.users))
    nights = np.arange(NIGHTS)
    near = np.abs(nights[:, None] - centre[:, None, :]) < 5
    weight = activity[:, None, :] * near
    total = np.cumsum(weight, axis=2)
    drawn = random.random((runs, NIGHTS, size)) * total[:, :, -1:]
    who = _chosen(drawn, total)
    spread = np.take_along_axis(
        np.broadcast_to(random.random((runs, 1, case.users)), (runs, NIGHTS, case.users)), who, axis=2
    )
    values = figure.draw(random, spread)
    cell = (np.arange(runs)[:, None, None] * NIGHTS + nights[:, None]) * case.users + who
    shape = (runs, NIGHTS, case.users)
    above = np.bincount(cell.ravel(), values.ravel(), minlength=math.prod(shape)).astype(np.float64).reshape(shape)
    below = np.bincount(cell.ravel(), minlength=math.prod(shape)).reshape(shape).astype(np.float64)
    first = np.argmax(below > 0, axis=1)
    fresh = np.stack([(first == night).sum(1) for night in range(NIGHTS)], axis=1).astype(np.float64)
    return _of_clusters(above, below, (below > 0).sum(2).astype(np.float64), fresh)


def _chosen(drawn: Floats, total: Floats) -> NDArray[np.int64]:
    who = np.empty(drawn.shape, dtype=np.int64)
    for run in range(len(drawn)):
        for night in range(NIGHTS):
            who[run, night] = np.searchsorted(total[run, night], drawn[run, night], side="right")
    return who


def _of_clusters(above: Floats, below: Floats, cells: Floats, fresh: Floats) -> NightSums:
    """From what each cluster adds to each night: axes are runs, nights, clusters."""
    pairs = ((above, above), (above, below), (below, below))
    products = np.stack([left @ np.swapaxes(right, 1, 2) for left, right in pairs])
    return summed(above.sum(2), below.sum(2), products, cells, fresh)


def first_named(
    sums: NightSums, level: float, versions: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The look, counted in nights, that first names a change, and the night that it names; `NEVER` for none."""
    runs = len(sums.above)
    look, night = np.full(runs, NEVER), np.full(runs, NEVER)
    for count in range(MIN_NIGHTS, NIGHTS + 1):
        found = evidence(sums.nights(0, count), versions[:count])
        fresh = (found.log >= -math.log(level)) & (look == NEVER)
        look[fresh] = count
        night[fresh] = found.at[fresh]
    return look, night


class Naive(NamedTuple):
    """When simple rules first see a change."""

    apart: NDArray[np.int64]
    """The 95 % intervals of a night and of the night before it do not overlap."""
    outside: NDArray[np.int64]
    """A night is more than three standard deviations from the mean of all nights before it."""


def naive(sums: NightSums) -> Naive:
    values = sums.above / sums.below
    variance = sums.squares[0] / sums.below - values**2
    reach = 1.96 * np.sqrt(np.maximum(variance, 0) / sums.below)
    apart = np.abs(np.diff(values, axis=1)) > reach[:, 1:] + reach[:, :-1]
    first_apart = np.where(apart.any(1), np.argmax(apart, axis=1) + 2, NEVER)
    outside = np.zeros(values.shape, dtype=np.bool_)
    for night in range(MIN_NIGHTS, NIGHTS):
        before = values[:, :night]
        outside[:, night] = np.abs(values[:, night] - before.mean(1)) > 3 * before.std(1, ddof=1)
    return Naive(first_apart, np.where(outside.any(1), np.argmax(outside, axis=1) + 1, NEVER))


def _chunks(case: Case, label: str, runs: int) -> Iterator[tuple[Random, int]]:
    random = seed("nights", case.name, label)
    for start in range(0, runs, CHUNK):
        yield random, min(CHUNK, runs - start)


def false_alarms(case: Case, runs: int) -> tuple[float, float, float]:
    """The share of runs in which a change is ever named in any of the eight figures: ours, and the two simple rules."""
    any_named = np.zeros((3, runs), dtype=np.bool_)
    start = 0
    for random, count in _chunks(case, "no change", runs):
        inside = slice(start, start + count)
        for figure in FIGURES:
            sums = family(case, figure, random, count)
            simple = naive(sums)
            level = LEVEL * figure.importance / IMPORTANCE
            for rule, look in enumerate((first_named(sums, level, VERSIONS)[0], simple.apart, simple.outside)):
                any_named[rule, inside] |= look < NEVER
        start += count
    shares = any_named.mean(1)
    return float(shares[0]), float(shares[1]), float(shares[2])


class Planted(NamedTuple):
    """A change of one figure of the eight, from one night on."""

    name: str
    size: int
    before: Callable[[Random, Floats], Floats]
    after: Callable[[Random, Floats], Floats]
    importance: int = 8
    with_version: bool = False
    """A new version came with it, as the logs say."""


PLANTED = (
    Planted("73 % to 67 %, 300 a night", 300, _share(0.73), _share(0.67), 10),
    Planted("the same with a new version", 300, _share(0.73), _share(0.67), 10, with_version=True),
    Planted("73 % to 67 %, 2,000 a night", 2_000, _share(0.73), _share(0.67), 10),
    Planted("73 % to 53 %, 50 a night", 50, _share(0.73), _share(0.53), 10),
    Planted("0.8 % to 4.3 %, 300 a night", 300, _share(0.008), _share(0.043)),
    Planted("99.5 % to 98 %, 300 a night", 300, _share(0.995), _share(0.98)),
    Planted("waits a fifth longer, 300 a night", 300, _wait(1.0), lambda r, s: 1.2 * _wait(1.0)(r, s)),
)


class Found(NamedTuple):
    """What a rule made of a planted change."""

    early: float
    """The share of runs in which a change was named before there was any."""
    found: float
    median_delay: float
    """Nights from the first one of the change to the look that names it, where it was found."""


class PlantedResult(NamedTuple):
    """What came of a planted change."""

    rules: list[Found]
    within_one: float
    """Of those that history found: the date is within one night of the true one."""
    within_three: float
    named_again: float
    """History names more than one change, though there was one."""


def planted(change: Planted, runs: int) -> PlantedResult:
    """The same nights by each rule."""
    looks: list[list[NDArray[np.int64]]] = [[], [], []]
    named: list[NDArray[np.int64]] = []
    again = 0
    case = Case(change.name, _equal(change.size))
    for random, count in _chunks(case, "change", runs):
        before = family(case, Figure("", 1, change.before), random, count)
        after = family(case, Figure("", 1, change.after), random, count)
        sums = _joined(before, after)
        versions = VERSIONS | (np.arange(NIGHTS) == CHANGE if change.with_version else False)
        look, night = first_named(sums, LEVEL * change.importance / IMPORTANCE, versions)
        simple = naive(sums)
        for kept, one in zip(looks, (look, simple.apart, simple.outside), strict=True):
            kept.append(one)
        named.append(np.where((look > CHANGE) & (look < NEVER), night, NEVER))
        level = LEVEL * change.importance / IMPORTANCE
        again += sum(len(find_changes(_one(sums, index), level, versions)) > 1 for index in range(count))
    found = []
    for rule in looks:
        look = np.concatenate(rule)
        seen = (look > CHANGE) & (look < NEVER)
        delay = float(np.median(look[seen] - CHANGE)) if seen.any() else math.nan
        found.append(Found(float(np.mean(look <= CHANGE)), float(np.mean(seen)), delay))
    nights = np.concatenate(named)
    nights = nights[nights < NEVER]
    off = abs(nights - CHANGE)
    return PlantedResult(found, float(np.mean(off <= 1)), float(np.mean(off <= 3)), again / runs)


def _one(sums: NightSums, run: int) -> NightSums:
    """The nights of one run of many."""
    return NightSums(
        sums.above[run], sums.below[run], sums.squares[:, run], sums.blocks[:, run], sums.cells[run], sums.fresh[run]
    )


def _joined(before: NightSums, after: NightSums) -> NightSums:
    """The first nights of one, the others of another. Conversations of their own each night: no products between."""
    late = np.arange(NIGHTS) >= CHANGE
    above, below = (np.where(late, getattr(after, name), getattr(before, name)) for name in ("above", "below"))
    products = np.zeros((3, *above.shape, NIGHTS))
    diagonal = np.arange(NIGHTS)
    products[:, :, diagonal, diagonal] = np.where(late, after.squares, before.squares)
    return summed(above, below, products, below, below)


def levels(case: Case, runs: int) -> tuple[float, float]:
    """How often the interval of the level holds it after all 60 nights, and at every look from the eighth on."""
    last, always = [], []
    for random, count in _chunks(case, "level", runs):
        state = random.bit_generator.state
        sums = family(case, FIGURES[0], random, count)
        truth = np.full(count, 0.7)
        if case.trials > 1:  # of these very scenarios: some are always yes, some always no
            random.bit_generator.state = state
            spread = random.random((count, 1, int(case.sizes(random)[0]), 1))[:, 0, :, 0]
            truth = math.sqrt(0.3) * (spread < 0.7).mean(1) + (1 - math.sqrt(0.3)) * 0.7
        held = np.ones((count, NIGHTS + 1), dtype=np.bool_)
        for nights in range(MIN_NIGHTS, NIGHTS + 1):
            some = sums.nights(0, nights)
            interval = level_of(some, *night_noise([some]), recurring=case.trials > 1)
            held[:, nights] = (interval.low <= truth) & (truth <= interval.high)
        last.append(held[:, -1])
        always.append(held.all(1))
    return float(np.concatenate(last).mean()), float(np.concatenate(always).mean())


def run(runs: int) -> None:
    """Print the tables."""
    error = 1.96 * math.sqrt(LEVEL * (1 - LEVEL) / runs)
    print(f"no change: runs of {NIGHTS} nights in which a change is ever named in any of {len(FIGURES)} figures")
    print(f"  {runs:,} runs each; at most 5 % wanted, ± {100 * error:.1f} by chance")
    print(f"  {'':48} history  intervals apart  3 sigma")
    for case in CASES:
        ours, apart, outside = false_alarms(case, runs)
        print(f"  {case.name:48} {100 * ours:5.1f} %  {100 * apart:13.1f} %  {100 * outside:5.1f} %")
    print(f"a change from night {CHANGE + 1} on: false before, found later, nights until it is (median)")
    print(f"  {'':35} {'history':>21} {'intervals apart':>21} {'3 sigma':>21}  date ± 1    ± 3  2 changes")
    for change in PLANTED:
        result = planted(change, runs)
        cells = " ".join(f"{100 * f.early:5.1f} % {100 * f.found:5.1f} % {f.median_delay:5.0f}" for f in result.rules)
        rates = (result.within_one, result.within_three, result.named_again)
        print(f"  {change.name:35} {cells}  {'  '.join(f'{100 * rate:5.1f} %' for rate in rates)}")
    print("the interval of the level, no change: holds it after 60 nights, holds it at every look from the eighth on")
    for case in (one for one in CASES if not one.weekend_effect):
        last, always = levels(case, runs)
        print(f"  {case.name:48} {100 * last:5.1f} %  {100 * always:5.1f} %")


if __name__ == "__main__":
    run(20)
