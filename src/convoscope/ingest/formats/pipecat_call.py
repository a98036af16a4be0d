"""One call of a Pipecat bot, put together from its records."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    USER,
    Agent,
    Conversation,
    Outcome,
    Segment,
    Text,
    Time,
)
from convoscope.conversation.events import moment
from convoscope.conversation.model import Pipeline
from convoscope.ingest.call_exports import OTHER, CallTimeline, SpokenSpan
from convoscope.ingest.reader import Reader, RecordGroup
from convoscope.ingest.record import Fields, JsonObject, as_list, as_number, as_object, as_text, filled, wall
from convoscope.ingest.report import Notes
from convoscope.ingest.timeline_builder import dimensions
from convoscope.views.standard_data.payloads.pipecat import TTFB, service_of, taken_apart

Kind = str
"""What a line says: speech, function, latency, node, …; see `_WRITERS`."""
SILENT = frozenset({"begins", "repeated", "joined", "noise", "unknown"})
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
_ENDED = {
    "function_call_completed": (True, ""),
    "function_call_failed": (False, "failed"),
    "function_call_timed_out": (False, "timed out"),
    "function_call_cancelled": (False, "cancelled"),
}
_WORDS = ("user", "assistant")
_OTHER_PROCESSORS = (("realtime", "llm"), ("live", "llm"), ("vad", "vad"))
_S2S = ("realtime", "live", "s2s", "sonic", "ultravox")
_WITHIN = {"ttfb_secs": "ttfb", "leading_silence_secs": "leading_silence", "thinking_time_secs": "thinking_time"}
_GREETING = "client_connected"
# Errors of these kinds are no fault of the agent, and end the call where the part cannot go on.
_OWN_ERRORS = frozenset({"application"})
_LATE = 3.0
"""Seconds after the user fell silent in which the turn may still be logged."""


class LogLine(NamedTuple):
    """One record, by its kind."""

    kind: Kind
    fields: JsonObject
    number: int
    file: str = ""
    logger: str = ""
    """The logger, where it is a message of a log and no record."""
    at: float = -math.inf
    """When it was logged; a record without a time is logged with the one before it."""
    written: Any = None
    """The time as it was written."""
    position: int = 0
    """In the order of time."""


def conversation(reader: Reader, id: str, lines: Sequence[LogLine], group: RecordGroup, notes: Notes) -> Conversation:
    """The conversation of these lines."""
    call = _Call(notes, _in_order([line for line in lines if line.kind not in SILENT]))
    call.write()
    dims = dimensions(*(line.fields for line in lines))
    if len(call.llms) == 1:
        dims.setdefault("model", next(iter(call.llms)))
    agent = Agent(name=dims.get("agent", ""), models=call.models)
    return call.conversation(
        reader, group, id, group.name, dimensions=dims, pipeline=call.pipeline(), agent=agent, outcome=call.outcome
    )


def _in_order(lines: Sequence[LogLine]) -> list[LogLine]:
    """By time; a record without a time stays behind the one before it."""
    steps: list[LogLine] = []
    at = -math.inf
    for line in lines:
        written = _written(line)
        read = moment(written)
        at = at if read is None else read.at
        steps.append(line._replace(at=at, written=written))
    return [step._replace(position=position) for position, step in enumerate(sorted(steps, key=lambda step: step.at))]


def _written(line: LogLine) -> Any:
    fields = line.fields
    if line.kind != "breakdown":
        return next((fields[name] for name in _TIMES if fields.get(name) is not None), None)
    # It is logged when the bot begins to speak, and does not say when that was.
    parts = as_list(fields.get("contributions"))
    start = as_number(fields.get("user_turn_start_time"))
    start = as_number(as_object(parts[0]).get("start_time")) if start is None and parts else start
    total = as_number(fields.get("total_secs"))
    return fields.get("timestamp") if start is None or total is None else start + total


class _Call(CallTimeline):
    """Goes through the records in the order of time."""

    def __init__(self, notes: Notes, steps: Sequence[LogLine]) -> None:
        super().__init__(notes, "timestamp")
        self.steps = steps
        self.outcome = Outcome()
        self.leaving, self.function = "", ""
        self.logged_twice = 0
        """Functions in the log that a record says more of."""
        self.called: set[str] = set()
        self.models: dict[str, str] = {}
        self.llms: Counter[str] = Counter()
        self.processors: set[str] = set()
        self.exchange, self.spoke = 0, False
        latencies = [step.fields for step in steps if step.kind == "latency"]
        self.has_calls, self.has_latencies = any(step.kind == "function" for step in steps), bool(latencies)
        self.standalone = {as_text(fields.get("processor")) for fields in latencies if fields.get("kind") == "ttfb"}
        self.said: set[tuple[str, str | None, float]] = set()
        self.failed = _nodes_that_failed(steps)
        self.sounds: dict[int, list[SpokenSpan]] = {}
        """By the index of the message; at -1, all that belong to a message."""
        self.has_words = dict.fromkeys((USER, ASSISTANT), False)
        self.ended = {(as_text(step.fields.get("kind")), as_number(step.fields.get("started_at"))) for step in steps}

    def write(self) -> None:
        self._match_sounds()
        # The node that the first change of node leaves: the call began in it.
        first = next((step.fields for step in self.steps if step.kind == "node"), {})
        if former := Fields(first, "node", self.notes).text(*_FORMER):
            self.enter(former, self.time(self.steps[0].written))
        for step in self.steps:
            fields = Fields(step.fields, step.kind, self.notes)
            for name in _TIMES:
                if fields.get(name) is not None and moment(fields[name]) is not None:
                    del fields[name]
                    break
            with self.notes.at_line(step.file, step.number):
                _WRITERS.get(step.kind, _Call._other)(self, fields, self.time(step.written), step)
        if self.logged_twice:
            self.notes.ignored("function_in_the_log", f"{self.logged_twice} lines", count=self.logged_twice)

    def pipeline(self) -> Pipeline | None:
        names = " ".join(self.processors).lower()
        if {"stt", "tts"} & self.models.keys() or ("stt" in names and "tts" in names):
            return "cascade"
        if any(part in names for part in _S2S):
            self.notes.inferred("pipeline_s2s", names[:80])
            return "s2s"
        return None

    # Text and sound

    def _match_sounds(self) -> None:
        """Which spans of sound each message was said in; the others stay spans."""
        messages = [(step.at, step.position, _SAID[step.kind][0]) for step in self.steps if step.kind in _WORDS]
        for _, _, role in messages:
            self.has_words[role] = True
        for step in self.steps:
            if (span := _span(step, self.notes)) is None:
                continue
            own = [(at, index) for at, index, role in messages if role == span.role]
            owner = next(((at, index) for at, index in reversed(own) if at <= span.end), None)
            is_user = span.role == USER
            others = [at for at, _, role in messages if role != span.role and is_user]
            if owner is not None and any(owner[0] < at <= span.start for at in others):
                owner = None
            if owner is None:
                owner = next(((at, index) for at, index in own if 0 < at - span.end <= _LATE), None)
            if owner is not None:
                self.sounds.setdefault(owner[1], []).append(span)
                self.sounds.setdefault(-1, []).append(span)

    def _speech(self, fields: Fields, time: Time | None, step: LogLine) -> None:
        kind = as_text(fields.get("kind"))
        if kind in _OPENED and (_OPENED[kind], as_number(step.written)) in self.ended:
            return
        span = _span(step)
        if span is None:
            role = USER if kind.startswith("user") else ASSISTANT if kind.startswith("bot") else ""
            speaker = self.participant(role) if role else ""
            fields.pop("kind", None)
            self.mark(kind or "speech_event", filled(fields) or None, time, participant=speaker)
        elif span not in self.sounds.get(-1, ()):
            self._unheard(span)

    def _unheard(self, span: SpokenSpan) -> None:
        """Sound without words: a cough, or all that is known where no words were logged."""
        speaker = self.participant(span.role)
        if self.has_words[span.role]:
            name = "user_speech" if span.role == USER else "bot_speech"
            self.mark(name, time=Time(span.start, "wall", span.end), participant=speaker)
            return
        self._count(span.role)
        self.say(speaker, segments=[Segment(span.start, span.end, "wall")])

    def _message(self, fields: Fields, time: Time | None, step: LogLine) -> None:
        role, manner = _SAID[step.kind]
        speech, cut = fields.take("content", "text", kind=str), fields.pop("interrupted", None) is True
        segments = [Segment(span.start, span.end, "wall") for span in self.sounds.get(step.position, ())]
        if speech is not None and (role, speech, step.at) in self.said:
            self.notes.ignored("message_repeated", step.kind, self.seq)
            return
        self.said.add((role, speech, step.at))
        if speech is None and not segments:
            self.notes.ignored("message_without_words", step.kind, self.seq)
            return
        if not manner:
            self._count(role)
        is_intended = fields.pop("as_intended", None) is True
        text = None if speech is None else Text(speech, "tts" if is_intended else "content")
        self.say(
            self.participant(role),
            time=time,
            intended=text if is_intended else None,
            spoken=text if role == ASSISTANT and not is_intended else None,
            heard=text if role == USER else None,
            segments=segments,
            cut_off_by=self.participant(OTHER[role]) if cut else "",
            manner=manner,
            extras=filled(fields),
        )

    def _count(self, role: str) -> None:
        if role == USER and (self.spoke or not self.exchange):
            self.exchange, self.spoke = self.exchange + 1, False
        self.spoke = self.spoke or role == ASSISTANT

    # Tools

    def _function(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        kind = as_text(fields.pop("kind", None))
        name, id, arguments = fields.text("function_name"), fields.text("tool_call_id"), fields.get("arguments")
        if id not in self.called or not id:
            self.called.add(id)
            fields.pop("arguments", None)
            opened = {} if kind in _ENDED else filled(fields)
            self.call(name, arguments, call_id=id, time=time, extras=opened)
        if kind not in _ENDED:
            return
        worked, why = _ENDED[kind]
        result, error = fields.pop("result", None), fields.text("error")
        fields.pop("arguments", None)
        extras = filled(fields)
        self.answer(result, worked, error_if_unstated=error or why, call_id=id, name=name, time=time, extras=extras)

    def _logged_call(self, fields: Fields, time: Time | None, step: LogLine) -> None:
        """Pipecat Flows logs which functions it runs; the observer's records say more, where there are any."""
        name, is_call = as_text(fields.get("function")), step.kind == "called"
        if is_call:
            self.function = name
        if self.has_calls:
            self.logged_twice += 1
        elif is_call:
            self.call(name, None, time=time)
        else:
            error = as_text(fields.get("error")) or "failed"
            self.answer(None, step.kind == "returned", error_if_unstated=error, name=name, time=time)

    # States and slots

    def _node(self, fields: Fields, time: Time | None, step: LogLine) -> None:
        new, former, reason = fields.text(*_NODES), fields.text(*_FORMER), fields.text(*_REASONS)
        if not new:
            self.notes.set_aside("node_without_a_name", repr(step.fields)[:80], self.seq)
            return
        if step.position in self.failed:
            return
        here = self.current
        if former and former != here:
            self.notes.repaired("node_left_from_another", f"{former}, but it was {here}", self.seq)
        self._move_to(new, time, reason or self.leaving, filled(fields))

    def _node_set(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        """Repeats the change of node, unless only this was logged."""
        if as_text(fields.get("node")) != self.current:
            self._move_to(as_text(fields["node"]), time, self.leaving, {})

    def _node_failed(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        self.mark("node_failed", filled(fields), time)

    def _transition(self, _fields: Fields, _time: Time | None, _: LogLine) -> None:
        """A function returned the next node: the node is set in what follows."""
        self.leaving = self.function

    def _move_to(self, to: str, time: Time | None, reason: str, extras: JsonObject) -> None:
        self.move(to, time, reason, extras)
        self.leaving = ""

    def _fill(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        held = fields.get("state") if isinstance(fields.get("state"), dict) else fields.get("slots")
        for slot, value in as_object(held).items():
            self.fill(slot, value, time)

    # Times, use, errors, the end

    def _latency(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        kind, processor = as_text(fields.pop("kind", None)), fields.text("processor")
        seconds = as_number(fields.pop("seconds", None))
        component = self._part(processor, fields)
        if not kind or seconds is None or seconds < 0:
            self.notes.set_aside("unusable_metric", f"{processor} {kind}"[:80], self.seq)
            return
        if seconds == 0 and not self.exchange and not self.spoke:
            self.notes.ignored("zero_at_the_start", f"{processor} {kind}")
            return
        values: JsonObject = {kind: seconds}
        for name, called in _WITHIN.items():
            within = as_number(fields.pop(name, None))
            # The first byte is also measured by itself: once is enough.
            if within is not None and not (called == "ttfb" and processor in self.standalone):
                values.setdefault(called, within)
        self._metric(component, values | filled(fields), time, processor)

    def _usage(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        kind, processor = as_text(fields.pop("kind", None)), fields.text("processor")
        component = self._part(processor, fields, kind)
        self._metric(kind or component, filled(fields), time, processor)

    def _breakdown(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        breakdown = taken_apart(fields)
        total, waited = (as_number(fields.pop(name, None)) for name in ("total_secs", "user_turn_secs"))
        name = "first_speech_latency" if fields.get("measured_from") == _GREETING else "e2e_latency"
        values: JsonObject = {} if total is None or total < 0 else {name: total}
        parts = fields.pop("contributions", None)
        shares: dict[str, float] = {}
        for part in as_list(parts):
            took = as_number(as_object(part).get("duration_secs"))
            if took is not None:
                key = as_text(part.get("key")) or "part"
                shares[key] = round(shares.get(key, 0.0) + took, 6)
        if shares:
            values["contributions"] = shares
        fields.pop(TTFB, None)
        if waited is not None and waited > 0:
            self._metric("eou", {"end_of_utterance_delay": waited}, time)
        for part in () if self.has_latencies else breakdown.parts:
            took = as_number(as_object(part.entry).get("value"))
            if part.metric == TTFB and took is not None and took >= 0:
                self._metric(self._part(part.processor, as_object(part.entry)), {TTFB: took}, time, part.processor)
        self._metric("turn", values, time, extras=filled({**fields, "parts": parts}))

    def _e2e(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        seconds = fields.number(*_SECONDS)
        if seconds is None or seconds < 0:
            self.notes.set_aside("unusable_metric", repr(dict(fields))[:80], self.seq)
            return
        self._metric("turn", {"e2e_latency": seconds}, time)

    def _metric(self, component: str, values: JsonObject, time: Time | None, label: str = "", **fields: Any) -> None:
        self.measure(component, values, f"exchange-{self.exchange}", time=time, label=label, **fields)

    def _part(self, processor: str, fields: JsonObject, kind: str = "") -> str:
        """The part of the stack that a processor is, by its name, else the name itself; its model is kept."""
        name = processor.lower()
        part = kind or service_of(processor) or next((part for sign, part in _OTHER_PROCESSORS if sign in name), "")
        part = part or name.partition("#")[0] or "turn"
        self.processors.add(processor)
        model = as_text(fields.get("model"))
        if model:
            self.models.setdefault(part, model)
            if part == "llm":
                self.llms[model] += 1
        return part

    def _error(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        self.mark("error", filled(fields), time)
        category = as_text(fields.get("category"))
        if fields.get("processor_usable") is False and category not in _OWN_ERRORS and not self.outcome.error:
            description = ": ".join(filter(None, (category, as_text(fields.get("message")))))
            self.outcome = msgspec.structs.replace(self.outcome, error=description or "error", finished=False)

    def _end(self, fields: Fields, time: Time | None, _: LogLine) -> None:
        completed, finished = fields.pop("completed", None), fields.pop("finished", None)
        self.outcome = msgspec.structs.replace(
            self.outcome,
            completed=completed if isinstance(completed, bool) else None,
            finished=finished if isinstance(finished, bool) else self.outcome.finished,
            ended_reason=fields.text("reason", "ended_reason", "stop_reason"),
            error=fields.text("error") or self.outcome.error,
            duration=as_number(fields.pop("duration", None)),
        )
        self.mark("conversation_ended", filled(fields) or None, time)

    def _other(self, fields: Fields, time: Time | None, step: LogLine) -> None:
        name = fields.text("record") or step.kind
        if step.kind == "other":
            self.notes.unknown(f"record={name}", self.seq)
        self.mark(name, filled(fields) or None, time)


_WRITERS = {
    "speech": _Call._speech,
    **dict.fromkeys(_SAID, _Call._message),
    "function": _Call._function,
    **dict.fromkeys(("called", "returned", "raised"), _Call._logged_call),
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


def _nodes_that_failed(steps: Sequence[LogLine]) -> set[int]:
    """The indexes of changes of node that failed: the flow stayed where it was."""
    failed: set[int] = set()
    begun: dict[str, int] = {}
    for step in steps:
        node = as_text(step.fields.get("node"))
        if step.kind == "node":
            begun[node] = step.position
        elif step.kind == "node_set":
            begun.pop(node, None)
        elif step.kind == "node_failed" and node in begun:
            failed.add(begun.pop(node))
    return failed


def _span(step: LogLine, notes: Notes | None = None) -> SpokenSpan | None:
    """The span of sound that a record closes; an end before its start is noted."""
    role = _SPOKEN.get(as_text(step.fields.get("kind"))) if step.kind == "speech" else None
    start, end = wall(step.fields.get("started_at")), wall(step.written)
    if role is None or start is None or end is None:
        return None
    if end < start and notes is not None:
        notes.set_aside("end_before_start", f"{role}: {start} to {end}")
    return SpokenSpan(role, start, end) if end > start else None
