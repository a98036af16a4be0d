"""ABCD: chats with buttons, and the right next step of each turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Act, Conversation
from support.logs import EXAMPLES, counts, read, write_json

FILE = EXAMPLES / "abcd" / "chats.json"
CHAT: dict[str, Any] = json.loads(FILE.read_text())[0]


@pytest.fixture(scope="module")
def chat() -> Conversation:
    return read(FILE).only


def test_who_speaks(chat: Conversation) -> None:
    assert (chat.id, chat.dimensions) == ("41", {"flow": "product_defect", "subflow": "return_size"})
    assert [(chat.roles[one.speaker], chat.text(one)) for one in chat.utterances] == [
        ("assistant", "Hello, how can I help?"),
        ("user", "This coat is too small, I am Ada Finch."),
        ("assistant", "I have found your order."),
    ]


def test_a_button_is_a_tool_call(chat: Conversation) -> None:
    (call,) = chat.tool_calls
    assert (call.name, call.arguments) == ("pull-up-account", {"values": ["ada finch"]})
    assert chat.tool_results[call.seq].result == "Account has been pulled up for Ada Finch."


def test_targets_are_frames(chat: Conversation) -> None:
    assert {one.seq: one.intents for one in chat.frames if one.intents} == {1: ("return_size",)}
    assert [one.acts for one in chat.frames if one.acts] == [(Act("retrieve_utterance"),)] * 2
    assert chat.scenario is not None
    assert chat.scenario.goal["personal"] == {"customer_name": "ada finch"}


def test_what_says_it_again_is_left_out_and_counted(chat: Conversation) -> None:
    assert read(FILE).report.ignored == {"delexed": 4}


def test_targets_that_do_not_fit_are_told(tmp_path: Path) -> None:
    outcome = read(write_json(tmp_path / "chats.json", [CHAT | {"delexed": CHAT["delexed"][:2]}]))
    assert counts(outcome.report.set_aside) == {"targets_unreadable": 1}
    assert outcome.only.frames == ()
    assert outcome.only.tool_calls[0].name == "action"
