"""What a run comes to, for the commands that make or show one: its targets, its files, the exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

if TYPE_CHECKING:
    from convoscope.analysis.targets import Check
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

FAILED = 1
UNDETERMINED = 3


class ReportFiles(NamedTuple):
    """Where a user wants reports beside the page."""

    junit: Path | None = None
    markdown: Path | None = None

    def check(self, *others: Path | None) -> None:
        """Refuse what cannot be written, before anything else is done."""
        from convoscope.report.files import check_places

        check_places(self.junit, self.markdown, *others)

    def write(self, run: Run, given: Sequence[str]) -> None:
        from convoscope.report.junit import write_junit
        from convoscope.report.run_markdown import write_markdown

        if self.junit is not None:
            write_junit(run, self.junit, given)
        if self.markdown is not None:
            write_markdown(run, self.markdown, given)


def print_targets(screen: Screen, checks: Iterable[Check]) -> None:
    """One line for each target: an exit code alone explains nothing."""
    from convoscope.analysis.targets import DECLARED, MISSED
    from convoscope.analysis.words import value_text

    for check in checks:
        value = value_text(check.figure.value, check.figure.unit)
        style = "red" if check.verdict.outcome == MISSED else ""
        whose = ", declared by the metric" if check.source == DECLARED else ""
        screen.line(f"target: {check.name} {check.text} ({value}{whose})", style)


def targets_json(checks: Iterable[Check]) -> list[dict[str, Any]]:
    """The targets for a program."""
    from convoscope.analysis.words import name_text

    return [
        {
            "figure": name_text(one.figure),
            **({"by": dict(one.by)} if one.by else {}),
            "comparison": one.target.comparison,
            "target": one.target.value,
            "value": one.figure.value,
            "outcome": one.verdict.outcome,
            "sure": one.verdict.sure,
            "words": one.verdict.words,
            "source": one.source,
        }
        for one in checks
    ]


def exit_by(run: Run, checks: Iterable[Check]) -> None:
    """End the command with what the user's targets came to: a missed one weighs more than one nobody can tell.

    What a metric declares of itself is shown, and is nobody's demand.
    """
    from convoscope.analysis.targets import DECLARED, tally
    from convoscope.report.screen import Screen

    demands = [one for one in checks if one.source != DECLARED]
    counts = tally(demands)
    if run.receipt.audit.get("disagreements"):
        screen = Screen(sys.stderr)
        screen.line(f"error: {run.receipt.invalid_reason}")
        screen.line(f"  the run is marked invalid; `convoscope states recount {run.folder}` tells of each row")
        raise typer.Exit(FAILED)
    if counts.missed:
        raise typer.Exit(FAILED)
    if counts.undetermined or (demands and not run.receipt.valid):
        raise typer.Exit(UNDETERMINED)
