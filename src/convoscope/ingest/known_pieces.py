"""Pieces that were read before, known by their content: what is unchanged in a grown input is not read again."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from convoscope.ingest.discover import Input, fingerprint, size_of
from convoscope.ingest.io import containers as files
from convoscope.ingest.pieces import InputPiece, pieces_of
from convoscope.ingest.recordings import audio_files, digests_of, folder_of
from convoscope.storage import as_path, open_binary

_BLOCK_BYTES = 1024 * 1024
_encode = msgspec.json.Encoder(order="deterministic").encode


class PieceRead(msgspec.Struct, frozen=True, array_like=True):
    """A piece that was read: where it was, and hashes of its content."""

    name: str
    first: int
    start: int
    end: int
    content: str
    """Of its bytes."""
    key: str
    """Of all that its conversations depend on: bytes, companion files, and what other files say of its records."""


def hash_of_pieces(pieces: Iterable[PieceRead]) -> str:
    """A hash of what a part is read from."""
    return hash_of([one.key for one in pieces])


class WeighedPiece(NamedTuple):
    """A piece to be read, and about how many bytes it weighs."""

    piece: InputPiece
    weight: int


class PieceGroup(NamedTuple):
    """Pieces that follow each other, and the number of the part that was read from them; None of a new piece."""

    number: int | None
    pieces: Sequence[WeighedPiece]
    reads: Sequence[PieceRead]


def folders_of(piece: InputPiece) -> tuple[str, ...]:
    """The folders that the log of a piece is in; none for records in memory."""
    if piece.folders:
        return piece.folders
    return () if piece.input.data is not None else (folder_of(piece.input.path),)


class Surroundings:
    """What conversations depend on beside their own log: what is the same for all, and the recordings near the log.

    `audio` is the folder of recordings that the user names. Recordings count `by_content` where metrics listen.
    """

    def __init__(self, common: str = "", audio: str = "", *, by_content: bool = False) -> None:
        self._common = common
        self._audio = audio
        self._by_content = by_content
        self._known: dict[tuple[str, bool], str] = {}

    def of(self, piece: InputPiece) -> tuple[str, ...]:
        near = [self._recordings(folder, is_deep=False) for folder in folders_of(piece)]
        return (self._common, self._recordings(self._audio, is_deep=True) if self._audio else "", *filter(None, near))

    def _recordings(self, folder: str, *, is_deep: bool) -> str:
        if (folder, is_deep) not in self._known:
            listed = audio_files(folder, is_deep=is_deep)
            files = (
                digests_of(folder, listed)
                if self._by_content
                else sorted(os.path.relpath(path, folder) for path in listed.paths)
            )
            self._known[folder, is_deep] = hash_of(files) if files else ""
        return self._known[folder, is_deep]


def piece_read(piece: InputPiece, surroundings: Surroundings, content: str = "") -> PieceRead:
    """A piece as it can be recognised later; `content` is its hash, where it is known.

    Hashed before the piece is read: of a file that changes meanwhile, the next run sees another hash.
    """
    item, same = piece.input, piece.same
    content = content or _content_of(piece)
    depends_on = (
        surroundings.of(piece),
        content,
        # A name need not be UTF-8.
        (item.name, ascii(as_path(item.path).name), item.reader, item.container, item.grouping),
        (piece.first, piece.problem, piece.hint, sorted(piece.apart), piece.elsewhere),
        (
            [*map(list, (same.repeated, same.longer, same.copies, same.labelled))],
            repr(same.earlier) if same.earlier else "",
        ),
        [(ascii(as_path(one.path).name), one.format, hash_of_file(as_path(one.path))) for one in item.companions],
    )
    return PieceRead(item.name, piece.first, piece.start, piece.end, content, hash_of(depends_on))


def hash_of(value: object) -> str:
    """A hash of plain values: the same in every process."""
    return _hash(_encode(value))


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _content_of(piece: InputPiece) -> str:
    try:
        if piece.data is not None:
            return _hash(piece.data)
        if piece.end > piece.start:
            with open_binary(as_path(piece.input.path)) as stream:
                stream.seek(piece.start)
                return _hash(stream.read(piece.end - piece.start))
        return fingerprint(msgspec.structs.replace(piece.input, companions=()))
    except OSError as error:  # it is reported when the piece is read
        return f"cannot be read: {error.strerror or error}"


def hash_of_file(path: Path) -> str:
    """A hash of a file that many inputs may be read with."""
    try:
        status = path.stat()
        return _hash_of_state(path, status.st_mtime_ns, status.st_size)
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"


@lru_cache(maxsize=4096)
def _hash_of_state(path: Path, _changed: int, _size: int) -> str:
    return _hash(path.read_bytes())


class _Unchanged(NamedTuple):
    """A piece that is as it was, and how many lines it has."""

    read: PieceRead
    lines: int


class KnownParts:
    """The parts of a run, by the pieces that they were read from."""

    def __init__(
        self,
        parts: Iterable[tuple[int, Sequence[PieceRead]]],
        free: Iterator[int],
        surroundings: Surroundings,
        same: Container[str] = (),
    ) -> None:
        """`same` are the names of the logs that are known to hold what was read from them."""
        self._same = same
        self.free = free
        """The numbers of new parts."""
        self.order: list[int] = []
        """The numbers of all parts, known and new ones, in the order of the input, as they are cut."""
        self._surroundings = surroundings
        self._by_first: dict[str, list[tuple[int, list[str]]]] = {}
        self._by_name: dict[str, list[PieceRead]] = {}
        self._unchanged: dict[tuple[str, str], list[_Unchanged]] = {}
        for number, pieces in parts:
            if pieces:
                self._by_first.setdefault(pieces[0].key, []).append((number, [one.key for one in pieces]))
            for piece in pieces:
                self._by_name.setdefault(piece.name, []).append(piece)

    def pieces_of(self, item: Input, index: int, size: int) -> Iterator[InputPiece]:
        """An input as pieces. A log of lines is cut where it was cut before, and anew between that and behind it."""
        before = self._by_name.get(item.name, ())
        path = as_path(item.path)
        is_log = item.container == "lines" and item.data is None
        if not before or not is_log or not (_is_plain(path) if item.state is None else item.state.is_plain):
            yield from pieces_of(item, index, size)
            return
        first, start = 1, 0
        with open_binary(path) as stream:
            for read, lines in self._unchanged_of(item, before):
                yield from _cut(item, index, stream, size, first, start, read.start)
                yield InputPiece(item, index, read.first, read.start, read.end)
                first, start = read.first + lines, read.end
            yield from _cut(item, index, stream, size, first, start, None)

    def _unchanged_of(self, item: Input, before: Iterable[PieceRead]) -> Sequence[_Unchanged]:
        """The pieces of a log that are as they were, and where they were. They are looked at once."""
        known = self._unchanged.get((item.name, item.path))
        if known is None:
            known = self._unchanged[item.name, item.path] = []
            first, at = 1, 0
            in_order, is_same = sorted(before, key=lambda one: one.start), item.name in self._same
            with open_binary(as_path(item.path)) as stream:
                for read, following in zip_longest(in_order, in_order[1:]):
                    if read.start < at:
                        continue
                    # An attempt that was killed has finished parts behind one that it has not.
                    first, at = first + _lines_between(stream, at, read.start), read.start
                    if read.first != first or not (is_same or _begins_line(stream, read.start)):
                        continue
                    if lines := (is_same and _lines_known(item, read, following)) or _lines_of(stream, read):
                        known.append(_Unchanged(read, lines))
                        first, at = first + lines, read.end
        return known

    def content_of(self, piece: InputPiece) -> str:
        """The hash of a piece that was found to be unchanged; else nothing."""
        if piece.data is not None or piece.start >= piece.end:
            return ""
        known = self._unchanged.get((piece.input.name, piece.input.path), ())
        at = bisect_left(known, piece.start, key=lambda one: one.read.start)
        read = known[at].read if at < len(known) else None
        return read.content if read is not None and (read.start, read.end) == (piece.start, piece.end) else ""

    def matched(self, pieces: Iterable[WeighedPiece]) -> Iterator[PieceGroup]:
        """Pieces in their order: those that a part was read from together, new ones one by one."""
        source = (
            (weighed, piece_read(weighed.piece, self._surroundings, self.content_of(weighed.piece)))
            for weighed in pieces
        )
        pending: deque[tuple[WeighedPiece, PieceRead]] = deque(islice(source, 1))
        while pending:
            number, count = None, 1
            for part, keys in self._by_first.get(pending[0][1].key, ()):
                pending.extend(islice(source, max(0, len(keys) - len(pending))))
                if [read.key for _, read in islice(pending, len(keys))] == keys:
                    number, count = part, len(keys)
                    break
            taken = [pending.popleft() for _ in range(count)]
            yield PieceGroup(number, [one for one, _ in taken], [read for _, read in taken])
            pending.extend(islice(source, 0 if pending else 1))


def _cut(
    item: Input, index: int, stream: IO[bytes], size: int, first: int, start: int, end: int | None
) -> Iterator[InputPiece]:
    """The lines of a log from `start`, which is the beginning of line `first`, to `end`.

    A log that was cut from its beginning, as `pieces_of` does, was cut before the line that reaches beyond a multiple
    of `size`. It is cut there again, so that a run that goes on has the parts of one that never stopped.
    """
    stream.seek(start)
    begun = stream.readline(-start % size) if start != end else b""
    if begun.endswith(b"\n"):
        begun = b""
        stream.seek(start)
    for new in files.ranges_of_lines(stream, size, plain=True, begun=begun) if start != end else ():
        at, to = start + new.start, start + new.end
        if end is not None and at >= end:
            return
        to = to if end is None else min(to, end)
        yield InputPiece(item, index, *new._replace(first=first + new.first - 1, start=at, end=to))


def _lines_between(stream: IO[bytes], start: int, end: int) -> int:
    """How many lines end from one position to another."""
    stream.seek(start)
    lines = 0
    while start < end and (data := stream.read(min(_BLOCK_BYTES, end - start))):
        lines, start = lines + data.count(b"\n"), start + len(data)
    return lines


def _begins_line(stream: IO[bytes], start: int) -> bool:
    stream.seek(max(0, start - 1))
    return start == 0 or stream.read(1) == b"\n"


def _is_plain(path: Path) -> bool:
    try:
        return files.is_plain(path)
    except OSError:
        return False


def _lines_known(item: Input, read: PieceRead, following: PieceRead | None) -> int:
    """The lines of a piece of an unchanged log, by the piece that follows; 1 for the last one, which none follows."""
    if read.end <= read.start:  # a line that is too long
        return 0
    if following is None:
        return int(read.end == size_of(item))
    return following.first - read.first if following.start == read.end else 0


def _lines_of(stream: IO[bytes], earlier: PieceRead) -> int:
    """The lines of a piece that is still as it was; 0 where it is not, or where its last line may have gone on."""
    stream.seek(earlier.start)
    data = stream.read(earlier.end - earlier.start)
    is_same = len(data) == earlier.end - earlier.start and _hash(data) == earlier.content
    return data.count(b"\n") if is_same and data.endswith(b"\n") else 0
