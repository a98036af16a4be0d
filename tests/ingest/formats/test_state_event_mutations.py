"""Event logs with something wrong in them are read the same, whether lines are first decoded by type or not."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from benchmarks.state_event_mutations import compare, mutated_files, read_all

from convoscope.ingest.formats.state_events import strict as state_events_strict

LOGS = 150


def test_both_ways_tell_the_same() -> None:
    counts: Counter[str] = Counter()
    for seed in range(LOGS):
        found = compare(seed)
        assert not found.difference, f"log {seed}: {found.difference[:2000]}"
        counts.update(found.counts)
    # Both paths have been at work: else the comparison says nothing.
    assert counts["strict"] > LOGS / 3
    assert counts["conversations"] - counts["strict"] > LOGS / 3


def test_the_same_seed_makes_the_same_log() -> None:
    assert mutated_files(random.Random(7)) == mutated_files(random.Random(7))


def test_a_difference_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_events_strict, "ENDED", "over")
    assert any(compare(seed).difference for seed in range(20))


PLAIN = b"""\
{"conversation_id": "a", "timestamp": 1760000000.0, "event": "state_entered", "state": "greet"}
{"conversation_id": "b", "timestamp": 1760000000.5, "event": "state_entered", "state": "greet", "mood": 1}
{"conversation_id": "a", "timestamp": 1760000001.0, "event": "conversation_ended", "completed": true}
"""


def test_only_a_conversation_with_something_odd_is_looked_at_closely(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_bytes(PLAIN)
    told, by_type = read_all(tmp_path, 4_000_000, strict=True)
    assert (len(told) - 1, by_type) == (2, 1)
    assert [[note.code for note in notes] for _, _, notes in told[:-1]] == [[], ["event.mood"]]


@pytest.mark.parametrize(
    "more", ["", '{"conversation_id": "b", "timestamp": 1760000000.5, "event": "state_entered", "state": "s"}\n']
)
@pytest.mark.parametrize("strict", [True, False])
def test_an_id_that_is_there_twice_is_noted(more: str, tmp_path: Path, *, strict: bool) -> None:
    """Also where the log is one record, which is a document, too."""
    twice = (
        '{"conversation_id": "x", "timestamp": 1.0, "event": "state_entered", "state": "s", "conversation_id": "a"}\n'
    )
    (tmp_path / "log.jsonl").write_text(twice + more)
    read, _ = read_all(tmp_path, 4_000_000, strict=strict)
    assert "name_twice" in [note.code for note in read[0][2]]
