"""A timeline that takes the steps of a trace; what an earlier step said is not added again."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from convoscope.conversation import ASSISTANT, SYSTEM, USER, ComponentMetric, Retrieval, Time
from convoscope.ingest.kits.plain_timeline import OpenCall, PlainTimeline, canonical
from convoscope.ingest.kits.shapes import signature
from convoscope.ingest.kits.trace_steps import Handoff, LoggedCall, ToolRun, TraceStep
from convoscope.ingest.record import JsonObject, as_object, as_text
from convoscope.ingest.report import Notes

SUBAGENT = "subagent"
"""The role of an agent that works for another one, through a tool: its talk is not with the user."""
_INSIDE = {ASSISTANT: SUBAGENT, USER: "orchestrator"}


class TraceTimeline(PlainTimeline):
    """Adds the steps of a trace; what an earlier step said is not added again."""

    def __init__(self, notes: Notes) -> None:
        super().__init__(notes, "span")
        self._history: dict[str, list[int]] = {}
        """By what messages say, their indexes in the order of all messages so far."""
        self._length = 0
        self._first: dict[str, int] = {}
        """By trace, the index of its first message."""
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
            self._answer(step, logged.outputs, at)
            self._measure(step, logged)
        elif isinstance(logged, ToolRun):
            self._finish(step, logged, at)
        elif isinstance(logged, Handoff):
            self.mark("handoff", logged.agent, at, step.span.id)
        else:
            self.add(Retrieval, query=logged.query, chunks=logged.chunks, time=at, id=step.span.id)

    def _answer(self, step: TraceStep, outputs: Sequence[JsonObject], at: Time | None) -> None:
        """What a model answered. Some logs give the whole talk as the answer: what was said before is left out."""
        is_talk = any(message["role"] != ASSISTANT for message in outputs)
        signatures = list(map(signature, outputs))
        known = self._known(outputs, signatures, step.span.trace) if is_talk else [False] * len(outputs)
        self._add_new(outputs, signatures, known, step, at)

    def _send(self, step: TraceStep, call: LoggedCall) -> None:
        known = self._known(call.inputs, call.sent, step.span.trace)
        self._add_new(call.inputs, call.sent, known, step, self.at(step.span.start))

    def _add_new(
        self,
        messages: Sequence[JsonObject],
        signatures: Sequence[str],
        known: Sequence[bool],
        step: TraceStep,
        at: Time | None,
    ) -> None:
        for message, words, is_known in zip(messages, signatures, known, strict=True):
            if message["role"] == SYSTEM:
                self.instruct(message)
            elif not is_known:
                self._first.setdefault(step.span.trace, self._length)
                self._history.setdefault(words, []).append(self._length)
                self._length += 1
                self._add(message, step, at)

    def _known(self, inputs: Sequence[JsonObject], signatures: Sequence[str], trace: str) -> list[bool]:
        """Which messages were said before: those of a history that a call repeats, in their order.

        A call of another trace repeats the history only if it repeats an answer of the model: a user may say the same
        words twice.
        """
        known = [False] * len(inputs)
        first = self._first.get(trace, self._length)
        for start in dict.fromkeys((0, first)):
            index, matched = start, [False] * len(inputs)
            for number, words in enumerate(signatures):
                before = self._history.get(words, ())
                at = bisect_left(before, index)
                if at < len(before):
                    matched[number], index = True, before[at] + 1
            repeats = start == first or any(
                is_found and message["role"] == ASSISTANT for is_found, message in zip(matched, inputs, strict=True)
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
        # An answer of the Model Context Protocol says itself that the tool failed.
        failed = False if run.error or as_object(run.result).get("isError") is True else None
        self.result(run.result, call_id=id, name=run.name, time=at, success=failed, error=run.error)

    def _measure(self, step: TraceStep, call: LoggedCall) -> None:
        span = step.span
        values = dict(call.usage)
        if not call.model and not call.outputs:
            return
        is_timed = call.is_measured and not span.is_log and span.start is not None and span.end is not None
        if is_timed and span.end >= span.start:  # type: ignore[operator]
            values["duration"] = round(span.end - span.start, 6)  # type: ignore[operator]
        if values:
            at = self.at(span.end)
            self.add(ComponentMetric, component="llm", values=values, label=call.model, time=at, id=span.id)
