"""Moments of a recording that observations name in their details (docs/guides/sound.md), as the page marks them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.analysis.words import counted, seconds_text
from convoscope.conversation import ASSISTANT, USER, Utterance
from convoscope.harmless import one_line
from convoscope.report.speech_lanes import LaneSpan, SpeechLanes
from convoscope.runs.conversations import KeptConversation
from convoscope.scores.observation import MEASURED, Observation

MOST = 400
"""SoundMarks of a call that are drawn; counts are of all."""
QUALITY = "quality"
MOS = "audio.mos"
PASSES = 3.8
"""7 of 10 points (specs: judged 6); a telephone's sound has no mark."""
MOMENTS = "moments"
SILENCE = "silence"
SILENCES = "audio.longest_silence"
"""The metric that has all silences of a recording."""
_WORDS: Mapping[str, tuple[str, str]] = {
    "overlap": ("overlap", "overlaps"),
    "dropout": ("dropout", "dropouts"),
    "click": ("click", "clicks"),
    "clipping": ("moment of clipping", "moments of clipping"),
    "barge_in_lost": ("barge-in lost", "barge-ins lost"),
    "not_in_log": ("not in the log", "not in the log"),
    "not_in_sound": ("in the log, no sound", "in the log, no sound"),
    "cut_off": ("reply that may be cut off", "replies that may be cut off"),
    "silence": ("silence", "silences"),
    "breakage": ("break", "breaks"),
    "words": ("heard otherwise", "heard otherwise"),
    "pronunciation": ("pronounced otherwise", "pronounced otherwise"),
}
_OF_THE_USER = frozenset((USER, "caller"))
"""Variants of metrics that are about the user's sound."""
_LASTING = frozenset(("overlap", "dropout", "clipping"))


class SoundMoment(msgspec.Struct, frozen=True):
    """A moment as details have it."""

    start: float
    kind: str
    end: float | None = None
    text: str = ""
    speaker: str = ""
    value: float | None = None


class SoundMark(msgspec.Struct, frozen=True, array_like=True):
    """A moment on the clock of the lanes; `lane` is that of its speaker."""

    kind: str
    start: float
    end: float
    text: str = ""
    lane: int | None = None


class SoundChip(msgspec.Struct, frozen=True, array_like=True):
    """A kind of mark: how many there are, in words, and when."""

    kind: str
    text: str
    seconds: tuple[float, ...] = ()


class QualityBar(NamedTuple):
    """How an utterance of the agent sounds, from 1 to 5, and whether that is too low."""

    start: float
    end: float
    value: float
    is_low: bool


class SoundMarks(NamedTuple):
    """All moments of a call, by time, and the quality of each utterance."""

    marks: tuple[SoundMark, ...]
    quality: tuple[QualityBar, ...]
    counts: Mapping[str, tuple[int, float]]
    """By kind: how many, and how long together."""
    mean_quality: float | None


def heard_silences(record: KeptConversation, shift: Callable[[float], float]) -> tuple[LaneSpan, ...] | None:
    """The silences of the sound that are worth a mark; None where they were not measured."""
    for score in record.scores:
        if score.metric == SILENCES and score.observation.status == MEASURED:
            silent = [one for one in _moments(score.observation) if one.kind == SILENCE and one.end is not None]
            return tuple(LaneSpan(shift(one.start), shift(one.end)) for one in silent if one.end is not None)
    return None


def marks_of(
    record: KeptConversation, shift: Callable[[float], float], lanes: Mapping[str, int], without: str = ""
) -> SoundMarks:
    """The moments that a conversation's observations name; `lanes` are the lanes by speaker. `without` one metric."""
    speakers = {event.seq: event.speaker for event in record.conversation.timeline if type(event) is Utterance}
    marks: dict[SoundMark, None] = {}
    quality: list[QualityBar] = []
    for score in record.scores:
        if score.metric == without:
            continue
        kind, _, seq = score.observation.subject
        said_by = speakers.get(seq, "") if kind == "utterance" and seq is not None else ""
        role = USER if score.variant in _OF_THE_USER else ASSISTANT
        default = next((lane for who, lane in lanes.items() if record.conversation.roles.get(who) == role), None)
        for moment in _moments(score.observation):
            end = moment.end if moment.end is not None and moment.end >= moment.start else moment.start
            start, end = shift(moment.start), shift(end)
            if moment.kind != QUALITY:
                # A silence belongs to no speaker.
                lane = lanes.get(moment.speaker or said_by, None if moment.kind == SILENCE else default)
                marks[SoundMark(one_line(moment.kind, 40), start, end, one_line(moment.text, 200), lane)] = None
            elif moment.value is not None and 1 <= moment.value <= 5 and role == ASSISTANT:
                is_low = score.metric == MOS and not score.variant and moment.value < PASSES
                quality.append(QualityBar(start, end, round(moment.value, 2), is_low))
    ordered = sorted(marks, key=lambda mark: (mark.start, mark.kind))
    counts: dict[str, tuple[int, float]] = {}
    for mark in ordered:
        count, seconds = counts.get(mark.kind, (0, 0.0))
        counts[mark.kind] = count + 1, seconds + mark.end - mark.start
    reduced = [
        one
        for one in record.reduced
        if one.metric == MOS and one.variant not in _OF_THE_USER and one.status == MEASURED
    ]
    mean = reduced[0].value if reduced else None
    return SoundMarks(tuple(ordered[:MOST]), tuple(sorted(quality)[:MOST]), counts, mean)


def _moments(observation: Observation) -> Iterator[SoundMoment]:
    """What is not of the shape is not shown: anybody may write details."""
    details = observation.details
    given: Any = details.get(MOMENTS) if isinstance(details, Mapping) else None
    for record in given if isinstance(given, list | tuple) else ():
        try:
            moment = msgspec.convert(record, SoundMoment)
        except msgspec.ValidationError:
            continue
        if math.isfinite(moment.start) and (moment.end is None or math.isfinite(moment.end)) and moment.kind:
            yield moment


_REASONS = ("barge_in_lost", "dropout", "not_in_sound", "cut_off", "clipping", "click")
"""What may be why a call went wrong, the gravest first."""


def grave_chips(marks: SoundMarks) -> list[SoundChip]:
    """What the sound shows of the reasons of a call."""
    chips = [chip for chip in mark_chips(marks, None, ()) if chip.kind in _REASONS]
    return sorted(chips, key=lambda chip: _REASONS.index(chip.kind))


def mark_chips(
    marks: SoundMarks | None, lanes: SpeechLanes | None, silences: Sequence[LaneSpan]
) -> Iterator[SoundChip]:
    """Legend, count and where: what the times of the log show first, then what the sound does."""
    counts = marks.counts if marks is not None else {}
    drawn = marks.marks if marks is not None else ()
    overlaps = lanes.overlaps if lanes is not None else ()
    if overlaps and "overlap" not in counts:
        text = f"{counted(len(overlaps), 'overlap')}, {seconds_text(sum(span.length for span in overlaps))}"
        yield SoundChip("overlap", text, tuple(span.start for span in overlaps[:MOST]))
    for kind, (count, seconds) in counts.items():
        names = _WORDS.get(kind, (kind.replace("_", " "),) * 2)
        text = f"{count:,} {names[count != 1]}" + (f", {seconds_text(seconds)}" if kind in _LASTING else "")
        yield SoundChip(kind, text, tuple(mark.start for mark in drawn if mark.kind == kind))
    if silences and SILENCE not in counts:
        longest = seconds_text(max(span.length for span in silences))
        starts = tuple(span.start for span in silences[:MOST])
        yield SoundChip(SILENCE, f"{counted(len(silences), 'silence')}, longest {longest}", starts)
    if marks is not None and marks.quality:
        worst = min(marks.quality, key=lambda one: one.value)
        mean = "" if marks.mean_quality is None else f"{marks.mean_quality:.2f} of 5, "
        yield SoundChip(QUALITY, f"sound quality (MOS) {mean}worst {worst.value:.2f}", (worst.start,))
