"""One figure over its nights: which of them can be compared, where its level changed, and where it lies now."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from convoscope.analysis.history.model import FigureLevel
from convoscope.analysis.history.series import PERCENTILES, FigureKey, FigureNight, NightData
from convoscope.metrics.declaration import SHARE
from convoscope.runs.summary import DeclaredMetric
from convoscope.statistics.differences import Codes
from convoscope.statistics.intervals import percentile
from convoscope.statistics.sequences import (
    MIN_BEFORE,
    MIN_NIGHTS,
    LevelChange,
    Marks,
    NightSums,
    find_changes,
    level_of,
    night_noise,
    night_sums,
    not_seen,
)
from convoscope.statistics.summary import least_value

LEAST_CONVERSATIONS = 20
"""A night of fewer says too little: it is shown, and counts for nothing."""
LEAST_SHARED = 0.5
"""Of the conversations of a night, how many must be of scenarios that all nights have."""
MIN_LEVEL = MIN_BEFORE


class Series(NamedTuple):
    """A figure over the nights in which it is the same measure."""

    key: FigureKey
    declared: DeclaredMetric
    nights: list[int]
    """Those that count, by their index."""
    data: list[FigureNight]
    recurring: bool
    """The same scenarios come each night."""
    broken: str = ""
    """What changed before the first of them: `judge`, `metric`, `label`, `scenarios`."""
    former: str = ""
    """The judge before that."""

    def sums(self, limit: float | None = None) -> NightSums:
        """The figure as sums; of a percentile, the share of the values above a limit."""
        above = [one.above if limit is None else (one.above > limit).astype(np.float64) for one in self.data]
        night = np.repeat(np.arange(len(self.data)), [len(one.above) for one in self.data])
        below, clusters = (np.concatenate([getattr(one, name) for one in self.data]) for name in ("below", "clusters"))
        return night_sums(np.concatenate(above), below, clusters, night, len(self.data))

    def part(self, start: int, end: int) -> Series:
        return self._replace(nights=self.nights[start:end], data=self.data[start:end])

    def pooled(self) -> float:
        """The percentile of all values."""
        return percentile(np.concatenate([one.above for one in self.data]), PERCENTILES[self.key.reduction])


def series_of(key: FigureKey, declared: DeclaredMetric, nights: Sequence[NightData]) -> Series:
    """The nights that can be compared with the last one; empty where no night counts."""
    counted = [
        (index, one.figures[key])
        for index, one in enumerate(nights)
        if key in one.figures and one.figures[key].conversations >= LEAST_CONVERSATIONS
    ]
    if not counted:
        return Series(key, declared, [], [], recurring=False)
    last_index, last = counted[-1]
    kept: list[tuple[int, FigureNight]] = []
    broken = former = ""
    for index, figure in reversed(counted):
        broken = _difference(figure, last, nights[index], nights[last_index])
        if broken:
            former = figure.identity.judge
            break
        kept.insert(0, (index, figure))
    common = _common([nights[index] for index, _ in kept])
    data = [figure if common is None else _only(figure, common) for _, figure in kept]
    return Series(key, declared, [index for index, _ in kept], data, common is not None, broken, former)


def _difference(figure: FigureNight, last: FigureNight, night: NightData, last_night: NightData) -> str:
    """What makes a figure of one night another measure than that of another; nothing where it is the same."""
    a, b = figure.identity, last.identity
    if a.judge != b.judge:
        return "judge"
    if a.version != b.version:
        return "metric"
    if a.label != b.label:
        return "label"
    shared = night.scenarios.keys() & last_night.scenarios.keys()
    for side in (night, last_night):
        tried = sum(side.scenarios.values())
        if tried < LEAST_SHARED * side.night.conversations:
            return ""  # not a set of scenarios
        if sum(side.scenarios[code] for code in shared) < LEAST_SHARED * tried:
            return "scenarios"
    return ""


def _common(nights: Sequence[NightData]) -> set[int] | None:
    """The scenarios of all nights, where these are most of each; else all conversations count."""
    common = set(nights[0].scenarios)
    for night in nights[1:]:
        common &= night.scenarios.keys()
    fits = all(sum(one.scenarios[code] for code in common) >= LEAST_SHARED * one.night.conversations for one in nights)
    return common if common and fits else None


def _only(figure: FigureNight, common: set[int]) -> FigureNight:
    inside = np.isin(figure.clusters, np.fromiter(common, dtype=np.int64))
    return figure.at(inside) if inside.any() else figure


def changes_of(series: Series, level: float, marked: Marks | None) -> list[LevelChange]:
    """The changes by the index of their nights among all. `marked`: nights with a new version; None without any."""
    if len(series.data) < MIN_NIGHTS:
        return []
    # The limit is known before the first look, so that looking cannot choose it.
    limit = series.part(0, MIN_NIGHTS).pooled() if series.key.reduction else None
    changes = find_changes(series.sums(limit), level, None if marked is None else marked[series.nights])
    return [LevelChange(*(series.nights[night] for night in one)) for one in changes]


def levels_of(series: Series, starts: Sequence[int]) -> list[FigureLevel]:
    """The levels between changes, which begin at these nights."""
    edges = [0, *(series.nights.index(start) for start in starts), len(series.nights)]
    parts = [series.part(start, end) for start, end in itertools.pairwise(edges)]
    limits = [part.pooled() if part.key.reduction else None for part in parts]
    sums = [part.sums(limit) for part, limit in zip(parts, limits, strict=True)]
    variance, degrees = night_noise(sums)
    levels = []
    for part, limit, part_sums in zip(parts, limits, sums, strict=True):
        interval = level_of(part_sums, variance, degrees, recurring=part.recurring)
        value, low, high = (float(end) for end in interval)
        if limit is not None:
            value, low, high = _percentile(part, limit, high - value)
        elif part.declared.unit == SHARE:
            # What was never seen, or always, may still be otherwise.
            reach = max(high - value, _not_seen(part_sums, part.recurring))
            low, high = max(value - reach, 0.0), min(value + reach, 1.0)
        levels.append(
            FigureLevel(
                first=part.nights[0],
                last=part.nights[-1],
                value=value,
                low=_end(max(low, least_value(part.declared.unit))),
                high=_end(high),
                nights=len(part.nights),
            )
        )
    return levels


def by_version(series: Series, night: int, versions: Sequence[Codes]) -> Iterator[tuple[int, float, float]]:
    """Each version that both sides of a change have, with its values before and after; 20 conversations each at least.

    `versions`: for each night of all, the version of each conversation.
    """
    codes = [versions[index][one.numbers] for index, one in zip(series.nights, series.data, strict=True)]
    sides = [[at for at, index in enumerate(series.nights) if (index >= night) is after] for after in (False, True)]
    for version in sorted({int(code) for one in codes for code in np.unique(one)} - {-1}):
        values: list[float] = []
        for side in sides:
            parts = [series.data[at].at(codes[at] == version) for at in side]
            if sum(len(np.unique(one.numbers)) for one in parts) >= LEAST_CONVERSATIONS:
                values.append(_value(series, parts))
        if len(values) == 2:
            yield version, values[0], values[1]


def _value(series: Series, parts: Sequence[FigureNight]) -> float:
    above, below = (np.concatenate([getattr(one, name) for one in parts]) for name in ("above", "below"))
    if series.key.reduction:
        return percentile(above, PERCENTILES[series.key.reduction])
    return float(above.sum() / below.sum())


def _not_seen(sums: NightSums, recurring: bool) -> float:
    return not_seen(float(sums.cells.sum() if recurring else sums.fresh.sum()))


def _percentile(part: Series, value: float, reach: float) -> tuple[float, float, float]:
    """A percentile, and the values below and above which as many lie as the interval of its share allows."""
    values = np.concatenate([one.above for one in part.data])
    share = PERCENTILES[part.key.reduction] / 100
    low = percentile(values, 100 * (share - reach)) if share - reach > 0 else -math.inf
    high = percentile(values, 100 * (share + reach)) if share + reach < 1 else math.inf
    return value, low, high


def _end(value: float) -> float | None:
    return float(f"{value:.10g}") if math.isfinite(value) else None
