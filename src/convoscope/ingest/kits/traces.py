"""Conversations from traces: the spans of a session, in the order of time, and of each what was not said before.

A reader of traces is a `TraceReader`. It says which spans it knows, and what a span logs: a call of a model, a run of
a tool, a retrieval (`kits.trace_steps`). Everything else happens here and in `kits.trace_timeline`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, cast

import msgspec

from convoscope.conversation import Agent, Conversation, Label, Outcome, Source
from convoscope.conversation.model import Pipeline
from convoscope.errors import InputError
from convoscope.ingest.kits.leftovers import Leftovers
from convoscope.ingest.kits.messages import read_tools
from convoscope.ingest.kits.shapes import embedded, is_message, plain_messages, said_in
from convoscope.ingest.kits.spans import LoggedSpan, spans_in, with_logs
from convoscope.ingest.kits.trace_histories import joined_by_history
from convoscope.ingest.kits.trace_steps import (
    Handoff,
    Logged,
    LoggedCall,
    Lookup,
    ToolRun,
    TraceStep,
    echoes,
    in_time,
    moments,
    says,
    steps_of,
)
from convoscope.ingest.kits.trace_timeline import SUBAGENT, TraceTimeline
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.record import JsonObject, as_list, as_object, as_text, filled
from convoscope.ingest.report import Notes

__all__ = [
    "SUBAGENT",
    "Handoff",
    "Logged",
    "LoggedCall",
    "Lookup",
    "ToolRun",
    "TraceReader",
    "chunks_of",
    "usage_of",
    "with_result_message",
]

SESSIONS = (
    "gen_ai.conversation.id",
    "session.id",
    "conversation.id",
    "langfuse.session.id",
    "traceloop.association.properties.session_id",
    "ai.telemetry.metadata.sessionId",
    "gen_ai.thread.id",
    "thread_id",
)
"""Attributes that hold the id of a session, the surest first."""
_PART = "convoscope.spans"
"""Names the spans in a record that `parts` made."""
USERS = ("user.id", "langfuse.user.id", "enduser.id")
KNOWN = frozenset(
    {"traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id", "parentId", "parent_id", "id"}
    | {"startTimeUnixNano", "endTimeUnixNano", "start_time_unix_nano", "end_time_unix_nano", "timeUnixNano"}
    | {"start_time", "end_time", "startTime", "endTime", "start_timestamp", "end_timestamp", "timestamp"}
)
"""Fields of spans that show in the order and the times of events: not kept beside them."""


class TraceReader(Reader):
    """Reads traces of one convention."""

    title = ""
    sessions: Sequence[str] = SESSIONS
    known: Set[str] = KNOWN
    """Names of fields that need not be kept."""
    confidence = 0.9
    joins_files = True
    joins_histories = True
    """Traces without a session are one conversation where a call repeats what another trace holds."""
    pipeline: Pipeline = "text"
    """Of conversations without sound in the log."""
    no_content = "switch on the capture of message content in the instrumentation"
    """What to do where no span holds a message."""
    no_calls = "none of its spans is a call of a model that answers"
    """Why there is no message, where no span is a call of a model."""

    def knows(self, span: LoggedSpan) -> bool:
        """Is this span of my convention?"""
        raise NotImplementedError

    def logged(self, span: LoggedSpan) -> Logged | None:
        """What a span logs; None for one that says nothing of its own."""
        raise NotImplementedError

    def agent(self, span: LoggedSpan) -> str:
        """The agent that a span is about; "" where it is not about one."""
        return span.text("gen_ai.agent.name", "agent.name", "agent_name", "graph.node.id", "crewai.agent.role")

    def is_apart(self, span: LoggedSpan) -> bool:
        """Is what happens below this span no talk with the user: a check, a verdict?"""
        del span
        return False

    def whole(self, span: LoggedSpan) -> tuple[Any, Any]:
        """What went into a span and what came out, of whatever kind it is; None where it does not say it."""
        del span
        return None, None

    def spans(self, value: Any) -> Iterable[LoggedSpan]:
        """The spans of a record."""
        return spans_in(value)

    def spans_of(self, group: RecordGroup) -> list[LoggedSpan]:
        """The spans of all records."""
        return with_logs(span for record in group.records for span in self._read(record.value))

    def _read(self, value: Any) -> Iterable[LoggedSpan]:
        """The spans of a record, also of one that `parts` made."""
        held = as_object(value).get(_PART)
        return self.spans(value) if held is None else msgspec.convert(held, list[LoggedSpan])

    def part_keys(self, group: RecordGroup) -> Iterator[Sequence[str]]:
        for name, spans in self._by_session(group).items():
            yield [name, *dict.fromkeys(span.trace for span in spans if span.trace and span.trace != name)]

    def parts(self, group: RecordGroup, keys: Collection[str]) -> Iterator[tuple[str, Any]]:
        for name, spans in self._by_session(group).items():
            if name in keys:
                yield name, {_PART: msgspec.to_builtins(spans)}

    def _by_session(self, group: RecordGroup) -> dict[str, list[LoggedSpan]]:
        spans = [span for record in group.records for span in self.spans(record.value)]
        return _by_session(spans, self.sessions)

    def labels(self, spans: Sequence[LoggedSpan]) -> Iterator[Label]:
        """Verdicts that came with the trace."""
        del spans
        yield from ()

    def detect(self, sample: Sample) -> Detection | None:
        for span in self._spans_of_sample(sample):
            if self.knows(span):
                return Detection(self.confidence, f"spans of {self.title}: {span.name[:60]!r}", "file")
        return None

    def _spans_of_sample(self, sample: Sample) -> Iterable[LoggedSpan]:
        if type(self).spans is not TraceReader.spans:
            return (span for value in sample.values for span in self.spans(value))
        if "spans" not in sample.shared:
            sample.shared["spans"] = [span for value in sample.values for span in spans_in(value)]
        return cast(list[LoggedSpan], sample.shared["spans"])

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        spans = _once(self.spans_of(group), notes)
        if not spans:
            raise InputError("no spans here", hint="expected OTLP JSON, or objects with a trace id and attributes")
        logged = {id(span): matched for span in spans if (matched := self.logged(span)) is not None}
        for twice in echoes(spans, logged):
            notes.ignored("call_logged_twice", twice.name[:80])
            del logged[id(twice)]
        sessions, leftovers = _by_session(spans, self.sessions), Leftovers(notes, self.known)
        is_one_of_many = len(sessions) > 1 or bool(group.files)
        for name, of_session in list(sessions.items()):
            if name in group.apart:
                leftovers.leave(_raw(of_session))
                del sessions[name]
            elif is_one_of_many and not any(id(span) in logged for span in of_session):
                notes.ignored("trace_of_something_else", f"{name}: {of_session[0].name}"[:80], count=len(of_session))
                leftovers.leave(_raw(of_session))
                del sessions[name]
        if self.joins_histories and not group.files:
            traces = len(sessions)
            named = {
                name for name, of_session in sessions.items() if not any(span.trace == name for span in of_session)
            }
            sessions = joined_by_history(sessions, logged, named, USERS)
            if len(sessions) < traces:
                notes.inferred("history_merged", f"{traces - len(sessions)} traces that go on from another one")
        for name, of_session in sessions.items():
            steps = self._steps(of_session, logged, notes)
            if any(says(step.logged) for step in steps):
                conversation = self._conversation(name or group.name, of_session, steps, group, notes)
                notes.is_session = _is_session(name, of_session, self.sessions)
                yield leftovers.kept_with(conversation, _raw(of_session))
            else:
                leftovers.leave(_raw(of_session))
                notes.refuse(_no_content(of_session, steps, name, self))
        leftovers.note_rest(record.value for record in group.records)

    def _steps(self, spans: Sequence[LoggedSpan], logged: Mapping[int, Logged], notes: Notes) -> list[TraceStep]:
        """The steps of a session; where no call of a model says anything, what the first spans were given and gave."""
        steps = steps_of(spans, logged, self.agent, self.is_apart)
        if any(isinstance(step.logged, LoggedCall) and says(step.logged) for step in steps):
            return steps
        ids = {span.id for span in spans if span.id}
        whole = {}
        for span in spans:
            if span.parent in ids or id(span) in logged:
                continue
            given, answer = self.whole(span)
            asked, replied = said_in(given, "user"), said_in(answer, "assistant")
            call = LoggedCall(inputs=asked, outputs=replied, is_measured=False)
            if says(call):
                notes.inferred("talk_of_first_span", span.name[:80])
                whole[id(span)] = call
        return steps_of(spans, {**logged, **whole}, self.agent, self.is_apart) if whole else steps

    def _conversation(
        self, id: str, spans: Sequence[LoggedSpan], steps: Sequence[TraceStep], group: RecordGroup, notes: Notes
    ) -> Conversation:
        timeline = TraceTimeline(notes)
        for step, is_end in moments(steps):
            timeline.end(step) if is_end else timeline.start(step)
        calls = [step.logged for step in steps if isinstance(step.logged, LoggedCall)]
        models = list(dict.fromkeys(call.model for call in calls if call.model))
        agents = list(dict.fromkeys(name for span in in_time(spans) if (name := self.agent(span))))
        tools = next((call.tools for call in calls if call.tools), None)
        traces = list(dict.fromkeys(span.trace for span in spans if span.trace))
        of_calls = [step.span for step in steps if isinstance(step.logged, LoggedCall)]
        errors = [span.error for span in spans if span.error and not span.parent]
        user = next((text for span in spans if (text := span.text(*USERS))), "")
        agent = agents[0] if agents else ""
        dims = filled({"agent": agent, "model": models[0] if models else ""})
        return Conversation(
            id=id,
            dimensions=dims,
            source=Source(format=self.name, files=group.file_names, record=group.name),
            pipeline=_pipeline(calls) if self.pipeline == "text" else self.pipeline,
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
                    "traces": traces,
                    "call_traces": {span.id: span.trace for span in of_calls} if len(traces) > 1 else {},
                    "root_spans": _roots(spans),
                    "spans": len(spans),
                    "user": user,
                    "resource": {name: value for span in reversed(spans) for name, value in span.resource.items()},
                }
            ),
        )


def _raw(spans: Sequence[LoggedSpan]) -> Iterable[JsonObject]:
    """What the spans were written as, and into, each once."""
    return {id(value): value for span in spans for value in span.raw or (span.attributes,)}.values()


def _is_session(name: str, spans: Sequence[LoggedSpan], names: Sequence[str]) -> bool:
    """Whether a name is that of a session, in which a user may come back days later."""
    of_sessions = [attribute for attribute in names if "session" in attribute.casefold()]
    return any(span.text(*of_sessions) == name for span in spans) if name else False


def _pipeline(calls: Sequence[LoggedCall]) -> Pipeline:
    """A model that speaks itself goes from speech to speech; where only the user is heard, it is a cascade."""
    spoken = [call for call in calls if call.is_spoken]
    return "s2s" if any(call.outputs for call in spoken) else "cascade" if spoken else "text"


def _roots(spans: Sequence[LoggedSpan]) -> dict[str, str]:
    """By trace, its first span: scores of the conversation go back to it."""
    ids = {span.id for span in spans}
    tops = [span for span in in_time(spans) if span.trace and span.id and span.parent not in ids]
    return {span.trace: span.id for span in reversed(tops)}


def _once(spans: Sequence[LoggedSpan], notes: Notes) -> list[LoggedSpan]:
    """Spans without those that an export holds twice: the same id, and the same in everything."""
    kept: list[LoggedSpan] = []
    by_id: dict[tuple[str, str], list[LoggedSpan]] = {}
    for span in spans:
        same = by_id.setdefault((span.trace, span.id), [])
        if span.id and any(span.raw[:1] == other.raw[:1] and span.attributes == other.attributes for other in same):
            notes.ignored("span_twice", span.name[:80])
        else:
            same.append(span)
            kept.append(span)
    return kept


def _by_session(spans: Sequence[LoggedSpan], names: Sequence[str]) -> dict[str, list[LoggedSpan]]:
    """Spans of one session, else of one trace; a session that any span of a trace names holds the whole trace."""
    session_of = {span.trace: session for span in spans if (session := span.text(*names))}
    groups: dict[str, list[LoggedSpan]] = {}
    for span in spans:
        groups.setdefault(session_of.get(span.trace) or span.trace, []).append(span)
    return groups


def _no_content(spans: Sequence[LoggedSpan], steps: Sequence[TraceStep], id: str, reader: TraceReader) -> InputError:
    calls = sum(isinstance(step.logged, LoggedCall) for step in steps)
    what = f"{calls} calls of models" if calls else f"{len(spans)} spans"
    hint = reader.no_content if calls else reader.no_calls
    if any(isinstance(step.logged, LoggedCall) and step.logged.inputs for step in steps):
        hint = "it holds only instructions"
    return InputError(f"trace {id or '(no id)'}: {what} without any message", hint=hint)


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


def usage_of(span: LoggedSpan, names: Mapping[str, Sequence[str]]) -> JsonObject:
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
