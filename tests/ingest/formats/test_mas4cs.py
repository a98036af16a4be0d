"""The turns of a run of mas4cs: a log by itself, predictions where the dialogues are given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope import score
from convoscope.conversation import ComponentMetric
from convoscope.errors import NothingReadable
from support.logs import EXAMPLES, measured, places, read, talk, write, write_json

DIALOGUES = (EXAMPLES / "multiwoz" / "dialogues-2.1.json").read_text()
"""One dialogue, BAY0001.json, with user's turns 0, 2, 4 and 6."""


def turn(id: int, user: str, answer: str, **more: Any) -> dict[str, Any]:
    predicted = {"domain": "hotel", "predicted_intent": "find_hotel", "predicted_slots": {"hotel": {"area": "harbour"}}}
    said = {"user_message": user, "system_response": answer}
    return {"dialogue_id": "BAY0001.json", "turn_id": id, **said, **predicted, **more}


def run(*turns: dict[str, Any]) -> dict[str, Any]:
    return {"experiment": "bay", "model_name": "small-1", "models": {"triage": "small-1"}, "turns": list(turns)}


TURNS = run(
    turn(0, "A room at the harbour.", "The Pilot House.", ground_truth_intent="find_hotel", jga=1.0, cost=0.5),
    turn(2, "Book it.", "For how many nights?", ground_truth_intent="book_hotel", policy_compliant=True),
    turn(4, "Thanks.", "Goodbye.", ground_truth_intent="NONE"),
)


def test_what_was_said_predicted_and_scored(tmp_path: Path) -> None:
    only = read(write_json(tmp_path / "run_turns.json", TURNS)).only
    assert talk(only)[:3] == ["user: A room at the harbour.", "assistant: The Pilot House.", "user: Book it."]
    assert (only.id, only.dimensions["model"], only.dimensions["experiment"]) == ("BAY0001.json", "small-1", "bay")
    assert [(one.subject, one.name, one.value) for one in only.labels] == [
        ("1", "jga", 1),
        ("2", "policy_compliant", True),
    ]
    assert {(one.rater, one.rater_kind, one.subject_kind) for one in only.labels} == {("mas4cs", "external", "turn")}
    assert measured(only) == [{"cost": 0.5}]
    assert all(one.component == "llm" for one in only.timeline if isinstance(one, ComponentMetric))


def test_truth_of_intents_alone(tmp_path: Path) -> None:
    """Of three turns the first intent is right, the second is wrong, and the third has none."""
    write_json(tmp_path / "log" / "run_turns.json", TURNS)
    metrics = "dialogue.intent_accuracy,dialogue.domain_accuracy,dialogue.jga,dialogue.action_type_accuracy"
    run = score(tmp_path / "log", metrics=metrics, out=tmp_path / "run")
    figures = {one.key: one for one in run.summary.metrics if not one.reduction}
    assert figures["dialogue.intent_accuracy"].value == 0.5
    assert figures["dialogue.domain_accuracy"].value == 1.0
    reasons = {name: one.reason for one in run.summary.not_measured for name in one.metrics}
    assert reasons == {"dialogue.jga": "no_true_state", "dialogue.action_type_accuracy": "no_true_acts"}


def test_with_its_dialogues_it_is_a_file_of_predictions(tmp_path: Path) -> None:
    write(tmp_path / "dialogues.json", DIALOGUES)
    write_json(tmp_path / "run_turns.json", TURNS)
    outcome = read(tmp_path)
    # States of four turns of the user, and four answers: those of the last turn are empty.
    assert outcome.only.source.format == "multiwoz"
    assert {frame.seq for frame in outcome.only.frames if frame.origin == "predicted"} == set(range(8))
    assert list(places(outcome.report.set_aside)) == ["prediction_missing"]  # of turn 6


@pytest.mark.parametrize("figures", [{"dialogues": [{"dialogue_id": "BAY0001.json"}]}, {"num_dialogues": 1}])
def test_figures_without_texts_are_refused(figures: dict[str, Any], tmp_path: Path) -> None:
    log = {"experiment": "bay", "evaluation_level": "dialogue", **figures}
    with pytest.raises(NothingReadable, match="figures of dialogues, and not what was said"):
        read(write_json(tmp_path / "run_dialogues.json", log))


def test_predictions_without_texts_are_no_log(tmp_path: Path) -> None:
    record = {"dialogue_id": "BAY0001.json", "turn_id": 0, "predicted_intent": "find_hotel"}
    with pytest.raises(NothingReadable, match="the logs that it belongs to are missing"):
        read(write_json(tmp_path / "predictions.json", [record]))
