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
    Utterance,
)
from convoscope.ingest.formats.openai import chat as openai_chat
from convoscope.ingest.formats.state_events import lines as lines_of
from convoscope.ingest.formats.state_events.lines import (
    DAY_MS,
    Line,
    LinePlan,
    error_of,
    folded,
    milliseconds,
    text_of,
    truth,
)
from convoscope.ingest.formats.state_events.visits import (
    BOUNDS,
    Concluded,
    Move,
    began_before,
    brought_forward,
    is_in,
    is_regular,
    late_exits,
    missing_entries,
    moves_of,
)
from convoscope.ingest.reader import Record
from convoscope.ingest.record import ROLES, JsonObject
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.result_fields import STATED
from convoscope.views.tool_outcomes import tool_outcome

_FATAL = frozenset({"fatal", "critical"})

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
            lines_of.NOT_AN_EVENT: self._not_an_event,
        }

    def go(self, lines: list[Line]) -> None:
        lines, concluded = self._looked_over(lines)
        handlers, shared = self._handlers, self.shared
        agreed_names: tuple[str, ...] = ()
        agreed: Any = None
        odd = bool(concluded.before or concluded.after or concluded.again)
        for index, (_, _, _, time, plan, fields, record) in enumerate(lines):
            self._record = record
            extras: dict[str, Json] = {}
            if plan.shared is not agreed_names or (plan.pick is not None and plan.pick(fields) != agreed):
                for name in plan.shared:
                    if shared.get(name, _MISSING) != fields[name]:
                        self._share(name, fields[name], extras)
                if not extras and plan.pick is not None:
                    agreed_names, agreed = plan.shared, plan.pick(fields)
            if plan.extra:
                self._leave(fields, plan, extras)
            if odd and index in concluded.before:
                self._conclude(concluded.before[index], time)
            if odd and index in concluded.again:
                self.events.append(
                    Marker(seq=len(self.events), name=plan.name, value=_payload(fields, plan), time=time)
                )
                self._note(self.notes.repaired, "state_exited_again", str(fields.get(plan.names[0])))
                continue
            if time is None and plan.time and fields[plan.time] is not None:
                extras[plan.time] = fields[plan.time]
            handlers[plan.kind](fields, plan, time, extras)
            if odd and index in concluded.after:
                self._conclude(concluded.after[index], time)

    # What the whole log says before it is walked through.

    def _looked_over(self, lines: list[Line]) -> tuple[list[Line], Concluded]:
        """The lines with late exits moved forward, and the entries that are missing."""
        self._lines = lines
        if is_regular(lines):
            return lines, _NOTHING
        moves = moves_of(lines)
        late = late_exits(moves)
        if late:
            self._lines = lines = brought_forward(lines, late)
            moves = moves_of(lines)
            self.notes.repaired("exit_after_entry", f"{len(late)} times")

        def happened(left: Move, until: int | None) -> bool:
            exited = lines[left.at][3]
            indexes = range(left.at - 1, -1, -1)
            since = next((lines[index][3] for index in indexes if lines[index][4].kind in BOUNDS), None)
            for line in lines[left.at + 1 : until]:
                if is_in(line, left, exited, since if self._are_times_fine else None):
                    return True
                if line[4].kind is lines_of.TURN:
                    since = line[3]
            return False

        return lines, missing_entries(moves, happened)

    @cached_property
    def _logged_states(self) -> frozenset[str]:
        """States that some line says were entered or left."""
        return frozenset(state for move in moves_of(self._lines) for state in (move.state, move.to_state))

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

    def _leave(self, fields: JsonObject, plan: LinePlan, extras: dict[str, Json]) -> None:
        """What is not taken is kept; an unknown name is noted once."""
        for name in plan.extra:
            if fields[name] is not None:
                extras[name] = fields[name]
        for name in plan.unknown:
            if name not in self._noted:
                self._noted.add(name)
                self.notes.unknown(f"event.{name}", len(self.events))

    def _note(self, take: Callable[[str, str, int], None], code: str, detail: str) -> None:
        with self.notes.standing_at(self._record.file, self._record.number):
            take(code, detail, len(self.events))

    def _add(
        self,
        kind: Callable[..., AnyEvent],
        fields: JsonObject,
        plan: LinePlan,
        time: Time | None,
        extras: dict[str, Json],
        **values: Any,
    ) -> None:
        id = text_of(fields[plan.id]) if plan.id else ""
        self.events.append(kind(seq=len(self.events), time=time, id=id, extras=extras, **values))

    # One method for each kind of line.

    def _conclude(self, state: str, time: Time | None) -> None:
        self._note(self.notes.inferred, "state_entry_concluded", state)
        self._enter(state, time, "", {})

    def _enter(self, state: str, time: Time | None, id: str, extras: dict[str, Json]) -> None:
        self._current = state
        self._visits.append((state, time))
        self.events.append(StateEntered(seq=len(self.events), state=state, time=time, id=id, extras=extras))

    def _entered(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        state = fields.get(plan.names[0])
        if type(state) is not str:
            state = text_of(state)
        if state:
            self._enter(state, time, text_of(fields.get(plan.id)), extras)
        else:
            self._nameless(fields, plan, time, "state")

    def _exited(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        of, to, why = plan.names
        state = text_of(fields.get(of))
        if not state:
            self._nameless(fields, plan, time, "state")
            return
        to_state, reason = text_of(fields.get(to)), text_of(fields.get(why))
        self._add(StateExited, fields, plan, time, extras, state=state, to_state=to_state, reason=reason)

    def _turn(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, latency, seconds, speech = plan.names
        values: dict[str, Json] = {name: fields[name] for name in plan.values}
        took = fields.get(latency)
        if type(took) is not int or not 0 <= took <= DAY_MS:
            took = milliseconds(took, 1.0)
        if took is None and seconds:
            values[seconds] = fields[seconds]
            took = milliseconds(fields[seconds], 1000.0)
        if took is not None:
            values["latency_ms"] = took
        elif latency and fields[latency] is not None:
            extras[latency] = fields[latency]
            self._note(self.notes.set_aside, "latency_not_a_time", repr(fields[latency])[:40])
        state = text_of(fields[named]) if named else ""
        if not state:
            state = self._ran_in(time, took)
        elif state != self._current and state not in self._logged_states:
            self._conclude(state, time)
        if "model" in values and "model" not in self.shared:
            self.shared["model"] = values["model"]
        self._last_turn = time
        what = {"component": "turn", "label": lines_of.TURN, "speech_id": text_of(fields.get(speech))}
        self._add(ComponentMetric, fields, plan, time, extras, values=values, state=state, **what)

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
        return any(line[3] is not None and line[3].at % 1 for line in self._lines)

    def _guard(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        guard, result, error, state = plan.names
        values = {
            "guard": text_of(fields.get(guard)),
            "result": fields.get(result),
            "error": error_of(fields.get(error)),
        }
        in_state = text_of(fields.get(state)) or self._current
        self._add(GuardEvaluated, fields, plan, time, extras, state=in_state, **values)

    def _slot(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        slot, value, named = plan.names
        name = text_of(fields.get(slot))
        if not name:
            self._nameless(fields, plan, time, "slot")
            return
        if value and fields[value] is None:
            self._note(self.notes.ignored, "slot_not_committed", name)
            self._mark("slot_not_committed", fields, plan, time)
            return
        if name in self._slots:
            self._note(self.notes.ignored, "slot_committed_again", name)
            self._mark("slot_committed_again", fields, plan, time)
            return
        if not value:
            self._note(self.notes.inferred, "slot_value_not_told", name)
        self._slots.add(name)
        state = text_of(fields.get(named)) or self._current
        self._add(SlotFilled, fields, plan, time, extras, slot=name, value=fields.get(value), state=state)

    def _call(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, given, call = plan.names
        name, arguments, call_id = text_of(fields.get(named)), fields.get(given), self._call_id(fields.get(call))
        if isinstance(arguments, str):
            id = text_of(fields.get(plan.id))
            self.timeline.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
            return
        self._add(ToolCall, fields, plan, time, extras, name=name, arguments=arguments, call_id=call_id)

    def _result(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        named, given, call = plan.names
        result = fields.get(given)
        success, error = _verdict(fields)
        for name in ("success", "error"):
            extras.pop(name, None)
        values = {"name": text_of(fields.get(named)), "call_id": self._call_id(fields.get(call))}
        self._add(ToolResult, fields, plan, time, extras, result=result, success=success, error=error, **values)

    def _call_id(self, value: Any) -> str:
        """The id of a tool call; some logs give the id of the conversation there."""
        id = text_of(value)
        return "" if id == self.id else id

    def _ended(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        names = ("completed", "stop_reason", "final_status", "error", "errored", "duration_s")
        for name, field in zip(names, plan.names, strict=True):
            value = fields.get(field)
            if value is None:
                continue
            if self.ended.get(name, value) != value:
                self._note(self.notes.repaired, "ended_more_than_once", f"{name}: {value!r}"[:80])
            self.ended[name] = value
        self._add(Marker, fields, plan, time, extras, name=lines_of.ENDED)

    def _error(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        error, fatal, severity, recoverable = (fields.get(field) for field in plan.names)
        if truth(fatal) or truth(recoverable) is False or folded(text_of(severity)) in _FATAL:
            self.ended.setdefault("error", error_of(error) or "fatal error")
        self._mark(lines_of.ERROR, fields, plan, time)

    def _text(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        """A message: read as chat messages are."""
        del extras
        message = {name: value for name, value in fields.items() if name not in lines_of.SHARED or name == "name"}
        for name in lines_of.SHARED & fields.keys():
            self.shared.setdefault(name, fields[name])
        for name in (plan.seq, plan.time if time is not None else ""):
            message.pop(name, None)
        role = text_of(_taken(message, lines_of.ROLE_NAMES))
        content = _taken(message, lines_of.TEXT_NAMES)
        message["role"] = lines_of.SPEAKERS.get(role.lower(), role) if role.lower() not in ROLES else role.lower()
        message["content"] = content
        if self._has_tool_events is None:
            self._has_tool_events = any(line[4].kind is lines_of.CALL for line in self._lines)
        if self._has_tool_events and (message["role"] in ("tool", "function") or message.get("tool_calls")):
            self._note(self.notes.ignored, "tools_in_messages", "the events have them")
            if message["role"] in ("tool", "function"):
                self.timeline.mark("tool_message", fields, time)
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
        for index in range(first, len(self.events)):
            if time is not None:
                self.events[index] = msgspec.structs.replace(self.events[index], time=time)

    def _other(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        self.notes.unknown(f"event={plan.name}"[:80], len(self.events))
        self._mark(plan.name, fields, plan, time)

    def _not_an_event(self, fields: JsonObject, plan: LinePlan, time: Time | None, extras: dict[str, Json]) -> None:
        del extras
        self._note(self.notes.ignored, lines_of.NOT_AN_EVENT, repr(fields)[:80])
        self._mark(lines_of.NOT_AN_EVENT, fields, plan, time)

    def _nameless(self, fields: JsonObject, plan: LinePlan, time: Time | None, what: str) -> None:
        self._note(self.notes.set_aside, f"{what}_not_named", plan.name)
        self._mark(plan.name, fields, plan, time)

    def _mark(self, name: str, fields: JsonObject, plan: LinePlan, time: Time | None) -> None:
        self._add(Marker, fields, plan, time, {}, name=name, value=_payload(fields, plan))

    @property
    def has_content(self) -> bool:
        """Whether there is anything but markers."""
        return bool(self.ended or self.instructions) or any(type(event) is not Marker for event in self.events)

    @property
    def has_texts(self) -> bool:
        return any(type(event) is Utterance for event in self.events)


def _payload(fields: JsonObject, plan: LinePlan) -> Json:
    """What a marker keeps of its line."""
    read_fields = (*plan.names, *plan.values, *plan.extra)
    return {name: fields[name] for name in read_fields if name and fields[name] is not None} or None


def _taken(message: JsonObject, names: Sequence[str]) -> Any:
    """The first of these fields, taken out."""
    for name in names:
        if name in message:
            return message.pop(name)
    return None


def _verdict(fields: JsonObject) -> tuple[bool | None, str]:
    """What the line itself states of success, apart from the result."""
    flag, error = truth(fields.get("success")), error_of(fields.get("error"))
    if flag is not None or error:
        return flag, error
    stated = {name: fields[name] for name in _VERDICTS if fields.get(name) is not None}
    outcome = tool_outcome(ToolResult(seq=0, result=stated)) if stated else None
    return (outcome.worked, outcome.error) if outcome is not None and outcome.basis == STATED else (None, "")


_VERDICTS = ("ok", "is_error", "error_message", "error_type", "status")


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
