"""Metrics of how fast the agent answers in a call, and which of its parts takes the time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeGuard

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.metrics.declaration import CONVERSATION, LOWER, SECONDS, TURN, Metric, metric
from convoscope.metrics.voice.call_facts import (
    CALL,
    assistant_spoke,
    inapplicable,
    turn_ids,
    turns_with_tools,
    user_spoke,
)
from convoscope.scores.observation import Observation, in_turn, measured, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, MEAN_OF_SUBJECTS, Reduce, percentile
from convoscope.views import MetricContext

_OF_TURNS = Reduce(MEAN, MEAN_OF_SUBJECTS)
_PERCENTILES = {"p50": percentile(50), "p95": percentile(95)}

LONGEST = 1000.0
"""Seconds. A longer wait is a fault of the log (voice logs, 1.4)."""


@metric(
    "voice.response_speed",
    version=1,
    observes=TURN,
    unit=SECONDS,
    better=LOWER,
    needs=(CALL,),
    reduce=_OF_TURNS,
    also=_PERCENTILES,
)
def response_speed(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer, as the call's own log has it?

    Per turn: the latency that the log states, else the one that the sound gives, from the end of the
    user's speech to the start of the reply. A wait of 0 or less is no wait: not applicable. One of
    1000 s or more is a fault of the log: unmeasured.
    """
    logged = context.latency_assistant_turns
    source = "sound" if logged == context.sound_latency_assistant_turns else "log"
    yield from _waits(context, logged, source)


@metric(
    "voice.response_speed.sound",
    version=1,
    observes=TURN,
    unit=SECONDS,
    better=LOWER,
    needs=(CALL,),
    reduce=_OF_TURNS,
    also=_PERCENTILES,
)
def sound(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer, by the sound alone?

    The same as `voice.response_speed`, but never from what the log states.
    """
    yield from _waits(context, context.sound_latency_assistant_turns, "sound")


@metric(
    "voice.response_speed.with_tool_calls",
    version=1,
    observes=TURN,
    unit=SECONDS,
    better=LOWER,
    needs=(CALL,),
    reduce=_OF_TURNS,
    also=_PERCENTILES,
)
def with_tool_calls(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer in turns in which it calls a tool?

    `voice.response_speed` of the turns with a tool call; the others are not applicable.
    """
    tools = turns_with_tools(context)
    yield from _only(context, lambda turn: turn in tools, "no_tool_calls")


@metric(
    "voice.response_speed.no_tool_calls",
    version=1,
    observes=TURN,
    unit=SECONDS,
    better=LOWER,
    needs=(CALL,),
    reduce=_OF_TURNS,
    also=_PERCENTILES,
)
def no_tool_calls(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer in turns without a tool call?

    `voice.response_speed` of the turns without a tool call; the others are not applicable.
    """
    tools = turns_with_tools(context)
    yield from _only(context, lambda turn: turn not in tools, "tool_calls")


def _only(context: MetricContext, counts: Callable[[int], bool], otherwise: str) -> Iterator[Observation]:
    for one in response_speed.function(context):
        if one.subject.kind != "turn" or counts(one.subject.position):
            yield one
        else:
            yield inapplicable(one.subject.position, otherwise)


def _waits(context: MetricContext, waits: Mapping[int, float], source: str) -> Iterator[Observation]:
    for turn in sorted({*turn_ids(context), *waits}):
        subject, wait = in_turn(turn), waits.get(turn)
        if wait is not None and 0 < wait < LONGEST:
            yield measured(subject, wait, details={"from": source})
        elif wait is not None and wait <= 0:
            yield not_applicable(subject, "no_wait", f"{wait:g} s")
        elif wait is not None:
            yield unmeasured(subject, "implausible_latency", f"{wait:g} s")
        elif not user_spoke(context, turn):
            yield inapplicable(turn, "no_user_speech")
        elif not assistant_spoke(context, turn):
            yield inapplicable(turn, "no_reply")
        elif turn in context.assistant_interrupted_turns:
            yield inapplicable(turn, "agent_interrupted")
        else:
            yield unmeasured(subject, "no_latency")


class _Latency(NamedTuple):
    """The mean latency of one part of the stack, and where it was read."""

    seconds: float
    details: dict[str, Any]


def _component(name: str, question: str, absent_in: tuple[str, ...] = ()) -> Metric:
    """The latency of one part of the stack. `absent_in`: the pipelines that have no such part."""

    def latency(conversation: Conversation) -> Observation:
        found = _stated(conversation, name) or _reported(conversation, name)
        if found is not None:
            return measured(conversation, found.seconds, details=found.details)
        if conversation.pipeline in absent_in:
            return not_applicable(conversation, "no_such_component", f"{conversation.pipeline} has no {name}")
        return unmeasured(conversation, "no_component_latency", name)

    latency.__doc__ = f"""{question}

    The mean of its calls in a conversation: as the log states it, else of what the part reports of
    each call (`latency`, else `ttfb`, else `processing`; never a mixture). `from` in the details says
    which. Unmeasured where the log has neither.
    """
    return metric(
        f"voice.response_speed.{name}_latency",
        version=1,
        observes=CONVERSATION,
        unit=SECONDS,
        better=LOWER,
        needs=(CALL,),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    )(latency)


llm_latency = _component("llm", "How long does the language model take?", absent_in=("s2s",))
stt_latency = _component("stt", "How long does the speech recogniser take?", absent_in=("audio_llm", "s2s"))
tts_latency = _component("tts", "How long does the speech synthesiser take?", absent_in=("s2s",))
model_response_latency = _component(
    "model_response", "How long does the model take from the end of speech to its answer?"
)


def _stated(conversation: Conversation, component: str) -> _Latency | None:
    """The mean that the log states; of no calls at all there is none, whatever number stands there."""
    latencies = conversation.extras.get("latencies")
    stated = latencies.get(component) if isinstance(latencies, dict) else None
    if not isinstance(stated, dict):
        return None
    mean, calls = stated.get("mean_ms"), stated.get("total_calls")
    if not _is_time(mean) or calls == 0 or (calls is None and not mean):
        return None
    return _Latency(mean / 1000, {"from": "stated mean", **({} if calls is None else {"calls": calls})})


def _reported(conversation: Conversation, component: str) -> _Latency | None:
    """The mean of what the part reported of each call, by the first kind of figure that it reported at all."""
    values = [
        event.values
        for event in conversation.timeline
        if isinstance(event, ComponentMetric) and event.component == component
    ]
    for kind in ("latency", "ttfb", "processing"):
        times = [one[kind] for one in values if _is_time(one.get(kind))]
        if times:
            return _Latency(math.fsum(times) / len(times), {"from": kind, "calls": len(times)})
    return None


def _is_time(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0
