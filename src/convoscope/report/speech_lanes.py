"""A conversation along its clock: who spoke when, where they overlapped, where there was silence."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

from convoscope.analysis.words import counted, seconds_text
from convoscope.conversation import Conversation, StateEntered, StateExited, Time, ToolCall, Track, Utterance
from convoscope.ingest.recordings import base_name
from convoscope.resources.sound import FROM_SOUND

Kind = Literal["speaker", "tools", "states"]


class LaneSpan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A span of a lane in seconds from the start; a moment where the log has no end."""

    start: float
    end: float | None = None
    seq: int = -1
    label: str = ""

    @property
    def length(self) -> float:
        return 0.0 if self.end is None else self.end - self.start


class Lane(msgspec.Struct, frozen=True, omit_defaults=True):
    """The spans of one speaker, of the tools, of the states."""

    name: str
    kind: Kind
    spans: tuple[LaneSpan, ...] = ()
    role: str = ""
    speaker: str = ""
    """The id of the participant."""


class SpeechLanes(msgspec.Struct, frozen=True, omit_defaults=True):
    """All lanes, as long as the conversation. `tracks` are the files of its sound, which has no lane."""

    length: float
    lanes: tuple[Lane, ...]
    overlaps: tuple[LaneSpan, ...] = ()
    gaps: tuple[LaneSpan, ...] = ()
    """Silence between the first word and the last; unknown where no utterance has an end."""
    is_heard: bool = False
    """Whether the gaps are those of a recording, with what is silent before the first word and after the last."""
    endless: int = 0
    """Utterances without an end in the log: whether there is silence around them is unknown."""
    unplaced: int = 0
    """Moments of clocks that do not relate to the one that most moments have."""
    tracks: tuple[str, ...] = ()

    @property
    def caption(self) -> str:
        """The whole in one line: how long, how much overlaps, the longest silence."""
        parts = [clock_text(self.length) if self.length else "one moment in time"]
        if self.overlaps:
            both = sum(span.length for span in self.overlaps)
            parts.append(f"{counted(len(self.overlaps), 'overlap')}, {seconds_text(both)}")
        if self.gaps:
            longest = max(self.gaps, key=lambda gap: gap.length)
            where = "" if self.is_heard else " between words"
            parts.append(f"longest silence{where} {seconds_text(longest.length)} at {clock_text(longest.start)}")
        if self.endless and (self.overlaps or self.gaps):
            parts.append(f"{counted(self.endless, 'utterance')} without an end")
        if self.unplaced:
            parts.append(f"{counted(self.unplaced, 'moment')} of other clocks not placed")
        return "; ".join(parts)


def clock_text(seconds: float) -> str:
    """`0:59.0`."""
    minutes, rest = divmod(round(seconds, 1), 60)
    return f"{int(minutes)}:{rest:04.1f}"


class Ruler:
    """Seconds from the first moment, for all clocks that relate to the one that most moments have.

    Of a recording without a log they are seconds from its beginning.
    """

    def __init__(self, conversation: Conversation) -> None:
        self._offsets = {clock.id: clock.offset for clock in conversation.clocks}
        events = conversation.timeline
        moments = [event.time for event in events if event.time is not None]
        spoken = [segment for event in events if type(event) is Utterance for segment in event.segments]
        moments += [Time(segment.start, segment.clock) for segment in spoken]
        groups = Counter(self._group(moment) for moment in moments)
        self._main = max(groups, key=lambda name: (groups[name], name)) if groups else None
        placed = [self._common(moment) for moment in moments if self._group(moment) == self._main]
        # Of a recording without a log, its own seconds count: its moments, and what plays it, have these.
        is_sound = any(clock.source == FROM_SOUND for clock in conversation.clocks)
        self._zero = 0.0 if is_sound else min(placed, default=0.0)
        self.unplaced = len(moments) - len(placed)

    def at(self, moment: Time | None) -> float | None:
        """Where a moment lies; None where it has no time, or one that does not relate."""
        if moment is None or self._main is None or self._group(moment) != self._main:
            return None
        return round(self._common(moment) - self._zero, 3)

    def zero_of(self, clock: str) -> float | None:
        """The first moment, in seconds of the common time; None where the clock does not relate to that moment."""
        return self._zero if self._main is not None and self._group(Time(0.0, clock)) == self._main else None

    def _group(self, moment: Time) -> str:
        return "" if self._offsets.get(moment.clock) is not None else moment.clock

    def _common(self, moment: Time) -> float:
        return moment.at + (self._offsets.get(moment.clock) or 0.0)


def speech_lanes(conversation: Conversation, ruler: Ruler) -> SpeechLanes | None:
    """The lanes of a conversation; None where nothing has a time."""
    speakers = [
        Lane(who.name or who.id, "speaker", tuple(_speech(conversation, who.id, ruler)), who.role, who.id)
        for who in conversation.participants
    ]
    lanes = [lane for lane in speakers if lane.spans]
    tools = Lane("tools", "tools", tuple(_tools(conversation, ruler)))
    states = Lane("states", "states", tuple(_states(conversation, ruler)))
    lanes += [lane for lane in (tools, states) if lane.spans]
    if not lanes:
        return None
    ends = [span.start if span.end is None else span.end for lane in lanes for span in lane.spans]
    overlaps, gaps = _together([lane.spans for lane in speakers])
    recording = conversation.recording
    return SpeechLanes(
        length=max(ends),
        lanes=tuple(lanes),
        overlaps=overlaps,
        gaps=gaps,
        endless=sum(span.end is None for lane in speakers for span in lane.spans),
        unplaced=ruler.unplaced,
        tracks=tuple(map(_track_name, recording.tracks)) if recording else (),
    )


def _track_name(track: Track) -> str:
    """As the log has it; of a whole path the name, since reading makes paths whole."""
    return (base_name(track.path) if os.path.isabs(track.path) else track.path) or track.url or track.id


def _speech(conversation: Conversation, speaker: str, ruler: Ruler) -> Iterable[LaneSpan]:
    for utterance in conversation.utterances:
        if utterance.speaker != speaker:
            continue
        if utterance.segments:
            for segment in utterance.segments:
                start, end = ruler.at(Time(segment.start, segment.clock)), ruler.at(Time(segment.end, segment.clock))
                if start is not None:
                    yield LaneSpan(start, end if end is not None and end >= start else None, utterance.seq)
        elif (start := ruler.at(utterance.time)) is not None:
            yield LaneSpan(start, _until(utterance.time, ruler), utterance.seq)


def _tools(conversation: Conversation, ruler: Ruler) -> Iterable[LaneSpan]:
    for event in conversation.timeline:
        if type(event) is ToolCall and (start := ruler.at(event.time)) is not None:
            result = conversation.tool_results.get(event.seq)
            end = ruler.at(result.time) if result else _until(event.time, ruler)
            yield LaneSpan(start, end if end is not None and end >= start else None, event.seq, event.name)


def _states(conversation: Conversation, ruler: Ruler) -> Iterable[LaneSpan]:
    """A state lasts until it is left, or the next is entered."""
    inside: LaneSpan | None = None
    for event in conversation.timeline:
        if not isinstance(event, StateEntered | StateExited) or (at := ruler.at(event.time)) is None:
            continue
        if inside is not None and (type(event) is StateEntered or event.state == inside.label):
            yield LaneSpan(inside.start, at if at >= inside.start else None, inside.seq, inside.label)
            inside = None
        if type(event) is StateEntered:
            inside = LaneSpan(at, None, event.seq, event.state)
    if inside is not None:
        yield inside


def _until(time: Time | None, ruler: Ruler) -> float | None:
    if time is None or time.until is None or time.until < time.at:
        return None
    return ruler.at(Time(time.until, time.clock))


def _together(speakers: Iterable[tuple[LaneSpan, ...]]) -> tuple[tuple[LaneSpan, ...], tuple[LaneSpan, ...]]:
    """Where two or more speak at once, and where there is silence.

    A speaker who began without a known end may be speaking until they begin again: silence in between is unknown.
    """
    edges: list[tuple[float, int]] = []
    unknown: list[tuple[float, float]] = []
    for spans in speakers:
        # From each beginning without an end to the speaker's next beginning.
        ordered = sorted(spans, key=lambda span: span.start)
        after = [*(span.start for span in ordered[1:]), math.inf]
        unknown += [(span.start, until) for span, until in zip(ordered, after, strict=False) if span.end is None]
        for start, end in _merged(spans):
            edges += [(start, 1), (end, -1)]
    overlaps: list[LaneSpan] = []
    gaps: list[LaneSpan] = []
    speaking, since, begun = 0, 0.0, False
    # At one moment, a beginning comes before an end: touching is no gap.
    for at, step in sorted(edges, key=lambda edge: (edge[0], -edge[1])):
        if at > since and speaking >= 2:
            touches = overlaps and overlaps[-1].end == since
            overlaps.append(LaneSpan(overlaps.pop().start if touches else since, at))
        elif at > since and speaking == 0 and begun and not any(a <= at and since < b for a, b in unknown):
            gaps.append(LaneSpan(since, at))
        speaking, since, begun = speaking + step, at, True
    return tuple(overlaps), tuple(gaps)


def _merged(spans: Iterable[LaneSpan]) -> list[tuple[float, float]]:
    """One speaker's spans, with those that touch or overlap as one."""
    merged: list[tuple[float, float]] = []
    for start, end in sorted((span.start, span.end) for span in spans if span.end is not None):
        if end <= start:
            continue
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
