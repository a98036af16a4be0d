"""Who spoke when in each turn of a call, and what that is worth: the analysis behind `voice.turn_taking`.

The curves are those of the voice logs' specification, 1.3. Times are seconds; curves are given in
milliseconds, as there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.voice.call import (
    NO_REPLY,
    SOUND,
    assistant_spoke,
    inapplicable,
    left_waiting,
    turn_ids,
    turns_with_tools,
    unanswered,
    user_spoke,
)
from convoscope.scores.observation import Observation, in_turn, not_applicable, unmeasured
from convoscope.views import MetricContext
from convoscope.views.timing import TOUCH
from convoscope.views.user_turns import AT_END, reply_at_end

LATENCY = "latency"
AGENT_INTERRUPT = "agent_interrupt"
USER_INTERRUPT = "user_interrupt"
DUAL_INTERRUPT = "dual_interrupt"
FALLBACK = "turn_end_fallback"

EARLY_MS = 200
LATE_MS = 2750
LATE_WITH_TOOL_MS = 4000
OVERLAP_MS = 2000
YIELD_MS = 2000

NOT_EVALUABLE = "no_evaluable_turn"

Spans = Sequence[tuple[float, float]]


def latency_score(ms: float, *, tool: bool = False) -> float:
    """1 from 500 to 2000 ms (with a tool call to 3000), falling to 0 at -500 and at 3500 (5000) ms."""
    good, none = (3000, 5000) if tool else (2000, 3500)
    return _clipped(min((ms + 500) / 1000, (none - ms) / (none - good)))


def overlap_score(ms: float) -> float:
    """0.5 for no overlap at all, falling to 0 at 2 s."""
    return 0.5 * _clipped(1 - ms / OVERLAP_MS)


def count_score(interruptions: int) -> float:
    """0.5 for one interruption, 0.25 for two, 0 from three on."""
    return 0.5 * _clipped(1 - (interruptions - 1) / 2)


def yield_score(ms: float) -> float:
    """1 for an agent that falls silent at once, falling to 0 at 2 s."""
    return _clipped(1 - ms / YIELD_MS)


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


class BargeIn(NamedTuple):
    """The agent spoke while the user was speaking."""

    overlap: float
    times: int
    """Segments of the agent's sound that lie over the user's."""
    wait_after: float | None
    """From the user's end to the agent's next words; None where it spoke through that end, or no more."""
    spoke_through: bool


class EvaluatedTurn(NamedTuple):
    """One evaluable turn: what happened, and the score of each thing that did."""

    id: int
    score: float
    reason: str
    tool: bool
    gap: float | None
    """From the user's end to the agent's start; None where one side interrupted. Negative: before the end."""
    barge_in: BargeIn | None
    yielded: float | None
    """How long the agent went on after the user broke in; None where the user did not."""
    nudged: bool

    @property
    def evidence(self) -> dict[str, Any]:
        """What the score rests on, for a person."""
        evidence: dict[str, Any] = {"reason": self.reason}
        if self.gap is not None:
            evidence["latency"] = self.gap
        if self.barge_in is not None:
            evidence["overlap"] = self.barge_in.overlap
            evidence["interruptions"] = self.barge_in.times
            if self.barge_in.wait_after is not None:
                evidence["post_interrupt_latency"] = self.barge_in.wait_after
        if self.yielded is not None:
            evidence["yield_time"] = self.yielded
        if self.tool:
            evidence["tool_call"] = True
        return evidence


class TurnAnalysis(NamedTuple):
    """The turns of a call that can be evaluated, why the others cannot, and whether the user was left waiting."""

    evaluated: dict[int, EvaluatedTurn]
    without: dict[int, str]
    """Reason by turn: greeting, no_user_speech, no_reply, user_left, end_unknown, no_sound."""
    left_waiting: bool
    turns: tuple[EvaluatedTurn | Observation, ...]
    """All turns in their order: as they can be evaluated, or what every metric says of them."""


@cached_on_argument
def analyse_turns(context: MetricContext) -> TurnAnalysis:
    """The analysis of a call."""
    evaluated: dict[int, EvaluatedTurn] = {}
    without: dict[int, str] = {}
    tools = turns_with_tools(context)
    for turn in turn_ids(context):
        if turn == 0:
            without[turn] = "greeting"
        elif not user_spoke(context, turn):
            without[turn] = "no_user_speech"
        elif not assistant_spoke(context, turn):
            without[turn] = _why_no_reply(context, turn)
        elif not _user(context, turn) or not _assistant(context, turn):
            without[turn] = SOUND.code
        else:
            evaluated[turn] = _evaluated(context, turn, tool=turn in tools)
    turns = [
        evaluated[turn] if turn in evaluated else _not_evaluated(turn, without[turn])
        for turn in sorted({*evaluated, *without})
    ]
    return TurnAnalysis(evaluated, without, left_waiting(context) is True, tuple(turns))


def _why_no_reply(context: MetricContext, turn: int) -> str:
    turns = turn_ids(context)
    if turn != turns[-1]:
        return NO_REPLY
    text = context.intended_user_turns.get(turn) or context.transcribed_user_turns.get(turn) or ""
    spoke = any(assistant_spoke(context, one) for one in turns)
    return AT_END[reply_at_end(text, context.conversation_ended_reason or "", spoke=spoke)]


def _not_evaluated(turn: int, reason: str) -> Observation:
    if reason in AT_END.values():
        return unanswered(turn, reason)
    return unmeasured(in_turn(turn), reason) if reason == SOUND.code else inapplicable(turn, reason)


def _evaluated(context: MetricContext, turn: int, *, tool: bool) -> EvaluatedTurn:
    user, assistant = _user(context, turn), _assistant(context, turn)
    barge_in = _barge_in(user, assistant) if turn in context.assistant_interrupted_turns else None
    yielded = _yielded(context, turn) if turn in context.user_interrupted_turns else None
    gap = None
    scores: list[float] = []
    if barge_in is not None:
        scores += [overlap_score(1000 * barge_in.overlap), count_score(barge_in.times)]
        if barge_in.wait_after is not None:
            scores.append(latency_score(1000 * barge_in.wait_after, tool=tool))
    if yielded is not None:
        scores.append(yield_score(1000 * yielded))
    if not scores:
        gap = _seconds(assistant[0][0] - max(end for _, end in user))
        scores.append(latency_score(1000 * gap, tool=tool))
    nudged = turn in context.fallback_turn_ids
    return EvaluatedTurn(
        id=turn,
        score=0.0 if nudged else min(scores),
        reason=FALLBACK if nudged else _REASONS[barge_in is not None, yielded is not None],
        tool=tool,
        gap=gap,
        barge_in=barge_in,
        yielded=yielded,
        nudged=nudged,
    )


_REASONS = {
    (True, True): DUAL_INTERRUPT,
    (True, False): AGENT_INTERRUPT,
    (False, True): USER_INTERRUPT,
    (False, False): LATENCY,
}
"""By whether the agent interrupted, and whether the user did."""


def _barge_in(user: Spans, assistant: Spans) -> BargeIn | None:
    """None where nothing overlaps: a log may call a quick answer an interruption (voice logs, 1.7, defect 1)."""
    overlaps = [sum(max(0.0, min(end, until) - max(start, at)) for at, until in user) for start, end in assistant]
    times = sum(1 for overlap in overlaps if overlap > TOUCH)
    if not times:
        return None
    silent = max(end for _, end in user)
    spoke_through = any(start < silent < end for start, end in assistant)
    after = [start - silent for start, _ in assistant if start >= silent]
    wait = _seconds(min(after)) if after and not spoke_through else None
    return BargeIn(_seconds(sum(overlaps)), times, wait, spoke_through)


def _yielded(context: MetricContext, turn: int) -> float | None:
    """How long the agent's earlier words went on after the user began; None where they had ended before."""
    earlier = [one for one in context.audio_timestamps_assistant_turns if one < turn and _assistant(context, one)]
    if not earlier:
        return None
    ended = max(end for _, end in _assistant(context, max(earlier)))
    went_on = ended - _user(context, turn)[0][0]
    return _seconds(went_on) if went_on > TOUCH else None


def _user(context: MetricContext, turn: int) -> Spans:
    return sorted(context.audio_timestamps_user_turns.get(turn) or ())


def _assistant(context: MetricContext, turn: int) -> Spans:
    return sorted(context.audio_timestamps_assistant_turns.get(turn) or ())


def _seconds(value: float) -> float:
    return round(value, 6)


def each_turn(context: MetricContext, observe: Callable[[EvaluatedTurn], Observation]) -> Iterator[Observation]:
    """One observation for each turn that can be evaluated, and the reason for each that cannot."""
    analysis = analyse_turns(context)
    if not analysis.evaluated:
        yield _nothing_evaluable(context, analysis)
        return
    for turn in analysis.turns:
        yield observe(turn) if isinstance(turn, EvaluatedTurn) else turn


def _nothing_evaluable(context: MetricContext, analysis: TurnAnalysis) -> Observation:
    """Turns in which both spoke, but without sound, could have been measured; others not."""
    silent = sum(1 for reason in analysis.without.values() if reason == SOUND.code)
    if silent:
        return unmeasured(context, SOUND.code, f"{silent} turns of which the sound of one side is missing")
    ignored = sum(1 for reason in analysis.without.values() if reason == NO_REPLY)
    if ignored:
        return unmeasured(context, NO_REPLY, f"{ignored} turns without a reply, and none with one")
    return not_applicable(context, NOT_EVALUABLE)
