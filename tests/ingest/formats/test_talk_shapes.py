"""Desks, messengers, data sets and trajectories in further shapes: what is said, called and answered, and by whom."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import ASSISTANT, ToolCall, Utterance, to_json
from convoscope.errors import NothingReadable
from support.logs import counts, read, story, talk, write, write_json, write_lines, write_text


def chatwoot(id: int, text: str | None, kind: int = 1, **more: Any) -> dict[str, Any]:
    sender = {"name": "Ivo" if kind == 0 else "Lena"}
    ids = {"id": id, "inbox_id": 5, "conversation_id": 43}
    return {**ids, "content": text, "message_type": kind, "created_at": 1700000000 + id, "sender": sender, **more}


class TestChatwoot:
    def test_a_deleted_message_is_not_said_and_a_rating_is_a_label(self, tmp_path: Path) -> None:
        answer = {"submitted_values": {"csat_survey_response": {"rating": 4}}}
        messages = [
            chatwoot(1, "Is it open?", 0),
            chatwoot(2, "This message was deleted", content_attributes={"deleted": True}),
            chatwoot(3, "Yes."),
            chatwoot(4, "Please rate us", 3, content_type="input_csat", content_attributes=answer),
        ]
        log = {"id": 43, "status": "resolved", "labels": ["hours"], "messages": messages}
        only = read(write_json(tmp_path / "c.json", log)).only
        assert story(only) == ["user:Ivo: Is it open?", "[message_deleted]", "assistant:Lena: Yes.", "[message_type_3]"]
        assert [(one.name, one.value) for one in only.labels] == [("csat", 4)]
        assert (only.outcome.final_status, only.extras["labels"]) == ("resolved", ["hours"])

    def test_a_message_that_was_not_delivered_says_so(self, tmp_path: Path) -> None:
        only = read(write_json(tmp_path / "c.json", [chatwoot(1, "Yes.", status="failed"), chatwoot(2, "No.")])).only
        assert [one.extras for one in only.utterances] == [{"status": "failed"}, {}]

    def test_events_without_a_message_are_ignored(self, tmp_path: Path) -> None:
        message = {**chatwoot(1, "Hello", 0), "event": "message_created", "message_type": "incoming"}
        outcome = read(write_lines(tmp_path / "hooks.jsonl", message, {"event": "conversation_resolved", "id": 43}))
        assert (len(outcome.conversations), outcome.report.problems) == (1, [])
        assert outcome.report.ignored["event_without_message"] == 1


def part(kind: str, body: str | None, author: str = "user", **more: Any) -> dict[str, Any]:
    return {"part_type": kind, "body": body, "author": {"type": author}, **more}


class TestIntercom:
    def test_a_ticket_and_a_conversation_without_a_source(self, tmp_path: Path) -> None:
        parts = [part("comment", "<p>Hello</p>"), part("comment", "<p>deleted</p>", redacted=True)]
        ticket = {"type": "ticket", "id": "t", "ticket_state": "resolved", "ticket_parts": {"ticket_parts": parts}}
        only = read(write_json(tmp_path / "t.json", ticket)).only
        assert (story(only), only.outcome.final_status) == (["user: Hello", "[part_redacted]"], "resolved")
        log = {"type": "conversation", "id": "c", "source": None, "conversation_parts": {"conversation_parts": parts}}
        assert story(read(write_json(tmp_path / "c.json", log)).only) == ["user: Hello", "[part_redacted]"]

    def test_what_the_desk_says_of_its_own_agent(self, tmp_path: Path) -> None:
        agent = {"rating": 3, "resolution_state": "confirmed_resolution"}
        held = {"conversation_parts": [part("comment", "Hello")]}
        log = {"type": "conversation", "id": "c", "source": None, "conversation_parts": held, "ai_agent": agent}
        labels = read(write_json(tmp_path / "c.json", log)).only.labels
        assert [(one.name, one.value) for one in labels] == [
            ("ai_agent_rating", 3),
            ("ai_agent_resolution", "confirmed_resolution"),
        ]


class TestWhatsApp:
    def test_one_file_may_hold_several_notations(self, tmp_path: Path) -> None:
        chat = """\
            [05.05.23, 15:48:11] Ann: One
            1/23/23, 3:19 AM - Bo: Two
            1/23/23, 3:22_PM - ~ Ann: Three
            [2023/5/4, 16:13:23] Bo: Four
            2023/05/04, 下午5:00 - Ann: Five
            """
        only = read(write_text(tmp_path / "chat.txt", chat)).only
        said = [(one.speaker, only.text(one)) for one in only.utterances]
        assert said == [("unknown:Ann", "One"), ("unknown:Bo", "Two"), ("unknown:Ann", "Three"), ("unknown:Bo", "Four"),
                        ("unknown:Ann", "Five")]  # fmt: skip
        hours = [int(one.time.at) // 3600 % 24 for one in only.utterances if one.time]
        assert hours == [15, 3, 15, 16, 17]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("This message was deleted", "[message_deleted]"),
            ("\u200eDiese Nachricht wurde gelöscht.", "[message_deleted]"),
            ("IMG-20240105-WA0001.jpg (file attached)", "[message_without_text]"),
            ("fine <This message was edited>", "unknown:Bo: fine"),
            ("I deleted it", "unknown:Bo: I deleted it"),
        ],
    )
    def test_what_the_program_wrote_is_not_said(self, text: str, told: str, tmp_path: Path) -> None:
        lines = f"15/08/2023, 21:12 - Ann: Hello\n15/08/2023, 21:13 - Bo: {text}\n"
        assert story(read(write(tmp_path / "chat.txt", lines)).only)[1] == told


def test_encrypted_chats_of_facebook(tmp_path: Path) -> None:
    messages = [
        {"senderName": "Ann", "text": "Hello", "timestamp": 1700000001000, "isUnsent": False},
        {"senderName": "Bo", "text": "", "timestamp": 1700000000000, "isUnsent": True},
    ]
    only = read(write_json(tmp_path / "m.json", {"threadName": "ann", "messages": messages})).only
    assert (only.id, story(only)) == ("ann", ["[message_deleted]", "unknown:Ann: Hello"])


class TestSubtitles:
    def test_a_line_of_blanks_behind_the_times_is_no_end_of_a_cue(self, tmp_path: Path) -> None:
        first = "00:00.000 --> 00:02.000\n \nhello<00:01.000><c> you</c>"
        text = f"WEBVTT\n\n{first}\n\n00:02.000 --> 00:03.000\nhello you\nbye\n"
        outcome = read(write(tmp_path / "roll.vtt", text))
        assert story(outcome.only) == ["unknown: hello you", "unknown: hello you\nbye"]
        assert [one.time is not None for one in outcome.only.utterances] == [True, True]
        assert counts(outcome.report.inferred) == {"line_shown_again": 1}

    def test_a_short_arrow_is_no_speech(self, tmp_path: Path) -> None:
        text = "1\n00:00:00,500 -> 00:00:01,000\nHello.\n\n2\n00:00:02,000 --> 00:00:03,000\nBye.\n"
        only = read(write(tmp_path / "a.srt", text)).only
        assert story(only) == ["unknown: Hello.", "unknown: Bye."]
        assert [one.time.at for one in only.utterances if one.time] == [0.5, 2.0]


def test_a_chat_of_zoom_has_its_words_in_lines_of_their_own(tmp_path: Path) -> None:
    text = "09:12:01 From Ann Lee to Everyone:\n\tHello all\n\tand good morning\n09:12:31 From Bo to Everyone:\n\tHi\n"
    only = read(write(tmp_path / "chat.txt", text)).only
    assert story(only) == ["unknown:Ann Lee: Hello all\nand good morning", "unknown:Bo: Hi"]


SPOKEN = [
    {"event": "action", "name": "action_listen", "timestamp": 1},
    {"event": "user", "text": "Is it open?", "parse_data": {"intent": {"name": "ask_hours"}}, "timestamp": 2},
    {"event": "bot", "text": "Yes.", "timestamp": 3},
]


class TestRasa:
    @pytest.mark.parametrize("shape", ["events", "by sender", "broker", "store"])
    def test_events_in_all_shapes(self, shape: str, tmp_path: Path) -> None:
        if shape == "events":
            path = write_json(tmp_path / "s.json", SPOKEN)
        elif shape == "by sender":
            path = write_json(tmp_path / "s.json", {"s": {"events": SPOKEN}})
        elif shape == "broker":
            path = write_lines(tmp_path / "s.jsonl", *({"sender_id": "s", **event} for event in SPOKEN))
        else:
            rows = [{"sender_id": "s", "type_name": event["event"], "data": json.dumps(event)} for event in SPOKEN]
            path = write_lines(tmp_path / "s.jsonl", *rows)
        only = read(path).only
        assert (only.id, story(only)) == ("s", ["[event_action]", "user: Is it open?", "assistant: Yes."])
        assert only.utterances[0].extras["intent"] == {"name": "ask_hours"}

    def test_senders_are_kept_apart(self, tmp_path: Path) -> None:
        lines = [{"sender_id": id, **event} for event in SPOKEN for id in ("a", "b")]
        assert sorted(read(write_lines(tmp_path / "s.jsonl", *lines)).ids) == ["a", "b"]

    def test_a_person_who_took_over(self, tmp_path: Path) -> None:
        log = {"sender_id": "s", "events": [{"event": "agent", "text": "I take over."}]}
        assert story(read(write_json(tmp_path / "s.json", log)).only) == ["assistant:human agent: I take over."]


def test_the_whole_of_abcd_is_split_by_purpose(tmp_path: Path) -> None:
    chats = [{"convo_id": id, "original": [["agent", "Hi"], ["customer", "Hello"]]} for id in (1, 2, 3)]
    log = {"train": chats[:2], "dev": [], "test": chats[2:]}
    assert read(write_json(tmp_path / "abcd.json", log)).ids == ["1", "2", "3"]


class TestShareGPT:
    def test_calls_that_are_marked_in_a_text(self, tmp_path: Path) -> None:
        call = 'I look.\n<tool_call>\n{"name": "tide", "arguments": {"day": "today"}}\n</tool_call>'
        turns = [("human", "High water?"), ("gpt", call), ("tool", '<tool_response>{"at": "09:40"}</tool_response>')]
        log = [{"id": "x", "conversations": [{"from": sender, "value": text} for sender, text in turns]}]
        assert story(read(write_json(tmp_path / "s.json", log)).only) == [
            "user: High water?",
            "assistant: I look.\n",
            'tide({"day": "today"})',
            '-> {"at": "09:40"}',
        ]

    def test_a_mark_that_is_not_closed_is_text(self, tmp_path: Path) -> None:
        log = [{"conversations": [{"from": "gpt", "value": "<tool_call> is a mark"}]}]
        assert story(read(write_json(tmp_path / "s.json", log)).only) == ["assistant: <tool_call> is a mark"]

    def test_roles_and_contents(self, tmp_path: Path) -> None:
        turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
        assert story(read(write_json(tmp_path / "s.json", [{"conversations": turns}])).only) == [
            "user: Hi",
            "assistant: Hello",
        ]


class TestChatGPT:
    def nodes(self, *messages: dict[str, Any]) -> dict[str, Any]:
        last = len(messages) - 1
        nodes = {
            str(number): {
                "message": {"id": f"m{number}", "create_time": 1700000000.0 + number, **message},
                "parent": str(number - 1) if number else None,
                "children": [str(number + 1)] if number < last else [],
            }
            for number, message in enumerate(messages)
        }
        return {"id": "g", "mapping": nodes, "current_node": str(last)}

    def test_sources_code_pictures_and_memories(self, tmp_path: Path) -> None:
        picture = {"content_type": "image_asset_pointer", "asset_pointer": "file-service://f"}
        log = self.nodes(
            {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Draw the tide."]}},
            {
                "author": {"role": "assistant"},
                "recipient": "python",
                "content": {"content_type": "code", "text": "plot()"},
            },
            {
                "author": {"role": "tool", "name": "python"},
                "content": {"content_type": "multimodal_text", "parts": [picture]},
            },
            {
                "author": {"role": "assistant"},
                "content": {"content_type": "text", "parts": ["High at ten. \ue200cite\ue201"]},
            },
            {"author": {"role": "assistant"}, "content": {"content_type": "model_editable_context", "text": None}},
            {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": [""]}},
        )
        outcome = read(write_json(tmp_path / "c.json", [{**log, "gizmo_id": "g-tide"}]))
        assert talk(outcome.only) == [
            "user: Draw the tide.",
            'python({"input": "plot()"})',
            '-> [{"content_type": "image_asset_pointer", "asset_pointer": "file-service://f"}]',
            "assistant: High at ten.",
            "[content_model_editable_context]",
            "[message_without_text]",
        ]
        assert outcome.only.agent.name == "g-tide"
        assert outcome.report.ignored["mark_of_a_source"] == 1
        assert outcome.report.set_aside == outcome.report.repaired == {}

    def test_what_was_spoken_was_heard(self, tmp_path: Path) -> None:
        def spoken(role: str, text: str) -> dict[str, Any]:
            part = {"content_type": "audio_transcription", "text": text}
            return {"author": {"role": role}, "content": {"content_type": "multimodal_text", "parts": [part]}}

        log = self.nodes(spoken("user", "Is it high?"), spoken("assistant", "It is low."))
        user, agent = read(write_json(tmp_path / "c.json", [log])).only.utterances
        assert (user.heard and user.heard.text, agent.spoken and agent.spoken.text) == ("Is it high?", "It is low.")
        assert user.intended is agent.intended is None


def hands(id: int, source: str, **more: Any) -> dict[str, Any]:
    return {"id": id, "timestamp": "2025-02-01T00:14:10", "source": source, **more}


@pytest.mark.parametrize(
    ("text", "name"), [("<!DOCTYPE html>\n<html>", "an HTML page"), ("<?xml version='1.0'?><tt/>", "XML")]
)
def test_pages_and_xml_are_called_by_name(text: str, name: str, tmp_path: Path) -> None:
    with pytest.raises(NothingReadable, match=f"is {name}"):
        read(write(tmp_path / "messages.html", text))


def test_headings_in_what_a_doctor_says_are_no_speakers(tmp_path: Path) -> None:
    text = """\
        DOCTOR: I look at your eyes.
        REQUEST TEST: Blood
        REQUEST TEST: Sight
        PATIENT: Is it bad?
        LAB: Here it is.
        RESULTS: normal
        DOCTOR: It is not.
        """
    assert story(read(write_text(tmp_path / "visit.txt", text)).only) == [
        "assistant:DOCTOR: I look at your eyes.\nREQUEST TEST: Blood\nREQUEST TEST: Sight",
        "user:PATIENT: Is it bad?",
        "unknown:LAB: Here it is.\nRESULTS: normal",
        "assistant:DOCTOR: It is not.",
    ]


class TestOpenHands:
    HISTORY = (
        hands(0, "user", action="message", args={"content": "Count the words."}),
        hands(1, "agent", action="think", args={"thought": "wc can do that"}),
        hands(2, "agent", cause=1, observation="think", content="logged"),
    )

    def test_each_line_of_an_evaluation_is_a_conversation(self, tmp_path: Path) -> None:
        lines = [
            {"instance_id": "one", "history": self.HISTORY, "test_result": {"report": {"resolved": True}}},
            {"instance_id": "two", "history": self.HISTORY, "error": "the agent is stuck"},
        ]
        first, second = read(write_lines(tmp_path / "output.jsonl", *lines)).conversations
        assert (first.id, second.id) == ("one", "two")
        assert [(one.name, one.value) for one in first.labels] == [("resolved", True)]
        assert (first.outcome.error, second.outcome.error) == ("", "the agent is stuck")

    def test_what_a_user_runs_is_a_call_of_the_user(self, tmp_path: Path) -> None:
        events = [
            hands(0, "user", action="initialize", args={"LLM_MODEL": "m"}),
            hands(1, "user", action="start", args={"task": "Count the words."}),
            hands(2, "user", action="run", args={"command": "wc"}),
        ]
        only = read(write_json(tmp_path / "t.json", events)).only
        assert story(only) == ["[event_initialize]", "user: Count the words.", 'run({"command": "wc"})']
        (call,) = [one for one in only.timeline if isinstance(one, ToolCall)]
        assert only.roles[call.caller] == "user"

    def test_a_thought_is_a_call_and_not_said(self, tmp_path: Path) -> None:
        only = read(write_json(tmp_path / "t.json", list(self.HISTORY))).only
        assert story(only)[1:] == ['think({"thought": "wc can do that"})', '-> "logged"']
        assert not [one for one in only.utterances if only.roles[one.speaker] == ASSISTANT]

    def test_the_last_words_of_the_sdk_are_said_once(self, tmp_path: Path) -> None:
        text = [{"type": "text", "text": "112 words."}]
        events = [
            {"kind": "MessageEvent", "source": "user", "llm_message": {"role": "user", "content": "Count."}},
            {
                "kind": "ActionEvent",
                "source": "agent",
                "tool_name": "terminal",
                "tool_call_id": "c1",
                "action": {"kind": "ExecuteBashAction", "command": "wc"},
            },
            {
                "kind": "ObservationEvent",
                "source": "environment",
                "tool_name": "terminal",
                "tool_call_id": "c1",
                "observation": {"kind": "ExecuteBashObservation", "content": text},
            },
            {"kind": "ActionEvent", "source": "agent", "action": {"kind": "FinishAction", "message": "112 words."}},
            {"kind": "ObservationEvent", "source": "environment", "observation": {"kind": "FinishObservation"}},
        ]
        only = read(write_json(tmp_path / "sdk.json", events)).only
        assert story(only)[2:] == ['-> "112 words."', "assistant: 112 words.", "[event_ObservationEvent]"]
        assert only.outcome.finished is True


def test_a_trajectory_of_swe_agent_without_a_history(tmp_path: Path) -> None:
    step = {
        "action": "ls\n",
        "observation": "a.txt",
        "response": "I list the files.\n```\nls\n```",
        "thought": "I list",
    }
    outcome = read(write_json(tmp_path / "old.traj", {"trajectory": [step], "info": {"exit_status": "exit_cost"}}))
    assert story(outcome.only) == ["assistant: I list the files.\n```\nls\n```", "user: a.txt"]
    assert counts(outcome.report.inferred) == {"messages_of_steps": 1}


def test_a_result_of_a_sub_agent_names_its_trajectory(tmp_path: Path) -> None:
    call = {"tool_call_id": "c", "function_name": "delegate", "arguments": {}}
    result = {"source_call_id": "c", "subagent_trajectory_ref": [{"session_id": "inner"}]}
    step = {"step_id": 1, "source": "agent", "message": "", "tool_calls": [call], "observation": {"results": [result]}}
    log = {"schema_version": "ATIF-v1.6", "session_id": "s", "agent": {"name": "a"}, "steps": [step]}
    only = read(write_json(tmp_path / "t.json", {**log, "final_metrics": {"total_cost_usd": 0.5}})).only
    assert story(only)[-1] == '-> {"subagent_trajectory_ref": [{"session_id": "inner"}]}'
    assert only.extras["final_metrics"] == {"total_cost_usd": 0.5}


class TestTau2:
    def simulation(self, **more: Any) -> dict[str, Any]:
        messages = [
            {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}}]},
            {"role": "tool", "id": "u", "content": "on", "requestor": "user", "error": False},
            {"role": "user", "content": "It works."},
        ]
        ended = {"termination_reason": "user_stop", "duration": 2.5}
        return {"id": "s", "task_id": "t", "trial": 0, "mode": "half_duplex", "messages": messages, **ended, **more}

    def test_a_run_that_wrote_nothing_is_a_failure_and_no_run_of_voice(self, tmp_path: Path) -> None:
        broken = self.simulation(id="b", messages=[], termination_reason="agent_error", reward_info={"reward": 0.0})
        log = {"simulations": [self.simulation(), broken]}
        outcome = read(write_json(tmp_path / "results.json", log))
        good, bad = outcome.conversations
        assert {one.source.format for one in outcome.conversations} == {"tau2-bench"}
        assert (bad.outcome.error, bad.timeline) == ("the run wrote no messages: agent_error", ())
        assert [(one.name, one.value) for one in bad.labels] == [("reward", 0)]
        assert (good.outcome.error, good.outcome.duration) == ("", 2.5)

    def test_a_file_of_broken_runs_alone(self, tmp_path: Path) -> None:
        log = {"simulations": [self.simulation(messages=[], termination_reason="infrastructure_error")]}
        assert read(write_json(tmp_path / "r.json", log)).only.source.format == "tau2-bench"

    def test_the_parts_of_the_reward_are_labels_and_what_was_checked_is_withheld(self, tmp_path: Path) -> None:
        checked = {
            "reward": 0.0,
            "reward_breakdown": {"DB": 1.0, "COMMUNICATE": 0.0},
            "db_check": {"db_match": True, "db_reward": 1.0},
            "action_checks": [{"action": {"name": "refund"}, "action_match": match} for match in (True, False)],
            "nl_assertions": [{"nl_assertion": "says the secret word", "met": None}],
        }
        only = read(write_json(tmp_path / "s.json", self.simulation(reward_info=checked))).only
        # One of two actions matched; an assertion without a verdict gives no share.
        assert {one.name: one.value for one in only.labels} == {
            "reward": 0,
            "reward.DB": 1,
            "reward.COMMUNICATE": 0,
            "db_match": True,
            "action_checks_met": 0.5,
        }
        assert b"secret" not in to_json(only)
        assert b"refund" not in to_json(only)

    def test_tools_of_the_agent_and_calls_of_the_user(self, tmp_path: Path) -> None:
        info = {"environment_info": {"domain_name": "telecom", "tool_defs": {"refund": {"name": "refund"}}}}
        only = read(write_json(tmp_path / "r.json", {"info": info, "simulations": [self.simulation()]})).only
        assert [tool.name for tool in only.agent.tools or ()] == ["refund"]
        assert [only.roles[one.caller] for one in only.timeline if isinstance(one, ToolCall)] == ["user"]
        assert only.tool_calls == ()  # of the agent


def test_a_simulation_without_a_task_is_refused(tmp_path: Path) -> None:
    log = {"simulations": [{"messages": [{"role": "user", "content": "Hi"}], "termination_reason": "user_stop"}]}
    with pytest.raises(NothingReadable):
        read(write_json(tmp_path / "r.json", log))


def test_texts_are_utterances(tmp_path: Path) -> None:
    """Of Taskmaster's third set: a call of the assistant comes before the words that rest on it."""
    api = {"name": "find", "args": [], "response": []}
    turns = [
        {"index": number, "speaker": who, "text": who, "apis": [api]}
        for number, who in enumerate(("user", "assistant"))
    ]
    only = read(write_json(tmp_path / "t.json", [{"conversation_id": "d", "utterances": turns}])).only
    kinds = [type(event).__name__ for event in only.timeline]
    assert kinds == [Utterance.__name__, "ToolCall", "ToolResult", "ToolCall", "ToolResult", Utterance.__name__]


SAID = {"role": "user", "content": "Hi"}
EMPTY = {
    "sharegpt": [{"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": ""}]}],
    "taskmaster": [
        {
            "conversation_id": "d",
            "utterances": [
                {"index": 0, "speaker": "user", "text": "Hi"},
                {"index": 1, "speaker": "assistant", "text": ""},
            ],
        }
    ],
    "atif": {
        "schema_version": "ATIF-v1.6",
        "steps": [{"step_id": 1, "source": "user", "message": "Hi"}, {"step_id": 2, "source": "agent", "message": ""}],
    },
    "swe-agent": {"trajectory": [], "history": [SAID, {"role": "assistant", "content": ""}]},
    "tau2-bench": {
        "task_id": "t",
        "termination_reason": "user_stop",
        "messages": [SAID, {"role": "assistant", "content": None, "tool_calls": None}],
    },
}


@pytest.mark.parametrize("format", EMPTY)
def test_an_empty_message_is_counted(format: str, tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "log.json", EMPTY[format]))
    assert outcome.only.source.format == format
    assert story(outcome.only) == ["user: Hi", "[message_without_text]"]
    assert outcome.report.ignored["message_without_text"] == 1
