"""The quick way of reading plain records comes to the same as the tolerant one, and takes what it should."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from benchmarks.mutations import FORMATS, Format, disagreements, read_lines, tolerant

import convoscope
import convoscope.ingest.split
from convoscope.conversation import to_json
from convoscope.ingest.formats.openai.chat import READER as CHATS
from convoscope.ingest.formats.standard_data.reader import READER as ITEMS
from convoscope.ingest.reader import RawRecord, Reader
from convoscope.ingest.report import Notes
from support.logs import write
from support.tool_outcomes import stated

ITEM = {
    "task_id": "t1",
    "agent_name": "pedal",
    "agent_role": "support",
    "question": "Where is it?",
    "agent_response": "On its way.",
    "ground_truth": "On its way.",
    "tool_calls": [],
    "system_prompt": "You help.",
    "metadata": {"environment": "prod"},
}
CALL = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"code": "7"}'}}
TOOLS = [{"type": "function", "function": {"name": "find", "parameters": {"type": "object"}}}]
MESSAGES = [
    {"role": "system", "content": "You help."},
    {"role": "user", "content": "Where is it?", "timestamp": "2026-03-02T09:14:05Z"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"status": "ok"}'},
    {"role": "assistant", "content": "On its way."},
]
CHAT = {"id": "chat-1", "model": "m1", "messages": MESSAGES, "tools": TOOLS, "ground_truth": "On its way."}


@pytest.mark.parametrize("format", FORMATS, ids=[one.name for one in FORMATS])
def test_mutated_records_are_read_alike_both_ways(format: Format) -> None:
    for one in disagreements(format, count=2000, seed=11):
        assert one.typed == one.tolerant, one.text


def taken(reader: Reader, record: dict[str, Any]) -> bool:
    """Whether the quick way takes a record; then it has to come to the same."""
    text = json.dumps(record).encode()
    read = read_lines(reader.name)
    assert read([text], True) == read([text], False)
    decoded = convoscope.ingest.split._decoder(reader.typed)
    try:
        value = decoded(text)
    except ValueError:
        return False
    return reader.build_typed(value, RawRecord("a:1", 1, ("a",), text), Notes()) is not None


def without(record: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in record.items() if key != name}


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"model_name": "m1"},  # unknown to the schema
        {"category": None},
        {"conversation_id": "c1"},
        {"turn_id": "s1"},
        {"input_text": "Where is it?", "agent_task": "Where is it?", "question": None},
        {"retrieval_query": ["it"], "retrieved_context": [["It is on its way."]]},
        {"tool_calls": [{"tool_name": "find", "parameters": {}, "call_id": "c1", "cost": 3}]},
        {"tools_available": [{"name": "find"}], "agent_exit": True},
        {"agent_response": ""},
        {"agent_name": ""},  # stays in the extras of the item
        {"task_id": 7},
        {"agent_role": 7},
        {"question": ["Where?"]},
        {"agent_task": "Another?"},  # beside the question
        {"input_text": "Another?"},
        {"novaeval_item_type": "Agent"},
        {"tool_calls": [{"name": "find"}]},
        {"retrieved_context": ["It is on its way."]},
        {"metadata": '{"environment": "prod"}'},
        {"turn_position": 2**63},
        {"conversation_id": 7},
        {"conversation_context": {"turns": []}},
        {"speaker": "user", "message": "Hello"},
        {"stt": {"text": "Hello"}},
        {"tts.text": "Hello"},
        {"llm_metrics": [{"ttft": 0.2}]},
    ],
)
def test_single_items_take_the_quick_way(more: dict[str, Any]) -> None:
    assert taken(ITEMS, ITEM | more)


def test_items_in_a_document_do_not() -> None:
    assert not taken(ITEMS, ITEM | {"items": [{"agent_task": "Where?"}]})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"tools": []},
        {"metadata": {"environment": "prod"}},
        {"messages": MESSAGES[1:]},
        {"messages": [{"role": "user", "content": "Hello", "timestamp": 1700000000}]},
        {"messages": [{"role": "user", "content": "Hello", "timestamp": 3.5, "name": "Ann", "id": "m1"}]},
        {"messages": [{"role": "tool", "content": "Error: not found", "name": "find"}]},
        {"messages": [{"role": "developer", "content": "You help."}]},
        {"messages": [{"role": "assistant", "content": "Hello", "name": "Ann"}]},
    ],
)
def test_plain_chats_take_the_quick_way(more: dict[str, Any]) -> None:
    assert taken(CHATS, CHAT | more)


def message(**facts: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hello", **facts}]}


@pytest.mark.parametrize(
    "more",
    [
        {"category": "parcels"},  # unknown, and noted
        {"conversation_id": "c1"},  # beside the id, which is then left over
        {"id": 7},
        {"model": ""},
        {"tools": None},
        {"ground_truth": ""},
        {"messages": []},
        {"metadata": {"flow": "parcels"}},
        {"metadata": {"conversation_id": "c1"}},
        {"instructions": "You help."},
        message(role="human"),
        message(role="function"),
        message(content=["Hello"]),
        message(timestamp="yesterday"),
        message(timestamp=True),
        message(created_at=1700000000),
        message(refusal="No."),
        message(tool_call_id="c1"),
        message(mood="good"),
        message(role="tool", tool_calls=[CALL]),
        message(role="tool", content='{"status": NaN}'),
        message(role="tool", content="[not JSON"),
        message(role="system", id="m1"),
        message(tool_calls=[{**CALL, "id": ""}]),
        message(tool_calls=[{**CALL, "mood": "good"}]),
        message(tool_calls=[{**CALL, "function": {"name": "find", "arguments": "{broken"}}]),
        message(tool_calls=[{**CALL, "function": {"name": "", "arguments": "{}"}}]),
        message(tool_calls=[without(CALL, "function")]),
        message(tool_calls=[{**CALL, "function": {}}]),
        {"messages": [{"role": "assistant", "content": None, "tool_calls": [{"id": "c1", "function": {}}]}]},
    ],
)
def test_chats_that_need_more_go_to_the_tolerant_way(more: dict[str, Any]) -> None:
    assert not taken(CHATS, CHAT | more)


@pytest.mark.parametrize("first", [b'"\xff"', b"[1e999]", b"[" + b"9" * 5000 + b"]"])
@pytest.mark.parametrize("name", [b'"tools"', b'"\\u0074ools"'])
def test_a_list_of_tools_that_stands_there_twice_is_looked_at_twice(first: bytes, name: bytes) -> None:
    text = b"{" + name + b": " + first + b", " + json.dumps(CHAT).encode()[1:]
    read = read_lines("openai-chat")
    assert read([text], True) == read([text], False)
    assert read([json.dumps(CHAT).encode(), text], True) == read([json.dumps(CHAT).encode(), text], False)


def test_an_id_that_is_there_twice_is_noted(tmp_path: Path) -> None:
    text = b'{"conversation_id": true, ' + json.dumps(ITEM | {"conversation_id": "c1"}).encode()[1:]
    (tmp_path / "items.jsonl").write_bytes(text)
    stream = convoscope.read(tmp_path)
    assert [one.id for one in stream] == ["c1"]
    assert stream.report.repaired["name_twice"].count == 1


def test_what_is_read_quickly_is_what_the_record_says(tmp_path: Path) -> None:
    (item,) = convoscope.read(write(tmp_path / "items.jsonl", json.dumps(ITEM | {"model_name": "m1"})))
    assert item.id == "t1"
    assert item.dimensions == {"agent": "pedal", "task_id": "t1"}
    assert [item.text(one) for one in item.utterances] == ["Where is it?", "On its way."]
    assert (item.agent.role, item.agent.instructions) == ("support", "You help.")
    assert item.items[0].expected.ground_truth == "On its way."
    assert item.items[0].extras == {
        "tool_calls": [],
        "metadata": {"environment": "prod"},
        "turn_id": None,
        "unknown": {"model_name": "m1"},
    }
    (chat,) = convoscope.read(write(tmp_path / "chats.jsonl", json.dumps(CHAT)))
    assert (chat.id, chat.dimensions, chat.agent.instructions) == ("chat-1", {"model": "m1"}, "You help.")
    assert [type(event).__name__ for event in chat.timeline] == ["Utterance", "ToolCall", "ToolResult", "Utterance"]
    assert chat.tool_calls[0].arguments == {"code": "7"}
    assert stated(chat.tool_results[1]) == (True, "")
    assert chat.agent.tools is not None
    assert [tool.name for tool in chat.agent.tools] == ["find"]


def test_the_tools_of_many_chats_are_made_once(tmp_path: Path) -> None:
    lines = [json.dumps(CHAT | {"id": f"chat-{number}"}) for number in range(3)]
    first, *others = convoscope.read(write(tmp_path / "chats.jsonl", "\n".join(lines)))
    assert all(one.agent.tools is first.agent.tools for one in others)


def test_a_reader_without_types_reads_as_ever(tmp_path: Path) -> None:
    path = write(tmp_path / "chats.jsonl", json.dumps(CHAT))
    quick = list(convoscope.read(path))
    with tolerant(CHATS):
        assert CHATS.typed is None
        assert list(convoscope.read(path)) == quick


def test_a_record_that_the_quick_way_trips_over_is_read_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def trip(*_: Any) -> None:
        raise KeyError("unforeseen")

    path = write(tmp_path / "chats.jsonl", json.dumps(CHAT))
    quick = list(convoscope.read(path))
    monkeypatch.setattr(type(CHATS), "build_typed", trip)
    assert list(convoscope.read(path)) == quick


def test_nan_that_was_put_into_what_was_read_is_refused(tmp_path: Path) -> None:
    for record in (ITEM, CHAT):
        (read,) = convoscope.read(write(tmp_path / "log.jsonl", json.dumps(record))).with_notes()
        assert read.exact
        assert to_json(read.conversation, finite=True) == to_json(read.conversation)
        read.conversation.extras["score"] = math.nan
        with pytest.raises(ValueError, match="holds NaN or infinity"):
            to_json(read.conversation)
