"""`convoscope formats`: which logs can be read."""

from __future__ import annotations

import inspect
import sys
from typing import Annotated, Any

import typer

from convoscope.cli.options import Json, ReadersFrom


def formats(
    name: Annotated[str | None, typer.Argument(help="A format; all of them by default.")] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print its JSON Schema (convoscope, standard-data).")
    ] = False,
    readers_from: ReadersFrom = None,
    json: Json = False,
) -> None:
    """List the formats that can be read."""
    from convoscope.errors import UsageError
    from convoscope.ingest.reader import registered
    from convoscope.report.screen import Screen
    from convoscope.report.table import print_table, text_table

    screen = Screen()
    readers = registered(readers_from or ())
    for problem in readers.problems:
        Screen(sys.stderr).line(f"warning: {problem}", "yellow")
    if schema:
        screen.json(_schema(name or "convoscope"))
        return
    if name is not None and name not in readers.by_name:
        raise UsageError(f"unknown format {name!r}", hint=f"the formats are {', '.join(sorted(readers.by_name))}")
    chosen = [readers.by_name[one] for one in sorted(readers.by_name) if name in (None, one)]
    rows = [(one.name, one.title, inspect.getdoc(type(one)) or "") for one in chosen]
    if json:
        screen.json([{"format": one[0], "title": one[1], "description": one[2]} for one in rows])
    else:
        print_table(screen, text_table(("format", "title", "reads"), rows))


def _schema(name: str) -> dict[str, Any]:
    if name == "convoscope":
        from convoscope.conversation import json_schema

        return json_schema()
    if name == "standard-data":
        from convoscope.views.standard_data import StandardData

        return StandardData.model_json_schema()
    from convoscope.errors import UsageError

    raise UsageError(f"{name} has no JSON Schema", hint="only convoscope and standard-data have one")
