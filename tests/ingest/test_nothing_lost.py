"""Every value of a record is somewhere in the conversation, in its place or among the extras."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.logs import ASK, CHAT, REPLY, chat, read, write_json, write_lines
from support.losses import lost

ITEM = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Closed."}]}
PICTURE = {"type": "image_url", "image_url": {"url": "sign.png"}}


def calling(**function: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}


def prompt(**beside: Any) -> dict[str, Any]:
    """A chat with these fields in its system prompt."""
    return {"messages": [{"role": "system", "content": "Be brief.", **beside}, ASK]}


MESSAGES: dict[str, Any] = {
    "name of the prompt": prompt(name="prompt-1"),
    "id of the prompt": prompt(id="prompt-id-1"),
    "time of the prompt": prompt(timestamp="2026-03-02T09:00:00Z"),
    "unknown field of the prompt": prompt(tone="warm"),
    "instructions beside a prompt": {**prompt(name="prompt-1"), "instructions": "No jokes."},
    "picture in the prompt": prompt(content=[{"type": "text", "text": "Be brief."}, PICTURE]),
    "audio": {
        "messages": [
            ASK,
            {**REPLY, "content": None, "audio": {"id": "a-1", "expires_at": 1772442999, "transcript": "t"}},
        ]
    },
    "refusal beside the content": {"messages": [ASK, {**REPLY, "refusal": "I will not."}]},
    "field of a text part": {
        "messages": [{**ASK, "content": [{"type": "text", "text": "Open?", "cache": {"kind": "short"}}]}]
    },
    "field of a function": {"messages": [ASK, calling(name="hours", arguments="{}", strictness="high")]},
    "unreadable time": {"messages": [{**ASK, "timestamp": "yesterday"}]},
    "two times": {"messages": [{**ASK, "timestamp": 1772442000, "created_at": 1772449999}]},
    "no message": {"messages": [ASK, {"note": "tape changed"}, REPLY]},
    "message of another role": {"messages": [ASK, {**REPLY, "role": "agent"}]},
    "message with a type": {"messages": [ASK, {**REPLY, "type": "message"}]},
}
BESIDE_THE_MESSAGES: dict[str, Any] = {
    "two ids": {"id": "completion-1", "conversation_id": "c-1"},
    "two truths": {"ground_truth": "closed", "reference": "not open"},
    "field of a tool": {"tools": [{"type": "function", "function": {"name": "hours", "strict": "very"}}]},
    "tools of both generations": {"tools": [], "functions": [{"name": "hours"}]},
    "agent that is no name": {"agent": {"name": "ivy"}, "metadata": {"agent": "fern"}},
    "id of an expected call": {"expected_tool_calls": [{"id": "call-1", "name": "hours"}]},
    "field of an expected call": {"expected_tool_calls": [{"name": "hours", "note": "once"}]},
    "field of an expected function": {"expected_tool_calls": [{"function": {"name": "hours", "note": "once"}}]},
    "model that is no name": {"model": {"name": "llm-1"}},
}
ITEMS: dict[str, Any] = {
    "output that is a text": {"input": [{**ITEM, "role": "user", "content": "Open?"}], "output": "Closed today."},
    "data that is no list": {"output": [ITEM], "data": {"customer": "ada"}},
    "instructions as items": {"instructions": [{**ITEM, "role": "system", "content": "Be brief."}], "output": [ITEM]},
    "instructions as items beside a prompt": {
        "instructions": [{**ITEM, "role": "system", "content": "Be brief."}],
        "input": [{**ITEM, "role": "system", "content": "No jokes.", "id": "prompt-1"}],
        "output": [ITEM],
    },
    "status of a message": {"output": [{**ITEM, "status": "incomplete"}]},
    "name and status of an output": {
        "output": [
            {"type": "function_call_output", "call_id": "c", "name": "hours", "output": "no", "status": "failed"}
        ]
    },
    "annotations": {
        "output": [
            {**ITEM, "content": [{"type": "output_text", "text": "Closed.", "annotations": [{"url": "hours.html"}]}]}
        ]
    },
}
ODD_SHAPES: dict[str, Any] = {
    "tools that are a number": {**CHAT, "tools": 5},
    "choices that are texts": {**CHAT, "choices": ["closed"]},
    "function that is a number": {"messages": [ASK, {**REPLY, "content": None, "tool_calls": [{"function": 7}]}]},
    "time beyond all numbers": {"messages": [{**ASK, "timestamp": 10**400}]},
}


@pytest.mark.parametrize("record", MESSAGES.values(), ids=list(MESSAGES))
def test_in_a_message(tmp_path: Path, record: dict[str, Any]) -> None:
    assert lost(record, read(write_json(tmp_path / "log.json", record)).only) == []


@pytest.mark.parametrize("beside", BESIDE_THE_MESSAGES.values(), ids=list(BESIDE_THE_MESSAGES))
def test_beside_the_messages(tmp_path: Path, beside: dict[str, Any]) -> None:
    record = {**CHAT, **beside}
    assert lost(record, read(write_json(tmp_path / "log.json", record)).only) == []


@pytest.mark.parametrize("record", ITEMS.values(), ids=list(ITEMS))
def test_in_items_and_beside_them(tmp_path: Path, record: dict[str, Any]) -> None:
    assert lost(record, read(write_json(tmp_path / "log.json", record)).only) == []


@pytest.mark.parametrize("record", ODD_SHAPES.values(), ids=list(ODD_SHAPES))
def test_an_odd_shape_is_kept_and_no_problem(tmp_path: Path, record: dict[str, Any]) -> None:
    outcome = read(write_lines(tmp_path / "log.jsonl", chat("one"), record))
    assert outcome.report.problems == []
    assert lost(record, outcome.conversations[1]) == []
