"""Stretches of sound, from a log that says when each side began and ended."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from convoscope.conversation import Logged
from convoscope.ingest.report import Notes

START, END = "audio_start", "audio_end"


class SoundSpan:
    """One side makes itself heard, from start to end; None is what the log does not tell."""

    __slots__ = ("end", "records", "role", "since", "start", "texts", "till")

    def __init__(self, role: str, start: float | None, end: float | None, records: list[int]) -> None:
        self.role = role
        self.start = start
        self.end = end
        self.since = start if start is not None else end or 0.0
        """When it began, or, where that is lost, the latest that is known to lie before it."""
        self.till = end if end is not None else self.since
        """When it ended, or, where that is lost, the earliest that is known to lie behind it."""
        self.records = records
        """Places in the log that it was read from."""
        self.texts: list[int] = []
        """Places in the log of the texts that belong to it."""

    @property
    def at(self) -> float:
        """Where it stands in the order."""
        return self.since

    @property
    def until(self) -> float:
        return self.end if self.end is not None else self.till

    @property
    def length(self) -> float | None:
        return None if self.start is None or self.end is None else self.end - self.start


def find_sounds(log: Sequence[Logged], order: Sequence[int], shift: float, notes: Notes) -> list[SoundSpan]:
    """The sounds of both sides in the order of their starts.

    A start while the same side is sounding means that an end was lost; an end without a start, that
    a start was. Nothing is made up for what is lost, but that the last sound of a call cannot
    outlast it. `shift` leads from the clock of sounds to that of the log.
    """
    sounds: list[SoundSpan] = []
    sounding: dict[str, SoundSpan] = {}
    for moment, place in _moments(log, order, shift, notes):
        _hear(log[place], moment, place, sounds, sounding, notes)
    ended = max(
        (ms / 1000 for place in order if (ms := log[place].ms) is not None and _is_end(log[place])), default=None
    )
    for sound in sounding.values():
        if ended is not None and sound.start is not None and sound is sounds[-1] and ended >= sound.start:
            sound.end = ended
            notes.inferred("sound_ends_with_the_call", f"the {sound.role}'s last sound")
        else:
            notes.repaired("audio_end_missing", f"{sound.role}, sound of {sound.at:.3f} s")
    if any(sound.start is None for sound in sounds):
        _begin(sounds)
    sounds.sort(key=lambda sound: sound.at)
    for sound, after in pairwise(sounds):
        if sound.end is None:
            sound.till = after.at
    return sounds


def _moments(log: Sequence[Logged], order: Sequence[int], shift: float, notes: Notes) -> list[tuple[float, int]]:
    """When sounds began and ended, by the sound itself: an end is often logged late."""
    moments: list[tuple[float, int]] = []
    for place in order:
        record = log[place]
        if record.kind in (START, END):
            moment = record.sound + shift if record.sound is not None else None
            if moment is None and record.ms is not None:
                moment = record.ms / 1000
            if moment is None or not record.speaker:
                notes.ignored("sound_without_time_or_speaker")
            else:
                moments.append((moment, place))
    if any(before[0] > after[0] for before, after in pairwise(moments)):
        moments.sort(key=lambda one: one[0])
    return moments


def _begin(sounds: list[SoundSpan]) -> None:
    """A sound whose start is lost began after its own side, and after the other side's last whole sound, had ended."""
    for sound in sounds:
        if sound.start is None and sound.end is not None:
            over = [
                other.until
                for other in sounds
                if other is not sound
                and other.until < sound.end
                and (other.start is not None or other.role == sound.role)
            ]
            sound.since = max(over, default=sound.end)


def _hear(
    record: Logged, moment: float, place: int, sounds: list[SoundSpan], sounding: dict[str, SoundSpan], notes: Notes
) -> None:
    role = record.speaker
    if record.kind == START:
        if role in sounding:
            notes.repaired("audio_end_missing", f"{role}, sound of {sounding[role].at:.3f} s")
        sounding[role] = SoundSpan(role, moment, None, [place])
        sounds.append(sounding[role])
    elif role in sounding:
        sound = sounding.pop(role)
        sound.end = moment
        sound.records.append(place)
    else:
        notes.repaired("audio_start_missing", f"{role}, sound that ended at {moment:.3f} s")
        sounds.append(SoundSpan(role, None, moment, [place]))


def parted(
    sounds: list[SoundSpan], agent: Sequence[SoundSpan], words: Sequence[float], notes: Notes
) -> list[SoundSpan]:
    """The user's sounds, parted where an end and the next start were lost.

    That is where a whole sound of the agent lies inside one of the user's, and the user has words
    (logged at the moments `words`) both before and after it.
    """
    parts: list[SoundSpan] = []
    for sound in sounds:
        at, until = sound.at, sound.until
        inside = [one for one in agent if at < one.since and one.until < until] if sound.length else []
        mine = [at for at in words if sound.at - 0.3 <= at <= sound.until] if inside else []
        between = next((one for one in inside if any(at < one.at for at in mine) and mine[-1] > one.until), None)
        if between is None:
            parts.append(sound)
            continue
        first, second = SoundSpan("user", sound.start, None, sound.records[:1]), SoundSpan("user", None, sound.end, [])
        first.till, second.since, second.records = between.at, between.until, sound.records[1:]
        parts += [first, second]
        notes.repaired("audio_end_missing", f"user, sound of {first.at:.3f} s")
        notes.repaired("audio_start_missing", f"user, sound that ended at {second.until:.3f} s")
    return parts


def _is_end(record: Logged) -> bool:
    return (
        record.kind == "connection_state"
        and isinstance(record.value, dict)
        and record.value.get("state") == "session_ended"
    )


def sound_shift(log: Sequence[Logged], order: Sequence[int]) -> float:
    """Seconds from the clock of sounds to that of the log, where they are not the same clock at all."""
    gaps = sorted(
        record.ms / 1000 - record.sound
        for place in order
        if (record := log[place]).kind == START and record.sound is not None and record.ms is not None
    )
    middle = gaps[len(gaps) // 2] if gaps else 0.0
    return middle if abs(middle) > _ANOTHER_CLOCK else 0.0


_ANOTHER_CLOCK = 60.0
