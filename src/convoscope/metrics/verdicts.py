"""Verdicts that came with the data as scores: labels of people and of other programs, from 0 to 1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from convoscope.conversation import Conversation, Label
from convoscope.metrics.needs import Need
from convoscope.scores.observation import (
    ERROR,
    MEASURED,
    NOT_APPLICABLE,
    UNMEASURED,
    Observation,
    Status,
    in_turn,
    not_applicable,
    unmeasured,
)
from convoscope.views.items import WHOLE, Subject
from convoscope.views.metric_context import metric_context

FAILED = "rater_failed"
SKIPPED = "skipped_by_rater"
NOT_ON_SCALE = "not_on_scale"

_SUBJECT_KINDS = ("turn", "conversation")
_SCALE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(?:-|–|to|\.\.)\s*(\d+(?:\.\d+)?)\s*")


def has_verdict(conversation: Conversation, name: str, *, externally: bool = False) -> bool:
    """Whether a label speaks of this metric."""
    return any(_is_of(label, name) and (not externally or _is_external(label)) for label in conversation.labels)


def labelled(conversation: Conversation, name: str, *, externally: bool = False) -> Iterator[Observation]:
    """The verdicts that came with the data. One on each turn says more than one on the whole; they are not mixed.

    `externally`: those of other programs only.
    """
    labels = [one for one in conversation.labels if _is_of(one, name) and (not externally or _is_external(one))]
    kind = min((label.subject_kind for label in labels), key=_SUBJECT_KINDS.index, default="")
    seen: Counter[tuple[Subject, str]] = Counter()
    for label in labels:
        if label.subject_kind == kind:
            yield _label_score(label, conversation, seen)


def _is_of(label: Label, name: str) -> bool:
    names = (name, f"judged.{name}", f"outcome.{name}", f"voice.{name}")
    return label.name.partition("@")[0] in names and label.subject_kind in _SUBJECT_KINDS


def _is_external(label: Label) -> bool:
    return label.rater_kind == "external"


def rater_of(label: Label) -> str:
    """Who speaks, as a judge is named."""
    return f"{label.rater_kind}:{label.rater or 'unnamed'}"


def _label_score(label: Label, conversation: Conversation, seen: Counter[tuple[Subject, str]]) -> Observation:
    subject = WHOLE
    if label.subject_kind == "turn":
        subject = in_turn(int(label.subject)) if label.subject.isdecimal() else Subject("turn", label.subject)
    judge = rater_of(label)
    repeat = seen[subject, judge]
    seen[subject, judge] += 1
    score = verdict_score(label, subject, repeat)
    if score.status == MEASURED and subject.kind == "turn" and not _has_turn(conversation, subject):
        return Observation(
            subject=subject, status=UNMEASURED, reason="no_such_turn", detail=subject.id, judge=judge, repeat=repeat
        )
    return score


def _has_turn(conversation: Conversation, subject: Subject) -> bool:
    """Whether the turn exists, in the conversation's own count or in that of its context."""
    if any(turn.id == subject.position and subject.id.isdecimal() for turn in conversation.turns):
        return True
    return any(entry["turn_id"] == subject.position for entry in metric_context(conversation).conversation_trace)


def verdict_score(label: Label, subject: Subject = WHOLE, repeat: int = 0) -> Observation:
    """What a label says. A rater that failed or gave no verdict has no number, whatever its file holds beside that."""
    judge = rater_of(label)
    stamp = {"notes": label.notes, "policy": label.policy}
    details = {name: text for name, text in stamp.items() if text} or None

    def without(status: Status, reason: str, detail: str) -> Observation:
        return Observation(
            subject=subject, status=status, reason=reason, detail=detail, judge=judge, repeat=repeat, details=details
        )

    if label.status == "failed":
        return without(ERROR, FAILED, label.notes)
    if label.status == "skipped":
        # The file does not distinguish "nothing to rate" from "the answer could not be read".
        return without(UNMEASURED, SKIPPED, label.notes)
    value = _from_0_to_1(label)
    if value is None:
        scale = f" on the scale {label.scale}" if label.scale else ""
        return without(UNMEASURED, NOT_ON_SCALE, f"{label.value!r}{scale}")
    return Observation(subject=subject, status=MEASURED, value=value, judge=judge, repeat=repeat, details=details)


def _from_0_to_1(label: Label) -> float | None:
    """The value, by the scale that the label states; None where it is not on it, or the scale is unreadable."""
    value = label.value
    if not isinstance(value, int | float):
        return None
    low, high = 0.0, 1.0
    if label.scale:
        match = _SCALE.fullmatch(label.scale)
        low, high = (float(match[1]), float(match[2])) if match else (0.0, 0.0)
    if low >= high or (isinstance(value, bool) and (low, high) != (0.0, 1.0)) or not low <= value <= high:
        return None
    return (value - low) / (high - low)


def or_verdict(needs: Sequence[Need], name: str) -> tuple[Need, ...]:
    """The same needs, each met as well where another program gave its verdict."""

    def either(need: Need) -> Need:
        def present(conversation: Conversation) -> bool:
            return need.met(conversation) or has_verdict(conversation, name, externally=True)

        return msgspec.structs.replace(need, present=present)

    return tuple(map(either, needs))


def with_verdicts(
    conversation: Conversation, name: str, needs: Sequence[Need], compute: Callable[[], Iterable[Observation]]
) -> Iterator[Observation]:
    """What is computed, where it can be, and what another program says of the same."""
    lacking = next((need for need in needs if not need.met(conversation)), None)
    if lacking is None:
        yield from compute()
    elif lacking.status_if_missing == NOT_APPLICABLE:
        yield not_applicable(WHOLE, lacking.code)
    else:
        yield unmeasured(WHOLE, lacking.code)
    yield from labelled(conversation, name, externally=True)
