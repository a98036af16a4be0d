"""Folders of voice calls."""

from __future__ import annotations

import csv
import re
import wave
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple, TypeVar

import msgspec

from convoscope.conversation import (
    Agent,
    AudioFile,
    Conversation,
    Database,
    Label,
    Logged,
    Outcome,
    Scenario,
    Source,
    Track,
)
from convoscope.conversation.databases import database_hash, is_hash_of
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.companions import verdicts
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
from convoscope.ingest.formats.voice_logs.timeline import ComponentValues, JoinedCall, build
from convoscope.ingest.io import containers as files
from convoscope.ingest.reader import Detection, FolderSample, Reader, RecordGroup, Sample
from convoscope.ingest.record import as_number, as_object, number_in
from convoscope.ingest.report import Notes
from convoscope.storage import file_names, open_binary

Content = TypeVar("Content")

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
    "audio_assistant": ("assistant",),
    "audio_user": ("user",),
    "audio_user_clean": ("user",),
    "audio_mixed": ("assistant", "user"),
}
"""Each recording, and who is heard in it."""


class CallFolder:
    """The files of a call's folder, by what they are for."""

    def __init__(self, path: Path, notes: Notes) -> None:
        self.path, self.notes = path, notes
        self._names = file_names(path)
        self.result: dict[str, Any] = {}
        held = self.file(RESULT)
        result = None if held is None else read_document(held, notes)
        if isinstance(result, dict):
            self.result = result
        elif held is not None and result is not None:
            notes.repaired("file_left_out", f"{held.name}: holds no object")
        self.audit, self.framework, self.simulator, self.transcript = (
            self._find(*_NAMED[log]) for log in ("audit", "framework", "simulator", "transcript")
        )
        sounds = {name: self._find((f"{name}_path",), (f"{name}.wav",)) for name in _SOUND}
        self.tracks = tuple(track(file, _SOUND[name]) for name, file in sounds.items() if file is not None)

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
            path_in_result = self.result.get(field)
            if isinstance(path_in_result, str) and path_in_result:
                path = self.file(base_name(path_in_result))
                if path is not None:
                    return path
                self.notes.repaired("named_file_missing", f"{field}: {base_name(path_in_result)}")
        return self.file(*names)

    def document(self, *names: str) -> Any:
        """The JSON of the first of these that is there; None where there is none."""
        path = self.file(*names)
        return None if path is None else read_document(path, self.notes)


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
        with open_binary(path) as stream, wave.open(stream, "rb") as sound:
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
_PARTS = {"STT": "stt", "TTS": "tts", "LLM": "llm"}
_MEASURES = {"TTFBMetricsData": "ttfb", "ProcessingMetricsData": "processing", "LatencyMetric": "latency"}
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

    def companions(self, folder: Path) -> Sequence[Path]:
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
    folder = CallFolder(path, notes)
    result, config = folder.result, load(companions).config
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
        metrics=_component_values(folder, notes),
    )
    if not call.audit and not call.runs and not call.simulator:
        raise InputError("none of its logs holds a record", hint="a call needs one readable log of the three")
    where = path.resolve()
    is_trial = _TRIAL.fullmatch(where.name)
    trial = is_trial[1] if is_trial else ""
    record_id = result.get("record_id")
    if not isinstance(record_id, str | int) or record_id == "":
        record_id = where.parent.name if trial else where.name
    built = build(call, notes)
    dimensions = {"scenario_id": str(record_id), **({"trial": trial} if trial else {})}
    if isinstance(config.get("domain"), str):
        dimensions["domain"] = config["domain"]
    before = _database(folder, "initial", "initial_scenario_db.json", "scenario_db.json")
    after = _database(folder, "final", "final_scenario_db.json")
    logs = (folder.audit, folder.framework, folder.simulator)
    return Conversation(
        id=f"{record_id}/trial_{trial}" if trial else str(record_id),
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
        scenario=None if before is None and after is None else Scenario(before=before, after=after),
        timeline=built.timeline,
        log=built.log,
        outcome=_outcome(result, simulator, built.duration),
        recording=AudioFile(tracks=folder.tracks) if folder.tracks else None,
        extras=_extras(folder, config),
        labels=_labels(folder, str(record_id), notes),
    )


def _logs(folder: CallFolder, notes: Notes) -> tuple[AuditLog, Framework, list[Logged]]:
    audit = _readable(read_audit, folder.audit, notes) or AuditLog([], [])
    simulator = _readable(read_simulator, folder.simulator, notes) or []
    framework = _readable(read_framework, folder.framework, notes, audit.records, simulator) or Framework([], [])
    if not audit.records:
        _note_missing(folder.audit, "audit: no tool calls, and no words of the recogniser", notes)
        if framework.heard:
            # The recogniser's text as the framework logged it, instead of the audit log's.
            heard = [msgspec.structs.replace(one, source="audit", kind="user") for one in framework.heard if one.text]
            audit = AuditLog(heard, audit.calls)
            notes.inferred("heard_from_framework", f"{len(framework.heard)} lines")
        elif folder.transcript is not None:
            transcript = _readable(read_transcript, folder.transcript, notes) or []
            audit = AuditLog(transcript, audit.calls)
            notes.inferred("heard_from_transcript", f"{len(transcript)} lines")
    if not simulator:
        _note_missing(folder.simulator, "caller: no sound, and no words as the caller meant or heard them", notes)
    return audit, framework, simulator


def _note_missing(path: Path | None, what: str, notes: Notes) -> None:
    notes.repaired("log_missing" if path is None else "log_empty", what)


def _readable(read: Callable[..., Content], path: Path | None, notes: Notes, *others: Any) -> Content | None:
    """What a file holds; None where there is no file, and where it cannot be read at all, which is noted."""
    try:
        return None if path is None else read(path, notes, *others)
    except (InputError, OSError) as error:
        notes.repaired("file_left_out", f"{path.name if path else ''}: {error}")
        return None


class _Message(msgspec.Struct, gc=False):
    role: Any = None
    content: Any = None


_messages = msgspec.json.Decoder(list[_Message])


def _agent(calls: Sequence[LlmCall], config: Any) -> Agent:
    """Its models as the settings name them, and its instructions as the model was prompted with them."""
    models = config.get("model")
    models = models if isinstance(models, dict) else {"llm": models}
    try:
        messages = _messages.decode(calls[0].prompt) if calls else []
    except msgspec.DecodeError:
        messages = []
    prompts = (one.content for one in messages if one.role == "system" and isinstance(one.content, str))
    return Agent(
        instructions=next(prompts, ""),
        models={part: name for part, name in models.items() if isinstance(name, str)},
    )


def _database(folder: CallFolder, which: str, *names: str) -> Database | None:
    """A database as the folder holds it. The hash that is stored for it is recomputed, and a difference is noted."""
    stored = folder.result.get(f"{which}_scenario_db_hash")
    stored = stored if isinstance(stored, str) else ""
    content = folder.document(*names)
    if content is None:
        return Database(None, stored) if stored else None
    wrong = bool(stored) and not is_hash_of(stored, content)
    if wrong:
        detail = f"{which}: stored {stored[:12]}…, is {database_hash(content)[:12]}…"
        folder.notes.repaired("database_hash_differs", detail)
    return Database(content, stored, wrong)


def _outcome(result: dict[str, Any], simulator: Sequence[Logged], duration: float | None) -> Outcome:
    reasons = [result.get("conversation_ended_reason")]
    for record in reversed(simulator):
        value = as_object(record.value)
        if record.kind == "connection_state" and value.get("state") == "session_ended":
            reasons.append(as_object(value.get("details")).get("reason"))
    reason = next((text for text in reasons if isinstance(text, str) and text), "")
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


def _labels(folder: CallFolder, record_id: str, notes: Notes) -> tuple[Label, ...]:
    """What EVA said of the call, where its scores are in the folder."""
    scores = folder.document(verdicts.FILE)
    if scores is None:
        return ()
    if not verdicts.is_metrics_document(scores):
        notes.set_aside("verdict_unreadable", f"{verdicts.FILE}: holds no scores by metric")
        return ()
    if str(scores["record_id"]) != record_id:
        notes.set_aside("verdict_without_conversation", f"{verdicts.FILE}: is of record {scores['record_id']}")
        return ()
    labels = tuple(verdicts.labels_of_document(scores))
    verdicts.note_names(labels, notes)
    return labels


def _extras(folder: CallFolder, config: Any) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    latencies = {part: folder.result.get(f"{part}_latency") for part in _LATENCIES}
    latencies = {part: latency for part, latency in latencies.items() if isinstance(latency, dict)}
    if latencies:
        extras["latencies"] = latencies
    listed = as_object(folder.document("response_latencies.json")).get("latencies")
    if isinstance(listed, list):
        extras["response_latencies"] = listed
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


def _component_values(folder: CallFolder, notes: Notes) -> list[ComponentValues]:
    """What the framework measured of its parts, and what each call to the model cost."""
    measured: list[ComponentValues] = []
    path = folder.file("pipecat_metrics.jsonl", "framework_metrics.jsonl")
    lines = _readable(lambda file, notes: read_lines(file, _component_line, notes), path, notes) or []
    for line in lines:
        label = line.model if isinstance(line.model, str) else ""
        if line.type == "tokens" and isinstance(line.value, dict):
            measured.append(ComponentValues("llm", line.value, label))
            continue
        measure, value = _MEASURES.get(line.type or ""), None if isinstance(line.value, bool) else number_in(line.value)
        processor = str(line.processor or "")
        part = str(line.stage) if line.stage else next((part for sign, part in _PARTS.items() if sign in processor), "")
        # Frameworks log a zero for every part when the call starts.
        if measure and part and value:
            measured.append(ComponentValues(part, {measure: value}, label))
    path = folder.file("agent_perf_stats.csv")
    try:
        text = "" if path is None else files.whole(path).decode("utf-8-sig", "replace")
        for row in csv.DictReader(text.splitlines(keepends=True)):
            tokens = {name: number_in(row.get(name)) for name in ("output_tokens", "reasoning_tokens")}
            tokens = {name: value for name, value in tokens.items() if value is not None}
            if tokens:
                measured.append(ComponentValues("llm", tokens))
    except (OSError, InputError, csv.Error) as error:
        notes.repaired("file_left_out", f"{path.name if path else ''}: {error}")
    return measured


READER = VoiceLogsReader()
