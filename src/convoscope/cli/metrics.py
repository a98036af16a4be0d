"""`convoscope metrics`: which metrics there are, and what one of them means."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from convoscope.cli.options import Json


def metrics(
    name: Annotated[str | None, typer.Argument(help="A metric or a family; all of them by default.")] = None,
    json: Json = False,
) -> None:
    """List the metrics, or explain one."""
    from convoscope.metrics.declaration import Metric
    from convoscope.metrics.registry import installed
    from convoscope.report.screen import Column, Screen
    from convoscope.runs.summarising import describe

    registry = installed()
    chosen = registry.resolve(None if name is None else [name])
    screen = Screen()
    for problem in registry.problems:
        Screen(sys.stderr).line(f"warning: {problem}", "yellow")
    if json:
        screen.json([{**describe(one), "description": one.description} for one in chosen])
    elif name is None or len(chosen) > 1:
        rows = [(one.key, one.unit, one.better, one.question) for one in chosen]
        screen.table([Column("metric"), Column("unit"), Column("better"), Column("question")], rows)
    else:
        (one,) = chosen
        screen.line(f"{one.key}, version {one.version}", "bold")
        screen.line()
        screen.line(one.description)
        screen.line()
        facts = [("unit", one.unit), ("better", one.better)]
        if isinstance(one, Metric):
            facts += [("observes", one.observes)]
            facts += [("needs", f"{need.field or need.resource} ({need.unlock})") for need in one.needs]
            also = ", ".join(f"{name} ({across})" for name, across in one.also.items())
            facts += [("beside it", also)] if also else []
        else:
            facts += [("computed from", ", ".join(one.inputs))]
        facts += [("conversation", one.reduce.within), ("group", one.reduce.across)]
        screen.table([Column("fact"), Column("")], facts)
