"""Which tracks of a recording hold more than one side, by the times of the log, else by the sound alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from convoscope.audio.against_log import (
    LoggedTurn,
    Spans,
    are_separate,
    fitting_shift,
    joined,
    shared,
    total,
    without,
)
from convoscope.audio.levels import levels_of
from convoscope.audio.sides import logged_spans
from convoscope.audio.speakers import LEAST_SPEECH, LEAST_TURN
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.resources.sound import FROM_SOUND, RecordedTrack, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

HEARD = 0.4
"""A track holds a side if so much of its time, by the log, has speech there. Barge-ins and echoes reach less."""
LEAST_LOGGED = 2.0
"""Seconds that a side speaks alone, by the log, for that to be said."""
OWN = 0.2
"""A track on which the other one is heard has speech of its own if it is more than so much of all its speech."""
ONE_LEVEL = 6.0
"""Decibels within which one track stays above the other, whichever side speaks: they hold the same sound, late or
reverberant or filtered as it may be. With a side on each track, now the one is louder, now the other."""
_AWAY = 0.03
"""The share of the steps that may be away from it: words begin and end inside of a step, and a late copy later."""
_STEP = 0.5
_SOFT = 12.0
"""Decibels below the loudest step of a track: softer ones are pauses, which each track has by itself."""
WHOLE = 0.9
"""A track with so much of all speech holds the whole call."""
_EDGE = 0.3
"""Seconds around the other side's logged turns: they begin and end a little earlier or later than they are logged."""


def mixed_tracks(conversation: Conversation, tracks: Sequence[RecordedTrack]) -> list[bool]:
    """Of each of two tracks, whether both sides are heard on it, as far as that is known.

    A track is also mixed where nothing says that it holds one side: the other has no speech of its own, so both sides
    may be heard here.
    """
    speech = _in_common_time(tracks)
    sides = _logged_sides_on(conversation, tracks, speech)
    is_copy = _are_copies(tracks)
    if is_copy and (sides is None or len(set().union(*sides)) > 1) and all(map(total, speech)):
        return [True, True]
    if sides is not None:
        return [len(roles) > 1 for roles in sides]
    if not are_separate(speech):
        # A track whose speech is all on the other one, too, may hold one side; the other one holds more.
        more = [
            total(without(one, other)) >= max(LEAST_SPEECH, OWN * total(one)) for one, other in (speech, speech[::-1])
        ]
        return more if any(more) else [True, True]
    silent = [total(one) < LEAST_TURN for one in speech]
    return [silent[1] and not silent[0], silent[0] and not silent[1]]


def _are_copies(tracks: Sequence[RecordedTrack]) -> bool:
    """Whether one track stays above the other by about the same, whichever side speaks."""
    import numpy as np

    begin = max(track.offset or 0.0 for track in tracks)
    first, second = (_decibels(track, begin - (track.offset or 0.0)) for track in tracks)
    count = min(len(first), len(second))
    first, second = first[:count], second[:count]
    is_loud = (first >= first.max(initial=-120.0) - _SOFT) | (second >= second.max(initial=-120.0) - _SOFT)
    apart = (first - second)[is_loud]
    away = np.abs(apart - np.median(apart)) > ONE_LEVEL if len(apart) else np.zeros(0, bool)
    return float(away.sum()) * _STEP < max(LEAST_TURN, _AWAY * len(away) * _STEP)


def _decibels(track: RecordedTrack, begin: float) -> NDArray[np.float64]:
    """The level of each half second from a moment on."""
    import numpy as np

    levels = levels_of(track)
    many = max(1, round(_STEP / levels.step))
    power = levels.power[round(begin / levels.step) :]
    steps = power[: len(power) // many * many].astype(np.float64).reshape(-1, many).mean(axis=1)
    result: NDArray[np.float64] = 10 * np.log10(np.maximum(steps, 1e-12))
    return result


def whole_track(tracks: Sequence[RecordedTrack]) -> int | None:
    """The track on which all of the call is heard."""
    speech = _in_common_time(tracks)
    every = joined([span for one in speech for span in one], 0.0)
    best = max(range(len(tracks)), key=lambda number: total(speech[number]))
    return best if total(speech[best]) >= WHOLE * total(every) else None


def _in_common_time(tracks: Sequence[RecordedTrack]) -> list[Spans]:
    return [
        joined([(at + (one.offset or 0.0), until + (one.offset or 0.0)) for at, until in one.speech()], 0.0)
        for one in tracks
    ]


def _logged_sides_on(
    conversation: Conversation, tracks: Sequence[RecordedTrack], speech: Sequence[Spans]
) -> list[set[str]] | None:
    """The sides that are heard on each track when the log says that they speak; None where it does not fit the call."""
    if any(clock.source == FROM_SOUND for clock in conversation.clocks):
        return None
    logged: dict[str, list[Span]] = {role: logged_spans(conversation, role) for role in (ASSISTANT, USER)}
    turns = {role: [LoggedTurn(seq, "", (span,)) for seq, span in enumerate(spans)] for role, spans in logged.items()}
    has_start = all(track.offset is not None for track in tracks)
    every = {"": joined([span for one in speech for span in one], 0.0)}
    # That one side is not heard at all is no reason to believe nothing of the other one.
    choices = ([*turns[ASSISTANT], *turns[USER]], turns[ASSISTANT], turns[USER])
    shifts = (fitting_shift(choice, every, 0.0 if has_start else None) for choice in choices)
    shift = next((shift for shift in shifts if shift is not None), None)
    if shift is None:
        return None
    heard = [[(shift.to_log(start), shift.to_log(end)) for start, end in one] for one in speech]
    sides: list[set[str]] = [set() for _ in tracks]
    for role, other in ((ASSISTANT, USER), (USER, ASSISTANT)):
        others = joined([(start - _EDGE, end + _EDGE) for start, end in logged[other]], 0.0)
        alone = without(joined(logged[role], 0.0), others)
        for number, spans in enumerate(heard):
            if total(alone) >= LEAST_LOGGED and total(shared(alone, spans)) >= HEARD * total(alone):
                sides[number].add(role)
    return sides


__all__ = ["mixed_tracks", "whole_track"]
