"""Transcripts of public repositories: what a script counted in them is what reading gives."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import convoscope
from convoscope.conversation import Conversation, Participant
from convoscope.errors import InputError
from convoscope.ingest.report import ReadReport
from convoscope.text.folding import folded_label
from support.shared_data import begins_with, facts

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]
IDS = ("sample_id", "meeting_id", "conversation_id", "call_id", "id")
TAG = re.compile(r"</?[a-z][^<>]*>|<\d[\d:.]*>", re.IGNORECASE)
STAMP = r"(?:\d+:)?\d+:\d+[.,]\d+"
TIMING = re.compile(rf"^{STAMP}(?:\s*-->\s*|,){STAMP}", re.MULTILINE)


class Transcript(NamedTuple):
    call: Conversation
    report: ReadReport


def read_as(path: Path, *formats: str) -> Transcript | None:
    """A transcript that was read whole. None: it is malformed, by a look at the file, and the reading says so."""
    try:
        reading = convoscope.read(path)
        conversations = list(reading)
    except InputError:
        assert is_malformed(path), f"{path.name} could not be read"
        return None
    if is_malformed(path) and (reading.report.problem_count or reading.report.set_aside):
        return None
    assert (reading.report.problem_count, reading.report.set_aside) == (0, {}), path.name
    (conversation,) = conversations
    assert {file.format for file in reading.report.files.values()} <= {*formats}, path.name
    return Transcript(conversation, reading.report)


def is_malformed(path: Path) -> bool:
    """Whether a file breaks the rules of its kind, told without any reader of ours."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        return True
    if path.suffix == ".json":
        try:
            segments = json.loads(text)["segments"]
            return not all(isinstance(one["text"], str) and is_stretch(one) for one in segments)
        except (ValueError, KeyError, TypeError):
            return True
    arrows = [line for line in text.splitlines() if "-->" in line]
    has_header = path.suffix != ".vtt" or text.startswith("WEBVTT")
    return not text.strip() or not has_header or not all(map(TIMING.match, arrows))


def is_stretch(segment: dict[str, Any]) -> bool:
    """Whether a segment has times, the first first, or none at all."""
    start, end = segment.get("start"), segment.get("end")
    return (start is None and end is None) or (
        isinstance(start, int | float) and isinstance(end, int | float) and end >= start
    )


def label(participant: Participant) -> str:
    """The name, or the role of a speaker who is called as the role is, however it is spelt."""
    return folded_label(participant.name or participant.id)


def labels(conversation: Conversation) -> set[str]:
    """Of all whose name is known; words of an unknown speaker are of the role `unknown`."""
    return {label(one) for one in conversation.participants} - {"unknown"}


def noted(names: Iterable[str]) -> set[str]:
    """The same of the names that a script found."""
    return {folded_label(name) for name in names} - {"unknown"}


def letters(text: str) -> str:
    """Without blanks: transcribers join segments with one, with several or with none."""
    return "".join(text.split())


def assert_times(conversation: Conversation, counted: dict[str, Any]) -> None:
    timed = [one.segments[0] for one in conversation.utterances if one.segments]
    if counted.get("first_start") is not None:
        assert timed[0].start == counted["first_start"]
    if counted.get("last_end") is not None:
        assert max(one.end for one in timed if one.end is not None) == counted["last_end"]


def test_whisper(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/whisper")
    malformed: list[str] = []
    for name, counted in facts(folder).items():
        read = read_as(folder / name, "whisper")
        if read is None:
            malformed.append(name)
            continue
        call = read.call
        assert len(call.utterances) == counted["segments"]
        assert labels(call) == noted(counted["speakers"])
        assert call.extras.get("language") == counted.get("language")
        assert_times(call, counted)
        if counted.get("words") is not None:
            assert sum(len(one.extras.get("words", ())) for one in call.utterances) == counted["words"]
        if counted.get("text_prefix") is not None:
            assert letters("".join(map(call.text, call.utterances))).startswith(letters(counted["text_prefix"]))
        if counted.get("first_text") is not None:
            assert begins_with(call.text(call.utterances[0]), counted["first_text"])
    ran("Whisper transcripts", len(facts(folder)) - len(malformed))


def test_subtitles(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/subtitles")
    timed = {name: counted for name, counted in facts(folder).items() if counted.get("cues")}
    malformed: list[str] = []
    for name, counted in timed.items():
        read = read_as(folder / name, "subtitles")
        if read is None:
            malformed.append(name)
            continue
        talk, report = read
        written = (folder / name).read_text(encoding="utf-8-sig")
        silent = report.ignored.get("cue_without_words", 0)
        assert_cues(talk, written, counted["cues"] - silent)
        named = [one for one in talk.utterances if one.speaker != "unknown"]
        voices = (counted["v_tags"] or 0) + (counted["speaker_prefixed_lines"] or 0)
        assert voices - silent <= len(named) <= voices
        assert noted(counted.get("speaker_names") or ()) <= labels(talk)
        assert_identifiers(talk, written)
        # A tag that is in the text was not one in the file: it was written `&lt;b&gt;`.
        assert not any(tag in written for one in talk.utterances for tag in TAG.findall(talk.text(one)))
        if silent:  # the first or the last cue may be one without words
            assert min(one.segments[0].start for one in talk.utterances) >= counted["first_start"]
            assert max(one.segments[0].end for one in talk.utterances) <= counted["last_end"]
        else:
            assert_times(talk, counted)
    for name in facts(folder).keys() - timed.keys():  # a chat, which has no cues, or nothing that can be read
        read = read_as(folder / name, "plain-text", "subtitles")
        assert read is None or read.call.utterances
        malformed += [name] if read is None else []
    ran("subtitles", len(facts(folder)) - len(malformed))


def assert_identifiers(talk: Conversation, written: str) -> None:
    """A cue may have an identifier, in the line before its times: what was read is what is there, cue by cue."""
    lines = written.splitlines()
    before = [lines[place - 1].strip() if place else "" for place, line in enumerate(lines) if TIMING.match(line)]
    there = {line for line in before if line}
    ids = {one.id for one in talk.utterances if one.id}
    assert ids <= there
    spoken = {(one.segments[0].start, one.segments[0].end) for one in talk.utterances}
    if all(before) and len(spoken) == len(before):  # no cue is without words
        assert ids == there


def assert_cues(talk: Conversation, written: str, count: int) -> None:
    """Utterances have the stretches of as many cues. Two voices share one; so may cues with the same times."""
    stretches = {(one.id, one.segments[0].start, one.segments[0].end) for one in talk.utterances}
    timings = TIMING.findall(written)
    assert len(stretches) <= count <= len(talk.utterances)
    assert count - len(stretches) <= len(timings) - len(set(timings))


def test_plain_text(shared: Shared, ran: Ran) -> None:
    folder = shared("data/formats/plain-text")
    malformed: list[str] = []
    for name, counted in facts(folder).items():
        read = read_as(folder / name, "plain-text")
        if read is None:
            malformed.append(name)
            continue
        talk = read.call
        names = {one.id: label(one) for one in talk.participants}
        expected = Counter[str]()
        for speaker, count in counted["by_speaker"].items():
            expected[folded_label(speaker)] += count
        assert Counter(names[one.speaker] for one in talk.utterances) == expected
        assert len(talk.utterances) == counted["utterances"]
        texts = [talk.text(one) for one in talk.utterances]
        assert (
            sum(len([line for line in text.split("\n")[1:] if line]) for text in texts) == counted["continuation_lines"]
        )
        for speaker in counted["by_speaker"]:  # `first_doctor` is how the first utterance of DOCTOR begins
            label_of = folded_label(speaker)
            first = next(talk.text(one) for one in talk.utterances if names[one.speaker] == label_of)
            assert first.startswith(counted.get(f"first_{speaker.casefold()}") or "")
    ran("plain-text transcripts", len(facts(folder)) - len(malformed))


def test_transcripts_of_the_semantic_benchmark(shared: Shared, ran: Ran) -> None:
    paths = sorted(shared("data/semantic/transcripts").glob("*.json"))
    malformed: list[str] = []
    for path in paths:
        written = json.loads(path.read_text())
        read = read_as(path, "whisper")
        if read is None:
            malformed.append(path.name)
            continue
        call = read.call
        assert call.id == next((str(written[name]) for name in IDS if written.get(name)), path.stem)
        assert [call.text(one) for one in call.utterances] == [one["text"].strip() for one in written["segments"]]
        assert [one.id for one in call.utterances] == [str(one.get("id", "")) for one in written["segments"]]
    ran("transcripts of the semantic benchmark", len(paths) - len(malformed))
