"""Faults that were planted are named, and nothing else: over 10 seeds, from event files to the diagnosis.

`--hypothesis-profile thorough` does so over 20; `make bench FULL=1` over 50, and with fewer conversations.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.planted import (
    BROKEN,
    ENOUGH,
    KINDS,
    PLANTED_STALL,
    SEEDS,
    UNUSED,
    Planted,
    chance_to_miss,
    judged,
    plant,
    write,
)
from typer.testing import CliRunner

import convoscope
from convoscope.cli.main import app
from convoscope.runs.make import make_run as score
from support.amounts import amount


@pytest.mark.parametrize("first", range(0, amount(10, 20), 5))
def test_the_diagnosis_names_what_was_planted_and_no_other(first: int, tmp_path: Path) -> None:
    """Five seeds at once, each with flows of its own: one without a fault, then with one to four."""
    seeds = [plant(seed) for seed in range(first, first + 5)]
    write(seeds, tmp_path / "logs")
    # The rows of states are made whatever is scored; one metric makes the test quicker than all of them.
    run = score(tmp_path / "logs", out=tmp_path / "run", metrics=["state.stall"], workers=1)
    found = convoscope.states(run).analyze()
    for planted in seeds:
        verdict = judged(planted, found)
        assert (verdict.missed, verdict.alarms) == ((), ()), f"seed {planted.seed}"
    expected = {place: kind for planted in seeds for place, kind in planted.expected.items()}
    assert {(cause.flow, cause.state): cause.faults[0] for cause in found.causes} == expected
    # Who tells everything at once is healthy, and said to be.
    early = {place for planted in seeds for place in planted.front_loaded}
    assert {(one.flow, one.state) for one in found.front_loaded} == early
    # Calls that broke are in no figure, and counted; a state that nobody came to is untested, and no more.
    assert sum(one.n for one in found.excluded) == sum(planted.broken for planted in seeds)
    unused = {(one["flow"], UNUSED) for planted in seeds for one in planted.definitions}
    assert unused <= {(one.flow, one.state) for one in found.untested}
    assert run.receipt.valid


def test_so_it_is_on_the_command_line(tmp_path: Path) -> None:
    planted = plant(19)
    write([planted], tmp_path / "logs")
    out = str(tmp_path / "run")
    scored = CliRunner().invoke(
        app, ["score", str(tmp_path / "logs"), "--metrics", "state,flow", "--out", out, "--workers", "1"]
    )
    assert scored.exit_code == 0, scored.output
    told = CliRunner().invoke(app, ["states", "analyze", out, "--json"])
    assert told.exit_code == 0, told.output
    causes = json.loads(told.output)["causes"]
    named = {(one["flow"], one["state"]): one["evidence"][0]["fault"] for one in causes}
    assert named == planted.expected


def test_the_causes_are_ranked_by_the_conversations_they_cost(tmp_path: Path) -> None:
    planted = plant(4)  # all four kinds
    write([planted], tmp_path / "logs")
    run = score(tmp_path / "logs", out=tmp_path / "run", metrics=["state.stall"], workers=1)
    causes = convoscope.states(run).analyze().causes
    assert planted.expected[causes[0].flow, causes[0].state] == "stall"
    assert causes[0].lost == pytest.approx(PLANTED_STALL * causes[0].n, rel=0.15)
    assert sorted((one.lost, one.not_advanced) for one in causes)[::-1] == [
        (one.lost, one.not_advanced) for one in causes
    ]


def test_a_seed_is_a_seed() -> None:
    assert plant(7, 20) == plant(7, 20)
    assert plant(7, 20) != plant(8, 20)


def test_the_seeds_have_all_there_is() -> None:
    every = [plant(seed, 1) for seed in range(SEEDS)]
    assert sum(not one.faults for one in every) == SEEDS // 5
    for kind in KINDS:
        assert sum(kind in {fault.kind for fault in one.faults} for one in every) >= SEEDS // 3
    assert sum(bool(one.front_loaded) for one in every) >= SEEDS // 3
    assert len({place for one in every for place in one.expected}) > 20


def test_there_are_enough_conversations_to_see_a_stall() -> None:
    # Branches take 45 of 100 calls, and few hang up before: some 165 of 400 come to the rarer one.
    assert chance_to_miss(165) < 1 / 250
    assert chance_to_miss(int(ENOUGH * 0.9)) < 1 / 20_000
    assert chance_to_miss(20) > 1 / 10


def test_what_is_healthy_is_not_spotless() -> None:
    """Calls of a seed without a fault: some hang up, go back, are handed over, break."""
    planted = plant(0)
    ends = [_end(planted, number) for number in range(len(planted.conversations))]
    assert not planted.faults
    assert 0.5 * BROKEN < planted.broken / len(ends) < 2 * BROKEN
    assert 0.05 < sum(not end["completed"] for end in ends) / len(ends) < 0.2
    assert any(end["stop_reason"] == "escalated" for end in ends)


def _end(planted: Planted, number: int) -> dict[str, object]:
    return planted.conversations[number][-1]
