"""OpenAI chat messages: what becomes of each message."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, Marker, Participant, ToolResult
from support.logs import ASK, EXAMPLES, REPLY, Outcome, counts, read, story, write_json
from support.losses import lost
from support.tool_outcomes import stated

STORY = ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]


def messages(tmp_path: Path, *said: Any, **beside: Any) -> Outcome:
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
        assert event.extras == {"content": [picture]}

    def test_embedded_sound_is_noted_and_not_copied(self, tmp_path: Path) -> None:
        sound = {"type": "input_audio", "input_audio": {"data": "UklGRg" * 1000, "format": "wav"}}
        outcome = messages(tmp_path, {"role": "user", "content": [sound]}, REPLY)
        told = {"type": "input_audio", "input_audio": {"data": "(6000 characters left out)", "format": "wav"}}
        assert outcome.only.timeline[0].extras == {"content": [told]}
        assert outcome.report.ignored == {"embedded_data": 1}
        assert lost(sound, outcome.only) == []

    def test_embedded_data_is_found_inside_lists(self, tmp_path: Path) -> None:
        film = {"type": "video", "frames": ["x" * 5000, "short"]}
        outcome = messages(tmp_path, {"role": "user", "content": [film]})
        told = {"type": "video", "frames": ["(5000 characters left out)", "short"]}
        assert outcome.only.timeline[0].extras == {"content": [told]}
        assert outcome.report.ignored == {"embedded_data": 1}

    def test_the_sound_of_a_reply_is_noted_and_not_copied(self, tmp_path: Path) -> None:
        spoken = {"role": "assistant", "content": None, "audio": {"data": "x" * 5000, "transcript": "At five."}}
        outcome = messages(tmp_path, spoken)
        assert story(outcome.only) == ["assistant: At five."]
        assert outcome.only.timeline[0].extras == {"audio": {"data": "(5000 characters left out)"}}
        assert outcome.report.ignored == {"embedded_data": 1}

    def test_what_the_agent_played(self, tmp_path: Path) -> None:
        spoken = {"role": "assistant", "content": None, "audio": {"id": "audio_1", "transcript": "We close at five."}}
        (event,) = only(tmp_path, spoken).utterances
        assert event.intended is None
        assert event.spoken is not None
        assert (event.spoken.text, event.spoken.source) == ("We close at five.", "message.audio.transcript")

    @pytest.mark.parametrize("content", ["", " \n", None, []])
    def test_a_message_without_words_is_set_aside(self, tmp_path: Path, content: Any) -> None:
        """It is no turn and no empty utterance: a marker keeps its place, and the report counts it."""
        outcome = messages(tmp_path, ASK, {"role": "assistant", "content": content, "shift": "night"})
        assert story(outcome.only) == [STORY[0], "[message_without_text]"]
        assert counts(outcome.report.set_aside) == {"message_without_text": 1}
        (marker,) = outcome.only.timeline[1:]
        assert isinstance(marker, Marker)
        assert marker.value == {"role": "assistant", "shift": "night"}
        assert [one.role for one in outcome.only.participants] == ["user"]

    def test_only_messages_without_words_are_no_conversation(self, tmp_path: Path) -> None:
        write_json(tmp_path / "a.json", {"messages": [{"role": "user", "content": ""}]})
        outcome = read(tmp_path / "a.json", write_json(tmp_path / "b.json", {"messages": [ASK]}))
        assert len(outcome.conversations) == 1
        assert outcome.problem.message == "has no message that can be read"

    def test_content_of_a_strange_type_is_kept(self, tmp_path: Path) -> None:
        (event,) = only(tmp_path, {"role": "user", "content": 42}).timeline
        assert event.extras == {"content": [42]}


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

    def test_fields_that_hold_nothing_do_not_make_a_call_an_utterance(self, tmp_path: Path) -> None:
        empty = {"content": None, "refusal": None, "annotations": []}
        asks = {"role": "assistant", **empty, "tool_calls": [calling("hours", "{}")]}
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
            ('{"error": {"code": 7}}', False, '{"code":7}'),
            ('{"error": null, "open": true}', None, ""),
            ('{"success": false, "error": "locked"}', False, "locked"),
            ('{"success": true}', True, ""),
            ('{"ok": false}', False, ""),
            ('{"success": "no"}', False, ""),
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
        assert (result.success, result.error) == (None, "")  # the log says nothing beside the result
        assert stated(result) == (success, error)

    def test_an_answer_that_is_an_object_is_its_own_result(self, tmp_path: Path) -> None:
        answer = {"success": False, "error": "locked"}
        result = answered(tmp_path, answer)
        assert (result.result, *stated(result)) == (answer, False, "locked")

    def test_a_repair_inside_an_answer_is_named(self, tmp_path: Path) -> None:
        outcome = messages(tmp_path, ASK, {"role": "tool", "content": '{"price": NaN}'})
        assert story(outcome.only)[1:] == ['-> {"price": null}']
        assert outcome.report.repaired["not_a_number"].examples == ["log.json in a tool's JSON"]


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

    @pytest.mark.parametrize("role", ["agent", "bot", "ai", "model"])
    def test_other_words_for_the_agent_are_an_inference(self, tmp_path: Path, role: str) -> None:
        outcome = messages(tmp_path, ASK, {**REPLY, "role": role})
        assert story(outcome.only) == STORY
        assert outcome.report.inferred[f"role_{role}_is_assistant"].count == 1

    def test_a_message_may_say_that_it_is_one(self, tmp_path: Path) -> None:
        assert story(only(tmp_path, ASK, {**REPLY, "type": "message"})) == STORY

    @pytest.mark.parametrize(
        "odd",
        [
            {"note": "tape changed"},
            {"role": [], "content": "x"},
            {"role": {"name": "user"}, "content": "x"},
            {"role": "narrator", "content": "x"},
            "tape changed",
            7,
            None,
            [],
        ],
    )
    def test_what_is_no_message_is_kept_as_a_marker_and_counted(self, tmp_path: Path, odd: Any) -> None:
        outcome = messages(tmp_path, ASK, odd, REPLY)
        assert story(outcome.only) == [STORY[0], "[not_a_message]", *STORY[1:]]
        marker = outcome.only.timeline[1]
        assert isinstance(marker, Marker)
        assert marker.value == odd
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
