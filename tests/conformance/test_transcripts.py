"""Transcripts of public repositories: what a script counted in them is what reading gives."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import convoscope
from convoscope.conversation import Conversation, Participant
from convoscope.ingest.report import ReadReport

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]
IDS = ("sample_id", "meeting_id", "conversation_id", "call_id", "id")
TAG = re.compile(r"</?[a-z][^<>]*>|<\d[\d:.]*>", re.IGNORECASE)
STAMP = r"(?:\d+:)?\d+:\d+[.,]\d+"
TIMING = re.compile(rf"^{STAMP}(?:\s*-->\s*|,){STAMP}", re.MULTILINE)


def facts(folder: Path) -> dict[str, dict[str, Any]]:
    held: dict[str, dict[str, Any]] = json.loads((folder / "facts.json").read_text())
    return held


class Transcript(NamedTuple):
    call: Conversation
    report: ReadReport


def read_as(path: Path, format: str) -> Transcript:
    reading = convoscope.read(path)
    (conversation,) = reading
    assert {file.format for file in reading.report.files.values()} == {format}
    assert reading.report.problem_count == 0
    assert reading.report.set_aside == {}
    return Transcript(conversation, reading.report)


def label(participant: Participant) -> str:
    """The name, or the role of somebody who is called as the role is, in small letters."""
    return (participant.name or participant.role).casefold()


def labels(conversation: Conversation) -> set[str]:
    """Of all who are told; nobody's words are of the role `unknown`."""
    return {label(one) for one in conversation.participants} - {"unknown"}


def letters(text: str) -> str:
    """Without blanks: transcribers join segments with one, with several or with none."""
    return "".join(text.split())


def assert_times(conversation: Conversation, counted: dict[str, Any]) -> None:
    assert conversation.utterances[0].segments[0].start == counted["first_start"]
    assert max(one.segments[0].end for one in conversation.utterances) == counted["last_end"]


def test_whisper(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/whisper")
    for name, counted in facts(folder).items():
        call = read_as(folder / name, "whisper").call
        assert len(call.utterances) == counted["segments"]
        assert labels(call) == set(map(str.casefold, counted["speakers"])) - {"unknown"}
        assert call.extras.get("language") == counted.get("language")
        assert_times(call, counted)
        if counted.get("words") is not None:
            assert sum(len(one.extras.get("words", ())) for one in call.utterances) == counted["words"]
        if counted.get("text_prefix") is not None:
            assert letters("".join(map(call.text, call.utterances))).startswith(letters(counted["text_prefix"]))
        if counted.get("first_text") is not None:
            assert call.text(call.utterances[0]) == counted["first_text"].strip()
    ran("Whisper transcripts", len(facts(folder)))


def test_subtitles(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/subtitles")
    timed = {name: counted for name, counted in facts(folder).items() if counted.get("cues")}
    for name, counted in timed.items():
        talk, report = read_as(folder / name, "subtitles")
        written = (folder / name).read_text(encoding="utf-8-sig")
        silent = report.ignored.get("cue_without_words", 0)
        assert_cues(talk, written, counted["cues"] - silent)
        named = [one for one in talk.utterances if one.speaker != "unknown"]
        voices = (counted["v_tags"] or 0) + (counted["speaker_prefixed_lines"] or 0)
        assert voices - silent <= len(named) <= voices
        assert set(map(str.casefold, counted.get("speaker_names") or ())) <= labels(talk)
        assert all(one.id for one in talk.utterances) or not counted["numbered"]
        # A tag that is in the text was not one in the file: it was written `&lt;b&gt;`.
        assert not any(tag in written for one in talk.utterances for tag in TAG.findall(talk.text(one)))
        if silent:  # the first or the last cue may be one without words
            assert min(one.segments[0].start for one in talk.utterances) >= counted["first_start"]
            assert max(one.segments[0].end for one in talk.utterances) <= counted["last_end"]
        else:
            assert_times(talk, counted)
    for name in facts(folder).keys() - timed.keys():
        assert read_as(folder / name, "plain-text").call.utterances  # a chat, which has no cues
    ran("subtitles", len(facts(folder)))


def assert_cues(talk: Conversation, written: str, count: int) -> None:
    """Utterances have the stretches of as many cues. Two voices share one; so may cues with the same times."""
    stretches = {(one.id, one.segments[0].start, one.segments[0].end) for one in talk.utterances}
    timings = TIMING.findall(written)
    assert len(stretches) <= count <= len(talk.utterances)
    assert count - len(stretches) <= len(timings) - len(set(timings))


def test_plain_text(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/plain-text")
    for name, counted in facts(folder).items():
        talk = read_as(folder / name, "plain-text").call
        names = {one.id: label(one) for one in talk.participants}
        expected = {speaker.casefold(): count for speaker, count in counted["by_speaker"].items()}
        assert Counter(names[one.speaker] for one in talk.utterances) == expected
        assert len(talk.utterances) == counted["utterances"]
        texts = [talk.text(one) for one in talk.utterances]
        assert (
            sum(len([line for line in text.split("\n")[1:] if line]) for text in texts) == counted["continuation_lines"]
        )
        for speaker in expected:  # `first_doctor` is how the first utterance of DOCTOR begins
            first = next(talk.text(one) for one in talk.utterances if names[one.speaker] == speaker)
            assert first.startswith(counted.get(f"first_{speaker}") or "")
    ran("plain-text transcripts", len(facts(folder)))


def test_transcripts_of_the_semantic_benchmark(shared: Shared, ran: Ran) -> None:
    paths = sorted(shared("data/semantic/transcripts").glob("*.json"))
    for path in paths:
        written = json.loads(path.read_text())
        call = read_as(path, "whisper").call
        assert call.id == next((str(written[name]) for name in IDS if written.get(name)), path.stem)
        assert [call.text(one) for one in call.utterances] == [one["text"].strip() for one in written["segments"]]
        assert [one.id for one in call.utterances] == [str(one.get("id", "")) for one in written["segments"]]
    ran("transcripts of the semantic benchmark", len(paths))
