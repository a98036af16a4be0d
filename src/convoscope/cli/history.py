"""`convoscope history`: figures over many runs, and when they changed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Full, Json

PAGE = "history.html"


def history_command(
    runs: Annotated[list[Path], typer.Argument(help="Runs, or folders that hold runs.")],
    by: Annotated[
        str, typer.Option("--by", metavar="day", help="Split runs by the day on which conversations began.")
    ] = "",
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="A value to reach, beside those of the last run: 'success >= 80%'. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="File of the page. Default: history.html in the folder.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option("--plot", help="Also draw a figure: .svg, or .png with convoscope[png].")
    ] = None,
    figure: Annotated[str, typer.Option("--figure", help="With --plot: the figure. Default: the first.")] = "",
    full: Full = False,
    json: Json = False,
) -> None:
    """Show figures over many runs: their levels, and the nights at which they changed.

    Looking every day does not make false alarms likelier.
    """
    from convoscope.errors import UsageError
    from convoscope.report.files import check_files
    from convoscope.report.history import history, history_json
    from convoscope.report.history_terminal import print_history
    from convoscope.report.plot.make import check_ending
    from convoscope.report.screen import Screen

    if figure and plot is None:
        raise UsageError("--figure names what is drawn", hint="name the file, too: --plot history.svg")
    page = out if out is not None else runs[0] / PAGE if len(runs) == 1 and runs[0].is_dir() else None
    if plot is not None:
        check_ending(plot)
    check_files(page, plot)
    made = history(runs, by=by, targets=target or ())
    if page is not None:
        made.write_page(page)
    if plot is not None:
        made.plot(figure).save(plot)
    screen = Screen()
    if json:
        screen.json(history_json(made, page))
    else:
        print_history(screen, made, page, full=full)
        if plot is not None:
            screen.line(f"wrote {plot}")
