"""What annotators found in a conversation, in words, and at which utterances."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

import msgspec

from convoscope.analysis.words import reason_text
from convoscope.conversation import Action, Annotations, Conversation, Risk, Topic
from convoscope.metrics.unresolved import RESOLUTION, RESOLVED_BY


class PlacedFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A topic, a risk or an action: who found it, what it is, and where."""

    by: str
    """`found by rules`, or `labelled by` whoever made gold."""
    text: str
    seqs: tuple[int, ...] = ()
    """The utterances that tell it; none where the annotator did not say."""
    evidence: str = ""
    is_open: bool = False
    """A risk that nothing said later deals with."""


def placed_findings(conversation: Conversation) -> tuple[PlacedFinding, ...]:
    """Everything that was found, by annotator, topics first."""
    return tuple(finding for one in conversation.annotations for finding in _of_annotator(one))


def by_place(findings: Iterable[PlacedFinding]) -> dict[int, list[PlacedFinding]]:
    """The findings of each utterance."""
    places: dict[int, list[PlacedFinding]] = defaultdict(list)
    for finding in findings:
        for seq in finding.seqs:
            places[seq].append(finding)
    return places


def _of_annotator(annotations: Annotations) -> Iterator[PlacedFinding]:
    verb = "labelled" if annotations.origin == "gold" else "found"
    by = f"{verb} by {annotations.annotator or 'an annotator without a name'}"
    looked = annotations.extraction.get(RESOLUTION) == "success"
    for topic in annotations.topics or ():
        yield PlacedFinding(by=by, text=f"topic {topic.label}", seqs=_seqs(topic), evidence=topic.evidence)
    for risk in annotations.risks or ():
        yield from _risk(risk, by, looked=looked)
    for action in annotations.actions or ():
        yield PlacedFinding(by=by, text=_action_text(action), seqs=action.events, evidence=action.verbatim)


def _seqs(topic: Topic) -> tuple[int, ...]:
    return topic.events or tuple(dict.fromkeys(topic.span or ()))


def _risk(risk: Risk, by: str, *, looked: bool) -> Iterator[PlacedFinding]:
    name = ", ".join(filter(None, (f"risk {reason_text(risk.type)}", risk.severity)))
    resolved = risk.extras.get(RESOLVED_BY)
    end = "" if not looked else ", unresolved" if resolved is None else ", resolved later"
    is_open = looked and resolved is None
    yield PlacedFinding(by=by, text=name + end, seqs=risk.events, evidence=risk.evidence, is_open=is_open)
    if looked and isinstance(resolved, int):
        yield PlacedFinding(by=by, text=f"resolves {reason_text(risk.type)}", seqs=(resolved,))


def _action_text(action: Action) -> str:
    who = action.assignee.rpartition(":")[2] or action.assignee_role  # the id of a speaker is `ROLE:NAME`
    due = f"due {action.due}" if action.due else ""
    return ", ".join(filter(None, (f"action {action.description}", f"of {who}" if who else "of nobody", due)))
