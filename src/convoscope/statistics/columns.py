"""Observations of a batch of conversations as columns, and the first step of reduction over them.

What `within.reduce_conversation` does for one conversation is done here for all of a batch at once, with the
same results to the last bit. Whatever is out of the ordinary (judges, pooled counts, scores that do not fit
their reducer) is left to that function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import fsum
from operator import attrgetter
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.declaration import Derived, Metric, TenPoints
from convoscope.metrics.reduction import LAST, MAXIMUM, MEAN, MEDIAN, MINIMUM, RATIO, SUM
from convoscope.metrics.score import COMPUTED, STATUSES, Observation, Subject
from convoscope.statistics.within import ConversationScore, commonest_reason, demands_of

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

_CODE = {status: code for code, status in enumerate(STATUSES)}
_MEASURED, _NOT_APPLICABLE, _UNMEASURED, _ERROR = range(4)
_FIELDS = attrgetter(
    "subject", "status", "value", "numerator", "denominator", "counts", "reason", "detail", "details", "judge", "repeat"
)


class Observed(NamedTuple):
    """What one metric observed. `row` is the conversation, ascending; NaN stands where there is no number."""

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
    has_counts: bool
    """Whether any of it was counted: such scores are pooled, and not only averaged."""


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
    subject, status, value, numerator, denominator, counts, reason, detail, details, judge, repeat = zip(
        *map(_FIELDS, observations), strict=True
    )
    return Observed(
        np.array(rows, dtype=np.int64),
        subject,
        np.fromiter(map(_CODE.__getitem__, status), dtype=np.int8, count=len(status)),
        np.array(value, dtype=np.float64),
        np.array(numerator, dtype=np.float64),
        np.array(denominator, dtype=np.float64),
        reason,
        detail,
        details,
        judge,
        repeat,
        counts.count(None) != len(counts),
    )


def reduced(declared: Metric | Derived, columns: Observed) -> Reduced | None:
    """One row for each conversation; None where this is a case for `reduce_conversation`."""
    if not _is_regular(declared, columns):
        return None
    starts = np.flatnonzero(np.diff(columns.row, prepend=-1))
    try:
        found = _single(columns) if len(starts) == len(columns.row) else _grouped(declared, columns, starts)
    except (ArithmeticError, ValueError):  # sums that no number can hold
        return None
    return found._replace(ten=ten_points(declared.ten, found))


def _is_regular(declared: Metric | Derived, columns: Observed) -> bool:
    if declared.reduce.within not in _WITHIN or columns.has_counts:
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
    count = len(starts)
    ends = np.append(starts[1:], len(columns.row)).tolist()
    tally = [np.add.reduceat(columns.status == code, starts, dtype=np.int64) for code in range(len(STATUSES))]
    n = tally[_MEASURED]
    none = np.zeros(count)
    value, total = np.full(count, np.nan), np.zeros(count)
    numerator, denominator = np.zeros(count), np.zeros(count)
    status = np.zeros(count, dtype=np.int8)
    reason, detail = [""] * count, [""] * count
    within = _WITHIN[declared.reduce.within]
    statuses, values = columns.status.tolist(), columns.value.tolist()
    above, below = columns.numerator.tolist(), columns.denominator.tolist()
    has_ratio = not np.isnan(columns.denominator).all()
    for group, (start, end, here) in enumerate(zip(starts.tolist(), ends, n.tolist(), strict=True)):
        if not here:
            gravest = next(code for code in (_ERROR, _UNMEASURED, _NOT_APPLICABLE) if tally[code][group])
            status[group] = gravest
            reason[group] = commonest_reason(
                columns.reason[place] for place in range(start, end) if statuses[place] == gravest
            )
            detail[group] = columns.detail[columns.reason.index(reason[group], start, end)]
            continue
        mine = values[start:end]
        tops, bottoms = (above[start:end], below[start:end]) if has_ratio else ((), ())
        if here < end - start:
            places = [place for place, code in enumerate(statuses[start:end]) if code == _MEASURED]
            mine = [mine[place] for place in places]
            tops, bottoms = ([column[place] for place in places] if column else () for column in (tops, bottoms))
        total[group] = fsum(mine)
        if has_ratio:
            numerator[group], denominator[group] = _sum(tops), _sum(bottoms)
        if end - start == 1:
            value[group] = mine[0]
        else:
            value[group] = numerator[group] / denominator[group] if within is None else within(mine)
    return Reduced(
        row=columns.row[starts],
        judge=[COMPUTED] * count,
        status=status,
        value=value,
        ten=none,
        n=n,
        total=total,
        numerator=numerator,
        denominator=denominator,
        tp=none,
        fp=none,
        fn=none,
        not_applicable=tally[_NOT_APPLICABLE],
        unmeasured=tally[_UNMEASURED],
        errors=tally[_ERROR],
        reason=reason,
        detail=detail,
    )


def _sum(values: Sequence[float]) -> float:
    """Of those that are numbers."""
    return fsum(value for value in values if value == value)  # noqa: PLR0124 - NaN is not itself


_WITHIN: dict[str, Callable[[list[float]], float] | None] = {
    MEAN: lambda values: fsum(values) / len(values),
    SUM: fsum,
    RATIO: None,
    MEDIAN: median,
    MAXIMUM: max,
    MINIMUM: min,
    LAST: lambda values: values[-1],
}
"""The reducers of `within.WITHIN` but the pooled counts, over the values of one conversation; a ratio is of sums."""


def ten_points(ten: TenPoints | None, found: Reduced) -> Floats:
    """The points of each row, as `TenPoints.score` gives them; NaN where there are none."""
    nothing = np.full(len(found.row), np.nan)
    if ten is None:
        return nothing
    value = found.value
    with np.errstate(over="ignore"):  # what is beyond all numbers is beyond the map, too
        if ten.of == "ratio":
            value = np.divide(found.numerator, found.denominator, out=nothing, where=found.denominator != 0)
            value[np.isnan(found.value)] = np.nan
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
