"""How far a judge agrees with people, with numbers derived by hand."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.agreement import RatedLabel, agreement_of
from convoscope.analysis.calibration import calibrate
from convoscope.analysis.labelled_calls import read_labels
from convoscope.errors import InputError, UsageError
from convoscope.judging.calibrations import Agreement, keep_calibrations, kept_calibrations
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.rubrics import Rubric, rubric_named
from support.judge_server import best

FAITHFULNESS = rubric_named("faithfulness")


def agreement(
    rubric: Rubric, people: Sequence[float], judged: Sequence[float], clusters: Sequence[str] | None = None
) -> Agreement:
    """Of pairs of ratings, each of a call of its own unless clusters are given."""
    names = clusters or [str(index) for index in range(len(people))]
    return agreement_of(rubric, "p/m@x", [RatedLabel(*pair) for pair in zip(people, judged, names, strict=True)])


def test_agreement_by_hand() -> None:
    # People: 1 1 2 3 3 3; judge: 1 2 2 3 3 1. They agree in 4 of 6.
    people, judged = [1, 1, 2, 3, 3, 3], [1, 2, 2, 3, 3, 1]
    result = agreement(FAITHFULNESS, people, judged)
    assert result.accuracy == pytest.approx(4 / 6)
    # F1 of 1: 2·1 ÷ (2 + 2) = 0.5; of 2: 2·1 ÷ (1 + 2) = 2/3; of 3: 2·2 ÷ (3 + 2) = 0.8.
    assert result.macro_f1 == pytest.approx((0.5 + 2 / 3 + 0.8) / 3)
    # Linear weights |i − j|: observed 1 + 2 = 3. By chance, rows 2 1 3 and columns 2 2 2 of 6:
    # (2·2·1 + 2·2·2 + 1·2·1 + 1·2·1 + 3·2·2 + 3·2·1) ÷ 6 = 34 ÷ 6. Kappa = 1 − 3 ÷ (34 ÷ 6) = 16 ÷ 34.
    assert result.kappa == pytest.approx(16 / 34)
    assert result.majority == 0.5
    assert result.confusion == [[1, 1, 0], [0, 1, 0], [1, 0, 2]]
    assert not result.is_calibrated  # six labels are too few


def test_two_ratings_give_the_plain_kappa() -> None:
    # Agreement 0.7, by chance 0.5 · 0.6 + 0.5 · 0.4 = 0.5: (0.7 − 0.5) ÷ 0.5 = 0.4.
    people = [0] * 25 + [1] * 25
    judged = [0] * 20 + [1] * 5 + [0] * 10 + [1] * 15
    result = agreement(rubric_named("speakability"), people, judged)
    assert (result.accuracy, result.kappa) == (0.7, pytest.approx(0.4))
    assert result.kappa_interval is not None
    low, high = result.kappa_interval
    assert low < 0.4 < high
    assert not result.is_calibrated  # the interval reaches below 0.4


def test_perfect_agreement_is_calibrated_from_fifty_labels_on() -> None:
    for count, is_calibrated in ((48, False), (51, True)):
        ratings = [1 + index % 3 for index in range(count)]
        result = agreement(FAITHFULNESS, ratings, ratings)
        assert (result.kappa, result.is_calibrated) == (1.0, is_calibrated)


def test_one_rating_only_has_no_kappa() -> None:
    result = agreement(FAITHFULNESS, [3, 3], [3, 3])
    assert (result.accuracy, result.kappa, result.kappa_interval) == (1.0, None, None)
    assert not result.is_calibrated


def test_copies_of_one_scenario_are_one_cluster() -> None:
    ratings = [1 + index % 3 for index in range(60)]
    result = agreement(FAITHFULNESS, ratings, ratings, ["the same"] * 60)
    assert result.kappa_interval is None
    assert not result.is_calibrated


def test_no_labels_no_numbers() -> None:
    result = agreement(FAITHFULNESS, [], [])
    assert (result.accuracy, result.macro_f1, result.kappa, result.majority) == (None, None, None, None)


def test_labels_without_an_answer_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "faithfulness.jsonl"
    trace = [
        {"event_type": "user_utterance", "utterance": "Hello?"},
        {"event_type": "agent_utterance", "utterance": "Hello."},
    ]
    path.write_text("".join(json.dumps({"id": n, "trace": trace, "expected_rating": 3}) + "\n" for n in range(3)))
    answers = iter([best, lambda prompt, schema: "no", lambda prompt, schema: "no", best])

    def judge(prompt: str, schema: Any) -> Any:
        return next(answers)(prompt, schema)

    judge.version = 1  # type: ignore[attr-defined]
    rubric, calls = read_labels(path, None)
    result = calibrate(Instrument(judge, JudgeSettings(use_cache=False, max_concurrency=1)), rubric, calls)
    # Three questions; one answer is unusable, and so is the second try.
    assert (result.labels, result.unanswered) == (2, {"verdict_unusable": 1})
    file = tmp_path / "calibration.json"
    keep_calibrations([result], file)
    assert kept_calibrations(file) == [result]


def test_bad_labels_say_where(tmp_path: Path) -> None:
    path = tmp_path / "faithfulness.jsonl"
    path.write_text('{"trace": [], "expected_rating": 3}\n{"trace": [], "expected_rating": 9}\n')
    with pytest.raises(InputError, match="off the scale") as refused:
        read_labels(path, None)
    assert refused.value.line == 2
    other = tmp_path / "labels.jsonl"
    other.write_text("")
    with pytest.raises(UsageError, match="does not say what it labels"):
        read_labels(other, None)
