"""What was said and done in a Vapi call: its messages become a timeline, cut by nodes or assistants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Segment,
    Text,
    Time,
)
from convoscope.ingest.call_exports import (
    StateTrack,
    overlapping_utterances,
)
from convoscope.ingest.record import (
    Fields,
    JsonObject,
    as_number,
    as_text,
    filled,
    from_milliseconds,
)
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.end_reasons import passes_on

SPEAKERS = {"user": USER, "bot": ASSISTANT, "assistant": ASSISTANT, "system": SYSTEM}
_IN_MILLISECONDS = 100
"""A length from here on counts milliseconds: no one speaks for a hundred seconds, or for a tenth of one."""

_CALLS = frozenset({"tool_calls", "tool-calls", "function_call"})
_RESULTS = frozenset({"tool_call_result", "tool-call-result", "tool", "function_result"})
_TEXTS = ("message", "content")
_CALL_LISTS = ("toolCalls", "tool_calls", "toolCallList")
_CALL_IDS = ("toolCallId", "tool_call_id")
_ANSWERS = ("result", "content")
_USUAL_IN_MESSAGE = frozenset(
    {"secondsFromStart", "endTime", "duration", "source", "assistantName", "assistantId", "isFiltered", "metadata"}
    | {"detectedThreats", "originalMessage", "confidence", "confidenceSource", "speakerLabel", "warnings"}
    | {"time", "message", "type", "toolCallId"}
)
# What a turn's latency is made of: the part of the stack that it belongs to, and our name for it there.
PARTS = {
    "turnLatency": ("turn", "e2e_latency"),
    "modelLatency": ("llm", "ttft"),
    "voiceLatency": ("tts", "ttfb"),
    "endpointingLatency": ("eou", "end_of_utterance_delay"),
    "transcriberLatency": ("eou", "transcription_delay"),
}


class NodeVisit(NamedTuple):
    """A node or an assistant that the call was in, and what is known of that time."""

    state: str
    extras: JsonObject = {}
    variables: JsonObject = {}
    messages: Sequence[Any] = ()


class MessageStep(NamedTuple):
    """A message, and the number of the visit that it happened in."""

    message: Any
    visit: int


def each_once(lists: Sequence[Sequence[Any]]) -> list[Any]:
    """All messages of some lists; a list may repeat what the ones before it hold."""
    distinct: list[Any] = []
    before: set[str] = set()
    for messages in lists:
        distinct += [one for one in messages if _identity(one) not in before]
        before.update(map(_identity, messages))
    return distinct


def by_nodes(messages: Sequence[Any], visits: Sequence[NodeVisit]) -> list[MessageStep]:
    """Each message in the node that lists it. What only a node lists comes at the end of its visit."""
    listed = [{_identity(one) for one in visit.messages} for visit in visits]
    steps: list[MessageStep] = []
    here = 0
    for message in messages:
        identity = _identity(message)
        here = next((visit for visit in range(here, len(visits)) if identity in listed[visit]), here)
        steps.append(MessageStep(message, here))
    placed = {_identity(message) for message in messages}
    for number, visit in enumerate(visits):
        for message in visit.messages:
            if _identity(message) not in placed:
                placed.add(_identity(message))
                steps.append(MessageStep(message, number))
    return sorted(steps, key=lambda step: step.visit)


def by_speakers(messages: Sequence[Any], activated: Sequence[NodeVisit]) -> CallMessages:
    """Each message with the assistant that was active: it changes before the first text of the next."""
    visits = list(activated)
    steps: list[MessageStep] = []
    here = 0
    for message in messages:
        speaker = assistant_of(message) if isinstance(message, dict) else None
        if speaker is not None and visits and not _is_same(visits[here], speaker):
            ahead = (visit for visit in range(here + 1, len(visits)) if _is_same(visits[visit], speaker))
            coming = next(ahead, None)
            here = here + 1 if coming is None else coming
            if coming is None:
                visits.insert(here, speaker)
        elif speaker is not None and not visits:
            visits.append(speaker)
        steps.append(MessageStep(message, here))
    return CallMessages(steps, visits)


def by_hand_overs(messages: Sequence[Any], visits: Sequence[NodeVisit]) -> list[MessageStep] | None:
    """Each message with the assistant that was active, where there is one hand-over for each that followed."""
    over = [
        index
        for index, one in enumerate(messages)
        if isinstance(one, dict) and as_text(one.get("role")) in _RESULTS and passes_on(as_text(one.get("name")))
    ]
    if len(over) != len(visits) - 1:
        return None
    return [MessageStep(message, sum(index > done for done in over)) for index, message in enumerate(messages)]


def assistant_of(message: JsonObject) -> NodeVisit | None:
    """The assistant that a message says it comes from."""
    name, id = as_text(message.get("assistantName")), as_text(message.get("assistantId"))
    return NodeVisit(name or id, filled({"assistantId": id})) if name or id else None


def _is_same(first: NodeVisit, second: NodeVisit) -> bool:
    ids = first.extras.get("assistantId"), second.extras.get("assistantId")
    return ids[0] == ids[1] if all(ids) else first.state == second.state


def _identity(message: Any) -> str:
    """What distinguishes a message from others, where it is written twice."""
    if not isinstance(message, dict):
        return repr(message)
    names = ("role", "time", "secondsFromStart", *_TEXTS, *_CALL_LISTS, *_CALL_IDS, "result")
    return repr([message.get(name) for name in names])


def text_in(message: JsonObject) -> str:
    return next((text for name in _TEXTS if (text := as_text(message.get(name)))), "")


class MessageReader:
    """Reads the messages one after the other, and knows which visit the call is in."""

    def __init__(self, notes: Notes, source: str, visits: Sequence[NodeVisit], given: JsonObject) -> None:
        self.notes = notes
        self.timeline = TimelineBuilder(notes, f"{source}.time")
        self.visits = visits
        self._source = source
        self._given = given
        """Variables that the call began with: they were not collected in it."""
        self._states = StateTrack(self.timeline)
        self._here = -1

    def read(self, steps: Sequence[MessageStep], latencies: dict[int, JsonObject]) -> None:
        """Put all messages on the timeline; `latencies` has those of turns by the index of their reply."""
        if self.visits:
            self._move_to(0)
        for index, step in enumerate(steps):
            self._move_to(step.visit)
            self._read(step.message, f"turn-{index}", latencies.get(index))
        self._move_to(len(self.visits) - 1)
        self._fill_here()

    def fill(self, variables: JsonObject, *, here: bool = False) -> None:
        """Variables become slots, each once; where they were collected is unknown, unless it was here."""
        for slot, value in variables.items():
            if slot in self._given and self._given[slot] == value:
                continue
            if here:
                self._states.fill(slot, value)
            elif self._states.fill_somewhere(slot, value):
                self.notes.inferred("slot_place_not_told", slot, self.timeline.seq - 1)

    def _fill_here(self) -> None:
        if self._states.current:
            self.fill(self.visits[self._here].variables, here=True)

    def _move_to(self, visit: int) -> None:
        while self._here < min(visit, len(self.visits) - 1):
            self._fill_here()
            self._here += 1
            coming = self.visits[self._here]
            self._states.move(coming.state, extras=coming.extras)

    def _read(self, message: Any, speech_id: str, latency: JsonObject | None) -> None:
        if not isinstance(message, dict):
            self.notes.ignored("not_a_message", repr(message)[:80], self.timeline.seq)
            self.timeline.mark("not_a_message", message)
            return
        fields = Fields(message, "message", self.notes, _USUAL_IN_MESSAGE)
        role = as_text(fields.pop("role", ""))
        if role in _RESULTS:
            self._result(fields)
        elif role in SPEAKERS or role in _CALLS or role == "unknown":
            calls: Sequence[Any] = fields.take(*_CALL_LISTS, kind=list) or ()
            if role in _CALLS:
                self._calls(calls, self._time(fields), fields)
            else:
                time = fields.get("time")
                self._say(role, fields, speech_id, latency, alone=not calls)
                if calls:
                    self._calls(calls, self.timeline.time(time), {})
        else:
            self.notes.unknown(f"role={role or '(none)'}", self.timeline.seq)
            self.timeline.mark(role or "not_a_message", filled(fields), self._time(fields))

    def _say(self, role: str, fields: Fields, speech_id: str, latency: JsonObject | None, *, alone: bool) -> None:
        speech = fields.text(*_TEXTS)
        if not speech:
            if alone:
                self.notes.ignored("empty_utterance", role, self.timeline.seq)
            return
        speaker = self.timeline.participant(SPEAKERS.get(role, role))
        time = self._span(fields)
        for component, measured in _parts_of(latency or {}).items():
            self._states.measure(component, measured, speech_id)
        text = Text(speech, f"{self._source}.message", fields.number("confidence"))
        # A transcript holds what the recogniser made of a caller, and what the assistant said.
        is_heard, is_intended = speaker in (USER, "unknown"), speaker == SYSTEM
        self.timeline.say(
            speaker,
            time=time,
            spoken=None if is_heard or is_intended else text,
            heard=text if is_heard else None,
            intended=text if is_intended else None,
            segments=[Segment(time.at, time.until, time.clock)] if time and time.until is not None else (),
            extras=fields.rest(self.timeline.seq),
        )

    def _time(self, fields: Fields) -> Time | None:
        """When a message was sent, else how far into the call."""
        for name in ("time", "secondsFromStart"):
            if fields.get(name) is not None and (time := self.timeline.time(fields[name])) is not None:
                del fields[name]
                return time
        return None

    def _span(self, fields: Fields) -> Time | None:
        """From when to when something was said: by its end, else by its length."""
        start = self._time(fields)
        if start is None:
            return None
        if fields.get("endTime") is not None:
            end = self.timeline.time(fields["endTime"])
            if end is not None and end.clock == start.clock and end.at >= start.at:
                del fields["endTime"]
                return Time(start.at, start.clock, end.at)
            self.notes.set_aside("end_before_start", repr(fields["endTime"])[:80], self.timeline.seq)
        length = as_number(fields.get("duration"))
        if length is None or length < 0:
            return start
        unit = "ms" if length >= _IN_MILLISECONDS else "s"
        self.notes.inferred(f"duration_in_{unit}", f"{length:g}", self.timeline.seq)
        return Time(start.at, start.clock, start.at + (length / 1000 if unit == "ms" else length))

    def set_cut_offs(self, speaker: str, count: Any) -> None:
        """Who was cut off, where as many overlap as the call says were cut off."""
        overlaps = [one for one in overlapping_utterances(self.timeline.events) if one.first.speaker == speaker]
        if not overlaps or as_number(count) != len(overlaps):
            return
        for position, first, second in overlaps:
            self.notes.inferred("cut_off_by_times", f"{speaker} by {second.speaker}", first.seq)
            self.timeline.events[position] = msgspec.structs.replace(first, cut_off_by=second.speaker)

    def _calls(self, calls: Sequence[Any], time: Time | None, message: JsonObject) -> None:
        for call in calls:
            if not isinstance(call, dict):
                self.notes.ignored("not_a_tool_call", repr(call)[:80], self.timeline.seq)
                self.timeline.mark("not_a_tool_call", call, time)
                continue
            fields = Fields(call, "tool_call", self.notes, _USUAL_IN_MESSAGE)
            fields |= fields.take("function", kind=dict) or {}
            name, id = fields.text("name"), fields.text("id")
            arguments = fields.pop("arguments", fields.pop("parameters", None))
            if fields.get("type") == "function":
                del fields["type"]
            for inherited in message.keys() - fields.keys():
                fields[inherited] = message[inherited]
            self.timeline.call(name, arguments, call_id=id, time=time, extras=fields.rest(self.timeline.seq))
        if not calls and message:
            self.timeline.mark("tool_calls", filled(message), time)

    def _result(self, fields: Fields) -> None:
        fields.of = "tool_result"
        time, call_id, name = self._time(fields), fields.text(*_CALL_IDS), as_text(fields.pop("name", ""))
        answer = next((fields.pop(field) for field in _ANSWERS if fields.get(field) is not None), None)
        error = fields.pop("error", None)
        extras = fields.rest(self.timeline.seq)
        self.timeline.result(error if answer is None else answer, call_id=call_id, name=name, time=time, extras=extras)
        if error:
            self.timeline.set_outcome(False, error=error if isinstance(error, str) else repr(error)[:500])


def _parts_of(latency: JsonObject) -> dict[str, JsonObject]:
    """The latencies of one turn, by the part of the stack that each belongs to."""
    values: dict[str, JsonObject] = {}
    for name, (component, plain_name) in PARTS.items():
        if (seconds := from_milliseconds(latency.get(name))) is not None:
            values.setdefault(component, {})[plain_name] = seconds
    return values


class CallMessages(NamedTuple):
    """The messages of a call, in order and each in its visit."""

    steps: Sequence[MessageStep]
    visits: Sequence[NodeVisit] = ()
    unplaced: Sequence[NodeVisit] = ()
    """Assistants that were active at an unknown time."""
