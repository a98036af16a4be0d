"""OpenAI chat messages: every shape they come in, and what becomes of each message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, Participant, ToolResult
from ingest.logs import ASK, CHAT, EXAMPLES, REPLY, Outcome, chat, read, story, write, write_json, write_lines
from ingest.losses import lost

STORY = ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]
FERRY_A = [{"conversation_id": "a", **ASK}, {"conversation_id": "a", **REPLY}]
FERRY_B = [{"conversation_id": "b", **ASK}, {"conversation_id": "b", "role": "assistant", "content": "Which museum?"}]


def messages(tmp_path: Path, *said: dict[str, Any], **beside: Any) -> Outcome:
    """Read one record with these messages."""
    return read(write_json(tmp_path / "log.json", {"messages": list(said), **beside}))


def only(tmp_path: Path, *said: dict[str, Any]) -> Conversation:
    return messages(tmp_path, *said).only


def calling(name: str, arguments: Any, id: str = "call_1") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def answered(tmp_path: Path, content: Any) -> ToolResult:
    """What becomes of a tool's answer."""
    (result,) = only(tmp_path, ASK, {"role": "tool", "tool_call_id": "call_1", "content": content}).timeline[1:]
    assert isinstance(result, ToolResult)
    return result


class TestShapes:
    def test_an_object_with_messages(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "monday.json", CHAT))
        assert story(outcome.only) == STORY
        assert outcome.only.id == "monday"  # the file's name, where the record brings no id
        assert outcome.report.files["monday.json"].format == "openai-chat"
        assert (outcome.only.source.format, outcome.only.source.files) == ("openai-chat", ("monday.json",))
        assert outcome.only.pipeline == "text"

    def test_a_pretty_printed_object(self, tmp_path: Path) -> None:
        assert story(read(write(tmp_path / "a.json", json.dumps(CHAT, indent=2))).only) == STORY

    def test_an_array_of_messages_is_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "monday.json", [ASK, REPLY]))
        assert story(outcome.only) == STORY
        assert outcome.only.id == "monday"
        assert (outcome.report.records_seen, outcome.report.records_used) == (2, 2)

    def test_an_array_of_objects(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "all.json", [chat("one"), CHAT, chat("three")]))
        assert outcome.ids == ["one", "all.json#2", "three"]
        assert story(outcome.conversations[1]) == STORY

    def test_lines_of_objects(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "all.jsonl", chat("one"), CHAT, {**CHAT, "id": 3}))
        assert outcome.ids == ["one", "all.jsonl:2", "3"]
        assert [one.source.record for one in outcome.conversations] == ["all.jsonl:1", "all.jsonl:2", "all.jsonl:3"]

    def test_lines_of_arrays(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "all.jsonl", [ASK, REPLY], [ASK]))
        assert outcome.ids == ["all.jsonl:1", "all.jsonl:2"]
        assert [story(one) for one in outcome.conversations] == [STORY, STORY[:1]]

    def test_lines_of_messages_without_an_id_are_one_conversation(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "monday.jsonl", ASK, REPLY))
        assert story(outcome.only) == STORY
        assert outcome.only.id == "monday"

    def test_lines_of_messages_with_a_conversation_id_are_joined_over_files(self, tmp_path: Path) -> None:
        write_lines(tmp_path / "1.jsonl", FERRY_A[0], FERRY_B[0])
        write_lines(tmp_path / "2.jsonl", FERRY_B[1], FERRY_A[1])
        outcome = read(tmp_path)
        assert outcome.ids == ["a", "b"]
        assert [story(one) for one in outcome.conversations] == [STORY, [STORY[0], "assistant: Which museum?"]]
        assert (outcome.report.records_seen, outcome.report.records_used) == (4, 4)

    def test_an_array_of_messages_with_conversation_ids(self, tmp_path: Path) -> None:
        outcome = read(write_json(tmp_path / "all.json", [FERRY_A[0], FERRY_B[0], FERRY_A[1], FERRY_B[1]]))
        assert sorted(outcome.ids) == ["a", "b"]

    def test_a_message_without_an_id_among_those_with_one(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "all.jsonl", *FERRY_A, REPLY))
        assert story(outcome.only) == STORY
        assert outcome.problem.line == 3
        assert outcome.problem.hint == "add a conversation_id"

    def test_a_request_and_its_response(self, tmp_path: Path) -> None:
        answer = {"id": "cmpl-1", "choices": [{"index": 0, "message": REPLY, "finish_reason": "stop"}]}
        record = {"conversation_id": "pair", "request": {"model": "llm-1", "messages": [ASK]}, "response": answer}
        outcome = read(write_lines(tmp_path / "proxy.jsonl", record, record))
        conversation = outcome.conversations[0]
        assert (conversation.id, story(conversation)) == ("pair", STORY)
        assert conversation.dimensions["model"] == "llm-1"
        assert lost(record, conversation) == []

    def test_a_batch_result(self, tmp_path: Path) -> None:
        body = {"choices": [{"message": REPLY}]}
        record = {"custom_id": "request-7", "response": {"status_code": 200, "body": body}}
        conversation = read(write_json(tmp_path / "batch.json", record)).only
        assert (conversation.id, story(conversation)) == ("request-7", STORY[1:])

    def test_the_first_choice_is_what_was_answered(self, tmp_path: Path) -> None:
        other = {"role": "assistant", "content": "No idea."}
        record = {"messages": [ASK], "choices": [{"message": REPLY}, {"message": other}]}
        outcome = read(write_json(tmp_path / "a.json", record))
        assert story(outcome.only) == STORY
        assert outcome.report.ignored == {"choices_beyond_the_first": 1}
        assert outcome.only.extras["choices"][1]["message"] == other


class TestContent:
    def test_text_parts_are_one_text(self, tmp_path: Path) -> None:
        parts = [{"type": "text", "text": "Look at this."}, {"type": "text", "text": "What is it?"}]
        assert story(only(tmp_path, {"role": "user", "content": parts})) == ["user: Look at this.\nWhat is it?"]

    def test_a_refusal_is_said(self, tmp_path: Path) -> None:
        part = {"role": "assistant", "content": [{"type": "refusal", "refusal": "I won't."}]}
        field = {"role": "assistant", "content": None, "refusal": "I can't."}
        assert story(only(tmp_path, part, field)) == ["assistant: I won't.", "assistant: I can't."]

    def test_a_picture_is_kept_beside_the_text(self, tmp_path: Path) -> None:
        picture = {"type": "image_url", "image_url": {"url": "uploads/vase.jpg", "detail": "low"}}
        (event,) = only(tmp_path, {"role": "user", "content": [{"type": "text", "text": "This?"}, picture]}).timeline
        assert event.extras == {"parts": [picture]}

    def test_embedded_sound_is_noted_and_not_copied(self, tmp_path: Path) -> None:
        sound = {"type": "input_audio", "input_audio": {"data": "UklGRg" * 1000, "format": "wav"}}
        outcome = messages(tmp_path, {"role": "user", "content": [sound]}, REPLY)
        told = {"type": "input_audio", "input_audio": {"data": "(6000 characters left out)", "format": "wav"}}
        assert outcome.only.timeline[0].extras == {"parts": [told]}
        assert outcome.report.ignored == {"embedded_data": 1}
        assert lost(sound, outcome.only) == []

    def test_what_the_agent_played(self, tmp_path: Path) -> None:
        spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1", "transcript": "We close at five."}}
        (event,) = only(tmp_path, spoken).utterances
        assert event.intended is None
        assert event.spoken is not None
        assert (event.spoken.text, event.spoken.source) == ("We close at five.", "message.audio.transcript")

    @pytest.mark.parametrize("content", ["", None, []])
    def test_a_message_without_words_keeps_its_place(self, tmp_path: Path, content: Any) -> None:
        assert story(only(tmp_path, ASK, {"role": "assistant", "content": content})) == [STORY[0], "assistant: "]

    def test_content_of_a_strange_type_is_kept(self, tmp_path: Path) -> None:
        (event,) = only(tmp_path, {"role": "user", "content": 42}).timeline
        assert event.extras == {"parts": [42]}


class TestTools:
    def test_calls_and_results(self, tmp_path: Path) -> None:
        asks = {"role": "assistant", "content": "One moment.", "tool_calls": [calling("hours", '{"day": "monday"}')]}
        answers = {"role": "tool", "tool_call_id": "call_1", "name": "hours", "content": '{"open": false}'}
        conversation = only(tmp_path, ASK, asks, answers, REPLY)
        assert story(conversation) == [
            STORY[0],
            "assistant: One moment.",
            'hours({"day": "monday"})',
            '-> {"open": false}',
            STORY[1],
        ]
        (call,) = conversation.tool_calls
        assert conversation.tool_results[call.seq].name == "hours"

    def test_a_call_without_words_is_no_utterance(self, tmp_path: Path) -> None:
        asks = {"role": "assistant", "content": None, "tool_calls": [calling("hours", "{}")]}
        assert story(only(tmp_path, ASK, asks)) == [STORY[0], "hours({})"]

    def test_results_find_their_calls_in_any_order(self, tmp_path: Path) -> None:
        asks = {"role": "assistant", "content": None, "tool_calls": [calling("f", "{}", "x"), calling("f", "{}", "y")]}
        answers = [{"role": "tool", "tool_call_id": id, "content": id} for id in ("y", "x")]
        conversation = only(tmp_path, ASK, asks, *answers)
        assert [conversation.tool_results[call.seq].result for call in conversation.tool_calls] == ["x", "y"]

    def test_legacy_function_calls(self, tmp_path: Path) -> None:
        asks = {"role": "assistant", "content": None, "function_call": {"name": "hours", "arguments": '{"day": 1}'}}
        answers = {"role": "function", "name": "hours", "content": "closed"}
        conversation = only(tmp_path, ASK, asks, answers)
        assert story(conversation) == [STORY[0], 'hours({"day": 1})', '-> "closed"']
        assert conversation.tool_results[1].result == "closed"  # found by its name

    def test_custom_tools_take_text(self, tmp_path: Path) -> None:
        custom = {"id": "c", "type": "custom", "custom": {"name": "run_sql", "input": "select 1"}}
        outcome = messages(tmp_path, ASK, {"role": "assistant", "content": None, "tool_calls": [custom]})
        (call,) = outcome.only.tool_calls
        assert (call.name, call.arguments, call.raw_arguments) == ("run_sql", None, "select 1")

    def test_arguments_that_are_not_json_are_kept_as_text(self, tmp_path: Path) -> None:
        asks = {"role": "assistant", "content": None, "tool_calls": [calling("hours", '{"day": "mon')]}
        outcome = messages(tmp_path, ASK, asks)
        (call,) = outcome.only.tool_calls
        assert (call.arguments, call.raw_arguments) == (None, '{"day": "mon')
        repair = outcome.report.repaired["tool_arguments_kept_as_text"]
        assert (repair.count, repair.examples) == (1, ["log.json hours: JSON is cut off at the end"])

    @pytest.mark.parametrize(
        ("arguments", "value"),
        [("", None), ("  ", None), ("{}", {}), ({"day": 1}, {"day": 1}), ("[1, 2]", [1, 2]), (None, None)],
    )
    def test_arguments(self, tmp_path: Path, arguments: Any, value: Any) -> None:
        asks = {"role": "assistant", "content": None, "tool_calls": [calling("f", arguments)]}
        (call,) = only(tmp_path, ASK, asks).tool_calls
        assert (call.arguments, call.raw_arguments) == (value, None)

    @pytest.mark.parametrize(
        ("content", "success", "error"),
        [
            ('{"error": "no such day"}', False, "no such day"),
            ('{"error_message": "no such day"}', False, "no such day"),
            ('{"error": {"code": 7}}', False, "{'code': 7}"),
            ('{"error": null, "open": true}', None, ""),
            ('{"success": false, "error": "locked"}', False, "locked"),
            ('{"success": true}', True, ""),
            ('{"ok": false}', False, ""),
            ('{"success": "no"}', None, ""),  # only true and false are a verdict
            ('{"is_error": true, "error": "down"}', False, "down"),
            ('{"is_error": false}', True, ""),
            ('{"status": "error"}', False, ""),
            ('{"status": "Failed"}', False, ""),
            ('{"status": "ok"}', True, ""),
            ('{"status": "cancelled"}', None, ""),  # the ferry's, perhaps, not the tool's
            ("Error: no such day\nat line 4", False, "Error: no such day"),
            ("Traceback (most recent call last):\n ...", False, "Traceback (most recent call last):"),
            ("No errors were found", None, ""),
            ("closed on Mondays", None, ""),
            ("[1, 2]", None, ""),
            ("{broken", None, ""),
        ],
    )
    def test_signs_of_success(self, tmp_path: Path, content: str, success: bool | None, error: str) -> None:
        result = answered(tmp_path, content)
        assert (result.success, result.error) == (success, error)

    def test_an_error_that_is_told_by_the_text_alone_is_an_inference(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, ASK, {"role": "tool", "content": "Error: no such day"})
        inferred = outcome.report.inferred["tool_error_from_text"]
        assert (inferred.count, inferred.examples) == (1, ["log.json Error: no such day"])


class TestSpeakers:
    def test_a_name_makes_a_participant(self, tmp_path: Path) -> None:
        conversation = only(tmp_path, {**ASK, "name": "ada"}, {**ASK, "name": "bo"}, REPLY)
        assert conversation.participants == (
            Participant("user:ada", "user", "ada"),
            Participant("user:bo", "user", "bo"),
            Participant("assistant", "assistant"),
        )
        assert [event.speaker for event in conversation.utterances] == ["user:ada", "user:bo", "assistant"]

    def test_the_system_prompt_is_the_agents_instructions(self, tmp_path: Path) -> None:
        prompt = {"role": "system", "content": "You keep the museum's desk."}
        more = {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]}
        conversation = only(tmp_path, prompt, more, ASK, REPLY)
        assert conversation.agent.instructions == "You keep the museum's desk.\n\nBe brief."
        assert story(conversation) == STORY

    def test_a_later_system_message_is_an_event(self, tmp_path: Path) -> None:
        later = {"role": "developer", "content": "The caller is a member."}
        conversation = only(tmp_path, ASK, later, REPLY)
        assert conversation.agent.instructions == ""
        assert story(conversation) == [STORY[0], "system: The caller is a member.", STORY[1]]

    def test_what_is_no_message_is_counted(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, ASK, {"note": "tape changed"}, REPLY)
        assert story(outcome.only) == [STORY[0], "[not_a_message]", *STORY[1:]]
        assert outcome.only.timeline[1].value == {"note": "tape changed"}
        assert outcome.report.ignored == {"not_a_message": 1}

    def test_ids_of_messages(self, tmp_path: Path) -> None:
        assert [event.id for event in only(tmp_path, {**ASK, "id": "m1"}, {**REPLY, "id": 2}).timeline] == ["m1", "2"]

    def test_unknown_keys_are_kept_and_counted(self, tmp_path: Path) -> None:
        call = {**calling("hours", "{}"), "cached": True}
        asks = {"role": "assistant", "content": "Wait.", "mood": "calm", "tool_calls": [call]}
        outcome = messages(tmp_path, {**ASK, "mood": "curious"}, asks)
        assert [event.extras for event in outcome.only.timeline] == [
            {"mood": "curious"},
            {"mood": "calm"},
            {"cached": True},
        ]
        assert outcome.report.unknown == {"message.mood": 2, "tool_call.cached": 1}


@pytest.mark.parametrize("name", ["support.jsonl", "single.json"])
def test_nothing_of_an_example_is_lost(name: str) -> None:
    text = (EXAMPLES / "openai-chat" / name).read_text()
    records = [json.loads(text)] if name.endswith(".json") else [json.loads(line) for line in text.splitlines()]
    conversations = list(convoscope.read(EXAMPLES / "openai-chat" / name))
    assert len(records) == len(conversations)
    for record, conversation in zip(records, conversations, strict=True):
        assert lost(record, conversation) == []


def test_nothing_of_the_messages_by_line_is_lost() -> None:
    path = EXAMPLES / "openai-chat" / "messages-by-line.jsonl"
    records = [json.loads(line) for line in path.read_text().splitlines()]
    for conversation in convoscope.read(path):
        mine = [record for record in records if record["conversation_id"] == conversation.id]
        assert len(mine) == len(conversation.timeline)
        assert lost(mine, conversation) == []


def test_a_loss_is_seen(tmp_path: Path) -> None:
    conversation = only(tmp_path, ASK, REPLY)
    assert lost({"messages": [ASK, {**REPLY, "mood": "calm"}], "n": 7}, conversation) == [
        ".messages[1].mood = 'calm'",
        ".n = 7",
    ]
