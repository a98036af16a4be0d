"""Spans of sound, the texts that belong to them, and whether the clocks of two logs agree."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import pairwise
from operator import sub
from statistics import median
from typing import NamedTuple

from convoscope.conversation import Logged
from convoscope.ingest.record import as_object
from convoscope.ingest.report import Notes
from convoscope.text.folding import compact, likeness, resemble

NOWHERE = -1
_ENDLESS = float("inf")
_BAND = 60
_ANOTHER_CLOCK = 60.0


def assigned(
    items: int,
    empty: Sequence[float],
    cost: Callable[[int, int], float],
    *,
    again: float,
    alone: float,
) -> list[int]:
    """The position of each item, or NOWHERE, so that the whole costs least and no two cross.

    `empty` has for each position what it costs to leave it without an item, `cost` what an item costs
    at a position, `again` what a second item at one position costs on top, `alone` an item without a position.
    Of many positions an item is held only against those near its share of the way, so that a long call
    costs no square.
    """
    positions = len(empty)
    reach_of = _BAND + abs(positions - items)
    left = [0.0]
    for price in empty:
        left.append(left[-1] + price)
    # best[p]: the items so far, the last placed one at position p - 1; p = 0: none placed yet.
    best = [0.0, *([_ENDLESS] * positions)]
    # Where an item is placed: the position of the one before it.
    steps: list[dict[int, int]] = []
    for item in range(items):
        now = [value + alone for value in best]
        step: dict[int, int] = {}
        middle = (item + 0.5) * positions / items
        low, high = max(1, int(middle) - reach_of), min(positions, int(middle) + reach_of)
        before_low = list(map(sub, best[:low], left[:low]))
        reach = min(before_low)
        origin = before_low.index(reach)
        for p in range(low, high + 1):
            before, why = reach + left[p - 1], origin
            if best[p] + again < before:
                before, why = best[p] + again, p
            total = before + cost(item, p - 1)
            if total < now[p]:
                now[p], step[p] = total, why
            # A position that was passed with an item on it was not left empty.
            if best[p] - left[p] < reach:
                reach, origin = best[p] - left[p], p
        best = now
        steps.append(step)
    at = min(range(positions + 1), key=lambda p: best[p] + left[positions] - left[p])
    result = [NOWHERE] * items
    for item in reversed(range(items)):
        if at in steps[item]:
            result[item] = at - 1
            at = steps[item][at]
    return result


START, END = "audio_start", "audio_end"


class SoundSpan:
    """One side makes itself heard, from start to end; None is what the log does not have."""

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
        """Indexes in the log that it was read from."""
        self.texts: list[int] = []
        """Indexes in the log of the texts that belong to it."""

    @property
    def at(self) -> float:
        """Where it is in the order."""
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
    for moment, index in _moments(log, order, shift, notes):
        role = log[index].speaker
        if log[index].kind == START:
            if role in sounding:
                notes.repaired("audio_end_missing", f"{role}, sound of {sounding[role].at:.3f} s")
            sounding[role] = SoundSpan(role, moment, None, [index])
            sounds.append(sounding[role])
        elif role in sounding:
            sound = sounding.pop(role)
            sound.end = moment
            sound.records.append(index)
        else:
            notes.repaired("audio_start_missing", f"{role}, sound that ended at {moment:.3f} s")
            sounds.append(SoundSpan(role, None, moment, [index]))
    states = [log[index] for index in order if log[index].kind == "connection_state"]
    ends = [state.ms for state in states if as_object(state.value).get("state") == "session_ended"]
    ended = max((ms / 1000 for ms in ends if ms is not None), default=None)
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
    for index in order:
        record = log[index]
        if record.kind in (START, END):
            moment = record.sound + shift if record.sound is not None else None
            if moment is None and record.ms is not None:
                moment = record.ms / 1000
            if moment is None or not record.speaker:
                notes.ignored("sound_without_time_or_speaker")
            else:
                moments.append((moment, index))
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
        word_times = [at for at in words if sound.at - 0.3 <= at <= sound.until] if inside else []
        between = next(
            (one for one in inside if any(at < one.at for at in word_times) and word_times[-1] > one.until), None
        )
        if between is None:
            parts.append(sound)
            continue
        first, second = SoundSpan("user", sound.start, None, sound.records[:1]), SoundSpan("user", None, sound.end, [])
        first.till, second.since, second.records = between.at, between.until, sound.records[1:]
        parts += [first, second]
        notes.repaired("audio_end_missing", f"user, sound of {first.at:.3f} s")
        notes.repaired("audio_start_missing", f"user, sound that ended at {second.until:.3f} s")
    return parts


def sound_shift(log: Sequence[Logged], order: Sequence[int]) -> float:
    """Seconds from the clock of sounds to that of the log, where they are not the same clock at all."""
    gaps = sorted(
        record.ms / 1000 - record.sound
        for index in order
        if (record := log[index]).kind == START and record.sound is not None and record.ms is not None
    )
    middle = gaps[len(gaps) // 2] if gaps else 0.0
    return middle if abs(middle) > _ANOTHER_CLOCK else 0.0


NOTICEABLE = 1.5
"""Seconds; less than this is no clear difference from the usual delay between two logs."""
_SPREAD = 2.5
_SEVERAL = 3
_PLAIN = 5.0
"""Seconds that one or two texts must be apart, since a single slow answer can be late by less."""
_ALIKE = 0.6
_WINDOW = 12
_LONG = 20
"""Characters of a text that is no accident."""


class HeardText(NamedTuple):
    """A text at a moment of one log's clock."""

    at: float
    text: str


class Skew(NamedTuple):
    """How far a clock is ahead of another, and how many texts say so."""

    seconds: float
    texts: int


def skew(first: Sequence[HeardText], second: Sequence[HeardText], usual: float) -> Skew | None:
    """How far the first clock is ahead of the second; None where they agree, or it is unknown.

    `usual` is the delay from a moment of the second to that of the first when both clocks agree. One pair of texts
    counts only where the texts are long enough to be no accident.
    """
    if not first or not second or _agree(first, second, usual):
        return None
    return _middle([first[i].at - second[j].at - usual for i, j in _pairs(first, second)])


def _middle(gaps: list[float]) -> Skew | None:
    """What most of them agree on, if that is noticeable."""
    if not gaps:
        return None
    middle = median(gaps)
    near = [gap for gap in gaps if abs(gap - middle) <= _SPREAD]
    least = NOTICEABLE if len(near) >= _SEVERAL else _PLAIN
    if abs(middle) < least or 2 * len(near) <= len(gaps):
        return None
    return Skew(median(near), len(near))


def sent_in_time(replies: Sequence[HeardText], runs: Sequence[HeardText], usual: float) -> bool:
    """At a glance: most replies were sent as they are, and when they should have been."""
    when = {compact(run.text): run.at for run in runs}
    gaps = [abs(when[text] - reply.at - usual) for reply in replies if (text := compact(reply.text)) in when]
    return 2 * sum(gap <= NOTICEABLE for gap in gaps) > len(replies)


def sent_after(replies: Sequence[HeardText], words: Sequence[HeardText], usual: float) -> Skew | None:
    """How far the clock of single words is ahead of that of whole replies, which hold the same words exactly."""
    keys = [compact(word.text) for word in words]
    whole = "".join(keys)
    when: dict[int, float] = {}
    position = 0
    for word, key in zip(words, keys, strict=True):
        when.setdefault(position, word.at)
        position += len(key)
    gaps: list[float] = []
    begin = 0
    for reply in replies:
        text = compact(reply.text)
        where = whole.find(text, begin) if len(text) >= _LONG else NOWHERE
        if where in when:
            gaps.append(when[where] - reply.at - usual)
            begin = where + len(text)
    return _middle(gaps)


def _agree(first: Sequence[HeardText], second: Sequence[HeardText], usual: float) -> bool:
    """Side by side in time, most texts find their like: no need to look any further."""
    latest: dict[int, float] = {}
    order = sorted(range(len(second)), key=lambda index: second[index].at)
    times = [second[index].at for index in order]
    for text in first:
        expected = text.at - usual
        after = bisect_left(times, expected)
        nearest = min(order[max(0, after - 1) : after + 1], key=lambda other: abs(expected - second[other].at))
        # Of an utterance that was heard in parts only the last part was logged at its end.
        if resemble(text.text, second[nearest].text):
            latest[nearest] = expected - second[nearest].at
    in_time = sum(abs(gap) <= NOTICEABLE for gap in latest.values())
    return 2 * in_time > min(len(first), len(second))


def _pairs(first: Sequence[HeardText], second: Sequence[HeardText]) -> list[tuple[int, int]]:
    """Texts that are alike, in the order of both."""
    alike = {
        (i, j): likeness(one.text, other.text)
        for i, one in enumerate(first)
        for j, other in enumerate(second)
        if abs(i - j) <= _WINDOW
    }
    indexes = assigned(
        len(first), [0.1] * len(second), lambda i, j: 1 - alike.get((i, j), 0.0), again=0.3, alone=1 - _ALIKE
    )
    # Of several texts on one, the longest says most.
    longest: dict[int, int] = {}
    for i, j in enumerate(indexes):
        if j != NOWHERE and alike.get((i, j), 0.0) >= _ALIKE:
            longest[j] = max(i, longest.get(j, i), key=lambda one: len(first[one].text))
    return [(i, j) for j, i in longest.items()]
