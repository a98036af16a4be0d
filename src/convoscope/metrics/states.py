"""What the states of a flow did, over all states that a conversation was in (flow-states, tier 1).

The row of each state is kept beside the scores, in the table `state_scores`; these are the figures over them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convoscope.conversation import Conversation
from convoscope.flows.totals import totals
from convoscope.metrics.declaration import CONVERSATION, COUNT, HIGHER, LOWER, NEITHER, SHARE, metric
from convoscope.metrics.drop_off import STATES
from convoscope.metrics.needs import NOT_BROKEN
from convoscope.metrics.reduction import MEAN_OF_CONVERSATIONS, RATIO, RATIO_OF_SUMS, Reduce
from convoscope.metrics.score import WHOLE, Observation, ratio, unmeasured

_OF_STATES = Reduce(RATIO, RATIO_OF_SUMS)
_NAMED = 5


@metric(
    "state.progress",
    version=1,
    observes=CONVERSATION,
    unit=SHARE,
    better=HIGHER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def progress(conversation: Conversation) -> Observation:
    """Of the states that were entered, how many led on?

    A state led on where one of its visits was left for a state that is not itself, not an escalation, and not
    one that was visited before, unless the flow's order says that it is ahead. Ends of the flow lead nowhere:
    they count as states that did not lead on.
    """
    found = totals(conversation)
    return _share(found.progress, found.states, "stayed", found.stayed)


@metric(
    "state.stall",
    version=1,
    observes=CONVERSATION,
    unit=SHARE,
    better=LOWER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def stall(conversation: Conversation) -> Observation:
    """Of the states that were entered, how many did the conversation get stuck in?

    A conversation that was not completed is stuck in its last state. Unmeasured where nothing tells whether it
    was completed.
    """
    found = totals(conversation)
    if found.stall is None:
        return unmeasured(WHOLE, "outcome_unknown")
    return _share(found.stall, found.states, "stuck_in", found.stuck)


@metric(
    "state.escalation",
    version=1,
    observes=CONVERSATION,
    unit=SHARE,
    better=LOWER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def escalation(conversation: Conversation) -> Observation:
    """Of the states that were entered, how many handed the caller over to somebody else?

    A state escalates where one of its visits was left for `escalated`, `escalate`, or a state that the flow
    declares as an escalation.
    """
    found = totals(conversation)
    return _share(found.escalation, found.states, "escalated_from", found.escalated)


@metric(
    "state.revisit",
    version=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def revisit(conversation: Conversation) -> Observation:
    """How often is a state entered again?

    Entries − 1 of each state, as a mean over the states that were entered.
    """
    found = totals(conversation)
    details = {"entered_again": found.again} if found.again else None
    return _mean(found.revisit, found.states, details)


@metric(
    "state.dwell_turns",
    version=1,
    observes=CONVERSATION,
    unit="turns",
    better=NEITHER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def dwell_turns(conversation: Conversation) -> Observation:
    """How many turns does the agent spend in a state each time?

    Agent turns in the state ÷ its visits, as a mean over the states that were entered. Unmeasured where the log
    tells of no agent turn at all.
    """
    found = totals(conversation)
    if found.dwell_turns is None:
        return unmeasured(WHOLE, "no_turns_logged")
    return _mean(found.dwell_turns, found.states)


@metric(
    "state.latency_p95_ms",
    version=1,
    observes=CONVERSATION,
    unit="ms",
    better=LOWER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def latency_p95_ms(conversation: Conversation) -> Observation:
    """How slow are the slow turns of a state?

    The 95th percentile of the latencies of the turns in a state, as a mean over the states in which turns were
    timed. The state matrix has the percentile over all turns of a state.
    """
    found = totals(conversation)
    if not found.timed:
        return unmeasured(WHOLE, "no_latency_logged")
    return ratio(WHOLE, found.latency_p95_ms, float(found.timed), empty="no_latency_logged")


@metric(
    "state.guard_error",
    version=1,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(NOT_BROKEN, STATES),
    reduce=_OF_STATES,
)
def guard_error(conversation: Conversation) -> Observation:
    """How often does a guard of a state fail to evaluate?

    Guard evaluations with an error, as a mean over the states that were entered. Unmeasured where the log is of
    a kind that does not tell of guards.
    """
    found = totals(conversation)
    if found.guard_error is None:
        return unmeasured(WHOLE, "no_guards_logged")
    return _mean(found.guard_error, found.states, {"failed_in": found.failed} if found.failed else None)


@metric(
    "state.slot_fill_rate",
    version=1,
    observes=CONVERSATION,
    unit=SHARE,
    better=HIGHER,
    needs=(NOT_BROKEN, STATES),
    reduce=Reduce(RATIO, MEAN_OF_CONVERSATIONS),
)
def slot_fill_rate(conversation: Conversation) -> Observation:
    """How many of the slots that a state requires are collected in that state?

    Required slots that were committed in the state before it was last left ÷ required, as a mean over the states
    that require any. A caller who says everything at once leaves later states with 0, which is healthy: read it
    together with progress. Not applicable where no state that was entered requires a slot; unmeasured without a
    definition of the flow.
    """
    found = totals(conversation)
    if not found.filling and conversation.flow is None:
        return unmeasured(WHOLE, "no_flow_definition")
    details = {"front_loaded": found.front_loaded} if found.front_loaded else None
    return ratio(WHOLE, float(found.fill_rate), float(found.filling), empty="nothing_required", details=details)


def _share(count: int, states: int, name: str, found: list[str]) -> Observation:
    return _mean(count, states, {name: found[:_NAMED]} if found else None)


def _mean(total: float, states: int, details: Mapping[str, Any] | None = None) -> Observation:
    return ratio(WHOLE, float(total), float(states), empty="no_state_ran", details=details)
