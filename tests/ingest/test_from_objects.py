"""Conversations and records made in Python are read without a file, as lines of one would be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from convoscope import Conversation
from convoscope.errors import ConvoscopeError, NothingReadable, UsageError
from convoscope.ingest.discover import FoundInput, find_inputs, fingerprint
from convoscope.ingest.read import from_objects
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import Read, cut, read_partition
from support.logs import CHAT, chat, read, write_lines

EVENTS: list[dict[str, Any]] = [
    {"conversation_id": id, "timestamp": 1760000000.5 + second, "event": "state_entered", "state": state}
    for second, state in enumerate(("greet", "ask", "end"))
    for id in ("a", "b")
]


def reads(found: FoundInput, scratch: Path, size: int = 1 << 22) -> tuple[list[Read], ReadReport]:
    parts = list(cut(found.inputs, found.report, scratch, size))
    return [one for part in parts for one in read_partition(part, found.report)], found.report


def same_as_file(objects: Sequence[dict[str, Any]], folder: Path, size: int = 1 << 22) -> list[Conversation]:
    """What is read of objects, which must be what is read of the same lines in a file."""
    path = write_lines(folder / "conversations.jsonl", *objects)
    own, report = reads(from_objects(objects), folder / "own", size)
    other, wanted = reads(find_inputs([path]), folder / "other", size)
    assert own == other
    assert report.ordered() == wanted.ordered()
    return [one.conversation for one in own]


@pytest.mark.parametrize("size", [1 << 22, 150])
def test_chats_as_dicts(tmp_path: Path, size: int) -> None:
    objects = [chat("a"), chat("b"), {**CHAT, "shift": "night"}, chat("a"), {"oops": 1}]
    assert [one.id for one in same_as_file(objects, tmp_path, size)][:2] == ["a", "b"]


@pytest.mark.parametrize("size", [1 << 22, 100])
def test_state_events_are_joined_by_their_conversation(tmp_path: Path, size: int) -> None:
    assert {one.id: len(one.timeline) for one in same_as_file(EVENTS, tmp_path, size)} == {"a": 3, "b": 3}


def test_events_without_an_id_are_one_conversation(tmp_path: Path) -> None:
    events = [{name: value for name, value in one.items() if name != "conversation_id"} for one in EVENTS[::2]]
    (conversation,) = same_as_file(events, tmp_path)
    assert len(conversation.timeline) == 3


def test_conversations_come_back_as_they_are(tmp_path: Path) -> None:
    originals = read(write_lines(tmp_path / "a.jsonl", chat("a"), chat("b"))).conversations
    own, report = reads(from_objects(originals), tmp_path / "scratch")
    assert [one.conversation for one in own] == originals
    assert report.files["conversations.jsonl"].conversations == 2


def test_parts_hold_their_own_lines_only(tmp_path: Path) -> None:
    found = from_objects([chat(f"c{number}") for number in range(50)])
    parts = list(cut(found.inputs, found.report, tmp_path, 1000))
    assert len(parts) > 3
    assert all(piece.input.data is None for part in parts for piece in part.pieces)


def test_what_it_holds_decides_the_fingerprint() -> None:
    one, same, other = (fingerprint(from_objects([chat(id)]).inputs[0]) for id in ("a", "a", "b"))
    assert one == same != other


def test_a_format_that_is_named(tmp_path: Path) -> None:
    assert from_objects([CHAT], format="openai-chat").inputs[0].reader == "openai-chat"
    with pytest.raises(UsageError, match="unknown format 'nope'"):
        from_objects([CHAT], format="nope")


@pytest.mark.parametrize(
    ("objects", "error"), [([], NothingReadable), ([7], UsageError), ([{"oops": 1}], ConvoscopeError)]
)
def test_what_cannot_be_read(objects: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        from_objects(objects)
