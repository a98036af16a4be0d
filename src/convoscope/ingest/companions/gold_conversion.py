"""Gold labels of the published shape, in ours."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import InputError
from convoscope.ingest.companions.gold_files import NAME_HINT, is_sample_name
from convoscope.ingest.io import containers
from convoscope.ingest.io.json import BadJson, decode
from convoscope.vocabulary import semantic_vocabulary


class ConvertedFile(NamedTuple):
    """A file of the published shape, its labels in ours, and what they do not have, in words."""

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
            words = f"{sample!r} has labels in {files[sample].path} already"
            raise InputError(words, file=str(path), field="$.meeting_id", hint="one file for each sample")
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
    """What labels of the published shape have and converted ones have not, in words."""
    known = {"schema_version", "meeting_id", *_LABELS}
    words = [f"the field {name!r}" for name in value if name not in known and value[name] not in (None, "", [], {})]
    for family, fields in _LABELS.items():
        for place, label in enumerate(value.get(family) or ()):
            words += [f"$.{family}[{place}].{name}" for name in label if name not in fields]
            if label.get("speaker_id") and not _role(label):
                words.append(f"$.{family}[{place}].speaker_id: {label['speaker_id']!r} names no role")
    return words


_LABELS = {
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
