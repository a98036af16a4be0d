"""MultiWOZ in the columns of data loaders, as the seed writes it."""

from __future__ import annotations

import json
from pathlib import Path

import convoscope

DIALOGUE = {
    "dialogue_id": "PMUL1.json",
    "services": ["restaurant"],
    "turns": {
        "turn_id": ["0", "1"],
        "speaker": [0, 1],
        "utterance": ["I want a cheap place in the centre.", "Which food do you like?"],
        "frames": [
            {
                "service": ["restaurant"],
                "state": [
                    {
                        "active_intent": "find_restaurant",
                        "requested_slots": [],
                        "slots_values": {
                            "slots_values_name": ["restaurant-area", "restaurant-pricerange"],
                            "slots_values_list": [["centre"], ["cheap"]],
                        },
                    }
                ],
            },
            {"service": [], "state": []},
        ],
        "dialogue_acts": [
            {
                "dialog_act": {
                    "act_type": ["Restaurant-Inform"],
                    "act_slots": [{"slot_name": ["area", "pricerange"], "slot_value": ["centre", "cheap"]}],
                }
            },
            {
                "dialog_act": {
                    "act_type": ["Restaurant-Request"],
                    "act_slots": [{"slot_name": ["food"], "slot_value": ["?"]}],
                }
            },
        ],
    },
}


def test_columns_are_read_as_turns(tmp_path: Path) -> None:
    (tmp_path / "dialogue.json").write_text(json.dumps(DIALOGUE))
    stream = convoscope.read(tmp_path / "dialogue.json")
    (conversation,) = stream
    assert stream.report.files["dialogue.json"].format == "multiwoz"
    roles = [conversation.roles[one.speaker] for one in conversation.utterances]
    assert (conversation.id, roles) == ("PMUL1.json", ["user", "assistant"])
    states = [frame.slots for frame in conversation.frames if frame.slots]
    assert states == [{"area": ("centre",), "pricerange": ("cheap",)}]
    assert [frame.intents for frame in conversation.frames if frame.intents] == [("find_restaurant",)]
    acts = [act for frame in conversation.frames for act in frame.acts or ()]
    assert [act.type for act in acts] == ["Restaurant-Inform", "Restaurant-Request"]
    assert [(slot.slot, slot.value) for slot in acts[1].slots] == [("food", None)]  # ? asks for a value
