"""Constraints that are carried over when a dialogue changes its domain (dialogue, 1.7)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import NamedTuple

from convoscope.metrics.dialogue.turns import Annotation, DialogueTurn
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
    last: DialogueTurn | None = None
    for place, turn in enumerate(turns):
        if last is not None and turn.predicted.domains and last.predicted.domains:
            old, new = last.predicted.domains[0], turn.predicted.domains[0]
            if old != new:
                before = (last.predicted.state or _NO_STATE).get(old, {})
                after = (turn.predicted.state or _NO_STATE).get(new, {})
                events += [
                    Transfer(place, old, new, slot, before[slot], after.get(slot) == before[slot])
                    for slot in slots
                    if slot in before
                ]
        last = turn
    return events


def true_transfers(turns: Sequence[DialogueTurn], slots: Collection[str] = TRANSFERABLE) -> list[Transfer]:
    """Where the truth carries a value into a new domain: does the prediction hold it by the end of that segment?

    A segment is a run of turns about one domain; turns about none belong to the segment before them. The truth
    carries a slot where both domains have the same value at the end of the segment, or where it says that the
    slot was copied.
    """
    events: list[Transfer] = []
    places = [place for place, turn in enumerate(turns) if turn.truth.domains]
    starts = [place for last, place in pairwise(places) if _domain(turns[last].truth) != _domain(turns[place].truth)]
    for start, end in pairwise([*starts, len(turns)]):
        before = turns[max(place for place in places if place < start)].truth
        old, new = _domain(before), _domain(turns[start].truth)
        true = (turns[end - 1].truth.state or _NO_STATE).get(new, {})
        ours = (turns[end - 1].predicted.state or _NO_STATE).get(new, {})
        early = (turns[start - 1].truth.state or _NO_STATE).get(new, {})
        copied = frozenset().union(*(turn.copied for turn in turns[start:end]))
        for slot in slots:
            value = (before.state or _NO_STATE).get(old, {}).get(slot)
            if value is None or slot not in true or slot in early:
                continue
            if true[slot] == value or (new, slot) in copied:
                events.append(Transfer(start, old, new, slot, true[slot], ours.get(slot) == true[slot]))
    return events


def _domain(annotation: Annotation) -> str:
    return annotation.domains[0] if annotation.domains else ""
