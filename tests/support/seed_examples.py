"""The examples of `examples/convoscope`, one for each seed document, and how tests look into them."""

from pathlib import Path

from convoscope.conversation import ComponentMetric, Conversation, Utterance, from_json

FOLDER = Path(__file__).parents[2] / "examples" / "convoscope"
NAMES = ("voice-call", "evaluation-items", "flow-states", "annotated-call", "dialogue-state")


def example(name: str) -> Conversation:
    return from_json((FOLDER / f"{name}.json").read_bytes())


def said(conversation: Conversation, seq: int) -> Utterance:
    return next(utterance for utterance in conversation.utterances if utterance.seq == seq)


def figures(conversation: Conversation, component: str) -> list[ComponentMetric]:
    return [e for e in conversation.timeline if isinstance(e, ComponentMetric) and e.component == component]
