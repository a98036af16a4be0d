"""What each state of a flow did in a conversation (flow-states, tier 1).

They observe states, so that "by flow and state" is a grouping like any other. What is behind them is kept in
the table `states`, one row for each conversation and state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial
from operator import attrgetter

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import COUNT, HIGHER, LOWER, NEITHER, SHARE, STATE, metric
from convoscope.metrics.flow.aspects import STATES
from convoscope.metrics.needs import NOT_BROKEN
from convoscope.scores.observation import Observation, not_applicable, ratio, subject_of, unmeasured
from convoscope.scores.reducers import (
    MEAN_OF_CONVERSATIONS,
    RATIO,
    RATIO_OF_SUMS,
    WHOLE_RATIO,
    Reduce,
)
from convoscope.scores.side_tables import SideTable
from convoscope.views.flow.state_rows import STATE_METRICS, StateRow, state_rows
from convoscope.views.items import State, Subject

_state_metric = partial(metric, observes=STATE, needs=(NOT_BROKEN, STATES), sensitive_to=())
_OF_STATES = Reduce(RATIO, RATIO_OF_SUMS)
_OF_ALL_STATES = Reduce(WHOLE_RATIO, RATIO_OF_SUMS)


@_state_metric(
    "state.progress", version=3, label="states that lead on", importance=4, unit=SHARE, better=HIGHER, reduce=_OF_STATES
)
def progress(conversation: Conversation) -> Iterator[Observation]:
    """Of the states that were entered, how many led on?

    A state led on where one of its visits was left for a state that is not itself, not an escalation, and not
    one that was visited before, unless the flow's order says that it is ahead. Ends of the flow lead nowhere:
    they count as states that did not lead on.

    >>> # the first of two led on
    >>> value("state.progress", example("state: greet", "state: ask"))
    0.5
    """
    yield from _observe(conversation, "progress")


@_state_metric(
    "state.stall",
    version=4,
    label="states that get stuck",
    importance=6,
    unit=SHARE,
    better=LOWER,
    reduce=_OF_ALL_STATES,
)
def stall(conversation: Conversation) -> Iterator[Observation]:
    """Of the states that were entered, how many did the conversation get stuck in?

    A conversation that was not completed is stuck in its last state. Unmeasured, for all its states, where
    nothing tells whether it was completed.

    >>> # it ended in the second of two states
    >>> value("state.stall", example("state: greet", "state: ask", outcome={"completed": False}))
    0.5
    >>> value("state.stall", example("state: greet", "state: ask"))
    'outcome_unknown'
    """
    yield from _observe(conversation, "stall")


@_state_metric(
    "state.escalation",
    version=3,
    label="states that hand over",
    importance=4,
    unit=SHARE,
    better=LOWER,
    reduce=_OF_STATES,
)
def escalation(conversation: Conversation) -> Iterator[Observation]:
    """Of the states that were entered, how many handed the caller over to a person?

    A state escalates where one of its visits was left for `escalated`, `escalate`, or a state that the flow
    declares as an escalation.

    >>> value("state.escalation", example("state: ask", "state: escalated"))
    0.5
    """
    yield from _observe(conversation, "escalation")


@_state_metric(
    "state.revisit",
    version=3,
    label="states entered again",
    unit=COUNT,
    better=LOWER,
    reduce=_OF_STATES,
)
def revisit(conversation: Conversation) -> Iterator[Observation]:
    """How often is a state entered again?

    Entries − 1 of each state, as a mean over the states that were entered.

    >>> # one of two states is entered a second time
    >>> value("state.revisit", example("state: ask", "state: confirm", "state: ask"))
    0.5
    """
    yield from _observe(conversation, "revisit")


@_state_metric(
    "state.dwell_turns",
    version=3,
    label="turns in a state each time",
    unit="turns",
    better=NEITHER,
    reduce=_OF_ALL_STATES,
)
def dwell_turns(conversation: Conversation) -> Iterator[Observation]:
    """How many turns does the agent spend in a state each time?

    Agent turns in the state ÷ its visits, as a mean over the states that were entered. Unmeasured where the log
    tells of no agent turn at all.

    >>> # two turns in two visits of one state, and one turn in the other
    >>> ask, confirm = ("state: ask", "assistant: Which day?"), ("state: confirm", "assistant: Monday?")
    >>> value("state.dwell_turns", example(*ask, *confirm, *ask))
    1.0
    """
    yield from _observe(conversation, "dwell_turns")


@_state_metric(
    "state.latency_p95_ms", version=4, label="slow turns of a state", unit="ms", better=LOWER, reduce=_OF_STATES
)
def latency_p95_ms(conversation: Conversation) -> Iterator[Observation]:
    """How slow are the slow turns of a state?

    The 95th percentile of the latencies of the turns in a state, as a mean over the states in which turns were
    timed. The state matrix has the percentile over all turns of a state. Unmeasured where every latency of the
    conversation is exactly 0.

    >>> turn = {"type": "component_metric", "component": "turn"}
    >>> turns = [{**turn, "values": {"latency_ms": latency}} for latency in (0, 1000)]
    >>> value("state.latency_p95_ms", example("state: ask", *turns))
    950.0
    """
    yield from _observe(conversation, "latency_p95_ms")


@_state_metric(
    "state.guard_error", version=3, label="guards that fail", unit=COUNT, better=LOWER, reduce=_OF_ALL_STATES
)
def guard_error(conversation: Conversation) -> Iterator[Observation]:
    """How often does a guard of a state fail to evaluate?

    Guard evaluations with an error, as a mean over the states that were entered. Unmeasured where the log is of
    a kind that does not tell of guards.

    >>> # one error in two states
    >>> failed = {"type": "guard_evaluated", "guard": "has_day", "error": "no such slot"}
    >>> value("state.guard_error", example("state: ask", failed, "state: done"))
    0.5
    """
    yield from _observe(conversation, "guard_error")


_RATES = Reduce(RATIO, MEAN_OF_CONVERSATIONS)


@_state_metric(
    "state.slot_fill_rate", version=3, label="slots filled in their state", unit=SHARE, better=HIGHER, reduce=_RATES
)
def slot_fill_rate(conversation: Conversation) -> Iterator[Observation]:
    """How many of the slots that a state requires are collected in that state?

    Required slots that were committed in the state before it was last left ÷ required, as a mean over the states
    that require any. A caller who says everything at once leaves later states with 0, which is healthy: read it
    together with progress. Not applicable where no state that was entered requires a slot; unmeasured without a
    definition of the flow.

    >>> # the day is filled in the state, the phone is not
    >>> flow = {"name": "booking", "states": [{"name": "ask", "required_slots": ["day", "phone"]}]}
    >>> fill = {"type": "slot_filled", "slot": "day", "value": "Monday", "state": "ask"}
    >>> value("state.slot_fill_rate", example("state: ask", fill, flow=flow))
    0.5
    """
    yield from _observe(conversation, "slot_fill_rate")


@_state_metric(
    "state.slot_ready_rate",
    version=2,
    label="slots filled when a state is left",
    unit=SHARE,
    better=HIGHER,
    reduce=_RATES,
)
def slot_ready_rate(conversation: Conversation) -> Iterator[Observation]:
    """How many of the slots that a state requires are filled when it is left?

    Required slots that were committed before the state was last left, in it or in a state before ÷ required, as a
    mean over the states that require any. Not applicable where no state that was entered requires a slot;
    unmeasured without a definition of the flow.

    >>> # the day is filled before the state is entered
    >>> flow = {"name": "booking", "states": [{"name": "greet"}, {"name": "ask", "required_slots": ["day"]}]}
    >>> fill = {"type": "slot_filled", "slot": "day", "value": "Monday", "state": "greet"}
    >>> value("state.slot_ready_rate", example("state: greet", fill, "state: ask", flow=flow))
    1.0
    """
    yield from _observe(conversation, "slot_ready_rate")


def _observe(conversation: Conversation, column: str) -> Iterator[Observation]:
    """One score for each state: what its row says; what has no value is explained there."""
    value_of, explained_by = attrgetter(column), EXPLAINED_BY.get(column, column)
    for row in state_rows(conversation):
        value, subject = value_of(row), _subject(row.state, row.position)
        if value is not None:
            yield ratio(subject, float(value), 1.0)
        else:
            reason = row.reasons[explained_by]
            explain = not_applicable if reason in NO_OPPORTUNITY else unmeasured
            yield explain(subject, reason)


EXPLAINED_BY = {"slot_ready_rate": "slot_fill_rate"}
"""Columns without a value whose reason is under another name."""
NO_OPPORTUNITY = frozenset(("nothing_required", "state_not_declared", "no_turn_ran"))
"""Reasons for which there is nothing to measure, rather than something that could not be."""


@lru_cache(4096)
def _subject(state: str, position: int) -> Subject:
    return subject_of(State(state, position))


ENTERED, EXITED = "state_entered", "state_exited"
MOVES = (ENTERED, EXITED)


class _StateEvent(msgspec.Struct):
    type: str
    state: str = ""
    to_state: str = ""


class _Body(msgspec.Struct):
    timeline: list[_StateEvent] = []


_decode = msgspec.json.Decoder(_Body).decode


def recount_visits(body: str | bytes) -> dict[str, int]:
    """Visits by state, from the events alone: each entry is one, and so is each exit without an entry.

    A log without any entry enters a state by leaving the one before for it. The audit compares the rows with this
    count, which takes another way than the walk.
    """
    moves = [event for event in _decode(body).timeline if event.type in MOVES and event.state]
    has_entries = any(event.type == ENTERED for event in moves)
    visits: Counter[str] = Counter()
    unanswered: Counter[str] = Counter()
    for event in moves:
        if event.type == ENTERED:
            visits[event.state] += 1
            unanswered[event.state] += 1
            continue
        if unanswered[event.state]:
            unanswered[event.state] -= 1
        else:
            visits[event.state] += 1
        if not has_entries and event.to_state:
            visits[event.to_state] += 1
            unanswered[event.to_state] += 1
    return dict(visits)


_OF_CONVERSATION = (
    "(SELECT any_value({}) FROM conversations AS c WHERE c.run = states.run AND c.conversation = states.conversation)"
)
_PERSONA = "json_extract_string(c.dimensions, '$.persona')"
# The metrics of the seed under their names.
_STATE_SCORES = f"""
    run, conversation, flow, agent, {_OF_CONVERSATION.format("c.model")} AS model,
    {_OF_CONVERSATION.format(_PERSONA)} AS persona, state, segment, visits,
    {", ".join(STATE_METRICS)}, slot_ready_rate, to_states
"""

STATE_TABLE = SideTable(
    name="states",
    what="what a state did in a conversation",
    row=StateRow,
    rows=state_rows,
    key="state",
    combine={
        "segment": "min(segment)",
        "n": "count(*)",
        "visits": "sum(visits)::BIGINT",
        "turns": "sum(turns)::BIGINT",
        "guard_errors": "sum(guard_error)::BIGINT",
        "guarded": "count(*) FILTER (guard_error > 0)",
        "revisited": "count(*) FILTER (revisit > 0)",
        "front_loaded": "sum(front_loaded)::BIGINT",
        "latency_n": "sum(len(latencies))::BIGINT",
        "latency_p95_ms": "list_aggregate(flatten(list(latencies)), 'quantile_cont', 0.95)",
    },
    views={"state_scores": _STATE_SCORES},
    counted="visits",
    recount=recount_visits,
    mentions=MOVES,
)
