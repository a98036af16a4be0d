"""Real dialogues, gold against itself, and with faults put in: the table of the guide holds."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import convoscope
from convoscope.conversation import Conversation
from convoscope.metrics.dialogue.evaluators import LevelFigure, evaluate_dialogues
from convoscope.metrics.dialogue.frames import dialogue_turns
from convoscope.metrics.dialogue.venues import VenueDatabase
from support.amounts import amount
from support.dialogue_corruptions import FAULTS, Scored, corrupted, fault_places, scored
from support.shared_data import multiwoz_files

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "dialogue.md"
HEADING = "## Which fault moves which metric\n"
SEEDS = range(amount(2, 5))
EXACT = {"domain_accuracy": 1.0, "intent_accuracy": 1.0, "action_type_accuracy": 1.0, "slot_accuracy": 1.0, "jga": 1.0}


def against_itself(conversation: Conversation) -> Conversation:
    """The dialogue with its truth as the prediction, and the agent's words as the predicted response."""
    texts = {one.seq: conversation.text(one) for one in conversation.utterances}
    roles = {one.seq: conversation.roles[one.speaker] for one in conversation.utterances}
    predicted = [msgspec.structs.replace(frame, origin="predicted") for frame in conversation.frames]
    predicted = [
        msgspec.structs.replace(frame, response=texts[frame.seq]) if roles[frame.seq] == "assistant" else frame
        for frame in predicted
    ]
    return msgspec.structs.replace(conversation, frames=(*conversation.frames, *predicted))


@pytest.fixture(scope="module")
def venues(shared: Callable[[str], Path]) -> VenueDatabase:
    files = shared("data/multiwoz21/db").glob("*_db.json")
    return VenueDatabase({path.name.removesuffix("_db.json"): json.loads(path.read_text()) for path in files})


@pytest.fixture(scope="module")
def dialogues(shared: Callable[[str], Path], venues: VenueDatabase) -> list[Scored]:
    files = multiwoz_files(shared("data/multiwoz21"))
    conversations = [against_itself(one) for file in files for one in convoscope.read(file)]
    if not conversations:
        pytest.skip("no conformance data: there are no dialogues of MultiWOZ 2.1")
    return scored([list(dialogue_turns(one)) for one in conversations], venues)


@pytest.fixture(scope="module")
def baseline(dialogues: list[Scored], venues: VenueDatabase) -> dict[str, LevelFigure]:
    return evaluate_dialogues([row.turns for row in dialogues], venues)


def expected_moves() -> dict[str, dict[str, str]]:
    """By fault and metric, the direction that the guide's table gives."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in GUIDE.read_text().partition(HEADING)[2].partition("\n## ")[0].splitlines()
        if re.match(r"\| (metric \||`\w+)", line)
    ]
    faults = rows[0][1:]
    return {fault: {row[0].strip("`"): row[1 + place] for row in rows[1:]} for place, fault in enumerate(faults)}


def test_gold_against_itself_is_perfect(
    dialogues: list[Scored], baseline: dict[str, LevelFigure], ran: Callable[[str, int], None]
) -> None:
    for name, value in EXACT.items():
        if name not in baseline:
            continue  # no dialogue is annotated so
        assert baseline[name].macro == baseline[name].micro == value, name
    for name in ("slot_hallucination", "slot_hallucination@all_domains"):
        assert name not in baseline or baseline[name].value == 0.0
    ran("dialogues, gold against itself", len(dialogues))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_moves_what_it_should_and_nothing_else(
    fault: str, dialogues: list[Scored], baseline: dict[str, LevelFigure], venues: VenueDatabase
) -> None:
    if not fault_places(fault, dialogues):
        pytest.skip(f"no turn of these {len(dialogues)} dialogues has a place for the fault: {fault}")
    for seed in SEEDS:
        figures = evaluate_dialogues(corrupted(fault, dialogues, seed), venues)
        # In few dialogues a metric may have nothing to measure before the fault is put in.
        expected = {name: move for name, move in expected_moves()[fault].items() if name in baseline}
        moves = {name: _move(baseline[name].value, figures[name].value) for name in expected}
        assert moves == expected, f"{fault}, seed {seed}"


def _move(before: float | None, after: float | None) -> str:
    assert before is not None
    assert after is not None
    return "up" if after > before else "down" if after < before else ""
