"""`convoscope report`: the page of a run, and the run as JUnit XML or Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Contexts, Json, Junit, Markdown, Targets
from convoscope.cli.targets import ReportFiles, exit_by


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File of the page. Default: report.html in the run.")
    ] = None,
    conversations: Annotated[
        int, typer.Option("--conversations", help="How many to show in full, the worst first.")
    ] = 400,
    max_mb: Annotated[float, typer.Option("--max-mb", help="How large the page may become.")] = 5.0,
    target: Targets = None,
    junit: Junit = None,
    markdown: Markdown = None,
    contexts: Contexts = False,
    json: Json = False,
) -> None:
    """Write the page of a run.

    Targets given here are held against the figures beside those that the run was scored with; for the
    same figure they replace them.
    """
    from convoscope.analysis.targets import run_checks
    from convoscope.report.gate import print_targets, targets_json
    from convoscope.report.page import write_page
    from convoscope.report.screen import Screen
    from convoscope.report.view_terminal import write_contexts
    from convoscope.runs.run import PAGE, Run

    given = target or []
    opened = Run.open(run)
    files = ReportFiles(junit, markdown)
    files.check(out or opened.folder / PAGE)
    checks = run_checks(opened, given)
    page = write_page(opened, out=out, conversations=conversations, max_mb=max_mb, targets=given)
    files.write(opened, given)
    if contexts:
        write_contexts(opened)
    screen = Screen()
    if json:
        facts = {name: value for name, value in page._asdict().items() if name != "path"}
        screen.json({"page": str(page.path), **facts, "targets": targets_json(checks)})
    else:
        print_targets(screen, checks)
        size = f"{page.bytes / 1e6:,.1f} MB"
        screen.line(f"{page.path}: {size}, {page.in_full:,} of {page.conversations:,} conversations in full")
    exit_by(opened, checks)
