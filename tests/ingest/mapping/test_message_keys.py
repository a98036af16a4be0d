"""Keys of a mapping that choose, order and interpret messages: where, time_unit, order, control, results, outcome."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.conversation import Conversation, Marker, ToolCall, ToolResult
from convoscope.errors import InputError
from convoscope.ingest.read import ReadStream

MAP = """
[conversation]
messages = "log"
id = "no"

[message]
role = "who"
text = "text"
time = "at"
{message}

[values.role]
desk = "assistant"
guest = "user"
machine = "tool"

[tool_call]
caller = "by"
{rest}
"""


def read(folder: Path, record: dict[str, Any], message: str = "", rest: str = "") -> ReadStream:
    (folder / "log.json").write_text(json.dumps(record))
    (folder / "map.toml").write_text(MAP.format(message=message, rest=rest))
    return convoscope.read(folder / "log.json", readers_from=folder / "map.toml")


def only(folder: Path, record: dict[str, Any], message: str = "", rest: str = "") -> Conversation:
    (conversation,) = read(folder, record, message, rest)
    return conversation


def says(conversation: Conversation) -> list[str]:
    return [one.meant() for one in conversation.utterances]


TALK = [
    {"who": "guest", "text": "Where is it?", "at": 1000},
    {"who": "desk", "text": "Ask him for the code.", "at": 1500, "private": True},
    {"who": "desk", "text": "On its way.", "at": 3000},
]


def test_only_messages_that_fit_are_read(tmp_path: Path) -> None:
    stream = read(tmp_path, {"no": 1, "log": TALK}, "where = { private = false }")
    (conversation,) = stream
    assert says(conversation) == ["Where is it?", "On its way."]  # without `private`, it counts as false
    assert stream.report.ignored == {"message_left_out": 1}


def test_a_number_does_not_fit_a_flag(tmp_path: Path) -> None:
    messages = [{"who": "guest", "text": "a", "kind": 1}, {"who": "desk", "text": "b", "kind": 2}]
    conversation = only(tmp_path, {"no": 1, "log": messages}, "where = { kind = [1, true] }")
    assert says(conversation) == ["a"]


def test_times_in_milliseconds(tmp_path: Path) -> None:
    conversation = only(tmp_path, {"no": 1, "log": TALK}, 'time_unit = "ms"')
    assert [one.time.at for one in conversation.utterances if one.time] == [1.0, 1.5, 3.0]


@pytest.mark.parametrize("order", ["time", "newest_first"])
def test_messages_that_are_newest_first(tmp_path: Path, order: str) -> None:
    conversation = only(tmp_path, {"no": 1, "log": TALK[::-1]}, f'order = "{order}"')
    assert says(conversation) == ["Where is it?", "Ask him for the code.", "On its way."]


def test_control_text_is_not_said(tmp_path: Path) -> None:
    messages = [{"who": "guest", "text": "/restart"}, {"who": "guest", "text": "Hello"}, {"who": "desk", "text": "Hi"}]
    conversation = only(tmp_path, {"no": 1, "log": messages}, 'control = ["/restart"]')
    assert says(conversation) == ["Hello", "Hi"]
    assert [one.value for one in conversation.timeline if isinstance(one, Marker)] == ["/restart"]


def test_a_message_of_a_tool_is_a_result(tmp_path: Path) -> None:
    messages = [
        {"who": "guest", "text": "Where is it?"},
        {"who": "desk", "text": "Let me look.", "calls": [{"name": "track", "arguments": {"no": 1}, "id": "c1"}]},
        {"who": "machine", "text": "no such parcel", "call_id": "c1", "bad": True},
        {"who": "desk", "text": "I cannot find it."},
    ]
    conversation = only(tmp_path, {"no": 1, "log": messages}, 'tool_calls = "calls"', '[tool_result]\nerror = "bad"')
    assert says(conversation) == ["Where is it?", "Let me look.", "I cannot find it."]
    [result] = [one for one in conversation.timeline if isinstance(one, ToolResult)]
    assert (result.call_id, result.result, result.success) == ("c1", "no such parcel", False)


def test_a_tool_of_the_user(tmp_path: Path) -> None:
    messages = [
        {"who": "guest", "text": "I restart it.", "calls": [{"name": "restart", "by": "guest"}]},
        {"who": "desk", "text": "Good.", "calls": [{"name": "note", "by": "desk"}]},
    ]
    conversation = only(tmp_path, {"no": 1, "log": messages}, 'tool_calls = "calls"')
    calls = [one for one in conversation.timeline if isinstance(one, ToolCall)]
    assert [(one.name, one.caller) for one in calls] == [("restart", "user"), ("note", "")]


def test_how_it_ended(tmp_path: Path) -> None:
    rest = '[outcome]\ncompleted = "done"\nended_reason = "why"\nduration = "secs"'
    conversation = only(tmp_path, {"no": 1, "log": TALK, "done": True, "why": "hung up", "secs": 12}, rest=rest)
    assert (conversation.outcome.completed, conversation.outcome.ended_reason) == (True, "hung up")
    assert conversation.outcome.duration == 12
    stream = read(tmp_path, {"no": 1, "log": TALK, "done": "maybe"}, rest=rest)
    assert next(iter(stream)).outcome.completed is None
    assert "completed_is_no_flag" in stream.report.set_aside


def test_an_unknown_unit_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Invalid enum value"):
        only(tmp_path, {"no": 1, "log": TALK}, 'time_unit = "minutes"')
