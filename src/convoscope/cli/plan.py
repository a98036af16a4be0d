"""`convoscope plan`: how many conversations would show an effect?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json


def plan_command(
    effect: Annotated[
        str, typer.Option("--effect", metavar="SIZE", help="3pp of a share, 10% of the value, or a number in its unit.")
    ],
    run: Annotated[Path, typer.Option("--from", metavar="RUN", help="A run of such conversations: its spread counts.")],
    figure: Annotated[
        str, typer.Option("--figure", metavar="NAME", help="Default: outcome.success, whether goals are reached.")
    ] = "",
    power: Annotated[
        str, typer.Option("--power", metavar="SHARE", help="How often such an effect is to be found.")
    ] = "80%",
    json: Json = False,
) -> None:
    """How many conversations would show an effect, with clusters and pairs."""
    from convoscope.analysis.plan import plan
    from convoscope.errors import UsageError
    from convoscope.report.plan import print_plan
    from convoscope.report.screen import Screen
    from convoscope.runs.run import Run

    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*(%?)\s*", power)
    if match is None:
        raise UsageError(f"--power {power!r} is no share", hint="write 80% or 0.8")
    made = plan(Run.open(run), effect, figure, power=float(match[1]) / (100 if match[2] else 1))
    screen = Screen()
    if json:
        screen.json(made)
    else:
        print_plan(screen, made)
