"""`convoscope runs`: list, show, prune and invalidate runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Full, Json, MetricsFrom
from convoscope.storage import as_path

app = typer.Typer(help="List, show, prune and invalidate runs.", no_args_is_help=True, rich_markup_mode=None)

Folder = Annotated[Path, typer.Option("--folder", metavar="FOLDER", parser=as_path, help="Where the runs are.")]
RunPath = Annotated[Path, typer.Argument(metavar="RUN", parser=as_path, help="The folder of a run.")]


@app.command("list")
def list_runs(folder: Folder = Path("runs"), json: Json = False) -> None:
    """List the runs in a folder. A damaged run is named, and the others are listed."""
    from convoscope.errors import RunError
    from convoscope.metrics.registry import whole_metrics
    from convoscope.report.screen import Screen
    from convoscope.report.table import number_column, print_table, text_table
    from convoscope.runs.run import find_runs

    screen = Screen()
    damaged: list[RunError] = []
    runs = list(find_runs(folder, damaged))
    if json:
        screen.json(
            [
                {"run": str(run.folder), "conversations": run.summary.conversations, "receipt": run.receipt}
                for run in runs
            ]
        )
    elif runs:
        rows = [
            (
                str(run.folder),
                run.receipt.finished_at,
                f"{run.summary.conversations:,}",
                str(len(whole_metrics(run.receipt.metrics))),
                "valid" if run.receipt.valid else f"INVALID: {run.receipt.invalid_reason}",
            )
            for run in runs
        ]
        columns = ("run", "finished", number_column("conversations"), number_column("metrics"), "state")
        print_table(screen, text_table(columns, rows))
    elif not damaged:
        screen.line(f"no run in {folder}")
    if damaged:
        raise RunError("\n".join(error.message for error in damaged), hint=damaged[0].hint)


@app.command("show")
def show(run: RunPath, full: Full = False, json: Json = False) -> None:
    """Print the summary of a run."""
    from convoscope.analysis.answer import make_answer
    from convoscope.report.run_terminal import print_answer, print_run
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    opened = Run.open(run)
    screen = Screen()
    answer = make_answer(opened)
    if json:
        screen.json(
            {
                "run": str(opened.folder),
                "answer": answer,
                "receipt": opened.receipt,
                "summary": opened.summary,
                "read_report": opened.read_report,
            }
        )
    elif full:
        print_run(screen, opened, answer)
    else:
        print_answer(screen, answer, opened)


@app.command("invalidate")
def invalidate(
    run: RunPath,
    reason: Annotated[str, typer.Option("--reason", help="What is wrong with it.")],
    superseded_by: Annotated[str | None, typer.Option("--superseded-by", help="The run that replaces it.")] = None,
    json: Json = False,
) -> None:
    """Mark a run as not to be relied on. Its numbers stay as they were."""
    from convoscope.report.page import write_page
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    opened = Run.open(run)
    opened.invalidate(reason, superseded_by)
    # The page says it, too.
    write_page(opened)
    if json:
        Screen().json({"run": str(opened.folder), "receipt": opened.receipt})
    else:
        Screen().line(f"{opened.folder} is marked invalid: {reason}")


@app.command("prune")
def prune_command(
    run: RunPath,
    before: Annotated[
        str, typer.Option("--before", metavar="DAY", help="Drop what began before it (UTC): 2026-11-01.")
    ],
    metrics_from: MetricsFrom = None,
    json: Json = False,
) -> None:
    """Drop conversations that began before a day. The figures and the page follow; logs are not touched."""
    from convoscope.analysis.words import counted
    from convoscope.errors import UsageError
    from convoscope.report.score import prune
    from convoscope.report.screen import Screen
    from convoscope.scoring.settings import is_day

    if not is_day(before):
        raise UsageError(f"--before {before}: not a day", hint="write it like 2026-11-01")
    pruned = prune(run, before, metrics_from or ())
    if json:
        Screen().json({"run": str(run), "dropped": pruned.dropped, "without_day": pruned.undated})
        return
    left = counted(pruned.run.summary.conversations, "conversation")
    Screen().line(f"{run}: {counted(pruned.dropped, 'conversation')} from before {before} dropped, {left} left")
    if pruned.undated:
        verb, whose = ("stays", "its") if pruned.undated == 1 else ("stay", "their")
        undated = counted(pruned.undated, "conversation")
        Screen().line(f"  {undated} without a day {verb}: {whose} logs have no dates")
