"""Metrics of turn taking in a call: when the agent speaks, and who interrupts whom."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    HIGHER,
    LOWER,
    MEAN_OF_ALL,
    NEITHER,
    RATIO,
    SECONDS,
    SHARE,
    SUM_OVER_SUM,
    TURN,
    metric,
    share_metric,
    wait_metric,
)
from convoscope.metrics.latency.turns import without_zeros
from convoscope.metrics.needs import Need
from convoscope.metrics.perturbations import EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS
from convoscope.metrics.verdicts import or_verdict, with_verdicts
from convoscope.metrics.voice.call import CALL, NO_REPLY, SOUND, inapplicable
from convoscope.metrics.voice.turn_analysis import (
    EARLY_MS,
    LATE_MS,
    LATE_WITH_TOOL_MS,
    NOT_EVALUABLE,
    BargeIn,
    EvaluatedTurn,
    analyse_turns,
    count_score,
    each_turn,
    latency_score,
    overlap_score,
    yield_score,
)
from convoscope.scores.observation import Observation, in_turn, measured, ratio
from convoscope.scores.reducers import (
    MEAN,
    MEAN_OF_CONVERSATIONS,
    SUM,
    Reduce,
    percentile,
)
from convoscope.views import MetricContext, metric_context

_NEEDS = (CALL, SOUND)
_rate_metric = partial(share_metric, observes=TURN, needs=_NEEDS, undefined_under=(EMPTY_AGENT,))


NUDGES = Need(
    "nudges_not_logged",
    "timeline.utterance.manner",
    "a log that marks what the agent said only because its turn detection gave up",
    lambda conversation: (
        conversation.contents.has_fallback or any(record.source == "audit" for record in conversation.log)
    ),
)


_taking_metric = partial(
    metric,
    observes=TURN,
    unit=RATIO,
    better=HIGHER,
    needs=_NEEDS,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    sensitive_to=(EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS),
)


@_taking_metric("voice.turn_taking", version=3, label="turn-taking", importance=6)
def turn_taking(context: MetricContext) -> Iterator[Observation]:
    """Does the agent speak when it is its turn, and only then?

    Per turn with sound of both sides, from 0 to 1. Without an interruption: by the wait for the reply, 1
    from 0.5 to 2 s (3 s with a tool call), 0 at -0.5 s and at 3.5 s (5 s). The agent speaks over the
    user: the worst of how long, how often and how late it answers then, at most 0.5. The user breaks
    in: by how soon the agent falls silent, 0 at 2 s. Both: the worse. A nudge after a turn that the
    agent did not see end: 0. A turn without a reply: 0, but for the last of a user who left. A call that
    ends in silence when it was the agent's turn is 0 as a whole.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "6-7 assistant: Yes.")
    >>> value(turn_taking, call)  # two replies after 1 s
    1.0
    """
    analysis = analyse_turns(context)
    silent = {turn for turn, reason in analysis.without.items() if reason == NO_REPLY}
    if not silent or analysis.left_waiting:
        yield from _taken(context)
        return
    for turn in analysis.turns:
        if isinstance(turn, EvaluatedTurn):
            yield measured(in_turn(turn.id), turn.score, details=turn.evidence)
        elif turn.subject.position in silent:
            yield measured(turn.subject, 0, details={"reason": NO_REPLY})
        else:
            yield turn


@_taking_metric("voice.turn_taking", variant="eva", version=3, needs=or_verdict(_NEEDS, "turn_taking"))
def turn_taking_eva(conversation: Conversation) -> Iterator[Observation]:
    """Does the agent speak when it is its turn, and only then, in the turns in which it speaks?

    As EVA publishes it: `voice.turn_taking` of the turns with sound of both sides alone. A turn without a reply
    counts nowhere, so that an agent which answers once and then ignores the user takes its turns well. What EVA
    itself said, in a label `turn_taking`, is a score of its own.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "6-7 assistant: Yes.")
    >>> value(turn_taking_eva, call)  # two replies after 1 s
    1.0
    """
    return with_verdicts(conversation, "turn_taking", _NEEDS, lambda: _taken(metric_context(conversation)))


def _taken(context: MetricContext) -> Iterator[Observation]:
    analysis = analyse_turns(context)
    if analysis.left_waiting:
        turns = {str(one.id): {"score": one.score, **one.evidence} for one in analysis.evaluated.values()}
        yield measured(context, 0, details={"left_waiting": True, "turns": turns})
    else:
        yield from each_turn(context, lambda one: measured(in_turn(one.id), one.score, details=one.evidence))


@wait_metric(
    "voice.turn_taking.latency",
    version=3,
    needs=_NEEDS,
    sensitive_to=(SKEWED_CLOCKS,),
    undefined_under=(EMPTY_AGENT, EQUAL_TIMES),
    also={"p50": percentile(50), "p90": percentile(90)},
)
def latency(context: MetricContext) -> Iterator[Observation]:
    """How long is the silence before the reply, where neither side interrupts?

    From the end of the user's last sound to the start of the agent's first. Turns with an
    interruption, and replies that begin before the user's last sound, are no wait: not applicable.
    Where all are exactly 0, the log's clock says nothing, and they are unmeasured.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "6-7 assistant: Yes.")
    >>> value(latency, call)
    1.0
    """
    yield from without_zeros(list(each_turn(context, _wait)))


def _wait(turn: EvaluatedTurn) -> Observation:
    if turn.gap is None:
        return inapplicable(turn.id, "interrupted")
    if turn.gap < 0:
        return inapplicable(turn.id, "replied_before_the_end")
    return measured(in_turn(turn.id), turn.gap)


@_rate_metric("voice.turn_taking.on_time_rate", version=3, better=HIGHER, sensitive_to=(EQUAL_TIMES, SKEWED_CLOCKS))
def on_time_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the replies comes neither too early nor too late?

    From 0.2 s up to 2.75 s, with a tool call up to 4 s; of the turns without an interruption.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "6-7 assistant: Yes.")
    >>> value(on_time_rate, call)
    1.0
    """
    yield from _timed(context, lambda ms, late: EARLY_MS <= ms < late)


@_rate_metric("voice.turn_taking.early_rate", version=3, better=LOWER, sensitive_to=(EQUAL_TIMES,))
def early_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the replies comes too early?

    In less than 0.2 s; of the turns without an interruption.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "6-7 assistant: Yes.")
    >>> value(early_rate, call)
    0.0
    """
    yield from _timed(context, lambda ms, _: ms < EARLY_MS)


@_rate_metric("voice.turn_taking.late_rate", version=3, better=LOWER, sensitive_to=(SKEWED_CLOCKS,))
def late_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the replies comes too late?

    After 2.75 s or more, with a tool call after 4 s or more; of the turns without an interruption.

    >>> value(late_rate, example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "25-26 assistant: Yes."))
    0.5
    """
    yield from _timed(context, lambda ms, late: ms >= late)


def _timed(context: MetricContext, fits: Callable[[float, float], bool]) -> Iterator[Observation]:
    def observe_turn(turn: EvaluatedTurn) -> Observation:
        if turn.gap is None:
            return inapplicable(turn.id, "interrupted")
        # Seconds are whole microseconds; their product with 1000 is not always a whole number of them.
        ms = round(1000 * turn.gap, 3)
        late = LATE_WITH_TOOL_MS if turn.tool else LATE_MS
        return ratio(in_turn(turn.id), fits(ms, late), 1, empty=NOT_EVALUABLE, details={"latency": turn.gap})

    yield from each_turn(context, observe_turn)


@_rate_metric(
    "voice.turn_taking.fallback_nudge.rate", version=3, better=LOWER, needs=(*_NEEDS, NUDGES), sensitive_to=()
)
def fallback_nudge_rate(context: MetricContext) -> Iterator[Observation]:
    """In what share of the turns did the agent have to be nudged to reply?

    1 for a turn whose end the agent's turn detection did not see, so that a fallback made it speak,
    else 0. Unmeasured where the log would not show a nudge.

    >>> nudged = {"type": "utterance", "speaker": "assistant", "manner": "fallback", "intended": {"text": "Hello?"}}
    >>> nudged["segments"] = [{"start": 9, "end": 10}]
    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: Two seats.", nudged)
    >>> value(fallback_nudge_rate, call)  # the second of two turns
    0.5
    """
    yield from each_turn(context, lambda one: ratio(in_turn(one.id), one.nudged, 1, empty=NOT_EVALUABLE))


@metric(
    "voice.turn_taking.fallback_nudge.count",
    version=2,
    observes=CONVERSATION,
    unit=COUNT,
    better=LOWER,
    needs=(CALL, NUDGES),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def fallback_nudge_count(context: MetricContext) -> Observation:
    """How often did the agent have to be nudged to reply?

    The turns in which a fallback made it speak, per call, whether or not there is sound of them.
    Unmeasured where the log would not show a nudge.

    >>> nudged = {"type": "utterance", "speaker": "assistant", "manner": "fallback", "intended": {"text": "Hello?"}}
    >>> nudged["segments"] = [{"start": 9, "end": 10}]
    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: Two seats.", nudged)
    >>> value(fallback_nudge_count, call)  # once
    1.0
    """
    return measured(context, len(context.fallback_turn_ids), details={"turns": sorted(context.fallback_turn_ids)})


_turn_metric = partial(metric, observes=TURN, needs=_NEEDS, sensitive_to=(), undefined_under=(EMPTY_AGENT,))
_share_of_turns = partial(_turn_metric, unit=SHARE, reduce=SUM_OVER_SUM)
_seconds_metric = partial(_turn_metric, unit=SECONDS, better=LOWER, reduce=MEAN_OF_ALL)
_score_metric = partial(_turn_metric, unit=RATIO, better=HIGHER, reduce=MEAN_OF_ALL)


@_share_of_turns("voice.turn_taking.agent_interruption.rate", version=3, better=LOWER)
def agent_interruption_rate(context: MetricContext) -> Iterator[Observation]:
    """In what share of the turns does the agent speak over the user?

    1 for a turn in which the agent begins while the user is speaking and the two sounds overlap by
    more than a millisecond, else 0. Of the turns with a reply: it does not see an agent that talks
    through the rest of the call, which `agent.talks_over_user` does.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(agent_interruption_rate, call)
    1.0
    """
    yield from each_turn(context, lambda one: ratio(in_turn(one.id), one.barge_in is not None, 1, empty=NOT_EVALUABLE))


@_turn_metric(
    "voice.turn_taking.agent_interruption.count",
    version=3,
    unit=COUNT,
    better=LOWER,
    reduce=Reduce(SUM, MEAN_OF_CONVERSATIONS),
)
def agent_interruption_count(context: MetricContext) -> Iterator[Observation]:
    """How often does the agent speak over the user?

    Per turn: the segments of the agent's sound that overlap the user's by more than a millisecond,
    where the agent interrupted; else 0. Per call: their sum.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(agent_interruption_count, call)
    1.0
    """
    yield from each_turn(context, lambda one: measured(in_turn(one.id), one.barge_in.times if one.barge_in else 0))


@_seconds_metric("voice.turn_taking.agent_interruption.overlap", version=3)
def agent_interruption_overlap(context: MetricContext) -> Iterator[Observation]:
    """How long do both speak at once where the agent interrupts?

    The sum over all pairs of segments of sound; of the turns in which the agent interrupts.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(agent_interruption_overlap, call)  # from 2 s to 3 s
    1.0
    """
    yield from _interrupted(context, lambda barge_in, _: barge_in.overlap)


@_score_metric("voice.turn_taking.agent_interruption.overlap_score", version=3)
def agent_interruption_overlap_score(context: MetricContext) -> Iterator[Observation]:
    """How tolerable is the time for which both speak at once?

    0.5 for almost none, 0 from 2 s on; of the turns in which the agent interrupts.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(agent_interruption_overlap_score, call)  # 1 s is half of the way from 0.5 to 0
    0.25
    """
    yield from _interrupted(context, lambda barge_in, _: overlap_score(1000 * barge_in.overlap))


@_score_metric("voice.turn_taking.agent_interruption.count_score", version=3)
def agent_interruption_count_score(context: MetricContext) -> Iterator[Observation]:
    """How tolerable is the number of times that the agent speaks over the user in a turn?

    0.5 for once, 0.25 for twice, 0 for more; of the turns in which the agent interrupts.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(agent_interruption_count_score, call)
    0.5
    """
    yield from _interrupted(context, lambda barge_in, _: count_score(barge_in.times))


@_seconds_metric("voice.turn_taking.agent_interruption.post_interrupt_latency", version=3)
def post_interrupt_latency(context: MetricContext) -> Iterator[Observation]:
    """After an interruption, how long does the user wait for the answer?

    From the end of the user's last sound to the agent's next one. An agent that speaks through that
    end, or says no more, leaves no wait: not applicable.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(post_interrupt_latency, call)  # from 4 s to 5 s
    1.0
    """
    yield from _interrupted(context, lambda barge_in, _: barge_in.wait_after)


@_score_metric("voice.turn_taking.agent_interruption.post_interrupt_latency_score", version=3)
def post_interrupt_latency_score(context: MetricContext) -> Iterator[Observation]:
    """How good is the wait for the answer after an interruption?

    By the same curve as the wait for any reply; not applicable where there is no such wait.

    >>> call = example("0-4 user: Two seats, please.", "2-3 assistant: Sure.", "5-6 assistant: Done.")
    >>> value(post_interrupt_latency_score, call)  # an answer after 1 s is on time
    1.0
    """

    def score(barge_in: BargeIn, tool: bool) -> float | None:
        return None if barge_in.wait_after is None else latency_score(1000 * barge_in.wait_after, tool=tool)

    yield from _interrupted(context, score)


def _interrupted(context: MetricContext, value: Callable[[BargeIn, bool], float | None]) -> Iterator[Observation]:
    def observe_turn(turn: EvaluatedTurn) -> Observation:
        if turn.barge_in is None:
            return inapplicable(turn.id, "agent_did_not_interrupt")
        result = value(turn.barge_in, turn.tool)
        if result is not None:
            return measured(in_turn(turn.id), result)
        return inapplicable(turn.id, "spoke_through" if turn.barge_in.spoke_through else "said_no_more")

    yield from each_turn(context, observe_turn)


@_share_of_turns("voice.turn_taking.user_interruption.rate", version=3, better=NEITHER)
def user_interruption_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the turns does the user open while the agent is still speaking?

    1 for a turn whose first sound begins more than a millisecond before the agent's earlier words
    end, else 0. Neither good nor bad: it is the user who does it. Of the turns with a reply: whether
    the agent ever stopped, `agent.talks_over_user` says.

    >>> call = example("0-1 user: Hi.", "2-5 assistant: Let me read it.", "4-6 user: Stop.", "7-8 assistant: Yes.")
    >>> value(user_interruption_rate, call)  # the second of two turns
    0.5
    """
    yield from each_turn(context, lambda one: ratio(in_turn(one.id), one.yielded is not None, 1, empty=NOT_EVALUABLE))


@_seconds_metric("voice.turn_taking.user_interruption.yield_time", version=3, sensitive_to=(SKEWED_CLOCKS,))
def yield_time(context: MetricContext) -> Iterator[Observation]:
    """How long does the agent go on when the user breaks in?

    From the user's first sound to the end of what the agent was saying; of the turns that the user
    opens by breaking in.

    >>> call = example("0-1 user: Hi.", "2-5 assistant: Let me read it.", "4-6 user: Stop.", "7-8 assistant: Yes.")
    >>> value(yield_time, call)  # from 4 s to 5 s
    1.0
    """
    yield from each_turn(context, lambda one: _yielding(one, lambda seconds: seconds))


@_score_metric("voice.turn_taking.user_interruption.yield_score", version=3, sensitive_to=(SKEWED_CLOCKS,))
def user_interruption_yield_score(context: MetricContext) -> Iterator[Observation]:
    """How well does the agent give way when the user breaks in?

    1 for at once, 0 from 2 s on; of the turns that the user opens by breaking in.

    >>> call = example("0-1 user: Hi.", "2-5 assistant: Let me read it.", "4-6 user: Stop.", "7-8 assistant: Yes.")
    >>> value(user_interruption_yield_score, call)  # 1 s of the 2 s after which it is 0
    0.5
    """
    yield from each_turn(context, lambda one: _yielding(one, lambda seconds: yield_score(1000 * seconds)))


def _yielding(turn: EvaluatedTurn, value: Callable[[float], float]) -> Observation:
    if turn.yielded is None:
        return inapplicable(turn.id, "user_did_not_interrupt")
    return measured(in_turn(turn.id), value(turn.yielded))
