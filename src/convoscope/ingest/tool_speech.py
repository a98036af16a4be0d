"""What the agent says through a tool becomes utterances of the timeline; the calls stay as they are."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import msgspec

from convoscope.conversation import ASSISTANT, AnyEvent, Conversation, Item, Participant, Text, ToolCall, Utterance
from convoscope.ingest.report import Note
from convoscope.views.tool_outcomes import has_failed
from convoscope.views.user_turns import speaks_by_tool, speech_of

SOURCE = "tool call"
"""Where the text of such an utterance was read."""


def with_tool_speech(conversation: Conversation, named: Sequence[str] = ()) -> Conversation:
    """The conversation in which calls that are speech to the user are utterances of the agent, too.

    Calls of the `named` tools are; without a name, those that are it for certain, where the agent hardly speaks by
    messages. A call that failed said nothing. What is logged as a message, too, is said once. Data sets with truths
    of their own are left alone.
    """
    if conversation.frames or conversation.annotations:
        return conversation
    calls = [call for call in conversation.tool_calls if speech_of(call, named)]
    if not calls or not (any(call.name in named for call in calls) or speaks_by_tool(conversation)):
        return conversation
    logged = {utterance.meant().strip() for utterance in conversation.utterances}
    spoken = [
        call for call in calls if speech_of(call, named).strip() not in logged and not has_failed(conversation, call)
    ]
    return _inserted(conversation, spoken, named) if spoken else conversation


def _inserted(conversation: Conversation, spoken: Sequence[ToolCall], named: Sequence[str]) -> Conversation:
    after = [call.seq for call in spoken]
    agent = next((one.id for one in conversation.participants if one.role == ASSISTANT), "")
    participants = conversation.participants
    if not agent:
        participants = (*participants, Participant(ASSISTANT, ASSISTANT))
    timeline: list[AnyEvent] = []
    for event in conversation.timeline:
        moved = event.seq + bisect_right(after, event.seq - 1)
        timeline.append(msgspec.structs.replace(event, seq=moved) if moved != event.seq else event)
        if type(event) is ToolCall and event.seq in after:
            text = Text(speech_of(event, named), SOURCE)
            timeline.append(Utterance(seq=moved + 1, time=event.time, speaker=agent or ASSISTANT, intended=text))
    items = tuple(_moved_item(item, after) for item in conversation.items)
    return msgspec.structs.replace(conversation, participants=participants, timeline=tuple(timeline), items=items)


def moved_notes(notes: tuple[Note, ...], conversation: Conversation) -> tuple[Note, ...]:
    """Notes about events of a conversation, after utterances were put into it; and one that says so."""
    spoken = [one.seq for one in conversation.utterances if one.intended is not None and one.intended.source == SOURCE]
    after = [seq - 1 - number for number, seq in enumerate(spoken)]
    moved = [msgspec.structs.replace(note, seq=_moved(note.seq, after)) if note.seq >= 0 else note for note in notes]
    return (*moved, Note(kind="inferred", code="speech_through_tool", detail=f"{len(spoken)} utterances"))


def _moved(seq: int, after: Sequence[int]) -> int:
    return seq + bisect_right(after, seq - 1)


def _moved_item(item: Item, after: Sequence[int]) -> Item:
    return msgspec.structs.replace(
        item,
        asked=None if item.asked is None else _moved(item.asked, after),
        answered=None if item.answered is None else _moved(item.answered, after),
        events=tuple(_moved(seq, after) for seq in item.events),
    )


__all__ = ["moved_notes", "with_tool_speech"]
