"""One dialogue of MultiWOZ in the layouts of data loaders: each gives the same conversation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from convoscope.conversation import Act, SlotSpan, SlotValue
from support.logs import counts, read, story, write_json

SLOTS = {"slots_values_name": ["hotel-area"], "slots_values_list": [["north"]]}
STATE = {"active_intent": "find_hotel", "requested_slots": ["hotel-phone"], "slots_values": SLOTS}
COLUMNS = {"service": ["hotel"], "state": [STATE], "slots": [{"slot": [], "value": []}]}
NO_FRAMES: dict[str, list[Any]] = {"service": [], "state": [], "slots": []}
ACTS = {"act_type": ["Hotel-Inform"], "act_slots": [{"slot_name": ["area"], "slot_value": ["north"]}]}
SPANS = {
    "act_type": ["Hotel-Inform"],
    "act_slot_name": ["area"],
    "act_slot_value": ["north"],
    "span_start": [15],
    "span_end": [20],
}
MORE = {"act_type": ["general-reqmore"], "act_slots": [{"slot_name": ["none"], "slot_value": ["none"]}]}
ASK, REPLY = "A hotel in the north", "Which price?"  # "north" is at 15 to 20


def dialogue(turns: Any) -> dict[str, Any]:
    return {"dialogue_id": "BAY9.json", "services": ["hotel"], "turns": turns}


def turns(
    frames: Any, acts: dict[str, Any], more: dict[str, Any], speakers: tuple[Any, Any] = ("USER", "SYSTEM")
) -> list[Any]:
    user, system = speakers
    empty: Any = (
        {} if isinstance(frames, dict) and "service" not in frames else NO_FRAMES if isinstance(frames, dict) else []
    )
    return [
        {"turn_id": "0", "speaker": user, "utterance": ASK, "frames": frames, **acts},
        {"turn_id": "1", "speaker": system, "utterance": REPLY, "frames": empty, **more},
    ]


IN_COLUMNS = {"dialogue_acts": {"dialog_act": ACTS, "span_info": SPANS}}
MORE_IN_COLUMNS = {"dialogue_acts": {"dialog_act": MORE, "span_info": {}}}
ROWS = dialogue(turns(COLUMNS, IN_COLUMNS, MORE_IN_COLUMNS, (0, 1)))
LAYOUTS: dict[str, dict[str, Any]] = {
    "turns in columns": dialogue(
        {
            "turn_id": ["0", "1"],
            "speaker": [0, 1],
            "utterance": [ASK, REPLY],
            "frames": [COLUMNS, NO_FRAMES],
            "dialogue_acts": [IN_COLUMNS["dialogue_acts"], MORE_IN_COLUMNS["dialogue_acts"]],
        }
    ),
    "frames in columns": ROWS,
    "slots as lists": dialogue(
        turns([{"service": "hotel", "state": STATE}], {"dialog_act": ACTS}, {"dialog_act": MORE})
    ),
    "acts by type": dialogue(
        turns(
            [{"service": "hotel", "state": {**STATE, "slots_values": {"hotel-area": ["north"]}}}],
            {
                "dialog_act": {"Hotel-Inform": [["area", "north"]]},
                "span_info": [["Hotel-Inform", "area", "north", 15, 20]],
            },
            {"dialog_act": {"general-reqmore": [["none", "none"]]}},
        )
    ),
    "frames by service": dialogue(
        turns(
            {"hotel": {**STATE, "slots_values": {"hotel-area": "north"}}},
            {"dialogue_acts": ["Hotel-Inform"], "dialogue_act_slots": [{"slot": "area", "value": "north"}]},
            {"dialogue_acts": ["general-reqmore"], "dialogue_act_slots": []},
        )
    ),
}


def check(path: Path) -> None:
    outcome = read(path)
    only = outcome.only
    assert (only.id, story(only)) == ("BAY9.json", [f"user: {ASK}", f"assistant: {REPLY}"])
    (state,) = [frame for frame in only.frames if frame.service]
    assert (state.seq, state.intents, state.slots, state.requested) == (
        0,
        ("find_hotel",),
        {"area": ("north",)},
        ("phone",),
    )
    acts = {frame.seq: frame.acts for frame in only.frames if frame.acts}
    assert acts == {0: (Act("Hotel-Inform", (SlotValue("area", "north"),)),), 1: (Act("general-reqmore"),)}
    assert {frame.origin for frame in only.frames} == {"gold"}
    assert counts(outcome.report.set_aside) == {}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_gives_the_same(layout: str, tmp_path: Path) -> None:
    check(write_json(tmp_path / "d.json", [LAYOUTS[layout]]))


def test_the_answer_of_a_dataset_server(tmp_path: Path) -> None:
    check(write_json(tmp_path / "rows.json", {"rows": [{"row_idx": 0, "row": ROWS}], "num_rows_total": 1}))


def test_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_pylist([ROWS]), tmp_path / "d.parquet")
    check(tmp_path / "d.parquet")


@pytest.mark.parametrize("layout", ["turns in columns", "frames in columns", "acts by type"])
def test_spans_have_their_positions(layout: str, tmp_path: Path) -> None:
    only = read(write_json(tmp_path / "d.json", LAYOUTS[layout])).only
    spans = [span for frame in only.frames for span in frame.spans]
    assert spans == [SlotSpan(slot="area", value="north", act="Hotel-Inform", start=15, end=20)]


def test_slots_of_several_acts_are_kept_where_it_is_not_known_whose_they_are(tmp_path: Path) -> None:
    slots = [{"slot": "area", "value": "north"}]
    acts = {"dialogue_acts": ["Hotel-Inform", "Hotel-Request"], "dialogue_act_slots": slots}
    log = dialogue(turns({"hotel": {**STATE, "slots_values": {}}}, acts, {"dialogue_acts": ["general-bye"]}))
    only = read(write_json(tmp_path / "d.json", log)).only
    assert [act for frame in only.frames if frame.seq == 0 for act in frame.acts or ()] == [
        Act("Hotel-Inform"),
        Act("Hotel-Request"),
    ]
    assert only.utterances[0].extras["dialogue_act_slots"] == slots
