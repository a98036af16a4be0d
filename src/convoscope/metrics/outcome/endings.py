"""Metrics of how a conversation ended, and whether it succeeded."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from convoscope.conversation import Conversation, Logged
from convoscope.metrics.declaration import conversation_share_metric
from convoscope.metrics.needs import NOT_BROKEN, Need
from convoscope.metrics.outcome.task import ENDED_REASON
from convoscope.metrics.perturbations import EMPTY_AGENT
from convoscope.metrics.verdicts import or_verdict, with_verdicts
from convoscope.metrics.voice.call import CALL, INACTIVITY, left_waiting
from convoscope.scores.observation import UNMEASURED, Observation, measured, not_applicable, unmeasured
from convoscope.text.folding import folded_name
from convoscope.views import MetricContext, metric_context
from convoscope.views.flow.endings import outcome_of
from convoscope.views.user_turns import breakdown

NO_SIMULATOR = "no_simulator"


@conversation_share_metric(
    "outcome.conversation_correctly_finished",
    version=3,
    label="ended with an answer",
    importance=6,
    needs=(ENDED_REASON,),
    sensitive_to=(EMPTY_AGENT,),
)
def conversation_correctly_finished(conversation: Conversation) -> Observation:
    """Did the agent still answer when the call ended?

    0 where the call ended in silence and the user's sound was the last: the agent
    owed an answer. 0 also where the integration broke, and where the agent never said a word to a user
    who spoke. 1 for every other end, good or bad: whether the agent answered before, `agent.unanswered_turns`
    says. Unmeasured where the log does not say why it ended, or ended in silence and has no sound that
    says who spoke last.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Bye.", outcome={"ended_reason": "user_hangup"})
    >>> value(conversation_correctly_finished, call)
    1.0
    """
    fault = breakdown(conversation)
    if not fault:
        return _left_waiting(metric_context(conversation))
    return measured(conversation, 0, details={"ended_reason": conversation.outcome.ended_reason, "fault": fault})


@conversation_share_metric(
    "outcome.conversation_correctly_finished", variant="eva", version=1, needs=(ENDED_REASON,), sensitive_to=()
)
def conversation_correctly_finished_eva(context: MetricContext) -> Observation:
    """Was the user not left waiting until the call timed out?

    As EVA publishes it: 0 where the call ended in silence and the user's sound was the
    last, 1 for every other end. An agent that never speaks, and an integration that breaks, finish correctly.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Bye.", outcome={"ended_reason": "user_hangup"})
    >>> value(conversation_correctly_finished_eva, call)
    1.0
    """
    return _left_waiting(context)


def _left_waiting(context: MetricContext) -> Observation:
    waiting = left_waiting(context)
    if waiting is None:
        return unmeasured(context, "no_sound", "who spoke last?")
    return measured(context, 0 if waiting else 1, details={"ended_reason": context.conversation_ended_reason})


@conversation_share_metric(
    "outcome.conversation_valid_end",
    version=3,
    needs=or_verdict((CALL,), "conversation_valid_end"),
    sensitive_to=(),
)
def conversation_valid_end(conversation: Conversation) -> Iterator[Observation]:
    """Did the simulated call end so that it says something about the agent?

    1 where the last thing that the simulator logged is the end of its connection after a goodbye, or
    where the agent left the user waiting until the call timed out; else 0, and the call is better
    simulated anew. Where the simulator's log breaks off, or does not say why it ended, the call's own
    reason for its end is used. Unmeasured without that, and where the simulator's log is missing. Not
    applicable where nothing says that a program played the user. What another program said of the same,
    in a label `conversation_valid_end`, is a score of its own.

    >>> end = {"source": "simulator", "kind": "connection_state", "value": {"details": {"reason": "goodbye"}}}
    >>> value(conversation_valid_end, example("0-1 user: Hi.", "2-3 assistant: Bye.", log=[end]))
    1.0
    """
    return with_verdicts(conversation, "conversation_valid_end", (CALL,), lambda: [_valid_end(conversation)])


def _valid_end(conversation: Conversation) -> Observation:
    last = next((record for record in reversed(conversation.log) if record.source == "simulator"), None)
    if last is not None and _reason(last) == "goodbye":
        return measured(conversation, 1, details={"end": "goodbye"})
    reason = folded_name(conversation.outcome.ended_reason)
    if last is not None and not any(_reason(record) for record in conversation.log):
        if reason == "goodbye":
            return measured(conversation, 1, details={"end": "goodbye", "told_by": "outcome.ended_reason"})
        if not reason:
            return unmeasured(conversation, "no_ended_reason", last.kind)
    waiting = left_waiting(metric_context(conversation)) if reason == INACTIVITY else False
    if waiting:
        return measured(conversation, 1, details={"end": "agent_timed_out"})
    if last is None:
        if conversation.scenario is None and conversation.source.format != "voice-logs":
            return not_applicable(conversation, NO_SIMULATOR)
        return unmeasured(conversation, "no_simulator_log")
    if waiting is None:
        return unmeasured(conversation, "no_sound", "who spoke last?")
    return measured(conversation, 0, details={"end": last.kind})


def _reason(record: Logged) -> str | None:
    """Why the connection ended, where this record says so."""
    details = record.value.get("details") if isinstance(record.value, dict) else None
    reason = details.get("reason") if isinstance(details, dict) else None
    return folded_name(reason) if record.kind == "connection_state" and isinstance(reason, str) else None


RAN_THROUGH = msgspec.structs.replace(NOT_BROKEN, status_if_missing=UNMEASURED)
"""A conversation that broke had an opportunity to succeed: it lowers the coverage."""
OUTCOME_KNOWN = Need(
    "outcome_unknown",
    "outcome",
    "your own verdict, named with --label; or `completed` in the log, or a flow that declares its ends",
    lambda conversation: outcome_of(conversation).done is not None,
)


@conversation_share_metric(
    "outcome.success",
    version=3,
    label="reach their goal",
    importance=10,
    needs=(RAN_THROUGH, OUTCOME_KNOWN),
    sensitive_to=(),
)
def success(conversation: Conversation) -> Observation:
    """Did the conversation reach what it was for?

    1 where it is done, 0 where it is lost: by the user's own label, else by what the log says of it, else by the end
    that the flow came to. Unmeasured where none of these says, and where the integration broke: that says nothing
    about the agent, whatever the label is.

    >>> value(success, example("user: Book it.", "assistant: Done.", outcome={"completed": True}))
    1.0
    """
    reading = outcome_of(conversation)
    return measured(conversation, 1 if reading.done else 0, details={"told_by": reading.evidence})
