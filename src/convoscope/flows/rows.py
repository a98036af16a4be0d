"""One row per state that a conversation was in: the nine metrics of a state, and what stands behind them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from convoscope.conversation import Conversation, GuardEvaluated, SlotFilled, Time, ToolResult
from convoscope.conversation.flow import ESCALATIONS, FlowState
from convoscope.flows.endings import folded, is_completed
from convoscope.flows.segments import CONFIRM, kind_of, segment_of
from convoscope.flows.visits import Visit, Walk, walk

STATE_METRICS = (
    "progress",
    "stall",
    "escalation",
    "revisit",
    "dwell_turns",
    "latency_p95_ms",
    "guard_error",
    "slot_fill_rate",
)
"""The metrics of the seed that are numbers, by their names; `to_states` is the ninth."""

# Producers of these say when a guard fails; of others, no guard in the log says nothing.
_TELL_GUARDS = frozenset(("state-events", "convoscope", ""))
_ACCEPTED = frozenset(
    ("confirmed", "confirm", "accepted", "accept", "yes", "affirmed", "affirm", "approved", "correct")
)
_REFUSED = frozenset(
    ("rejected", "reject", "denied", "deny", "declined", "no", "corrected", "correction", "refused", "not_confirmed")
)


class StateRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one state did in one conversation. None is "not measured", and `reasons` says why by field."""

    state: str
    position: int
    """Its place in the order in which states were first entered."""
    segment: str | None
    visits: int
    progress: int
    stall: int | None
    escalation: int
    revisit: int
    dwell_turns: float | None
    latency_p95_ms: float | None
    guard_error: int | None
    slot_fill_rate: float | None
    slot_ready_rate: float | None
    front_loaded: int | None
    """Required slots that were filled before the state was first entered."""
    required: int | None
    """How many slots the state requires."""
    to_states: tuple[str, ...]
    to_counts: tuple[int, ...]
    """How often it led to each of them."""
    turns: int | None
    latencies: tuple[float, ...]
    """Of its turns, in milliseconds."""
    slots: tuple[str, ...]
    """The slots that were committed in it."""
    unplaced: tuple[str, ...]
    """With the first state: slots of which nobody tells the state that collected them."""
    tool_calls: int
    tool_successes: int
    tool_unknown: int
    """Calls of which the log does not say whether they worked; where it tells of results, one without did not."""
    asked: int | None
    """Confirmations that were asked for in it."""
    accepted: int | None
    reasons: dict[str, str]


def state_rows(conversation: Conversation) -> Sequence[StateRow]:
    """The rows of a conversation, in the order in which its states were first entered.

    A conversation whose integration broke has none: it says nothing about the flow.
    """
    held = conversation.__dict__
    found: Sequence[StateRow] | None = held.get("_state_rows")
    if found is None:
        found = held["_state_rows"] = () if conversation.outcome.error else tuple(_rows(conversation))
    return found


def _rows(conversation: Conversation) -> list[StateRow]:
    walked = walk(conversation)
    if not walked.visits:
        return []
    frame = _Frame(conversation, walked)
    by_state: dict[str, list[Visit]] = {}
    for visit in walked.visits:
        by_state.setdefault(visit.state, []).append(visit)
    return [frame.row(state, visits, position) for position, (state, visits) in enumerate(by_state.items())]


class _Frame:
    """What the rows of one conversation have in common."""

    def __init__(self, conversation: Conversation, walked: Walk) -> None:
        self.flow = conversation.flow
        self.escalations = self.flow.escalations if self.flow is not None else ESCALATIONS
        self.walked = walked
        self.completed = is_completed(conversation)
        # One that was left for an end of the flow that nobody entered is stuck nowhere.
        self.stuck = walked.visits[-1] if walked.last == walked.visits[-1].state else None
        self.first_fill: dict[str, SlotFilled] = {}
        self.tells_results = False
        tells = conversation.source.format in _TELL_GUARDS
        for event in conversation.timeline:
            kind = type(event)
            if kind is SlotFilled:
                self.first_fill.setdefault(event.slot, event)  # type: ignore[union-attr, arg-type]
            elif kind is GuardEvaluated:
                tells = True
            elif kind is ToolResult:
                self.tells_results = True
        self.tells_guards = tells
        self.placed = {one.slot for visit in walked.visits for one in visit.slots if self._is_first(one)}

    def row(self, state: str, visits: list[Visit], position: int) -> StateRow:
        reasons: dict[str, str] = {}
        declared = self.flow.by_name.get(state) if self.flow is not None else None
        segment = segment_of(self.flow, state)
        if not segment:
            reasons["segment"] = "no_flow_definition" if self.flow is None else "no_segment_declared"
        led = _led_to(visits)
        latencies = [latency for visit in visits for latency in visit.latencies]
        turns = sum(visit.turns for visit in visits) if self.walked.turns_told else None
        if turns is None:
            reasons["dwell_turns"] = "no_turns_logged"
        if not latencies:
            reasons["latency_p95_ms"] = _why_no_latency(turns)
        slots = self._slots(declared, visits, reasons)
        results = [has_worked(one) for visit in visits for one in visit.results]
        calls = max(sum(len(visit.calls) for visit in visits), len(results))
        asked, accepted = self._confirmations(segment, declared, visits)
        return StateRow(
            state=state,
            position=position,
            segment=segment or None,
            visits=len(visits),
            progress=int(any(visit.forward for visit in visits)),
            stall=self._stall(state, reasons),
            escalation=int(any(visit.to_state in self.escalations for visit in visits if visit.to_state != state)),
            revisit=len(visits) - 1,
            dwell_turns=None if turns is None else turns / len(visits),
            latency_p95_ms=percentile_95(latencies),
            guard_error=self._guard_errors(visits, reasons),
            slot_fill_rate=slots.fill_rate,
            slot_ready_rate=slots.ready_rate,
            front_loaded=slots.front_loaded,
            required=slots.required,
            to_states=tuple(led),
            to_counts=tuple(led.values()),
            turns=turns,
            latencies=tuple(latencies),
            slots=tuple(dict.fromkeys(one.slot for visit in visits for one in visit.slots if self._is_first(one))),
            unplaced=() if position else tuple(slot for slot in self.first_fill if slot not in self.placed),
            tool_calls=calls,
            tool_successes=results.count(True),
            tool_unknown=results.count(None) + (0 if self.tells_results else calls - len(results)),
            asked=asked,
            accepted=accepted,
            reasons=reasons,
        )

    def _is_first(self, event: SlotFilled) -> bool:
        return self.first_fill.get(event.slot) is event

    def _stall(self, state: str, reasons: dict[str, str]) -> int | None:
        if self.stuck is None or state != self.stuck.state or self.completed is True:
            return 0
        if self.completed is None:
            reasons["stall"] = "outcome_unknown"
            return None
        return 1

    def _guard_errors(self, visits: list[Visit], reasons: dict[str, str]) -> int | None:
        if not self.tells_guards:
            reasons["guard_error"] = "no_guards_logged"
            return None
        return sum(bool(guard.error) for visit in visits for guard in visit.guards)

    def _slots(self, declared: FlowState | None, visits: list[Visit], reasons: dict[str, str]) -> _Slots:
        if declared is None or not declared.required_slots:
            reason = "nothing_required"
            if declared is None:
                reason = "no_flow_definition" if self.flow is None else "state_not_declared"
            reasons["slot_fill_rate"] = reason
            return _Slots()
        required = declared.required_slots
        last = visits[-1]
        here = {one.slot for visit in visits for one in visit.slots if self._is_first(one) and _is_before(one, last)}
        ready = {slot for slot, one in self.first_fill.items() if _is_before(one, last)}
        early = {slot for slot, one in self.first_fill.items() if one.seq < visits[0].entered}
        return _Slots(
            fill_rate=sum(slot in here for slot in required) / len(required),
            ready_rate=sum(slot in ready for slot in required) / len(required),
            front_loaded=sum(slot in early for slot in required),
            required=len(required),
        )

    def _confirmations(
        self, segment: str, declared: FlowState | None, visits: list[Visit]
    ) -> tuple[int | None, int | None]:
        """Confirmations of a confirming state that the log tells the outcome of: by reason of leaving, or by guard."""
        if kind_of(self.flow, segment or (declared.speech_act if declared else "")) != CONFIRM:
            return None, None
        told = [one for visit in visits if (one := _verdict(visit)) is not None]
        return (len(told), sum(told)) if told else (None, None)


class _Slots(msgspec.Struct, frozen=True):
    fill_rate: float | None = None
    ready_rate: float | None = None
    front_loaded: int | None = None
    required: int | None = None


def _is_before(event: SlotFilled, visit: Visit) -> bool:
    """A slot was committed before a state was left; what is committed in the moment of leaving is, too."""
    if visit.left is None or event.seq < visit.left:
        return True
    return _same_moment(event.time, visit.left_at)


def _same_moment(one: Time | None, other: Time | None) -> bool:
    return one is not None and other is not None and (one.at, one.clock) == (other.at, other.clock)


def _why_no_latency(turns: int | None) -> str:
    if turns is None:
        return "no_turns_logged"
    return "no_latency_logged" if turns else "no_turn_ran"


def has_worked(result: ToolResult) -> bool | None:
    """Whether a tool did what it was called for; None where the log does not say."""
    return False if result.success is None and result.error else result.success


def _verdict(visit: Visit) -> bool | None:
    """Whether the caller confirmed; None where the log does not say."""
    reason = folded(visit.reason)
    if reason in _ACCEPTED or reason in _REFUSED:
        return reason in _ACCEPTED
    for guard in reversed(visit.guards):
        if isinstance(guard.result, bool) and not guard.error and "confirm" in guard.guard.casefold():
            return guard.result
    return None


def _led_to(visits: list[Visit]) -> dict[str, int]:
    led: dict[str, int] = {}
    for visit in visits:
        if visit.to_state:
            led[visit.to_state] = led.get(visit.to_state, 0) + 1
    return led


def percentile_95(values: Sequence[float]) -> float | None:
    """Linear interpolation between the two nearest; None of nothing."""
    if not values:
        return None
    ordered = sorted(values)
    # In whole hundredths, so that 0.95 · 4 is 3.8 and not a little less.
    below, hundredths = divmod(95 * (len(ordered) - 1), 100)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + (high - low) * (hundredths / 100)
