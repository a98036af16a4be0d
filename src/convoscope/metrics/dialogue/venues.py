"""What a database knows of venues: their names, and the details of each (dialogue, 1.6 and 1.9)."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from convoscope.conversation.lazy import remembered
from convoscope.metrics.dialogue.tomiinek.matching import VenueSearch

NAME, PHONE, ADDRESS, POSTCODE, REFERENCE = "name", "phone", "address", "postcode", "reference"
FIELDS = (PHONE, ADDRESS, POSTCODE, REFERENCE)

KEPT = "\0"
"""Not a space between words: it separates texts that are read together."""
_PLAIN_CHARACTERS = [
    None if letter == "'" else letter if letter.isalnum() or letter == KEPT else " " for letter in map(chr, range(128))
]
SLOT_NAMES = {
    "addr": "address",
    "arrive": "arriveby",
    "arriveby": "arriveby",
    "car": "type",
    "car type": "type",
    "depart": "departure",
    "dest": "destination",
    "entrance fee": "entrancefee",
    "fee": "entrancefee",
    "id": "trainid",
    "leave": "leaveat",
    "open": "openhours",
    "post": "postcode",
    "price": "pricerange",
    "price range": "pricerange",
    "ref": "reference",
    "ticket": "price",
}
"""Short names of slots in acts, and the names that requests use."""
_SAME_INFORMATION = {"pricerange": "price", "entrancefee": "price"}
_LEAST_CHARACTERS = 3
_SMALL = frozenset({"the", "and", "of", "a", "an", "restaurant", "hotel"})


class VenueDatabase:
    """Venues by name: the tables of a data set, indexed once.

    `tables` are the records of each domain. A record without a name belongs to no venue; its details are known, too.
    """

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.tables = tables
        self.details: dict[str, dict[str, set[str]]] = {}
        self.known: dict[str, set[str]] = {field: set() for field in FIELDS}
        self._names: dict[tuple[str, ...], str] = {}
        self._values: dict[str, dict[str, set[str]]] = {}
        self._domains: dict[tuple[str, str], set[str]] = {}
        ordinary: set[str] = set()
        for domain, records in tables.items():
            for record in _rows(records):
                self._add(record, domain.casefold())
                ordinary.update(_slot_words(record))
        self.ordinary = frozenset(ordinary)
        """Words of what venues are and have, such as foods and areas: they name none by themselves."""
        self.unjudged = frozenset(domain for domain, rows in tables.items() if isinstance(rows, Mapping))
        """The domains without records, such as taxis: their phones are drawn by a pattern, and in no table."""
        self._with_records = frozenset(domain.casefold() for domain, rows in tables.items() if _rows(rows))
        self._by_key_word = _by_rarest_word(self._names)
        self.key_words = frozenset(self._by_key_word)
        """A text without any of these names no venue."""
        self._by_part = _by_part(self._names)

    def _add(self, record: Mapping[str, Any], domain: str) -> None:
        words = words_of(str(record.get(NAME) or ""))
        name = " ".join(words)
        if words and words not in self._names:
            self._names[words] = name
        if words:
            self._add_values(name, record)
            self._domains.setdefault((NAME, name), set()).add(domain)
        known = self.details.setdefault(name, {field: set() for field in FIELDS})
        for field in FIELDS:
            value = comparable(field, str(record.get(field) or ""))
            if value:
                known[field].add(value)
                self.known[field].add(value)
                self._domains.setdefault((field, value), set()).add(domain)

    def _add_values(self, name: str, record: Mapping[str, Any]) -> None:
        known = self._values.setdefault(name, {})
        for slot, value in record.items():
            text = " ".join(words_of(value)) if isinstance(value, str) else ""
            if slot != NAME and len(text) >= _LEAST_CHARACTERS:
                known.setdefault(information(slot), set()).add(text)

    @remembered
    def identity(self) -> str:
        """What answers depend on: the content of the tables."""
        return f"venues@{hashlib.sha256(msgspec.json.encode(self.tables, order='sorted')).hexdigest()[:12]}"

    @remembered
    def search(self) -> VenueSearch:
        """The same venues, looked up by constraints."""
        return VenueSearch({domain: rows for domain, rows in self.tables.items() if not isinstance(rows, Mapping)})

    def names_in(self, text: str) -> list[str]:
        """The venues that a text names: whole words, the longest name first, none inside another."""
        return self.names_among(plain_words(text).split())

    def names_among(self, words: list[str]) -> list[str]:
        """Looked for by the rarest word of each name, which few texts hold."""
        names_by_word = self._by_key_word
        matches = []
        for position in [position for position, word in enumerate(words) if word in names_by_word]:
            for name, offset in names_by_word[words[position]]:
                start = position - offset
                if start >= 0 and words[start : start + len(name)] == name:
                    matches.append((start, -len(name), " ".join(name)))
        if len(matches) < 2:
            return [name for _, _, name in matches]
        names, end = [], 0
        for start, length, title in sorted(matches):
            if start >= end:
                names.append(title)
                end = start - length
        return names

    def name_of(self, value: str) -> str | None:
        """The venue that a value names, perhaps shortened: "the nandos" is a part of "nandos city centre"."""
        return self._name_of(words_of(value))

    @lru_cache(65536)  # noqa: B019 - there is one database in a process
    def _name_of(self, words: tuple[str, ...]) -> str | None:
        if words in self._names:
            return self._names[words]
        inside = self.names_in(" ".join(words))
        if inside:
            return inside[0]
        return self._by_part.get(_core(words))

    def values_in(self, text: str, venues: Iterable[str]) -> set[str]:
        """What a text says of venues, by the values of the database; one or two characters do not count."""
        words = f" {' '.join(plain_words(text).split())} "
        known = [self._values.get(venue, {}) for venue in venues]
        return {name for one in known for name, values in one.items() if any(f" {value} " in words for value in values)}

    def is_of(self, domain: str, field: str, value: str) -> bool:
        """Whether a name or a detail is one of a domain. A domain without records may have any."""
        if domain not in self._with_records:
            return True
        return domain in self._domains.get((field, value), ())

    def has(self, field: str, value: str, venues: Iterable[str]) -> bool:
        """Whether one of the venues has this detail; without venues, whether any has it."""
        named = [self.details[venue][field] for venue in venues if venue in self.details] or [self.known[field]]
        return any(value in known for known in named) or (
            field == ADDRESS and any(_is_part(value, one) for known in named for one in known)
        )


def _by_rarest_word(names: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[list[str], int]]]:
    """Names by the word of theirs that fewest names have, the longest of these, with its index in the name."""
    shared = Counter(word for name in names for word in set(name))
    index: dict[str, list[tuple[list[str], int]]] = {}
    for name in names:
        word = min(name, key=lambda one: (shared[one], -len(one)))
        index.setdefault(word, []).append((list(name), name.index(word)))
    return index


def _core(words: Iterable[str]) -> tuple[str, ...]:
    """What is special in a name: without articles and the kind of the venue."""
    return tuple([word for word in words if word not in _SMALL])


def _by_part(names: Mapping[tuple[str, ...], str]) -> dict[tuple[str, ...], str]:
    """By each run of words in a name, the first venue that has it."""
    parts: dict[tuple[str, ...], str] = {}
    for words, name in names.items():
        core = _core(words)
        for start in range(len(core)):
            for end in range(start + 1, len(core) + 1):
                parts.setdefault(core[start:end], name)
    return parts


_OF_ONE_VENUE = frozenset({NAME, *FIELDS, "introduction", "location", "id", "openhours"})


def _slot_words(record: Mapping[str, Any]) -> Iterator[str]:
    """The words of the values that many venues share."""
    for slot, value in record.items():
        if isinstance(value, str) and slot.casefold() not in _OF_ONE_VENUE:
            yield from words_of(value)


def _rows(records: Any) -> list[Mapping[str, Any]]:
    return [] if isinstance(records, Mapping) else [record for record in records if isinstance(record, Mapping)]


def _is_part(given: str, address: str) -> bool:
    """A part of an address is true, and so is an address with more around it: whole words of one in the other."""
    return (given in address and f" {given} " in f" {address} ") or (
        address in given and f" {address} " in f" {given} "
    )


def plain_words(text: str) -> str:
    """A text in lower case with spaces for all that is no letter or digit; "rosa 's" and "rosa's" are "rosas"."""
    return text.replace(" 's", "s").casefold().translate(_PLAIN_CHARACTERS)


@lru_cache(65536)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a value, kept: values come again and again."""
    return tuple(plain_words(text).split())


@lru_cache(65536)
def comparable(field: str, value: str) -> str:
    """A detail in the form in which it is compared: digits of a phone, a postcode without spaces, words else."""
    if field == PHONE:
        return "".join([letter for letter in value if letter.isdigit()])
    words = words_of(value)
    return " ".join(words) if field == ADDRESS else "".join(words)


@lru_cache(4096)
def information(slot: str) -> str:
    """What a slot is about, under one name. Acts call the price of anything price, fee or ticket."""
    short = slot.casefold()
    name = SLOT_NAMES.get(short, short)
    return _SAME_INFORMATION.get(name, name)
