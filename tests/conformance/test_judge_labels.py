"""Labels that people gave: every line is a call, and no label is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from convoscope.analysis.calibration import calibrate
from convoscope.analysis.labelled_calls import read_labels
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.rubrics import rubrics
from support.judge_server import best


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
        assert sorted(label.rating for call in calls for label in call.labels.values()) == expected
        count += len(expected)
    ran("labels of people", count)


def test_the_four_files_hold_what_the_specification_counts(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    folder = shared("data/judge-labels")
    counts = {}
    for name in ("faithfulness", "conversation_progression", "conciseness"):
        _, calls = read_labels(folder / f"{name}.jsonl", None)
        counts[name] = Counter(label.rating for call in calls for label in call.labels.values())
    assert counts["faithfulness"] == {1: 29, 2: 16, 3: 24}
    # Of 68, one is invalid.
    assert counts["conversation_progression"].total() == 67
    assert counts["conciseness"] == {1: 40, 2: 25, 3: 175}
    rubric, calls = read_labels(folder / "key_entity_transcription.jsonl", None)
    assert rubric.name == "transcription_accuracy_key_entities"
    entities = [entity for call in calls for label in call.labels.values() for entity in label.entities]
    assert (len(calls), len(entities), sum(entity.is_correct for entity in entities)) == (19, 282, 187)
    _, calls = read_labels(folder / "faithfulness.jsonl", None)
    # The instructions are not in the data: 26 labels flag a breach of them.
    assert sum(call.part == "policy cases" for call in calls) == 26
    assert Counter(flag for call in calls for flag in call.labels[""].flags or ()) == {
        "violating_policies": 26,
        "hallucination": 13,
        "fabricating_tool_parameters": 12,
        "misrepresenting_tool_result": 8,
        "failing_to_disambiguate": 3,
    }
    ran("entities that people labelled", len(entities))


def test_a_judge_that_always_gives_the_best_rating_reaches_its_share(
    shared: Callable[[str], Path], ran: Callable[[str, int], None]
) -> None:
    # The best rating is 3: 24 of 69 and 175 of 240. The commonest is 1 in the first, 3 in the second.
    expected = {"faithfulness": (69, 24 / 69, 29 / 69), "conciseness": (240, 175 / 240, 175 / 240)}
    for name, (labels, accuracy, majority) in expected.items():
        rubric, calls = read_labels(shared("data/judge-labels") / f"{name}.jsonl", None)
        result = calibrate(Instrument(best, JudgeSettings(use_cache=False)), rubric, calls)
        assert (result.labels, result.unanswered) == (labels, {})
        assert (result.accuracy, result.majority) == (pytest.approx(accuracy), pytest.approx(majority))
        assert result.kappa == 0  # no better than chance
        assert not result.is_calibrated
        assert result.clusters <= len(calls)
        ran(f"labels of {name} compared", labels)
