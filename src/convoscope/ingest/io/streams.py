"""What can be read only once: standard input, pipes, what a shell substitutes. It is written to a file first."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import IO, NamedTuple

from convoscope.errors import NO_ROOM, InputError

PathLike = str | os.PathLike[str]
STANDARD_INPUT = "-"


class SpooledFiles(NamedTuple):
    """Paths that can be read again and again, as long as the folder of those that were made is there."""

    paths: list[PathLike]
    folder: tempfile.TemporaryDirectory[str] | None = None


def as_files(paths: Sequence[PathLike]) -> SpooledFiles:
    """The paths, with a file instead of each stream; it goes by the name of the stream."""
    streams = [os.fspath(path) for path in paths if _is_stream(path)]
    if not streams:
        return SpooledFiles(list(paths))
    folder = tempfile.TemporaryDirectory(prefix="convoscope-")
    files: dict[str, Path] = {}
    for number, stream in enumerate(dict.fromkeys(streams)):
        files[stream] = Path(folder.name) / str(number) / ("stdin" if stream == STANDARD_INPUT else Path(stream).name)
        files[stream].parent.mkdir()
        try:
            _write(stream, files[stream])
        except BaseException:
            folder.cleanup()
            raise
    return SpooledFiles([files.get(os.fspath(path), path) for path in paths], folder)


def _is_stream(path: PathLike) -> bool:
    if os.fspath(path) == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # opening it says what is wrong
    # A file behind /dev/stdin is another one for each process.
    if stat.S_ISDIR(mode):
        return False
    return not stat.S_ISREG(mode) or Path(path).parts[:2] in (("/", "dev"), ("/", "proc"))


_PATIENCE = 5.0
"""Seconds to wait for a program that writes to a named pipe."""


def _write(stream: str, path: Path) -> None:
    is_input = stream == STANDARD_INPUT
    try:
        if is_input:
            with path.open("wb") as target, open(0, "rb", closefd=False) as source:
                shutil.copyfileobj(source, target)
            return
        stream_file, first = _opened(stream)
        with path.open("wb") as target, stream_file:
            target.write(first)
            shutil.copyfileobj(stream_file, target)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        name = "standard input" if is_input else stream
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None


def _opened(stream: str) -> tuple[IO[bytes], bytes]:
    """A stream, and what was read of it. A named pipe to which no program writes is refused: it would wait for ever."""
    if not stat.S_ISFIFO(os.stat(stream).st_mode) or Path(stream).parts[:2] in (("/", "dev"), ("/", "proc")):
        return open(stream, "rb"), b""
    pipe = os.open(stream, os.O_RDONLY | os.O_NONBLOCK)
    patience, first = monotonic() + _PATIENCE, b""
    while not first:
        try:
            first = os.read(pipe, 65_536)
        except BlockingIOError:  # there is a program, and it has not written yet
            break
        if not first and monotonic() > patience:
            os.close(pipe)
            hint = "start the program that writes, or give a file"
            raise InputError("is a pipe to which no program writes", file=stream, hint=hint)
        sleep(0 if first else 0.02)
    os.set_blocking(pipe, True)
    return os.fdopen(pipe, "rb"), first
