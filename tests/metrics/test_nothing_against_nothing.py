"""Nothing predicted where nothing is true: the table of `docs/metrics/README.md`, not the same everywhere."""

from __future__ import annotations

from pathlib import Path

import msgspec

import convoscope
from convoscope.conversation import Annotations, Conversation, Frame, Participant, Text, Utterance

TABLE = (Path(__file__).parents[2] / "docs" / "metrics" / "README.md").read_text()
NOT_APPLICABLE = "not applicable, `nothing_to_find`"
RIGHT = "1: an empty state is a state"


def _conversation() -> Conversation:
    said = (
        Utterance(seq=0, speaker="u", intended=Text("hello")),
        Utterance(seq=1, speaker="a", intended=Text("yes")),
    )
    who = (Participant("u", "user"), Participant("a", "assistant"))
    return Conversation(id="d", participants=who, timeline=said)


def test_labels_have_no_value(tmp_path: Path) -> None:
    none = {"annotator": "a", "topics": (), "risks": (), "actions": ()}
    both = (Annotations(origin="predicted", **none), Annotations(origin="gold", **none))
    metrics = ["semantic.topic_f1", "semantic.risk_f1", "semantic.action_f1"]
    conversation = msgspec.structs.replace(_conversation(), annotations=both)
    run = convoscope.score([conversation], metrics=metrics, out=tmp_path / "run", workers=1)
    assert run.summary.metrics == []
    assert {one.reason for one in run.summary.not_measured} == {"nothing_to_find"}
    for metric in metrics:
        assert f"| [`{metric}`]({metric}.md) | {NOT_APPLICABLE} |" in TABLE


def test_a_dialogue_state_is_right(tmp_path: Path) -> None:
    frames = tuple(Frame(seq=0, origin=one, service="hotel", slots={}) for one in ("gold", "predicted"))
    conversation = msgspec.structs.replace(_conversation(), frames=frames)
    run = convoscope.score([conversation], metrics=["dialogue.jga"], out=tmp_path / "run", workers=1)
    (figure,) = [one for one in run.summary.metrics if one.key == "dialogue.jga" and not one.reduction]
    assert figure.value == 1.0
    assert f"| [`dialogue.jga`](dialogue.jga.md) | {RIGHT} |" in TABLE
