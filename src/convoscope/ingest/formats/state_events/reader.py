"""Event streams of agents that are driven by a flow: states entered and left, turns, guards, slots, tools."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Agent, Clock, Conversation, Outcome, Scenario, Source
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.formats.state_events.lines import (
    CALL,
    EVENTS,
    FLOW_EVENTS,
    IDS,
    RESULT,
    SPEAKERS,
    TEXT_LISTS,
    TIMES,
    HoldsEvents,
    event_name,
    flattened,
    in_order,
    is_text,
    kind_of,
    may_hold,
    payload_of,
    text_of,
)
from convoscope.ingest.formats.state_events.strict import NotStrict, strict_conversation
from convoscope.ingest.formats.state_events.timeline import EventWalk, outcome_of
from convoscope.ingest.io.json import decode
from convoscope.ingest.reader import Detection, Lines, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_object, filled
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import dimensions

_LOOKED_AT = 50
_EXPECTED = 'expected lines such as {"conversation_id": …, "timestamp": …, "event": "state_entered", "state": …}'
_RECORD_IDS = (*IDS, "id")
_ENDS = {
    "completed": ("completed",),
    "stop_reason": ("stop_reason", "ended_reason", "end_reason"),
    "final_status": ("final_status", "status"),
    "error": ("error",),
    "errored": ("errored",),
    "duration_s": ("duration_s", "duration_seconds"),
}
_PIPELINES: dict[str, Pipeline] = {"text": "text", "cascade": "cascade", "audio_llm": "audio_llm", "s2s": "s2s"}
_USUAL = frozenset({"metadata", "seed", "started_at", "ended_at", "outcome", *IDS, *TIMES})


class _Ids(msgspec.Struct, gc=False):
    """All of a line that is looked at to bring lines together; the rest of its text is passed over."""

    conversation_id: str | int | None = None
    session_id: str | int | None = None
    call_id: str | int | None = None
    data: msgspec.Raw = msgspec.Raw()
    payload: msgspec.Raw = msgspec.Raw()


_decode_ids = msgspec.json.Decoder(_Ids).decode


class _Id(msgspec.Struct, gc=False):
    """What most lines have."""

    conversation_id: str


_decode_id = msgspec.json.Decoder(_Id).decode


class StateEventsReader(Reader):
    """Events of flow states: line by line, or in records that hold a list of them."""

    name = "state-events"
    title = "Flow state events"
    strict_first = True
    """Lines are decoded by type where they can be. The other way gives the same; tests compare the two."""

    def detect(self, sample: Sample) -> Detection | None:
        values = [value for value in sample.values if isinstance(value, dict | list)]
        if any(_holds_events(value) for value in values):
            return Detection(0.97, "a record with a list of state events")
        lines = [_flat(value) for value in values if isinstance(value, dict)]
        kinds = [kind_of(event_name(line)[1]) for line in lines]
        sure = 0.95 if FLOW_EVENTS & set(kinds) else 0.6 if any(kinds) else 0.3
        if not any(kinds) and not any(_may_be_event(line) for line in lines):
            return None
        # An id that only tools' lines carry is that of a call of a tool.
        ids = [
            _id_of(line, IDS[:2] if kind in (CALL, RESULT) else IDS) for line, kind in zip(lines, kinds, strict=True)
        ]
        if None not in ids or len(set(ids) - {None}) > 1:
            return Detection(sure, "each record is one event of a flow, with the id of its conversation", "key")
        return Detection(sure, "each record is one event of a flow", "file")

    def key(self, value: Any) -> str | None:
        return _id_of(_flat(value), IDS) if isinstance(value, dict) else None

    def quick_key(self, text: bytes) -> str | None:
        """The id, where it is in the line itself; else the line is looked at more closely."""
        try:
            ids = _decode_ids(text)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return self.key(decode(text).value)
        key = ids.conversation_id
        if key is None and not ids.data and not ids.payload:
            key = ids.session_id if ids.session_id is not None else ids.call_id
        return self.key(decode(text).value) if key is None or key == "" else str(key)

    def quick_keys(self, texts: Sequence[bytes]) -> Sequence[str] | None:
        if not self.strict_first:
            return None
        try:
            keys = [_decode_id(text).conversation_id for text in texts]
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return keys if all(keys) else None

    def quick_build(self, lines: Lines) -> Conversation | None:
        if not self.strict_first:
            return None
        try:
            return strict_conversation(lines, self.name)
        except (NotStrict, msgspec.MsgspecError, ValueError, RecursionError):
            return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        records = group.records
        keyed = bool(records and records[0].file)
        before = len(notes.taken)
        try:
            for id, own_records in [(group.name, records)] if keyed else _by_id(group):
                yield self._conversation(_RecordContent({}, own_records, apart=False), group, id, notes)
        except HoldsEvents:
            del notes.taken[before:]
        else:
            return
        parsed = [_content_of(record, notes) for record in records]
        if keyed or len(records) == 1:
            entries = [entry for content in parsed for entry in content.entries]
            head: JsonObject = {}
            for content in parsed:
                head = {**content.head, **head}  # The first that says something counts.
            whole = _RecordContent(head, entries, parsed[0].second)
            yield self._conversation(whole, group, group.name if keyed else _named(whole, group), notes)
            return
        for content in parsed:
            yield self._conversation(content, group, _named(content, group), notes)

    def _conversation(self, content: _RecordContent, group: RecordGroup, id: str, notes: Notes) -> Conversation:
        ordered = in_order(content.entries, notes, taken_apart=content.apart, second=content.second)
        walk = EventWalk(id, notes)
        walk.go(ordered.lines)
        if not walk.has_content:
            raise InputError("has no event of a flow", field="event", hint=_EXPECTED)
        clocks = {clock.id: clock for clock in walk.clocks}
        for kind in sorted(ordered.clocks):
            clocks.setdefault(kind, Clock(id=kind, kind="wall" if kind == "wall" else "relative", source="timestamp"))
        left, shared = dict(content.head), walk.shared
        # Dimensions by name, also where a log writes an object that has one.
        named = [
            {name: text_of(value) if isinstance(value, dict) else value for name, value in record.items()}
            for record in (left, shared, left.get("metadata"))
            if record and isinstance(record, dict)
        ]
        dims = dimensions(*named)
        persona = next(filter(None, (text_of(record.get("persona")) for record in named)), "")
        if persona:
            dims.setdefault("persona", persona)
        outcome = _outcome(walk.ended, left, notes)
        pipeline = _PIPELINES.get(text_of(left.pop("pipeline", None)))
        personas = (record["persona"] for record in (left, shared) if isinstance(record.get("persona"), dict))
        scenario = next((Scenario(persona=persona) for persona in personas), None)
        for name, value in left.items():
            if value is not None and name not in _USUAL and name not in dims and name != "id":
                notes.unknown(f"record.{name}")
        # What was not taken, of records and of what all lines say.
        known = {**dims, **dict.fromkeys(_RECORD_IDS, id)} | ({"agent_name": dims["agent"]} if "agent" in dims else {})
        extras = {
            name: value
            for name, value in {**shared, **left}.items()
            if value is not None
            and not (name == "persona" and isinstance(value, dict))
            and (isinstance(value, dict | list) or str(value) != known.get(name))
        }
        return Conversation(
            id=id,
            dimensions=dims,
            source=Source(format=self.name, files=group.file_names, record=group.name),
            pipeline=pipeline,
            participants=walk.participants,
            clocks=tuple(clocks.values()),
            agent=Agent(
                name=dims.get("agent", ""),
                instructions="\n\n".join(walk.instructions),
                models=filled({"llm": dims.get("model", "")}),
            ),
            scenario=scenario,
            timeline=tuple(walk.events),
            outcome=outcome,
            extras=extras,
        )


class _RecordContent(NamedTuple):
    """What a record says: of the whole conversation, and event by event."""

    head: JsonObject
    entries: Sequence[Record]
    second: int = 0
    """The index of the first entry of a second list."""
    apart: bool = True
    """The entries were taken out of lists, where there were any."""


def _by_id(group: RecordGroup) -> Iterator[tuple[str, Sequence[Record]]]:
    """The lines of a file are one conversation, but where they carry several ids."""
    if any(may_hold(record.value) for record in group.records):
        raise HoldsEvents
    by_id: dict[str | None, list[Record]] = {}
    for record in group.records:
        by_id.setdefault(_id_of(_flat(record.value), IDS[:2]), []).append(record)
    ids = [id for id in by_id if id is not None]
    if len(ids) <= 1:
        yield ids[0] if ids else group.name, group.records
    else:
        yield from ((id or group.name, own) for id, own in by_id.items())


def _content_of(record: Record, notes: Notes) -> _RecordContent:
    value = record.value
    if isinstance(value, list):
        return _RecordContent({}, [record._replace(value=message) for message in value])
    if not may_hold(value) or kind_of(event_name(value)[1]):
        return _RecordContent({}, [record])
    head = dict(value)
    entries: list[Record] = []
    texts = next((name for name in TEXT_LISTS if isinstance(value.get(name), list)), "")
    second = 0
    for name in value:
        if isinstance(value[name], list) and name in (EVENTS, texts):
            second = len(entries)
        if name == EVENTS and isinstance(value[name], list):
            entries += [record._replace(value=message) for message in head.pop(name)]
        elif name == texts:
            for message in head.pop(name):
                entries += [record._replace(value=part) for part in _parts(message)]
    if any(isinstance(head.get(name), list) for name in TEXT_LISTS):
        notes.ignored("second_transcript", ", ".join(name for name in TEXT_LISTS if name in head))
    return _RecordContent(head, entries, second)


def _parts(message: Any) -> Iterator[Any]:
    """A message, then the events that it carries; a turn of two speakers is two messages."""
    if not isinstance(message, dict):
        yield message
        return
    inner = message.get(EVENTS)
    text_fields = (
        {name: value for name, value in message.items() if name != EVENTS} if isinstance(inner, list) else message
    )
    pair = [name for name in text_fields if name in SPEAKERS and isinstance(text_fields[name], str)]
    if pair and not is_text(text_fields) and not event_name(text_fields)[0]:
        shared = {name: value for name, value in text_fields.items() if name not in pair}
        for name in pair:
            yield {"role": name, "content": text_fields[name], **shared}
    elif text_fields:
        yield text_fields
    if isinstance(inner, list):
        yield from inner


def _flat(value: Any) -> JsonObject:
    if not isinstance(value, dict):
        return {}
    payload = payload_of(value)
    return flattened(value, payload) if payload else value


def _id_of(fields: JsonObject, names: Sequence[str]) -> str | None:
    """The conversation that something says it belongs to; a number is text."""
    for name in names:
        value = fields.get(name)
        if isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


def _named(content: _RecordContent, group: RecordGroup) -> str:
    return _id_of(content.head, _RECORD_IDS) or _id_of(as_object(content.head.get("metadata")), IDS) or group.name


def _holds_events(value: Any) -> bool:
    """A list with events of a flow among it, or a record that holds one, or messages that carry some."""
    if isinstance(value, list):
        return any(_is_flow_event(message) for message in value[:_LOOKED_AT])
    listed = [value.get(EVENTS)]
    for name in TEXT_LISTS:
        texts = value.get(name)
        if isinstance(texts, list):
            listed.append(texts)
            listed += [as_object(message).get(EVENTS) for message in texts[:_LOOKED_AT]]
    return any(_is_flow_event(event) for events in listed if isinstance(events, list) for event in events[:_LOOKED_AT])


def _is_flow_event(value: Any) -> bool:
    return isinstance(value, dict) and kind_of(event_name(_flat(value))[1]) in FLOW_EVENTS


def _may_be_event(line: JsonObject) -> bool:
    """An event of an unknown kind, in a stream that may have others."""
    return bool(event_name(line)[1]) and _id_of(line, IDS) is not None and any(name in line for name in TIMES)


def _outcome(ended: JsonObject, left: JsonObject, notes: Notes) -> Outcome:
    """How it ended, by its events, else by what its record says; what is used of the record is taken out of it."""
    ending = dict(ended)
    nested = left.get("outcome")
    for record in (left, nested if isinstance(nested, dict) else {}):
        for name, fields in _ENDS.items():
            for field in fields:
                if record.get(field) is not None and name not in ending:
                    ending[name] = record[field]
                    if record is left:
                        del record[field]
    outcome = outcome_of(ending)
    unusable = (
        ("completed", outcome.completed, "completed_not_a_boolean"),
        ("duration_s", outcome.duration, "duration_not_a_time"),
    )
    for name, value, code in unusable:
        if value is None and ending.get(name) is not None:
            notes.set_aside(code, repr(ending[name])[:40])
            left[name] = ending[name]
    return outcome


READER = StateEventsReader()
