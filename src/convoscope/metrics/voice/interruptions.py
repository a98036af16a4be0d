"""Metrics of interruptions in a call: the agent speaks over the user, the user breaks in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from convoscope.metrics.declaration import COUNT, HIGHER, LOWER, NEITHER, RATIO, SECONDS, SHARE, TURN, metric
from convoscope.metrics.perturbations import EMPTY_AGENT, SKEWED_CLOCKS
from convoscope.metrics.presets import MEAN_OF_ALL, SUM_OVER_SUM
from convoscope.metrics.voice.call_facts import CALL, SOUND, inapplicable
from convoscope.metrics.voice.turn_analysis import (
    NOT_EVALUABLE,
    BargeIn,
    EvaluatedTurn,
    count_score,
    each_turn,
    latency_score,
    overlap_score,
    yield_score,
)
from convoscope.scores.observation import Observation, in_turn, measured, ratio
from convoscope.scores.reducers import MEAN_OF_CONVERSATIONS, SUM, Reduce
from convoscope.views import MetricContext

_NEEDS = (CALL, SOUND)
_turn_metric = partial(metric, observes=TURN, needs=_NEEDS, sensitive_to=(), undefined_under=(EMPTY_AGENT,))
_rate_metric = partial(_turn_metric, unit=SHARE, reduce=SUM_OVER_SUM)
_seconds_metric = partial(_turn_metric, unit=SECONDS, better=LOWER, reduce=MEAN_OF_ALL)
_score_metric = partial(_turn_metric, unit=RATIO, better=HIGHER, reduce=MEAN_OF_ALL)
_PER_CALL = Reduce(SUM, MEAN_OF_CONVERSATIONS)


@_rate_metric("voice.turn_taking.agent_interruption.rate", version=3, better=LOWER)
def agent_interruption_rate(context: MetricContext) -> Iterator[Observation]:
    """In what share of the turns does the agent speak over the user?

    1 for a turn in which the agent begins while the user is speaking and the two sounds overlap by
    more than a millisecond, else 0. Of the turns with a reply: it does not see an agent that talks
    through the rest of the call, which `agent.talks_over_user` does.
    """
    yield from each_turn(context, lambda one: ratio(in_turn(one.id), one.barge_in is not None, 1, empty=NOT_EVALUABLE))


@metric(
    "voice.turn_taking.agent_interruption.count",
    version=3,
    observes=TURN,
    unit=COUNT,
    better=LOWER,
    needs=_NEEDS,
    reduce=_PER_CALL,
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def agent_interruption_count(context: MetricContext) -> Iterator[Observation]:
    """How often does the agent speak over the user?

    Per turn: the stretches of the agent's sound that overlap the user's by more than a millisecond,
    where the agent interrupted; else 0. Per call: their sum.
    """
    yield from each_turn(context, lambda one: measured(in_turn(one.id), one.barge_in.times if one.barge_in else 0))


@_seconds_metric("voice.turn_taking.agent_interruption.overlap", version=3)
def agent_interruption_overlap(context: MetricContext) -> Iterator[Observation]:
    """How long do both speak at once where the agent interrupts?

    The sum over all pairs of stretches of sound; of the turns in which the agent interrupts.
    """
    yield from _interrupted(context, lambda barge_in, _: barge_in.overlap)


@_score_metric("voice.turn_taking.agent_interruption.overlap_score", version=3)
def agent_interruption_overlap_score(context: MetricContext) -> Iterator[Observation]:
    """How tolerable is the time for which both speak at once?

    0.5 for almost none, 0 from 2 s on; of the turns in which the agent interrupts.
    """
    yield from _interrupted(context, lambda barge_in, _: overlap_score(1000 * barge_in.overlap))


@_score_metric("voice.turn_taking.agent_interruption.count_score", version=3)
def agent_interruption_count_score(context: MetricContext) -> Iterator[Observation]:
    """How tolerable is the number of times that the agent speaks over the user in a turn?

    0.5 for once, 0.25 for twice, 0 for more; of the turns in which the agent interrupts.
    """
    yield from _interrupted(context, lambda barge_in, _: count_score(barge_in.times))


@_seconds_metric("voice.turn_taking.agent_interruption.post_interrupt_latency", version=3)
def post_interrupt_latency(context: MetricContext) -> Iterator[Observation]:
    """After an interruption, how long does the user wait for the answer?

    From the end of the user's last sound to the agent's next one. An agent that speaks through that
    end, or says no more, leaves no wait: not applicable.
    """
    yield from _interrupted(context, lambda barge_in, _: barge_in.wait_after)


@_score_metric("voice.turn_taking.agent_interruption.post_interrupt_latency_score", version=3)
def post_interrupt_latency_score(context: MetricContext) -> Iterator[Observation]:
    """How good is the wait for the answer after an interruption?

    By the same curve as the wait for any reply; not applicable where there is no such wait.
    """
    yield from _interrupted(
        context,
        lambda barge_in, tool: (
            None if barge_in.wait_after is None else latency_score(1000 * barge_in.wait_after, tool=tool)
        ),
    )


def _interrupted(context: MetricContext, value: Callable[[BargeIn, bool], float | None]) -> Iterator[Observation]:
    def observe_turn(turn: EvaluatedTurn) -> Observation:
        if turn.barge_in is None:
            return inapplicable(turn.id, "agent_did_not_interrupt")
        result = value(turn.barge_in, turn.tool)
        if result is None:
            why = "spoke_through" if turn.barge_in.spoke_through else "said_no_more"
            return inapplicable(turn.id, why)
        return measured(in_turn(turn.id), result)

    yield from each_turn(context, observe_turn)


@_rate_metric("voice.turn_taking.user_interruption.rate", version=3, better=NEITHER)
def user_interruption_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the turns does the user open while the agent is still speaking?

    1 for a turn whose first sound begins more than a millisecond before the agent's earlier words
    end, else 0. Neither good nor bad: it is the user who does it. Of the turns with a reply: whether
    the agent ever stopped, `agent.talks_over_user` says.
    """
    yield from each_turn(context, lambda one: ratio(in_turn(one.id), one.yielded is not None, 1, empty=NOT_EVALUABLE))


@_seconds_metric("voice.turn_taking.user_interruption.yield_time", version=3, sensitive_to=(SKEWED_CLOCKS,))
def yield_time(context: MetricContext) -> Iterator[Observation]:
    """How long does the agent go on when the user breaks in?

    From the user's first sound to the end of what the agent was saying; of the turns that the user
    opens by breaking in.
    """
    yield from each_turn(context, lambda one: _yielding(one, lambda seconds: seconds))


@_score_metric("voice.turn_taking.user_interruption.yield_score", version=3, sensitive_to=(SKEWED_CLOCKS,))
def user_interruption_yield_score(context: MetricContext) -> Iterator[Observation]:
    """How well does the agent give way when the user breaks in?

    1 for at once, 0 from 2 s on; of the turns that the user opens by breaking in.
    """
    yield from each_turn(context, lambda one: _yielding(one, lambda seconds: yield_score(1000 * seconds)))


def _yielding(turn: EvaluatedTurn, value: Callable[[float], float]) -> Observation:
    if turn.yielded is None:
        return inapplicable(turn.id, "user_did_not_interrupt")
    return measured(in_turn(turn.id), value(turn.yielded))
