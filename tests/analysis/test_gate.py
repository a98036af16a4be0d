"""The one model of gates: rules on a figure, and what they come to together."""

from __future__ import annotations

import pytest

from convoscope.analysis.gate import (
    EXIT_CODES,
    FAILED,
    PASSED,
    UNDETERMINED,
    GateCheck,
    GateFigure,
    Limit,
    NotWorse,
    evaluate,
    gate_of,
    overall,
)
from convoscope.metrics.declaration import LOWER, Target

FLOOR = Limit(Target(">=", 6.0), "floor")


class TestOverall:
    def test_a_failure_decides_then_what_is_undetermined(self) -> None:
        assert overall([PASSED, UNDETERMINED, FAILED]) == FAILED
        assert overall([PASSED, UNDETERMINED]) == UNDETERMINED
        assert overall([PASSED, PASSED]) == PASSED

    def test_nothing_to_check_is_undetermined(self) -> None:
        assert overall([]) == UNDETERMINED
        assert gate_of([]).reason == "nothing to check"

    def test_what_is_refused_can_fail_and_cannot_pass(self) -> None:
        passed = GateCheck("topic_f1", PASSED, 0.9, 0.8, "0.9000 > 0.8")
        assert gate_of([passed]).outcome == PASSED
        assert gate_of([passed], "other gold").outcome == UNDETERMINED
        assert gate_of([passed, GateCheck("risk_f1", FAILED, 0.1, 0.8, "")], "other gold").outcome == FAILED

    def test_exit_codes(self) -> None:
        assert EXIT_CODES == {PASSED: 0, FAILED: 1, UNDETERMINED: 3}


class TestLimit:
    def test_says_the_value_and_the_limit(self) -> None:
        target = Limit(Target(">", 0.8))
        assert evaluate(GateFigure(0.9), target) == (PASSED, "0.9000 > 0.8", False)
        assert evaluate(GateFigure(0.8), target) == (FAILED, "0.8000 is not > 0.8", False)
        assert evaluate(GateFigure(5.96, digits=2), FLOOR).reason == "5.96 is below the floor of 6"

    def test_without_a_value_or_in_doubt_it_is_undetermined(self) -> None:
        assert evaluate(GateFigure(None, "no samples"), FLOOR) == (UNDETERMINED, "no samples", False)
        assert evaluate(GateFigure(1.0, "n=3: too few"), FLOOR) == (UNDETERMINED, "n=3: too few", False)

    def test_samples_that_failed_cannot_carry_it_over_the_limit(self) -> None:
        assert evaluate(GateFigure(7.0, worst_case=6.0), FLOOR).outcome == PASSED
        assert evaluate(GateFigure(7.0, worst_case=5.9), FLOOR).outcome == UNDETERMINED
        assert evaluate(GateFigure(5.0, worst_case=4.0), FLOOR).outcome == FAILED

    def test_a_caveat_forbids_to_pass_and_not_to_fail(self) -> None:
        assert evaluate(GateFigure(7.0, caveat="half of the samples"), FLOOR).outcome == UNDETERMINED
        assert evaluate(GateFigure(5.0, caveat="half of the samples"), FLOOR).outcome == FAILED


class TestNotWorse:
    @pytest.mark.parametrize(
        ("value", "before", "better", "outcome"),
        [
            (0.72, 0.8, "higher", PASSED),  # 10 % below 0.8, exactly; in binary numbers it is a little more
            (0.7199, 0.8, "higher", FAILED),
            # a baseline of zero can only be kept or beaten
            (0.5, 0.0, "higher", PASSED),
            (0.5, 0.0, "lower", FAILED),
            (0.0, 0.0, "lower", PASSED),
        ],
    )
    def test_a_share_of_the_baseline_may_be_lost(self, value: float, before: float, better: str, outcome: str) -> None:
        rule = NotWorse(GateFigure(before), 0.1, better, is_share=True)  # type: ignore[arg-type]
        assert evaluate(GateFigure(value), rule).outcome == outcome

    def test_says_the_loss_and_what_is_allowed(self) -> None:
        rule = NotWorse(GateFigure(9.0), 1.0)
        assert evaluate(GateFigure(8.0, digits=2), rule) == (PASSED, "8.00, baseline 9.00", False)
        assert evaluate(GateFigure(7.0, digits=2), rule).reason == "7.00, down 2.00 from 9.00 (allowed 1)"
        lower = NotWorse(GateFigure(0.2), 0.1, LOWER, is_share=True)
        assert evaluate(GateFigure(0.3), lower).reason == "0.3000, up 0.1000 from 0.2000 (allowed 10 %)"

    def test_a_baseline_without_a_value_allows_no_verdict(self) -> None:
        rule = NotWorse(GateFigure(None, "not measured: no clock"), 1.0)
        assert evaluate(GateFigure(7.0, digits=2), rule) == (
            UNDETERMINED,
            "7.00; baseline not measured: no clock",
            False,
        )
        # Below the floor is below the floor.
        assert evaluate(GateFigure(5.0), FLOOR, rule).outcome == FAILED
