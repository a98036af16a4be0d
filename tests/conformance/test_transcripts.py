"""Transcripts of public repositories: what a script counted in them is what reading gives."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import Conversation

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]


def facts(folder: Path) -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = json.loads((folder / "facts.json").read_text())
    return held


def read_as(path: Path, format: str) -> Conversation:
    reading = convoscope.read(path)
    (conversation,) = reading
    assert {file.format for file in reading.report.files.values()} == {format}
    assert reading.report.problem_count == 0
    assert reading.report.set_aside == {}
    return conversation


def assert_times(conversation: Conversation, counted: dict[str, Any]) -> None:
    assert conversation.utterances[0].segments[0].start == counted["first_start"]
    assert max(one.segments[0].end for one in conversation.utterances) == counted["last_end"]


def test_whisper(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/whisper")
    for name, counted in facts(folder).items():
        call = read_as(folder / name, "whisper")
        assert len(call.utterances) == counted["segments"]
        assert sorted({one.name for one in call.participants} - {""}) == sorted(counted["speakers"])
        assert call.extras.get("language") == counted.get("language")
        assert_times(call, counted)
        if "words" in counted:
            assert sum(len(one.extras["words"]) for one in call.utterances) == counted["words"]
        if "text_prefix" in counted:
            assert " ".join(map(call.text, call.utterances)).startswith(counted["text_prefix"].strip())
        if "first_text" in counted:
            assert call.text(call.utterances[0]) == counted["first_text"].strip()
    ran("Whisper transcripts", len(facts(folder)))


def test_subtitles(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/subtitles")
    for name, counted in facts(folder).items():
        talk = read_as(folder / name, "subtitles")
        assert len(talk.utterances) == counted["cues"]
        named = [one for one in talk.utterances if one.speaker != "unknown"]
        assert len(named) == counted["v_tags"] + counted["speaker_prefixed_lines"]
        assert all(one.id for one in talk.utterances) or not counted["numbered"]
        assert not any("<" in talk.text(one) for one in talk.utterances)
        assert_times(talk, counted)
    ran("subtitles", len(facts(folder)))


def test_plain_text(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/plain-text")
    for name, counted in facts(folder).items():
        talk = read_as(folder / name, "plain-text")
        names = {one.id: one.name for one in talk.participants}
        assert Counter(names[one.speaker] for one in talk.utterances) == counted["by_speaker"]
        assert len(talk.utterances) == counted["utterances"]
        texts = [talk.text(one) for one in talk.utterances]
        assert (
            sum(len([line for line in text.split("\n")[1:] if line]) for text in texts) == counted["continuation_lines"]
        )
        first = next(talk.text(one) for one in talk.utterances if names[one.speaker] == "DOCTOR")
        assert first.startswith(counted["first_doctor"])
    ran("plain-text transcripts", len(facts(folder)))


def test_transcripts_of_the_semantic_benchmark(shared: Shared, ran: Ran) -> None:
    paths = sorted(shared("data/semantic/transcripts").glob("*.json"))
    for path in paths:
        segments = json.loads(path.read_text())["segments"]
        call = read_as(path, "whisper")
        assert call.id == path.stem
        assert [call.text(one) for one in call.utterances] == [one["text"] for one in segments]
        assert [one.id for one in call.utterances] == [str(one["id"]) for one in segments]
    ran("transcripts of the semantic benchmark", len(paths))
