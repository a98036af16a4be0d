"""Evaluation items as a conversation, and back: nothing is lost either way.

The fields of an item move to where the conversation keeps such data: what was said, what happened, what was expected.
What has no other home stays in the `extras` of the `Item` under its own name. A null there says that the item
does not have what the conversation has.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.conversation.events import AnyEvent, Text, Time, Utterance, moment
from convoscope.conversation.model import ASSISTANT, USER, Agent, Conversation, Item, Participant, Source
from convoscope.views.items import last_words
from convoscope.views.standard_data.events import (
    HAPPENED,
    KEPT,
    NOTHING_EXPECTED,
    PEOPLE,
    SHARED,
    Clocks,
    Fields,
    add_dimensions,
    audio_of,
    expected_call_of,
    fields_of_expected,
    fields_of_item,
    fields_of_outcome,
    filled,
    happen,
    happened,
    identical,
    schema_of,
    take,
    take_expected,
    take_outcome,
    time_of,
    to_recording,
    to_tool,
)
from convoscope.views.standard_data.history import HistoryEntry, HistoryLine, Talk
from convoscope.views.standard_data.schema import FIELDS
from convoscope.views.standard_data.tidy import Tidied
from convoscope.views.standard_data.values import Warned

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

FORMAT = "standard-data"
_SOURCE = Source(format=FORMAT)
_USER, _ASSISTANT = (Participant(USER, USER),), (Participant(ASSISTANT, ASSISTANT),)
_EXPECTED = frozenset(("ground_truth", "expected_format", "expected_tool_call"))
_OWN_EXTRAS = frozenset(("unknown", "warnings", KEPT))
_NOT_METADATA = frozenset(("agent", *PEOPLE))
_DEEPEST, _MOST_BITS, _LONGEST = 50, 10_000, 1_000


# From items to a conversation


def to_conversation(items: Sequence[Tidied], *, id: str, source: Source = _SOURCE) -> Conversation:
    """One conversation of the items that belong to it, in the order in which they were read."""
    if len(items) == 1:
        fields = items[0].fields
        if "conversation_context" not in fields and ("message" not in fields or "agent_task" in fields):
            return _alone(items[0], id, source)
    return _joined(items, id, source)


def _alone(tidied: Tidied, id: str, source: Source) -> Conversation:
    """An item without a history: a question, what happened, an answer. Most items are such, and it must be quick."""
    fields = tidied.fields.copy()
    timeline: list[AnyEvent] = []
    clocks: Clocks = {}
    asked = answered = None
    if "agent_task" in fields:
        asked = 0
        timeline.append(Utterance(seq=0, speaker=USER, intended=Text(fields.pop("agent_task"), "agent_task")))
    events = () if HAPPENED.isdisjoint(fields) else happen(fields, timeline, clocks)
    if "agent_response" in fields:
        answered = len(timeline)
        text = Text(fields.pop("agent_response"), "agent_response")
        timeline.append(Utterance(seq=answered, speaker=ASSISTANT, intended=text))
    agent = _take_agent(fields)
    dimensions = {"agent": agent.name} if agent.name else {}
    audio = fields.pop("raw_complete_audio") if fields.get("raw_complete_audio") else None
    for name in PEOPLE:
        if fields.get(name):
            dimensions[name] = fields.pop(name)
    if "metadata" in fields:
        add_dimensions(dimensions, fields["metadata"])
    return Conversation(
        id=id,
        dimensions=dimensions,
        source=source,
        participants=(_USER if asked is not None else ()) + (_ASSISTANT if answered is not None else ()),
        clocks=tuple(clocks.values()),
        agent=agent,
        items=(_item(tidied, fields, _take_id(fields, 1, ()), asked, answered, events),),
        timeline=tuple(timeline),
        recording=None if audio is None else to_recording(audio),
    )


def _take_agent(fields: Fields) -> Agent:
    """The agent, taken out of the fields; an empty name stays there, since it is not the same as a missing one."""
    tools = fields.pop("tools_available", None)
    return Agent(
        name=take(fields, "agent_name"),
        role=take(fields, "agent_role"),
        instructions=take(fields, "system_prompt"),
        tools=None if tools is None else tuple(map(to_tool, tools)),
    )


def _item(
    tidied: Tidied, fields: Fields, id: str, asked: int | None, answered: int | None, events: tuple[int, ...]
) -> Item:
    """The item itself. What is still in the fields has no other home, and becomes its extras."""
    expected = NOTHING_EXPECTED if _EXPECTED.isdisjoint(fields) else take_expected(fields)
    outcome = take_outcome(fields) if "agent_exit" in fields or "exit_status" in fields else None
    if tidied.unknown:
        fields["unknown"] = tidied.unknown
    if tidied.warnings:
        fields["warnings"] = [_as_json(warned) for warned in tidied.warnings]
    return Item(
        id=id,
        kind=fields.pop("novaeval_item_type", ""),
        asked=asked,
        answered=answered,
        events=events,
        expected=expected,
        outcome=outcome,
        extras=fields,
    )


def _take_id(fields: Fields, number: int, taken: Container[str]) -> str:
    """An id for an item: its turn_id, or its number. Where that is taken, the item keeps its turn_id."""
    turn_id = fields.get("turn_id")
    if turn_id and turn_id not in taken:
        del fields["turn_id"]
        return str(turn_id)
    if turn_id is None:
        fields["turn_id"] = None
    name = turn_id or str(number)
    return name if name not in taken else next(id for n in count(2) if (id := f"{name}~{n}") not in taken)


def _joined(items: Sequence[Tidied], id: str, source: Source) -> Conversation:
    """Items with a history, or several of one conversation: what they say of the talk is put together."""
    drafts = [tidied.fields.copy() for tidied in items]
    shared = _share(drafts)
    dimensions = _common_dimensions(items)
    for name in PEOPLE:
        if name in dimensions:
            for fields in drafts:
                del fields[name]
    agent = _take_agent(shared)
    talk = Talk(agent.name)
    entries: dict[int, HistoryEntry] = {}
    for index in _in_turn(items):
        entries[index] = talk.add(drafts[index], _when(items[index]))
    joined = _Timeline(talk.lines, drafts, entries)
    built: dict[str, Item] = {}
    for index, (tidied, fields) in enumerate(zip(items, drafts, strict=True)):
        entry = entries[index]
        name = _take_id(fields, index + 1, built)
        context = fields.get("conversation_context")
        if context is not None and isinstance(context.get("turns"), list):
            # The turns of a history are in the timeline: the item only says which.
            fields["conversation_context"] = {**context, "turns": [joined.seqs[line] for line in entry.history]}
        own_turn = (joined.seqs[entry.turn],) if entry.turn else ()
        events = (*own_turn, *joined.events.get(index, ()))
        asked, answered = (None if line is None else joined.seqs[line] for line in (entry.asked, entry.answered))
        built[name] = _item(tidied, fields, name, asked, answered, events)
    audio = shared.get("raw_complete_audio")
    return Conversation(
        id=id,
        dimensions=dimensions,
        source=source,
        participants=tuple({line.speaker: Participant(line.speaker, line.role) for line in talk.lines}.values()),
        clocks=tuple(joined.clocks.values()),
        agent=agent,
        items=tuple(built.values()),
        timeline=tuple(joined.timeline),
        recording=None if audio is None else to_recording(audio),
    )


class _Timeline:
    """The lines as utterances, and between them what happened: before the answer of its item, or after its question."""

    def __init__(
        self, lines: Sequence[HistoryLine], drafts: Sequence[Fields], entries: Mapping[int, HistoryEntry]
    ) -> None:
        self.timeline: list[AnyEvent] = []
        self.clocks: Clocks = {}
        self.seqs: dict[HistoryLine, int] = {}
        self.events: dict[int, tuple[int, ...]] = {}
        before: dict[HistoryLine, list[int]] = {}
        after: dict[HistoryLine | None, list[int]] = {}
        for index, entry in entries.items():
            if HAPPENED.isdisjoint(drafts[index]):
                continue
            if entry.answered is not None:
                before.setdefault(entry.answered, []).append(index)
            else:
                after.setdefault(entry.after, []).append(index)
        self._happen(after.get(None, ()), drafts)
        for line in lines:
            self._happen(before.get(line, ()), drafts)
            self.seqs[line] = seq = len(self.timeline)
            intended = None if line.text is None else Text(line.text, line.source)
            time = None if line.when is None else time_of(line.when, self.clocks)
            self.timeline.append(
                Utterance(seq=seq, speaker=line.speaker, intended=intended, time=time, extras=line.extras)
            )
            self._happen(after.get(line, ()), drafts)

    def _happen(self, indices: Iterable[int], drafts: Sequence[Fields]) -> None:
        for index in indices:
            self.events[index] = happen(drafts[index], self.timeline, self.clocks)


def _share(drafts: Sequence[Fields]) -> Fields:
    """Take the fields of the agent and the recording out of the items where they agree with the first that has them.

    An item without such a field, where others have it, says so with a null.
    """
    shared: Fields = {}
    for name in SHARED:
        # An empty list of tools is something that is known; an empty text or recording is not.
        counts_empty = name == "tools_available"
        values = (fields.get(name) for fields in drafts)
        first = next((value for value in values if value or (counts_empty and value is not None)), None)
        if first is None:
            continue
        shared[name] = first
        for fields in drafts:
            if name not in fields:
                fields[name] = None
            elif identical(fields[name], first):
                del fields[name]
    return shared


def _common_dimensions(items: Sequence[Tidied]) -> dict[str, str]:
    """The dimensions that all items which state them agree on. A user and a task must be stated by all."""
    stated: dict[str, set[str]] = {}
    for tidied in items:
        own: dict[str, str] = {}
        if name := tidied.fields.get("agent_name"):
            own["agent"] = name
        add_dimensions(own, tidied.fields.get("metadata") or {})
        for name in PEOPLE:
            own[name] = tidied.fields.get(name) or ""
        for name, value in own.items():
            stated.setdefault(name, set()).add(value)
    return {name: value for name, values in stated.items() if len(values) == 1 and (value := next(iter(values)))}


def _in_turn(items: Sequence[Tidied]) -> list[int]:
    """The order in which items were said: by position, then by time, where all have it; else as they were read."""
    positions = [tidied.fields.get("turn_position") for tidied in items]
    times = [moment(_when(tidied)) for tidied in items]
    by_position = all(position is not None for position in positions)
    by_time = len({time.kind if time else None for time in times} | {None}) == 2 and all(times)

    def key(index: int) -> tuple[float, float, int]:
        position, time = positions[index], times[index]
        return (position or 0) if by_position else 0, time.at if by_time and time else 0.0, index

    return sorted(range(len(items)), key=key)


def _when(tidied: Tidied) -> Any:
    """When an item's own turn was said: the schema has no field for it, exports do."""
    timestamp = tidied.unknown.get("timestamp")
    return tidied.fields.get("metadata", {}).get("timestamp") if timestamp is None else timestamp


def _as_json(warned: Warned) -> list[Any]:
    """A warning as JSON can carry it: what came out of Python may be anything."""
    given = list(warned)
    try:
        carried = bool(msgspec.json.decode(msgspec.json.encode(given)) == given)
    except (TypeError, ValueError, RecursionError):
        carried = False
    return given if carried else [_writable(value) for value in given]


def _writable(value: Any, depth: int = 0) -> Any:
    """The nearest thing to a value that JSON can carry."""
    if depth == _DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {str(key): _writable(member, depth + 1) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(element, depth + 1) for element in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and value.bit_length() < _MOST_BITS:
        return value
    if not isinstance(value, str):
        try:
            value = repr(value)[:_LONGEST]
        except Exception:  # whatever a foreign object does when it is shown
            value = repr(type(value))
    return value.encode("utf-8", "replace").decode()


# From a conversation to items


def standard_data_of(conversation: Conversation) -> list[StandardData]:
    """The items of a conversation; of one without items, one item that holds the whole of it."""
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
    texts = {utterance.seq: conversation.text(utterance) for utterance in conversation.utterances}
    # What happened for the item, in the order that it says; for the only item, all that happened.
    events: Sequence[AnyEvent] = conversation.timeline
    if item.events or len(conversation.items) > 1:
        by_seq = {event.seq: event for event in conversation.timeline}
        events = [by_seq[seq] for seq in item.events if seq in by_seq]
    fields = {
        **_stated(conversation),
        "turn_id": item.id,
        **fields_of_item(item),
        "agent_task": None if item.asked is None else texts.get(item.asked),
        "agent_response": None if item.answered is None else texts.get(item.answered),
        **happened(events),
    }
    unknown = dict(item.extras.get("unknown") or {})
    for name, value in item.extras.items():
        if name in FIELDS:
            fields[name] = value
        elif name not in _OWN_EXTRAS:
            unknown[name] = value
    if conversation.source.format != FORMAT:
        fields.setdefault("conversation_context", _history_of(conversation))
    else:
        _restore_turns(fields, conversation)
    fields.update(item.extras.get(KEPT) or {})
    warnings = [msgspec.convert(warned, Warned) for warned in item.extras.get("warnings") or ()]
    return Tidied(filled(fields), unknown, warnings)


def _stated(conversation: Conversation) -> Fields:
    """What the conversation says for all of its items."""
    agent, recording = conversation.agent, conversation.recording
    return {
        **{name: conversation.dimensions.get(name) for name in PEOPLE},
        "raw_complete_audio": None if recording is None else audio_of(recording),
        "agent_name": agent.name or None,
        "agent_role": agent.role or None,
        "system_prompt": agent.instructions or None,
        "tools_available": None if agent.tools is None else [schema_of(tool) for tool in agent.tools],
    }


def _restore_turns(fields: Fields, conversation: Conversation) -> None:
    """Put the turns of the history back, of which the item only says where they are."""
    context = fields.get("conversation_context")
    if context is None or not isinstance(context.get("turns"), list):
        return
    by_seq = {utterance.seq: utterance for utterance in conversation.utterances}
    turns = []
    for utterance in (by_seq[seq] for seq in context["turns"] if isinstance(seq, int) and seq in by_seq):
        message = None if utterance.intended is None else utterance.intended.text
        turns.append({**filled({"speaker": utterance.speaker or None, "message": message}), **utterance.extras})
    fields["conversation_context"] = {**context, "turns": turns}


def _whole(conversation: Conversation) -> Tidied:
    """A conversation without items: what was said is the history, and the last texts are question and answer."""
    recording = conversation.recording
    metadata = {name: value for name, value in conversation.dimensions.items() if name not in _NOT_METADATA}
    if recording is not None and recording.tracks and recording.tracks[0].path:
        metadata["local_audio_path"] = recording.tracks[0].path
    fields: dict[str, Any] = {
        **_stated(conversation),
        **fields_of_expected(conversation.expected),
        **fields_of_outcome(conversation.outcome),
        "agent_task": last_words(conversation, USER) or None,
        "agent_response": last_words(conversation, ASSISTANT) or None,
        "conversation_context": _history_of(conversation),
        "metadata": metadata or None,
        **happened(conversation.timeline),
    }
    calls = conversation.expected.tool_calls or ()
    unknown: Fields = {"conversation_id": conversation.id}
    if len(calls) > 1:
        unknown["expected_tool_calls"] = [expected_call_of(call) for call in calls]
    return Tidied(filled(fields), unknown, [])


def _history_of(conversation: Conversation) -> Fields | None:
    turns = [
        filled(
            {
                "speaker": conversation.roles[utterance.speaker],
                "message": conversation.text(utterance),
                "timestamp": _iso(utterance.time),
            }
        )
        for utterance in conversation.utterances
    ]
    return {"turns": turns} if turns else None


def _iso(time: Time | None) -> str | None:
    if time is None or time.clock != "wall":
        return None
    try:
        return datetime.fromtimestamp(time.at, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):  # beyond the years that a calendar has
        return None
