"""A conversation as evaluation items: those it was made of, or one item that tells all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.conversation.clock import Time
from convoscope.conversation.events import AnyEvent, Utterance
from convoscope.conversation.model import ASSISTANT, USER, Agent, Conversation, Item
from convoscope.views.standard_data.conversation_fields import (
    PEOPLE,
    audio_of,
    expected_call_of,
    fields_of_expected,
    fields_of_item,
    fields_of_outcome,
    schema_of,
)
from convoscope.views.standard_data.events import KEPT, Fields, filled, happened
from convoscope.views.standard_data.tidy import FIELDS, Tidied
from convoscope.views.standard_data.warnings import Warned

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

FORMAT = "standard-data"

_NOT_METADATA = frozenset({"agent", *PEOPLE})


def standard_data_of(conversation: Conversation) -> list[StandardData]:
    """The items of a conversation; of one without items, one item that tells the whole of it."""
    from convoscope.views.standard_data.model import StandardData

    items = []
    for item in conversation.items or (None,):
        tidied = fields_of(conversation, item)
        data = StandardData.model_validate({**tidied.unknown, **tidied.fields})
        data._warnings = tuple(tidied.warnings)
        items.append(data)
    return items


def fields_of(conversation: Conversation, item: Item | None = None) -> Tidied:
    """The fields of an item of the conversation, or, for None, of the conversation as a whole."""
    if item is None:
        return _whole(conversation)
    fields = {
        **_stated(conversation),
        "turn_id": item.id,
        **fields_of_item(item),
        **_spoken(conversation, item),
        **happened(_events(conversation, item)),
    }
    unknown = dict(item.extras.get("unknown") or {})
    for name, value in item.extras.items():
        if name in FIELDS:
            fields[name] = value
        elif name not in _OURS:
            unknown[name] = value
    if conversation.source.format != FORMAT:
        fields.setdefault("conversation_context", _history(conversation))
    else:
        _tell(fields, conversation)
    fields.update(item.extras.get(KEPT) or {})
    warnings = [msgspec.convert(one, Warned) for one in item.extras.get("warnings") or ()]
    return Tidied(filled(fields), unknown, warnings)


_OURS = frozenset({"unknown", "warnings", KEPT})


def _stated(conversation: Conversation) -> Fields:
    """What the conversation says for all of its items."""
    fields: Fields = {name: conversation.dimensions.get(name) for name in PEOPLE}
    if conversation.recording is not None:
        fields["raw_complete_audio"] = audio_of(conversation.recording)
    return {**fields, **_agent(conversation.agent)}


def _agent(agent: Agent) -> Fields:
    return {
        "agent_name": agent.name or None,
        "agent_role": agent.role or None,
        "system_prompt": agent.instructions or None,
        "tools_available": None if agent.tools is None else [schema_of(tool) for tool in agent.tools],
    }


def _spoken(conversation: Conversation, item: Item) -> Fields:
    words = {utterance.seq: conversation.text(utterance) for utterance in conversation.utterances}
    return {
        "agent_task": None if item.asked is None else words.get(item.asked),
        "agent_response": None if item.answered is None else words.get(item.answered),
    }


def _events(conversation: Conversation, item: Item) -> Sequence[AnyEvent]:
    """What happened for the item, in the order that it says; for the only item, all that happened."""
    if not item.events and len(conversation.items) == 1:
        return conversation.timeline
    by_seq = {event.seq: event for event in conversation.timeline}
    return [by_seq[seq] for seq in item.events if seq in by_seq]


def _tell(fields: Fields, conversation: Conversation) -> None:
    """Put the turns of the history back, of which the item only says where they are."""
    context = fields.get("conversation_context")
    if context is None or not isinstance(context.get("turns"), list):
        return
    by_seq = {utterance.seq: utterance for utterance in conversation.utterances}
    turns = [_turn(by_seq[seq]) for seq in context["turns"] if isinstance(seq, int) and seq in by_seq]
    fields["conversation_context"] = {**context, "turns": turns}


def _turn(utterance: Utterance) -> Fields:
    fields = {
        "speaker": utterance.speaker or None,
        "message": None if utterance.intended is None else utterance.intended.text,
    }
    return {**filled(fields), **utterance.extras}


def _whole(conversation: Conversation) -> Tidied:
    """A conversation without items: what was said is the history, and the last words are question and answer."""
    metadata = {name: value for name, value in conversation.dimensions.items() if name not in _NOT_METADATA}
    if conversation.recording is not None and conversation.recording.tracks and conversation.recording.tracks[0].path:
        metadata["local_audio_path"] = conversation.recording.tracks[0].path
    fields: dict[str, Any] = {
        **_stated(conversation),
        **fields_of_expected(conversation.expected),
        **fields_of_outcome(conversation.outcome),
        "agent_task": _last_words(conversation, USER),
        "agent_response": _last_words(conversation, ASSISTANT),
        "conversation_context": _history(conversation),
        "metadata": metadata or None,
        **happened(conversation.timeline),
    }
    calls = conversation.expected.tool_calls or ()
    unknown: Fields = {"conversation_id": conversation.id}
    if len(calls) > 1:
        unknown["expected_tool_calls"] = [expected_call_of(call) for call in calls]
    return Tidied(filled(fields), unknown, [])


def _history(conversation: Conversation) -> Fields | None:
    turns = list(_turns(conversation))
    return {"turns": turns} if turns else None


def _turns(conversation: Conversation) -> Iterator[Fields]:
    for utterance in conversation.utterances:
        time = utterance.time
        yield filled(
            {
                "speaker": conversation.roles[utterance.speaker],
                "message": conversation.text(utterance),
                "timestamp": None if time is None or time.clock != "wall" else _iso(time),
            }
        )


def _iso(time: Time) -> str | None:
    try:
        return datetime.fromtimestamp(time.at, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):  # beyond the years that a calendar has
        return None


def _last_words(conversation: Conversation, role: str) -> str | None:
    """The last words of a role; None where it said nothing."""
    for utterance in reversed(conversation.utterances):
        if conversation.roles[utterance.speaker] == role and (text := conversation.text(utterance)).strip():
            return text
    return None
