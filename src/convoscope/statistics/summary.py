"""Figures: what a metric says of a group of conversations, how sure that is, and what was left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.declaration import (
    COUNT,
    HIGHER,
    LOWER,
    RATIO,
    SECONDS,
    SHARE,
    WORDS,
    Better,
    Derived,
    GroupSample,
    Metric,
)
from convoscope.metrics.registry import whole_metrics
from convoscope.scores.observation import COMPUTED, ERROR, MEASURED, NOT_APPLICABLE, STATUSES, UNMEASURED, Status
from convoscope.scores.reducers import (
    MAXIMUM_OF_SUBJECTS,
    MEAN,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    RATIO_OF_REPORTED,
    RATIO_OF_SUMS,
    Across,
    AcrossReported,
    Percentile,
    Sums,
)
from convoscope.statistics.intervals import (
    Codes,
    Columns,
    Floats,
    Interval,
    percentile,
    percentile_interval,
    ratio_interval,
    ratio_of,
    total,
)
from convoscope.statistics.within import ten_points


class Figure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One number of a summary, or the reason why it is missing. Samples are conversations."""

    metric: str
    variant: str = ""
    reduction: str = ""
    """Empty for the headline; p95, precision, macro for what accompanies it."""
    judge: str = COMPUTED
    unit: str
    better: Better
    status: Status = MEASURED
    value: float | None
    ten: float | None = None
    reason: str = ""
    detail: str = ""
    coverage: float | None
    """measured ÷ (total − not applicable); None where nothing was applicable."""
    samples_total: int
    samples_measured: int
    samples_skipped: int = 0
    samples_not_applicable: int = 0
    """Of those skipped, the ones without an opportunity."""
    skipped_reasons: dict[str, int] = {}
    n: int
    """Subjects measured: turns, calls, states, items."""
    subjects_skipped: int = 0
    """Subjects of measured conversations that have no value."""
    subject_coverage: float = 1.0
    """Of the turns, calls or items that should have a value, the share that has one."""
    bounds: tuple[float, float] | None = None
    """The least and the greatest value that those without one allow; None where none is, or it is unknown."""
    interval: Interval | None = None
    interval_reason: str = ""

    @property
    def key(self) -> str:
        """The metric with its variant."""
        return f"{self.metric}@{self.variant}" if self.variant else self.metric

    def __post_init__(self) -> None:
        if (self.status == MEASURED) != (self.value is not None):
            raise ValueError("a figure has a value when it is measured, and only then")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a figure is a finite number, not {self.value}")
        if self.status != MEASURED and not self.reason:
            raise ValueError("a figure without a value needs a reason")
        if self.samples_measured + self.samples_skipped != self.samples_total:
            raise ValueError("measured and skipped samples must add up")
        if sum(self.skipped_reasons.values()) != self.samples_skipped:
            raise ValueError("each skipped sample needs its reason")

    @property
    def has_gaps(self) -> bool:
        """Whether measured conversations have turns, calls or items that should have a value and have none."""
        return self.coverage is not None and self.subject_coverage < min(self.coverage, 1.0)


class Subjects(NamedTuple):
    """The values of all measured subjects, pooled, each with the row of its conversation."""

    value: Floats
    row: Codes


class Table(NamedTuple):
    """What one metric, by one judge, says of every conversation, in the order of their ids."""

    status: NDArray[np.int8]
    """Index into STATUSES."""
    reason: NDArray[np.int32]
    """Index into `reasons`; -1 where measured."""
    reasons: Sequence[str]
    columns: Columns
    skipped: Floats
    """Subjects without a value, of measured conversations."""
    missing: Floats
    """Of these, and of conversations without any value, the ones that had an opportunity."""
    clusters: Codes
    subjects: Callable[[], Subjects]


def figures(declared: Metric | Derived, judge: str, table: Table, rows: NDArray[np.bool_]) -> Iterator[Figure]:
    """The headline and what is declared with it, over the conversations of `rows`."""
    steps = {"": declared.reduce.across, **(declared.also if isinstance(declared, Metric) else {})}
    frame = _Frame(declared, judge, table, rows)
    for name, across in steps.items():
        try:
            yield from list(frame.reduced(name, across))
        except (ArithmeticError, ValueError) as error:
            yield frame.failed(name, f"{type(error).__name__}: {error}")


def is_bounded(unit: str, better: Better, sums: Sums) -> bool:
    """Whether all values lie between 0 and 1: shares do, and ratios of which more is better and none is above 1."""
    if unit == SHARE:
        return True
    is_score = unit == RATIO and better == HIGHER
    return is_score and bool(np.all(sums.above >= 0) and np.all(sums.above <= sums.below))


def least_value(unit: str) -> float:
    """The least value that a unit has: there is no wait of less than no time, and no quality below 1 of 5."""
    return _SCALES[unit][0] if unit in _SCALES else 0.0 if unit in _NEVER_NEGATIVE else -math.inf


def most_value(unit: str) -> float:
    """The greatest value that a unit has: the end of its scale."""
    return _SCALES[unit][1] if unit in _SCALES else math.inf


_NEVER_NEGATIVE = frozenset(
    {SHARE, RATIO, COUNT, SECONDS, WORDS, "ms", "tokens", "errors per word", "Hz", "per minute", "turns"}
)
_SCALES = {"of 5": (1.0, 5.0), "of 10": (0.0, 10.0)}


class _Frame:
    """One metric over one group: what all its reductions have in common."""

    def __init__(self, declared: Metric | Derived, judge: str, table: Table, rows: NDArray[np.bool_]) -> None:
        self.declared, self.judge, self.table = declared, judge, table
        status = table.status[rows]
        self.measured = rows & (table.status == STATUSES.index(MEASURED))
        self.columns = table.columns.at(self.measured)
        self.clusters = table.clusters[self.measured]
        self.total = int(rows.sum())
        self.count = int((status == STATUSES.index(MEASURED)).sum())
        self.not_applicable = int((status == STATUSES.index(NOT_APPLICABLE)).sum())
        self.reasons = _tally(table.reason[rows & ~self.measured], table.reasons)
        self.n = int(total(self.columns.n))
        self.subjects_skipped = int(total(table.skipped[self.measured]))
        self.missing = table.missing[rows]
        missing = int(total(self.missing))
        self.subject_coverage = self.n / (self.n + missing) if missing else 1.0
        self.why = _why(table, rows)

    def reduced(self, name: str, across: Across | Percentile) -> Iterator[Figure]:
        if isinstance(across, Percentile):
            yield self._percentile(name, across)
            return
        # Only what the reducer says that it combines.
        for sums in across.sums(SimpleNamespace(**{name: getattr(self.columns, name) for name in across.combines})):
            bounds = self._bounds(across, sums)
            full_name = " ".join(part for part in (name, sums.name) if part)
            if isinstance(across, AcrossReported) and self._is_one_sided(sums):
                yield self._empty(full_name, UNMEASURED, across.one_sided)
            else:
                yield self._ratio(full_name, sums, bounds)

    def _is_one_sided(self, sums: Sums) -> bool:
        """Whether failures were measured, and no fewer subjects do not say: what went well may be among those."""
        above, below = total(sums.above), total(sums.below)
        went_wrong = above > 0 if self.declared.better == LOWER else above < below
        return went_wrong and total(self.missing) >= self.n

    def failed(self, name: str, detail: str) -> Figure:
        """Values that cannot be reduced, such as a sum that no double can hold."""
        return self._make(name, status=ERROR, value=None, reason="reduction_failed", detail=detail)

    def _bounds(self, across: Across, sums: Sums) -> tuple[float, float] | None:
        """What the figure would be if all that is missing were 0, or 1. Only of means that count each subject once."""
        missing = self.missing
        if not missing.any() or not self.count or not self._is_bounded(sums):
            return None
        if across in (RATIO_OF_SUMS, RATIO_OF_REPORTED, MEAN_OF_SUBJECTS) and total(sums.below) == self.n:
            least, all_missing = total(sums.above), total(missing)
            return least / (self.n + all_missing), (least + all_missing) / (self.n + all_missing)
        if across == MEAN_OF_CONVERSATIONS and self.declared.reduce.within == MEAN:
            inside = self.table.missing[self.measured]
            share = self.columns.n / (self.columns.n + inside)
            without = int(np.sum(missing > 0)) - int(np.sum(inside > 0))
            least, rest = total(sums.above * share), total(1 - share) + without
            return least / (self.count + without), (least + rest) / (self.count + without)
        return None

    def _ratio(self, name: str, sums: Sums, bounds: tuple[float, float] | None) -> Figure:
        if not self.count:
            return self._empty(name, *self.why)
        value = ratio_of(sums)
        if value is None:
            return self._empty(name, NOT_APPLICABLE, sums.empty)
        least, most = least_value(self.declared.unit), most_value(self.declared.unit)
        is_bounded = self._is_bounded(sums)
        interval = ratio_interval(sums, self.clusters, bounded=is_bounded, least=least, most=most, value=value)
        return self._figure(name, value, interval, self._no_interval("no_spread"), bounds)

    def _is_bounded(self, sums: Sums) -> bool:
        return is_bounded(self.declared.unit, self.declared.better, sums)

    def _no_interval(self, reason: str) -> str:
        """Why a figure has no interval, where it has none."""
        return "one_cluster" if np.all(self.clusters == self.clusters[0]) else reason

    def _percentile(self, name: str, across: Percentile) -> Figure:
        if not self.count:
            return self._empty(name, *self.why)
        values, clusters = self._pooled
        if across == MAXIMUM_OF_SUBJECTS:
            # What could still come lies above it, and no resampling of what came can say how far.
            return self._figure(name, float(values.max()), None, "extreme_value")
        interval = percentile_interval(values, clusters, across.q)
        return self._figure(name, percentile(values, across.q), interval, self._no_interval("too_few_values"))

    @cached_property
    def _pooled(self) -> tuple[Floats, Codes]:
        """The values of all subjects, and their clusters."""
        subjects = self.table.subjects()
        selected = self.measured[subjects.row]
        return subjects.value[selected], self.table.clusters[subjects.row[selected]]

    def _figure(
        self,
        name: str,
        value: float,
        interval: Interval | None,
        bare: str,
        bounds: tuple[float, float] | None = None,
    ) -> Figure:
        ten = None
        if self.declared.ten is not None and not name:
            ten = ten_points(self.declared.ten, value, total(self.columns.numerator), total(self.columns.denominator))
        return self._make(
            name,
            status=MEASURED,
            value=value,
            ten=ten,
            interval=interval,
            interval_reason="" if interval else bare,
            bounds=bounds,
        )

    def _empty(self, name: str, status: Status, reason: str) -> Figure:
        return self._make(name, status=status, value=None, reason=reason)

    def _make(
        self,
        name: str,
        *,
        status: Status,
        value: float | None,
        ten: float | None = None,
        reason: str = "",
        detail: str = "",
        interval: Interval | None = None,
        interval_reason: str = "",
        bounds: tuple[float, float] | None = None,
    ) -> Figure:
        applicable = self.total - self.not_applicable
        return Figure(
            metric=self.declared.name,
            variant=self.declared.variant,
            reduction=name,
            judge=self.judge,
            unit=self.declared.unit,
            better=self.declared.better,
            status=status,
            value=value,
            ten=ten,
            reason=reason,
            detail=detail,
            coverage=self.count / applicable if applicable else None,
            samples_total=self.total,
            samples_measured=self.count,
            samples_skipped=self.total - self.count,
            samples_not_applicable=self.not_applicable,
            skipped_reasons=self.reasons,
            n=self.n,
            subjects_skipped=self.subjects_skipped,
            subject_coverage=self.subject_coverage,
            interval=interval,
            interval_reason=interval_reason,
            bounds=bounds,
        )


Given = list[GroupSample] | float
"""What a figure over a group gets of one input: its samples, or the value of another group figure."""


def input_reason(reason: str) -> str:
    """Why a derived figure has no value: what its input lacks, however far down that is."""
    return reason if reason.startswith("input_") else f"input_{reason}"


def derived_figure(declared: Derived, inputs: Sequence[tuple[Figure, Given]]) -> Figure:
    """A figure over a group, from its inputs; null when an input is.

    The function gives one number, or one per scenario: then their mean is the figure, the scenarios
    are its samples, and one without a number is counted as skipped.
    """
    for figure, _ in inputs:
        if figure.value is None:
            status = NOT_APPLICABLE if figure.status == NOT_APPLICABLE else UNMEASURED
            return _derived(declared, {"": None}, (status, input_reason(figure.reason)))
    try:
        result = declared.function(*(given for _, given in inputs))
        values = dict(result) if isinstance(result, Mapping) else {"": result}
        if not all(value is None or isinstance(value, int | float) for value in values.values()):
            raise TypeError(f"{declared.key} gave something that is no number")
        if not values or all(value is None for value in values.values()):
            return _derived(declared, values or {"": None}, (UNMEASURED, declared.unscored))
        return _derived(declared, values)
    except (Exception, SystemExit) as error:  # whatever it raises, or gives that is no number, is its result
        return _derived(declared, {"": None}, (ERROR, "metric_raised"), f"{type(error).__name__}: {error}")


def _derived(
    declared: Derived,
    values: Mapping[str, float | None],
    why: tuple[Status, str] | None = None,
    detail: str = "",
) -> Figure:
    status, reason = why or (MEASURED, "")
    scored = np.array([values[name] for name in sorted(values) if values[name] is not None], dtype=np.float64)
    sums = Sums("", scored, np.ones_like(scored))
    value = ratio_of(sums) if why is None else None
    interval = None
    if len(scored) > 1:
        clusters = np.arange(len(scored), dtype=np.int64)
        bounded = is_bounded(declared.unit, declared.better, sums)
        least, most = least_value(declared.unit), most_value(declared.unit)
        interval = ratio_interval(sums, clusters, bounded=bounded, least=least, most=most)
    skipped = len(values) - len(scored)
    inapplicable = skipped if status == NOT_APPLICABLE else 0
    return Figure(
        metric=declared.name,
        variant=declared.variant,
        judge="(derived)",
        unit=declared.unit,
        better=declared.better,
        status=status,
        value=value,
        ten=declared.ten.score(value) if declared.ten and value is not None else None,
        reason=reason,
        detail=detail,
        coverage=len(scored) / (len(values) - inapplicable) if len(values) > inapplicable else None,
        samples_total=len(values),
        samples_measured=len(scored),
        samples_skipped=skipped,
        samples_not_applicable=inapplicable,
        skipped_reasons={reason or declared.unscored: skipped} if skipped else {},
        n=len(scored),
        interval=interval,
        interval_reason="" if interval or why else "one_cluster" if len(scored) < 2 else "no_spread",
    )


def _tally(codes: NDArray[np.int32], names: Sequence[str]) -> dict[str, int]:
    counts = Counter[str]()
    for code, count in enumerate(np.bincount(codes, minlength=len(names)).tolist() if len(codes) else ()):
        counts[names[code]] += count
    return _by_number(counts)


def _why(table: Table, rows: NDArray[np.bool_]) -> tuple[Status, str]:
    """Why a group without a single value has none: its gravest status, and that status's commonest reason."""
    if not rows.any():
        return UNMEASURED, "no_conversations"
    for status in (ERROR, UNMEASURED, NOT_APPLICABLE):
        affected = rows & (table.status == STATUSES.index(status))
        if affected.any():
            return status, next(iter(_tally(table.reason[affected], table.reasons)))
    return NOT_APPLICABLE, "nothing_to_observe"


T = TypeVar("T")


def whole_reasons(keys: Iterable[str], measured: Container[str], absent: Mapping[str, T]) -> dict[str, T | None]:
    """The metrics that these keys are of, each with why it has no value; None where it or a variant of it has one.

    `absent` says why, by key: a metric has its own reason, or else that of its first variant.
    """
    of = {key.partition("@")[0]: reason for key, reason in reversed([*absent.items()])}
    of |= {key: reason for key, reason in absent.items() if "@" not in key}
    return {name: None if name in measured else of.get(name) for name in whole_metrics(keys)}


def why_absent(absences: Iterable[tuple[Status, str, int]]) -> tuple[Status, str]:
    """Why there is no value: of what so many conversations say instead, the gravest status and its commonest reason."""
    seen: dict[Status, Counter[str]] = {}
    for status, code, count in absences:
        seen.setdefault(status, Counter())[code] += count
    for grave in (ERROR, UNMEASURED, NOT_APPLICABLE):
        if grave in seen and seen[grave].total():
            return grave, next(iter(_by_number(seen[grave])))
    return UNMEASURED, "no_conversations"


def absent_figure(declared: Metric | Derived, absences: Sequence[tuple[Status, str, int]]) -> Figure:
    """The figure of a metric that looked at no conversation, from how many say what instead of it."""
    total = sum(count for _, _, count in absences)
    status, reason = why_absent(absences)
    inapplicable = sum(count for other, _, count in absences if other == NOT_APPLICABLE)
    reasons = Counter[str]()
    for _, code, count in absences:
        reasons[code] += count
    return Figure(
        metric=declared.name,
        variant=declared.variant,
        judge=COMPUTED,
        unit=declared.unit,
        better=declared.better,
        status=status,
        value=None,
        reason=reason,
        coverage=0.0 if total > inapplicable else None,
        samples_total=total,
        samples_measured=0,
        samples_skipped=total,
        samples_not_applicable=inapplicable,
        skipped_reasons=_by_number(reasons),
        n=0,
    )


def _by_number(counts: Counter[str]) -> dict[str, int]:
    """Most first, then by letters; without empty ones."""
    return {name: counts[name] for name in sorted(counts, key=lambda name: (-counts[name], name)) if counts[name]}
