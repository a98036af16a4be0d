"""One row per state that a conversation was in: the nine metrics of a state, and what is behind them (tier 1).

Also which phase a state belongs to, and which archetype a phase is (flow-states, tier 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation, Flow, SlotFilled
from convoscope.conversation.flow import ESCALATIONS, FlowState
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.folding import folded_name, snake_case
from convoscope.views.flow.endings import is_completed
from convoscope.views.flow.walk import Visit, Walk, has_states, walk
from convoscope.views.tool_outcomes import tool_outcomes

COLLECT, CONFIRM, ACT, TERMINAL, HANDOFF = "collect", "confirm", "act", "terminal", "handoff"

_SPEECH_ACTS = {
    COLLECT: "ask listen static collect question request",
    CONFIRM: "confirm readback",
    ACT: "act action tool execute",
    TERMINAL: "greet greeting close terminal escalate",
    HANDOFF: "handoff transfer",
}
_SEGMENT_NAMES = {
    COLLECT: "collect enrich gather triage",
    CONFIRM: "confirm readback",
    ACT: "act book dispatch commit action",
    TERMINAL: "terminal close escalation greeting",
    HANDOFF: HANDOFF,
}
_FAMILIES = {name: kind for kind, names in _SPEECH_ACTS.items() for name in names.split()}
_ARCHETYPES = {name: kind for kind, names in _SEGMENT_NAMES.items() for name in names.split()}

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
_FORMATS_WITH_GUARDS = frozenset(("state-events", "convoscope", ""))
_ACCEPTED = frozenset(
    ("confirmed", "confirm", "accepted", "accept", "yes", "affirmed", "affirm", "approved", "correct")
)
_REFUSED = frozenset(
    ("rejected", "reject", "denied", "deny", "declined", "no", "corrected", "correction", "refused", "not_confirmed")
)


class StateRow(msgspec.Struct, frozen=True, gc=False):
    """What one state did in one conversation. None is "not measured", and `reasons` says why by field."""

    state: str
    position: int
    """Its position in the order in which states were first entered."""
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
    """With the first state: slots of which the log does not name the state that collected them."""
    tool_calls: int
    tool_successes: int
    tool_unknown: int
    """Calls of which the log does not say whether they worked; where it has results, a call without one did not."""
    asked: int | None
    """Confirmations that were asked for in it."""
    accepted: int | None
    reasons: dict[str, str]


@cached_on_argument
def state_rows(conversation: Conversation) -> Sequence[StateRow]:
    """The rows of a conversation, in the order in which its states were first entered.

    A conversation whose integration broke has none: it says nothing about the flow.
    """
    walked = walk(conversation) if not conversation.outcome.error and has_states(conversation) else None
    if walked is None or not walked.visits:
        return ()
    frame = _Frame(conversation, walked)
    by_state: dict[str, list[Visit]] = {}
    for visit in walked.visits:
        by_state.setdefault(visit.state, []).append(visit)
    return tuple([frame.row(state, visits, position) for position, (state, visits) in enumerate(by_state.items())])


class _Declared(NamedTuple):
    """What a flow declares of one of its states."""

    state: FlowState | None
    segment: str
    confirms: bool
    """It is a state that asks the caller to confirm."""


def _declared(flow: Flow | None, state: str) -> _Declared:
    """Kept with the flow, which many conversations share."""
    if flow is None:
        return _UNDECLARED
    cache: dict[str, _Declared] = flow.__dict__.setdefault("_declared_of", {})
    if state in cache:
        return cache[state]
    flow_state, segment = flow.by_name.get(state), segment_of(flow, state)
    confirms = kind_of(flow, segment or (flow_state.speech_act if flow_state else "")) == CONFIRM
    declared = _Declared(flow_state, segment, confirms)
    if flow_state is not None:
        cache[state] = declared
    return declared


_UNDECLARED = _Declared(None, "", confirms=False)


class _Frame:
    """What the rows of one conversation have in common."""

    def __init__(self, conversation: Conversation, walked: Walk) -> None:
        self.conversation, self.flow = conversation, conversation.flow
        self.escalations = self.flow.escalations if self.flow is not None else ESCALATIONS
        self.walked = walked
        self.completed = is_completed(conversation)
        # A state that was left for an end of the flow, entered or not, is not where it got stuck.
        self.stuck = walked.visits[-1] if walked.last == walked.visits[-1].state else None
        self.first_fill = walked.fills
        self.is_timed = any(any(visit.latencies) for visit in walked.visits)
        self.has_guards = walked.has_guards or conversation.source.format in _FORMATS_WITH_GUARDS

    def row(self, state: str, visits: list[Visit], position: int) -> StateRow:
        reasons: dict[str, str] = {}
        declared, segment, confirms = _declared(self.flow, state)
        if not segment:
            reasons["segment"] = "no_flow_definition" if self.flow is None else "no_segment_declared"
        stay = visits[0] if len(visits) == 1 else _as_one(visits)
        led: dict[str, int] = {}
        for visit in visits:
            if visit.to_state:
                led[visit.to_state] = led.get(visit.to_state, 0) + 1
        turns, latencies = stay.turns, stay.latencies if self.is_timed else []
        fills = [one for one in stay.slots if self.first_fill.get(one.slot) is one] if stay.slots else []
        outcomes = tool_outcomes(self.conversation) if stay.results else {}
        results = [outcomes[one.seq].worked for one in stay.results]
        guard_errors = sum([bool(guard.error) for guard in stay.guards]) if stay.guards else 0
        calls = max(len(stay.calls), len(results))
        has_turns = self.walked.has_turns
        if not has_turns:
            reasons["dwell_turns"] = "no_turns_logged"
        if not latencies:
            reasons["latency_p95_ms"] = _why_no_latency(turns if has_turns else None, stopped=bool(stay.latencies))
        slots = self._slots(declared, visits, fills, reasons)
        # Confirmations with an outcome in the log: by reason of leaving, or by guard.
        verdicts = [verdict for visit in visits if (verdict := _verdict(visit)) is not None] if confirms else []
        stall = self._stall(state, reasons)
        if not self.has_guards:
            reasons["guard_error"] = "no_guards_logged"
        unplaced: tuple[str, ...] = ()
        if not position and self.first_fill:
            placed = {id(fill) for visit in self.walked.visits for fill in visit.slots}
            unplaced = tuple([slot for slot, first in self.first_fill.items() if id(first) not in placed])
        # In the order of the fields: naming twenty-seven of them costs more than the rest of the row.
        return StateRow(
            state,
            position,
            segment or None,
            len(visits),
            int(stay.forward),
            stall,
            int(not self.escalations.isdisjoint(led) and any(one in self.escalations for one in led if one != state)),
            len(visits) - 1,
            turns / len(visits) if has_turns else None,
            percentile_95(latencies),
            guard_errors if self.has_guards else None,
            slots.fill_rate,
            slots.ready_rate,
            slots.front_loaded,
            slots.required,
            tuple(led),
            tuple(led.values()),
            turns if has_turns else None,
            tuple(latencies),
            tuple(dict.fromkeys([one.slot for one in fills])) if fills else (),
            unplaced,
            calls,
            results.count(True),
            results.count(None) + (0 if self.walked.has_results else calls - len(results)),
            len(verdicts) or None,
            sum(verdicts) if verdicts else None,
            reasons,
        )

    def _stall(self, state: str, reasons: dict[str, str]) -> int | None:
        if self.completed is None and self.stuck is not None:
            # Of all its states: those that were passed would only add zeros.
            reasons["stall"] = "outcome_unknown"
            return None
        return int(self.stuck is not None and state == self.stuck.state and not self.completed)

    def _slots(
        self, declared: FlowState | None, visits: list[Visit], fills: list[SlotFilled], reasons: dict[str, str]
    ) -> _Slots:
        """`fills` are those that filled a slot for the first time, and in these visits."""
        if declared is None or not declared.required_slots:
            reason = "nothing_required"
            if declared is None:
                reason = "no_flow_definition" if self.flow is None else "state_not_declared"
            reasons["slot_fill_rate"] = reason
            return _NO_SLOTS
        required = declared.required_slots
        last, began = visits[-1], visits[0].entered
        here = {one.slot for one in fills if _is_before(one, last)}
        filled = [self.first_fill.get(slot) for slot in required]
        return _Slots(
            sum([slot in here for slot in required]) / len(required),
            sum([one is not None and _is_before(one, last) for one in filled]) / len(required),
            sum([one is not None and one.seq < began for one in filled]),
            len(required),
        )


def _as_one(visits: list[Visit]) -> Visit:
    """What happened in several visits of a state, as if they were one."""
    whole = Visit(visits[0].state, visits[0].entered)
    whole.turns = sum([visit.turns for visit in visits])
    whole.forward = any(visit.forward for visit in visits)
    whole.latencies = [latency for visit in visits for latency in visit.latencies]
    whole.guards = [guard for visit in visits for guard in visit.guards]
    whole.slots = [slot for visit in visits for slot in visit.slots]
    whole.calls = [call for visit in visits for call in visit.calls]
    whole.results = [result for visit in visits for result in visit.results]
    return whole


class _Slots(msgspec.Struct, frozen=True):
    fill_rate: float | None = None
    ready_rate: float | None = None
    front_loaded: int | None = None
    required: int | None = None


_NO_SLOTS = _Slots()


def _is_before(event: SlotFilled, visit: Visit) -> bool:
    """A slot was committed before a state was left; what is committed in the moment of leaving is, too."""
    if visit.left is None or event.seq < visit.left:
        return True
    time, left = event.time, visit.left_at
    return time is not None and left is not None and (time.at, time.clock) == (left.at, left.clock)


def _why_no_latency(turns: int | None, *, stopped: bool) -> str:
    if stopped:
        return "clock_without_resolution"
    if turns is None:
        return "no_turns_logged"
    return "no_latency_logged" if turns else "no_turn_ran"


def _verdict(visit: Visit) -> bool | None:
    """Whether the caller confirmed; None where the log does not say."""
    reason = snake_case(visit.reason)
    if reason in _ACCEPTED or reason in _REFUSED:
        return reason in _ACCEPTED
    for guard in reversed(visit.guards):
        if isinstance(guard.result, bool) and not guard.error and "confirm" in guard.guard.casefold():
            return guard.result
    return None


def percentile_95(values: Sequence[float]) -> float | None:
    """Linear interpolation between the two nearest; None of nothing."""
    if not values:
        return None
    if len(values) == 1:
        return values[0] + 0.0
    ordered = sorted(values)
    # In whole hundredths, so that 0.95 · 4 is 3.8 and not a little less.
    below, hundredths = divmod(95 * (len(ordered) - 1), 100)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    return low + (high - low) * (hundredths / 100)


def segment_of(flow: Flow | None, state: str) -> str:
    """The segment of a state: the authored one, else its lifecycle phase, else the family of its speech act."""
    if flow is None:
        return ""
    if state in flow.segment_of:
        return flow.segment_of[state]
    declared = flow.by_name.get(state)
    if declared is None:
        return ""
    return declared.lifecycle_phase or _FAMILIES.get(folded_name(declared.speech_act), "")


def kind_of(flow: Flow | None, segment: str) -> str:
    """The canonical archetype of a segment: its declared kind, else its name, with variants folded.

    Where neither is one of those known, the speech acts of its states decide, if they agree; else it is a kind of
    its own.
    """
    declared = flow.segment_by_name.get(segment) if flow is not None else None
    kind = declared.kind if declared is not None else ""
    name = folded_name(kind or segment)
    archetype = _ARCHETYPES.get(name.replace("_", ""))
    if archetype is not None or kind or flow is None:
        return archetype or name
    acts = {folded_name(state.speech_act) for state in flow.states if segment_of(flow, state.name) == segment}
    families = {_FAMILIES.get(act, "") for act in acts}
    return families.pop() or name if len(families) == 1 else name


def has_no_cohesion(kind: str) -> bool:
    """Ends and greetings lead nowhere by design."""
    return kind == TERMINAL
