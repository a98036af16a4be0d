"""The three logs of a call as records of one kind, each in its own order, freed of repeated entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Logged
from convoscope.errors import InputError
from convoscope.ingest import files
from convoscope.ingest.decode import BadJson, decode
from convoscope.ingest.report import Notes
from convoscope.ingest.voice import words
from convoscope.ingest.voice.framework import Line, Run, runs, without_previews
from convoscope.ingest.voice.lines import milliseconds, read_lines, seconds
from convoscope.ingest.voice.ordering import agree, believed, in_order

_SPEAKERS = {
    "simulated_user": "user",
    "elevenlabs_user": "user",
    "user": "user",
    "assistant": "assistant",
    "framework_agent": "assistant",
    "pipecat_agent": "assistant",
}
_SPEECH = {"user_speech": "user", "assistant_speech": "assistant"}
_FRAMEWORK_KINDS = frozenset({"turn_start", "turn_end", "tts_text", "llm_response"})
TRANSCRIPT = "transcript"
UNHEARD = frozenset({"[user audio]", "[audio response - transcription unavailable]"})
"""What stands where a text would, when there is none."""

Stamp = int | float | str | None


class _Frame(msgspec.Struct, gc=False):
    frame: Any = None
    was_interrupted: Any = None


class _FrameworkLine(msgspec.Struct, gc=False):
    timestamp: Stamp = None
    type: str | None = None
    data: _Frame | None = None


class _AnyFrameworkLine(msgspec.Struct, gc=False):
    timestamp: Stamp = None
    type: str | None = None
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
    latency_ms: Stamp = None
    error_type: Any = None


class _Audit(msgspec.Struct, gc=False):
    transcript: list[_AuditEntry] = []
    llm_prompts: list[LlmCall] = []


class Audit(NamedTuple):
    """What the model and its tools did."""

    records: list[Logged]
    calls: list[LlmCall]


class Framework(NamedTuple):
    """What was sent to the speech engine; `heard` is what it wrote down of the user, piece by piece."""

    runs: list[Run]
    heard: list[Logged]


_audit = msgspec.json.Decoder(_Audit)


def read_audit(path: Path, notes: Notes) -> Audit:
    """audit_log.json. One that is cut off still gives the entries before the cut."""
    data = files.whole(path)
    try:
        log = _audit.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        log = _mended_audit(data, path, notes)
    records: list[Logged] = []
    for entry in log.transcript:
        kind, value = entry.message_type or "", entry.value
        text = value if isinstance(value, str) else ""
        records.append(
            Logged(
                source="audit",
                kind=kind,
                ms=milliseconds(entry.timestamp),
                speaker=kind if kind in ("user", "assistant") else "",
                text=text,
                value=None if text or value == "" else value,
            )
        )
    notes.records += len(records)
    records = _without_repeats(records, path.name, notes)
    if not agree([record.ms for record in records]):
        records = in_order(records, believed(records), path.name, notes)
    return Audit(records, log.llm_prompts)


def _mended_audit(data: bytes, path: Path, notes: Notes) -> _Audit:
    try:
        value, repairs = decode(data)
        for code in repairs:
            notes.repaired(code, path.name)
    except BadJson as error:
        entries = _entries_before(data)
        if not entries:
            raise InputError(f"{path.name}: {error}", hint="write the file whole") from None
        notes.repaired("cut_file", f"{path.name}: {error}; {len(entries)} entries before it were kept")
        value = {"transcript": entries}
    if isinstance(value, list):
        value = {"transcript": value}
    found = value.get("transcript") if isinstance(value, dict) else None
    prompts = value.get("llm_prompts") if isinstance(value, dict) else None
    return _Audit(
        transcript=_converted(found, _AuditEntry, f"{path.name} transcript", notes),
        llm_prompts=_converted(prompts, LlmCall, f"{path.name} llm_prompts", notes),
    )


def _converted(values: Any, kind: Any, place: str, notes: Notes) -> list[Any]:
    found = []
    for number, value in enumerate(values if isinstance(values, list) else []):
        try:
            found.append(msgspec.convert(value, kind, strict=False))
        except msgspec.ValidationError as error:
            notes.repaired("entry_left_out", f"{place}[{number}]: {error}")
    return found


def _entries_before(data: bytes) -> list[Any]:
    """The whole entries of `transcript` in a file that is cut off."""
    import json

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
    taken: list[_FrameworkLine] | list[_AnyFrameworkLine] = read_lines(path, _FrameworkLine, notes)
    lines = _framework_lines(taken)
    if lines is None:
        # The text may sit under another name: then it is the first.
        taken = read_lines(path, _AnyFrameworkLine, Notes())
        lines = _framework_lines(taken) or []
    others = [line for line in taken if line.type not in _FRAMEWORK_KINDS]
    for kind in {line.type for line in others} - {TRANSCRIPT}:
        notes.ignored(f"framework.{kind}")
    heard = [
        Logged(
            source="framework",
            kind=TRANSCRIPT,
            ms=milliseconds(line.timestamp),
            speaker="user",
            text=_frame(line.data)[0].strip(),
        )
        for line in others
        if line.type == TRANSCRIPT
    ]
    notes.records += len(taken)
    replies = [record.text for record in audit if record.kind == "assistant"]
    lines = _without_doubles(lines, path.name, notes)
    ordered = words.in_order(lines, replies, path.name, notes)
    understood = [record.text for record in simulator if record.kind == "assistant_speech"]
    moved = ordered is not lines
    lines = words.mended(without_previews(ordered), replies, understood, path.name, notes, moved=moved)
    if not agree([record.ms for record in heard]):
        heard = in_order(heard, "time", path.name, notes)
    return Framework(runs(lines), heard)


_EPOCH_MS = 10**11


def _framework_lines(taken: list[_FrameworkLine] | list[_AnyFrameworkLine]) -> list[Line] | None:
    """Turn boundaries and what was sent to the speech engine; None where a text is not where it usually is."""
    lines: list[Line] = []
    for line in taken:
        kind = line.type
        if kind not in _FRAMEWORK_KINDS:
            continue
        stamp, data = line.timestamp, line.data
        ms = stamp if type(stamp) is int and stamp >= _EPOCH_MS else milliseconds(stamp)
        if type(data) is _Frame and type(data.frame) is str and data.was_interrupted is None:
            lines.append(Line(ms, kind, data.frame))
        elif type(line) is _FrameworkLine and (data is None or data.frame is None):
            return None
        else:
            lines.append(Line(ms, kind, *_frame(data)))
    return lines


def _without_doubles(lines: list[Line], name: str, notes: Notes) -> list[Line]:
    """A phrase or a turn boundary that was logged twice counts once. A word may well be said twice in an instant."""
    whole = [line for line in lines if line.kind != "tts_text" or " " in line.text.strip()]
    if len(set(whole)) == len(whole):
        return lines
    kept: list[Line] = []
    seen: set[Line] = set()
    for line in lines:
        if line not in seen or line.ms is None or (line.kind == "tts_text" and " " not in line.text.strip()):
            kept.append(line)
            seen.add(line)
        else:
            notes.repaired("duplicate_record", f"{name}: {line.kind}")
    return kept


def _frame(data: Any) -> tuple[str, bool | None]:
    if isinstance(data, _Frame):
        text, interrupted = data.frame, data.was_interrupted
    elif isinstance(data, dict):
        text, interrupted = next(iter(data.values()), ""), data.get("was_interrupted")
    else:
        text, interrupted = data, None
    return text if isinstance(text, str) else "", interrupted if isinstance(interrupted, bool) else None


def as_logged(run: Run) -> Logged:
    """A run of the framework's log as one record."""
    value = None if run.interrupted is None else {"was_interrupted": run.interrupted}
    return Logged(source="framework", kind=run.kind, ms=run.ms, text=run.text, value=value)


def read_simulator(path: Path, notes: Notes) -> list[Logged]:
    """elevenlabs_events.jsonl and its kin."""
    records: list[Logged] = []
    lines = read_lines(path, _SimulatorLine, notes)
    for line in lines:
        kind = line.type or line.event_type or ""
        speaker, text, value = _SPEAKERS.get(line.user or "", ""), "", line.data
        if kind in _SPEECH:
            speaker = _SPEECH[kind]
            said = value.get("text") if isinstance(value, dict) else value
            text, value = said if isinstance(said, str) else "", None
        sound = None if line.audio_timestamp is None else seconds(line.audio_timestamp)
        records.append(
            Logged(
                source="simulator",
                kind=kind,
                ms=milliseconds(line.timestamp),
                sound=sound,
                speaker=speaker,
                text=text,
                value=value,
            )
        )
    notes.records += len(lines)
    if not agree([record.ms for record in records]):
        # Lines that are numbered and stand in the order of their numbers were not moved: then a time is wrong.
        numbers = [line.sequence for line in lines if isinstance(line.sequence, int)]
        numbered = 2 * len(numbers) > len(lines) and numbers == sorted(numbers)
        records = in_order(records, "file" if numbered else "time", path.name, notes)
    return _with_late_words(_without_repeats(records, path.name, notes), notes)


_MOMENT = 250
"""Milliseconds."""


def _with_late_words(records: list[Logged], notes: Notes) -> list[Logged]:
    """The user's words, where they were logged a moment after the end of a sound that had none, before that end."""
    wordless: int | None = None
    for place, record in enumerate(records):
        if record.kind == "user_speech":
            if wordless is not None and _is_soon(records[wordless], record):
                records.insert(wordless, msgspec.structs.replace(record, ms=records[wordless].ms))
                del records[place + 1]
                notes.repaired("late_transcript", f"user: {record.text[:60]!r}")
            wordless = None
        elif record.kind == "audio_start":
            wordless = None
        elif record.kind == "audio_end" and record.speaker == "user":
            wordless = place if _is_wordless(records, place) else None
    return records


def _is_soon(before: Logged, after: Logged) -> bool:
    return before.ms is not None and after.ms is not None and after.ms - before.ms <= _MOMENT


def _is_wordless(records: list[Logged], end: int) -> bool:
    """Whether nothing was said in the user's sound that ends here."""
    for place in range(end - 1, -1, -1):
        if records[place].kind == "user_speech":
            return False
        if records[place].kind == "audio_start" and records[place].speaker == "user":
            return True
    return False


def _without_repeats(records: list[Logged], name: str, notes: Notes) -> list[Logged]:
    """An event that was logged twice counts once.

    That is one equal in all, a sound that begins or ends at the same instant, or the same words
    within a moment in which nobody could have said them again.
    """
    kept: list[Logged] = []
    seen: set[tuple[Any, ...]] = set()
    said: dict[tuple[str, str], int] = {}
    for record in records:
        if record.kind in _SPEECH and record.text and record.ms is not None:
            before = said.get((record.kind, record.text))
            said[record.kind, record.text] = record.ms
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
        kept.append(record)
    return kept


def read_transcript(path: Path, notes: Notes) -> list[Logged]:
    """transcript.jsonl, the plain one beside the others, as if an audit log had it."""

    class Said(msgspec.Struct):
        timestamp: Stamp = None
        role: str | None = None
        type: str | None = None
        content: Any = None

    found = []
    for line in read_lines(path, Said, notes):
        role = line.role or line.type or ""
        if role in ("user", "assistant") and isinstance(line.content, str):
            text = line.content.strip()
            found.append(Logged(source="audit", kind=role, ms=milliseconds(line.timestamp), speaker=role, text=text))
    notes.records += len(found)
    return found
