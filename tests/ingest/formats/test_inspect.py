"""Inspect logs and τ²-bench results: epochs and trials, verdicts, failed tools, calls of the user, what is withheld."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ToolCall, ToolResult, to_json
from convoscope.errors import ConvoscopeError
from support.logs import EXAMPLES, counts, measured, read, talk, write_json

BINS = EXAMPLES / "inspect" / "bins.json"
TELECOM = EXAMPLES / "tau2-bench" / "telecom.json"


def log() -> Any:
    return json.loads(BINS.read_text())


class TestInspect:
    def test_each_epoch_is_a_trial_of_its_scenario(self) -> None:
        outcome = read(BINS)
        assert outcome.ids == ["paper-bin", "paper-bin/2"]
        dimensions = [one.dimensions for one in outcome.conversations]
        assert [(one["scenario_id"], one["trial"]) for one in dimensions] == [("paper-bin", "1"), ("paper-bin", "2")]
        assert {one["model"] for one in dimensions} == {"larch/larch-1"}

    def test_what_was_said_and_called(self) -> None:
        assert talk(read(BINS).conversations[0]) == [
            "user: When is the paper bin of Mill Lane emptied?",
            'bin_days({"street": "Mill Lane"})',
            '-> "paper: Thursday"',
            "assistant: On Thursday.",
        ]

    def test_letters_are_verdicts_of_another_rater(self) -> None:
        """C is correct: 1. I is incorrect: 0."""
        labels = [one.labels for one in read(BINS).conversations]
        assert [[(label.name, label.value, label.rater_kind) for label in of] for of in labels] == [
            [("match", 1.0, "external")],
            [("match", 0.0, "external")],
        ]

    def test_the_error_of_a_tool(self) -> None:
        results = [one for each in read(BINS).conversations for one in each.timeline if isinstance(one, ToolResult)]
        assert [(one.success, one.error) for one in results] == [(None, ""), (False, "no answer within 5 seconds")]

    def test_the_target_is_the_ground_truth(self) -> None:
        assert [one.expected.ground_truth for one in read(BINS).conversations] == ["Thursday", "Thursday"]

    def test_parts_of_a_score_and_scores_without_a_value(self, tmp_path: Path) -> None:
        whole = log()
        whole["samples"] = whole["samples"][:1]
        whole["samples"][0]["scores"] = {"judge": {"value": {"tone": 4, "facts": "C"}}, "none": {"value": None}}
        labels = read(write_json(tmp_path / "log.json", whole)).only.labels
        assert [(label.name, label.value) for label in labels] == [("judge.tone", 4), ("judge.facts", 1.0)]

    def test_attachments_are_put_back(self, tmp_path: Path) -> None:
        whole = log()
        sample = whole["samples"][0]
        sample["attachments"] = {"abc": "On Thursday, at six."}
        sample["messages"][-1]["content"] = "attachment://abc"
        whole["samples"] = [sample]
        assert talk(read(write_json(tmp_path / "log.json", whole)).only)[-1] == "assistant: On Thursday, at six."

    def test_an_archive_holds_the_same(self, tmp_path: Path) -> None:
        whole = log()
        with zipfile.ZipFile(tmp_path / "log.eval", "w", zipfile.ZIP_DEFLATED) as archive:
            header = {name: value for name, value in whole.items() if name != "samples"}
            archive.writestr("header.json", json.dumps(header))
            for sample in whole["samples"]:
                archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        unpacked, packed = read(BINS).conversations, read(tmp_path / "log.eval").conversations
        assert sorted(map(talk, packed)) == sorted(map(talk, unpacked))
        assert sorted(one.id for one in packed) == ["paper-bin", "paper-bin/2"]

    def test_a_sample_that_is_missing_and_a_member_that_is_not_read_are_noted(self, tmp_path: Path) -> None:
        whole = log()
        with zipfile.ZipFile(tmp_path / "log.eval", "w") as archive:
            archive.writestr("header.json", json.dumps(whole))
            archive.writestr("summaries.json", json.dumps([{"id": "paper-bin"}, {"id": "paper-bin"}]))
            archive.writestr("samples/paper-bin_epoch_1.json", json.dumps(whole["samples"][0]))
            archive.writestr("notes/paper-bin.json", json.dumps({"by": "hand"}))
        outcome = read(tmp_path / "log.eval")
        assert outcome.ids == ["paper-bin"]
        assert outcome.report.set_aside["sample_not_in_archive"].examples == ["log.eval:1 1 of 2"]
        assert outcome.report.ignored["member_not_read"] == 1

    def test_an_archive_that_breaks_off_is_a_problem(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "whole.zip", "w") as archive:
            archive.writestr("header.json", json.dumps(log()))
        data = (tmp_path / "whole.zip").read_bytes()
        (tmp_path / "cut.eval").write_bytes(data[: len(data) // 2])
        with pytest.raises(ConvoscopeError, match=r"cut\.eval"):
            read(tmp_path / "cut.eval")

    def test_a_sample_without_messages_does_not_stop_the_others(self, tmp_path: Path) -> None:
        whole = log()
        whole["samples"][0] |= {"messages": [], "output": None}
        outcome = read(write_json(tmp_path / "log.json", whole))
        assert outcome.ids == ["paper-bin/2"]
        assert "has no messages" in outcome.problem.message

    def test_a_log_without_samples_says_so(self, tmp_path: Path) -> None:
        with pytest.raises(ConvoscopeError, match="without samples"):
            read(write_json(tmp_path / "log.json", log() | {"samples": None}))


class TestTau2:
    def test_calls_of_the_user_are_not_the_agents(self) -> None:
        """Three calls: one of the agent, two of the user."""
        conversation = read(TELECOM).only
        calls = [event for event in conversation.timeline if isinstance(event, ToolCall)]
        assert [(call.name, call.caller) for call in calls] == [
            ("get_line", ""),
            ("check_flight_mode", "user"),
            ("toggle_flight_mode", "user"),
        ]

    def test_results_say_whether_the_tool_failed(self) -> None:
        results = [event for event in read(TELECOM).only.timeline if isinstance(event, ToolResult)]
        assert [(one.call_id, one.success) for one in results] == [
            ("call_1", True),
            ("call_2", True),
            ("call_3", False),
        ]

    def test_control_text_is_not_said(self) -> None:
        assert talk(read(TELECOM).only)[-2:] == [
            "user: It is on, and the switch is stuck. Thank you, I will go to a shop.",
            "[control_text]",
        ]

    def test_task_trial_reward_and_end(self) -> None:
        conversation = read(TELECOM).only
        assert conversation.id == "sim-31"
        assert conversation.dimensions == {
            "scenario_id": "no-signal",
            "trial": "0",
            "agent": "llm_agent",
            "model": "ash-2",
            "domain": "telecom",
        }
        (reward,) = conversation.labels
        assert (reward.name, reward.value, reward.rater_kind) == ("reward", 0.0, "external")
        assert (conversation.outcome.finished, conversation.outcome.ended_reason) == (True, "user_stop")

    def test_only_calls_of_the_agents_model_are_measured(self) -> None:
        assert measured(read(TELECOM).only) == [
            {"prompt_tokens": 310, "completion_tokens": 22, "cost": 0.002},
            {"prompt_tokens": 340, "completion_tokens": 12, "cost": 0.002},
        ]

    def test_the_right_actions_are_withheld(self, tmp_path: Path) -> None:
        results = json.loads(TELECOM.read_text())
        results["tasks"][0]["evaluation_criteria"]["actions"][0]["name"] = "secret_action"
        results["simulations"][0]["reward_info"]["info"] = "secret_reason"
        outcome = read(write_json(tmp_path / "results.json", results))
        assert b"secret_" not in to_json(outcome.only)
        assert outcome.report.ignored["reward_info_withheld"] == 1

    def test_a_task_that_is_missing_is_noted(self, tmp_path: Path) -> None:
        results = json.loads(TELECOM.read_text())
        results["tasks"][0]["id"] = "another"
        outcome = read(write_json(tmp_path / "results.json", results))
        assert counts(outcome.report.set_aside) == {"task_not_found": 1}
        assert outcome.only.scenario is None

    def test_a_simulation_that_broke_off_is_an_error(self, tmp_path: Path) -> None:
        results = json.loads(TELECOM.read_text())
        results["simulations"][0]["termination_reason"] = "agent_error"
        outcome = read(write_json(tmp_path / "results.json", results)).only.outcome
        assert (outcome.finished, outcome.error) == (False, "agent_error")
