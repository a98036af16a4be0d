"""Realtime voice sessions, event by event: OpenAI's events (also Azure's and xAI's), and Gemini Live's messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from convoscope.conversation import ASSISTANT, USER, Agent, Clock, ComponentMetric, Conversation, Segment, Source, Text
from convoscope.errors import InputError
from convoscope.ingest.kits.exchanges import TOKENS, numbers_in
from convoscope.ingest.kits.leftovers import with_leftovers
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.shapes import embedded, instructions_in, plain_messages
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled
from convoscope.ingest.report import Notes

_TEXTS = ("output_audio_transcript", "audio_transcript", "output_text", "text")
"""Names that events of what the model says have after `response.`, in both generations."""
_SETTINGS = ("session.created", "session.updated", "session.update")
_REALTIME = ("input_audio_buffer.", "conversation.item.", "response.output_audio", "response.audio")
_LIVE = ("setup", "serverContent", "toolCall", "client_content", "clientContent", "tool_response", "toolResponse")

_LIVE_TOKENS = {**TOKENS, "completion_tokens": ("responseTokenCount", *TOKENS["completion_tokens"])}
_KNOWN = frozenset(
    {"event_id", "delta", "audio", "audio_start_ms", "audio_end_ms", "content_index", "output_index"}
    | {"inputTranscription", "outputTranscription", "inlineData"}
)
"""Pieces of what comes whole, sound, and numbers that show in the order."""


class RealtimeReader(Reader):
    """The events of one session, sent and received."""

    name = "realtime"
    title = "realtime voice sessions"

    def detect(self, sample: Sample) -> Detection | None:
        events = [event for value in sample.values for event in _events(value)][:200]
        kinds = [as_text(event.get("type")) for event in events]
        if any(kind in _SETTINGS or kind.startswith(_REALTIME) for kind in kinds):
            return Detection(0.96, "events of a realtime session", "file")
        if sum(any(name in event for name in _LIVE) for event in events) > 1:
            return Detection(0.96, "messages of a Gemini Live session", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        session = _Session(notes)
        events = [event for record in group.records for event in _events(record.value)]
        seen: set[str] = set()
        for event in events:
            id = as_text(event.get("event_id"))
            if id and id in seen:
                notes.ignored("event_twice", f"{event.get('type')} {id}"[:80])
                continue
            seen.add(id)
            session.take(event)
        if not session.items:
            raise InputError("a realtime session in which nothing was said", hint="it holds only settings and sound")
        yield with_leftovers(session.conversation(group), events, notes, _KNOWN)


def _events(value: Any) -> Iterator[JsonObject]:
    """The events of a record: one event, a recording of a web socket, or an event inside of an envelope."""
    record = as_object(value)
    listed = record.get("interactions", record.get("events", record.get("messages")))
    if isinstance(value, list) or (isinstance(listed, list) and "type" not in record):
        for member in value if isinstance(value, list) else as_list(listed):
            yield from _events(member)
        return
    for name in ("data", "event", "message", "payload"):
        inner = as_object(embedded(record.get(name)))
        if inner and ("type" in inner or any(key in inner for key in _LIVE)):
            yield inner
            return
    if record:
        yield record


class _Item:
    """A message, a call or a result of a session; its text may come long after it began."""

    def __init__(self, kind: str = "message", role: str = "") -> None:
        self.kind, self.role = kind, role
        self.text, self.is_typed = "", False
        self.name, self.call_id, self.value = "", "", ""
        self.whole: JsonObject = {}
        self.start: float | None = None
        self.end: float | None = None
        self.is_cut_off = False
        self.failure = ""
        self.usage: JsonObject = {}


class _Session:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes
        self.items: dict[str, _Item] = {}
        """By id, in the order in which they began: what the user says is there before the answer to it."""
        self.settings: JsonObject = {}
        self.id = ""
        self._turn: _Item | None = None
        self._sent: dict[str, tuple[str, ...]] = {}
        """Items that a client sent without an id, by a name of our own: whose they are, and what they say."""
        self._before: set[tuple[str, str]] = set()
        """Of a session that goes on after the connection broke: who said what before, until something new is said."""

    def item(self, id: str) -> _Item:
        return self.items.setdefault(id or f"item {len(self.items)}", _Item())

    def take(self, event: JsonObject) -> None:
        kind = as_text(event.get("type"))
        if kind:
            self._take_event(kind, event)
        else:
            self._take_live(event)

    def _take_event(self, kind: str, event: JsonObject) -> None:
        id = as_text(event.get("item_id"))
        part = kind.removeprefix("response.")
        if kind in _SETTINGS:
            self.settings |= filled(as_object(event.get("session")))
            self.id = self.id or as_text(as_object(event.get("session")).get("id"))
            if kind == "session.created":
                self._before = {(item.role, item.text) for item in self.items.values() if item.text}
        elif kind.startswith("input_audio_buffer.speech_st"):
            item = self.item(id)
            item.role = USER
            start, end = as_number(event.get("audio_start_ms")), as_number(event.get("audio_end_ms"))
            item.start = item.start if start is None else start / 1000
            item.end = item.end if end is None else end / 1000
        elif isinstance(event.get("item"), dict):
            if not self._is_restated(kind, event["item"]):
                self._take_item(event["item"])
        elif "input_audio_transcription." in kind:
            self._take_transcript(kind.rpartition(".")[2], self.item(id), event)
        elif kind == "conversation.item.truncated":
            self.item(id).is_cut_off = True
        elif part.partition(".")[0] in _TEXTS:
            self._take_text(part, id, event)
        elif part == "function_call_arguments.done":
            item = self.item(id)
            item.kind, item.value = "function_call", as_text(event.get("arguments"))
            item.call_id, item.name = as_text(event.get("call_id")), as_text(event.get("name")) or item.name
        elif kind == "response.done":
            self._take_response(as_object(event.get("response")))
        elif kind == "error":
            self.notes.set_aside("session_error", as_text(as_object(event.get("error")).get("message"))[:120])

    def _take_transcript(self, part: str, item: _Item, event: JsonObject) -> None:
        if part == "completed":
            item.text = as_text(event.get("transcript"))
        elif part == "delta":
            item.text += as_text(event.get("delta"))
        elif part == "failed":
            item.failure = as_text(as_object(event.get("error")).get("message")) or "transcription failed"

    def _take_response(self, response: JsonObject) -> None:
        for output in map(as_object, as_list(response.get("output"))):
            self._take_item(output)
        if response.get("status") == "failed":
            failed = as_object(as_object(response.get("status_details")).get("error"))
            self.notes.set_aside("response_failed", as_text(failed.get("message", failed.get("code")))[:120])
        usage = numbers_in(as_object(response.get("usage")), TOKENS)
        if usage and self.items:
            item = self.item("")
            item.kind, item.usage = "usage", usage

    def _is_restated(self, kind: str, value: JsonObject) -> bool:
        """A server that takes up a broken session lists what was said in it, under new ids, before all that is new."""
        parts = [as_object(part) for part in as_list(value.get("content"))]
        text = "".join(as_text(part.get("transcript")) or as_text(part.get("text")) for part in parts)
        is_known = as_text(value.get("id")) in self.items
        if kind in ("conversation.item.added", "conversation.item.created", "conversation.item.done") and not is_known:
            if (as_text(value.get("role")), text) in self._before:
                self.notes.ignored("restated_item", text[:60])
                return True
        else:
            self._before = set()
        return False

    def _take_text(self, part: str, id: str, event: JsonObject) -> None:
        item = self.item(id)
        item.role = item.role or ASSISTANT
        if part.endswith(".delta"):
            item.text += as_text(event.get("delta"))
        elif part.endswith(".done"):
            item.text = as_text(event.get("transcript", event.get("text"))) or item.text

    def _take_item(self, value: JsonObject) -> None:
        id, kind = as_text(value.get("id")), as_text(value.get("type"))
        call_id = as_text(value.get("call_id"))
        if id:
            self._take_back(value)
        else:
            id = f"sent {len(self.items)}"  # mostly it comes back, with an id
            self._sent[id] = _content_of(value)
        item = self.item(id)
        item.kind, item.call_id, item.name = kind or item.kind, call_id, as_text(value.get("name")) or item.name
        item.role = as_text(value.get("role")) or item.role
        item.is_cut_off = item.is_cut_off or value.get("status") == "incomplete"
        item.value = as_text(value.get("arguments")) or as_text(value.get("output")) or item.value
        if kind == "mcp_call":  # the service calls the tool: one item is the call and its result
            item.whole = value
        for part in map(as_object, as_list(value.get("content"))):
            text = as_text(part.get("transcript")) or as_text(part.get("text"))
            item.is_typed = item.is_typed or part.get("type") == "input_text"
            item.text = text or item.text

    def _take_back(self, value: JsonObject) -> None:
        """An item that was sent without an id comes back with one: then it is there once."""
        id = next((id for id, content in self._sent.items() if content == _content_of(value)), "")
        if id and as_text(value.get("id")) not in self.items:
            del self._sent[id], self.items[id]

    def _take_live(self, event: JsonObject) -> None:
        """A message of Gemini Live, whose texts come in pieces until the turn is complete."""
        self.settings |= as_object(event.get("setup"))
        content = as_object(event.get("serverContent"))
        typed_in = as_text(as_object(event.get("realtimeInput", event.get("realtime_input"))).get("text"))
        if typed_in:
            item = self.item("")
            item.role, item.is_typed, item.text = USER, True, typed_in
        for turn in as_list(as_object(event.get("client_content", event.get("clientContent"))).get("turns")):
            for message in plain_messages(turn):
                item = self.item("")
                item.role, item.is_typed = as_text(message["role"]), True
                item.text = "\n".join(as_text(block.get("text")) for block in message["content"])
        parts = [as_object(part) for part in as_list(as_object(content.get("modelTurn")).get("parts"))]
        typed = "".join(as_text(part.get("text")) for part in parts if part.get("thought") is not True)
        for name, role in (("inputTranscription", USER), ("outputTranscription", ASSISTANT), ("", ASSISTANT)):
            text = as_text(as_object(content.get(name)).get("text")) if name else typed
            if text:
                if self._turn is None or self._turn.role != role:
                    self._turn = self.item("")
                    self._turn.role = role
                self._turn.text += text
        if content.get("interrupted") is True and self._turn is not None:
            self._turn.is_cut_off = True
        if content.get("turnComplete") or content.get("interrupted"):
            self._turn = None
        usage = numbers_in(as_object(event.get("usageMetadata")), _LIVE_TOKENS)
        if usage and self.items:
            item = self.item("")
            item.kind, item.usage = "usage", usage
        for call in map(as_object, as_list(as_object(event.get("toolCall")).get("functionCalls"))):
            item = self.item("")
            item.kind, item.name, item.call_id = "function_call", as_text(call.get("name")), as_text(call.get("id"))
            item.value = call.get("args")  # type: ignore[assignment]
        answers = as_object(event.get("tool_response", event.get("toolResponse"))).get("functionResponses")
        for answer in map(as_object, as_list(answers)):
            item = self.item("")
            item.kind, item.call_id = "function_call_output", as_text(answer.get("id"))
            item.value = answer.get("response")  # type: ignore[assignment]

    def conversation(self, group: RecordGroup) -> Conversation:
        timeline = PlainTimeline(self.notes, "audio of the session")
        for id, item in self.items.items():
            self._add(id, item, timeline)
        settings, model = self.settings, as_text(self.settings.get("model")).removeprefix("models/")
        tools = as_list(settings.get("tools"))
        has_segments = any(item.start is not None and item.end is not None for item in self.items.values())
        return Conversation(
            id=self.id or group.name,
            dimensions=filled({"model": model}),
            source=Source(format=RealtimeReader.name, files=group.file_names, record=group.name),
            pipeline="s2s",
            participants=timeline.participants,
            clocks=(Clock(id="audio", kind="audio", source="input_audio_buffer"),) if has_segments else (),
            agent=Agent(
                instructions=_instructions(settings),
                tools=read_tools(tools) if tools else None,
                models={"llm": model} if model else {},
            ),
            timeline=tuple(timeline.events),
        )

    def _add(self, id: str, item: _Item, timeline: PlainTimeline) -> None:
        if item.kind == "usage":
            timeline.add(ComponentMetric, component="llm", values=item.usage)
        elif item.kind == "mcp_call":
            whole = filled(item.whole)  # a call that did not fail has the error null
            for message in plain_messages(whole):
                timeline.add_plain(message)
        elif item.kind == "function_call":
            timeline.add_call({"id": item.call_id, "name": item.name, "input": item.value}, None)
        elif item.kind == "function_call_output":
            timeline.add_result({"tool_use_id": item.call_id, "content": item.value}, None)
        elif item.kind == "message" and item.role in (USER, ASSISTANT):
            is_segment = item.start is not None and item.end is not None and item.end >= item.start
            segments = [Segment(item.start, item.end, "audio")] if is_segment else []  # type: ignore[arg-type]
            if not item.text and not segments:
                self.notes.set_aside("utterance_without_text", item.failure[:120], timeline.seq)
                timeline.mark("utterance_without_text", {"role": item.role})
                return
            if not item.text:
                self.notes.set_aside("utterance_without_text", item.failure[:120], timeline.seq)
            words = Text(item.text, "transcript") if item.text else None
            timeline.say(
                timeline.participant(item.role),
                intended=words if item.is_typed else None,
                heard=words if item.role == USER and not item.is_typed else None,
                spoken=words if item.role == ASSISTANT else None,
                segments=segments,
                cut_off_by=timeline.participant(USER) if item.is_cut_off and item.role == ASSISTANT else "",
                id="" if id.startswith("item ") else id,
            )


def _content_of(item: JsonObject) -> tuple[str, ...]:
    """What an item is and says, but for its id."""
    parts = [as_object(part) for part in as_list(item.get("content"))]
    texts = [as_text(part.get("text")) or as_text(part.get("transcript")) for part in parts]
    named = (as_text(item.get(name)) for name in ("type", "role", "call_id", "output"))
    return (*named, *texts)


def _instructions(settings: JsonObject) -> str:
    blocks = [block for message in instructions_in(settings) for block in message["content"]]
    return "\n".join(as_text(block.get("text")) for block in blocks)


READER = RealtimeReader()
