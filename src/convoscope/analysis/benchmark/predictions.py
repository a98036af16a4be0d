"""Predictions as files: transcripts with `annotations.semantic`, in any of the three shapes that there are.

They are taken as they are, without building conversations: a benchmark scores labels, and there may be very many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import InputError
from convoscope.metrics.semantic.counts import PlainRisk
from convoscope.metrics.semantic.samples import FAMILIES, Labels, PlainAction
from convoscope.vocabulary import semantic_vocabulary


class SemanticPrediction(NamedTuple):
    """The labels of a sample, and who made them."""

    labels: Labels
    model: str
    annotator: str


class _Transcript(msgspec.Struct):
    """What is looked at of a transcript; a file may also hold the annotation alone."""

    annotations: Any = None
    topics: Any = None
    risks: Any = None
    actions: Any = None
    normalized: Any = None
    risk_tags: Any = None
    matches: Any = None
    extraction_status: Any = None
    error: Any = None
    model: Any = None
    annotator: Any = None


_decode = msgspec.json.Decoder(_Transcript).decode


def read_prediction(data: bytes, name: str, min_confidence: float | None = None) -> SemanticPrediction:
    """The labels in a file; an `InputError` where there are none to be found."""
    try:
        transcript = _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a transcript: {error}", file=name, hint="write the prediction again") from None
    semantic = transcript.annotations.get("semantic") if isinstance(transcript.annotations, dict) else None
    if semantic is None:
        semantic = {key: value for key, value in msgspec.structs.asdict(transcript).items() if value is not None}
        semantic.pop("annotations", None)
    parts = [one for one in (semantic if isinstance(semantic, list) else [semantic]) if isinstance(one, dict) and one]
    if not parts:
        raise InputError(
            "has no predictions", file=name, field="$.annotations.semantic", hint="give topics, risks and actions there"
        )
    labels = [_labels(_shaped(part), min_confidence) for part in parts]
    whole = labels[0] if len(labels) == 1 else _united(labels)
    return SemanticPrediction(
        whole, _text(parts[0].get("model")), _text(parts[0].get("annotator", parts[0].get("provider")))
    )


def _shaped(part: Mapping[str, Any]) -> Mapping[str, Any]:
    """The annotation with topics, risks and actions under these names. Two of the shapes have no severities."""
    if isinstance(part.get("normalized"), dict):
        inner = part["normalized"]
        families = {"topics": "topics", "risks": "risk_tags", "actions": "action_items"}
        taken = {family: inner[name] for family, name in families.items() if name in inner}
        return {**part, **taken, "severity": "skipped"}
    if "topics" not in part and "risks" not in part and ("risk_tags" in part or "matches" in part):
        risks = [{"type": one} for one in _each(part.get("risk_tags"))]
        matches = [one for one in _each(part.get("matches")) if isinstance(one, dict)]
        risks += [{"type": one.get("risk"), "segment_id": one.get("segment_id")} for one in matches]
        return {**part, "risks": _by_type(risks), "severity": "skipped"}
    return part


def _by_type(risks: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A tag and its matches are one risk, with the segments of all matches."""
    merged: dict[str, dict[str, Any]] = {}
    for risk in risks:
        kind = _text(risk.get("type"))
        segments = merged.setdefault(kind, {"type": kind, "segment_ids": []})["segment_ids"]
        if risk.get("segment_id") is not None:
            segments.append(risk["segment_id"])
    return list(merged.values())


def _labels(part: Mapping[str, Any], least: float | None) -> Labels:
    vocabulary = semantic_vocabulary()
    status = part.get("extraction_status")
    statuses = status if isinstance(status, dict) else {}
    broken = {family for family in FAMILIES if statuses.get(family) in ("error", "failed") or part.get("error")}
    absent = broken | {family for family in FAMILIES if statuses.get(family) == "skipped"}
    given = {family: part[family] for family in FAMILIES if family not in absent and isinstance(part.get(family), list)}
    topics = [vocabulary.topic(_text(_field(one, "label", "topic"))) for one in _sure(given.get("topics"), least)]
    risks = [
        PlainRisk(
            vocabulary.risk(_text(_field(one, "type", "risk"))),
            _text(_field(one, "severity")).strip().lower() if isinstance(one, dict) else "",
            _segments(one),
        )
        for one in _sure(given.get("risks"), least)
    ]
    actions = [
        PlainAction(
            _text(_field(one, "description", "text")),
            _text(one.get("verbatim")) if isinstance(one, dict) else "",
            _text(one.get("assignee_role")) if isinstance(one, dict) else "",
        )
        for one in _sure(given.get("actions"), least)
    ]
    return Labels(
        tuple(topics) if "topics" in given else None,
        tuple(risks) if "risks" in given else None,
        tuple(actions) if "actions" in given else None,
        part.get("severity") != "skipped" and statuses.get("severity") != "skipped",
        frozenset(broken),
    )


def _united(labels: list[Labels]) -> Labels:
    """What was said of chunks, put together."""

    def all_of(family: str) -> Any:
        parts = [some for one in labels if (some := getattr(one, family)) is not None]
        return tuple(one for some in parts for one in some) if parts else None

    return Labels(
        all_of("topics"),
        all_of("risks"),
        all_of("actions"),
        all(one.provides_severity for one in labels),
        frozenset().union(*(one.failed for one in labels)),
    )


def _sure(findings: Any, least: float | None) -> Iterable[Any]:
    if least is None or not findings:
        return findings or ()
    return [one for one in findings if not _is_unsure(one, least)]


def _is_unsure(finding: Any, least: float) -> bool:
    confidence = finding.get("confidence") if isinstance(finding, dict) else None
    return isinstance(confidence, int | float) and confidence < least


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _field(finding: Any, *names: str) -> Any:
    """A finding is an object, or its name alone."""
    if not isinstance(finding, dict):
        return finding
    for name in names:
        if finding.get(name) is not None:
            return finding[name]
    return ""


def _segments(finding: Any) -> tuple[int, ...]:
    if not isinstance(finding, dict):
        return ()
    ids = finding.get("segment_ids")
    if isinstance(ids, list):
        return tuple(one for one in ids if isinstance(one, int))
    segment = finding.get("segment_id")
    return (segment,) if isinstance(segment, int) else ()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
