"""User turns that were labelled by hand, found again in the shared data by file, path and hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER, Conversation, Participant, Text, Utterance

_USERS = {"user", "customer", "human", "user_utterance"}
_AGENTS = {"assistant", "agent", "wizard", "gpt", "agent_utterance"}
_NO_WORDS = re.compile(r"#+(?:STOP|TRANSFER)#+")
_ROLES = ("role", "speaker", "Agent", "from", "message_type", "event_type")
_TEXTS = ("content", "text", "utterance", "Text", "value")


class LabelledTurn(NamedTuple):
    """A turn, its label, and the conversation up to its end."""

    label: Mapping[str, Any]
    conversation: Conversation
    seq: int
    text: str
    reply: str
    """What the agent said before it."""


def labelled_turns(labels: Path, data: Path) -> Iterator[LabelledTurn]:
    """Those whose text is still what was labelled. Kinds of files without a list of messages are left out."""
    for line in labels.read_text().splitlines():
        label = json.loads(line)
        pointer, _, index = label["path"].partition("#")
        file = data / label["file"]
        if not file.is_file() or file.suffix not in (".json", ".jsonl") or not index.isdecimal():
            continue
        messages = _at(file, pointer)
        if isinstance(messages, list):
            yield from _turn(label, messages, int(index))


def _at(file: Path, pointer: str) -> Any:
    number, _, path = pointer.rpartition(" ")
    node = _records(file)[int(number.removeprefix("line ")) - 1] if number else _records(file)
    for name in filter(None, path.split("/")):
        if isinstance(node, list) and not name.isdecimal():
            return None
        node = [node] if name == "0" and isinstance(node, dict) and name not in node else node
        node = node[int(name)] if isinstance(node, list) else node.get(name)
    return node


@lru_cache(maxsize=4)
def _records(file: Path) -> Any:
    text = file.read_text()
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)


def _turn(label: Mapping[str, Any], messages: list[Any], index: int) -> Iterator[LabelledTurn]:
    events: list[Utterance] = []
    seq = -1
    for place, message in enumerate(messages):
        speaker, text = _said(message, place)
        if speaker and text.strip() and not _NO_WORDS.fullmatch(text.strip()):
            seq = len(events) if place == index else seq
            events.append(Utterance(seq=len(events), speaker=speaker, intended=Text(text)))
    if (
        seq < 0
        or events[seq].speaker != USER
        or hashlib.sha256(events[seq].meant().encode()).hexdigest() != label["sha256"]
    ):
        return
    people = (Participant(USER, USER), Participant(ASSISTANT, ASSISTANT))
    replies = [one.meant() for one in events[:seq] if one.speaker == ASSISTANT]
    conversation = Conversation(id="c", participants=people, timeline=tuple(events))
    yield LabelledTurn(label, conversation, seq, events[seq].meant(), replies[-1] if replies else "")


def _said(message: Any, place: int) -> tuple[str, str]:
    """Who says what; nobody where it is no message of the two."""
    if isinstance(message, list):
        role, text = message[:2]
    else:
        if message.get("Action") not in (None, "utter", "pick_suggestion"):
            return "", ""
        # MultiWOZ does not say who speaks: they take turns, and all have a state.
        whose = ("user", "agent")[place % 2] if "metadata" in message else ""
        role = next((message[name] for name in _ROLES if name in message), whose)
        text = next((message[name] for name in _TEXTS if name in message), "")
    name = str(role).lower()
    speaker = USER if name in _USERS else ASSISTANT if name in _AGENTS or role == "SYSTEM" else ""
    return speaker, text if isinstance(text, str) else ""
