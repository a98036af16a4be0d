"""`convoscope view`: a conversation as metrics see it, through the real command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.command_line import convoscope

EXAMPLES = Path(__file__).parents[2] / "examples"
RUN = EXAMPLES / "voice-logs"
NORMAL = RUN / "records" / "normal"
VIEWS = ["metric-context", "trace", "timeline"]


def words(text: str) -> list[str]:
    """The lines, with one blank wherever columns are filled up."""
    return [" ".join(line.split()) for line in text.splitlines()]


class TestMetricContext:
    def test_prints_section_by_section(self) -> None:
        ended = convoscope("view", "metric-context", NORMAL)
        assert ended.code == 0
        printed = words(ended.out)
        assert printed[0] == "normal turns by exchange/1"
        titles = ["record", "scenario database", "agent", "turns", "tools", "conversation", "files"]
        assert [line for line in printed if line in titles] == titles
        assert "record_id normal" in printed
        assert "conversation_ended_reason goodbye" in printed
        assert "duration_seconds 17.4" in printed
        # from the dataset of the run that it lies in
        goal = "high_level_user_goal, decision_tree, information_required, starting_utterance"
        assert f"user_goal 4 keys: {goal}" in printed
        assert (
            "1 assistant 9.100–13.000 1.200 Yes, on Saturday we see animals from eight until noon. Shall I note a "
            "visit? Yes, on Saturday we see animals from 8 until noon. Shall I note a visit?"
        ) in printed

    def test_a_dataset_may_be_given_beside_the_call(self) -> None:
        told = convoscope("view", "metric-context", NORMAL, RUN / "dataset.jsonl", "--json").json
        assert told["user_goal"]["high_level_user_goal"] == "You want to know whether the clinic is open on Saturday."
        assert told["agent_role"] == "Night desk of an animal clinic"

    def test_json_is_the_whole_context(self) -> None:
        told = convoscope("view", "metric-context", NORMAL, "--json").json
        assert told["record_id"] == "normal"
        assert told["audio_timestamps_user_turns"] == {"1": [[4.4, 7.9]], "2": [[13.9, 16.2]]}
        assert told["latency_assistant_turns"] == {"1": 1.2}
        assert told["output_dir"] == str(NORMAL)
        assert "tool_called" not in told

    def test_the_rule_eva_has_times_as_logged_labels_and_more_fields(self) -> None:
        call = RUN / "records" / "agent-interrupts-new-turn"
        told = convoscope("view", "metric-context", call, "--turns", "eva", "--json").json
        assert told["audio_timestamps_user_turns"]["1"] == [[1770849124.1, 1770849126.8]]
        assert told["latency_assistant_turns"] == {"1": -0.05, "2": 2.4}
        assert told["intended_assistant_turns"]["1"].startswith("[assistant interrupts] I'm sorry")
        assert told["tool_called"] == ["leave_message"]

    def test_a_chat_has_one_too(self) -> None:
        told = convoscope("view", "metric-context", EXAMPLES / "openai-chat" / "single.json", "--json").json
        assert told["pipeline_type"] is None
        assert told["tools_called"] == ["list_loans", "renew_loan"]
        assert told["num_tool_calls"] == 4


class TestTrace:
    def test_prints_who_said_what_and_what_the_tools_did(self) -> None:
        ended = convoscope("view", "trace", RUN / "records" / "speech-before-tool")
        assert ended.code == 0
        assert words(ended.out) == [
            "speech-before-tool turns by exchange/1",
            "turn who type what",
            "0 assistant intended Tarnholm Animal Clinic, night desk. How can I help?",
            "1 user transcribed Please cancel the grooming for Pixel on Friday.",
            "1 assistant intended Let me look that up for you.",
            '1 tool tool_call cancel_appointment {"appointment_id":"AP-902"}',
            '1 tool tool_response cancel_appointment {"status":"success"}',
            "1 assistant intended Done, the grooming on Friday is cancelled.",
            "2 user transcribed Perfect, bye.",
        ]

    def test_by_another_rule(self) -> None:
        call = RUN / "records" / "late-recogniser"
        printed = words(convoscope("view", "trace", call, "--turns", "eva").out)
        assert printed[0] == "late-recogniser turns by eva/1"
        assert [line.partition(" ")[2] for line in printed if line.startswith("1 ")] == [
            "user transcribed I have a question about the bill.",
            "assistant intended [assistant interrupts] Which bill do you mean?",
            "user transcribed For Pixel's operation last month.",
            "assistant intended I'll ask the office to send you a copy. [speaker likely cut itself off]",
        ]

    def test_json_is_the_list(self) -> None:
        told = convoscope("view", "trace", NORMAL, "--json").json
        assert told[0] == {
            "role": "assistant",
            "content": "Tarnholm Animal Clinic, night desk. How can I help?",
            "type": "intended",
            "turn_id": 0,
        }
        assert [entry["turn_id"] for entry in told] == [0, 1, 1, 2]


class TestTimeline:
    def test_prints_every_event_with_its_time(self) -> None:
        printed = words(convoscope("view", "timeline", RUN / "records" / "empty-user-sound").out)
        assert printed[:2] == ["empty-user-sound turns by exchange/1", "s turn event who or what said or reported"]
        assert '0.000 0 marker connection_state {"state":"connected","details":{}}' in printed
        assert "11.100 1 marker noise" in printed
        # As meant, and as heard where that differs.
        assert "12.800 2 utterance user It's O W one one seven. ⇢ It's OW117." in printed

    def test_json_has_every_event_whole(self) -> None:
        told = convoscope("view", "timeline", NORMAL, "--json").json
        assert [event["type"] for event in told].count("utterance") == 4
        assert [(event["turn_id"], event["seconds"]) for event in told if event["type"] == "utterance"] == [
            (0, 0.9),
            (1, 4.4),
            (1, 9.1),
            (2, 13.9),
        ]


class TestWhichConversation:
    @pytest.mark.parametrize("view", VIEWS)
    def test_one_of_a_run_is_named_by_its_id(self, view: str) -> None:
        ended = convoscope("view", view, RUN, "--id", "move-appointment/trial_2")
        assert ended.code == 0
        heads = [line for line in ended.out.splitlines() if line.endswith("turns by exchange/1")]
        assert heads == ["move-appointment/trial_2  turns by exchange/1"]

    def test_without_an_id_all_follow_each_other(self) -> None:
        ended = convoscope("view", "trace", RUN)
        assert ended.out.count("turns by exchange/1") == 26

    def test_several_in_json_are_one_a_line(self) -> None:
        ended = convoscope("view", "metric-context", RUN / "records" / "move-appointment", "--json")
        told = [json.loads(line) for line in ended.out.splitlines()]
        assert [one["record_id"] for one in told] == ["move-appointment"] * 3

    @pytest.mark.parametrize("view", VIEWS)
    def test_an_unknown_id_is_bad_usage(self, view: str) -> None:
        ended = convoscope("view", view, NORMAL, "--id", "nobody")
        assert (ended.code, ended.out) == (2, "")
        assert "error: there is no conversation 'nobody'" in ended.err

    @pytest.mark.parametrize("view", VIEWS)
    def test_nothing_readable_is_bad_usage(self, view: str, tmp_path: Path) -> None:
        (tmp_path / "audit_log.json").write_text("")
        ended = convoscope("view", view, tmp_path)
        assert ended.code == 2
        assert "none of its logs holds a record" in ended.err

    def test_an_unknown_rule_is_bad_usage(self) -> None:
        ended = convoscope("view", "trace", NORMAL, "--turns", "lunar")
        assert ended.code == 2
        assert "unknown turn rule 'lunar'" in ended.err
        assert "exchange" in ended.err

    def test_what_could_not_be_read_is_a_warning(self, tmp_path: Path) -> None:
        shutil.copytree(NORMAL, tmp_path / "normal")
        (tmp_path / "bad").mkdir()
        (tmp_path / "bad" / "audit_log.json").write_text("")
        ended = convoscope("view", "trace", tmp_path)
        assert ended.code == 0
        assert "bad: none of its logs holds a record" in ended.err
