"""Labels that people gave: every line is a call, and no label is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from convoscope.analysis.calibration import read_labels
from convoscope.judging.rubrics import rubrics


def test_shared_labels_are_read_whole(shared: Callable[[str], Path], ran: Callable[[str, int], None]) -> None:
    count = 0
    for path in sorted(shared("data/judge-labels").glob("*.jsonl")):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        if path.stem not in rubrics() or not all("trace" in record or "conv_turns" in record for record in records):
            continue
        valid = [record for record in records if record.get("invalid") is not True]
        rated = [turn for record in valid for turn in record.get("conv_turns", [record])]
        expected = sorted(float(one["expected_rating"]) for one in rated if one.get("expected_rating") is not None)
        rubric, calls = read_labels(path, None)
        assert rubric.name == path.stem
        assert len(calls) == len(valid)
        assert sorted(rating for call in calls for rating in call.ratings.values()) == expected
        count += len(expected)
    ran("labels of people", count)
