"""Anthropic's content blocks in lists of messages: whose words they are, and which are nobody's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Marker, ToolCall, ToolResult, Utterance
from support.logs import Outcome, counts, read, story, write_json

TEXT = {"type": "text", "text": "Let me look."}
USE = {"type": "tool_use", "id": "toolu_1", "name": "find_loan", "input": {"card": "C-204"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "due on 2 May"}]}
QUESTION = {"role": "user", "content": "When is my book due?"}


def messages(tmp_path: Path, *listed: Any, **beside: Any) -> Outcome:
    return read(write_json(tmp_path / "log.json", {"messages": list(listed), **beside}))


def block_result(tmp_path: Path, **fields: Any) -> ToolResult:
    message = {"role": "user", "content": [{**RESULT, **fields}]}
    events = messages(tmp_path, QUESTION, {"role": "assistant", "content": [USE]}, message).only.timeline
    assert isinstance(events[2], ToolResult)
    return events[2]


class TestBlocks:
    def test_a_tool_use_is_a_call_and_a_result_is_not_a_person(self, tmp_path: Path) -> None:
        """`role: user` of a result is nobody's turn: one turn of the user, not two."""
        conversation = messages(
            tmp_path,
            QUESTION,
            {"role": "assistant", "content": [TEXT, USE]},
            {"role": "user", "content": [RESULT]},
            {"role": "assistant", "content": [{"type": "text", "text": "On 2 May."}]},
        ).only
        question, _, call, result, answer = conversation.timeline
        assert [type(event) for event in conversation.timeline] == [
            Utterance,
            Utterance,
            ToolCall,
            ToolResult,
            Utterance,
        ]
        assert isinstance(call, ToolCall)
        assert (call.name, call.arguments, call.call_id) == ("find_loan", {"card": "C-204"}, "toolu_1")
        assert isinstance(result, ToolResult)
        assert (result.result, result.call_id) == ("due on 2 May", "toolu_1")
        assert [conversation.roles[event.speaker] for event in (question, answer)] == ["user", "assistant"]
        assert len(conversation.turns) == 1

    def test_words_beside_a_result_are_the_users(self, tmp_path: Path) -> None:
        asked = {"role": "user", "content": [RESULT, {"type": "text", "text": "And the atlas?"}]}
        outcome = messages(tmp_path, QUESTION, {"role": "assistant", "content": [USE]}, asked)
        assert story(outcome.only)[-1] == "user: And the atlas?"

    def test_only_results_bring_no_participant(self, tmp_path: Path) -> None:
        greeting = {"role": "assistant", "content": [TEXT, USE]}
        outcome = messages(tmp_path, greeting, {"role": "user", "content": [RESULT]})
        assert [one.role for one in outcome.only.participants] == ["assistant"]

    @pytest.mark.parametrize(("flag", "success"), [(True, False), (False, True), (None, None)])
    def test_is_error_says_whether_it_worked(self, flag: bool | None, success: bool | None, tmp_path: Path) -> None:
        assert block_result(tmp_path, is_error=flag).success is success

    def test_an_error_code_of_the_servers_tool_is_a_failure(self, tmp_path: Path) -> None:
        content = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
        result = block_result(tmp_path, type="web_search_tool_result", content=content)
        assert (result.success, result.error) == (False, "max_uses_exceeded")

    def test_a_failure_has_its_text_as_error(self, tmp_path: Path) -> None:
        result = block_result(tmp_path, content="no such card", is_error=True)
        assert (result.success, result.error) == (False, "no such card")

    def test_thinking_is_a_marker_and_noted(self, tmp_path: Path) -> None:
        thought = {"type": "thinking", "thinking": "The card is known.", "signature": "x" * 2000}
        outcome = messages(tmp_path, QUESTION, {"role": "assistant", "content": [thought, TEXT]})
        _, marker, reply = outcome.only.timeline
        assert isinstance(marker, Marker)
        assert marker.name == "reasoning"
        assert isinstance(reply, Utterance)
        assert outcome.only.text(reply) == "Let me look."
        assert outcome.report.ignored == {"thinking": 1, "embedded_data": 1}

    def test_a_picture_is_noted(self, tmp_path: Path) -> None:
        picture = {"type": "image", "source": {"type": "base64", "data": "iVBO" * 500}}
        outcome = messages(tmp_path, {"role": "user", "content": [RESULT, picture]})
        assert outcome.report.ignored == {"image_not_read": 1, "embedded_data": 1}

    def test_what_nobody_knows_is_kept_and_noted(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, QUESTION, {"role": "assistant", "content": [{**USE, "shift": "night"}]})
        assert outcome.only.timeline[1].extras == {"shift": "night"}
        assert outcome.report.unknown == {"block.shift": 1}

    def test_extras_of_a_message_of_thoughts_alone_are_kept(self, tmp_path: Path) -> None:
        message = {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}], "usage": {"tokens": 4}}
        assert [event.extras or event.value for event in messages(tmp_path, QUESTION, message).only.timeline[1:]] == [  # type: ignore[attr-defined]
            {"type": "thinking", "thinking": "Hm."},
            {"usage": {"tokens": 4}},
        ]


class TestTheRecord:
    @pytest.mark.parametrize("system", ["Be kind.", [{"type": "text", "text": "Be kind."}]])
    def test_system_is_the_instructions(self, system: Any, tmp_path: Path) -> None:
        assert messages(tmp_path, QUESTION, system=system).only.agent.instructions == "Be kind."

    def test_the_schema_of_a_tool(self, tmp_path: Path) -> None:
        tool = {"name": "find_loan", "description": "", "input_schema": {"type": "object"}}
        (read_tool,) = messages(tmp_path, QUESTION, tools=[tool]).only.agent.tools or ()
        assert read_tool.arguments_schema == {"type": "object"}

    def test_what_came_back_is_a_message(self, tmp_path: Path) -> None:
        answer = {"type": "message", "role": "assistant", "content": [TEXT, USE], "stop_reason": "tool_use"}
        record = {"request": {"body": {"messages": [QUESTION]}}, "response": {"status_code": 200, "body": answer}}
        outcome = read(write_json(tmp_path / "log.json", record))
        assert story(outcome.only)[:2] == ["user: When is my book due?", "assistant: Let me look."]
        assert isinstance(outcome.only.timeline[2], ToolCall)
        assert outcome.report.unknown == {}

    def test_a_streamed_answer_is_set_aside(self, tmp_path: Path) -> None:
        record = {"request": {"messages": [QUESTION]}, "response": {"body": "event: message_start\ndata: {}\n"}}
        outcome = read(write_json(tmp_path / "log.json", record))
        assert counts(outcome.report.set_aside) == {"content_not_text": 1}

    def test_a_single_answer_is_read_as_an_item(self, tmp_path: Path) -> None:
        answer = {"type": "message", "role": "assistant", "content": [TEXT, USE]}
        outcome = read(write_json(tmp_path / "log.json", answer))
        assert [type(event) for event in outcome.only.timeline] == [Utterance, ToolCall]
