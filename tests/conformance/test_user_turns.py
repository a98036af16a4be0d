"""What the rules find in real turns, against labels by hand. `python -m benchmarks.objections` prints the figures."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from benchmarks.labelled_turns import LabelledReply, LabelledTurn, labelled_replies, labelled_turns
from benchmarks.objections import (
    AGENTS,
    USERS,
    Look,
    both_readers,
    declined_looks,
    hand_over_looks,
    kappa,
    list_looks,
    pushback_looks,
    quality,
)


@pytest.fixture(scope="module")
def turns(shared: Callable[[str], Path]) -> list[LabelledTurn]:
    return list(labelled_turns(USERS, shared("data")))


@pytest.fixture(scope="module")
def replies(shared: Callable[[str], Path]) -> list[LabelledReply]:
    return list(labelled_replies(AGENTS, shared("data")))


def _assert(looks: list[Look], precision: float, recall: float) -> None:
    """Floors a little below what was measured. Where the labelled files are not there, there is nothing to decide."""
    measured = quality(looks)
    if measured.precision is None or measured.recall is None:
        pytest.skip("too few of the labelled turns are here")
    assert measured.precision.value >= precision
    assert measured.recall.value >= recall


def test_pushback(turns: list[LabelledTurn], ran: Callable[[str, int], None]) -> None:
    ran("user turns labelled by hand", len(turns))
    _assert(pushback_looks(turns), 0.88, 0.35)


@pytest.mark.parametrize(
    ("label", "purpose", "precision", "recall"),
    [("thanks", "thanks", 0.85, 0.9), ("goodbye", "goodbye", 0.85, 0.35), ("agent_declines", "refusal", 0.85, 0.6)],
)
def test_lists(turns: list[LabelledTurn], label: str, purpose: str, precision: float, recall: float) -> None:
    _assert(list_looks(turns, label, purpose), precision, recall)


def test_declined(replies: list[LabelledReply], ran: Callable[[str, int], None]) -> None:
    ran("agent turns labelled by hand", len(replies))
    _assert(declined_looks(replies), 0.9, 0.75)


def test_hand_over(replies: list[LabelledReply]) -> None:
    _assert(hand_over_looks(replies), 0.85, 0.5)


def test_nothing_labelled_is_nothing_measured(tmp_path: Path) -> None:
    assert not list(labelled_turns(USERS, tmp_path))
    assert quality([]) == (None, None)


def test_two_readers() -> None:
    pairs = both_readers()
    objects = [[bool(one["objects"] or one["asks_again"]) for one in pair] for pair in pairs]
    assert len(pairs) == 50
    # both yes 24, both no 25, one differs: 0.98 agreed; by chance 25/50 * 24/50 + 25/50 * 26/50 = 0.5
    assert kappa([a for a, _ in objects], [b for _, b in objects]) == pytest.approx(0.96)


def test_labels_hold_no_texts() -> None:
    for path in (USERS, AGENTS):
        for line in path.read_text().splitlines():
            assert not {"text", "reply", "history"} & set(json.loads(line))
