"""The aspects of a flow: was the task done rightly, completely, without errors, fast, humanly (flow-states, tier 3).

And where callers leave it: how far down its stages a conversation came.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial
from math import fsum
from operator import attrgetter
from typing import NamedTuple

from convoscope.conversation import (
    Conversation,
    GuardEvaluated,
    Json,
    Marker,
    Outcome,
    StateEntered,
    StateExited,
    ToolResult,
)
from convoscope.conversation.flow import Flow
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    FULL_MARKS,
    HIGHER,
    LOWER,
    RATIO,
    SECONDS,
    SHARE,
    TenPoints,
    metric,
)
from convoscope.metrics.needs import FLOW_DECLARED, NOT_BROKEN, Need, in_timeline
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.folding import folded_name, snake_case
from convoscope.views.flow.endings import (
    contract_of,
    is_completed,
    is_loop_stop,
    is_terminal_stop,
    is_turn_limit,
    is_unsafe_stop,
)
from convoscope.views.flow.state_rows import percentile_95, state_rows
from convoscope.views.flow.walk import walk
from convoscope.views.items import WHOLE
from convoscope.views.tool_outcomes import tool_outcomes

LOOP = 3
"""A state that is entered again so often is a loop."""

_NAMES = ("name", "state", "id", "stage", "label")
_SUCCESS = frozenset(
    ("success", "succeeded", "successful", "complete", "completed", "done", "resolved", "goal_reached")
)
_NO_STAGES = frozenset(("failure", "escalation"))

STATES = Need(
    "no_states",
    "timeline.state_entered",
    "a log that says which states of the flow were entered",
    in_timeline("has_states"),
)

_walk_metric = partial(metric, observes=CONVERSATION, needs=(NOT_BROKEN, STATES), sensitive_to=())
_flow_metric = partial(metric, observes=CONVERSATION, needs=(NOT_BROKEN, STATES, FLOW_DECLARED), sensitive_to=())


class _Part(NamedTuple):
    """One part of being correct: whether it holds, or why that is unknown."""

    holds: bool | None
    reason: str = ""
    evidence: dict[str, object] | None = None


@_flow_metric(
    "flow.correctness",
    version=3,
    label="flows ended as they should",
    importance=7,
    unit=RATIO,
    better=HIGHER,
    aspect="correctness",
    ten=FULL_MARKS,
)
def correctness(conversation: Conversation) -> Observation:
    """Did the conversation end as its flow wants it to?

    Three parts of equal weight: it reached an end that the flow declares as a success; every slot that a state it
    was in requires, and every completion slot, is filled; its final status is one of the contract. A part that
    the flow declares nothing for is no part. Without a final status in the log, a conversation that was not
    completed kept no contract, and any other is judged by the other parts. Not applicable where the flow declares
    none of the three; unmeasured where it declares a contract alone and the log has no final status, however the
    conversation ended.

    >>> # it reached a success and lacks a slot: one part of two
    >>> states = [{"name": "ask", "required_slots": ["day"]}, {"name": "done", "terminal": "success"}]
    >>> value("flow.correctness", example("state: ask", "state: done", flow={"name": "booking", "states": states}))
    0.5
    """
    parts = _parts(conversation)
    if not any(part.holds is not None or part is _UNKNOWN for part in parts):
        return not_applicable(WHOLE, "nothing_declared")
    if parts.final_status is _UNKNOWN:
        broken = is_completed(conversation) is False
        parts = parts._replace(final_status=_HOLDS_NOT if broken else _UNKNOWN)
        if parts.success_terminal.holds is None and parts.slots_filled.holds is None:
            return unmeasured(WHOLE, _UNKNOWN.reason)
    judged = [part.holds for part in parts if part.holds is not None]
    evidence = {name: part.reason if part.holds is None else part.holds for name, part in parts._asdict().items()}
    return measured(WHOLE, sum(judged) / len(judged), details={"parts": evidence})


@_flow_metric(
    "flow.correctness.success_terminal", version=2, label="came to a good end of the flow", unit=SHARE, better=HIGHER
)
def success_terminal(conversation: Conversation) -> Observation:
    """Did the conversation reach an end that the flow declares as a success?

    >>> flow = {"name": "booking", "states": [{"name": "ask"}, {"name": "done", "terminal": "success"}]}
    >>> [value(success_terminal, example("state: ask", f"state: {end}", flow=flow)) for end in ("done", "ask")]
    [1.0, 0.0]
    """
    return _observed(_parts(conversation).success_terminal)


@_flow_metric("flow.correctness.slots_filled", version=2, label="filled all slots", unit=SHARE, better=HIGHER)
def slots_filled(conversation: Conversation) -> Observation:
    """Is every slot filled that the states it was in, and the flow, require?

    >>> flow = {"name": "booking", "states": [{"name": "ask", "required_slots": ["day"]}]}
    >>> fill = {"type": "slot_filled", "slot": "day", "value": "Monday", "state": "ask"}
    >>> [value(slots_filled, example("state: ask", *events, flow=flow)) for events in ([fill], [])]
    [1.0, 0.0]
    """
    return _observed(_parts(conversation).slots_filled)


@_flow_metric("flow.correctness.final_status", version=3, unit=SHARE, better=HIGHER)
def final_status(conversation: Conversation) -> Observation:
    """Is the final status one that the flow's contract names?

    Unmeasured where the log has no final status, whether the conversation was completed or not.

    >>> flow = {"name": "booking", "final_status": ["booked"]}
    >>> value("flow.correctness.final_status", example("state: ask", flow=flow, outcome={"final_status": "Booked"}))
    1.0
    >>> value("flow.correctness.final_status", example("state: ask", flow=flow))
    'final_status_unknown'
    """
    return _observed(_parts(conversation).final_status)


def _observed(part: _Part) -> Observation:
    if part.holds is not None:
        return measured(WHOLE, float(part.holds), details=part.evidence)
    explain = unmeasured if part is _UNKNOWN else not_applicable
    return explain(WHOLE, part.reason)


class _Parts(NamedTuple):
    """The three parts of being correct."""

    success_terminal: _Part
    slots_filled: _Part
    final_status: _Part


@cached_on_argument
def _parts(conversation: Conversation) -> _Parts:
    """Four metrics look at them."""
    assert conversation.flow is not None  # a need of the metrics
    return _Parts(
        _reached_success(conversation, conversation.flow),
        _filled_slots(conversation, conversation.flow),
        _kept_contract(conversation, conversation.flow),
    )


def _reached_success(conversation: Conversation, flow: Flow) -> _Part:
    successes = flow.successes
    if not successes:
        return _NO_SUCCESS
    # From the end, where it is reached.
    for event in reversed(conversation.timeline):
        if type(event) is StateEntered:
            if event.state in successes:
                return _HOLDS
        elif type(event) is StateExited and event.to_state in successes:
            return _HOLDS
    return _HOLDS_NOT


def _filled_slots(conversation: Conversation, flow: Flow) -> _Part:
    states = [flow.by_name.get(row.state) for row in state_rows(conversation)]
    wanted = [state.required_slots for state in states if state is not None and state.required_slots]
    if flow.completion_slots:
        wanted.append(flow.completion_slots)
    if not wanted:
        return _NO_SLOTS
    filled = walk(conversation).fills
    missing = list(dict.fromkeys([slot for slots in wanted for slot in slots if slot not in filled]))
    return _Part(False, evidence={"missing": missing}) if missing else _HOLDS


def _kept_contract(conversation: Conversation, flow: Flow) -> _Part:
    if flow.final_status is None:
        return _NO_CONTRACT
    status = conversation.outcome.final_status
    if not status:
        return _UNKNOWN
    return _Part(snake_case(status) in contract_of(flow), evidence={"final_status": status})


_HOLDS, _HOLDS_NOT = _Part(True), _Part(False)
_NO_SUCCESS, _NO_SLOTS = _Part(None, "no_success_declared"), _Part(None, "no_slots_declared")
_NO_CONTRACT, _UNKNOWN = _Part(None, "no_contract_declared"), _Part(None, "final_status_unknown")


@_walk_metric(
    "flow.completion",
    version=2,
    label="flows completed",
    importance=9,
    unit=SHARE,
    better=HIGHER,
    aspect="completion",
    ten=FULL_MARKS,
)
def completion(conversation: Conversation) -> Observation:
    """Was the conversation completed, and did it stop because the flow came to an end?

    1 where the log says that it was completed and the reason for its stop is an end of the flow: the reason says
    so or names one, or the last state is one. Where the log has no reason, or one in unknown words, and the flow
    declares no end, the flag alone decides. Unmeasured where nothing says whether it was completed.

    >>> value("flow.completion", example("state: ask", outcome={"completed": True, "ended_reason": "terminal"}))
    1.0
    >>> value("flow.completion", example("state: ask", outcome={"completed": True, "ended_reason": "max_turns"}))
    0.0
    """
    completed = is_completed(conversation)
    if completed is None:
        return unmeasured(WHOLE, "outcome_unknown")
    ended = is_terminal_stop(conversation)
    details = {"completed": completed, "stopped_at_an_end": ended}
    return measured(WHOLE, float(completed and ended is not False), details=details)


@_walk_metric(
    "flow.errors",
    version=2,
    label="errors on the way",
    importance=5,
    unit=COUNT,
    better=LOWER,
    aspect="errors",
    ten=TenPoints(zero=10.0, ten=0.0),
)
def errors(conversation: Conversation) -> Observation:
    """How many things went wrong on the way?

    Errors (failed tool calls, guards that could not be evaluated, errors that the log marks) + 1 for a stop for
    safety + 1 for a stop at the limit of turns + loops (a stop for a loop, and each state that was entered again
    three times or more). Ten points minus that number.

    >>> # a failed call and a stop at the limit of turns
    >>> failed = 'tool: book {} -> {"error": "full"}'
    >>> value("flow.errors", example("state: ask", failed, outcome={"ended_reason": "max_turns"}))
    2.0
    """
    reason = conversation.outcome.ended_reason
    tools = guards = marked = 0
    outcomes = tool_outcomes(conversation)
    for event in conversation.timeline:
        kind = type(event)
        if kind is ToolResult:
            tools += outcomes[event.seq].failed
        elif kind is GuardEvaluated:
            guards += bool(event.error)  # type: ignore[union-attr]
        elif kind is Marker:
            marked += event.name == "error"  # type: ignore[union-attr]
    looped = sum([row.revisit >= LOOP for row in state_rows(conversation)])
    counts = {
        "failed_tools": tools,
        "failed_guards": guards,
        "errors": marked,
        "unsafe_stops": int(is_unsafe_stop(reason)),
        "turn_limits": int(is_turn_limit(reason)),
        "loops": int(is_loop_stop(reason)) + looped,
    }
    details = {name: count for name, count in counts.items() if count}
    return measured(WHOLE, float(sum(counts.values())), details=details or None)


@_walk_metric(
    "flow.latency_mean",
    version=3,
    label="agent's turns, mean time",
    unit=SECONDS,
    better=LOWER,
    aspect="latency_mean",
)
def latency_mean(conversation: Conversation) -> Observation:
    """How long does the agent take for a turn?

    The mean over the timed turns that ran in a state. Unmeasured where every latency is exactly 0.

    >>> turn = {"type": "component_metric", "component": "turn"}
    >>> turns = [{**turn, "values": {"latency_ms": latency}} for latency in (500, 1500)]
    >>> value("flow.latency_mean", example("state: ask", *turns))
    1.0
    """
    latencies = _latencies(conversation)
    return _in_seconds(fsum(latencies) / len(latencies) if latencies else None)


@_walk_metric(
    "flow.latency_p95",
    version=3,
    label="agent's slow turns",
    importance=5,
    unit=SECONDS,
    better=LOWER,
    aspect="latency_p95",
)
def latency_p95(conversation: Conversation) -> Observation:
    """How long does the agent take for its slow turns?

    The 95th percentile over the timed turns that ran in a state, with linear interpolation. Unmeasured
    where every latency is exactly 0.

    >>> # between 0 and 1 s, at 0.95 of the way
    >>> turn = {"type": "component_metric", "component": "turn"}
    >>> turns = [{**turn, "values": {"latency_ms": latency}} for latency in (0, 1000)]
    >>> value("flow.latency_p95", example("state: ask", *turns))
    0.95
    """
    return _in_seconds(percentile_95(_latencies(conversation)))


def _latencies(conversation: Conversation) -> list[float]:
    """Of all turns that ran in a state, in milliseconds."""
    return [latency for row in state_rows(conversation) for latency in row.latencies]


def _in_seconds(milliseconds: float | None) -> Observation:
    return unmeasured(WHOLE, "no_latency_logged") if milliseconds is None else measured(WHOLE, milliseconds / 1000)


@metric(
    "telephony.drop_off_node",
    variant="states",
    version=2,
    label="how far it came in the flow",
    importance=5,
    observes=CONVERSATION,
    unit=RATIO,
    better=HIGHER,
    needs=(STATES,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    ten=TenPoints(zero=0.0, ten=1.0),
    sensitive_to=(),
)
def drop_off_node(conversation: Conversation) -> Observation:
    """How far did the conversation come through the stages of its flow?

    1 where it was completed, by its own account or because it reached the last stage; else the place of
    the deepest stage that it reached ÷ the number of stages. `node` in the details is the state that it
    was in when it ended. The order of the stages is the one that is given (`stages`), else the order of
    states that the flow declares. Unmeasured without an order, and where none of its states is known
    there, whether it was completed or not.

    >>> # it came to the second of four stages
    >>> stages = {"stages": ["greet", "ask", "confirm", "done"]}
    >>> value("telephony.drop_off_node@states", example("state: greet", "state: ask", extras=stages))
    0.5
    """
    path = _path(conversation)
    if not path:
        return unmeasured(WHOLE, STATES.code, "no state has a name")
    node, visited = path[-1], list(dict.fromkeys(path))
    order = _order(conversation)
    if order is None:
        return unmeasured(WHOLE, "stages_unknown", f"ended in {node}, after {', '.join(visited)}"[:200])
    if not any(folded_name(state) in order.known for state in visited):
        return unmeasured(WHOLE, "not_among_stages", f"ended in {node}; stages {', '.join(order.names)}"[:200])
    reached = max(order.positions.get(folded_name(state), 0) for state in visited)
    completed = _completed(conversation) or reached == len(order.names)
    details: dict[str, Json] = {"node": node, "reached": visited, "stages": len(order.names)}
    details |= {"deepest": order.names[reached - 1] if reached else None, "completed": completed}
    return measured(WHOLE, 1.0 if completed else reached / len(order.names), details=details)


class _Order(NamedTuple):
    """The stages of a flow."""

    names: list[str]
    positions: dict[str, int]
    """The position of each stage, from 1, by its folded name."""
    known: Collection[str]
    """The states that the order knows, folded; not all of them need to be stages."""


def _path(conversation: Conversation) -> list[str]:
    """The states in the order in which the conversation was in them; leaving for a state is entering it."""
    path: list[str] = []
    for event in conversation.timeline:
        kind = type(event)
        if kind is StateEntered:
            path.append(event.state)  # type: ignore[union-attr]
        elif kind is StateExited:
            path += (event.state, event.to_state)  # type: ignore[union-attr]
    named = [state for state in path if state.strip()]
    return [state for state, before in zip(named, ["", *named], strict=False) if state != before]


def _order(conversation: Conversation) -> _Order | None:
    """The first that is given, by items, the conversation, its scenario, its agent; else the flow's own."""
    for holder in _holders(conversation):
        given = holder.get("stages") if isinstance(holder, dict) else None
        names = [name for one in given if (name := _name(one))] if isinstance(given, list | tuple) else []
        if names:
            first = {folded_name(name): at for at, name in reversed(list(enumerate(names)))}
            names = [names[at] for at in sorted(first.values())]
            positions = {folded_name(name): at for at, name in enumerate(names, start=1)}
            return _Order(names, positions, positions)
    return _declared_order(conversation.flow) if conversation.flow is not None else None


@cached_on_argument
def _declared_order(flow: Flow) -> _Order | None:
    """The states of a flow by rank; those of one rank share a position. Where it hands over or gives up is no stage."""
    names: dict[float, str] = {}
    ranked = [state for state in flow.states if state.rank is not None and state.terminal not in _NO_STAGES]
    for state in sorted(ranked, key=attrgetter("rank")):
        names.setdefault(state.rank or 0.0, state.name)
    position = {rank: number for number, rank in enumerate(names, start=1)}
    positions = {folded_name(state.name): position[state.rank or 0.0] for state in ranked}
    known = frozenset(folded_name(state.name) for state in flow.states)
    return _Order(list(names.values()), positions, known) if names else None


def _holders(conversation: Conversation) -> Iterator[Json]:
    for extras in (*(item.extras for item in conversation.items), conversation.extras):
        yield extras.get("context")
        yield extras.get("metadata")
        yield extras
    if conversation.scenario is not None:
        yield conversation.scenario.extras
    yield conversation.agent.extras
    yield conversation.expected.extras


def _name(stage: Json) -> str:
    if isinstance(stage, dict):
        stage = next((stage[name] for name in _NAMES if isinstance(stage.get(name), str)), "")
    return stage.strip() if isinstance(stage, str) else ""


def _completed(conversation: Conversation) -> bool:
    """The log says that the goal was reached: of the conversation, else of its last item that says how it ended."""
    ends: list[Outcome] = [item.outcome for item in conversation.items if item.outcome is not None]
    for outcome in (conversation.outcome, *reversed(ends)):
        if outcome.completed is not None:
            return outcome.completed
        if outcome.final_status:
            return folded_name(outcome.final_status) in _SUCCESS
    return False
