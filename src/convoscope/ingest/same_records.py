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
from typing import Any, NamedTuple

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
from convoscope.ingest.windows import Window, Windows, windows_of

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
    earlier: Mapping[int, Sequence[Any]] = {}
    """Messages of a conversation that only earlier windows of it have, by the number of the last."""

    def between(self, first: int, end: int | None) -> SameRecords:
        """Those of the records from `first` to before `end`."""
        repeated, longer, copies = (
            numbers[_index(numbers, first) : _index(numbers, end)]
            for numbers in (self.repeated, self.longer, self.copies)
        )
        earlier = {number: one for number, one in self.earlier.items() if number >= first and (not end or number < end)}
        return SameRecords(repeated, longer, copies, earlier)


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
    calls = [call for call in calls if call.record not in dropped]
    windows = windows_of(calls) if keys.seconds else Windows((), ())
    for record in windows.unclear:
        report.note_overlap(inputs[record.place].name, record.number)
    followers = {window.next for window in windows.joined}
    parts = parts_of(calls, others, followers)
    chains = _chains(window for window in windows.joined if window.record not in parts)
    parts |= {window.record: last for last, chain in chains.items() for window in chain}
    records = _by_place(parts, copies.dropped)
    for last, messages in _earlier_messages(wholes, size, chains).items():
        same = records.setdefault(last.place, SameRecords(earlier={}))
        records[last.place] = same._replace(earlier={**same.earlier, last.number: messages})
    return records


def _chains(windows: Iterable[Window]) -> dict[RecordKey, list[Window]]:
    """Windows that go on with one another, in their order, by the last record."""
    before = {window.next: window for window in windows}
    goes_on = {window.record for window in before.values()}
    chains: dict[RecordKey, list[Window]] = {}
    for last in before.keys() - goes_on:
        chain, record = list[Window](), last
        while (window := before.get(record)) is not None:
            chain.append(window)
            record = window.record
        chains[last] = chain[::-1]
    return chains


def _earlier_messages(
    wholes: Sequence[InputPiece], size: int, chains: Mapping[RecordKey, Sequence[Window]]
) -> dict[RecordKey, list[Any]]:
    """What the earlier windows of each conversation have and the last one does not."""
    own = {window.record: window.own for chain in chains.values() for window in chain}
    places = {record.place for record in own}
    messages: dict[RecordKey, Sequence[Any]] = {}
    for whole in wholes:
        if whole.place in places:
            reader = reader_named(whole.input.reader)
            for piece in cut_up(whole, size):
                for number, text in _readable_texts(piece):
                    count = own.get(record := RecordKey(piece.place, number))
                    if count and (history := reader.history(decode(text).value)) is not None:
                        messages[record] = history.entries[:count]
    return {
        last: [message for window in chain for message in messages.get(window.record, ())]
        for last, chain in chains.items()
    }


def _stand_alone(item: Input) -> bool:
    return item.grouping == "record" and item.container != "text"


class _FirstLook:
    """The hashes of quick keys that several records have."""

    def __init__(self, wholes: Sequence[InputPiece], size: int) -> None:
        self.counts: dict[int, int] = {}
        copies, firsts, seconds = array("q"), array("q"), array("q")
        for whole in wholes:
            reader = reader_named(whole.input.reader)
            before = len(copies)
            with suppress(OSError):
                for text in _quick_look(whole, size):
                    copies.append(quick_copy_key(text))
                    if reader.logs_calls:
                        first, second = _history_keys(reader, text)
                        firsts.append(first)
                        if second:
                            seconds.append(second)
            self.counts[whole.place] = len(copies) - before
        self.copies = _shared(copies)
        self.seconds = set(firsts).intersection(seconds)
        """Beginnings of records that are second messages of others: what windows have."""
        self.histories = _shared(firsts) | self.seconds


def _history_keys(reader: Reader, text: bytes) -> tuple[int, int]:
    first, second = reader.history_keys(text)
    return hash((reader.name, first)), hash((reader.name, second)) if second and second != first else 0


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
        may_be_part = reader.logs_calls and bool(keys.histories) and self._may_be_part(text)
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
            self.calls.append(call_of(record, history._replace(entries=())))

    def _may_be_part(self, text: bytes) -> bool:
        first, second = _history_keys(self.reader, text)
        return first in self.keys.histories or second in self.keys.seconds


def _by_place(parts: Mapping[RecordKey, RecordKey], dropped: Iterable[RecordKey]) -> dict[int, SameRecords]:
    numbers: dict[int, tuple[list[int], list[int], list[int]]] = {}

    def of(record: RecordKey, kind: int) -> None:
        numbers.setdefault(record.place, ([], [], []))[kind].append(record.number)

    for part, longer in parts.items():
        of(part, 0)
        of(longer, 1)
    for copy in dropped:
        of(copy, 2)
    return {
        place: SameRecords(_sorted(repeated), _sorted(longers), _sorted(copies))
        for place, (repeated, longers, copies) in numbers.items()
    }


def _sorted(numbers: Iterable[int]) -> array[int]:
    return array("q", sorted(numbers))


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
        earlier=dict(same.earlier),
    )
