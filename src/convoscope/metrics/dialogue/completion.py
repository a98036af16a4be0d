"""Whether the user got what they came for (dialogue, 1.10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import NamedTuple

from convoscope.metrics.dialogue.actions import delivers, named_domain, unknown_doing
from convoscope.metrics.dialogue.policy import (
    BOOKING_RULES,
    GoalDomains,
    PolicyRules,
    domain_among,
    goal_domains,
    missing_slots,
)
from convoscope.metrics.dialogue.turn_scores import TurnScores, names_known
from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State
from convoscope.metrics.dialogue.venues import ADDRESS, NAME, VenueDatabase, information
from convoscope.metrics.dialogue.without_venues import NO_VENUES

_NO_STATE: State = {}

NOT_PREDICTED = "not_predicted"
_NO_VALUE = frozenset({None, "", "?"})


class Goals(NamedTuple):
    """What the user wants, by the truth."""

    bookings: frozenset[str]
    """Domains to book in."""
    searches: frozenset[str]
    requests: frozenset[tuple[str, str]]
    """Domain and slot of what they ask for."""


class Completion(NamedTuple):
    """Whether the goals were met, and which were not. None: it cannot be told, and `undecided` says why."""

    is_complete: bool | None
    violations: int
    unbooked: tuple[str, ...]
    unanswered: tuple[str, ...]
    goals: Goals
    undecided: str = ""


def goals_of(turns: Sequence[DialogueTurn]) -> Goals:
    """The goals, from the true intents and requests of all turns."""
    intents = frozenset([(turn.truth.intents, turn.truth.domains) for turn in turns if turn.truth.intents])
    requests = frozenset().union(*[turn.truth.requested for turn in turns if turn.truth.requested])
    return Goals(*_goal_domains(intents), requests)


@lru_cache(65536)
def _goal_domains(intents: frozenset[tuple[frozenset[str], tuple[str, ...] | None]]) -> GoalDomains:
    """The domains of the intents of several turns, each with what its turn is about."""
    wanted = [goal_domains(*one) for one in intents]
    return GoalDomains(
        frozenset().union(*[one.bookings for one in wanted]), frozenset().union(*[one.searches for one in wanted])
    )


def completion(
    turns: Sequence[DialogueTurn],
    scores: Sequence[TurnScores],
    rules: PolicyRules = BOOKING_RULES,
    venues: VenueDatabase | None = None,
) -> Completion:
    """No booking against the rules, every booking made with its slots filled, every request answered.

    What a turn with an invented name or detail says, is no answer. A search without a request wants a reply that tells
    something. A value in the words of a reply is an answer where the database has it for a venue that was named.
    Without a database it can be told whether a booking was made. Where the user also asks or looks for something,
    nothing is told, not even that a booking failed: were only failures told, the figure would fall.
    """
    goals = goals_of(turns)
    violations = sum([score.is_violation for score in scores if score.attempts])
    booked = {attempt.domain for score in scores for attempt in score.attempts}
    unbooked = goals.bookings - booked
    lacking = {one for one in goals.bookings - unbooked if missing_slots(_last_state(turns), one, rules)}
    unsought = goals.searches - goals.bookings
    if unsought:
        unsought -= _told_of(turns, scores)
    unanswered = _unanswered(turns, scores, venues) if goals.requests else set()
    doubts = _Doubts.of(turns, scores, goals)
    missed: list[tuple[Collection[object], str]] = [
        (unbooked | unsought, doubts.of_acts),
        (lacking, doubts.of_state),
        (unanswered, doubts.of_words),
    ]
    is_failed = bool(violations) or any(goal and not doubt for goal, doubt in missed)
    undecided = doubts.of_facts or ("" if is_failed else next((doubt for goal, doubt in missed if goal), ""))
    return Completion(
        None if undecided else not is_failed,
        violations,
        tuple(sorted(unbooked | lacking)),
        (*sorted([f"{domain}-{slot}" for domain, slot in unanswered]), *sorted(unsought)),
        goals,
        undecided,
    )


class _Doubts(NamedTuple):
    """Why what seems missing may have been done, and why what seems done may be made up."""

    of_acts: str
    """Nobody says what the agent did, or its names do not say."""
    of_state: str
    of_words: str
    of_facts: str
    """What was told may be made up, and there is no database to look it up."""

    @classmethod
    def of(cls, turns: Sequence[DialogueTurn], scores: Sequence[TurnScores], goals: Goals) -> _Doubts:
        is_acting = any(turn.predicted.acts is not None or turn.calls for turn in turns)
        unknown = [unknown_doing(turn.predicted.act_types, turn.calls) for turn in turns]
        acts = next(filter(None, unknown), "") if is_acting else NOT_PREDICTED
        state = "" if any(turn.predicted.state is not None for turn in turns) else NOT_PREDICTED
        has_words = any(turn.response.strip() for turn in turns)
        words = "" if is_acting or has_words else NOT_PREDICTED
        asks = goals.requests or goals.searches - goals.bookings
        has_venues = any(score.entities is not None for score in scores)
        return cls(acts, state, words, NO_VENUES if asks and not has_venues else "")


def _last_state(turns: Sequence[DialogueTurn]) -> State:
    return next((turn.predicted.state for turn in reversed(turns) if turn.predicted.state is not None), _NO_STATE)


def _told_of(turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> set[str]:
    """The domains of which a reply tells something that is not invented."""
    domains: set[str] = set()
    for turn, score in zip(turns, scores, strict=True):
        if not score.invented_mentions:
            domains |= _delivered(turn.predicted.act_types, turn.truth.domains or ())
    return domains


@lru_cache(65536)
def _delivered(act_types: frozenset[str], about: tuple[str, ...]) -> frozenset[str]:
    """The domains of the acts that deliver something."""
    return frozenset().union(*[_act_domains(type, about) for type in act_types if delivers(type)])


def _act_domains(type: str, about: tuple[str, ...]) -> tuple[str, ...]:
    """The domains that an act is about: the one that it names, or those of its turn."""
    name = named_domain(type)
    return (domain_among(name, about),) if name else about


def _unanswered(
    turns: Sequence[DialogueTurn], scores: Sequence[TurnScores], venues: VenueDatabase | None
) -> set[tuple[str, str]]:
    """The requests that no reply to them, or after them, answers: by an act with a value, or by the value itself.

    What is told of one domain is no answer to a question about another.
    """
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    named: list[str] = []
    for turn, score in zip(turns, scores, strict=True):
        asked |= turn.truth.requested
        named += names_known(score)
        unanswered = asked - answered
        if unanswered and not score.invented_mentions:
            given = _given(turn)
            answered |= {one for one in unanswered if (one[0].casefold(), information(one[1])) in given}
            owners = names_known(score) or named
            for domain in {domain for domain, _ in unanswered - answered}:
                facts = _facts_in_words(turn, score, owners, domain.casefold(), venues)
                answered |= {one for one in unanswered if one[0] == domain and information(one[1]) in facts}
    return asked - answered


def _given(turn: DialogueTurn) -> set[tuple[str, str]]:
    """Domain and information of what the acts of a reply give."""
    return {
        (domain, information(slot.slot))
        for act in turn.predicted.acts or ()
        if act.slots and delivers(act.type)
        for domain in _act_domains(act.type, turn.truth.domains or ())
        for slot in act.slots
        if slot.value not in _NO_VALUE
    }


def _facts_in_words(
    turn: DialogueTurn, score: TurnScores, owners: Sequence[str], domain: str, venues: VenueDatabase | None
) -> set[str]:
    """What the words of a reply tell of a domain: details that the database has, and other values of its venues."""
    details = [one for one in score.entities or () if one.field not in (NAME, ADDRESS)]  # whose address it is, counts
    if venues is None:
        return {one.field for one in details}
    given = {one.field for one in details if venues.is_of(domain, one.field, one.value)}
    venues_there = [name for name in owners if venues.is_of(domain, NAME, name)]
    return given | venues.facts_in(turn.response, venues_there) if venues_there else given
