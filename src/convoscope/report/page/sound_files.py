"""Recordings that go with a page: copied into the run, or packed into the page itself."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from collections.abc import Container
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.errors import NO_ROOM
from convoscope.runs.growth import AUDIO
from convoscope.storage import is_remote, store_errors

if TYPE_CHECKING:
    import soundfile

MOST_COPIED = 4 * 1024**3
"""Bytes of the recordings of one run that are copied."""
MOST_EMBEDDED = 3_000_000
"""Letters of all recordings in one page."""
_ENDINGS = frozenset(
    (".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf", ".w64")
)
_TYPES = {"WAV": "audio/wav", "WAVEX": "audio/wav", "FLAC": "audio/flac", "OGG": "audio/ogg", "MP3": "audio/mpeg"}
_OPUS_RATES = frozenset((8_000, 12_000, 16_000, 24_000, 48_000))
_LEAST = 500.0
"""Bytes that a second needs at the least: what has no room for so many is not encoded in vain."""


class AudioCopies:
    """The recordings of a run in its own folder, named by what is in them."""

    def __init__(self, run: Path) -> None:
        self._folder = run / AUDIO
        self._room = MOST_COPIED
        self.left_out = 0
        self._copied: dict[Path, Path] = {}

    @property
    def names(self) -> frozenset[str]:
        """Those of the copies."""
        return frozenset(copy.name for path, copy in self._copied.items() if copy != path)

    def copy(self, path: Path) -> Path:
        """The copy of a recording; the recording itself where the room is used up."""
        if path not in self._copied:
            try:
                self._copied[path] = self._copy(path)
            except OSError as error:
                if error.errno in NO_ROOM:
                    raise
                self._copied[path] = path
            self.left_out += self._copied[path] == path
        return self._copied[path]

    def _copy(self, path: Path) -> Path:
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        ending = path.suffix.lower()
        target = self._folder / f"{digest[:24]}{ending if ending in _ENDINGS else ''}"
        size = path.stat().st_size
        if target.is_file() and target.stat().st_size == size:
            return target
        if size > self._room:
            return path
        self._room -= size
        if is_remote(target):
            remote: Any = target
            with store_errors(target):
                remote.fs.put_file(str(path), remote.path)
            return target
        self._folder.mkdir(exist_ok=True)
        fresh = target.with_name(f".{target.name}.{os.getpid()}.new")
        try:
            shutil.copyfile(path, fresh)
            os.replace(fresh, target)
        finally:
            fresh.unlink(missing_ok=True)
        return target


def remove_copies(run: Path, used: Container[str]) -> None:
    """Remove the copies of recordings in a run but those that its page plays."""
    folder = run / AUDIO
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name not in used:
            path.unlink()


class EmbeddedBlock(NamedTuple):
    """The number of a block of the page that holds a recording, and its media type."""

    number: int
    type: str


class EmbeddedAudio:
    """Recordings inside a page: the first that fit, so the worst conversations."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.left_out = 0
        self._room = MOST_EMBEDDED
        self._known: dict[Path, EmbeddedBlock | None] = {}

    def add(self, path: Path) -> EmbeddedBlock | None:
        """Where a recording is in the page; None where it does not fit."""
        if path not in self._known:
            made = _readable(path, self._room // 4 * 3)
            self.left_out += made is None
            self._known[path] = None if made is None else self._added(*made)
        return self._known[path]

    def _added(self, body: bytes, kind: str) -> EmbeddedBlock:
        block = base64.b64encode(body).decode()
        self._room -= len(block)
        self.blocks.append(block)
        return EmbeddedBlock(len(self.blocks) - 1, kind)


class EncodedSound(NamedTuple):
    """A recording as bytes, and their media type."""

    body: bytes
    type: str


def _readable(path: Path, most: int) -> EncodedSound | None:
    import soundfile

    try:
        return smallest(path, most)
    except (OSError, soundfile.LibsndfileError):
        return None


def smallest(path: Path, most: int) -> EncodedSound | None:
    """A recording as it is, or as Ogg if that is smaller; None where neither has at most so many bytes."""
    import soundfile

    with soundfile.SoundFile(path) as source:
        kind = _TYPES.get(source.format)
        is_long = source.frames / source.samplerate * _LEAST > most
        made = None if is_long or source.format == "OGG" else _as_ogg(source, most)
    size = path.stat().st_size
    if kind is not None and size <= most and (made is None or size <= len(made)):
        return EncodedSound(path.read_bytes(), kind)
    return None if made is None else EncodedSound(made, _TYPES["OGG"])


def _as_ogg(source: soundfile.SoundFile, most: int) -> bytes | None:
    """The same sound as Ogg, Opus where it has the rate; None as soon as that is too much."""
    import soundfile

    kind = "OPUS" if source.samplerate in _OPUS_RATES else "VORBIS"
    made = BytesIO()
    with soundfile.SoundFile(made, "w", source.samplerate, source.channels, kind, format="OGG") as target:
        # In small pieces: libsndfile keeps a whole piece on its stack.
        for piece in source.blocks(source.samplerate):
            target.write(piece)
            if made.tell() > most:
                return None
    return made.getvalue() if len(made.getvalue()) <= most else None
