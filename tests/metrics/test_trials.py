"""pass@k and pass^k for another k than the usual one."""

from __future__ import annotations

from pathlib import Path

import pytest

from convoscope.metrics.composites import with_trials
from convoscope.metrics.registry import installed
from convoscope.runs.make import make_run as score
from support.command_line import convoscope as command
from support.logs import EXAMPLES

RUN = EXAMPLES / "voice-logs"
TRIALS = (RUN / "records" / "move-appointment", RUN / "dataset.jsonl")
"""Three trials of one scenario, of which two do the task."""


def keys(*names: str, k: int) -> list[str]:
    return [one.key for one in with_trials(installed().resolve(list(names)), k)]


class TestWithTrials:
    def test_the_figures_over_trials_are_those_of_k(self) -> None:
        found = keys("outcome", k=5)
        assert [key for key in found if "pass_" in key] == [
            "outcome.success.pass_at@k5",
            "outcome.success.pass_hat@k5",
            "outcome.success.pass_hat_theoretical@k5",
            "outcome.task_completion.pass_at@k5",
            "outcome.task_completion.pass_hat@k5",
            "outcome.task_completion.pass_hat_theoretical@k5",
        ]

    def test_all_others_stay_and_none_is_lost(self) -> None:
        usual, other = installed().resolve(), with_trials(installed().resolve(), 2)
        assert [one.name for one in other] == [one.name for one in usual]
        assert {one.key for one in other} - {one.key for one in usual} == {
            one.key.replace("@k3", "@k2") for one in usual if ".pass_" in one.name
        }

    def test_the_usual_k_changes_nothing(self) -> None:
        assert keys("outcome", "eva", "voice", k=3) == [
            one.key for one in installed().resolve(["outcome", "eva", "voice"])
        ]

    def test_a_trial_passes_at_the_same_mark(self) -> None:
        for one in with_trials(installed().resolve(), 2):
            if one.name.startswith("voice.turn_taking.pass_"):
                assert "voice.turn_taking is at least 0.8" in one.description


@pytest.mark.parametrize(
    ("k", "at", "hat", "theoretical"),
    [
        (1, 2 / 3, 2 / 3, 2 / 3),
        (2, 1.0, 1 / 3, 4 / 9),  # two failures of one: none; pairs that pass: 1 of 3; (2/3)²
        (3, 1.0, 0.0, 8 / 27),
        (4, None, None, None),  # there are only three
    ],
)
def test_two_of_three_trials_pass(
    tmp_path: Path, k: int, at: float | None, hat: float | None, theoretical: float | None
) -> None:
    metrics = with_trials(installed().resolve(["outcome.task_completion", "outcome"]), k)
    chosen = [one for one in metrics if one.name.startswith("outcome.task_completion")]
    run = score(TRIALS, metrics=chosen, out=tmp_path / "run", workers=1)
    found = {one.metric: one for one in run.summary.figures if one.variant == f"k{k}"}
    names = [f"outcome.task_completion.{name}" for name in ("pass_at", "pass_hat", "pass_hat_theoretical")]
    assert list(found) == names
    assert [found[name].value for name in names] == [
        None if one is None else pytest.approx(one) for one in (at, hat, theoretical)
    ]
    if at is None:
        assert {found[name].reason for name in names} == {"fewer_trials_than_k"}


class TestTheCommand:
    def test_draws_as_many_as_k_says(self, tmp_path: Path) -> None:
        ended = command(
            "score", *TRIALS, "-m", "outcome", "--k", 2, "-o", "run", "--workers", 1, "--full", cwd=tmp_path
        )
        assert ended.code == 0, ended.err
        rows = {line.split()[0]: line.split()[1] for line in ended.out.splitlines() if line.startswith("outcome.")}
        assert rows["outcome.task_completion.pass_hat@k2"] == "0.333"
        assert not any("@k3" in name for name in rows)

    def test_no_trial_at_all_is_bad_usage(self, tmp_path: Path) -> None:
        assert command("score", *TRIALS, "--k", 0, cwd=tmp_path).code == 2
