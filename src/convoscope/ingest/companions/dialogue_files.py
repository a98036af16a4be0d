"""What lies beside schema-guided dialogues, two kinds of companion: their acts, and the schema of their services."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from convoscope.conversation import Agent, Conversation, Frame, Tool
from convoscope.errors import InputError
from convoscope.ingest.companions.prediction_shapes import dialogue_key
from convoscope.ingest.formats.multiwoz import read_acts, read_spans
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Detection, Sample
from convoscope.ingest.record import as_list, as_object, as_text
from convoscope.ingest.report import Notes

_ACTS = ("dialog_act", "dialogue_acts")
_READERS = ("multiwoz", "sgd")
_HEAD = 64 * 1024


class DialogueActs:
    """The `dialog_acts.json` of MultiWOZ 2.2: acts and spans by dialogue and turn."""

    format = "multiwoz"

    def detect(self, sample: Sample) -> Detection | None:
        is_acts = any(_is_acts(value) for value in sample.values)
        return Detection(1.2, "dialogue acts, matched to turns by dialogue and id", "companion") if is_acts else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        del path, name, is_named
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Callable[[Conversation, Notes], Conversation] | None:
        if reader != self.format:
            return None
        acts = _content(files, b"dialog", _is_acts)
        return None if acts is None else lambda conversation, notes: attach_acts(conversation, acts, notes)


class DialogueSchema:
    """The `schema.json` of schema-guided dialogues: what services offer, as tools of the agent."""

    format = "dialogue-schema"

    def detect(self, sample: Sample) -> Detection | None:
        is_schema = bool(sample.values) and all(_is_service(value) for value in sample.values)
        return Detection(0.98, "services with slots and intents", "companion") if is_schema else None

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        del path, name, is_named
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Callable[[Conversation, Notes], Conversation] | None:
        if reader not in _READERS:
            return None
        schema = _content(files, b'"service_name"', _is_schema)
        return None if schema is None else lambda conversation, _: attach_schema(conversation, schema)


def _is_acts(value: Any) -> bool:
    turns = [turn for dialogue in list(as_object(value).values())[:5] for turn in as_object(dialogue).values()]
    return bool(turns) and all(any(name in as_object(turn) for name in _ACTS) for turn in turns)


def _is_service(value: Any) -> bool:
    return isinstance(value, dict) and as_text(value.get("service_name")) != "" and "intents" in value


def _is_schema(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(_is_service(one) for one in value)


def _content(paths: Sequence[Path], sign: bytes, is_ours: Callable[[Any], bool]) -> Any:
    """The value of the nearest file that is of a kind; None without one."""
    for path in paths:
        try:
            if sign in files.head_of(path, _HEAD) and is_ours(value := _decoded(path, path.stat().st_mtime_ns)):
                return value
        except (BadJson, InputError, OSError):
            continue
    return None


@lru_cache(maxsize=4)
def _decoded(path: Path, stamp: int) -> Any:
    """Read once as long as the file stays the same."""
    del stamp
    return decode(files.whole(path)).value


def attach_acts(conversation: Conversation, acts: Mapping[str, Any], notes: Notes) -> Conversation:
    """The dialogue with the acts of its turns. Turns that the file does not know are not annotated."""
    turns = acts.get(conversation.id, acts.get(f"{conversation.id}.json"))
    if turns is None:
        key = dialogue_key(conversation.id)
        turns = next((value for id, value in acts.items() if dialogue_key(id) == key), None)
    if not isinstance(turns, dict):
        notes.set_aside("acts_missing", conversation.id)
        return conversation
    frames = list(conversation.frames)
    for utterance in conversation.utterances:
        annotated = as_object(turns.get(utterance.id))
        written = next((annotated[name] for name in _ACTS if isinstance(annotated.get(name), dict)), None)
        if written is None:
            continue
        read = read_acts(written)
        spans = read_spans(list(as_list(annotated.get("span_info"))), utterance.meant(), in_words=False)
        if not (read.is_whole and spans.is_whole):
            notes.set_aside("acts_unreadable", f"turn {utterance.id}", utterance.seq)
        frames.append(Frame(seq=utterance.seq, origin="gold", acts=read.acts or None, spans=spans.spans))
    return msgspec.structs.replace(conversation, frames=tuple(sorted(frames, key=lambda frame: frame.seq)))


def attach_schema(conversation: Conversation, schema: Sequence[Mapping[str, Any]]) -> Conversation:
    """The dialogue with the intents of its services as tools of the agent."""
    services = set(map(as_text, as_list(conversation.extras.get("services"))))
    tools = [
        _tool(service, intent)
        for service in schema
        if as_text(service["service_name"]) in services
        for intent in as_list(service.get("intents"))
        if isinstance(intent, dict) and as_text(intent.get("name"))
    ]
    if not tools:
        return conversation
    return msgspec.structs.replace(conversation, agent=Agent(tools=tuple(tools)))


def _tool(service: Mapping[str, Any], intent: Mapping[str, Any]) -> Tool:
    required = [as_text(one) for one in as_list(intent.get("required_slots")) if as_text(one)]
    optional = [as_text(one) for one in as_object(intent.get("optional_slots"))]
    return Tool(
        name=as_text(intent["name"]),
        description=as_text(intent.get("description")),
        arguments_schema={
            "type": "object",
            "properties": {name: {"type": "string"} for name in (*required, *optional)},
            "required": required,
        },
        kind=as_text(service["service_name"]),
    )
