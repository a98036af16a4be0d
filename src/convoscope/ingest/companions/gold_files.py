"""Gold label files: their schema, every check on them, and labels of the published shape in this one."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from convoscope.errors import InputError
from convoscope.ingest.io import containers
from convoscope.ingest.io.json import BadJson, decode, repeated_name
from convoscope.text.folding import plain_description
from convoscope.vocabulary import semantic_vocabulary

ENDING = "_gold.json"
"""A gold file is called `<sample_id>_gold.json`."""
SECOND_LABELLING = "goldens-second"
"""The folder, next to `goldens`, of a second and independent labelling of the same samples."""
TRANSCRIPTS = (".json", ".vtt", ".srt", ".sbv", ".txt")
"""How files of transcripts end, the first that there is first."""
SEE_GOLD = "docs/formats/gold.md shows one"

NAME_HINT = "a sample has the name of a file, without folders"
_NO_NAME = re.compile(r"[/\\\0]|^\s*$|^\.\.?$")


def is_sample_name(name: str) -> bool:
    """Whether files can be called so."""
    return not _NO_NAME.search(name)


SegmentId = Annotated[int, msgspec.Meta(ge=0)]
_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class GoldTopic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A subject that is talked about, from one segment to another, both included."""

    label: str
    span: tuple[SegmentId, SegmentId] | None = None
    confidence: _Share | None = None
    notes: str = ""


class GoldRisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A warning sign."""

    type: str
    severity: str
    segment_ids: tuple[SegmentId, ...] = ()
    evidence: str = ""
    notes: str = ""


class GoldAction(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """Something that someone promised to do."""

    description: str
    assignee_role: str | None = None
    segment_ids: tuple[SegmentId, ...] = ()
    verbatim: str = ""
    due: str = ""
    notes: str = ""


class GoldFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The labels of one sample. A family that is missing or null was not labelled; `[]` is "there is none"."""

    schema_version: Literal[1]
    sample_id: _Text
    dataset: _Text
    annotator: _Text
    annotated_at: str = ""
    topics: tuple[GoldTopic, ...] | None = None
    risks: tuple[GoldRisk, ...] | None = None
    actions: tuple[GoldAction, ...] | None = None
    notes: str = ""


_LABELS: Mapping[str, type[msgspec.Struct]] = {"topics": GoldTopic, "risks": GoldRisk, "actions": GoldAction}
_decode_gold = msgspec.json.Decoder(GoldFile).decode
_decode_any = msgspec.json.Decoder().decode


class GoldError(NamedTuple):
    """What is wrong with a gold file: where, what, and what is allowed there."""

    file: str
    path: str
    """JSON path, such as `$.risks[0].severity`."""
    message: str
    allowed: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.path}: {self.message}" + (f"; allowed: {self.allowed}" if self.allowed else "")


class CheckedGold(NamedTuple):
    """A gold file, where it can be used, and all that is wrong with it."""

    gold: GoldFile | None
    errors: tuple[GoldError, ...]
    sample_id: str = ""
    """Of a file that is called otherwise: the sample that it says it is of."""


def check_file(path: Path, name: str = "", segments: Collection[int] | None = None) -> CheckedGold:
    """Read a gold file and check it. `segments` are the segment ids of its transcript, where that is at hand."""
    name = name or str(path)
    try:
        data = containers.whole(path)
    except (InputError, OSError) as error:
        return CheckedGold(None, (GoldError(name, "$", f"cannot be read: {error}", "a JSON object"),))
    return check_bytes(data, path.name, name, segments)


def check_bytes(data: bytes, file_name: str, name: str, segments: Collection[int] | None = None) -> CheckedGold:
    """Check the content of a gold file. Only where it does not fit the schema, it is asked where and why."""
    try:
        checked = _checked(_decode_gold(data), name, segments)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            value, repairs = decode(data)
        except BadJson as error:
            return CheckedGold(None, (GoldError(name, "$", f"cannot be read: {error}", "a JSON object"),))
        checked = check_value(value, name, segments)
        if repairs:
            strict = [GoldError(name, "$", f"has {_REPAIRS.get(one, one)}", "strict JSON in UTF-8") for one in repairs]
            checked = CheckedGold(None, (*strict, *checked.errors))
    if len(_FIELD.findall(data)) != _fields(data) and (repeated := repeated_name(data)):
        wrong = GoldError(name, "$", f"has {repeated!r} twice in one object", "each field once")
        checked = CheckedGold(None, (*checked.errors, wrong))
    sample = checked.gold.sample_id if checked.gold is not None else _sample_id(data)
    if sample and file_name != sample + ENDING:
        is_gold_name = file_name.endswith(ENDING)
        allowed = file_name.removesuffix(ENDING) if is_gold_name else f"a file called {sample}{ENDING}"
        wrong = GoldError(name, "$.sample_id", f"{sample!r} is not the name of the file", allowed)
        return CheckedGold(None, (*checked.errors, wrong), sample)
    return checked


def _sample_id(data: bytes) -> str:
    """The sample that a file says it is of, whatever else is wrong with it; empty where it does not say."""
    with suppress(BadJson):
        value = decode(data).value
        sample = value.get("sample_id") if isinstance(value, dict) else None
        return sample if isinstance(sample, str) and is_sample_name(sample) else ""
    return ""


_REPAIRS = {
    "invalid_utf8": "bytes that are not UTF-8",
    "not_a_number": "a value that is not a number, as NaN",
    "control_character": "a control character in a string",
    "lone_surrogate": "half of a character",
}
"""What a log may have, and gold may not."""
_FIELD = re.compile(rb'"\s*:')
"""The end of a name, or a part of a text that looks so."""


def _fields(data: bytes) -> int:
    """How many names there are, each counted once in its object; -1 where a quick look does not say."""
    try:
        value = _decode_any(data)
        labels = [label for family in _LABELS for label in value.get(family) or ()]
        return len(value) + sum(map(len, labels))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, AttributeError, TypeError):
        return -1


def check_value(value: Any, name: str, segments: Collection[int] | None = None) -> CheckedGold:
    """Check the labels of one sample."""
    try:
        gold = msgspec.convert(value, GoldFile)
    except (msgspec.ValidationError, RecursionError):
        fields = value if isinstance(value, dict) else {}
        head = (fields.get(name) for name in ("sample_id", "dataset", "annotator", "annotated_at"))
        texts = (text if isinstance(text, str) and text else None for text in head)
        wrong = [*_schema_errors(value, GoldFile, "$"), *_head(*texts), *_label_errors(_readable(value), segments)]
        return CheckedGold(None, tuple(GoldError(name, *one) for one in wrong))
    return _checked(gold, name, segments)


def _checked(gold: GoldFile, name: str, segments: Collection[int] | None) -> CheckedGold:
    topics, risks, actions = gold.topics or (), gold.risks or (), gold.actions or ()
    labels = _PlacedLabels(list(enumerate(topics)), list(enumerate(risks)), list(enumerate(actions)))
    wrong = [*_head(gold.sample_id, gold.dataset, gold.annotator, gold.annotated_at), *_label_errors(labels, segments)]
    if not wrong:
        return CheckedGold(gold, ())
    return CheckedGold(None, tuple([GoldError(name, *one) for one in wrong]))


_Wrong = tuple[str, str, str]
"""JSON path, message, what is allowed."""


class _PlacedLabels(NamedTuple):
    """The labels that fit the schema, each with its index."""

    topics: Sequence[tuple[int, GoldTopic]]
    risks: Sequence[tuple[int, GoldRisk]]
    actions: Sequence[tuple[int, GoldAction]]


def _readable(value: Any) -> _PlacedLabels:
    """What fits the schema in a file that does not: a slip in one label does not hide those in others."""
    families: list[list[Any]] = []
    for family, kind in _LABELS.items():
        given = value.get(family) if isinstance(value, dict) else None
        labels: list[Any] = []
        for index, label in enumerate(given if isinstance(given, list) else ()):
            with suppress(msgspec.ValidationError, RecursionError):
                labels.append((index, msgspec.convert(label, kind)))
        families.append(labels)
    return _PlacedLabels(*families)


def _label_errors(labels: _PlacedLabels, segments: Collection[int] | None) -> Iterator[_Wrong]:
    yield from _words(labels)
    plain = [(index, plain_description(action.description), action) for index, action in labels.actions]
    for index, description, _ in plain:
        if not description:
            yield f"$.actions[{index}].description", "has no letter or digit", "words that say what is to be done"
    # The same label twice is a slip of the labeller; it would count twice, or hide another that was meant.
    keys: Mapping[str, list[tuple[int, Hashable]]] = {
        "topics": [(index, (one.label, one.span)) for index, one in labels.topics],
        "risks": [(index, (one.type, one.severity, frozenset(one.segment_ids))) for index, one in labels.risks],
        "actions": [(index, (text, one.assignee_role, frozenset(one.segment_ids))) for index, text, one in plain],
    }
    for family, keyed in keys.items():
        first: dict[Hashable, int] = {}
        for index, key in keyed:
            if first.setdefault(key, index) != index:
                yield f"$.{family}[{index}]", f"repeats $.{family}[{first[key]}]", "each label once"
    yield from _segment_errors(labels, segments)


_PLACED = re.compile(r"^(?P<words>.*?)(?: - at `\$(?P<inner>.*)`)?$", re.DOTALL)
_KINDS = {"str": "a string", "int": "a whole number", "float": "a number", "array": "a list", "object": "an object"}


def _schema_errors(value: Any, kind: type[msgspec.Struct], path: str) -> Iterator[_Wrong]:
    """Everything that does not fit the schema, field by field and label by label."""
    if not isinstance(value, dict):
        yield path, f"cannot be {_shown(value)}", "a JSON object"
        return
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    for name in value:
        if name not in fields:
            yield f"{path}.{name}", "is not a field of gold labels", ", ".join(sorted(fields))
    for name, field in fields.items():
        given = value.get(name)
        if name not in value:
            if field.required:
                yield f"{path}.{name}", "is missing", "a value"
        elif kind is GoldFile and name in _LABELS and isinstance(given, list):
            for index, label in enumerate(given):
                yield from _schema_errors(label, _LABELS[name], f"{path}.{name}[{index}]")
        else:
            yield from _value_errors(given, field.type, f"{path}.{name}")


def _value_errors(value: Any, kind: Any, path: str) -> Iterator[_Wrong]:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        placed = _PLACED.match(str(error))
        words, inner = (placed["words"], placed["inner"] or "") if placed else (str(error), "")
        for index in re.findall(r"\[(\d+)\]", inner):
            value = value[int(index)]
        yield path + inner, f"cannot be {_shown(value)}", "1" if kind == Literal[1] else _allowed(words)


def _shown(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)[:60]


def _allowed(words: str) -> str:
    """What a schema expects, in words: of "Expected `int | null`, got `str`" it is "a whole number or null"."""
    kinds, *rest = words.removeprefix("Expected ").partition(", got ")[0].removeprefix("`").split("`")
    return " or ".join(_KINDS.get(kind, kind) for kind in kinds.split(" | ")) + "".join(rest)


def _head(sample: str | None, dataset: str | None, annotator: str | None, annotated_at: str | None) -> Iterator[_Wrong]:
    """Who labelled what, and when; what is no text, or empty, is None, and an error of the schema."""
    if sample is not None and not is_sample_name(sample):
        yield "$.sample_id", f"cannot be {_shown(sample)}", NAME_HINT
    for field, name in (("dataset", dataset), ("annotator", annotator)):
        if name is not None and not name.strip():
            yield f"$.{field}", "is blank", "a name"
    try:
        datetime.fromisoformat(annotated_at or "2026-01-08")
    except ValueError:
        yield "$.annotated_at", f"{(annotated_at or '')[:60]!r} is no time", "such as 2026-01-08T12:00:00Z"


def _words(labels: _PlacedLabels) -> Iterator[_Wrong]:
    """Topics and risks are words of the vocabulary, severities those of their type, roles those that there are."""
    vocabulary = semantic_vocabulary()
    for index, topic in labels.topics:
        if topic.label not in vocabulary.labels:
            meant = vocabulary.topic(topic.label)
            hint = meant if meant in vocabulary.labels else ", ".join(sorted(vocabulary.labels))
            yield f"$.topics[{index}].label", f"{topic.label!r} is not in the vocabulary", hint
    for index, risk in labels.risks:
        if risk.type not in vocabulary.risks:
            yield f"$.risks[{index}].type", f"{risk.type!r} is not a risk type", ", ".join(vocabulary.risks)
        elif risk.severity not in vocabulary.risks[risk.type].severities:
            severities = ", ".join(vocabulary.risks[risk.type].severities)
            yield f"$.risks[{index}].severity", f"{risk.severity!r} is not a severity of {risk.type}", severities
    for index, action in labels.actions:
        if action.assignee_role is not None and action.assignee_role not in vocabulary.assignee_roles:
            roles = ", ".join(vocabulary.assignee_roles)
            yield f"$.actions[{index}].assignee_role", f"{action.assignee_role!r} is not a role", roles


def _segment_errors(labels: _PlacedLabels, segments: Collection[int] | None) -> Iterator[_Wrong]:
    """Spans run forwards, and segments exist."""
    ids: list[tuple[str, Sequence[int]]] = [
        *((f"$.topics[{index}].span", one.span or ()) for index, one in labels.topics),
        *((f"$.risks[{index}].segment_ids", one.segment_ids) for index, one in labels.risks),
        *((f"$.actions[{index}].segment_ids", one.segment_ids) for index, one in labels.actions),
    ]
    for path, given in ids:
        if path.endswith("span") and given and given[0] > given[1]:
            yield path, f"ends before it starts: {given[0]} to {given[1]}", "[first, last]"
        for index, segment in enumerate(given):
            if segments is not None and segment not in segments:
                known = f"{min(segments)} to {max(segments)}" if segments else "the transcript has no segment"
                yield f"{path}[{index}]", f"segment {segment} is not in the transcript", known


class CheckedPaths(NamedTuple):
    """How many gold files there were, and what is wrong with them."""

    files: int
    errors: list[GoldError]
    others: list[Path] = []
    """JSON files in folders of gold that are not called as gold is, and were not looked at."""


def check_paths(path: Path, transcripts: Path | None = None) -> CheckedPaths:
    """Check a gold file, or every gold file below a folder.

    Transcripts are looked for in `transcripts`, else in the folder of that name next to the one of the gold file.
    """
    if not path.exists():
        raise InputError("there is no such file or folder", file=str(path))
    if transcripts is not None and not transcripts.is_dir():
        raise InputError("there is no such folder", file=str(transcripts), hint="--transcripts names one")
    gold_paths = sorted(path.rglob(f"*{ENDING}")) if path.is_dir() else [path]
    if not gold_paths:
        raise InputError("holds no gold label file", file=str(path), hint=f"they are called SAMPLE{ENDING}; {SEE_GOLD}")
    errors: list[GoldError] = []
    first: dict[tuple[bool, str, str], Path] = {}
    for gold_path in gold_paths:
        folder = transcripts or gold_path.parent.parent / "transcripts"
        checked = check_file(gold_path, segments=transcript_segments(folder, gold_path.name.removesuffix(ENDING)))
        errors += checked.errors
        if checked.gold is not None:
            is_second = gold_path.parent.name == SECOND_LABELLING
            sample = (is_second, checked.gold.dataset, checked.gold.sample_id)
            if sample in first:
                message = f"{checked.gold.sample_id!r} has labels in {first[sample]} already"
                errors.append(GoldError(str(gold_path), "$.sample_id", message, "one file for each sample"))
            first.setdefault(sample, gold_path)
    folders = sorted({path, *(gold_path.parent for gold_path in gold_paths)}) if path.is_dir() else []
    others = [one for folder in folders for one in sorted(folder.glob("*.json")) if not one.name.endswith(ENDING)]
    return CheckedPaths(len(gold_paths), errors, [one for one in others if one.name != "dataset.json"])


def transcript_segments(folder: Path, sample: str) -> frozenset[int] | None:
    """The ids of the segments of a sample's transcript; None without one that can be read."""
    transcript = sample_path(folder, sample, TRANSCRIPTS)
    if transcript is None:
        return None
    if transcript.suffix != ".json":
        # As the readers of subtitles and plain text number them.
        from convoscope.ingest.companions.gold import segments
        from convoscope.ingest.read import read

        try:
            conversations = list(read([transcript]))
        except InputError:
            return None
        return frozenset(segments(conversations[0])) if len(conversations) == 1 else None
    try:
        value = decode(containers.whole(transcript)).value
    except (BadJson, InputError, OSError):
        return None
    listed = value.get("segments") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        return None
    ids = (one.get("id", index) if isinstance(one, dict) else index for index, one in enumerate(listed))
    return frozenset(one for one in ids if isinstance(one, int))


def sample_path(folder: Path, sample: str, endings: Sequence[str]) -> Path | None:
    """The file of a sample in a folder, by the first ending that there is."""
    return next((path for ending in endings if (path := folder / (sample + ending)).is_file()), None)


# Labels of the published shape.


class ConvertedFile(NamedTuple):
    """A file of the published shape, its labels in ours, and what they do not have."""

    path: Path
    gold: dict[str, Any]
    left_out: list[str]


def convert_files(source: Path, dataset: str, annotator: str, *, leave_out_unknown: bool) -> list[ConvertedFile]:
    """A file of the published shape, or all of a folder. Two of the same sample are refused: one would be lost."""
    if not source.exists():
        raise InputError("there is no such file or folder", file=str(source))
    files: dict[str, ConvertedFile] = {}
    for path in sorted(source.glob("*.json")) if source.is_dir() else [source]:
        try:
            value = decode(containers.whole(path)).value
            gold = converted(value, dataset, annotator)
        except BadJson as error:
            raise InputError(f"cannot be read: {error}", file=str(path)) from None
        except InputError as error:
            raise InputError(error.message, file=str(path), field=error.field, hint=error.hint) from None
        if leave_out_unknown:
            gold = without_unknown_topics(gold)
        sample = gold["sample_id"]
        if sample in files:
            message = f"{sample!r} has labels in {files[sample].path} already"
            raise InputError(message, file=str(path), field="$.meeting_id", hint="one file for each sample")
        files[sample] = ConvertedFile(path, gold, left_out(value))
    if not files:
        raise InputError("holds no JSON file", file=str(source))
    return list(files.values())


def converted(value: Any, dataset: str, annotator: str) -> dict[str, Any]:
    """The labels of the published shape (`meeting_id`, `text`, `segment_id`) in ours; they are not checked here."""
    if not isinstance(value, dict) or not isinstance(value.get("meeting_id"), str):
        raise InputError("is not a gold file of the published shape", field="$.meeting_id", hint="it names the sample")
    vocabulary = semantic_vocabulary()
    families: dict[str, Any] = {}
    if (topics := _labels(value, "topics")) is not None:
        families["topics"] = [{"label": vocabulary.topic(str(one.get("label", ""))), **_span(one)} for one in topics]
    if (risks := _labels(value, "risks")) is not None:
        families["risks"] = [
            {
                "type": vocabulary.risk(str(one.get("type", ""))),
                "severity": one.get("severity"),
                "segment_ids": [one["segment_id"]] if one.get("segment_id") is not None else [],
                "evidence": one.get("evidence") or "",
            }
            for one in risks
        ]
    if (actions := _labels(value, "actions")) is not None:
        families["actions"] = [
            {"description": one.get("text", ""), **_role(one), "segment_ids": one.get("segment_ids") or []}
            for one in actions
        ]
    if not is_sample_name(sample := value["meeting_id"]):
        raise InputError(f"{sample!r} cannot be the name of a sample", field="$.meeting_id", hint=NAME_HINT)
    head = {"schema_version": 1, "sample_id": value["meeting_id"], "dataset": dataset, "annotator": annotator}
    return {**head, **families}


def left_out(value: Mapping[str, Any]) -> list[str]:
    """What labels of the published shape have and converted ones have not, for a person."""
    known = {"schema_version", "meeting_id", *_PUBLISHED}
    left = [f"the field {name!r}" for name in value if name not in known and value[name] not in (None, "", [], {})]
    for family, fields in _PUBLISHED.items():
        for index, label in enumerate(value.get(family) or ()):
            left += [f"$.{family}[{index}].{name}" for name in label if name not in fields]
            if label.get("speaker_id") and not _role(label):
                left.append(f"$.{family}[{index}].speaker_id: {label['speaker_id']!r} names no role")
    return left


_PUBLISHED = {
    "topics": ("label", "segment_ids"),
    "risks": ("type", "severity", "segment_id", "evidence"),
    "actions": ("text", "speaker_id", "segment_ids"),
}
"""The fields of labels that are converted."""


def without_unknown_topics(gold: Mapping[str, Any]) -> dict[str, Any]:
    """Converted labels without topics outside the vocabulary, which are named in the notes."""
    known = semantic_vocabulary().labels
    topics = gold.get("topics") or []
    unknown = [one["label"] for one in topics if one["label"] not in known]
    if not unknown:
        return dict(gold)
    kept = [one for one in topics if one["label"] in known]
    return {**gold, "topics": kept, "notes": f"topics left out, not in the vocabulary: {', '.join(unknown)}"}


def _labels(value: Mapping[str, Any], family: str) -> list[dict[str, Any]] | None:
    labels = value.get(family)
    if labels is not None and not (isinstance(labels, list) and all(isinstance(one, dict) for one in labels)):
        raise InputError("is not a list of objects", field=f"$.{family}", hint="each label is an object")
    return labels


def _span(topic: Mapping[str, Any]) -> dict[str, Any]:
    ids = topic.get("segment_ids")
    if not isinstance(ids, list) or not ids or not all(isinstance(one, int) for one in ids):
        return {}
    return {"span": [min(ids), max(ids)]}


def _role(action: Mapping[str, Any]) -> dict[str, str]:
    """A speaker that is called by a role, as `spk_agent` is."""
    role = str(action.get("speaker_id") or "").removeprefix("spk_")
    return {"assignee_role": role} if role in semantic_vocabulary().assignee_roles else {}
