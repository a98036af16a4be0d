"""Real dialogues, predictions and databases through a whole run: its figures are those of the metric functions."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.analysis.dialogue import dialogue_errors, standard_report
from convoscope.metrics.dialogue.tomiinek.declared import gold_dialogue
from convoscope.metrics.dialogue.tomiinek.evaluate import StandardFigures, evaluate
from convoscope.metrics.dialogue.venues import VenueDatabase
from convoscope.runs.run import Run
from support.shared_data import acts_of, multiwoz_files

DIALOGUES, UNPREDICTED = 40, 3
"""At most so many are taken. Three of them have no prediction: they count, and are named."""


@pytest.fixture(scope="module")
def logs(shared: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first dialogues, with predictions made of their acts and states, in the shape of the standard evaluator."""
    folder = tmp_path_factory.mktemp("run") / "logs"
    folder.mkdir()
    files = multiwoz_files(shared("data/multiwoz21"))
    held = dict([pair for dialogues in files.values() for pair in dialogues.items()][:DIALOGUES])
    if len(held) <= UNPREDICTED:
        pytest.skip(f"no conformance data: {len(held)} dialogues of MultiWOZ 2.1 are too few")
    (folder / "dialogues.json").write_text(json.dumps(held))
    predictions = {id.lower(): _answers(dialogue) for id, dialogue in list(held.items())[:-UNPREDICTED]}
    (folder / "predictions.json").write_text(json.dumps(predictions))
    return folder


def _answers(dialogue: dict[str, Any]) -> list[dict[str, Any]]:
    """A placeholder for each slot that the agent tells, and the state of each second turn forgotten."""
    answers = []
    for place, entry in enumerate(dialogue["log"][1::2]):
        acts = acts_of(entry)
        named = [f"[{act.split('-')[0].lower()}_{slot.lower()}]" for act, pairs in acts.items() for slot, _ in pairs]
        state = {domain: _filled(held["semi"]) for domain, held in entry["metadata"].items()} if place % 2 else {}
        answers.append({"response": " ".join(named), "state": state, "active_domains": list(state)})
    return answers


def _filled(slots: dict[str, str]) -> dict[str, str]:
    names = {"arriveBy": "arrive", "leaveAt": "leave"}
    return {names.get(slot, slot.lower()): value for slot, value in slots.items() if value not in ("", "not mentioned")}


@pytest.fixture(scope="module")
def run(logs: Path, shared: Callable[[str], Path]) -> Run:
    inputs = [logs, shared("data/multiwoz21") / "db"]
    return convoscope.score(inputs, metrics="tomiinek,dialogue.jga", out=logs.parent / "run", workers=1)


@pytest.fixture(scope="module")
def expected(logs: Path, shared: Callable[[str], Path]) -> StandardFigures:
    """The same by the function, from the files."""
    tables = (shared("data/multiwoz21") / "db").glob("*_db.json")
    venues = VenueDatabase({path.name.removesuffix("_db.json"): json.loads(path.read_text()) for path in tables})
    gold = {one.id: gold_dialogue(one) for one in convoscope.read(logs / "dialogues.json")}
    predictions = json.loads((logs / "predictions.json").read_text())
    return evaluate(predictions, gold, venues.search, with_bleu=False)


def test_inform_and_success_are_those_of_the_function(run: Run, expected: StandardFigures) -> None:
    figures = {one.name: one.value for one in standard_report(run).figures}
    assert expected.inform is not None
    assert figures["inform"] == pytest.approx(expected.inform, abs=0.05)  # it has one decimal
    assert figures["success"] == pytest.approx(expected.success, abs=0.05)


def test_so_is_the_tracking_of_states(run: Run, expected: StandardFigures) -> None:
    figures = {one.name: one.value for one in standard_report(run).figures}
    assert expected.tracking is not None
    assert figures["joint goal accuracy"] == pytest.approx(expected.tracking.joint_accuracy)
    assert figures["slot F1"] == pytest.approx(expected.tracking.slot_f1)


def test_so_is_the_richness(run: Run, expected: StandardFigures) -> None:
    figures = {one.name: one.value for one in standard_report(run).figures}
    rich = expected.richness
    assert figures["entropy"] == pytest.approx(rich.entropy)
    assert figures["distinct trigrams"] == rich.distinct_trigrams


def test_a_dialogue_without_predictions_counts_and_is_named(run: Run, logs: Path, expected: StandardFigures) -> None:
    share = standard_report(run).coverage
    held = json.loads((logs / "dialogues.json").read_text())
    assert (share.dialogues, share.expected_dialogues) == (len(held) - UNPREDICTED, len(held))
    assert (share.turns, share.expected_turns) == expected.coverage[2:4]
    assert len(share.without) == UNPREDICTED


def test_errors_are_counted_in_the_turns_that_joint_goal_accuracy_counts(run: Run) -> None:
    (jga,) = [one for one in run.summary.metrics if (one.key, one.reduction) == ("dialogue.jga", "")]
    errors = dialogue_errors(run.conversations())
    assert jga.value is not None
    assert errors.turns == jga.n
    assert errors.turns - errors.wrong == round(jga.value * jga.n)
    assert sum(one.turns for one in errors.by_position.values()) == errors.turns
    kinds = sum(sum(one.kinds.values()) for one in errors.by_domain.values())
    assert kinds == sum(row.total for row in errors.slots)
