"""The benchmark of causes: seeds and kinds are apart, and every lost call stands under one cause."""

from __future__ import annotations

from pathlib import Path

from benchmarks.causes import REPORTING_KINDS, REPORTING_SEEDS, TUNING_KINDS, TUNING_SEEDS, draw_version, lost_calls

from convoscope.demo import make_calls


def test_what_is_reported_was_not_tuned_on() -> None:
    assert not set(TUNING_SEEDS) & set(REPORTING_SEEDS)
    assert set(TUNING_KINDS) < set(REPORTING_KINDS)


def test_every_lost_call_stands_under_one_cause(tmp_path: Path) -> None:
    seed = TUNING_SEEDS[1]
    lost = lost_calls(seed, TUNING_KINDS, 40, tmp_path)
    version = draw_version(seed, TUNING_KINDS)
    made = make_calls(seed, [version], scenarios=30, trials=1, live=10)
    assert [call.id for call in lost] == [call.id for call in made if call.fault]
    assert len(lost) > 3
    assert all(call.verdict in ("right", "wrong", "none") for call in lost)
