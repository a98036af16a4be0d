"""Copies: records that are there twice, since a file was given under two names, or a log was written twice.

Two records are copies where they say the same and have the same id or time. Without id and time, content decides
between files; inside one file two equal records may be two users who said the same, and both are kept.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.ingest.discover import Input, fingerprint
from convoscope.ingest.ids import comparable, has_own_id, has_time, has_trial
from convoscope.ingest.record import ROLE_FIELDS

_LONGEST_TEXT = 1_000_000
"""Bytes of a file of plain text whose words are compared."""
FEW_WORDS = 12
"""A chat of fewer words, alone in its file, may be that of two users."""
_NOT_SAID = frozenset({*ROLE_FIELDS, "type"})
_DELETED = bytes(b for b in range(128) if not chr(b).isalpha()) + b"TZ"
_encode = msgspec.json.Encoder(order="deterministic").encode


_TRIAL = re.compile(r"(?:trial|attempt|rollout|repeat|replica|episode|epoch|seed)s?[-_ ]?\d+", re.I)


class RecordKey(NamedTuple):
    """A record: the index of its input, and its number there."""

    place: int
    number: int


def quick_copy_key(text: bytes) -> int:
    """What copies have in common, seen without decoding: their letters. Numbers, times and blanks do not matter."""
    for blank in (b"\\n", b"\\r", b"\\t") if b"\\" in text else ():
        text = text.replace(blank, b"")
    return hash(text.translate(None, _DELETED))


class ApartByInput(NamedTuple):
    """What keeps the records of an input apart from equal ones: the files beside it, and its trial by its name."""

    companions: tuple[str, ...]
    trial: tuple[str, ...]


def apart_by_input(item: Input) -> ApartByInput:
    return ApartByInput(item.companions, tuple(match.lower() for match in _TRIAL.findall(item.name)))


class CopyFinder:
    """Takes in the records that may be copies, sixteen bytes for each, and says which are."""

    def __init__(self) -> None:
        self._content = array("q")
        self._places = array("q")
        self._numbers = array("q")
        self._kinds = bytearray()

    def add(self, record: RecordKey, value: Any, apart: ApartByInput) -> None:
        is_known = has_own_id(value)
        kind = _KNOWN if is_known or has_time(value) else _SHORT if _words(value) < FEW_WORDS else _UNKNOWN
        if has_trial(value):
            apart = apart._replace(trial=())
        self._content.append(
            hash((apart, kind == _KNOWN, _encode(single_blanks(comparable(value) if is_known else value))))
        )
        self._places.append(record.place)
        self._numbers.append(record.number)
        self._kinds.append(kind)

    def copies(self, counts: Mapping[int, int]) -> Copies:
        """What to drop. `counts` says how many records each input has."""
        dropped: list[RecordKey] = []
        equal: list[RecordKey] = []
        for group in self._equal():
            records = [RecordKey(self._places[index], self._numbers[index]) for index in group]
            kinds = {self._kinds[index] for index in group}
            if kinds == {_KNOWN}:
                dropped += records[1:]
                continue
            kept = records
            if kinds != {_SHORT} or any(counts.get(one.place, 0) > 1 for one in records):
                kept = _most_in_one_input(records)
                dropped += [one for one in records if one.place != kept[0].place]
            equal += kept[1:]
        return Copies(dropped, equal)

    def _equal(self) -> Iterator[Sequence[int]]:
        """The indexes of records with equal content, each group in the order of the input."""
        by_content: dict[int, int] = {}
        groups: dict[int, list[int]] = {}
        for index, content in enumerate(self._content):
            first = by_content.setdefault(content, index)
            if first != index:
                groups.setdefault(first, [first]).append(index)
        return iter(groups.values())


_KNOWN, _UNKNOWN, _SHORT = range(3)
"""A record with an id or a time of its own; one with neither; one with neither that says next to nothing."""


class Copies(NamedTuple):
    """Records that are copies of others, and records that are equal to another one and are kept."""

    dropped: Sequence[RecordKey]
    equal: Sequence[RecordKey]


def single_blanks(value: Any) -> Any:
    """A value whose texts have single blanks: exports differ in line ends and in blanks at the end."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, list):
        return [single_blanks(one) for one in value]
    if isinstance(value, dict):
        return {name: single_blanks(one) for name, one in value.items()}
    return value


def _most_in_one_input(records: Sequence[RecordKey]) -> list[RecordKey]:
    """The records of the input that has most of them: the other inputs have copies of those."""
    counts = Counter(one.place for one in records)
    place = max(counts, key=lambda place: (counts[place], -place))
    return [one for one in records if one.place == place]


def _words(value: Any) -> int:
    """How many words a record says; roles are none."""
    if isinstance(value, str):
        return len(value.split())
    if isinstance(value, list):
        return sum(map(_words, value))
    if isinstance(value, dict):
        return sum(_words(one) for name, one in value.items() if name not in _NOT_SAID)
    return 0


def spoken_digest(conversation: Conversation) -> int:
    """What was said in a conversation, and by which role, however it was logged."""
    whole = blake2b(digest_size=8)
    for utterance in conversation.utterances:
        if words := " ".join(utterance.meant().split()):
            whole.update(f"{conversation.roles[utterance.speaker]}: {words}\n".encode("utf-8", "replace"))
    return int.from_bytes(whole.digest(), "big")


def copied_inputs(inputs: Sequence[Input], sizes: Sequence[int]) -> dict[int, int]:
    """Of inputs that are one conversation each: which is a copy of which, by their indexes.

    Equal bytes make copies; of plain text, equal words.
    """
    by_size: dict[Hashable, list[int]] = {}
    for place, item in enumerate(inputs):
        if item.grouping in ("file", "folder") and sizes[place]:
            size = "text" if _is_text(item, sizes[place]) else sizes[place]
            by_size.setdefault((item.reader, size, apart_by_input(item)), []).append(place)
    copies: dict[int, int] = {}
    for places in by_size.values():
        if len(places) > 1:
            copies |= _equal_files(inputs, sizes, places)
    return copies


def _is_text(item: Input, size: int) -> bool:
    return item.container == "text" and size <= _LONGEST_TEXT


def _equal_files(inputs: Sequence[Input], sizes: Sequence[int], places: Iterable[int]) -> dict[int, int]:
    first: dict[str, int] = {}
    copies: dict[int, int] = {}
    for place in places:
        with suppress(OSError):
            item = msgspec.structs.replace(inputs[place], companions=())
            digest = _words_digest(Path(item.path)) if _is_text(item, sizes[place]) else fingerprint(item)
            earlier = first.setdefault(digest, place)
            if earlier != place and not _says_little(Path(item.path)):
                copies[place] = earlier
    return copies


def _words_digest(path: Path) -> str:
    """Of plain text: neither line ends nor blanks matter."""
    return blake2b(b" ".join(path.read_bytes().split()), digest_size=16).hexdigest()


def _says_little(path: Path) -> bool:
    return path.is_file() and path.stat().st_size < 1024 and len(path.read_bytes().split()) < FEW_WORDS
