"""LiveKit session reports and chat histories."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from convoscope.conversation import Agent, AudioFile, Conversation, Outcome, Source, Tool, Track
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.formats.livekit.history import ITEMS, History, snake_case
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import (
    JsonObject,
    as_list,
    as_number,
    as_object,
    as_text,
    filled,
    from_milliseconds,
    leftovers,
    take_text,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

VENDOR = "livekit"

_OF_A_REPORT = frozenset({"job_id", "room_id", "room", "sdk_version", "close_reason", "events", "chat_history"})
_ENOUGH = 3
"""So many of these names tell a report that has no chat history."""
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


class LiveKitReader(Reader):
    """Session reports, and the chat history of a session by itself."""

    name = VENDOR
    title = "LiveKit session reports and chat histories"

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            if not isinstance(value, dict):
                continue
            if any(_is_item(one) for one in _items(value, "chat_history")):
                return Detection(0.95, '"chat_history" holds the items of a session')
            if len(value.keys() & _OF_A_REPORT) >= _ENOUGH and {"room_id", "job_id"} & value.keys():
                return Detection(0.9, "the report of a session")
            if any(_is_own(one) for one in _items(value)):
                return Detection(0.9, '"items" are the items of a chat history')
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        for record in group.records:
            if not isinstance(record.value, dict):
                raise InputError("is not a report or a chat history", field="chat_history", hint=_EXPECTED)
            yield _conversation(record.value, group, notes)


def _items(value: Any, inside: str = "") -> Sequence[Any]:
    holder = value.get(inside) if inside and isinstance(value, dict) else value
    if isinstance(holder, list) and inside:
        return holder
    return as_list(as_object(holder).get("items"))


def _is_item(item: Any) -> bool:
    return isinstance(item, dict) and as_text(item.get("type")) in ITEMS


def _is_own(item: Any) -> bool:
    """An item that no other format writes."""
    return _is_item(item) and (as_text(item["type"]) in _OWN_ITEMS or bool(_OF_AN_ITEM & item.keys()))


def _conversation(value: JsonObject, group: RecordGroup, notes: Notes) -> Conversation:
    facts = snake_case(value, notes) if "jobId" in value or "chatHistory" in value else dict(value)
    history, listed = facts.get("chat_history"), facts.pop("events", None)
    items = _items(facts, "chat_history") if history is not None else _items(facts)
    if isinstance(history, dict):
        facts["chat_history"] = {name: one for name, one in history.items() if name != "items"}
    elif history is None:
        facts.pop("items", None)
    timeline = TimelineBuilder(notes, "created_at")
    read = History(timeline, items, as_list(listed))
    if not read.items:
        raise InputError("has no chat history", field="chat_history.items", hint=_NO_HISTORY)
    read.write()
    outcome = _outcome(facts, read)
    recording = _recording(facts, group.path, timeline)
    models = _models(facts.get("usage")) | read.models
    name = take_text(facts, "agent_name")
    dims = {"agent": name, "flow": name if read.states.seen else "", "model": models.get("llm", "")}
    id = as_text(facts.get("room_id")) or as_text(facts.get("job_id")) or as_text(facts.get("room"))
    extras = leftovers(facts, _USUAL, "report", notes)
    return Conversation(
        id=id or group.name,
        dimensions=filled(dims),
        source=Source(format=VENDOR, files=group.file_names, record=group.name),
        pipeline=_pipeline(models, facts.get("usage"), notes),
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(
            name=name,
            instructions=read.instructions,
            tools=None if read.tools is None else tuple(Tool(name=tool) for tool in read.tools),
            models=models,
        ),
        timeline=tuple(timeline.events),
        outcome=outcome,
        recording=recording,
        extras=extras,
    )


def _outcome(facts: JsonObject, read: History) -> Outcome:
    reason = take_text(facts, "close_reason") or read.close_reason
    code = reason.removeprefix("CR_").lower()
    return Outcome(
        finished=_ENDS.get(code),
        ended_reason=reason,
        error=(read.close_error or reason) if code == "error" else "",
        duration=from_milliseconds(facts.pop("duration_ms", None)),
    )


def _recording(facts: JsonObject, report: Path, timeline: TimelineBuilder) -> AudioFile | None:
    path = take_text(facts, "audio_recording_path")
    if not path:
        return None
    # The report names the agent's own disk; a recording that was brought along lies beside the report.
    beside = path.replace("\\", "/").rpartition("/")[2]
    started = timeline.time(facts.pop("audio_recording_started_at", None))
    location = beside if beside and (report.parent / beside).is_file() else path
    return AudioFile(tracks=(Track(path=location, format=Path(beside).suffix.removeprefix("."), started=started),))


def _models(usage: Any) -> dict[str, str]:
    models: dict[str, str] = {}
    for usage_entry in as_list(usage):
        entry = as_object(usage_entry)
        part, model = _USAGE.get(as_text(entry.get("type"))), as_text(entry.get("model"))
        if part and model:
            models.setdefault(part, model)
    return models


def _pipeline(models: dict[str, str], usage: Any, notes: Notes) -> Pipeline | None:
    """Three parts that each have a model are a cascade; one that alone takes and gives sound is none."""
    if models.keys() & {"tts", "stt"}:
        return "cascade"
    audio_tokens = [as_number(as_object(one).get("input_audio_tokens")) for one in as_list(usage)]
    if any(audio_tokens):
        notes.inferred("pipeline_s2s", "the language model was given sound, and no other model is named")
        return "s2s"
    return None


READER = LiveKitReader()
