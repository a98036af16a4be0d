"""One real sample of each format, and the ways to its fields, so that each can be made wrong."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from support.logs import EXAMPLES, write

Steps = tuple[str | int, ...]
"""The way to a value: a file, then keys and indexes."""


class LogSample(NamedTuple):
    """A conversation as its format writes it: the values of its files by name; those of `.jsonl` are lines."""

    files: Mapping[str, Any]
    id: str = ""
    """The id of the conversation, where other records with it would be taken for parts of it."""
    times: tuple[str, ...] = ()
    """Fields that hold a time of the wall clock."""
    copies: tuple[str, ...] = ()
    """Files and fields that say again what others say; they count only where those are missing."""
    withheld: tuple[str, ...] = ()
    """Fields that must not be in the conversation."""
    is_folder: bool = False
    is_text: bool = False
    """Its values are the blocks of a plain text, each an object of lines. Where such a text is cut cannot be told."""

    def write(self, folder: Path, name: str) -> Path:
        """Write it under a name of its own: a file, or a folder of files. Its id and trial go along with it."""
        paths = []
        for file, value in self.files.items():
            if self.is_text:
                text = _as_text(value)
            else:
                text = "\n".join(map(json.dumps, value)) if file.endswith(".jsonl") else json.dumps(value)
            if self.id:
                text = text.replace(f'"{self.id}"', f'"{self.id}-{name}"')
            # Equal records of one trial would be copies.
            text = re.sub(r'"trial": ("?)\d+', rf'"trial": \g<1>{crc32(name.encode())}', text)
            paths.append(write(folder / name / file if self.is_folder else folder / f"{name}-{file}", text))
        return folder / name if self.is_folder else paths[0]

    def need_not_be_kept(self, steps: Steps) -> bool:
        way = ".".join(step for step in steps if isinstance(step, str)) + "."
        return any(way.startswith(f"{copy}.") for copy in (*self.copies, *self.withheld))

    def replaced(self, steps: Steps, value: Any) -> LogSample:
        """A sample that shares with this one what is not on the way to the value."""
        files = dict(self.files)
        holder: Any = files
        for step in steps[:-1]:
            holder[step] = copy.copy(holder[step])
            holder = holder[step]
        holder[steps[-1]] = value
        return self._replace(files=files)


def _as_text(blocks: Any) -> str:
    """Lines as they are, with a blank line between blocks."""
    blocks = blocks if isinstance(blocks, list) else [blocks]
    text = "\n\n".join("\n".join(map(str, one.values() if isinstance(one, dict) else [one])) for one in blocks)
    return text.encode("utf-8", "replace").decode() + "\n"


def _text(path: str, **facts: Any) -> LogSample:
    """A plain text: its blocks, and the lines of each."""
    file = EXAMPLES / path
    blocks = [
        {f"line_{number}": line for number, line in enumerate(block.split("\n"))}
        for block in file.read_text().strip().split("\n\n")
    ]
    return LogSample({file.name: blocks}, is_text=True, **facts)


def _sample(path: str, **facts: Any) -> LogSample:
    file = EXAMPLES / path
    text = file.read_text()
    value = [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)
    return LogSample({file.name: value}, **facts)


def _lines(path: str, id: str, **facts: Any) -> LogSample:
    """The lines of one conversation out of a file of several."""
    whole = _sample(path)
    ((name, lines),) = whole.files.items()
    return LogSample({name: [line for line in lines if f'"{id}"' in json.dumps(line)]}, id, **facts)


def _first(path: str, **facts: Any) -> LogSample:
    """The first record of a file of several, as a document."""
    whole = _sample(path)
    ((name, lines),) = whole.files.items()
    return LogSample({Path(name).with_suffix(".json").name: lines[0]}, **facts)


def _folder(path: str, **facts: Any) -> LogSample:
    files = {}
    for file in sorted((EXAMPLES / path).iterdir()):
        if file.suffix in (".json", ".jsonl"):
            files |= _sample(file.relative_to(EXAMPLES).as_posix()).files
    return LogSample(files, is_folder=True, **facts)


def _inspect() -> LogSample:
    """A log of one sample."""
    whole = _sample("inspect/bins.json").files["bins.json"]
    return LogSample({"bins.json": {**whole, "samples": whole["samples"][1:]}}, id="paper-bin")


def _span_ids(file: str) -> tuple[str, ...]:
    """The ids of spans in OTLP. A span that breaks is no longer the first of its trace, which is kept by its id."""
    return tuple(f"{file}.resourceSpans.scopeSpans.spans.{name}" for name in ("spanId", "parentSpanId"))


_BLOCKS = {
    "id": "room-1",
    "system": "You keep the rooms of the library.",
    "tools": [{"name": "find_room", "input_schema": {"type": "object"}}],
    "messages": [
        {"role": "user", "content": "Is there a room for six?"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "They want a room."},
                {"type": "text", "text": "Let me look."},
                {"type": "tool_use", "id": "toolu_1", "name": "find_room", "input": {"people": 6}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "is_error": True, "content": "calendar is locked"},
                {"type": "text", "text": "And on Monday?"},
            ],
        },
    ],
}

_TURNS = [
    {
        "dialogue_id": "BAY0007.json",
        "turn_id": number,
        "domain": "hotel",
        "user_message": user,
        "system_response": answer,
        "predicted_intent": "find_hotel",
        "ground_truth_intent": "book_hotel",
        "predicted_slots": {"hotel": {"area": "harbour"}},
        "jga": 0.5,
        "policy_compliant": True,
        "policy_reason": "nothing was booked",
        "cost": 0.0004,
        "response_time": 1.2,
    }
    for number, user, answer in (
        (0, "A room at the harbour.", "The Pilot House."),
        (2, "Fine.", "For how many nights?"),
    )
]

SAMPLES = {
    "abcd": _first("abcd/chats.json", copies=("chats.json.delexed",)),
    "agents-runstate": _sample("agents-runstate/hostel.json", id="conv-hostel-2"),
    "anthropic-managed-agents": _sample(
        "anthropic-managed-agents/ferns.jsonl", id="sesn_fern", times=("processed_at",)
    ),
    "assemblyai": _sample("assemblyai/dentist.json", copies=("dentist.json.text",)),
    "atif": _sample("atif/tide-table.json", times=("timestamp",)),
    "aws-transcribe": _sample("aws-transcribe/garage.json", copies=("garage.json.results.transcripts",)),
    "chatgpt-export": _first("chatgpt-export/conversations.json"),
    "chatwoot": _sample("chatwoot/messages.json", times=("created_at",)),
    "claude-agent-sdk": _sample("claude-agent-sdk/recipes.jsonl", id="sess-recipes"),
    "contact-lens": _sample("contact-lens/chat.json", times=("AbsoluteTime",)),
    "contact-lens: voice": _sample("contact-lens/voice.json"),
    "convoscope": _sample("convoscope/flow-states.json"),
    "deepgram": _sample("deepgram/parcel.json", copies=("parcel.json.results.channels",)),
    "elevenlabs": _first("elevenlabs/clinic.jsonl", copies=("clinic.json.transcript.conversation_turn_metrics",)),
    "facebook": _sample("facebook/message_1.json", times=("timestamp_ms",)),
    "google-adk": _sample("google-adk/tides.json", id="session-tides", times=("timestamp",)),
    "google-adk: eval sets": _sample("google-adk/harbour.test.json", id="high-water", times=("creation_timestamp",)),
    "http-exchanges": _sample("http-exchanges/sauna.json", times=("startedDateTime",)),
    "inspect": _inspect(),
    "intercom": _sample("intercom/conversation.json", times=("created_at",)),
    "langchain": _sample("langchain/museum.json", id="thread-museum"),
    "langfuse": _sample(
        "langfuse/mill.json",
        id="desk-41",
        times=("startTime", "endTime"),
        copies=("mill.json.observations.id", "mill.json.observations.parentObservationId"),
    ),
    "langsmith": _sample("langsmith/owls.jsonl", id="thread-owl", times=("start_time", "end_time")),
    "livekit": _sample(
        "livekit/session_report-lakeside-1.json", times=("created_at", "started_speaking_at", "stopped_speaking_at")
    ),
    "logfire": _sample("logfire/seeds.json", id="visitor-9"),
    "mas4cs": LogSample({"run_turns.json": {"experiment": "bay", "split": "test", "turns": _TURNS}}, id="BAY0007.json"),
    "multiwoz": _sample("multiwoz/dialogues-2.1.json", id="BAY0001.json"),
    "multiwoz: 2.2": _first("multiwoz/version-2.2/dialogues_001.json"),
    "openai-chat": _first("openai-chat/support.jsonl", times=("timestamp",)),
    "openai-chat: content blocks": LogSample({"blocks.json": _BLOCKS}, id="room-1"),
    "openai-responses": _first("openai-responses/orders.jsonl"),
    "openhands": _sample("openhands/word-count.json", times=("timestamp",)),
    "openinference": _sample("openinference/club.jsonl", id="plot-14b", times=("start_time", "end_time")),
    "otel-genai": _sample("otel-genai/boathouse.jsonl", id="kayak-17", copies=_span_ids("boathouse.jsonl")),
    "otel-genai: older conventions": _sample(
        "otel-genai/older-conventions.json", copies=_span_ids("older-conventions.json")
    ),
    "pipecat": _lines("pipecat/orders.jsonl", "pizza-1", times=("timestamp", "started_at")),
    "pipecat-spans": _sample(
        "pipecat-spans/bicycle-shop.json", id="call-bike-3", copies=_span_ids("bicycle-shop.json")
    ),
    "plain-text": _text("plain-text/broadband.txt"),
    "rasa": _sample("rasa/tracker.json", times=("timestamp",)),
    "realtime": _sample("realtime/lamps.jsonl", id="sess_lamp", copies=("lamps.jsonl.delta",)),
    "retell": _sample(
        "retell/call.json",
        copies=("call.json.transcript", "call.json.transcript_object", "call.json.transcript_with_tool_calls.words"),
    ),
    "retell: webhooks": _lines(
        "retell/webhooks.jsonl", "call_1c90d3", copies=("webhooks.jsonl.call", "webhooks.jsonl.event")
    ),
    "sgd": _first("sgd/dialogues_001.json"),
    "sharegpt": _first("sharegpt/recipes.json"),
    "standard-data": _first("standard-data/items.jsonl", id="trace-5101"),
    "star": _sample("star/ferry.json", times=("UnixTime",)),
    "state-events": _lines("state-events/nightly.jsonl", "v-101", times=("timestamp",)),
    "subtitles": _text("subtitles/booking.srt"),
    "subtitles: WebVTT": _text("subtitles/booking.vtt"),
    "swe-agent": _sample("swe-agent/leap-year.traj"),
    "taskmaster": _first("taskmaster/coffee.json"),
    "tau-bench": _first("tau-bench/library.json", withheld=("library.json.info",)),
    "tau-voice": _sample("tau-voice/simulations/cut-short.json"),
    "tau2-bench": _sample(
        "tau2-bench/telecom.json",
        id="sim-31",
        times=("timestamp",),
        withheld=("telecom.json.simulations.reward_info", "telecom.json.tasks.evaluation_criteria"),
    ),
    "telegram": _sample("telegram/result.json", times=("date", "date_unixtime")),
    "vapi": _sample(
        "vapi/call.json", times=("time", "endTime", "startedAt", "endedAt"), copies=("call.json.messages",)
    ),
    "vapi: webhooks": _lines(
        "vapi/webhooks.jsonl", "2f1b7c10-0000-4000-8000-000000000001", copies=("webhooks.jsonl.message",)
    ),
    "vercel-ai": _sample("vercel-ai/walks.json", id="walk-5", copies=("walks.json.spanId", "walks.json.parentSpanId")),
    "voice-logs": _folder(
        "voice-logs/records/tool-calls",
        times=("timestamp",),
        copies=("transcript.jsonl", "audit_log.json.llm_prompts"),
    ),
    "whatsapp": _text("whatsapp/chat.txt"),
    "whisper": _sample("whisper/parcel.json"),
}


ODD: tuple[Any, ...] = (None, True, 0, -1, 1e308, 10**400, "", "x", "\x00", [], [None], ["x"], {}, {"a": []}, [{}])


def spoilt(sample: LogSample, seed: int) -> LogSample:
    """The sample with odd values in some places, at any depth; the same seed spoils the same places."""
    chance = random.Random(seed)
    for _ in range(chance.randint(2, 6)):
        ways = [steps for steps, _ in walk(dict(sample.files)) if len(steps) > 1]
        if ways:
            sample = sample.replaced(chance.choice(ways), chance.choice(ODD))
    return sample


def fields(sample: LogSample) -> list[Steps]:
    """The way to every field of a sample, once for all elements of a list."""
    ways: dict[tuple[str, ...], Steps] = {}
    for steps, _ in walk(dict(sample.files)):
        if len(steps) > 1 and isinstance(steps[-1], str):
            ways.setdefault(tuple(str(step) if isinstance(step, str) else "[]" for step in steps), steps)
    return list(ways.values())


def walk(value: Any) -> list[tuple[Steps, Any]]:
    """Every value inside of a value, and the way to it: a value comes before what is inside of it."""
    found: list[tuple[Steps, Any]] = []
    _collect(value, (), found)
    return found


def _collect(value: Any, steps: Steps, found: list[tuple[Steps, Any]]) -> None:
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in entries:
        way = (*steps, step)
        found.append((way, inner))
        if isinstance(inner, dict | list):
            _collect(inner, way, found)


def at(sample: LogSample, steps: Steps) -> Any:
    value: Any = sample.files
    for step in steps:
        value = value[step]
    return value


def timed(sample: LogSample, shape: Callable[[Any], Any]) -> LogSample:
    """The sample with every time of the wall clock written in another shape."""
    for steps, value in walk(dict(sample.files)):
        if steps[-1] in sample.times and value is not None:
            sample = sample.replaced(steps, shape(value))
    return sample
