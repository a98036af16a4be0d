"""Records that repeat what others say: copies, beginnings of longer records, and windows of one conversation.

A first look at the bytes gives each record quick keys. Only records that share one are decoded and compared, so that a
log without repetitions costs one look at its bytes. Sixteen bytes are held for each record.

Growing histories are calls of a model, each logged with all messages so far. Of such calls only the last one is a
conversation; a call is a part of another one where that one begins with its messages and its answer. An agent that
sends only the last messages to its model logs windows of one conversation: a window goes on with another one where its
end, answer included, is the beginning of that one. Records with different ids of conversations, labels or trials are
never parts of each other.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, chain, pairwise, repeat
from typing import Any, NamedTuple

import msgspec

from convoscope.ingest.copies import ApartByInput, CopyFinder, RecordKey, apart_by_input, quick_copy_key
from convoscope.ingest.discover import Input
from convoscope.ingest.ids import is_counter
from convoscope.ingest.io.json import decode
from convoscope.ingest.keyed_records import shared_hashes
from convoscope.ingest.looks import PiecesOf, hash_of_text
from convoscope.ingest.pieces import InputPiece, SameRecords, readable_texts_of
from convoscope.ingest.reader import CallHistory, Reader, reader_named
from convoscope.ingest.report import EQUAL, OVERLAP, ReadReport

_USER = b'"user"'
_MOST = 0.95
"""Of the earlier exchanges of a file's chats, so many must be there as records, else it does not hold calls."""
_LEAST, _LEAST_OF_CHATS = 3, 4
"""So many equal messages are no accident: of calls, and of records that do not say that they are calls."""
_MOST_ALIKE = 50
"""More windows with the same beginning come from a template."""

Inputs = Sequence[tuple[int, Input]]
"""Inputs whose records are conversations by themselves, each with its index."""


def same_records(inputs: Sequence[Input], pieces: PiecesOf, report: ReadReport) -> Mapping[int, SameRecords]:
    """By the index of an input, its records that say what others say; equal ones that are kept go to the report."""
    compared = [
        (index, item) for index, item in enumerate(inputs) if item.grouping == "record" and item.container != "text"
    ]
    if len(compared) < 2 and all(item.container in ("document", "members") for _, item in compared):
        return {}
    keys = _FirstLook(compared, pieces)
    if not keys.copies and not keys.histories:
        return {}
    finder, calls, others = CopyFinder(), list[ModelCall](), dict[int, int]()
    for index, item in compared:
        others[index] = _compare(item, index, pieces, keys, finder, calls)
    copies = finder.copies(keys.counts)
    dropped = set(copies.dropped)
    for record in copies.equal:
        report.count_same(EQUAL, f"{inputs[record.input].name}:{record.number}")
    calls = [call for call in calls if call.record not in dropped]
    windows = windows_of(calls) if keys.seconds else Windows((), ())
    for record in windows.unclear:
        report.count_same(OVERLAP, f"{inputs[record.input].name}:{record.number}")
    parts = parts_of(calls, others, {window.next for window in windows.joined})
    labels = {call.record: call.history.labels for call in calls}
    labelled = {longer for record, longer in parts.items() if labels[record] != labels[longer]}
    chains = _chains((window for window in windows.joined if window.record not in parts), parts)
    parts |= {window.record: last for last, chain in chains.items() for window in chain}
    numbers: dict[int, tuple[list[int], list[int], list[int], list[int]]] = {}
    kinds_of: list[Iterable[RecordKey]] = [parts, parts.values(), copies.dropped, labelled]
    for kind, keys_of_kind in enumerate(kinds_of):
        for record in keys_of_kind:
            numbers.setdefault(record.input, ([], [], [], []))[kind].append(record.number)
    records = {
        index: SameRecords(*(array("q", sorted(kind)) for kind in kinds))  # type: ignore[arg-type]
        for index, kinds in numbers.items()
    }
    for last, messages in _earlier_messages(compared, pieces, chains).items():
        records.setdefault(last.input, SameRecords(earlier={})).earlier[last.number] = messages
    return records


def without_same(pieces: Iterable[InputPiece], same: SameRecords) -> Iterator[InputPiece]:
    """The pieces of an input, each with what others say of it; the next one says where it ends."""
    for piece, following in pairwise(chain(pieces, [None])):
        if piece is not None:
            end = None if following is None else following.first
            yield msgspec.structs.replace(piece, same=same.between(piece.first, end))


class _Chosen(NamedTuple):
    """Records of a piece that share a quick key with another one."""

    may_be: dict[int, tuple[bool, bool]]
    """Whether each may be a copy, or a part, by its number in the piece."""
    exchanges: int
    """About how many earlier exchanges the other records have."""


class _FirstLook:
    """The quick keys of all records, and the hashes of those that several have."""

    def __init__(self, inputs: Inputs, pieces: PiecesOf) -> None:
        self.counts: dict[int, int] = {}
        self.seen: dict[int, list[array[int]]] = {}
        """By the index of an input, what was seen of each of its pieces."""
        copies, firsts, seconds = array("q"), array("q"), array("q")
        for index, item in inputs:
            reader = reader_named(item.reader)
            width = _width(reader)
            self.seen[index] = list(pieces.seen(item, index, "same", width, partial(_looked_at, reader)))
            self.counts[index] = sum(map(len, self.seen[index])) // width
            for look in self.seen[index]:
                copies.extend(look[1::width])
                if reader.logs_calls:
                    firsts.extend(look[2::width])
                    seconds.extend(filter(None, look[3::width]))
        self.copies = shared_hashes(copies)
        self.seconds = set(firsts).intersection(seconds)
        """Beginnings of records that are second messages of others: what windows have."""
        self.histories = shared_hashes(firsts) | self.seconds

    def chosen(self, look: array[int], reader: Reader) -> _Chosen:
        may_be: dict[int, tuple[bool, bool]] = {}
        absent, width = 0, _width(reader)
        columns: list[Iterable[int]] = [look[at::width] for at in range(width)]
        for number, copy, first, second, exchanges in zip(*columns, *[repeat(0)] * (5 - width), strict=False):
            is_copy, is_part = copy in self.copies, first in self.histories or second in self.seconds
            if is_copy or is_part:
                may_be[number] = (is_copy, is_part)
            if not is_part:
                absent += exchanges
        return _Chosen(may_be, absent)


def _width(reader: Reader) -> int:
    """How many integers are seen of each record."""
    return 5 if reader.logs_calls else 2


def _looked_at(reader: Reader, texts: Iterable[tuple[int, bytes]]) -> array[int]:
    """Of each record its number and its quick key; of calls also their beginnings, and about how many exchanges."""
    seen = array("q")
    for number, text in texts:
        seen.append(number)
        seen.append(quick_copy_key(text))
        if reader.logs_calls:
            first, second = reader.history_keys(text)
            name = reader.name.encode()
            seen.append(hash_of_text(name + first))
            seen.append(hash_of_text(name + second) if second and second != first else 0)
            seen.append(max(0, text.count(_USER) - 1))
    return seen


def _compare(
    item: Input, index: int, pieces: PiecesOf, keys: _FirstLook, finder: CopyFinder, calls: list[ModelCall]
) -> int:
    """Take in the records of an input that share a quick key with another one.

    Gives about how many earlier exchanges the records have that are no beginnings of others, nor go on with one.
    """
    reader, apart, exchanges = reader_named(item.reader), apart_by_input(item), 0
    for piece, look in zip(pieces.of(item, index), keys.seen[index], strict=False):
        chosen = keys.chosen(look, reader)
        exchanges += chosen.exchanges
        for number, text in readable_texts_of(piece) if chosen.may_be else ():
            may_be_copy, may_be_part = chosen.may_be.get(number - piece.first, (False, False))
            if not (may_be_copy or may_be_part):
                continue
            with suppress(Exception):  # whatever it trips over, `build` looks at it, and reports it
                value, record = decode(text).value, RecordKey(index, number)
                if may_be_copy:
                    finder.add(record, value, apart)
                history = reader.history(value) if may_be_part else None
                if history is not None and history.messages:
                    prefixes = accumulate(history.messages, lambda before, message: hash((before, message)), initial=0)
                    calls.append(ModelCall(record, tuple(prefixes)[1:], history._replace(entries=()), apart))
    return exchanges


# Growing histories.


class ModelCall(NamedTuple):
    """A record as a call: its messages as hashes of all prefixes, the last of the whole."""

    record: RecordKey
    prefixes: tuple[int, ...]
    history: CallHistory
    by_input: ApartByInput = ApartByInput((), ())

    @property
    def id(self) -> str:
        return self.history.conversation or self.history.call

    @property
    def by_id(self) -> Hashable:
        """What calls of one conversation have in common by their id; None without one."""
        return (bool(self.history.conversation), self.id, self.history.apart) if self.id else None

    @property
    def apart(self) -> Hashable:
        """What keeps calls apart where no id says that they are of one conversation."""
        return (self.history.apart, self.history.labels)

    @property
    def by_content(self) -> Hashable:
        """Where they are looked for by content: among all calls, or in the file; None where an id decides."""
        history = self.history
        if history.conversation:
            return None
        return ("calls", self.apart) if history.is_call else ("file", self.record.input, self.apart)

    @property
    def rank(self) -> tuple[float, ...]:
        """Of records with one id that say the same, the last is the conversation: by its time, else by its line."""
        if not self.id:
            return ()
        record = self.record
        return (-self.history.written, -len(self.history.labels), -record.input, -record.number)

    def is_part_of(self, longer: ModelCall) -> bool:
        """Whether a record with the same id, which begins with this one or is equal to it, is the same conversation.

        A verdict that comes or changes is a reason to look: an id, too, is used again, by trials and by counters.
        """
        if len(self.prefixes) == len(longer.prefixes) and self.history.at != longer.history.at:
            return False
        if self.history.labels == longer.history.labels and len(self.prefixes) < len(longer.prefixes):
            return True
        pairs = [(one, other) for one, other in zip(self.history.times, longer.history.times, strict=False)]
        known = [(one, other) for one, other in pairs if one is not None and other is not None]
        if self.by_input != longer.by_input or any(one != other for one, other in known):
            return False
        return bool(known) or self.record.input == longer.record.input or not is_counter(self.id)

    @property
    def is_answered(self) -> bool:
        return self.history.by_agent[-1]

    @property
    def has_reply(self) -> bool:
        """Whether the agent says or does something after the user."""
        by_user = self.history.by_user
        return True in by_user and any(self.history.by_agent[by_user.index(True) :])

    @property
    def earlier_exchanges(self) -> list[tuple[int, int]]:
        """From each first message of the user to before the next one that follows a reply, without the last."""
        starts: list[int] = []
        replied = True
        for index, (is_agent, is_user) in enumerate(zip(self.history.by_agent, self.history.by_user, strict=True)):
            if is_user and replied:
                starts.append(index)
                replied = False
            replied = replied or is_agent
        return list(pairwise(starts))


def parts_of(
    calls: Iterable[ModelCall], others: Mapping[int, int], windows: Collection[RecordKey] = ()
) -> dict[RecordKey, RecordKey]:
    """Which record is a part of which. `others` has, by input, the earlier exchanges of records that are alike to none.

    `windows` are records that go on with the end of another one: nothing is expected to go on with their beginning.

    By content alone a conversation takes in one record of each length: two users who said the same are two, and only
    as many are taken in as there are conversations that go on. Records that do not say that they are calls are taken
    in only where the whole file looks like calls: nearly all earlier exchanges of its chats are there as records.
    """
    going_on: dict[tuple[int, Hashable, bool | None], list[ModelCall]] = {}
    """Records by each of their beginnings, and by who speaks next; None after the whole."""
    parts: dict[RecordKey, RecordKey] = {}
    by_file: dict[int, _File] = {}
    for call in sorted(calls, key=lambda call: (-len(call.prefixes), call.rank, call.record)):
        whole, by_id, by_content = call.prefixes[-1], call.by_id, call.by_content
        if by_id:
            longer_ones = chain.from_iterable(
                going_on.get((whole, by_id, one), ())[::-1] for one in (True, False, None)
            )
            if same := next(filter(call.is_part_of, longer_ones), None):
                parts[call.record] = same.record
                continue
            going_on.setdefault((whole, by_id, None), []).append(call)
        # The answer is in the call, or comes next.
        nexts = (True, False) if call.is_answered else (True,)
        longer = next((one for by_agent in nexts if (one := going_on.get((whole, by_content, by_agent)))), None)
        file = by_file.setdefault(call.record.input, _File([], []))
        if by_content is None or not longer:
            if call.record not in windows:
                file.wholes.append(call)
            for key in filter(None, (by_id, by_content)):
                for prefix, by_agent in zip(call.prefixes, call.history.by_agent[1:], strict=False):
                    going_on.setdefault((prefix, key, by_agent), []).append(call)
        elif call.history.is_call:
            parts[call.record] = longer.pop().record
        else:
            file.parts.append((call, longer.pop()))
    for index, file in by_file.items():
        if file.holds_calls(others.get(index, 0)):
            parts |= {call.record: longer.record for call, longer in file.parts}
    return parts


class _File(NamedTuple):
    """The records of one file that do not say whether they are calls."""

    wholes: list[ModelCall]
    parts: list[tuple[ModelCall, ModelCall]]

    def holds_calls(self, absent: int) -> bool:
        """Whether nearly all earlier exchanges of the chats are there as records of their own, some with a reply."""
        if not any(call.has_reply for call, _ in self.parts):
            return False
        # Long chats that are equal come from a template: then one may begin like another one, too.
        counts = Counter(call.prefixes[-1] for call in self.wholes if call.earlier_exchanges)
        if counts.total() - len(counts) > (1 - _MOST) * counts.total():
            return False
        lengths: dict[RecordKey, list[int]] = {}
        for call, longer in self.parts:
            lengths.setdefault(longer.record, []).append(len(call.prefixes))
        there, expected = 0, absent
        for whole in self.wholes:
            if whole.by_content is not None and not whole.history.is_call:
                ends = lengths.get(whole.record, [])
                for start, end in whole.earlier_exchanges:
                    expected += 1
                    there += any(start < length <= end for length in ends)
        return there >= _MOST * expected


# Windows.


class Window(NamedTuple):
    """A record that goes on with another one."""

    record: RecordKey
    next: RecordKey
    own: int
    """How many of its messages the next one does not have."""


class Windows(NamedTuple):
    """The windows that go on, and records that overlap in a way that does not say with which they go on."""

    joined: Sequence[Window]
    unclear: Sequence[RecordKey]


class _Overlap(NamedTuple):
    size: int
    earlier: ModelCall
    later: ModelCall

    @property
    def is_no_accident(self) -> bool:
        """Whether the overlap alone says that two records are one conversation."""
        history = self.earlier.history
        if history.conversation:
            return True
        if not history.is_call:
            return self.size >= _LEAST_OF_CHATS
        # Of a question and its answer, only in windows of one size.
        return self.size >= _LEAST or len(history.messages) == len(self.later.history.messages)


def windows_of(calls: Sequence[ModelCall]) -> Windows:
    """Which records are windows of one conversation. Different ids, labels and trials keep them apart."""
    joined: list[Window] = []
    unclear: set[RecordKey] = set()
    for group in _groups((call.by_content or (call.by_id, call.apart), call) for call in calls):
        _join(_overlaps(group, 1 if group[0].history.conversation else 2), joined, unclear)
    for group in _groups((call.apart, call) for call in calls if call.history.conversation):
        unclear |= {
            one.later.record
            for one in _overlaps(group, _LEAST)
            if one.earlier.history.conversation != one.later.history.conversation
        }
    return Windows(joined, sorted(unclear))


def _groups(calls: Iterable[tuple[Hashable, ModelCall]]) -> list[list[ModelCall]]:
    groups: dict[Hashable, list[ModelCall]] = {}
    for key, call in calls:
        groups.setdefault(key, []).append(call)
    return [group for group in groups.values() if len(group) > 1]


def _join(overlaps: Sequence[_Overlap], joined: list[Window], unclear: set[RecordKey]) -> None:
    """Each record goes on with the one that has most of it, if that one goes on from no other record as well."""
    before = _largest(overlaps, lambda one: one.later.record)
    after = _largest(overlaps, lambda one: one.earlier.record)
    for overlap in overlaps:
        earlier, later = overlap.earlier.record, overlap.later.record
        followers = [other for other in after[earlier] if other in before[other.later.record]]
        if overlap not in before[later] or overlap not in followers:
            continue
        if len(followers) == 1 == len(before[later]) and overlap.is_no_accident:
            joined.append(Window(earlier, later, len(overlap.earlier.prefixes) - overlap.size))
        else:
            unclear.add(later)


def _largest(overlaps: Iterable[_Overlap], key: Callable[[_Overlap], RecordKey]) -> dict[RecordKey, list[_Overlap]]:
    best: dict[RecordKey, list[_Overlap]] = {}
    for overlap in overlaps:
        held = best.setdefault(key(overlap), [overlap])
        if overlap.size > held[0].size:
            best[key(overlap)] = [overlap]
        elif overlap is not held[0] and overlap.size == held[0].size:
            held.append(overlap)
    return best


def _overlaps(group: Sequence[ModelCall], least: int) -> list[_Overlap]:
    """Records of which at least so many messages at the end are the beginning of another one, which goes on."""
    begins: dict[Hashable, list[ModelCall]] = {}
    for call in group:
        begins.setdefault(tuple(call.history.messages[:least]), []).append(call)
    overlaps: list[_Overlap] = []
    for call in group:
        messages = call.history.messages
        for start in range(1, len(messages) - least + 1):
            alike = begins.get(tuple(messages[start : start + least]), ())
            size = len(messages) - start
            if len(alike) <= _MOST_ALIKE:
                overlaps += [_Overlap(size, call, later) for later in alike if _goes_on(call, later, size)]
    return overlaps


def _goes_on(earlier: ModelCall, later: ModelCall, size: int) -> bool:
    """Whether so many messages at the end of one are the beginning of the other, with an answer of the agent."""
    messages, history = earlier.history.messages, later.history
    if size >= len(history.messages) or list(messages[-size:]) != list(history.messages[:size]):
        return False
    if earlier.history.conversation and earlier.history.conversation == history.conversation:
        return True
    return any(history.by_agent[:size]) and any(history.by_user[:size])


def _chains(windows: Iterable[Window], parts: Mapping[RecordKey, RecordKey]) -> dict[RecordKey, list[Window]]:
    """Windows that go on with one another, in their order, by the last record, or by the one that it is part of."""
    before = {window.next: window for window in windows}
    goes_on = {window.record for window in before.values()}
    chains: dict[RecordKey, list[Window]] = {}
    for last in before.keys() - goes_on:
        chain, record = list[Window](), last
        while (window := before.get(record)) is not None:
            chain.append(window)
            record = window.record
        chains.setdefault(parts.get(last, last), chain[::-1])
    return chains


def _earlier_messages(
    inputs: Inputs, pieces: PiecesOf, chains: Mapping[RecordKey, Sequence[Window]]
) -> dict[RecordKey, list[Any]]:
    """What the earlier windows of each conversation have and the last one does not."""
    own = {window.record: window.own for chain in chains.values() for window in chain}
    indexes = {record.input for record in own}
    messages: dict[RecordKey, Sequence[Any]] = {}
    for index, item in inputs:
        reader = reader_named(item.reader)
        texts = map(readable_texts_of, pieces.of(item, index) if index in indexes else ())
        for number, text in chain.from_iterable(texts):
            record = RecordKey(index, number)
            count = own.get(record)
            if count and (history := reader.history(decode(text).value)) is not None:
                messages[record] = history.entries[:count]
    return {
        last: [message for window in chain for message in messages.get(window.record, ())]
        for last, chain in chains.items()
    }
