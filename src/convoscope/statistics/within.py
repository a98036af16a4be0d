"""The first step of reduction: the subjects of one conversation become one row per judge."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from typing import NamedTuple

import msgspec

from convoscope.conversation.lazy import cached_on_argument
from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import SHARE, Derived, Metric, TenPoints
from convoscope.scores.observation import ERROR, MEASURED, NOT_APPLICABLE, UNMEASURED, Counts, Observation, Status
from convoscope.scores.reducers import pooled


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


def reduce_conversation(declared: Metric | Derived, observations: Sequence[Observation]) -> list[ConversationScore]:
    """One row per judge, in the order in which the judges appear."""
    _check_fit(declared, observations)
    if len(observations) == 1:
        return [_single(declared.ten, observations[0])]
    by_judge: dict[str, list[Observation]] = {}
    for one in observations:
        by_judge.setdefault(one.judge, []).append(one)
    return [_reduce(declared, judge, mine) for judge, mine in by_judge.items()]


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


def _check_fit(declared: Metric | Derived, observations: Sequence[Observation]) -> None:
    """Scores must carry what the declared reducers will ask for."""
    demands = demands_of(declared)
    if demands is None:
        return
    for one in observations:
        if one.status != MEASURED:
            continue
        if demands.share and one.value is not None and not 0 <= one.value <= 1:
            raise DeclarationError(f"a share lies between 0 and 1, not at {one.value}")
        if demands.ratio and one.denominator is None:
            raise DeclarationError("a ratio needs scores made with ratio()")
        if demands.counts and one.counts is None:
            raise DeclarationError("pooling counts needs scores made with counted()")


def _single(ten: TenPoints | None, one: Observation) -> ConversationScore:
    """One subject needs no reducing: every reducer gives its value back."""
    if one.status != MEASURED or one.value is None:
        return _nothing(one.judge, [one])
    points = None if ten is None else ten_points(ten, one.value, one.numerator, one.denominator)
    if one.denominator is None and one.counts is None:
        return ConversationScore(judge=one.judge, status=MEASURED, value=one.value, ten=points, n=1, total=one.value)
    counts = one.counts or _NO_COUNTS
    return ConversationScore(
        judge=one.judge,
        status=MEASURED,
        value=one.value,
        ten=points,
        n=1,
        total=one.value,
        numerator=one.numerator or 0.0,
        denominator=one.denominator or 0.0,
        tp=counts.tp,
        fp=counts.fp,
        fn=counts.fn,
    )


_NO_COUNTS = Counts(0.0, 0.0, 0.0)


def ten_points(
    ten: TenPoints | None, value: float | None, numerator: float | None, denominator: float | None
) -> float | None:
    """The points that a value is worth, or the ratio behind it where the map is of that; None where there is none."""
    if ten is None or value is None:
        return None
    if ten.of == "value":
        return ten.score(value)
    return ten.score(numerator / denominator) if numerator is not None and denominator else None


def _reduce(declared: Metric | Derived, judge: str, observations: list[Observation]) -> ConversationScore:
    measured = [one for one in observations if one.status == MEASURED]
    within = declared.reduce.within
    if not measured or (within.whole and any(one.status in (UNMEASURED, ERROR) for one in observations)):
        return _nothing(judge, observations)
    value = within.one(measured)
    counts = pooled(measured) if measured[0].counts is not None else _NO_COUNTS
    tally = Counter(one.status for one in observations) if len(measured) < len(observations) else Counter[Status]()
    numerator = fsum(one.numerator for one in measured if one.numerator is not None)
    denominator = fsum(one.denominator for one in measured if one.denominator is not None)
    return ConversationScore(
        judge=judge,
        status=MEASURED,
        value=value,
        ten=ten_points(declared.ten, value, numerator, denominator),
        n=len(measured),
        total=fsum(one.value for one in measured if one.value is not None),
        numerator=numerator,
        denominator=denominator,
        tp=counts.tp,
        fp=counts.fp,
        fn=counts.fn,
        not_applicable=tally[NOT_APPLICABLE],
        unmeasured=tally[UNMEASURED],
        errors=tally[ERROR],
    )


def _nothing(judge: str, observations: list[Observation]) -> ConversationScore:
    """There is no value: the gravest status of the subjects, and its commonest reason."""
    tally = Counter(one.status for one in observations)
    status = next(one for one in (ERROR, UNMEASURED, NOT_APPLICABLE) if tally[one])
    reason = commonest_reason(one.reason for one in observations if one.status == status)
    return ConversationScore(
        judge=judge,
        status=status,
        not_applicable=tally[NOT_APPLICABLE],
        unmeasured=tally[UNMEASURED],
        errors=tally[ERROR],
        reason=reason,
        detail=next(one.detail for one in observations if one.reason == reason),
    )


def commonest_reason(reasons: Iterable[str]) -> str:
    """The reason that is given most often; of several, the first by its letters."""
    counts = Counter(reasons)
    return min(counts, key=lambda code: (-counts[code], code))
