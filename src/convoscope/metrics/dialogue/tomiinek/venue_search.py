"""Venues that fit constraints, found by an index over the values that a database has (dialogue, 4)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from convoscope.metrics.dialogue.tomiinek.forms import value_form
from convoscope.metrics.dialogue.tomiinek.fuzzy import is_like

SEARCHED = ("hotel", "restaurant", "attraction", "train")
"""The domains whose venues are looked up."""

_THRESHOLD = 90
_FUZZY = {
    "hotel": frozenset({"name"}),
    "restaurant": frozenset({"name", "food"}),
    "attraction": frozenset({"name"}),
    "train": frozenset({"departure", "destination"}),
}
_FIELDS = {"arriveBy": "arrive", "leaveAt": "leave", "trainID": "id", "entrance fee": "entrancefee"}
_SLOTS = {"arriveby": "arrive", "leaveat": "leave"}
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
        self._ids = {domain: [_id(record) for record in tables.get(domain, ())] for domain in SEARCHED}
        self._columns = {domain: _columns(tables.get(domain, ())) for domain in SEARCHED}
        self._all = {domain: frozenset(range(len(ids))) for domain, ids in self._ids.items()}
        self._fitting = lru_cache(65536)(self._fitting_value)
        self.fitting = lru_cache(65536)(self._fitting_constraints)
        self._timetable = lru_cache(None)(self._timetable_of)

    def query(self, domain: str, constraints: Mapping[str, str]) -> list[str]:
        """The ids of the venues that fit."""
        return (
            [self._ids[domain][place] for place in sorted(self.places(domain, constraints))]
            if self._has(domain)
            else []
        )

    def places(self, domain: str, constraints: Mapping[str, str]) -> Venues:
        """The venues that fit, by their places in the database."""
        return self.fitting(domain, frozenset(constraints.items())) if self._has(domain) else frozenset()

    def _has(self, domain: str) -> bool:
        return domain in self._ids

    def _fitting_constraints(self, domain: str, constraints: frozenset[tuple[str, str]]) -> Venues:
        columns, fitting = self._columns[domain], []
        for slot, value in constraints:
            field = _SLOTS.get(slot, slot)
            if field in columns and value not in _ANY:
                fitting.append(self._fitting(domain, field, value_form(field, value)))
        fitting.sort(key=len)
        return frozenset.intersection(*fitting) if fitting else self._all[domain]

    def _fitting_value(self, domain: str, field: str, value: str) -> Venues:
        """The venues whose field fits a value: each value that the database has is compared once, times by order."""
        column = self._columns[domain][field]
        unknown = column.get(_UNKNOWN, frozenset())
        minutes = _minutes(value) if field in _TIMES else None
        if minutes is not None:
            return unknown.union(self._timetable(domain, field).fitting(field, minutes))
        if field not in _FUZZY[domain]:
            return unknown | column.get(value, frozenset())
        return unknown.union(*(venues for one, venues in column.items() if is_like(value, one, _THRESHOLD)))

    def _timetable_of(self, domain: str, field: str) -> _Timetable:
        column = self._columns[domain][field]
        rows = sorted((_minutes(time) or 0, place) for time, venues in column.items() for place in venues)
        return _Timetable([minutes for minutes, _ in rows], [place for _, place in rows])


class _Timetable(NamedTuple):
    """The venues of a domain in the order of a time, the earliest first."""

    minutes: list[int]
    places: list[int]

    def fitting(self, field: str, minutes: int) -> list[int]:
        """What arrives by then, or leaves from then on."""
        if field == _ARRIVE:
            return self.places[: bisect_right(self.minutes, minutes)]
        return self.places[bisect_left(self.minutes, minutes) :]


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Venues]]:
    """By field and value, which venues have it."""
    columns: dict[str, dict[str, set[int]]] = {}
    for place, record in enumerate(records):
        for key, value in record.items():
            field = _FIELDS.get(key, key)
            if field not in _NOT_SEARCHED and isinstance(value, (str, int)):
                columns.setdefault(field, {}).setdefault(value_form(field, str(value)), set()).add(place)
    return {field: {value: frozenset(places) for value, places in column.items()} for field, column in columns.items()}


def _id(record: Mapping[str, Any]) -> str:
    return str(record.get("trainID") or record.get("id", ""))


def _minutes(time: str) -> int | None:
    match = _CLOCK.fullmatch(time)
    return int(match[1]) * 60 + int(match[2]) if match else None
