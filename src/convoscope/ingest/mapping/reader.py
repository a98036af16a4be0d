"""Reads conversations by a mapping that the user gave."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    Agent,
    Conversation,
    Frame,
    Label,
    Outcome,
    Scenario,
    Source,
    Text,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.errors import InputError
from convoscope.ingest.call_exports import ExportedCall, readable_conversations
from convoscope.ingest.companions.predictions import (
    FIELDS,
    MISSING,
    Exchange,
    TurnPrediction,
    acts_of,
    completed,
    exchanges_of,
    frames_of,
    names_of,
    state_of,
)
from convoscope.ingest.control_text import without_control
from convoscope.ingest.ids import is_session_field
from convoscope.ingest.io.json import parsed
from convoscope.ingest.kits.plain_timeline import PlainTimeline
from convoscope.ingest.kits.shapes import blocks_of
from convoscope.ingest.mapping.declaration import (
    INSTRUCTIONS,
    RESULTS,
    Conditions,
    Mapping,
    MappingFile,
    MessageMap,
    OutcomeMap,
    PredictedMap,
    Way,
    find,
    load_mapping,
    value_at,
    without,
)
from convoscope.ingest.mapping.transcripts import transcript_messages
from convoscope.ingest.reader import Detection, Reader, Record, RecordGroup, Sample
from convoscope.ingest.record import ROLES, JsonObject, answer_of, as_number, as_text, filled, in_order, number_in
from convoscope.ingest.report import FILE_IS_ONE, Notes
from convoscope.storage import only_here

_PREDICTED = dict(zip(("domain", "intent", "state", "requested", "act", "response"), FIELDS, strict=True))
"""The fields of a prediction, by the keys that say where they are."""
_UNKNOWN_ROLE = "unknown"
_NOT_PATHS = frozenset({"texts", "time_unit", "order", "where", "control"})
"""Keys of a message that hold no path."""
_BLOCKS = frozenset({"text", "tool_use", "tool_result", "thinking"})
"""Parts of a text that are understood."""


class LoggedMessage(NamedTuple):
    """A message as the log has it, and the record that it is in."""

    value: Any
    record: Record


class MappedReader(Reader):
    """Records of any shape, by a mapping."""

    joins_messages = True

    def __init__(self, file: MappingFile) -> None:
        self.mapping = file.mapping
        self.file = file.name
        self.name = f"map:{Path(file.name).stem}"
        self.title = f"Logs mapped by {file.name}"
        self.settings = file.hash

    def detect(self, sample: Sample) -> Detection | None:
        """What the mapping fits is read by it; what no reader knows is reported by `build`."""
        records = (record for value in sample.values for record in self.records_of(value))
        if any(self.has_text(message) for record in records for message in self.messages_of(record) or ()):
            return Detection(2.0, f"the mapping {self.file} fits", self.grouping())
        is_record = any(isinstance(value, dict) for value in sample.values)
        return Detection(0.01, f"the mapping {self.file} was given", "record") if is_record else None

    def grouping(self) -> Any:
        if self.mapping.conversation.messages is not None or self.mapping.conversation.records is not None:
            return "record"
        return "key" if self.mapping.conversation.id is not None else "file"

    def has_text(self, message: Any) -> bool:
        where = self.mapping.message
        ways: list[Way | None] = [where.text, *where.texts.values()]
        return any(find(message, way) is not None for way in ways)

    def records_of(self, value: Any) -> Sequence[Any]:
        where = self.mapping.conversation.records
        listed = [value] if where is None else parsed(value_at(value, where))
        return listed if isinstance(listed, list) else ()

    def messages_of(self, record: Any) -> Sequence[Any] | None:
        where = self.mapping.conversation.messages
        listed = [record] if where is None else parsed(value_at(record, where))
        if isinstance(listed, dict) and listed and all(isinstance(parsed(one), dict) for one in listed.values()):
            return list(listed.values())
        if transcript := transcript_messages(listed):
            return transcript
        return listed if isinstance(listed, list) else None

    def key(self, value: Any) -> str | None:
        return as_text(value_at(value, self.mapping.conversation.id)) or None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        conversation = self.mapping.conversation
        way = conversation.id if isinstance(conversation.id, str) else ""
        notes.is_session = is_session_field(way.rpartition(".")[2])
        if conversation.messages is None and conversation.records is None:
            if conversation.id is None and len(group.records) > 1:
                notes.inferred(FILE_IS_ONE, f"{len(group.records):,} records")
            yield self._conversation(group.name, group.records, group, notes)
            return
        for record in group.records:
            records = [record._replace(value=value) for value in self.records_of(record.value)]
            if not records:
                raise self._absent("records", conversation.records)
            # Messages in a list of a document are one conversation by its id; records with messages are one each.
            by_name: dict[str, list[Record]] = {}
            for number, held in enumerate(records, 1):
                name = group.name if len(records) == 1 else f"{group.name}#{number}"
                if conversation.messages is None:
                    name = self.key(held.value) or group.name
                by_name.setdefault(name, []).append(held)
            if len(by_name) == 1:
                ((name, together),) = by_name.items()
                yield self._conversation(name, together, group, notes)
            else:
                yield from self._listed(by_name, group, notes)

    def _listed(self, by_name: dict[str, list[Record]], group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        """The conversations of a document; one that cannot be read does not stop the others."""
        records = _path(self.mapping.conversation.records)
        is_one_each = self.mapping.conversation.messages is not None
        calls = [
            ExportedCall(name, f"{records}[{index}]" if is_one_each else name) for index, name in enumerate(by_name)
        ]

        def built(listed: ExportedCall) -> Conversation:
            return self._conversation(listed.call, by_name[listed.call], group, notes)

        hint = f"correct {self.file}, or write a new mapping with --suggest-map"
        yield from readable_conversations(calls, built, "conversations", records, hint)

    def _conversation(self, name: str, records: Sequence[Record], group: RecordGroup, notes: Notes) -> Conversation:
        """The conversation of a record with a list of messages, or of the records that are its messages."""
        where = self.mapping.conversation
        first = records[0].value
        messages: list[LoggedMessage] = []
        for record in records:
            listed = self.messages_of(record.value)
            if listed is None:
                raise self._absent("messages", where.messages)
            messages += [LoggedMessage(parsed(one), record) for one in listed]
        builder = _Builder(self.mapping, notes)
        for message in _ordered(messages, self.mapping.message, is_list=where.messages is not None):
            builder.add(message.value)
        if not builder.timeline.events:
            raise self._absent("text", self.mapping.message.text, table="message")
        goal = parsed(value_at(first, where.goal))
        # What the record holds that the mapping does not name.
        ways = [where.messages, where.id, where.goal, *where.dimensions.values(), *where.labels.values()]
        ways += [getattr(self.mapping.outcome, name) for name in self.mapping.outcome.__struct_fields__]
        dimensions = {key: value_at(first, way) for key, way in where.dimensions.items()}
        labels = {name: leaf.value for name, way in where.labels.items() if (leaf := find(first, way)) is not None}
        conversation = Conversation(
            id=as_text(value_at(first, where.id)) or name,
            dimensions={
                key: text
                for key, value in dimensions.items()
                if (text := str(value).lower() if isinstance(value, bool) else as_text(value))
            },
            source=Source(format=self.name, files=group.file_names, record=str(records[0].number)),
            participants=builder.timeline.participants,
            clocks=builder.timeline.clocks,
            agent=Agent(instructions="\n\n".join(builder.timeline.instructions)),
            scenario=None if goal is None else Scenario(goal=goal),
            timeline=tuple(builder.timeline.events),
            frames=tuple(builder.frames),
            labels=tuple(Label(name=name, value=value, rater_kind="external") for name, value in labels.items()),
            outcome=_outcome(first, self.mapping.outcome, notes),
            extras=_rest(first, ways) if where.messages is not None else {},
        )
        return _with_predictions(conversation, builder, self.mapping.predicted, notes)

    def _absent(self, key: str, way: Way | None, table: str = "conversation") -> InputError:
        return InputError(
            f"nothing at {_path(way) or '(no path)'}",
            field=f"{table}.{key}",
            hint=f"correct {table}.{key} in {self.file}, or write a new mapping with --suggest-map",
        )


class _Builder:
    """The timeline and the frames of a conversation under construction."""

    def __init__(self, mapping: Mapping, notes: Notes) -> None:
        self.mapping = mapping
        self.timeline = PlainTimeline(notes)
        self.frames: list[Frame] = []
        self.messages: dict[int, Any] = {}
        """The message of each utterance."""
        self._roles = {word.strip().casefold(): role for word, role in mapping.values.role.items()}
        message, predicted = mapping.message, mapping.predicted
        fields = [getattr(message, name) for name in message.__struct_fields__ if name not in _NOT_PATHS]
        fields += [mapping.tool_result.call_id, mapping.tool_result.error]
        self._ways = [*fields, *message.texts.values(), *(getattr(predicted, name) for name in _PREDICTED)]

    def add(self, message: Any) -> None:
        """Whatever a message says and calls."""
        where, timeline = self.mapping.message, self.timeline
        if (path := left_out_by(message, where.where)) is not None:
            timeline.notes.ignored("message_left_out", path, timeline.seq)
            return
        stamp = find(message, where.time)
        time = timeline.time(seconds(stamp.value, where.time_unit)) if stamp is not None else None
        begun = timeline.seq
        if _is_one(message, self.mapping.tool_call.where):
            self._call(message, time)
            return
        if self._is_result(message):
            self._result(message, time, message_text=where.text)
            return
        if not where.texts and self._is_no_speech(message, time):
            return
        extras, id = _rest(message, self._ways), as_text(value_at(message, where.id))
        calls = parsed(value_at(message, where.tool_calls))
        for role, way in self._spoken(message):
            if where.texts and role == ASSISTANT:  # between a question and its answer
                self._call(calls, time)
                calls = None
            if self._say(role, message, way, time, id, extras):
                extras = {}
        self._call(calls, time)
        results = parsed(value_at(message, where.tool_results))
        for result in [results] if isinstance(results, dict) else results if isinstance(results, list) else ():
            self._result(result, time)
        if timeline.seq == begun:
            timeline.set_message_aside(self._role(message), {**extras, "message": message}, time, id)
            return
        # What the log says is right.
        prediction = self.read(message, where)
        spoken = next((one for one in timeline.events[begun:] if isinstance(one, Utterance)), None)
        if spoken is not None and any(getattr(prediction, name) is not None for name in FIELDS):
            self.frames += frames_of(prediction, Exchange(spoken, None), "gold")

    def _say(self, role: str, message: Any, way: Way | None, time: Any, id: str, extras: JsonObject) -> bool:
        """What one side says in a message: a text, or a list of parts. False where it says nothing."""
        timeline = self.timeline
        leaf = find(message, way)
        if leaf is None:
            return False
        blocks = blocks_of(leaf.value)
        is_plain = isinstance(leaf.value, str) and [block.get("text") for block in blocks] == [leaf.value]
        if not is_plain and any(block["type"] in _BLOCKS for block in blocks):
            begun = timeline.seq
            self.messages[begun] = message
            kept = [block for block in blocks if as_text(block.get("text")).strip() not in self.mapping.message.control]
            control = [as_text(block["text"]) for block in blocks if block not in kept]
            timeline.add_plain({"role": role, "content": kept, "id": id}, time, extras=extras)
            timeline.control(timeline.participant(role), control, time)
            return timeline.seq > begun
        text = as_text(leaf.value)
        if text and (spoken := self._without_control(text, role, time)) != text:
            text = spoken
            if not text:
                return False
        if not text:
            timeline.notes.set_aside("text_unreadable", str(way), timeline.seq)
            extras = {**extras, "text": leaf.value}
        self.messages[timeline.seq] = message
        timeline.say(timeline.participant(role), intended=Text(text), time=time, id=id, extras=extras)
        return True

    def _is_no_speech(self, message: Any, time: Any) -> bool:
        """Instructions of the agent, and what a system writes into a chat, are said by no one."""
        where = self.mapping.message
        role = self._named_role(word_of(message, self.mapping.message))
        if role not in (INSTRUCTIONS, SYSTEM) or find(message, where.text) is None:
            return False
        blocks = [block for block in blocks_of(value_at(message, where.text)) if block["type"] == "text"]
        if role == INSTRUCTIONS and blocks:
            self.timeline.instruct({"content": blocks})
            return True
        self.timeline.mark("system_message", message, time)
        return True

    def _is_result(self, message: Any) -> bool:
        is_tool = self._named_role(word_of(message, self.mapping.message)) == "tool"
        return _is_one(message, self.mapping.tool_result.where) or is_tool

    def _named_role(self, word: str) -> str:
        key = word.strip().casefold()
        return self._roles.get(key) or ROLES.get(key) or ""

    def _result(self, message: Any, time: Any, message_text: Way | None = None) -> None:
        """The result of a call, which is no speech: a message of a tool, or an entry of `tool_results`."""
        where, timeline = self.mapping.tool_result, self.timeline
        failed = value_at(message, where.error)
        worked = None if where.error is None else failed in (None, False, 0)
        ways = [where.content] if where.content is not None else [message_text, [*RESULTS]]
        leaf = next((found for way in ways if (found := find(message, way)) is not None), None)
        timeline.result(
            None if leaf is None else answer_of(leaf.value, timeline.notes, timeline.seq),
            call_id=as_text(value_at(message, where.call_id)),
            name=as_text(value_at(message, where.name)),
            time=time,
            id=as_text(value_at(message, self.mapping.message.id)) if message_text is not None else "",
            success=worked,
            error=failed if isinstance(failed, str) else "",
            extras=_rest(message, [*self._ways, where.name, *ways]),
        )

    def _without_control(self, text: str, role: str, time: Any) -> str:
        """A text without what steers a program; that is marked."""
        spoken, control = without_control(text, role)
        if text.strip() in self.mapping.message.control:
            spoken, control = "", (text,)
        if control:
            self.timeline.control(self.timeline.participant(role), control, time)
        return spoken

    def _spoken(self, message: Any) -> Iterator[tuple[str, Way | None]]:
        where = self.mapping.message
        if where.texts:
            yield from ((self._roles.get(role.casefold(), role), way) for role, way in where.texts.items())
        elif find(message, where.text) is not None:
            yield self._role(message), where.text

    def _role(self, message: Any) -> str:
        word = word_of(message, self.mapping.message)
        key = word.casefold()
        role = self._roles.get(key) or ROLES.get(key)
        if role is None:
            self.timeline.notes.set_aside("role_unknown", f"{word[:80]!r}: add it to values.role", self.timeline.seq)
            return word or _UNKNOWN_ROLE
        return role

    def _call(self, calls: Any, time: Any) -> None:
        where = self.mapping.tool_call
        for call in [calls] if isinstance(calls, dict) else calls if isinstance(calls, list) else ():
            name = as_text(value_at(call, where.name))
            if not name:
                self.timeline.notes.set_aside("tool_call_without_name", str(call)[:80], self.timeline.seq)
                continue
            id = as_text(value_at(call, where.id))
            caller = self._named_role(as_text(value_at(call, where.caller))) if where.caller is not None else ""
            by_other = self.timeline.participant(caller) if caller and caller != ASSISTANT else ""
            self.timeline.call(name, value_at(call, where.arguments), call_id=id, time=time, caller=by_other)
            result = find(call, where.result)
            if result is not None:
                self.timeline.result(result.value, call_id=id, name=name, time=time)

    def read(self, message: Any, where: MessageMap | PredictedMap) -> TurnPrediction:
        """Domain, intents, state and acts of a message."""
        words = self.mapping.values
        response = value_at(message, where.response) if isinstance(where, PredictedMap) else None
        acts = acts_of(parsed(value_at(message, where.act)))
        return TurnPrediction(
            domains=_translated(names_of(value_at(message, where.domain)), words.domain),
            intents=_translated(names_of(parsed(value_at(message, where.intent))), words.intent),
            requested=names_of(parsed(value_at(message, where.requested))),
            state=state_of(parsed(value_at(message, where.state))),
            acts=None
            if acts is None
            else tuple(msgspec.structs.replace(one, type=words.act.get(one.type, one.type)) for one in acts),
            response=None if response is None else as_text(response),
        )


def _with_predictions(conversation: Conversation, builder: _Builder, where: PredictedMap, notes: Notes) -> Conversation:
    """With what the agent concluded in each turn; a turn where that is missing counts, and is empty."""
    predicts = frozenset(name for key, name in _PREDICTED.items() if getattr(where, key) is not None)
    if not predicts:
        return conversation
    frames = list(conversation.frames)
    for exchange in exchanges_of(conversation):
        utterances = [one for one in exchange if one is not None]
        read = [builder.read(builder.messages[one.seq], where) for one in utterances if one.seq in builder.messages]
        fields: dict[str, Any] = {name: _first([getattr(one, name) for one in read]) for name in predicts}
        prediction = MISSING if _first(list(fields.values())) is None else TurnPrediction()._replace(**fields)
        if prediction is MISSING:
            notes.set_aside("prediction_missing", f"turn {exchange.user.id or exchange.user.seq}", exchange.user.seq)
        frames += frames_of(completed(prediction, predicts), exchange, "predicted")
    return msgspec.structs.replace(conversation, frames=tuple(sorted(frames, key=lambda frame: frame.seq)))


def _first(values: Sequence[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def word_of(message: Any, where: MessageMap) -> str:
    """The word for who speaks; a flag is `true` or `false`."""
    value = value_at(message, where.role)
    return str(value).lower() if isinstance(value, bool) else as_text(value).strip()


def _is_one(message: Any, where: Conditions) -> bool:
    """Whether a message meets conditions; without any it does not."""
    return bool(where) and left_out_by(message, where) is None


def left_out_by(message: Any, where: Conditions) -> str | None:
    """The path of a condition that a message does not meet; a value that is missing counts as false."""
    for path, wanted in where.items():
        leaf = find(message, path)
        value = False if leaf is None else leaf.value
        if not any(value == one and isinstance(value, bool) == isinstance(one, bool) for one in _as_list(wanted)):
            return path
    return None


def _as_list(wanted: Any) -> list[Any]:
    return wanted if isinstance(wanted, list) else [wanted]


def _outcome(record: Any, where: OutcomeMap, notes: Notes) -> Outcome:
    """How it ended, as far as the mapping names it. A value of another kind is set aside."""
    completed, duration = value_at(record, where.completed), value_at(record, where.duration)
    is_flag = isinstance(completed, bool)
    if completed is not None and not is_flag:
        notes.set_aside("completed_is_no_flag", repr(completed)[:80])
    error = value_at(record, where.error)
    return Outcome(
        completed=completed if is_flag else None,
        ended_reason=as_text(value_at(record, where.ended_reason)),
        error=as_text(error) if error not in (None, False) else "",
        duration=as_number(duration),
    )


def _ordered(messages: list[LoggedMessage], where: MessageMap, *, is_list: bool) -> list[LoggedMessage]:
    """Messages that are records of their own are ordered by their times; those of a list are as the mapping says."""
    if where.order == "newest_first":
        return messages[::-1]
    if where.time is None or (is_list and where.order is None):
        return messages
    stamps = [seconds(value_at(one.value, where.time), where.time_unit) for one in messages]
    times = [None if (read := moment(stamp)) is None else read.at for stamp in stamps]
    return [messages[index] for index in in_order(times)]


_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def seconds(value: Any, unit: str | None = None) -> Any:
    """A clock that runs from the start of a call, such as `00:01:04.5`, in seconds; a number in its unit.

    Any other value is as it is.
    """
    number = as_number(value) if not isinstance(value, str) else number_in(value)
    if unit is not None and number is not None:
        return number / _PER_SECOND[unit]
    clock = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if clock is None:
        return value
    hours, minutes, rest = clock.groups()
    return 3600 * int(hours) + 60 * int(minutes) + float(rest.replace(",", "."))


_CLOCK = re.compile(r"(\d{1,2}):([0-5]\d):([0-5]\d(?:[.,]\d+)?)")


def _path(way: Way | None) -> str:
    """A path as it is shown; of several all."""
    return way if isinstance(way, str) else " or ".join(way or ())


def _translated(names: tuple[str, ...] | None, words: dict[str, str]) -> tuple[str, ...] | None:
    return None if names is None else tuple(words.get(name, name) for name in names)


def _rest(record: Any, ways: Sequence[Way | None]) -> JsonObject:
    """What is left of a record, for `extras`."""
    taken = [leaf.steps for way in ways if (leaf := find(record, way)) is not None]
    rest = without(record, taken)
    return filled(rest) if isinstance(rest, dict) else {}


def mapped_reader(source: str) -> MappedReader:
    """The reader of a mapping in a TOML file."""
    only_here(source, "--map")
    return MappedReader(load_mapping(Path(source)))
