"""`convoscope export`: scores of a run for tools of traces, and its tables by day for warehouses."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json, RunPath


def export_command(
    run: RunPath,
    to: Annotated[str, typer.Option("--to", metavar="NAME", help="otel, langfuse, phoenix, or days (UTC).")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; of days, the folder. Default: standard output.")
    ] = None,
    metrics: Annotated[list[str] | None, typer.Option("--metrics", help="Only these, with commas. Repeatable.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="A table instead of JSON (langfuse, phoenix).")] = False,
    json: Json = False,
) -> None:
    """Write the scores of a run so that they go back to their traces, or its tables by day. Nothing is sent."""
    import sys

    from convoscope.analysis.words import counted
    from convoscope.cli.options import split
    from convoscope.report.export import export
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    if to == "days":
        _export_days(run, out, split(metrics) or (), csv, json)
        return
    made = export(Run.open(run), to, split(metrics) or (), as_csv=csv)
    if out is None:
        sys.stdout.write(made.text)
        return
    out.write_text(made.text, encoding="utf-8")
    screen = Screen()
    if json:
        screen.json({"file": str(out), **{name: value for name, value in made._asdict().items() if name != "text"}})
        return
    screen.line(f"{out}: {counted(made.scores, 'score')}")
    if made.without_trace:
        screen.line(f"{made.without_trace:,} scores are of conversations that were not read from a trace: left out")
    if made.without_value:
        screen.line(f"{made.without_value:,} scores have no value, and {to} has no form for that: left out")


def _export_days(run: Path, out: Path | None, metrics: Sequence[str], csv: bool, json: bool) -> None:
    from convoscope.analysis.words import counted
    from convoscope.errors import UsageError
    from convoscope.report.screen import Screen
    from convoscope.runs.days import UNDATED, write_days
    from convoscope.runs.run import Run

    if out is None or csv:
        raise UsageError("--csv is not for days" if csv else "days need a folder", hint="--to days --out FOLDER")
    made = write_days(Run.open(run), out, metrics)
    screen = Screen()
    if json:
        days = {day: one.conversations for day, one in made.days.items()}
        screen.json({"folder": str(out), "days": days, "written": made.written, "removed": made.removed})
        return
    total = sum(one.conversations for one in made.days.values())
    undated = made.days[UNDATED].conversations if UNDATED in made.days else 0
    without = f", {undated:,} without a time" if undated else ""
    screen.line(
        f"{out}: {counted(len(made.days) - bool(undated), 'day')}, {counted(total, 'conversation')}{without}; "
        f"{len(made.written)} written, {len(made.removed)} removed"
    )
