"""The walk: which states a conversation was in, in which order, and what happened in each (flow-states, Events)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from convoscope.conversation import (
    ASSISTANT,
    ComponentMetric,
    Conversation,
    GuardEvaluated,
    SlotFilled,
    StateEntered,
    StateExited,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.flow import Flow

TURN_COMPLETE = "turn_complete"
"""Label of the component metric that stands for one agent turn in a stream of state events."""

_NONE = Flow(name="-")


@dataclass(slots=True)
class Visit:
    """One stay in a state."""

    state: str
    entered: int
    """seq of the event that began it."""
    left: int | None = None
    """seq of the event that ended it; None where nothing says that it ended."""
    left_at: Time | None = None
    to_state: str = ""
    reason: str = ""
    closed: bool = False
    """The log says that it was left."""
    forward: bool = False
    place: int = 0
    """Among the visits of its conversation."""
    turns: int = 0
    latencies: list[float] = field(default_factory=list)
    """Of its turns, in milliseconds."""
    guards: list[GuardEvaluated] = field(default_factory=list)
    slots: list[SlotFilled] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[ToolResult] = field(default_factory=list)


@dataclass(slots=True)
class Walk:
    """The visits of a conversation in order, and where it ended."""

    visits: list[Visit]
    last: str
    """The state that it was in when it ended, also an end of the flow that it left for and nobody entered."""
    turns_told: bool
    """The log tells of agent turns."""


def walk(conversation: Conversation) -> Walk:
    """Follow the timeline through the states."""
    held = conversation.__dict__
    found: Walk | None = held.get("_walk")
    if found is None:
        found = held["_walk"] = _walk(conversation)
    return found


def _walk(conversation: Conversation) -> Walk:
    walker = _Walker(conversation, _turns_by(conversation))
    for event in conversation.timeline:
        handle = _HANDLERS.get(type(event))
        if handle is not None:
            handle(walker, event)
    return walker.done()


def _turns_by(conversation: Conversation) -> str:
    """What stands for an agent turn: events that say so, else what the agent says, else latencies of turns."""
    spoken = measured = False
    for event in conversation.timeline:
        kind = type(event)
        if kind is ComponentMetric and event.component == "turn":  # type: ignore[union-attr]
            if event.label == TURN_COMPLETE:  # type: ignore[union-attr]
                return TURN_COMPLETE
            measured = True
        elif kind is Utterance and conversation.roles[event.speaker] == ASSISTANT:  # type: ignore[union-attr]
            spoken = True
    return "utterance" if spoken else "metric" if measured else ""


class _Walker:
    def __init__(self, conversation: Conversation, turns_by: str) -> None:
        self.flow, self.turns_by, self.roles = conversation.flow or _NONE, turns_by, conversation.roles
        self.visits: list[Visit] = []
        self.stays: dict[str, list[Visit]] = {}
        """The visits by state."""
        self.unseen: dict[str, Visit] = {}
        """Stays of which something was told before they were told to begin."""
        self.speaking: Visit | None = None
        """The visit in which the agent has the floor."""
        self.answers = {result.seq: seq for seq, result in conversation.tool_results.items()}
        """The call of each result, by their seqs."""
        self.callers: dict[int, Visit] = {}
        self.call_ids: set[str] = set()
        self.arrives = False
        """Leaving for a state is entering it, since the log tells of no entry at all."""
        if not any(type(event) is StateEntered and event.state for event in conversation.timeline):
            self._arrive(conversation)

    def _arrive(self, conversation: Conversation) -> None:
        first = next((one for one in conversation.timeline if type(one) is StateExited and one.state), None)
        if first is not None:
            self.arrives = True
            self._begin(first.state, conversation.timeline[0].seq)

    def _begin(self, state: str, seq: int) -> Visit:
        visit = self.unseen.pop(state, None) or Visit(state, seq)
        visit.place = len(self.visits)
        self.visits.append(visit)
        self.stays.setdefault(state, []).append(visit)
        self.speaking = None
        return visit

    def enter(self, event: StateEntered) -> None:
        if not event.state:
            return
        before = self.visits[-1] if self.visits else None
        if before is not None and before.left is None:
            self._leave(before, event.state, event.seq, event.time)
        elif before is not None and not before.to_state:
            # It was left, and the log does not say for what: for what came next.
            before.to_state = event.state
            before.forward = self._is_forward(before)
        self._begin(event.state, event.seq)

    def exit(self, event: StateExited) -> None:
        if not event.state:
            return
        unclosed = (one for one in reversed(self.stays.get(event.state, ())) if not one.closed)
        # Left without an entry: a visit that nobody saw begin.
        visit = next(unclosed, None) or self._begin(event.state, event.seq)
        visit.closed = True
        # Some logs enter the next state before they leave the last one: what was concluded gives way.
        self._leave(visit, event.to_state or visit.to_state, event.seq, event.time, event.reason)
        if self.arrives and event.to_state:
            self._begin(event.to_state, event.seq)

    def _leave(self, visit: Visit, to_state: str, seq: int, time: Time | None, reason: str = "") -> None:
        visit.left, visit.left_at, visit.to_state, visit.reason = seq, time, to_state, reason
        visit.forward = self._is_forward(visit)

    def _is_forward(self, visit: Visit) -> bool:
        """Not itself, not an escalation, not seen before, unless the flow's order says that it is ahead (tier 1)."""
        to_state = visit.to_state
        if not to_state or to_state == visit.state or to_state in self.flow.escalations:
            return False
        before = self.stays.get(to_state)
        seen = before is not None and before[0].place < visit.place
        return not seen or self.flow.is_ahead(to_state, visit.state)

    def _visit_of(self, state: str) -> Visit | None:
        """The latest stay in a state."""
        stays = self.stays.get(state)
        return stays[-1] if stays else None

    def _place(self, event: ComponentMetric | GuardEvaluated | SlotFilled) -> Visit | None:
        """Where something happened: in the state that it names, else in the one that was entered last."""
        state = event.state
        if state and (not self.visits or self.visits[-1].state != state):
            return self._visit_of(state) or self.unseen.setdefault(state, Visit(state, event.seq))
        return self.visits[-1] if self.visits else None

    def turn(self, event: ComponentMetric) -> None:
        if event.component != "turn":
            return
        visit = self._place(event)
        if visit is None:
            return
        if self.turns_by == "metric" or (self.turns_by == TURN_COMPLETE and event.label == TURN_COMPLETE):
            visit.turns += 1
        latency = _milliseconds(event)
        if latency is not None:
            visit.latencies.append(latency)

    def say(self, event: Utterance) -> None:
        if self.turns_by != "utterance":
            return
        if self.roles[event.speaker] != ASSISTANT:
            self.speaking = None
        elif self.visits and self.speaking is not self.visits[-1]:
            self.speaking = self.visits[-1]
            self.visits[-1].turns += 1

    def guard(self, event: GuardEvaluated) -> None:
        if (visit := self._place(event)) is not None:
            visit.guards.append(event)

    def fill(self, event: SlotFilled) -> None:
        """A slot whose state nobody tells was filled, but no state gets the credit."""
        if event.state and (visit := self._place(event)) is not None:
            visit.slots.append(event)

    def call(self, event: ToolCall) -> None:
        if self.visits:
            self.visits[-1].calls.append(event)
            self.callers[event.seq] = self.visits[-1]
            self.call_ids.add(event.call_id)

    def answer(self, event: ToolResult) -> None:
        """A result belongs to the state that called, whichever the flow is in when it comes; the first one counts."""
        seq = self.answers.get(event.seq)
        if seq is None and event.call_id and event.call_id in self.call_ids:
            return
        visit = self.callers.get(seq) if seq is not None else self.visits[-1] if self.visits else None
        if visit is not None:
            visit.results.append(event)

    def done(self) -> Walk:
        last = ""
        if self.visits:
            final = self.visits[-1]
            last = final.to_state if final.left is not None and final.to_state in self.flow.terminals else final.state
        return Walk(self.visits, last, bool(self.turns_by))


_HANDLERS: dict[type, Callable[[_Walker, Any], None]] = {
    StateEntered: _Walker.enter,
    StateExited: _Walker.exit,
    ComponentMetric: _Walker.turn,
    Utterance: _Walker.say,
    GuardEvaluated: _Walker.guard,
    SlotFilled: _Walker.fill,
    ToolCall: _Walker.call,
    ToolResult: _Walker.answer,
}


def _milliseconds(event: ComponentMetric) -> float | None:
    """How long a turn took; a time that cannot be one is none."""
    values = event.values
    for name, per_ms in (("latency_ms", 1.0), ("e2e_latency", 1000.0)):
        value = values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * per_ms <= _DAY_MS:
            return float(value * per_ms)
    return None


_DAY_MS = 86_400_000.0
