"""Records that belong together by a key, such as the id of their conversation: spread over bucket files, and joined.

Each record gets its key. Records of one key go to one bucket file as they are written, and each bucket is read by
itself: memory holds one piece of the input, then one bucket.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.ids import has_time, is_counter
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson
from convoscope.ingest.looks import PiecesOf, hash_of_text
from convoscope.ingest.pieces import (
    InputPiece,
    json_record,
    not_json,
    pieces_of,
    record_name,
    reported_texts,
)
from convoscope.ingest.reader import Lines, Reader, Record, reader_named
from convoscope.ingest.record import as_object
from convoscope.ingest.report import Problem, ReadReport

MAX_BUCKETS = 256
_OTHER_FILES = 64
_LENGTH = 8
"""Bytes before a frame, which hold its length."""
UNKEYED = "\0"
"""Begins the key of a record that has none."""
_FIRST_ROWS = 50
"""Rows at the start of a file that decide whether its ids are filled down."""
_EARLY = 100_000
"""Of about so many records it is known at once that two belong together, of the others in the end."""
_OWNERS = frozenset(
    {"customer_id", "customerId", "tenant", "tenant_id", "tenantId", "account_id", "accountId", "org_id", "orgId"}
    | {"organization_id", "organizationId", "workspace_id", "workspaceId", "company_id", "companyId", "site_id"}
)
"""Whose conversation a message is of; not who wrote it, as `user_id` may be."""
_TEXTS = ("content", "text", "message")
_encode_json = msgspec.json.Encoder().encode


class KeyedPiece(NamedTuple):
    """The records of one piece of an input: their numbers, their texts without line ends, and their keys."""

    name: str
    numbers: Sequence[int]
    texts: Sequence[bytes]
    keys: Sequence[str]
    repairs: Mapping[int, tuple[str, ...]] = {}
    """What had to be put right to read them, by their index."""


class SortedRun(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """Records of one key that were in one piece."""

    key: str
    name: str
    numbers: list[int]
    texts: list[bytes]
    repairs: dict[int, tuple[str, ...]] = {}


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

    def decoded(self, report: ReadReport) -> Iterator[Record]:
        for run in self.runs:
            for index, (number, text) in enumerate(zip(run.numbers, run.texts, strict=True)):
                if (record := json_record(text, number, run.name, report)) is not None:
                    yield Record(record.value, number, run.repairs.get(index, ()) + record.repairs, run.name)


_encode_runs = msgspec.msgpack.Encoder().encode
_decode_runs = msgspec.msgpack.Decoder(list[SortedRun]).decode


def spread(reader: str, pieces: Iterable[KeyedPiece], scratch: Path, buckets: int) -> Iterator[tuple[int, Input]]:
    """Spread records over at most so many bucket files by the hash of their key; gives the files with their numbers."""
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
    """Some systems allow few open files at first, and more on request."""
    try:
        import resource  # not on Windows
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        most = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _frames(piece: KeyedPiece, buckets: int) -> Iterator[tuple[int, bytes]]:
    """What each bucket gets of a piece: its runs, after their length."""
    by_key: dict[str, list[int]] = {}
    for index, key in enumerate(piece.keys):
        try:
            by_key[key].append(index)
        except KeyError:
            by_key[key] = [index]
    runs: dict[int, list[SortedRun]] = {}
    name, texts, numbers, repairs = piece.name, piece.texts, piece.numbers, piece.repairs
    for key, indexes in by_key.items():
        run = SortedRun(key, name, [numbers[index] for index in indexes], [texts[index] for index in indexes])
        if repairs:
            run.repairs = {at: repairs[index] for at, index in enumerate(indexes) if index in repairs}
        runs.setdefault(bucket_of(key, buckets), []).append(run)
    for bucket, held in runs.items():
        frame = _encode_runs(held)
        yield bucket, len(frame).to_bytes(_LENGTH) + frame


def read_bucket(path: Path) -> Iterator[KeyedRecords]:
    """The records of a bucket by key, in the order in which the keys came first."""
    by_key: dict[str, list[SortedRun]] = {}
    with path.open("rb") as stream:
        while length := stream.read(_LENGTH):
            for run in _decode_runs(stream.read(int.from_bytes(length))):
                if run.key in by_key:
                    by_key[run.key].append(run)
                else:
                    by_key[run.key] = [run]
    for key, runs_of_key in by_key.items():
        yield KeyedRecords(key, runs_of_key)


# The keys of the records of an input.


def share_keys(reader: str, keyed: Sequence[tuple[int, Input]], pieces: PiecesOf) -> bool:
    """Whether any two records belong together. Only hashes are held, eight bytes for each record."""
    key_of = reader_named(reader).quick_key

    def look(texts: Iterable[tuple[int, bytes]]) -> array[int]:
        seen = array("q")
        for _, text in texts:
            with suppress(BadJson):
                if (key := key_of(text)) is not None:
                    seen.append(hash_of_text(key.encode("utf-8", "surrogatepass")))
        return seen

    early: set[int] = set()
    hashes = array("q")
    for index, item in keyed:
        for seen in pieces.seen(item, index, "keys", 1, look):
            is_early = len(hashes) < _EARLY
            hashes.extend(seen)
            if is_early:
                early.update(seen)
                if len(early) < len(hashes):
                    return True
    return bool(shared_hashes(hashes))


def shared_hashes(hashes: array[int]) -> set[int]:
    """The hashes that occur more than once."""
    if len(hashes) < _EARLY:
        return {key for key, count in Counter(hashes).items() if count > 1}
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


def keyed_pieces(item: Input, index: int, reader: Reader, report: ReadReport, size: int) -> Iterator[KeyedPiece]:
    """The pieces of a file, with the keys of their records."""
    first: list[str | None] = []
    if reader.joins_messages:
        unreported = ReadReport()
        rows = (row for piece in pieces_of(item, index, size) for row in _own_keys(piece, reader, unreported))
        first = [key for _, _, key in islice(rows, _FIRST_ROWS)]
    keys = RowKeys(first)
    for piece in pieces_of(item, index, size):
        yield _with_keys(piece, reader, report, keys)


def _with_keys(piece: InputPiece, reader: Reader, report: ReadReport, row_keys: RowKeys) -> KeyedPiece:
    """The records of a piece, and the key of each. They are decoded in their buckets; what is not JSON is said once."""
    item = piece.input
    is_usual = item.container == "lines" and not piece.problem and not row_keys.fills
    if is_usual and (usual := _usual_lines(piece, reader, report)) is not None:
        return usual
    texts = list[bytes]()
    numbers, keys, repairs = list[int](), list[str](), dict[int, tuple[str, ...]]()
    for number, text, own_key in _own_keys(piece, reader, report):
        key = row_keys.of(own_key)
        if key is None and reader.unkeyed_record_is_conversation:
            key = UNKEYED + record_name(item, number)
        if key is None:
            report.problem(Problem(item.name, number, "has no conversation id", hint="add a conversation_id"))
            continue
        if item.container == "lines":
            texts.append(text)
        elif (record := json_record(text, number, item.name, report)) is not None:
            # What is no line may hold line ends.
            if record.repairs:
                repairs[len(texts)] = record.repairs
            texts.append(_encode_json(record.value))
        else:
            continue
        numbers.append(number)
        keys.append(key)
    return KeyedPiece(item.name, numbers, texts, keys, repairs)


def _own_keys(piece: InputPiece, reader: Reader, report: ReadReport) -> Iterator[tuple[int, bytes, str | None]]:
    """The records of a piece, each with the key that it has itself."""
    for number, text in reported_texts(piece, report):
        try:
            key = reader.quick_key(text)
        except BadJson as error:
            report.problem(not_json(piece.input.name, number, error))
        else:
            yield number, text, key


def _usual_lines(piece: InputPiece, reader: Reader, report: ReadReport) -> KeyedPiece | None:
    """The lines of a piece, where each has a key that is seen at once."""
    try:
        data = piece.content
    except (OSError, InputError):
        return None
    if len(data) > files.MAX_RECORD_BYTES:
        return None
    lines = [line.strip() for line in data.split(b"\n")]
    keys = reader.quick_keys(lines)
    if keys is None:
        return None
    report.records_seen += len(lines)
    return KeyedPiece(piece.input.name, range(piece.first, piece.first + len(lines)), lines, keys)


class RowKeys:
    """The keys of the rows of a file, in their order; where ids are filled down, a row has the id above it."""

    def __init__(self, first: Sequence[str | None]) -> None:
        """`first` are the keys of the first rows, of which the last conversation may go on.

        Ids are filled down where each id is there once, in the first row of its conversation, and most rows have none.
        """
        counts = Counter(key for key in first if key is not None)
        is_first = bool(first) and first[0] is not None
        self.fills = is_first and 2 * len(counts) <= len(first) and max(counts.values()) == 1
        self._last: str | None = None

    def of(self, key: str | None) -> str | None:
        if self.fills:
            self._last = key if key is not None else self._last
            return self._last
        return key


# Ids that several conversations use.


def separated(key: str, records: Sequence[Record]) -> list[list[Record]]:
    """The messages of one id, apart where they are of different customers; and of files that count by themselves.

    Messages with times are left together: sessions are split by silence.
    """
    first = records[0].value if records else None
    for name in sorted(_OWNERS.intersection(first)) if isinstance(first, dict) else ():
        owners = [as_object(record.value).get(name) for record in records]
        if parts := _parted([one if isinstance(one, str | int) and one != "" else None for one in owners], records):
            return parts
    if is_counter(key) and not any(has_time(record.value) for record in records):
        parts = _parted([record.file for record in records], records)
        begins = [as_object(part[0].value) for part in parts]
        first_texts = {str([begin[name] for name in _TEXTS if name in begin]) for begin in begins}
        roles = [{str(one.value.get("role")) for one in part if isinstance(one.value, dict)} for part in parts]
        if parts and len(first_texts) == len(parts) and all(len(some) > 1 for some in roles):
            return parts
    return [list(records)]


def _parted(values: Sequence[Hashable], records: Sequence[Record]) -> list[list[Record]]:
    """Records by a value that all have and that differs; nothing where it does not."""
    if None in values or len(set(values)) < 2:
        return []
    parts: dict[Hashable, list[Record]] = {}
    for value, record in zip(values, records, strict=True):
        parts.setdefault(value, []).append(record)
    return list(parts.values())
