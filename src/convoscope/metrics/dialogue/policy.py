"""What an agent does in a turn, and whether it may: rules of booking as data (dialogue, 1.8)."""

from __future__ import annotations

import re
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
    "notify_failure": (BOOK, INFORM),
    "request": (REQUEST,),
    "confirm": (REQUEST,),
    "offer_intent": (REQUEST,),
    "reqmore": (INFORM,),
    "req_more": (INFORM,),
    "goodbye": (INFORM,),
    "thank_you": (INFORM,),
}
_DELIVERS_NOTHING = frozenset({"nooffer", "nobook", "notify_failure", "reqmore", "req_more", "goodbye", "thank_you"})
"""Kinds of acts that tell the user nothing that they came for."""
_GENERAL = "general"
_NO_STATE: State = {}

BOOKING_VERBS = ("book", "reserve", "buy", "purchase", "rent", "order", "schedule")
"""The first word of a tool or an intent that books."""
MAKING_VERBS = frozenset({"make", "create", "place", "confirm", "complete", "submit", "add"})
BOOKING_NOUNS = frozenset({"booking", "reservation", "purchase", "order", "appointment", "rental", "ticket", "tickets"})
"""After a verb of making, what is made is a booking: `make_hotel_booking`."""
OTHER_VERBS = frozenset(
    {"find", "search", "look", "lookup", "get", "list", "query", "check", "show", "fetch", "read", "retrieve"}
    | {"browse", "recommend", "inform", "offer", "request", "ask", "cancel", "change", "update", "delete", "remove"}
    | {"send", "transfer", "calculate", "verify"}
)
"""The first word of a tool that books nothing. What a tool with another first word does, nobody can tell."""
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


class Attempt(NamedTuple):
    """A booking that the agent performed, and what its domain still lacked."""

    domain: str
    missing: tuple[str, ...]


class ToolUse(NamedTuple):
    """What a tool does by its name: whether it books, in which domain, and whether that can be told."""

    books: bool
    domain: str = ""
    is_known: bool = True


@lru_cache(4096)
def tool_use(name: str) -> ToolUse:
    """`book_hotel`, `bookHotel`, `make_hotel_booking` and `ReserveHotel` book; the rest of the name is the domain."""
    words = [word.casefold() for word in _WORD.findall(name)]
    first, rest = (words[0], words[1:]) if words else ("", [])
    if first in BOOKING_VERBS:
        return ToolUse(True, "_".join(rest))
    if first in MAKING_VERBS and not BOOKING_NOUNS.isdisjoint(rest):
        return ToolUse(True, "_".join([word for word in rest if word not in BOOKING_NOUNS]))
    return ToolUse(False, is_known=first in OTHER_VERBS)


@lru_cache(65536)
def does_tell(calls: tuple[str, ...]) -> bool:
    """Whether the names of the tools tell that something was booked, or that nothing was."""
    uses = [tool_use(call) for call in calls]
    return any(use.books for use in uses) or (bool(uses) and all(use.is_known for use in uses))


@lru_cache(4096)
def act_parts(act_type: str) -> tuple[str, str]:
    """The domain of an act and what it does: `Hotel-Inform`. Those of SGD, such as `INFORM`, name no domain."""
    domain, _, kind = act_type.casefold().rpartition("-")
    return domain, kind


@lru_cache(4096)
def actions_of(act_type: str) -> frozenset[str]:
    """What an act does: search, book, request or inform.

    Results shown to the user are both a search and an inform. "No, it is full" is a booking that was tried;
    greetings and thanks acknowledge.
    """
    domain, kind = act_parts(act_type)
    if is_booking(act_type):
        return frozenset({BOOK})
    if kind in _ACTIONS:
        return frozenset(_ACTIONS[kind])
    return frozenset({INFORM}) if domain == _GENERAL else frozenset({SEARCH, INFORM})


@lru_cache(4096)
def is_booking(act_type: str) -> bool:
    """Whether an act says that something has been booked: Booking-Book, Train-OfferBooked, NOTIFY_SUCCESS."""
    return act_parts(act_type)[1] in _BOOKED


@lru_cache(4096)
def delivers(act_type: str) -> bool:
    """Whether an act may give the user something: no greeting, no question, no "there is none"."""
    domain, kind = act_parts(act_type)
    return domain != _GENERAL and kind not in _DELIVERS_NOTHING and actions_of(act_type) != {REQUEST}


@lru_cache(4096)
def named_domain(act_type: str) -> str:
    """The domain that an act names; "" where it is that of the turn, as of `Booking-Book` and `INFORM`."""
    domain = act_parts(act_type)[0]
    return "" if domain == _BOOKING else domain


@lru_cache(65536)
def actions_of_all(act_types: frozenset[str]) -> frozenset[str]:
    """What several acts do."""
    return frozenset().union(*map(actions_of, act_types))


@lru_cache(65536)
def books(act_types: frozenset[str]) -> bool:
    """Whether one of the acts books something."""
    return BOOK in actions_of_all(act_types)


def missing_slots(state: State, domain: str, rules: PolicyRules) -> tuple[str, ...]:
    """What a domain's rule wants and the state lacks."""
    required = rules.get(domain)
    if required is None:
        return ()
    filled = state.get(domain, _NO_STATE)
    return tuple([slot for slot in required if slot not in filled])


def booking_attempts(turn: DialogueTurn, rules: PolicyRules = BOOKING_RULES) -> tuple[Attempt, ...]:
    """The bookings that the agent performs in this turn: one in each domain that an act or a tool names.

    A booking that names no domain, such as `Booking-Book`, is in the domain that the turn is about; of several, in the
    one that lacks least. What the turn is about is taken from the truth where there is one, so that a wrong routing is
    charged to routing alone. Where a tool booked, such an act reports on it.
    """
    tools, acts = bookings_named(turn.predicted.act_types, turn.calls)
    if not tools and not acts:
        return ()
    about = turn.booked or turn.truth.domains or turn.predicted.domains or ("",)
    state = turn.predicted.state or _NO_STATE
    named = sorted({domain_among(domain, about) for domain in tools + acts if domain})
    attempts = [Attempt(domain, missing_slots(state, domain, rules)) for domain in named]
    if "" in tools or ("" in acts and not tools):
        others = [domain for domain in about if domain not in named]
        ruled = [domain for domain in others if domain in rules] or others
        bare = [Attempt(domain, missing_slots(state, domain, rules)) for domain in ruled]
        attempts += bare if len(bare) < 2 else [min(bare, key=lambda one: len(one.missing))]
    return tuple(attempts)


@lru_cache(65536)
def bookings_named(act_types: frozenset[str], calls: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The domains that tools and acts that book name; "" for one that names none."""
    tools = [use.domain for use in map(tool_use, calls) if use.books]
    return tuple(tools), tuple([named_domain(type) for type in act_types if is_booking(type)])


@lru_cache(65536)
def domain_among(name: str, domains: tuple[str, ...]) -> str:
    """The domain that a part of an act, a tool or an intent means: `restaurant` is `Restaurants_2` where a turn is
    about that. A name that means none of them stands for itself.
    """
    if name in domains:
        return name
    stems = {domain.rstrip("_0123456789").removesuffix("s"): domain for domain in reversed(domains)}
    return next((domain for stem, domain in stems.items() if stem and stem in name), name)


@lru_cache(65536)
def actions_taken(act_types: frozenset[str], calls: tuple[str, ...]) -> frozenset[str]:
    """All that the agent does in a turn, by its acts and its tools."""
    return actions_of_all(act_types) | {BOOK if tool_use(call).books else SEARCH for call in calls}


def expected_action(
    intents: frozenset[str],
    state: State | None,
    rules: PolicyRules = BOOKING_RULES,
    domains: tuple[str, ...] | None = None,
) -> str:
    """What the agent ought to do, from the truth: the user's intents, and whether the slots of a booking are filled.

    Without an intent it ought to acknowledge. A booking comes before a search.
    """
    booking = goal_domains(intents, domains).bookings
    if not booking:
        return SEARCH if intents else INFORM
    ruled = [domain for domain in booking if domain in rules]
    if not ruled:
        return ANY
    return REQUEST if any(missing_slots(state or _NO_STATE, domain, rules) for domain in ruled) else BOOK


class GoalDomains(NamedTuple):
    """The domains that the user wants to book in, and those in which they look for something."""

    bookings: frozenset[str]
    searches: frozenset[str]


@lru_cache(65536)
def goal_domains(intents: frozenset[str], domains: tuple[str, ...] | None = None) -> GoalDomains:
    """What intents are about, in a turn about these domains: `book_hotel`, `ReserveRestaurant` in `Restaurants_2`."""
    bookings: set[str] = set()
    searches: set[str] = set()
    for intent in intents:
        verb = next((verb for verb in BOOKING_VERBS if intent.startswith(verb)), "")
        name = intent.removeprefix(verb).lstrip("_") if verb else intent.partition("_")[2] or intent
        (bookings if verb else searches).add(_goal_domain(name, domains or ()))
    return GoalDomains(frozenset(bookings), frozenset(searches))


def _goal_domain(name: str, domains: tuple[str, ...]) -> str:
    """A turn about one domain alone is about it, whatever its intents are called."""
    domain = domain_among(name, domains)
    return domains[0] if domain not in domains and len(domains) == 1 else domain


def does_right(expected: str, taken: Collection[str]) -> bool:
    """Whether what the agent does is, or includes, what is expected."""
    return bool(taken) if expected == ANY else expected in taken
