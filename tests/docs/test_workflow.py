"""The workflow of the guide on CI: it is YAML, and its commands do what it says."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.command_line import convoscope_here
from support.compared_logs import write
from support.ended_chats import ended

WORKFLOW = Path(__file__).parents[2] / "docs" / "guides" / "github-actions.yml"
SETTINGS = 'baseline = "baseline"\n[score]\nlogs = "logs"\nlabel = "resolved"\nmetrics = "outcome.success"\n'
POLICY = '[policy]\ntarget = ["outcome.success >= 10%", "outcome.success change >= -10pp"]\n'


def steps() -> list[dict[str, Any]]:
    workflow = yaml.safe_load(WORKFLOW.read_text())
    assert set(workflow["jobs"]) == {"gate"}
    return list(workflow["jobs"]["gate"]["steps"])


def commands(event: str) -> list[int]:
    """The exit codes of our commands for an event, in the working folder; folders are copied as a step says."""
    codes = []
    for step in steps():
        if event not in step.get("if", event):
            continue
        match shlex.split(step.get("run", "")):
            case ["convoscope", *arguments]:
                done = convoscope_here(*arguments)
                assert done.code != 2, done.err
                codes.append(done.code)
            case ["cp", "-r", source, target]:
                shutil.copytree(source, target)
    return codes


def test_every_step_does_one_thing() -> None:
    for step in steps():
        assert ("run" in step) != ("uses" in step), step
        assert all("@" in step["uses"] for _ in step if "uses" in step)


def test_a_release_is_the_baseline_and_a_worse_pull_request_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convoscope.toml").write_text(SETTINGS)
    (tmp_path / "policy.toml").write_text(POLICY)
    for folder, good, event, codes in (
        ("logs", 120, "pull_request", [0, 3]),  # no baseline yet
        ("logs", 120, "workflow_dispatch", [0]),
        ("logs", 60, "pull_request", [0, 1]),  # 60 % became 30 %
        ("logs", 121, "pull_request", [0, 0]),
    ):
        shutil.rmtree(tmp_path / folder, ignore_errors=True)
        shutil.rmtree(tmp_path / "runs", ignore_errors=True)
        write(tmp_path / folder, [ended(f"c{good}-{number}", number < good) for number in range(200)])
        assert commands(event) == codes
        if event == "pull_request":
            assert (tmp_path / "report.md").read_text().startswith("## Convoscope: `ci`\n\n**gate ")
            assert (tmp_path / "runs/ci/report.html").is_file()
            assert "<testsuites" in (tmp_path / "junit.xml").read_text()
