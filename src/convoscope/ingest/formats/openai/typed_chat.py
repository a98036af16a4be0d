"""OpenAI chats as nearly all of them are written: typed records, and the conversation of one, the quick way.

`OpenAIChatReader.build` is the definition. A record with anything else in it than these types say is not built
here, and neither is one of which `build` would keep or note something that is not said here.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from convoscope.conversation import (
    Agent,
    AnyEvent,
    Clock,
    Conversation,
    Expected,
    Outcome,
    Participant,
    Source,
    Text,
    Time,
    Tool,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.conversation.model import DIMENSIONS
from convoscope.ingest.control_text import may_hold_control
from convoscope.ingest.ids import CONVERSATION_IDS
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.reader import RawRecord
from convoscope.ingest.record import filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import agent_of

_Word = Annotated[str, msgspec.Meta(min_length=1)]
"""Text that is not empty: where an empty one is given, `build` keeps it, and says so."""
_Empty = Annotated[list[Any], msgspec.Meta(max_length=0)]


class Function(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """The function of a tool call."""

    name: str = ""
    arguments: Any = None


class TypedToolCall(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A tool call of a message."""

    function: Function
    id: _Word = ""
    type: str = ""
    index: int = 0


class Message(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A message of a chat; null and nothing are the same."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | None = None
    timestamp: float | int | str | None = None
    tool_calls: list[TypedToolCall] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    id: str | None = None
    refusal: None = None
    audio: None = None
    function_call: None = None
    annotations: _Empty | None = None


class Chat(msgspec.Struct, forbid_unknown_fields=True, gc=False):
    """A record with a list of messages."""

    messages: Annotated[list[Message], msgspec.Meta(min_length=1)]
    conversation_id: _Word = ""
    id: _Word = ""
    model: _Word = ""
    tools: msgspec.Raw = msgspec.Raw()
    ground_truth: _Word | None = None
    metadata: dict[str, Any] | None = None


_CLOCKS = {kind: Clock(id=kind, kind=kind, source="message.timestamp") for kind in ("wall", "relative")}
_SPEAKERS = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
_PARTICIPANTS = {role: Participant(role, role) for role in ("user", "assistant", "system")}
_READ_FROM_METADATA = frozenset({*DIMENSIONS, "agent_name", *CONVERSATION_IDS, "ground_truth"})
_INSTRUCT = ("system", "developer")
_NOTHING_EXPECTED = Expected()
_NO_OUTCOME = Outcome()
# From here to there a number is seconds since the epoch, see `moment`.
_FIRST_SECOND, _LAST_SECOND = 1e8, 1e11
_decode = msgspec.json.Decoder().decode


class _Odd(Exception):
    """Something that only `build` can read."""


def conversation_of(chat: Chat, raw: RawRecord, notes: Notes, format: str) -> Conversation | None:
    """The conversation of a chat; None where `build` has to look at it."""
    if chat.id and chat.conversation_id:
        return None  # one of them would be left over
    if raw.text.count(b'"messages"') != 1:
        return None  # a name that is there twice is noted
    metadata = chat.metadata
    if metadata and not _READ_FROM_METADATA.isdisjoint(metadata):
        return None
    kept = filled(metadata) if metadata else None
    talk = _Talk(notes)
    try:
        tools = _tools_of(chat.tools, raw.text)
        talk.take(chat.messages)
    except (_Odd, msgspec.DecodeError, RecursionError):
        return None
    if talk.clocks:
        first, last = talk.events[0].time, talk.events[-1].time
        if first is not None and last is not None and last.at < first.at:
            return None  # it may be written newest first
    model, truth = chat.model, chat.ground_truth
    agent = agent_of(talk.participants.values(), notes) if talk.has_names else ""
    dims = {"model": model} if model else {}
    if agent:
        dims["agent"] = agent
    return Conversation(
        id=chat.conversation_id or chat.id or raw.name,
        dimensions=dims,
        source=Source(format=format, files=raw.files, record=raw.name),
        pipeline="text",
        participants=tuple(talk.participants.values()),
        clocks=tuple(talk.clocks.values()),
        agent=Agent(
            name=agent, instructions="\n\n".join(talk.instructions), tools=tools, models={"llm": model} if model else {}
        ),
        expected=_NOTHING_EXPECTED if truth is None else Expected(ground_truth=truth),
        timeline=tuple(talk.events),
        outcome=_NO_OUTCOME,
        extras={"metadata": kept} if kept else {},
    )


class _Talk:
    """The events of the messages of one chat."""

    __slots__ = ("clocks", "events", "has_names", "in_seconds", "inferred", "instructions", "notes", "participants")

    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.instructions: list[str] = []
        self.events: list[AnyEvent] = []
        self.participants: dict[str, Participant] = {}
        self.clocks: dict[str, Clock] = {}
        self.inferred: set[str] = set()
        self.has_names = False
        self.in_seconds = False
        """It was noted that times are seconds since the epoch."""

    def take(self, messages: list[Message]) -> None:
        events, participants = self.events, self.participants
        add = events.append
        seq = 0
        for message in messages:
            role, content, calls, at = message.role, message.content, message.tool_calls, message.timestamp
            if seq == 0 and role in _INSTRUCT:
                self._instruct(message)
                continue
            if at is None or at == "":
                time = None
            elif self.in_seconds and type(at) is float and _FIRST_SECOND <= at < _LAST_SECOND:
                time = Time(at)
            else:
                time = self._time(at)
            id = message.id or ""
            if role == "tool":
                if calls:
                    raise _Odd
                add(self._result(message, seq, time, id))
                seq += 1
                continue
            if message.tool_call_id:
                raise _Odd
            speaker = _SPEAKERS[role]
            if message.name:
                speaker = self._named(speaker, message.name)
            elif speaker not in participants:
                participants[speaker] = _PARTICIPANTS[speaker]
            if content and not content.isspace():
                add(Utterance(seq=seq, speaker=speaker, intended=_text(content, role), time=time, id=id))
                id = ""
                seq += 1
            elif not calls:
                raise _Odd
            if calls:
                for call in calls:
                    add(_call(call, seq, time, id))
                    id = ""
                    seq += 1

    def _named(self, role: str, name: str) -> str:
        """As `Timeline.participant`."""
        speaker = f"{role}:{name}"
        self.has_names = True
        if speaker not in self.participants:
            self.participants[speaker] = Participant(speaker, role, name)
        return speaker

    def _instruct(self, message: Message) -> None:
        """A system prompt. Its other fields would be kept in the extras of the conversation."""
        if message.id or message.name or message.tool_calls or message.tool_call_id:
            raise _Odd
        if message.timestamp is not None and message.timestamp != "":
            raise _Odd
        self.instructions.append(message.content or "")

    def _time(self, value: float | str) -> Time:
        """As `Timeline.time`: what had to be concluded is noted once."""
        read = moment(value)
        if read is None:
            raise _Odd
        if read.inferred and read.inferred not in self.inferred:
            self.inferred.add(read.inferred)
            self.notes.inferred(read.inferred, repr(value)[:80], len(self.events))
            self.in_seconds = "time_in_epoch_s" in self.inferred
        self.clocks.setdefault(read.kind, _CLOCKS[read.kind])
        return Time(read.at, read.kind)

    def _result(self, message: Message, seq: int, time: Time | None, id: str) -> ToolResult:
        value: Any = message.content
        if value is not None and value.lstrip().startswith(("{", "[")):
            value = _decode(value)
        return ToolResult(
            seq=seq,
            name=message.name or "",
            call_id=message.tool_call_id or "",
            result=value,
            time=time,
            id=id,
        )


def _text(content: str, role: str) -> Text:
    if may_hold_control(content, role) or (content[:5] == "data:" or content[:6] == "event:"):
        raise _Odd
    return Text(content, "message.content")


def _call(call: TypedToolCall, seq: int, time: Time | None, id: str) -> ToolCall:
    function = call.function
    if not function.name:
        raise _Odd
    arguments = function.arguments
    if type(arguments) is str:
        arguments = _decode(arguments) if arguments.strip() else None
    return ToolCall(seq=seq, name=function.name, arguments=arguments, call_id=call.id, time=time, id=id)


_MOST_KNOWN = 64
_LONGEST_KNOWN = 256 * 1024
_known: dict[bytes, tuple[Tool, ...]] = {}
"""Lists of tools by their JSON: the chats of a log mostly have the same."""


def _tools_of(raw: msgspec.Raw, text: bytes) -> tuple[Tool, ...] | None:
    written = bytes(raw)
    if not written:
        return None
    # Of a name that is there twice, also with escaped characters, only the last value is here.
    if text.count(b'"tools"') != 1 or b"\\u006" in text or b"\\u007" in text:
        raise _Odd
    tools_before = _known.get(written)
    if tools_before is not None:
        return tools_before
    if written[:1] != b"[":
        raise _Odd
    try:
        tools = read_tools(_decode(written))
    except UnicodeDecodeError:
        raise _Odd from None
    if len(written) <= _LONGEST_KNOWN:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        _known[written] = tools
    return tools
