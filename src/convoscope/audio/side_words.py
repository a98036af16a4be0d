"""What a recogniser hears of one side of a call: its words with their times, from clips that end in pauses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from convoscope.audio.recognise import RATE, short_identity
from convoscope.audio.speakers import common_to, mixed_track, no_side, on_mixed_track
from convoscope.conversation import Conversation, Utterance
from convoscope.resources.sound import (
    Recognised,
    Recogniser,
    RecordedTrack,
    Recording,
    RecordingError,
    Sound,
    Span,
)

if TYPE_CHECKING:
    import asyncio

    import numpy as np
    from numpy.typing import NDArray

LONGEST = 28.0
"""Seconds of a clip: Whisper hears 30 at a time."""
PAUSE = 1.0
"""A pause of so many seconds ends a clip. Recognisers invent words in silence."""
MARGIN = 0.25
"""Seconds of sound that are heard around speech, as far as no other speech is there."""
_QUIET = 0.1
_LOOK_BACK = 4.0
_LANGUAGE = "language_not_supported"


class Clip(NamedTuple):
    """A span of a track as it was given to the recogniser, and what that wrote. Times are those of the track."""

    start: float
    end: float
    speech: float
    """Seconds of speech in it."""
    words: tuple[Recognised, ...]


class SideWords(NamedTuple):
    """All that was heard of one side of a call."""

    track: RecordedTrack
    clips: tuple[Clip, ...]
    by: str
    """The recogniser, for a person."""

    @property
    def words(self) -> tuple[Recognised, ...]:
        """In order."""
        return tuple(word for clip in self.clips for word in clip.words)

    @property
    def is_whole(self) -> bool:
        """The track is this side's alone, and not cut out of a mixed one."""
        return bool(self.track.speaker or self.track.role)

    def common(self, seconds: float) -> float:
        """A moment of the track as the page has it: in the common time where that is known."""
        return round(seconds + (self.track.offset or 0.0), 3)


async def hear_side(
    conversation: Conversation, recording: Recording, recogniser: Recogniser, role: str, language: str = ""
) -> SideWords:
    """What is heard of those of a role. Raises `RecordingError` with the reason where that cannot be known.

    Several metrics ask for the same: it is heard once, and kept with the conversation.
    """
    import asyncio

    known = tuple(getattr(recogniser, "languages", ()))
    if language and known and language[:2].lower() not in known:
        by = short_identity(recogniser.identity)
        raise RecordingError(_LANGUAGE, f"{by} knows {', '.join(known)}; the words are {language}")
    name = f"heard {role} {recogniser.identity}"
    kept: dict[str, Any] = conversation.__dict__
    if name not in kept:
        kept[name] = asyncio.ensure_future(_hear(conversation, recording, recogniser, role))
    heard = kept[name]
    if isinstance(heard, SideWords | RecordingError):
        result = heard
    else:
        try:
            result = await asyncio.shield(heard)
        except RecordingError as error:
            result = error
        except BaseException:
            kept.pop(name, None)
            raise
        kept[name] = result
    if isinstance(result, RecordingError):
        raise result
    return result


_one_at_a_time: WeakKeyDictionary[Any, asyncio.Semaphore] = WeakKeyDictionary()
"""One call of a process is listened to at a time, by the event loop: many metrics wait, and a clip is megabytes."""


async def _hear(conversation: Conversation, recording: Recording, recogniser: Recogniser, role: str) -> SideWords:
    import asyncio

    async with _one_at_a_time.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(1)):
        return await _listened(conversation, recording, recogniser, role)


async def _listened(conversation: Conversation, recording: Recording, recogniser: Recogniser, role: str) -> SideWords:
    import asyncio

    track, speech = await asyncio.to_thread(_side, conversation, recording, role)
    clips = await hear_clips(track, speech, recogniser)
    return SideWords(track, clips, short_identity(recogniser.identity))


async def hear_clips(track: RecordedTrack, speech: Sequence[Span], recogniser: Recogniser) -> tuple[Clip, ...]:
    """What is heard where there is speech on a track. Raises `RecordingError`."""
    import asyncio

    clips = []
    voices = common_to(speech, await asyncio.to_thread(track.speech))
    for span in await asyncio.to_thread(lambda: list(cut(track, speech))):
        words: Sequence[Recognised] = ()
        # Where the log has a turn and no voice is heard, recognisers write words all the same.
        if seconds := _overlap(span, voices):
            samples = await asyncio.to_thread(track.read, span.start, span.end, RATE)
            words = await recogniser.recognise(Sound(track.speaker, RATE, samples))
        clips.append(Clip(span.start, span.end, seconds, tuple(_moved(words, span))))
    return tuple(clips)


def _moved(words: Sequence[Recognised], span: Span) -> Iterator[Recognised]:
    for text, start, end, probability in words:
        # Times of words are estimates; none lies outside of what was heard.
        first = min(max(span.start + start, span.start), span.end)
        yield Recognised(text, first, min(max(span.start + end, first), span.end), probability)


def _overlap(span: Span, speech: Sequence[Span]) -> float:
    return sum(max(0.0, min(one.end, span.end) - max(one.start, span.start)) for one in speech)


def _side(conversation: Conversation, recording: Recording, role: str) -> tuple[RecordedTrack, tuple[Span, ...]]:
    """The track on which those of a role are heard, and when they speak."""
    tracks = recording.tracks(conversation)
    own = [track for track in tracks if track.role == role]
    if len(own) > 1:
        raise RecordingError("speakers_unknown", f"{len(own)} tracks are of the {role}")
    if own:
        return own[0], own[0].speech()
    track = mixed_track(tracks)
    if track is None or track.speaker or track.offset is None:
        raise no_side(tracks, role)
    own_spans, others = spans_by_role(conversation, track, role)
    alone = tuple(
        span for span in own_spans if not any(span.start < one.end and one.start < span.end for one in others)
    )
    if not alone:
        raise no_side(tracks, role)
    return track, alone


def spans_by_role(conversation: Conversation, track: RecordedTrack, role: str) -> tuple[list[Span], list[Span]]:
    """When those of a role speak by the times of the log, and when others do, in seconds of a track."""
    own: list[Span] = []
    others: list[Span] = []
    for utterance in conversation.utterances:
        spans = own if conversation.roles[utterance.speaker] == role else others
        spans += spans_of(conversation, track, utterance)
    return sorted(own), sorted(others)


def spans_of(conversation: Conversation, track: RecordedTrack, utterance: Utterance) -> list[Span]:
    """When an utterance is heard by the times of the log, in seconds of a track that holds all."""
    moved = on_mixed_track(conversation, track, conversation.sounds(utterance))
    return [Span(max(0.0, start), min(end, track.seconds)) for start, end in moved if end > 0 and start < track.seconds]


def cut(track: RecordedTrack, speech: Sequence[Span]) -> Iterator[Span]:
    """Clips of at most `LONGEST` seconds: speech with pauses that are short, and a margin around it."""
    clip: Span | None = None
    for span in speech:
        if clip is not None and span.start - clip.end <= PAUSE and span.end - clip.start <= LONGEST:
            clip = Span(clip.start, max(clip.end, span.end))
            continue
        if clip is not None:
            yield from _pieces(track, clip, span.start)
        clip = Span(max(span.start - MARGIN, 0.0 if clip is None else (clip.end + span.start) / 2), span.end)
    if clip is not None:
        yield from _pieces(track, clip, track.seconds)


def _pieces(track: RecordedTrack, clip: Span, following: float) -> Iterator[Span]:
    """A clip with its margin at the end; speech that is too long is cut where it is quietest."""
    start, end = clip.start, min(clip.end + MARGIN, (clip.end + following) / 2, track.seconds)
    while end - start > LONGEST + MARGIN:
        from_, to = start + LONGEST - _LOOK_BACK, start + LONGEST
        middle = from_ + _quietest(track.read(from_, to, RATE))
        yield Span(start, middle)
        start = middle
    yield Span(start, end)


def _quietest(samples: NDArray[np.float32]) -> float:
    """The middle of the quietest tenth of a second, in seconds."""
    import numpy as np

    size = int(_QUIET * RATE)
    frames = samples[: len(samples) // size * size].reshape(-1, size)
    return (int(np.argmin((frames**2).mean(axis=1))) + 0.5) * _QUIET if len(frames) else 0.0
