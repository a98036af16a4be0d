"""Copies: records that are there twice, since a file was given under two names, or a log was written twice.

Two records are copies where they say the same and have the same id or time. Without id and time, content decides
between files; inside one file two equal records may be two users who said the same, and both are kept. The same holds
for single messages and lines of logs that are brought together.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any, NamedTuple, TypeVar

import msgspec

from convoscope.conversation import Conversation
from convoscope.ingest.discover import CompanionFile, Input, fingerprint
from convoscope.ingest.ids import comparable, has_own_id, has_time, has_trial, message_id
from convoscope.ingest.keyed_records import KeyedRecords, SortedRun
from convoscope.ingest.looks import hash_of_text
from convoscope.ingest.reader import Reader, Record
from convoscope.ingest.record import ROLE_FIELDS
from convoscope.ingest.report import ReadReport
from convoscope.storage import as_path

_LONGEST_TEXT = 1_000_000
"""Bytes of a file of plain text whose words are compared."""
_FEW_WORDS = 12
"""A chat of fewer words, alone in its file, may be that of two users."""
_NOT_SAID = frozenset({*ROLE_FIELDS, "type"})
_DELETED = bytes(b for b in range(128) if not chr(b).isalpha()) + b"TZ"
_TRIAL = re.compile(r"(?:trial|attempt|rollout|repeat|replica|episode|epoch|seed)s?[-_ ]?\d+", re.I)
_MESSAGE_IDS = ("message_id", "messageId", "msg_id")
_EDITED = frozenset({"edited", "is_edited", "isEdited", "edited_at", "editedAt", "edit_date", "edit_of"})
_KNOWN, _UNKNOWN, _SHORT = range(3)
"""A record with an id or a time of its own; one with neither; one with neither that says next to nothing."""
_encode = msgspec.json.Encoder(order="deterministic").encode
_Where = TypeVar("_Where", int, str)


class RecordKey(NamedTuple):
    """A record: the index of its input, and its number there."""

    input: int
    number: int


class ApartByInput(NamedTuple):
    """What keeps the records of an input apart from equal ones: its companion files, and its trial by its name."""

    companions: tuple[CompanionFile, ...]
    trial: tuple[str, ...]


def apart_by_input(item: Input) -> ApartByInput:
    return ApartByInput(item.companions, tuple(match.lower() for match in _TRIAL.findall(item.name)))


def _fullest(wheres: Iterable[_Where]) -> _Where:
    """The input or file that has most of some equal records: the others have copies of those."""
    counts = Counter(wheres)
    return min(counts, key=lambda where: (-counts[where], where))


# Records that are conversations by themselves.


def quick_copy_key(text: bytes) -> int:
    """What copies have in common, without decoding: their letters. Numbers, times and blanks do not matter."""
    for blank in (b"\\n", b"\\r", b"\\t") if b"\\" in text else ():
        text = text.replace(blank, b"")
    return hash_of_text(text.translate(None, _DELETED))


class Copies(NamedTuple):
    """Records that are copies of others, and records that are equal to another one and are kept."""

    dropped: Sequence[RecordKey]
    equal: Sequence[RecordKey]


class CopyFinder:
    """Takes in the records that may be copies, sixteen bytes for each, and says which are."""

    def __init__(self) -> None:
        self._content = array("q")
        self._inputs = array("q")
        self._numbers = array("q")
        self._kinds = bytearray()

    def add(self, record: RecordKey, value: Any, apart: ApartByInput) -> None:
        is_known = has_own_id(value)
        kind = _KNOWN if is_known or has_time(value) else _SHORT if _word_count(value) < _FEW_WORDS else _UNKNOWN
        if has_trial(value):
            apart = apart._replace(trial=())
        text = _encode(_single_blanks(comparable(value) if is_known else value))
        self._content.append(hash((apart, kind == _KNOWN, text)))
        self._inputs.append(record.input)
        self._numbers.append(record.number)
        self._kinds.append(kind)

    def copies(self, counts: Mapping[int, int]) -> Copies:
        """What to drop. `counts` says how many records each input has."""
        dropped: list[RecordKey] = []
        equal: list[RecordKey] = []
        first_of: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        for index, content in enumerate(self._content):
            first = first_of.setdefault(content, index)
            if first != index:
                groups.setdefault(first, [first]).append(index)
        for group in groups.values():
            records = [RecordKey(self._inputs[index], self._numbers[index]) for index in group]
            kinds = {self._kinds[index] for index in group}
            if kinds == {_KNOWN}:
                dropped += records[1:]
                continue
            kept = records
            if kinds != {_SHORT} or any(counts.get(one.input, 0) > 1 for one in records):
                fullest = _fullest(one.input for one in records)
                kept = [one for one in records if one.input == fullest]
                dropped += [one for one in records if one.input != fullest]
            equal += kept[1:]
        return Copies(dropped, equal)


def _single_blanks(value: Any) -> Any:
    """A value whose texts have single blanks: exports differ in line ends and in blanks at the end."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return [_single_blanks(one) for one in value]
    if isinstance(value, dict):
        return {name: _single_blanks(one) for name, one in value.items()}
    return value


def _word_count(value: Any) -> int:
    """How many words a record says; roles do not count."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, list):
        return sum(map(_word_count, value))
    if isinstance(value, dict):
        return sum(_word_count(one) for name, one in value.items() if name not in _NOT_SAID)
    return 0


def spoken_digest(conversation: Conversation) -> int:
    """What was said in a conversation, and by which role, however it was logged."""
    whole = blake2b(digest_size=8)
    for utterance in conversation.utterances:
        if text := " ".join(utterance.meant().split()):
            whole.update(f"{conversation.roles[utterance.speaker]}: {text}\n".encode("utf-8", "replace"))
    return int.from_bytes(whole.digest(), "big")


# Inputs that are one conversation each.


def copied_inputs(inputs: Sequence[Input], sizes: Sequence[int]) -> dict[int, int]:
    """Of inputs that are one conversation each: which is a copy of which, by their indexes.

    Equal bytes make copies; of plain text, equal words.
    """
    by_size: dict[Hashable, list[int]] = {}
    for index, item in enumerate(inputs):
        if item.grouping in ("file", "folder") and sizes[index]:
            size = "text" if _is_text(item, sizes[index]) else sizes[index]
            by_size.setdefault((item.reader, size, apart_by_input(item)), []).append(index)
    copies: dict[int, int] = {}
    for indexes in by_size.values():
        first: dict[str, int] = {}
        for index in indexes if len(indexes) > 1 else ():
            with suppress(OSError):
                item = msgspec.structs.replace(inputs[index], companions=())
                path = as_path(item.path)
                digest = fingerprint(item)
                if _is_text(item, sizes[index]):
                    # Neither line ends nor blanks matter.
                    digest = blake2b(b" ".join(path.read_bytes().split()), digest_size=16).hexdigest()
                earlier = first.setdefault(digest, index)
                is_short = path.is_file() and path.stat().st_size < 1024
                if earlier != index and not (is_short and len(path.read_bytes().split()) < _FEW_WORDS):
                    copies[index] = earlier
    return copies


def _is_text(item: Input, size: int) -> bool:
    return item.container == "text" and size <= _LONGEST_TEXT


# Single messages, and lines of logs, of one conversation.


class _Row(NamedTuple):
    """A single message, or a line of a log: what it says, and the file that it is in."""

    file: str
    text: Hashable
    id: str | None = None
    is_timed: bool = False


def _copied_rows(rows: Sequence[_Row]) -> set[int]:
    """The indexes of the rows of one conversation that are copies of others.

    Equal rows with one id or time are copies, where that id is of no other row. Of the others the file that has most
    of them is believed: the same may be said twice.
    """
    by_text: dict[Hashable, list[int]] = {}
    for index, row in enumerate(rows):
        by_text.setdefault(row.text, []).append(index)
    if len(by_text) == len(rows):
        return set()
    texts_of: dict[str, set[Hashable]] = {}
    for row in rows:
        if row.id is not None:
            texts_of.setdefault(row.id, set()).add(row.text)
    copies: set[int] = set()
    for same in by_text.values():
        row = rows[same[0]]
        if row.is_timed or (row.id is not None and len(texts_of[row.id]) == 1):
            copies.update(same[1:])
        else:
            fullest = _fullest(rows[index].file for index in same)
            copies.update(index for index in same if rows[index].file != fullest)
    return copies


def without_copied_lines(keyed: KeyedRecords, report: ReadReport) -> KeyedRecords:
    """The lines of one key without those that other files have, too."""
    if len({run.name for run in keyed.runs}) < 2:
        return keyed
    copies = _copied_rows([_Row(run.name, text) for run in keyed.runs for text in run.texts])
    if not copies:
        return keyed
    runs: list[SortedRun] = []
    first = 0
    for run in keyed.runs:
        kept: list[int] = []
        for index, number in enumerate(run.numbers):
            if first + index in copies:
                report.drop_copy(run.name, number)
            else:
                kept.append(index)
        first += len(run.texts)
        if kept:
            texts, numbers = [run.texts[index] for index in kept], [run.numbers[index] for index in kept]
            repairs = {new: run.repairs[index] for new, index in enumerate(kept) if index in run.repairs}
            runs.append(SortedRun(run.key, run.name, numbers, texts, repairs))
    return keyed._replace(runs=runs)


def without_copied_messages(
    records: tuple[Record, ...], reader: Reader, name: str, report: ReadReport
) -> tuple[Record, ...]:
    """The messages of one conversation without copies, and without what was written before they were edited."""
    rows: list[_Row] = []
    for record in records:
        value, file = record.value, record.file or name
        if not isinstance(value, dict):
            rows.append(_Row(file, _encode(value)))
            continue
        id, says = message_id(value), reader.says(value)
        text = says if says is not None else _encode(value if id is None else comparable(value))
        rows.append(_Row(file, text, id, has_time(value)))
    copies = _copied_rows(rows).union(_earlier_versions(records))
    for index in sorted(copies):
        report.drop_copy(records[index].file or name, records[index].number)
    return tuple(record for index, record in enumerate(records) if index not in copies) if copies else records


def _earlier_versions(records: Sequence[Record]) -> list[int]:
    """The indexes of messages that a later one of the same id replaces: it was edited, or its text went on."""
    latest: dict[tuple[str, str], int] = {}
    replaced: list[int] = []
    for index, record in enumerate(records):
        value = record.value
        id = next((value[name] for name in _MESSAGE_IDS if value.get(name)), None) if type(value) is dict else None
        if not isinstance(id, str | int):
            continue
        key = (str(id), str(value.get("role")))
        earlier = latest.get(key)
        is_edited = any(value.get(name) for name in _EDITED)
        if earlier is not None:
            text, later = records[earlier].value.get("content"), value.get("content")
            are_texts = isinstance(text, str) and isinstance(later, str) and text and text != later
            if is_edited or (are_texts and later.startswith(text)):
                replaced.append(earlier)
        latest[key] = index
    return replaced
