"""What a database knows of venues, and which of an agent's words it does not bear out (dialogue, 1.6 and 1.9)."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation.dialogue_state import Act
from convoscope.conversation.lazy import remembered
from convoscope.metrics.dialogue.tomiinek.venue_search import VenueSearch

NAME, PHONE, ADDRESS, POSTCODE, REFERENCE = "name", "phone", "address", "postcode", "reference"
FIELDS = (PHONE, ADDRESS, POSTCODE, REFERENCE)

_ACT_SLOTS = {
    "name": NAME,
    "phone": PHONE,
    "addr": ADDRESS,
    "address": ADDRESS,
    "post": POSTCODE,
    "postcode": POSTCODE,
    "ref": REFERENCE,
    "reference": REFERENCE,
}
_SAYS = frozenset({"inform", "recommend", "select", "offerbook", "book", "offer"})
_NUMBER = re.compile(r"\+?\d[\d ()-]{7,}\d")
_POSTCODE = re.compile(r"\b[a-z]{1,2}\d[a-z\d]?\s?\d[a-z]{2}\b")
_LEAST_DIGITS, _MOST_DIGITS = 9, 13
_PROPER = re.compile(
    r"\b(?:recommend|suggest|try|called|named|booked(?: you)?(?: at| into)?|how about|what about) "
    r"((?:the |The )?[A-Z][\w'&]*(?: (?:and|of|the|[A-Z][\w'&]*))+)"
)
_CUES = frozenset({"recommend", "suggest", "try", "called", "named", "booked", "about"})
_BETWEEN_WORDS = str.maketrans(dict.fromkeys(filter(lambda letter: not letter.isalnum(), map(chr, range(128))), " "))
_DIGIT = re.compile(r"\d")
_IN_NUMBERS = re.compile(r"\d\d\d")
_IN_POSTCODES = re.compile(r"\d[a-zA-Z][a-zA-Z]\b")
_NOT_TOLD = frozenset({None, "", "?", "none"})
_SMALL = frozenset({"the", "and", "of", "a", "an", "restaurant", "hotel"})


class Mention(NamedTuple):
    """A name or a detail of a venue that an agent mentions, and whether the database bears it out."""

    field: str
    value: str
    is_known: bool


class VenueDatabase:
    """Venues by name: the tables of a data set, indexed once.

    `tables` are the records of each domain. A record without a name belongs to no venue; its details are known, too.
    """

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self.tables = tables
        self.details: dict[str, dict[str, set[str]]] = {}
        self.known: dict[str, set[str]] = {field: set() for field in FIELDS}
        self._names: dict[tuple[str, ...], str] = {}
        for record in _records(tables):
            self._add(record)
        self.unjudged = frozenset(
            domain for domain, rows in tables.items() if not any(PHONE in row for row in _rows(rows))
        )
        """The domains without phones, such as taxis: nobody can say which of theirs are invented."""
        self._by_key_word = _by_rarest_word(self._names)
        self._key_words = frozenset(self._by_key_word)
        self._words_of_names = frozenset([word for name in self._names for word in name])

    def _add(self, record: Mapping[str, Any]) -> None:
        words = words_of(str(record.get(NAME) or ""))
        name = " ".join(words)
        if words and words not in self._names:
            self._names[words] = name
        known = self.details.setdefault(name, {field: set() for field in FIELDS})
        for field in FIELDS:
            value = comparable(field, str(record.get(field) or ""))
            if value:
                known[field].add(value)
                self.known[field].add(value)

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
        return self.names_among(split_words(text))

    def names_among(self, words: list[str]) -> list[str]:
        """Looked for by the rarest word of each name, which few texts hold."""
        if self._key_words.isdisjoint(words):
            return []
        places = []
        for place, word in enumerate(words):
            for name, offset in self._by_key_word.get(word, ()):
                start = place - offset
                if start >= 0 and tuple(words[start : start + len(name)]) == name:
                    places.append((start, -len(name), name))
        names, end = [], 0
        for start, length, name in sorted(places):
            if start >= end:
                names.append(self._names[name])
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
        core = {word for word in words if word not in _SMALL}
        if not core <= self._words_of_names:
            return None
        return next((name for key, name in self._names.items() if core <= set(key)), None) if core else None

    def has(self, field: str, value: str, venues: Iterable[str]) -> bool:
        """Whether one of the venues has this detail; without venues, whether any has it."""
        named = [self.details[venue] for venue in venues if venue in self.details]
        if not named:
            return value in self.known[field] or _is_inside(field, value, self.known[field])
        return any(value in one[field] or _is_inside(field, value, one[field]) for one in named)


def _by_rarest_word(names: Iterable[tuple[str, ...]]) -> dict[str, list[tuple[tuple[str, ...], int]]]:
    """Names by the word of theirs that fewest names have, the longest of these, with its place in the name."""
    shared = Counter(word for name in names for word in set(name))
    index: dict[str, list[tuple[tuple[str, ...], int]]] = {}
    for name in names:
        word = min(name, key=lambda one: (shared[one], -len(one)))
        index.setdefault(word, []).append((name, name.index(word)))
    return index


def _records(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    for records in tables.values():
        yield from _rows(records)


def _rows(records: Any) -> list[Mapping[str, Any]]:
    return [] if isinstance(records, Mapping) else [record for record in records if isinstance(record, Mapping)]


def _is_inside(field: str, value: str, known: Iterable[str]) -> bool:
    """An address may be given in part."""
    return field == ADDRESS and any(value in one or one in value for one in known)


def split_words(text: str) -> list[str]:
    """The words of a text, in small letters, without apostrophes."""
    joined = "".join(part.strip() for part in text.split("'")) if "'" in text else text
    return joined.casefold().translate(_BETWEEN_WORDS).split()


@lru_cache(65536)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a value, kept: values come again and again."""
    return tuple(split_words(text))


@lru_cache(65536)
def comparable(field: str, value: str) -> str:
    """A detail in the form in which it is compared: digits of a phone, a postcode without spaces, words else."""
    if field == PHONE:
        return "".join([letter for letter in value if letter.isdigit()])
    words = words_of(value)
    return " ".join(words) if field == ADDRESS else "".join(words)


def entities(
    response: str,
    acts: Sequence[Act] | None,
    venues: VenueDatabase,
    named: Iterable[str] = (),
    domains: Iterable[str] = (),
) -> list[Mention]:
    """The names and details in a reply and in its acts, each with whether the database has it for that venue.

    A detail belongs to the venues that the reply names, or else to those `named` earlier in the dialogue. Phones are
    not looked up in a turn about a domain without named venues, such as taxis, nor references in a database without.
    """
    words = split_words(response)
    names = [Mention(NAME, name, True) for name in venues.names_among(words)]
    details = _details_in(response) if _DIGIT.search(response) is not None else []
    if not _CUES.isdisjoint(words):
        names += [_named_venue(match[1], venues) for match in _PROPER.finditer(response)]
    for act in acts or ():
        if act.slots and _tells(act.type):
            for slot in act.slots:
                field = _ACT_SLOTS.get(slot.slot.casefold())
                if field == NAME and slot.value:
                    names.append(_named_venue(slot.value, venues))
                elif field is not None and slot.value not in _NOT_TOLD:
                    details.append((field, comparable(field, str(slot.value))))
    if not details:
        return names if len(names) < 2 else list(dict.fromkeys(names))
    spoken_of = {*domains, *(_act_domain(act.type) for act in acts or ())}
    ignored = {
        *(() if venues.known[REFERENCE] else (REFERENCE,)),
        *((PHONE,) if spoken_of & venues.unjudged else ()),
    }
    owners = [name.value for name in names if name.is_known] or list(named)
    mentions = [Mention(*one, venues.has(*one, owners)) for one in details if one[0] not in ignored]
    return list(dict.fromkeys([*names, *mentions]))


def _named_venue(value: str, venues: VenueDatabase) -> Mention:
    name = venues.name_of(value)
    return Mention(NAME, name or value.casefold(), name is not None)


@lru_cache(4096)
def _tells(act_type: str) -> bool:
    return act_type.casefold().rpartition("-")[2] in _SAYS


@lru_cache(4096)
def _act_domain(act_type: str) -> str:
    return act_type.casefold().partition("-")[0]


def _details_in(response: str) -> list[tuple[str, str]]:
    """Phone numbers and postcodes in a text. What every one of them has is looked for first: that is cheap."""
    details = []
    if _IN_NUMBERS.search(response) is not None:
        for match in _NUMBER.finditer(response):
            digits = comparable(PHONE, match[0])
            if _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS:
                details.append((PHONE, digits))
    if _IN_POSTCODES.search(response) is not None:
        details += [(POSTCODE, comparable(POSTCODE, match[0])) for match in _POSTCODE.finditer(response.casefold())]
    return details
