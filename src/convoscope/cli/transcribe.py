"""`convoscope transcribe`: a recording becomes a conversation with words."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence, Set
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from convoscope.cli.options import Cache, Paths, ReadOptions, with_read_options
from convoscope.conversation import ASSISTANT, USER, Conversation
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
    from convoscope.audio.transcript import SPEAKER, has_no_words
    from convoscope.conversation.serial import to_json
    from convoscope.ingest.read import read
    from convoscope.report.run_terminal import print_warnings
    from convoscope.report.screen import Screen

    if out.exists():
        raise UsageError(f"{out} exists", hint="choose another --out, or move that file away")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        what = f"{out.parent} cannot be made: {error.strerror or error}"
        raise UsageError(what, hint="choose another --out") from None
    stream = read(paths, **reading.arguments)
    screen = Screen(sys.stderr)
    with_words: set[str] = set()

    def looked_at() -> Iterator[Conversation]:
        for conversation in stream:
            if not has_no_words(conversation):
                with_words.add(conversation.id)
            yield conversation

    conversations, refused = write_down(looked_at(), recogniser, cache=cache)
    for id, why in refused.items():
        screen.line(f"{id}: not written down: {why}")
    if not conversations:
        raise InputError("no recording could be written down", hint="convoscope inspect says what is there")
    part = out.with_name(f"{out.name}.part")
    part.write_bytes(b"".join(to_json(_from(out.parent, one)) + b"\n" for one in conversations))
    part.replace(out)
    Screen().line(f"{out}: {_counted(len(conversations))}{_apart(conversations, with_words)}")
    print_warnings(screen, stream.report)
    if mixed := sum(any(one.speaker == SPEAKER for one in written.utterances) for written in conversations):
        what = "it is not known who speaks, and voices without a pause of a second are one utterance"
        screen.line(f"note: {_counted(mixed)} of one channel: {what}", "yellow")


_KNOWN = (ASSISTANT, USER)


def _apart(conversations: Sequence[Conversation], with_words: Set[str]) -> str:
    """What was done, where it is not that all were heard; and that it is not known who is who."""
    written = [one for one in conversations if one.id not in with_words]
    heard = [one for one in written if any(text.heard and text.heard.text for text in one.utterances)]
    kept, silent = len(conversations) - len(written), len(written) - len(heard)
    parts = [
        f"{len(heard):,} heard" if heard else "",
        f"{silent:,} without speech" if silent else "",
        f"{kept:,} kept {'its' if kept == 1 else 'their'} words" if kept else "",
    ]
    done = f": {', '.join(filter(None, parts))}" if kept or silent else ""
    is_open = any({one.roles.get(text.speaker) for text in one.utterances}.isdisjoint(_KNOWN) for one in heard)
    return done + ("; who is who is unknown (--speaker)" if is_open else "")


def _from(folder: Path, conversation: Conversation) -> Conversation:
    """The conversation whose recording is named as seen from the folder of the file that it is written to."""
    recording = conversation.recording
    if recording is None or not any(os.path.isabs(track.path) for track in recording.tracks):
        return conversation
    tracks = tuple(
        msgspec.structs.replace(track, path=_seen_from(folder, track.path)) if os.path.isabs(track.path) else track
        for track in recording.tracks
    )
    return msgspec.structs.replace(conversation, recording=msgspec.structs.replace(recording, tracks=tracks))


def _seen_from(folder: Path, path: str) -> str:
    try:
        return Path(os.path.relpath(path, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return path


def _counted(number: int) -> str:
    return f"{number:,} {'conversation' if number == 1 else 'conversations'}"
