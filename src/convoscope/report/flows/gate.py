"""The gate, one line per flow, and the audit (flow-states, Gate and Audit)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from convoscope.analysis.flows.gate import FAILED, PASSED, AspectVerdict, Gate, GateVerdict
from convoscope.analysis.words import counted, short_name
from convoscope.harmless import one_line
from convoscope.report.flows.heading import StateQuestion, places, print_nothing
from convoscope.report.screen import Screen
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run

MAX_DISAGREEMENTS = 20
"""Disagreements that are printed one by one."""
_MAX_LINE = 1_000


def print_gate(screen: Screen, question: StateQuestion, baseline: Sequence[Run], verdict: Gate) -> None:
    """A verdict on each flow, then the one on all."""
    for flow in verdict.flows:
        screen.line(one_line(_verdict(flow), _MAX_LINE), _style(flow.outcome))
    if not verdict.flows:
        print_nothing(screen, question)
    counts = Counter(flow.outcome for flow in verdict.flows)
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(counts.items())) or "nothing to check"
    limits = f"floor {verdict.floor:g}, drop {verdict.drop:g}, least n {verdict.least:,}"
    where = f"{question.places} against {places(baseline)}"
    flows = counted(len(verdict.flows), "flow")
    screen.line(f"gate {verdict.outcome}: {flows}: {outcomes}; {limits}; {where}", _style(verdict.outcome))
    if any("no flow definition" in aspect.words for flow in verdict.flows for aspect in flow.aspects):
        screen.line(
            "  correctness needs the flow's definition (`score --flows`); or ask for `--aspect completion` alone"
        )
    for run in (*question.runs, *baseline):
        if not run.receipt.valid:
            screen.line(f"INVALID {run.folder}: {short_name(run.receipt.invalid_reason or '')}", "bold red")


def _style(outcome: str) -> str:
    return "green" if outcome == PASSED else "bold red" if outcome == FAILED else "yellow"


def _verdict(flow: GateVerdict) -> str:
    parts = [_aspect(aspect) for aspect in flow.aspects]
    if flow.excluded:
        parts.append(f"{counted(flow.excluded, 'conversation')} excluded")
    return f"{short_name(flow.flow)}: {flow.outcome}: {'; '.join([*parts, *flow.notes])}"


def _aspect(verdict: AspectVerdict) -> str:
    text = f"{verdict.aspect} {verdict.words}"
    if "too few" in verdict.words:
        return text
    counts = [f"{title}={n:,}" for title, n in (("n", verdict.n), ("baseline n", verdict.baseline_n)) if n]
    return f"{text} [{', '.join(counts)}]" if counts else text


def print_audit(screen: Screen, errors: Screen, runs: Sequence[Run], audits: Mapping[str, Audit]) -> None:
    """What the recount came to. A disagreement is an error: whatever is built on such a row is wrong."""
    left = MAX_DISAGREEMENTS
    for run in runs:
        audit = audits[run.name]
        checked = f"{counted(audit.rows, 'row')} of states, {counted(audit.conversations, 'conversation')}"
        if audit.holds:
            result = "the events bear out every one" if audit.rows else "there is nothing to recount"
            screen.line(f"{run.folder}: {checked}: {result}")
            continue
        screen.line(
            f"{run.folder}: {checked}: {counted(audit.disagreements, 'disagreement')} with the events", "bold red"
        )
        shown = audit.examples[:left]
        for disagreement in shown:
            errors.line(f"error: {one_line(str(run.folder))}: {one_line(str(disagreement))}", "red")
        left -= len(shown)
        if more := audit.disagreements - len(shown):
            errors.line(f"error: {one_line(str(run.folder))}: and {more:,} more", "red")
