"""Real dialogues of MultiWOZ 2.1: what is counted in the file is what reading gives."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import convoscope
from support.shared_data import acts_of, multiwoz_files

Shared = Callable[[str], Path]
Ran = Callable[[str, int], None]

UNSET = ("", "not mentioned")


def pairs(metadata: dict[str, Any]) -> int:
    """Slots with a value in the state of an answer."""
    semi = [value for domain in metadata.values() for value in domain["semi"].values()]
    book = [value for domain in metadata.values() for name, value in domain["book"].items() if name != "booked"]
    return sum(value not in UNSET for value in (*semi, *book))


def test_multiwoz_21(shared: Shared, ran: Ran) -> None:
    count = 0
    for file, dialogues in multiwoz_files(shared("data/multiwoz21")).items():
        stream = convoscope.read(file)
        read = {one.id: one for one in stream}
        assert stream.report.problem_count == 0
        assert stream.report.set_aside == {}
        assert stream.report.unknown == {}
        assert list(read) == list(dialogues)
        for id, dialogue in dialogues.items():
            log, frames = dialogue["log"], read[id].frames
            assert [one.meant() for one in read[id].utterances] == [entry["text"] for entry in log]
            for seq, entry in enumerate(log):
                here = [one for one in frames if one.seq == seq]
                acts = [act for one in here for act in one.acts or ()]
                assert [act.type for act in acts] == list(acts_of(entry))
                slots = [slot for listed in acts_of(entry).values() for slot, _ in listed if slot != "none"]
                assert sum(len(act.slots) for act in acts) == len(slots)
                assert sum(len(one.spans) for one in here) == len(entry.get("span_info") or ())
                if seq % 2 == 0:
                    if seq + 1 < len(log):
                        assert sum(len(one.slots or ()) for one in here) == pairs(log[seq + 1]["metadata"])
                    requests = {act: listed for act, listed in acts_of(entry).items() if act.endswith("-Request")}
                    asked = {(act, slot) for act, listed in requests.items() for slot, _ in listed if slot != "none"}
                    assert sum(len(one.requested or ()) for one in here) == len(asked)
                else:
                    booked = [one for domain in entry["metadata"].values() for one in domain["book"].get("booked", ())]
                    assert sum(len(one.booked or ()) for one in here) == len(booked)
        count += len(dialogues)
    ran("dialogues of MultiWOZ 2.1", count)


def test_predictions_of_the_truth_are_the_truth(shared: Shared, ran: Ran, tmp_path: Path) -> None:
    """The gold states, written as the standard evaluator's file: at each turn the prediction is what is right."""
    turns = 0
    for file in multiwoz_files(shared("data/multiwoz21")):
        answers: dict[str, list[dict[str, Any]]] = {}
        for dialogue in convoscope.read(file):
            gold = [one for one in dialogue.frames if one.slots is not None]
            for user in dialogue.utterances[::2]:
                state = {one.service: {k: v[0] for k, v in one.slots.items()} for one in gold if one.seq == user.seq}
                answers.setdefault(dialogue.id.lower(), []).append({"response": "", "state": state})
        beside = tmp_path / file.name
        beside.write_text(json.dumps(answers))
        stream = convoscope.read([file, beside])
        for dialogue in stream:
            states: dict[str, dict[Any, Any]] = {"gold": {}, "predicted": {}}
            for frame in dialogue.frames:
                if frame.slots:
                    states[frame.origin][frame.seq, frame.service] = frame.slots
            assert states["gold"] == states["predicted"]
            predicted = [frame for frame in dialogue.frames if frame.origin == "predicted"]
            turns += len({frame.seq for frame in predicted if frame.slots is not None})
        assert stream.report.set_aside == {}
    ran("turns predicted as they are", turns)
