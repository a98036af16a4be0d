"""What an agent does in a turn, and whether it may: rules of booking as data (dialogue, 1.8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State

PolicyRules = Mapping[str, tuple[str, ...]]
"""The slots that must be filled before something is booked, by domain."""

BOOKING_RULES: PolicyRules = {
    "hotel": ("name", "bookday", "bookpeople", "bookstay"),
    "restaurant": ("name", "bookday", "bookpeople", "booktime"),
}
"""The seed's rules."""

SEARCH, BOOK, REQUEST, INFORM = "search", "book", "request", "inform"
ANY = "any"
"""Where no rule says when a booking is complete, whatever the agent does to get on with it is right."""

_BOOKING = "booking"
_BOOKED = frozenset({"book", "offerbooked", "notify_success"})
_ACTIONS = {
    "nobook": (BOOK, INFORM),
    "request": (REQUEST,),
    "confirm": (REQUEST,),
    "reqmore": (INFORM,),
}
_GENERAL = "general"
_NO_STATE: State = {}


class Attempt(NamedTuple):
    """A booking that the agent performed, and what its domain still lacked."""

    domain: str
    missing: tuple[str, ...]


@lru_cache(4096)
def actions_of(act_type: str) -> frozenset[str]:
    """What an act does: search, book, request or inform.

    Results shown to the user are both a search and an inform. "No, it is full" is a booking that was tried;
    greetings and thanks acknowledge.
    """
    domain, _, kind = act_type.casefold().rpartition("-")
    if is_booking(act_type):
        return frozenset({BOOK})
    if kind in _ACTIONS:
        return frozenset(_ACTIONS[kind])
    return frozenset({INFORM}) if domain == _GENERAL else frozenset({SEARCH, INFORM})


@lru_cache(4096)
def is_booking(act_type: str) -> bool:
    """Whether an act says that something has been booked: Booking-Book, Train-OfferBooked."""
    return act_type.casefold().rpartition("-")[2] in _BOOKED


@lru_cache(65536)
def actions_of_all(act_types: frozenset[str]) -> frozenset[str]:
    """What several acts do."""
    return frozenset().union(*map(actions_of, act_types))


@lru_cache(65536)
def books(act_types: frozenset[str]) -> bool:
    """Whether one of the acts books something."""
    return BOOK in actions_of_all(act_types)


def booked_domains(turn: DialogueTurn) -> tuple[str, ...]:
    """The domains that the agent books in: named by the act or the tool, else those that the turn is about.

    Which domain a bare `Booking-Book` means is taken from the truth where there is one, so that a wrong routing
    is charged to routing alone.
    """
    if not turn.calls and BOOK not in actions_of_all(turn.predicted.act_types):
        return ()
    domains: list[str] = []
    for call in turn.calls:
        verb, _, domain = call.casefold().partition("_")
        if verb == "book":
            domains.append(domain)
    for act in turn.predicted.act_types:
        if is_booking(act):
            named = act.partition("-")[0].casefold()
            about = turn.booked or turn.truth.domains or turn.predicted.domains or ("",)
            domains += about if named == _BOOKING else (named,)
    return tuple(dict.fromkeys(domains))


def missing_slots(state: State, domain: str, rules: PolicyRules) -> tuple[str, ...]:
    """What a domain's rule wants and the state lacks."""
    required = rules.get(domain)
    if required is None:
        return ()
    filled = state.get(domain, _NO_STATE)
    return tuple([slot for slot in required if slot not in filled])


def booking_attempt(turn: DialogueTurn, rules: PolicyRules = BOOKING_RULES) -> Attempt | None:
    """The booking that the agent performs in this turn; None where it performs none.

    Where the turn is about several domains, it is the one that lacks least.
    """
    domains = booked_domains(turn)
    if not domains:
        return None
    state = turn.predicted.state or _NO_STATE
    ruled = [domain for domain in domains if domain in rules] or list(domains)
    return min(
        (Attempt(domain, missing_slots(state, domain, rules)) for domain in ruled), key=lambda one: len(one.missing)
    )


@lru_cache(65536)
def actions_taken(act_types: frozenset[str], calls: tuple[str, ...]) -> frozenset[str]:
    """All that the agent does in a turn, by its acts and its tools."""
    return actions_of_all(act_types) | {BOOK if call.casefold().startswith("book_") else SEARCH for call in calls}


def expected_action(intents: frozenset[str], state: State | None, rules: PolicyRules = BOOKING_RULES) -> str:
    """What the agent ought to do, from the truth: the user's intents, and whether the slots of a booking are filled.

    Without an intent it ought to acknowledge. A booking comes before a search.
    """
    booking = domains_to_book(intents)
    if not booking:
        return SEARCH if intents else INFORM
    ruled = [domain for domain in booking if domain in rules]
    if not ruled:
        return ANY
    return REQUEST if any(missing_slots(state or _NO_STATE, domain, rules) for domain in ruled) else BOOK


@lru_cache(65536)
def domains_to_book(intents: frozenset[str]) -> tuple[str, ...]:
    """The domains of the intents to book."""
    return tuple([intent.partition("_")[2] for intent in intents if intent.startswith("book")])


def does_right(expected: str, taken: Collection[str]) -> bool:
    """Whether what the agent does is, or includes, what is expected."""
    return bool(taken) if expected == ANY else expected in taken
