"""The reading of a call that the published fixtures assert, labels included (voice logs, section 3)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import msgspec

from convoscope.conversation import AnyEvent, Conversation, Turn
from convoscope.conversation.events import Logged
from convoscope.conversation.lazy import cached_on_argument
from convoscope.conversation.turns import exchange, turn_of
from convoscope.views.eva.call_state import (
    ASSISTANT,
    ASSISTANT_INTERRUPTS,
    CUT_ITSELF_OFF,
    INTENDED,
    TOOL,
    TRANSCRIBED,
    USER,
    USER_INTERRUPTS,
    CallState,
    Entry,
    is_speech,
    without_labels,
)
from convoscope.views.eva.lost_records import completed

_LEAST_CHARACTERS = 20


class _Reduction(dict[int, str | None]):
    """For str.translate: letters and digits in lower case, nothing else; filled as characters are met."""

    def __missing__(self, code: int) -> str | None:
        character = chr(code)
        self[code] = kept = character.lower() if character.isalnum() else None
        return kept


_REDUCTION = _Reduction()
_TYPOGRAPHY = "’‘“”–—…"


def spoken(trace: list[Entry], segments: dict[int, list[str]]) -> list[Entry]:
    """The trace without what was never sent to the speech engine; what was sent in part is cut."""
    reduced: dict[int, list[str]] = {}
    kept: list[Entry] = []
    for entry in trace:
        if entry.audited:
            turn = entry.turn
            if turn not in reduced:
                reduced[turn] = [_reduce(without_labels(segment)) for segment in segments.get(turn, ())]
            text = _spoken_part(entry.content or "", reduced[turn])
            if text is not None:
                entry.content = text
            elif not entry.nudge:
                continue
        kept.append(entry)
    return kept


def _spoken_part(text: str, segments: list[str]) -> str | None:
    """The text as far as the segments hold it; None where they do not."""
    plain = without_labels(text)
    whole = _reduce(plain)
    if not whole:
        return None
    if any(whole in segment for segment in segments) or whole in "".join(segments):
        return text

    def is_unsaid(length: int) -> bool:
        start = whole[:length]
        return not any(segment.startswith(start) for segment in segments)

    lengths = list(accumulate([len(_reduce(word)) for word in plain.split()]))
    words = bisect_left(lengths, True, key=is_unsaid)
    if not words or lengths[words - 1] < _LEAST_CHARACTERS:
        return None
    # Counted without labels, applied with them: a label at the front costs words of the text.
    return " ".join(text.split()[:words])


def _reduce(text: str) -> str:
    if not text.isascii():
        # translate is ten times as fast on ASCII, and these few signs are most of what else speech texts hold.
        for sign in _TYPOGRAPHY:
            text = text.replace(sign, "")
    return text.translate(_REDUCTION)


Texts = dict[int, str | None]
Interval = tuple[float, float]


class Aligned(NamedTuple):
    """What one role said and sounded like, by turn; the three have the same keys."""

    transcribed: Texts
    intended: Texts
    audio: dict[int, list[Interval] | None]


def align(transcribed: dict[int, str], intended: dict[int, str], audio: dict[int, list[Interval]]) -> Aligned:
    """3.6(6): a key that one has, all have."""
    turns = sorted({*transcribed, *intended, *audio})
    return Aligned(
        {turn: transcribed.get(turn, "") for turn in turns},
        {turn: intended.get(turn, "") for turn in turns},
        {turn: audio.get(turn) for turn in turns},
    )


def group(trace: list[Entry]) -> list[Entry]:
    """3.6(3): what one role said in one turn without anything between is one entry."""
    grouped: list[Entry] = []
    for entry in trace:
        last = grouped[-1] if grouped else None
        if last is not None and entry.role != TOOL and last.role == entry.role and last.turn == entry.turn:
            last.content = f"{last.content} {entry.content}"
        else:
            grouped.append(entry)
    return grouped


def label_interruptions(trace: list[Entry], assistant_interrupted: set[int], user_interrupted: set[int]) -> None:
    """3.6(4): an interruption that was detected late is labelled now."""
    for role, label, turns in (
        (ASSISTANT, ASSISTANT_INTERRUPTS, assistant_interrupted),
        (USER, USER_INTERRUPTS, user_interrupted),
    ):
        for turn in turns:
            entries = [entry for entry in trace if entry.turn == turn and entry.role == role]
            # Of the assistant, only the first entry may have the label already.
            labelled = entries[:1] if role == ASSISTANT else entries
            if entries and not any((entry.content or "").startswith(label) for entry in labelled):
                entries[0].content = f"{label} {entries[0].content}"


def reconcile(trace: list[Entry], user: Aligned, assistant: Aligned, *, backfill: bool = True) -> None:
    """3.6(8): the greeting first, the user's last words last; where the agent has the last word, it was cut off.

    `backfill`: what the user was to say replaces what was last heard of them.
    """
    if not trace:
        if greeting := assistant.intended.get(0):
            trace.append(Entry(ASSISTANT, INTENDED, 0, greeting))
        return
    if trace[0].role == USER and trace[0].turn > 0:
        _greet_first(trace, assistant)
    if not user.intended:
        return
    last = max(user.intended)
    if last > trace[-1].turn:
        trace.append(Entry(USER, INTENDED, last, user.intended[last]))
    else:
        _cut_off_at_the_end(trace, assistant)
    if backfill and not user.transcribed.get(last):
        user.transcribed[last] = user.intended[last]


def _greet_first(trace: list[Entry], assistant: Aligned) -> None:
    for index, entry in enumerate(trace):
        if entry.role == ASSISTANT and entry.turn == 0:
            trace.insert(0, trace.pop(index))
            return
    greeting = assistant.intended.get(0)
    type_, text = (INTENDED, greeting) if greeting else (TRANSCRIBED, assistant.transcribed.get(0))
    trace.insert(0, Entry(ASSISTANT, type_, 0, text))


def _cut_off_at_the_end(trace: list[Entry], assistant: Aligned) -> None:
    last = trace[-1]
    if last.role == ASSISTANT:
        turn = last.turn
        last.content = f"{last.content} {CUT_ITSELF_OFF}"
    else:
        turn = max(assistant.intended, default=-1)
        text = assistant.intended.get(turn)
        if turn < last.turn or not text or any(entry.role == ASSISTANT and entry.turn == turn for entry in trace):
            return
        trace.append(Entry(ASSISTANT, INTENDED, turn, f"{text} {CUT_ITSELF_OFF}"))
    if text := assistant.intended.get(turn):
        assistant.intended[turn] = f"{text} {CUT_ITSELF_OFF}"
    if text := assistant.transcribed.get(turn):
        assistant.transcribed[turn] = f"{text} {CUT_ITSELF_OFF}"
    else:
        assistant.transcribed[turn] = assistant.intended.get(turn)


_FAR = 1e12
_NO_SHIFT: Mapping[str, int] = MappingProxyType({})


class EvaReading(msgspec.Struct, frozen=True, kw_only=True):
    """One call as that system reads it, by turn: 0 is the greeting, n the user's n-th utterance and the reply to it."""

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


@cached_on_argument
def eva_reading(conversation: Conversation) -> EvaReading:
    """The call as the published fixtures of EVA read its logs; read once for each conversation."""
    # An offset that no clock can have counts as 0.
    offsets = {clock.id: clock.offset or 0.0 for clock in conversation.clocks}
    shifts = {id: round(1000 * offset) for id, offset in offsets.items() if abs(offset) < _FAR}
    return read_eva(completed(conversation), conversation.pipeline, shifts)


def read_eva(log: Sequence[Logged], pipeline: str | None, shift_ms: Mapping[str, int] = _NO_SHIFT) -> EvaReading:
    """Join the records of a call as the published fixtures do (voice logs, 3).

    The log comes source by source, audit, framework, simulator, each in the order of its file, the
    framework's texts as merged runs. `shift_ms` is added to the times of a source before sorting.
    """
    moments = _moments(log, shift_ms)
    order = sorted(range(len(log)), key=moments.__getitem__)
    state = CallState(pipeline, log, _endless(log, order), _noise_at_the_end(log, order))
    for index in order:
        state.meet(index, log[index])

    end = _session_end(log, moments, state, shift_ms)
    user_audio = _intervals(state, USER, end)
    assistant_audio = _intervals(state, ASSISTANT, end)
    trace = state.trace
    # Without a framework log nothing is known of what was spoken: then all counts (3.9, missing logs).
    if state.knows_what_was_spoken and not state.s2s:
        trace = spoken(trace, state.segments)
    trace = group(trace)
    label_interruptions(trace, state.assistant_interrupted, state.user_interrupted)
    # 3.6(5): calls and responses in order, with repeats.
    calls, responses = (
        [entry for entry in trace if entry.type == kind and entry.payload is not None]
        for kind in ("tool_call", "tool_response")
    )

    user = align(state.transcribed[USER], state.intended[USER], user_audio)
    assistant = align(state.transcribed[ASSISTANT], state.intended[ASSISTANT], assistant_audio)
    reconcile(trace, user, assistant, backfill=not state.alone.meant)
    texts = state.transcribed if state.s2s or state.alone.caught else state.intended
    # Where an audit log is there and has no line of the user, the rule counts none (3.6, step 5).
    is_audited = any(record.source == "audit" for record in log)
    users = state.intended if state.alone.meant and not is_audited else state.transcribed
    # When the assistant was first heard in each turn, also where the end of that sound was lost.
    began = {turn: spans[0][0] for turn, spans in assistant_audio.items()} | state.first_lost_start
    # 3.6(7): from the end of the user's last sound to the assistant's first.
    ended = {turn: spans[-1][1] for turn, spans in user_audio.items()}
    for turn, starts in state.starts[USER].items():
        ends = state.ends[USER].get(turn, [])
        # The start of the user's last sound may be lost.
        if starts[-1] is None and len(ends) >= len(starts) and (lost_end := ends[len(starts) - 1]) is not None:
            ended[turn] = lost_end
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
        tool_called=[entry.tool.lower() if isinstance(entry.tool, str) else "" for entry in calls],
        tool_params=[{"tool_name": entry.tool, "tool_parameters": entry.payload} for entry in calls],
        tool_responses=[{"tool_name": entry.tool, "tool_response": entry.payload} for entry in responses],
        num_assistant_turns=len(texts[ASSISTANT]),
        num_user_turns=len(users[USER]),
        num_tool_calls=len(calls),
        latency_assistant_turns={turn: round(began[turn] - ended[turn], 6) for turn in sorted(ended) if turn in began},
        turn_of=tuple(state.turn_of),
        log=tuple(log),
    )


def _endless(log: Sequence[Logged], order: Sequence[int]) -> frozenset[int]:
    """Starts of the assistant's sound whose end was lost (3.9).

    The assistant starts again without having ended, and the user spoke in between: it had
    not been speaking all the time, and no one was interrupted.
    """
    lost: set[int] = set()
    began: int | None = None
    answered = False
    for index in order:
        record = log[index]
        if record.kind == "audio_start" and record.speaker == ASSISTANT:
            if began is not None and answered:
                lost.add(began)
            began, answered = index, False
        elif record.kind == "audio_end" and record.speaker == ASSISTANT:
            began = None
        elif record.kind == "audio_end" and record.speaker == USER:
            answered = True
    return frozenset(lost)


def _noise_at_the_end(log: Sequence[Logged], order: Sequence[int]) -> frozenset[int]:
    """Sounds of the user after which, and in which, no word is logged: noise, and no turn (3.9).

    Where the user has no word in the whole call there is no last one.
    """
    noise: list[int] = []
    has_spoken = is_open = replied = waits = False
    for index in order:
        record = log[index]
        if record.kind == "audio_start" and record.speaker == USER:
            noise = [] if waits else [*noise, index]
            is_open, replied, waits = True, False, False
        elif record.kind == "audio_end" and record.speaker == USER:
            noise = [*noise, index] if noise else noise
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
    """When each record was logged; one without a time keeps its position in the file (3.1 step 4)."""
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
    is_noise = role == USER and state.rolled_back_at_zero and 1 in intervals
    if is_noise and 0 not in state.intended[USER] and 0 not in state.transcribed[USER]:
        # An empty session's interval joins the next real session's list (3.5), also where no turn came before it.
        intervals[1] = intervals.pop(0, []) + intervals[1]
    return intervals


def eva_turns(conversation: Conversation) -> tuple[Turn, ...]:
    """Turns as the published fixtures of EVA count them in the logs of a call.

    An event belongs to the turn in which the first log record that it was made of was met; one that
    no record speaks of stays with the event before it. Without logs there is nothing to count by,
    and turns are exchanges.
    """
    if not conversation.log:
        return exchange(conversation)
    first: dict[int, int] = {}
    reading = eva_reading(conversation)
    for record, turn in zip(reading.log, reading.turn_of, strict=True):
        if record.event >= 0:
            first.setdefault(record.event, turn)
    turns: dict[int, list[AnyEvent]] = {}
    current = 0
    for event in conversation.timeline:
        current = first.get(event.seq, current)
        turns.setdefault(current, []).append(event)
    return tuple(turn_of(number, conversation, turns[number]) for number in sorted(turns))
