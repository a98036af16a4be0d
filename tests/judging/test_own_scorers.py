"""Scorers of the user's own can be labelled and calibrated, so that a target on them can be decided."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.metrics.judged import template_scorer
from convoscope.metrics.judged_items import g_eval_scorer
from convoscope.runs.run import Run
from convoscope.runs.summary import describe
from support.command_line import convoscope_here as command
from support.judge_server import JudgeServer, judge_server
from support.judged_items import FULL, item

COUNT = 60
SCORERS = """
[[scorer]]
name = "polite"
template = "How polite is {agent_response}?"
scale = [1, 3]

[[scorer]]
name = "rude"
template = "How rude is {agent_response}?"
scale = [1, 3]
better = "lower"

[[scorer]]
name = "steps"
criteria = "Names a next step."
scale = [1, 3]
"""


def grade(prompt: str, schema: dict[str, Any]) -> Any:
    """The grade that the answer names; of rudeness, 4 minus it."""
    number = int(re.findall(r"grade (\d)", prompt)[-1])
    score = 4 - number if "How rude" in prompt else number
    return {"reasoning": "So it is.", "quote": f"grade {number}", "score": score}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    with judge_server() as running:
        yield running


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    (tmp_path / "mine.toml").write_text(SCORERS)
    items = [
        item(f"item-{index:02}", agent_response=f"This answer is of grade {1 + index % 3}.") for index in range(COUNT)
    ]
    return convoscope.score(
        items,
        metrics="custom",
        metrics_from=[tmp_path / "mine.toml"],
        judge=grade,
        judge_cache=False,
        workers=1,
        out=tmp_path / "run",
    )


def labels(path: Path, rubric: str, ratings: list[int]) -> Path:
    rows = [{"conversation": f"item-{at:02}", "rubric": rubric, "rating": one} for at, one in enumerate(ratings)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("name", "people", "target"),
    [
        ("custom.polite", lambda grade: grade, "custom.polite >= 1.9"),
        ("polite", lambda grade: grade, "custom.polite >= 1.9"),
        ("custom.rude", lambda grade: 4 - grade, "custom.rude <= 2.1"),
        ("custom.steps", lambda grade: grade, "custom.steps >= 0.45"),
    ],
)
def test_labels_decide_whether_a_target_holds(run: Run, tmp_path: Path, name: str, people: Any, target: str) -> None:
    undetermined = command("report", run.folder, "--target", target)
    assert (undetermined.code, "not calibrated" in undetermined.out) == (3, True)
    given = labels(tmp_path / "labels.jsonl", name, [people(1 + at % 3) for at in range(COUNT)])
    calibrated = command("judge", "calibrate", run.folder, "--labels", given)
    assert calibrated.code == 0, calibrated.err
    assert "1 of 3 judged figures can be relied on." in calibrated.out
    # The mean of 1, 2, 3 is 2: of 0 to 1 it is 0.5.
    assert command("report", run.folder, "--target", target).code == 0


def test_where_lower_is_better_what_is_low_passes(run: Run, tmp_path: Path) -> None:
    """The mark of 7 points lies at 3 + 0.7 × (1 − 3) = 1.6: only 1 passes."""
    # People say 3 of all; the judge says 3, 2, 1 in turn: it passes a third of what people fail.
    given = labels(tmp_path / "labels.jsonl", "custom.rude", [3] * COUNT)
    result = json.loads(command("judge", "calibrate", run.folder, "--labels", given, "--json").out)
    (rude,) = [one for one in result["judges"] if one["metric"] == "custom.rude"]
    assert rude["passes_at"] == pytest.approx(1.6)
    shown = command("judge", "calibrate", run.folder, "--labels", given, "--full").out
    assert '"custom.rude": passes 20 of 60 that people fail, fails 0 of 0 that they pass' in shown


def test_they_are_on_the_sheet(run: Run) -> None:
    every = command("judge", "label", run.folder)
    assert every.code == 0, every.err
    rows = list(csv.DictReader((run.folder / "labels" / "labels.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["rubric"] for row in rows} == {"custom.polite", "custom.rude", "custom.steps"}
    written = command("judge", "label", run.folder, "--rubric", "custom.polite", "--count", 6)
    assert written.code == 0, written.err
    rows = list(csv.DictReader((run.folder / "labels" / "labels.csv").read_text(encoding="utf-8").splitlines()))
    assert {row["rubric"] for row in rows} == {"custom.polite"}
    assert len(rows) == 6


def test_without_a_run_they_are_not_known(server: JudgeServer, tmp_path: Path) -> None:
    given = labels(tmp_path / "labels.jsonl", "custom.polite", [1])
    for words in (["check"], ["calibrate", given]):
        said = command("judge", *words, "--judge", server.openai, "--rubric", "custom.polite")
        assert said.code == 2
        assert "unknown rubric 'custom.polite'" in said.err
        assert "convoscope judge label RUN" in said.err


def test_the_page_shows_what_they_say(run: Run) -> None:
    page = command("show", run.folder, "item-00", "--full").out
    assert "So it is." in page


@pytest.mark.parametrize(
    ("scale", "is_known"), [((1, 5), True), ((0, 100), True), ((0, 0.5), False), ((0, 1000), False)]
)
def test_a_scale_that_people_cannot_label_is_not_asked_of_them(scale: tuple[float, float], is_known: bool) -> None:
    declared = describe(template_scorer("polite", "{agent_response}", scale=scale))
    assert (declared.asks is not None) == is_known
    assert describe(template_scorer("mood", "{agent_response}", better="neither")).asks is None


def test_the_value_of_criteria_is_from_0_to_1() -> None:
    rubric = describe(g_eval_scorer("steps", criteria="Names a next step.", scale=(1, 5))).own_rubric
    assert rubric is not None
    # 4 of 1 to 5: (4 − 1) ÷ 4; the mark is 1 + 0.7 × 4.
    assert (rubric.value(4), rubric.rating(0.75), rubric.passes_at) == (0.75, 4.0, pytest.approx(3.8))
    assert FULL["agent_task"]
