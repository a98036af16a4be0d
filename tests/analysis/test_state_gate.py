"""The gate: per flow against a baseline, on computed aspects, passed, failed or undetermined (flow-states, Gate)."""

from __future__ import annotations

import pytest

import convoscope
from convoscope.analysis.flows.flow_matrix import Aspect, FlowFigures, FlowGate, aspect_verdict
from convoscope.analysis.gate import FAILED, PASSED, UNDETERMINED, Outcome
from convoscope.conversation import Conversation
from convoscope.conversation.flow import Flow, FlowState
from convoscope.errors import UsageError
from convoscope.runs.run import Run
from support.flow_conversations import call, entered, guard, path, scored


def flow(name: str) -> Flow:
    return Flow(name=name, states=(FlowState(name="ask"), FlowState(name="done", terminal="success")))


def ten(name: str, good: int, of: int = 10) -> list[Conversation]:
    """Conversations of which some come to the success terminal: correctness and completion are 10 × good ÷ of."""
    well = call(*path("ask", "done"), flow=flow(name), agent="ann", completed=True, id=name)
    badly = call(entered("ask"), guard("boom"), flow=flow(name), agent="ann", completed=False, id=name)
    return [well] * good + [badly] * (of - good)


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored(
        [
            *ten("steady", 8),
            *ten("fallen", 9),
            *ten("low", 6),
            *ten("gone", 10),
            *ten("few", 4, of=4),
            *ten("grown", 3, of=3),
        ],
        tmp_path_factory.mktemp("baseline"),
        "baseline",
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return scored(
        [
            *ten("steady", 7),
            *ten("fallen", 7),
            *ten("low", 5),
            *ten("few", 1, of=9),
            *ten("grown", 10),
            *ten("new", 6),
            *ten("newly_low", 5),
        ],
        tmp_path_factory.mktemp("now"),
        "now",
    )


@pytest.fixture(scope="module")
def gate(run: Run, baseline: Run) -> FlowGate:
    return convoscope.states(run).gate(baseline)


def outcome(gate: FlowGate, flow: str) -> Outcome:
    return next(one.outcome for one in gate.flows if one.flow == flow)


def aspect(score: float | None, n: int = 20, unmeasured: int = 0) -> Aspect:
    return Aspect(score=score, n=n, reason="" if score is not None else "outcome_unknown", unmeasured=unmeasured)


def figures(now: Aspect, excluded: int = 0) -> FlowFigures:
    return FlowFigures(
        flow="f",
        agent="",
        n=now.n + now.unmeasured,
        excluded=excluded,
        correctness=now,
        parts={},
        completion=now,
        errors=now,
        latency_mean=None,
        latency_p95=None,
        latency_n=0,
        humanness=(),
        caution="",
    )


def verdict(now: Aspect, then: Aspect | None, excluded: int = 0) -> Outcome:
    before = None if then is None else figures(then)
    return aspect_verdict("correctness", figures(now, excluded), before, 6.0, 1.0, 10).outcome


class TestVerdicts:
    def test_one_per_flow(self, gate: FlowGate) -> None:
        assert [one.flow for one in gate.flows] == [
            "fallen",
            "few",
            "gone",
            "grown",
            "low",
            "new",
            "newly_low",
            "steady",
        ]

    def test_a_drop_of_exactly_one_point_passes(self, gate: FlowGate) -> None:
        assert outcome(gate, "steady") == PASSED  # 8.0 → 7.0
        assert verdict(aspect(7.0), aspect(8.0)) == PASSED

    def test_a_greater_drop_fails(self, gate: FlowGate) -> None:
        assert outcome(gate, "fallen") == FAILED  # 9.0 → 7.0
        assert verdict(aspect(6.99), aspect(8.0)) == FAILED  # 1.01

    def test_the_last_digit_of_a_float_decides_nothing(self) -> None:
        assert 8.3 - 7.3 > 1.0  # one point apart, and not as floats
        assert verdict(aspect(7.3), aspect(8.3)) == PASSED
        assert verdict(aspect(6.0 - 1e-12), aspect(6.0)) == PASSED

    def test_below_the_floor_fails_whatever_the_baseline_was(self, gate: FlowGate) -> None:
        assert outcome(gate, "low") == FAILED  # 6.0 → 5.0: a drop of 1.0, and below 6.0
        assert outcome(gate, "newly_low") == FAILED
        assert verdict(aspect(5.9), aspect(2.0)) == FAILED

    def test_at_the_floor_passes(self, gate: FlowGate) -> None:
        assert outcome(gate, "new") == PASSED  # 6.0; a flow that the baseline does not have is held against the floor

    def test_too_few_are_undetermined(self, gate: FlowGate) -> None:
        assert outcome(gate, "few") == UNDETERMINED  # n = 9, though 1.1 is below the floor
        assert outcome(gate, "grown") == UNDETERMINED  # the baseline has 3
        assert verdict(aspect(9.0, n=9), aspect(9.0)) == UNDETERMINED
        assert verdict(aspect(9.0, n=10), aspect(9.0, n=10)) == PASSED
        # Below the floor is below the floor, however few the baseline has.
        assert verdict(aspect(5.0), aspect(5.0, n=3)) == FAILED

    def test_a_flow_that_is_missing_is_undetermined(self, gate: FlowGate) -> None:
        gone = next(one for one in gate.flows if one.flow == "gone")
        assert gone.outcome == UNDETERMINED
        assert [(one.score, one.baseline) for one in gone.aspects] == [(None, 10.0), (None, 10.0)]

    def test_what_was_not_measured_is_undetermined(self) -> None:
        assert verdict(aspect(None), aspect(8.0)) == UNDETERMINED
        assert verdict(aspect(8.0), aspect(None)) == UNDETERMINED

    def test_survivors_do_not_speak_for_all(self) -> None:
        # Four of five must have a value: 16 of 20 do, 16 of 21 do not.
        assert verdict(aspect(9.0, n=16, unmeasured=4), aspect(9.0)) == PASSED
        assert verdict(aspect(9.0, n=16, unmeasured=5), aspect(9.0)) == UNDETERMINED
        # And four of five must not have broken.
        assert verdict(aspect(9.0, n=20), aspect(9.0), excluded=5) == PASSED
        assert verdict(aspect(9.0, n=20), aspect(9.0), excluded=6) == UNDETERMINED
        # Neither do those of the baseline.
        assert verdict(aspect(9.0), aspect(9.0, n=16, unmeasured=5)) == UNDETERMINED

    def test_a_gain_passes(self) -> None:
        assert verdict(aspect(10.0), aspect(6.0)) == PASSED


class TestChoices:
    def test_the_run_against_itself_passes(self, run: Run, baseline: Run) -> None:
        assert convoscope.states(run, flow="steady").gate(run).outcome == PASSED

    def test_floor_drop_and_least(self, run: Run, baseline: Run) -> None:
        def steady(**choices: float) -> Outcome:
            return convoscope.states(run, flow="steady").gate(baseline, **choices).outcome

        assert steady(drop=0.9) == FAILED
        assert steady(floor=7.0) == PASSED
        assert steady(floor=7.1) == FAILED
        assert steady(least=11) == UNDETERMINED

    def test_aspects(self, run: Run, baseline: Run) -> None:
        # One guard error in each that ended badly: 9.7 against 9.8.
        (one,) = convoscope.states(run, flow="steady").gate(baseline, aspects=["errors"]).flows
        assert [(each.aspect, each.outcome) for each in one.aspects] == [("errors", PASSED)]
        assert one.aspects[0].score == pytest.approx(9.7)
        with pytest.raises(UsageError, match="'humanness' cannot be gated"):
            convoscope.states(run).gate(baseline, aspects=["humanness"])
        with pytest.raises(UsageError, match="no aspect"):
            convoscope.states(run).gate(baseline, aspects=[])

    def test_correctness_and_completion_by_default(self, gate: FlowGate) -> None:
        assert {tuple(one.aspect for one in each.aspects) for each in gate.flows} == {("correctness", "completion")}
        assert (gate.floor, gate.drop) == (6.0, 1.0)


class TestOfAll:
    def test_a_failed_flow_fails_all(self, gate: FlowGate) -> None:
        assert gate.outcome == FAILED
