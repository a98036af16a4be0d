"""Turns that were labelled by hand, found again in the shared data by file, path and hash. The texts are not kept."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import ASSISTANT, USER, Conversation, Participant, Text, Utterance

_USERS = {"user", "customer", "human", "user_utterance"}
_AGENTS = {"assistant", "agent", "wizard", "gpt", "agent_utterance"}
_NO_WORDS = re.compile(r"#+(?:STOP|TRANSFER)#+")
_ROLES = ("role", "speaker", "Agent", "from", "message_type", "event_type")
_TEXTS = ("content", "text", "utterance", "Text", "value")


class LabelledTurn(NamedTuple):
    """A turn of the user, its label, and the conversation."""

    label: Mapping[str, Any]
    conversation: Conversation
    seq: int
    text: str
    reply: str
    """What the agent said before it."""


class LabelledReply(NamedTuple):
    """What the agent says in one turn, its label, and a conversation of that turn alone."""

    label: Mapping[str, Any]
    conversation: Conversation
    text: str


def labelled_turns(labels: Path, data: Path) -> Iterator[LabelledTurn]:
    """Those of users whose text is still what was labelled. Files without a list of messages are left out."""
    for label, messages, index in _found(labels, data):
        yield from _turn(label, messages, index)


def labelled_replies(labels: Path, data: Path) -> Iterator[LabelledReply]:
    """The same of agents. The hash is of all that they say in the turn, the path leads to the last of it."""
    for label, messages, index in _found(labels, data):
        yield from _reply(label, messages, index)


def _found(labels: Path, data: Path) -> Iterator[tuple[Mapping[str, Any], list[Any], int]]:
    for line in labels.read_text().splitlines():
        label = json.loads(line)
        pointer, _, index = label["path"].partition("#")
        file = data / label["file"]
        if not file.is_file() or file.suffix not in (".json", ".jsonl") or not index.isdecimal():
            continue
        messages = _at(file, pointer)
        if isinstance(messages, list):
            yield label, messages, int(index)


def _at(file: Path, pointer: str) -> Any:
    number, _, path = pointer.rpartition(" ")
    node = _records(file)[int(number.removeprefix("line ")) - 1] if number else _records(file)
    for name in filter(None, path.split("/")):
        if isinstance(node, list) and not name.isdecimal():
            return None
        node = [node] if name == "0" and isinstance(node, dict) and name not in node else node
        node = node[int(name)] if isinstance(node, list) else node.get(name)
    return node


@cache
def _records(file: Path) -> Any:
    text = file.read_text()
    return [json.loads(line) for line in text.splitlines()] if file.suffix == ".jsonl" else json.loads(text)


def _turn(label: Mapping[str, Any], messages: list[Any], index: int) -> Iterator[LabelledTurn]:
    events, seq = _events(messages, index)
    if seq < 0 or events[seq].speaker != USER or _hash(events[seq].meant()) != label["sha256"]:
        return
    replies = [one.meant() for one in events[:seq] if one.speaker == ASSISTANT]
    yield LabelledTurn(label, _conversation(events), seq, events[seq].meant(), replies[-1] if replies else "")


def _reply(label: Mapping[str, Any], messages: list[Any], index: int) -> Iterator[LabelledReply]:
    events, seq = _events(messages, index)
    turns = _conversation(events).turns if seq >= 0 else ()
    turn = next((turn for turn in turns if any(one.seq == seq for one in turn.assistant)), None)
    if turn is not None and _hash(turn.assistant_text) == label["sha256"]:
        said = sorted((*turn.user, *turn.assistant), key=lambda one: one.seq)
        yield LabelledReply(label, _conversation(said), turn.assistant_text)


def _events(messages: list[Any], index: int) -> tuple[list[Utterance], int]:
    """What the two say, and which of it is the message at this index."""
    events: list[Utterance] = []
    seq = -1
    for place, message in enumerate(messages):
        speaker, text = _said(message, place)
        if speaker and text.strip() and not _NO_WORDS.fullmatch(text.strip()):
            seq = len(events) if place == index else seq
            events.append(Utterance(seq=len(events), speaker=speaker, intended=Text(text)))
    return events, seq


def _conversation(events: Iterable[Utterance]) -> Conversation:
    people = (Participant(USER, USER), Participant(ASSISTANT, ASSISTANT))
    return Conversation(id="c", participants=people, timeline=tuple(events))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
