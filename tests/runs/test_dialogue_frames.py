"""A run keeps what is right and what was predicted, turn by turn, and why a prediction is missing."""

from __future__ import annotations

from pathlib import Path

import convoscope
from convoscope.runs.conversations import records
from convoscope.runs.make import make_run as score
from support.logs import EXAMPLES, write_lines

DIALOGUES = EXAMPLES / "multiwoz" / "dialogues-2.1.json"


def test_truth_and_prediction_are_kept(tmp_path: Path) -> None:
    turn = {"dialogue_id": "BAY0001", "turn_id": 0, "predicted_domain": "hotel", "predicted_slots": {"hotel": {}}}
    paths = [DIALOGUES, write_lines(tmp_path / "predictions.jsonl", turn)]
    run = score(paths, metrics="conversation.turns", out=tmp_path / "run")
    (kept,) = records(run, [0])
    (read,) = convoscope.read(paths)
    assert kept.conversation.frames == read.frames
    failures = {frame.seq: frame.failure for frame in kept.conversation.frames if frame.failure}
    assert failures == {2: "missing", 4: "missing", 6: "missing"}
    assert [note.code for note in kept.notes if note.kind == "set_aside"] == ["prediction_missing"] * 3


def test_other_predictions_are_another_run(tmp_path: Path) -> None:
    runs = []
    for slots in ({"area": "north"}, {"area": "south"}):
        turn = {"dialogue_id": "BAY0001", "turn_id": 0, "predicted_slots": {"hotel": slots}}
        paths = [DIALOGUES, write_lines(tmp_path / "predictions.jsonl", turn)]
        run = score(paths, metrics="conversation.turns", out=tmp_path / f"run-{slots['area']}")
        (kept,) = records(run, [0])
        runs.append([one.slots for one in kept.conversation.frames if one.origin == "predicted" and one.slots])
    assert runs == [[{"area": ("north",)}], [{"area": ("south",)}]]
