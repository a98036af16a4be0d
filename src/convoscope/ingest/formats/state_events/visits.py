"""Visits of states whose beginning is not in the log: concluded from what is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import Time
from convoscope.ingest.formats.state_events import lines as lines_of
from convoscope.ingest.formats.state_events.lines import Line, milliseconds, text_of

_HAPPENINGS = frozenset({lines_of.TURN, lines_of.SLOT, lines_of.GUARD, lines_of.CALL, lines_of.RESULT, lines_of.TEXT})
_MOVES = frozenset({lines_of.ENTERED, lines_of.EXITED})
BOUNDS = _MOVES | {lines_of.TURN}
ROUNDING = 0.001
"""Seconds by which a time and a latency may disagree, both being rounded to milliseconds."""


class Move(NamedTuple):
    """A line that says that a state is entered or left."""

    at: int
    """The index of the line."""
    leaves: bool
    state: str
    to_state: str = ""


class Concluded(NamedTuple):
    """What to add: entries before a line and after one; and exits that are there twice."""

    before: dict[int, str]
    after: dict[int, str]
    again: frozenset[int]


Happened = Callable[[Move, int | None], bool]
"""Whether anything happened in the state that this exit leads to, before the given line or the end."""


def late_exits(moves: Sequence[Move]) -> dict[int, int]:
    """Exits that are written after the entry that they lead to, by the index of that entry."""
    late: dict[int, int] = {}
    before: Move | None = None
    current: Move | None = None
    for move in moves:
        if not move.leaves:
            before, current = current, move
        elif current is not None and before is not None and move.state == before.state != current.state:
            if move.to_state in ("", current.state):
                late[current.at] = move.at
            before = None
        else:
            before = current = None
    return late


def missing_entries(moves: Sequence[Move], happened: Happened) -> Concluded:
    """The entries that are not in the log.

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
            if left is not None and left.to_state not in ("", move.state) and happened(left, move.at):
                after[left.at] = left.to_state
            current, left = move.state, None
            continue
        if current != move.state:
            if current is None and left is None:
                before[0] = move.state
            elif left is None:
                before[move.at] = move.state
            elif left.to_state in ("", move.state):
                after[left.at] = move.state
            elif happened(left, move.at):
                after[left.at] = left.to_state
                before[move.at] = move.state
            elif (left.state, left.to_state) == (move.state, move.to_state):
                again.add(move.at)
                continue
            else:
                before[move.at] = move.state
        current, left = None, move
    if left is not None and left.to_state and happened(left, None):
        after[left.at] = left.to_state
    return Concluded(before, after, frozenset(again))


def is_regular(lines: Sequence[Line]) -> bool:
    """Whether every state is entered, left, and followed by the one that it leads to: most logs are so."""
    current, expected = "", ""
    to_state: Any
    for _, _, _, _, plan, fields, _ in lines:
        if plan.kind is lines_of.ENTERED:
            state = fields.get(plan.names[0])
            if current or type(state) is not str or not state or expected not in ("", state):
                return False
            current = state
        elif plan.kind is lines_of.EXITED:
            if not current or fields.get(plan.names[0]) != current:
                return False
            to_state = fields.get(plan.names[1])
            if type(to_state) is not str or not to_state:
                return False
            current, expected = "", to_state
    return bool(current) or not expected


def moves_of(lines: Sequence[Line]) -> list[Move]:
    moves: list[Move] = []
    for index, fields, plan in [
        (index, line[5], line[4]) for index, line in enumerate(lines) if line[4].kind in _MOVES
    ]:
        state = text_of(fields.get(plan.names[0]))
        leaves = plan.kind is lines_of.EXITED
        if state:
            moves.append(Move(index, leaves, state, text_of(fields.get(plan.names[1])) if leaves else ""))
    return moves


def brought_forward(lines: Sequence[Line], late: dict[int, int]) -> list[Line]:
    """Each late exit right before the entry that it leads to."""
    moved = set(late.values())
    ordered: list[Line] = []
    for index, line in enumerate(lines):
        if index in late:
            ordered.append(lines[late[index]])
        if index not in moved:
            ordered.append(line)
    return ordered


def is_in(line: Line, left: Move, exited: Time | None, since: Time | None) -> bool:
    """Whether this happened in the state that an exit leads to, and not on the way out of the one before."""
    _, _, _, time, plan, fields, _ = line
    if plan.kind not in _HAPPENINGS:
        return False
    named = next((text for name in ("state", "state_name", "state_id") if (text := text_of(fields.get(name)))), "")
    if named:
        return named == left.to_state
    if plan.kind != lines_of.TURN or time is None or exited is None or time.clock != exited.clock:
        return True
    _, latency, seconds, _ = plan.names
    took = milliseconds(fields.get(latency), 1.0) or milliseconds(fields.get(seconds), 1000.0) or 0.0
    return time.at > exited.at and not (since is not None and began_before(time, took, exited, (since,)))


def began_before(time: Time, took: float, moved: Time, earlier: Sequence[Time | None]) -> bool:
    """Whether the latency of a turn that was logged after a move says that it began before it.

    A latency that leads back behind what happened `earlier` than the move (the entry of the state before,
    the end of the turn before) does not fit the clock: it is made up, or time runs faster than it says.
    """
    began = time.at - took / 1000 + ROUNDING
    if moved.clock != time.clock or began >= moved.at:
        return False
    return all(one is None or (one.clock == time.clock and one.at <= began) for one in earlier)
