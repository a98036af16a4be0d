"""Metrics of turn-taking in a call: who waits, who interrupts, who gives way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import (
    CONVERSATION,
    COUNT,
    HIGHER,
    LOWER,
    RATIO,
    TURN,
    metric,
)
from convoscope.metrics.latency.measures import without_zeros
from convoscope.metrics.needs import Need
from convoscope.metrics.perturbations import EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS
from convoscope.metrics.presets import share_metric, wait_metric
from convoscope.metrics.voice.call_facts import CALL, NO_REPLY, SOUND, inapplicable
from convoscope.metrics.voice.turn_analysis import (
    EARLY_MS,
    LATE_MS,
    LATE_WITH_TOOL_MS,
    NOT_EVALUABLE,
    EvaluatedTurn,
    analyse_turns,
    each_turn,
)
from convoscope.scores.observation import Observation, in_turn, measured, ratio
from convoscope.scores.reducers import (
    MEAN,
    MEAN_OF_CONVERSATIONS,
    Reduce,
    percentile,
)
from convoscope.views import MetricContext

_NEEDS = (CALL, SOUND)
_rate_metric = partial(share_metric, observes=TURN, needs=_NEEDS, undefined_under=(EMPTY_AGENT,))


def _logs_nudges(conversation: Conversation) -> bool:
    if conversation.contents.has_fallback:
        return True
    return bool(conversation.log) and any(record.source == "audit" for record in conversation.log)


NUDGES = Need(
    code="nudges_not_logged",
    field="timeline.utterance.manner",
    unlock="a log that marks what the agent said only because its turn detection gave up",
    present=_logs_nudges,
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

    Per turn with sound of both sides, from 0 to 1. Nobody interrupts: by the wait for the reply, 1
    from 0.5 to 2 s (3 s with a tool call), 0 at -0.5 s and at 3.5 s (5 s). The agent speaks over the
    user: the worst of how long, how often and how late it answers then, at most 0.5. The user breaks
    in: by how soon the agent falls silent, 0 at 2 s. Both: the worse. A nudge after a turn that the
    agent did not see end: 0. A turn without a reply: 0, but for the last of a user who left. A call that
    ends in silence when it was the agent's turn is 0 as a whole.
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


@_taking_metric("voice.turn_taking", variant="eva", version=2)
def turn_taking_eva(context: MetricContext) -> Iterator[Observation]:
    """Does the agent speak when it is its turn, and only then, in the turns in which it speaks?

    As EVA publishes it: `voice.turn_taking` of the turns with sound of both sides alone. A turn without a reply
    counts nowhere, so that an agent which answers once and then ignores the user takes its turns well.
    """
    yield from _taken(context)


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
    """How long is the silence before the reply, where nobody interrupts?

    From the end of the user's last sound to the start of the agent's first. Turns with an
    interruption, and replies that begin before the user's last sound, are no wait: not applicable.
    Where all are exactly 0, the log's clock tells nothing, and they are unmeasured.
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
    """
    yield from _timed(context, lambda ms, late: EARLY_MS <= ms < late)


@_rate_metric("voice.turn_taking.early_rate", version=3, better=LOWER, sensitive_to=(EQUAL_TIMES,))
def early_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the replies comes too early?

    In less than 0.2 s; of the turns without an interruption.
    """
    yield from _timed(context, lambda ms, _: ms < EARLY_MS)


@_rate_metric("voice.turn_taking.late_rate", version=3, better=LOWER, sensitive_to=(SKEWED_CLOCKS,))
def late_rate(context: MetricContext) -> Iterator[Observation]:
    """What share of the replies comes too late?

    After 2.75 s or more, with a tool call after 4 s or more; of the turns without an interruption.
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


@share_metric(
    "voice.turn_taking.fallback_nudge.rate",
    version=3,
    observes=TURN,
    better=LOWER,
    needs=(*_NEEDS, NUDGES),
    sensitive_to=(),
    undefined_under=(EMPTY_AGENT,),
)
def fallback_nudge_rate(context: MetricContext) -> Iterator[Observation]:
    """In what share of the turns did the agent have to be nudged to reply?

    1 for a turn whose end the agent's turn detection did not see, so that a fallback made it speak,
    else 0. Unmeasured where the log would not show a nudge.
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
    """
    return measured(context, len(context.fallback_turn_ids), details={"turns": sorted(context.fallback_turn_ids)})
