"""The sound of each turn of one side of a call, as clips of its recording."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio.against_log import Shift
from convoscope.audio.call_comparison import CallComparison, compare_call
from convoscope.audio.speakers import mixed_track, no_side
from convoscope.conversation import ASSISTANT, EVA_TURN_RULE, USER, Conversation, Utterance
from convoscope.resources.sound import RecordedTrack, Recording, RecordingError, Sound, Span
from convoscope.views.metric_context import metric_context

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000
MARGIN = 0.2
"""Seconds that are added on both sides of what a log gives for speech."""
LONG_PAUSE = 3.0
"""Seconds: silence in a turn, such as that of a tool, is cut to this."""
LEAST_SPEECH = 0.1
"""Seconds of voice activity that a clip needs."""
LONGEST = 300.0
"""Seconds. A longer clip is not cut: a judge would miss its end."""
_OTHERS = 0.3
"""Seconds that the other side may speak in a clip of a recording of both."""


class TurnClip(NamedTuple):
    """What is heard of a turn: a sound, or why there is none."""

    sound: Sound | None
    spans: tuple[Span, ...] = ()
    """Where it is, in seconds of the common time."""
    reason: str = ""
    detail: str = ""


def turn_clips(
    conversation: Conversation, recording: Recording, role: str, turns: Sequence[int]
) -> dict[int, TurnClip]:
    """The clip of each of these turns of the metric context, for one role.

    Raises `RecordingError` where nothing can be heard of any turn.
    """
    track, is_own = _track(conversation, recording, role)
    if track.offset is None:
        raise RecordingError("recording_start_unknown", "the log does not say when the recording begins")
    if not track.speech():
        raise RecordingError("recording_silent", "there is no speech on the track")
    compared = compare_call(conversation, recording)
    # Where it is known how far the clock of the log is off, a turn is cut where it is heard.
    shift = compared.comparison.shift if isinstance(compared, CallComparison) else Shift(0.0)
    spans = {turn: _on_track(track, found, shift) for turn, found in _turn_spans(conversation, role).items()}
    others = [] if is_own else _joined(_on_track(track, _all_spans(conversation, _other(role)), shift))
    return {turn: _clip(track, turn, spans, others, is_own=is_own) for turn in turns}


def _track(conversation: Conversation, recording: Recording, role: str) -> tuple[RecordedTrack, bool]:
    """The track on which a role is heard, and whether it is heard there alone."""
    tracks = recording.tracks(conversation)
    own = [track for track in tracks if track.role == role]
    if len(own) == 1:
        return own[0], True
    if own:
        raise RecordingError("speakers_unknown", f"{len(own)} tracks are of the {role}")
    has_segments = any(one.segments for one in conversation.utterances if conversation.roles[one.speaker] == role)
    track = mixed_track(tracks)
    if track is not None and has_segments:
        return track, False
    raise no_side(tracks, role)


def _turn_spans(conversation: Conversation, role: str) -> Mapping[int, list[Span]]:
    """When a role speaks in each turn, in common time. A turn of which a part has no time is left out."""
    context = metric_context(conversation)
    if conversation.turn_rule == EVA_TURN_RULE and conversation.log:
        heard = context.audio_timestamps_assistant_turns if role == ASSISTANT else context.audio_timestamps_user_turns
        return {turn: [Span(*span) for span in spans] for turn, spans in heard.items() if spans}
    by_turn: dict[int, list[Span]] = {}
    for turn in conversation.turns:
        utterances = turn.assistant if role == ASSISTANT else turn.user
        spoken = [one for one in utterances if one.meant().strip() or one.segments]
        spans = [_spans(conversation, one) for one in spoken]
        if spans and all(spans):
            by_turn[turn.id] = sorted(span for each in spans for span in each)
    return by_turn


def _spans(conversation: Conversation, utterance: Utterance) -> list[Span]:
    if utterance.segments:
        return [Span(start, end) for start, end in conversation.sounds(utterance) if end > start]
    time = utterance.time
    if time is None or time.until is None or time.until <= time.at:
        return []
    start = conversation.common(time)
    return [Span(start, start + time.until - time.at)]


def _all_spans(conversation: Conversation, role: str) -> list[Span]:
    return [
        span
        for one in conversation.utterances
        if conversation.roles[one.speaker] == role
        for span in _spans(conversation, one)
    ]


def _other(role: str) -> str:
    return USER if role == ASSISTANT else ASSISTANT


def _on_track(track: RecordedTrack, spans: Sequence[Span], shift: Shift) -> list[Span]:
    """Spans of the log in seconds of the track, as far as they are on it."""
    offset = track.offset or 0.0
    heard = ((shift.to_sound(start) - offset, shift.to_sound(end) - offset) for start, end in sorted(spans))
    moved = (Span(max(0.0, start), min(track.seconds, end)) for start, end in heard)
    return [span for span in moved if span.end > span.start]


def _clip(
    track: RecordedTrack, turn: int, spans: Mapping[int, list[Span]], others: Sequence[Span], *, is_own: bool
) -> TurnClip:
    if turn not in spans:
        return TurnClip(None, reason="times_missing", detail="the log does not say when all of this turn was spoken")
    if not spans[turn]:
        return TurnClip(None, reason="not_in_recording", detail="the log's times are outside of the recording")
    if is_own:
        pieces = _with_speech(
            track, spans[turn], [span for one, found in spans.items() if one != turn for span in found]
        )
    else:
        pieces = _joined(spans[turn])
    offset = track.offset or 0.0
    where = tuple(Span(round(one.start + offset, 3), round(one.end + offset, 3)) for one in pieces)
    if shared(pieces, others) > _OTHERS:
        return TurnClip(None, where, "both_speak", "the other side is heard in the same clip")
    if shared(pieces, _joined(track.speech())) < LEAST_SPEECH:
        return TurnClip(None, where, "no_speech_in_turn", "no voice is heard when the log says that it speaks")
    if sum(one.end - one.start for one in pieces) > LONGEST:
        return TurnClip(None, where, "clip_too_long", f"more than {LONGEST:g} s")
    return TurnClip(Sound(track.speaker, RATE, _samples(track, pieces)), where)


def _with_speech(track: RecordedTrack, spans: Sequence[Span], of_others: Sequence[Span]) -> list[Span]:
    """The spans with a margin, and to the end of speech that goes on over it, but not into another turn."""
    widened = []
    for span in spans:
        start, end = span.start - MARGIN, span.end + MARGIN
        for voice in track.speech():
            if voice.start < span.end and span.start < voice.end:
                start, end = min(start, voice.start - MARGIN), max(end, voice.end + MARGIN)
        start = max([0.0, start, *(min(one.end, span.start) for one in of_others if one.start < span.start)])
        end = min([track.seconds, end, *(max(one.start, span.end) for one in of_others if one.end > span.end)])
        widened.append(Span(start, end))
    return _joined(widened)


def _joined(spans: Sequence[Span]) -> list[Span]:
    """Spans that overlap or touch, as one."""
    joined: list[Span] = []
    for span in sorted(spans):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        else:
            joined.append(span)
    return joined


def shared(first: Sequence[Span], second: Sequence[Span]) -> float:
    """Seconds that are in both lists of spans, each of which has no overlaps in itself."""
    return sum(max(0.0, min(one.end, two.end) - max(one.start, two.start)) for one in first for two in second)


def _samples(track: RecordedTrack, pieces: Sequence[Span]) -> NDArray[np.float32]:
    """The pieces one after the other, with the silence between them as far as it is not long."""
    import numpy as np

    parts = []
    for number, piece in enumerate(pieces):
        if number:
            pause = min(LONG_PAUSE, piece.start - pieces[number - 1].end)
            parts.append(np.zeros(round(pause * RATE), np.float32))
        parts.append(track.read(piece.start, piece.end, RATE))
    return np.concatenate(parts)


__all__ = ["RATE", "TurnClip", "turn_clips"]
