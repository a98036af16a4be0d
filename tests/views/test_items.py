"""Cases: what happened for each item is found by its number, wherever that stands."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from convoscope.conversation import Conversation, Item, Participant, Text, ToolCall, Utterance
from convoscope.conversation.events import AnyEvent
from convoscope.views.items import cases


def numbered(seqs: Sequence[int]) -> Conversation:
    """Six events under these numbers: two questions with an answer and a call each."""
    asked, called, answered, asked_too, called_too, answered_too = seqs
    timeline: tuple[AnyEvent, ...] = (
        Utterance(seq=asked, speaker="user", spoken=Text("one?")),
        ToolCall(seq=called, name="first"),
        Utterance(seq=answered, speaker="agent", spoken=Text("one")),
        Utterance(seq=asked_too, speaker="user", spoken=Text("two?")),
        ToolCall(seq=called_too, name="second"),
        Utterance(seq=answered_too, speaker="agent", spoken=Text("two")),
    )
    return Conversation(
        id="a",
        participants=(Participant("user", "user"), Participant("agent", "assistant")),
        timeline=timeline,
        items=(
            Item(id="1", asked=asked, answered=answered, events=(called,)),
            Item(id="2", asked=asked_too, answered=answered_too, events=(called_too, called, called_too)),
            Item(id="3", asked=called),
        ),
    )


@pytest.mark.parametrize("seqs", [range(6), range(1, 7), (0, 2, 3, 5, 8, 13), (100, 200, 300, 400, 500, 600)], ids=str)
def test_events_are_found_whatever_their_numbers(seqs: Sequence[int]) -> None:
    first, second, third = cases(numbered(seqs))
    assert (first.question, first.answer) == ("one?", "one")
    assert (second.question, second.answer) == ("two?", "two")
    assert [call.name for call in first.tool_calls] == ["first"]
    # In the order of the timeline, each once.
    assert [call.name for call in second.tool_calls] == ["first", "second"]
    # A call is no question.
    assert (third.question, third.answer, third.events) == (None, None, ())
