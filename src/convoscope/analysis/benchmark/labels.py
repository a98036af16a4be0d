"""Predictions as files: transcripts with `annotations.semantic`, or that annotation alone.

They are taken as they are, without building conversations: a benchmark scores labels, and there may be very many.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.errors import InputError
from convoscope.ingest.annotation_shapes import (
    annotation_parts,
    finding_text,
    is_absent,
    misfit,
    one_shape,
    segment_ids,
    statuses,
)
from convoscope.ingest.companions.gold_files import GoldFile
from convoscope.metrics.semantic.samples import Labels, PlainAction, PlainRisk
from convoscope.vocabulary import semantic_vocabulary


class SemanticPrediction(NamedTuple):
    """The labels of a sample, and who made them."""

    labels: Labels
    model: str
    annotator: str
    annotators: int = 1
    """How many there are in the file; this is the one that was named, else the first."""

    @property
    def maker(self) -> str:
        return self.model or self.annotator


class FailedPrediction(Exception):
    """A sample has no usable prediction: a reason code, and a detail."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


NO_PREDICTION = "no_prediction"
"""There is none."""
UNREADABLE_PREDICTION = "unreadable_prediction"


class _Transcript(msgspec.Struct, gc=False):
    """What is looked at of a transcript; a file may also hold the annotation alone."""

    annotations: Any = None
    chunks: Any = None
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
    provider: Any = None


_decode = msgspec.json.Decoder(_Transcript).decode


def read_prediction(
    data: bytes, name: str, min_confidence: float | None = None, model: str | None = None
) -> SemanticPrediction:
    """The labels in a file; an `InputError` where there are none to be found, or where they are no lists.

    What one annotator says of chunks is put together. Of several annotators, that of `model` is taken, else the first.
    """
    try:
        transcript = _decode(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"is not a transcript: {error}", file=name, hint="write the prediction again") from None
    held = [part.facts for part in annotation_parts(transcript.annotations, transcript.chunks)]
    if not held:
        alone = msgspec.structs.asdict(transcript)
        held = [{key: value for key, value in alone.items() if value is not None and key != "annotations"}]
    parts = [one_shape(facts) for facts in held if isinstance(facts, dict) and facts]
    if not parts:
        raise InputError(
            "has no predictions", file=name, field="$.annotations.semantic", hint="give topics, risks and actions there"
        )
    for part in parts:
        if field := misfit(part):
            hint = "findings are a list; `[]` is none, null is not looked for"
            raise InputError("is no list of findings", file=name, field=f"$.{field}", hint=hint)
    if len(parts) == 1:
        return SemanticPrediction(_labels(parts[0], min_confidence), *_maker(parts[0]))
    makers = list(dict.fromkeys(_maker(part) for part in parts))
    chosen = next((one for one in makers if model in one), makers[0])
    labels = [_labels(part, min_confidence) for part in parts if _maker(part) == chosen]
    return SemanticPrediction(_united(labels), *chosen, len(makers))


class _Maker(NamedTuple):
    """Who made an annotation, as far as it says."""

    model: str
    annotator: str


def _maker(part: Mapping[str, Any]) -> _Maker:
    return _Maker(_text(part.get("model")), _text(part.get("annotator", part.get("provider"))))


def _labels(part: Mapping[str, Any], least: float | None) -> Labels:
    vocabulary = semantic_vocabulary()
    status = statuses(part)
    given = {
        family: part[family] if least is None else _sure(part[family], least)
        for family in FAMILIES
        if isinstance(part.get(family), list) and not (status and is_absent(family, status))
    }
    topics, risks, actions = given.get(TOPICS), given.get(RISKS), given.get(ACTIONS)
    return Labels(
        None if topics is None else tuple([vocabulary.topic(finding_text(one, TOPICS)) for one in topics]),
        None if risks is None else tuple([_risk(one) for one in risks]),
        None if actions is None else tuple([_action(one) for one in actions]),
        status.get(SEVERITY) != SKIPPED,
        frozenset([family for family in FAMILIES if status.get(family) in BROKEN]) if status else _NONE,
    )


_NONE: frozenset[str] = frozenset()


def _risk(finding: Any) -> PlainRisk:
    kind = semantic_vocabulary().risk(finding_text(finding, RISKS))
    if not isinstance(finding, dict):
        return PlainRisk(kind, "", ())
    places = tuple([one for one in segment_ids(finding) if isinstance(one, int)])
    return PlainRisk(kind, _text(finding.get("severity")).strip().lower(), places)


def _action(finding: Any) -> PlainAction:
    text = finding_text(finding, ACTIONS)
    if not isinstance(finding, dict):
        return PlainAction(text)
    return PlainAction(text, _text(finding.get("verbatim")), _text(finding.get("assignee_role")))


def _united(labels: list[Labels]) -> Labels:
    """What was said of chunks, put together."""

    def all_of(family: str) -> Any:
        parts = [some for one in labels if (some := getattr(one, family)) is not None]
        return tuple(one for some in parts for one in some) if parts else None

    return Labels(
        all_of(TOPICS),
        all_of(RISKS),
        all_of(ACTIONS),
        all(one.provides_severity for one in labels),
        frozenset().union(*(one.failed for one in labels)),
    )


def _sure(findings: Sequence[Any], least: float) -> list[Any]:
    return [one for one in findings if not _is_unsure(one, least)]


def _is_unsure(finding: Any, least: float) -> bool:
    confidence = finding.get("confidence") if isinstance(finding, dict) else None
    return isinstance(confidence, int | float) and confidence < least


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def gold_labels(gold: GoldFile) -> Labels:
    """Gold as it is compared."""
    return Labels(
        None if gold.topics is None else tuple(one.label for one in gold.topics),
        None if gold.risks is None else tuple(PlainRisk(one.type, one.severity, one.segment_ids) for one in gold.risks),
        None
        if gold.actions is None
        else tuple(PlainAction(one.description, one.verbatim, one.assignee_role or "") for one in gold.actions),
    )
