"""What the states of a flow did, over all states that a conversation was in (flow-states, tier 1).

The row of each state is kept beside the scores, in the table `state_scores`; these are the figures over them.
"""

from __future__ import annotations

from collections.abc import Sequence

from convoscope.conversation import Conversation
from convoscope.flows.rows import StateRow, state_rows
from convoscope.metrics.declaration import CONVERSATION, COUNT, HIGHER, LOWER, NEITHER, SHARE, metric
from convoscope.metrics.drop_off import STATES
from convoscope.metrics.needs import NOT_BROKEN
from convoscope.metrics.reduction import MEAN_OF_CONVERSATIONS, RATIO, RATIO_OF_SUMS, Reduce
from convoscope.metrics.score import Observation, ratio, unmeasured

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
    rows = state_rows(conversation)
    return _share(conversation, rows, [row.progress for row in rows], "stayed", 0)


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
    rows = state_rows(conversation)
    if any(row.stall is None for row in rows):
        return unmeasured(conversation, "outcome_unknown")
    return _share(conversation, rows, [row.stall or 0 for row in rows], "stuck_in", 1)


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
    rows = state_rows(conversation)
    return _share(conversation, rows, [row.escalation for row in rows], "escalated_from", 1)


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
    rows = state_rows(conversation)
    again = {row.state: row.revisit for row in rows if row.revisit}
    details = {"entered_again": again} if again else None
    return ratio(conversation, sum(row.revisit for row in rows), len(rows), empty="no_state_ran", details=details)


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
    rows = state_rows(conversation)
    if any(row.dwell_turns is None for row in rows):
        return unmeasured(conversation, "no_turns_logged")
    return ratio(conversation, sum(row.dwell_turns or 0.0 for row in rows), len(rows), empty="no_state_ran")


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
    timed = [row.latency_p95_ms for row in state_rows(conversation) if row.latency_p95_ms is not None]
    if not timed:
        return unmeasured(conversation, "no_latency_logged")
    return ratio(conversation, sum(timed), len(timed), empty="no_latency_logged")


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
    rows = state_rows(conversation)
    if any(row.guard_error is None for row in rows):
        return unmeasured(conversation, "no_guards_logged")
    failed = {row.state: row.guard_error for row in rows if row.guard_error}
    details = {"failed_in": failed} if failed else None
    return ratio(
        conversation, sum(row.guard_error or 0 for row in rows), len(rows), empty="no_state_ran", details=details
    )


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
    rows = state_rows(conversation)
    rates = [row.slot_fill_rate for row in rows if row.slot_fill_rate is not None]
    if not rates and conversation.flow is None:
        return unmeasured(conversation, "no_flow_definition")
    early = sum(row.front_loaded or 0 for row in rows)
    details = {"front_loaded": early} if early else None
    return ratio(conversation, sum(rates), len(rates), empty="nothing_required", details=details)


def _share(
    conversation: Conversation, rows: Sequence[StateRow], marks: Sequence[int], name: str, mark: int
) -> Observation:
    found = [row.state for row, one in zip(rows, marks, strict=True) if one == mark][:_NAMED]
    return ratio(conversation, sum(marks), len(rows), empty="no_state_ran", details={name: found} if found else None)
