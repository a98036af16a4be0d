"""Constraints that are carried over when a dialogue changes its domain (dialogue, 1.7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from convoscope.metrics.dialogue.turns import DialogueTurn
from convoscope.metrics.dialogue.values import State

TRANSFERABLE = ("area", "pricerange")
"""Search constraints. What belongs to one booking is not carried over."""

_NO_STATE: State = {}


class Transfer(NamedTuple):
    """One opportunity to carry a value over, at the place of the turn in the dialogue."""

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
    for place, (old, new) in enumerate(pairwise(routes), 1):
        if old != new and old and new:
            before = _own_state(turns[place - 1]).get(old, {})
            after = _own_state(turns[place]).get(new, {})
            events += [
                Transfer(place, old, new, slot, before[slot], after.get(slot) == before[slot])
                for slot in slots
                if slot in before
            ]
    return events


def _own_state(turn: DialogueTurn) -> State:
    """The predicted state in its own words: which wordings the truth lists does not matter."""
    return turn.predicted.own_state or turn.predicted.state or _NO_STATE


def true_transfers(turns: Sequence[DialogueTurn], slots: Collection[str] = TRANSFERABLE) -> list[Transfer]:
    """Where the truth carries a value into a new domain: does the prediction hold it by the end of that segment?

    A segment is a run of turns about one domain; turns about none belong to the segment before them. The truth
    carries a slot where both domains have the same value at the end of the segment, and wherever it says that the
    slot was copied, whatever the slot and however many intents are active.
    """
    events = _equal_values(turns, slots)
    copies = [place for place, turn in enumerate(turns) if turn.copied]
    known = {(event.to_domain, event.slot) for event in events} if copies else set()
    for place in copies:
        for domain, slot in sorted(turns[place].copied - known):
            event = _copy(turns, place, domain, slot)
            if event is not None:
                events.append(event)
                known.add((domain, slot))
    return events


def _copy(turns: Sequence[DialogueTurn], place: int, domain: str, slot: str) -> Transfer | None:
    """A slot that the truth copied in a turn, judged in the last turn of the run that is about its domain."""
    last = place
    while last + 1 < len(turns) and domain in (turns[last + 1].truth.domains or (domain,)):
        last += 1
    true = turns[last].truth.state or _NO_STATE
    value = true.get(domain, {}).get(slot)
    if value is None:
        return None
    source = next((name for name, held in true.items() if name != domain and value in held.values()), "")
    ours = (turns[last].predicted.state or _NO_STATE).get(domain, {})
    return Transfer(place, source, domain, slot, value, ours.get(slot) == value)


def _equal_values(turns: Sequence[DialogueTurn], slots: Collection[str]) -> list[Transfer]:
    """The slots that have one true value in the old and in the new domain."""
    events: list[Transfer] = []
    routes = [turn.truth.domains[0] if turn.truth.domains else "" for turn in turns]
    if len({*routes, ""}) < 3:
        return events
    places = [place for place, domain in enumerate(routes) if domain]
    starts = [(last, place) for last, place in pairwise(places) if routes[last] != routes[place]]
    for (last, start), (_, end) in pairwise([*starts, (0, len(turns))]):
        old, new = routes[last], routes[start]
        filled = (turns[last].truth.state or _NO_STATE).get(old, {})
        true = (turns[end - 1].truth.state or _NO_STATE).get(new, {})
        early = (turns[start - 1].truth.state or _NO_STATE).get(new, {})
        for slot in slots:
            if slot in filled and slot not in early and true.get(slot) == filled[slot]:
                ours = (turns[end - 1].predicted.state or _NO_STATE).get(new, {})
                events.append(Transfer(start, old, new, slot, true[slot], ours.get(slot) == true[slot]))
    return events
