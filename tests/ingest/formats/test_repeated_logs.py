"""Logs that say a thing twice, or name it as something else: exchanges, realtime sessions, traces of Langfuse, Rasa."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import Conversation, Marker, ToolResult


def _read(path: Path, value: Any) -> tuple[list[Conversation], convoscope.ReadReport]:
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    stream = convoscope.read(path)
    return list(stream), stream.report


def _said(one: Conversation) -> list[tuple[str, str]]:
    return [(one.roles[said.speaker], said.meant()) for said in one.utterances]


def _exchange(messages: list[dict[str, str]], answer: str, status: int = 200) -> dict[str, Any]:
    body = {"choices": [{"message": {"role": "assistant", "content": answer}}]} if status == 200 else {"error": answer}
    return {
        "request": {"uri": "https://llm.example/chat", "body": json.dumps({"model": "m", "messages": messages})},
        "response": {"status": {"code": status}, "body": {"string": json.dumps(body)}},
    }


def test_an_exchange_with_the_same_words_and_no_answer_starts_over(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Is the bakery open?"}
    more = [asked, {"role": "assistant", "content": "Until six."}, {"role": "user", "content": "Thanks."}]
    value = {
        "interactions": [_exchange([asked], "Until noon."), _exchange([asked], "Until six."), _exchange(more, "Bye.")]
    }
    first, second = _read(tmp_path / "tape.json", value)[0]
    assert _said(first) == [("user", "Is the bakery open?"), ("assistant", "Until noon.")]
    assert [text for _, text in _said(second)] == ["Is the bakery open?", "Until six.", "Thanks.", "Bye."]
    assert first.id != second.id


def test_an_exchange_that_is_tried_again_does_not_start_over(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "Is the bakery open?"}
    value = {"interactions": [_exchange([asked], "overloaded", 503), _exchange([asked], "Until noon.")]}
    (one,) = _read(tmp_path / "tape.json", value)[0]
    assert _said(one) == [("user", "Is the bakery open?"), ("assistant", "Until noon.")]


def _added(id: str, role: str, text: str) -> dict[str, Any]:
    item = {
        "id": id,
        "type": "message",
        "role": role,
        "status": "completed",
        "content": [{"type": "text", "text": text}],
    }
    return {"type": "conversation.item.added", "item": item}


def _created(session: str) -> dict[str, Any]:
    return {"type": "session.created", "session": {"id": session, "model": "m"}}


def test_items_that_a_resumed_session_restates_are_read_once(tmp_path: Path) -> None:
    """What is said again after something new was said is said again."""
    before = [_created("s1"), _added("a", "user", "My word is cobalt."), _added("b", "assistant", "Noted.")]
    after = [_created("s2"), _added("c", "user", "My word is cobalt."), _added("d", "assistant", "Noted.")]
    new = [_added("e", "user", "Once more?"), {"type": "response.output_item.added", "item": {"id": "f"}}]
    again = [_added("g", "assistant", "Noted.")]
    lines = "\n".join(map(json.dumps, before + after + new + again))
    (one,), report = _read(tmp_path / "session.jsonl", lines)
    texts = [text for _, text in _said(one)]
    assert texts == ["My word is cobalt.", "Noted.", "Once more?", "Noted."]
    assert report.ignored["restated_item"] == 2


def _observation(
    id: str, kind: str, name: str, given: Any, answer: Any, second: int, parent: str = ""
) -> dict[str, Any]:
    return {
        "id": id,
        "traceId": "t",
        "type": kind,
        "name": name,
        "parentObservationId": parent or None,
        "startTime": f"2026-01-01T10:00:{second:02}Z",
        "endTime": f"2026-01-01T10:00:{second + 1:02}Z",
        "input": given,
        "output": answer,
    }


_LOAVES = {"id": "c1", "function": {"name": "count_loaves", "arguments": '{"kind": "rye"}'}}
_CALL = {"role": "assistant", "content": "", "tool_calls": [_LOAVES]}
_TOOL = {"role": "tool", "content": {"type": "function", "function": {"name": "count_loaves", "parameters": {}}}}


def test_a_span_named_like_a_called_tool_is_its_run(tmp_path: Path) -> None:
    asked = {"role": "user", "content": "How many rye loaves?"}
    result = {"type": "tool", "name": "count_loaves", "tool_call_id": "c1", "content": "7", "status": "success"}
    history = [asked, _CALL, {"role": "tool", "content": "7", "tool_call_id": "c1"}, _TOOL]
    observations = [
        _observation("1", "GENERATION", "llm", [asked, _TOOL], _CALL, 0),
        _observation("2", "SPAN", "count_loaves", {"kind": "rye"}, result, 2),
        _observation("3", "GENERATION", "llm", history, {"role": "assistant", "content": "Seven."}, 4),
    ]
    scores = [{"id": "s", "name": "tone", "value": 0.5, "source": "EVAL", "observationId": "3"}]
    (one,), _ = _read(tmp_path / "trace.json", {"trace": {"id": "t", "scores": scores}, "observations": observations})
    assert _said(one) == [("user", "How many rye loaves?"), ("assistant", "Seven.")]
    assert [(call.name, call.arguments) for call in one.tool_calls] == [("count_loaves", {"kind": "rye"})]
    assert [event.result for event in one.timeline if isinstance(event, ToolResult)] == ["7"]
    assert [tool.name for tool in one.agent.tools or ()] == ["count_loaves"]
    assert [(label.name, label.subject_kind, label.subject) for label in one.labels] == [("tone", "observation", "3")]


def test_a_call_inside_of_a_call_has_the_answer_of_the_outer_one(tmp_path: Path) -> None:
    """One program logs the messages and another, around it, the response. `None` is no answer."""
    response = {"choices": [{"message": {"role": "assistant", "content": "Seven."}}]}
    observations = [
        _observation("1", "GENERATION", "invoke", {"messages": ["role='user'"]}, json.dumps(response), 0),
        _observation("2", "GENERATION", "chat", "user: How many rye loaves?", "None", 0, parent="1"),
    ]
    (one,), _ = _read(tmp_path / "trace.json", {"trace": {"id": "t"}, "observations": observations})
    assert _said(one) == [("user", "How many rye loaves?"), ("assistant", "Seven.")]


def test_a_response_of_rasa_is_no_call_of_a_tool(tmp_path: Path) -> None:
    events = [
        {"event": "action", "name": "action_listen", "timestamp": 1.0},
        {"event": "user", "text": "Is it open?", "timestamp": 2.0},
        {"event": "action", "name": "action_look_up_hours", "timestamp": 3.0},
        {"event": "action", "name": "utter_hours", "timestamp": 4.0},
    ]
    (one,), report = _read(tmp_path / "tracker.json", {"sender_id": "x", "events": events})
    assert [call.name for call in one.tool_calls] == ["action_look_up_hours"]
    assert [mark.value["name"] for mark in one.timeline if isinstance(mark, Marker)] == ["action_listen", "utter_hours"]
    assert report.ignored == {"event_action": 1, "response_not_read": 1}


def test_a_stream_in_a_file_keeps_its_model_and_time(tmp_path: Path) -> None:
    chunks = [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in ("Until ", "noon.")]
    head = {"object": "chat.completion.chunk", "model": "m-1", "created": 1700000000}
    lines = "\n\n".join(f"data: {json.dumps(head | chunk)}" for chunk in chunks) + "\n\ndata: [DONE]\n"
    (one,), _ = _read(tmp_path / "answer.txt", lines)
    assert _said(one) == [("assistant", "Until noon.")]
    assert one.agent.models == {"llm": "m-1"}
    assert one.utterances[0].time is not None
    assert one.utterances[0].time.at == 1700000000
