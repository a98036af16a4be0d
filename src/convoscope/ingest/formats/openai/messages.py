"""What the two OpenAI shapes have in common: roles, content parts, ids, and the other fields of a record."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from math import inf
from typing import Any

from convoscope.conversation import Agent, Conversation, Expected, ExpectedToolCall, Json, Marker, Outcome, Source
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.ids import (
    RECORD_IDS,
    conversation_id,
    is_call,
    is_counter,
    is_id_of_call,
    is_session,
    is_session_row,
    kept_apart,
    names_conversation,
    record_id,
    row_id,
    times_of,
    unread_ids,
)
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.kits.messages import message_signature, read_tools, role_of
from convoscope.ingest.kits.streams import UNREAD_STREAM
from convoscope.ingest.reader import CallHistory, Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import (
    TIMES,
    Fields,
    JsonObject,
    as_object,
    filled,
    take_content,
    unknown_role,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.time_order import TimedMessage, in_list, in_rows
from convoscope.ingest.timeline_builder import TimelineBuilder, agent_of, dimensions

_BEFORE, _AFTER = 64, 256
_USER = b'"user"'


def quick_keys(text: bytes, list_name: bytes) -> tuple[bytes, bytes]:
    """The first and the second message of the user, as they are written: calls of one conversation share one.

    Growing histories have the first in common; a history that is cut begins with the second of an earlier call. The
    first is empty where no such message is seen: then the records have to be decoded to be compared.
    """
    start = 0 if text[:1] == b"[" else text.find(list_name)
    if start < 0:
        return b"", b""
    first = text.find(_USER, start)
    second = text.find(_USER, first + 1) if first >= 0 else -1
    return _around(text, start, first), _around(text, start, second)


def _around(text: bytes, start: int, position: int) -> bytes:
    """The text of an object around a position in it; what is before the object does not matter."""
    if position < 0:
        return b""
    before = text[max(start, position - _BEFORE) : position].rpartition(b"{")[2]
    return before + text[position : position + _AFTER].partition(b"}")[0]


_INSTRUCTIONS = ("system", "developer")
ENVELOPES = ("request", "response", "body", "input", "output")
REPLY_FIELDS = (
    *("response", "completion", "output", "reply", "answer", "output_text", "generated_text", "generation"),
    *("assistant_response", "model_response", "bot_response", "model_output"),
)
"""Where loggers write the reply as text, apart from the messages that were sent, the surest first."""
_REPLY_TEXTS = ("content", "text", "message", *REPLY_FIELDS)

_TRUTHS = ("ground_truth", "expected_output", "expected_answer", "ideal", "reference", "target", "expected")
# Fields of the API that say nothing about the conversation: kept in extras, and no surprise.
_USUAL = frozenset(
    {*RECORD_IDS, *_TRUTHS, *TIMES, *ENVELOPES, "object", "usage", "status", "choices", "metadata", "error"}
    | {"temperature", "top_p", "tool_choice", "parallel_tool_calls", "max_tokens", "max_output_tokens", "stream"}
    | {"system_fingerprint", "service_tier", "previous_response_id", "store", "user", "text", "reasoning"}
    | {"truncation", "incomplete_details", "instructions", "data", "system_messages"}
)


def one_by_one(sample: Sample, entry: str) -> Detection:
    """Records that are single entries: brought together by id where any has one, else by file."""
    # A field that is empty in all records says that there are several conversations, not which.
    if any(isinstance(value, dict) and names_conversation(value) for value in sample.values):
        return Detection(0.8, f"each record is one {entry}, with the id of its conversation", "key")
    return Detection(0.7, f"each record is one {entry}", "file")


def search(fields: Fields, *names: str, kind: type | tuple[type, ...] = str) -> Any:
    """Take a field from the record, or from the request or response that it wraps."""
    value = fields.take(*names, kind=kind)
    for envelope in ENVELOPES:
        inner = fields.get(envelope)
        if value is None and isinstance(inner, Fields):
            value = search(inner, *names, kind=kind)
    return value


def continued(before: list[Any], after: list[Any], notes: Notes) -> list[Any]:
    """What was sent, then what came back; where that says again what was sent, it is said once."""
    count = len(before)
    repeats = 0 < count < len(after) and all(
        message_signature(one) == message_signature(other) for one, other in zip(before, after[:count], strict=True)
    )
    if repeats:
        notes.ignored("request_repeated", f"{count} entries, in what came back")
    return after if repeats else [*before, *after]


def with_reply(entries: list[Any], fields: Fields) -> list[Any]:
    """The entries and the reply that the record holds as text, where the entries wait for one."""
    last = entries[-1] if entries else None
    is_asked = isinstance(last, dict) and (
        role_of(last) in ("user", "tool") or str(last.get("type")).endswith("_output")
    )
    if not is_asked:
        return entries
    for name in REPLY_FIELDS:
        value, field = fields.get(name), name
        held: JsonObject = fields
        if isinstance(value, dict):
            held = dict(value)
            field = next((text for text in _REPLY_TEXTS if isinstance(value.get(text), str)), "")
        reply = held.get(field)
        if isinstance(reply, str) and reply.strip():
            del held[field]
            if held is not fields:
                fields[name] = held
            fields.notes.inferred(f"reply_in_{name}")
            return [*entries, {"role": "assistant", "content": reply}]
    return entries


def copied(record: Any, notes: Notes) -> Fields:
    """A record to take fields from, down to what it wraps; the original stays as it is."""
    fields = Fields(record, "record", notes, _USUAL)
    for envelope in ENVELOPES:
        if isinstance(fields.get(envelope), dict):
            fields[envelope] = copied(fields[envelope], notes)
    return fields


class OpenAIReader(Reader):
    """What both shapes do alike: records are single entries, lists of them, or objects that hold a list."""

    entry = ""
    """What a list holds: message, item."""
    field = ""
    """Where a user would look for them."""
    expects = ""
    """What such a record looks like."""
    not_an_entry = ""
    """The name of a marker for anything else that is in a list."""
    list_name = b""
    """Where the list begins in a record that is written as JSON."""
    logs_calls = True
    joins_messages = True

    def is_single_entry(self, value: Any) -> bool:
        """Is this record a single entry?"""
        raise NotImplementedError

    def is_entry(self, value: Any) -> bool:
        """Can this part of a list be read?"""
        raise NotImplementedError

    def holds_entries(self, record: JsonObject) -> bool:
        """Does this record hold a list of entries?"""
        raise NotImplementedError

    def take_entries(self, fields: Fields) -> list[Any]:
        """The entries of a record, in their order."""
        raise NotImplementedError

    def add(self, entry: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
        """Put one entry into the timeline."""
        raise NotImplementedError

    def plain(self, entry: JsonObject, timeline: TimelineBuilder) -> JsonObject:
        """An entry with the names that `add` knows."""
        del timeline
        return entry

    def key(self, value: Any) -> str | None:
        return row_id(value) if isinstance(value, dict) else None

    def says(self, value: Any) -> Hashable:
        return (message_signature(value), _timed(value).at) if self.is_single_entry(value) else None

    def history_keys(self, text: bytes) -> tuple[bytes, bytes]:
        return quick_keys(text, self.list_name)

    def _held(self, value: Any, notes: Notes) -> tuple[Fields, list[Any]] | None:
        if isinstance(value, list):
            return Fields({}, "record", notes, _USUAL), value
        if isinstance(value, dict) and self.holds_entries(value):
            fields = copied(value, notes)
            return fields, self.take_entries(fields)
        return None

    def history(self, value: Any) -> CallHistory | None:
        held = self._held(value, Notes())
        if held is None:
            return None
        fields, listed = held
        if search(fields, "error", kind=(str, dict)):
            return None  # a call that failed is a failure, whatever another one says
        messages = [one for one in listed if not (isinstance(one, dict) and _is_not_compared(one))]
        roles = [role_of(one) if isinstance(one, dict) else "" for one in messages]
        metadata = fields.get("metadata")
        by_record = conversation_id(fields) or (conversation_id(metadata) if isinstance(metadata, dict) else None)
        id = by_record or record_id(fields) or ""
        is_one_call = not by_record and (is_call(value) or is_id_of_call(id))
        apart = kept_apart(fields, metadata)
        is_of_session = is_session(fields) or (not conversation_id(fields) and is_session(as_object(metadata)))
        read = map(moment, times_of(fields, metadata))
        return CallHistory(
            messages=[message_signature(one) for one in messages],
            by_agent=[role == "assistant" for role in roles],
            by_user=[role == "user" for role in roles],
            conversation="" if is_one_call else id,
            call=id if is_one_call else "",
            apart=apart.owners,
            labels=apart.labels,
            times=[_timed(one).at for one in messages],
            at=tuple(map(str, times_of(fields, metadata, of_talk=True))) if is_of_session else None,
            written=max((one.at for one in read if one is not None), default=-inf),
            is_call=is_one_call,
            entries=messages,
        )

    def from_text(self, text: str, notes: Notes) -> Any:
        """The entry that a file of plain text is; None for other text."""
        del text, notes

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        nothing = InputError(f"no {self.entry}s here", field=self.field, hint=f"expected {self.expects}")
        no_fields = Fields({}, "record", notes, _USUAL)
        if group.records and all(isinstance(record.value, str) for record in group.records):
            entry = self.from_text("\n".join(record.value for record in group.records), notes)
            if entry is None:
                raise nothing
            model = filled({"model": as_object(entry).pop("model", None)})
            yield self._conversation(Fields(model, "record", notes, _USUAL), [(1, entry)], group, group.name)
            return
        single = [record for record in group.records if self.is_single_entry(record.value)]
        if single:
            ordered = in_rows([_timed(record.value, record.file) for record in group.records])
            if ordered.repaired:
                notes.repaired(ordered.repaired, f"{len(group.records)} records")
            records = [group.records[index] for index in ordered.order]
            entries = [(record.number, record.value) for record in records]
            notes.is_session = is_session_row(single[0].value)
            id = row_id(single[0].value)
            if id is not None and is_counter(id) and len({record.file for record in records}) > 1:
                notes.is_session = True
            if id is None and (field := unread_ids([record.value for record in records])):
                notes.inferred("several_conversations_in_one", f"{field!r} may be their id: name it conversation_id")
            yield self._conversation(no_fields, entries, group, id or group.name)
            return
        for record in group.records:
            held = self._held(record.value, notes)
            if held is None:
                raise nothing
            fields, listed = held
            metadata = fields.get("metadata")
            notes.is_session = is_session(fields) or (not conversation_id(fields) and is_session(as_object(metadata)))
            in_time = in_list([_timed(entry) for entry in listed])
            if in_time.repaired:
                notes.repaired(in_time.repaired, f"{len(listed)} entries")
                listed = [listed[index] for index in in_time.order]
            listed = _with_earlier(listed, record.before)
            yield self._conversation(fields, [(record.number, one) for one in listed], group, group.name)

    def _conversation(
        self, fields: Fields, entries: Sequence[tuple[int, Any]], group: RecordGroup, name: str
    ) -> Conversation:
        notes = fields.notes
        timeline = TimelineBuilder(notes, f"{self.entry}.timestamp")
        given = search(fields, "instructions")
        if not given and (system := search(fields, "system", kind=(str, list))) is not None:
            # The Messages API has the instructions in a field of their own: a text, or blocks of text.
            given = take_content({"content": system}, notes, 0).text
        instructions = [given] if given else []
        rest_of_instructions: list[JsonObject] = []
        by_line = not fields and len(group.records) > 1
        for number, entry in entries:
            notes.line = number if by_line else notes.line
            if not self.is_entry(entry):
                if label := unknown_role(entry):
                    notes.set_aside("role_unknown", repr(label[:80]), timeline.seq)
                notes.ignored(self.not_an_entry, repr(entry)[:80], timeline.seq)
                timeline.mark(self.not_an_entry, entry)
                continue
            plain = self.plain(entry, timeline)
            if plain.get("role") in _INSTRUCTIONS and not timeline.events:
                unread = {key: value for key, value in plain.items() if key not in ("role", "type")}
                content = take_content(unread, notes, 0)
                instructions.append(content.text)
                rest_of_instructions.append(filled({**unread, "content": content.parts}))
            else:
                self.add(plain, timeline, notes)
        if all(isinstance(event, Marker) for event in timeline.events) and not instructions:
            raise InputError(f"has no {self.entry} that can be read", field=self.field)
        if any(rest_of_instructions):
            fields["system_messages"] = rest_of_instructions
        return _assembled(fields, timeline, "\n\n".join(instructions), name, self.name, group)


def _with_earlier(entries: list[Any], before: Sequence[Any]) -> list[Any]:
    """The entries of a window with those that earlier windows have, after the instructions."""
    start = 0
    while before and start < len(entries) and as_object(entries[start]).get("role") in _INSTRUCTIONS:
        start += 1
    return [*entries[:start], *before, *entries[start:]] if before else entries


def _timed(entry: Any, file: str = "") -> TimedMessage:
    if not isinstance(entry, dict):
        return TimedMessage("", None, file)
    value = next((entry[name] for name in TIMES if entry.get(name) not in (None, "")), None)
    read = None if value is None else moment(value)
    return TimedMessage(role_of(entry), None if read is None else read.at, file)


def _is_not_compared(entry: JsonObject) -> bool:
    """Instructions, which may hold the time of a call; a thought, or a reply that could not be read."""
    if entry.get("role") in _INSTRUCTIONS:
        return True
    content = entry.get("content")
    return entry.get("type") == "reasoning" or (isinstance(content, dict) and UNREAD_STREAM in content)


def _assembled(
    fields: Fields, timeline: TimelineBuilder, instructions: str, name: str, format: str, group: RecordGroup
) -> Conversation:
    metadata = fields.get("metadata")
    dims = dimensions(fields, metadata)
    for dimension, value in dims.items():
        if str(fields.get(dimension, "")) == value:
            del fields[dimension]
    if fields.get("agent_name") == dims.get("agent"):
        fields.pop("agent_name", None)
    if "agent" not in dims and (agent := agent_of(timeline.participants, fields.notes)):
        dims["agent"] = agent
    model = dims.get("model") or search(fields, "model")
    if model:
        dims["model"] = model
    named = fields.text(*RECORD_IDS)
    if not named and isinstance(metadata, dict):
        named = conversation_id(metadata) or ""
    tools = search(fields, "tools", "functions", kind=list)
    error = fields.take("error", kind=str)
    expected = _expected(fields, metadata)
    return Conversation(
        id=named or name,
        dimensions=dims,
        source=Source(format=format, files=group.file_names, record=group.name),
        pipeline="text",
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(
            name=dims.get("agent", ""),
            instructions=instructions,
            tools=None if tools is None else read_tools(tools),
            models={"llm": model} if model else {},
        ),
        expected=expected,
        timeline=tuple(timeline.events),
        outcome=Outcome(error=_error_message(error or fields.get("error"))),
        extras=_left_over(fields),
    )


def _error_message(error: Json) -> str:
    """The error of a record in words. A flag is no message; one that is false, also as text, is no error."""
    flag = error.strip().casefold() if isinstance(error, str) else error
    if not flag or flag in ("false", "no", "none", "null", "0"):
        return ""
    if flag is True or flag in ("true", "yes", "1", 1):
        return "the log gives no message"
    return error if isinstance(error, str) else repr(error)


def _left_over(fields: Fields) -> JsonObject:
    """What was not taken. Of the usual fields, the empty ones are dropped, of unknown fields none."""
    extras: JsonObject = {}
    for name, value in fields.items():
        if name not in _USUAL:
            fields.notes.unknown(f"record.{name}")
            extras[name] = value
        elif extra := filled({name: filled(value) if isinstance(value, dict) else value}):
            extras |= extra
    return extras


def _expected(fields: Fields, metadata: Any) -> Expected:
    truth = fields.take(*_TRUTHS, kind=str)
    extras: JsonObject = {}
    if truth is None:
        several = fields.take(*_TRUTHS, kind=list)
        if several is not None:
            truth = next((one for one in several if isinstance(one, str)), None)
            if several not in ([truth], []):
                fields.notes.ignored("further_ground_truths", f"{len(several) - 1} more")
                extras["ground_truths"] = several
    if truth is None:
        other = fields.take(*_TRUTHS, kind=(int, float, dict))
        if other is not None:
            extras["ground_truth"] = other
            fields.notes.set_aside("ground_truth_not_text", type(other).__name__)
    if truth is None and isinstance(metadata, dict) and isinstance(metadata.get("ground_truth"), str):
        truth = metadata["ground_truth"] or None
    calls = fields.take("expected_tool_calls", kind=list)
    if calls is None:
        return Expected(ground_truth=truth, extras=extras)
    if not all(isinstance(call, dict) for call in calls):
        extras["expected_tool_calls"] = calls
    return Expected(
        ground_truth=truth,
        tool_calls=tuple(_expected_call(call) for call in calls if isinstance(call, dict)),
        extras=extras,
    )


def _expected_call(call: JsonObject) -> ExpectedToolCall:
    fields = Fields(call, "tool_call", Notes())
    fields |= fields.take("function", kind=dict) or {}
    arguments = fields.pop("arguments", None)
    if isinstance(arguments, str):
        with suppress(BadJson):
            arguments = decode(arguments.encode("utf-8", "replace")).value
    return ExpectedToolCall(
        name=fields.text("name"),
        arguments=arguments,
        call_id=fields.text("call_id", "id"),
        extras={key: value for key, value in filled(fields).items() if key != "type"},
    )
