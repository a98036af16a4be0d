"""Conversations from traces: the spans of a session, in the order of time, and of each what was not said before.

A reader of traces is a `TraceReader`. It says which spans it knows, and what a span logs: a call of a model, a run of
a tool, a retrieval. Everything else happens here.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import (
    ASSISTANT,
    SYSTEM,
    USER,
    Agent,
    ComponentMetric,
    Conversation,
    Label,
    Outcome,
    Retrieval,
    Source,
    Time,
)
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.kits.leftovers import with_leftovers
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.kits.plain_timeline import OpenCall, PlainTimeline, canonical
from convoscope.ingest.kits.shapes import embedded, is_message, plain_messages, signature
from convoscope.ingest.kits.spans import Span, spans_in
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

SUBAGENT = "subagent"
"""The role of an agent that works for another one, through a tool: its talk is not with the user."""
SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
    "thread_id",
)
"""Attributes that hold the id of a session, the surest first."""
_INSIDE = {ASSISTANT: SUBAGENT, USER: "orchestrator"}
USERS = ("user.id", "langfuse.user.id", "enduser.id")
KNOWN = frozenset(
    {"traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id", "parentId", "parent_id", "id"}
    | {"startTimeUnixNano", "endTimeUnixNano", "start_time_unix_nano", "end_time_unix_nano", "timeUnixNano"}
    | {"start_time", "end_time", "startTime", "endTime", "start_timestamp", "end_timestamp", "timestamp"}
)
"""Fields of spans that show in the order and the times of events: not kept beside them."""


class LoggedCall(msgspec.Struct, kw_only=True, dict=True):
    """A call of a model: what it was sent, what it answered, as plain messages."""

    inputs: list[JsonObject] = []
    outputs: list[JsonObject] = []
    model: str = ""
    tools: Sequence[Any] | None = None
    usage: JsonObject = {}
    """Tokens, costs and times under the names of component metrics."""
    is_spoken: bool = False
    """The texts are transcripts of what was said."""
    is_cut_off: bool = False
    """The user interrupted the answer."""

    @cached_property
    def sent(self) -> list[str]:
        """What each of the inputs says."""
        return list(map(signature, self.inputs))


class ToolRun(msgspec.Struct, kw_only=True):
    """A tool that ran."""

    name: str
    call_id: str = ""
    arguments: Any = None
    result: Any = None
    error: str = ""


class Handoff(msgspec.Struct, kw_only=True):
    """One agent hands over to another."""

    agent: str


class Lookup(msgspec.Struct, kw_only=True):
    """A query to a store, and what came back."""

    query: str | None = None
    chunks: tuple[str, ...] = ()


Logged = LoggedCall | ToolRun | Lookup | Handoff


class TraceStep(NamedTuple):
    """What a span logs, and by which agent."""

    span: Span
    logged: Logged
    agent: str
    is_inside: bool
    """It happened inside a tool: the agent works for another one."""


class TraceReader(Reader):
    """Reads traces of one convention."""

    title = ""
    sessions: Sequence[str] = SESSIONS
    confidence = 0.9
    pipeline: Pipeline = "text"
    """Of conversations without sound in the log."""
    no_content = "switch on the capture of message content in the instrumentation"
    """What to do where no span holds a message."""

    def knows(self, span: Span) -> bool:
        """Is this span of my convention?"""
        raise NotImplementedError

    def logged(self, span: Span) -> Logged | None:
        """What a span logs; None for one that says nothing of its own."""
        raise NotImplementedError

    def agent(self, span: Span) -> str:
        """The agent that a span is about; "" where it is not about one."""
        return span.text("gen_ai.agent.name", "agent.name", "graph.node.id")

    def spans(self, value: Any) -> Iterable[Span]:
        """The spans of a record."""
        return spans_in(value)

    def spans_of(self, group: RecordGroup) -> list[Span]:
        """The spans of all records."""
        return [span for record in group.records for span in self.spans(record.value)]

    def labels(self, spans: Sequence[Span]) -> Iterator[Label]:
        """Verdicts that came with the trace."""
        del spans
        yield from ()

    def detect(self, sample: Sample) -> Detection | None:
        for value in sample.values:
            for span in self.spans(value):
                if self.knows(span):
                    return Detection(self.confidence, f"spans of {self.title}: {span.name[:60]!r}", "file")
        return None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        spans = _once(self.spans_of(group), notes)
        if not spans:
            raise InputError("no spans here", hint="expected OTLP JSON, or objects with a trace id and attributes")
        logged = {id(span): matched for span in spans if (matched := self.logged(span)) is not None}
        for twice in _echoes(spans, logged):
            notes.ignored("call_logged_twice", twice.name[:80])
            del logged[id(twice)]
        sessions = _by_session(spans, self.sessions)
        for name, of_session in list(sessions.items()):
            if len(sessions) > 1 and not any(id(span) in logged for span in of_session):
                notes.ignored("trace_of_something_else", f"{name}: {of_session[0].name}"[:80], count=len(of_session))
                del sessions[name]
        for name, of_session in sessions.items():
            steps = _steps(of_session, logged, self)
            if any(_says(step.logged) for step in steps):
                conversation = self._conversation(name or group.name, of_session, steps, group, notes)
                raw = {id(value): value for span in of_session for value in span.raw or (span.attributes,)}
                yield with_leftovers(conversation, raw.values(), notes, KNOWN)
            else:
                notes.refuse(_no_content(of_session, steps, name, self.no_content))

    def _conversation(
        self, id: str, spans: Sequence[Span], steps: Sequence[TraceStep], group: RecordGroup, notes: Notes
    ) -> Conversation:
        timeline = TraceTimeline(notes)
        for step, is_end in _moments(steps):
            timeline.end(step) if is_end else timeline.start(step)
        calls = [step.logged for step in steps if isinstance(step.logged, LoggedCall)]
        models = list(dict.fromkeys(call.model for call in calls if call.model))
        agents = list(dict.fromkeys(name for span in _in_time(spans) if (name := self.agent(span))))
        tools = next((call.tools for call in calls if call.tools), None)
        errors = [span.error for span in spans if span.error and not span.parent]
        user = next((text for span in spans if (text := span.text(*USERS))), "")
        agent = agents[0] if agents else ""
        dims = filled({"agent": agent, "model": models[0] if models else ""})
        return Conversation(
            id=id,
            dimensions=dims,
            source=Source(format=self.name, files=group.file_names, record=group.name),
            pipeline="s2s" if self.pipeline == "text" and any(call.is_spoken for call in calls) else self.pipeline,
            participants=timeline.participants,
            clocks=timeline.clocks,
            agent=Agent(
                name=agent,
                instructions="\n\n".join(timeline.instructions),
                tools=None if tools is None else read_tools(tools),
                models={"llm": models[0]} if models else {},
                extras=filled({"models": models[1:], "agents": agents[1:]}),
            ),
            timeline=tuple(timeline.events),
            labels=tuple(self.labels(spans)),
            outcome=Outcome(error=errors[0] if errors else ""),
            extras=filled(
                {
                    "traces": list(dict.fromkeys(span.trace for span in spans if span.trace)),
                    "root_spans": _roots(spans),
                    "spans": len(spans),
                    "user": user,
                    "resource": {name: value for span in reversed(spans) for name, value in span.resource.items()},
                }
            ),
        )


def _roots(spans: Sequence[Span]) -> dict[str, str]:
    """By trace, its first span: scores of the conversation go back to it."""
    ids = {span.id for span in spans}
    tops = [span for span in _in_time(spans) if span.trace and span.id and span.parent not in ids]
    return {span.trace: span.id for span in reversed(tops)}


def _once(spans: Sequence[Span], notes: Notes) -> list[Span]:
    """Spans without those that an export holds twice: the same id, and the same in everything."""
    kept: list[Span] = []
    by_id: dict[tuple[str, str], list[Span]] = {}
    for span in spans:
        same = by_id.setdefault((span.trace, span.id), [])
        if span.id and any(span.raw[:1] == other.raw[:1] and span.attributes == other.attributes for other in same):
            notes.ignored("span_twice", span.name[:80])
        else:
            same.append(span)
            kept.append(span)
    return kept


def _by_session(spans: Sequence[Span], names: Sequence[str]) -> dict[str, list[Span]]:
    """Spans of one session, else of one trace; a session that any span of a trace names holds the whole trace."""
    session_of = {span.trace: session for span in spans if (session := span.text(*names))}
    groups: dict[str, list[Span]] = {}
    for span in spans:
        groups.setdefault(session_of.get(span.trace) or span.trace, []).append(span)
    return groups


def _in_time(spans: Iterable[Span]) -> list[Span]:
    """By start; a span without a time stays behind the one before it."""
    latest, timed = float("-inf"), []
    for index, span in enumerate(spans):
        latest = latest if span.start is None else span.start
        timed.append((latest, index, span))
    return [span for _, _, span in sorted(timed, key=lambda entry: entry[:2])]


def _steps(spans: Sequence[Span], logged: Mapping[int, Logged], reader: TraceReader) -> list[TraceStep]:
    """What the spans log, by time. A call that wraps another call is left out: the inner one says the same."""
    by_id = {span.id: span for span in spans if span.id}
    inner: dict[int, list[LoggedCall]] = {}
    """The calls inside of each call."""
    steps: list[TraceStep] = []
    for span in _in_time(spans):
        matched = logged.get(id(span))
        above = list(_ancestors(span, by_id))
        if isinstance(matched, LoggedCall) and _says(matched):
            for entry in above:
                if isinstance(logged.get(id(entry)), LoggedCall):
                    inner.setdefault(id(entry), []).append(matched)
        if matched is not None:
            agent = next((name for entry in (span, *above) if (name := reader.agent(entry))), "")
            is_inside = any(isinstance(logged.get(id(entry)), ToolRun) for entry in above)
            steps.append(TraceStep(span, matched, agent, is_inside))
    for step in steps:
        calls = inner.get(id(step.span), ())
        if len(calls) == 1 and isinstance(
            step.logged, LoggedCall
        ):  # the same call: each may log what the other does not
            calls[0].outputs = calls[0].outputs or step.logged.outputs
            calls[0].usage = calls[0].usage or step.logged.usage
            calls[0].tools = calls[0].tools or step.logged.tools
    return [step for step in steps if id(step.span) not in inner]


def _ancestors(span: Span, by_id: dict[str, Span]) -> Iterator[Span]:
    seen = {span.id}
    while (parent := by_id.get(span.parent)) is not None and parent.id not in seen:
        seen.add(parent.id)
        yield parent
        span = parent


def _says(logged: Logged) -> bool:
    """Whether it logs more than instructions."""
    if not isinstance(logged, LoggedCall):
        return not isinstance(logged, Handoff)
    return any(message["role"] != SYSTEM for message in (*logged.inputs, *logged.outputs))


def _echoes(spans: Sequence[Span], logged: Mapping[int, Logged]) -> list[Span]:
    """Calls that another span of another trace logs too: with the answer, or at the same time with the same answer."""
    alike: dict[str, list[tuple[Span, LoggedCall]]] = {}
    for span in spans:
        call = logged.get(id(span))
        if isinstance(call, LoggedCall) and call.inputs and not span.error:
            alike.setdefault("\n".join(call.sent), []).append((span, call))
    echoes: list[Span] = []
    for same in alike.values():
        same.sort(key=lambda entry: (not entry[1].outputs, _length(entry[0])))
        for index, (span, call) in enumerate(same):
            if any(_is_echo(span, call, *other) for other in same[:index]):
                echoes.append(span)
    return echoes


def _is_echo(span: Span, call: LoggedCall, other: Span, other_call: LoggedCall) -> bool:
    if span.trace == other.trace:
        return False
    if not call.outputs:
        return bool(other_call.outputs)
    same_answer = list(map(signature, call.outputs)) == list(map(signature, other_call.outputs))
    times = (span.start, span.end, other.start, other.end)
    overlap = None not in times and span.start <= other.end and other.start <= span.end  # type: ignore[operator]
    return same_answer and overlap


def _length(span: Span) -> float:
    return 0.0 if span.start is None or span.end is None else span.end - span.start


def _moments(steps: Sequence[TraceStep]) -> list[tuple[TraceStep, bool]]:
    """The starts and ends of steps in the order of time; of one moment, an end comes before a start."""
    moments: list[tuple[float, int, int, TraceStep, bool]] = []
    latest = float("-inf")
    for index, step in enumerate(steps):
        span = step.span
        latest = latest if span.start is None else span.start
        ends = latest if span.end is None else max(span.end, latest)
        moments.append((latest, 2 if ends > latest else 1, 2 * index, step, False))
        moments.append((ends, 0 if ends > latest else 1, 2 * index + 1, step, True))
    return [(step, is_end) for _, _, _, step, is_end in sorted(moments, key=lambda entry: entry[:3])]


def _no_content(spans: Sequence[Span], steps: Sequence[TraceStep], id: str, hint: str) -> InputError:
    calls = sum(isinstance(step.logged, LoggedCall) for step in steps)
    what = f"{calls} calls of models" if calls else f"{len(spans)} spans"
    has_instructions = any(isinstance(step.logged, LoggedCall) and step.logged.inputs for step in steps)
    return InputError(
        f"trace {id or '(no id)'}: {what} without any message",
        hint="it holds only instructions" if has_instructions else hint,
    )


class TraceTimeline(PlainTimeline):
    """Adds the steps of a trace; what an earlier step said is not added again."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, "span")
        self._history: dict[str, list[int]] = {}
        """By what messages say, their places in the order of all messages so far."""
        self._length = 0
        self._first: dict[str, int] = {}
        """By trace, the place of its first message."""
        self._running: dict[str, str] = {}
        """By span of a tool, the id of its call."""
        self._given: Counter[str] = Counter()
        """Results that spans of tools gave, by name."""
        self._unasked: list[OpenCall] = []
        """Tools that ran before the model's call of them was logged: a span is logged when it ends."""

    def start(self, step: TraceStep) -> None:
        """A step begins: messages that were sent; a tool is called."""
        if isinstance(step.logged, LoggedCall):
            self._send(step, step.logged)
        elif isinstance(step.logged, ToolRun):
            self._run(step, step.logged)

    def end(self, step: TraceStep) -> None:
        """A step ends: the model answered, the tool gave its result."""
        logged, at = step.logged, self.at(step.span.end)
        if isinstance(logged, LoggedCall):
            for message in logged.outputs:
                self._remember(signature(message), step.span.trace)
                self._add(message, step, at)
            self._measure(step, logged)
        elif isinstance(logged, ToolRun):
            self._finish(step, logged, at)
        elif isinstance(logged, Handoff):
            self.mark("handoff", logged.agent, at, step.span.id)
        else:
            self.add(Retrieval, query=logged.query, chunks=logged.chunks, time=at, id=step.span.id)

    def _send(self, step: TraceStep, call: LoggedCall) -> None:
        at = self.at(step.span.start)
        trace = step.span.trace
        known = self._known(call, trace)
        for message, sent, is_known in zip(call.inputs, call.sent, known, strict=True):
            if message["role"] == SYSTEM:
                self.instruct(message)
            elif not is_known:
                self._remember(sent, trace)
                self._add(message, step, at)

    def _remember(self, said: str, trace: str) -> None:
        self._first.setdefault(trace, self._length)
        self._history.setdefault(said, []).append(self._length)
        self._length += 1

    def _known(self, call: LoggedCall, trace: str) -> list[bool]:
        """Which messages were said before: those of a history that a call repeats, in their order.

        A call of another trace repeats the history only if it repeats an answer of the model: a user may say the same
        words twice.
        """
        known = [False] * len(call.inputs)
        first = self._first.get(trace, self._length)
        for start in dict.fromkeys((0, first)):
            index, matched = start, [False] * len(call.inputs)
            for number, said in enumerate(call.sent):
                places = self._history.get(said, ())
                at = bisect_left(places, index)
                if at < len(places):
                    matched[number], index = True, places[at] + 1
            repeats = start == first or any(
                is_found and message["role"] == ASSISTANT
                for is_found, message in zip(matched, call.inputs, strict=True)
            )
            if repeats and sum(matched) > sum(known):
                known = matched
        return known

    def _add(self, message: JsonObject, step: TraceStep, at: Time | None) -> None:
        """A message; what is said inside of a tool is between agents."""
        call = step.logged if isinstance(step.logged, LoggedCall) else LoggedCall()
        role = as_text(message["role"])
        role = _INSIDE.get(role, role) if step.is_inside else role
        self.add_plain(
            message,
            at,
            role=role,
            name=step.agent if role in (ASSISTANT, SUBAGENT) else "",
            caller=self._caller(step),
            is_spoken=call.is_spoken,
            is_cut_off=call.is_cut_off,
        )

    def _caller(self, step: TraceStep) -> str:
        return self.participant(SUBAGENT, step.agent) if step.is_inside else ""

    def add_call(self, block: JsonObject, at: Time | None, caller: str = "") -> None:
        wanted = (as_text(block.get("name")), canonical(block.get("input")))
        ran = next((call for call in self._unasked if (call.name, call.arguments) == wanted), None)
        if ran is None:
            super().add_call(block, at, caller)
            return
        self._unasked.remove(ran)
        id = as_text(block.get("id"))
        if ran.id in self._answered:
            self._answered.add(id)
        else:
            self._running |= {span: id for span, call in self._running.items() if call == ran.id}

    def add_result(self, block: JsonObject, at: Time | None) -> None:
        name, id = as_text(block.get("name")), as_text(block.get("tool_use_id"))
        if id and id in self._answered and not any(call.id == id for call in self._open):
            return
        # A result without an id, of a tool whose span gave it already; some logs do not even say of which tool.
        waits = any(call.name == name or not name for call in self._open)
        given = name or next((tool for tool, count in self._given.items() if count), "")
        if not id and self._given[given] and not waits:
            self._given[given] -= 1
        else:
            super().add_result(block, at)

    def _run(self, step: TraceStep, run: ToolRun) -> None:
        """A tool starts. Mostly a model asked for it, and the call is there already."""
        call = self.take_call(run.call_id, run.name, canonical(run.arguments))
        if call is None and run.call_id not in self._answered:
            call = OpenCall(run.call_id or step.span.id, run.name, canonical(run.arguments))
            self.call(
                run.name, run.arguments, call_id=call.id, time=self.at(step.span.start), caller=self._caller(step)
            )
            self._unasked.append(call)
        self._running[step.span.id] = call.id if call else run.call_id

    def _finish(self, step: TraceStep, run: ToolRun, at: Time | None) -> None:
        id = self._running.get(step.span.id, run.call_id)
        if (id and id in self._answered) or (run.result is None and not run.error):
            return
        self._answered.add(id)
        self._given[run.name] += 1
        failed = False if run.error else None
        self.result(run.result, call_id=id, name=run.name, time=at, success=failed, error=run.error)

    def _measure(self, step: TraceStep, call: LoggedCall) -> None:
        span = step.span
        values = dict(call.usage)
        if not call.model and not call.outputs:
            return
        if span.start is not None and span.end is not None and span.end >= span.start:
            values["duration"] = round(span.end - span.start, 6)
        if values:
            at = self.at(span.end)
            self.add(ComponentMetric, component="llm", values=values, label=call.model, time=at, id=span.id)


def with_result_message(run: ToolRun) -> ToolRun:
    """A run of a tool whose result is written as a message: the message says of which call, and whether it failed."""
    blocks = [
        block
        for message in (plain_messages(run.result) if is_message(run.result) else ())
        for block in message["content"]
    ]
    if [block["type"] for block in blocks] == ["tool_result"]:
        run.call_id, run.result = as_text(blocks[0].get("tool_use_id")), blocks[0].get("content")
        run.error = run.error or (as_text(run.result) or "the tool failed" if blocks[0].get("is_error") else "")
    return run


def usage_of(span: Span, names: Mapping[str, Sequence[str]]) -> JsonObject:
    """Numbers of a span under the names of component metrics."""
    matched = {name: span.first(*attributes) for name, attributes in names.items()}
    return {
        name: value for name, value in matched.items() if isinstance(value, int | float) and not isinstance(value, bool)
    }


def chunks_of(documents: Any) -> tuple[str, ...]:
    """The texts of retrieved documents, however they are written."""
    names = ("document.content", "content", "page_content", "text", "document")
    texts: list[str] = []
    for entry in as_list(embedded(documents)):
        held = as_object(entry)
        inner = as_object(held.get("document")) or held
        text = (
            entry
            if isinstance(entry, str)
            else next((inner[name] for name in names if isinstance(inner.get(name), str)), "")
        )
        texts.append(text)
    return tuple(text for text in texts if text)
