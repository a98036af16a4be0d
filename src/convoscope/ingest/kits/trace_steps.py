"""What the spans of a trace log, as steps in the order of time: calls of models, runs of tools, retrievals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import SYSTEM
from convoscope.ingest.kits.shapes import signature
from convoscope.ingest.kits.spans import LoggedSpan
from convoscope.ingest.record import JsonObject


class LoggedCall(msgspec.Struct, kw_only=True, dict=True):
    """A call of a model: what it was sent, what it answered, as plain messages."""

    inputs: list[JsonObject] = []
    outputs: list[JsonObject] = []
    model: str = ""
    tools: Sequence[Any] | None = None
    usage: JsonObject = {}
    """Tokens, costs and times under the names of component metrics."""
    is_measured: bool = True
    """The span is as long as the call."""
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

    span: LoggedSpan
    logged: Logged
    agent: str
    is_inside: bool
    """It happened inside of a tool or a check: the agent works for another one."""


def in_time(spans: Iterable[LoggedSpan]) -> list[LoggedSpan]:
    """By start; a span without a time stays behind the one before it."""
    latest, timed = float("-inf"), []
    for index, span in enumerate(spans):
        latest = latest if span.start is None else span.start
        timed.append((latest, index, span))
    return [span for _, _, span in sorted(timed, key=lambda entry: entry[:2])]


def steps_of(
    spans: Sequence[LoggedSpan],
    logged: Mapping[int, Logged],
    agent_of: Callable[[LoggedSpan], str],
    is_apart: Callable[[LoggedSpan], bool],
) -> list[TraceStep]:
    """What the spans log, by time. A call that wraps another call is left out: the inner one says the same.

    `is_apart`: what happens below such a span is not between the user and the agent, as below a tool.
    """
    by_id = {span.id: span for span in spans if span.id}
    inner: dict[int, list[LoggedCall]] = {}
    """The calls inside of each call."""
    steps: list[TraceStep] = []
    for span in in_time(spans):
        matched = logged.get(id(span))
        above = list(_ancestors(span, by_id))
        if isinstance(matched, LoggedCall) and says(matched):
            for entry in above:
                if isinstance(logged.get(id(entry)), LoggedCall):
                    inner.setdefault(id(entry), []).append(matched)
        if matched is not None:
            agent = next((name for entry in (span, *above) if (name := agent_of(entry))), "")
            is_inside = any(isinstance(logged.get(id(entry)), ToolRun) or is_apart(entry) for entry in above)
            steps.append(TraceStep(span, matched, agent, is_inside))
    for step in steps:
        calls = inner.get(id(step.span), ())
        if len(calls) == 1 and isinstance(step.logged, LoggedCall):
            # It is the same call: each may log what the other does not.
            calls[0].outputs = calls[0].outputs or step.logged.outputs
            calls[0].usage = calls[0].usage or step.logged.usage
            calls[0].tools = calls[0].tools or step.logged.tools
    return [step for step in steps if id(step.span) not in inner]


def _ancestors(span: LoggedSpan, by_id: dict[str, LoggedSpan]) -> Iterator[LoggedSpan]:
    seen = {span.id}
    while (parent := by_id.get(span.parent)) is not None and parent.id not in seen:
        seen.add(parent.id)
        yield parent
        span = parent


def says(logged: Logged) -> bool:
    """Whether it logs more than instructions."""
    if not isinstance(logged, LoggedCall):
        return not isinstance(logged, Handoff)
    return any(message["role"] != SYSTEM for message in (*logged.inputs, *logged.outputs))


def echoes(spans: Sequence[LoggedSpan], logged: Mapping[int, Logged]) -> list[LoggedSpan]:
    """Calls that another span of another trace logs too: with the answer, or at the same time with the same answer."""
    alike: dict[str, list[tuple[LoggedSpan, LoggedCall]]] = {}
    for span in spans:
        call = logged.get(id(span))
        if isinstance(call, LoggedCall) and call.inputs and not span.error:
            alike.setdefault("\n".join(call.sent), []).append((span, call))
    return [span for same in alike.values() if len(same) > 1 for span in _echoes_of_one(same)]


def _echoes_of_one(same: list[tuple[LoggedSpan, LoggedCall]]) -> Iterator[LoggedSpan]:
    """Of calls that were sent the same: those without an answer that another has; of those that overlap, the longer."""
    answered: dict[str, list[tuple[float, LoggedSpan]]] = {}
    traces = {span.trace for span, call in same if call.outputs}
    for span, call in same:
        if call.outputs:
            start = float("inf") if span.start is None else span.start
            answered.setdefault("\n".join(map(signature, call.outputs)), []).append((start, span))
        elif traces - {span.trace}:
            yield span
    for entries in answered.values():
        open_spans: list[LoggedSpan] = []
        twice: dict[int, LoggedSpan] = {}
        for start, span in sorted(entries, key=lambda entry: entry[0]):
            open_spans = [other for other in open_spans if other.end is not None and other.end >= start]
            for other in open_spans:
                if other.trace != span.trace and span.end is not None:
                    longer = span if _length(span) >= _length(other) else other
                    twice[id(longer)] = longer
            open_spans.append(span)
        yield from twice.values()


def _length(span: LoggedSpan) -> float:
    return 0.0 if span.start is None or span.end is None else span.end - span.start


def moments(steps: Sequence[TraceStep]) -> list[tuple[TraceStep, bool]]:
    """The starts and ends of steps in the order of time; of one moment, an end comes before a start."""
    timed: list[tuple[float, int, int, TraceStep, bool]] = []
    latest = float("-inf")
    for index, step in enumerate(steps):
        span = step.span
        latest = latest if span.start is None else span.start
        ends = latest if span.end is None else max(span.end, latest)
        timed.append((latest, 2 if ends > latest else 1, 2 * index, step, False))
        timed.append((ends, 0 if ends > latest else 1, 2 * index + 1, step, True))
    return [(step, is_end) for _, _, _, step, is_end in sorted(timed, key=lambda entry: entry[:3])]
