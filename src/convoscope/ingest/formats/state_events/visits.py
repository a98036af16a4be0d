"""Visits of states whose beginning is not in the log: concluded from what is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from convoscope.conversation import Time
from convoscope.ingest.formats.state_events import lines as lines_of
from convoscope.ingest.formats.state_events.lines import EventLine, milliseconds, text_of
from convoscope.ingest.report import Notes

_HAPPENINGS = frozenset({lines_of.TURN, lines_of.SLOT, lines_of.GUARD, lines_of.CALL, lines_of.RESULT, lines_of.TEXT})
_MOVES = frozenset({lines_of.ENTERED, lines_of.EXITED})
_BOUNDS = _MOVES | {lines_of.TURN}
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

    before: dict[int, str] = {}
    after: dict[int, str] = {}
    again: frozenset[int] = frozenset()


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


def is_regular(lines: Sequence[EventLine]) -> bool:
    """Whether every state is entered, left, and followed by the one that it leads to: most logs are so."""
    current, expected = "", ""
    for line in lines:
        if line.plan.kind is lines_of.ENTERED:
            (state,) = line.own
            if current or type(state) is not str or not state or expected not in ("", state):
                return False
            current = state
        elif line.plan.kind is lines_of.EXITED:
            state, to_state, _ = line.own
            if not current or state != current or type(to_state) is not str or not to_state:
                return False
            current, expected = "", to_state
    return bool(current) or not expected


def moves_of(lines: Sequence[EventLine]) -> list[Move]:
    moves: list[Move] = []
    for index, line in enumerate(lines):
        if line.plan.kind in _MOVES:
            state, *others = map(text_of, line.own)
            if state:
                moves.append(Move(index, bool(others), state, others[0] if others else ""))
    return moves


def looked_over(
    lines: list[EventLine], notes: Notes, *, are_times_fine: Callable[[], bool]
) -> tuple[list[EventLine], Concluded]:
    """The lines with each late exit right before the entry that it leads to, and the entries that are missing."""
    if is_regular(lines):
        return lines, Concluded()
    moves = moves_of(lines)
    late = late_exits(moves)
    if late:
        moved = set(late.values())
        ordered: list[EventLine] = []
        for index, line in enumerate(lines):
            if index in late:
                ordered.append(lines[late[index]])
            if index not in moved:
                ordered.append(line)
        lines, moves = ordered, moves_of(ordered)
        notes.repaired("exit_after_entry", f"{len(late)} times")

    def happened(left: Move, until: int | None) -> bool:
        exited = lines[left.at].time
        since = next((line.time for line in reversed(lines[: left.at]) if line.plan.kind in _BOUNDS), None)
        for line in lines[left.at + 1 : until]:
            if _is_in(line, left, exited, since if are_times_fine() else None):
                return True
            if line.plan.kind is lines_of.TURN:
                since = line.time
        return False

    return lines, missing_entries(moves, happened)


def _is_in(line: EventLine, left: Move, exited: Time | None, since: Time | None) -> bool:
    """Whether this happened in the state that an exit leads to, and not on the way out of the one before."""
    if line.plan.kind not in _HAPPENINGS:
        return False
    fields, time = line.fields, line.time
    named = next((text for name in ("state", "state_name", "state_id") if (text := text_of(fields.get(name)))), "")
    if named:
        return named == left.to_state
    if line.plan.kind != lines_of.TURN or time is None or exited is None or time.clock != exited.clock:
        return True
    _, latency, seconds, _ = line.own
    took = milliseconds(latency, 1.0) or milliseconds(seconds, 1000.0) or 0.0
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
