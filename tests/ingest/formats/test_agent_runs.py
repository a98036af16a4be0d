"""Runs of agent frameworks: OpenAI Agents, managed agents, Claude Agent SDK, Google ADK, LangChain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolCall, ToolResult
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, counts, measured, read, talk, write_json, write_lines


def lines_of(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()]


class TestAgentsRunState:
    HOSTEL = EXAMPLES / "agents-runstate" / "hostel.json"

    def test_who_said_and_called_what(self) -> None:
        conversation = read(self.HOSTEL).only
        assert conversation.id == "conv-hostel-2"
        assert talk(conversation) == [
            "user: A bed for tonight, please.",
            "transfer_to_bookings({})",
            '-> {"assistant": "Bookings"}',
            'free_beds({"night": "2026-03-02"})',
            '-> {"error": "calendar offline"}',
            "assistant:Bookings: I cannot see the calendar at the moment. Please call again in ten minutes.",
        ]

    def test_an_unknown_item_is_counted_and_kept(self, tmp_path: Path) -> None:
        state = json.loads(self.HOSTEL.read_text())
        state["generated_items"].append(
            {"agent": {"name": "Bookings"}, "raw_item": {"type": "hologram", "of": "a bed"}}
        )
        outcome = read(write_json(tmp_path / "state.json", state))
        assert outcome.report.unknown == {"item.type=hologram": 1}
        assert outcome.only.extras["not_read"]["generated_items.raw_item.of"] == ["a bed"]

    def test_a_state_in_which_nothing_happened_is_refused(self, tmp_path: Path) -> None:
        state = {"$schemaVersion": "1.9", "original_input": "", "generated_items": []}
        with pytest.raises(ConvoscopeError, match="has no messages"):
            read(write_json(tmp_path / "state.json", state))


class TestManagedAgents:
    FERNS = EXAMPLES / "anthropic-managed-agents" / "ferns.jsonl"

    def test_what_was_sent_and_streamed_is_said_once(self) -> None:
        conversation = read(self.FERNS).only
        assert conversation.id == "sesn_fern"
        assert [line.partition("(")[0] for line in talk(conversation)] == [
            "user: Is the soil of the tree fern dry?",
            "read_sensor",
            '-> [{"type": "text", "text": "sensor 4 does not answer"}]',
            "assistant: I cannot tell: its sensor does not answer.",
        ]

    def test_a_result_of_the_client_is_not_talk_of_the_user(self) -> None:
        conversation = read(self.FERNS).only
        assert [turn.user_text for turn in conversation.turns] == ["Is the soil of the tree fern dry?"]
        (result,) = (event for event in conversation.timeline if isinstance(event, ToolResult))
        assert result.success is False

    def test_events_that_were_only_sent_are_read(self, tmp_path: Path) -> None:
        """A recording without the stream has no ids of events."""
        sent = [line for line in lines_of(self.FERNS) if not line[0].endswith("stream")]
        sent.append(["client", {"type": "agent.message", "content": [{"type": "text", "text": "Dry."}]}])
        said = talk(read(write_lines(tmp_path / "sent.jsonl", *sent)).only)
        assert said[0] == "user: Is the soil of the tree fern dry?"

    def test_tokens(self) -> None:
        assert measured(read(self.FERNS).only) == [{"prompt_tokens": 51, "completion_tokens": 18}]


class TestClaudeAgentSDK:
    RECIPES = EXAMPLES / "claude-agent-sdk" / "recipes.jsonl"

    def test_the_talk_of_a_sub_agent_is_not_the_users(self) -> None:
        conversation = read(self.RECIPES).only
        assert conversation.id == "sess-recipes"
        assert [
            line for line in talk(conversation) if ": " in line and not line.startswith(("->", "Task", "Search"))
        ] == [
            "user: Find a soup for the pumpkins, and a wine.",
            "assistant: I will ask for the soup first.",
            "orchestrator: Find a pumpkin soup.",
            "subagent: Pumpkin soup with ginger.",
            "assistant: Make pumpkin soup with ginger. I found no wine: the cellar list is closed.",
        ]
        assert [turn.user_text for turn in conversation.turns] == ["Find a soup for the pumpkins, and a wine."]

    def test_calls_of_a_sub_agent_are_its_own(self, tmp_path: Path) -> None:
        lines = lines_of(self.RECIPES)
        search = {"type": "tool_use", "id": "toolu_in", "name": "Search", "input": {"query": "pumpkin"}}
        lines[4]["message"]["content"].append(search)
        conversation = read(write_lines(tmp_path / "run.jsonl", *lines)).only
        calls = [event for event in conversation.timeline if isinstance(event, ToolCall)]
        assert [(call.name, call.caller) for call in calls] == [("Task", ""), ("Search", "subagent"), ("Search", "")]

    def test_a_message_that_a_client_sent_before_it_knew_the_session(self, tmp_path: Path) -> None:
        lines = lines_of(self.RECIPES)
        lines[1]["session_id"] = "default"
        moved = [lines[1], lines[0], *lines[2:]]
        conversation = read(write_lines(tmp_path / "run.jsonl", *moved)).only
        assert (conversation.id, talk(conversation)[0]) == (
            "sess-recipes",
            "user: Find a soup for the pumpkins, and a wine.",
        )

    def test_two_sessions_in_a_file_are_two_conversations(self, tmp_path: Path) -> None:
        """Their lines may be mixed."""
        one = lines_of(self.RECIPES)
        two = [json.loads(json.dumps(line).replace("sess-recipes", "sess-other")) for line in one]
        two[1]["message"]["content"] = "Something else, please."
        mixed = [line for pair in zip(one, two, strict=True) for line in pair]
        outcome = read(write_lines(tmp_path / "runs.jsonl", *mixed))
        assert outcome.ids == ["sess-recipes", "sess-other"]
        assert [talk(one)[0] for one in outcome.conversations] == [
            "user: Find a soup for the pumpkins, and a wine.",
            "user: Something else, please.",
        ]

    def test_results_of_tools_have_the_role_user_and_are_not_said(self) -> None:
        results = [event for event in read(self.RECIPES).only.timeline if isinstance(event, ToolResult)]
        assert [(one.name, one.success) for one in results] == [("Task", None), ("Search", False)]

    def test_how_it_ended(self) -> None:
        conversation = read(self.RECIPES).only
        outcome = conversation.outcome
        assert (outcome.finished, outcome.ended_reason, outcome.duration) == (True, "success", 9.5)
        assert conversation.extras["cost"] == 0.004

    def test_a_run_that_failed_has_an_error(self, tmp_path: Path) -> None:
        lines = lines_of(self.RECIPES)
        lines[-1] |= {"subtype": "error_during_execution", "is_error": True, "result": None}
        outcome = read(write_lines(tmp_path / "run.jsonl", *lines)).only.outcome
        assert (outcome.finished, outcome.error) == (False, "error_during_execution")


class TestGoogleADK:
    FOLDER = EXAMPLES / "google-adk"

    def test_a_result_with_the_role_user_is_not_said_by_the_user(self) -> None:
        conversation = read(self.FOLDER / "tides.json").only
        assert talk(conversation) == [
            "user: When is high water today?",
            'tide_table({"harbour": "Westport"})',
            '-> {"error": "no table for today"}',
            "assistant:tide_agent: I have no tide table for today.",
        ]
        assert len(conversation.turns) == 1

    def test_a_case_says_what_should_be_said(self) -> None:
        outcome = read(self.FOLDER / "harbour.test.json")
        assert outcome.ids == ["high-water"]
        assert counts(outcome.report.inferred) == {"reference_conversation": 1}

    def test_questions_with_expected_calls_call_nothing(self, tmp_path: Path) -> None:
        use = {"tool_name": "tide_table", "tool_input": {"harbour": "Westport"}}
        questions = [{"query": "When is high water?", "expected_tool_use": [use], "reference": "At four."}]
        conversation = read(write_json(tmp_path / "test.json", questions)).only
        assert talk(conversation) == ["user: When is high water?"]
        assert conversation.expected.ground_truth == "At four."
        assert [call.name for call in conversation.expected.tool_calls or ()] == ["tide_table"]

    def test_cases_keep_only_what_is_said_of_them(self, tmp_path: Path) -> None:
        whole = json.loads((self.FOLDER / "harbour.test.json").read_text())
        other = json.loads(json.dumps(whole["eval_cases"][0]).replace("high-water", "low-water"))
        whole["eval_cases"].append(other | {"remark": "of low water alone"})
        first, second = read(write_json(tmp_path / "set.test.json", whole)).conversations
        assert first.extras["not_read"].get("remark") is None
        assert second.extras["not_read"]["remark"] == ["of low water alone"]


class TestLangChain:
    MUSEUM = EXAMPLES / "langchain" / "museum.json"
    SAID = [
        "user: Where is the oldest clock?",
        'find_object({"what": "oldest clock"})',
        '-> "the catalogue is not reachable"',
        "assistant: Please ask at the desk: I cannot reach our catalogue.",
    ]

    def test_a_state_of_langgraph(self) -> None:
        conversation = read(self.MUSEUM).only
        assert (conversation.id, conversation.dimensions) == ("thread-museum", {"model": "elm-1"})
        assert talk(conversation) == self.SAID
        assert conversation.agent.instructions == "You guide visitors of the clock museum."

    def test_the_status_of_a_result_is_stated(self) -> None:
        (result,) = (event for event in read(self.MUSEUM).only.timeline if isinstance(event, ToolResult))
        assert (result.success, result.error) == (False, "the catalogue is not reachable")

    def test_tokens(self) -> None:
        assert measured(read(self.MUSEUM).only) == [
            {"prompt_tokens": 33, "completion_tokens": 12, "total_tokens": 45},
            {"prompt_tokens": 58, "completion_tokens": 13, "total_tokens": 71},
        ]

    @pytest.mark.parametrize("shape", ["dictionaries", "serialised", "lines"])
    def test_other_shapes_of_the_same_messages(self, shape: str, tmp_path: Path) -> None:
        messages = json.loads(self.MUSEUM.read_text())["values"]["messages"]
        names = {"system": "SystemMessage", "human": "HumanMessage", "ai": "AIMessage", "tool": "ToolMessage"}
        if shape == "dictionaries":
            messages = [{"type": one["type"], "data": one} for one in messages]
        elif shape == "serialised":
            path = ["langchain", "schema", "messages"]
            messages = [
                {"lc": 1, "type": "constructor", "id": [*path, names[one["type"]]], "kwargs": one} for one in messages
            ]
        write_in = write_lines(tmp_path / "m.jsonl", *messages)
        if shape != "lines":
            write_in = write_json(tmp_path / "m.json", {"messages": messages})
            (tmp_path / "m.jsonl").unlink()
        conversation = read(write_in).only
        assert talk(conversation) == self.SAID
        assert conversation.dimensions == {"model": "elm-1"}
