"""Metrics that a judge has to give. A verdict that the data brought along is used; without one there is no value."""

from __future__ import annotations

import math
from collections.abc import Iterator

from convoscope.conversation import Conversation, Label
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, TURN, Level, Metric, metric
from convoscope.metrics.needs import JUDGE, Need
from convoscope.scores.observation import MEASURED, UNMEASURED, Observation, in_turn
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.views.items import WHOLE, Subject

SUBJECT_KINDS = ("turn", "conversation")


def _judged(name: str, observes: Level, definition: str) -> Metric:
    key = f"judged.{name}"

    def verdicts(conversation: Conversation) -> Iterator[Observation]:
        labels = [label for label in conversation.labels if _is_of(label, name)]
        # A verdict on each turn says more than one on the whole; they are not mixed.
        kind = min((label.subject_kind for label in labels), key=SUBJECT_KINDS.index, default="")
        seen: dict[tuple[Subject, str], int] = {}
        for label in labels:
            if label.subject_kind == kind:
                given = (_subject(label), _judge(label))
                yield _verdict(label, *given, repeat=seen.get(given, 0))
                seen[given] = seen.get(given, 0) + 1

    verdicts.__doc__ = f"""{definition}

    As a judge says who came with the data: a label named `{name}` with a value from 0 to 1. Several
    judges speak each for themselves. Unmeasured without such a label, or off that scale.
    """
    verdict = Need(
        code=JUDGE.code,
        field="labels",
        unlock=f"a verdict that came with the data: a label `{name}` with a value from 0 to 1",
        present=lambda conversation: (
            bool(conversation.labels) and any(_is_of(one, name) for one in conversation.labels)
        ),
    )
    return metric(
        key,
        version=1,
        observes=observes,
        unit=RATIO,
        better=HIGHER,
        needs=(verdict,),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        importance=6,
        sensitive_to=(),
    )(verdicts)


faithfulness = _judged(
    "faithfulness",
    CONVERSATION,
    "Does the agent keep to what its instructions, its tools and the user told it?",
)
agent_speech_fidelity = _judged(
    "agent_speech_fidelity",
    TURN,
    "Can the names, codes and numbers be heard as the agent meant to say them?",
)
conversation_progression = _judged(
    "conversation_progression",
    CONVERSATION,
    "Does the agent move the conversation forward, without detours and without asking twice?",
)
conciseness = _judged(
    "conciseness",
    TURN,
    "Does the agent say what is needed, in words that an ear can follow?",
)


def _has_verdict(conversation: Conversation, name: str) -> bool:
    return bool(conversation.labels) and any(_is_of(label, name) for label in conversation.labels)


def _is_of(label: Label, name: str) -> bool:
    return label.name in (name, f"judged.{name}") and label.subject_kind in SUBJECT_KINDS


def _subject(label: Label) -> Subject:
    if label.subject_kind == "turn":
        return in_turn(int(label.subject)) if label.subject.isdecimal() else Subject("turn", label.subject)
    return WHOLE


def _judge(label: Label) -> str:
    return f"{label.rater_kind}:{label.rater or 'unnamed'}"


def _verdict(label: Label, subject: Subject, judge: str, *, repeat: int) -> Observation:
    value = label.value
    details = {"notes": label.notes} if label.notes else None
    if isinstance(value, int | float) and math.isfinite(value) and 0 <= value <= 1:
        return Observation(
            subject=subject, status=MEASURED, value=float(value), judge=judge, repeat=repeat, details=details
        )
    return Observation(
        subject=subject, status=UNMEASURED, reason="not_on_scale", detail=f"{value!r}", judge=judge, repeat=repeat
    )
