"""Conversations of which every line is as the page of the format writes it: decoded by type and built in one pass.

Whatever is not exactly so, and whatever there would be something to note about, is left to the reader that looks
closer (`lines`, `timeline`), which defines what lines mean: here is only what it would make of these.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Union

import msgspec
from msgspec import UNSET, UnsetType
from msgspec.structs import force_setattr

from convoscope.conversation import (
    Agent,
    AnyEvent,
    Clock,
    ComponentMetric,
    Conversation,
    GuardEvaluated,
    Marker,
    Outcome,
    SlotFilled,
    Source,
    StateEntered,
    StateExited,
    Time,
    ToolCall,
    ToolResult,
)
from convoscope.conversation.events import moment
from convoscope.ingest.formats.state_events.lines import DAY_MS, ENDED, TURN, error_of
from convoscope.ingest.formats.state_events.timeline import outcome_of
from convoscope.ingest.formats.state_events.visits import ROUNDING
from convoscope.ingest.reader import Lines

_NEAR = 8
"""So many lines of one moment are compared with each other here."""
_SHORT = 40
_CLOCKS = (Clock(id="wall", kind="wall", source="timestamp"),)
_new_time: Callable[[], Time] = Time(0.0).__copy__  # type: ignore[attr-defined]
"""A time that is not checked: what is set in it was."""


class _Line(msgspec.Struct, kw_only=True, gc=False, forbid_unknown_fields=True, tag_field="event"):
    """What every line has."""

    conversation_id: str
    timestamp: float | str
    seq: int | UnsetType = UNSET
    flow: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET


class _Entered(_Line, kw_only=True, gc=False, tag="state_entered"):
    state: str


class _Exited(_Line, kw_only=True, gc=False, tag="state_exited"):
    state: str
    to_state: str
    reason: str = ""


class _Turn(_Line, kw_only=True, gc=False, tag="turn_complete"):
    state: str = ""
    latency_ms: int | float | UnsetType = UNSET
    model: str | UnsetType = UNSET
    tokens_in: Any = UNSET
    tokens_out: Any = UNSET


class _Guard(_Line, kw_only=True, gc=False, tag="guard_evaluated"):
    guard: str = ""
    result: Any = None
    error: str | None = None
    state: str = ""


class _Slot(_Line, kw_only=True, gc=False, tag="slot_filled"):
    slot: str
    value: Any
    state: str = ""


class _Call(_Line, kw_only=True, gc=False, tag="tool_called"):
    name: str = ""
    arguments: Any = None
    call_id: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class _Result(_Line, kw_only=True, gc=False, tag="tool_result"):
    name: str = ""
    result: Any = None
    success: bool | UnsetType = UNSET
    error: str | None = None
    call_id: str | UnsetType = UNSET
    tool_call_id: str | UnsetType = UNSET


class _Ended(_Line, kw_only=True, gc=False, tag="conversation_ended"):
    completed: bool | UnsetType = UNSET
    stop_reason: str | UnsetType = UNSET
    final_status: str | UnsetType = UNSET
    error: str | UnsetType = UNSET


_decode = msgspec.json.Decoder(Union[_Entered, _Exited, _Turn, _Guard, _Slot, _Call, _Result, _Ended]).decode  # noqa: UP007


class NotStrict(Exception):
    """Something is not exactly as the format writes it, or has to be noted."""


def strict_conversation(lines: Lines, format: str) -> Conversation:
    """Raises `NotStrict`, or an error of the decoder, where a line has to be looked at more closely."""
    # An id that is there twice is noted.
    if any(text.count(b'"conversation_id"') != 1 for text in lines.texts):
        raise NotStrict
    stream = _Stream(lines)
    stream.go()
    if not stream.is_whole:
        raise NotStrict
    dimensions = {"agent": stream.agent} if stream.agent else {}
    if stream.model:
        dimensions["model"] = stream.model
    if stream.flow:
        dimensions["flow"] = stream.flow
    return Conversation(
        id=lines.key,
        dimensions=dimensions,
        source=Source(format=format, files=lines.file_names, record=lines.key),
        clocks=_CLOCKS,
        agent=Agent(name=stream.agent, models={"llm": stream.model} if stream.model else {}),
        timeline=tuple(stream.events),
        outcome=_outcome(stream.ended),
    )


def _outcome(ended: dict[str, Any]) -> Outcome:
    # Most conversations end in one of a few ways.
    usual = all(value is True or value is False or len(value) <= _SHORT for value in ended.values())
    return _usual_outcome(*ended.items()) if usual else outcome_of(ended)


@lru_cache(maxsize=1024)
def _usual_outcome(*ended: tuple[str, Any]) -> Outcome:
    return outcome_of(dict(ended))


class _Stream:
    """Goes through the lines of one conversation, which happened one after the other."""

    __slots__ = (
        "agent", "are_times_fine", "before", "began", "current", "ended", "events", "expected", "flow", "id", "inside",
        "last_turn", "lines", "logged", "model", "moved", "slots", "texts",
    )  # fmt: skip

    def __init__(self, lines: Lines) -> None:
        if lines.key.startswith("\0"):
            raise NotStrict  # A conversation is not called by it.
        self.id, self.texts = lines.key, lines.texts
        self.lines: list[Any] = [_decode(text) for text in lines.texts]
        self.events: list[AnyEvent] = []
        self.flow = self.agent = self.model = ""
        self.ended: dict[str, Any] = {}
        self.current = self.inside = self.expected = ""
        """The state that was entered last; the same until it is left; and the one that it was left for."""
        self.before = ""
        """The state that was entered before the current one."""
        self.began = self.moved = self.last_turn = 0.0
        """When that was, when the current one was entered, and when the last turn was over; 0 for never."""
        self.slots: set[str] = set()
        self.logged: set[str] | None = None
        """The states that some line says were entered or left; None as long as it was not asked for."""
        self.are_times_fine: bool | None = None
        """Whether times are more exact than whole seconds; None as long as it was not asked for."""

    def go(self) -> None:
        append = self.events.append
        flow: str | UnsetType = UNSET
        agent: str | UnsetType = UNSET
        at, seq, begun = 0.0, 0, 0
        time: Time | None = None
        for index, line in enumerate(self.lines):
            stamp = line.timestamp
            if type(stamp) is str:
                stamp = _moment(stamp)
            if not 1e8 <= stamp < 1e11:
                raise NotStrict
            number = line.seq
            if number is UNSET:
                number = seq
            if stamp > at or index == 0:
                begun = index
            elif stamp < at or number < seq:
                raise NotStrict
            elif number > seq:
                begun = index
            elif index - begun > _NEAR or line in self.lines[begun:index]:
                raise NotStrict
            if stamp != at or time is None:
                at = stamp
                time = _new_time()
                force_setattr(time, "at", at)
            seq = number
            if line.flow != flow:
                flow = _agreed(flow, line.flow)
            if line.agent != agent:
                agent = _agreed(agent, line.agent)
            append(_HANDLERS[type(line)](self, line, time, index))
        self.flow, self.agent = flow or "", agent or ""

    @property
    def is_whole(self) -> bool:
        """No entry of a state has to be concluded; and there is more than markers."""
        if not self.inside and self.expected:
            for event in reversed(self.events):
                if type(event) is StateExited:
                    break
                if type(event) is not Marker:
                    return False
        return bool(self.ended) or any(type(event) is not Marker for event in self.events)

    def enter(self, line: _Entered, time: Time, seq: int) -> StateEntered:
        state = line.state
        if self.inside or not state or (self.expected and self.expected != state):
            raise NotStrict
        self.before, self.began = self.current, self.moved
        self.current = self.inside = state
        self.moved = time.at
        return StateEntered(seq=seq, state=state, time=time)

    def exit(self, line: _Exited, time: Time, seq: int) -> StateExited:
        state, to_state = line.state, line.to_state
        if not self.inside or state != self.inside or not to_state:
            raise NotStrict
        self.inside, self.expected = "", to_state
        return StateExited(seq=seq, state=state, to_state=to_state, reason=line.reason, time=time)

    def turn(self, line: _Turn, time: Time, seq: int) -> ComponentMetric:
        took = line.latency_ms
        values: dict[str, Any] = {}
        if line.model is not UNSET or line.tokens_in is not UNSET or line.tokens_out is not UNSET:
            values = self._figures(line, seq)
        if took is not UNSET:
            if not 0 <= took <= DAY_MS:
                raise NotStrict
            values["latency_ms"] = took
        state = line.state
        if state:
            if state != self.current and not self._is_logged(state):
                raise NotStrict
        else:
            state = self.current
            # A turn that began before the last move ran in another state, which has to be looked at.
            if took and self.before and self.before != state and time.at - took / 1000 + ROUNDING < self.moved:
                self._check_beginning(time.at - took / 1000 + ROUNDING)
        self.last_turn = time.at
        return ComponentMetric(seq=seq, component="turn", label=TURN, values=values, state=state, time=time)

    def _check_beginning(self, began: float) -> None:
        if self.began > began or self.last_turn > began:
            return  # The latency does not fit the clock.
        if self.are_times_fine is None:
            times = [line.timestamp for line in self.lines]
            self.are_times_fine = any(type(time) is str or time % 1 for time in times)
        if self.are_times_fine:
            raise NotStrict

    def _is_logged(self, state: str) -> bool:
        """Whether some line says that this state was entered or left."""
        if self.logged is None:
            moves = [line for line in self.lines if type(line) is _Entered or type(line) is _Exited]
            self.logged = {line.state for line in moves} | {line.to_state for line in moves if type(line) is _Exited}
        return state in self.logged

    def _figures(self, line: _Turn, index: int) -> dict[str, Any]:
        """What a turn says besides its latency, in the order of the line."""
        figures = {name: getattr(line, name) for name in ("model", "tokens_in", "tokens_out")}
        names = [name for name, value in figures.items() if value is not UNSET]
        if line.model == "":
            raise NotStrict
        if line.model is not UNSET and not self.model:
            self.model = line.model
        if len(names) > 1:
            text = self.texts[index]
            keys = [b'"%b"' % name.encode() for name in names]
            if b"\\" in text or any(text.count(key) != 1 for key in keys):
                raise NotStrict
            names = [name for _, name in sorted(zip(map(text.index, keys), names, strict=True))]
        return {name: figures[name] for name in names}

    def guard(self, line: _Guard, time: Time, seq: int) -> GuardEvaluated:
        return GuardEvaluated(
            seq=seq,
            guard=line.guard,
            result=line.result,
            error=error_of(line.error) if line.error else "",
            state=line.state or self.current,
            time=time,
        )

    def slot(self, line: _Slot, time: Time, seq: int) -> SlotFilled:
        slot = line.slot
        if not slot or line.value is None or slot in self.slots:
            raise NotStrict
        self.slots.add(slot)
        return SlotFilled(seq=seq, slot=slot, value=line.value, state=line.state or self.current, time=time)

    def call(self, line: _Call, time: Time, seq: int) -> ToolCall:
        if type(line.arguments) is str:
            raise NotStrict
        return ToolCall(seq=seq, name=line.name, arguments=line.arguments, call_id=self._call_id(line), time=time)

    def result(self, line: _Result, time: Time, seq: int) -> ToolResult:
        return ToolResult(
            seq=seq,
            name=line.name,
            call_id=self._call_id(line),
            result=line.result,
            success=None if line.success is UNSET else line.success,
            error=line.error or "",
            time=time,
        )

    def _call_id(self, line: _Call | _Result) -> str:
        if line.call_id is UNSET:
            id = line.tool_call_id or ""
        elif line.tool_call_id is UNSET:
            id = line.call_id
        else:
            raise NotStrict
        return "" if id == self.id else id

    def end(self, line: _Ended, time: Time, seq: int) -> Marker:
        if self.ended:
            raise NotStrict
        for name in ("completed", "stop_reason", "final_status", "error"):
            value = getattr(line, name)
            if value is not UNSET:
                self.ended[name] = value
        return Marker(seq=seq, name=ENDED, time=time)


_HANDLERS: dict[type, Callable[[Any, Any, Any, int], AnyEvent]] = {
    _Entered: _Stream.enter,
    _Exited: _Stream.exit,
    _Turn: _Stream.turn,
    _Guard: _Stream.guard,
    _Slot: _Stream.slot,
    _Call: _Stream.call,
    _Result: _Stream.result,
    _Ended: _Stream.end,
}


def _moment(text: str) -> float:
    """A time that is written with its zone, or in seconds since 1970."""
    read = moment(text)
    if read is None or read.kind != "wall" or read.inferred not in ("", "time_in_epoch_s"):
        raise NotStrict
    return read.at


def _agreed(first: str | UnsetType, new: str | UnsetType) -> str | UnsetType:
    """What lines say of the whole conversation: the first that says it counts, and all that do say the same."""
    if new is UNSET:
        return first
    if first is not UNSET or not new:
        raise NotStrict
    return new
