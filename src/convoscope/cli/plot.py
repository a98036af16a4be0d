"""`convoscope plot`: a picture of a metric, for a slide."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import split


def plot_command(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")],
    metric: Annotated[
        str, typer.Argument(help="A metric or figure, such as response_latency; `states` draws the states of flows.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write: .svg, or .png with convoscope[png].")],
    by: Annotated[
        str | None, typer.Option("--by", help="One row for each group by these dimensions, with commas between.")
    ] = None,
    against: Annotated[Path | None, typer.Option("--against", help="An earlier run to draw beside it.")] = None,
    flow: Annotated[str | None, typer.Option("--flow", help="With `states`: only this flow.")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option("--target", help="A value to reach, drawn as a line: 'response_latency < 2'. May be repeated."),
    ] = None,
) -> None:
    """Draw a metric: its distribution, its groups, or before and after."""
    from convoscope.report.files import check_places
    from convoscope.report.plot.make import check_ending, plot
    from convoscope.report.screen import Screen

    check_ending(out)
    check_places(out)
    plot(run, metric, by=split(by) or (), against=against, flow=flow, targets=target or ()).save(out)
    Screen().line(f"wrote {out}")
