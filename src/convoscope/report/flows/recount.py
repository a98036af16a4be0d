"""The recount of states from the events of a run, for a terminal (flow-states, Audit)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from convoscope.analysis.words import counted
from convoscope.harmless import one_line
from convoscope.report.screen import Screen
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run

MAX_DISAGREEMENTS = 20
"""Disagreements that are printed one by one."""


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
