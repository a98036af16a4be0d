"""What a database knows of venues, and which of an agent's words it does not bear out (dialogue, 1.6 and 1.9)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

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
_WORD = re.compile(r"[a-z0-9]+")
_NUMBER = re.compile(r"\+?\d[\d ()-]{7,}\d")
_POSTCODE = re.compile(r"\b[a-z]{1,2}\d[a-z\d]?\s?\d[a-z]{2}\b")
_LEAST_DIGITS, _MOST_DIGITS = 9, 13
_PROPER = re.compile(
    r"\b(?:recommend|suggest|try|called|named|booked(?: you)?(?: at| into)?|how about|what about) "
    r"((?:the |The )?[A-Z][\w'&]*(?: (?:and|of|the|[A-Z][\w'&]*))+)"
)
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
        self._by_first_word: dict[str, list[tuple[str, ...]]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        for record in _records(tables):
            self._add(record)
        for names in self._by_first_word.values():
            names.sort(key=len, reverse=True)
        self._first_words = frozenset(self._by_first_word)
        self._words_of_names = frozenset([word for name in self._names for word in name])

    def _add(self, record: Mapping[str, Any]) -> None:
        words = words_of(str(record.get(NAME) or ""))
        name = " ".join(words)
        if words and words not in self._names:
            self._names[words] = name
            self._by_first_word.setdefault(words[0], []).append(words)
        known = self.details.setdefault(name, {field: set() for field in FIELDS})
        for field in FIELDS:
            value = comparable(field, str(record.get(field) or ""))
            if value:
                known[field].add(value)
                self.known[field].add(value)

    @remembered
    def search(self) -> VenueSearch:
        """The same venues, looked up by constraints."""
        return VenueSearch({domain: rows for domain, rows in self.tables.items() if not isinstance(rows, Mapping)})

    def names_in(self, text: str) -> list[str]:
        """The venues that a text names: whole words, the longest name first, none inside another."""
        words = _WORD.findall(text.casefold())
        if self._first_words.isdisjoint(words):
            return []
        names: list[str] = []
        place = 0
        while place < len(words):
            width = 1
            for name in self._by_first_word.get(words[place], ()):
                if tuple(words[place : place + len(name)]) == name:
                    names.append(self._names[name])
                    width = len(name)
                    break
            place += width
        return names

    def name_of(self, value: str) -> str | None:
        """The venue that a value names, perhaps shortened: "the nandos" is a part of "nandos city centre"."""
        return self._name_of(words_of(value))

    @lru_cache(65536)  # noqa: B019 - there is one database in a process
    def _name_of(self, words: tuple[str, ...]) -> str | None:
        if words in self._names:
            return self._names[words]
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


def _records(tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    for records in tables.values():
        if isinstance(records, Mapping):
            continue
        yield from (record for record in records if isinstance(record, Mapping))


def _is_inside(field: str, value: str, known: Iterable[str]) -> bool:
    """An address may be given in part."""
    return field == ADDRESS and any(value in one or one in value for one in known)


@lru_cache(65536)
def words_of(text: str) -> tuple[str, ...]:
    """The words of a text, in small letters, without apostrophes."""
    return tuple(_WORD.findall(text.casefold().replace("'", "")))


@lru_cache(65536)
def comparable(field: str, value: str) -> str:
    """A detail in the form in which it is compared: digits of a phone, a postcode without spaces, words else."""
    if field == PHONE:
        return "".join([letter for letter in value if letter.isdigit()])
    words = words_of(value)
    return " ".join(words) if field == ADDRESS else "".join(words)


def entities(
    response: str, acts: Sequence[Act] | None, venues: VenueDatabase, named: Iterable[str] = ()
) -> list[Mention]:
    """The names and details in a reply and in its acts, each with whether the database has it for that venue.

    A detail belongs to the venues that the reply names, or else to those `named` earlier in the dialogue. A reference
    is looked up only in a database that keeps references.
    """
    names = dict.fromkeys([Mention(NAME, name, True) for name in venues.names_in(response)])
    details: dict[tuple[str, str], None] = {}
    for match in _PROPER.finditer(response):
        name = venues.name_of(match[1])
        names[Mention(NAME, name or match[1].casefold(), name is not None)] = None
    for act in acts or ():
        if act.type.casefold().rpartition("-")[2] not in _SAYS:
            continue
        for slot in act.slots:
            field = _ACT_SLOTS.get(slot.slot.casefold())
            if field is None or slot.value in (None, "", "?", "none"):
                continue
            if field == NAME:
                name = venues.name_of(str(slot.value))
                names[Mention(NAME, name or str(slot.value).casefold(), name is not None)] = None
            else:
                details[field, comparable(field, str(slot.value))] = None
    details |= dict.fromkeys(_details_in(response))
    owners = [name.value for name in names if name.is_known] or list(named)
    if not venues.known[REFERENCE]:
        details = {key: None for key in details if key[0] != REFERENCE}
    return [*names, *(Mention(field, value, venues.has(field, value, owners)) for field, value in details)]


def _details_in(response: str) -> Iterator[tuple[str, str]]:
    """Phone numbers and postcodes in a text."""
    if not any(map(str.isdigit, response)):
        return
    for match in _NUMBER.finditer(response):
        digits = comparable(PHONE, match[0])
        if _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS:
            yield PHONE, digits
    for match in _POSTCODE.finditer(response.casefold()):
        yield POSTCODE, comparable(POSTCODE, match[0])
