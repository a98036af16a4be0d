"""What was said and done in a Vapi call: its messages become a timeline, cut by nodes or assistants."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Segment,
    Text,
    Time,
    Utterance,
)
from convoscope.ingest.call_exports import StateTrack, overlapping_utterances, set_tool_outcome, spoken_lines
from convoscope.ingest.record import JsonObject, as_number, as_text, filled, from_milliseconds
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.views.end_reasons import passes_on

SPEAKERS = {"user": USER, "bot": ASSISTANT, "assistant": ASSISTANT, "system": SYSTEM}
IN_MILLISECONDS = 100
"""A length from here on counts milliseconds: nobody speaks for a hundred seconds, or for a tenth of one."""

_CALLS = frozenset({"tool_calls", "tool-calls", "function_call"})
_RESULTS = frozenset({"tool_call_result", "tool-call-result", "tool", "function_result"})
_TEXTS = ("message", "content")
_CALL_LISTS = ("toolCalls", "tool_calls", "toolCallList")
_CALL_IDS = ("toolCallId", "tool_call_id")
_ANSWERS = ("result", "content")
_LINE = re.compile(r"^\s*(ai|user|assistant|bot)\s*:\s?", re.IGNORECASE)
_USUAL = frozenset(
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
    """A node or an assistant that the call was in, and what is told of that time."""

    state: str
    extras: JsonObject = {}
    variables: JsonObject = {}
    messages: Sequence[Any] = ()


class MessageStep(NamedTuple):
    """A message, and the number of the visit that it happened in."""

    message: Any
    visit: int


def lines_of(transcript: str) -> Iterator[JsonObject]:
    """The messages of a transcript that is plain text, `AI: …` and `User: …` by line."""
    for speaker, words in spoken_lines(transcript, _LINE):
        yield {"role": speaker if speaker in ("user", "unknown") else "bot", "message": words}


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
        mark = _identity(message)
        here = next((place for place in range(here, len(visits)) if mark in listed[place]), here)
        steps.append(MessageStep(message, here))
    placed = {_identity(message) for message in messages}
    for place, visit in enumerate(visits):
        for message in visit.messages:
            if _identity(message) not in placed:
                placed.add(_identity(message))
                steps.append(MessageStep(message, place))
    return sorted(steps, key=lambda step: step.visit)


def by_speakers(messages: Sequence[Any], activated: Sequence[NodeVisit]) -> tuple[list[MessageStep], list[NodeVisit]]:
    """Each message with the assistant that was active: it changes before the first words of the next."""
    visits = list(activated)
    steps: list[MessageStep] = []
    here = 0
    for message in messages:
        said_by = assistant_of(message) if isinstance(message, dict) else None
        if said_by is not None and visits and not _is_same(visits[here], said_by):
            ahead = (place for place in range(here + 1, len(visits)) if _is_same(visits[place], said_by))
            place_of_next = next(ahead, None)
            if place_of_next is None:
                place_of_next = here + 1
                visits.insert(place_of_next, said_by)
            here = place_of_next
        elif said_by is not None and not visits:
            visits.append(said_by)
        steps.append(MessageStep(message, here))
    return steps, visits


def by_hand_overs(messages: Sequence[Any], visits: Sequence[NodeVisit]) -> list[MessageStep] | None:
    """Each message with the assistant that was active, where there is one hand-over for each that followed."""
    over = [place for place, one in enumerate(messages) if _hands_over(one)]
    if len(over) != len(visits) - 1:
        return None
    return [MessageStep(one, sum(place > done for done in over)) for place, one in enumerate(messages)]


def assistant_of(message: JsonObject) -> NodeVisit | None:
    """The assistant that a message says it comes from."""
    name, id = as_text(message.get("assistantName")), as_text(message.get("assistantId"))
    return NodeVisit(name or id, filled({"assistantId": id})) if name or id else None


def _is_same(first: NodeVisit, second: NodeVisit) -> bool:
    ids = first.extras.get("assistantId"), second.extras.get("assistantId")
    return ids[0] == ids[1] if all(ids) else first.state == second.state


def _hands_over(message: Any) -> bool:
    if not isinstance(message, dict) or as_text(message.get("role")) not in _RESULTS:
        return False
    return passes_on(as_text(message.get("name")))


def _identity(message: Any) -> str:
    """What tells a message from others where it is written twice."""
    if not isinstance(message, dict):
        return repr(message)
    names = ("role", "time", "secondsFromStart", *_TEXTS, *_CALL_LISTS, *_CALL_IDS, "result")
    return repr([message.get(name) for name in names])


def replies(messages: Sequence[Any]) -> list[int]:
    """The places of the messages with which the assistant begins to answer the user."""
    places: list[int] = []
    user_spoke = False
    for place, message in enumerate(messages):
        role = SPEAKERS.get(as_text(message.get("role"))) if isinstance(message, dict) else None
        if role in (USER, ASSISTANT) and said_in(message).strip():
            if role == ASSISTANT and user_spoke:
                places.append(place)
            user_spoke = role == USER
    return places


def said_in(message: JsonObject) -> str:
    return next((said for name in _TEXTS if (said := as_text(message.get(name)))), "")


class Messages:
    """Reads the messages one after the other, and knows which visit the call is in."""

    def __init__(self, notes: Notes, source: str, visits: Sequence[NodeVisit], given: JsonObject) -> None:
        self.notes = notes
        self.timeline = TimelineBuilder(notes, f"{source}.time")
        self.visits = visits
        self._source = source
        self._given = given
        """Variables that the call began with: nobody collected them."""
        self._states = StateTrack(self.timeline)
        self._here = -1

    def read(self, steps: Sequence[MessageStep], latencies: dict[int, JsonObject]) -> None:
        """Put all messages on the timeline; `latencies` has those of turns by the place of their reply."""
        if self.visits:
            self._move_to(0)
        for place, step in enumerate(steps):
            self._move_to(step.visit)
            self._read(step.message, f"turn-{place}", latencies.get(place))
        self._move_to(len(self.visits) - 1)
        self._fill_here()

    def fill(self, variables: JsonObject, *, here: bool = False) -> None:
        """Variables become slots, each once; nobody says where they were collected, unless it was here."""
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

    def _move_to(self, place: int) -> None:
        while self._here < min(place, len(self.visits) - 1):
            self._fill_here()
            self._here += 1
            coming = self.visits[self._here]
            self._states.move(coming.state, extras=coming.extras)

    def _read(self, message: Any, speech_id: str, latency: JsonObject | None) -> None:
        if not isinstance(message, dict):
            self.notes.ignored("not_a_message", repr(message)[:80], self.timeline.seq)
            self.timeline.mark("not_a_message", message)
            return
        facts = dict(message)
        role = as_text(facts.pop("role", ""))
        if role in _RESULTS:
            self._result(facts)
        elif role in SPEAKERS or role in _CALLS or role == "unknown":
            listed = (facts.pop(name) for name in _CALL_LISTS if isinstance(facts.get(name), list))
            calls: Sequence[Any] = next(listed, ())
            if role in _CALLS:
                self._calls(calls, facts, facts)
            else:
                when = {"time": facts.get("time")}
                self._say(role, facts, speech_id, latency, alone=not calls)
                if calls:
                    self._calls(calls, when, {})
        else:
            self.notes.unknown(f"role={role or '(none)'}", self.timeline.seq)
            self.timeline.mark(role or "not_a_message", filled(facts), self._time(facts))

    # Speech

    def _say(self, role: str, facts: JsonObject, speech_id: str, latency: JsonObject | None, *, alone: bool) -> None:
        words = said_in(facts)
        for name in _TEXTS:
            if words and facts.get(name) == words:
                del facts[name]
                break
        if not words:
            if alone:
                self.notes.ignored("empty_utterance", role, self.timeline.seq)
            return
        speaker = self.timeline.participant(SPEAKERS.get(role, role))
        time = self._span(facts)
        if latency:
            self._tell_latency(latency, speech_id)
        sure = as_number(facts.get("confidence"))
        if sure is not None:
            del facts["confidence"]
        text = Text(words, f"{self._source}.message", sure)
        # A transcript holds what the recogniser made of a caller, and what the assistant said.
        is_heard, is_intended = speaker in (USER, "unknown"), speaker == SYSTEM
        self.timeline.events.append(
            Utterance(
                seq=self.timeline.seq,
                time=time,
                speaker=speaker,
                spoken=None if is_heard or is_intended else text,
                heard=text if is_heard else None,
                intended=text if is_intended else None,
                segments=(Segment(time.at, time.until, time.clock),) if time and time.until is not None else (),
                extras=self.timeline.unknown("message", filled(facts), _USUAL),
            )
        )

    def _time(self, facts: JsonObject) -> Time | None:
        """When a message was sent, else how far into the call."""
        for name in ("time", "secondsFromStart"):
            if facts.get(name) is not None and (time := self.timeline.time(facts[name])) is not None:
                del facts[name]
                return time
        return None

    def _span(self, facts: JsonObject) -> Time | None:
        """From when to when something was said: by its end, else by its length."""
        start = self._time(facts)
        if start is None:
            return None
        if facts.get("endTime") is not None:
            end = self.timeline.time(facts["endTime"])
            if end is not None and end.clock == start.clock and end.at >= start.at:
                del facts["endTime"]
                return Time(start.at, start.clock, end.at)
            self.notes.set_aside("end_before_start", repr(facts["endTime"])[:80], self.timeline.seq)
        length = as_number(facts.get("duration"))
        if length is None or length < 0:
            return start
        unit = "ms" if length >= IN_MILLISECONDS else "s"
        self.notes.inferred(f"duration_in_{unit}", f"{length:g}", self.timeline.seq)
        return Time(start.at, start.clock, start.at + (length / 1000 if unit == "ms" else length))

    def _tell_latency(self, latency: JsonObject, speech_id: str) -> None:
        """The latencies of one turn, by the part of the stack that each belongs to."""
        values: dict[str, JsonObject] = {}
        for name, (component, ours) in PARTS.items():
            if (seconds := from_milliseconds(latency.get(name))) is not None:
                values.setdefault(component, {})[ours] = seconds
        for component, measured in values.items():
            self._states.measure(component, measured, speech_id)

    def tell_cut_offs(self, speaker: str, count: Any) -> None:
        """Who was cut off, where as many were spoken into as the call says were cut off."""
        overlaps = [one for one in overlapping_utterances(self.timeline.events) if one.first.speaker == speaker]
        if not overlaps or as_number(count) != len(overlaps):
            return
        for place, first, second in overlaps:
            self.notes.inferred("cut_off_by_times", f"{speaker} by {second.speaker}", first.seq)
            self.timeline.events[place] = msgspec.structs.replace(first, cut_off_by=second.speaker)

    # Tools

    def _calls(self, calls: Sequence[Any], when: JsonObject, beside: JsonObject) -> None:
        time = self._time(when)
        for call in calls:
            if not isinstance(call, dict):
                self.notes.ignored("not_a_tool_call", repr(call)[:80], self.timeline.seq)
                self.timeline.mark("not_a_tool_call", call, time)
                continue
            unread = dict(call)
            function = unread.pop("function") if isinstance(unread.get("function"), dict) else {}
            unread |= function
            name, id = as_text(unread.pop("name", "")), as_text(unread.pop("id", ""))
            arguments = unread.pop("arguments", unread.pop("parameters", None))
            kind = {} if unread.pop("type", None) == "function" else filled({"type": call.get("type")})
            extras = self.timeline.unknown("tool_call", filled({**beside, **unread}), _USUAL)
            self.timeline.call(name, arguments, call_id=id, time=time, extras={**extras, **kind})
        if not calls and beside:
            self.timeline.mark("tool_calls", filled(beside), time)

    def _result(self, facts: JsonObject) -> None:
        time = self._time(facts)
        call_id = next((as_text(facts.pop(name)) for name in _CALL_IDS if as_text(facts.get(name))), "")
        name = as_text(facts.pop("name", ""))
        answer = next((facts.pop(field) for field in _ANSWERS if facts.get(field) is not None), None)
        error = facts.pop("error", None)
        extras = self.timeline.unknown("tool_result", filled(facts), _USUAL)
        self.timeline.result(error if answer is None else answer, call_id=call_id, name=name, time=time, extras=extras)
        if error:
            set_tool_outcome(self.timeline, worked=False, error=error if isinstance(error, str) else repr(error)[:500])
