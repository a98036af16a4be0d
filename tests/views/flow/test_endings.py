"""How a conversation ended: completed or not, by an end of the flow or by something else (flow-states, 1 and 3)."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Event
from convoscope.conversation.flow import Flow, FlowState
from convoscope.views.flow.endings import (
    is_completed,
    is_loop_stop,
    is_terminal_stop,
    is_turn_limit,
    is_unsafe_stop,
    terminal_of,
)
from support.flow_conversations import call, entered, exited, path

ENDS = Flow(
    name="ends",
    states=(
        FlowState(name="ask"),
        FlowState(name="done", terminal="success"),
        FlowState(name="failed", terminal="failure"),
        FlowState(name="closed", terminal="unknown"),
    ),
)
CONTRACT = Flow(name="contract", states=ENDS.states, final_status=("booked", "Call Back"))


def completed(*events: Event, **facts: Any) -> bool | None:
    return is_completed(call(*events, **facts))


class TestCompleted:
    def test_the_flag_decides(self) -> None:
        assert completed(*path("ask", "failed"), flow=ENDS, completed=True) is True
        assert completed(*path("ask", "done"), flow=ENDS, completed=False, status="completed") is False

    def test_then_the_final_status_by_the_contract(self) -> None:
        assert completed(entered("ask"), flow=CONTRACT, status="booked") is True
        assert completed(entered("ask"), flow=CONTRACT, status="call_back") is True
        assert completed(entered("ask"), flow=CONTRACT, status="completed") is False

    def test_then_the_final_status_in_plain_words(self) -> None:
        assert completed(entered("ask"), status="Completed") is True
        assert completed(entered("ask"), status="abandoned") is False
        assert completed(entered("ask"), status="purple") is None

    def test_then_the_end_that_it_came_to(self) -> None:
        assert completed(*path("ask", "done"), flow=ENDS) is True
        assert completed(*path("ask", "failed"), flow=ENDS) is False
        assert completed(*path("ask", "escalated"), flow=ENDS) is False
        assert completed(*path("ask", "escalated")) is False
        # Left for an end is as good as in it.
        assert completed(entered("ask"), exited("ask", "done"), flow=ENDS) is True

    def test_else_nobody_knows(self) -> None:
        assert completed(*path("ask", "closed"), flow=ENDS) is None
        assert completed(entered("ask"), flow=ENDS) is None
        assert completed(entered("ask")) is None


class TestTerminal:
    def test_of_the_state_it_ended_in(self) -> None:
        assert terminal_of(call(*path("ask", "done"), flow=ENDS)) == "success"
        assert terminal_of(call(entered("ask"), exited("ask", "failed"), flow=ENDS)) == "failure"
        assert terminal_of(call(*path("ask", "escalate"), flow=ENDS)) == "escalation"
        assert terminal_of(call(*path("done", "ask"), flow=ENDS)) == ""

    def test_entered_before_the_last_was_left(self) -> None:
        assert terminal_of(call(entered("ask"), entered("done"), exited("ask"), flow=ENDS)) == "success"


class TestStopReason:
    @pytest.mark.parametrize("reason", ["terminal", "completed", "flow_completed", "goalReached goal", "done", "FINAL"])
    def test_words_for_an_end(self, reason: str) -> None:
        assert is_terminal_stop(call(entered("ask"), stop=reason)) is True

    @pytest.mark.parametrize(
        "reason",
        ["hangup", "not_completed", "ended_early", "customer-ended-call", "user ended the call", "error: done"],
    )
    def test_words_for_something_else(self, reason: str) -> None:
        assert is_terminal_stop(call(entered("ask"), stop=reason)) is False

    def test_it_names_an_end_or_stopped_in_one(self) -> None:
        assert is_terminal_stop(call(entered("ask"), flow=ENDS, stop="Closed")) is True
        assert is_terminal_stop(call(*path("ask", "closed"), flow=ENDS, stop="hangup")) is True
        assert is_terminal_stop(call(*path("ask", "closed"), flow=ENDS)) is True

    def test_a_limit_a_loop_or_safety_is_no_end_wherever_it_was(self) -> None:
        for reason in ("max_turns", "loop_detected", "safety_stop"):
            assert is_terminal_stop(call(*path("ask", "done"), flow=ENDS, stop=reason)) is False

    def test_no_reason(self) -> None:
        # The flow declares its ends, and this is none of them; without a declaration nobody knows.
        assert is_terminal_stop(call(entered("ask"), flow=ENDS)) is False
        assert is_terminal_stop(call(entered("ask"))) is None

    @pytest.mark.parametrize("reason", ["max_turns", "MaxTurns", "max-turns reached", "turn limit", "too many turns"])
    def test_turn_limits(self, reason: str) -> None:
        assert is_turn_limit(reason)

    def test_unsafe_and_loops(self) -> None:
        assert is_unsafe_stop("guardrail_blocked")
        assert is_unsafe_stop("unsafe")
        assert is_loop_stop("loop-detected")
        assert not any(check("completed") for check in (is_unsafe_stop, is_loop_stop, is_turn_limit))

    @pytest.mark.parametrize("reason", ["goodbye", "order placed", "agent_hangup", ""])
    def test_words_that_nobody_knows_decide_nothing(self, reason: str) -> None:
        assert is_terminal_stop(call(*path("a", "b"), stop=reason)) is None

    def test_where_ends_are_declared_it_stopped_before_them(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="a"), FlowState(name="done", terminal="success")))
        assert is_terminal_stop(call(entered("a"), flow=flow, stop="goodbye")) is False
        assert is_terminal_stop(call(*path("a", "done"), flow=flow, stop="goodbye")) is True

    def test_an_end_in_another_script_is_one_and_no_reason_names_it(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="a"), FlowState(name="完了", terminal="success")))
        assert is_terminal_stop(call(entered("a"), flow=flow)) is False
        assert is_terminal_stop(call(entered("a"), flow=flow, stop="完了")) is True


class TestDeclaredEnds:
    FLOW = Flow(name="f", states=(FlowState(name="a"), FlowState(name="done", terminal="success")))

    def test_one_that_is_over_and_reached_no_success_did_not_complete(self) -> None:
        assert completed(entered("a"), flow=self.FLOW, stop="max_duration_reached") is False

    def test_of_one_that_may_go_on_nobody_knows(self) -> None:
        assert completed(entered("a"), flow=self.FLOW) is None
