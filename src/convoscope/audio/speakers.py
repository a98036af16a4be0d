"""The sound of one speaker in the tracks of a call: a track of their own, or what the log's times cut out of a mix."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.audio.sides import ASSISTANTS, USERS, logged_spans
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.resources.sound import CONTRADICTION, NOT_SEPARATE_TEXT, RecordedTrack, RecordingError, Span

LONGEST_PAUSE = 0.5
"""Seconds: after a longer pause, what is said is another stretch of speech."""
LEAST_TURN = 1.0
"""Seconds that a stretch of speech lasts at least, to be scored by itself (specs: judged 6)."""
LEAST_SPEECH = 3.0
"""Seconds of speech in all, without which there is nothing to score (specs: judged 6)."""
_SHORTEST = 0.1


class SpeakerSound(NamedTuple):
    """When one speaker speaks in one track."""

    track: RecordedTrack
    speech: tuple[Span, ...]
    basis: str

    @property
    def seconds(self) -> float:
        return sum(end - start for start, end in self.speech)

    @property
    def turns(self) -> tuple[Span, ...]:
        """Stretches of speech without longer pauses, in seconds of the track."""
        return tuple(span for span in joined(self.speech, LONGEST_PAUSE) if span.end - span.start >= LEAST_TURN)

    def common(self, seconds: float) -> float:
        """A moment of the track as the page wants it: in the common time, where it is known how they relate."""
        return round(seconds + (self.track.offset or 0.0), 3)


def joined(spans: Sequence[Span], pause: float) -> list[Span]:
    """Spans in order, without the pauses that are shorter than this."""
    result: list[Span] = []
    for span in sorted(spans):
        if result and span.start - result[-1].end < pause:
            result[-1] = Span(result[-1].start, max(result[-1].end, span.end))
        else:
            result.append(span)
    return result


def sounds_of(conversation: Conversation, tracks: Sequence[RecordedTrack], role: str) -> list[SpeakerSound]:
    """Where a role is heard. Raises `RecordingError` where that is not known."""
    own = [track for track in tracks if track.role == role]
    if own:
        return [SpeakerSound(track, track.speech(), track.basis) for track in own]
    track = mixed_track(tracks)
    if track is None:
        raise no_side(tracks, role)
    other = USER if role == ASSISTANT else ASSISTANT
    own_spans, other_spans = _spans(conversation, track, role), _spans(conversation, track, other)
    if not own_spans:
        raise no_side(tracks, role)
    return [SpeakerSound(track, tuple(without(common_to(track.speech(), own_spans), other_spans)), "segments")]


def mixed_track(tracks: Sequence[RecordedTrack]) -> RecordedTrack | None:
    """The one track on which a side without a track of its own is heard."""
    mixed = [track for track in tracks if not track.role]
    is_one = len(mixed) == 1 and (len(tracks) == 1 or mixed[0].basis == "not_separate")
    return mixed[0] if is_one else None


def no_side(tracks: Sequence[RecordedTrack], role: str) -> RecordingError:
    """Why a side is on none of several tracks."""
    if any(track.basis == "not_separate" for track in tracks):
        return RecordingError("channels_not_separate", NOT_SEPARATE_TEXT)
    if any(track.role for track in tracks):
        return RecordingError("no_track_of_speaker", f"no track is known to hold the {role}")
    if any(track.basis == "contradicted" for track in tracks):
        return RecordingError("speakers_unknown", CONTRADICTION)
    if len(tracks) == 1:
        return RecordingError("speakers_unknown", "all are heard on one channel, and the log has no times of its sound")
    return RecordingError("speakers_unknown", "neither the log nor its times say who is heard on which channel")


def _spans(conversation: Conversation, track: RecordedTrack, role: str) -> list[Span]:
    """When a role speaks by the log, in seconds of the track: the recording's own timeline, else the segments."""
    recording = conversation.recording
    if recording is not None and (spans := list(_timeline(conversation, recording.extras.get("timeline"), role))):
        return joined(spans, 0.0)
    is_timed = any(utterance.segments for utterance in conversation.utterances)
    spans = logged_spans(conversation, role) if is_timed else []
    return joined(on_mixed_track(conversation, track, spans), 0.0)


def on_mixed_track(
    conversation: Conversation, track: RecordedTrack, spans: Sequence[tuple[float, float]]
) -> list[Span]:
    """Spans of the log in seconds of a track that holds all, where they are heard. Raises `RecordingError`."""
    from convoscope.audio.call_comparison import mixed_shift

    if track.offset is None or not spans:
        return []
    shift = mixed_shift(conversation, track)
    return [Span(shift.to_sound(start) - track.offset, shift.to_sound(end) - track.offset) for start, end in spans]


def _timeline(conversation: Conversation, timeline: Any, role: str) -> Iterator[Span]:
    """`raw_complete_audio.timeline`: records of speaker, start and end, in seconds (specs: standard-data 2.5)."""
    words = {ASSISTANT: ASSISTANTS, USER: USERS}.get(role, frozenset())
    labels = {one.casefold() for who in conversation.participants if who.role == role for one in (who.id, who.name)}
    records = [timeline] if isinstance(timeline, Mapping) else timeline if isinstance(timeline, list) else []
    for record in records:
        if isinstance(record, Mapping) and str(record.get("speaker", "")).casefold() in (words | labels) - {""}:
            start, end = record.get("start"), record.get("end")
            if isinstance(start, int | float) and isinstance(end, int | float) and 0 <= start < end < math.inf:
                yield Span(float(start), float(end))


def common_to(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Where both are, of two lists in order; leaves out scraps."""
    result: list[Span] = []
    first = 0
    for span in spans:
        while first < len(others) and others[first].end <= span.start:
            first += 1
        for other in others[first:]:
            if other.start >= span.end:
                break
            both = Span(max(span.start, other.start), min(span.end, other.end))
            if both.end - both.start >= _SHORTEST:
                result.append(both)
    return result


def without(spans: Sequence[Span], others: Sequence[Span]) -> list[Span]:
    """Where the first are and the others are not; leaves out scraps."""
    result: list[Span] = []
    for span in spans:
        start = span.start
        for other in others:
            if other.end <= start or other.start >= span.end:
                continue
            if other.start - start >= _SHORTEST:
                result.append(Span(start, other.start))
            start = max(start, other.end)
        if span.end - start >= _SHORTEST:
            result.append(Span(start, span.end))
    return result
