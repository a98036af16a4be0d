"""Constraints that are carried over to a new domain (dialogue, 1.7), and whether the user's goals were met (1.10)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from convoscope.metrics.dialogue.policy import (
    BOOKING_RULES,
    PolicyRules,
    act_use,
    domain_among,
    goal_domains,
    missing_slots,
    unknown_doing,
)
from convoscope.metrics.dialogue.turn_scores import NO_VENUES, TurnScores
from convoscope.metrics.dialogue.turns import DialogueTurn, State
from convoscope.metrics.dialogue.venues import ADDRESS, NAME, VenueDatabase, information

TRANSFERABLE = ("area", "pricerange")
"""Search constraints. What belongs to one booking is not carried over."""

_NO_STATE: State = {}


class Transfer(NamedTuple):
    """One opportunity to carry a value over, with the position of its turn in the dialogue."""

    turn: int
    from_domain: str
    to_domain: str
    slot: str
    value: str
    is_carried: bool


def transfers(turns: Sequence[DialogueTurn], slots: Collection[str] = TRANSFERABLE) -> list[Transfer]:
    """The seed's events: at each change of the predicted domain, each filled slot of the old domain.

    It counts as carried where the new domain has the same value on that very turn. Truth is not looked at.
    """
    events: list[Transfer] = []
    routes = [(turn.predicted.domains or ("",))[0] for turn in turns]
    if len(set(routes)) < 2:
        return events
    for position, (old, new) in enumerate(pairwise(routes), 1):
        if old != new and old and new:
            before = _own_state(turns[position - 1]).get(old, {})
            after = _own_state(turns[position]).get(new, {})
            events += [
                Transfer(position, old, new, slot, before[slot], after.get(slot) == before[slot])
                for slot in slots
                if slot in before
            ]
    return events


def _own_state(turn: DialogueTurn) -> State:
    """The predicted state as predicted: which wordings the truth lists does not matter."""
    return turn.predicted.own_state or turn.predicted.state or _NO_STATE


def true_transfers(turns: Sequence[DialogueTurn], slots: Collection[str] = TRANSFERABLE) -> list[Transfer]:
    """Where the truth carries a value into a new domain: does the prediction hold it by the end of that segment?

    A segment is a run of turns about one domain; turns about none belong to the segment before them. The truth
    carries a slot where both domains have the same value at the end of the segment, and wherever it says that the
    slot was copied, whatever the slot and however many intents are active.
    """
    events = _equal_values(turns, slots)
    known = {(event.to_domain, event.slot) for event in events}
    for position, turn in enumerate(turns):
        for domain, slot in sorted(turn.copied - known) if turn.copied else ():
            event = _copy(turns, position, domain, slot)
            if event is not None:
                events.append(event)
                known.add((domain, slot))
    return events


def _copy(turns: Sequence[DialogueTurn], position: int, domain: str, slot: str) -> Transfer | None:
    """A slot that the truth copied in a turn, judged in the last turn of the run that is about its domain."""
    last = position
    while last + 1 < len(turns) and domain in (turns[last + 1].truth.domains or (domain,)):
        last += 1
    true = turns[last].truth.state or _NO_STATE
    value = true.get(domain, {}).get(slot)
    if value is None:
        return None
    source = next((name for name, held in true.items() if name != domain and value in held.values()), "")
    predicted = (turns[last].predicted.state or _NO_STATE).get(domain, {})
    return Transfer(position, source, domain, slot, value, predicted.get(slot) == value)


def _equal_values(turns: Sequence[DialogueTurn], slots: Collection[str]) -> list[Transfer]:
    """The slots that have one true value in the old and in the new domain."""
    events: list[Transfer] = []
    routes = [turn.truth.domains[0] if turn.truth.domains else "" for turn in turns]
    if len({*routes, ""}) < 3:
        return events
    about = [position for position, domain in enumerate(routes) if domain]
    starts = [(last, start) for last, start in pairwise(about) if routes[last] != routes[start]]
    for (last, start), (_, end) in pairwise([*starts, (0, len(turns))]):
        old, new = routes[last], routes[start]
        filled = (turns[last].truth.state or _NO_STATE).get(old, {})
        true = (turns[end - 1].truth.state or _NO_STATE).get(new, {})
        early = (turns[start - 1].truth.state or _NO_STATE).get(new, {})
        predicted = (turns[end - 1].predicted.state or _NO_STATE).get(new, {})
        events += [
            Transfer(start, old, new, slot, true[slot], predicted.get(slot) == true[slot])
            for slot in slots
            if slot in filled and slot not in early and true.get(slot) == filled[slot]
        ]
    return events


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
    """Whether the goals were met, and which were not. None: it is unknown, and `undecided` says why."""

    is_complete: bool | None
    violations: int
    unbooked: tuple[str, ...]
    unanswered: tuple[str, ...]
    goals: Goals
    undecided: str = ""


def goals_of(turns: Sequence[DialogueTurn]) -> Goals:
    """The goals, from the true intents and requests of all turns."""
    wanted = [goal_domains(turn.truth.intents, turn.truth.domains) for turn in turns if turn.truth.intents]
    return Goals(
        frozenset().union(*[goal.bookings for goal in wanted]),
        frozenset().union(*[goal.searches for goal in wanted]),
        frozenset().union(*[turn.truth.requested for turn in turns if turn.truth.requested]),
    )


def completion(
    turns: Sequence[DialogueTurn],
    scores: Sequence[TurnScores],
    rules: PolicyRules = BOOKING_RULES,
    venues: VenueDatabase | None = None,
) -> Completion:
    """No booking against the rules, every booking made with its slots filled, every request answered.

    What a turn with an invented name or detail says is no answer. A search without a request wants a reply that gives
    something. A value in the text of a reply is an answer where the database has it for a venue that was named.
    Without a database it is known whether a booking was made. Where the user also asks or looks for something, the
    result is unknown, even if a booking failed: were only failures counted, the figure would fall.
    """
    goals = goals_of(turns)
    violations = sum([score.is_violation for score in scores if score.attempts])
    booked = {attempt.domain for score in scores for attempt in score.attempts}
    unbooked = goals.bookings - booked
    states = (turn.predicted.state for turn in reversed(turns))
    last_state = next((state for state in states if state is not None), None)
    lacking = {domain for domain in goals.bookings & booked if missing_slots(last_state or _NO_STATE, domain, rules)}
    searches = goals.searches - goals.bookings
    unsought = searches - _delivered_domains(turns, scores) if searches else searches
    unanswered = _unanswered(turns, scores, venues) if goals.requests else set()
    # Why what seems missing may have been done: nothing says what the agent did, or its names do not say.
    is_acting = any(turn.predicted.acts is not None or turn.calls for turn in turns)
    unknown_acts = (unknown_doing(turn.predicted.act_types, turn.calls) for turn in turns)
    replies = is_acting or any(turn.response.strip() for turn in turns)
    missed: list[tuple[Collection[object], str]] = [
        (unbooked | unsought, next(filter(None, unknown_acts), "") if is_acting else NOT_PREDICTED),
        (lacking, "" if last_state is not None else NOT_PREDICTED),
        (unanswered, "" if replies else NOT_PREDICTED),
    ]
    is_failed = bool(violations) or any(goal and not doubt for goal, doubt in missed)
    undecided = "" if is_failed else next((doubt for goal, doubt in missed if goal), "")
    if (goals.requests or searches) and all(score.entities is None for score in scores):
        undecided = NO_VENUES  # what was said may be made up
    return Completion(
        None if undecided else not is_failed,
        violations,
        tuple(sorted(unbooked | lacking)),
        (*sorted([f"{domain}-{slot}" for domain, slot in unanswered]), *sorted(unsought)),
        goals,
        undecided,
    )


def _delivered_domains(turns: Sequence[DialogueTurn], scores: Sequence[TurnScores]) -> set[str]:
    """The domains of which a reply gives something that is not invented."""
    domains: set[str] = set()
    for turn, score in zip(turns, scores, strict=True):
        if not score.invented_mentions:
            domains |= _delivered(turn.predicted.act_types, turn.truth.domains or ())
    return domains


@lru_cache(65536)
def _delivered(act_types: frozenset[str], about: tuple[str, ...]) -> frozenset[str]:
    """The domains of the acts that deliver something."""
    return frozenset().union(*[_act_domains(type, about) for type in act_types if act_use(type).delivers])


def _act_domains(type: str, about: tuple[str, ...]) -> tuple[str, ...]:
    """The domains that an act is about: the one that it names, or those of its turn."""
    name = act_use(type).domain
    return (domain_among(name, about),) if name else about


def _unanswered(
    turns: Sequence[DialogueTurn], scores: Sequence[TurnScores], venues: VenueDatabase | None
) -> set[tuple[str, str]]:
    """The requests that no reply to them, or after them, answers: by an act with a value, or by the value itself.

    What is said of one domain is no answer to a question about another.
    """
    asked: set[tuple[str, str]] = set()
    answered: set[tuple[str, str]] = set()
    named: list[str] = []
    for turn, score in zip(turns, scores, strict=True):
        asked |= turn.truth.requested
        names = score.known_names
        named += names
        unanswered = asked - answered
        if unanswered and not score.invented_mentions:
            given = {
                (domain, information(slot.slot))
                for act in turn.predicted.acts or ()
                if act.slots and act_use(act.type).delivers
                for domain in _act_domains(act.type, turn.truth.domains or ())
                for slot in act.slots
                if slot.value not in _NO_VALUE
            }
            answered |= {key for key in unanswered if (key[0].casefold(), information(key[1])) in given}
            owners = names or named
            for domain in {domain for domain, _ in unanswered - answered}:
                in_text = _given_in_text(turn, score, owners, domain.casefold(), venues)
                answered |= {key for key in unanswered if key[0] == domain and information(key[1]) in in_text}
    return asked - answered


def _given_in_text(
    turn: DialogueTurn, score: TurnScores, owners: Sequence[str], domain: str, venues: VenueDatabase | None
) -> set[str]:
    """What the text of a reply says of a domain: details that the database has, and other values of its venues."""
    # Whose address it is counts, so an address alone is no answer.
    details = [item for item in score.entities or () if item.field not in (NAME, ADDRESS)]
    if venues is None:
        return {item.field for item in details}
    given = {item.field for item in details if venues.is_of(domain, item.field, item.value)}
    of_domain = [name for name in owners if venues.is_of(domain, NAME, name)]
    return given | venues.values_in(turn.response, of_domain) if of_domain else given
