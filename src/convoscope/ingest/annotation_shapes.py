"""What annotators write of a transcript: three shapes, brought to one, for all that read findings.

The keyword shape has tags, matches and actions; the second version has topics, risks and actions with their status;
the third is what an adapter returned for the whole or for a chunk, under `normalized` (semantic, 2.1). The first and
the last have no severities. A family that an annotator does not provide, or failed at, is absent and not empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.ingest.record import as_list, as_object, as_text, filled

_ABSENT = BROKEN | {SKIPPED}

NAMES = {
    TOPICS: ("label", "topic", "name"),
    RISKS: ("type", "label", "risk"),
    ACTIONS: ("description", "text", "label"),
}
"""Under which names the findings of each family say what they are."""
_NORMALIZED = {TOPICS: "topics", RISKS: "risk_tags", ACTIONS: "action_items"}


class AnnotationPart(NamedTuple):
    """One annotation as it was written, and the segments that it is about; none for all of them."""

    value: Any
    segment_ids: Sequence[Any] = ()


def annotation_parts(annotations: Any, chunks: Any) -> Iterator[AnnotationPart]:
    """The annotations of a transcript: those of the whole, then those of its chunks."""
    if isinstance(annotations, dict) and "semantic" in annotations:
        semantic = annotations["semantic"]
        for fields in semantic if isinstance(semantic, list) else (semantic,):
            yield AnnotationPart(fields)
    for chunk in map(as_object, as_list(chunks)):
        fields = chunk.get("semantic") or as_object(chunk.get("annotations")).get("semantic")
        if isinstance(fields, dict):
            yield AnnotationPart(fields, as_list(chunk.get("segment_ids")))


def one_shape(part: Mapping[str, Any]) -> dict[str, Any]:
    """The annotation with its findings under `topics`, `risks` and `actions`, and how each went.

    What was moved is gone from where it was; what could not be moved stays.
    """
    fields = dict(part)
    if isinstance(fields.get("normalized"), dict):
        _take_normalized(fields)
    elif TOPICS not in fields and RISKS not in fields and ("risk_tags" in fields or "matches" in fields):
        _take_keywords(fields)
    return fields


def statuses(fields: Mapping[str, Any]) -> dict[str, str]:
    """How each family went. An error of the annotation is one of every family, whatever else it says of them."""
    held = as_object(fields.get("extraction_status"))
    status = {name: value for name, value in held.items() if isinstance(value, str)}
    if fields.get("error"):
        status |= {family: "error" for family in FAMILIES if not is_absent(family, status)}
    elif misfit(fields):
        status |= dict.fromkeys(FAMILIES, "error")
    return status


def misfit(fields: Mapping[str, Any]) -> str:
    """The field of an annotation, in one shape, whose findings are no list; empty where all are lists or absent."""
    for name in (*FAMILIES, "risk_tags", "matches"):
        if fields.get(name) is not None and not isinstance(fields[name], list):
            return name
    left = fields.get("normalized")
    if left is None:
        return ""
    names = [name for name in _NORMALIZED.values() if isinstance(left, dict) and left.get(name) is not None]
    return f"normalized.{names[0]}" if names else "" if isinstance(left, dict) else "normalized"


def is_absent(family: str, status: Mapping[str, str]) -> bool:
    """Whether nothing can be said of a family: a failed annotation is no "found nothing" (semantic, 1.5, rule 31)."""
    return status.get(family) in _ABSENT


def finding_text(finding: Any, family: str) -> str:
    """What a finding is; a plain string is its name. Empty where it does not say."""
    if isinstance(finding, str):
        return finding
    texts = (as_text(as_object(finding).get(name)) for name in NAMES[family])
    return next(filter(None, texts), "")


def segment_ids(finding: Mapping[str, Any]) -> Sequence[Any]:
    """The segments that a finding rests on, as they are written."""
    ids = finding.get("segment_ids")
    if isinstance(ids, list):
        return ids
    segment = finding.get("segment_id")
    return () if segment is None else (segment,)


def _take_normalized(fields: dict[str, Any]) -> None:
    """The shape of adapters: names of topics, tags of risks without severity, items of actions."""
    inner = dict(fields.pop("normalized"))
    for family, name in _NORMALIZED.items():
        if isinstance(inner.get(name), list):
            fields[family] = inner.pop(name)
    if left := filled(inner):
        fields["normalized"] = left
    _without_severity(fields)


def _take_keywords(fields: dict[str, Any]) -> None:
    """The keyword shape: it has no topics, and a risk is a tag with the words that matched."""
    fields.setdefault("annotator", "keyword")
    all_tags = as_list(fields.get("risk_tags"))
    tags = [tag for tag in all_tags if isinstance(tag, str) and tag]
    matches = [as_object(match) for match in as_list(fields.get("matches"))]
    risks: dict[str, dict[str, Any]] = {tag: {"type": tag} for tag in tags}
    for match in matches:
        if type := finding_text({"type": match.get("risk")}, RISKS):
            risk = risks.setdefault(type, {"type": type})
            risk.setdefault("segment_ids", []).append(match.get("segment_id"))
            risk.setdefault("keywords", []).append(match.get("keyword"))
    if misfit(fields):
        return
    if all(isinstance(match.get("risk"), str) and match["risk"] for match in matches):
        fields.pop("matches", None)
    if len(tags) == len(all_tags):
        fields.pop("risk_tags", None)
        fields[RISKS] = list(risks.values())
    _without_severity(fields)


def _without_severity(fields: dict[str, Any]) -> None:
    fields["extraction_status"] = {**as_object(fields.get("extraction_status")), SEVERITY: SKIPPED}
