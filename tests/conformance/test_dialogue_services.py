"""Schema-guided dialogues: names of services such as `Restaurants_2` are those of domains (dialogue, 1.1)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import Conversation
from convoscope.metrics.registry import installed
from support.logs import write_json, write_lines
from support.shared_data import values_of


def scores_of(key: str, conversation: Conversation) -> list[float | None]:
    return [one.value for one in installed().declared[f"dialogue.{key}"](conversation)]


def test_real_schema_guided_dialogues_against_themselves(
    shared: Callable[[str], Path], tmp_path: Path, ran: Callable[[str, int], None]
) -> None:
    """Gold as the prediction, and a value that nobody gave in every state."""
    values = [one for path in sorted(shared("data/formats/sgd").glob("*.json")) for one in values_of(path)]
    dialogues = [one for one in values if isinstance(one, dict) and "dialogue_id" in one]
    if not dialogues:
        pytest.skip("no conformance data: there are no schema-guided dialogues")
    write_json(tmp_path / "dialogues.json", dialogues)
    records = []
    with_domains = set()
    for one in dialogues:
        for place, turn in enumerate(one["turns"]):
            if turn["speaker"] == "USER":
                states = {frame["service"]: frame["state"] for frame in turn["frames"] if "state" in frame}
                active = {name: state for name, state in states.items() if state["active_intent"] != "NONE"}
                if active:
                    with_domains.add(one["dialogue_id"])
                slots = {name: {**state["slot_values"], "moons": "two"} for name, state in states.items()}
                records.append(
                    {
                        "dialogue_id": one["dialogue_id"],
                        "turn_id": place,
                        "predicted_domains": list(active),
                        "predicted_slots": slots,
                    }
                )
    write_lines(tmp_path / "predictions.jsonl", *records)
    for talk in convoscope.read(tmp_path):
        assert set(scores_of("domain_accuracy", talk)) <= {1.0, None}
        assert talk.id not in with_domains or 1.0 in scores_of("domain_accuracy", talk)
        assert all(value is None or value > 0 for value in scores_of("slot_hallucination", talk))
    ran("schema-guided dialogues, gold with an invented value", len(dialogues))
