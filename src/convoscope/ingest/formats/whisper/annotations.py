"""What was found in a transcript and written into it, in any of three shapes, as predicted annotations.

The keyword shape has tags, matches and actions; the second version has topics, risks and actions with their status;
the third is what an adapter returned for the whole or for a chunk, under `normalized` (semantic, 2.1). A family that
an annotator does not provide, or failed at, is None and not empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from convoscope.conversation import Action, Annotations, Risk, Topic
from convoscope.ingest.record import Facts, as_list, as_number, as_object, as_text, filled, take, take_text
from convoscope.ingest.report import Notes

_FAILED = frozenset({"error", "failed", "skipped"})
_FAMILIES = ("topics", "risks", "actions")
_Finding = TypeVar("_Finding", Topic, Risk, Action)


class SegmentPlaces:
    """The utterances by the id of their segment."""

    def __init__(self) -> None:
        self.seqs: dict[str, int] = {}

    def add(self, id: str, seq: int) -> None:
        self.seqs.setdefault(id, seq)


def read_annotations(facts: Facts, segments: SegmentPlaces, notes: Notes) -> tuple[Annotations, ...]:
    """What was found, taken out of a transcript; what cannot be read stays where it was."""
    kept: list[Annotations] = []
    holder = facts.get("annotations")
    if isinstance(holder, dict) and "semantic" in holder:
        rest = dict(holder)
        unread = []
        for entry in _each(rest.pop("semantic")):
            if isinstance(entry, dict):
                kept.append(_Shape(entry, segments, notes).annotations())
            else:
                notes.set_aside("annotation_is_no_object", str(entry)[:60])
                unread.append(entry)
        facts["annotations"] = filled({**rest, "semantic": unread})
    for chunk in as_list(facts.get("chunks")):
        kept += _of_chunk(as_object(chunk), segments, notes)
    return tuple(kept)


def _of_chunk(chunk: Facts, segments: SegmentPlaces, notes: Notes) -> Iterable[Annotations]:
    """What an adapter said of a chunk, which rests on the segments of the chunk."""
    held = chunk.get("semantic") or as_object(chunk.get("annotations")).get("semantic")
    if isinstance(held, dict):
        yield _Shape(held, segments, notes, as_list(chunk.get("segment_ids"))).annotations()


def _each(value: Any) -> Iterable[Any]:
    return value if isinstance(value, list) else (value,)


class _Shape:
    """One annotation of whatever shape, being read."""

    def __init__(self, held: Facts, segments: SegmentPlaces, notes: Notes, whole: Iterable[Any] = ()) -> None:
        self.facts = dict(held)
        self.segments = segments
        self.notes = notes
        self.whole = tuple(whole)

    def annotations(self) -> Annotations:
        facts = self.facts
        status = {name: as_text(value) for name, value in as_object(facts.get("extraction_status")).items()}
        if isinstance(facts.get("normalized"), dict):
            self._take_normalized()
        elif "topics" not in facts and "risks" not in facts and ("risk_tags" in facts or "matches" in facts):
            self._take_keywords()
        error = facts.get("error")
        families: dict[str, Any] = {
            "topics": self._family("topics", self._topic),
            "risks": self._family("risks", self._risk),
            "actions": self._family("actions", self._action),
        }
        for name in _FAMILIES:
            if status.get(name) in _FAILED or error:
                # A failed annotation is no "found nothing" (semantic, 1.5, rule 31).
                families[name] = None
                status.setdefault(name, "error")
        if status:
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

    def _take_normalized(self) -> None:
        """The shape of adapters: names of topics, tags of risks without severity, items of actions."""
        inner = dict(self.facts.pop("normalized"))
        for family, name in (("topics", "topics"), ("risks", "risk_tags"), ("actions", "action_items")):
            if isinstance(inner.get(name), list):
                self.facts[family] = inner.pop(name)
        if filled(inner):
            self.facts["normalized"] = filled(inner)

    def _take_keywords(self) -> None:
        """The keyword shape: it has no topics, and a risk is a tag with the words that matched."""
        self.facts.setdefault("annotator", "keyword")
        tags = [tag for tag in as_list(self.facts.get("risk_tags")) if as_text(tag)]
        matches = [as_object(match) for match in as_list(self.facts.get("matches"))]
        risks: dict[str, Facts] = {as_text(tag): {"type": as_text(tag)} for tag in tags}
        for match in matches:
            if type := as_text(match.get("risk")):
                risk = risks.setdefault(type, {"type": type})
                risk.setdefault("segment_ids", []).append(match.get("segment_id"))
                risk.setdefault("keywords", []).append(match.get("keyword"))
        if all(as_text(match.get("risk")) for match in matches):
            self.facts.pop("matches", None)
        if len(tags) == len(as_list(self.facts.get("risk_tags"))):
            self.facts.pop("risk_tags", None)
            self.facts["risks"] = list(risks.values())

    def _family(self, name: str, build: Callable[[Facts], _Finding | None]) -> tuple[_Finding, ...] | None:
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

    def _topic(self, facts: Facts) -> Topic | None:
        label = take_text(facts, "label", "topic", "name")
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

    def _risk(self, facts: Facts) -> Risk | None:
        type = take_text(facts, "type", "label", "risk")
        if not type:
            return None
        severity, speaker = take_text(facts, "severity"), take_text(facts, "speaker_id", "speaker")
        return Risk(type=type, severity=severity, speaker=speaker, **self._common(facts))

    def _action(self, facts: Facts) -> Action | None:
        text, verbatim = take_text(facts, "description", "text", "label"), take_text(facts, "verbatim")
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

    def _common(self, facts: Facts) -> dict[str, Any]:
        """What every finding has; it is asked last, for what is left goes to `extras`."""
        ids = facts.pop("segment_ids", None)
        id = facts.pop("segment_id", None)
        events = self._seqs(ids if isinstance(ids, list) else [] if id is None else [id]) or self._seqs(self.whole)
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
