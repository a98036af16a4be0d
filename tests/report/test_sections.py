"""Figures under headings: by family, and by the component of the system that they test."""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.metrics.declaration import COMPONENTS
from convoscope.metrics.registry import installed
from convoscope.report.run_markdown import markdown
from convoscope.report.run_tables import component_rank, main_component, sections
from convoscope.runs.run import Run
from support.command_line import convoscope as command
from support.logs import EXAMPLES, write_lines

METRICS = ["dialogue.jga", "dialogue.domain_accuracy", "dialogue.policy_violations", "conversation.turns"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("sections")
    record = {"dialogue_id": "BAY0001", "turn_id": 0, "predicted_domain": "hotel", "predicted_slots": {}}
    record["predicted_act_type"] = ["Hotel-Inform"]
    inputs = [EXAMPLES / "multiwoz" / "dialogues-2.1.json", write_lines(folder / "predictions.jsonl", record)]
    return convoscope.score(inputs, metrics=METRICS, out=folder / "run", workers=1)


def headings(lines: list[str]) -> list[str]:
    return [
        line.strip() for line in lines if line.strip() in ("conversation", *(f"dialogue: {one}" for one in COMPONENTS))
    ]


def test_they_go_from_triage_to_end_to_end(run: Run) -> None:
    made = sections(run.summary, run.summary.figures)
    assert [(one.title, {figure.metric for figure in one.figures}) for one in made] == [
        ("conversation", {"conversation.turns"}),
        ("dialogue: triage", {"dialogue.domain_accuracy"}),
        ("dialogue: memory", {"dialogue.jga"}),
        ("dialogue: policy", {"dialogue.policy_violations"}),
    ]


def test_the_first_of_several_counts() -> None:
    assert main_component("memory, triage") == "memory"
    assert component_rank("memory, triage") < component_rank("policy") < component_rank("")


def test_every_dialogue_metric_names_known_components() -> None:
    declared = [one for one in installed().declared.values() if one.family == "dialogue"]
    assert declared
    for one in declared:
        assert set(one.component.split(", ")) <= set(COMPONENTS), one.key


def test_on_the_terminal(run: Run) -> None:
    shown = command(
        "score", *map(str, _inputs(run)), "--metrics", ",".join(METRICS), "--full", "--out", str(run.folder)
    )
    assert headings(shown.out.splitlines()) == [
        "conversation",
        "dialogue: triage",
        "dialogue: memory",
        "dialogue: policy",
    ]


def test_in_markdown(run: Run) -> None:
    text = markdown(run)
    places = [text.index(f"**dialogue: {one}**") for one in ("triage", "memory", "policy")]
    assert places == sorted(places)


def test_in_the_list_of_metrics() -> None:
    lines = command("metrics", "dialogue").out.splitlines()
    assert lines[0].split()[:2] == ["metric", "component"]
    components = [
        main_component(line.split("  ", 1)[1].strip()).split("  ")[0]
        for line in lines[1:]
        if line.startswith("dialogue.")
    ]
    assert components == sorted(components, key=COMPONENTS.index)


def _inputs(run: Run) -> list[Path]:
    return [EXAMPLES / "multiwoz" / "dialogues-2.1.json", run.folder.parent / "predictions.jsonl"]
