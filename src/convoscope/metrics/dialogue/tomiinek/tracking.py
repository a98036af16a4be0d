"""Joint accuracy and slot F1 of dialogue states, with fuzzy values (dialogue, 4)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from convoscope.metrics.dialogue.tomiinek.fuzzy import is_like

_THRESHOLD = 95
_EPSILON = 1e-10

State = Mapping[str, Mapping[str, str]]


class TurnTracking(NamedTuple):
    """The slots of a turn: matched, predicted, true; and whether all match."""

    is_joint: bool
    matched: int
    predicted: int
    true: int


class Tracking(NamedTuple):
    """State tracking over many turns: joint accuracy and F1 in percent, precision and recall as shares."""

    joint_accuracy: float
    slot_f1: float
    slot_precision: float
    slot_recall: float


def track_turn(predicted: State, true: State) -> TurnTracking:
    """Slots of one turn. Values match where one is nearly a part of the other: "1" and "10" do."""
    ours, gold = _flat(predicted), _flat(true)
    matched = sum([slot in ours and is_match(ours[slot], value) for slot, value in gold.items()])
    return TurnTracking(ours.keys() == gold.keys() and matched == len(gold), matched, len(ours), len(gold))


def is_match(predicted: str, true: str) -> bool:
    """Whether two values count as the same."""
    return predicted == true or is_like(predicted, true, _THRESHOLD)


def tracking(turns: Iterable[TurnTracking]) -> Tracking:
    """Over all turns, with the small number in every divisor that the standard evaluator adds."""
    rows = list(turns)
    joint = sum(row.is_joint for row in rows) / (len(rows) + _EPSILON)
    matched = sum(row.matched for row in rows)
    precision = matched / (sum(row.predicted for row in rows) + _EPSILON)
    recall = matched / (sum(row.true for row in rows) + _EPSILON)
    f1 = 2 * precision * recall / (precision + recall + _EPSILON)
    return Tracking(100 * joint, 100 * f1, precision, recall)


def _flat(state: State) -> dict[tuple[str, str], str]:
    return {(domain, slot): value for domain, slots in state.items() for slot, value in slots.items()}
