"""`convoscope init`: write a `convoscope.toml` from what is found in logs."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Paths, ReadOptions, with_read_options

_LIMIT = 10_000


@with_read_options
def init_command(
    paths: Paths,
    reading: ReadOptions,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The file to write. Default: convoscope.toml.")
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", metavar="N", help="Look at the first N conversations. Default: 10,000.", min=1)
    ] = _LIMIT,
    force: Annotated[bool, typer.Option("--force", help="Replace the file, if there is one.")] = False,
) -> None:
    """Write convoscope.toml for these logs: label, suggested targets, how they are read.

    After that, `convoscope score` alone scores them and checks the targets. Nothing is sent.
    """
    from convoscope.errors import UsageError
    from convoscope.ingest.read import read
    from convoscope.report.files import check_files, write_text
    from convoscope.report.screen import Screen, progress_bar
    from convoscope.report.settings_text import LogSettings, settings_text
    from convoscope.runs.make import make_run
    from convoscope.settings_file import FILE, read_settings_file
    from convoscope.views.fields import LabelSearch
    from convoscope.views.flow.endings import outcome_of

    file = out or Path(FILE)
    check_files(file)
    if file.exists() and not force:
        raise UsageError(f"{file} exists", hint="--force replaces it; --out names another file")
    if Path("-") in paths:
        raise UsageError("standard input cannot be read again by a file", hint="name files or folders")
    if reading.readers_from:
        raise UsageError(
            "a settings file names no code that is run", hint="give --readers-from to each command instead"
        )
    search, known, dimensions = LabelSearch(), 0, dict[str, Counter[str]]()
    stream = read(paths, limit=limit, **reading.arguments)
    for conversation in stream:
        search.see(conversation)
        known += outcome_of(conversation).done is not None
        for name, value in conversation.dimensions.items():
            dimensions.setdefault(name, Counter())[value] += 1
    seen = stream.report.conversations

    def from_file(path: str | Path) -> str:
        return Path(os.path.relpath(path, file.parent)).as_posix()

    given = {name: value for name, value in reading._asdict().items() if value is not None}
    if "map" in given:
        given["map"] = from_file(given["map"])
    if "flows" in given:
        given["flows"] = [from_file(path) for path in given["flows"]]
    labels = [] if known else search.proposals(first=seen == limit)
    log_settings = LogSettings([from_file(path) for path in paths], given, labels, dimensions)
    with tempfile.TemporaryDirectory() as folder, progress_bar() as progress:
        run = make_run(
            paths,
            out=Path(folder) / "run",
            limit=limit,
            label=log_settings.label,
            progress=progress,
            **reading.arguments,
        )
        text = settings_text(log_settings, run)
    write_text(file, text)
    tables = read_settings_file(file)
    targets = len(tables.policy.target) if tables.policy is not None else 0
    label = f"label {tables.score.label}" if tables.score.label else "no label"
    screen = Screen()
    screen.line(f"wrote {file}: {seen:,} conversations, {label}, {targets} suggested targets")
    screen.line("next  read it, then: convoscope score")
