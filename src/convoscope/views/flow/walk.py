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
from convoscope.conversation.lazy import cached_on_argument

TURN_COMPLETE = "turn_complete"
"""Label of the component metric that is one agent turn in a stream of state events."""

_NONE = Flow(name="-")


@dataclass(slots=True, eq=False)
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
    index: int = 0
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
    last: str = ""
    """The state that it was in when it ended, also an end of the flow that it left for and did not enter."""
    has_turns: bool = False
    """The log has agent turns, and states that they may have run in."""
    fills: dict[str, SlotFilled] = field(default_factory=dict)
    """The event that first filled each slot."""
    has_guards: bool = False
    has_results: bool = False
    """Whether the log has guards, and results of tools."""


_STATES = frozenset((StateEntered, StateExited))


@cached_on_argument
def has_states(conversation: Conversation) -> bool:
    """Whether the log has states at all."""
    return not _STATES.isdisjoint(map(type, conversation.timeline))


@cached_on_argument
def walk(conversation: Conversation) -> Walk:
    """Follow the timeline through the states."""
    if not has_states(conversation):
        return Walk([])
    walker = _Walker(conversation, _turns_by(conversation))
    handlers: dict[type, Callable[[Any], None]] = {
        StateEntered: walker.enter,
        StateExited: walker.exit,
        ComponentMetric: walker.turn,
        GuardEvaluated: walker.guard,
        SlotFilled: walker.fill,
        ToolCall: walker.call,
        ToolResult: walker.answer,
        **({Utterance: walker.say} if walker.turns_by == "utterance" else {}),
    }
    for event in conversation.timeline:
        handle = handlers.get(type(event))
        if handle is not None:
            handle(event)
    return walker.done()


def _turns_by(conversation: Conversation) -> str:
    """What is taken as an agent turn: events that say so, else what the agent says, else latencies of turns."""
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
        self.conversation = conversation
        self.flow, self.turns_by = conversation.flow or _NONE, turns_by
        self.escalations = self.flow.escalations
        self.visits: list[Visit] = []
        self.last: Visit | None = None
        """The visit that began last."""
        self.stays: dict[str, list[Visit]] = {}
        """The visits by state."""
        self.unseen: dict[str, Visit] = {}
        """Stays in which something happened before the log says that they began."""
        self.speaking: Visit | None = None
        """The visit in which the agent has the floor."""
        self.answers: dict[int, int] | None = None
        """The call of each result, by their seqs; made when the first result comes."""
        self.callers: dict[int, Visit] = {}
        self.call_ids: set[str] = set()
        self.fills: dict[str, SlotFilled] = {}
        self.has_guards = False
        self.arrives = False
        """Leaving for a state is entering it, since the log has no entry at all."""
        timeline = conversation.timeline
        if not any(type(event) is StateEntered and event.state for event in timeline):
            first = next((event.state for event in timeline if type(event) is StateExited and event.state), "")
            self.arrives = bool(first)
            if first:
                self._begin(first, timeline[0].seq)

    def _begin(self, state: str, seq: int) -> Visit:
        visit = self.unseen.pop(state, None) if self.unseen else None
        if visit is None:
            visit = Visit(state, seq)
        visit.index = len(self.visits)
        self.visits.append(visit)
        self.last = visit
        self.stays.setdefault(state, []).append(visit)
        self.speaking = None
        return visit

    def enter(self, event: StateEntered) -> None:
        if not event.state:
            return
        before = self.last
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
        visit = self.last
        if visit is None or visit.closed or visit.state != event.state:
            unclosed = (stay for stay in reversed(self.stays.get(event.state, ())) if not stay.closed)
            # Left without an entry: a visit whose beginning is not in the log.
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
        if not to_state or to_state == visit.state or to_state in self.escalations:
            return False
        before = self.stays.get(to_state)
        seen = before is not None and before[0].index < visit.index
        return not seen or self.flow.is_ahead(to_state, visit.state)

    def _visit_of(self, event: ComponentMetric | GuardEvaluated | SlotFilled) -> Visit | None:
        """Where something happened: in the state that it names, else in the one that was entered last."""
        state, last = event.state, self.last
        if not state or (last is not None and last.state == state):
            return last
        stays = self.stays.get(state)
        return stays[-1] if stays else self.unseen.setdefault(state, Visit(state, event.seq))

    def turn(self, event: ComponentMetric) -> None:
        if event.component != "turn":
            return
        visit = self._visit_of(event)
        if visit is None:
            return
        if self.turns_by == "metric" or (self.turns_by == TURN_COMPLETE and event.label == TURN_COMPLETE):
            visit.turns += 1
        latency = _milliseconds(event)
        if latency is not None:
            visit.latencies.append(latency)

    def say(self, event: Utterance) -> None:
        """Something is said in a log whose turns are what the agent says."""
        if self.conversation.roles[event.speaker] != ASSISTANT:
            self.speaking = None
        elif self.last is not None and self.speaking is not self.last:
            self.speaking = self.last
            self.last.turns += 1

    def guard(self, event: GuardEvaluated) -> None:
        self.has_guards = True
        if (visit := self._visit_of(event)) is not None:
            visit.guards.append(event)

    def fill(self, event: SlotFilled) -> None:
        """A slot without a state was filled, but no state gets the credit."""
        self.fills.setdefault(event.slot, event)
        if event.state and (visit := self._visit_of(event)) is not None:
            visit.slots.append(event)

    def call(self, event: ToolCall) -> None:
        if self.last is not None:
            self.last.calls.append(event)
            self.callers[event.seq] = self.last
            self.call_ids.add(event.call_id)

    def answer(self, event: ToolResult) -> None:
        """A result belongs to the state that called, whichever the flow is in when it comes; the first one counts."""
        if self.answers is None:
            self.answers = {result.seq: seq for seq, result in self.conversation.tool_results.items()}
        seq = self.answers.get(event.seq)
        if seq is None and event.call_id and event.call_id in self.call_ids:
            return
        visit = self.callers.get(seq) if seq is not None else self.last
        if visit is not None:
            visit.results.append(event)

    def done(self) -> Walk:
        final, last = self.last, ""
        if final is not None:
            last = final.to_state if final.left is not None and final.to_state in self.flow.terminals else final.state
        return Walk(
            self.visits, last, bool(self.turns_by), self.fills, self.has_guards, has_results=self.answers is not None
        )


def _milliseconds(event: ComponentMetric) -> float | None:
    """How long a turn took; None where it has no possible latency."""
    for name, per_ms in (("latency_ms", 1.0), ("e2e_latency", 1000.0)):
        value = event.values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value * per_ms <= _DAY_MS:
            return float(value * per_ms)
    return None


_DAY_MS = 86_400_000.0
