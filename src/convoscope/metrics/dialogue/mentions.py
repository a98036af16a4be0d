"""The names and details that an agent mentions, and which of them no database bears out (dialogue, 1.6 and 1.9)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from convoscope.conversation.dialogue_state import Act
from convoscope.metrics.dialogue.venues import (
    ADDRESS,
    KEPT,
    NAME,
    PHONE,
    POSTCODE,
    REFERENCE,
    VenueDatabase,
    comparable,
    plain_words,
)

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
_TOLD_SLOTS = {form: field for slot, field in _ACT_SLOTS.items() for form in (slot, slot.title(), slot.upper())}
_SAYS = frozenset({"inform", "recommend", "select", "offerbook", "offerbooked", "book", "offer"})
_NOT_TOLD = frozenset({None, "", "?", "none"})

_NUMBER = re.compile(r"\+?[0-9][0-9 ()-]{7,}[0-9]")
_POSTCODE = re.compile(r"\b[a-z]{1,2}[0-9][a-z0-9]?\s?[0-9][a-z]{2}\b")
_LEAST_DIGITS, _MOST_DIGITS = 9, 13
_CUES = frozenset({"recommend", "suggest", "try", "called", "named", "booked", "about"})
_ASKING = ("how ", "what ")
_PROPER = re.compile(r"(?: you)?(?: at| into)? ((?:[Tt]he )?[A-Z][\w'&]*(?: (?:and|of|the|[A-Z][\w'&]*))+)")

_DIGITS = b"0123456789"
_SEPARATOR = KEPT.encode()
_NO_DIGITS = bytes([code for code in range(256) if code not in _DIGITS and code != 0])
_SHAPES = bytes([0x39 if code in _DIGITS else 0x61 if chr(code).isalpha() else code for code in range(256)])
_CODE_SHAPE = b"9aa"
_CODE_SHAPES = (b"99aa", b"9 9aa", b"9a9aa", b"9a 9aa")


class Mention(NamedTuple):
    """A name or a detail of a venue that an agent mentions, and whether the database bears it out."""

    field: str
    value: str
    is_known: bool


Reply = tuple[str, list[str], bool, bool]
"""A reply, its words, and whether it may hold a phone number or a postcode."""


def read_replies(responses: Sequence[str]) -> list[Reply]:
    """The replies of a dialogue, read together: most of the time goes into the first letter of a text."""
    joined = KEPT.join(responses)
    if joined.count(KEPT) >= len(responses):
        responses = [text.replace(KEPT, " ") for text in responses]
        joined = KEPT.join(responses)
    letters = joined.encode("ascii", "replace")
    digits = letters.translate(None, _NO_DIGITS).split(_SEPARATOR)
    shapes = letters.translate(_SHAPES)
    coded = [False] * len(responses)
    if _CODE_SHAPE in shapes:
        coded = [_CODE_SHAPE in shape and _is_coded(shape) for shape in shapes.split(_SEPARATOR)]
    words = [text.split() for text in plain_words(joined).split(KEPT)]
    return list(zip(responses, words, [len(one) >= _LEAST_DIGITS for one in digits], coded, strict=False))


def _is_coded(shape: bytes) -> bool:
    return any(code in shape for code in _CODE_SHAPES)


def mentions_in(
    reply: Reply,
    acts: Sequence[Act] | None,
    venues: VenueDatabase,
    named: dict[str, None],
    domains: Collection[str] | None,
) -> tuple[tuple[Mention, ...], int]:
    """The names and details in a reply and in its acts, and how many of them the database does not have.

    A detail belongs to the venues that the reply names, or else to those `named` earlier in the dialogue, to which
    this reply's are added. Phones are not looked up in a turn about a domain without records, such as taxis, nor
    references in a database without.
    """
    response, words, has_number, has_code = reply
    names: list[Mention] = []
    if not venues.key_words.isdisjoint(words):
        names = [_mention(name) for name in venues.names_among(words)]
    if not _CUES.isdisjoint(words):
        names += [_named_venue(name, venues) for name in _proper_names(response, _CUES.intersection(words))]
    details = _details_in(response, has_number, has_code) if has_number or has_code else []
    for act in acts or ():
        for slot in act.slots:
            if slot.slot in _TOLD_SLOTS and slot.value not in _NOT_TOLD and _tells(act.type):
                field = _TOLD_SLOTS[slot.slot]
                if field == NAME:
                    names.append(_named_venue(str(slot.value), venues))
                else:
                    details.append((field, comparable(field, str(slot.value))))
    if details:
        owners = [name.value for name in names if name.is_known] or list(named)
        names += _judged(details, owners, acts, venues, domains)
    if not names:
        return (), 0
    mentions = tuple(names) if len(names) == 1 else tuple(dict.fromkeys(names))
    unknown = 0
    for field, value, is_known in mentions:
        if not is_known:
            unknown += 1
        elif field == NAME:
            named[value] = None
    return mentions, unknown


def _judged(
    details: Sequence[tuple[str, str]],
    owners: Sequence[str],
    acts: Sequence[Act] | None,
    venues: VenueDatabase,
    domains: Collection[str] | None,
) -> list[Mention]:
    """Details that can be looked up, each with whether one of their owners has it."""
    ignored = () if venues.known[REFERENCE] else (REFERENCE,)
    if not venues.unjudged.isdisjoint([*(domains or ()), *[_act_domain(one.type) for one in acts or ()]]):
        ignored = (*ignored, PHONE)
    return [Mention(*one, venues.has(*one, owners)) for one in details if one[0] not in ignored]


def _proper_names(response: str, cues: Iterable[str]) -> list[str]:
    """Names in capitals after a cue, such as "I recommend The Golden Dragon", in their order."""
    names = {}
    for cue in cues:
        for form in (cue, cue.capitalize()):
            place = response.find(form)
            while place >= 0:
                match = _PROPER.match(response, place + len(form))
                if match is not None and (cue != "about" or response[:place].lower().endswith(_ASKING)):
                    names[match.start(1)] = match[1]
                place = response.find(form, place + 1)
    return [names[place] for place in sorted(names)]


@lru_cache(65536)
def _mention(name: str) -> Mention:
    """A name that the database has."""
    return Mention(NAME, name, True)


def _named_venue(value: str, venues: VenueDatabase) -> Mention:
    name = venues.name_of(value)
    return _mention(name) if name is not None else Mention(NAME, value.casefold(), False)


@lru_cache(4096)
def _tells(act_type: str) -> bool:
    return act_type.casefold().rpartition("-")[2] in _SAYS


@lru_cache(4096)
def _act_domain(act_type: str) -> str:
    return act_type.casefold().partition("-")[0]


def _details_in(response: str, has_number: bool, has_code: bool) -> list[tuple[str, str]]:
    """Phone numbers and postcodes in a text."""
    details = []
    if has_number:
        for match in _NUMBER.finditer(response):
            digits = comparable(PHONE, match[0])
            if _LEAST_DIGITS <= len(digits) <= _MOST_DIGITS:
                details.append((PHONE, digits))
    if has_code:
        details += [(POSTCODE, comparable(POSTCODE, match[0])) for match in _POSTCODE.finditer(response.casefold())]
    return details
