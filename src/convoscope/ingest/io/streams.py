"""What can be read only once: standard input, pipes, what a shell substitutes. It is written to a file first."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from convoscope.errors import NO_ROOM, InputError

PathLike = str | os.PathLike[str]
STANDARD_INPUT = "-"


class SpooledFiles(NamedTuple):
    """Paths that can be read again and again, as long as the folder of those that were made is there."""

    paths: list[PathLike]
    folder: tempfile.TemporaryDirectory[str] | None = None


def as_files(paths: Sequence[PathLike]) -> SpooledFiles:
    """The paths, with a file in the place of each stream; it goes by the name of the stream."""
    streams = [os.fspath(path) for path in paths if _is_stream(path)]
    if not streams:
        return SpooledFiles(list(paths))
    folder = tempfile.TemporaryDirectory(prefix="convoscope-")
    files: dict[str, Path] = {}
    for place, stream in enumerate(dict.fromkeys(streams)):
        files[stream] = Path(folder.name) / str(place) / ("stdin" if stream == STANDARD_INPUT else Path(stream).name)
        files[stream].parent.mkdir()
        _write(stream, files[stream])
    return SpooledFiles([files.get(os.fspath(path), path) for path in paths], folder)


def _is_stream(path: PathLike) -> bool:
    if os.fspath(path) == STANDARD_INPUT:
        return True
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False  # whoever opens it says what is wrong
    # A file behind /dev/stdin is another one for each process.
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)) or Path(path).parts[:2] in (("/", "dev"), ("/", "proc"))


def _write(stream: str, path: Path) -> None:
    is_input = stream == STANDARD_INPUT
    try:
        with path.open("wb") as target, open(0 if is_input else stream, "rb", closefd=not is_input) as source:
            shutil.copyfileobj(source, target)
    except OSError as error:
        if error.errno in NO_ROOM:
            raise
        name = "standard input" if is_input else stream
        raise InputError(f"cannot be read: {error.strerror}", file=name) from None
