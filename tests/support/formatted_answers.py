"""Answers that should have a form."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Conversation, Expected, Item
from convoscope.metrics.answer.forms import fit_of
from support.chats import agent, chat, user


def item(answer: str, format: str | None, **extras: Any) -> Conversation:
    expected = Expected(format=format)
    return chat(user("?"), agent(answer), items=(Item(id="a", answered=1, expected=expected, extras=extras),))


def fault(content: str, expected_format: str) -> str:
    return fit_of(content, expected_format).fault
