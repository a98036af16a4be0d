"""Rules of booking that lie beside dialogues."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from convoscope import score
from convoscope.cli.main import app
from convoscope.errors import InputError
from support.logs import EXAMPLES, read, write, write_json, write_lines

DIALOGUES = (EXAMPLES / "multiwoz" / "dialogues-2.1.json").read_text()
"""The agent books a hotel in turn 4."""
RULES = {"booking_rules": {"Hotel": ["Moons"]}, "transferable_slots": ["Stars"]}
TOML = 'transferable_slots = ["Stars"]\n[booking_rules]\nHotel = ["Moons"]\n'
PREDICTION = {
    "dialogue_id": "BAY0001.json",
    "turn_id": 4,
    "predicted_slots": {"hotel": {"name": "gull house", "bookday": "friday", "bookpeople": "2", "bookstay": "2"}},
    "predicted_act_type": ["Booking-Book"],
}


def folder(tmp_path: Path) -> Path:
    write(tmp_path / "dialogues.json", DIALOGUES)
    write_lines(tmp_path / "predictions.jsonl", PREDICTION)
    return tmp_path


@pytest.mark.parametrize("name", ["policy.toml", "policy.json"])
def test_they_are_in_small_letters_with_every_dialogue(name: str, tmp_path: Path) -> None:
    logs = folder(tmp_path / "logs")
    if name.endswith(".toml"):
        write(logs / name, TOML)
    else:
        write_json(logs / name, RULES)
    outcome = read(logs)
    assert outcome.only.extras["booking_rules"] == {"hotel": ["moons"]}
    assert outcome.only.extras["transferable_slots"] == ["stars"]
    assert outcome.report.files[name].format == "booking-rules"
    # The state has all that the usual rule wants, and no moons: one violation in the one booking.
    run = score(logs, metrics="dialogue.policy_violations@attempts", out=tmp_path / "run")
    values = {(one.key, one.reduction): one.value for one in run.summary.metrics}
    assert values["dialogue.policy_violations@attempts", ""] == 1.0


def test_without_them_the_usual_rules_hold(tmp_path: Path) -> None:
    run = score(folder(tmp_path / "logs"), metrics="dialogue.policy_violations@attempts", out=tmp_path / "run")
    values = {(one.key, one.reduction): one.value for one in run.summary.metrics}
    assert values["dialogue.policy_violations@attempts", ""] == 0.0


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ('booking_rules = { hotel = "name" }', "booking_rules[...]"),
        ('transferable_slots = "area"', "transferable_slots"),
        ("booking_rules = { hotel = [1] }", "booking_rules[...][0]"),
        ("booking_rules = {}\nrules = 1", ""),
    ],
)
def test_a_wrong_type_is_an_error_with_file_and_field(content: str, field: str, tmp_path: Path) -> None:
    logs = folder(tmp_path)
    write(logs / "policy.toml", content)
    with pytest.raises(InputError) as error:
        read(logs)
    assert error.value.file == "policy.toml"
    assert (error.value.field or "") == field
    assert error.value.hint


def test_inspect_knows_them(tmp_path: Path) -> None:
    logs = folder(tmp_path)
    write(logs / "policy.toml", TOML)
    shown = CliRunner().invoke(app, ["inspect", str(logs), "--metrics", "conversation.turns"]).stdout
    assert "booking-rules" in shown


def test_a_mapping_is_no_file_of_rules(tmp_path: Path) -> None:
    logs = folder(tmp_path)
    write(logs / "map.toml", '[message]\nrole = "who"\ntext = "what"\n')
    assert "booking_rules" not in read(logs).only.extras
