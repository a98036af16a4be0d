"""`convoscope demo`: score the conversations that come with the package."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json
from convoscope.cli.score import score_command


def examples_folder() -> Path:
    """The bundled examples: inside the installed package, or beside `src` in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "examples"
    return inside if inside.is_dir() else package.parents[1] / "examples"


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: one under runs/.")
    ] = None,
    json: Json = False,
) -> None:
    """Score the bundled examples and print what comes out."""
    score_command([examples_folder()], out=out, json=json)
