"""τ-bench trajectories: the chat, its task and trial, its reward as a label, and what is withheld."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Label, to_json
from convoscope.ingest.formats.tau_voice import READER as TAU_VOICE
from convoscope.ingest.reader import Sample
from support.logs import ASK, EXAMPLES, REPLY, counts, read, story, write_json

INFO = {"task": {"actions": [{"name": "secret_action"}]}, "reward_info": {"reward": 0.25}}


def run(**fields: Any) -> dict[str, Any]:
    return {"task_id": 7, "reward": 1.0, "info": INFO, "traj": [ASK, REPLY], "trial": 2} | fields


class TestARun:
    def test_its_messages_are_a_chat(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "runs.json", [run()]))
        assert story(outcome.only) == ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]
        assert outcome.only.source.format == "tau-bench"
        assert outcome.report.unknown == {}

    def test_task_and_trial_are_dimensions(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "runs.json", [run(task_id=0, trial=0)]))
        assert outcome.only.dimensions == {"scenario_id": "0", "trial": "0"}

    def test_the_reward_is_a_label_of_somebody_else(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "runs.json", [run(reward=0.0)]))
        assert outcome.only.labels == (Label(name="reward", value=0.0, rater="tau-bench", rater_kind="external"),)

    def test_without_a_reward_there_is_no_label(self, tmp_path: Path) -> None:
        assert read(write_json(tmp_path / "runs.json", [run(reward=None)])).only.labels == ()

    def test_info_is_withheld_and_counted(self, tmp_path: Path) -> None:
        """Nothing of it is in the conversation, in whatever field."""
        outcome = read(write_json(tmp_path / "runs.json", [run(trial=0), run(trial=1)]))
        written = b"".join(map(to_json, outcome.conversations))
        assert b"secret_action" not in written
        assert b"0.25" not in written
        assert outcome.report.ignored == {"info_withheld": 2}

    def test_a_run_that_broke_off_is_a_failure_and_not_missing(self, tmp_path: Path) -> None:
        broken = run(traj=[], reward=0.0, info={"error": "RateLimitError"})
        outcome = read(write_json(tmp_path / "runs.json", [run(), broken]))
        last = outcome.conversations[1]
        assert last.timeline == ()
        assert last.outcome.error == "the run wrote no messages"
        assert last.labels[0].value == 0.0
        assert counts(outcome.report.inferred) == {"run_without_messages": 1}

    @pytest.mark.parametrize("traj", [None, "text", {"role": "user"}])
    def test_no_trajectory_is_a_problem(self, traj: Any, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "runs.json", [run(), run(traj=traj)]))
        assert len(outcome.conversations) == 1
        problem = outcome.problem
        assert (problem.line, problem.field, problem.message) == (2, "traj", "has no trajectory")


def test_tau_voice_does_not_claim_it() -> None:
    assert TAU_VOICE.detect(Sample(Path("runs.json"), "array", [run(), run(traj=[])])) is None


def test_the_example() -> None:
    """Four runs of two tasks: 1.0, 0.0, 0.0, and one that broke off."""
    outcome = read(EXAMPLES / "tau-bench")
    assert [one.labels[0].value for one in outcome.conversations] == [1.0, 0.0, 0.0, 0.0]
    assert [one.dimensions["scenario_id"] for one in outcome.conversations] == ["0", "1", "0", "1"]
    assert [len(one.tool_calls) for one in outcome.conversations] == [2, 1, 1, 0]
