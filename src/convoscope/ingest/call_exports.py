"""What exports of voice platforms have in common: lists of calls, states, latencies, verdicts, ends."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Clock,
    ComponentMetric,
    Conversation,
    Label,
    Outcome,
    SlotFilled,
    Source,
    StateEntered,
    StateExited,
    Time,
    Utterance,
)
from convoscope.errors import InputError
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import Fields, JsonObject, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder

LOOKED_AT = 20
"""Members of a list that are looked at to recognise a format."""
OTHER = {USER: ASSISTANT, ASSISTANT: USER}
_DEEPEST = 4
_MAX_REFUSALS = 10


class ExportedCall(NamedTuple):
    """A call of a record: its value, its path in the record, and the kind of message that holds it."""

    call: Any
    path: str = ""
    kind: str = ""
    number: int = 1
    """Among the calls of its list."""

    def id_in(self, group: RecordGroup) -> str:
        """An id for a call that has none."""
        return f"{group.name} {self.path}" if self.path else group.name


class CallReader(Reader):
    """Reads calls that are written one by one, in lists, or each in the webhooks that were sent of it."""

    unkeyed_record_is_conversation = True
    noun = error_field = "call"
    lists: tuple[str, ...] = ()
    """Fields of an envelope that may hold the calls."""
    id_field = ""
    expected = ""
    """What a call looks like, for the hint of an error."""
    unreadable = ""
    """The hint where no call of a list can be read."""
    webhook = listed = single = ""
    """Why a file is of this format, by how its calls are written; {} is the kind of webhook."""

    def likelihood(self, source: ExportedCall) -> float:
        """How sure it is that this is a call; 0 for not at all."""
        raise NotImplementedError

    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        """The call of a webhook; None for anything else."""
        raise NotImplementedError

    def is_call(self, value: JsonObject) -> bool:
        """Whether it is surely a call, and no envelope of some."""
        raise NotImplementedError

    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """What several webhooks say of one call; there is one at least, and each is an object."""
        raise NotImplementedError

    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        """The conversation of a call, which is an object."""
        raise NotImplementedError

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            calls = [call for call in self.calls(value, limit=LOOKED_AT) if self.likelihood(call)]
            if calls:
                sure, kind = max(map(self.likelihood, calls)), calls[0].kind
                if kind:
                    return Detection(sure, self.webhook.format(kind), "key")
                return Detection(sure, self.listed if calls[0].path else self.single)
        return None

    def calls(self, value: Any, path: str = "", depth: int = 0, limit: int | None = None) -> Iterator[ExportedCall]:
        """The calls of a record: one, a webhook with one, or a list of either."""
        if isinstance(value, list) and depth < _DEEPEST:
            for index, element in enumerate(value[:limit]):
                for call in self.calls(element, f"{path}[{index}]", depth + 1, limit):
                    yield call._replace(number=index + 1)
            return
        if isinstance(value, dict):
            inside = self.unwrapped(value)
            if inside is not None:
                yield inside._replace(path=path)
                return
            listed = next((name for name in self.lists if isinstance(value.get(name), list)), None)
            if listed is not None and depth < _DEEPEST and not self.is_call(value):
                yield from self.calls(value[listed], f"{path}.{listed}" if path else listed, depth + 1, limit)
                return
        yield ExportedCall(value, path)

    def key(self, value: Any) -> str | None:
        if isinstance(value, dict) and not any(isinstance(value.get(name), list) for name in self.lists):
            source = next(self.calls(value), None)
            return as_text(as_object(source.call).get(self.id_field)) or None if source else None
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        noun, plural = self.noun, f"{self.noun}s"

        def checked(source: ExportedCall) -> Conversation:
            if not isinstance(source.call, dict):
                message = f"is a {type(source.call).__name__}, not a {noun}"
                raise InputError(message, field=self.error_field, hint=self.expected)
            return self.conversation(source, group, notes)

        calls = [call for record in group.records for call in self.calls(record.value)]
        if len(group.records) > 1 and self.webhook:
            webhooks = [call for call in calls if isinstance(call.call, dict)]
            if not webhooks:
                raise InputError(f"is no {noun}", field=self.error_field, hint=self.expected)
            yield self.conversation(self.merged(webhooks, notes), group, notes)
        elif not calls:
            message = f"is an empty list of {plural}"
            raise InputError(message, field=self.lists[0], hint=self.unreadable or self.expected)
        elif len(calls) == 1 and not calls[0].path:
            yield checked(calls[0])
        else:
            yield from readable_conversations(calls, checked, plural, self.error_field, self.unreadable)


def readable_conversations(
    calls: Sequence[ExportedCall],
    build: Callable[[ExportedCall], Conversation],
    kind: str,
    field: str,
    hint: str = "",
) -> Iterator[Conversation]:
    """The conversations of a list. One that cannot be read does not stop the others; `hint` is for when none can."""
    refused: list[str] = []
    for call in calls:
        try:
            conversation = build(call)
        except InputError as error:
            refused.append(f"{call.path} {error.message}")
            continue
        yield conversation
    if refused:
        message = f"{len(refused)} of {len(calls)} {kind} skipped: {'; '.join(refused[:_MAX_REFUSALS])}"
        hint = "the others were read" if len(refused) < len(calls) else hint
        raise InputError(message, field=field, hint=hint, count=len(refused))


def spoken_lines(transcript: str, begins: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Who said what in a transcript that is plain text; `begins` finds the speaker at the start of a line."""
    speaker, lines = "unknown", list[str]()
    for line in (*transcript.splitlines(), None):
        begun = None if line is None else begins.match(line)
        if line is not None and begun is None:
            lines.append(line)
            continue
        if "".join(lines).strip():
            yield speaker, "\n".join(lines).strip()
        if line is not None and begun is not None:
            speaker, lines = begun[1].lower(), [line[begun.end() :]]


class CallTimeline(TimelineBuilder):
    """The timeline of a call, the states that it goes through, and what is filled and measured in them."""

    def __init__(self, notes: Notes, clock_source: str = "") -> None:
        super().__init__(notes, clock_source)
        self.current = ""
        """The state that the call is in."""
        self.slots: set[str] = set()

    def conversation(
        self, reader: Reader, group: RecordGroup, id: str, path: str, *, clocks: Sequence[Clock] = (), **fields: Any
    ) -> Conversation:
        """The conversation of this timeline; `fields` are the others of a `Conversation`."""
        return Conversation(
            id=id,
            source=Source(format=reader.name, files=group.file_names, record=path),
            participants=self.participants,
            clocks=tuple(clocks) or self.clocks,
            timeline=tuple(self.events),
            **fields,
        )

    def enter(self, state: str, time: Time | None = None, extras: JsonObject | None = None, id: str = "") -> None:
        self.add(StateEntered, time=time, id=id, state=state, extras=filled(extras or {}))
        self.current = state

    def leave(self, to_state: str, time: Time | None = None, reason: str = "") -> None:
        """Out of the state that the call is in, if it is in one."""
        if self.current:
            self.add(StateExited, time=time, state=self.current, to_state=to_state, reason=reason)

    def move(
        self, to_state: str, time: Time | None = None, reason: str = "", extras: JsonObject | None = None, id: str = ""
    ) -> None:
        """On to another state: the log has one record for leaving the old state and entering the new one."""
        self.leave(to_state, time, reason)
        self.enter(to_state, time, extras, id)

    def fill(self, slot: str, value: Any, time: Time | None = None) -> None:
        """A value was collected in the state that the call is in; the first one counts, and null is no value."""
        if value is not None and slot not in self.slots:
            self.slots.add(slot)
            self.add(SlotFilled, time=time, slot=slot, value=value, state=self.current)

    def fill_somewhere(self, slot: str, value: Any, extras: JsonObject | None = None) -> bool:
        """A value was collected in an unknown state; False where the slot is filled already, or the value is null."""
        if value is None or slot in self.slots:
            return False
        self.slots.add(slot)
        self.add(SlotFilled, slot=slot, value=value, extras=extras or {})
        return True

    def measure(self, component: str, values: JsonObject, speech_id: str = "", **fields: Any) -> None:
        """What was measured of a part of the stack; `fields` are those of a `ComponentMetric`."""
        self.add(ComponentMetric, component=component, values=values, speech_id=speech_id, state=self.current, **fields)

    def measure_call(self, label: str, value: Any, name: str) -> None:
        """A latency of the whole call, in milliseconds, whose turn is unknown."""
        seconds = from_milliseconds(value)
        if seconds is None:
            self.notes.set_aside("latency", f"{label}: {value!r}"[:80], self.seq)
        else:
            self.add(ComponentMetric, component="call", values={name: seconds}, label=label)

    def answer(self, content: Any, worked: Any, *, error: str = "", error_if_unstated: str = "", **fields: Any) -> None:
        """A tool's answer, with what the log itself says of its success, if it is true or false."""
        self.result(content, **fields)
        if isinstance(worked, bool):
            self.set_outcome(worked, error=error, error_if_unstated=error_if_unstated)

    def overlaps(self) -> list[SpokenOverlap]:
        """The utterances that the next one begins in, by their times."""
        utterances = [(index, event) for index, event in enumerate(self.events) if isinstance(event, Utterance)]
        return [
            SpokenOverlap(index, first, second)
            for (index, first), (_, second) in pairwise(utterances)
            if first.speaker != second.speaker
            and first.segments
            and second.segments
            and second.segments[0].start < first.segments[-1].end
        ]

    def cut_off(self, overlap: SpokenOverlap, detail: str) -> None:
        """The second speaker cut off the first, by their times."""
        position, first, second = overlap
        self.notes.inferred("cut_off_by_times", detail, first.seq)
        self.events[position] = msgspec.structs.replace(first, cut_off_by=second.speaker)


class SpokenSpan(NamedTuple):
    """One side speaks, in seconds of the wall clock."""

    role: str
    start: float
    end: float


class SpokenOverlap(NamedTuple):
    """An utterance, its position among the events, and one of another speaker that began before it ended."""

    position: int
    first: Utterance
    second: Utterance


def end_reason(call: Fields, name: str) -> str:
    """Why a call ended, taken out of a call. A value that is no text stays where it was, and is noted."""
    reason = call.text(name)
    if not reason and call.get(name) not in (None, ""):
        call.notes.set_aside("end_reason_is_no_text", f"{name}: {call[name]!r}"[:80])
    return reason


class EndReasons(NamedTuple):
    """A platform's reasons for the end of a call, by what they say of it."""

    natural: frozenset[str]
    forced: frozenset[str]
    broken: frozenset[str]
    """The call itself could not be made or held: nothing of it is about the agent."""
    broken_by_name: re.Pattern[str]
    """Reasons that are in none of the lists, and whose name says that something broke."""

    def outcome(self, reason: str, field: str, duration: float | None, notes: Notes, error: str = "") -> Outcome:
        """How a call ended. `field` gives the reason; `error` is known from elsewhere, and counts without a reason."""
        is_listed = reason in self.natural or reason in self.forced
        if reason in self.broken or (not is_listed and self.broken_by_name.search(reason)):
            error = reason
        elif reason:
            error = ""
        finished = True if reason in self.natural else False if error or reason in self.forced else None
        if reason and finished is None:
            notes.unknown(f"{field}={reason}")
        return Outcome(finished=finished, ended_reason=reason, error=error, duration=duration)


def verdicts(rater: str, values: Mapping[str, Any]) -> tuple[Label, ...]:
    """The platform's own verdicts, under its names."""
    return tuple(
        Label(name=name, value=value, rater=rater, rater_kind="external")
        for name, value in values.items()
        if value is not None
    )
