"""The first step of reduction: the subjects of conversations become one row per conversation and judge.

All conversations of a batch are reduced at once, as columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

import msgspec
import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from convoscope.conversation.lazy import cached_on_argument
from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import SHARE, Derived, Metric, TenPoints
from convoscope.scores.observation import (
    COMPUTED,
    MEASURED,
    STATUSES,
    Counts,
    Observation,
    Status,
)
from convoscope.statistics.intervals import are_whole
from convoscope.views.items import Subject

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CODE = {status: code for code, status in enumerate(STATUSES)}
_MEASURED, _NOT_APPLICABLE, _UNMEASURED, _ERROR = range(4)


class ConversationScore(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one metric, by one judge, says of one conversation, and the sums that group figures need."""

    judge: str
    status: Status
    value: float | None = None
    ten: float | None = None
    n: int = 0
    """Subjects measured."""
    total: float = 0.0
    """Sum of their values."""
    numerator: float = 0.0
    denominator: float = 0.0
    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    not_applicable: int = 0
    unmeasured: int = 0
    errors: int = 0
    reason: str = ""
    detail: str = ""


class Observed(NamedTuple):
    """What one metric observed. `row` is the conversation, ascending; NaN is where there is no number."""

    row: Codes
    subject: Sequence[Subject]
    status: NDArray[np.int8]
    """Index into STATUSES."""
    value: Floats
    numerator: Floats
    denominator: Floats
    reason: Sequence[str]
    detail: Sequence[str]
    details: Sequence[Mapping[str, Any] | None]
    judge: Sequence[str]
    repeat: Sequence[int]
    counts: Sequence[Counts | None] | None
    """What was counted, or None where nothing was: such scores are pooled, and not only averaged."""


class Reduced(NamedTuple):
    """What that comes to: one row for each conversation and judge. Without a number, NaN."""

    row: Codes
    judge: Sequence[str]
    status: NDArray[np.int8]
    value: Floats
    ten: Floats
    n: Codes
    total: Floats
    numerator: Floats
    denominator: Floats
    tp: Floats
    fp: Floats
    fn: Floats
    not_applicable: Codes
    unmeasured: Codes
    errors: Codes
    reason: Sequence[str]
    detail: Sequence[str]


def observed(rows: Sequence[int], observations: Sequence[Observation]) -> Observed:
    """Observations as columns."""
    columns = list(zip(*map(astuple, observations), strict=True)) or [()] * len(Observation.__struct_fields__)
    subject, status, value, numerator, denominator, counts, reason, detail, details, judge, repeat = columns
    codes = np.zeros(len(status), dtype=np.int8)
    if status.count(MEASURED) != len(status):
        codes[:] = [_CODE[name] for name in status]
    return Observed(
        np.array(rows, dtype=np.int64),
        subject,
        codes,
        _numbers(value),
        _numbers(numerator),
        _numbers(denominator),
        reason,
        detail,
        details,
        judge,
        repeat,
        None if counts.count(None) == len(counts) else counts,
    )


def _numbers(values: Sequence[float | None]) -> Floats:
    if values.count(None) == len(values):
        return np.full(len(values), np.nan)
    return np.array(values, dtype=np.float64)


def reduce_conversation(declared: Metric | Derived, observations: Sequence[Observation]) -> list[ConversationScore]:
    """One row per judge, in the order in which the judges appear, of one conversation."""
    return conversation_scores(reduced(declared, observed([0] * len(observations), observations), observations))


def conversation_scores(rows: Reduced) -> list[ConversationScore]:
    """The rows one by one."""
    columns = [column.tolist() if isinstance(column, np.ndarray) else column for column in rows[1:]]
    scores: list[ConversationScore] = []
    for judge, code, value, ten, *rest in zip(*columns, strict=True):
        numbers = [None if np.isnan(number) else number for number in (value, ten)]
        fields = dict(zip(Reduced._fields[1:], (judge, STATUSES[code], *numbers, *rest), strict=True))
        scores.append(ConversationScore(**fields))
    return scores


class _Demands(NamedTuple):
    """What the declared unit and reducers ask of each score."""

    share: bool
    ratio: bool
    counts: bool


@cached_on_argument
def demands_of(declared: Metric | Derived) -> _Demands | None:
    """What a declaration asks for; None where it asks for nothing."""
    also = declared.also.values() if isinstance(declared, Metric) else ()
    asks = {step.asks for step in (declared.reduce.within, declared.reduce.across, *also)}
    demands = _Demands(declared.unit == SHARE, "ratio" in asks, "counts" in asks)
    return demands if any(demands) else None


def _check_fit(declared: Metric | Derived, columns: Observed) -> None:
    """Scores must carry what the declared reducers will ask for."""
    demands = demands_of(declared)
    if demands is None:
        return
    is_measured = columns.status == _MEASURED
    values = columns.value[is_measured]
    if demands.share and len(outside := values[(values < 0) | (values > 1)]):
        raise DeclarationError(f"a share lies between 0 and 1, not at {outside[0].item()}")
    if demands.ratio and np.isnan(columns.denominator[is_measured]).any():
        raise DeclarationError("a ratio needs scores made with ratio()")
    counts = columns.counts or [None] * len(is_measured)
    if demands.counts and any(counts[index] is None for index in np.flatnonzero(is_measured).tolist()):
        raise DeclarationError("pooling counts needs scores made with counted()")


def reduced(declared: Metric | Derived, columns: Observed, observations: Sequence[Observation]) -> Reduced:
    """One row for each conversation and judge, from observations and their columns.

    Raises what does not fit the declaration, and what a reducer or a sum that no number can hold raises.
    """
    _check_fit(declared, columns)
    if columns.judge.count(COMPUTED) != len(columns.judge):
        groups: dict[tuple[int, str], int] = {}
        keys = zip(columns.row.tolist(), columns.judge, strict=True)
        group = np.array([groups.setdefault(key, len(groups)) for key in keys], dtype=np.int64)
        order = np.argsort(group, kind="stable").tolist()
        observations = [observations[index] for index in order]
        columns, group = observed(columns.row[order], observations), group[order]
    else:
        group = columns.row
    counts = np.zeros((3, len(group)))
    if columns.counts is not None:
        counts[:] = np.array([count or (0.0, 0.0, 0.0) for count in columns.counts]).T
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    if len(starts) == len(group):
        rows = _single(columns, counts)
    else:
        rows = _grouped(declared, columns, counts, starts, observations)
    return rows._replace(ten=_points(declared.ten, rows))


def _single(columns: Observed, counts: Floats) -> Reduced:
    """One subject for each conversation: every reducer gives its value back."""
    tp, fp, fn = counts
    return Reduced(
        row=columns.row,
        judge=columns.judge,
        status=columns.status,
        value=columns.value,
        ten=tp,
        n=(columns.status == _MEASURED).astype(np.int64),
        total=np.nan_to_num(columns.value),
        numerator=np.nan_to_num(columns.numerator),
        denominator=np.nan_to_num(columns.denominator),
        tp=tp,
        fp=fp,
        fn=fn,
        not_applicable=(columns.status == _NOT_APPLICABLE).astype(np.int64),
        unmeasured=(columns.status == _UNMEASURED).astype(np.int64),
        errors=(columns.status == _ERROR).astype(np.int64),
        reason=columns.reason,
        detail=columns.detail,
    )


def _grouped(
    declared: Metric | Derived, columns: Observed, counts: Floats, starts: Codes, observations: Sequence[Observation]
) -> Reduced:
    within = declared.reduce.within
    count = len(starts)
    sizes = np.diff(np.append(starts, len(columns.row)))
    tally = [np.add.reduceat(columns.status == code, starts, dtype=np.int64) for code in range(len(STATUSES))]
    n = tally[_MEASURED]
    if within.whole:
        n = np.where(tally[_UNMEASURED] + tally[_ERROR] > 0, 0, n)
    subjects = _Measured(columns, counts, starts, n)
    value = np.full(count, np.nan)
    if within.many is not None and len(subjects.groups):
        value[subjects.groups] = within.many(subjects)
    elif within.many is None:
        for index in subjects.groups.tolist():
            members = observations[starts[index] : starts[index] + sizes[index]]
            alone = within.reduce([member for member in members if member.status == MEASURED])
            value[index] = np.nan if alone is None else alone
    # One subject needs no reducing: every reducer gives its value back.
    single = sizes == 1
    value[single] = columns.value[starts[single]]
    status = np.zeros(count, dtype=np.int8)
    reason, detail = [""] * count, [""] * count
    _explain(columns, starts, sizes, np.flatnonzero(n == 0), tally, status, reason, detail)
    tp, fp, fn = map(subjects.spread, (subjects.tp, subjects.fp, subjects.fn))
    return Reduced(
        row=columns.row[starts],
        judge=[columns.judge[start] for start in starts.tolist()],
        status=status,
        value=value,
        ten=tp,
        n=n,
        total=subjects.spread(subjects.total),
        numerator=subjects.spread(subjects.numerator),
        denominator=subjects.spread(subjects.denominator),
        tp=tp,
        fp=fp,
        fn=fn,
        not_applicable=tally[_NOT_APPLICABLE],
        unmeasured=tally[_UNMEASURED],
        errors=tally[_ERROR],
        reason=reason,
        detail=detail,
    )


class _Measured:
    """The measured subjects of each conversation that has a value: what reducers are given."""

    def __init__(self, columns: Observed, counts: Floats, starts: Codes, n: Codes) -> None:
        self._count = len(n)
        self.groups = np.flatnonzero(n)
        is_measured = columns.status == _MEASURED
        sizes = np.diff(np.append(starts, len(columns.row)))
        if (n == 0).any():
            is_measured &= np.repeat(n > 0, sizes)
        self._mask = None if is_measured.all() else is_measured
        self.n = n[self.groups]
        self.ends = np.cumsum(self.n)
        self.starts = self.ends - self.n
        self.values = self._of(columns.value)
        self.total = self._sums(self.values)
        self.numerator = self._sums(self._of(columns.numerator))
        self.denominator = self._sums(self._of(columns.denominator))
        self.tp, self.fp, self.fn = (self._sums(self._of(column)) for column in counts)

    def _of(self, column: Floats) -> Floats:
        return column if self._mask is None else column[self._mask]

    def spread(self, sums: Floats) -> Floats:
        """Sums of the conversations that have a value, among zeros for the others."""
        whole = np.zeros(self._count)
        whole[self.groups] = sums
        return whole

    def _sums(self, values: Floats) -> Floats:
        """The exactly rounded sum of each conversation; what is no number is left out."""
        missing = np.isnan(values)
        if not len(values) or missing.all():
            return np.zeros(len(self.groups))
        if missing.any():
            values = np.where(missing, 0.0, values)
        if are_whole(values):
            return np.add.reduceat(values, self.starts).astype(np.float64)
        sums: Floats = values[self.starts]
        listed = values.tolist()
        several = np.flatnonzero(self.ends - self.starts > 1)
        pairs = zip(self.starts[several].tolist(), self.ends[several].tolist(), strict=True)
        sums[several] = [fsum(listed[start:end]) for start, end in pairs]
        return sums


def _explain(
    columns: Observed,
    starts: Codes,
    sizes: Codes,
    silent: Codes,
    tally: Sequence[Codes],
    status: NDArray[np.int8],
    reason: list[str],
    detail: list[str],
) -> None:
    """Say of each conversation without a value why: its gravest status, and that status's commonest reason."""
    for code in (_NOT_APPLICABLE, _UNMEASURED, _ERROR):
        status[silent[tally[code][silent] > 0]] = code
    reasons = columns.reason
    pairs = zip(silent.tolist(), starts[silent].tolist(), (starts + sizes)[silent].tolist(), strict=True)
    for group, start, end in pairs:
        commonest = reasons[start]
        if reasons[start:end].count(commonest) < end - start:
            grave = status[group]
            commonest = commonest_reason(
                reasons[index] for index in range(start, end) if columns.status[index] == grave
            )
        reason[group] = commonest
        detail[group] = columns.detail[reasons.index(commonest, start, end)]


def commonest_reason(reasons: Iterable[str]) -> str:
    """The reason that is given most often; of several, the first in the alphabet."""
    counts = Counter(reasons)
    return min(counts, key=lambda code: (-counts[code], code))


def ten_points(
    ten: TenPoints | None, value: float | None, numerator: float | None, denominator: float | None
) -> float | None:
    """The points that a value is worth, or the ratio behind it where the map is of that; None where it is missing."""
    if ten is None or value is None:
        return None
    if ten.of == "value":
        return ten.score(value)
    return ten.score(numerator / denominator) if numerator is not None and denominator else None


def _points(ten: TenPoints | None, rows: Reduced) -> Floats:
    """The points of each row, as `ten_points` gives them; NaN where they are missing."""
    nothing = np.full(len(rows.row), np.nan)
    if ten is None:
        return nothing
    value = rows.value
    with np.errstate(over="ignore"):  # what is beyond all numbers is beyond the map, too
        if ten.of == "ratio":
            value = np.divide(rows.numerator, rows.denominator, out=nothing, where=rows.denominator != 0)
            value[np.isnan(rows.value)] = np.nan
        share = (value - ten.zero) / (ten.ten - ten.zero)
        if ten.falls is not None:
            last, gone = ten.falls
            share = np.minimum(share, (gone - value) / (gone - last))
    points: Floats = 10 * np.minimum(1.0, np.maximum(0.0, share))
    return points
