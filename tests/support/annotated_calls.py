"""Short calls, and what the rule annotator finds in them."""

from __future__ import annotations

from convoscope.annotate.rules.annotator import ANNOTATOR
from convoscope.conversation import Annotations, Conversation, Participant, Text, Utterance

CALLER, AGENT, SOMEBODY = (
    Participant("user", "user"),
    Participant("assistant", "assistant"),
    Participant("x", "unknown"),
)


def call(*lines: str, **fields: object) -> Conversation:
    """`u: …` is the caller, `a: …` the agent, `x: …` somebody."""
    who = {"u": "user", "a": "assistant", "x": "x"}
    spoken = [line.partition(": ") for line in lines]
    return Conversation(
        id="c",
        participants=tuple(one for one in (CALLER, AGENT, SOMEBODY) if one.id in {who[mark] for mark, _, _ in spoken}),
        timeline=tuple(
            Utterance(seq=seq, speaker=who[mark], intended=Text(text)) for seq, (mark, _, text) in enumerate(spoken)
        ),
        **fields,  # type: ignore[arg-type]
    )


def found(*lines: str) -> Annotations:
    return ANNOTATOR.annotate(call(*lines))


def risks(*lines: str) -> dict[str, str]:
    return {one.type: one.severity for one in found(*lines).risks or ()}


def topics(*lines: str) -> list[str]:
    return [one.label for one in found(*lines).topics or ()]


def actions(*lines: str) -> list[tuple[str, str, str]]:
    return [(one.description, one.assignee_role, one.due) for one in found(*lines).actions or ()]
