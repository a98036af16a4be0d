"""The gate of flows: does a run hold what a baseline held, flow by flow (flow-states, Gate)?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from convoscope.analysis.flows.flow_matrix import POINTS, Aspect, FlowFigures, flow_matrix_of
from convoscope.analysis.flows.state_table import FEW, Runlike, StateTable
from convoscope.analysis.gate import GateFigure, Limit, NotWorse, Outcome, Rule, evaluate, overall
from convoscope.errors import UsageError
from convoscope.metrics.declaration import Target
from convoscope.runs.run import Run

FLOOR = 6.0
DROP = 1.0
COVERAGE = 0.8
"""Of the conversations that could have a value, so many must have one; and so many must not have broken."""
ASPECTS = ("correctness", "completion")


class AspectVerdict(msgspec.Struct, frozen=True, kw_only=True, rename={"reason": "words"}):
    """One aspect of one flow, against the floor and against the baseline."""

    aspect: str
    outcome: Outcome
    score: float | None
    n: int
    baseline: float | None
    baseline_n: int
    reason: str


class FlowVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One flow: the verdicts on its aspects, and what they come to."""

    flow: str
    outcome: Outcome
    aspects: tuple[AspectVerdict, ...]
    excluded: int
    notes: tuple[str, ...]


class FlowGate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says: of each flow, and of all."""

    outcome: Outcome
    flows: tuple[FlowVerdict, ...]
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
) -> FlowGate:
    """Compare the runs with a baseline, on computed aspects only: the same input gives the same verdict."""
    for name in aspects:
        if name not in POINTS:
            raise UsageError(f"{name!r} cannot be gated", hint=f"aspects: {', '.join(POINTS)}")
    if not (math.isfinite(floor) and math.isfinite(drop)) or drop < 0 or least < 1:
        raise UsageError("floor and drop must be numbers, drop at least 0, and least at least 1")
    if not aspects:
        raise UsageError("no aspect to check", hint=f"aspects: {', '.join(POINTS)}")
    before = StateTable(baseline, agent=source.agent)
    invalid = [run for table in (source, before) for run in table.runs if not run.receipt.valid]
    now, then = _by_flow(source), _by_flow(before)
    flows = []
    for name in sorted({*now, *then}):
        if source.flow not in (None, name):
            continue
        figures, earlier = now.get(name), then.get(name)
        verdicts = tuple(aspect_verdict(aspect, figures, earlier, floor, drop, least) for aspect in aspects)
        flows.append(
            FlowVerdict(
                flow=name,
                outcome=overall(verdict.outcome for verdict in verdicts),
                aspects=verdicts,
                excluded=figures.excluded if figures else 0,
                notes=_notes(name, source, before, invalid),
            )
        )
    outcome = overall((flow.outcome for flow in flows), can_pass=not invalid)
    return FlowGate(outcome=outcome, flows=tuple(flows), floor=floor, drop=drop, least=least)


def _by_flow(source: StateTable) -> dict[str, FlowFigures]:
    with source.ask() as connection:
        return {row.flow: row for row in flow_matrix_of(connection, source, ("flow",)).rows}


def _notes(name: str, source: StateTable, before: StateTable, invalid: Sequence[Run]) -> tuple[str, ...]:
    notes = [f"run {run.name} is invalid: {run.receipt.invalid_reason}" for run in invalid]
    if source.flows.get(name) != before.flows.get(name):
        notes.append("the definition of the flow is not the one of the baseline")
    return tuple(notes)


def aspect_verdict(
    name: str, figures: FlowFigures | None, before: FlowFigures | None, floor: float, drop: float, least: int
) -> AspectVerdict:
    """One aspect of a flow: not below the floor, and not below the baseline by more than is allowed."""
    now: Aspect | None = getattr(figures, name, None)
    then: Aspect | None = getattr(before, name, None)
    rules: list[Rule] = [Limit(Target(">=", floor), "floor")]
    if before is not None:
        rules.append(NotWorse(_gate_figure(before, then, least), drop))
    verdict = evaluate(_gate_figure(figures, now, least), *rules)
    reason = verdict.reason
    if verdict.outcome == "passed" and before is None:
        reason += "; the baseline has no such flow"
    return AspectVerdict(
        aspect=name,
        outcome=verdict.outcome,
        score=now.score if now else None,
        n=now.n if now else 0,
        baseline=then.score if then else None,
        baseline_n=then.n if then else 0,
        reason=reason,
    )


def _gate_figure(figures: FlowFigures | None, aspect: Aspect | None, least: int) -> GateFigure:
    """In doubt where too few have a value, or so many are left out that the rest speaks for itself alone."""
    if figures is None or aspect is None:
        return GateFigure(None, "no conversation of this flow in the run")
    if aspect.score is None:
        return GateFigure(None, f"not measured: {aspect.reason.replace('_', ' ')}")
    possible, called = aspect.n + aspect.unmeasured, figures.n + figures.excluded
    doubt = ""
    if aspect.n < least:
        doubt = f"n={aspect.n}: too few to conclude (least {least})"
    elif aspect.n < COVERAGE * possible:
        doubt = f"measured in {aspect.n:,} of {possible:,} conversations only"
    elif figures.n < COVERAGE * called:
        doubt = f"{figures.excluded:,} of {called:,} conversations are excluded"
    # Means of points are sums of floats: 6.0, or a drop of exactly 1.0, must not fail by its last digit.
    return GateFigure(round(aspect.score, 9), doubt, digits=2)
