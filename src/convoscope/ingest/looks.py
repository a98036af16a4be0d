"""First looks at records, kept by the content of their piece: of what is unchanged, only a file of hashes is read."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import IO, NamedTuple
from zlib import crc32

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.pieces import InputPiece, pieces_of, readable_texts_of

LookAt = Callable[[Iterable[tuple[int, bytes]]], "array[int]"]
"""What is seen of the records of a piece, numbered from 0: so many integers of each."""
_HEAD = Struct("<III")
"""Bytes of a name, bytes of what was seen, and the checksum of both."""


def hash_of_text(data: bytes) -> int:
    """A hash of eight bytes: the same in every process."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little", signed=True)


class _Seen(NamedTuple):
    """Where it is in the file."""

    at: int
    size: int
    checksum: int


class Looks:
    """What was seen of the records of each piece: taken from the file `before`, where it is there, and put into `out`.

    A file that does not fit is not used: its pieces are looked at again.
    """

    def __init__(self, before: Path | None = None, out: Path | None = None) -> None:
        self._out = out
        self._kept: dict[bytes, _Seen] = {}
        self._written: set[bytes] = set()
        self._file: IO[bytes] | None = None
        if before is not None:
            with suppress(OSError):
                self._file = before.open("rb")
                self._kept = dict(_listed(self._file))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()

    def at(self, piece: InputPiece, kind: str, width: int, look: LookAt, content: str = "") -> array[int]:
        """What is seen of a piece: `width` integers for each record. `content` is its hash, where it is known."""
        if content and (seen := self._read(_name(piece, kind, content), width)) is not None:
            return seen
        try:
            data = piece.content
        except (OSError, InputError):  # it is reported when the piece is read
            return array("q")
        # Of the bytes that are looked at, whatever becomes of the file.
        name = _name(piece, kind, hash_of_content(data))
        if (seen := self._read(name, width)) is None:
            seen = look((number - piece.first, text) for number, text in readable_texts_of(piece, data))
            self._write(name, seen.tobytes())
        return seen

    def _read(self, name: bytes, width: int) -> array[int] | None:
        where = self._kept.get(name)
        if where is None or self._file is None or where.size % (8 * width):
            return None
        with suppress(OSError):
            self._file.seek(where.at)
            data = self._file.read(where.size)
            if len(data) == where.size and crc32(name + data) == where.checksum:
                self._write(name, data)
                seen = array("q")
                seen.frombytes(data)
                return seen
        return None

    def _write(self, name: bytes, data: bytes) -> None:
        if self._out is None or name in self._written:
            return
        is_first = not self._written
        self._written.add(name)
        self._out.parent.mkdir(parents=True, exist_ok=True)
        with self._out.open("wb" if is_first else "ab") as stream:
            stream.write(_HEAD.pack(len(name), len(data), crc32(name + data)) + name + data)


def hash_of_content(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _name(piece: InputPiece, kind: str, content: str) -> bytes:
    item = piece.input
    return f"{kind} {sys.byteorder} {item.reader} {item.container} {content}".encode()


def _listed(stream: IO[bytes]) -> Iterator[tuple[bytes, _Seen]]:
    end = stream.seek(0, 2)
    stream.seek(0)
    while len(head := stream.read(_HEAD.size)) == _HEAD.size:
        of_name, size, checksum = _HEAD.unpack(head)
        at = stream.tell() + of_name
        if at + size > end:
            return
        yield stream.read(of_name), _Seen(at, size, checksum)
        stream.seek(at + size)


class PiecesOf(NamedTuple):
    """The pieces that inputs are cut into, and what is seen at a first look at each."""

    size: Callable[[int], int] = lambda _: 0
    """About how large the pieces of an input are, by its index."""
    cut: Callable[[Input, int, int], Iterator[InputPiece]] = pieces_of
    content_of: Callable[[InputPiece], str] = lambda _: ""
    """The hash of a piece that was found to be unchanged."""
    looks: Looks = Looks()

    def of(self, item: Input, index: int) -> Iterator[InputPiece]:
        return self.cut(item, index, self.size(index))

    def seen(self, item: Input, index: int, kind: str, width: int, look: LookAt) -> Iterator[array[int]]:
        """What is seen of each piece of an input."""
        for piece in self.of(item, index):
            yield self.looks.at(piece, kind, width, look, self.content_of(piece))
