"""Whether the user got what they came for (dialogue, 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from convoscope.metrics.dialogue.policy import BOOKING_RULES, INFORM, PolicyRules, actions_taken, missing_slots
from convoscope.metrics.dialogue.turn_scores import TurnScores
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State

_NO_STATE: State = {}

SLOT_NAMES = {
    "addr": "address",
    "arrive": "arriveby",
    "arriveby": "arriveby",
    "car": "type",
    "car type": "type",
    "depart": "departure",
    "dest": "destination",
    "entrance fee": "entrancefee",
    "fee": "entrancefee",
    "id": "trainid",
    "leave": "leaveat",
    "open": "openhours",
    "post": "postcode",
    "price": "pricerange",
    "price range": "pricerange",
    "ref": "reference",
    "ticket": "price",
}
"""Short names of slots in acts, and the names that requests use."""
_SAME_INFORMATION = {"pricerange": "price", "entrancefee": "price"}


class Goals(NamedTuple):
    """What the user wants, by the truth."""

    bookings: frozenset[str]
    """Domains to book in."""
    searches: frozenset[str]
    requests: frozenset[tuple[str, str]]
    """Domain and slot of what they ask for."""


class Completion(NamedTuple):
    """Whether the goals were met, and which were not."""

    is_complete: bool
    violations: int
    unbooked: tuple[str, ...]
    unanswered: tuple[str, ...]
    goals: Goals


def goals_of(turns: Sequence[DialogueTurn]) -> Goals:
    """The goals, from the true intents and requests of all turns."""
    bookings: set[str] = set()
    searches: set[str] = set()
    requests: set[tuple[str, str]] = set()
    for turn in turns:
        for intent in turn.truth.intents or ():
            verb, _, domain = intent.partition("_")
            (bookings if verb == "book" else searches).add(domain or verb)
        requests |= turn.truth.requested
    return Goals(frozenset(bookings), frozenset(searches), frozenset(requests))


def completion(
    turns: Sequence[DialogueTurn], scores: Sequence[TurnScores], rules: PolicyRules = BOOKING_RULES
) -> Completion:
    """No booking against the rules, every booking made with its slots filled, every request answered.

    What a turn with an invented name or detail says, is no answer.
    """
    goals = goals_of(turns)
    last = next((turn.predicted.state for turn in reversed(turns) if turn.predicted.state is not None), _NO_STATE)
    booked = {score.attempt.domain for score in scores if score.attempt is not None}
    unbooked = [one for one in goals.bookings if one not in booked or missing_slots(last, one, rules)]
    open_requests = [one for one in goals.requests if not _is_answered(*one, turns, scores)]
    unsought = [one for one in goals.searches - goals.bookings if not _is_searched(one, turns, scores)]
    violations = sum(score.is_violation for score in scores)
    return Completion(
        not violations and not unbooked and not open_requests and not unsought,
        violations,
        tuple(sorted(unbooked)),
        (*sorted(f"{domain}-{slot}" for domain, slot in open_requests), *sorted(unsought)),
        goals,
    )


def slot_name(slot: str) -> str:
    """The one name of a slot."""
    short = slot.casefold()
    return SLOT_NAMES.get(short, short)


def _is_answered(domain: str, slot: str, turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> bool:
    """Whether an act with a value for the slot, or the value itself, comes at or after the request."""
    asked = next(place for place, turn in enumerate(turns) if (domain, slot) in turn.truth.requested)
    wanted = slot_name(slot)
    return any(
        not score.invented_entities and _gives(turn, score, wanted)
        for turn, score in zip(turns[asked:], scores[asked:], strict=True)
    )


def _gives(turn: DialogueTurn, score: TurnScores, wanted: str) -> bool:
    if wanted in score.mentioned:
        return True
    general = _SAME_INFORMATION.get(wanted, wanted)
    for act in turn.predicted.acts or ():
        for slot in act.slots:
            given = slot_name(slot.slot)
            if slot.value not in (None, "", "?") and (
                given == wanted or _SAME_INFORMATION.get(given, given) == general
            ):
                return True
    return False


def _is_searched(domain: str, turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> bool:
    """Whether a reply to a turn about the domain tells something that is not invented."""
    return any(
        domain in (turn.truth.domains or ()) and not score.invented_entities and INFORM in actions_taken(turn)
        for turn, score in zip(turns, scores, strict=True)
    )
