"""`convoscope demo`: make the calls of an invented voice agent, and score them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Json
from convoscope.cli.score import score_command

LOGS = Path("runs/logs/demo")


def demo(
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder of the run. Default: one under runs/.")
    ] = None,
    json: Json = False,
) -> None:
    """Score invented calls of a voice agent in two versions, and print what comes out."""
    from convoscope.demo import COMPANY, make_calls, write_logs
    from convoscope.report.screen import Screen

    calls = list(make_calls())
    write_logs(calls, LOGS)
    if not json:
        Screen().line(f"scoring {len(calls)} invented calls of {COMPANY}: {LOGS}")
    score_command([LOGS], by=["agent"], out=out, json=json)
    if not json:
        Screen().line("next  convoscope score YOUR-LOGS")
