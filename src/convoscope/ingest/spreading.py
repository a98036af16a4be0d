"""Records that belong together by key, spread over bucket files as they are written, and brought together there.

Memory holds one piece of the input, then one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from convoscope.ingest.inputs import Input
from convoscope.ingest.reader import Lines

MAX_BUCKETS = 256
_LENGTHS = 16
"""Bytes before a frame: the lengths of its head and of its texts."""


class Keyed(NamedTuple):
    """The records of one piece of an input: their numbers, their texts without line ends, and their keys."""

    place: int
    name: str
    numbers: Sequence[int]
    texts: Sequence[bytes]
    keys: Sequence[str]
    repairs: Mapping[int, tuple[str, ...]] = {}
    """What had to be put right to read them, by their index."""


class Run(NamedTuple):
    """Records of one key that stood in one piece: their texts with line ends between them."""

    place: int
    name: str
    numbers: Sequence[int]
    text: bytes
    repairs: Mapping[int, tuple[str, ...]]


class Together(NamedTuple):
    """All records of one key, in the order of the input."""

    key: str
    runs: Sequence[Run]

    @property
    def lines(self) -> Lines:
        texts = [run.text for run in self.runs]
        files = tuple(dict.fromkeys(run.name for run in self.runs))
        count = sum(len(run.numbers) for run in self.runs)
        return Lines(self.key, texts[0] if len(texts) == 1 else b"\n".join(texts), count, files)


class _RunHead(msgspec.Struct, array_like=True):
    """What is known of a run before its text."""

    key: str
    size: int
    numbers: Sequence[int]
    repairs: dict[int, tuple[str, ...]]


class _Head(msgspec.Struct, array_like=True):
    """What stands before the texts of a piece."""

    place: int
    name: str
    runs: list[_RunHead]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


def spread(reader: str, pieces: Iterable[Keyed], scratch: Path, buckets: int) -> Iterator[Input]:
    """Spread records over at most so many bucket files by the hash of their key; each is then read by itself."""
    buckets = max(1, min(MAX_BUCKETS, buckets))
    scratch.mkdir(parents=True, exist_ok=True)
    paths = [scratch / f"{reader}-{number:03d}.bucket" for number in range(buckets)]
    streams = [path.open("wb") for path in paths]
    try:
        for piece in pieces:
            for bucket, frame in _frames(piece, buckets):
                streams[bucket].write(frame)
    finally:
        for stream in streams:
            stream.close()
    for path in paths:
        if path.stat().st_size:
            yield Input(str(path), path.name, reader, "lines", "key", "")


def _frames(piece: Keyed, buckets: int) -> Iterator[tuple[int, bytes]]:
    """What each bucket gets of a piece."""
    by_key: dict[str, list[int]] = {}
    for index, key in enumerate(piece.keys):
        try:
            by_key[key].append(index)
        except KeyError:
            by_key[key] = [index]
    heads: dict[int, list[_RunHead]] = {}
    texts: dict[int, list[bytes]] = {}
    for key, indexes in by_key.items():
        bucket = crc32(key.encode()) % buckets
        text = b"\n".join([piece.texts[index] for index in indexes])
        repairs = {at: piece.repairs[index] for at, index in enumerate(indexes) if index in piece.repairs}
        heads.setdefault(bucket, []).append(
            _RunHead(key, len(text), [piece.numbers[index] for index in indexes], repairs)
        )
        texts.setdefault(bucket, []).append(text)
    for bucket, runs in heads.items():
        head, body = _encode(_Head(piece.place, piece.name, runs)), b"".join(texts[bucket])
        yield bucket, b"%08x%08x%b%b" % (len(head), len(body), head, body)


def together(path: Path) -> Iterator[Together]:
    """The records of a bucket by key; the order is that in which the keys were first met."""
    by_key: dict[str, list[Run]] = {}
    with path.open("rb") as stream:
        while lengths := stream.read(_LENGTHS):
            place, name, runs = msgspec.structs.astuple(_decode(stream.read(int(lengths[:8], 16))))
            body = stream.read(int(lengths[8:], 16))
            start = 0
            for run in runs:
                end = start + run.size
                found = Run(place, name, run.numbers, body[start:end], run.repairs)
                start = end
                if run.key in by_key:
                    by_key[run.key].append(found)
                else:
                    by_key[run.key] = [found]
    for key, mine in by_key.items():
        yield Together(key, mine)
