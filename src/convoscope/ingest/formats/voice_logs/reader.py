"""Folders of voice calls."""

from __future__ import annotations

import os
import re
import wave
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Agent, AudioFile, Conversation, Database, Logged, Outcome, Scenario, Source, Track
from convoscope.conversation.databases import database_hash, is_hash_of
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.companions.datasets import is_config, load
from convoscope.ingest.formats.voice_logs.lines import read_document, read_lines
from convoscope.ingest.formats.voice_logs.logs import (
    AuditLog,
    Framework,
    LlmCall,
    read_audit,
    read_framework,
    read_simulator,
    read_transcript,
)
from convoscope.ingest.formats.voice_logs.timeline import JoinedCall, build
from convoscope.ingest.io import containers as files
from convoscope.ingest.reader import Detection, FolderSample, Reader, RecordGroup, Sample
from convoscope.ingest.record import as_number, number_in
from convoscope.ingest.report import Notes

AUDIT = ("audit_log.json",)
FRAMEWORK = ("pipecat_events.jsonl", "pipecat_logs.jsonl", "framework_logs.jsonl")
SIMULATOR = ("elevenlabs_events.jsonl", "user_simulator_events.jsonl")
RESULT = "result.json"
LOGS = frozenset((*AUDIT, *FRAMEWORK, *SIMULATOR))
PACKED = (".gz", ".zst", ".zstd")

_NAMED = {
    "audit": (("audit_log_path",), AUDIT),
    "framework": (("framework_logs_path", "pipecat_logs_path"), FRAMEWORK),
    "simulator": (("user_simulator_logs_path", "elevenlabs_logs_path"), SIMULATOR),
    "transcript": (("transcript_path",), ("transcript.jsonl",)),
}
"""Each log: the fields of result.json that may name it, and the names that it goes by."""

_SOUND = {
    "assistant": (("audio_assistant_path",), ("audio_assistant.wav",)),
    "user": (("audio_user_path",), ("audio_user.wav",)),
    "user_clean": ((), ("audio_user_clean.wav",)),
    "mixed": (("audio_mixed_path",), ("audio_mixed.wav",)),
}


_SIDES = {"assistant": ("assistant",), "user": ("user",), "user_clean": ("user",), "mixed": ("assistant", "user")}


class CallFolder:
    """The files of a call's folder, by what they are for."""

    def __init__(self, path: Path, result: dict[str, Any]) -> None:
        self.path = path
        with os.scandir(path) as entries:
            self._names = {entry.name for entry in entries if _is_file(entry)}
        self._result: dict[str, Any] = result
        self.missing: list[str] = []
        """Files that result.json names and that are not there, with the field."""
        self.audit = self._find(*_NAMED["audit"])
        self.framework = self._find(*_NAMED["framework"])
        self.simulator = self._find(*_NAMED["simulator"])
        self.transcript = self._find(*_NAMED["transcript"])
        self.sounds = {side: file for side, names in _SOUND.items() if (file := self._find(*names)) is not None}

    def file(self, *names: str) -> Path | None:
        """The first of these that is there, packed or not."""
        for name in names:
            for ending in ("", *PACKED):
                if name + ending in self._names:
                    return self.path / (name + ending)
        return None

    def _find(self, fields: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
        """The file that result.json names, if it is there; else the one with a usual name."""
        for field in fields:
            path_in_result = self._result.get(field)
            if isinstance(path_in_result, str) and path_in_result:
                path = self.file(base_name(path_in_result))
                if path is not None:
                    return path
                self.missing.append(f"{field}: {base_name(path_in_result)}")
        return self.file(*names)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself, say
        return Path(entry.path).is_file()


def unpacked_name(name: str) -> str:
    """The name of a file without the ending of its packing."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


def base_name(path: str) -> str:
    """The last part of a path of whatever system: folders are moved, names stay."""
    name = path.rpartition("/")[2]
    if name and name.replace(".", "").replace("_", "").isalnum():
        return name
    return PureWindowsPath(PurePosixPath(path).name).name


def track(path: Path, channels: tuple[str, ...]) -> Track:
    """A recording, with what its header says."""
    try:
        with wave.open(str(path), "rb") as sound:
            rate = sound.getframerate()
            return Track(
                path=path.name,
                channels=channels,
                format="wav",
                sample_rate=rate,
                duration=sound.getnframes() / rate if rate else None,
            )
    except (wave.Error, EOFError, OSError):
        return Track(path=path.name, channels=channels)


_NAMES: dict[str, Pipeline] = {
    "cascade": "cascade",
    "audio_llm": "audio_llm",
    "audiollm": "audio_llm",
    "s2t": "audio_llm",
    "s2s": "s2s",
    "speech_to_speech": "s2s",
    "realtime": "s2s",
}


class StatedPipeline(NamedTuple):
    """The pipeline, and why, where it had to be concluded."""

    pipeline: Pipeline
    inferred: str = ""


def pipeline(
    result: Mapping[str, Any], config: Mapping[str, Any], audit: Sequence[Logged], *, framework: bool
) -> StatedPipeline:
    """The pipeline of a call."""
    for settings in (result, config):
        name = str(settings.get("pipeline_type") or "").lower().replace("-", "_")
        if name in _NAMES:
            return StatedPipeline(_NAMES[name])
    model = config.get("model")
    if isinstance(model, dict):
        for name, kind in _NAMES.items():
            if model.get(name) or model.get(f"{name}_model"):
                return StatedPipeline(kind)
    if any(record.kind == "user" and record.text == "[user audio]" for record in audit):
        return StatedPipeline("audio_llm", "the audit log holds the user's sound in place of words")
    named = any(result.get(field) for field in ("pipecat_logs_path", "framework_logs_path"))
    if result and not framework and not named and audit:
        return StatedPipeline("s2s", "result.json names no log of a framework")
    speakers = [record.kind for record in audit if record.kind in ("user", "assistant")]
    if not framework and not result and speakers[:1] == ["assistant"]:
        return StatedPipeline(
            "s2s", "the audit log begins with the agent's greeting, and there is no log of a framework"
        )
    return StatedPipeline("cascade", "" if framework else "nothing says otherwise")


_SET_ASIDE = re.compile(r"_(?:attempt|failed_attempt|extra|unvalidated)_\d+$")
_TRIAL = re.compile(r"trial_(\d+)$")
_OF_RUN = ("config.json", "dataset.json*", "*_dataset.json*")
_OUTPUTS = ("overall_scores", "per_metric")
_LATENCIES = ("llm", "stt", "tts", "model_response")


class VoiceLogsReader(Reader):
    """One folder is one call."""

    name = "voice-logs"
    title = "Voice calls: folders with audit, framework and caller logs"

    def detect_folder(self, folder: FolderSample) -> Detection | None:
        plain = {unpacked_name(name): name for name in folder.names}
        logs = sorted(plain.keys() & LOGS)
        if logs:
            return Detection(0.95, f"holds {' and '.join(logs)}", "folder")
        if RESULT in plain:
            value = read_document(folder.path / plain[RESULT], Notes())
            if isinstance(value, dict) and "record_id" in value and "audit_log_path" in value:
                return Detection(0.9, "its result.json names the logs of a call", "folder")
        return None

    def leave_out(self, folder: FolderSample) -> str:
        if not _SET_ASIDE.search(folder.path.name):
            return ""
        logs = any(unpacked_name(name) in LOGS for name in folder.names)
        return "an attempt that was set aside" if logs or any(map(_TRIAL.fullmatch, folder.names)) else ""

    def beside(self, folder: Path) -> Sequence[Path]:
        """Settings and dataset of the run that a record lies in, where only the record was given."""
        records = next((parent for parent in folder.resolve().parents if parent.name == "records"), None)
        if records is None:
            return ()
        return sorted(path for name in _OF_RUN for path in records.parent.glob(name) if path.is_file())

    def part_of(self, name: str) -> str:
        return "one log of a call: give the folder that holds it" if unpacked_name(name) in LOGS else ""

    def detect(self, sample: Sample) -> Detection | None:
        first = sample.values[0] if sample.values else None
        if sample.path.name == "config.json" and is_config(first):
            return Detection(0.6, "settings of a run of calls", "companion")
        if isinstance(first, dict) and all(key in first for key in _OUTPUTS):
            return Detection(0.5, "figures that another tool made of calls", "companion")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        yield read_call(group.path, notes, name=group.name, companions=group.companions)


def read_call(path: Path, notes: Notes, *, name: str = "", companions: tuple[Path, ...] = ()) -> Conversation:
    """The call in a folder. Whatever cannot be read is said, and the rest is joined."""
    result = _result(path, notes)
    config = load(companions).config
    folder = CallFolder(path, result)
    for missing in folder.missing:
        notes.repaired("named_file_missing", missing)
    audit, framework, simulator = _logs(folder, notes)
    stated = pipeline(result, config, audit.records, framework=bool(framework.runs))
    if not framework.runs and stated.pipeline != "s2s":
        _note_missing(folder.framework, "framework: replies as the model wrote them, not as they were spoken", notes)
    if stated.inferred:
        notes.inferred(f"pipeline_{stated.pipeline}", stated.inferred)
    call = JoinedCall(
        audit=audit.records,
        runs=[] if stated.pipeline == "s2s" else framework.runs,
        simulator=simulator,
        pipeline=stated.pipeline,
        llm_calls=audit.calls,
        metrics=_component_lines(folder, notes),
    )
    if not call.audit and not call.runs and not call.simulator:
        raise InputError("none of its logs holds a record", hint="a call needs one readable log of the three")
    where = path.resolve()
    logs = (folder.audit, folder.framework, folder.simulator)
    record_id, trial = _identity(where, result)
    built = build(call, notes)
    tracks = tuple(track(file, _SIDES[side]) for side, file in folder.sounds.items())
    dimensions = {"scenario_id": record_id, **({"trial": trial} if trial else {})}
    if isinstance(config.get("domain"), str):
        dimensions["domain"] = config["domain"]
    return Conversation(
        id=f"{record_id}/trial_{trial}" if trial else record_id,
        dimensions=dimensions,
        source=Source(
            format=VoiceLogsReader.name,
            files=tuple(log.name for log in logs if log is not None),
            record=name,
            folder=str(where),
        ),
        pipeline=stated.pipeline,
        participants=built.participants,
        clocks=built.clocks,
        agent=_agent(audit.calls, config),
        scenario=_scenario(folder, result, notes),
        timeline=built.timeline,
        log=built.log,
        outcome=_outcome(result, simulator, built.duration),
        recording=AudioFile(tracks=tracks) if tracks else None,
        extras=_extras(folder, result, config, notes),
    )


def _result(path: Path, notes: Notes) -> dict[str, Any]:
    """result.json, packed or not; nothing, and noted, where it is not what it should be."""
    held = path / RESULT
    if not held.exists():
        packed = next((path / (RESULT + ending) for ending in PACKED if (path / (RESULT + ending)).exists()), None)
        if packed is None:
            return {}
        held = packed
    result = read_document(held, notes)
    if isinstance(result, dict):
        return result
    if result is not None:
        notes.repaired("file_left_out", f"{held.name}: holds no object")
    return {}


def _logs(folder: CallFolder, notes: Notes) -> tuple[AuditLog, Framework, list[Logged]]:
    audit, framework, simulator = AuditLog([], []), Framework([], []), list[Logged]()
    if folder.audit is not None:
        audit = _readable(lambda path: read_audit(path, notes), folder.audit, notes) or audit
    if folder.simulator is not None:
        simulator = _readable(lambda path: read_simulator(path, notes), folder.simulator, notes) or simulator
    if folder.framework is not None:
        others = (audit.records, simulator)
        framework = _readable(lambda path: read_framework(path, notes, *others), folder.framework, notes) or framework
    if not audit.records:
        _note_missing(folder.audit, "audit: no tool calls, and no words of the recogniser", notes)
        if framework.heard:
            # The recogniser's text as the framework logged it, instead of the audit log's.
            heard = [msgspec.structs.replace(one, source="audit", kind="user") for one in framework.heard if one.text]
            audit = AuditLog(heard, audit.calls)
            notes.inferred("heard_from_framework", f"{len(framework.heard)} lines")
        elif folder.transcript is not None:
            transcript = _readable(lambda path: read_transcript(path, notes), folder.transcript, notes) or []
            audit = AuditLog(transcript, audit.calls)
            notes.inferred("heard_from_transcript", f"{len(transcript)} lines")
    if not simulator:
        _note_missing(folder.simulator, "caller: no sound, and no words as the caller meant or heard them", notes)
    return audit, framework, simulator


def _note_missing(path: Path | None, what: str, notes: Notes) -> None:
    notes.repaired("log_missing" if path is None else "log_empty", what)


def _readable(read: Any, path: Path, notes: Notes) -> Any:
    """What a file holds; None, and noted, where it cannot be read at all."""
    try:
        return read(path)
    except (InputError, OSError) as error:
        notes.repaired("file_left_out", f"{path.name}: {error}")
        return None


def _identity(where: Path, result: dict[str, Any]) -> tuple[str, str]:
    """The id of the record, and the number of the trial."""
    trial = _TRIAL.fullmatch(where.name)
    record_id = result.get("record_id")
    folder = where.parent.name if trial else where.name
    return str(record_id) if isinstance(record_id, str | int) and record_id != "" else folder, trial[1] if trial else ""


def _agent(calls: Sequence[LlmCall], config: Any) -> Agent:
    """Its models as the settings name them, and its instructions as the model was prompted with them."""
    models = config.get("model")
    models = models if isinstance(models, dict) else {"llm": models}
    return Agent(
        instructions=_system_prompt(calls[0]) if calls else "",
        models={part: name for part, name in models.items() if isinstance(name, str)},
    )


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None


_messages = msgspec.json.Decoder(list[_Message])


def _system_prompt(call: LlmCall) -> str:
    try:
        messages = _messages.decode(call.prompt)
    except msgspec.DecodeError:
        return ""
    return next((one.content for one in messages if one.role == "system" and isinstance(one.content, str)), "")


def _scenario(folder: CallFolder, result: dict[str, Any], notes: Notes) -> Scenario | None:
    before = _database(folder, ("initial_scenario_db.json", "scenario_db.json"), result, "initial", notes)
    after = _database(folder, ("final_scenario_db.json",), result, "final", notes)
    return None if before is None and after is None else Scenario(before=before, after=after)


def _database(
    folder: CallFolder, names: tuple[str, ...], result: dict[str, Any], which: str, notes: Notes
) -> Database | None:
    """A database as the folder holds it. The hash that is stored for it is recomputed, and a difference is noted."""
    stored = result.get(f"{which}_scenario_db_hash")
    stored = stored if isinstance(stored, str) else ""
    path = folder.file(*names)
    content = read_document(path, notes) if path is not None else None
    if content is None:
        return Database(None, stored) if stored else None
    wrong = bool(stored) and not is_hash_of(stored, content)
    if wrong:
        notes.repaired("database_hash_differs", f"{which}: stored {stored[:12]}…, is {database_hash(content)[:12]}…")
    return Database(content, stored, wrong)


def _outcome(result: dict[str, Any], simulator: Sequence[Logged], duration: float | None) -> Outcome:
    reason = result.get("conversation_ended_reason")
    if not isinstance(reason, str) or not reason:
        reason = next(filter(None, map(_ended_reason, reversed(simulator))), "")
    seconds = as_number(result.get("duration_seconds"))
    error = result.get("error")
    extras = {
        key: result[key]
        for key in ("completed", "error_details", "num_turns", "num_tool_calls", "tools_called")
        if result.get(key) is not None
    }
    return Outcome(
        finished=None if not reason else reason.strip().casefold() == "goodbye",
        ended_reason=reason,
        error=str(error) if error else "",
        duration=duration if seconds is None else seconds,
        extras=extras,
    )


def _ended_reason(record: Logged) -> str:
    value = record.value
    if record.kind != "connection_state" or not isinstance(value, dict) or value.get("state") != "session_ended":
        return ""
    details = value.get("details")
    reason = details.get("reason") if isinstance(details, dict) else None
    return reason if isinstance(reason, str) else ""


def _extras(folder: CallFolder, result: dict[str, Any], config: Any, notes: Notes) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    latencies = {
        part: result[f"{part}_latency"] for part in _LATENCIES if isinstance(result.get(f"{part}_latency"), dict)
    }
    if latencies:
        extras["latencies"] = latencies
    path = folder.file("response_latencies.json")
    listed = read_document(path, notes) if path is not None else None
    if isinstance(listed, dict) and isinstance(listed.get("latencies"), list):
        extras["response_latencies"] = listed["latencies"]
    for key in ("language", "language_display_name"):
        if isinstance(config.get(key), str):
            extras[key] = config[key]
    return extras


class _ComponentLine(msgspec.Struct, gc=False):
    timestamp: Any = None
    type: str | None = None
    processor: Any = None
    model: Any = None
    stage: Any = None
    value: float | str | bool | list[Any] | dict[str, Any] | None = None


_component_line = msgspec.json.Decoder(_ComponentLine)


def _component_lines(folder: CallFolder, notes: Notes) -> list[dict[str, Any]]:
    """What the framework measured of its parts, and what each call to the model cost."""
    measurements: list[dict[str, Any]] = []
    path = folder.file("pipecat_metrics.jsonl", "framework_metrics.jsonl")
    if path is not None:
        lines = _readable(lambda file: read_lines(file, _component_line, notes), path, notes) or []
        measurements += [msgspec.to_builtins(line) for line in lines]
    path = folder.file("agent_perf_stats.csv")
    if path is not None:
        measurements += _perf_rows(path, notes)
    return measurements


def _perf_rows(path: Path, notes: Notes) -> list[dict[str, Any]]:
    import csv

    rows: list[dict[str, Any]] = []
    try:
        text = files.whole(path).decode("utf-8-sig", "replace")
        for row in csv.DictReader(text.splitlines(keepends=True)):
            tokens = {name: number_in(row.get(name)) for name in ("output_tokens", "reasoning_tokens")}
            tokens = {name: value for name, value in tokens.items() if value is not None}
            if tokens:
                rows.append({"type": "tokens", "value": tokens})
    except (OSError, InputError, csv.Error) as error:
        notes.repaired("file_left_out", f"{path.name}: {error}")
    return rows


READER = VoiceLogsReader()
