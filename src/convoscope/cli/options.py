"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for a program.")]
Metrics = Annotated[
    str | None,
    typer.Option("--metrics", "-m", help="Names or families, with commas between: f1,tools. All by default."),
]
Format = Annotated[str | None, typer.Option("--format", help="Read as this format instead of telling it by content.")]


def split(names: str | None) -> list[str] | None:
    """`a,b` as a list; None for nothing said."""
    return None if names is None else [name.strip() for name in names.split(",") if name.strip()]
