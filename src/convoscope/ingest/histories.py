"""Growing histories: calls of a model, each logged with all messages so far, brought together into conversations.

Of such calls only the last one is a conversation; the others say its beginning again. Told by content: a call whose
messages are a true prefix of another's is a part of it. Records that stand alone by a quick key are never decoded
here, so that a log without repetitions costs one look at its bytes.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.discover import Input
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import decode
from convoscope.ingest.pieces import InputPiece, cut_up, texts_of
from convoscope.ingest.reader import Reader, reader_named

_FEW = 100_000
"""Of fewer records the keys are counted without an array."""


class RecordKey(NamedTuple):
    """A record: the place of its input, and its number there."""

    place: int
    number: int


class Repetitions(NamedTuple):
    """Of one input: the records that longer ones say again, and those longer ones, by their numbers in order."""

    repeated: Sequence[int]
    longer: Sequence[int]
    """A number for each record that is a part of it."""

    def between(self, first: int, end: int | None) -> Repetitions:
        """Those of the records from `first` to before `end`."""
        return Repetitions(*(numbers[_index(numbers, first) : _index(numbers, end)] for numbers in self))


def _index(numbers: Sequence[int], number: int | None) -> int:
    return len(numbers) if number is None else bisect_left(numbers, number)


def histories_of(inputs: Sequence[Input], size: int) -> Mapping[int, Repetitions]:
    """By the place of an input, the records that are said again by longer ones."""
    by_reader: dict[str, list[InputPiece]] = {}
    for place, item in enumerate(inputs):
        if item.grouping == "record" and reader_named(item.reader).logs_calls:
            by_reader.setdefault(item.reader, []).append(InputPiece(item, place))
    merged: dict[int, Repetitions] = {}
    for name, wholes in by_reader.items():
        if len(wholes) > 1 or wholes[0].input.container != "document":
            merged |= _repetitions(reader_named(name), wholes, size)
    return merged


def _quick_look(whole: InputPiece, size: int) -> Iterator[bytes]:
    """The records of an input as they are written, without their numbers."""
    path = Path(whole.input.path)
    if whole.input.container == "lines" and files.is_plain(path):
        with path.open("rb") as stream:
            yield from iter(partial(stream.readline, files.MAX_RECORD_BYTES), b"")
    else:
        yield from (text for piece in cut_up(whole, size) for _, text in _readable_texts(piece))


def _readable_texts(piece: InputPiece) -> Iterator[tuple[int, bytes]]:
    """The records of a piece with their numbers; what cannot be read is told when it is read."""
    if not piece.problem:
        with suppress(OSError, InputError):
            for number, text in texts_of(piece):
                if text and len(text) <= files.MAX_RECORD_BYTES:
                    yield number, text


def without_repetitions(cuts: Iterable[InputPiece], histories: Repetitions) -> Iterator[InputPiece]:
    """The pieces of an input, each with what is said again of it; the next one says where it ends."""
    held: InputPiece | None = None
    for piece in cuts:
        if held is not None:
            yield with_repetitions(held, histories.between(held.first, piece.first))
        held = piece
    if held is not None:
        yield with_repetitions(held, histories.between(held.first, None))


def with_repetitions(piece: InputPiece, histories: Repetitions) -> InputPiece:
    return msgspec.structs.replace(piece, repeated=frozenset(histories.repeated), takes_in=Counter(histories.longer))


def _repetitions(reader: Reader, wholes: Sequence[InputPiece], size: int) -> Mapping[int, Repetitions]:
    """By the place of an input, its records that are part of longer ones."""
    shared = _shared_keys(reader, wholes, size)
    if not shared:
        return {}
    calls: list[_Call] = []
    for whole in wholes:
        for piece in cut_up(whole, size):
            for number, text in _readable_texts(piece):
                if hash(reader.history_key(text)) in shared:
                    calls += _calls(reader, RecordKey(piece.place, number), text)
    by_place: dict[int, tuple[list[int], list[int]]] = {}
    for part, longer in _parts(calls).items():
        by_place.setdefault(part.place, ([], []))[0].append(part.number)
        by_place.setdefault(longer.place, ([], []))[1].append(longer.number)
    return {
        place: Repetitions(*(array("q", sorted(numbers)) for numbers in lists)) for place, lists in by_place.items()
    }


def _shared_keys(reader: Reader, wholes: Iterable[InputPiece], size: int) -> set[int]:
    """The hashes of the quick keys that several records have; eight bytes are held for each record."""
    hashes = array("q")
    for whole in wholes:
        with suppress(OSError):
            hashes.extend(map(hash, map(reader.history_key, _quick_look(whole, size))))
    if len(hashes) < _FEW:
        return {key for key, count in Counter(hashes).items() if count > 1}
    import numpy as np

    ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
    return set(ordered[1:][ordered[1:] == ordered[:-1]].tolist())


class _Call(NamedTuple):
    """A record as a call: its messages as hashes of all prefixes, the last of the whole."""

    record: RecordKey
    prefixes: tuple[int, ...]
    replied: bool
    by_id: Hashable
    """What calls of one conversation have in common by their id; None without one."""
    by_file: Hashable
    """What they may have in common without one; None where an id decides."""
    is_call: bool


def _calls(reader: Reader, record: RecordKey, text: bytes) -> list[_Call]:
    """The call that a record is; none where it cannot be read, which is told when it is read."""
    try:
        history = reader.history(decode(text).value)
    except Exception:  # whatever it trips over, `build` looks at it, and tells of it
        return []
    if history is None or not history.messages:
        return []
    prefixes: list[int] = []
    for message in history.messages:
        prefixes.append(hash((prefixes[-1] if prefixes else 0, message)))
    by_id = next((("id", id, history.apart) for id in (history.conversation, history.id) if id), None)
    by_file = None if history.conversation else ("file", record.place, history.apart)
    return [_Call(record, tuple(prefixes), history.replied, by_id, by_file, history.is_call)]


def _parts(calls: Iterable[_Call]) -> dict[RecordKey, RecordKey]:
    """Which record is a part of which, the longest first.

    By content alone a conversation takes in one record of each length: two users who said the same are two, and only
    as many are taken in as there are conversations that go on. An opening without a reply is taken in by content only
    in a file that is known to hold calls: it says so, or calls with a reply were taken in, too.
    """
    going_on: dict[tuple[int, Hashable], list[_Call]] = {}
    openings: list[_Call] = []
    parts: dict[RecordKey, RecordKey] = {}
    growing: set[int] = set()
    for call in sorted(calls, key=lambda call: (-len(call.prefixes), call.record)):
        whole = call.prefixes[-1]
        if call.by_id and (same := going_on.get((whole, call.by_id))):
            parts[call.record] = same[-1].record
        elif call.by_file and going_on.get((whole, call.by_file)):
            if call.replied:
                parts[call.record] = going_on[whole, call.by_file].pop().record
                growing.add(call.record.place)
            else:
                openings.append(call)
        else:
            for key in filter(None, (call.by_id, call.by_file)):
                for prefix in call.prefixes[:-1]:
                    going_on.setdefault((prefix, key), []).append(call)
    for call in openings:
        longer = going_on[call.prefixes[-1], call.by_file]
        if longer and (call.is_call or call.record.place in growing):
            parts[call.record] = longer.pop().record
    return parts
