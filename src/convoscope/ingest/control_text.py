"""Text that steers a program and is not speech: the stop mark of a simulated user, the intent that a button sends."""

from __future__ import annotations

import re
from typing import NamedTuple

TOKEN = re.compile(r"###[A-Z][A-Z_-]*###")
"""Marks of simulated users: `###STOP###`, `###TRANSFER###`, `###OUT-OF-SCOPE###`."""
_INTENT = re.compile(r"/[a-z]\w*(\{.*\})?", re.DOTALL)
"""What a button of Rasa sends instead of words: `/greet`, `/inform{"size": "big"}`."""
_COMMAND = "request_suggestions"
"""With it, the one who plays the agent of STAR asks for proposals."""


class Speech(NamedTuple):
    """The words of a text, and the control text that was among them."""

    words: str
    control: tuple[str, ...] = ()


def without_control(text: str, role: str) -> Speech:
    """The text as it was said. Only a user sends intents and commands."""
    if role == "user" and ((bare := text.strip()) == _COMMAND or _INTENT.fullmatch(bare)):
        return Speech("", (bare,))
    if "###" not in text:
        return Speech(text)
    tokens = tuple(TOKEN.findall(text))
    return Speech(TOKEN.sub("", text).strip(), tokens) if tokens else Speech(text)


def may_hold_control(text: str, role: str) -> bool:
    """Whether it is worth a closer look; quick, and never wrong with no."""
    if "###" in text and TOKEN.search(text) is not None:
        return True
    return role == "user" and (text.lstrip()[:1] == "/" or _COMMAND in text)
