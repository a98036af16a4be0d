"""What an agent does in a turn, and whether it may: rules of booking as data (dialogue, 1.8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import NamedTuple

from convoscope.metrics.dialogue.actions import (
    ACT_UNKNOWN,
    BOOK,
    INFORM,
    REQUEST,
    SEARCH,
    TOOL_UNKNOWN,
    do_tell,
    does_tell,
    intent_books,
    is_booking,
    named_domain,
    tool_use,
)
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State

PolicyRules = Mapping[str, tuple[str, ...]]
"""The slots that must be filled before something is booked, by domain."""

BOOKING_RULES: PolicyRules = {
    "hotel": ("name", "bookday", "bookpeople", "bookstay"),
    "restaurant": ("name", "bookday", "bookpeople", "booktime"),
}
"""The seed's rules."""

ANY = "any"
"""Where no rule says when a booking is complete, whatever the agent does to get on with it is right."""

_NO_STATE: State = {}


class Attempt(NamedTuple):
    """A booking that the agent performed, and what its domain still lacked."""

    domain: str
    missing: tuple[str, ...]


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
    named = sorted({_booked_domain(domain, about, rules) for domain in tools + acts if domain})
    attempts = [Attempt(domain, missing_slots(state, domain, rules)) for domain in named]
    if "" in tools or ("" in acts and not tools):
        others = [domain for domain in about if domain not in named]
        ruled = [domain for domain in others if domain in rules] or others
        bare = [Attempt(domain, missing_slots(state, domain, rules)) for domain in ruled]
        attempts += bare if len(bare) < 2 else [min(bare, key=lambda one: len(one.missing))]
    return tuple(attempts)


def no_doing(turn: DialogueTurn) -> str:
    """Why it cannot be told whether the agent books: nothing says what it does, or names that do not say."""
    is_acting = turn.predicted.acts is not None
    if (is_acting and do_tell(turn.predicted.act_types)) or (turn.calls and does_tell(turn.calls)):
        return ""
    return ACT_UNKNOWN if is_acting else TOOL_UNKNOWN if turn.calls else "not_predicted"


def _booked_domain(name: str, about: tuple[str, ...], rules: PolicyRules) -> str:
    """The domain that the name of a booking means: one of the turn, else one that has a rule, else itself."""
    domain = domain_among(name, about)
    return domain if domain in about else domain_among(name, tuple(rules))


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
        is_booking_goal, name = intent_books(intent)
        (bookings if is_booking_goal else searches).add(_goal_domain(name, domains or ()))
    return GoalDomains(frozenset(bookings), frozenset(searches))


def _goal_domain(name: str, domains: tuple[str, ...]) -> str:
    """A turn about one domain alone is about it, whatever its intents are called."""
    domain = domain_among(name, domains)
    return domains[0] if domain not in domains and len(domains) == 1 else domain


def does_right(expected: str, taken: Collection[str]) -> bool:
    """Whether what the agent does is, or includes, what is expected."""
    return bool(taken) if expected == ANY else expected in taken
