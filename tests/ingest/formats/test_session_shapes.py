"""Sessions of agents and chat interfaces, in shapes beyond the plain ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import measured, read, talk, write_json, write_lines

TALK = ["user: Is it open?", "assistant: Until six."]
HUMAN = {"type": "human", "content": "Is it open?"}
AI = {"type": "ai", "content": "Until six."}


def constructor(name: str, **fields: Any) -> dict[str, Any]:
    return {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", name], "kwargs": fields}


class TestLangChain:
    def test_the_longest_state_of_a_thread_holds_the_others(self, tmp_path: Path) -> None:
        config = {"configurable": {"thread_id": "thread-1"}}
        states = [{"values": {"messages": held}, "config": config} for held in ([HUMAN], [HUMAN, AI])]
        outcome = read(write_lines(tmp_path / "states.jsonl", *states))
        assert (outcome.ids, talk(outcome.only)) == (["thread-1"], TALK)
        assert outcome.report.ignored["earlier_state"] == 1

    def test_a_list_of_checkpoints(self, tmp_path: Path) -> None:
        held = [constructor("HumanMessage", content="Is it open?"), constructor("AIMessage", content="Until six.")]
        checkpoints = [
            {
                "config": {"configurable": {"thread_id": "thread-1"}},
                "checkpoint": {"channel_values": {"messages": part}},
            }
            for part in (held, held[:1])
        ]
        assert talk(read(write_json(tmp_path / "c.json", checkpoints)).only) == TALK

    def test_the_value_of_a_prompt(self, tmp_path: Path) -> None:
        messages = [constructor("HumanMessage", content="Is it open?"), constructor("AIMessage", content="Until six.")]
        prompt = constructor("ChatPromptValue", messages=messages)
        assert talk(read(write_json(tmp_path / "p.json", prompt)).only) == TALK


class TestClaude:
    def line(self, text: str, second: int, role: str = "user", **more: Any) -> dict[str, Any]:
        message = {"role": role, "content": [{"type": "text", "text": text}]}
        time = f"2026-03-02T08:00:{second:02d}Z"
        return {"type": role, "uuid": f"u{second}", "sessionId": "s", "timestamp": time, "message": message, **more}

    def test_what_the_program_writes_is_nobodys_speech(self, tmp_path: Path) -> None:
        lines = [
            self.line("Is it open?", 1),
            self.line("<command-name>/model</command-name>", 2),
            self.line("<local-command-stdout>done</local-command-stdout>", 3),
            self.line("Until six.", 4, "assistant"),
            self.line("This session goes on from another one.", 5, isCompactSummary=True),
            self.line("[Request interrupted by user]", 6),
            self.line("API Error", 7, "assistant", isApiErrorMessage=True),
        ]
        assert talk(read(write_lines(tmp_path / "s.jsonl", *lines)).only) == [
            TALK[0],
            "[message_of_the_program]",
            "[message_of_the_program]",
            TALK[1],
            "[summary_of_before]",
            "[interrupt]",
            "[error_of_the_service]",
        ]

    def test_a_message_that_is_there_twice(self, tmp_path: Path) -> None:
        lines = [self.line("Is it open?", 1), self.line("Is it open?", 1), self.line("Until six.", 2, "assistant")]
        outcome = read(write_lines(tmp_path / "s.jsonl", *lines))
        assert talk(outcome.only) == TALK
        assert outcome.report.ignored["message_twice"] == 1


class TestGoogleADK:
    TURN = {
        "userContent": {"role": "user", "parts": [{"text": "Is it open?"}]},
        "finalResponse": {"role": "model", "parts": [{"text": "Until six."}]},
        "intermediateData": {"toolUses": [{"name": "hours", "args": {"dayOfWeek": 1}}]},
    }
    CALLED = [TALK[0], 'hours({"dayOfWeek": 1})', TALK[1]]

    def event(self, author: str, role: str, text: str, second: int) -> dict[str, Any]:
        content = {"role": role, "parts": [{"text": text}]}
        return {"author": author, "content": content, "invocationId": "i", "timestamp": 1_772_440_000 + second}

    def test_events_one_a_line(self, tmp_path: Path) -> None:
        lines = [self.event("user", "user", "Is it open?", 0), self.event("desk", "model", "Until six.", 1)]
        assert talk(read(write_lines(tmp_path / "e.jsonl", *lines)).only) == [TALK[0], "assistant:desk: Until six."]

    def test_an_eval_set_in_the_spelling_of_java(self, tmp_path: Path) -> None:
        """The names of arguments are those of the tool."""
        cases = {"evalSetId": "s", "evalCases": [{"evalId": "c1", "conversation": [self.TURN]}]}
        outcome = read(write_json(tmp_path / "s.evalset.json", cases))
        assert (outcome.ids, talk(outcome.only)) == (["c1"], self.CALLED)
        assert outcome.report.inferred["reference_conversation"].count == 1

    def test_the_result_of_a_case(self, tmp_path: Path) -> None:
        wanted = {**self.TURN, "finalResponse": {"parts": [{"text": "Until seven."}]}}
        case: dict[str, Any] = {"evalId": "c1", "sessionId": "session-1"}
        case["overallEvalMetricResults"] = [
            {"metricName": "match", "score": 0.5},
            {"metricName": "none", "score": None},
        ]
        case["evalMetricResultPerInvocation"] = [{"actualInvocation": self.TURN, "expectedInvocation": wanted}]
        outcome = read(write_json(tmp_path / "r.json", {"evalSetId": "s", "evalCaseResults": [case]}))
        assert talk(outcome.only) == self.CALLED
        assert outcome.only.dimensions["scenario_id"] == "c1"
        assert outcome.only.expected.ground_truth == "Until seven."
        assert [(label.name, label.value) for label in outcome.only.labels] == [("match", 0.5)]

    def test_a_case_in_which_nothing_was_said(self, tmp_path: Path) -> None:
        cases = {"eval_set_id": "s", "eval_cases": [{"eval_id": "c1", "conversation_scenario": {"plan": "ask"}}]}
        with pytest.raises(ConvoscopeError, match="has no messages"):
            read(write_json(tmp_path / "s.json", cases))


class TestRealtime:
    def test_items_that_only_the_client_logs(self, tmp_path: Path) -> None:
        """No server sends them back; the call is known by its arguments alone."""
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is it open?"}]}
        answer = {"type": "function_call_output", "call_id": "c", "output": "9 to 6"}
        called = {"item_id": "f", "call_id": "c", "name": "hours", "arguments": "{}"}
        events = [
            {"type": "session.update", "session": {"instructions": "Be brief."}},
            {"type": "conversation.item.create", "item": asked},
            {"type": "response.function_call_arguments.done", **called},
            {"type": "conversation.item.create", "item": answer},
            {"type": "response.output_text.done", "item_id": "a", "text": "Until six."},
        ]
        conversation = read(write_lines(tmp_path / "s.jsonl", *events)).only
        assert talk(conversation) == [TALK[0], "hours({})", '-> "9 to 6"', TALK[1]]

    def test_an_item_that_comes_back_is_there_once(self, tmp_path: Path) -> None:
        asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Is it open?"}]}
        events = [
            {"type": "session.created", "session": {"id": "s"}},
            {"type": "conversation.item.create", "item": asked},
            {"type": "conversation.item.added", "item": {"id": "u", **asked}},
            {"type": "conversation.item.create", "item": asked},
            {"type": "conversation.item.added", "item": {"id": "v", **asked}},
        ]
        assert talk(read(write_lines(tmp_path / "s.jsonl", *events)).only) == [TALK[0], TALK[0]]

    def test_a_response_that_failed_is_noted(self, tmp_path: Path) -> None:
        failed = {"status": "failed", "status_details": {"error": {"message": "no quota"}}, "output": []}
        events = [
            {"type": "session.created", "session": {"id": "s"}},
            {"type": "response.output_text.done", "item_id": "a", "text": "Until six."},
            {"type": "response.done", "response": failed},
        ]
        report = read(write_lines(tmp_path / "s.jsonl", *events)).report
        assert report.set_aside["response_failed"].examples == ["s.jsonl:1 no quota"]

    def test_words_that_are_typed_in_a_live_session(self, tmp_path: Path) -> None:
        usage = {"promptTokenCount": 4, "responseTokenCount": 2}
        events = [
            {"setup": {"model": "models/g", "system_instruction": {"parts": [{"text": "Be brief."}]}}},
            {"realtimeInput": {"text": "Is it open?"}},
            {"serverContent": {"outputTranscription": {"text": "Until six."}}},
            {"serverContent": {"turnComplete": True}, "usageMetadata": usage},
        ]
        conversation = read(write_lines(tmp_path / "s.jsonl", *events)).only
        assert (talk(conversation), conversation.agent.instructions) == (TALK, "Be brief.")
        assert measured(conversation) == [{"prompt_tokens": 4, "completion_tokens": 2}]


class TestRunState:
    def test_a_state_of_javascript(self, tmp_path: Path) -> None:
        def item(kind: str, **raw: Any) -> dict[str, Any]:
            return {"type": kind, "rawItem": raw, "agent": {"name": "desk"}}

        state: dict[str, Any] = {
            "$schemaVersion": "1.0",
            "originalInput": "Is it open?",
            "currentAgent": {"name": "desk"},
        }
        state["generatedItems"] = [
            item("tool_call_item", type="function_call", callId="c", name="hours", arguments="{}"),
            item("tool_call_output_item", type="function_call_result", callId="c", output="9 to 6"),
            item(
                "message_output_item",
                type="message",
                role="assistant",
                content=[{"type": "output_text", "text": "Six."}],
            ),
        ]
        assert talk(read(write_json(tmp_path / "s.json", state)).only) == [
            TALK[0],
            "hours({})",
            '-> "9 to 6"',
            "assistant:desk: Six.",
        ]

    def test_tokens_and_what_is_no_speech(self, tmp_path: Path) -> None:
        text = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": "Six."}]}
        patch = {"type": "apply_patch_call_output", "call_id": "p", "status": "failed", "output": "no file"}
        approval = {"type": "mcp_approval_request", "id": "a", "name": "hours", "arguments": "{}"}
        items = [{"type": "x", "raw_item": raw} for raw in (patch, approval, text)]
        usage = {"input_tokens": 6, "output_tokens": 1, "total_tokens": 7}
        state: dict[str, Any] = {"$schemaVersion": "1.9", "original_input": "Is it open?", "generated_items": items}
        state["model_responses"] = [{"output": [text], "usage": usage}]
        conversation = read(write_json(tmp_path / "s.json", state)).only
        assert talk(conversation) == [TALK[0], '-> "no file"', "[mcp_approval_request]", "assistant: Six."]
        assert measured(conversation) == [{"prompt_tokens": 6, "completion_tokens": 1, "total_tokens": 7}]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.success is False


def test_the_threads_of_a_managed_agent(tmp_path: Path) -> None:
    """A page of events; another thread is an agent that works for the first."""

    def event(kind: str, second: int, **more: Any) -> dict[str, Any]:
        return {"type": kind, "id": f"e{second}", "processed_at": f"2026-03-02T08:00:{second:02d}Z", **more}

    def text(words: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": words}]

    events = [
        event("user.message", 1, content=text("Is it open?")),
        event("session.thread_created", 2, session_thread_id="t2"),
        event("agent.message", 3, content=text("I ask."), session_thread_id="t2"),
        event("user.interrupt", 4),
        event("agent.message", 5, content=text("Until six.")),
    ]
    outcome = read(write_json(tmp_path / "e.json", {"data": events, "next_page": None}))
    assert talk(outcome.only) == [TALK[0], "subagent: I ask.", "[interrupt]", TALK[1]]
    assert outcome.report.unknown == {}


class TestInspect:
    def log(self, **sample: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": "Is it open?"}, {"role": "assistant", "content": "Until six."}]
        held = {
            "id": 1,
            "epoch": 1,
            "input": "Is it open?",
            "messages": messages,
            "output": {"usage": {"input_tokens": 3}},
        }
        return {"status": "success", "eval": {"task": "t", "model": "m"}, "samples": [held | sample]}

    def test_each_call_of_the_agent_is_measured(self, tmp_path: Path) -> None:
        """Two calls of 3 and 5 tokens; what the grader used is not the agent's."""
        events = [
            {"event": "model", "output": {"usage": {"input_tokens": tokens}, "time": 1.5}, **more}
            for tokens, more in ((3, {}), (5, {}), (90, {"role": "grader"}), (70, {"pending": True}))
        ]
        conversation = read(write_json(tmp_path / "l.json", self.log(events=events))).only
        assert measured(conversation) == [
            {"prompt_tokens": 3, "duration": 1.5},
            {"prompt_tokens": 5, "duration": 1.5},
        ]

    def test_a_limit_ends_a_sample(self, tmp_path: Path) -> None:
        log = self.log(limit={"type": "message", "limit": 3})
        assert read(write_json(tmp_path / "l.json", log)).only.outcome.ended_reason == "message limit"


class TestChatInterface:
    """Messages of the Vercel AI SDK, as a chat interface keeps them."""

    def test_tools_and_thoughts_are_parts(self, tmp_path: Path) -> None:
        parts = [
            {"type": "step-start"},
            {"type": "reasoning", "text": "I look."},
            {
                "type": "tool-hours",
                "toolCallId": "c",
                "state": "output-available",
                "input": {"day": 1},
                "output": "9 to 6",
            },
            {"type": "dynamic-tool", "toolName": "days", "toolCallId": "d", "state": "output-error", "errorText": "no"},
            {"type": "text", "text": "Until six."},
        ]
        user = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Is it open?"}]}
        chat = {"id": "chat-1", "messages": [user, {"id": "2", "role": "assistant", "parts": parts}]}
        conversation = read(write_json(tmp_path / "c.json", chat)).only
        assert talk(conversation) == [
            TALK[0],
            "[reasoning]",
            'hours({"day": 1})',
            '-> "9 to 6"',
            "days(null)",
            '-> "no"',
            TALK[1],
        ]
        results = [event for event in conversation.timeline if isinstance(event, ToolResult)]
        assert [(result.name, result.success) for result in results] == [("hours", None), ("days", False)]

    def test_the_shape_before(self, tmp_path: Path) -> None:
        """The text and the calls are there twice."""
        ran = {"state": "result", "toolCallId": "c", "toolName": "hours", "args": {}, "result": "9 to 6"}
        parts = [{"type": "tool-invocation", "toolInvocation": ran}, {"type": "text", "text": "Until six."}]
        answer = {"role": "assistant", "content": "Until six.", "parts": parts, "toolInvocations": [ran]}
        chat = {"id": "chat-1", "messages": [{"role": "user", "content": "Is it open?"}, answer]}
        assert talk(read(write_json(tmp_path / "c.json", chat)).only) == [
            TALK[0],
            "hours({})",
            '-> "9 to 6"',
            TALK[1],
        ]
