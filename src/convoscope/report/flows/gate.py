"""The gate, one line per flow, and the audit (flow-states, Gate and Audit)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from convoscope.analysis.flows.gate import FAILED, PASSED, AspectVerdict, FlowVerdict, Gate
from convoscope.harmless import one_line
from convoscope.report.flows.heading import Asked, places, print_nothing
from convoscope.report.flows.numbers import name
from convoscope.report.screen import Screen
from convoscope.report.words import counted
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run

TOLD = 20
"""Disagreements that are told one by one."""
_MAX_LINE = 1_000


def print_gate(screen: Screen, asked: Asked, baseline: Sequence[Run], found: Gate) -> None:
    """A verdict on each flow, then the one on all."""
    for flow in found.flows:
        screen.line(one_line(_verdict(flow), _MAX_LINE), _style(flow.outcome))
    if not found.flows:
        print_nothing(screen, asked)
    counts = Counter(flow.outcome for flow in found.flows)
    told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items())) or "nothing to check"
    asks = f"floor {found.floor:g}, drop {found.drop:g}, least n {found.least:,}"
    where = f"{asked.places} against {places(baseline)}"
    screen.line(
        f"gate {found.outcome}: {counted(len(found.flows), 'flow')}: {told}; {asks}; {where}", _style(found.outcome)
    )
    if any("no flow definition" in one.words for flow in found.flows for one in flow.aspects):
        screen.line(
            "  correctness needs the flow's definition (`score --flows`); or ask for `--aspect completion` alone"
        )
    for run in (*asked.runs, *baseline):
        if not run.receipt.valid:
            screen.line(f"INVALID {run.folder}: {name(run.receipt.invalid_reason or '')}", "bold red")


def _style(outcome: str) -> str:
    return "green" if outcome == PASSED else "bold red" if outcome == FAILED else "yellow"


def _verdict(flow: FlowVerdict) -> str:
    parts = [_aspect(one) for one in flow.aspects]
    if flow.excluded:
        parts.append(f"{counted(flow.excluded, 'conversation')} excluded")
    return f"{name(flow.flow)}: {flow.outcome}: {'; '.join([*parts, *flow.notes])}"


def _aspect(one: AspectVerdict) -> str:
    if "too few" in one.words:
        return f"{one.aspect} {one.words}"
    counts = [*([f"n={one.n:,}"] if one.n else []), *([f"baseline n={one.baseline_n:,}"] if one.baseline_n else [])]
    return f"{one.aspect} {one.words}" + (f" [{', '.join(counts)}]" if counts else "")


def print_audit(screen: Screen, errors: Screen, runs: Sequence[Run], found: Mapping[str, Audit]) -> None:
    """What the recount came to. A disagreement is an error: whatever is built on such a row is wrong."""
    left = TOLD
    for run in runs:
        audit = found[run.name]
        looked = f"{counted(audit.rows, 'row')} of states, {counted(audit.conversations, 'conversation')}"
        if audit.holds:
            said = "the events bear out every one" if audit.rows else "there is nothing to recount"
            screen.line(f"{run.folder}: {looked}: {said}")
            continue
        screen.line(
            f"{run.folder}: {looked}: {counted(audit.disagreements, 'disagreement')} with the events", "bold red"
        )
        for one in audit.examples[:left]:
            errors.line(f"error: {one_line(str(run.folder))}: {one_line(str(one))}", "red")
        told = min(left, len(audit.examples))
        left -= told
        if audit.disagreements > told:
            errors.line(f"error: {one_line(str(run.folder))}: and {audit.disagreements - told:,} more", "red")
