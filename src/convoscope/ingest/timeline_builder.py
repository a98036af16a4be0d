"""Builds a timeline event by event, for readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec

from convoscope.conversation import (
    AnyEvent,
    Clock,
    Marker,
    Participant,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.conversation.model import DIMENSIONS
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.report import Notes
from convoscope.views.tool_outcomes import tool_outcome

MAX_AGENT = 200


class TimelineBuilder:
    """The events, participants and clocks of a conversation under construction."""

    def __init__(self, notes: Notes, clock_source: str = "") -> None:
        self.notes = notes
        self.events: list[AnyEvent] = []
        self._participants: dict[str, Participant] = {}
        self._clocks: dict[str, Clock] = {}
        self._clock_source = clock_source
        self._inferred: set[str] = set()

    @property
    def participants(self) -> tuple[Participant, ...]:
        return tuple(self._participants.values())

    @property
    def clocks(self) -> tuple[Clock, ...]:
        return tuple(self._clocks.values())

    @property
    def seq(self) -> int:
        """The number of the next event."""
        return len(self.events)

    def add(self, kind: Callable[..., AnyEvent], **fields: Any) -> None:
        """An event of any kind."""
        self.events.append(kind(seq=len(self.events), **fields))

    def participant(self, role: str, name: str = "") -> str:
        """The id of a speaker, who is added on first sight."""
        key = f"{role}:{name}" if name else role
        if key not in self._participants:
            self._participants[key] = Participant(key, role, name)
        return key

    def time(self, value: object) -> Time | None:
        """A logged time, or None; what had to be concluded is noted once."""
        if value is None:
            return None
        read = moment(value)
        if read is None:
            self.notes.set_aside("unreadable_time", repr(value)[:80], self.seq)
            return None
        if read.inferred:
            self.infer_once(read.inferred, repr(value)[:80])
        if read.kind not in self._clocks:
            self._clocks[read.kind] = Clock(id=read.kind, kind=read.kind, source=self._clock_source)
        return Time(read.at, read.kind)

    def infer_once(self, code: str, detail: str = "") -> None:
        """Note what was concluded, once for a conversation."""
        if code not in self._inferred:
            self._inferred.add(code)
            self.notes.inferred(code, detail, self.seq)

    def say(
        self,
        speaker: str,
        *,
        intended: Text | None = None,
        spoken: Text | None = None,
        heard: Text | None = None,
        time: Time | None = None,
        segments: Sequence[Segment] = (),
        cut_off_by: str = "",
        manner: str = "",
        id: str = "",
        extras: dict[str, Any] | None = None,
    ) -> None:
        """An utterance; without a time of its own it has that of its segments."""
        if segments:
            time = Time(segments[0].start, segments[0].clock, segments[-1].end)
        self.events.append(
            Utterance(
                seq=len(self.events),
                speaker=speaker,
                intended=intended,
                spoken=spoken,
                heard=heard,
                time=time,
                segments=tuple(segments),
                cut_off_by=cut_off_by,
                manner=manner,
                id=id,
                extras=extras or {},
            )
        )

    def call(
        self,
        name: str,
        arguments: object,
        *,
        call_id: str = "",
        time: Time | None = None,
        id: str = "",
        caller: str = "",
        extras: dict[str, Any] | None = None,
    ) -> None:
        """A tool call, of the agent or of `caller`.

        Arguments that are JSON in a string are read, and kept raw where they are not JSON.
        """
        value, raw = arguments, None
        if isinstance(arguments, str):
            try:
                value = self._decoded(arguments) if arguments.strip() else None
            except BadJson as error:
                value, raw = None, arguments
                self.notes.repaired("tool_arguments_kept_as_text", f"{name}: {error}", self.seq)
        self.events.append(
            ToolCall(
                seq=len(self.events),
                name=name,
                arguments=value,
                raw_arguments=raw,
                call_id=call_id,
                time=time,
                id=id,
                caller=caller,
                extras=extras or {},
            )
        )

    def result(
        self,
        content: object,
        *,
        call_id: str = "",
        name: str = "",
        time: Time | None = None,
        id: str = "",
        success: bool | None = None,
        error: str = "",
        extras: dict[str, Any] | None = None,
    ) -> None:
        """A tool's answer; a string of JSON is read. What it says of success is for `tool_outcome` to read.

        `success` is what the log says beside the answer, `error` with which error.
        """
        value = content
        if isinstance(content, str) and content.lstrip().startswith(("{", "[")):
            try:
                value = self._decoded(content)
            except BadJson:
                value = content
        self.add(ToolResult, name=name, call_id=call_id, result=value, time=time, id=id, extras=extras or {})
        if success is not None:
            self.set_outcome(success, error=error, error_if_unstated="" if content is None else str(content)[:500])

    def set_outcome(self, worked: bool, *, error: str = "", error_if_unstated: str = "") -> None:
        """The log says itself whether the tool worked whose result is the last event, and maybe with which error."""
        event = self.events[-1]
        if isinstance(event, ToolResult):
            error = "" if worked else error or tool_outcome(event).error or error_if_unstated
            self.events[-1] = msgspec.structs.replace(event, success=worked, error=error)

    def _decoded(self, text: str) -> Any:
        """JSON inside a string; what had to be repaired is noted."""
        value, repairs = decode(text.encode("utf-8", "replace"))
        for code in repairs:
            self.notes.repaired(code, "in a tool's JSON", self.seq)
        return value

    def mark(
        self, name: str, value: object = None, time: Time | None = None, id: str = "", participant: str = ""
    ) -> None:
        self.add(Marker, name=name, value=value, time=time, id=id, participant=participant)

    def control(self, speaker: str, control: Iterable[str], time: Time | None) -> None:
        """Text that steers a program is a marker, and no speech."""
        for text in control:
            self.notes.inferred("control_text", text[:80], self.seq)
            self.mark("control_text", text, time, participant=speaker)

    def set_message_aside(self, role: str, extras: dict[str, Any], time: Time | None, id: str) -> None:
        """A message that says nothing and calls nothing is no turn: it is kept as a marker, and counted."""
        self.notes.set_aside("message_without_text", role, self.seq)
        self.mark("message_without_text", {"role": role, **extras}, time, id)


def agent_of(participants: Iterable[Participant], notes: Notes) -> str:
    """The agent, where only the names of its messages identify it; several are joined with a +."""
    names = sorted({one.name for one in participants if one.role == "assistant" and one.name})
    agent = " + ".join(names)[:MAX_AGENT]
    if agent:
        notes.inferred("agent_from_name", agent)
    return agent


def dimensions(*records: object) -> dict[str, str]:
    """The dimensions named in the given mappings, as text; the first that names one wins."""
    values: dict[str, str] = {}
    for record in records:
        if isinstance(record, dict):
            for name in DIMENSIONS:
                value = record.get(name)
                if name not in values and isinstance(value, str | int | float) and value != "":
                    values[name] = str(value)
            name_of_agent = record.get("agent_name")
            if "agent" not in values and isinstance(name_of_agent, str) and name_of_agent:
                values["agent"] = name_of_agent
    return values
