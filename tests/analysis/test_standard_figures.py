"""The figures of the standard MultiWOZ evaluator, asked of a run."""

from __future__ import annotations

import json
from pathlib import Path

import convoscope
from convoscope.analysis.dialogue import NOT_SCORED, standard_report
from convoscope.runs.run import Run
from support.command_line import convoscope as command
from support.logs import EXAMPLES, write, write_json

DIALOGUE = json.loads((EXAMPLES / "multiwoz" / "dialogues-2.1.json").read_text())["BAY0001.json"]
"""Four turns about a hotel by the harbour, which is booked."""
HOTELS = [{"name": "gull house", "area": "harbour", "parking": "yes", "phone": "555 0142", "type": "guesthouse"}]
ANSWER = {"response": "[hotel_name] is nice", "state": {"hotel": {"area": "harbour"}}, "active_domains": ["hotel"]}


def made(folder: Path, predictions: dict[str, object], metrics: str = "tomiinek") -> Run:
    """Two dialogues that are the same but for their ids."""
    dialogues = write(folder / "logs" / "dialogues.json", json.dumps({"BAY0001.json": DIALOGUE, "BAY0002": DIALOGUE}))
    table = write_json(folder / "logs" / "hotel_db.json", HOTELS)
    beside = write_json(folder / "logs" / "predictions.json", predictions)
    before = [path.read_bytes() for path in (dialogues, table, beside)]
    run = convoscope.score(folder / "logs", metrics=metrics, out=folder / "run", workers=1)
    assert [path.read_bytes() for path in (dialogues, table, beside)] == before
    return run


def test_coverage_names_the_dialogue_that_nobody_predicted(tmp_path: Path) -> None:
    share = standard_report(made(tmp_path, {"bay0001": [ANSWER, ANSWER]})).coverage
    # Two of the first dialogue's four turns, none of the second's four.
    assert share == (1, 2, 2, 8, ("BAY0002",))


def test_figures_of_the_run_in_percent(tmp_path: Path) -> None:
    run = made(tmp_path, {"bay0001": [ANSWER] * 4, "bay0002": [ANSWER] * 4})
    figures = {one.name: one.value for one in standard_report(run).figures}
    scored = {(one.metric, one.reduction): one.value for one in run.summary.metrics}
    for name, metric in (
        ("inform", "dialogue.inform"),
        ("success", "dialogue.success"),
        ("slot F1", "dialogue.slot_f1"),
    ):
        value = scored[metric, ""]
        assert value is not None
        assert figures[name] == 100 * value
    # Each response is NAME, is, nice: three tokens, three different ones; two pairs; one triple.
    assert figures["tokens in a response"] == 3
    assert [figures[f"distinct {size}grams"] for size in ("uni", "bi", "tri")] == [3, 2, 1]


def test_what_was_not_scored_says_so(tmp_path: Path) -> None:
    report = standard_report(made(tmp_path, {"bay0001": [ANSWER] * 4}, metrics="dialogue.jga"))
    inform = report.figures[0]
    assert (inform.name, inform.value, inform.reason) == ("inform", None, NOT_SCORED)


def test_the_command(tmp_path: Path) -> None:
    run = made(tmp_path, {"bay0001": [ANSWER] * 4})
    printed = command("dialogue", "standard", str(run.folder))
    assert printed.code == 0, printed.err
    assert "Predicted: 1 of 2 dialogues, 4 of 8 turns." in printed.out
    assert "Without any prediction: BAY0002." in printed.out
    answer = command("dialogue", "standard", str(run.folder), "--json").json
    assert answer["coverage"]["without"] == ["BAY0002"]
    assert set(answer["not_measured"]) == {name for name, value in answer["figures"].items() if value is None}


def test_without_responses_nothing_is_known_of_them(tmp_path: Path) -> None:
    run = made(tmp_path, {"bay0001": [{"state": ANSWER["state"]}] * 4})
    rich = {one.name: (one.value, one.reason) for one in standard_report(run).figures[8:]}
    assert rich["tokens in a response"] == (None, "no response was predicted")
    assert {value for value, _ in rich.values()} == {None}


def test_responses_without_any_placeholder_are_not_judged(tmp_path: Path) -> None:
    plain = {**ANSWER, "response": "Gull House is nice"}
    run = made(tmp_path / "plain", {"bay0001": [plain] * 4})
    inform = standard_report(run).figures[0]
    assert inform.value is None
    assert "placeholders" in inform.reason
    # One response with a placeholder is enough: the others may have nothing to tell.
    mixed = made(tmp_path / "mixed", {"bay0001": [plain] * 3 + [ANSWER]})
    assert standard_report(mixed).figures[0].value is not None
