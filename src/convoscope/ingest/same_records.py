"""Records that say again what others say: copies, and beginnings of longer ones, found before anything is read.

A first look at the bytes gives each record quick keys. Only records that share one are decoded and compared, so that a
log without repetitions costs one look at its bytes. Sixteen bytes are held for each record.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.copies import CopyFinder, RecordKey, apart_by_input, quick_copy_key
from convoscope.ingest.discover import Input
from convoscope.ingest.histories import ModelCall, call_of, parts_of
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import decode
from convoscope.ingest.pieces import InputPiece, cut_up, texts_of
from convoscope.ingest.reader import Reader, reader_named
from convoscope.ingest.report import ReadReport

_FEW = 100_000
"""Of fewer records the keys are counted without an array."""
_USER = b'"user"'


class SameRecords(NamedTuple):
    """Of one input: records that are not read, and those that take others in, by their numbers in order."""

    repeated: Sequence[int] = ()
    """They are said again by longer ones."""
    longer: Sequence[int] = ()
    """A number for each record that is a part of it."""
    copies: Sequence[int] = ()

    def between(self, first: int, end: int | None) -> SameRecords:
        """Those of the records from `first` to before `end`."""
        return SameRecords(*(numbers[_index(numbers, first) : _index(numbers, end)] for numbers in self))


def _index(numbers: Sequence[int], number: int | None) -> int:
    return len(numbers) if number is None else bisect_left(numbers, number)


def same_records(inputs: Sequence[Input], size: int, report: ReadReport) -> Mapping[int, SameRecords]:
    """By the index of an input, its records that say what others say; equal ones that are kept go to the report."""
    wholes = [InputPiece(item, place) for place, item in enumerate(inputs) if _stand_alone(item)]
    if len(wholes) < 2 and all(one.input.container in ("document", "members") for one in wholes):
        return {}
    keys = _FirstLook(wholes, size)
    if not keys.copies and not keys.histories:
        return {}
    finder, calls, others = CopyFinder(), list[ModelCall](), dict[int, int]()
    for whole in wholes:
        comparison = _Comparison(whole, keys, finder, calls)
        for piece in cut_up(whole, size):
            for number, text in _readable_texts(piece):
                comparison.take(RecordKey(piece.place, number), text)
        others[whole.place] = comparison.exchanges
    copies = finder.copies(keys.counts)
    dropped = set(copies.dropped)
    for record in copies.equal:
        report.keep_equal(inputs[record.place].name, record.number)
    parts = parts_of((call for call in calls if call.record not in dropped), others)
    return _by_place(parts, copies.dropped)


def _stand_alone(item: Input) -> bool:
    return item.grouping == "record" and item.container != "text"


class _FirstLook:
    """The hashes of quick keys that several records have."""

    def __init__(self, wholes: Sequence[InputPiece], size: int) -> None:
        self.counts: dict[int, int] = {}
        copies, histories = array("q"), array("q")
        for whole in wholes:
            reader = reader_named(whole.input.reader)
            before = len(copies)
            with suppress(OSError):
                for text in _quick_look(whole, size):
                    copies.append(quick_copy_key(text))
                    if reader.logs_calls:
                        histories.append(_history_key(reader, text))
            self.counts[whole.place] = len(copies) - before
        self.copies, self.histories = _shared(copies), _shared(histories)


def _history_key(reader: Reader, text: bytes) -> int:
    return hash((reader.name, reader.history_key(text)))


def _shared(hashes: array[int]) -> set[int]:
    if len(hashes) < _FEW:
        return {key for key, count in Counter(hashes).items() if count > 1}
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


def _quick_look(whole: InputPiece, size: int) -> Iterator[bytes]:
    """The records of an input as they are written, without their numbers."""
    path = Path(whole.input.path)
    if whole.input.container == "lines" and files.is_plain(path):
        with path.open("rb") as stream:
            for line in iter(partial(stream.readline, files.MAX_RECORD_BYTES), b""):
                if not line.isspace():
                    yield line
    else:
        yield from (text for piece in cut_up(whole, size) for _, text in _readable_texts(piece))


def _readable_texts(piece: InputPiece) -> Iterator[tuple[int, bytes]]:
    """The records of a piece with their numbers; what cannot be read is reported when it is read."""
    if not piece.problem:
        with suppress(OSError, InputError):
            for number, text in texts_of(piece):
                if text and len(text) <= files.MAX_RECORD_BYTES:
                    yield number, text


class _Comparison:
    """Takes in the records of an input that share a quick key with another one."""

    def __init__(self, whole: InputPiece, keys: _FirstLook, finder: CopyFinder, calls: list[ModelCall]) -> None:
        self.reader, self.apart = reader_named(whole.input.reader), apart_by_input(whole.input)
        self.keys, self.finder, self.calls = keys, finder, calls
        self.exchanges = 0
        """About how many earlier exchanges the records have that are no beginnings of others, nor go on with one."""

    def take(self, record: RecordKey, text: bytes) -> None:
        reader, keys = self.reader, self.keys
        may_be_copy = bool(keys.copies) and quick_copy_key(text) in keys.copies
        may_be_part = reader.logs_calls and bool(keys.histories) and _history_key(reader, text) in keys.histories
        if reader.logs_calls and not may_be_part:
            self.exchanges += max(0, text.count(_USER) - 1)
        if not (may_be_copy or may_be_part):
            return
        try:
            value = decode(text).value
            if may_be_copy:
                self.finder.add(record, value, self.apart)
            history = reader.history(value) if may_be_part else None
        except Exception:  # whatever it trips over, `build` looks at it, and reports it
            return
        if history is not None and history.messages:
            self.calls.append(call_of(record, history))


def _by_place(parts: Mapping[RecordKey, RecordKey], dropped: Iterable[RecordKey]) -> dict[int, SameRecords]:
    numbers: dict[int, tuple[list[int], list[int], list[int]]] = {}

    def of(record: RecordKey, kind: int) -> None:
        numbers.setdefault(record.place, ([], [], []))[kind].append(record.number)

    for part, longer in parts.items():
        of(part, 0)
        of(longer, 1)
    for copy in dropped:
        of(copy, 2)
    return {place: SameRecords(*(array("q", sorted(one)) for one in lists)) for place, lists in numbers.items()}


def without_same(cuts: Iterable[InputPiece], same: SameRecords) -> Iterator[InputPiece]:
    """The pieces of an input, each with what others say of it; the next one says where it ends."""
    held: InputPiece | None = None
    for piece in cuts:
        if held is not None:
            yield with_same(held, same.between(held.first, piece.first))
        held = piece
    if held is not None:
        yield with_same(held, same.between(held.first, None))


def with_same(piece: InputPiece, same: SameRecords) -> InputPiece:
    return msgspec.structs.replace(
        piece,
        repeated=frozenset(same.repeated),
        takes_in=Counter(same.longer),
        copies=frozenset(same.copies),
    )
