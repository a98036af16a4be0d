"""Verdicts that other programs gave, one kind of companion: EVA's `metrics.json`, and tables with a row for each."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation, Label
from convoscope.errors import InputError
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import tables
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import Attach, Companion, Detection, Sample
from convoscope.ingest.record import as_object
from convoscope.ingest.report import Note, Notes
from convoscope.text.folding import folded_name

RATER = "eva"
"""Who gave the verdicts of a `metrics.json`."""
FILE = "metrics.json"

NATIVE_SCALES: Mapping[str, str] = {
    "faithfulness": "1-3",
    "conversation_progression": "1-3",
    "conciseness": "1-3",
    "user_speech_fidelity": "1-3",
    "agent_speech_fidelity": "0-1",
    "tts_fidelity": "0-1",
    "speakability": "0-1",
    "transcription_accuracy_key_entities": "0-1",
    "user_behavioral_fidelity": "0-1",
    "task_completion": "0-1",
    "turn_taking": "0-1",
    "conversation_valid_end": "0-1",
}
"""The verdicts that are scores of our metrics, and the scale that EVA rates each on."""
COMPUTED_HERE = frozenset(
    (
        "authentication_success",
        "response_speed",
        "stt_wer",
        "tool_call_validity",
        "conversation_correctly_finished",
        "conversation_completed_on_time",
    )
)
"""What EVA computes of a call, and we compute ourselves: its figures stay labels."""

_ABSENT = frozenset(("", "na", "n/a", "none", "null", "nan", "skipped"))
_SCALE_NOT_STATED = "not stated"
_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "conversation": ("conversation", "conversation_id", "record_id", "record", "call_id", "id"),
    "turn": ("turn", "turn_id"),
    "metric": ("metric", "metric_name", "measure"),
    "normalised": ("normalised", "normalized", "normalised_score", "normalized_score"),
    "value": ("value",),
    "score": ("score", "rating"),
    "scale": ("scale",),
    "rater": ("judge", "rater", "annotator", "judge_name", "rater_name"),
    "error": ("error",),
    "notes": ("notes", "note", "comment", "reasoning"),
}
"""What a column holds, by the names that it may have."""
_VALUES = ("normalised", "value", "score")
_PART = re.compile(r"(\w+)\.(\w+)")


class VerdictFiles(NamedTuple):
    """The verdicts by the id of their conversation, and what is wrong with others."""

    by_conversation: Mapping[str, tuple[Label, ...]]
    problems: tuple[str, ...] = ()


class Verdicts(Companion):
    """Verdicts become labels of the conversation that they are of, with the rater's name: `external:NAME`."""

    format = "verdicts"

    def detect(self, sample: Sample) -> Detection | None:
        first = sample.values[0] if sample.values else None
        if sample.container == "document" and is_metrics_document(first):
            return Detection(0.9, "verdicts of another program, matched to conversations by record id", "companion")
        if sample.container == "table" and isinstance(first, dict) and is_verdict_table(first):
            return Detection(0.9, "a table of verdicts, matched to conversations by id", "companion")
        return None

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        del reader
        if not files:
            return None
        verdicts = load(files)
        return lambda conversation, notes: attach(conversation, verdicts, notes)


def is_metrics_document(value: Any) -> bool:
    """EVA's `metrics.json`: the scores of one record by metric."""
    metrics = value.get("metrics") if isinstance(value, dict) else None
    if not isinstance(metrics, dict) or "record_id" not in value:
        return False
    fields = {"score", "normalized_score", "error", "skipped"}
    return any(isinstance(score, dict) and fields & score.keys() for score in metrics.values())


def is_verdict_table(row: Mapping[str, Any]) -> bool:
    """A table with a conversation, a metric and a value in each row."""
    columns = _columns(row)
    return {"conversation", "metric"} <= columns.keys() and any(name in columns for name in _VALUES)


def attach(conversation: Conversation, verdicts: VerdictFiles, notes: Notes) -> Conversation:
    """The conversation with the verdicts on it."""
    labels = verdicts.by_conversation.get(conversation.id, ())
    if not labels:
        return conversation
    note_names(labels, notes)
    return msgspec.structs.replace(conversation, labels=(*conversation.labels, *labels))


def note_names(labels: Iterable[Label], notes: Notes) -> None:
    """Say which verdicts are scores of no metric of ours."""
    for label in labels:
        name = bare_name(label.name)
        whole = match[1] if (match := _PART.fullmatch(name)) else name
        if whole in COMPUTED_HERE:
            notes.ignored("verdict_kept_as_label", whole)
        elif whole not in NATIVE_SCALES:
            notes.set_aside("verdict_of_unknown_metric", label.name)


def bare_name(name: str) -> str:
    """The name of a metric without its family."""
    return re.sub(r"^(?:judged|outcome|voice)\.", "", name).partition("@")[0]


def unused_verdicts(paths: Iterable[Path], ids: Iterable[str] | None) -> list[Note]:
    """What of these files cannot be read, and the ids that are of no conversation. None: not all are known."""
    known = None if ids is None else set(ids)
    notes: list[Note] = []
    for path in sorted(set(paths)):
        verdicts = load([path])
        details = [("verdict_unreadable", problem) for problem in verdicts.problems]
        if known is not None:
            details += [("verdict_without_conversation", id) for id in sorted(verdicts.by_conversation.keys() - known)]
        notes += [Note(kind="set_aside", code=code, file=path.name, detail=detail) for code, detail in details]
    return notes


@files.read_once(64)
def load(paths: Sequence[Path]) -> VerdictFiles:
    """What these files say."""
    by_conversation: dict[str, tuple[Label, ...]] = {}
    problems: list[str] = []
    for path in paths:
        try:
            rows = _table(path, problems) if _is_table(path) else _document(path)
            for id, label in rows:
                by_conversation[id] = (*by_conversation.get(id, ()), label)
        except (BadJson, InputError, OSError) as error:
            problems.append(f"{path.name}: {error}")
    return VerdictFiles(by_conversation, tuple(problems))


def _is_table(path: Path) -> bool:
    return tables.is_table(path, files.head_of(path, 64))


def _document(path: Path) -> Iterator[tuple[str, Label]]:
    value = decode(files.whole(path)).value
    if not is_metrics_document(value):
        raise InputError("holds no verdicts", hint="it needs record_id, and metrics by name")
    for label in labels_of_document(value):
        yield str(value["record_id"]), label


# EVA's scores


def labels_of_document(value: Mapping[str, Any]) -> Iterator[Label]:
    """The scores of a `metrics.json` as labels: of each metric, and of the parts that it has."""
    for name, score in as_object(value.get("metrics")).items():
        if not isinstance(score, dict):
            yield label_of_score(name, {"error": "the entry is no score"})
            continue
        yield label_of_score(name, score)
        for part, of_part in as_object(score.get("sub_metrics")).items():
            if isinstance(of_part, dict):
                yield label_of_score(f"{name}.{part}", of_part)


def label_of_score(name: str, score: Mapping[str, Any], rater: str = RATER) -> Label:
    """One `MetricScore` as a label. An error is no number, whatever number comes with it; nor is a skipped one."""
    stamp = "/".join(str(score[key]) for key in ("version", "prompt_hash") if score.get(key))
    label = Label(name=name, value=None, rater=rater, rater_kind="external", policy=stamp)
    if score.get("error"):
        return msgspec.structs.replace(label, status="failed", notes=str(score["error"]))
    value, normalised = score.get("score"), score.get("normalized_score")
    if score.get("skipped") or (value is None and normalised is None):
        why = as_object(score.get("details")).get("reason") or score.get("reason") or ""
        return msgspec.structs.replace(label, status="skipped", notes=str(why))
    scale = NATIVE_SCALES.get(name, "")
    if normalised is None:
        return msgspec.structs.replace(label, value=value, scale=scale)
    if contradict(value, normalised, scale):
        return msgspec.structs.replace(
            label, status="failed", notes=f"score {value!r} and normalized_score {normalised!r} contradict each other"
        )
    return msgspec.structs.replace(label, value=normalised, scale="0-1")


def contradict(value: Any, normalised: Any, scale: str) -> bool:
    """Whether a score on its scale and the same score from 0 to 1 are two different verdicts."""
    numbers = (value, normalised)
    if not scale or not all(isinstance(one, int | float) and not isinstance(one, bool) for one in numbers):
        return False
    low, high = map(float, scale.split("-"))
    return bool(abs((value - low) / (high - low) - normalised) > 0.01)  # files are rounded


# Tables


def _columns(row: Mapping[str, Any]) -> dict[str, str]:
    """What each column holds that is known by its name: the column, by what it holds."""
    by_name = {folded_name(name): name for name in row}
    columns = {held: next((by_name[one] for one in names if one in by_name), "") for held, names in _COLUMNS.items()}
    return {held: column for held, column in columns.items() if column}


def _table(path: Path, problems: list[str]) -> Iterator[tuple[str, Label]]:
    rows: list[tuple[str, Label]] = []
    for span in tables.row_ranges(path, 1 << 20):
        if span.problem:
            problems.append(f"{path.name} line {span.first}: {span.problem}")
            continue
        for number, line in enumerate((span.data or b"").split(b"\n"), span.first):
            cells = decode(line).value if line.strip() else None
            if isinstance(cells, dict):
                read = _row(cells, f"{path.name} line {number}", path, problems)
                rows += [read] if read is not None else []
    # A value above 1 without a scale shows that the rater's 1 is not the best of 0 to 1 either.
    off = {(label.name, label.rater) for _, label in rows if not label.scale and _is_off(label.value)}
    for id, label in rows:
        is_off = not label.scale and label.status == "given" and (label.name, label.rater) in off
        yield id, msgspec.structs.replace(label, scale=_SCALE_NOT_STATED) if is_off else label


def _row(row: Mapping[str, Any], where: str, path: Path, problems: list[str]) -> tuple[str, Label] | None:
    columns = _columns(row)
    cells = {held: _text(row[column]) for held, column in columns.items()}
    id, name, turn = cells.get("conversation", ""), cells.get("metric", ""), cells.get("turn", "")
    if not id or not name:
        problems.append(f"{where}: no {'conversation' if not id else 'metric'}")
        return None
    if turn and not turn.isdecimal():
        problems.append(f"{where}: the turn {turn[:40]!r} is no turn id")
        return None
    rater = cells.get("rater") or path.name.partition(".")[0]
    label = Label(
        name=name,
        value=None,
        rater=rater.removeprefix("external:"),
        rater_kind="external",
        subject_kind="turn" if turn else "conversation",
        subject=str(int(turn)) if turn else "",
        notes=cells.get("notes", ""),
    )
    if cells.get("error"):
        return id, msgspec.structs.replace(label, status="failed", notes=cells["error"])
    held = next((one for one in _VALUES if cells.get(one, "").casefold() not in _ABSENT), "")
    if not held:
        return id, msgspec.structs.replace(label, status="skipped", notes=label.notes or "the cell is empty")
    return id, msgspec.structs.replace(label, value=_number(cells[held]), scale=_scale(held, cells, name))


def _scale(held: str, cells: Mapping[str, str], name: str) -> str:
    """The scale of a value. A rating without one is on none: 1 is the best of some scales and the worst of others."""
    if held == "normalised":
        return "0-1"
    if stated := cells.get("scale", ""):
        return stated
    native = NATIVE_SCALES.get(bare_name(name), "0-1")
    return _SCALE_NOT_STATED if held == "score" and native != "0-1" else ""


def _text(cell: Any) -> str:
    return "" if cell is None else str(cell).strip()


def _number(text: str) -> float | bool | str:
    truth = {"true": True, "false": False}.get(text.casefold())
    if truth is not None:
        return truth
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def _is_off(value: Any) -> bool:
    return isinstance(value, float) and not 0 <= value <= 1
