"""The gate: does a run hold what a baseline held, flow by flow? Passed, failed or undetermined (flow-states, Gate)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import msgspec

from convoscope.analysis.flows.flow_matrix import POINTS, Aspect, FlowFigures, flow_matrix_of
from convoscope.analysis.flows.state_table import FEW, Runlike, StateTable
from convoscope.errors import UsageError
from convoscope.runs.run import Run

Outcome = Literal["passed", "failed", "undetermined"]
PASSED: Outcome = "passed"
FAILED: Outcome = "failed"
UNDETERMINED: Outcome = "undetermined"

FLOOR = 6.0
DROP = 1.0
COVERAGE = 0.8
"""Of the conversations that could have a value, so many must have one; and so many must not have broken."""
ASPECTS = ("correctness", "completion")


class AspectVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One aspect of one flow, against the floor and against the baseline."""

    aspect: str
    outcome: Outcome
    score: float | None
    n: int
    baseline: float | None
    baseline_n: int
    words: str


class GateVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One flow: failed where an aspect failed, undetermined where one cannot be told, else passed."""

    flow: str
    outcome: Outcome
    aspects: tuple[AspectVerdict, ...]
    excluded: int
    notes: tuple[str, ...]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says: of each flow, and of all."""

    outcome: Outcome
    flows: tuple[GateVerdict, ...]
    floor: float
    drop: float
    least: int
    """Conversations that a verdict needs."""


def gate(
    source: StateTable,
    baseline: Sequence[Runlike],
    *,
    floor: float = FLOOR,
    drop: float = DROP,
    least: int = FEW,
    aspects: Sequence[str] = ASPECTS,
) -> Gate:
    """Compare the runs with a baseline, on computed aspects only: the same input gives the same verdict."""
    for name in aspects:
        if name not in POINTS:
            raise UsageError(f"{name!r} cannot be gated", hint=f"aspects: {', '.join(POINTS)}")
    if not (math.isfinite(floor) and math.isfinite(drop)) or drop < 0 or least < 1:
        raise UsageError("floor and drop must be numbers, drop at least 0, and least at least 1")
    if not aspects:
        raise UsageError("no aspect to check", hint=f"aspects: {', '.join(POINTS)}")
    before = StateTable(baseline, agent=source.agent)
    now, then = _by_flow(source), _by_flow(before)
    names = [name for name in sorted({*now, *then}) if source.flow in (None, name)]
    flows = tuple(
        _flow_verdict(name, now.get(name), then.get(name), aspects, floor, drop, least, _notes(name, source, before))
        for name in names
    )
    outcome = _worst([one.outcome for one in flows])
    if _invalid(source, before) and outcome == PASSED:
        outcome = UNDETERMINED
    return Gate(outcome=outcome, flows=flows, floor=floor, drop=drop, least=least)


def _by_flow(source: StateTable) -> dict[str, FlowFigures]:
    with source.ask() as connection:
        return {row.flow: row for row in flow_matrix_of(connection, source, ("flow",)).rows}


def _notes(name: str, source: StateTable, before: StateTable) -> tuple[str, ...]:
    notes = [f"run {run.name} is invalid: {run.receipt.invalid_reason}" for run in _invalid(source, before)]
    if source.flows.get(name) != before.flows.get(name):
        notes.append("the definition of the flow is not the one of the baseline")
    return tuple(notes)


def _invalid(*sources: StateTable) -> list[Run]:
    return [run for source in sources for run in source.runs if not run.receipt.valid]


def _flow_verdict(
    name: str,
    now: FlowFigures | None,
    then: FlowFigures | None,
    aspects: Sequence[str],
    floor: float,
    drop: float,
    least: int,
    notes: tuple[str, ...],
) -> GateVerdict:
    verdicts = tuple(_aspect_verdict(aspect, now, then, floor, drop, least) for aspect in aspects)
    return GateVerdict(
        flow=name,
        outcome=_worst([one.outcome for one in verdicts]),
        aspects=verdicts,
        excluded=now.excluded if now else 0,
        notes=notes,
    )


def _of(figures: FlowFigures | None, aspect: str) -> Aspect | None:
    found: Aspect | None = None if figures is None else getattr(figures, aspect)
    return found


def _aspect_verdict(
    aspect: str, figures: FlowFigures | None, before: FlowFigures | None, floor: float, drop: float, least: int
) -> AspectVerdict:
    now, then = _of(figures, aspect), _of(before, aspect)
    outcome, words = _judge(figures, before, aspect, floor, drop, least)
    return AspectVerdict(
        aspect=aspect,
        outcome=outcome,
        score=now.score if now else None,
        n=now.n if now else 0,
        baseline=then.score if then else None,
        baseline_n=then.n if then else 0,
        words=words,
    )


def _judge(
    figures: FlowFigures | None, before: FlowFigures | None, aspect: str, floor: float, drop: float, least: int
) -> tuple[Outcome, str]:
    now, then = _of(figures, aspect), _of(before, aspect)
    if figures is None or now is None:
        return UNDETERMINED, "no conversation of this flow in the run"
    if now.score is None or (words := _untold(figures, now, least)):
        return UNDETERMINED, words if now.score is not None else f"not measured: {now.reason.replace('_', ' ')}"
    # Means of points are sums of floats: 6.0, or a drop of exactly 1.0, must not fail by its last digit.
    if round(now.score, 9) < floor:
        return FAILED, f"{_points(now.score)} is below the floor of {floor:g}"
    if then is None:
        return PASSED, f"{_points(now.score)} is not below the floor of {floor:g}; the baseline has no such flow"
    if then.score is None:
        return UNDETERMINED, f"{_points(now.score)}; not measured in the baseline: {then.reason.replace('_', ' ')}"
    if before is None or (words := _untold(before, then, least)):
        return UNDETERMINED, f"baseline {words}"
    down = then.score - now.score
    if round(down, 9) > drop:
        return FAILED, f"{_points(now.score)}, down {_points(down)} from {_points(then.score)} (allowed {drop:g})"
    return PASSED, f"{_points(now.score)}, baseline {_points(then.score)}"


def _untold(figures: FlowFigures, now: Aspect, least: int) -> str:
    """Why a figure allows no verdict: too few, or so many left out that the rest speaks for itself alone; else ""."""
    if now.n < least:
        return f"n={now.n}: too few to conclude (least {least})"
    every = now.n + now.unmeasured
    if now.n < COVERAGE * every:
        return f"measured in {now.n:,} of {every:,} conversations only"
    called = figures.n + figures.excluded
    return f"{figures.excluded:,} of {called:,} conversations are excluded" if figures.n < COVERAGE * called else ""


def _points(score: float) -> str:
    """Two digits: 5.96 is not 6.0 where 6 is the floor."""
    return f"{score:.2f}"


def _worst(outcomes: Sequence[Outcome]) -> Outcome:
    """A failure weighs more than one that nobody can tell; nothing to check is undetermined."""
    for one in (FAILED, UNDETERMINED):
        if one in outcomes:
            return one
    return PASSED if outcomes else UNDETERMINED
