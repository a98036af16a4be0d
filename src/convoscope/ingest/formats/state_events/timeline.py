"""The events of a stream become the timeline of a conversation, each in the state that it happened in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from convoscope.conversation import (
    ComponentMetric,
    GuardEvaluated,
    Json,
    Marker,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.ingest.formats.openai import chat as openai_chat
from convoscope.ingest.formats.state_events import lines as lines_of
from convoscope.ingest.formats.state_events.lines import JsonObject, Line, LinePlan
from convoscope.ingest.formats.state_events.visits import Concluded, Move, late_exits, missing_entries
from convoscope.ingest.reader import Record
from convoscope.ingest.record import ROLES
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.result_fields import STATED
from convoscope.views.tool_outcomes import tool_outcome

TRUE, FALSE = frozenset({"true", "yes", "1"}), frozenset({"false", "no", "0"})
_FATAL = frozenset({"fatal", "critical"})
_HAPPENINGS = frozenset({lines_of.TURN, lines_of.SLOT, lines_of.GUARD, lines_of.CALL, lines_of.RESULT, lines_of.TEXT})
_MOVES = frozenset({lines_of.ENTERED, lines_of.EXITED})
_BOUNDS = _MOVES | {lines_of.TURN}
ROUNDING = 0.001
"""Seconds by which a time and a latency may disagree, both being rounded to milliseconds."""
DAY_MS = 86_400_000.0

_NOTHING = Concluded({}, {}, frozenset())
_MISSING = object()
_Handler = Callable[[JsonObject, LinePlan, Time | None, dict[str, Json]], None]


class EventWalk:
    """Goes through the lines of one conversation."""

    def __init__(self, id: str, notes: Notes) -> None:
        self.id = id
        self.notes = notes
        self.timeline = TimelineBuilder(notes, "timestamp")
        self.events = self.timeline.events
        self.shared: JsonObject = {}
        """What lines say of the whole conversation; the first that says it counts."""
        self.ended: JsonObject = {}
        """How it ended: completed, stop_reason, final_status, error, errored, duration_s."""
        self.instructions: list[str] = []
        self._visits: list[tuple[str, Time | None]] = []
        self._current = ""
        """The state that was entered last."""
        self._last_turn: Time | None = None
        self._slots: set[str] = set()
        self._noted: set[str] = set()
        self._has_tool_events: bool | None = None
        self._lines: Sequence[Line] = ()
        self._record = Record(None)
        self._handlers: dict[str, _Handler] = {
            lines_of.ENTERED: self._entered,
            lines_of.EXITED: self._exited,
            lines_of.TURN: self._turn,
            lines_of.GUARD: self._guard,
            lines_of.SLOT: self._slot,
            lines_of.CALL: self._call,
            lines_of.RESULT: self._result,
            lines_of.ENDED: self._ended,
            lines_of.ERROR: self._error,
            lines_of.TEXT: self._text,
            lines_of.OTHER: self._other,
            lines_of.STRANGER: self._stranger,
        }

    def go(self, lines: list[Line]) -> None:
        lines, concluded = self._looked_over(lines)
        handlers, shared = self._handlers, self.shared
        agreed_names: tuple[str, ...] = ()
        agreed: Any = None
        odd = bool(concluded.before or concluded.after or concluded.again)
        for place, (_, _, _, time, plan, facts, record) in enumerate(lines):
            self._record = record
            extras: dict[str, Json] = {}
            if plan.shared is not agreed_names or (plan.pick is not None and plan.pick(facts) != agreed):
                for name in plan.shared:
                    if shared.get(name, _MISSING) != facts[name]:
                        self._share(name, facts[name], extras)
                if not extras and plan.pick is not None:
                    agreed_names, agreed = plan.shared, plan.pick(facts)
            if plan.extra:
                self._leave(facts, plan, extras)
            if odd and place in concluded.before:
                self._conclude(concluded.before[place], time)
            if odd and place in concluded.again:
                self.events.append(Marker(seq=len(self.events), name=plan.name, value=_payload(facts, plan), time=time))
                self._note(self.notes.repaired, "state_exited_again", str(facts.get(plan.fields[0])))
                continue
            if time is None and plan.time and facts[plan.time] is not None:
                extras[plan.time] = facts[plan.time]
            handlers[plan.kind](facts, plan, time, extras)
            if odd and place in concluded.after:
                self._conclude(concluded.after[place], time)

    # What the whole log tells before it is walked through.

    def _looked_over(self, lines: list[Line]) -> tuple[list[Line], Concluded]:
        """The lines with late exits in their place, and the entries that are missing."""
        self._lines = lines
        if _is_regular(lines):
            return lines, _NOTHING
        moves = _moves(lines)
        late = late_exits(moves)
        if late:
            self._lines = lines = _brought_forward(lines, late)
            moves = _moves(lines)
            self.notes.repaired("exit_after_entry", f"{len(late)} times")

        def happened(left: Move, until: int | None) -> bool:
            exited = lines[left.place][3]
            places = range(left.place - 1, -1, -1)
            since = next((lines[place][3] for place in places if lines[place][4].kind in _BOUNDS), None)
            for line in lines[left.place + 1 : until]:
                if _is_in(line, left, exited, since if self._are_times_fine else None):
                    return True
                if line[4].kind is lines_of.TURN:
                    since = line[3]
            return False

        return lines, missing_entries(moves, happened)

    @cached_property
    def _logged_states(self) -> frozenset[str]:
        """States that some line says were entered or left."""
        return frozenset(state for move in _moves(self._lines) for state in (move.state, move.to_state))

    def _share(self, name: str, value: Any, extras: dict[str, Json]) -> None:
        if name not in self.shared:
            self.shared[name] = value
            return
        if str(self.shared[name]) == str(value):
            return
        extras[name] = value
        if name not in self._noted:
            self._noted.add(name)
            self._note(self.notes.set_aside, "differs_from_first_line", f"{name}: {value!r}"[:80])

    def _leave(self, facts: JsonObject, plan: LinePlan, extras: dict[str, Json]) -> None:
        """What nobody takes is kept; a name that nobody expects is told once."""
        for name in plan.extra:
            if facts[name] is not None:
                extras[name] = facts[name]
        for name in plan.unknown:
            if name not in self._noted:
                self._noted.add(name)
                self.notes.unknown(f"event.{name}", len(self.events))

    def _note(self, take: Callable[[str, str, int], None], code: str, detail: str) -> None:
        with self.notes.standing_at(self._record.file, self._record.number):
            take(code, detail, len(self.events))

    # One method for each kind of line.

    def _conclude(self, state: str, time: Time | None) -> None:
        self._note(self.notes.inferred, "state_entry_concluded", state)
        self._enter(state, time, "", {})

    def _enter(self, state: str, time: Time | None, id: str, extras: dict[str, Json]) -> None:
        self._current = state
        self._visits.append((state, time))
        self.events.append(StateEntered(seq=len(self.events), state=state, time=time, id=id, extras=extras))

    def _entered(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        state = facts.get(plan.fields[0])
        if type(state) is not str:
            state = text_of(state)
        if state:
            id = text_of(facts[plan.id]) if plan.id else ""
            self._enter(state, time, id, extras)
        else:
            self._nameless(facts, plan, time, "state")

    def _exited(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        of, to, why = plan.fields
        state = text_of(facts.get(of))
        if not state:
            self._nameless(facts, plan, time, "state")
            return
        self.events.append(
            StateExited(
                seq=len(self.events),
                state=state,
                to_state=text_of(facts[to]) if to else "",
                reason=text_of(facts[why]) if why else "",
                time=time,
                id=text_of(facts[plan.id]) if plan.id else "",
                extras=extras,
            )
        )

    def _turn(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, latency, seconds, speech = plan.fields
        values: dict[str, Json] = {name: facts[name] for name in plan.values}
        took = facts.get(latency)
        if type(took) is not int or not 0 <= took <= DAY_MS:
            took = _milliseconds(took, 1.0)
        if took is None and seconds:
            values[seconds] = facts[seconds]
            took = _milliseconds(facts[seconds], 1000.0)
        if took is not None:
            values["latency_ms"] = took
        elif latency and facts[latency] is not None:
            extras[latency] = facts[latency]
            self._note(self.notes.set_aside, "latency_not_a_time", repr(facts[latency])[:40])
        state = text_of(facts[named]) if named else ""
        if not state:
            state = self._ran_in(time, took)
        elif state != self._current and state not in self._logged_states:
            self._conclude(state, time)
        if "model" in values and "model" not in self.shared:
            self.shared["model"] = values["model"]
        self._last_turn = time
        self.events.append(
            ComponentMetric(
                seq=len(self.events),
                component="turn",
                label=lines_of.TURN,
                values=values,
                state=state,
                speech_id=text_of(facts[speech]) if speech else "",
                time=time,
                id=text_of(facts[plan.id]) if plan.id else "",
                extras=extras,
            )
        )

    def _ran_in(self, time: Time | None, took: float | None) -> str:
        """The state that a turn ran in, where it does not name it.

        It is the state that was entered last. But a turn that ends after the move it caused stays with the
        state that it moved from, where its latency can be believed to tell so.
        """
        if time is None or not took or len(self._visits) < 2:
            return self._current
        (left, since), (_, moved) = self._visits[-2:]
        if left == self._current or moved is None or since is None:
            return self._current
        if not _began_before(time, took, moved, (since, self._last_turn)) or not self._are_times_fine:
            return self._current
        self._note(self.notes.inferred, "turn_state_from_latency", left)
        return left

    @cached_property
    def _are_times_fine(self) -> bool:
        """Whether times tell more than whole seconds, so that a latency can be compared with them."""
        return any(line[3] is not None and line[3].at % 1 for line in self._lines)

    def _guard(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        guard, result, error, state = plan.fields
        self.events.append(
            GuardEvaluated(
                seq=len(self.events),
                guard=text_of(facts.get(guard)),
                result=facts.get(result),
                error=error_of(facts[error]) if error else "",
                state=(text_of(facts[state]) if state else "") or self._current,
                time=time,
                id=text_of(facts[plan.id]) if plan.id else "",
                extras=extras,
            )
        )

    def _slot(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        slot, value, named = plan.fields
        name = text_of(facts.get(slot))
        if not name:
            self._nameless(facts, plan, time, "slot")
            return
        if value and facts[value] is None:
            self._note(self.notes.ignored, "slot_not_committed", name)
            self._mark("slot_not_committed", facts, plan, time)
            return
        if name in self._slots:
            self._note(self.notes.ignored, "slot_committed_again", name)
            self._mark("slot_committed_again", facts, plan, time)
            return
        if not value:
            self._note(self.notes.inferred, "slot_value_not_told", name)
        self._slots.add(name)
        self.events.append(
            SlotFilled(
                seq=len(self.events),
                slot=name,
                value=facts.get(value),
                state=text_of(facts.get(named)) or self._current,
                time=time,
                id=text_of(facts[plan.id]) if plan.id else "",
                extras=extras,
            )
        )

    def _call(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, given, call = plan.fields
        name, id = text_of(facts.get(named)), text_of(facts[plan.id]) if plan.id else ""
        arguments, call_id = facts.get(given), self._call_id(facts.get(call))
        if isinstance(arguments, str):
            self.timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
            return
        seq = len(self.events)
        self.events.append(
            ToolCall(seq=seq, name=name, arguments=arguments, call_id=call_id, time=time, id=id, extras=extras)
        )

    def _result(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, given, call = plan.fields
        result = facts.get(given)
        success, error = _verdict(facts)
        for name in ("success", "error"):
            extras.pop(name, None)
        self.events.append(
            ToolResult(
                seq=len(self.events),
                name=text_of(facts.get(named)),
                call_id=self._call_id(facts.get(call)),
                result=result,
                success=success,
                error=error,
                time=time,
                id=text_of(facts[plan.id]) if plan.id else "",
                extras=extras,
            )
        )

    def _call_id(self, value: Any) -> str:
        """The call of a tool; some logs call the conversation so."""
        id = text_of(value)
        return "" if id == self.id else id

    def _ended(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        names = ("completed", "stop_reason", "final_status", "error", "errored", "duration_s")
        for name, field in zip(names, plan.fields, strict=True):
            value = facts.get(field)
            if value is None:
                continue
            if self.ended.get(name, value) != value:
                self._note(self.notes.repaired, "ended_more_than_once", f"{name}: {value!r}"[:80])
            self.ended[name] = value
        seq = len(self.events)
        self.events.append(
            Marker(
                seq=seq, name=lines_of.ENDED, time=time, id=text_of(facts[plan.id]) if plan.id else "", extras=extras
            )
        )

    def _error(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        error, fatal, severity, recoverable = (facts.get(field) for field in plan.fields)
        if truth(fatal) or truth(recoverable) is False or lines_of.folded(text_of(severity)) in _FATAL:
            self.ended.setdefault("error", error_of(error) or "fatal error")
        self._mark(lines_of.ERROR, facts, plan, time)

    def _text(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        """Someone says something: read as chat messages are."""
        del extras
        message = {name: value for name, value in facts.items() if name not in lines_of.SHARED or name == "name"}
        for name in lines_of.SHARED & facts.keys():
            self.shared.setdefault(name, facts[name])
        for name in (plan.seq, plan.time if time is not None else ""):
            message.pop(name, None)
        role = text_of(_taken(message, lines_of.ROLE_NAMES))
        content = _taken(message, lines_of.TEXT_NAMES)
        message["role"] = lines_of.SPEAKERS.get(role.lower(), role) if role.lower() not in ROLES else role.lower()
        message["content"] = content
        if self._has_tool_events is None:
            self._has_tool_events = any(line[4].kind is lines_of.CALL for line in self._lines)
        if self._has_tool_events and (message["role"] in ("tool", "function") or message.get("tool_calls")):
            self._note(self.notes.ignored, "tools_in_messages", "the events tell them")
            if message["role"] in ("tool", "function"):
                self.timeline.mark("tool_message", facts, time)
                return
            message["tool_calls_of_message"] = message.pop("tool_calls")
        first = len(self.events)
        with self.notes.standing_at(self._record.file, self._record.number):
            if (
                message["role"] in ("system", "developer")
                and isinstance(content, str)
                and not self.timeline.participants
            ):
                self.instructions.append(content)
            elif message["role"] in ROLES:
                openai_chat.READER.add(message, self.timeline, self.notes)
            else:
                speaker = self.timeline.participant(message.pop("role"))
                text = Text(text_of(message.pop("content")), "message.content")
                self.timeline.say(speaker, intended=text, extras=message)
        for place in range(first, len(self.events)):
            if time is not None:
                self.events[place] = msgspec.structs.replace(self.events[place], time=time)

    def _other(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        self.notes.unknown(f"event={plan.name}"[:80], len(self.events))
        self._mark(plan.name, facts, plan, time)

    def _stranger(self, facts: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        self._note(self.notes.ignored, lines_of.STRANGER, repr(facts)[:80])
        self._mark(lines_of.STRANGER, facts, plan, time)

    def _nameless(self, facts: JsonObject, plan: LinePlan, time: Time | None, what: str) -> None:
        self._note(self.notes.set_aside, f"{what}_not_named", plan.name)
        self._mark(plan.name, facts, plan, time)

    def _mark(self, name: str, facts: JsonObject, plan: LinePlan, time: Time | None) -> None:
        seq, id = len(self.events), text_of(facts[plan.id]) if plan.id else ""
        self.events.append(Marker(seq=seq, name=name, value=_payload(facts, plan), time=time, id=id))

    @property
    def told_something(self) -> bool:
        """Whether there is anything but markers."""
        return bool(self.ended or self.instructions) or any(type(event) is not Marker for event in self.events)

    @property
    def has_texts(self) -> bool:
        return any(type(event) is Utterance for event in self.events)


def _is_regular(lines: Sequence[Line]) -> bool:
    """Whether every state is entered, left, and followed by the one that it leads to: most logs are so."""
    current, expected = "", ""
    to_state: Any
    for _, _, _, _, plan, facts, _ in lines:
        if plan.kind is lines_of.ENTERED:
            state = facts.get(plan.fields[0])
            if current or type(state) is not str or not state or expected not in ("", state):
                return False
            current = state
        elif plan.kind is lines_of.EXITED:
            if not current or facts.get(plan.fields[0]) != current:
                return False
            to_state = facts.get(plan.fields[1])
            if type(to_state) is not str or not to_state:
                return False
            current, expected = "", to_state
    return bool(current) or not expected


def _moves(lines: Sequence[Line]) -> list[Move]:
    moves: list[Move] = []
    for place, facts, plan in [(place, line[5], line[4]) for place, line in enumerate(lines) if line[4].kind in _MOVES]:
        state = text_of(facts.get(plan.fields[0]))
        leaves = plan.kind is lines_of.EXITED
        if state:
            moves.append(Move(place, leaves, state, text_of(facts.get(plan.fields[1])) if leaves else ""))
    return moves


def _brought_forward(lines: Sequence[Line], late: dict[int, int]) -> list[Line]:
    """Each late exit right before the entry that it leads to."""
    moved = set(late.values())
    ordered: list[Line] = []
    for place, line in enumerate(lines):
        if place in late:
            ordered.append(lines[late[place]])
        if place not in moved:
            ordered.append(line)
    return ordered


def _is_in(line: Line, left: Move, exited: Time | None, since: Time | None) -> bool:
    """Whether this happened in the state that an exit leads to, and not on the way out of the one before."""
    _, _, _, time, plan, facts, _ = line
    if plan.kind not in _HAPPENINGS:
        return False
    named = next((text for name in ("state", "state_name", "state_id") if (text := text_of(facts.get(name)))), "")
    if named:
        return named == left.to_state
    if plan.kind != lines_of.TURN or time is None or exited is None or time.clock != exited.clock:
        return True
    _, latency, seconds, _ = plan.fields
    took = _milliseconds(facts.get(latency), 1.0) or _milliseconds(facts.get(seconds), 1000.0) or 0.0
    return time.at > exited.at and not (since is not None and _began_before(time, took, exited, (since,)))


def _began_before(time: Time, took: float, moved: Time, earlier: Sequence[Time | None]) -> bool:
    """Whether the latency of a turn that was logged after a move says that it began before it.

    A latency that leads back behind what happened `earlier` than the move (the entry of the state before,
    the end of the turn before) does not fit the clock: it is made up, or time runs faster than it says.
    """
    began = time.at - took / 1000 + ROUNDING
    if moved.clock != time.clock or began >= moved.at:
        return False
    return all(one is None or (one.clock == time.clock and one.at <= began) for one in earlier)


def _payload(facts: JsonObject, plan: LinePlan) -> Json:
    """What a marker keeps of its line."""
    read_fields = (*plan.fields, *plan.values, *plan.extra)
    return {name: facts[name] for name in read_fields if name and facts[name] is not None} or None


def _taken(message: JsonObject, names: Sequence[str]) -> Any:
    """The first of these fields, taken out."""
    for name in names:
        if name in message:
            return message.pop(name)
    return None


def _verdict(facts: JsonObject) -> tuple[bool | None, str]:
    """What the line itself states of success, beside the result."""
    flag, error = truth(facts.get("success")), error_of(facts.get("error"))
    if flag is not None or error:
        return flag, error
    stated = {name: facts[name] for name in _VERDICTS if facts.get(name) is not None}
    outcome = tool_outcome(ToolResult(seq=0, result=stated)) if stated else None
    return (outcome.worked, outcome.error) if outcome is not None and outcome.basis == STATED else (None, "")


_VERDICTS = ("ok", "is_error", "error_message", "error_type", "status")


def _milliseconds(value: Any, times: float) -> float | None:
    """A latency, also of its text; None where it cannot be one."""
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    took = value * times
    return took if math.isfinite(took) and 0 <= took <= DAY_MS else None


def text_of(value: Any) -> str:
    """A name, also where it is a number, or an object with a name."""
    if type(value) is str:
        return value
    if value is None or isinstance(value, bool | list):
        return ""
    if isinstance(value, dict):
        return next((str(value[name]) for name in ("name", "id") if isinstance(value.get(name), str | int)), "")
    return str(value)


def truth(value: Any) -> bool | None:
    """True or false, also as text or as 1 and 0."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower() if isinstance(value, int | float | str) else ""
    word = word.removesuffix(".0")
    return True if word in TRUE else False if word in FALSE else None


def error_of(value: Any) -> str:
    """What went wrong; "" where nothing did."""
    if not value:
        return ""
    if isinstance(value, str):
        return value if value.strip() else ""
    if isinstance(value, dict):
        message = next((value[name] for name in ("message", "error", "type") if isinstance(value.get(name), str)), "")
        return message or repr(value)[:500]
    return "failed" if value is True else repr(value)[:500]
