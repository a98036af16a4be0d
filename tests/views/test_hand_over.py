"""Whether the user was put through to a person, and what says so."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Flow, FlowState, LabelVerdict, Outcome, ToolCall, ToolResult
from convoscope.views.end_reasons import handed_over_by
from convoscope.views.flow.endings import ending_of, outcome_of
from support.chats import UNPLACED, agent, chat, user
from support.flow_conversations import entered

TRANSFER = ToolCall(seq=UNPLACED, name="transfer_to_human_agents", call_id="1")


def result(**facts: Any) -> ToolResult:
    return ToolResult(seq=UNPLACED, call_id="1", **facts)


class TestWhatSaysIt:
    @pytest.mark.parametrize(
        "outcome",
        [Outcome(ended_reason="call_transfer"), Outcome(ended_reason="goodbye", final_status="escalated")],
        ids=["reason", "status"],
    )
    def test_how_it_ended(self, outcome: Outcome) -> None:
        assert outcome_of(chat(user("Hi"), agent("Hello"), outcome=outcome)).name == "handed_over"

    @pytest.mark.parametrize(
        ("fields", "is_handed_over"),
        [
            ({"transferred": True}, True),
            ({"escalated_to_human": "yes"}, True),
            ({"metadata": {"callTransferred": True}}, True),
            ({"disposition": "Transferred"}, True),
            ({"transferred": False}, False),
            ({"transferred": "no"}, False),
            ({"transfer_enabled": True}, False),
            ({"status": "transfer failed"}, False),
            ({"topic": "transferred"}, False),
        ],
    )
    def test_fields(self, fields: dict[str, Any], is_handed_over: bool) -> None:
        assert bool(handed_over_by(chat(user("Hi"), agent("Hello"), extras=fields))) is is_handed_over

    def test_a_tool(self) -> None:
        conversation = chat(user("A person!"), TRANSFER, result(result="ok"), agent("One moment."), user("Thanks"))
        assert outcome_of(conversation) == (None, "tool: transfer_to_human_agents", "handed_over")
        assert ending_of(conversation) == "handed_over"

    def test_a_tool_that_failed_hands_nobody_over(self) -> None:
        assert not handed_over_by(chat(user("A person!"), TRANSFER, result(error="no agent"), agent("Sorry.")))

    @pytest.mark.parametrize(
        "text",
        [
            "no agents online",
            "Nobody is available.",
            "Derzeit ist niemand frei.",
            "aucun conseiller",
            {"info": "all busy"},
        ],
    )
    def test_a_result_that_negates_says_no_hand_over(self, text: Any) -> None:
        conversation = chat(user("A person!"), TRANSFER, result(result=text), agent("Call again tomorrow."))
        assert outcome_of(conversation).name == "unknown"

    @pytest.mark.parametrize("text", ["queued", "Transfer to line 4", {"success": True, "message": "no wait"}])
    def test_a_result_that_does_not(self, text: Any) -> None:
        assert handed_over_by(chat(user("A person!"), TRANSFER, result(result=text), agent("One moment.")))

    def test_money_for_an_agent_is_no_person(self) -> None:
        moved = ToolCall(seq=UNPLACED, name="transfer_to_agent_account", call_id="1")
        assert not handed_over_by(chat(user("Pay it"), moved, result(result="ok"), agent("Done.")))

    def test_who_goes_on_serving_is_no_person(self) -> None:
        assert not handed_over_by(chat(user("Refund"), TRANSFER, agent("Which order?"), user("12"), agent("Done.")))


class TestDoneOrLost:
    """A hand-over is neither, unless label, log or flow say so."""

    def test_by_itself(self) -> None:
        assert outcome_of(chat(user("Hi"), outcome=Outcome(ended_reason="call_transfer"))).done is None

    @pytest.mark.parametrize("passed", [True, False])
    def test_by_a_label(self, passed: bool) -> None:
        label = LabelVerdict(field="resolved", value=passed, passed=passed)
        conversation = chat(user("Hi"), outcome=Outcome(ended_reason="call_transfer", label=label))
        assert outcome_of(conversation).done is passed

    def test_by_the_flow(self) -> None:
        flow = Flow(name="f", states=(FlowState(name="won", terminal="success"),))
        conversation = chat(entered("escalated"), flow=flow, outcome=Outcome(ended_reason="handoff"))
        assert outcome_of(conversation)[:2] == (False, "ended in the state escalated")
