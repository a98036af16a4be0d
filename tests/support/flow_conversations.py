"""Conversations through the states of a flow, written as the events of the specification are."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from convoscope.conversation import (
    Clock,
    ComponentMetric,
    Conversation,
    Event,
    GuardEvaluated,
    Outcome,
    Participant,
    SlotFilled,
    StateEntered,
    StateExited,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.flow import Flow, FlowState
from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from convoscope.views.flow.state_rows import StateRow, state_rows

NOWHERE = "(nobody tells)"
UNPLACED = -1  # the seq of an event until `call` gives it its place


def entered(state: str, at: float | None = None) -> StateEntered:
    return StateEntered(seq=UNPLACED, state=state, time=_at(at))


def exited(state: str, to: str = "", reason: str = "", at: float | None = None) -> StateExited:
    return StateExited(seq=UNPLACED, state=state, to_state=to, reason=reason, time=_at(at))


def turn(latency_ms: float | None = None, state: str = "") -> ComponentMetric:
    values = {} if latency_ms is None else {"latency_ms": latency_ms}
    return ComponentMetric(seq=UNPLACED, component="turn", label="turn_complete", values=values, state=state)


def guard(error: str = "", *, name: str = "ready", result: Any = None, state: str = "") -> GuardEvaluated:
    return GuardEvaluated(seq=UNPLACED, guard=name, result=result, error=error, state=state)


def filled(slot: str, value: Any = "x", state: str = "", at: float | None = None) -> SlotFilled:
    return SlotFilled(seq=UNPLACED, slot=slot, value=value, state=state, time=_at(at))


def called(name: str = "book", id: str = "") -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, call_id=id)


def answered(success: bool | None = True, *, name: str = "book", id: str = "", error: str = "") -> ToolResult:
    return ToolResult(seq=UNPLACED, name=name, call_id=id, success=success, error=error)


def says(text: str = "Hello.", who: str = "agent") -> Utterance:
    return Utterance(seq=UNPLACED, speaker=who, spoken=Text(text))


def _at(at: float | None) -> Time | None:
    return None if at is None else Time(at)


def call(
    *events: Event,
    id: str = "c",
    flow: Flow | str | None = None,
    agent: str = "",
    completed: bool | None = None,
    stop: str = "",
    status: str = "",
    error: str = "",
    **facts: Any,
) -> Conversation:
    """A conversation whose events happen in the order in which they are given."""
    dimensions: dict[str, str] = dict(facts.pop("dimensions", {}))
    if flow is not None:
        dimensions["flow"] = flow if isinstance(flow, str) else flow.name
    if agent:
        dimensions["agent"] = agent
    timeline = []
    current = ""
    for seq, event in enumerate(events):
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        if isinstance(event, StateEntered):
            current = event.state
        elif isinstance(event, SlotFilled):
            # As the reader of events does: a slot carries the state that collects it.
            fields["state"] = "" if event.state == NOWHERE else event.state or current
        timeline.append(type(event)(**fields | {"seq": seq}))
    return Conversation(
        id=id,
        dimensions=dimensions,
        participants=(Participant("user", "user"), Participant("agent", "assistant")),
        clocks=(Clock(id="wall", kind="wall"),),
        flow=flow if isinstance(flow, Flow) else None,
        timeline=tuple(timeline),
        outcome=Outcome(completed=completed, ended_reason=stop, final_status=status, error=error),
        **facts,
    )


def path(*states: str) -> list[Event]:
    """Through these states, each entered and left for the next; the last is not left."""
    events: list[Event] = []
    for state, to in zip(states, (*states[1:], ""), strict=True):
        events.append(entered(state))
        if to:
            events.append(exited(state, to))
    return events


def states(*declared: FlowState | str) -> tuple[FlowState, ...]:
    return tuple(one if isinstance(one, FlowState) else FlowState(name=one) for one in declared)


def rows(*events: Event, **facts: Any) -> dict[str, StateRow]:
    """The rows of a conversation, by state."""
    return {row.state: row for row in state_rows(call(*events, **facts))}


def scored(conversations: Iterable[Conversation], folder: Path, name: str = "run") -> Run:
    """A run over these; an id that is given twice gets a number."""
    told: dict[str, int] = {}
    numbered = []
    for one in conversations:
        told[one.id] = told.get(one.id, 0) + 1
        id = one.id if told[one.id] == 1 else f"{one.id}-{told[one.id]}"
        numbered.append(Conversation(**{name: getattr(one, name) for name in one.__struct_fields__} | {"id": id}))
    return score(numbered, out=folder / name, metrics=["state", "flow"], workers=1)
