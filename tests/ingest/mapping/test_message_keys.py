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


PLAIN = """
[conversation]
messages = "log"
{conversation}

[message]
role = "who"
text = "text"
{message}

{rest}
"""


def plainly(folder: Path, log: Any, conversation: str = "", message: str = "", rest: str = "") -> Conversation:
    (folder / "log.json").write_text(json.dumps({"log": log}))
    (folder / "map.toml").write_text(PLAIN.format(conversation=conversation, message=message, rest=rest))
    (only_one,) = convoscope.read(folder / "log.json", readers_from=folder / "map.toml")
    return only_one


class TestCallsAndResultsAsMessages:
    """An event stream: a kind says what an entry is."""

    LOG = (
        {"kind": "said", "who": "user", "text": "Where is it?"},
        {"kind": "call", "name": "track", "args": '{"no": 7}', "call_id": "c1"},
        {"kind": "answer", "call_id": "c1", "payload": {"day": "Monday"}, "failed": False},
        {"kind": "said", "who": "agent", "text": "It comes on Monday."},
    )
    KEYS = '[tool_call]\nwhere = { kind = "call" }\n[tool_result]\nwhere = { kind = "answer" }\n'

    def test_they_are_no_speech(self, tmp_path: Path) -> None:
        read = plainly(tmp_path, self.LOG, rest=self.KEYS + 'content = "payload"\nerror = "failed"')
        assert says(read) == ["Where is it?", "It comes on Monday."]
        (call,) = (one for one in read.timeline if isinstance(one, ToolCall))
        (result,) = (one for one in read.timeline if isinstance(one, ToolResult))
        assert (call.name, call.arguments, call.call_id) == ("track", {"no": 7}, "c1")
        assert (result.result, result.call_id, result.success) == ({"day": "Monday"}, "c1", True)

    def test_without_the_key_they_are_set_aside_and_not_lost(self, tmp_path: Path) -> None:
        read = plainly(tmp_path, self.LOG)
        assert [one.name for one in read.timeline if isinstance(one, Marker)] == ["message_without_text"] * 2


def test_results_beside_what_a_message_says(tmp_path: Path) -> None:
    seen = {
        "who": "agent",
        "text": "I look.",
        "calls": [{"id": "c", "tool": "track"}],
        "got": [{"call_id": "c", "output": 7}],
    }
    read = plainly(
        tmp_path, [{"who": "user", "text": "Where?"}, seen], message='tool_calls = "calls"\ntool_results = "got"'
    )
    assert [type(one).__name__ for one in read.timeline] == ["Utterance", "Utterance", "ToolCall", "ToolResult"]
    (result,) = (one for one in read.timeline if isinstance(one, ToolResult))
    assert (result.call_id, result.result) == ("c", 7)


def test_a_text_may_be_a_list_of_parts(tmp_path: Path) -> None:
    """Two texts are one utterance; a result in a message of the user is not what the user says."""
    use, result = {"type": "tool_use", "id": "u", "name": "f", "input": {}}, {"type": "tool_result", "tool_use_id": "u"}
    log = [
        {"who": "user", "text": [{"type": "text", "text": "One."}, {"type": "text", "text": "Two."}]},
        {"who": "agent", "text": [{"type": "text", "text": "I look."}, use]},
        {"who": "user", "text": [{**result, "content": "ok"}]},
        {"who": "agent", "text": "Done."},
    ]
    read = plainly(tmp_path, log)
    assert says(read) == ["One.\nTwo.", "I look.", "Done."]
    assert [one.role for one in read.participants] == ["user", "assistant"]
    assert len(read.tool_calls) == 1


def test_a_text_that_is_json_of_the_user_stays_a_text(tmp_path: Path) -> None:
    log = [{"who": "user", "text": '[{"a": 1}]'}, {"who": "agent", "text": '{"type": "text", "text": "no part"}'}]
    assert says(plainly(tmp_path, log)) == ['[{"a": 1}]', '{"type": "text", "text": "no part"}']


def test_each_entry_of_a_list_by_a_star(tmp_path: Path) -> None:
    frames = [{"call": {"name": "a"}}, {"slots": {}}, {"call": {"name": "b"}}]
    log = [{"who": "user", "text": "Go."}, {"who": "agent", "text": "Yes.", "frames": frames}]
    read = plainly(tmp_path, log, message='tool_calls = "frames.*.call"')
    assert [one.name for one in read.tool_calls] == ["a", "b"]
    # What was not taken is kept.
    assert read.utterances[-1].extras == {"frames": [{"slots": {}}]}


def test_a_star_may_be_a_name(tmp_path: Path) -> None:
    log = [{"who": "user", "*": "Hello."}, {"who": "agent", "*": "Hi."}]
    (tmp_path / "log.json").write_text(json.dumps({"log": log}))
    (tmp_path / "map.toml").write_text('[conversation]\nmessages = "log"\n[message]\nrole = "who"\ntext = "\\\\*"\n')
    (read,) = convoscope.read(tmp_path / "log.json", readers_from=tmp_path / "map.toml")
    assert says(read) == ["Hello.", "Hi."]


def test_instructions_and_what_a_system_writes_are_not_said(tmp_path: Path) -> None:
    log = [
        {"who": "prompt", "text": "Be kind."},
        {"who": "user", "text": "Hi."},
        {"who": "system", "text": "Ann left."},
    ]
    read = plainly(tmp_path, log, rest='[values.role]\nprompt = "instructions"')
    assert (read.agent.instructions, says(read)) == ("Be kind.", ["Hi."])
    (marker,) = (one for one in read.timeline if isinstance(one, Marker))
    assert (marker.name, marker.value) == ("system_message", {"who": "system", "text": "Ann left."})


def test_messages_may_be_an_object_of_messages(tmp_path: Path) -> None:
    assert says(plainly(tmp_path, {"t1": {"who": "user", "text": "Hi."}, "t2": {"who": "bot", "text": "Ho."}})) == [
        "Hi.",
        "Ho.",
    ]


def test_messages_may_be_a_transcript(tmp_path: Path) -> None:
    """What comes before the first speaker is kept, and is not said."""
    (tmp_path / "log.jsonl").write_text(
        json.dumps({"t": "Call of Monday\n[00:05] Agent: Hello.\n[00:07] Caller: Hi.\nIt is late."})
    )
    (tmp_path / "map.toml").write_text(
        '[conversation]\nmessages = "t"\n[message]\nrole = "speaker"\ntext = "text"\ntime = "at"\n'
    )
    (read,) = convoscope.read(tmp_path / "log.jsonl", readers_from=tmp_path / "map.toml")
    assert says(read) == ["Hello.", "Hi.\nIt is late."]
    assert [one.time.at for one in read.utterances if one.time] == [5.0, 7.0]
    (header,) = (one for one in read.timeline if isinstance(one, Marker))
    assert header.value["message"] == {"header": "Call of Monday"}


def test_a_flag_may_say_who_speaks(tmp_path: Path) -> None:
    log = [{"who": True, "text": "Hi."}, {"who": False, "text": "Ho."}]
    read = plainly(tmp_path, log, rest='[values.role]\ntrue = "user"\nfalse = "assistant"')
    assert [read.roles[one.speaker] for one in read.utterances] == ["user", "assistant"]


def test_calls_between_a_question_and_its_answer(tmp_path: Path) -> None:
    """A record that holds both sides has its calls before the answer."""
    (tmp_path / "log.jsonl").write_text(json.dumps({"q": "Where?", "a": "Here.", "calls": [{"name": "look"}]}))
    (tmp_path / "map.toml").write_text('[message]\ntexts = { user = "q", assistant = "a" }\ntool_calls = "calls"\n')
    (read,) = convoscope.read(tmp_path / "log.jsonl", readers_from=tmp_path / "map.toml")
    assert [type(one).__name__ for one in read.timeline] == ["Utterance", "ToolCall", "Utterance"]


def test_timed_messages_are_no_copies_of_each_other(tmp_path: Path) -> None:
    said = [("user", "Hi."), ("agent", "Ho."), ("user", "Bye.")]
    lines = [json.dumps({"who": who, "text": text, "timestamp": 1767348000 + n}) for n, (who, text) in enumerate(said)]
    (tmp_path / "log.jsonl").write_text("\n".join(lines))
    (tmp_path / "map.toml").write_text('[message]\nrole = "who"\ntext = "text"\ntime = "timestamp"\n')
    (read,) = convoscope.read(tmp_path / "log.jsonl", readers_from=tmp_path / "map.toml")
    assert says(read) == ["Hi.", "Ho.", "Bye."]
