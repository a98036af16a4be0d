"""The reading of a call that the published fixtures assert, labels included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

import msgspec

from convoscope.conversation import Conversation
from convoscope.conversation.events import Logged
from convoscope.views.eva.call_state import ASSISTANT, USER, CallState, Entry, is_speech
from convoscope.views.eva.lost_records import completed
from convoscope.views.eva.reconcile import Interval, align, group, label_interruptions, reconcile
from convoscope.views.eva.validation import spoken

_FAR = 1e12
_NO_SHIFT: Mapping[str, int] = MappingProxyType({})


class EvaReading(msgspec.Struct, frozen=True, kw_only=True):
    """One call as that system tells it, by turn: 0 is the greeting, n the user's n-th say and its reply."""

    transcribed_assistant_turns: dict[int, str | None]
    transcribed_user_turns: dict[int, str | None]
    intended_assistant_turns: dict[int, str | None]
    intended_user_turns: dict[int, str | None]
    audio_timestamps_assistant_turns: dict[int, list[Interval] | None]
    audio_timestamps_user_turns: dict[int, list[Interval] | None]
    assistant_interrupted_turns: frozenset[int]
    """Turns in which the assistant interrupted the user."""
    user_interrupted_turns: frozenset[int]
    """Turns with which the user interrupted the assistant."""
    fallback_turn_ids: frozenset[int]
    conversation_trace: list[dict[str, Any]]
    tool_called: list[str]
    tool_params: list[dict[str, Any]]
    tool_responses: list[dict[str, Any]]
    num_assistant_turns: int
    num_user_turns: int
    num_tool_calls: int
    latency_assistant_turns: dict[int, float]
    turn_of: tuple[int, ...]
    """The turn that each record of the log was given to, in the log's order."""
    log: tuple[Logged, ...]
    """The records that were read: those of the logs, with what a log lost put back."""


class _Tools(msgspec.Struct, frozen=True):
    called: list[str]
    params: list[dict[str, Any]]
    responses: list[dict[str, Any]]


def eva_reading(conversation: Conversation) -> EvaReading:
    """The call as the published fixtures of EVA read its logs; read once for each conversation."""
    known: EvaReading | None = conversation.__dict__.get("eva_reading")
    if known is None:
        shifts = {clock.id: _milliseconds(clock.offset) for clock in conversation.clocks}
        known = conversation.__dict__["eva_reading"] = read_eva(completed(conversation), conversation.pipeline, shifts)
    return known


def _milliseconds(seconds: float | None) -> int:
    """Whole milliseconds; an offset that no clock can have counts as none."""
    return round(1000 * seconds) if seconds is not None and abs(seconds) < _FAR else 0


def read_eva(log: Sequence[Logged], pipeline: str | None, shift_ms: Mapping[str, int] = _NO_SHIFT) -> EvaReading:
    """Join the records of a call as the published fixtures do (voice logs, 3).

    The log comes source by source, audit, framework, simulator, each in the order of its file, the
    framework's texts as merged runs. `shift_ms` is added to the times of a source before sorting.
    """
    moments = _moments(log, shift_ms)
    order = sorted(range(len(log)), key=moments.__getitem__)
    state = CallState(pipeline, log, _endless(log, order), _noise_at_the_end(log, order))
    for place in order:
        state.meet(place, log[place])

    end = _session_end(log, moments, state, shift_ms)
    user_audio = _intervals(state, USER, end)
    assistant_audio = _intervals(state, ASSISTANT, end)
    trace = state.trace
    # Without a framework log nothing is known of what was spoken: then all counts (3.9, missing logs).
    if state.knows_what_was_spoken and not state.s2s:
        trace = spoken(trace, state.segments)
    trace = group(trace)
    label_interruptions(trace, state.assistant_interrupted, state.user_interrupted)
    tools = _tools(trace)

    user = align(state.transcribed[USER], state.intended[USER], user_audio)
    assistant = align(state.transcribed[ASSISTANT], state.intended[ASSISTANT], assistant_audio)
    reconcile(trace, user, assistant, backfill=not state.alone.meant)
    texts = state.transcribed if state.s2s or state.alone.caught else state.intended
    # Where an audit log is there and has no line of the user, the rule counts none (3.6, step 5).
    is_audited = any(record.source == "audit" for record in log)
    users = state.intended if state.alone.meant and not is_audited else state.transcribed
    return EvaReading(
        transcribed_assistant_turns=assistant.transcribed,
        transcribed_user_turns=user.transcribed,
        intended_assistant_turns=assistant.intended,
        intended_user_turns=user.intended,
        audio_timestamps_assistant_turns=assistant.audio,
        audio_timestamps_user_turns=user.audio,
        assistant_interrupted_turns=frozenset(state.assistant_interrupted),
        user_interrupted_turns=frozenset(state.user_interrupted),
        fallback_turn_ids=frozenset(state.fallback_turns),
        conversation_trace=[entry.published() for entry in trace],
        tool_called=tools.called,
        tool_params=tools.params,
        tool_responses=tools.responses,
        num_assistant_turns=len(texts[ASSISTANT]),
        num_user_turns=len(users[USER]),
        num_tool_calls=len(tools.params),
        latency_assistant_turns=_latencies(_last_ends(state, user_audio), _first_starts(state, assistant_audio)),
        turn_of=tuple(state.turn_of),
        log=tuple(log),
    )


def _endless(log: Sequence[Logged], order: Sequence[int]) -> frozenset[int]:
    """Starts of the assistant's sound whose end was lost (3.9).

    The assistant starts again without having ended, and the user came to a word in between: it had
    not been speaking all the time, and nobody was interrupted.
    """
    lost: set[int] = set()
    began: int | None = None
    answered = False
    for place in order:
        record = log[place]
        if record.kind == "audio_start" and record.speaker == ASSISTANT:
            if began is not None and answered:
                lost.add(began)
            began, answered = place, False
        elif record.kind == "audio_end" and record.speaker == ASSISTANT:
            began = None
        elif record.kind == "audio_end" and record.speaker == USER:
            answered = True
    return frozenset(lost)


def _noise_at_the_end(log: Sequence[Logged], order: Sequence[int]) -> frozenset[int]:
    """Sounds of the user after which nobody comes to a word any more, nor in them: noise, and no turn (3.9).

    Where the user has no word in the whole call there is no last one.
    """
    noise: list[int] = []
    has_spoken = is_open = replied = waits = False
    for place in order:
        record = log[place]
        if record.kind == "audio_start" and record.speaker == USER:
            noise = [] if waits else [*noise, place]
            is_open, replied, waits = True, False, False
        elif record.kind == "audio_end" and record.speaker == USER:
            noise = [*noise, place] if noise else noise
            is_open = False
        elif record.kind == "user_speech" and is_speech(record):
            # Words that come before their sound wait for it (3.5, user_speech case 1).
            waits, has_spoken, noise = replied and not is_open, True, []
        elif record.kind == "audio_start":
            replied, noise = replied or not is_open, []
        elif record.kind in _HAPPENS:
            has_spoken, noise = has_spoken or record.kind == USER, []
    return frozenset(noise) if has_spoken else frozenset()


_HAPPENS = frozenset((USER, ASSISTANT, "tool_call", "tts_text", "llm_response"))


def _moments(log: Sequence[Logged], shift_ms: Mapping[str, int]) -> list[int]:
    """When each record was logged; one without a time stands where its file has it (3.1 step 4)."""
    times = [record.ms for record in log]
    if not shift_ms and None not in times:
        return cast(list[int], times)
    latest: dict[str, int] = {}
    for record in reversed(log):
        if record.ms is not None:
            latest[record.source] = record.ms + shift_ms.get(record.source, 0)
    moments = []
    for record in log:
        if record.ms is not None:
            latest[record.source] = record.ms + shift_ms.get(record.source, 0)
        moments.append(latest.get(record.source, 0))
    return moments


def _session_end(
    log: Sequence[Logged], moments: Sequence[int], state: CallState, shift_ms: Mapping[str, int]
) -> float | None:
    """When a sound ended whose end was not logged (3.6(1)), in seconds of the simulator's clock."""
    if state.session_end is not None:
        return state.session_end / 1000
    counted = [
        moment
        for moment, record in zip(moments, log, strict=True)
        if record.ms is not None
        and not (state.s2s and record.source == "framework")
        and (record.kind != "user_speech" or is_speech(record))
    ]
    return (max(counted) - shift_ms.get("simulator", 0)) / 1000 if counted else None


def _intervals(state: CallState, role: str, session_end: float | None) -> dict[int, list[Interval]]:
    """3.6(1): the i-th start of a role in a turn belongs to its i-th end."""
    intervals: dict[int, list[Interval]] = {}
    for turn, starts in state.starts[role].items():
        ends = state.ends[role].get(turn, [])
        for number, start in enumerate(starts):
            if start is None:
                continue
            end = ends[number] if number < len(ends) else None
            if end is None:
                end = start if session_end is None else session_end
            intervals.setdefault(turn, []).append((start, end))
    if role == USER and state.rolled_back_at_zero:
        _give_noise_to_the_first_turn(intervals, state)
    return intervals


def _give_noise_to_the_first_turn(intervals: dict[int, list[Interval]], state: CallState) -> None:
    """An empty session's interval joins the next real session's list (3.5), also where no turn came before it."""
    if 0 not in state.intended[USER] and 0 not in state.transcribed[USER] and 1 in intervals:
        intervals[1] = intervals.pop(0, []) + intervals[1]


def _tools(trace: list[Entry]) -> _Tools:
    """3.6(5): calls and responses in order, with repeats."""
    calls = [entry for entry in trace if entry.type == "tool_call" and entry.payload is not None]
    responses = [entry for entry in trace if entry.type == "tool_response" and entry.payload is not None]
    return _Tools(
        [entry.tool.lower() if isinstance(entry.tool, str) else "" for entry in calls],
        [{"tool_name": entry.tool, "tool_parameters": entry.payload} for entry in calls],
        [{"tool_name": entry.tool, "tool_response": entry.payload} for entry in responses],
    )


def _last_ends(state: CallState, audio: dict[int, list[Interval]]) -> dict[int, float]:
    """When the user was last heard in each turn, also where the start of that sound was lost."""
    ended = {turn: spans[-1][1] for turn, spans in audio.items()}
    for turn, starts in state.starts[USER].items():
        ends = state.ends[USER].get(turn, [])
        if starts[-1] is None and len(ends) >= len(starts) and (end := ends[len(starts) - 1]) is not None:
            ended[turn] = end
    return ended


def _first_starts(state: CallState, audio: dict[int, list[Interval]]) -> dict[int, float]:
    """When the assistant was first heard in each turn, also where the end of that sound was lost."""
    return {turn: spans[0][0] for turn, spans in audio.items()} | state.first_lost_start


def _latencies(ended: dict[int, float], began: dict[int, float]) -> dict[int, float]:
    """3.6(7): from the end of the user's last sound to the assistant's first."""
    return {turn: round(began[turn] - ended[turn], 6) for turn in sorted(ended) if turn in began}
