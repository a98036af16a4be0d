"""`convoscope export`: scores of a run, for the places where people look at traces."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json, RunPath


def export_command(
    run: RunPath,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="otel, langfuse or phoenix.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="The file. Default: standard output.")] = None,
    metrics: Annotated[str | None, typer.Option("--metrics", help="Only these, with commas.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="A table instead of JSON (langfuse, phoenix).")] = False,
    json: Json = False,
) -> None:
    """Write the scores of a run so that they go back to the traces that were read. Nothing is sent."""
    import sys

    from convoscope.cli.options import split
    from convoscope.report.export import export
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    made = export(Run.open(run), to, split(metrics) or (), as_csv=csv)
    if out is None:
        sys.stdout.write(made.text)
        return
    out.write_text(made.text, encoding="utf-8")
    screen = Screen()
    if json:
        screen.json({"file": str(out), **{name: value for name, value in made._asdict().items() if name != "text"}})
        return
    screen.line(f"{out}: {made.scores:,} scores")
    if made.without_trace:
        screen.line(f"{made.without_trace:,} scores are of conversations that were not read from a trace: left out")
    if made.without_value:
        screen.line(f"{made.without_value:,} scores have no value, and {to} has no form for that: left out")
