"""What the rules find in real user turns, against labels by hand. The figures are in the guide on languages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convoscope.metrics.user import pushback
from convoscope.text.lexicon import folded_phrases, lexicon
from support.labelled_turns import LabelledTurn, labelled_turns

LABELS = Path(__file__).with_name("labels") / "user-turns.jsonl"


@pytest.fixture(scope="module")
def turns(shared: Callable[[str], Path]) -> list[LabelledTurn]:
    return list(labelled_turns(LABELS, shared("data")))


def _objects(turn: LabelledTurn) -> bool:
    """What the metric says of the turn that holds the utterance."""
    first = next(one.user[0].seq for one in turn.conversation.turns if turn.seq in {said.seq for said in one.user})
    return any(one.value == 1 for one in pushback(turn.conversation) if one.subject.position == first)


def _share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_pushback(turns: list[LabelledTurn], ran: Callable[[str, int], None]) -> None:
    ran("user turns labelled by hand", len(turns))
    looks = [
        (bool(one.label["objects"] or one.label["asks_again"]), _objects(one), one.label["sample"]) for one in turns
    ]
    hits = [right for right, hit, _ in looks if hit]
    drawn = [hit for right, hit, sample in looks if right and sample in ("seeded", "both")]
    if not hits or not drawn:
        pytest.skip("none of the labelled turns is here")
    # Measured: 93 of 111 hits are right, 7 of 20 drawn objections that can be read are found. Floors a little below.
    assert _share(hits) >= 0.8
    assert _share(drawn) >= 0.3


@pytest.mark.parametrize(
    ("label", "purpose", "precision", "recall"),
    [("thanks", "thanks", 0.85, 0.9), ("goodbye", "goodbye", 0.85, 0.35), ("agent_declines", "refusal", 0.85, 0.5)],
)
def test_lists(turns: list[LabelledTurn], label: str, purpose: str, precision: float, recall: float) -> None:
    known = lexicon("en")
    assert known is not None
    pairs = [
        (bool(one.label[label]), bool(known.find(purpose, folded_phrases(one.reply if "agent" in label else one.text))))
        for one in turns
        if one.label[label] is not None and one.label["sample"] in ("seeded", "both")
    ]
    if not any(right for right, _ in pairs) or not any(hit for _, hit in pairs):
        pytest.skip(f"no drawn turn that is here has the label {label}")
    assert _share([right for right, hit in pairs if hit]) >= precision
    assert _share([hit for right, hit in pairs if right]) >= recall
