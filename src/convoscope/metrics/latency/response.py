"""How long the user waits for a reply: by the clock of any log, and as the log or the sound of a call has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from convoscope.conversation import Conversation, Segment, Time, Utterance
from convoscope.metrics.needs import TIMES, USER_SPEECH
from convoscope.metrics.nonsense import EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS
from convoscope.metrics.presets import wait_metric
from convoscope.metrics.voice.call_facts import (
    CALL,
    assistant_spoke,
    inapplicable,
    turn_ids,
    turns_with_tools,
    user_spoke,
)
from convoscope.scores.observation import Observation, in_turn, measured, not_applicable, unmeasured
from convoscope.views import MetricContext

_timed_wait = partial(wait_metric, notices=(SKEWED_CLOCKS,), falls_silent=(EMPTY_AGENT, EQUAL_TIMES))

LONGEST = 1000.0
"""Seconds. A longer wait is a fault of the log (voice logs, 1.4)."""


@_timed_wait("timing.response_latency", version=1, needs=(USER_SPEECH, TIMES))
def response_latency(conversation: Conversation) -> Iterator[Observation]:
    """How long does the user wait for the agent's reply?

    From the end of the user's last words to the start of the agent's first words after them: the
    sound where there are audio segments, else the time of the message. Turns without a user or
    without a reply, and replies that begin before the user has ended, are not applicable. Turns
    without times, with times of two clocks that do not relate, or with a reply that is dated before
    the message it answers, are unmeasured.
    """
    for turn in conversation.turns:
        if not turn.user:
            yield not_applicable(turn, "no_user_speech")
        elif not turn.assistant:
            yield not_applicable(turn, "no_reply")
        else:
            question, reply = turn.user[-1], turn.assistant[0]
            end, start = _end(question), _start(reply)
            if end is None or start is None:
                yield unmeasured(turn, "no_clock")
                continue
            wait = conversation.elapsed(end, start)
            if wait is None:
                yield unmeasured(turn, "clocks_unrelated", f"{end.clock} and {start.clock}")
            elif wait >= 0:
                yield measured(turn, wait)
            elif _has_end(question):
                yield not_applicable(turn, "agent_interrupted")
            else:
                yield unmeasured(turn, "time_runs_backwards", f"the reply is dated {-wait:g} s too early")


def _has_end(utterance: Utterance) -> bool:
    """The log tells when the utterance ended, not just when it was logged."""
    return bool(utterance.segments) or (utterance.time is not None and utterance.time.until is not None)


def _start(utterance: Utterance) -> Time | None:
    if utterance.segments:
        first: Segment = min(utterance.segments, key=lambda segment: segment.start)
        return Time(first.start, first.clock)
    return utterance.time


def _end(utterance: Utterance) -> Time | None:
    if utterance.segments:
        last: Segment = max(utterance.segments, key=lambda segment: segment.end)
        return Time(last.end, last.clock)
    if utterance.time is not None and utterance.time.until is not None:
        return Time(utterance.time.until, utterance.time.clock)
    return utterance.time


@_timed_wait("voice.response_speed", version=1, needs=(CALL,))
def response_speed(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer, as the call's own log has it?

    Per turn: the latency that the log states, else the one that the sound gives, from the end of the
    user's speech to the start of the reply. A wait of 0 or less is no wait: not applicable. One of
    1000 s or more is a fault of the log: unmeasured.
    """
    logged = context.latency_assistant_turns
    source = "sound" if logged == context.sound_latency_assistant_turns else "log"
    yield from _waits(context, logged, source)


@_timed_wait("voice.response_speed.sound", version=1, needs=(CALL,))
def response_speed_by_sound(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer, by the sound alone?

    The same as `voice.response_speed`, but never from what the log states.
    """
    yield from _waits(context, context.sound_latency_assistant_turns, "sound")


@_timed_wait("voice.response_speed.with_tool_calls", version=1, needs=(CALL,))
def response_speed_with_tool_calls(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer in turns in which it calls a tool?

    `voice.response_speed` of the turns with a tool call; the others are not applicable.
    """
    tools = turns_with_tools(context)
    yield from _only(context, lambda turn: turn in tools, "no_tool_calls")


@_timed_wait("voice.response_speed.no_tool_calls", version=1, needs=(CALL,))
def response_speed_without_tool_calls(context: MetricContext) -> Iterator[Observation]:
    """How fast does the agent answer in turns without a tool call?

    `voice.response_speed` of the turns without a tool call; the others are not applicable.
    """
    tools = turns_with_tools(context)
    yield from _only(context, lambda turn: turn not in tools, "tool_calls")


def _only(context: MetricContext, counts: Callable[[int], bool], otherwise: str) -> Iterator[Observation]:
    for observation in response_speed.function(context):
        turn = observation.subject
        is_of_turn = turn.kind == "turn" and not counts(turn.position)
        yield inapplicable(turn.position, otherwise) if is_of_turn else observation


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
