"""Inform and success: was the right venue offered, and everything about it told that was asked (dialogue, 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from convoscope.metrics.dialogue.tomiinek.venue_search import SEARCHED, Venues, VenueSearch

REQUESTABLE = ("PHONE", "ADDRESS", "POST", "REFERENCE", "TRAINID")
TOTAL = "total"
_TRAIN, _TRAINID, _REFERENCE, _NAME = "train", "TRAINID", "REFERENCE", "NAME"

State = Mapping[str, Mapping[str, str]]


class DomainGoal(NamedTuple):
    """What a user wants of a domain: constraints, and what they ask for, as placeholders."""

    informable: Mapping[str, str]
    requestable: frozenset[str] = frozenset()


class Judgement(NamedTuple):
    """Whether each domain, and the whole, was informed of and a success. No success is judged without inform."""

    inform: dict[str, bool]
    success: dict[str, bool]

    @property
    def is_informed(self) -> bool:
        return self.inform[TOTAL]

    @property
    def is_success(self) -> bool:
        return self.success.get(TOTAL, False)


def judge_dialogue(
    goals: Mapping[str, DomainGoal],
    responses: Sequence[str],
    states: Sequence[State],
    active: Sequence[Sequence[str]],
    booked: Sequence[Sequence[str]],
    search: VenueSearch,
) -> Judgement:
    """A dialogue by its delexicalised responses, turn by turn.

    `active` are the domains that each turn is about, `booked` those in which the gold dialogue has a booking.
    """
    offered: dict[str, Venues] = {}
    provided: dict[str, set[str]] = {domain: set() for domain in goals}
    for response, state, domains, bookings in zip(responses, states, active, booked, strict=True):
        for domain in goals:
            if domain in domains:
                if _NAME in response or (_TRAINID in response and domain == _TRAIN):
                    _offer(domain, state, offered, search)
                provided[domain].update(_provided(response, domain in bookings))
    inform = {domain: _is_informed(domain, goal, offered.get(domain), search) for domain, goal in goals.items()}
    inform[TOTAL] = all(inform.values())
    success: dict[str, bool] = {}
    if inform[TOTAL]:
        success = {
            domain: all(one in provided[domain] for one in goal.requestable if one in REQUESTABLE)
            for domain, goal in goals.items()
        }
        success[TOTAL] = all(success.values())
    return Judgement(inform, success)


def _offer(domain: str, state: State, offered: dict[str, Venues], search: VenueSearch) -> None:
    """What the state finds is offered, unless it only widens what was offered before."""
    venues = search.places(domain, state.get(domain, {}))
    if venues and not (offered.get(domain) and offered[domain] <= venues):
        offered[domain] = venues


def _provided(response: str, is_booked: bool) -> list[str]:
    return [one for one in REQUESTABLE if one in response and (one != _REFERENCE or is_booked)]


def _is_informed(domain: str, goal: DomainGoal, offered: Venues | None, search: VenueSearch) -> bool:
    if domain not in SEARCHED or "name" in goal.informable:
        return True
    if not offered:
        return domain == _TRAIN and _TRAINID not in goal.requestable
    return offered <= search.places(domain, goal.informable)


def active_domains(states: Sequence[State]) -> list[list[str]]:
    """The domain that each turn is about, where nobody says: the one whose state changes most, else the one before.

    Of several that change at once one is chosen, and it alone is seen: the others still count as changed in the turn
    after.
    """
    estimates: list[list[str]] = []
    seen: dict[str, Mapping[str, str]] = {}
    for state in states:
        changed = {domain: _changes(slots, seen.get(domain, {})) for domain, slots in state.items()}
        most = max(changed.values(), default=0)
        if most:
            chosen = next(domain for domain, count in changed.items() if count == most)
            seen[chosen] = state[chosen]
            estimates.append([chosen])
        else:
            estimates.append(estimates[-1] if estimates else [])
    return estimates


def _changes(slots: Mapping[str, str], before: Mapping[str, str]) -> int:
    return len(slots.items() - before.items())
