"""LiveKit session reports and chat histories."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Agent,
    AudioFile,
    Conversation,
    Outcome,
    Segment,
    Text,
    Time,
    Tool,
    Track,
)
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.call_exports import OTHER, CallTimeline, SpokenSpan
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import (
    Fields,
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    from_milliseconds,
    in_order,
    take_content,
    wall,
)
from convoscope.ingest.report import Notes
from convoscope.text.patterns import lazy_pattern
from convoscope.views.standard_data.payloads.metrics_collected import COMPONENT_FIELDS, METADATA, SPEAKING

_OF_A_REPORT = frozenset({"job_id", "room_id", "room", "sdk_version", "close_reason", "events", "chat_history"})
_ENOUGH = 3
"""With so many of these names it is a report, also without a chat history."""
_OF_AN_ITEM = frozenset({"interrupted", "created_at", "createdAt", "metrics", "transcript_confidence", "is_error"})
_OWN_ITEMS = frozenset({"agent_handoff", "agent_config_update"})
_EXPECTED = 'expected {"chat_history": {"items": [{"type": "message", "role": …, "content": […]}]}}'
_NO_HISTORY = "write the report with its chat history or its events: both may be left out"

# A reason of the close event, and whether that is a natural end. A job may be shut down after all was said.
_ENDS = {
    "participant_disconnected": True,
    "user_initiated": True,
    "task_completed": True,
    "completed": True,
    "error": False,
}
_USAGE = {"llm_usage": "llm", "stt_usage": "stt", "tts_usage": "tts"}
_USUAL = frozenset(
    {"job_id", "room_id", "room", "options", "usage", "timestamp", "sdk_version", "tags", "user_turns", "errors"}
    | {"started_at", "audio_recording_started_at", "chat_history", "model_usage"}
)
_ITEMS = frozenset({"message", "function_call", "function_call_output", "agent_handoff", "agent_config_update"})

_ROLES = {"user": USER, "assistant": ASSISTANT, "system": SYSTEM, "developer": SYSTEM}
_ALIASES = {"args": "arguments"}
_CAMEL = lazy_pattern(r"(?<=[a-z0-9])([A-Z])")
_MARKUP = lazy_pattern(r"</?expr\b[^<>]*>")

_RATES = frozenset({"llm_node_tps"})
_METRICS = {name: (type.removesuffix("_metrics"), field) for name, (type, field) in COMPONENT_FIELDS.items()} | {
    "e2e_latency": ("turn", "e2e_latency")
}
"""The name in a message's metrics, and what the latency metrics read: part of the stack, name."""
_ZERO_IS_NONE = frozenset({"end_of_turn_delay"})
_MODELS = {name: type.removesuffix("_metrics") for name, type in METADATA.items()} | {"stt_metadata": "stt"}
_LONGEST = 60.0
"""Where the clock counts milliseconds, a wait of more than a minute is taken to be in milliseconds too."""

_SPEAKING = {"user_state_changed": USER, "agent_state_changed": ASSISTANT}
_REPEATED = frozenset(
    {"conversation_item_added", "function_tools_executed", "speech_created", "session_usage_updated"}
    | {"tool_execution_updated", "metrics_collected", "debug_message"}
)
"""Events that repeat the items, or say how the session worked inside."""
_MARKED = frozenset(
    {"error", "close", "agent_false_interruption", "overlapping_speech", "eot_prediction", "user_turn_exceeded"}
    | {"user_transcription_timeout", "agent_backchannel_opportunity", "user_input_transcribed", "user_state_changed"}
)
_USUAL_IN_ITEM = frozenset({"content", "created_at", "extra", "group_id", "reply_required", "metrics", "hash"})


class _History(CallTimeline):
    """Puts items and events in one order and writes them on a self."""

    def __init__(self, notes: Notes, items: Sequence[Any], events: Sequence[Any]) -> None:
        super().__init__(notes, "created_at")
        self.session_events = [_snake_case(event, notes) for event in events if isinstance(event, dict)]
        self.items = self._all_items(items)
        self.models: dict[str, str] = {}
        self.instructions = ""
        self.tools: dict[str, None] | None = None
        self.close_reason, self.close_error = "", ""
        self.per_second = 1.0

    def _all_items(self, listed: Sequence[Any]) -> list[JsonObject]:
        """The history, and what only the events have where the history is missing or was cut."""
        items: list[JsonObject] = []
        for entry in listed:
            if isinstance(entry, dict):
                items.append(_snake_case(entry, self.notes))
            else:
                self.notes.set_aside("item_not_an_object", repr(entry)[:80])
        seen = {as_text(item.get("id")) for item in items} | {_call_key(item) for item in items}
        added = 0
        for item in _items_of_events(self.session_events):
            keys = {as_text(item.get("id")), _call_key(item)} - {""}
            if keys and not keys & seen:
                seen |= keys
                items.append(item)
                added += 1
        if added:
            self.notes.inferred("item_from_an_event", f"{added} times")
            items = [items[index] for index in in_order([_at(item.get("created_at")) for item in items])]
        return items

    def write(self) -> None:
        messages = [item for item in self.items if item.get("type") == "message"]
        self.per_second = self._unit_of_durations(messages)
        sounds, spare = self._sounds(messages)
        speech = _speech_ids(self.items)
        user_text = " ".join(
            as_text(take_content(dict(item), Notes(), 0).text) for item in messages if _is_of(item, USER)
        )
        first = next((item for item in self.items if item.get("type") == "agent_handoff"), None)
        if first is not None and as_text(first.get("old_agent_id")):
            self.enter(as_text(first["old_agent_id"]), self.time(self.items[0].get("created_at")))
        # The list says in which order the items came; events go between them by their times.
        times = accumulate(
            (-math.inf if (at := _at(item.get("created_at"))) is None else at for item in self.items), max
        )
        steps: list[tuple[float, Callable[[], None]]] = [
            (at, partial(self._item, item, sounds.get(id(item), ()), speech_id))
            for at, item, speech_id in zip(times, self.items, speech, strict=True)
        ]
        steps += [
            (_at(event.get("created_at")) or math.inf, partial(self._event, event, user_text))
            for event in self.session_events
        ]
        steps += [(one.start, partial(self._unheard, one)) for one in spare]
        for _, write in sorted(steps, key=lambda step: step[0]):
            write()
        called = {as_text(item.get("name")) for item in self.items if item.get("type") == "function_call"}
        if self.tools is not None and not called <= self.tools.keys():
            # Only some of the agents said what they were given: that is no list of all tools.
            self.notes.ignored("incomplete_list_of_tools", ", ".join(sorted(called - self.tools.keys()))[:80])
            self.tools = None

    def _unit_of_durations(self, messages: Sequence[JsonObject]) -> float:
        """JavaScript counts milliseconds; whether a message does is known by the size of its numbers."""
        clocks = [at for item in messages if (at := as_number(item.get("created_at"))) is not None]
        waits = [
            abs(seconds)
            for item in messages
            for name in _METRICS.keys() - _RATES
            if (seconds := as_number(as_object(item.get("metrics")).get(name))) is not None
        ]
        if any(at >= 1e11 for at in clocks) and any(wait > _LONGEST for wait in waits):
            self.notes.inferred("metrics_in_milliseconds", f"up to {max(waits):g}")
            return 1000.0
        return 1.0

    def _sounds(self, messages: Sequence[JsonObject]) -> tuple[dict[int, list[SpokenSpan]], list[SpokenSpan]]:
        """The spans of sound of each message, and those that belong to no message.

        A message has its own. Where it does not, the changes of state have them: an agent's message is made
        when it begins to be said, a user's when all was heard.
        """
        sounds: dict[int, list[SpokenSpan]] = {}
        for item in messages:
            start, end = (wall(as_object(item.get("metrics")).get(name)) for name in SPEAKING)
            if start is None or end is None:
                continue
            if end < start:
                self.notes.set_aside("stopped_before_started", f"{as_text(item.get('id'))}: {start} to {end}"[:80])
            else:
                sounds[id(item)] = [SpokenSpan(_ROLES.get(as_text(item.get("role")), ""), start, end)]
        spare: list[SpokenSpan] = []
        for span in self._spans():
            same_side = [other for spans in sounds.values() for other in spans if other.role == span.role]
            if any(span.start < other.end and other.start < span.end for other in same_side):
                continue
            owner = _owner(span, [item for item in messages if _is_of(item, span.role)])
            if owner is None or as_object(owner.get("metrics")).keys() & set(SPEAKING):
                spare.append(span)
            else:
                sounds.setdefault(id(owner), []).append(span)
        return sounds, spare

    def _spans(self) -> Iterator[SpokenSpan]:
        since: dict[str, float] = {}
        for event in self.session_events:
            role, at = _SPEAKING.get(as_text(event.get("type"))), wall(event.get("created_at"))
            if role is None or at is None:
                continue
            if event.get("new_state") == "speaking":
                since.setdefault(role, at)
            elif role in since:
                start = since.pop(role)
                if at > start:
                    yield SpokenSpan(role, start, at)

    def _item(self, item: JsonObject, sounds: Sequence[SpokenSpan], speech: str) -> None:
        fields = Fields(item, "item", self.notes, _USUAL_IN_ITEM)
        kind = as_text(fields.pop("type", None)) or ("message" if "role" in fields else "")
        time = self.time(fields.get("created_at"))
        if time is not None and not sounds:
            del fields["created_at"]
        if kind == "message":
            self._message(fields, time, sounds, speech)
            return
        if kind == "agent_handoff":
            self._hand_over(fields, time)
            return
        id = fields.text("id")
        if kind not in ("function_call", "function_call_output"):
            if kind == "agent_config_update":
                self._configure(fields)
            else:
                self.notes.unknown(f"item.type={kind}", self.seq)
            self.mark(kind or "item", filled(fields), time, id)
            return
        call_id, name = fields.text("call_id") or id, fields.text("name")
        if kind == "function_call":
            arguments, extras = fields.pop("arguments", None), fields.rest(self.seq)
            self.call(name, arguments, call_id=call_id, time=time, id=id, extras=extras)
            return
        content, failed = fields.pop("output", None), fields.pop("is_error", None)
        worked, unstated = not failed if isinstance(failed, bool) else None, (as_text(content) or "error")[:500]
        where: JsonObject = {"call_id": call_id, "name": name, "time": time, "id": id}
        self.answer(content, worked, error_if_unstated=unstated, extras=fields.rest(self.seq), **where)

    def _message(self, fields: Fields, time: Time | None, sounds: Sequence[SpokenSpan], speech: str) -> None:
        role_name = as_text(fields.pop("role", None))
        role, id = _ROLES.get(role_name, role_name or ASSISTANT), fields.text("id")
        content = take_content(fields, self.notes, self.seq)
        metrics, cut = fields.pop("metrics", None), fields.pop("interrupted", None) is True
        confidence = as_number(fields.pop("transcript_confidence", None))
        fields["content"] = content.parts
        extras = fields.rest(self.seq)
        if role == SYSTEM and not self.instructions:
            self.instructions = content.text
            if extras:
                self.mark("instructions", extras, time, id)
            return
        if as_object(fields.get("extra")).get("is_summary") is True:
            self.mark("chat_history_summary", content.text, time, id)
            return
        plain = _MARKUP.sub("", content.text) if role == ASSISTANT else content.text
        plain = " ".join(plain.split()) if plain != content.text else plain
        if cut and plain != content.text:
            extras["content"] = content.text
        text = Text(content.text, "content", confidence=confidence) if content.text else None
        segments = [Segment(span.start, span.end, "wall") for span in sounds]
        self.say(
            self.participant(role),
            time=time,
            id=id,
            # What was cut off is what was played; the text that was meant is unknown.
            intended=None if role == USER or cut else text,
            spoken=Text(plain, "content") if role == ASSISTANT and text else None,
            heard=text if role == USER else None,
            segments=segments,
            cut_off_by=self.participant(OTHER.get(role, ASSISTANT)) if cut else "",
            extras=extras,
        )
        if segments:
            self._declare_wall(segments[0].start)
        self._measure_message(metrics, self.events[-1].time, speech)

    def _measure_message(self, metrics: Any, time: Time | None, speech: str) -> None:
        parts: dict[str, JsonObject] = {}
        left: JsonObject = {}
        for name, value in as_object(metrics).items():
            number = as_number(value)
            if name in _METRICS and number is not None:
                part, called = _METRICS[name]
                is_rate = name in _RATES
                if not is_rate and (number < 0 or (number == 0 and name in _ZERO_IS_NONE)):
                    self.notes.ignored(f"{name}_says_none", f"{number:g}", self.seq)
                    left[name] = value
                else:
                    parts.setdefault(part, {})[called] = number if is_rate else number / self.per_second
            elif name in _MODELS and isinstance(value, dict):
                part, model = _MODELS[name], as_text(value.get("model_name"))
                if model:
                    self.models.setdefault(part, model)
                    parts.setdefault(part, {})["model"] = model
                if as_text(value.get("model_provider")):
                    parts.setdefault(part, {})["provider"] = value["model_provider"]
            elif name not in SPEAKING and value is not None:
                left[name] = value
        if left and not parts:
            parts["turn"] = {}
        for component, values in parts.items():
            self.measure(component, values, speech, time=time, extras=left)
            left = {}

    def _hand_over(self, fields: Fields, time: Time | None) -> None:
        old, new = fields.text("old_agent_id"), fields.text("new_agent_id")
        if not new:
            self.notes.set_aside("handoff_to_nobody", repr(dict(fields))[:80], self.seq)
            self.mark("agent_handoff", filled({**fields, "old_agent_id": old}), time)
            return
        here = self.current
        if here and old and old != here:
            self.notes.repaired("handoff_from_another_agent", f"{old}, but {here} spoke", self.seq)
        id = fields.text("id")
        self.move(new, time, extras=fields, id=id)

    def _configure(self, fields: JsonObject) -> None:
        added, removed = fields.get("tools_added"), fields.get("tools_removed")
        if isinstance(added, list):
            self.tools = {**(self.tools or {}), **{as_text(one): None for one in added if as_text(one)}}
        if isinstance(removed, list) and self.tools is None:
            self.tools = {as_text(one): None for one in removed if as_text(one)}
        if not self.instructions:
            self.instructions = as_text(fields.get("instructions"))

    def _event(self, event: JsonObject, user_text: str) -> None:
        fields = dict(event)
        kind = as_text(fields.pop("type", None))
        if kind in _REPEATED or (kind in _SPEAKING and fields.get("new_state") != "away"):
            self.notes.ignored(f"event.{kind}")
            return
        transcript = as_text(fields.get("transcript")).strip()
        if kind == "user_input_transcribed" and (fields.get("is_final") is not True or transcript in user_text):
            self.notes.ignored("event.user_input_transcribed")
            return
        if kind not in _MARKED:
            self.notes.unknown(f"event.type={kind}", self.seq)
        if kind == "close":
            self.close_reason = as_text(fields.get("reason"))
            error = as_object(fields.get("error"))
            details = [as_text(error.get(name)) for name in ("type", "label", "message")]
            self.close_error = ": ".join(filter(None, details)) or as_text(fields.get("error"))
        time = self.time(fields.get("created_at"))
        if time is not None:
            del fields["created_at"]
        name = "user_away" if kind in _SPEAKING else kind or "event"
        self.mark(name, filled(fields) or None, time)

    def _unheard(self, span: SpokenSpan) -> None:
        """Sound without words."""
        self._declare_wall(span.start)
        name = "user_speaking" if span.role == USER else "agent_speaking"
        speaker = self.participant(span.role)
        self.mark(name, time=Time(span.start, "wall", span.end), participant=speaker)

    def _declare_wall(self, at: float) -> None:
        if not any(clock.id == "wall" for clock in self.clocks):
            self.time(at)


def _snake_case(record: JsonObject, notes: Notes, depth: int = 0) -> JsonObject:
    """The names as Python writes them; JavaScript writes camelCase. What a user put in stays as it is."""
    plain_names: JsonObject = {}
    renamed = False
    for name, value in record.items():
        plain = _CAMEL.sub(lambda hit: "_" + hit[1].lower(), name)
        plain = _ALIASES.get(plain, plain)
        renamed = renamed or plain != name
        nested = plain in ("metrics", "item", "error", "llm_metadata", "tts_metadata", "stt_metadata")
        inner = _snake_case(value, notes, depth + 1) if nested and isinstance(value, dict) and depth < 4 else value
        plain_names.setdefault(plain, inner)
    if renamed and not any(note.code == "names_in_camel_case" for note in notes.taken):
        notes.inferred("names_in_camel_case", "written by the JavaScript SDK")
    return plain_names


def _items_of_events(events: Sequence[JsonObject]) -> Iterator[JsonObject]:
    for event in events:
        kind = as_text(event.get("type"))
        if kind == "conversation_item_added" and isinstance(event.get("item"), dict):
            yield event["item"]
        elif kind == "function_tools_executed":
            for name, type in (("function_calls", "function_call"), ("function_call_outputs", "function_call_output")):
                for item in as_list(event.get(name)):
                    if isinstance(item, dict):
                        yield {"type": type, **_snake_case(item, Notes())}


def _call_key(item: JsonObject) -> str:
    call = as_text(item.get("call_id"))
    return f"{as_text(item.get('type'))} {call}" if call else ""


def _speech_ids(items: Sequence[JsonObject]) -> list[str]:
    """The speech that each item is a part of: an agent's message, and what the user said before it."""
    ids: list[str] = []
    following = ""
    for index, item in reversed(list(enumerate(items))):
        own = as_text(item.get("id")) or f"item-{index}"
        if _is_of(item, ASSISTANT):
            following = own
        ids.append(following or own)
        if _is_of(item, USER):
            following = ""
    return ids[::-1]


def _owner(span: SpokenSpan, messages: Sequence[JsonObject]) -> JsonObject | None:
    timed = [(at, item) for item in messages if (at := wall(item.get("created_at"))) is not None]
    if span.role == ASSISTANT:
        return next((item for at, item in reversed(timed) if at <= span.end), None)
    return next((item for at, item in timed if at >= span.start), None)


def _is_of(item: JsonObject, role: str) -> bool:
    return item.get("type") == "message" and _ROLES.get(as_text(item.get("role"))) == role


def _at(value: Any) -> float | None:
    read = moment(value)
    return None if read is None else read.at


class LiveKitReader(Reader):
    """Session reports, and the chat history of a session by itself."""

    name = "livekit"
    title = "LiveKit session reports and chat histories"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if not isinstance(value, dict):
                continue
            if any(_is_item(item) for item in _items(value, "chat_history")):
                return Detection(0.95, '"chat_history" holds the items of a session')
            if len(value.keys() & _OF_A_REPORT) >= _ENOUGH and {"room_id", "job_id"} & value.keys():
                return Detection(0.9, "the report of a session")
            own = (item for item in _items(value) if _is_item(item))
            # Items that no other format writes.
            if any(as_text(item["type"]) in _OWN_ITEMS or _OF_AN_ITEM & item.keys() for item in own):
                return Detection(0.9, '"items" are the items of a chat history')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            if not isinstance(record.value, dict):
                raise InputError("is not a report or a chat history", field="chat_history", hint=_EXPECTED)
            yield self._conversation(record.value, group, notes)

    def _conversation(self, value: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
        plain = _snake_case(value, notes) if "jobId" in value or "chatHistory" in value else value
        report = Fields(plain, "report", notes, _USUAL)
        history, listed = report.get("chat_history"), report.pop("events", None)
        items = _items(report, "chat_history") if history is not None else _items(report)
        if isinstance(history, dict):
            report["chat_history"] = {name: one for name, one in history.items() if name != "items"}
        elif history is None:
            report.pop("items", None)
        timeline = _History(notes, items, as_list(listed))
        if not timeline.items:
            raise InputError("has no chat history", field="chat_history.items", hint=_NO_HISTORY)
        timeline.write()
        reason = report.text("close_reason") or timeline.close_reason
        code = reason.removeprefix("CR_").lower()
        outcome = Outcome(
            finished=_ENDS.get(code),
            ended_reason=reason,
            error=(timeline.close_error or reason) if code == "error" else "",
            duration=from_milliseconds(report.pop("duration_ms", None)),
        )
        recording = _recording(report, group.path, timeline)
        usage = [as_object(entry) for entry in as_list(report.get("usage"))]
        models: dict[str, str] = {}
        for entry in usage:
            part, model = _USAGE.get(as_text(entry.get("type"))), as_text(entry.get("model"))
            if part and model:
                models.setdefault(part, model)
        models |= timeline.models
        # Three parts that each have a model are a cascade; a language model that takes sound itself is not one.
        is_cascade = bool(models.keys() & {"tts", "stt"})
        is_s2s = not is_cascade and any(as_number(entry.get("input_audio_tokens")) for entry in usage)
        if is_s2s:
            notes.inferred("pipeline_s2s", "the language model was given sound, and no other model is named")
        name = report.text("agent_name")
        dims = {"agent": name, "flow": name if timeline.current else "", "model": models.get("llm", "")}
        ids = (as_text(report.get(field)) for field in ("room_id", "job_id", "room"))
        tools = None if timeline.tools is None else tuple(Tool(name=tool) for tool in timeline.tools)
        return timeline.conversation(
            self,
            group,
            next(filter(None, ids), group.name),
            group.name,
            dimensions=filled(dims),
            pipeline="cascade" if is_cascade else "s2s" if is_s2s else None,
            agent=Agent(name=name, instructions=timeline.instructions, tools=tools, models=models),
            outcome=outcome,
            recording=recording,
            extras=report.rest(),
        )


def _items(value: Any, inside: str = "") -> Sequence[Any]:
    holder = value.get(inside) if inside and isinstance(value, dict) else value
    if isinstance(holder, list) and inside:
        return holder
    return as_list(as_object(holder).get("items"))


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and as_text(item.get("type")) in _ITEMS


def _recording(report: Fields, file: Path, timeline: CallTimeline) -> AudioFile | None:
    path = report.text("audio_recording_path")
    if not path:
        return None
    # The report names the agent's own disk; a recording that was copied along is in the folder of the report.
    name = path.replace("\\", "/").rpartition("/")[2]
    started = timeline.time(report.pop("audio_recording_started_at", None))
    location = name if name and (file.parent / name).is_file() else path
    return AudioFile(tracks=(Track(path=location, format=Path(name).suffix.removeprefix("."), started=started),))


READER = LiveKitReader()
