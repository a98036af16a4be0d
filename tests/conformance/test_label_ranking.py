"""Real τ-bench trajectories: with their reward as the label, failures come first; without it, it is not shown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmarks.ranking import SHOWN, auc

from convoscope.runs.make import make_run
from convoscope.runs.ranking import rank, worst
from convoscope.runs.sql import query
from support.shared_data import values_of

FOLDER = "data/formats/tau-bench"


def is_trajectory(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("reward"), int | float) and "traj" in value


@pytest.fixture
def trajectories(shared: Callable[[str], Path]) -> Path:
    """The file with most trajectories that were not all lost, nor all won."""
    files = {path: values_of(path) for path in sorted(shared(FOLDER).glob("*.json"))}
    mixed = {
        path: len(values)
        for path, values in files.items()
        if all(map(is_trajectory, values)) and len({one["reward"] < 1 for one in values}) == 2
    }
    if not mixed:
        pytest.skip(f"no conformance data: {FOLDER} has no file of trajectories with both outcomes")
    return max(mixed, key=mixed.__getitem__)


def test_with_the_reward_as_the_label_failures_come_first(trajectories: Path, tmp_path: Path) -> None:
    run = make_run(trajectories, label="reward", metrics=["outcome.success", "tools"], out=tmp_path / "run", workers=1)
    rewards = [one["reward"] for one in values_of(trajectories)]
    failed = sum(reward < 1 for reward in rewards)
    outcomes = [one.outcome for one in worst(run, len(rewards))]
    assert outcomes == ["lost"] * failed + ["done"] * (len(rewards) - failed)
    assert (run.summary.outcomes.lost, run.summary.outcomes.done) == (failed, len(rewards) - failed)
    order = rank(run).order
    assert [rewards[number] < 1 for number in order[:failed]] == [True] * failed


def test_without_a_label_no_outcome_is_known(trajectories: Path, tmp_path: Path) -> None:
    run = make_run(trajectories, metrics=["tools"], out=tmp_path / "run", workers=1)
    rows = query([run], "SELECT DISTINCT label, outcome FROM conversations").rows
    # A hand-over by a tool is neither done nor lost.
    assert {label for label, _ in rows} == {None}
    assert {outcome for _, outcome in rows} <= {"unknown", "handed_over"}
    assert not {"reward", "info"} & {name for names in SHOWN.values() for name in names}


def test_the_area_is_the_share_of_pairs_in_the_right_order() -> None:
    # failures at places 0 and 2, successes at 1 and 3: 0<1, 0<3, 2<3 of four pairs
    assert auc(np.array([0.0, 1.0, 2.0, 3.0]), np.array([True, False, True, False])) == 0.75
