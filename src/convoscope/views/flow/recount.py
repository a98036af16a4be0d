"""Visits counted from the events alone, by another way than the walk goes: what an audit holds the rows against."""

from __future__ import annotations

from collections import Counter

import msgspec

ENTERED, EXITED = "state_entered", "state_exited"
MOVES = (ENTERED, EXITED)


class _Event(msgspec.Struct):
    type: str
    state: str = ""
    to_state: str = ""


class _Body(msgspec.Struct):
    timeline: list[_Event] = []


_decode = msgspec.json.Decoder(_Body).decode


def recount_visits(body: str | bytes) -> dict[str, int]:
    """Visits by state, from the events alone: each entry is one, and so is each exit that no entry stands against.

    A log that tells of no entry at all enters a state by leaving the one before for it.
    """
    moves = [event for event in _decode(body).timeline if event.type in MOVES and event.state]
    has_entries = any(event.type == ENTERED for event in moves)
    visits: Counter[str] = Counter()
    unanswered: Counter[str] = Counter()
    for event in moves:
        if event.type == ENTERED:
            visits[event.state] += 1
            unanswered[event.state] += 1
            continue
        if unanswered[event.state]:
            unanswered[event.state] -= 1
        else:
            visits[event.state] += 1
        if not has_entries and event.to_state:
            visits[event.to_state] += 1
            unanswered[event.to_state] += 1
    return dict(visits)
