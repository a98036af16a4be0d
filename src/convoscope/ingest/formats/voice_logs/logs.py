"""The three logs of a call as records of one kind, each in its own order, freed of repeated entries."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Logged
from convoscope.errors import InputError
from convoscope.ingest.formats.voice_logs.framework import (
    SPOKEN,
    WRITTEN,
    TextRun,
    corrected_lines,
    lines_in_order,
    runs,
    without_previews,
)
from convoscope.ingest.formats.voice_logs.lines import (
    FrameworkLine,
    agree,
    in_order,
    is_believed,
    plausible,
    read_lines,
    seconds,
    times_of,
)
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.report import Notes

_SPEAKERS = {
    "simulated_user": "user",
    "elevenlabs_user": "user",
    "user": "user",
    "assistant": "assistant",
    "framework_agent": "assistant",
    "pipecat_agent": "assistant",
}
_SPEECH = {"user_speech": "user", "assistant_speech": "assistant"}
_FRAMEWORK_KINDS = frozenset({"turn_start", "turn_end", SPOKEN, WRITTEN})
_SOUNDS = frozenset({"audio_start", "audio_end"})
_OF_USER = (("user_speech", "user"), ("audio_start", "user"))
_ENDS = (".", "?", "!")
_MOMENT = 250
"""Milliseconds."""
TRANSCRIPT = "transcript"
UNHEARD = frozenset({"[user audio]", "[audio response - transcription unavailable]"})
"""Texts of records that have no text."""

Stamp = int | float | str | None


class _FrameworkLine(msgspec.Struct, gc=False):
    timestamp: Stamp = None
    type: str | None = None
    data: dict[str, Any] | None = None


class _AnyFrameworkLine(_FrameworkLine, gc=False):
    """The text may be under another name: then it is the first."""

    data: Any = None


class _SimulatorLine(msgspec.Struct, gc=False):
    timestamp: Stamp = None
    type: str | None = None
    event_type: str | None = None
    user: str | None = None
    audio_timestamp: Stamp = None
    sequence: Stamp = None
    data: Any = None


class _AuditEntry(msgspec.Struct, gc=False):
    timestamp: Stamp = None
    message_type: str | None = None
    value: Any = None


class LlmCall(msgspec.Struct, gc=False):
    """What the audit log keeps of one call to the model; the prompt is left packed."""

    prompt: msgspec.Raw = msgspec.Raw(b"")
    model: Any = None
    status: Any = None
    start_time: Stamp = None
    end_time: Stamp = None
    latency_ms: float | str | None = None
    error_type: Any = None


class _Audit(msgspec.Struct, gc=False):
    transcript: list[_AuditEntry] = []
    llm_prompts: list[LlmCall] = []


class AuditLog(NamedTuple):
    """What the model and its tools did."""

    records: list[Logged]
    calls: list[LlmCall]


class Framework(NamedTuple):
    """What was sent to the speech engine, and what it wrote down of the user, piece by piece."""

    runs: list[TextRun]
    heard: list[Logged]
    """Needed only where the audit log is missing."""


_audit = msgspec.json.Decoder(_Audit)
_framework_line = msgspec.json.Decoder(_FrameworkLine)
_any_framework_line = msgspec.json.Decoder(_AnyFrameworkLine)
_simulator_line = msgspec.json.Decoder(_SimulatorLine)


def read_audit(path: Path, notes: Notes) -> AuditLog:
    """audit_log.json. One that is cut off still gives the entries before the cut."""
    data = files.whole(path)
    try:
        log = _audit.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        log = _repaired_audit(data, path, notes)
    ended = [call for call in log.llm_prompts if call.end_time is not None]
    stamps = [*(entry.timestamp for entry in log.transcript), *(call.end_time for call in ended)]
    times = times_of(stamps, path.name, notes)
    for call, ms in zip(ended, times[len(log.transcript) :], strict=True):
        if ms is None:
            call.end_time = None
    records: list[Logged] = []
    for entry, ms in zip(log.transcript, times, strict=False):
        kind, value = entry.message_type or "", entry.value
        speaker = kind if kind in ("user", "assistant") else ""
        text, value = (value, None) if isinstance(value, str) else ("", value)
        records.append(Logged(source="audit", kind=kind, ms=ms, speaker=speaker, text=text, value=value))
    notes.records += len(records)
    records = _without_repeats(records, path.name, notes)
    if not agree([record.ms for record in records]):
        records = in_order(records, is_believed(records), path.name, notes)
    return AuditLog(records, log.llm_prompts)


def _repaired_audit(data: bytes, path: Path, notes: Notes) -> _Audit:
    try:
        value, repairs = decode(data)
        for code in repairs:
            notes.repaired(code, path.name)
    except BadJson as error:
        entries = _entries_before(data)
        if not entries:
            raise InputError(f"{path.name}: {error}", hint="write the file completely") from None
        notes.repaired("cut_file", f"{path.name}: {error}; {len(entries)} entries before it were kept")
        value = {"transcript": entries}
    if isinstance(value, list):
        value = {"transcript": value}
    log = _Audit()
    kinds: dict[str, tuple[Any, list[Any]]] = {
        "transcript": (_AuditEntry, log.transcript),
        "llm_prompts": (LlmCall, log.llm_prompts),
    }
    for name, (kind, entries) in kinds.items():
        listed = value.get(name) if isinstance(value, dict) else None
        for number, entry in enumerate(listed if isinstance(listed, list) else ()):
            try:
                entries.append(msgspec.convert(entry, kind, strict=False))
            except msgspec.ValidationError as error:
                notes.repaired("entry_left_out", f"{path.name} {name}[{number}]: {error}")
    return log


def _entries_before(data: bytes) -> list[Any]:
    """The whole entries of `transcript` in a file that is cut off."""
    text = data.decode("utf-8", "replace")
    at = text.find("[", text.find('"transcript"'))
    entries: list[Any] = []
    parse = json.JSONDecoder(strict=False).raw_decode
    while at >= 0:
        at += 1
        while at < len(text) and text[at] in " \t\r\n,":
            at += 1
        try:
            entry, at = parse(text, at)
        except ValueError:
            break
        entries.append(entry)
    return entries


def read_framework(
    path: Path, notes: Notes, audit: Sequence[Logged] = (), simulator: Sequence[Logged] = ()
) -> Framework:
    """pipecat_events.jsonl and its kin, put right by the model's replies and by what the caller heard."""
    name = path.name
    taken: Sequence[Any] = read_lines(path, _framework_line, notes)
    sent = [line.data for line in taken if line.type in _FRAMEWORK_KINDS]
    is_first = any(data is None or data.get("frame") is None for data in sent)
    if is_first:
        taken = read_lines(path, _any_framework_line, Notes())
    read: list[tuple[Stamp, str, str, bool | None]] = []
    for line in taken:
        if line.type in _FRAMEWORK_KINDS:
            text, interrupted = _frame(line.data, is_first=is_first)
            if text is None and line.type in (SPOKEN, WRITTEN):
                notes.repaired("line_left_out", f"{name}: what was spoken is unknown")
            else:
                read.append((line.timestamp, line.type or "", text or "", interrupted))
    times = times_of([stamp for stamp, _, _, _ in read], name, notes)
    lines = [FrameworkLine(ms, *line[1:]) for ms, line in zip(times, read, strict=True)]
    for kind in dict.fromkeys([line.type for line in taken]):
        if kind != TRANSCRIPT and kind not in _FRAMEWORK_KINDS:
            notes.ignored(f"framework.{kind}")
    transcripts = [line for line in taken if line.type == TRANSCRIPT]
    times = times_of([line.timestamp for line in transcripts], name, notes)
    heard: list[Logged] = []
    if not audit or not agree(times):
        texts = [(_frame(line.data, is_first=is_first)[0] or "").strip() for line in transcripts]
        heard = [
            Logged(source="framework", kind=TRANSCRIPT, ms=ms, speaker="user", text=text)
            for ms, text in zip(times, texts, strict=True)
        ]
    notes.records += len(taken)
    replies = [record.text for record in audit if record.kind == "assistant"]
    lines = _without_doubles(lines, name, notes)
    ordered = lines_in_order(lines, replies, name, notes)
    understood = [record.text for record in simulator if record.kind == "assistant_speech"]
    moved = ordered is not lines
    lines = corrected_lines(without_previews(ordered), replies, understood, name, notes, moved=moved)
    if any(line.ms is None for line in lines):
        lines = _timed(lines)
    if not agree([record.ms for record in heard]):
        heard = in_order(heard, False, name, notes)
    return Framework(runs(lines), heard)


def _timed(lines: list[FrameworkLine]) -> list[FrameworkLine]:
    """Words without a time of their own have that of the word before them; where that ends a sentence, the next one's.

    A phrase without a time stays without: it may be all that was said in its turn.
    """
    timed = list(lines)
    for step, at_ends in ((1, False), (-1, True), (1, True)):
        for index in range(len(timed))[::step]:
            line, neighbour = timed[index], index - step
            if line.ms is not None or " " in line.text.strip() or not 0 <= neighbour < len(timed):
                continue
            ends = step > 0 and timed[neighbour].text.rstrip().endswith(_ENDS)
            if timed[neighbour].kind == line.kind and (at_ends or not ends):
                timed[index] = msgspec.structs.replace(line, ms=timed[neighbour].ms)
    return timed


def _without_doubles(lines: list[FrameworkLine], name: str, notes: Notes) -> list[FrameworkLine]:
    """A phrase or a turn boundary that was logged twice counts once. A word may well be said twice in an instant."""
    distinct: list[FrameworkLine] = []
    seen: set[FrameworkLine] = set()
    for line in lines:
        is_word = line.kind == SPOKEN and " " not in line.text.strip()
        if line in seen and line.ms is not None and not is_word:
            notes.repaired("duplicate_record", f"{name}: {line.kind}")
        else:
            distinct.append(line)
            seen.add(line)
    return distinct


def _frame(data: Any, *, is_first: bool) -> tuple[str | None, bool | None]:
    """The text of a line, and whether the user ended it; None is what it does not have."""
    text, interrupted = data, None
    if isinstance(data, dict):
        text = next(iter(data.values()), None) if is_first else data.get("frame")
        interrupted = data.get("was_interrupted")
    return text if isinstance(text, str) else None, interrupted if isinstance(interrupted, bool) else None


def as_logged(run: TextRun) -> Logged:
    """A run of the framework's log as one record."""
    value = None if run.interrupted is None else {"was_interrupted": run.interrupted}
    return Logged(source="framework", kind=run.kind, ms=run.ms, text=run.text, value=value)


def read_simulator(path: Path, notes: Notes) -> list[Logged]:
    """elevenlabs_events.jsonl and its kin."""
    records: list[Logged] = []
    lines = read_lines(path, _simulator_line, notes)
    times = times_of([line.timestamp for line in lines], path.name, notes)
    sounds = _sound_times(lines, path.name, notes)
    for line, ms, sound in zip(lines, times, sounds, strict=True):
        kind = line.type or line.event_type or ""
        speaker, text, value = _SPEAKERS.get(line.user or "", ""), "", line.data
        if kind in _SPEECH:
            speaker = _SPEECH[kind]
            spoken = value.get("text") if isinstance(value, dict) else value
            text, value = spoken if isinstance(spoken, str) else "", None
        if kind in _SOUNDS and sound is None and ms is not None:
            notes.repaired("sound_time_from_log", f"{path.name}: {speaker} {kind}")
        records.append(
            Logged(source="simulator", kind=kind, ms=ms, sound=sound, speaker=speaker, text=text, value=value)
        )
    notes.records += len(lines)
    # A line that was logged again at the end has a number of its own there: as a copy it says nothing about the order.
    distinct = _without_repeats(records, path.name, notes)
    kept = {id(record) for record in distinct}
    sequence = [line.sequence for line, record in zip(lines, records, strict=True) if id(record) in kept]
    records = _with_ties_in_order(distinct, sequence, path.name, notes)
    if not agree([record.ms for record in records]):
        # Lines that are numbered and in the order of their numbers were not moved: then a time is wrong.
        numbers = [number for number in sequence if isinstance(number, int)]
        is_numbered = 2 * len(numbers) > len(sequence) and numbers == sorted(numbers)
        records = in_order(records, is_numbered, path.name, notes)
    return _with_late_words(_without_repeats(records, path.name, notes), notes)


def _with_ties_in_order(records: list[Logged], numbers: Sequence[Stamp], name: str, notes: Notes) -> list[Logged]:
    """Lines of one millisecond in the order of their numbers."""
    by_moment: dict[int, list[int]] = {}
    for index, record in enumerate(records):
        if record.ms is not None and isinstance(numbers[index], int):
            by_moment.setdefault(record.ms, []).append(index)
    ordered = list(records)
    for indexes in by_moment.values():
        if len(indexes) > 1:
            for index, source in zip(indexes, sorted(indexes, key=lambda one: int(numbers[one] or 0)), strict=True):
                ordered[index] = records[source]
    if ordered != records:
        notes.repaired("out_of_order", f"{name}: lines of one millisecond were put in the order of their numbers")
    return ordered


def _sound_times(lines: Sequence[_SimulatorLine], name: str, notes: Notes) -> list[float | None]:
    """When sounds began and ended, in seconds, but for times that cannot be."""
    stamps = {index: line.audio_timestamp for index, line in enumerate(lines) if line.audio_timestamp is not None}
    read = [seconds(stamp) for stamp in stamps.values()]
    rounded = [None if at is None else round(1000 * at) for at in read]
    times: list[float | None] = [None] * len(lines)
    for index, at, ms in zip(stamps, read, plausible([*stamps.values()], rounded, name, notes), strict=True):
        times[index] = None if ms is None else at
    return times


def _with_late_words(records: list[Logged], notes: Notes) -> list[Logged]:
    """The user's words, where they were logged a moment after the end of a sound that had none, before that end."""
    wordless: int | None = None
    for index, record in enumerate(records):
        if record.kind == "user_speech":
            ended = None if wordless is None else records[wordless].ms
            if wordless is not None and ended is not None and record.ms is not None and record.ms - ended <= _MOMENT:
                records.insert(wordless, msgspec.structs.replace(record, ms=records[wordless].ms))
                del records[index + 1]
                notes.repaired("late_transcript", f"user: {record.text[:60]!r}")
            wordless = None
        elif record.kind == "audio_start":
            wordless = None
        elif record.kind == "audio_end" and record.speaker == "user":
            # Whether nothing was said in the user's sound that ends here.
            before = (one.kind for one in reversed(records[:index]) if (one.kind, one.speaker) in _OF_USER)
            wordless = index if next(before, "") == "audio_start" else None
    return records


def _without_repeats(records: list[Logged], name: str, notes: Notes) -> list[Logged]:
    """An event that was logged twice counts once.

    That is one equal in all, a sound that begins or ends at the same instant, or the same words
    within a moment in which they could not be said again.
    """
    distinct: list[Logged] = []
    seen: set[tuple[Any, ...]] = set()
    latest: dict[tuple[str, str], int] = {}
    for record in records:
        if record.kind in _SPEECH and record.text and record.ms is not None:
            before = latest.get((record.kind, record.text))
            latest[record.kind, record.text] = record.ms
            if before is not None and abs(record.ms - before) <= _MOMENT:
                notes.repaired("duplicate_record", f"{name}: {record.kind}")
                continue
        value = record.value if record.value is None else msgspec.json.encode(record.value, order="sorted")
        when = record.sound if record.sound is not None else record.ms
        key = (record.kind, record.speaker, record.text, when, value)
        if when is not None and key in seen:
            notes.repaired("duplicate_record", f"{name}: {record.kind}")
            continue
        seen.add(key)
        distinct.append(record)
    return distinct


def read_transcript(path: Path, notes: Notes) -> list[Logged]:
    """transcript.jsonl, the plain transcript, as if an audit log had it."""

    class _TranscriptLine(msgspec.Struct):
        timestamp: Stamp = None
        role: str | None = None
        type: str | None = None
        content: Any = None

    records = []
    lines = read_lines(path, msgspec.json.Decoder(_TranscriptLine), notes)
    for line, ms in zip(lines, times_of([line.timestamp for line in lines], path.name, notes), strict=True):
        role = line.role or line.type or ""
        if role in ("user", "assistant") and isinstance(line.content, str):
            text = line.content.strip()
            records.append(Logged(source="audit", kind=role, ms=ms, speaker=role, text=text))
    notes.records += len(records)
    return records
