"""Records that belong together by a key, such as the id of their conversation: the key of each record of a file."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.hash_buckets import Keyed
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson
from convoscope.ingest.pieces import InputPiece, cut_up, data_of, texts_of
from convoscope.ingest.raw_records import UNKEYED, json_record, not_json, record_name, whole_texts
from convoscope.ingest.reader import Reader, reader_named
from convoscope.ingest.report import Problem, ReadReport
from convoscope.ingest.row_ids import HEAD, RowKeys

_encode = msgspec.json.Encoder().encode


def share_keys(reader: str, keyed: Sequence[tuple[int, Input]], size: int) -> bool:
    """Whether any two records belong together. Only hashes are held, eight bytes for each record."""
    key_of = reader_named(reader).quick_key
    seen: set[int] = set()
    hashes = array("q")
    for place, item in keyed:
        for piece in cut_up(InputPiece(item, place), size):
            codes = array("q", map(hash, _keys(piece, key_of)))
            if len(hashes) < _EARLY:
                seen.update(codes)
                if len(seen) < len(hashes) + len(codes):
                    return True
            hashes.extend(codes)
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return bool((ordered[1:] == ordered[:-1]).any())


def _keys(piece: InputPiece, key_of: Callable[[bytes], str | None]) -> Iterator[str]:
    """The keys of a piece's records; what cannot be read is told when it is read."""
    if piece.problem:
        return
    with suppress(OSError, InputError):
        for _, text in texts_of(piece):
            if text:
                try:
                    key = key_of(text)
                except BadJson:
                    continue
                if key is not None:
                    yield key


_EARLY = 100_000
"""Of about so many records it is known at once that two belong together, of the others in the end."""


def keyed_pieces(whole: InputPiece, reader: Reader, report: ReadReport, size: int) -> Iterator[Keyed]:
    """The pieces of a file, with the keys of their records."""
    first: list[str | None] = []
    if reader.joins_messages:
        unreported = ReadReport()
        rows = (row for piece in cut_up(whole, size) for row in _own_keys(piece, reader, unreported))
        first = [key for _, _, key in islice(rows, HEAD)]
    keys = RowKeys(first)
    for piece in cut_up(whole, size):
        yield _with_keys(piece, reader, report, keys)


def _with_keys(piece: InputPiece, reader: Reader, report: ReadReport, row_keys: RowKeys) -> Keyed:
    """The records of a piece, and the key of each; they are decoded in their buckets.

    What is not JSON is told here or there, but once.
    """
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
            message = "has no conversation id"
            report.problem(Problem(item.name, number, message, hint="add a conversation_id"))
            continue
        if item.container == "lines":
            texts.append(text)
        elif (record := json_record(text, number, item.name, report)) is not None:
            # What is no line may hold line ends.
            if record.repairs:
                repairs[len(texts)] = record.repairs
            texts.append(_encode(record.value))
        else:
            continue
        numbers.append(number)
        keys.append(key)
    return Keyed(item.name, numbers, texts, keys, repairs)


def _own_keys(piece: InputPiece, reader: Reader, report: ReadReport) -> Iterator[tuple[int, bytes, str | None]]:
    """The records of a piece, each with the key that it has itself."""
    for number, text in whole_texts(piece, report):
        try:
            key = reader.quick_key(text)
        except BadJson as error:
            report.problem(not_json(piece.input.name, number, error))
        else:
            yield number, text, key


def _usual_lines(piece: InputPiece, reader: Reader, report: ReadReport) -> Keyed | None:
    """The lines of a piece, where each has a key that is seen at once."""
    try:
        data = data_of(piece)
    except (OSError, InputError):
        return None
    if len(data) > files.MAX_RECORD_BYTES:
        return None
    lines = [line.strip() for line in data.split(b"\n")]
    keys = reader.quick_keys(lines)
    if keys is None:
        return None
    report.records_seen += len(lines)
    return Keyed(piece.input.name, range(piece.first, piece.first + len(lines)), lines, keys)


__all__ = ["keyed_pieces", "share_keys"]
