"""Gates cannot be fooled: null, zero samples, no baseline, an inverted direction, failed samples, invalid results."""

from __future__ import annotations

import msgspec
import pytest

from convoscope.analysis.benchmark.gate import check_targets, compare
from convoscope.analysis.benchmark.result import (
    BenchmarkRequest,
    BenchmarkResult,
    MetricResult,
    SampleResult,
    make_result,
)
from convoscope.errors import UsageError

GOOD = {"topic_f1": 0.9, "risk_f1": 0.9, "risk_f1_weighted": 0.9, "action_accuracy": 0.9}

CALIBRATED = {"judge": "openai/x@1", "calibration": "κ 0.81 (0.70 to 0.90), 60 labels"}


def figure(value: float | None, **other: object) -> MetricResult:
    reason = "no_samples" if value is None else None
    return MetricResult(value=value, reason=reason, coverage=None, samples_measured=1, samples_skipped=0, **other)  # type: ignore[arg-type]


def result(metrics: dict[str, MetricResult], mode: str = "tags", gold: str = "g") -> BenchmarkResult:
    request = BenchmarkRequest("semantic", "d", mode)
    return make_result(
        request, 1, metrics=metrics, coverage={}, config={}, gold_hashes={"a": gold}, prediction_hashes={}
    )


def good(**other: float | None) -> BenchmarkResult:
    return result({name: figure(value) for name, value in {**GOOD, **other}.items()})


class TestTargets:
    def test_all_above_is_passed(self) -> None:
        assert check_targets(good()).outcome == "passed"

    def test_to_be_at_a_target_is_not_to_be_above_it(self) -> None:
        assert check_targets(good(topic_f1=0.8)).outcome == "failed"
        assert check_targets(good(topic_f1=0.8000001)).outcome == "passed"

    def test_a_figure_that_is_null_is_not_passed(self) -> None:
        assert check_targets(good(risk_f1_weighted=None)).outcome == "undetermined"

    def test_a_figure_that_is_missing_is_not_passed(self) -> None:
        assert check_targets(result({"topic_f1": figure(0.9)})).outcome == "undetermined"

    def test_no_samples_are_not_passed(self) -> None:
        assert check_targets(good(**dict.fromkeys(GOOD))).outcome == "undetermined"

    def test_a_missed_target_weighs_more_than_one_that_cannot_be_told(self) -> None:
        assert check_targets(good(topic_f1=0.1, risk_f1=None)).outcome == "failed"

    def test_the_targets_are_those_of_the_mode_that_ran(self) -> None:
        summary = {name: figure(8.5, **CALIBRATED) for name in ("faithfulness", "coverage", "clarity")}
        assert check_targets(result(summary, mode="summary")).outcome == "passed"
        assert check_targets(result(summary)).outcome == "undetermined"

    @pytest.mark.parametrize("known", [{}, {"judge": "openai/x@1", "calibration": "not calibrated: κ 0.10"}])
    def test_a_judge_that_is_not_calibrated_decides_nothing(self, known: dict[str, str]) -> None:
        good, bad = figure(8.5, **known), figure(6.5, **known)
        made = result({"faithfulness": good, "coverage": bad, "clarity": figure(8.5, **CALIBRATED)}, mode="summary")
        faithful, covers, clear = check_targets(made).checks
        assert (faithful.outcome, covers.outcome, clear.outcome) == ("undetermined", "undetermined", "passed")
        assert faithful.reason.endswith("(--trust-judge decides it anyway)")
        # 8.5 > 7 is met, 6.5 > 7 is not; both say on what they rest.
        faithful, covers, clear = check_targets(made, trust_judge=True).checks
        assert (faithful.outcome, covers.outcome, clear.outcome) == ("passed", "failed", "passed")
        assert all("not calibrated" in one.reason for one in (faithful, covers))
        assert clear.reason == "8.5000 > 8"

    def test_nor_whether_a_result_got_worse(self) -> None:
        before, now = (result({"clarity": figure(value)}, mode="summary") for value in (9.0, 5.0))
        assert compare(now, before, 0.1).outcome == "undetermined"
        assert compare(now, before, 0.1, trust_judge=True).outcome == "failed"

    def test_samples_that_failed_cannot_carry_it_over_the_target(self) -> None:
        metrics = {name: figure(value) for name, value in GOOD.items()}
        metrics["topic_f1"] = figure(0.9, worst_case=0.7)
        assert check_targets(result(metrics)).outcome == "undetermined"

    def test_an_invalid_result_is_not_passed(self) -> None:
        invalid = msgspec.structs.replace(good(), valid=False, invalid_reason="duplicates in gold")
        assert check_targets(invalid).outcome == "undetermined"


class TestBaseline:
    def test_a_fall_fails_and_a_rise_passes(self) -> None:
        # The published gate had it the other way: 0.10 against 0.80 passed, 0.95 failed.
        assert compare(good(topic_f1=0.10), good(topic_f1=0.80), 0.1).outcome == "failed"
        assert compare(good(topic_f1=0.95), good(topic_f1=0.80), 0.1).outcome == "passed"

    def test_what_was_measured_and_is_null_now_is_not_passed(self) -> None:
        assert compare(good(topic_f1=None), good(), 0.1).outcome == "undetermined"

    def test_a_baseline_without_figures_is_not_passed(self) -> None:
        assert compare(good(), good(**dict.fromkeys(GOOD)), 0.1).outcome == "undetermined"

    def test_a_direction_that_the_files_invert_is_not_passed(self) -> None:
        inverted = result({"topic_f1": figure(0.8, better="lower")})
        assert compare(result({"topic_f1": figure(0.1, better="lower")}), inverted, 0.1).outcome == "undetermined"
        assert compare(result({"topic_f1": figure(0.9)}), inverted, 0.1).outcome == "undetermined"

    def test_invalid_results_and_baselines_are_refused(self) -> None:
        invalid = msgspec.structs.replace(good(), valid=False, invalid_reason="wrong gold")
        assert compare(good(), invalid, 0.1).outcome == "undetermined"
        assert compare(invalid, good(), 0.1).outcome == "undetermined"

    def test_other_gold_cannot_be_compared(self) -> None:
        metrics = {"topic_f1": figure(0.9)}
        assert compare(result(metrics), result(metrics, gold="other"), 0.1).outcome == "undetermined"

    def test_another_mode_is_refused(self) -> None:
        with pytest.raises(UsageError, match="mode"):
            compare(good(), result({}, mode="summary"), 0.1)


class TestBySample:
    def kept(self, values: dict[str, float]) -> BenchmarkResult:
        samples = [SampleResult(sample_id=name, topic_f1=value) for name, value in values.items()]
        return msgspec.structs.replace(good(topic_f1=0.8), sample_results=samples)

    def test_pairs_of_samples(self) -> None:
        """Five of ten samples gain 0.1 or 0.2, the others are as before; one sample is new."""
        before = self.kept({f"s{n}": 0.5 for n in range(10)})
        after = self.kept({**{f"s{n}": 0.5 + 0.1 * (n % 3 if n < 8 else 0) for n in range(10)}, "new": 1.0})
        gate = compare(after, before, 0.1)
        made = next(one.by_sample for one in gate.checks if one.metric == "topic_f1")
        assert made is not None
        # n modulo 3 for n below 8: 0 1 2 0 1 2 0 1, together 7 tenths
        assert (made.n, made.difference) == (10, pytest.approx(0.07))
        assert made.low is not None
        assert made.low < 0.07 < (made.high or 0)
        # five of ten moved, all upwards: 2 of 2^5 sign patterns are as extreme
        assert made.p == pytest.approx(2 / 32, abs=0.01)

    def test_results_without_samples_have_none(self) -> None:
        assert all(one.by_sample is None for one in compare(good(), good(), 0.1).checks)
