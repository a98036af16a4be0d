"""What the two OpenAI shapes have in common: roles, content parts, ids, what stands beside the messages.

Fields are taken out of a copy of the record. What is left over goes to `extras`, so that nothing can
be lost by being overlooked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from convoscope.conversation import (
    Agent,
    Conversation,
    Expected,
    ExpectedToolCall,
    Json,
    Marker,
    Outcome,
    Source,
    Tool,
)
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.formats.openai.repeated import message_signature, quick_keys, role_of
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
    row_id,
    unread_ids,
)
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.reader import CallHistory, Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import (
    TIMES,
    JsonObject,
    as_object,
    filled,
    take,
    take_content,
    take_text,
    unknown_role,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.time_order import TimedMessage, in_list, in_rows
from convoscope.ingest.timeline_builder import TimelineBuilder, agent_of, dimensions

_INSTRUCTIONS = ("system", "developer")
UNREAD_STREAM = "streamed_response"
"""Names a stream of events in the content of a message, where it could not be read."""
ENVELOPES = ("request", "response", "body", "input", "output")
REPLY_FIELDS = (
    *("response", "completion", "output", "reply", "answer", "output_text", "generated_text", "generation"),
    *("assistant_response", "model_response", "bot_response", "model_output"),
)
"""Where loggers write the reply as text beside the messages that were sent, the surest first."""
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


def search(facts: JsonObject, *names: str, kind: type | tuple[type, ...] = str) -> Any:
    """Take a field from the record, or from the request or response that it wraps."""
    value = take(facts, *names, kind=kind)
    for envelope in ENVELOPES:
        inner = facts.get(envelope)
        if value is None and isinstance(inner, dict):
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


def with_reply(entries: list[Any], facts: JsonObject, notes: Notes) -> list[Any]:
    """The entries and the reply that the record holds as text, where the entries wait for one."""
    if not entries or not isinstance(entries[-1], dict) or not _waits(entries[-1]):
        return entries
    for name in REPLY_FIELDS:
        value = facts.get(name)
        held, field = (dict(value), _text_field(value)) if isinstance(value, dict) else (facts, name)
        reply = held.get(field)
        if isinstance(reply, str) and reply.strip():
            del held[field]
            if held is not facts:
                facts[name] = held
            notes.inferred(f"reply_in_{name}")
            return [*entries, {"role": "assistant", "content": reply}]
    return entries


def _waits(entry: JsonObject) -> bool:
    return role_of(entry) in ("user", "tool") or str(entry.get("type")).endswith("_output")


def _text_field(value: JsonObject) -> str:
    """The field of an object that holds the text of a reply; "" where the object is something else."""
    return next((name for name in _REPLY_TEXTS if isinstance(value.get(name), str)), "")


def copied(record: Any) -> JsonObject:
    """A record to take facts from, down to what it wraps; the original stays as it is."""
    facts = dict(record)
    for envelope in ENVELOPES:
        if isinstance(facts.get(envelope), dict):
            facts[envelope] = copied(facts[envelope])
    return facts


class OpenAIReader(Reader, ABC):
    """What both shapes do alike: records are single entries, lists of them, or objects that hold a list."""

    entry = ""
    """What a list holds: message, item."""
    field = ""
    """Where a user would look for them."""
    expects = ""
    """What such a record looks like."""
    stranger = ""
    """The name of a marker for what is in a list and is none."""
    list_name = b""
    """Where the list begins in a record that is written as JSON."""
    logs_calls = True
    joins_messages = True

    @abstractmethod
    def stands_alone(self, value: Any) -> bool:
        """Is this record a single entry?"""

    @abstractmethod
    def is_entry(self, value: Any) -> bool:
        """Can this part of a list be read?"""

    @abstractmethod
    def holds_entries(self, record: JsonObject) -> bool:
        """Does this record hold a list of entries?"""

    @abstractmethod
    def take_entries(self, facts: JsonObject, notes: Notes) -> list[Any]:
        """The entries of a record, in their order."""

    @abstractmethod
    def add(self, facts: JsonObject, timeline: TimelineBuilder, notes: Notes) -> None:
        """Put one entry into the timeline."""

    def plain(self, entry: JsonObject, timeline: TimelineBuilder) -> JsonObject:
        """A copy of an entry, with the names that `add` knows."""
        del timeline
        return dict(entry)

    def key(self, value: Any) -> str | None:
        return row_id(value) if isinstance(value, dict) else None

    def says(self, value: Any) -> Hashable:
        return (message_signature(value), _timed(value).at) if self.stands_alone(value) else None

    def history_keys(self, text: bytes) -> tuple[bytes, bytes]:
        return quick_keys(text, self.list_name)

    def history(self, value: Any) -> CallHistory | None:
        if isinstance(value, list):
            facts, listed = JsonObject(), value
        elif isinstance(value, dict) and self.holds_entries(value):
            facts = copied(value)
            listed = self.take_entries(facts, Notes())
        else:
            return None
        if search(facts, "error", kind=(str, dict)):
            return None  # a call that failed is a failure, whatever another one says
        messages = [one for one in listed if not (isinstance(one, dict) and _is_not_compared(one))]
        roles = [role_of(one) if isinstance(one, dict) else "" for one in messages]
        metadata = facts.get("metadata")
        by_record = conversation_id(facts) or (conversation_id(metadata) if isinstance(metadata, dict) else None)
        id = by_record or take_text(facts, *RECORD_IDS)
        is_one_call = not by_record and (is_call(value) or is_id_of_call(id))
        return CallHistory(
            messages=[message_signature(one) for one in messages],
            by_agent=[role == "assistant" for role in roles],
            by_user=[role == "user" for role in roles],
            conversation="" if is_one_call else id,
            call=id if is_one_call else "",
            apart=kept_apart(facts, metadata),
            is_call=is_one_call,
            entries=messages,
        )

    def from_text(self, text: str, notes: Notes) -> Any:
        """The entry that a file of plain text is; None where it is none."""
        del text, notes

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        if group.records and all(isinstance(record.value, str) for record in group.records):
            entry = self.from_text("\n".join(record.value for record in group.records), notes)
            if entry is None:
                raise InputError(f"no {self.entry}s here", field=self.field, hint=f"expected {self.expects}")
            yield self._conversation({}, [(1, entry)], group, notes, group.name)
            return
        single = [record for record in group.records if self.stands_alone(record.value)]
        if single:
            records = self._in_rows(group.records, notes)
            entries = [(record.number, record.value) for record in records]
            notes.is_session = is_session_row(single[0].value)
            id = row_id(single[0].value)
            if id is not None and is_counter(id) and len({record.file for record in records}) > 1:
                notes.is_session = True
            if id is None and (field := unread_ids([record.value for record in records])):
                notes.inferred("several_conversations_in_one", f"{field!r} may be their id: name it conversation_id")
            yield self._conversation({}, entries, group, notes, id or group.name)
            return
        for record in group.records:
            value = record.value
            if isinstance(value, list):
                facts, listed = JsonObject(), value
            elif isinstance(value, dict) and self.holds_entries(value):
                facts = copied(value)
                listed = self.take_entries(facts, notes)
            else:
                raise InputError(f"no {self.entry}s here", field=self.field, hint=f"expected {self.expects}")
            metadata = facts.get("metadata")
            notes.is_session = is_session(facts) or (not conversation_id(facts) and is_session(as_object(metadata)))
            listed = _with_earlier(self._in_list(listed, notes), record.before)
            yield self._conversation(facts, [(record.number, one) for one in listed], group, notes, group.name)

    def _in_rows(self, records: Sequence[Record], notes: Notes) -> list[Record]:
        """Single entries in the order of time, where that is plainly another one."""
        ordered = in_rows([_timed(record.value, record.file) for record in records])
        if ordered.repaired:
            notes.repaired(ordered.repaired, f"{len(records)} records")
        return [records[index] for index in ordered.order]

    def _in_list(self, entries: list[Any], notes: Notes) -> list[Any]:
        ordered = in_list([_timed(entry) for entry in entries])
        if not ordered.repaired:
            return entries
        notes.repaired(ordered.repaired, f"{len(entries)} entries")
        return [entries[index] for index in ordered.order]

    def _conversation(
        self, facts: JsonObject, entries: Sequence[tuple[int, Any]], group: RecordGroup, notes: Notes, name: str
    ) -> Conversation:
        timeline = TimelineBuilder(notes, f"{self.entry}.timestamp")
        given = search(facts, "instructions") or _system(facts, notes)
        instructions = [given] if given else []
        beside: list[JsonObject] = []
        by_line = not facts and len(group.records) > 1
        for number, entry in entries:
            notes.line = number if by_line else notes.line
            if not self.is_entry(entry):
                if word := unknown_role(entry):
                    notes.set_aside("role_unknown", repr(word[:80]), timeline.seq)
                notes.ignored(self.stranger, repr(entry)[:80], timeline.seq)
                timeline.mark(self.stranger, entry)
                continue
            facts_of_entry = self.plain(entry, timeline)
            if facts_of_entry.get("role") in _INSTRUCTIONS and not timeline.events:
                unread = {key: value for key, value in facts_of_entry.items() if key not in ("role", "type")}
                content = take_content(unread, notes, 0)
                instructions.append(content.text)
                beside.append(filled({**unread, "content": content.parts}))
            else:
                self.add(facts_of_entry, timeline, notes)
        if all(isinstance(event, Marker) for event in timeline.events) and not instructions:
            raise InputError(f"has no {self.entry} that can be read", field=self.field)
        if any(beside):
            facts["system_messages"] = beside
        return _assembled(facts, timeline, "\n\n".join(instructions), name, self.name, group, notes)


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


def _system(facts: JsonObject, notes: Notes) -> str:
    """The instructions of the Messages API stand beside the messages: a text, or blocks of text."""
    given = search(facts, "system", kind=(str, list))
    return "" if given is None else take_content({"content": given}, notes, 0).text


def _assembled(
    facts: JsonObject,
    timeline: TimelineBuilder,
    instructions: str,
    name: str,
    format: str,
    group: RecordGroup,
    notes: Notes,
) -> Conversation:
    """The conversation of a record: its timeline, and what stands beside the messages."""
    metadata = facts.get("metadata")
    dims = dimensions(facts, metadata)
    for dimension, value in dims.items():
        if str(facts.get(dimension, "")) == value:
            del facts[dimension]
    if facts.get("agent_name") == dims.get("agent"):
        facts.pop("agent_name", None)
    if "agent" not in dims and (agent := agent_of(timeline.participants, notes)):
        dims["agent"] = agent
    model = dims.get("model") or search(facts, "model")
    if model:
        dims["model"] = model
    named = take_text(facts, *RECORD_IDS)
    if not named and isinstance(metadata, dict):
        named = conversation_id(metadata) or ""
    tools = search(facts, "tools", "functions", kind=list)
    error = take(facts, "error")
    expected = _expected(facts, metadata, notes)
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
        outcome=Outcome(error=_error_message(error or facts.get("error"))),
        extras=_left_over(facts, notes),
    )


def _error_message(error: Json) -> str:
    """The error of a record in words. A flag is no message; one that is false, also as text, is no error."""
    flag = error.strip().casefold() if isinstance(error, str) else error
    if not flag or flag in ("false", "no", "none", "null", "0"):
        return ""
    if flag is True or flag in ("true", "yes", "1", 1):
        return "the log gives no message"
    return error if isinstance(error, str) else repr(error)


def _left_over(facts: JsonObject, notes: Notes) -> JsonObject:
    """What nobody took. Of the usual fields, the empty ones are dropped."""
    extras: JsonObject = {}
    for name, value in facts.items():
        if name not in _USUAL:
            notes.unknown(f"record.{name}")
            extras[name] = value
        elif extra := filled({name: filled(value) if isinstance(value, dict) else value}):
            extras |= extra
    return extras


def read_tools(tools: Sequence[Any]) -> tuple[Tool, ...]:
    """The tools that an agent had."""
    return tuple(_tool(one) for one in tools)


def _tool(tool: Any) -> Tool:
    if not isinstance(tool, dict):
        return Tool(name=str(tool))
    unread = dict(tool)
    kind = take_text(unread, "type")
    function = take(unread, "function", kind=dict)
    unread = {**unread, **(function or {})}
    return Tool(
        name=take_text(unread, "name") or kind,
        description=take_text(unread, "description"),
        arguments_schema=take(unread, "parameters", "input_schema", kind=dict),
        kind="" if kind == "function" else kind,
        extras=filled(unread),
    )


def _expected(facts: JsonObject, metadata: Any, notes: Notes) -> Expected:
    truth = take(facts, *_TRUTHS)
    extras: JsonObject = {}
    if truth is None:
        several = take(facts, *_TRUTHS, kind=list)
        if several is not None:
            truth = next((one for one in several if isinstance(one, str)), None)
            if several not in ([truth], []):
                notes.ignored("further_ground_truths", f"{len(several) - 1} more")
                extras["ground_truths"] = several
    if truth is None:
        other = take(facts, *_TRUTHS, kind=(int, float, dict))
        if other is not None:
            extras["ground_truth"] = other
            notes.set_aside("ground_truth_not_text", type(other).__name__)
    if truth is None and isinstance(metadata, dict) and isinstance(metadata.get("ground_truth"), str):
        truth = metadata["ground_truth"] or None
    calls = take(facts, "expected_tool_calls", kind=list)
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
    facts = dict(call)
    facts |= take(facts, "function", kind=dict) or {}
    arguments = facts.pop("arguments", None)
    if isinstance(arguments, str):
        with suppress(BadJson):
            arguments = decode(arguments.encode("utf-8", "replace")).value
    return ExpectedToolCall(
        name=take_text(facts, "name"),
        arguments=arguments,
        call_id=take_text(facts, "call_id", "id"),
        extras={key: value for key, value in filled(facts).items() if key != "type"},
    )
