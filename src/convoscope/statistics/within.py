"""The first step of reduction: the subjects of one conversation become one row per judge, and one of the panel."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from math import fsum
from statistics import median
from typing import NamedTuple

import msgspec

from convoscope.conversation.lazy import cached_on_argument
from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import SHARE, Derived, Metric, TenPoints
from convoscope.scores.observation import (
    COMPUTED,
    ERROR,
    MEASURED,
    NOT_APPLICABLE,
    UNMEASURED,
    Counts,
    Observation,
    Status,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.scores.reducers import pooled
from convoscope.views.items import Subject


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
    for observation in observations:
        by_judge.setdefault(observation.judge, []).append(observation)
    return [_reduce(declared, judge, observations) for judge, observations in by_judge.items()]


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
    for observation in observations:
        if observation.status != MEASURED:
            continue
        if demands.share and observation.value is not None and not 0 <= observation.value <= 1:
            raise DeclarationError(f"a share lies between 0 and 1, not at {observation.value}")
        if demands.ratio and observation.denominator is None:
            raise DeclarationError("a ratio needs scores made with ratio()")
        if demands.counts and observation.counts is None:
            raise DeclarationError("pooling counts needs scores made with counted()")


def _single(ten: TenPoints | None, observation: Observation) -> ConversationScore:
    """One subject needs no reducing: every reducer gives its value back."""
    if observation.status != MEASURED or observation.value is None:
        return _nothing(observation.judge, [observation])
    points = None if ten is None else ten_points(ten, observation.value, observation.numerator, observation.denominator)
    if observation.denominator is None and observation.counts is None:
        return ConversationScore(
            judge=observation.judge, status=MEASURED, value=observation.value, ten=points, n=1, total=observation.value
        )
    counts = observation.counts or _NO_COUNTS
    return ConversationScore(
        judge=observation.judge,
        status=MEASURED,
        value=observation.value,
        ten=points,
        n=1,
        total=observation.value,
        numerator=observation.numerator or 0.0,
        denominator=observation.denominator or 0.0,
        tp=counts.tp,
        fp=counts.fp,
        fn=counts.fn,
    )


_NO_COUNTS = Counts(0.0, 0.0, 0.0)


def ten_points(
    ten: TenPoints | None, value: float | None, numerator: float | None, denominator: float | None
) -> float | None:
    """The points that a value is worth, or the ratio behind it where the map is of that; None where it is missing."""
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
    value = within.reduce(measured)
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


def panel_name(judges: Sequence[str]) -> str:
    """`panel:` and a hash of who sits on it."""
    return "panel:" + hashlib.sha256("\n".join(sorted(judges)).encode()).hexdigest()[:12]


def panel(observations: Sequence[Observation]) -> list[Observation]:
    """The panel's score of each subject; empty where fewer than two judges spoke.

    A judge that was asked several times speaks with the mean of its answers. Where a judge has no
    value for a subject, the panel has none either. What was not judged (a turn without an
    opportunity) makes no judge.
    """
    judges = sorted({one.judge for one in observations if one.judge != COMPUTED})
    if len(judges) < 2:
        return []
    name = panel_name(judges)
    values_of: dict[Subject, dict[str, list[float]]] = {}
    passed: dict[Subject, str] = {}
    refused: set[Subject] = set()
    for observation in observations:
        voices = values_of.setdefault(observation.subject, {})
        if observation.status == MEASURED and observation.value is not None and observation.judge != COMPUTED:
            voices.setdefault(observation.judge, []).append(observation.value)
        elif observation.status == NOT_APPLICABLE:
            passed.setdefault(observation.subject, observation.reason)
        else:
            refused.add(observation.subject)
    scores: list[Observation] = []
    for subject, voices in values_of.items():
        silent = [judge for judge in judges if judge not in voices]
        if not voices and subject in passed and subject not in refused:
            scores.append(not_applicable(subject, passed[subject], judge=name))
        elif silent:
            scores.append(unmeasured(subject, "judge_missing", ", ".join(silent), judge=name))
        else:
            verdicts = [fsum(values) / len(values) for values in voices.values()]
            details = {"judges": len(verdicts), "spread": max(verdicts) - min(verdicts)}
            scores.append(measured(subject, median(verdicts), judge=name, details=details))
    return scores
