"""Dialogue acts as MultiWOZ writes them, in the slot names of its version 2.2."""

from __future__ import annotations

from typing import Any, NamedTuple

from convoscope.conversation import Act, SlotSpan, SlotValue
from convoscope.ingest.record import as_text

_NAMES = {
    "addr": "address",
    "arrive": "arriveby",
    "car": "type",
    "day": "bookday",
    "depart": "departure",
    "dest": "destination",
    "fee": "entrancefee",
    "id": "trainid",
    "leave": "leaveat",
    "open": "openhours",
    "people": "bookpeople",
    "post": "postcode",
    "price": "pricerange",
    "stay": "bookstay",
    "ticket": "price",
    "time": "booktime",
}
_NAMES_OF_DOMAINS = {
    "train": {"day": "day", "time": "duration", "price": "price"},
    "bus": {"day": "day"},
    "attraction": {"price": "entrancefee"},
}
_REQUESTED = "?"
_NOTHING = "none"


class Acts(NamedTuple):
    """The acts of an utterance; `is_whole` where everything that was written could be read."""

    acts: tuple[Act, ...] = ()
    is_whole: bool = True


class Spans(NamedTuple):
    """The spans of an utterance; `is_whole` where everything that was written could be read."""

    spans: tuple[SlotSpan, ...] = ()
    is_whole: bool = True


def slot_name(domain: str, name: str) -> str:
    """The name of a slot in version 2.2, which is also that of the state."""
    lower = name.lower()
    return _NAMES_OF_DOMAINS.get(domain, {}).get(lower) or _NAMES.get(lower, lower)


def domain_of(act: str) -> str:
    """The domain that an act names: `Hotel-Inform` is of the hotel."""
    return act.partition("-")[0].lower()


def read_acts(value: dict[str, Any]) -> Acts:
    """`{"Hotel-Inform": [["Area", "north"]]}`; `?` asks for a value, and a slot `none` is no slot."""
    acts: list[Act] = []
    is_whole = True
    for type, listed in value.items():
        pairs = [pair for pair in listed if _is_pair(pair)] if isinstance(listed, list) else []
        is_whole &= isinstance(listed, list) and len(pairs) == len(listed)
        acts.append(Act(type, tuple(_slot(domain_of(type), *pair) for pair in pairs if pair[0].lower() != _NOTHING)))
    return Acts(tuple(acts), is_whole)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(isinstance(one, str) for one in value)


def _slot(domain: str, name: str, value: str) -> SlotValue:
    return SlotValue(slot_name(domain, name), None if value == _REQUESTED else value)


def read_spans(value: list[Any], text: str, *, in_words: bool) -> Spans:
    """`["Hotel-Inform", "Area", "north", 3, 3]`: words of the text in 2.1, both included; characters in 2.2."""
    words = _words(text) if in_words else []
    spans = [_span(one, text, words) for one in value if _is_span(one)]
    return Spans(tuple(spans), len(spans) == len(value))


def _is_span(value: Any) -> bool:
    return isinstance(value, list) and len(value) >= 3 and all(as_text(one) for one in value[:3])


def _span(value: list[Any], text: str, words: list[tuple[int, int]]) -> SlotSpan:
    """Where the value stands, if it does stand there."""
    act, name, words_of_value = (as_text(one) for one in value[:3])
    place = _place(value[3:], words)
    if place is None or text[place[0] : place[1]].casefold() != words_of_value.casefold():
        place = None
    return SlotSpan(
        act=act,
        slot=slot_name(domain_of(act), name),
        value=words_of_value,
        start=place and place[0],
        end=place and place[1],
    )


def _place(numbers: list[Any], words: list[tuple[int, int]]) -> tuple[int, int] | None:
    if len(numbers) != 2 or not all(type(one) is int and one >= 0 for one in numbers):
        return None
    first, last = numbers
    if not words:
        return first, last
    return (words[first][0], words[last][1]) if first <= last < len(words) else None


def _words(text: str) -> list[tuple[int, int]]:
    """Where the words of a text begin and end."""
    places: list[tuple[int, int]] = []
    end = 0
    for word in text.split():
        start = text.index(word, end)
        end = start + len(word)
        places.append((start, end))
    return places
