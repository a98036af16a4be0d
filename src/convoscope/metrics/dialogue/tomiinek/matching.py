"""Values, responses and venues as the standard evaluator compares them (dialogue, 4)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel, Levenshtein

_PLACEHOLDERS = {
    "ADDRESS": "address",
    "AREA": "area",
    "TIME": "time booktime duration arriveby arrive leaveat leave",
    "DAY": "day bookday",
    "PLACE": "place destination departure",
    "FOOD": "food",
    "NAME": "name",
    "PHONE": "phone",
    "POST": "post postcode",
    "PRICE": "price pricerange entrancefee",
    "REFERENCE": "ref reference",
    "COUNT": "count choice stars stay bookstay people bookpeople",
    "TYPE": "type car",
    "TRAINID": "trainid id train",
    "INTERNET": "internet",
    "PARKING": "parking",
    "DEPARTMENT": "department",
    "OPEN": "open openhours",
}
_STEMS = {stem: placeholder for placeholder, stems in _PLACEHOLDERS.items() for stem in stems.split()}
_PREFIX = re.compile(r"(?:value|hotel|restaurant|attraction|train|taxi|hospital|police|bus)_(?=.)")
_OF_VENUES = re.compile(r"(?:hotel|restaurant|attraction)_id")
_SLOT = re.compile(r"\[([\w\s]+)\](?:-?e?s)?")
_ENDINGS = re.compile(r" ?-(?:s|ly)")
_APART = re.compile(rf"\b({'|'.join([*_PLACEHOLDERS, 'ID'])}) (?=[.,?!:;%)\]}}])")
"""A placeholder, and a blank before the punctuation that closes it."""

_FOODS = {
    "asian": "asian oriental",
    "australasian": "australian",
    "brazilian": "portuguese",
    "english": "british",
    "fusion food": "fusion",
    "intalian": "italian",
    "italain": "italian",
    "modern american": "north american",
    "portugese": "portuguese",
    "sea food": "seafood",
    "world": "international",
}
_TYPES = {
    "guest house": "guesthouse",
    "mutliple sports": "multiple sports",
    "night club": "nightclub",
    "swimming pool": "swimmingpool",
}
_HOURS = {"afternoon": "13:00", "lunch": "12:00", "noon": "12:00", "mid-day": "12:00", "morning": "08:00"}
_BEFORE = re.compile(r"(?:by|after|afer)\s*")
_AFTERNOON = re.compile(r"\A(\d+)(?::(.*)|\s*)(?:pm|p\.m\.)", re.DOTALL)
_MORNING = ("am", "a.m.")
_WITH_TIMES = frozenset({"arrive", "arriveby", "leave", "leaveat", "time"})
_WITH_NAMES = frozenset({"name", "departure", "destination"})


@lru_cache(4096)
def placeholder(name: str) -> str:
    """The placeholder of a slot's name in a response; empty for an unknown name."""
    short = name.strip().casefold()
    if _OF_VENUES.fullmatch(short):
        return "ID"
    stem = _PREFIX.sub("", short, count=1)
    return _STEMS.get(stem.replace(" ", ""), "")


@lru_cache(65536)
def response_form(response: str) -> str:
    """A delexicalised response: lower case, placeholders in capitals, no plural endings left over.

    Punctuation goes with the placeholder before it: "call PHONE."
    """
    text = _SLOT.sub(lambda match: placeholder(match[1]), response.lower())
    return _APART.sub(r"\1", " ".join(_ENDINGS.sub("", text).split()))


@lru_cache(65536)
def value_form(slot: str, value: str) -> str:
    """A slot's value in the form of the database. Only names, food and times are lower-cased."""
    if slot in _WITH_TIMES:
        return _time(value.strip().lower())
    if slot in _WITH_NAMES:
        return value.strip().lower()
    if slot == "food":
        food = value.strip().lower()
        return _FOODS.get(food, food)
    if slot == "type":
        return _TYPES.get(value, value)
    return "yes" if slot in ("parking", "internet") and value == "free" else value


def _time(time: str) -> str:
    """A time as HH:MM where it is one. Noon in the afternoon is 24:00: "12 pm" has 12 hours added like any other."""
    if time in _HOURS:
        return _HOURS[time]
    if _BEFORE.match(time):
        time = _BEFORE.sub("", time, count=1)
    if time.endswith(_MORNING):
        time = time.removesuffix("am").removesuffix("a.m.").rstrip()
    late = _AFTERNOON.fullmatch(time)
    if late is not None:
        return f"{int(late[1]) + 12}:{(late[2] or '00').strip()}"
    time = time.rstrip(".,?")
    if not time:
        return "00:00"
    if time.isdigit():
        return f"{time[:2]}:{time[2:]}" if len(time) == 4 else f"{time.zfill(2)}:00"
    if ":" in time:
        time = time.replace(" ", "")
    return time.zfill(5) if re.fullmatch(r"\d:..", time) else time


def state_form(state: Mapping[str, Mapping[str, Any]], drops_dontcare: bool = False) -> dict[str, dict[str, str]]:
    """A state with every value in its form. The evaluator's gold states hold no "dontcare"; predictions may."""
    forms: dict[str, dict[str, str]] = {}
    for domain, slots in state.items():
        forms[domain] = {}
        for slot, value in slots.items():
            first = value[0] if isinstance(value, (list, tuple)) and value else value  # of several values
            text = str(first or "")
            if text and not (drops_dontcare and text == "dontcare"):
                forms[domain][slot] = value_form(slot, text)
    return forms


_AS_GOOD_AS_EQUAL = 0.995


@lru_cache(262144)
def partial_ratio(left: str, right: str) -> int:
    """The best likeness of the shorter text to a window of the longer one, from 0 to 100; 0 where only one is empty.

    Windows begin where the two texts have a span in common, by their shortest edit, and at the end. Other
    libraries look at more windows, and accept pairs that the standard evaluator refuses.
    """
    if left == right:
        return 100
    if not left or not right:
        return 0
    shorter, longer = (left, right) if len(left) <= len(right) else (right, left)
    best = 0.0
    for start in _windows(shorter, longer):
        likeness = Indel.normalized_similarity(shorter, longer[start : start + len(shorter)])
        if likeness > _AS_GOOD_AS_EQUAL:
            return 100
        best = max(best, likeness)
    return round(100 * best)


def is_like(left: str, right: str, threshold: int) -> bool:
    """Whether the likeness is above a threshold. The best of all windows, which is found fast, bounds it."""
    if left == right:
        return threshold < 100
    if not fuzz.partial_ratio(left, right, score_cutoff=threshold):
        return False
    return partial_ratio(left, right) > threshold


def _windows(shorter: str, longer: str) -> dict[int, None]:
    """Where in the longer text a window begins, for each span that both have; and the last window."""
    spans = Levenshtein.editops(shorter, longer).as_matching_blocks()
    return dict.fromkeys(max(0, span.b - span.a) for span in spans)


SEARCHED = ("hotel", "restaurant", "attraction", "train")
"""The domains whose venues are looked up."""

_SAME_VENUE = 90
_FUZZY = {
    "hotel": frozenset({"name"}),
    "restaurant": frozenset({"name", "food"}),
    "attraction": frozenset({"name"}),
    "train": frozenset({"departure", "destination"}),
}
_FIELDS = {"arriveBy": "arrive", "leaveAt": "leave", "trainID": "id", "entrance fee": "entrancefee"}
_SLOT_NAMES = {"arriveby": "arrive", "leaveat": "leave"}
_NOT_SEARCHED = frozenset({"location", "openhours", "introduction", "id", "price"})
_ANY = frozenset({"", "dontcare", "don't care", "dont care", "do n't care", "not mentioned", "none", "?"})
_CLOCK = re.compile(r"(\d{1,2}):(\d{2})")
_UNKNOWN = "?"
_ARRIVE = "arrive"
_TIMES = frozenset({_ARRIVE, "leave"})

Venues = frozenset[int]


class VenueSearch:
    """Answers which venues fit, in the order of the database. It keeps its answers: few are ever asked.

    `tables` are the records of each domain, as the files of MultiWOZ hold them.
    """

    def __init__(self, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
        self._ids = {
            domain: [str(one.get("trainID") or one.get("id", "")) for one in tables.get(domain, ())]
            for domain in SEARCHED
        }
        self._columns = {domain: _columns(tables.get(domain, ())) for domain in SEARCHED}
        self._all = {domain: frozenset(range(len(ids))) for domain, ids in self._ids.items()}
        self._fitting_value = lru_cache(65536)(self._rows_with_value)
        self._fitting = lru_cache(65536)(self._rows_with_all)
        self._timetable = lru_cache(None)(self._timetable_of)

    def query(self, domain: str, constraints: Mapping[str, str]) -> list[str]:
        """The ids of the venues that fit."""
        return [self._ids[domain][row] for row in sorted(self.fitting(domain, constraints))]

    def fitting(self, domain: str, constraints: Mapping[str, str]) -> Venues:
        """The venues that fit, by their rows in the database."""
        return self._fitting(domain, frozenset(constraints.items())) if domain in self._ids else frozenset()

    def _rows_with_all(self, domain: str, constraints: frozenset[tuple[str, str]]) -> Venues:
        columns, fitting = self._columns[domain], []
        for slot, value in constraints:
            field = _SLOT_NAMES.get(slot, slot)
            if field in columns and value not in _ANY:
                fitting.append(self._fitting_value(domain, field, value_form(field, value)))
        fitting.sort(key=len)
        return frozenset.intersection(*fitting) if fitting else self._all[domain]

    def _rows_with_value(self, domain: str, field: str, value: str) -> Venues:
        """The venues whose field fits a value: each value that the database has is compared once, times by order."""
        column = self._columns[domain][field]
        unknown = column.get(_UNKNOWN, frozenset())
        minutes = _minutes(value) if field in _TIMES else None
        if minutes is not None:
            return unknown.union(self._timetable(domain, field).fitting(field, minutes))
        if field not in _FUZZY[domain]:
            return unknown | column.get(value, frozenset())
        return unknown.union(*(venues for known, venues in column.items() if is_like(value, known, _SAME_VENUE)))

    def _timetable_of(self, domain: str, field: str) -> _Timetable:
        column = self._columns[domain][field]
        times = sorted((_minutes(time) or 0, row) for time, venues in column.items() for row in venues)
        return _Timetable([minutes for minutes, _ in times], [row for _, row in times])


class _Timetable(NamedTuple):
    """The venues of a domain in the order of a time, the earliest first."""

    minutes: list[int]
    rows: list[int]

    def fitting(self, field: str, minutes: int) -> list[int]:
        """What arrives by then, or leaves from then on."""
        if field == _ARRIVE:
            return self.rows[: bisect_right(self.minutes, minutes)]
        return self.rows[bisect_left(self.minutes, minutes) :]


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Venues]]:
    """By field and value, which venues have it."""
    columns: dict[str, dict[str, set[int]]] = {}
    for row, record in enumerate(records):
        for key, value in record.items():
            field = _FIELDS.get(key, key)
            if field not in _NOT_SEARCHED and isinstance(value, (str, int)):
                columns.setdefault(field, {}).setdefault(value_form(field, str(value)), set()).add(row)
    return {field: {value: frozenset(rows) for value, rows in column.items()} for field, column in columns.items()}


def _minutes(time: str) -> int | None:
    match = _CLOCK.fullmatch(time)
    return int(match[1]) * 60 + int(match[2]) if match else None
