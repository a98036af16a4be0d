"""Visits of states whose beginning the log does not tell: concluded from what it does tell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple


class Move(NamedTuple):
    """A line that says that a state is entered or left."""

    place: int
    leaves: bool
    state: str
    to_state: str = ""


class Concluded(NamedTuple):
    """What to add: entries before a line and after one; and exits that were told before."""

    before: dict[int, str]
    after: dict[int, str]
    again: frozenset[int]


Happened = Callable[[Move, int | None], bool]
"""Whether anything happened in the state that this exit leads to, before the given line or the end."""


def late_exits(moves: Sequence[Move]) -> dict[int, int]:
    """Exits that are written after the entry that they lead to, by the place of that entry."""
    late: dict[int, int] = {}
    before: Move | None = None
    current: Move | None = None
    for move in moves:
        if not move.leaves:
            before, current = current, move
        elif current is not None and before is not None and move.state == before.state != current.state:
            if move.to_state in ("", current.state):
                late[current.place] = move.place
            before = None
        else:
            before = current = None
    return late


def missing_entries(moves: Sequence[Move], happened: Happened) -> Concluded:
    """The entries that nobody wrote.

    A state that is left was entered: right after the exit that led to it; at the start, where no move was
    before; else right before. And a state that an exit leads to was entered where something happened in it.
    """
    before: dict[int, str] = {}
    after: dict[int, str] = {}
    again: set[int] = set()
    current: str | None = None
    left: Move | None = None
    for move in moves:
        if not move.leaves:
            if left is not None and left.to_state not in ("", move.state) and happened(left, move.place):
                after[left.place] = left.to_state
            current, left = move.state, None
            continue
        if current != move.state:
            if current is None and left is None:
                before[0] = move.state
            elif left is None:
                before[move.place] = move.state
            elif left.to_state in ("", move.state):
                after[left.place] = move.state
            elif happened(left, move.place):
                after[left.place] = left.to_state
                before[move.place] = move.state
            elif (left.state, left.to_state) == (move.state, move.to_state):
                again.add(move.place)
                continue
            else:
                before[move.place] = move.state
        current, left = None, move
    if left is not None and left.to_state and happened(left, None):
        after[left.place] = left.to_state
    return Concluded(before, after, frozenset(again))
