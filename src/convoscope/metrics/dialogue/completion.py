"""Whether the user got what they came for (dialogue, 1.10)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from convoscope.metrics.dialogue.policy import BOOKING_RULES, INFORM, PolicyRules, actions_taken, missing_slots
from convoscope.metrics.dialogue.turn_scores import TurnScores, names_known
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State
from convoscope.metrics.dialogue.venues import NAME, VenueDatabase, information

_NO_STATE: State = {}

_NO_VALUE = frozenset({None, "", "?"})


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
    intents = frozenset().union(*{turn.truth.intents for turn in turns if turn.truth.intents})
    requests = frozenset().union(*[turn.truth.requested for turn in turns if turn.truth.requested])
    return Goals(*_domains_of(intents), requests)


@lru_cache(65536)
def _domains_of(intents: frozenset[str]) -> tuple[frozenset[str], frozenset[str]]:
    """The domains to book in, and those to search in."""
    domains: dict[bool, set[str]] = {True: set(), False: set()}
    for intent in intents:
        verb, _, domain = intent.partition("_")
        domains[verb == "book"].add(domain or verb)
    return frozenset(domains[True]), frozenset(domains[False])


def completion(
    turns: Sequence[DialogueTurn],
    scores: Sequence[TurnScores],
    rules: PolicyRules = BOOKING_RULES,
    venues: VenueDatabase | None = None,
) -> Completion:
    """No booking against the rules, every booking made with its slots filled, every request answered.

    What a turn with an invented name or detail says, is no answer. A search without a request wants a reply that tells
    something. A value in the words of a reply is an answer where the database has it for a venue that was named.
    """
    goals = goals_of(turns)
    attempts = [score.attempt for score in scores if score.attempt is not None]
    violations = sum([bool(attempt.missing) for attempt in attempts])
    booked = {attempt.domain for attempt in attempts}
    last = _last_state(turns) if goals.bookings else _NO_STATE
    unbooked = [one for one in goals.bookings if one not in booked or missing_slots(last, one, rules)]
    unsought = goals.searches - goals.bookings
    if unsought:
        unsought -= _told_of(turns, scores)
    unanswered = _unanswered(turns, scores, venues) if goals.requests else ()
    return Completion(
        not violations and not unbooked and not unanswered and not unsought,
        violations,
        tuple(sorted(unbooked)),
        (*sorted([f"{domain}-{slot}" for domain, slot in unanswered]), *sorted(unsought)),
        goals,
    )


def _last_state(turns: Sequence[DialogueTurn]) -> State:
    return next((turn.predicted.state for turn in reversed(turns) if turn.predicted.state is not None), _NO_STATE)


def _told_of(turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> set[str]:
    """The domains of which a reply tells something that is not invented."""
    domains: set[str] = set()
    for turn, score in zip(turns, scores, strict=True):
        if not score.invented_mentions and INFORM in actions_taken(turn.predicted.act_types, turn.calls):
            domains.update(turn.truth.domains or ())
    return domains


def _unanswered(
    turns: Sequence[DialogueTurn], scores: Sequence[TurnScores], venues: VenueDatabase | None
) -> set[tuple[str, str]]:
    """The requests that no reply to them, or after them, answers: by an act with a value, or by the value itself."""
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    named: list[str] = []
    for turn, score in zip(turns, scores, strict=True):
        asked |= turn.truth.requested
        named += names_known(score)
        unanswered = asked - answered
        if unanswered and not score.invented_mentions:
            given = _given(turn, score)
            answered.update([one for one in unanswered if information(one[1]) in given])
            if venues is not None and named and not unanswered <= answered:
                facts = venues.facts_in(turn.response, names_known(score) or named)
                answered.update([one for one in unanswered if information(one[1]) in facts])
    return asked - answered


def _given(turn: DialogueTurn, score: TurnScores) -> set[str]:
    """What a reply gives, by its acts and by the details in its text."""
    given = {
        information(slot.slot) for act in turn.predicted.acts or () for slot in act.slots if slot.value not in _NO_VALUE
    }
    given.update([one.field for one in score.entities or () if one.field != NAME])
    return given
