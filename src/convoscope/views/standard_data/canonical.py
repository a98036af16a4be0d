"""Evaluation items as a conversation, and back: nothing is lost either way.

The fields of an item move to where the conversation keeps such data: what was said, what happened, what was expected.
What has no other home stays in the `extras` of the `Item` under its own name. A null there says that the item
does not have what the conversation has."""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.conversation.events import AnyEvent, Text, Time, Utterance, moment
from convoscope.conversation.model import ASSISTANT, USER, Agent, Conversation, Item, Participant, Source
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
    take_expected,
    take_outcome,
    time_of,
    to_recording,
    to_tool,
)
from convoscope.views.standard_data.history import HistoryEntry, HistoryLine, Talk
from convoscope.views.standard_data.tidy import FIELDS, Tidied
from convoscope.views.standard_data.values import Warned

FORMAT = "standard-data"
_SOURCE = Source(format=FORMAT)
_USER = Participant(USER, USER)
_ASSISTANT = Participant(ASSISTANT, ASSISTANT)
PARTICIPANTS = {
    (True, True): (_USER, _ASSISTANT),
    (True, False): (_USER,),
    (False, True): (_ASSISTANT,),
    (False, False): (),
}


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
    dimensions: dict[str, str] = {}
    agent = _take_agent(fields, dimensions)
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
        participants=PARTICIPANTS[asked is not None, answered is not None],
        clocks=tuple(clocks.values()),
        agent=agent,
        items=(_item(tidied, fields, _called(fields, 1, ()), asked, answered, events),),
        timeline=tuple(timeline),
        recording=None if audio is None else to_recording(audio),
    )


def _take_agent(fields: Fields, dimensions: dict[str, str]) -> Agent:
    """The agent, taken out of the fields; a name that is empty stays there, since it says something else than none."""
    name = fields.get("agent_name")
    if name:
        del fields["agent_name"]
        dimensions["agent"] = name
    role, prompt = fields.get("agent_role"), fields.get("system_prompt")
    if role:
        del fields["agent_role"]
    if prompt:
        del fields["system_prompt"]
    tools = fields.pop("tools_available", None)
    return Agent(
        name=name or "",
        role=role or "",
        instructions=prompt or "",
        tools=None if tools is None else tuple(to_tool(one) for one in tools),
    )


def _item(
    tidied: Tidied, fields: Fields, id: str, asked: int | None, answered: int | None, events: tuple[int, ...]
) -> Item:
    """The item itself. What is still in the fields has no other home, and becomes its extras."""
    expects = "ground_truth" in fields or "expected_format" in fields or "expected_tool_call" in fields
    expected = take_expected(fields) if expects else NOTHING_EXPECTED
    outcome = take_outcome(fields) if "agent_exit" in fields or "exit_status" in fields else None
    if tidied.unknown:
        fields["unknown"] = tidied.unknown
    if tidied.warnings:
        fields["warnings"] = [_plain(one) for one in tidied.warnings]
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


def _called(fields: Fields, place: int, taken: Container[str]) -> str:
    """An id for an item: its turn_id, or its place. Where that is taken, the item keeps what it was called."""
    turn_id = fields.get("turn_id")
    if turn_id and turn_id not in taken:
        del fields["turn_id"]
        return str(turn_id)
    if turn_id is None:
        fields["turn_id"] = None
    name = turn_id or str(place)
    return name if name not in taken else next(id for n in count(2) if (id := f"{name}~{n}") not in taken)


def _joined(items: Sequence[Tidied], id: str, source: Source) -> Conversation:
    """Items with a history, or several of one conversation: what they tell of the talk is put together."""
    drafts = [tidied.fields.copy() for tidied in items]
    shared = _share(drafts)
    dimensions = _common_dimensions(items)
    for name in PEOPLE:
        if name in dimensions:
            for fields in drafts:
                del fields[name]
    agent = _take_agent(shared, {})
    talk = Talk(agent.name)
    entries: dict[int, HistoryEntry] = {}
    for place in _in_turn(items):
        entries[place] = talk.tell(drafts[place], _when(items[place]))
    laid = _Laid(talk.lines, drafts, entries)
    built: dict[str, Item] = {}
    for place, (tidied, fields) in enumerate(zip(items, drafts, strict=True)):
        entry = entries[place]
        name = _called(fields, place + 1, built)
        laid.point(fields, entry)
        own_turn = (laid.seqs[entry.turn],) if entry.turn else ()
        events = (*own_turn, *laid.events.get(place, ()))
        built[name] = _item(tidied, fields, name, laid.seq(entry.asked), laid.seq(entry.answered), events)
    audio = shared.get("raw_complete_audio")
    return Conversation(
        id=id,
        dimensions=dimensions,
        source=source,
        participants=tuple({line.speaker: Participant(line.speaker, line.role) for line in talk.lines}.values()),
        clocks=tuple(laid.clocks.values()),
        agent=agent,
        items=tuple(built.values()),
        timeline=tuple(laid.timeline),
        recording=None if audio is None else to_recording(audio),
    )


class _Laid:
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
        for place, entry in entries.items():
            if HAPPENED.isdisjoint(drafts[place]):
                continue
            if entry.answered is not None:
                before.setdefault(entry.answered, []).append(place)
            else:
                after.setdefault(entry.after, []).append(place)
        self._happen(after.get(None, ()), drafts)
        for line in lines:
            self._happen(before.get(line, ()), drafts)
            self._say(line)
            self._happen(after.get(line, ()), drafts)

    def seq(self, line: HistoryLine | None) -> int | None:
        return None if line is None else self.seqs[line]

    def point(self, fields: Fields, entry: HistoryEntry) -> None:
        """The turns of a history are in the timeline: the item only says which."""
        context = fields.get("conversation_context")
        if context is not None and isinstance(context.get("turns"), list):
            fields["conversation_context"] = {**context, "turns": [self.seqs[line] for line in entry.history]}

    def _say(self, line: HistoryLine) -> None:
        self.seqs[line] = seq = len(self.timeline)
        self.timeline.append(
            Utterance(
                seq=seq,
                speaker=line.speaker,
                intended=None if line.text is None else Text(line.text, line.source),
                time=None if line.when is None else time_of(line.when, self.clocks),
                extras=line.extras,
            )
        )

    def _happen(self, places: Iterable[int], drafts: Sequence[Fields]) -> None:
        for place in places:
            self.events[place] = happen(drafts[place], self.timeline, self.clocks)


def _share(drafts: Sequence[Fields]) -> Fields:
    """Take the facts of the agent and the recording out of the items where they agree with the first that has them.

    An item that has none, where others do, says so with a null.
    """
    shared: Fields = {}
    for name in SHARED:
        # No tools at all are something that is known; an empty text or recording is nothing.
        first = next((fields[name] for fields in drafts if fields.get(name) or _is_no_tools(name, fields)), None)
        if first is None:
            continue
        shared[name] = first
        for fields in drafts:
            if name not in fields:
                fields[name] = None
            elif identical(fields[name], first):
                del fields[name]
    return shared


def _is_no_tools(name: str, fields: Fields) -> bool:
    return name == "tools_available" and fields.get(name) is not None


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
    """The order in which items were said: by position, then by time, where all items tell; else as they were read."""
    positions = [tidied.fields.get("turn_position") for tidied in items]
    times = [moment(_when(tidied)) for tidied in items]
    by_position = all(position is not None for position in positions)
    by_time = len({time.kind if time else None for time in times} | {None}) == 2 and all(times)

    def key(place: int) -> tuple[float, float, int]:
        position, time = positions[place], times[place]
        return (position or 0) if by_position else 0, time.at if by_time and time else 0.0, place

    return sorted(range(len(items)), key=key)


def _when(tidied: Tidied) -> Any:
    """When an item's own turn was said: the schema has no field for it, exports do."""
    timestamp = tidied.unknown.get("timestamp")
    return tidied.fields.get("metadata", {}).get("timestamp") if timestamp is None else timestamp


def _plain(warned: Warned) -> list[Any]:
    """A warning as JSON can carry it: what came out of Python may be anything."""
    given = list(warned)
    try:
        carried = bool(msgspec.json.decode(msgspec.json.encode(given)) == given)
    except (TypeError, ValueError, RecursionError):
        carried = False
    return given if carried else [_writable(one) for one in given]


def _writable(value: Any, depth: int = 0) -> Any:
    """The nearest thing to a value that JSON can carry."""
    if depth == _DEEPEST:
        return "(nested too deeply)"
    if isinstance(value, dict):
        return {str(key): _writable(one, depth + 1) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_writable(one, depth + 1) for one in value]
    if value is None or isinstance(value, bool) or (isinstance(value, float) and math.isfinite(value)):
        return value
    if isinstance(value, int) and value.bit_length() < _MOST_BITS:
        return value
    return (value if isinstance(value, str) else _shown(value)).encode("utf-8", "replace").decode()


def _shown(value: Any) -> str:
    try:
        return repr(value)[:_LONGEST]
    except Exception:  # whatever a stranger's object does when it is shown
        return repr(type(value))


_DEEPEST = 50
_MOST_BITS = 10_000
_LONGEST = 1_000


if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

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
        **happened(_events_of(conversation, item)),
    }
    unknown = dict(item.extras.get("unknown") or {})
    for name, value in item.extras.items():
        if name in FIELDS:
            fields[name] = value
        elif name not in _OURS:
            unknown[name] = value
    if conversation.source.format != FORMAT:
        fields.setdefault("conversation_context", _history_of(conversation))
    else:
        _restore_history(fields, conversation)
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


def _events_of(conversation: Conversation, item: Item) -> Sequence[AnyEvent]:
    """What happened for the item, in the order that it says; for the only item, all that happened."""
    if not item.events and len(conversation.items) == 1:
        return conversation.timeline
    by_seq = {event.seq: event for event in conversation.timeline}
    return [by_seq[seq] for seq in item.events if seq in by_seq]


def _restore_history(fields: Fields, conversation: Conversation) -> None:
    """Put the turns of the history back, of which the item only says where they are."""
    context = fields.get("conversation_context")
    if context is None or not isinstance(context.get("turns"), list):
        return
    by_seq = {utterance.seq: utterance for utterance in conversation.utterances}
    turns = [_turn_fields(by_seq[seq]) for seq in context["turns"] if isinstance(seq, int) and seq in by_seq]
    fields["conversation_context"] = {**context, "turns": turns}


def _turn_fields(utterance: Utterance) -> Fields:
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
