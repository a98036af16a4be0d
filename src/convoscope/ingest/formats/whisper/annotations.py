"""What was found in a transcript and written into it, as predicted annotations; the shapes are those there are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from convoscope.conversation import Action, Annotations, Risk, Topic
from convoscope.conversation.annotations import FAMILIES
from convoscope.ingest.annotation_shapes import (
    NAMES,
    AnnotationPart,
    annotation_parts,
    is_absent,
    misfit,
    one_shape,
    segment_ids,
    statuses,
)
from convoscope.ingest.record import JsonObject, as_number, as_object, as_text, filled, take, take_text
from convoscope.ingest.report import Notes

_Finding = TypeVar("_Finding", Topic, Risk, Action)


class SegmentPlaces:
    """The utterances by the id of their segment."""

    def __init__(self) -> None:
        self.seqs: dict[str, int] = {}

    def add(self, id: str, seq: int) -> None:
        self.seqs.setdefault(id, seq)


def read_annotations(facts: JsonObject, segments: SegmentPlaces, notes: Notes) -> tuple[Annotations, ...]:
    """What was found, taken out of a transcript; what cannot be read stays where it was."""
    kept: list[Annotations] = []
    unread = []
    holder = facts.get("annotations")
    for part in annotation_parts(holder, facts.get("chunks")):
        if isinstance(part.facts, dict):
            kept.append(_Shape(part, segments, notes).annotations())
        else:
            notes.set_aside("annotation_is_no_object", str(part.facts)[:60])
            unread.append(part.facts)
    makers = dict.fromkeys((one.annotator, one.model) for one in kept)
    if len(makers) > 1:
        names = ", ".join(model or annotator for annotator, model in makers)
        notes.inferred("first_annotator_is_scored", names[:60])
    if isinstance(holder, dict) and "semantic" in holder:
        facts["annotations"] = filled({**holder, "semantic": unread})
    return tuple(kept)


class _Shape:
    """One annotation of whatever shape, being read."""

    def __init__(self, part: AnnotationPart, segments: SegmentPlaces, notes: Notes) -> None:
        self.facts = one_shape(part.facts)
        self.segments = segments
        self.notes = notes
        self.whole = tuple(part.segment_ids)

    def annotations(self) -> Annotations:
        facts = self.facts
        status = statuses(facts)
        builders = {"topics": self._topic, "risks": self._risk, "actions": self._action}
        # Findings of a family that failed stay where they were.
        families: dict[str, Any] = {
            name: None if is_absent(name, status) else self._family(name, builders[name]) for name in FAMILIES
        }
        if field := misfit(facts):
            self.notes.set_aside("findings_are_no_list", field)
        elif status:
            facts.pop("extraction_status", None)
        summary = take(facts, "summary")
        return Annotations(
            origin="predicted",
            annotator=take_text(facts, "annotator", "provider") or "unnamed",
            model=take_text(facts, "model"),
            annotated_at=take_text(facts, "generated_at", "annotated_at"),
            summary=summary,
            extraction=status,
            extras=filled(facts),
            **families,
        )

    def _family(self, name: str, build: Callable[[JsonObject], _Finding | None]) -> tuple[_Finding, ...] | None:
        held = self.facts.get(name)
        if not isinstance(held, list):
            return None
        del self.facts[name]
        findings, unread = list[_Finding](), list[Any]()
        for entry in held:
            named = {"label": entry} if isinstance(entry, str) else dict(as_object(entry))
            finding = build(named) if named else None
            if finding is None:
                self.notes.set_aside("unreadable_finding", f"{name}: {str(entry)[:60]}")
                unread.append(entry)
            else:
                findings.append(finding)
        if unread:
            self.facts[f"unread_{name}"] = unread
        return tuple(findings)

    def _topic(self, facts: JsonObject) -> Topic | None:
        label = take_text(facts, *NAMES["topics"])
        if not label:
            return None
        span = facts.get("span")
        seqs = self._seqs(span) if isinstance(span, list) and len(span) == 2 else ()
        if len(seqs) == 2 and seqs[0] <= seqs[1]:
            del facts["span"]
            whole: tuple[int, int] | None = (seqs[0], seqs[1])
        else:
            whole = None
        return Topic(label=label, span=whole, **self._common(facts))

    def _risk(self, facts: JsonObject) -> Risk | None:
        type = take_text(facts, *NAMES["risks"])
        if not type:
            return None
        severity, speaker = take_text(facts, "severity"), take_text(facts, "speaker_id", "speaker")
        return Risk(type=type, severity=severity, speaker=speaker, **self._common(facts))

    def _action(self, facts: JsonObject) -> Action | None:
        text, verbatim = take_text(facts, *NAMES["actions"]), take_text(facts, "verbatim")
        if not text:
            return None
        return Action(
            description=text,
            verbatim=verbatim,
            assignee=take_text(facts, "assignee", "speaker_id"),
            assignee_role=take_text(facts, "assignee_role"),
            due=take_text(facts, "due", "deadline"),
            priority=take_text(facts, "priority"),
            status=take_text(facts, "status"),
            **self._common(facts),
        )

    def _common(self, facts: JsonObject) -> dict[str, Any]:
        """What every finding has; it is asked last, for what is left goes to `extras`."""
        events = self._seqs(segment_ids(facts)) or self._seqs(self.whole)
        facts.pop("segment_ids", None)
        facts.pop("segment_id", None)
        confidence = as_number(facts.get("confidence"))
        if confidence is not None:
            del facts["confidence"]
        return {
            "events": events,
            "confidence": confidence,
            "evidence": take_text(facts, "evidence"),
            "notes": take_text(facts, "notes"),
            "extras": filled(facts),
        }

    def _seqs(self, ids: Iterable[Any]) -> tuple[int, ...]:
        """The utterances of these segments; an id that no segment has is noted."""
        seqs = list[int]()
        for id in ids:
            seq = self.segments.seqs.get(as_text(id)) if as_text(id) else None
            if seq is None:
                self.notes.set_aside("finding_without_segment", str(id)[:60])
            else:
                seqs.append(seq)
        return tuple(dict.fromkeys(seqs))
