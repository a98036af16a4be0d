"""`convoscope transcribe`: a recording becomes a conversation with words."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from convoscope.cli.options import Cache, Paths, ReadOptions, with_read_options
from convoscope.errors import InputError, UsageError


@with_read_options
def transcribe(
    paths: Paths,
    reading: ReadOptions,
    recogniser: Annotated[
        str,
        typer.Option(
            "--recogniser",
            metavar="NAME",
            help="Write down the sound with this model, on this machine: faster-whisper:tiny.en, or "
            "faster-whisper:FOLDER.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The conversations, one per line.")],
    cache: Cache = True,
) -> None:
    """Write down recordings: conversations in Convoscope's own format, which every other command reads."""
    from convoscope.audio.transcribe import transcribe as write_down
    from convoscope.audio.transcript import SPEAKER
    from convoscope.conversation.serial import to_json
    from convoscope.ingest.read import read
    from convoscope.report.run_terminal import print_warnings
    from convoscope.report.screen import Screen

    if out.exists():
        raise UsageError(f"{out} exists", hint="choose another --out, or move that file away")
    stream = read(paths, **reading.arguments)
    screen = Screen(sys.stderr)
    conversations, refused = write_down(stream, recogniser, cache=cache)
    for id, why in refused.items():
        screen.line(f"{id}: not written down: {why}")
    if not conversations:
        raise InputError("no recording could be written down", hint="convoscope inspect says what is there")
    part = out.with_name(f"{out.name}.part")
    part.write_bytes(b"".join(to_json(one) + b"\n" for one in conversations))
    part.replace(out)
    Screen().line(f"{out}: {_counted(len(conversations))}")
    print_warnings(screen, stream.report)
    if mixed := sum(any(one.speaker == SPEAKER for one in written.utterances) for written in conversations):
        what = "it is not known who speaks, and voices without a pause of a second are one utterance"
        screen.line(f"note: {_counted(mixed)} of one channel: {what}", "yellow")


def _counted(number: int) -> str:
    return f"{number:,} {'conversation' if number == 1 else 'conversations'}"
