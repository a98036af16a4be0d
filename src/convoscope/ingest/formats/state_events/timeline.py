"""The events of a stream become the timeline of a conversation, each in the state that it happened in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import msgspec

from convoscope.conversation import (
    AnyEvent,
    ComponentMetric,
    GuardEvaluated,
    Json,
    Marker,
    Outcome,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Time,
    ToolCall,
    ToolResult,
)
from convoscope.ingest.formats.state_events import lines as lines_of
from convoscope.ingest.formats.state_events.lines import (
    DAY_MS,
    EventLine,
    error_of,
    folded,
    milliseconds,
    text_of,
    truth,
)
from convoscope.ingest.formats.state_events.visits import began_before, looked_over, moves_of
from convoscope.ingest.kits.messages import add_message
from convoscope.ingest.reader import Record
from convoscope.ingest.record import ROLES, JsonObject
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.result_fields import STATED
from convoscope.views.tool_outcomes import tool_outcome

_FATAL = frozenset({"fatal", "critical"})
_VERDICTS = ("ok", "is_error", "error_message", "error_type", "status")
_ENDING = ("completed", "stop_reason", "final_status", "error", "errored", "duration_s")
_MISSING = object()
Extras = dict[str, Json]


class EventWalk(TimelineBuilder):
    """Goes through the lines of one conversation."""

    def __init__(self, id: str, notes: Notes) -> None:
        super().__init__(notes, "timestamp")
        self.id = id
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
        self._lines: Sequence[EventLine] = ()
        self._record = Record(None)

    def go(self, lines: list[EventLine]) -> None:
        self._lines = lines
        lines, concluded = looked_over(lines, self.notes, are_times_fine=lambda: self._are_times_fine)
        self._lines = lines
        for index, line in enumerate(lines):
            self._record, plan, fields, time = line.record, line.plan, line.fields, line.time
            extras: Extras = {}
            for name in plan.shared:
                if self.shared.get(name, _MISSING) != fields[name]:
                    self._share(name, fields[name], extras)
            if plan.extra:
                self._leave(line, extras)
            if index in concluded.before:
                self._conclude(concluded.before[index], time)
            if index in concluded.again:
                self.mark(plan.name, _payload(line), time)
                self._note(self.notes.repaired, "state_exited_again", str(line.own[0]))
                continue
            if time is None and plan.time and fields[plan.time] is not None:
                extras[plan.time] = fields[plan.time]
            _HANDLERS[plan.kind](self, line, extras)
            if index in concluded.after:
                self._conclude(concluded.after[index], time)

    @cached_property
    def _logged_states(self) -> frozenset[str]:
        """States that some line says were entered or left."""
        return frozenset(state for move in moves_of(self._lines) for state in (move.state, move.to_state))

    def _share(self, name: str, value: Any, extras: Extras) -> None:
        if name not in self.shared:
            self.shared[name] = value
            return
        if str(self.shared[name]) == str(value):
            return
        extras[name] = value
        if name not in self._noted:
            self._noted.add(name)
            self._note(self.notes.set_aside, "differs_from_first_line", f"{name}: {value!r}"[:80])

    def _leave(self, line: EventLine, extras: Extras) -> None:
        """What is not taken is kept; an unknown name is noted once."""
        for name in line.plan.extra:
            if line.fields[name] is not None:
                extras[name] = line.fields[name]
        for name in line.plan.unknown:
            if name not in self._noted:
                self._noted.add(name)
                self.notes.unknown(f"event.{name}", self.seq)

    def _note(self, take: Callable[[str, str, int], None], code: str, detail: str) -> None:
        with self.notes.at_line(self._record.file, self._record.number):
            take(code, detail, self.seq)

    def _add(self, kind: Callable[..., AnyEvent], line: EventLine, extras: Extras, **values: Any) -> None:
        self.events.append(kind(seq=len(self.events), time=line.time, id=line.id, extras=extras, **values))

    # One method for each kind of line.

    def _conclude(self, state: str, time: Time | None) -> None:
        self._note(self.notes.inferred, "state_entry_concluded", state)
        self._enter(state, time, "", {})

    def _enter(self, state: str, time: Time | None, id: str, extras: Extras) -> None:
        self._current = state
        self._visits.append((state, time))
        self.events.append(StateEntered(seq=len(self.events), state=state, time=time, id=id, extras=extras))

    def _entered(self, line: EventLine, extras: Extras) -> None:
        if state := text_of(line.own[0]):
            self._enter(state, line.time, line.id, extras)
        else:
            self._nameless(line, "state")

    def _exited(self, line: EventLine, extras: Extras) -> None:
        state, to_state, reason = map(text_of, line.own)
        if state:
            self._add(StateExited, line, extras, state=state, to_state=to_state, reason=reason)
        else:
            self._nameless(line, "state")

    def _turn(self, line: EventLine, extras: Extras) -> None:
        fields, time = line.fields, line.time
        _, latency, seconds, _ = line.plan.names
        named, logged, _, speech = line.own
        values: dict[str, Json] = {name: fields[name] for name in line.plan.values}
        took = logged if type(logged) is int and 0 <= logged <= DAY_MS else milliseconds(logged, 1.0)
        if took is None and seconds:
            values[seconds] = fields[seconds]
            took = milliseconds(fields[seconds], 1000.0)
        if took is not None:
            values["latency_ms"] = took
        elif latency and logged is not None:
            extras[latency] = logged
            self._note(self.notes.set_aside, "latency_not_a_time", repr(logged)[:40])
        state = text_of(named)
        if not state:
            state = self._ran_in(time, took)
        elif state != self._current and state not in self._logged_states:
            self._conclude(state, time)
        if "model" in values and "model" not in self.shared:
            self.shared["model"] = values["model"]
        self._last_turn = time
        what = {"component": "turn", "label": lines_of.TURN, "speech_id": text_of(speech)}
        self._add(ComponentMetric, line, extras, values=values, state=state, **what)

    def _ran_in(self, time: Time | None, took: float | None) -> str:
        """The state that a turn ran in, where it does not name it.

        It is the state that was entered last. But a turn that ends after the move it caused stays with the
        state that it moved from, where its latency says so and can be believed.
        """
        if time is None or not took or len(self._visits) < 2:
            return self._current
        (left, since), (_, moved) = self._visits[-2:]
        if left == self._current or moved is None or since is None:
            return self._current
        if not began_before(time, took, moved, (since, self._last_turn)) or not self._are_times_fine:
            return self._current
        self._note(self.notes.inferred, "turn_state_from_latency", left)
        return left

    @cached_property
    def _are_times_fine(self) -> bool:
        """Whether times are more exact than whole seconds, so that a latency can be compared with them."""
        return any(line.time is not None and line.time.at % 1 for line in self._lines)

    def _guard(self, line: EventLine, extras: Extras) -> None:
        guard, result, error, state = line.own
        values = {"guard": text_of(guard), "result": result, "error": error_of(error)}
        self._add(GuardEvaluated, line, extras, state=text_of(state) or self._current, **values)

    def _slot(self, line: EventLine, extras: Extras) -> None:
        slot, value, state = line.own
        has_value, name = bool(line.plan.names[1]), text_of(slot)
        if not name:
            self._nameless(line, "slot")
            return
        unused = ""
        if has_value and value is None:
            unused = "slot_not_committed"
        elif name in self._slots:
            unused = "slot_committed_again"
        if unused:
            self._note(self.notes.ignored, unused, name)
            self._mark(line, unused)
            return
        if not has_value:
            self._note(self.notes.inferred, "slot_value_not_told", name)
        self._slots.add(name)
        self._add(SlotFilled, line, extras, slot=name, value=value, state=text_of(state) or self._current)

    def _call(self, line: EventLine, extras: Extras) -> None:
        name, arguments, call_id = text_of(line.own[0]), line.own[1], self._call_id(line)
        if isinstance(arguments, str):
            self.call(name, arguments, call_id=call_id, time=line.time, id=line.id, extras=extras)
        else:
            self._add(ToolCall, line, extras, name=name, arguments=arguments, call_id=call_id)

    def _result(self, line: EventLine, extras: Extras) -> None:
        success, error = _verdict(line.fields)
        for name in ("success", "error"):
            extras.pop(name, None)
        values = {"name": text_of(line.own[0]), "call_id": self._call_id(line), "result": line.own[1]}
        self._add(ToolResult, line, extras, success=success, error=error, **values)

    def _call_id(self, line: EventLine) -> str:
        """The id of a tool call; some logs give the id of the conversation there."""
        id = text_of(line.own[2])
        return "" if id == self.id else id

    def _ended(self, line: EventLine, extras: Extras) -> None:
        for name, value in zip(_ENDING, line.own, strict=True):
            if value is not None:
                if self.ended.get(name, value) != value:
                    self._note(self.notes.repaired, "ended_more_than_once", f"{name}: {value!r}"[:80])
                self.ended[name] = value
        self._add(Marker, line, extras, name=lines_of.ENDED)

    def _error(self, line: EventLine, _: Extras) -> None:
        error, fatal, severity, recoverable = line.own
        if truth(fatal) or truth(recoverable) is False or folded(text_of(severity)) in _FATAL:
            self.ended.setdefault("error", error_of(error) or "fatal error")
        self._mark(line, lines_of.ERROR)

    @cached_property
    def _has_tool_events(self) -> bool:
        return any(line.plan.kind is lines_of.CALL for line in self._lines)

    def _text(self, line: EventLine, _: Extras) -> None:
        """A message: read as chat messages are."""
        plan, fields, time = line.plan, line.fields, line.time
        message = {name: value for name, value in fields.items() if name not in lines_of.SHARED or name == "name"}
        for name in lines_of.SHARED & fields.keys():
            self.shared.setdefault(name, fields[name])
        for name in (plan.seq, plan.time if time is not None else ""):
            message.pop(name, None)
        role, content = (
            next((message.pop(name) for name in names if name in message), None)
            for names in (lines_of.ROLE_NAMES, lines_of.TEXT_NAMES)
        )
        role = text_of(role)
        role = lines_of.SPEAKERS.get(role.lower(), role) if role.lower() not in ROLES else role.lower()
        message |= {"role": role, "content": content}
        if self._has_tool_events and (role in ("tool", "function") or message.get("tool_calls")):
            self._note(self.notes.ignored, "tools_in_messages", "the events have them")
            if role in ("tool", "function"):
                self.mark("tool_message", fields, time)
                return
            message["tool_calls_of_message"] = message.pop("tool_calls")
        first = self.seq
        with self.notes.at_line(line.record.file, line.record.number):
            if role in ("system", "developer") and isinstance(content, str) and not self.participants:
                self.instructions.append(content)
            elif role in ROLES:
                add_message(message, self)
            else:
                extras = {name: value for name, value in message.items() if name not in ("role", "content")}
                self.say(self.participant(role), intended=Text(text_of(content), "message.content"), extras=extras)
        if time is not None:
            self.events[first:] = [msgspec.structs.replace(event, time=time) for event in self.events[first:]]

    def _other(self, line: EventLine, _: Extras) -> None:
        self.notes.unknown(f"event={line.plan.name}"[:80], self.seq)
        self._mark(line, line.plan.name)

    def _not_an_event(self, line: EventLine, _: Extras) -> None:
        self._note(self.notes.ignored, lines_of.NOT_AN_EVENT, repr(line.fields)[:80])
        self._mark(line, lines_of.NOT_AN_EVENT)

    def _nameless(self, line: EventLine, what: str) -> None:
        self._note(self.notes.set_aside, f"{what}_not_named", line.plan.name)
        self._mark(line, line.plan.name)

    def _mark(self, line: EventLine, name: str) -> None:
        self._add(Marker, line, {}, name=name, value=_payload(line))

    @property
    def has_content(self) -> bool:
        """Whether there is anything but markers."""
        return bool(self.ended or self.instructions) or any(type(event) is not Marker for event in self.events)


_HANDLERS: dict[str, Callable[[EventWalk, EventLine, Extras], None]] = {
    lines_of.ENTERED: EventWalk._entered,
    lines_of.EXITED: EventWalk._exited,
    lines_of.TURN: EventWalk._turn,
    lines_of.GUARD: EventWalk._guard,
    lines_of.SLOT: EventWalk._slot,
    lines_of.CALL: EventWalk._call,
    lines_of.RESULT: EventWalk._result,
    lines_of.ENDED: EventWalk._ended,
    lines_of.ERROR: EventWalk._error,
    lines_of.TEXT: EventWalk._text,
    lines_of.OTHER: EventWalk._other,
    lines_of.NOT_AN_EVENT: EventWalk._not_an_event,
}


def _payload(line: EventLine) -> Json:
    """What a marker keeps of its line."""
    read_fields = (*line.plan.names, *line.plan.values, *line.plan.extra)
    return {name: line.fields[name] for name in read_fields if name and line.fields[name] is not None} or None


def _verdict(fields: JsonObject) -> tuple[bool | None, str]:
    """What the line itself states of success, apart from the result."""
    flag, error = truth(fields.get("success")), error_of(fields.get("error"))
    if flag is not None or error:
        return flag, error
    stated = {name: fields[name] for name in _VERDICTS if fields.get(name) is not None}
    outcome = tool_outcome(ToolResult(seq=0, result=stated)) if stated else None
    return (outcome.worked, outcome.error) if outcome is not None and outcome.basis == STATED else (None, "")


# How a conversation ended.

_NATURAL_ENDS = frozenset(
    {"terminal", "terminal_state", "completed", "complete", "done", "end", "ended", "goodbye", "handoff", "transferred"}
    | {"escalated", "hangup", "user_hangup", "agent_hangup", "caller_hangup", "user_stop", "agent_stop"}
)
_FORCED_ENDS = frozenset(
    {"max_turns", "max_steps", "max_duration", "timeout", "silence_timeout", "loop", "loop_detected", "unsafe"}
    | {"cancelled", "canceled", "aborted", "killed", "too_many_errors"}
)
_BROKEN = frozenset(
    {"error", "errored", "crash", "crashed", "unavailable", "backend_unavailable", "agent_unavailable"}
    | {
        f"{part}_error"
        for part in ("integration", "agent", "backend", "provider", "pipeline", "telephony", "transport")
    }
    | {f"{part}_error" for part in ("connection", "network", "system", "internal", "infrastructure", "api", "fatal")}
)
"""Ends that say that the integration broke, and nothing about the agent."""


def outcome_of(ending: JsonObject) -> Outcome:
    """The outcome by completed, stop_reason, final_status, error, errored and duration_s."""
    reason, status = text_of(ending.get("stop_reason")), text_of(ending.get("final_status"))
    error = error_of(ending.get("error"))
    if not error and ending.get("errored") and truth(ending["errored"]) is not False:
        error = status or reason or "errored"
    if not error:
        error = next((text for text in (status, reason) if folded(text) in _BROKEN), "")
    finished = True if folded(reason) in _NATURAL_ENDS else False if folded(reason) in _FORCED_ENDS else None
    return Outcome(
        completed=truth(ending.get("completed")),
        finished=finished,
        ended_reason=reason,
        final_status=status,
        error=error,
        duration=seconds_of(ending.get("duration_s")),
    )


def seconds_of(value: Any) -> float | None:
    """A duration; None where it cannot be one."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None
