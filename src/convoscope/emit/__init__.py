"""Writes the events of a conversation to a log that Convoscope reads.

Needs nothing but Python: this one file may be copied into any agent.

>>> from convoscope.emit import EventLog
>>> with EventLog("events.jsonl", conversation_id="c17", flow="viewing") as log:   # doctest: +SKIP
...     log.state_entered("greet")
...     log.turn_complete(latency_ms=640)
...     log.slot_filled("name", "Ada")
...     log.state_exited("greet", "confirm", reason="slots_filled")
...     log.conversation_ended(completed=True, stop_reason="terminal")
"""

from __future__ import annotations

import json
import math
import os
import threading
import time
from types import TracebackType
from typing import Any, Union

__all__ = ["EventLog"]

_Path = Union[str, "os.PathLike[str]"]

_OWN = frozenset({"conversation_id", "seq", "timestamp", "event"})
_DEPTH, _LONG = 50, 2000
_NO_VALUE = "slots are committed with a value; None means that it has no value yet"


class EventLog:
    """The events of one conversation, appended to a file line by line.

    Any number of logs, threads and processes may write to one file: each event is one write to its end. What
    was written is there, even if the process dies. `fields` are of the whole conversation and are on
    every line: flow, agent, model, persona, scenario_id, trial, dataset, split, domain.

    Values that JSON cannot hold are written as text. A failing disk never stops the agent: what could not be
    written is counted in `lost`. Wrong use, such as a state without a name, is a `ValueError`.
    """

    def __init__(self, path: _Path, *, conversation_id: str | int, **fields: Any) -> None:
        if conversation_id is None or isinstance(conversation_id, bool) or not str(conversation_id).strip():
            raise ValueError("an event log needs the id of its conversation")
        wrong = sorted(_OWN & fields.keys())
        if wrong:
            raise ValueError(f"reserved for the log: {', '.join(wrong)}")
        self.conversation_id = str(conversation_id)
        self.state = ""
        """The state that was entered last."""
        self.lost = 0
        """Events that could not be written."""
        self._fields = {name: value for name, value in fields.items() if value is not None}
        self._slots: set[str] = set()
        self._seq = 0
        self._now = 0.0
        self._lock = threading.Lock()
        self._file: int | None = _opened(path)

    def __enter__(self) -> EventLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file. Events after this are a `ValueError`."""
        with self._lock:
            file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def state_entered(self, state: str, **more: Any) -> None:
        """A visit of a state begins."""
        _named(state, "state")
        with self._lock:
            self.state = state
            self._write("state_entered", {"state": state}, more)

    def state_exited(self, state: str, to_state: str, reason: str = "", **more: Any) -> None:
        """The visit ends, and leads to another state."""
        _named(state, "state")
        _named(to_state, "to_state")
        self._emit("state_exited", {"state": state, "to_state": to_state, "reason": reason}, more)

    def turn_complete(self, latency_ms: float | None = None, *, state: str | None = None, **more: Any) -> None:
        """The agent has taken a turn. Name the state that it ran in, where the turn has moved on already."""
        if latency_ms is not None and not _is_latency(latency_ms):
            raise ValueError(f"latency_ms must be a number of milliseconds, not {latency_ms!r}")
        if state is not None:
            _named(state, "state")
        self._emit("turn_complete", {"state": state, "latency_ms": latency_ms}, more)

    def guard_evaluated(self, guard: str, result: Any = None, error: object = "", **more: Any) -> None:
        """A guard was evaluated; `error` says why it could not be, and may be an exception."""
        _named(guard, "guard")
        self._emit("guard_evaluated", {"guard": guard, "result": result, "error": _message(error)}, more)

    def slot_filled(self, slot: str, value: Any, state: str | None = None, **more: Any) -> bool:
        """A slot was committed, in the current state if no other is named.

        Once for each slot: later calls write nothing and return False. 0, False and "" are values, None is not.
        """
        _named(slot, "slot")
        if value is None:
            raise ValueError(f"slot {slot!r} is not committed: {_NO_VALUE}")
        if state is not None:
            _named(state, "state")
        with self._lock:
            if slot in self._slots:
                return False
            self._slots.add(slot)
            self._write("slot_filled", {"slot": slot, "value": value, "state": state or self.state or None}, more)
            return True

    def tool_called(self, name: str, arguments: Any = None, call_id: str | None = None, **more: Any) -> None:
        """The agent asks a tool to do something."""
        _named(name, "name")
        self._emit("tool_called", {"name": name, "arguments": arguments, "call_id": call_id}, more)

    def tool_result(
        self,
        name: str,
        success: bool | None = None,
        result: Any = None,
        error: object = "",
        call_id: str | None = None,
        **more: Any,
    ) -> None:
        """What the tool answered; with an error it failed, if nothing else is said."""
        _named(name, "name")
        message = _message(error)
        if success is None and message:
            success = False
        fields = {"name": name, "success": success, "result": result, "error": message, "call_id": call_id}
        self._emit("tool_result", fields, more)

    def error(self, error: object, *, fatal: bool = False, **more: Any) -> None:
        """Something went wrong. `fatal`: the integration broke, and the conversation says nothing about the agent."""
        self._emit("error", {"error": _message(error) or "error", "fatal": fatal}, more)

    def conversation_ended(self, completed: bool, stop_reason: str = "", final_status: str = "", **more: Any) -> None:
        """It is over; `completed`: the task was done."""
        if not isinstance(completed, bool):
            raise ValueError(f"completed must be True or False, not {completed!r}")
        fields = {"completed": completed, "stop_reason": stop_reason, "final_status": final_status}
        self._emit("conversation_ended", fields, more)

    def event(self, name: str, **fields: Any) -> None:
        """Anything else that happened: it is kept as a marker."""
        _named(name, "event")
        self._emit(name, {}, fields)

    def _emit(self, event: str, fields: dict[str, Any], more: dict[str, Any]) -> None:
        with self._lock:
            self._write(event, fields, more)

    def _write(self, event: str, fields: dict[str, Any], more: dict[str, Any]) -> None:
        if self._file is None:
            raise ValueError(f"the log of {self.conversation_id} is closed")
        wrong = sorted((_OWN | fields.keys()) & more.keys())
        if wrong:
            raise ValueError(f"reserved for {event}: {', '.join(wrong)}")
        self._seq += 1
        # A clock that is set back must not change the order.
        self._now = max(self._now, time.time())
        line = {
            "conversation_id": self.conversation_id,
            **self._fields,
            "seq": self._seq,
            "timestamp": self._now,
            "event": event,
            **{name: value for name, value in fields.items() if name == "value" or not _is_nothing(value)},
            **more,
        }
        try:
            whole = _encoded(line)
            if os.write(self._file, whole) != len(whole):
                # The disk is full: what was begun must not swallow the next line.
                self.lost += 1
                os.write(self._file, b"\n")
        except OSError:
            self.lost += 1


def _opened(path: _Path) -> int:
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    os.makedirs(folder, exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    return os.open(path, flags, 0o644)


def _encoded(line: dict[str, Any]) -> bytes:
    try:
        text = json.dumps(line, allow_nan=False)
    except Exception:  # whatever a foreign object does
        text = json.dumps(_plain(line, ()))
    return text.encode("ascii") + b"\n"


def _plain(value: Any, inside: tuple[int, ...]) -> Any:
    """The value with everything that JSON cannot hold as text; `inside` are the ids of what holds it."""
    if value is None or type(value) in (bool, str):
        return value
    if (type(value) is int and abs(value) < 1 << 63) or (type(value) is float and math.isfinite(value)):
        return value
    if id(value) not in inside and len(inside) < _DEPTH:
        inside = (*inside, id(value))
        if type(value) is dict:
            return {_text(name): _plain(one, inside) for name, one in value.items()}
        if type(value) in (list, tuple, set, frozenset):
            return [_plain(one, inside) for one in value]
    return _text(value)


def _text(value: object) -> str:
    if type(value) is str:
        return value
    try:
        return str.__str__(repr(value)[:_LONG])
    except Exception:  # whatever a foreign object does
        return f"<{type(value).__name__}>"


def _is_nothing(value: object) -> bool:
    return value is None or (isinstance(value, str) and not value)


def _named(value: object, what: str) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{what} must be a name, not {value!r}")


def _message(error: object) -> str:
    if error is False or _is_nothing(error):
        return ""
    if isinstance(error, str):
        return error
    try:
        message = str(error)
    except Exception:  # whatever a foreign error does
        message = ""
    return f"{type(error).__name__}: {message}" if isinstance(error, BaseException) else message


def _is_latency(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
