"""pass@k and pass^k as declarations that anybody can make."""

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Expected
from convoscope.metrics import composites as trials
from convoscope.metrics import repeats
from convoscope.metrics.registry import collect
from convoscope.runs.make import make_run as score
from support.chats import agent, chat, user


def tried(scenario: str, passes: str) -> list[Conversation]:
    """One conversation per trial: 1 gives the right answer, 0 a wrong one, ? has no truth to hold it against."""
    return [
        chat(
            user("?"),
            agent("Paris" if passed == "1" else "London"),
            id=f"{scenario}-{number}",
            expected=Expected(ground_truth=None if passed == "?" else "Paris"),
            dimensions={"scenario_id": scenario},
        )
        for number, passed in enumerate(passes)
    ]


def figures(tmp_path: Path, conversations: list[Conversation], k: int) -> dict[str, dict[str, Any]]:
    declared = repeats("answer.exact_match", passes_at=1.0, k=k)
    run = score(conversations, metrics=declared, out=tmp_path / "run", workers=1)
    return {one.metric.rpartition(".")[2]: one for one in run.summary.figures if one.variant == f"k{k}"}


def test_the_mean_over_scenarios(tmp_path: Path) -> None:
    # s1 passes 2 of 4, s2 3 of 3, s3 has two trials.
    found = figures(tmp_path, [*tried("s1", "1100"), *tried("s2", "111"), *tried("s3", "11")], k=3)
    # s1: 4 triples of 4, none without a pass, none of passes alone; (2/4)³. s2: 1, 1, 1.
    assert found["pass_at"].value == pytest.approx((1 + 1) / 2)
    assert found["pass_hat"].value == pytest.approx((0 + 1) / 2)
    assert found["pass_hat_theoretical"].value == pytest.approx((0.125 + 1) / 2)
    for one in found.values():
        assert (one.samples_total, one.samples_measured) == (3, 2)
        assert one.skipped_reasons == {"fewer_trials_than_k": 1}
        assert one.interval.clusters == 2  # scenarios


def test_a_trial_that_nobody_measured_is_none(tmp_path: Path) -> None:
    found = figures(tmp_path, [*tried("s1", "11?"), *tried("s2", "111")], k=3)
    assert found["pass_hat"].samples_measured == 1  # s1 has two trials left


def test_fewer_trials_than_k_everywhere(tmp_path: Path) -> None:
    found = figures(tmp_path, tried("s1", "11"), k=3)
    assert {(one.value, one.reason) for one in found.values()} == {(None, "fewer_trials_than_k")}


def test_names_variants_and_questions() -> None:
    at, hat, theoretical = repeats("dialogue.jga@tomiinek", passes_at=0.9, k=5)
    assert [one.key for one in (at, hat, theoretical)] == [
        "dialogue.jga.pass_at@tomiinek-k5",
        "dialogue.jga.pass_hat@tomiinek-k5",
        "dialogue.jga.pass_hat_theoretical@tomiinek-k5",
    ]
    assert at.inputs == ("dialogue.jga@tomiinek",)
    assert at.question == "Does at least one of 5 trials of a scenario pass?"
    assert "at least 0.9" in at.description


def test_what_is_declared_of_ours() -> None:
    inputs = {key.partition(".pass_hat@")[0]: one for key, one in collect([trials]).items() if ".pass_hat@k3" in key}
    assert set(inputs) == {
        "eva.a_pass",
        "eva.overall_pass",
        "eva.x_pass",
        "outcome.success",
        "outcome.task_completion",
        "voice.turn_taking",
    }
    assert sum(".pass_" in key for key in collect([trials])) == 18  # three of each
