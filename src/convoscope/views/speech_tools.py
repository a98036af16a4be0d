"""Agents that speak to the user by calling a tool: which calls are speech for certain, and which only look like it.

A name such as `send_message_to_user` or `send_whatsapp` and one argument that is the message make a call speech. A
message to somebody else is not (`send_email`, `notify_staff`); one by a channel (`send_sms`, `post_to_slack`) may be.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import lru_cache
from pathlib import Path

from convoscope.conversation import ASSISTANT, USER, Conversation, Json, ToolCall, Utterance
from convoscope.text.identifiers import name_words, snake_case

_TABLE: dict[str, frozenset[str]] = {
    name: frozenset(words.split())
    for name, words in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
_SPEAKS, _USERS, _LOOKS = (_TABLE[name] for name in ("speaks", "users", "looks"))
_MESSENGERS, _CHANNELS = _TABLE["messengers"], _TABLE["channels"]
_MESSAGES = _TABLE["messages"]
_SENDS = _SPEAKS | _TABLE["sends"]
_ELSEWHERE, _MESSAGE_FIELDS, _RECIPIENTS = (_TABLE[name] for name in ("elsewhere", "message_fields", "recipients"))
_FEW_WORDS = 3


def speech_of(call: ToolCall, named: Collection[str] = ()) -> str:
    """What a call says to the user, where it is speech for certain or its tool is named; else nothing."""
    if call.name in named:
        return _longest_text(call.arguments)
    return _message_of(call.arguments) if _is_speech_name(call.name) else ""


def may_speak(call: ToolCall) -> bool:
    """Whether a call looks like speech to the user, without being it for certain.

    A message that is sent by a messenger or another channel may go to the user, also where a recipient is named.
    """
    words = frozenset(name_words(call.name))
    if words & _ELSEWHERE or not isinstance(call.arguments, dict):
        return False
    texts = {snake_case(str(key)): value for key, value in call.arguments.items()}
    by_channel = bool(words & (_MESSENGERS | _CHANNELS))
    if not by_channel and not _RECIPIENTS.isdisjoint(texts):
        return False
    named = bool(words & _SPEAKS) or bool(words & _USERS and words & _SENDS) or bool(words & _MESSAGES)
    named = named or by_channel
    return any(
        isinstance(value, str) and len(value.split()) >= _FEW_WORDS and (named or key in _MESSAGE_FIELDS)
        for key, value in texts.items()
    )


def speaks_by_tool(conversation: Conversation) -> bool:
    """Whether the agent speaks by calls of a tool in most of its turns, and not by messages."""
    with_text = with_call = turns = 0
    text = call = False
    for event in conversation.timeline:
        if type(event) is ToolCall:
            call = call or bool(speech_of(event))
        elif type(event) is Utterance and event.meant().strip():
            role = conversation.roles[event.speaker]
            if role == ASSISTANT:
                text = True
            elif role == USER:
                with_text, with_call, turns = with_text + text, with_call + call, turns + (text or call)
                text = call = False
    with_text, with_call, turns = with_text + text, with_call + call, turns + (text or call)
    return with_call > 0 and 2 * with_text < turns


@lru_cache(maxsize=4096)
def _is_speech_name(name: str) -> bool:
    words = name_words(name)
    if not words or not (_ELSEWHERE | _CHANNELS).isdisjoint(words) or words[0] in _LOOKS:
        return False
    if "to" in words[:-1] and words[words.index("to") + 1] not in _USERS | _MESSENGERS | {"the"}:
        return False
    if len(words) == 1:
        return words[0] in _SPEAKS
    words_of_name = frozenset(words)
    objects = _USERS | _MESSENGERS
    return bool(words_of_name & _SENDS) and bool(words_of_name & objects | (words_of_name - {words[0]}) & _MESSAGES)


def _message_of(arguments: Json) -> str:
    """The one text that is the message; nothing where there is another text, or somebody to send it to."""
    if not isinstance(arguments, Mapping):
        return ""
    message = ""
    for key, value in arguments.items():
        name = snake_case(str(key))
        if name in _RECIPIENTS:
            return ""
        if not isinstance(value, str) or not value.strip():
            continue
        if name in _MESSAGE_FIELDS and not message:
            message = value
        elif len(value.split()) > 1:
            return ""
    return message


def _longest_text(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    if not isinstance(arguments, Mapping):
        return ""
    texts = {snake_case(str(key)): value for key, value in arguments.items() if isinstance(value, str)}
    named = [value for key, value in texts.items() if key in _MESSAGE_FIELDS]
    return max(named or texts.values(), key=len, default="")


__all__ = ["may_speak", "speaks_by_tool", "speech_of"]
