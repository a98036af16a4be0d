"""Metrics of time."""

from __future__ import annotations

from collections.abc import Iterator

from convoscope.conversation import Conversation, Segment, Time, Utterance
from convoscope.metrics.declaration import LOWER, SECONDS, TURN, metric
from convoscope.metrics.needs import TIMES, USER_SPEECH
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, Reduce, percentile


@metric(
    "timing.response_latency",
    version=1,
    observes=TURN,
    unit=SECONDS,
    better=LOWER,
    needs=(USER_SPEECH, TIMES),
    reduce=Reduce(MEAN, MEAN_OF_SUBJECTS),
    also={"p50": percentile(50), "p95": percentile(95)},
)
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
            asked, replied = turn.user[-1], turn.assistant[0]
            end, start = _end(asked), _start(replied)
            if end is None or start is None:
                yield unmeasured(turn, "no_clock")
                continue
            wait = conversation.elapsed(end, start)
            if wait is None:
                yield unmeasured(turn, "clocks_unrelated", f"{end.clock} and {start.clock}")
            elif wait >= 0:
                yield measured(turn, wait)
            elif _has_end(asked):
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
