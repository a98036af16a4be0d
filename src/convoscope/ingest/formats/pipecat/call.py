"""One call of a Pipecat bot, put together from its records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Agent,
    Conversation,
    Marker,
    Outcome,
    Segment,
    Source,
    Text,
    Time,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.conversation.model import Pipeline
from convoscope.ingest.call_exports import SpokenStretch, StateTrack, error_of, set_tool_outcome
from convoscope.ingest.reader import RecordGroup
from convoscope.ingest.record import JsonObject, as_list, as_number, as_object, as_text, filled, take, take_text, wall
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import TimelineBuilder, dimensions
from convoscope.views.standard_data.payloads.pipecat import TTFB, service_of, taken_apart

Kind = Literal[
    "speech",
    "function",
    "latency",
    "usage",
    "error",
    "breakdown",
    "e2e",
    "user",
    "user_backchannel",
    "assistant",
    "assistant_backchannel",
    "thought",
    "node",
    "node_set",
    "node_failed",
    "transition",
    "called",
    "returned",
    "raised",
    "slots",
    "end",
    "begins",
    "again",
    "told",
    "other",
    "noise",
    "stranger",
]
SILENT = frozenset({"begins", "again", "told", "noise", "stranger"})
"""Lines that put nothing on the timeline."""

_TIMES = ("timestamp", "time", "ts", "created_at")
_NODES = ("current_node", "new_node", "to_node", "node", "node_name", "to", "state")
_FORMER = ("previous_node", "from_node", "former_node", "old_node", "from")
_REASONS = ("reason", "transition_type", "function_name", "function")
_SECONDS = ("seconds", "latency_seconds", "latency_secs", "latency")

_SPOKEN = {"user_speech_stopped": USER, "bot_speech_stopped": ASSISTANT}
_OPENED = {"user_speech_started": "user_speech_stopped", "bot_speech_started": "bot_speech_stopped"}
_SAID: dict[str, tuple[str, str]] = {
    "user": (USER, ""),
    "user_backchannel": (USER, "backchannel"),
    "assistant": (ASSISTANT, ""),
    "assistant_backchannel": (ASSISTANT, "backchannel"),
}
_SETTLED = {
    "function_call_completed": (True, ""),
    "function_call_failed": (False, "failed"),
    "function_call_timed_out": (False, "timed out"),
    "function_call_cancelled": (False, "cancelled"),
}
_OTHER_PROCESSORS = (("realtime", "llm"), ("live", "llm"), ("vad", "vad"))
_S2S = ("realtime", "live", "s2s", "sonic", "ultravox")
_WITHIN = {"ttfb_secs": "ttfb", "leading_silence_secs": "leading_silence", "thinking_time_secs": "thinking_time"}
_GREETING = "client_connected"
# Errors of these kinds are no fault of the agent, and end the call where the part cannot go on.
_OURS = frozenset({"application"})
_LATE = 3.0
"""Seconds after the user fell silent in which a turn may still be told to have begun."""


class LogLine(NamedTuple):
    """One record, by what it tells."""

    kind: Kind
    facts: JsonObject
    number: int
    file: str = ""
    logger: str = ""
    """Who logged it, where it is a message of a log and no record."""


class _Step(NamedTuple):
    at: float
    line: LogLine
    time: Any
    """The time as it was written."""


def conversation(id: str, lines: Sequence[LogLine], group: RecordGroup, notes: Notes) -> Conversation:
    """The conversation that the lines tell of."""
    call = _Call(notes, _in_order([line for line in lines if line.kind not in SILENT]))
    call.write()
    dims = dimensions(*(line.facts for line in lines))
    if len(call.llms) == 1:
        dims.setdefault("model", next(iter(call.llms)))
    timeline = call.timeline
    return Conversation(
        id=id,
        dimensions=dims,
        source=Source(format="pipecat", files=group.file_names, record=group.name),
        pipeline=call.pipeline(),
        participants=timeline.participants,
        clocks=timeline.clocks,
        agent=Agent(name=dims.get("agent", ""), models=call.models),
        timeline=tuple(timeline.events),
        outcome=call.outcome,
    )


def _in_order(lines: Sequence[LogLine]) -> list[_Step]:
    """By time; a record that tells none stays behind the one before it."""
    steps: list[_Step] = []
    for line in lines:
        written = _written(line)
        read = moment(written)
        before = steps[-1].at if steps else -math.inf
        steps.append(_Step(before if read is None else read.at, line, written))
    return sorted(steps, key=lambda step: step.at)


def _written(line: LogLine) -> Any:
    facts = line.facts
    if line.kind != "breakdown":
        return next((facts[name] for name in _TIMES if facts.get(name) is not None), None)
    # It is told when the bot begins to speak, and it does not say when that was.
    parts = facts.get("contributions")
    first = as_object(parts[0]).get("start_time") if isinstance(parts, list) and parts else None
    start = as_number(facts.get("user_turn_start_time"))
    start = as_number(first) if start is None else start
    total = as_number(facts.get("total_secs"))
    return facts.get("timestamp") if start is None or total is None else start + total


class _Call:
    """Goes through the records in the order of time."""

    def __init__(self, notes: Notes, steps: Sequence[_Step]) -> None:
        self.notes, self.steps = notes, steps
        self.timeline = TimelineBuilder(notes, "timestamp")
        self.outcome = Outcome()
        self.states = StateTrack(self.timeline)
        self.leaving, self.function = "", ""
        self.told_twice = 0
        """Functions in the log of which a record tells more."""
        self.called: set[str] = set()
        self.models: dict[str, str] = {}
        self.llms: Counter[str] = Counter()
        self.processors: set[str] = set()
        self.exchange, self.spoke = 0, False
        self.has_calls = any(step.line.kind == "function" for step in steps)
        self.standalone = {
            as_text(step.line.facts.get("processor"))
            for step in steps
            if step.line.kind == "latency" and step.line.facts.get("kind") == "ttfb"
        }
        self.has_latencies = any(step.line.kind == "latency" for step in steps)
        self.told: set[tuple[str, str | None, float]] = set()
        self.place = 0
        self.failed = _nodes_that_failed(steps)
        self.sounds: dict[int, list[SpokenStretch]] = {}
        """By the place of the message; at -1, all that belong to a message."""
        self.has_words = dict.fromkeys((USER, ASSISTANT), False)
        self.ended = {
            (as_text(step.line.facts.get("kind")), as_number(step.line.facts.get("started_at"))) for step in steps
        }

    def write(self) -> None:
        self._match_sounds()
        former = _first_node(self.steps)
        if former:
            self.states.enter(former, self.timeline.time(self.steps[0].time))
        for place, step in enumerate(self.steps):
            self.place = place
            tell = _TELL.get(step.line.kind, _Call._other)
            facts = dict(step.line.facts)
            for name in _TIMES:
                if facts.get(name) is not None and moment(facts[name]) is not None:
                    del facts[name]
                    break
            with self.notes.standing_at(step.line.file, step.line.number):
                tell(self, facts, self.timeline.time(step.time), step)
        if self.told_twice:
            self.notes.ignored("function_in_the_log", f"{self.told_twice} lines", count=self.told_twice)

    def pipeline(self) -> Pipeline | None:
        names = " ".join(self.processors).lower()
        if {"stt", "tts"} & self.models.keys() or ("stt" in names and "tts" in names):
            return "cascade"
        if any(part in names for part in _S2S):
            self.notes.inferred("pipeline_s2s", names[:80])
            return "s2s"
        return None

    @property
    def speech(self) -> str:
        return f"exchange-{self.exchange}"

    # Words and sound

    def _match_sounds(self) -> None:
        """Which stretches of sound each message was said in; those of none stay stretches."""
        messages = [(step.at, place, _SAID[step.line.kind][0]) for place, step in enumerate(self.steps) if _says(step)]
        for _, _, role in messages:
            self.has_words[role] = True
        for step in self.steps:
            if (stretch := _stretch(step)) is None:
                self._tell_of_times(step)
                continue
            own_messages = [(at, place) for at, place, role in messages if role == stretch.role]
            before = [(at, place) for at, place in own_messages if at <= stretch.end]
            owner = before[-1] if before else None
            if owner is not None and any(
                owner[0] < at <= stretch.start
                for at, _, role in messages
                if role != stretch.role and stretch.role == USER
            ):
                owner = None
            if owner is None:
                owner = next(((at, place) for at, place in own_messages if 0 < at - stretch.end <= _LATE), None)
            if owner is not None:
                self.sounds.setdefault(owner[1], []).append(stretch)
                self.sounds.setdefault(-1, []).append(stretch)

    def _speech(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        kind = as_text(facts.get("kind"))
        if kind in _OPENED and (_OPENED[kind], as_number(step.time)) in self.ended:
            return
        stretch = _stretch(step)
        if stretch is None:
            who = USER if kind.startswith("user") else ASSISTANT if kind.startswith("bot") else ""
            speaker = self.timeline.participant(who) if who else ""
            details = filled({name: one for name, one in facts.items() if name != "kind"})
            seq = self.timeline.seq
            name = kind or "speech_event"
            self.timeline.events.append(
                Marker(seq=seq, time=time, name=name, participant=speaker, value=details or None)
            )
        elif stretch not in self.sounds.get(-1, ()):
            self._unheard(stretch)

    def _tell_of_times(self, step: _Step) -> None:
        role, start, end = _sounding(step)
        if role is not None and start is not None and end is not None and end < start:
            self.notes.set_aside("end_before_start", f"{role}: {start} to {end}")

    def _unheard(self, span: SpokenStretch) -> None:
        """Sound without words: a cough beside words, all that is known where no words were logged."""
        time = Time(span.start, "wall", span.end)
        who, seq = self.timeline.participant(span.role), self.timeline.seq
        if self.has_words[span.role]:
            name = "user_speech" if span.role == USER else "bot_speech"
            self.timeline.events.append(Marker(seq=seq, time=time, name=name, participant=who))
            return
        self._count(span.role)
        segments = (Segment(span.start, span.end, "wall"),)
        self.timeline.events.append(Utterance(seq=seq, time=time, speaker=who, segments=segments))

    def _message(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        role, manner = _SAID[step.line.kind]
        words = take(facts, "content", "text")
        cut = facts.pop("interrupted", None) is True
        segments = tuple(Segment(one.start, one.end, "wall") for one in self.sounds.get(self.place, ()))
        if words is not None and (role, words, step.at) in self.told:
            self.notes.ignored("message_repeated", step.line.kind, self.timeline.seq)
            return
        self.told.add((role, words, step.at))
        if words is None and not segments:
            self.notes.ignored("message_without_words", step.line.kind, self.timeline.seq)
            return
        if not manner:
            self._count(role)
        timeline = self.timeline
        speaker = timeline.participant(role)
        meant = facts.pop("as_intended", None) is True
        text = None if words is None else Text(words, "tts" if meant else "content")
        timeline.events.append(
            Utterance(
                seq=timeline.seq,
                time=Time(segments[0].start, "wall", segments[-1].end) if segments else time,
                speaker=speaker,
                intended=text if meant else None,
                spoken=text if role == ASSISTANT and not meant else None,
                heard=text if role == USER else None,
                segments=segments,
                cut_off_by=timeline.participant(USER if role == ASSISTANT else ASSISTANT) if cut else "",
                manner=manner,
                extras=filled(facts),
            )
        )

    def _count(self, role: str) -> None:
        if role == USER and (self.spoke or not self.exchange):
            self.exchange, self.spoke = self.exchange + 1, False
        self.spoke = self.spoke or role == ASSISTANT

    # Tools

    def _function(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        kind = as_text(facts.pop("kind", None))
        name, id = take_text(facts, "function_name"), take_text(facts, "tool_call_id")
        if id not in self.called or not id:
            self.called.add(id)
            arguments = facts.pop("arguments", None)
            opened = {} if kind in _SETTLED else filled(facts)
            self.timeline.call(name, arguments, call_id=id, time=time, extras=opened)
        if kind not in _SETTLED:
            return
        worked, why = _SETTLED[kind]
        result, error = facts.pop("result", None), take_text(facts, "error")
        facts.pop("arguments", None)
        self._answer(result, name, id, time, filled(facts), worked, error or why)

    def _answer(
        self, result: Any, name: str, id: str, time: Time | None, extras: JsonObject, worked: bool, error: str
    ) -> None:
        self.timeline.result(result, call_id=id, name=name, time=time, extras=extras)
        set_tool_outcome(self.timeline, worked=worked, error=error_of(self.timeline) or error)

    def _logged_call(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        """Pipecat Flows logs which functions it runs; the observer's records tell more, where there are any."""
        name = as_text(facts.get("function"))
        kind = step.line.kind
        if kind == "called":
            self.function = name
        if self.has_calls:
            self.told_twice += 1
        elif kind == "called":
            self.timeline.call(name, None, time=time)
        else:
            self._answer(None, name, "", time, {}, kind == "returned", as_text(facts.get("error")) or "failed")

    # States and slots

    def _node(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        new, former = take_text(facts, *_NODES), take_text(facts, *_FORMER)
        reason = take_text(facts, *_REASONS)
        if not new:
            self.notes.set_aside("node_without_a_name", repr(step.line.facts)[:80], self.timeline.seq)
            return
        if self.place in self.failed:
            return
        if former and former != self.states.current:
            self.notes.repaired(
                "node_left_from_another", f"{former}, but it was {self.states.current}", self.timeline.seq
            )
        self._move(new, time, reason or self.leaving, filled(facts))

    def _node_set(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        """Says it again, unless only this was logged."""
        del step
        if as_text(facts.get("node")) != self.states.current:
            self._move(as_text(facts["node"]), time, self.leaving, {})

    def _node_failed(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        self.timeline.mark("node_failed", filled(facts), time)

    def _transition(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        """A function returned the next node: the node is set in what follows."""
        del facts, time, step
        self.leaving = self.function

    def _move(self, to: str, time: Time | None, reason: str, extras: JsonObject) -> None:
        self.states.move(to, time, reason, extras)
        self.leaving = ""

    def _fill(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        held = facts.get("state") if isinstance(facts.get("state"), dict) else facts.get("slots")
        for slot, value in as_object(held).items():
            self.states.fill(slot, value, time)

    # Times, use, errors, the end

    def _latency(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        kind, processor = as_text(facts.pop("kind", None)), take_text(facts, "processor")
        seconds = as_number(facts.pop("seconds", None))
        component = self._part(processor, facts)
        if not kind or seconds is None or seconds < 0:
            self.notes.set_aside("unusable_metric", f"{processor} {kind}"[:80], self.timeline.seq)
            return
        if seconds == 0 and not self.exchange and not self.spoke:
            self.notes.ignored("zero_at_the_start", f"{processor} {kind}")
            return
        values: JsonObject = {kind: seconds}
        for name, called in _WITHIN.items():
            within = as_number(facts.pop(name, None))
            # The first byte is also told by itself: once is enough.
            if within is not None and not (called == "ttfb" and processor in self.standalone):
                values.setdefault(called, within)
        self._metric(component, values | filled(facts), time, processor)

    def _usage(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        kind, processor = as_text(facts.pop("kind", None)), take_text(facts, "processor")
        component = self._part(processor, facts, kind)
        self._metric(kind or component, filled(facts), time, processor)

    def _breakdown(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        breakdown = taken_apart(facts)
        total, waited = (as_number(facts.pop(name, None)) for name in ("total_secs", "user_turn_secs"))
        name = "first_speech_latency" if facts.get("measured_from") == _GREETING else "e2e_latency"
        values: JsonObject = {} if total is None or total < 0 else {name: total}
        parts = facts.pop("contributions", None)
        shares: dict[str, float] = {}
        for part in as_list(parts):
            took = as_number(as_object(part).get("duration_secs"))
            if took is not None:
                key = as_text(part.get("key")) or "part"
                shares[key] = round(shares.get(key, 0.0) + took, 6)
        if shares:
            values["contributions"] = shares
        facts.pop(TTFB, None)
        if waited is not None and waited > 0:
            self._metric("eou", {"end_of_utterance_delay": waited}, time)
        for part in () if self.has_latencies else breakdown.parts:
            took = as_number(as_object(part.entry).get("value"))
            if part.metric == TTFB and took is not None and took >= 0:
                self._metric(self._part(part.processor, as_object(part.entry)), {TTFB: took}, time, part.processor)
        self._metric("turn", values, time, extras=filled({**facts, "parts": parts}))

    def _e2e(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        seconds = next((found for name in _SECONDS if (found := as_number(facts.get(name))) is not None), None)
        if seconds is None or seconds < 0:
            self.notes.set_aside("unusable_metric", repr(facts)[:80], self.timeline.seq)
            return
        self._metric("turn", {"e2e_latency": seconds}, time)

    def _metric(
        self, component: str, values: JsonObject, time: Time | None, label: str = "", extras: JsonObject | None = None
    ) -> None:
        self.states.measure(component, values, self.speech, time, label, extras)

    def _part(self, processor: str, facts: JsonObject, kind: str = "") -> str:
        """The part of the stack that a processor is, by its name; its model is kept."""
        part = kind or service_of(processor) or _other_part(processor.lower())
        self.processors.add(processor)
        model = as_text(facts.get("model"))
        if model:
            self.models.setdefault(part, model)
            if part == "llm":
                self.llms[model] += 1
        return part

    def _error(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        self.timeline.mark("error", filled(facts), time)
        category = as_text(facts.get("category"))
        if facts.get("processor_usable") is False and category not in _OURS and not self.outcome.error:
            description = ": ".join(filter(None, (category, as_text(facts.get("message")))))
            self.outcome = msgspec.structs.replace(self.outcome, error=description or "error", finished=False)

    def _end(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        del step
        completed, finished = facts.pop("completed", None), facts.pop("finished", None)
        self.outcome = msgspec.structs.replace(
            self.outcome,
            completed=completed if isinstance(completed, bool) else None,
            finished=finished if isinstance(finished, bool) else self.outcome.finished,
            ended_reason=take_text(facts, "reason", "ended_reason", "stop_reason"),
            error=take_text(facts, "error") or self.outcome.error,
            duration=as_number(facts.pop("duration", None)),
        )
        self.timeline.mark("conversation_ended", filled(facts) or None, time)

    def _other(self, facts: JsonObject, time: Time | None, step: _Step) -> None:
        name = take_text(facts, "record") or step.line.kind
        if step.line.kind == "other":
            self.notes.unknown(f"record={name}", self.timeline.seq)
        self.timeline.mark(name, filled(facts) or None, time)


_TELL = {
    "speech": _Call._speech,
    "user": _Call._message,
    "user_backchannel": _Call._message,
    "assistant": _Call._message,
    "assistant_backchannel": _Call._message,
    "function": _Call._function,
    "called": _Call._logged_call,
    "returned": _Call._logged_call,
    "raised": _Call._logged_call,
    "node": _Call._node,
    "node_set": _Call._node_set,
    "node_failed": _Call._node_failed,
    "transition": _Call._transition,
    "slots": _Call._fill,
    "latency": _Call._latency,
    "usage": _Call._usage,
    "breakdown": _Call._breakdown,
    "e2e": _Call._e2e,
    "error": _Call._error,
    "end": _Call._end,
}


def _other_part(processor: str) -> str:
    """The part that a processor is whose name has none of the usual words; else it goes by its own name."""
    return next((part for sign, part in _OTHER_PROCESSORS if sign in processor), processor.partition("#")[0] or "turn")


def _first_node(steps: Sequence[_Step]) -> str:
    """The node that the first change of node leaves, where it is told: the call began in it."""
    first = next((step for step in steps if step.line.kind == "node"), None)
    return "" if first is None else take_text(dict(first.line.facts), *_FORMER)


def _nodes_that_failed(steps: Sequence[_Step]) -> set[int]:
    """The places of changes of node that did not come about: the flow stayed where it was."""
    failed: set[int] = set()
    begun: dict[str, int] = {}
    for place, step in enumerate(steps):
        node = as_text(step.line.facts.get("node"))
        if step.line.kind == "node":
            begun[node] = place
        elif step.line.kind == "node_set":
            begun.pop(node, None)
        elif step.line.kind == "node_failed" and node in begun:
            failed.add(begun.pop(node))
    return failed


def _says(step: _Step) -> bool:
    return step.line.kind in ("user", "assistant")


def _sounding(step: _Step) -> tuple[str | None, float | None, float | None]:
    """Whose sound a moment closes, and when that began and ended, where it says so."""
    facts = step.line.facts
    role = _SPOKEN.get(as_text(facts.get("kind"))) if step.line.kind == "speech" else None
    return role, wall(facts.get("started_at")), wall(step.time)


def _stretch(step: _Step) -> SpokenStretch | None:
    """The stretch of sound that a moment closes."""
    role, start, end = _sounding(step)
    if role is None or start is None or end is None:
        return None
    return SpokenStretch(role, start, end) if end > start else None
