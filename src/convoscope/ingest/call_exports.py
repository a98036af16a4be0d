"""What exports of voice platforms have in common: lists of calls, states, latencies, verdicts, ends."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    AnyEvent,
    ComponentMetric,
    Conversation,
    Label,
    SlotFilled,
    StateEntered,
    StateExited,
    Time,
    ToolResult,
    Utterance,
)
from convoscope.errors import InputError
from convoscope.ingest.reader import Reader, RecordGroup
from convoscope.ingest.record import JsonObject, as_object, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.tool_outcomes import tool_outcome

_DEEPEST = 4
_MAX_REFUSALS = 10


class ExportedCall(NamedTuple):
    """A call as it stands in a record: its value, where, and in a message of which kind."""

    call: Any
    place: str = ""
    kind: str = ""


class CallReader(Reader):
    """Reads calls that are written one by one, in lists, or each in the webhooks that were sent of it."""

    unkeyed_record_is_conversation = True
    lists: tuple[str, ...] = ()
    """Fields of an envelope that may hold the calls."""
    id_field = ""
    expected = ""
    """What a call looks like, for those who gave us something else."""

    @abstractmethod
    def unwrapped(self, value: JsonObject) -> ExportedCall | None:
        """The call of a webhook; None for what is none."""

    @abstractmethod
    def is_call(self, value: JsonObject) -> bool:
        """Whether it is surely a call, and no envelope of some."""

    @abstractmethod
    def merged(self, webhooks: Sequence[ExportedCall], notes: Notes) -> ExportedCall:
        """What several webhooks say of one call; there is one at least, and each is an object."""

    @abstractmethod
    def conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        """The conversation of a call, which is an object."""

    def calls(self, value: Any, place: str = "", depth: int = 0, limit: int | None = None) -> Iterator[ExportedCall]:
        """The calls of a record: one, a webhook with one, or a list of either."""
        if isinstance(value, list) and depth < _DEEPEST:
            for index, element in enumerate(value[:limit]):
                yield from self.calls(element, f"{place}[{index}]", depth + 1, limit)
            return
        if isinstance(value, dict):
            inside = self.unwrapped(value)
            if inside is not None:
                yield inside._replace(place=place)
                return
            listed = next((name for name in self.lists if isinstance(value.get(name), list)), None)
            if listed is not None and depth < _DEEPEST and not self.is_call(value):
                yield from self.calls(value[listed], f"{place}.{listed}" if place else listed, depth + 1, limit)
                return
        yield ExportedCall(value, place)

    def key(self, value: Any) -> str | None:
        if isinstance(value, dict) and not any(isinstance(value.get(name), list) for name in self.lists):
            source = next(self.calls(value), None)
            return as_text(as_object(source.call).get(self.id_field)) or None if source else None
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        calls = [call for record in group.records for call in self.calls(record.value)]
        if len(group.records) > 1:
            webhooks = [call for call in calls if isinstance(call.call, dict)]
            if not webhooks:
                raise InputError("is no call", field="call", hint=self.expected)
            yield self.conversation(self.merged(webhooks, notes), group, notes)
        elif not calls:
            raise InputError("is an empty list of calls", field=self.lists[0], hint=self.expected)
        elif len(calls) == 1 and not calls[0].place:
            yield self._checked_conversation(calls[0], group, notes)
        else:
            yield from readable_conversations(
                calls, lambda call: self._checked_conversation(call, group, notes), "calls", "call"
            )

    def _checked_conversation(self, source: ExportedCall, group: RecordGroup, notes: Notes) -> Conversation:
        if not isinstance(source.call, dict):
            raise InputError(f"is a {type(source.call).__name__}, not a call", field="call", hint=self.expected)
        return self.conversation(source, group, notes)


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
            refused.append(f"{call.place} {error.message}")
            continue
        yield conversation
    if refused:
        message = f"{len(refused)} of {len(calls)} {kind} skipped: {'; '.join(refused[:_MAX_REFUSALS])}"
        hint = "the others were read" if len(refused) < len(calls) else hint
        raise InputError(message, field=field, hint=hint, count=len(refused))


class RecordPlace(NamedTuple):
    """Where a conversation stands, and what to call it if it has no id."""

    group: RecordGroup
    name: str
    record: str = ""


def spoken_lines(transcript: str, begins: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """Who said what in a transcript that is plain text; `begins` finds the speaker at the start of a line."""
    speaker, words = "unknown", list[str]()
    for line in transcript.splitlines():
        begun = begins.match(line)
        if begun is None:
            words.append(line)
            continue
        if "".join(words).strip():
            yield speaker, "\n".join(words).strip()
        speaker, words = begun[1].lower(), [line[begun.end() :]]
    if "".join(words).strip():
        yield speaker, "\n".join(words).strip()


class StateTrack:
    """The states that a call goes through, and what is filled and measured in them."""

    def __init__(self, timeline: TimelineBuilder) -> None:
        self.timeline = timeline
        self.current = ""
        self.seen = False
        """There was a state at all."""
        self.slots: set[str] = set()

    def enter(self, state: str, time: Time | None = None, extras: JsonObject | None = None, id: str = "") -> None:
        seq = self.timeline.seq
        self.timeline.events.append(
            StateEntered(seq=seq, time=time, id=id, state=state, extras=filled(extras) if extras else {})
        )
        self.current, self.seen = state, True

    def leave(self, to_state: str, time: Time | None = None, reason: str = "") -> None:
        """Out of the state that the call is in, if it is in one."""
        if self.current:
            seq = self.timeline.seq
            self.timeline.events.append(
                StateExited(seq=seq, time=time, state=self.current, to_state=to_state, reason=reason)
            )

    def move(
        self, to_state: str, time: Time | None = None, reason: str = "", extras: JsonObject | None = None, id: str = ""
    ) -> None:
        """On to another state. The log tells this as one thing: the old one is left and the new one entered."""
        self.leave(to_state, time, reason)
        self.enter(to_state, time, extras, id)

    def fill(self, slot: str, value: Any, time: Time | None = None) -> None:
        """A value was collected in the state that the call is in; the first one counts, and null is none."""
        if value is not None and slot not in self.slots:
            self.slots.add(slot)
            seq = self.timeline.seq
            self.timeline.events.append(SlotFilled(seq=seq, time=time, slot=slot, value=value, state=self.current))

    def fill_somewhere(self, slot: str, value: Any, extras: JsonObject | None = None) -> bool:
        """A value was collected, and nobody says where; False where it is known already, or none."""
        if value is None or slot in self.slots:
            return False
        self.slots.add(slot)
        self.timeline.events.append(SlotFilled(seq=self.timeline.seq, slot=slot, value=value, extras=extras or {}))
        return True

    def measure(
        self,
        component: str,
        values: JsonObject,
        speech_id: str = "",
        time: Time | None = None,
        label: str = "",
        extras: JsonObject | None = None,
    ) -> None:
        self.timeline.events.append(
            ComponentMetric(
                seq=self.timeline.seq,
                time=time,
                component=component,
                values=values,
                speech_id=speech_id,
                label=label,
                state=self.current,
                extras=extras or {},
            )
        )


def add_call_latency(timeline: TimelineBuilder, label: str, value: Any, name: str) -> None:
    """A latency of the whole call, in milliseconds, that no turn can be named for."""
    seconds = from_milliseconds(value)
    if seconds is None:
        timeline.notes.set_aside("latency", f"{label}: {value!r}"[:80], timeline.seq)
        return
    timeline.events.append(ComponentMetric(seq=timeline.seq, component="call", values={name: seconds}, label=label))


def set_tool_outcome(timeline: TimelineBuilder, *, worked: bool, error: str) -> None:
    """The export says itself whether the tool worked that the last event tells of."""
    event = timeline.events[-1]
    if isinstance(event, ToolResult):
        timeline.events[-1] = msgspec.structs.replace(event, success=worked, error="" if worked else error)


def error_of(timeline: TimelineBuilder) -> str:
    """What the last event, a tool's result, says of an error."""
    event = timeline.events[-1]
    return tool_outcome(event).error if isinstance(event, ToolResult) else ""


class SpokenStretch(NamedTuple):
    """One side speaks, in seconds of the wall."""

    role: str
    start: float
    end: float


class SpokenOverlap(NamedTuple):
    """An utterance, its place among the events, and one of somebody else that began before it ended."""

    place: int
    first: Utterance
    second: Utterance


def overlapping_utterances(events: Sequence[AnyEvent]) -> Iterator[SpokenOverlap]:
    """The utterances that the next one falls into, by their times."""
    utterances = [(place, event) for place, event in enumerate(events) if isinstance(event, Utterance)]
    for (place, first), (_, second) in pairwise(utterances):
        timed = first.speaker != second.speaker and first.segments and second.segments
        if timed and second.segments[0].start < first.segments[-1].end:
            yield SpokenOverlap(place, first, second)


class EndReasons(NamedTuple):
    """A platform's reasons for the end of a call, by what they say of it."""

    natural: frozenset[str]
    forced: frozenset[str]
    broken: frozenset[str]
    """The call itself could not be made or held: nothing of it speaks of the agent."""
    broken_by_name: re.Pattern[str]
    """Reasons that are in none of the lists, and say by how they are built that something broke."""

    def is_error(self, reason: str) -> bool:
        is_listed = reason in self.natural or reason in self.forced
        return reason in self.broken or (not is_listed and bool(self.broken_by_name.search(reason)))

    def finished(self, reason: str) -> bool | None:
        """Whether all was said; None for a reason that nobody knows."""
        return True if reason in self.natural else False if reason in self.forced or self.is_error(reason) else None


def verdicts(rater: str, values: Mapping[str, Any]) -> tuple[Label, ...]:
    """The platform's own verdicts, under its names."""
    return tuple(
        Label(name=name, value=value, rater=rater, rater_kind="external")
        for name, value in values.items()
        if value is not None
    )
