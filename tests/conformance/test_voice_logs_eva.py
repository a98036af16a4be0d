"""The published voice logs, read as that system reads them: every field, labels included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from convoscope.conversation.events import Logged
from convoscope.ingest.formats.voice_logs.framework import FrameworkLine, runs, without_previews
from convoscope.views.eva import EvaReading, read_eva

_SPEAKERS = {"elevenlabs_user": "user", "simulated_user": "user", "framework_agent": "assistant"}
_FRAMEWORK_KINDS = ("turn_start", "turn_end", "tts_text", "llm_response")
_NOT_OF_THE_JOIN = {"conversation_ended_reason", "is_audio_native"}


def test_every_asserted_field_of_every_folder(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    read = list(_readings(shared("data/voice-logs"), "expected.json"))
    for folder, reading in read:
        for field, expected in _json(folder / "expected.json").items():
            if field not in _NOT_OF_THE_JOIN and field in reading:
                assert reading[field] == expected, f"{folder.name}: {field}"
    ran("published voice logs, --turns eva", len(read))


def test_every_field_of_the_reference_that_we_have(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    compared = 0
    for folder, reading in _readings(shared("data/voice-logs"), "reference_context.json"):
        reference = _json(folder / "reference_context.json")
        fields = (set(EvaReading.__struct_fields__) - {"turn_of"}) & set(reference)
        assert fields, f"{folder.name}: nothing to compare"
        for field in sorted(fields):
            assert reading[field] == reference[field], f"{folder.name}: {field}"
        compared += len(fields)
    ran("fields of published voice logs, --turns eva", compared)


def _readings(data: Path, reference: str) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The calls of which a reference says what comes out, and of which pipeline they are."""
    for folder in sorted(path.parent for path in data.glob("*/audit_log.json")):
        if not (folder / reference).is_file() or not (folder / "meta.json").is_file():
            continue
        reading = read_eva(load(folder), _json(folder / "meta.json")["pipeline_type"])
        yield folder, as_published(reading)


def as_published(reading: EvaReading) -> dict[str, Any]:
    """String keys, ascending lists for sets, lists for intervals."""
    published: dict[str, Any] = json.loads(msgspec.json.encode(reading))
    sets = ("assistant_interrupted_turns", "user_interrupted_turns", "fallback_turn_ids")
    return published | {field: sorted(published[field]) for field in sets}


def load(folder: Path) -> list[Logged]:
    return [*_audit(folder), *_framework(folder), *_simulator(folder)]


def _audit(folder: Path) -> Iterator[Logged]:
    for line in _json(folder / "audit_log.json")["transcript"]:
        value = line["value"]
        is_text = isinstance(value, str)
        yield Logged(
            source="audit",
            kind=line["message_type"],
            ms=int(line["timestamp"]),
            text=value if is_text else "",
            value=None if is_text else value,
        )


def _framework(folder: Path) -> Iterator[Logged]:
    lines = [
        FrameworkLine(
            line["timestamp"], line["type"], next(iter(line["data"].values())), line["data"].get("was_interrupted")
        )
        for line in _lines(folder / "pipecat_events.jsonl")
        if line.get("type") in _FRAMEWORK_KINDS and line.get("data")
    ]
    for run in runs(without_previews(lines)):
        yield Logged(source="framework", kind=run.kind, ms=run.ms, text=run.text)


def _simulator(folder: Path) -> Iterator[Logged]:
    for line in _lines(folder / "elevenlabs_events.jsonl"):
        data = line.get("data") or {}
        yield Logged(
            source="simulator",
            kind=line.get("type") or line.get("event_type") or "",
            ms=line["timestamp"],
            sound=line.get("audio_timestamp"),
            speaker=_SPEAKERS.get(line.get("user", ""), line.get("user", "")),
            text=data.get("text", ""),
            value=data,
        )


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()] if path.exists() else []


def _json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return content
