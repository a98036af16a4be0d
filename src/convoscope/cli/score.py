"""`convoscope score`: read logs, score them, keep the run, print it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Format, Json, Junit, Markdown, Metrics, Targets, split
from convoscope.cli.outcome import Files, exit_by, print_targets, targets_json


def score(
    paths: Annotated[list[Path], typer.Argument(help="Log files, or folders of them.")],
    metrics: Metrics = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: one under runs/.")
    ] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only the first N conversations.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes. Default: all cores.")] = None,
    by: Annotated[
        list[str] | None, typer.Option("--by", help="Group by these dimensions, e.g. flow,agent. May be repeated.")
    ] = None,
    format: Format = None,
    strict: Annotated[bool, typer.Option("--strict", help="Fail if anything could not be read.")] = False,
    target: Targets = None,
    junit: Junit = None,
    markdown: Markdown = None,
    json: Json = False,
) -> None:
    """Score the conversations in some logs and keep the result as a run.

    The same command again opens the run that is there, or goes on where an earlier one was cut short.
    """
    from convoscope.report.making import score as make
    from convoscope.report.screen import Screen, progress_bar
    from convoscope.report.targets import run_checks
    from convoscope.report.terminal import print_run, print_warnings
    from convoscope.runs.run import PAGE

    files = Files(junit, markdown)
    files.check()
    with progress_bar() as progress:
        run = make(
            paths,
            metrics=split(metrics),
            out=out,
            limit=limit,
            workers=workers,
            strict=strict,
            by=None if not by else [split(one) or [] for one in by],
            format=format,
            targets=target or (),
            progress=progress,
        )
    screen = Screen()
    if not json:
        print_run(screen, run)
    # The run keeps the targets that it was scored with: they are the given ones.
    checks = run_checks(run)
    files.write(run, ())
    if json:
        screen.json(
            {
                "run": str(run.folder),
                "page": str(run.folder / PAGE),
                "targets": targets_json(checks),
                "summary": run.summary,
                "read_report": run.read_report,
            }
        )
    else:
        print_targets(screen, checks)
        screen.line(f"page: {run.folder / PAGE}")
    print_warnings(Screen(sys.stderr), run.read_report)
    exit_by(run, checks)
