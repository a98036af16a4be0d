"""`convoscope sql`: ask one run, or many, in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json, MetricsFrom

WIDEST = 60
"""Characters of a cell, without --wide."""


def _cell(text: str, wide: bool) -> str:
    return text if wide or len(text) <= WIDEST else text[: WIDEST - 1] + "…"


def sql(
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY",
            help="SQL. Views: scores, conversation_scores, conversations, aspect_scores, state_scores, metrics, runs.",
        ),
    ],
    run: Annotated[
        list[Path] | None, typer.Option("--run", help="A run; may be repeated. Default: the latest in runs/.")
    ] = None,
    all_runs: Annotated[bool, typer.Option("--all-runs", help="Ask all runs in runs/ together.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", min=0.001, help="Seconds after which the query is stopped.")
    ] = 60.0,
    metrics_from: MetricsFrom = None,
    wide: Annotated[bool, typer.Option("--wide", help="Print long cells whole.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print comma-separated values, whole.")] = False,
    json: Json = False,
) -> None:
    """Ask runs in SQL (DuckDB's)."""
    import os
    import shlex
    import sys
    from csv import writer as csv_writer

    from convoscope.analysis.words import NOTHING
    from convoscope.errors import UsageError
    from convoscope.harmless import clean
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_table, text_table
    from convoscope.runs.run import RECEIPT, Run, find_runs
    from convoscope.runs.sql import query as ask
    from convoscope.scoring.job import choose

    if len(query) > 1:
        raise UsageError("one query at a time", hint=f"name a run with --run: convoscope sql --run {shlex.join(query)}")
    if os.path.isdir(query[0]):  # a query may be too long for a path
        raise UsageError(f"{query[0]} is a folder, not a query", hint="write SQL, and name the run with --run")
    if run and all_runs:
        raise UsageError("--run and --all-runs cannot be combined")
    runs = [Run.open(one) for one in run or ()] or list(find_runs("runs"))
    if not run and not all_runs and len(runs) > 1:
        # The same conversations are in many runs: to count them together would count them twice.
        latest = max(runs, key=lambda one: (one.receipt.finished_at, (one.folder / RECEIPT).stat().st_mtime))
        Screen(sys.stderr).line(f"asked {latest.folder}, the latest of {len(runs)} runs; --all-runs asks all")
        runs = [latest]
    tables = choose(None, metrics_from).tables if metrics_from else ()
    answer = ask(runs, query[0], tables, seconds=timeout)
    screen = Screen()
    if json:
        screen.json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    elif csv:
        writer = csv_writer(sys.stdout, lineterminator="\n")
        writer.writerow(map(clean, answer.columns))
        writer.writerows([None if value is None else clean(str(value)) for value in row] for row in answer.rows)
    elif answer.columns:
        cells = [[NOTHING if value is None else _cell(str(value), wide) for value in row] for row in answer.rows]
        print_table(screen, text_table(answer.columns, cells))
