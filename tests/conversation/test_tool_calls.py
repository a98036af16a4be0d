"""Whose tools are called: those of the agent and of its helpers count, those of the user do not."""

from __future__ import annotations

from convoscope.conversation import Conversation, Participant, ToolCall, ToolResult
from convoscope.views.metric_context import conversation_trace


def test_tools_of_the_user_are_not_the_agents() -> None:
    conversation = Conversation(
        id="a",
        participants=(Participant("user", "user"), Participant("helper", "subagent")),
        timeline=(
            ToolCall(seq=0, name="restart", caller="user", call_id="1"),
            ToolResult(seq=1, call_id="1", result="done"),
            ToolCall(seq=2, name="look_up", call_id="2"),
            ToolResult(seq=3, call_id="2", result="found"),
            ToolCall(seq=4, name="search", caller="helper", call_id="3"),
        ),
    )
    assert [call.name for call in conversation.tool_calls] == ["look_up", "search"]
    names = [entry["tool_name"] for entry in conversation_trace(conversation)]
    assert names == ["look_up", "look_up", "search"]  # call and result, and a call


def test_a_conversation_in_which_only_the_user_calls_has_no_tool_calls() -> None:
    call = ToolCall(seq=0, name="restart", caller="user")
    conversation = Conversation(id="a", participants=(Participant("user", "user"),), timeline=(call,))
    assert conversation.tool_calls == ()
    assert not conversation.contents.has_tool_calls
