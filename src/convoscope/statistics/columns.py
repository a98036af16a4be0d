"""Observations of a batch of conversations as columns, and the first step of reduction over them.

What `within.reduce_conversation` does for one conversation is done here for all of a batch at once, with the
same results to the last bit. Whatever is out of the ordinary (judges, pooled counts, scores that do not fit
their reducer) is left to that function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import astuple
from numpy.typing import NDArray

from convoscope.metrics.declaration import Derived, Metric, TenPoints
from convoscope.scores.observation import COMPUTED, MEASURED, STATUSES, Counts, Observation
from convoscope.statistics.intervals import are_whole
from convoscope.statistics.within import ConversationScore, commonest_reason, demands_of
from convoscope.views.items import Subject

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CODE = {status: code for code, status in enumerate(STATUSES)}
_MEASURED, _NOT_APPLICABLE, _UNMEASURED, _ERROR = range(4)


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
        codes[:] = [_CODE[one] for one in status]
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


def reduced(declared: Metric | Derived, columns: Observed) -> Reduced | None:
    """One row for each conversation; None where this is a case for `reduce_conversation`."""
    if not _is_regular(declared, columns):
        return None
    starts = np.flatnonzero(np.diff(columns.row, prepend=-1))
    try:
        rows = _single(columns) if len(starts) == len(columns.row) else _grouped(declared, columns, starts)
    except (ArithmeticError, ValueError):  # sums that no number can hold
        return None
    return rows._replace(ten=ten_points(declared.ten, rows))


def _is_regular(declared: Metric | Derived, columns: Observed) -> bool:
    if declared.reduce.within.many is None or columns.counts is not None:
        return False
    if columns.judge.count(COMPUTED) != len(columns.judge):
        return False
    demands = demands_of(declared)
    if demands is None:
        return True
    if demands.counts:
        return False
    measured = columns.status == _MEASURED
    if demands.ratio and np.isnan(columns.denominator[measured]).any():
        return False
    values = columns.value[measured]
    return not (demands.share and ((values < 0) | (values > 1)).any())


def _single(columns: Observed) -> Reduced:
    """One subject for each conversation: every reducer gives its value back."""
    none = np.zeros(len(columns.row))
    measured = columns.status == _MEASURED
    return Reduced(
        row=columns.row,
        judge=columns.judge,
        status=columns.status,
        value=columns.value,
        ten=none,
        n=measured.astype(np.int64),
        total=np.nan_to_num(columns.value),
        numerator=np.nan_to_num(columns.numerator),
        denominator=np.nan_to_num(columns.denominator),
        tp=none,
        fp=none,
        fn=none,
        not_applicable=(columns.status == _NOT_APPLICABLE).astype(np.int64),
        unmeasured=(columns.status == _UNMEASURED).astype(np.int64),
        errors=(columns.status == _ERROR).astype(np.int64),
        reason=columns.reason,
        detail=columns.detail,
    )


def _grouped(declared: Metric | Derived, columns: Observed, starts: Codes) -> Reduced:
    within = declared.reduce.within
    count = len(starts)
    sizes = np.diff(np.append(starts, len(columns.row)))
    tally = [np.add.reduceat(columns.status == code, starts, dtype=np.int64) for code in range(len(STATUSES))]
    n = tally[_MEASURED]
    if within.whole:
        n = np.where(tally[_UNMEASURED] + tally[_ERROR] > 0, 0, n)
    measured_rows = _Measured(columns, starts, n)
    value = np.full(count, np.nan)
    if within.many is not None and len(measured_rows.groups):
        value[measured_rows.groups] = within.many(measured_rows)
    # One subject needs no reducing: every reducer gives its value back.
    single = sizes == 1
    value[single] = columns.value[starts[single]]
    status = np.zeros(count, dtype=np.int8)
    reason, detail = [""] * count, [""] * count
    _explain(columns, starts, sizes, np.flatnonzero(n == 0), tally, status, reason, detail)
    none = np.zeros(count)
    return Reduced(
        row=columns.row[starts],
        judge=[COMPUTED] * count,
        status=status,
        value=value,
        ten=none,
        n=n,
        total=measured_rows.spread(measured_rows.total),
        numerator=measured_rows.spread(measured_rows.numerator),
        denominator=measured_rows.spread(measured_rows.denominator),
        tp=none,
        fp=none,
        fn=none,
        not_applicable=tally[_NOT_APPLICABLE],
        unmeasured=tally[_UNMEASURED],
        errors=tally[_ERROR],
        reason=reason,
        detail=detail,
    )


class _Measured:
    """The measured subjects of each conversation that has a value: what reducers are given."""

    def __init__(self, columns: Observed, starts: Codes, n: Codes) -> None:
        self._count = len(n)
        self.groups = np.flatnonzero(n)
        measured = columns.status == _MEASURED
        sizes = np.diff(np.append(starts, len(columns.row)))
        if (n == 0).any():
            measured &= np.repeat(n > 0, sizes)
        self._mask = None if measured.all() else measured
        self.n = n[self.groups]
        self.ends = np.cumsum(self.n)
        self.starts = self.ends - self.n
        self.values = self._of(columns.value)
        self.total = self._sums(self.values)
        self.numerator = self._sums(self._of(columns.numerator))
        self.denominator = self._sums(self._of(columns.denominator))

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


def ten_points(ten: TenPoints | None, rows: Reduced) -> Floats:
    """The points of each row, as `TenPoints.score` gives them; NaN where they are missing."""
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


def from_scores(rows: Sequence[int], scores: Sequence[ConversationScore]) -> Reduced:
    """What `reduce_conversation` gave, as columns."""

    def floats(name: str) -> Floats:
        return np.array([getattr(score, name) for score in scores], dtype=np.float64)

    def counts(name: str) -> Codes:
        return np.array([getattr(score, name) for score in scores], dtype=np.int64)

    return Reduced(
        row=np.array(rows, dtype=np.int64),
        judge=[score.judge for score in scores],
        status=np.array([_CODE[score.status] for score in scores], dtype=np.int8),
        value=floats("value"),
        ten=floats("ten"),
        n=counts("n"),
        total=floats("total"),
        numerator=floats("numerator"),
        denominator=floats("denominator"),
        tp=floats("tp"),
        fp=floats("fp"),
        fn=floats("fn"),
        not_applicable=counts("not_applicable"),
        unmeasured=counts("unmeasured"),
        errors=counts("errors"),
        reason=[score.reason for score in scores],
        detail=[score.detail for score in scores],
    )
