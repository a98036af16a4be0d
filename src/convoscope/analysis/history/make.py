"""The history of runs, made once: nights, the figures over them, and what changed when and with which version."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Literal

import msgspec
import numpy as np

from convoscope.analysis.answer import metric_label, noun_of
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.history.levels import (
    LEAST_CONVERSATIONS,
    MIN_LEVEL,
    Series,
    by_version,
    changes_of,
    levels_of,
    series_of,
)
from convoscope.analysis.history.model import (
    Direction,
    FigureChange,
    FigureLevel,
    History,
    HistoryChange,
    HistoryFigure,
    HistoryNight,
    NightValue,
    NightWord,
)
from convoscope.analysis.history.nights import FoundNights, RunNight, find_nights
from convoscope.analysis.history.series import (
    FigureKey,
    NightData,
    NightReader,
    family,
    version_dimension,
)
from convoscope.analysis.history.words import breaks_of, day_text, make_changes, make_verdict
from convoscope.analysis.targets import Check, figure_name, run_checks, target_text
from convoscope.analysis.words import percent_text
from convoscope.errors import UsageError
from convoscope.judging.calibrations import NOT_CALIBRATED
from convoscope.metrics.declaration import HIGHER, NEITHER
from convoscope.runs.reliability import reliability
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.statistics.differences import Codes
from convoscope.statistics.sequences import LEVEL, MIN_NIGHTS, LevelChange, Marks
from convoscope.storage import as_path

NEW_SHARE = 0.05
"""Of the conversations of a night: from so many on, a version is there."""
OTHER_COVERAGE = 0.1
"""A share of conversations with a value that moved by so much is said."""


def make_history(
    runs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]], *, by: str = "", targets: Sequence[str] = ()
) -> History:
    """The figures of many runs over time. `runs` are folders of runs, or folders that hold runs.

    `by="day"` splits each run by the days on which its conversations began. `targets` come beside those that the last
    run was scored with.
    """
    if by not in ("", "day"):
        raise UsageError(f"a history is by run or by day, not by {by!r}", hint="--by day")
    given = [runs] if isinstance(runs, (str, os.PathLike)) else list(runs)
    paths = [as_path(one) for one in given]
    read = find_nights(paths, by_day=by == "day")
    last = read.nights[-1].run
    checks = {figure_name(one.figure): one for one in run_checks(last, targets) if not one.by}
    declared = family(_summaries(read.nights), list(checks))
    reader = NightReader(list(declared))
    nights = [reader.read(one) for one in read.nights]
    return _History(read, nights, declared, checks, noun_of(last), by).made(_title(paths))


def _summaries(nights: Sequence[RunNight]) -> list[Summary]:
    return list({one.run.folder: one.run.summary for one in nights}.values())


def _title(paths: Sequence[Path]) -> str:
    return Path(os.path.abspath(paths[0])).name if len(paths) == 1 else f"{len(paths)} folders"


class _History:
    """What is made of nights, step by step."""

    def __init__(
        self,
        read: FoundNights,
        data: Sequence[NightData],
        declared: dict[FigureKey, DeclaredMetric],
        checks: dict[str, Check],
        noun: Noun,
        by: str,
    ) -> None:
        self.read, self.data, self.declared, self.checks, self.noun = read, data, declared, checks, noun
        self.last: Run = read.nights[-1].run
        self.dates = [one.date for one in read.nights]
        self.dimension = version_dimension(data)
        self.nights = self._nights()
        self.word: NightWord = "day" if by else _word(self.dates)
        self.marked: Marks = np.array([bool(one.new_versions) for one in self.nights])
        """Nights with a new version, where the logs name versions."""
        self.is_long = sum(not one.few for one in self.nights) >= MIN_NIGHTS

    def made(self, title: str) -> History:
        series = {
            key: series_of(key, declared, self.data)
            for key, declared in self.declared.items()
            if any(key in one.figures for one in self.data)
        }
        importance = sum(one.declared.importance for one in series.values() if one.nights) or 1
        changes = {
            key: changes_of(one, LEVEL * one.declared.importance / importance, self.marked if self.dimension else None)
            for key, one in series.items()
        }
        changes = _aligned(changes, series, self.marked)
        figures = [self._figure(key, series[key], changes[key]) for key in series]
        figures.sort(key=lambda one: (not one.changes, -one.importance, -(one.change.night if one.change else 0)))
        moved = make_changes(figures, self.nights, self.noun, named=bool(self.dimension))
        events = sorted((*moved, *breaks_of(series, self.dates)), key=lambda one: -one.night)
        return History(
            noun=self.noun,
            word=self.word,
            title=title,
            verdict=make_verdict(figures, events, self.nights, self.noun, self.word, is_long=self.is_long),
            nights=self.nights,
            figures=tuple(figures),
            changes=tuple(events),
            looked_at=sum(bool(one.nights) for one in series.values()) if self.is_long else 0,
            missing=tuple(_missing(self.dates)) if self.word == "night" else (),
            left_out=tuple(self.read.left_out),
            notes=tuple(self._notes(series)),
            around=self._around(events),
        )

    def _nights(self) -> tuple[HistoryNight, ...]:
        nights: list[HistoryNight] = []
        before: dict[str, float] | None = None
        for night, data in zip(self.read.nights, self.data, strict=True):
            versions = {
                name: share for name, share in data.versions.get(self.dimension, {}).items() if share >= NEW_SHARE
            }
            few = night.conversations < LEAST_CONVERSATIONS
            new = () if before is None or few else tuple(name for name in versions if name not in before)
            nights.append(
                HistoryNight(
                    date=night.date,
                    run=str(night.run.folder),
                    conversations=night.conversations,
                    few=few,
                    dated_by="logs" if night.by_logs else "receipt",
                    versions=versions,
                    new_versions=new,
                )
            )
            before = before if few else versions
        return tuple(nights)

    def _figure(self, key: FigureKey, series: Series, changes: Sequence[LevelChange]) -> HistoryFigure:
        declared = series.declared
        levels: list[FigureLevel] = []
        if self.is_long and len(series.nights) >= MIN_LEVEL:
            levels = levels_of(series, [one.at for one in changes])
        doubtful = self._doubt(key)
        named = [
            FigureChange(
                night=one.at,
                date=self.dates[one.at],
                named=self.dates[one.named_at],
                before=before.value,
                now=now.value,
                direction="" if doubtful else _direction(declared, now.value - before.value),
                by_version=self._by_version(series, one.at),
            )
            for one, before, now in zip(changes, levels, levels[1:], strict=False)
        ]
        check = self.checks.get(key.name)
        broken_at = series.nights[0] if series.broken else None
        figure = HistoryFigure(
            name=key.name,
            label=_label(key, declared, self.noun),
            unit=declared.unit,
            better=declared.better,
            importance=declared.importance,
            nights=tuple(self._values(key, series)),
            levels=tuple(levels),
            changes=tuple(named),
            target=None if check is None else check.target,
            target_text="" if check is None else target_text(check.target, declared.unit),
            broken=f"{series.broken} changed {day_text(self.dates[broken_at])}" if broken_at is not None else "",
            broken_at=broken_at,
            remark=", ".join(filter(None, (doubtful, self._coverage(key, series, changes)))),
        )
        return figure if check is None else msgspec.structs.replace(figure, target_verdict=_verdict(figure, check))

    @cached_property
    def _version_names(self) -> list[str]:
        return sorted({name for one in self.nights for name in one.versions})

    @cached_property
    def _version_codes(self) -> list[Codes]:
        """For each night, the version of each conversation of its run."""
        codes: list[Codes] = []
        for data in self.data:
            dimension = data.version_rows.get(self.dimension)
            if dimension is None:
                codes.append(np.full(data.night.rows.shape, -1, dtype=np.int64))
            else:
                known = [
                    self._version_names.index(one) if one in self._version_names else -1 for one in dimension.values
                ]
                codes.append(np.array([*known, -1], dtype=np.int64)[dimension.codes])
        return codes

    def _by_version(self, series: Series, night: int) -> dict[str, tuple[float, float]]:
        """Whether a figure moved in each version: only where no version is new, and several are there."""
        if self.nights[night].new_versions or len(self._version_names) < 2:
            return {}
        values = by_version(series, night, self._version_codes)
        return {self._version_names[code]: (before, now) for code, before, now in values}

    def _values(self, key: FigureKey, series: Series) -> Iterable[NightValue | None]:
        for index, data in enumerate(self.data):
            figure = data.figures.get(key)
            if figure is None:
                yield None
                continue
            yield NightValue(
                value=figure.value,
                low=figure.interval.low if figure.interval else None,
                high=figure.interval.high if figure.interval else None,
                n=figure.n,
                conversations=figure.conversations,
                few=figure.conversations < LEAST_CONVERSATIONS,
                comparable=not series.broken or index >= series.nights[0],
            )

    def _doubt(self, key: FigureKey) -> str:
        """Why a figure is neither good nor bad: who judged it is not known to agree with people."""
        summary = self.last.summary
        figure = next((one for one in summary.figures if one.key == key.key and not one.reduction), None)
        judged = None if figure is None or self.last.trusts_judges else reliability(summary, figure)
        return NOT_CALIBRATED if judged is not None and not judged.is_reliable else ""

    def _coverage(self, key: FigureKey, series: Series, changes: Sequence[LevelChange]) -> str:
        """A figure may move because fewer conversations have a value; that is said."""
        if not changes:
            return ""
        shares: list[float] = []
        for is_after in (False, True):
            nights = [index for index in series.nights if (index >= changes[-1].at) is is_after]
            total = sum(self.nights[index].conversations for index in nights)
            shares.append(sum(self.data[index].figures[key].conversations for index in nights) / total)
        if abs(shares[1] - shares[0]) < OTHER_COVERAGE:
            return ""
        return f"known for {percent_text(shares[1])} of the {self.noun}s, was {percent_text(shares[0])}"

    def _notes(self, series: dict[FigureKey, Series]) -> Iterable[str]:
        yield from self.read.notes
        by_receipt = sum(not one.by_logs for one in self.read.nights)
        if by_receipt:
            which = (
                f"{by_receipt:,} of {len(self.dates):,} runs have" if by_receipt < len(self.dates) else "the logs have"
            )
            yield f"{which} no clocks: dated by when they were scored"
        if self.is_long and any(one.recurring for one in series.values()):
            most = max(len(set(one.data[0].clusters.tolist())) for one in series.values() if one.recurring)
            yield f"levels are those of the {most:,} scenarios that all {self.word}s share"

    def _around(self, events: Sequence[HistoryChange]) -> tuple[int, int]:
        counting = [index for index, one in enumerate(self.nights) if not one.few] or [0]
        at = next((one.night for one in events if one.kind == "level"), None)
        if at is None:
            return counting[0], counting[-1]
        return max(index for index in counting if index < at), at


def _label(key: FigureKey, declared: DeclaredMetric, noun: Noun) -> str:
    return metric_label(declared, noun) + {"p50": ", median", "p95": ", slowest 5 %"}.get(key.reduction, "")


def _direction(declared: DeclaredMetric, difference: float) -> Direction:
    if declared.better == NEITHER or not difference:
        return ""
    return "better" if (difference > 0) == (declared.better == HIGHER) else "worse"


def _verdict(figure: HistoryFigure, check: Check) -> Literal["", "met", "missed", "too close"]:
    """Whether the whole interval of the level lies on one side of the target."""
    level = figure.level
    if level is None:
        return ""
    met = check.target.is_met_by(level.value)
    ends = [end for end in (level.low, level.high) if end is not None]
    sure = len(ends) == 2 and all(check.target.is_met_by(end) == met for end in ends)
    return ("met" if met else "missed") if sure else "too close"


def _aligned(
    changes: dict[FigureKey, list[LevelChange]], series: dict[FigureKey, Series], marked: Marks
) -> dict[FigureKey, list[LevelChange]]:
    """Changes of several figures that may well be of one night are of one: dates are sure to a few nights.

    The night is one that is likely in the most important figures; one with a new version counts more.
    """
    open_ones = [(key, index) for key, own in changes.items() for index in range(len(own))]
    aligned = {key: list(own) for key, own in changes.items()}
    while open_ones:
        fitting = {
            night: [one for one in open_ones if _may_begin(night, *one, aligned, series)]
            for night in sorted({aligned[key][index].at for key, index in open_ones})
        }
        night = max(
            fitting,
            key=lambda at: sum(series[key].declared.importance for key, _ in fitting[at]) * (2 if marked[at] else 1),
        )
        for key, index in fitting[night]:
            aligned[key][index] = aligned[key][index]._replace(at=night)
        open_ones = [one for one in open_ones if one not in fitting[night]]
    return aligned


def _may_begin(
    night: int,
    key: FigureKey,
    index: int,
    changes: dict[FigureKey, list[LevelChange]],
    series: dict[FigureKey, Series],
) -> bool:
    """Whether a change may have begun at a night: likely enough, a night of the figure, between its other changes."""
    own = changes[key]
    before = own[index - 1].at if index else series[key].nights[0]
    after = own[index + 1].at if index + 1 < len(own) else series[key].nights[-1] + 1
    is_likely = own[index].earliest <= night <= own[index].latest
    return night == own[index].at or (is_likely and before < night < after and night in series[key].nights)


def _word(dates: Sequence[str]) -> NightWord:
    """Runs of one day each, about daily, are nights."""
    days = [date.fromisoformat(one) for one in dates]
    gaps = [(b - a).days for a, b in itertools.pairwise(days)]
    return "night" if gaps and min(gaps) > 0 and median(gaps) == 1 else "run"


def _missing(dates: Sequence[str]) -> Iterable[str]:
    day, last, known = date.fromisoformat(dates[0]), date.fromisoformat(dates[-1]), set(dates)
    while day < last:
        day += timedelta(days=1)
        if day.isoformat() not in known:
            yield day.isoformat()
