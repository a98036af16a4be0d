"""Agents that speak by calling a tool: what becomes an utterance, and what does not."""

from __future__ import annotations

from typing import Any

import pytest

from convoscope.conversation import Conversation, Item, ToolCall, ToolResult
from convoscope.ingest.report import Note
from convoscope.ingest.settings import ReadSettings, moved_notes, with_tool_speech
from convoscope.views.user_turns import breakdown, may_speak, speech_of, user_turns
from support.chats import UNPLACED, agent, chat, user


def call(name: str, call_id: str = "", **arguments: Any) -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, arguments=arguments, call_id=call_id)


def said(conversation: Conversation) -> list[str]:
    return [one.meant() for one in conversation.utterances]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send_message_to_user", {"message": "Hello there"}),
        ("SendMessageToUser", {"content": "Hello there", "user_id": "u-1"}),
        ("say", {"text": "Hello there", "language": "en"}),
        ("reply_to_customer", {"body": "Hello there"}),
        ("respond", {"response": "Hello there", "end_turn": True}),
        ("message_user", {"msg": "Hello there"}),
        ("send_message", {"message": "Hello there"}),
        ("send_whatsapp", {"text": "Hello there"}),
        ("whatsapp_send", {"text": "Hello there"}),
        ("sendTelegramMessage", {"text": "Hello there", "parse_mode": "Markdown"}),
        ("post_to_whatsapp", {"body": "Hello there"}),
    ],
)
def test_plain_speech(name: str, arguments: dict[str, Any]) -> None:
    assert speech_of(call(name, **arguments)) == "Hello there"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("send_email", {"body": "Hello there"}),
        ("send_sms", {"message": "Hello there"}),
        ("send_whatsapp", {"text": "Hello there", "to": "+4912345"}),
        ("send_whatsapp_template", {"template": "hello_there"}),
        ("notify_staff", {"message": "Hello there"}),
        ("post_message_to_slack", {"text": "Hello there"}),
        ("send_message_to_driver", {"message": "Hello there"}),
        ("send_message", {"message": "Hello there", "to": "Bob"}),
        ("get_user_message", {"text": "Hello there"}),
        ("search", {"text": "Hello there"}),
        ("say", {"volume": 3}),
        ("reply_to_user", {"message": "Hello there", "reason": "he asked for it"}),
    ],
)
def test_no_plain_speech(name: str, arguments: dict[str, Any]) -> None:
    assert speech_of(call(name, **arguments)) == ""


class TestTheTimeline:
    def test_calls_become_utterances_and_stay_calls(self) -> None:
        silent = chat(user("Hi"), call("say", text="Hello"), user("Bye"), call("say", text="Goodbye"))
        conversation = ReadSettings().applied(silent)
        assert said(conversation) == ["Hi", "Hello", "Bye", "Goodbye"]
        assert [one.seq for one in conversation.timeline] == [0, 1, 2, 3, 4, 5]
        assert len(conversation.tool_calls) == 2
        assert [turn.reply for turn in user_turns(conversation)] == ["yes", "yes"]

    def test_an_agent_that_talks_keeps_its_calls(self) -> None:
        """Its messages are its speech: what it sends beside them is another matter."""
        talks = chat(user("Hi"), agent("Hello"), user("Mail it"), call("send_message", message="x"), agent("Done"))
        assert with_tool_speech(talks) is talks

    def test_what_is_logged_as_a_message_too_is_said_once(self) -> None:
        twice = chat(user("Hi"), call("deliver", text="Hello"), agent("Hello"))
        assert said(with_tool_speech(twice, ["deliver"])) == ["Hi", "Hello"]

    def test_a_call_that_failed_says_nothing(self) -> None:
        failed = ToolResult(seq=UNPLACED, call_id="1", error="closed")
        silent = chat(user("Hi"), call("say", "1", text="Hello"), failed)
        assert said(with_tool_speech(silent)) == ["Hi"]

    def test_items_and_notes_move_along(self) -> None:
        silent = chat(user("Hi"), call("say", text="Hello"), user("Bye"), items=(Item(id="1", asked=2, events=(1,)),))
        conversation = with_tool_speech(silent)
        assert (conversation.items[0].asked, conversation.items[0].events) == (3, (1,))
        notes = (Note(kind="repaired", code="a", seq=2), Note(kind="repaired", code="b"))
        assert [note.seq for note in moved_notes(notes, conversation)] == [3, -1, -1]


class TestWhatMaySpeak:
    def test_a_reply_is_then_neither_there_nor_missing(self) -> None:
        conversation = chat(user("Hi"), call("deliver", text="It arrives tomorrow morning", tone="very soft"))
        assert [turn.reply for turn in user_turns(conversation)] == ["by_tool"]
        assert breakdown(conversation) == ""

    @pytest.mark.parametrize(
        ("name", "arguments", "speaks"),
        [
            ("deliver", {"text": "It arrives tomorrow"}, True),
            ("final_answer", {"value": "It arrives tomorrow"}, True),
            ("lookup", {"query": "when does it arrive tomorrow"}, False),
            ("send_email", {"body": "It arrives tomorrow"}, False),
            ("send_whatsapp", {"to": "+4912345", "template_text": "It arrives tomorrow"}, True),
            ("send_sms", {"number": "+4912345", "text": "It arrives tomorrow"}, True),
            ("notify_staff_by_sms", {"text": "It arrives tomorrow"}, False),
            ("deliver", {"text": "It arrives tomorrow", "to": "Bob"}, False),
            ("deliver", {"text": "ok"}, False),
        ],
    )
    def test_by_name_or_argument(self, name: str, arguments: dict[str, Any], speaks: bool) -> None:
        assert may_speak(call(name, **arguments)) is speaks
