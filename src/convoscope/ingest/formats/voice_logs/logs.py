"""The three logs of a call as records of one kind, each in its own order, freed of repeated entries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Logged
from convoscope.errors import InputError
from convoscope.ingest.formats.voice_logs.framework import (
    SPOKEN,
    WRITTEN,
    FrameworkLine,
    LogColumns,
    TextRun,
    corrected_lines,
    lines_in_order,
    runs,
    without,
    without_previews,
)
from convoscope.ingest.formats.voice_logs.lines import (
    agree,
    all_milliseconds,
    are_of_one_call,
    believed,
    in_order,
    milliseconds,
    plausible,
    read_lines,
    seconds,
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
_FRAMEWORK_KINDS = frozenset({"turn_start", "turn_end", "tts_text", "llm_response"})
TRANSCRIPT = "transcript"
UNHEARD = frozenset({"[user audio]", "[audio response - transcription unavailable]"})
"""Texts of records that have no text."""

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
_at_a_glance = True
"""Whether a log that is clean at a glance may skip its repair. For tests, which hold the one against the other."""


def read_audit(path: Path, notes: Notes) -> AuditLog:
    """audit_log.json. One that is cut off still gives the entries before the cut."""
    data = files.whole(path)
    try:
        log = _audit.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        log = _repaired_audit(data, path, notes)
    records: list[Logged] = []
    for entry, ms in zip(log.transcript, _entry_times(log, path.name, notes), strict=True):
        kind, value = entry.message_type or "", entry.value
        text = value if isinstance(value, str) else ""
        records.append(
            Logged(
                source="audit",
                kind=kind,
                ms=ms,
                speaker=kind if kind in ("user", "assistant") else "",
                text=text,
                value=None if text or value == "" else value,
            )
        )
    notes.records += len(records)
    records = _without_repeats(records, path.name, notes)
    if not agree([record.ms for record in records]):
        records = in_order(records, believed(records), path.name, notes)
    return AuditLog(records, log.llm_prompts)


def _entry_times(log: _Audit, name: str, notes: Notes) -> list[int | None]:
    """When each entry was made. A call to the model whose end cannot be has none."""
    stamps = [entry.timestamp for entry in log.transcript]
    ended = [call for call in log.llm_prompts if call.end_time is not None]
    every = [*stamps, *(call.end_time for call in ended)]
    times = plausible(every, all_milliseconds(every), name, notes)
    for call, ms in zip(ended, times[len(stamps) :], strict=True):
        if ms is None:
            call.end_time = None
    return times[: len(stamps)]


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
    transcript = value.get("transcript") if isinstance(value, dict) else None
    prompts = value.get("llm_prompts") if isinstance(value, dict) else None
    return _Audit(
        transcript=_converted(transcript, _AuditEntry, f"{path.name} transcript", notes),
        llm_prompts=_converted(prompts, LlmCall, f"{path.name} llm_prompts", notes),
    )


def _converted(values: Any, kind: Any, index: str, notes: Notes) -> list[Any]:
    entries = []
    for number, value in enumerate(values if isinstance(values, list) else []):
        try:
            entries.append(msgspec.convert(value, kind, strict=False))
        except msgspec.ValidationError as error:
            notes.repaired("entry_left_out", f"{index}[{number}]: {error}")
    return entries


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
    usual = read_lines(path, _framework_line, notes)
    clean = _clean(usual) if _at_a_glance else None
    taken: list[_FrameworkLine] | list[_AnyFrameworkLine] = usual
    lines: list[FrameworkLine] | None = []
    if clean is None:
        lines = _framework_lines(taken, path.name, notes)
    if lines is None:
        # The text may sit under another name: then it is the first.
        taken = read_lines(path, _any_framework_line, Notes())
        lines = _framework_lines(taken, path.name, notes) or []
    kinds = [line.type for line in taken]
    for kind in dict.fromkeys(kinds):
        if kind != TRANSCRIPT and kind not in _FRAMEWORK_KINDS:
            notes.ignored(f"framework.{kind}")
    transcripts = [taken[index] for index, kind in enumerate(kinds) if kind == TRANSCRIPT]
    times = _times([line.timestamp for line in transcripts], path.name, notes)
    heard: list[Logged] = []
    if not audit or not agree(times):
        texts = [(_frame(line.data)[0] or "").strip() for line in transcripts]
        heard = [
            Logged(source="framework", kind=TRANSCRIPT, ms=ms, speaker="user", text=text)
            for ms, text in zip(times, texts, strict=True)
        ]
    notes.records += len(taken)
    replies = [record.text for record in audit if record.kind == "assistant"]
    moved = False
    if clean is None:
        lines = _without_doubles(lines, path.name, notes)
        ordered = lines_in_order(lines, replies, path.name, notes)
        moved = ordered is not lines
        clean = LogColumns.of(without_previews(ordered))
    understood = [record.text for record in simulator if record.kind == "assistant_speech"]
    sent = corrected_lines(clean, replies, understood, path.name, notes, moved=moved)
    if None in sent.times:
        sent = LogColumns.of(_timed(sent.lines()))
    if not agree([record.ms for record in heard]):
        heard = in_order(heard, "time", path.name, notes)
    return Framework(runs(sent), heard)


def _clean(taken: Sequence[_FrameworkLine]) -> LogColumns | None:
    """Turn boundaries and what was sent to the speech engine, where that needs no repair; None where it may.

    All lines are as usual, in order and none twice, and words come one by one, so that none is the preview of others.
    """
    sent = [line for line in taken if line.type in _FRAMEWORK_KINDS]
    times: list[Any] = [line.timestamp for line in sent]
    data: list[Any] = [line.data for line in sent]
    if {*map(type, times)} != {int} or {*map(type, data)} != {_Frame}:
        return None
    texts: list[Any] = [frame.frame for frame in data]
    ended: list[Any] = [frame.was_interrupted for frame in data]
    if {*map(type, texts)} != {str} or not _FLAGS.issuperset(map(type, ended)):
        return None
    if times[0] < _EPOCH_MS or times != sorted(times) or not are_of_one_call(times):
        return None
    kinds = [line.type or "" for line in sent]
    rare = [index for index, kind in enumerate(kinds) if kind != SPOKEN]
    once = {(times[index], kinds[index], texts[index], ended[index]) for index in rare}
    spoken = " ".join(without(texts.copy(), rare))
    if len(once) < len(rare) or len(rare) == len(sent) or spoken.count(" ") >= len(sent) - len(rare):
        return None
    written = [index for index in rare if kinds[index] == WRITTEN]
    return LogColumns(*[without(column, written) for column in (times, kinds, texts, ended)])


def _times(stamps: Sequence[object], name: str, notes: Notes) -> list[int | None]:
    return plausible(stamps, all_milliseconds(stamps), name, notes)


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
                timed[index] = line._replace(ms=timed[neighbour].ms)
    return timed


_ENDS = (".", "?", "!")
_EPOCH_MS = 10**11
_SPOKEN = frozenset({SPOKEN, WRITTEN})
_FLAGS = frozenset({bool, type(None)})


def _framework_lines(
    taken: list[_FrameworkLine] | list[_AnyFrameworkLine], name: str, notes: Notes
) -> list[FrameworkLine] | None:
    """Turn boundaries and what was sent to the speech engine; None where a text is not where it usually is."""
    lines: list[FrameworkLine] = []
    stamps: list[Stamp] = []
    unknown = 0
    for line in taken:
        kind = line.type
        if kind not in _FRAMEWORK_KINDS:
            continue
        stamp, data = line.timestamp, line.data
        ms = stamp if type(stamp) is int and stamp >= _EPOCH_MS else milliseconds(stamp)
        if type(data) is _Frame and type(data.frame) is str and data.was_interrupted is None:
            lines.append(FrameworkLine(ms, kind, data.frame))
        elif type(line) is _FrameworkLine and (data is None or data.frame is None):
            return None
        else:
            text, interrupted = _frame(data)
            if text is None and kind in _SPOKEN:
                unknown += 1
                continue
            lines.append(FrameworkLine(ms, kind, text or "", interrupted))
        stamps.append(stamp)
    for _ in range(unknown):
        notes.repaired("line_left_out", f"{name}: what was spoken is unknown")
    times = plausible(stamps, [line.ms for line in lines], name, notes)
    return [line if line.ms == ms else line._replace(ms=ms) for line, ms in zip(lines, times, strict=True)]


def _without_doubles(lines: list[FrameworkLine], name: str, notes: Notes) -> list[FrameworkLine]:
    """A phrase or a turn boundary that was logged twice counts once. A word may well be said twice in an instant."""
    whole = [line for line in lines if line.kind != "tts_text" or " " in line.text.strip()]
    if len(set(whole)) == len(whole):
        return lines
    distinct: list[FrameworkLine] = []
    seen: set[FrameworkLine] = set()
    for line in lines:
        if line not in seen or line.ms is None or (line.kind == "tts_text" and " " not in line.text.strip()):
            distinct.append(line)
            seen.add(line)
        else:
            notes.repaired("duplicate_record", f"{name}: {line.kind}")
    return distinct


def _frame(data: Any) -> tuple[str | None, bool | None]:
    """The text of a line, and whether the user ended it; None is what it does not have."""
    if isinstance(data, _Frame):
        text, interrupted = data.frame, data.was_interrupted
    elif isinstance(data, dict):
        text, interrupted = next(iter(data.values()), None), data.get("was_interrupted")
    else:
        text, interrupted = data, None
    return text if isinstance(text, str) else None, interrupted if isinstance(interrupted, bool) else None


def as_logged(run: TextRun) -> Logged:
    """A run of the framework's log as one record."""
    value = None if run.interrupted is None else {"was_interrupted": run.interrupted}
    return Logged(source="framework", kind=run.kind, ms=run.ms, text=run.text, value=value)


def read_simulator(path: Path, notes: Notes) -> list[Logged]:
    """elevenlabs_events.jsonl and its kin."""
    records: list[Logged] = []
    lines = read_lines(path, _simulator_line, notes)
    times = _times([line.timestamp for line in lines], path.name, notes)
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
            Logged(
                source="simulator",
                kind=kind,
                ms=ms,
                sound=sound,
                speaker=speaker,
                text=text,
                value=value,
            )
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
        numbered = 2 * len(numbers) > len(sequence) and numbers == sorted(numbers)
        records = in_order(records, "file" if numbered else "time", path.name, notes)
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
    sound_seconds = [None if line.audio_timestamp is None else seconds(line.audio_timestamp) for line in lines]
    indexes = [index for index, line in enumerate(lines) if line.audio_timestamp is not None]
    stamps = [lines[index].audio_timestamp for index in indexes]
    rounded = [None if (at := sound_seconds[index]) is None else round(1000 * at) for index in indexes]
    for index, ms in zip(indexes, plausible(stamps, rounded, name, notes), strict=True):
        if ms is None:
            sound_seconds[index] = None
    return sound_seconds


_SOUNDS = frozenset({"audio_start", "audio_end"})
_MOMENT = 250
"""Milliseconds."""


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
            wordless = index if _is_wordless(records, index) else None
    return records


def _is_wordless(records: list[Logged], end: int) -> bool:
    """Whether nothing was said in the user's sound that ends here."""
    for index in range(end - 1, -1, -1):
        if records[index].kind == "user_speech":
            return False
        if records[index].kind == "audio_start" and records[index].speaker == "user":
            return True
    return False


def _without_repeats(records: list[Logged], name: str, notes: Notes) -> list[Logged]:
    """An event that was logged twice counts once.

    That is one equal in all, a sound that begins or ends at the same instant, or the same words
    within a moment in which they could not be said again.
    """
    if _at_a_glance and not _may_repeat(records):
        return records
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


def _may_repeat(records: list[Logged]) -> bool:
    """At a glance: whether two records share an instant and all but their value, or the same words were said twice."""
    keys = {(one.kind, one.speaker, one.text, one.sound if one.sound is not None else one.ms) for one in records}
    texts = [(one.kind, one.text) for one in records if one.kind in _SPEECH and one.text]
    return len(keys) < len(records) or len({*texts}) < len(texts)


def read_transcript(path: Path, notes: Notes) -> list[Logged]:
    """transcript.jsonl, the plain transcript, as if an audit log had it."""

    class _TranscriptLine(msgspec.Struct):
        timestamp: Stamp = None
        role: str | None = None
        type: str | None = None
        content: Any = None

    records = []
    lines = read_lines(path, msgspec.json.Decoder(_TranscriptLine), notes)
    for line, ms in zip(lines, _times([line.timestamp for line in lines], path.name, notes), strict=True):
        role = line.role or line.type or ""
        if role in ("user", "assistant") and isinstance(line.content, str):
            text = line.content.strip()
            records.append(Logged(source="audit", kind=role, ms=ms, speaker=role, text=text))
    notes.records += len(records)
    return records
