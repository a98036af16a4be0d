"""OpenAI chat messages: every shape they come in, and which messages make one conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Marker
from support.logs import ASK, CHAT, REPLY, chat, read, story, write, write_json, write_lines
from support.losses import lost

STORY = ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]
FERRY_A = [{"conversation_id": "a", **ASK}, {"conversation_id": "a", **REPLY}]
FERRY_B = [{"conversation_id": "b", **ASK}, {"conversation_id": "b", "role": "assistant", "content": "Which museum?"}]


def test_an_object_with_messages(tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "monday.json", CHAT))
    assert story(outcome.only) == STORY
    assert outcome.only.id == "monday"  # the file's name, where the record brings no id
    assert outcome.report.files["monday.json"].format == "openai-chat"
    assert (outcome.only.source.format, outcome.only.source.files) == ("openai-chat", ("monday.json",))
    assert outcome.only.pipeline == "text"


def test_a_pretty_printed_object(tmp_path: Path) -> None:
    assert story(read(write(tmp_path / "a.json", json.dumps(CHAT, indent=2))).only) == STORY


def test_an_array_of_messages_is_one_conversation(tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "monday.json", [ASK, REPLY]))
    assert story(outcome.only) == STORY
    assert outcome.only.id == "monday"
    assert (outcome.report.records_seen, outcome.report.records_used) == (2, 2)


def test_an_array_of_objects(tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "all.json", [chat("one"), CHAT, chat("three")]))
    assert outcome.ids == ["one", "all.json#2", "three"]
    assert story(outcome.conversations[1]) == STORY


def test_lines_of_objects(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "all.jsonl", chat("one"), CHAT, {**CHAT, "id": 3}))
    assert outcome.ids == ["one", "all.jsonl:2", "3"]
    assert [one.source.record for one in outcome.conversations] == ["all.jsonl:1", "all.jsonl:2", "all.jsonl:3"]


def test_lines_of_arrays(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "all.jsonl", [ASK, REPLY], [ASK]))
    assert outcome.ids == ["all.jsonl:1", "all.jsonl:2"]
    assert [story(one) for one in outcome.conversations] == [STORY, STORY[:1]]


def test_lines_of_messages_without_an_id_are_one_conversation(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "monday.jsonl", ASK, REPLY))
    assert story(outcome.only) == STORY
    assert outcome.only.id == "monday"


def test_lines_of_messages_with_a_conversation_id_are_joined_over_files(tmp_path: Path) -> None:
    write_lines(tmp_path / "1.jsonl", FERRY_A[0], FERRY_B[0])
    write_lines(tmp_path / "2.jsonl", FERRY_B[1], FERRY_A[1])
    outcome = read(tmp_path)
    assert outcome.ids == ["a", "b"]
    assert [story(one) for one in outcome.conversations] == [STORY, [STORY[0], "assistant: Which museum?"]]
    assert [one.source.files for one in outcome.conversations] == [("1.jsonl", "2.jsonl")] * 2
    assert (outcome.report.records_seen, outcome.report.records_used) == (4, 4)


def test_a_single_message_with_a_conversation_id(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "all.jsonl", FERRY_A[0]))
    assert (outcome.only.id, story(outcome.only)) == ("a", STORY[:1])


def test_the_id_of_a_message_is_not_the_id_of_its_conversation(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "all.jsonl", FERRY_A[0], {**REPLY, "id": "m2"}))
    # a row without an id belongs to the conversation that began above it
    assert outcome.ids == ["a"]
    assert story(outcome.only) == STORY
    rows = [FERRY_A[0], FERRY_B[0], FERRY_A[1], {**REPLY, "id": "m2"}]
    outcome = read(write_lines(tmp_path / "mixed.jsonl", *rows))
    # conversations that mix leave it open
    assert (outcome.problem.line, outcome.problem.hint) == (4, "add a conversation_id")


@pytest.mark.parametrize("foreign", [{"meta": 1}, [1, 2], "started", None])
def test_a_foreign_first_line_in_a_file_of_messages_is_a_marker(tmp_path: Path, foreign: Any) -> None:
    outcome = read(write_lines(tmp_path / "monday.jsonl", foreign, ASK, REPLY))
    assert story(outcome.only) == ["[not_a_message]", *STORY]
    marker = outcome.only.timeline[0]
    assert isinstance(marker, Marker)
    assert marker.value == foreign
    assert outcome.report.ignored == {"not_a_message": 1}
    assert outcome.report.problems == []


def test_an_array_of_messages_with_conversation_ids(tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "all.json", [FERRY_A[0], FERRY_B[0], FERRY_A[1], FERRY_B[1]]))
    assert sorted(outcome.ids) == ["a", "b"]


def test_a_message_without_an_id_among_those_with_one(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "all.jsonl", *FERRY_A, REPLY))
    assert story(outcome.only) == STORY
    assert outcome.problem.line == 3
    assert outcome.problem.hint == "add a conversation_id"


def test_a_request_and_its_response(tmp_path: Path) -> None:
    answer = {"id": "cmpl-1", "choices": [{"index": 0, "message": REPLY, "finish_reason": "stop"}]}
    record = {"conversation_id": "pair", "request": {"model": "llm-1", "messages": [ASK]}, "response": answer}
    outcome = read(write_lines(tmp_path / "proxy.jsonl", record, record))
    conversation = outcome.conversations[0]
    assert (conversation.id, story(conversation)) == ("pair", STORY)
    assert conversation.dimensions["model"] == "llm-1"
    assert lost(record, conversation) == []


def test_messages_in_the_input_and_in_the_output(tmp_path: Path) -> None:
    record = {"input": {"messages": [ASK]}, "output": {"messages": [REPLY]}}
    outcome = read(write_json(tmp_path / "a.json", record))
    assert story(outcome.only) == STORY
    assert outcome.report.unknown == {}


def test_a_batch_result(tmp_path: Path) -> None:
    body = {"choices": [{"message": REPLY}]}
    record = {"custom_id": "request-7", "response": {"status_code": 200, "body": body}}
    conversation = read(write_json(tmp_path / "batch.json", record)).only
    assert (conversation.id, story(conversation)) == ("request-7", STORY[1:])


def test_the_first_choice_is_what_was_answered(tmp_path: Path) -> None:
    other = {"role": "assistant", "content": "No idea."}
    record = {"messages": [ASK], "choices": [{"message": REPLY}, {"message": other}]}
    outcome = read(write_json(tmp_path / "a.json", record))
    assert story(outcome.only) == STORY
    assert outcome.report.ignored == {"choices_beyond_the_first": 1}
    assert outcome.only.extras["choices"][1]["message"] == other


def test_chats_behind_records_that_are_empty(tmp_path: Path) -> None:
    empty = [{"id": f"empty {number}", "messages": []} for number in range(12)]
    outcome = read(write_lines(tmp_path / "log.jsonl", *empty, {"id": "monday", **CHAT}))
    assert story(outcome.only) == STORY
    assert (outcome.report.records_seen, outcome.report.records_used) == (13, 1)
