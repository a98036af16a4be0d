"""Thousands of states: figures of states whose rows say the same are made once. Work is counted, not timed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import convoscope
from convoscope.metrics.flow.states import progress
from convoscope.runs import subjects
from convoscope.runs.subjects import SubjectRows, _KnownFigures
from convoscope.scores.observation import MEASURED, STATUSES, UNMEASURED
from convoscope.statistics.intervals import Columns


def log_of(path: Path, states: int) -> Path:
    """One conversation that goes through so many states, a turn in each."""
    lines = []
    for number in range(states):
        facts = {"conversation_id": "c", "flow": "f", "agent": "a", "timestamp": 1_771_236_000 + number}
        lines.append({**facts, "seq": 3 * number, "event": "state_entered", "state": f"s{number}"})
        lines.append({**facts, "seq": 3 * number + 1, "event": "turn_complete", "latency_ms": 800})
        left = {"state": f"s{number}", "to_state": f"s{number + 1}", "reason": "done"}
        lines.append({**facts, "seq": 3 * number + 2, "event": "state_exited", **left})
    path.write_text("\n".join(map(json.dumps, lines)) + "\n")
    return path


def test_four_times_the_states_are_no_more_figures_to_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    real = subjects.figures

    def counted(*arguments: Any) -> Iterator[Any]:
        made.append(1)
        return real(*arguments)

    monkeypatch.setattr(subjects, "figures", counted)
    counts = []
    for states in (30, 120):
        made.clear()
        log = log_of(tmp_path / f"{states}.jsonl", states)
        run = convoscope.score(log, metrics="state", out=tmp_path / str(states), workers=1)
        assert len([group for group in run.summary.groups if "state" in group.by]) == states
        counts.append(len(made))
    # The first and the last state differ from the rest, however many there are.
    assert counts[0] == counts[1]


ROWS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.sampled_from([0.0, 0.5, 1.0, None])), min_size=1)


@given(ROWS)
def test_shared_figures_are_those_that_each_group_would_have(rows: list[tuple[int, int, float | None]]) -> None:
    """Rows of random subjects, clusters and values: whatever is shared, it is what is computed alone."""
    rows.sort(key=lambda row: row[0])
    value = np.array([row[2] or 0.0 for row in rows])
    is_measured = np.array([row[2] is not None for row in rows])
    one, nothing = is_measured.astype(np.float64), np.zeros(len(rows))
    observed = SubjectRows(
        declared=progress,
        judge="computed",
        number=np.arange(len(rows)),
        subject=np.array([row[0] for row in rows]),
        subjects=list("abcd"),
        status=np.where(is_measured, STATUSES.index(MEASURED), STATUSES.index(UNMEASURED)).astype(np.int8),
        reason=np.where(is_measured, -1, 0).astype(np.int32),
        reasons=["why"],
        columns=Columns(value, one, value, value, one, nothing, nothing, nothing),
        skipped=nothing,
        missing=1.0 - one,
    )
    known = _KnownFigures(observed, np.arange(len(rows)), np.array([row[1] for row in rows]))
    bounds = np.searchsorted(observed.subject, np.arange(5)).tolist()
    for start, end in pairwise(bounds):
        if end > start:
            assert known.of(start, end) == known._made(np.arange(start, end))
