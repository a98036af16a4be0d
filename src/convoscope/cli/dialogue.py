"""`convoscope dialogue`: where dialogue states go wrong, asked of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json
from convoscope.storage import as_path

app = typer.Typer(help="Where do dialogue states go wrong?", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def dialogue() -> None:
    """Questions about dialogue states."""


@app.command("errors")
def errors(
    run: Annotated[Path, typer.Argument(metavar="RUN", parser=as_path, help="The folder of a run.")],
    top: Annotated[int, typer.Option("--top", min=1, help="How many rows of each table to print.")] = 10,
    json: Json = False,
) -> None:
    """Domains and intents taken for others, and slots by kind of error, with the worst examples."""
    from convoscope.analysis.dialogue import dialogue_errors
    from convoscope.report.dialogue import dialogue_errors_json, print_dialogue_errors
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    answer, screen = dialogue_errors(Run.open(run).conversations()), Screen()
    if json:
        screen.json(dialogue_errors_json(answer))
    else:
        print_dialogue_errors(screen, answer, top)


@app.command("standard")
def standard(
    run: Annotated[Path, typer.Argument(metavar="RUN", parser=as_path, help="The folder of a run.")],
    json: Json = False,
) -> None:
    """The figures of the standard MultiWOZ evaluator, and how much of the dialogues was predicted."""
    from convoscope.analysis.dialogue import standard_report
    from convoscope.report.dialogue import print_standard_report, standard_report_json
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    answer, screen = standard_report(Run.open(run)), Screen()
    if json:
        screen.json(standard_report_json(answer))
    else:
        print_standard_report(screen, answer)
