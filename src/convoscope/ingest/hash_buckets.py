"""Records that belong together by key, spread over bucket files as they are written, and brought together there.

Memory holds one piece of the input, then one bucket.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from convoscope.ingest.discover import Input
from convoscope.ingest.reader import Lines

MAX_BUCKETS = 256
_OTHER_FILES = 64
_LENGTHS = 16
"""Bytes before a frame: the lengths of its head and of its texts."""


class Keyed(NamedTuple):
    """The records of one piece of an input: their numbers, their texts without line ends, and their keys."""

    name: str
    numbers: Sequence[int]
    texts: Sequence[bytes]
    keys: Sequence[str]
    repairs: Mapping[int, tuple[str, ...]] = {}
    """What had to be put right to read them, by their index."""


class SortedRun(NamedTuple):
    """Records of one key that stood in one piece."""

    name: str
    first: int
    offsets: Sequence[int]
    texts: Sequence[bytes]
    repairs: Mapping[int, tuple[str, ...]]

    @property
    def numbers(self) -> list[int]:
        return [self.first + offset for offset in self.offsets]


class KeyedRecords(NamedTuple):
    """All records of one key, in the order of the input."""

    key: str
    runs: Sequence[SortedRun]

    @property
    def lines(self) -> Lines:
        runs = self.runs
        if len(runs) == 1:
            return Lines(self.key, runs[0].texts, (runs[0].name,))
        texts = [text for run in runs for text in run.texts]
        return Lines(self.key, texts, tuple(dict.fromkeys(run.name for run in runs)))


class _RunHead(msgspec.Struct, array_like=True, gc=False):
    """What is known of a run before its texts."""

    key: str
    offsets: list[int]
    repairs: dict[int, tuple[str, ...]] | None = None


class _Head(msgspec.Struct, array_like=True, gc=False):
    """What stands before the texts of a piece: its file, the number that offsets count from, and its runs."""

    name: str
    first: int
    runs: list[_RunHead]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Head).decode


def spread(reader: str, pieces: Iterable[Keyed], scratch: Path, buckets: int) -> Iterator[tuple[int, Input]]:
    """Spread records over at most so many bucket files by the hash of their key; each is then read by itself.

    Gives the files with their numbers.
    """
    buckets = max(1, min(MAX_BUCKETS, buckets))
    scratch.mkdir(parents=True, exist_ok=True)
    paths = [scratch / f"{reader}-{number:03d}.bucket" for number in range(buckets)]
    _allow_open_files(buckets + _OTHER_FILES)
    streams = [path.open("wb") for path in paths]
    try:
        for piece in pieces:
            for bucket, frame in _frames(piece, buckets):
                streams[bucket].write(frame)
    finally:
        for stream in streams:
            stream.close()
    for number, path in enumerate(paths):
        if path.stat().st_size:
            yield number, Input(str(path), path.name, reader, "lines", "key", "")


def bucket_of(key: str, buckets: int) -> int:
    return crc32(key.encode()) % max(1, min(MAX_BUCKETS, buckets))


def _allow_open_files(count: int) -> None:
    """Some systems allow few open files at first, and more to whoever asks."""
    try:
        import resource  # not on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _frames(piece: Keyed, buckets: int) -> Iterator[tuple[int, bytes]]:
    """What each bucket gets of a piece: lengths, a head, and the texts, with a line end between each two."""
    by_key: dict[str, list[int]] = {}
    for index, key in enumerate(piece.keys):
        try:
            by_key[key].append(index)
        except KeyError:
            by_key[key] = [index]
    in_a_row = type(piece.numbers) is range
    heads: dict[int, list[_RunHead]] = {}
    bodies: dict[int, list[bytes]] = {}
    texts, numbers, repairs = piece.texts, piece.numbers, piece.repairs
    for key, indexes in by_key.items():
        bucket = bucket_of(key, buckets)
        head = _RunHead(key, indexes if in_a_row else [numbers[index] for index in indexes])
        if repairs:
            head.repairs = {at: repairs[index] for at, index in enumerate(indexes) if index in repairs}
        if bucket not in heads:
            heads[bucket], bodies[bucket] = [], []
        heads[bucket].append(head)
        bodies[bucket] += [texts[index] for index in indexes]
    first = numbers[0] if in_a_row else 0
    for bucket, runs in heads.items():
        whole, body = _encode(_Head(piece.name, first, runs)), b"\n".join(bodies[bucket])
        yield bucket, b"%08x%08x%b%b" % (len(whole), len(body), whole, body)


def read_bucket(path: Path) -> Iterator[KeyedRecords]:
    """The records of a bucket by key; the order is that in which the keys were first met."""
    by_key: dict[str, list[SortedRun]] = {}
    with path.open("rb") as stream:
        while lengths := stream.read(_LENGTHS):
            head = _decode(stream.read(int(lengths[:8], 16)))
            texts = stream.read(int(lengths[8:], 16)).split(b"\n")
            start = 0
            for run in head.runs:
                end = start + len(run.offsets)
                sorted_run = SortedRun(head.name, head.first, run.offsets, texts[start:end], run.repairs or {})
                start = end
                if run.key in by_key:
                    by_key[run.key].append(sorted_run)
                else:
                    by_key[run.key] = [sorted_run]
    for key, runs_of_key in by_key.items():
        yield KeyedRecords(key, runs_of_key)
