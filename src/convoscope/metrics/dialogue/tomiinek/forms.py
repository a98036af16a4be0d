"""Slot names, values and responses in the form in which the standard evaluator compares them (dialogue, 4)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

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
    """The placeholder that a slot's name in a response stands for; empty where there is none."""
    short = name.strip().casefold()
    if _OF_VENUES.fullmatch(short):
        return "ID"
    stem = _PREFIX.sub("", short, count=1)
    return _STEMS.get(stem.replace(" ", ""), "")


@lru_cache(65536)
def response_form(response: str) -> str:
    """A delexicalised response: small letters, placeholders in capitals, no plural endings left over.

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
    return {domain: _slots(slots, drops_dontcare) for domain, slots in state.items()}


def _slots(slots: Mapping[str, Any], drops_dontcare: bool) -> dict[str, str]:
    forms = {}
    for slot, value in slots.items():
        text = value if type(value) is str else _text(value)
        if text and not (drops_dontcare and text == "dontcare"):
            forms[slot] = value_form(slot, text)
    return forms


def _text(value: Any) -> str:
    """The first of several values, or the one that there is."""
    return str(value[0] if isinstance(value, (list, tuple)) and value else value or "")
