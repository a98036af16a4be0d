"""A conversation against its recording: which logged times are compared with which tracks, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import is_
from typing import NamedTuple

from convoscope.audio.against_log import (
    LogComparison,
    LoggedTurn,
    Shift,
    Spans,
    are_separate,
    compare,
    estimated_shift,
    goes_on_through,
    joined,
    total,
)
from convoscope.audio.levels import QUIET, levels_of
from convoscope.audio.speakers import LEAST_SPEECH
from convoscope.conversation import ASSISTANT, SYSTEM, USER, Conversation, Utterance
from convoscope.resources.sound import FROM_SOUND, RecordedTrack, Recording, RecordingError

ALL = ""
"""The speaker of a sound in which all are heard."""
_KEPT = "_against_log"


class NotCompared(NamedTuple):
    """Why a log and a recording are not compared: a reason code, and a detail."""

    reason: str
    detail: str = ""
    applies: bool = True
    """False where there is nothing that could be compared."""


class CallComparison(NamedTuple):
    """A log and the sound of its call. Seconds of the sound are in common time where `has_start`."""

    comparison: LogComparison
    sound: Mapping[str, Spans]
    """Voice activity by participant; by `ALL` where it is not known who is heard when."""
    untimed: tuple[Utterance, ...]
    """Utterances of these speakers without times of their sound."""
    has_start: bool
    """The log says when the recording began, so that a shift of the clocks is one."""
    why_mixed: str = ""
    """The reason code, where voice activity is not known by speaker."""
    without_track: tuple[str, ...] = ()
    """Other speakers, such as a person who took over: they are heard on the track of someone else."""
    begin: float = 0.0
    end: float = 0.0
    """Of the recording, in seconds of the sound."""

    @property
    def is_mixed(self) -> bool:
        return ALL in self.sound


class _Kept(NamedTuple):
    tracks: tuple[RecordedTrack, ...]
    result: CallComparison | NotCompared


def compare_call(conversation: Conversation, recording: Recording) -> CallComparison | NotCompared:
    """The comparison, made once for a conversation."""
    try:
        return _compared_once(conversation, recording.tracks(conversation))
    except RecordingError as error:
        return NotCompared(error.reason, error.detail)


def mixed_shift(conversation: Conversation, track: RecordedTrack) -> Shift:
    """How the times of a log relate to the sound of all in one channel, which they cut into sides.

    Times that do not fit the sound would cut one side out of the other. Raises `RecordingError`.
    """
    compared = _compared_once(conversation, (track,))
    if isinstance(compared, NotCompared):
        raise RecordingError(compared.reason, compared.detail)
    return compared.comparison.shift


def _compared_once(conversation: Conversation, tracks: Sequence[RecordedTrack]) -> CallComparison | NotCompared:
    kept: list[_Kept] = vars(conversation).setdefault(_KEPT, [])
    for before in kept:
        if len(before.tracks) == len(tracks) and all(map(is_, before.tracks, tracks)):
            return before.result
    kept.append(_Kept(tuple(tracks), _compared(conversation, tracks)))
    return kept[-1].result


def _compared(conversation: Conversation, tracks: Sequence[RecordedTrack]) -> CallComparison | NotCompared:
    if any(clock.source == FROM_SOUND for clock in conversation.clocks):
        return NotCompared("times_from_sound", applies=False)
    if refusal := without_speech(tracks):
        return refusal
    has_start = all(track.offset is not None for track in tracks)
    if not has_start and len({track.path for track in tracks}) > 1:
        return NotCompared("recording_start_unknown", "of several files")
    sound, why_mixed = _by_speaker(tracks)
    spoken = [one for one in conversation.utterances if conversation.roles[one.speaker] != SYSTEM]
    others = {one.speaker for one in spoken if conversation.roles[one.speaker] not in (ASSISTANT, USER)}
    if why_mixed:
        turns = [LoggedTurn(one.seq, ALL, tuple(conversation.sounds(one))) for one in spoken if one.segments]
        untimed = [one for one in spoken if not one.segments]
    else:
        spoken = [one for one in spoken if one.speaker in sound]
        turns = [LoggedTurn(one.seq, one.speaker, tuple(conversation.sounds(one))) for one in spoken if one.segments]
        untimed = [one for one in spoken if not one.segments]
    without_track = () if why_mixed else tuple(sorted(others - sound.keys()))
    if not turns:
        return NotCompared("no_sound", "no times of sound of a speaker who was recorded")
    shift = estimated_shift(turns, sound, 0.0 if has_start else None)
    if isinstance(shift, str):
        # A few turns are no evidence of a shift; what the log itself says still holds.
        if shift != "too_few_turns" or not has_start:
            return NotCompared(shift)
        if why_mixed and goes_on_through(turns, sound):
            return NotCompared("log_does_not_fit_sound", "speech goes on through the pauses that the log has")
        shift = Shift(0.0)
    begin = min(track.offset or 0.0 for track in tracks)
    end = max((track.offset or 0.0) + track.seconds for track in tracks)
    return CallComparison(
        compare(turns, sound, shift, (begin, end)),
        sound,
        tuple(untimed),
        has_start,
        why_mixed,
        without_track,
        begin,
        end,
    )


def without_speech(tracks: Sequence[RecordedTrack]) -> NotCompared | None:
    """Why nothing is said of a recording with next to no speech; None for others."""
    speech = sum(total(track.speech()) for track in tracks)
    if speech >= LEAST_SPEECH:
        return None
    if not speech and all(levels_of(track).peak < QUIET for track in tracks):
        return NotCompared("recording_silent", "never louder than −60 dBFS")
    return NotCompared("too_little_speech", f"{speech:.1f} s of speech; at least {LEAST_SPEECH:g}", applies=False)


def _by_speaker(tracks: Sequence[RecordedTrack]) -> tuple[dict[str, Spans], str]:
    """Voice activity by participant; or of all together, and why."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for track in tracks:
        start = track.offset or 0.0
        spans.setdefault(track.speaker, []).extend((at + start, until + start) for at, until in track.speech())
    sound: dict[str, Spans] = {speaker: joined(heard, 0.0) for speaker, heard in spans.items()}
    are_mixed = any(track.basis == "not_separate" for track in tracks) or not are_separate(sound.values())
    why = "channels_not_separate" if are_mixed else "speakers_unknown" if ALL in sound else ""
    return ({ALL: joined([span for heard in sound.values() for span in heard], 0.0)}, why) if why else (sound, "")
