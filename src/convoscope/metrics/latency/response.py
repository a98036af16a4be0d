"""How long the user waits for a reply: by the clock of any log, and as the log or the sound of a call has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import inf

from convoscope.conversation import Conversation, Turn
from convoscope.metrics.declaration import wait_metric
from convoscope.metrics.latency.turns import STOPPED_CLOCK, without_zeros
from convoscope.metrics.needs import TIMES, USER_SPEECH
from convoscope.metrics.perturbations import EMPTY_AGENT, EQUAL_TIMES, SKEWED_CLOCKS
from convoscope.metrics.voice.call import (
    CALL,
    LOGGED_SOUND,
    assistant_spoke,
    inapplicable,
    turn_ids,
    turns_with_tools,
    user_spoke,
    without_reply,
)
from convoscope.scores.observation import Observation, in_turn, measured, not_applicable, unmeasured
from convoscope.views import MetricContext, metric_context
from convoscope.views.timing import LEAST_SHIFT, clock_shift, span_text
from convoscope.views.user_turns import end_of, start_of

_timed_wait = partial(wait_metric, sensitive_to=(SKEWED_CLOCKS,), undefined_under=(EMPTY_AGENT, EQUAL_TIMES))

CLOCKS_DISAGREE = "clocks_disagree"
LONGEST = 1000.0
"""Seconds. By the published rule a longer wait is a fault of the log (voice logs, 1.4)."""


@_timed_wait("timing.response_latency", version=3, label="wait for a reply", importance=8, needs=(USER_SPEECH, TIMES))
def response_latency(conversation: Conversation) -> Iterator[Observation]:
    """How long does the user wait for the agent's reply?

    From the end of the user's last words to the start of the agent's first words after them: the
    sound where there are audio segments, else the time of the message. Turns without a user, and
    replies that begin before the user has ended, are not applicable. A turn without a reply has no wait
    and is unmeasured: `agent.unanswered_turns` counts it; of a user who left it is not applicable. Turns
    without times, with times of two clocks that do not relate, or with a reply that is dated before
    the message it answers, are unmeasured, and so are all where each message has the time of its reply, and
    all where user and agent have clocks that disagree: one shift of 30 s or more explains every time, and none less.

    >>> value(response_latency, example("0 user: Hello?", "2 assistant: Hello.", "10 user: Bye.", "14 assistant: Bye."))
    3.0
    """
    waits = [_response(conversation, turn) for turn in conversation.turns]
    stopped = not any(type(wait) is float and wait for wait in waits)
    # A wait may come of two clocks where it is long, or below zero.
    is_odd = any(wait >= LEAST_SHIFT if isinstance(wait, float) else _runs_backwards(wait) for wait in waits)
    shift = clock_shift(conversation) if is_odd else None
    for turn, wait in zip(conversation.turns, waits, strict=True):
        if shift is not None and (type(wait) is float or _runs_backwards(wait)):
            yield unmeasured(turn, CLOCKS_DISAGREE, f"by about {span_text(shift)}")
        elif isinstance(wait, Observation):
            yield wait
        elif stopped:
            yield unmeasured(turn, STOPPED_CLOCK)
        else:
            yield measured(turn, wait)


def _response(conversation: Conversation, turn: Turn) -> Observation | float:
    """The wait in seconds, or why it is missing."""
    if not turn.user:
        return not_applicable(turn, "no_user_speech")
    if not turn.assistant:
        return without_reply(conversation, turn.id, conversation.turns[-1].id)
    question, reply = turn.user[-1], turn.assistant[0]
    end, start = end_of(question), start_of(reply)
    if end is None or start is None:
        return unmeasured(turn, "no_clock")
    wait = conversation.elapsed(end, start)
    if wait is None:
        return unmeasured(turn, "clocks_unrelated", f"{end.clock} and {start.clock}")
    if wait >= 0:
        return wait
    # The log says when the question ended, not just when it was logged.
    if question.segments or (question.time is not None and question.time.until is not None):
        return not_applicable(turn, "agent_interrupted")
    return unmeasured(turn, "time_runs_backwards", f"the reply is dated {-wait:g} s too early")


def _runs_backwards(wait: Observation | float) -> bool:
    return isinstance(wait, Observation) and wait.reason in ("time_runs_backwards", "agent_interrupted")


@_timed_wait(
    "voice.response_speed", version=4, label="wait for a reply, by the log", importance=7, needs=(CALL, LOGGED_SOUND)
)
def response_speed(conversation: Conversation) -> Iterator[Observation]:
    """How fast does the agent answer, as the call's own log has it?

    Per turn: the latency that the log states, else the one that the sound gives, from the end of the
    user's speech to the start of the reply, however long. What cannot be is unmeasured: a wait below 0, one
    that is longer than the call, and waits that are all exactly 0. A turn without a reply has no wait and is
    unmeasured: `agent.unanswered_turns` counts it; of a user who left it is not applicable. A recording without a log
    is not applicable: its waits are in `timing.response_latency`.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "tool: find", "7-8 assistant: Yes.")
    >>> value(response_speed, call)  # 1 s and 2 s
    1.5
    """
    context = metric_context(conversation)
    yield from without_zeros(list(_waits(conversation, context, context.latency_assistant_turns, _source(context))))


@_timed_wait("voice.response_speed", variant="eva", version=3, needs=(CALL, LOGGED_SOUND))
def response_speed_eva(conversation: Conversation) -> Iterator[Observation]:
    """How fast does the agent answer, where it answers within 1000 s?

    As EVA publishes it: a wait of 0 or less is not applicable, and one of 1000 s or more is left out as a fault
    of the log.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "tool: find", "7-8 assistant: Yes.")
    >>> value(response_speed_eva, call)  # 1 s and 2 s
    1.5
    """
    context = metric_context(conversation)
    source, waits = _source(context), context.latency_assistant_turns
    turns = sorted({*turn_ids(context), *waits})
    for turn in turns:
        wait = waits.get(turn)
        if wait is None:
            yield _without_wait(context, turn) or without_reply(conversation, turn, turns[-1])
        elif wait <= 0:
            yield not_applicable(in_turn(turn), "no_wait", f"{wait:g} s")
        elif wait < LONGEST:
            yield measured(in_turn(turn), wait, details={"from": source})
        else:
            yield unmeasured(in_turn(turn), "implausible_latency", f"{wait:g} s")


def _source(context: MetricContext) -> str:
    return "sound" if context.latency_assistant_turns == context.sound_latency_assistant_turns else "log"


@_timed_wait("voice.response_speed.sound", version=3, needs=(CALL,))
def response_speed_by_sound(conversation: Conversation) -> Iterator[Observation]:
    """How fast does the agent answer, by the sound alone?

    The same as `voice.response_speed`, but never from what the log states.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "tool: find", "7-8 assistant: Yes.")
    >>> value(response_speed_by_sound, call)  # 1 s and 2 s
    1.5
    """
    context = metric_context(conversation)
    yield from without_zeros(list(_waits(conversation, context, context.sound_latency_assistant_turns, "sound")))


@_timed_wait("voice.response_speed.with_tool_calls", version=4, needs=(CALL, LOGGED_SOUND))
def response_speed_with_tool_calls(conversation: Conversation) -> Iterator[Observation]:
    """How fast does the agent answer in turns in which it calls a tool?

    `voice.response_speed` of the turns with a tool call; the others are not applicable.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "tool: find", "7-8 assistant: Yes.")
    >>> value(response_speed_with_tool_calls, call)  # the second turn
    2.0
    """
    tools = turns_with_tools(metric_context(conversation))
    yield from _only(conversation, lambda turn: turn in tools, "no_tool_calls")


@_timed_wait("voice.response_speed.no_tool_calls", version=4, needs=(CALL, LOGGED_SOUND))
def response_speed_without_tool_calls(conversation: Conversation) -> Iterator[Observation]:
    """How fast does the agent answer in turns without a tool call?

    `voice.response_speed` of the turns without a tool call; the others are not applicable.

    >>> call = example("0-1 user: Hi.", "2-3 assistant: Hi.", "4-5 user: And?", "tool: find", "7-8 assistant: Yes.")
    >>> value(response_speed_without_tool_calls, call)  # the first turn
    1.0
    """
    tools = turns_with_tools(metric_context(conversation))
    yield from _only(conversation, lambda turn: turn not in tools, "tool_calls")


def _only(conversation: Conversation, counts: Callable[[int], bool], reason: str) -> Iterator[Observation]:
    for observation in response_speed.function(conversation):
        turn = observation.subject
        is_of_turn = turn.kind == "turn" and not counts(turn.position)
        yield inapplicable(turn.position, reason) if is_of_turn else observation


def _waits(
    conversation: Conversation, context: MetricContext, waits: Mapping[int, float], source: str
) -> Iterator[Observation]:
    longest = context.duration_seconds or inf
    turns = sorted({*turn_ids(context), *waits})
    for turn in turns:
        subject, wait = in_turn(turn), waits.get(turn)
        if wait is None:
            yield _without_wait(context, turn) or without_reply(conversation, turn, turns[-1])
        elif wait < 0:
            yield unmeasured(subject, "negative_time", f"{wait:g} s")
        elif wait > longest:
            yield unmeasured(subject, "longer_than_the_call", f"{wait:g} s of {longest:g} s")
        else:
            yield measured(subject, wait, details={"from": source})


def _without_wait(context: MetricContext, turn: int) -> Observation | None:
    """Why a turn has no wait; None where it has no reply."""
    if not user_spoke(context, turn):
        return inapplicable(turn, "no_user_speech")
    if not assistant_spoke(context, turn):
        return None
    if turn in context.assistant_interrupted_turns:
        return inapplicable(turn, "agent_interrupted")
    return unmeasured(in_turn(turn), "no_latency")
