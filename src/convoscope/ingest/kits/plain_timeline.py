"""A timeline that takes plain messages (`kits.shapes`): what they say, call and answer, in their order."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Clock, Text, Time
from convoscope.conversation.events import ClockKind
from convoscope.ingest.control_text import without_control
from convoscope.ingest.kits.shapes import embedded
from convoscope.ingest.record import JsonObject, as_text
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

_SINCE_1970 = 1e8


class OpenCall(NamedTuple):
    """A call of a tool that has no result yet."""

    id: str
    name: str
    arguments: str


class PlainTimeline(TimelineBuilder):
    """Adds plain messages. Instructions are kept apart; a result finds its call by id, else by name."""

    def __init__(self, notes: Notes, clock_source: str = "") -> None:
        super().__init__(notes, clock_source)
        self.instructions: list[str] = []
        self._open: deque[OpenCall] = deque()
        self._answered: set[str] = set()
        """Ids of calls whose result is there."""

    def at(self, seconds: float | None, until: float | None = None) -> Time | None:
        """A time in seconds. Since 1970 it is of the wall clock; smaller numbers count from some start."""
        if seconds is None:
            return None
        kind: ClockKind = "wall" if seconds > _SINCE_1970 else "relative"
        self._clocks.setdefault(kind, Clock(id=kind, kind=kind, source=self._clock_source))
        return Time(seconds, kind, until)

    def instruct(self, message: JsonObject) -> None:
        """A message of the system: instructions, each text once."""
        text = "\n".join(as_text(block.get("text")) for block in message["content"])
        if text and text not in self.instructions:
            if self.instructions:
                self.notes.inferred("several_instructions", text[:60], self.seq)
            self.instructions.append(text)

    def add_plain(
        self,
        message: JsonObject,
        at: Time | None = None,
        *,
        role: str = "",
        name: str = "",
        caller: str = "",
        is_spoken: bool = False,
        is_cut_off: bool = False,
        extras: JsonObject | None = None,
    ) -> None:
        """A plain message, block by block. `caller` is who calls the tools, where that is not the agent."""
        role = role or message["role"]
        name = as_text(message.get("name")) or name
        id, texts = as_text(message.get("id")), list[str]()
        for block in (*message["content"], None):
            if block is not None and block["type"] == "text":
                texts.append(as_text(block.get("text")))
                continue
            text, control = without_control("\n".join(texts), role)
            texts.clear()
            if text.strip():
                words = Text(text, "message")
                self.say(
                    self.participant(role, name),
                    intended=None if is_spoken else words,
                    spoken=words if is_spoken and role == ASSISTANT else None,
                    heard=words if is_spoken and role != ASSISTANT else None,
                    cut_off_by=self.participant(USER) if is_cut_off and role == ASSISTANT else "",
                    time=at,
                    id=id,
                    extras=extras,
                )
                id, extras = "", None
            if control:
                self.control(self.participant(role, name), control, at)
            if block is not None:
                self._add_block(block, at, caller)

    def _add_block(self, block: JsonObject, at: Time | None, caller: str) -> None:
        kind = block["type"]
        if kind == "tool_use":
            self.add_call(block, at, caller)
        elif kind == "tool_result":
            self.add_result(block, at)
        elif kind == "thinking":
            self.notes.ignored("thinking", "", self.seq)
            self.mark("reasoning", block, at)
        else:
            self.notes.ignored(f"{kind}_not_read", "", self.seq)
            self.mark("content", block, at)

    def add_call(self, block: JsonObject, at: Time | None, caller: str = "") -> None:
        id, name = as_text(block.get("id")), as_text(block.get("name"))
        self.call(name, block.get("input"), call_id=id, time=at, caller=caller)
        self._open.append(OpenCall(id, name, canonical(block.get("input"))))

    def add_result(self, block: JsonObject, at: Time | None) -> None:
        id, name = as_text(block.get("tool_use_id")), as_text(block.get("name"))
        call = self.take_call(id, name)
        id, name = id or (call.id if call else ""), name or (call.name if call else "")
        self._answered.add(id)
        failed = block.get("is_error")
        worked = not failed if isinstance(failed, bool) else None
        error = as_text(block.get("error"))
        self.result(block.get("content"), call_id=id, name=name, time=at, success=worked, error=error)

    def take_call(self, id: str, name: str, arguments: str | None = None) -> OpenCall | None:
        """The open call of this id; without an id, the first of this name, best with the same arguments."""
        if id:
            fits = [call for call in self._open if call.id == id]
        else:
            fits = [call for call in self._open if call.name == name or not name]
            fits = [call for call in fits if arguments is not None and call.arguments == arguments] or fits
        if not fits:
            return None
        self._open.remove(fits[0])
        return fits[0]


def canonical(value: Any) -> str:
    """A value as JSON, with its names in order; JSON in a text is read first."""
    return msgspec.json.encode(embedded(value), order="deterministic").decode()
