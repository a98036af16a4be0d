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
    truth = [bool(one.label["objects"] or one.label["asks_again"]) for one in turns]
    found = [_objects(one) for one in turns]
    precision = _share([right for right, hit in zip(truth, found, strict=True) if hit])
    recall = _share([hit for right, hit in zip(truth, found, strict=True) if right])
    # Version 1 had 0.51 and 0.62: the labelled hits were chosen by it.
    assert precision >= 0.75
    assert recall >= 0.45


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
        if one.label[label] is not None and one.label["sample"] != "hit"
    ]
    assert _share([right for right, hit in pairs if hit]) >= precision
    assert _share([hit for right, hit in pairs if right]) >= recall
