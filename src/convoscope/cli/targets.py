"""What a run comes to, for the commands that make or show one: its files, and the exit code of every gate."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

if TYPE_CHECKING:
    from convoscope.analysis.gate import Outcome
    from convoscope.analysis.policy import HeldRun
    from convoscope.runs.run import Run

FAILED = 1


class ReportFiles(NamedTuple):
    """Where a user wants reports in addition to the page."""

    junit: Path | None = None
    markdown: Path | None = None

    def check(self, *others: Path | None) -> None:
        """Refuse what cannot be written, before anything else is done."""
        from convoscope.report.files import check_files

        check_files(self.junit, self.markdown, *others)

    def write(self, run: Run, held: HeldRun) -> None:
        if self.junit is not None:
            from convoscope.report.junit import write_junit

            write_junit(run, self.junit, held.targets, held.gate)
        if self.markdown is not None:
            from convoscope.report.run_markdown import write_markdown

            write_markdown(run, self.markdown, held.targets, held.gate)


def exit_with(outcome: Outcome) -> None:
    """End the command with what a gate came to: 0 passed, 1 failed, 3 undetermined."""
    from convoscope.analysis.gate import EXIT_CODES

    if code := EXIT_CODES[outcome]:
        raise typer.Exit(code)


def exit_by(run: Run, held: HeldRun) -> None:
    """End the command with what the user's targets and policy came to.

    A target that a metric declares is shown, not required.
    """
    from convoscope.analysis.gate import overall
    from convoscope.analysis.targets import DECLARED
    from convoscope.report.screen import Screen

    if run.receipt.audit.get("disagreements"):
        screen = Screen(sys.stderr)
        screen.line(f"error: {run.receipt.invalid_reason}")
        screen.line(f"  the run is marked invalid; `convoscope states recount {run.folder}` lists each row")
        raise typer.Exit(FAILED)
    if held.gate is not None:
        exit_with(held.gate.outcome)
    elif required := [check.counts_as for check in held.checks if check.source != DECLARED]:
        exit_with(overall(filter(None, required), can_pass=run.receipt.valid))
