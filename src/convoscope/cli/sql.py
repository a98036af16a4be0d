"""`convoscope sql`: ask one run, or many, in SQL."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json


def sql(
    query: Annotated[
        str,
        typer.Argument(
            help="SQL. Views: scores, conversation_scores, conversations, aspect_scores, state_scores, metrics, runs."
        ),
    ],
    run: Annotated[
        list[Path] | None, typer.Option("--run", help="A run; may be repeated. Default: all in runs/.")
    ] = None,
    json: Json = False,
) -> None:
    """Ask runs in SQL (DuckDB's)."""
    from convoscope.analysis.words import NOTHING
    from convoscope.report.render.terminal import print_table
    from convoscope.report.screen import Screen
    from convoscope.report.table import text_table
    from convoscope.runs.run import Run, find_runs
    from convoscope.runs.sql import query as ask

    runs = [Run.open(one) for one in run] if run else list(find_runs("runs"))
    answer = ask(runs, query)
    screen = Screen()
    if json:
        screen.json([dict(zip(answer.columns, row, strict=True)) for row in answer.rows])
    elif answer.columns:
        cells = [[NOTHING if value is None else str(value) for value in row] for row in answer.rows]
        print_table(screen, text_table(answer.columns, cells))
