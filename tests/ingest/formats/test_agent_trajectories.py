"""Trajectories of agents at work: ATIF, SWE-agent, OpenHands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from convoscope.conversation import ComponentMetric, Conversation, ToolResult
from convoscope.views.tool_outcomes import tool_outcome
from support.logs import EXAMPLES, read, story, write_json


def told(conversation: Conversation) -> list[str]:
    """The story without figures and thoughts."""
    said = [one for one in conversation.timeline if not isinstance(one, ComponentMetric)]
    return [
        line for line in story(msgspec.structs.replace(conversation, timeline=tuple(said))) if line != "[reasoning]"
    ]


def results(conversation: Conversation) -> list[ToolResult]:
    return [event for event in conversation.timeline if isinstance(event, ToolResult)]


def usage(conversation: Conversation) -> list[dict[str, Any]]:
    return [dict(event.values) for event in conversation.timeline if isinstance(event, ComponentMetric)]


class TestATIF:
    def test_calls_find_their_results(self) -> None:
        only = read(EXAMPLES / "atif").only
        assert only.agent.instructions == "You keep the tide tables of the harbour office."
        assert told(only) == [
            "user: When is high water on Thursday?",
            "assistant: Let me look at the table.",
            'read_file({"path": "tides/week-10.csv"})',
            'read_file({"path": "tides/notices.txt"})',
            '-> "Thursday,05:12,17:38"',
            '-> "Error: no such file"',
            "assistant: High water on Thursday is at 5:12 and 17:38.",
        ]
        assert [(one.call_id, one.name) for one in results(only)] == [
            ("call_1", "read_file"),
            ("call_2", "read_file"),
        ]

    def test_a_text_that_begins_with_error_is_a_failure(self) -> None:
        outcomes = map(tool_outcome, results(read(EXAMPLES / "atif").only))
        assert [one.failed for one in outcomes] == [False, True]

    def test_tokens_and_costs_of_steps_not_of_the_whole(self) -> None:
        """The sums of `final_metrics` would count all tokens twice."""
        assert usage(read(EXAMPLES / "atif").only) == [
            {"prompt_tokens": 210, "completion_tokens": 48, "cost": 0.0004},
            {"prompt_tokens": 290, "completion_tokens": 19, "cost": 0.0003},
        ]

    def test_context_that_was_copied_is_not_said_again(self, tmp_path: Path) -> None:
        steps = [
            {"step_id": 1, "source": "user", "message": "Old", "is_copied_context": True},
            {"step_id": 2, "source": "user", "message": "New"},
        ]
        outcome = read(write_json(tmp_path / "t.json", {"schema_version": "ATIF-v1.6", "agent": {}, "steps": steps}))
        assert story(outcome.only) == ["user: New"]
        assert outcome.report.ignored["copied_context"] == 1

    def test_an_unknown_source_is_no_user(self, tmp_path: Path) -> None:
        steps = [{"step_id": 1, "source": "critic", "message": "Hm"}, {"step_id": 2, "source": "user", "message": "Hi"}]
        log = {"schema_version": "ATIF-v1.6", "agent": {}, "steps": steps}
        only = read(write_json(tmp_path / "t.json", log)).only
        assert [only.roles[one.speaker] for one in only.utterances] == ["unknown", "user"]


class TestSWEAgent:
    def test_a_demonstration_is_not_said(self) -> None:
        outcome = read(EXAMPLES / "swe-agent")
        assert story(outcome.only) == [
            "[demonstration]",
            "user: 1900 is taken for a leap year. Please repair it.",
            "assistant: I look at the function first.",
            'open({"path": "dates.py"})',
            '-> "def is_leap(year): return year % 4 == 0"',
            "assistant: Centuries are fixed now.",
            "submit({})",
        ]
        assert outcome.report.ignored["demonstration"] == 1
        assert results(outcome.only)[0].call_id == "call_a"

    @pytest.mark.parametrize(
        ("status", "finished"), [("submitted", True), ("submitted (exit_cost)", True), ("exit_cost", False), ("", None)]
    )
    def test_how_it_ended(self, status: str, finished: bool | None, tmp_path: Path) -> None:
        history = [{"role": "user", "content": "Repair it."}]
        log = {"trajectory": [], "history": history, "info": {"exit_status": status}}
        assert read(write_json(tmp_path / "a.traj", log)).only.outcome.finished is finished


class TestOpenHands:
    def test_states_are_no_speech_and_observations_are_results(self) -> None:
        only = read(EXAMPLES / "openhands").only
        assert told(only) == [
            "[event_change_agent_state]",
            "user: How many words has notes.txt?",
            "assistant: I count them.",
            'execute_bash({"command": "wc -w notes.txt", "is_input": false})',
            '-> "112 notes.txt"',
            "assistant: notes.txt has 112 words.",
            "user: And the longest one?",
            'run({"command": "longest notes.txt"})',
            '-> "longest: command not found"',
            "assistant: I could not find that out.",
        ]
        assert [one.success for one in results(only)] == [None, False]
        assert only.outcome.finished is True

    def test_tokens_of_a_response_count_once(self, tmp_path: Path) -> None:
        response = {"id": "r1", "model": "m", "usage": {"prompt_tokens": 10, "completion_tokens": 2}}
        metadata = {"function_name": "run", "model_response": response}
        log = [
            {"id": 1, "source": "user", "action": "message", "args": {"content": "Go"}},
            {"id": 2, "source": "agent", "action": "run", "args": {}, "tool_call_metadata": metadata},
            {"id": 3, "source": "agent", "action": "run", "args": {}, "tool_call_metadata": metadata},
            {
                "id": 4,
                "source": "agent",
                "observation": "run",
                "cause": 2,
                "content": "",
                "tool_call_metadata": metadata,
            },
        ]
        assert usage(read(write_json(tmp_path / "o.json", log)).only) == [{"prompt_tokens": 10, "completion_tokens": 2}]


@pytest.mark.parametrize("name", ["atif", "swe-agent", "openhands"])
def test_examples_are_read_without_a_problem(name: str) -> None:
    report = read(EXAMPLES / name).report
    assert (report.problem_count, report.set_aside) == (0, {})


class TestOpenHandsSDK:
    def test_events_that_name_their_kind(self, tmp_path: Path) -> None:
        call = {"id": "c1", "name": "terminal", "arguments": '{"command": "ls"}'}
        events: list[dict[str, Any]] = [
            {"kind": "SystemPromptEvent", "system_prompt": {"type": "text", "text": "You keep the boats."}},
            {"kind": "MessageEvent", "llm_message": {"role": "user", "content": [{"type": "text", "text": "List."}]}},
            {
                "kind": "ActionEvent",
                "thought": [{"type": "text", "text": "I look."}],
                "action": {"kind": "TerminalAction", "command": "ls"},
                "tool_name": "terminal",
                "tool_call_id": "c1",
                "tool_call": call,
            },
            {"kind": "AgentErrorEvent", "tool_name": "terminal", "tool_call_id": "c1", "error": "no shell"},
            {"kind": "ActionEvent", "action": {"kind": "FinishAction", "message": "No list."}, "tool_name": "finish"},
        ]
        only = read(write_json(tmp_path / "e.json", [{"source": "agent", **event} for event in events])).only
        assert only.agent.instructions == "You keep the boats."
        assert told(only)[:3] == ["user: List.", "assistant: I look.", 'terminal({"command": "ls"})']
        assert [(one.name, one.success) for one in results(only)] == [("terminal", False)]
        assert only.text(only.utterances[-1]) == "No list."
        assert only.outcome.finished is True

    @pytest.mark.parametrize("success", [True, False])
    def test_an_observation_says_whether_it_worked(self, success: bool, tmp_path: Path) -> None:
        events = [
            {"id": 1, "source": "agent", "action": "run", "args": {"command": "ls"}},
            {"id": 2, "source": "agent", "observation": "run", "content": "x", "cause": 1, "success": success},
        ]
        (result,) = results(read(write_json(tmp_path / "e.json", events)).only)
        assert result.success is success


def test_the_talk_with_a_subroutine_is_not_the_users(tmp_path: Path) -> None:
    turns = [("user", "main", "Fix it"), ("user", "helper", "Look here"), ("assistant", "helper", "Seen")]
    history = [{"role": role, "agent": agent, "content": text} for role, agent, text in turns]
    only = read(write_json(tmp_path / "t.traj", {"trajectory": [], "history": history})).only
    assert [only.roles[one.speaker] for one in only.utterances] == ["user", "orchestrator", "subagent"]


def test_a_trajectory_of_atif_without_a_session_has_its_own_id(tmp_path: Path) -> None:
    steps = [{"step_id": 1, "source": "user", "message": "Go"}]
    log = {"schema_version": "ATIF-v1.7", "trajectory_id": "t-7", "agent": {"name": "a"}, "steps": steps}
    assert read(write_json(tmp_path / "a.json", log)).only.id == "t-7"
