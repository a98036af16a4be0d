"""A recording without words becomes a conversation with words: those that a recogniser hears."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from convoscope.audio.side_words import hear_clips
from convoscope.conversation import Conversation, Participant, Segment, Text, Utterance
from convoscope.conversation.events import AnyEvent
from convoscope.resources.sound import Recognised, Recogniser, RecordedTrack, Recording

TRANSCRIBED_BY = "transcribed_by"
"""In `extras` of a conversation whose words Convoscope's recogniser wrote: they say nothing of what was meant."""
SPEAKER = "unknown"
"""Who is heard where all are in one channel."""
_PAUSE = 1.0
_CLOCK = "audio"


def has_no_words(conversation: Conversation) -> bool:
    """Whether a conversation is a recording, and no word of it is known."""
    words = any(one.intended or one.spoken or one.heard for one in conversation.utterances)
    return conversation.recording is not None and not words and not conversation.items


async def transcribed(conversation: Conversation, recording: Recording, recogniser: Recogniser) -> Conversation:
    """The conversation with the words that are heard in its recording. Raises `RecordingError`.

    Where the conversation says when a speaker is heard, the words are given to these utterances. In one channel for
    all, words without a pause of a second are an utterance of an unknown speaker.
    """
    import asyncio

    timeline: list[AnyEvent] = list(conversation.timeline)
    participants = conversation.participants
    tracks = recording.tracks(conversation)
    for track in tracks:
        speech = await asyncio.to_thread(track.speech)
        words = [word for clip in await hear_clips(track, speech, recogniser) for word in clip.words]
        own = [one for one in conversation.utterances if one.speaker == track.speaker and one.segments]
        if own:
            filled = _filled(conversation, track, own, words, recogniser.identity)
            timeline = [filled.get(event.seq, event) for event in timeline]
        elif words:
            if all(one.id != SPEAKER for one in participants):
                participants = (*participants, Participant(SPEAKER, ""))
            timeline += _utterances(words, recogniser.identity)
            timeline.sort(key=_start)
    return msgspec.structs.replace(
        conversation,
        participants=participants,
        timeline=tuple(msgspec.structs.replace(event, seq=seq) for seq, event in enumerate(timeline)),
        extras={**conversation.extras, TRANSCRIBED_BY: recogniser.identity},
    )


def _filled(
    conversation: Conversation,
    track: RecordedTrack,
    utterances: Sequence[Utterance],
    words: Sequence[Recognised],
    by: str,
) -> dict[int, AnyEvent]:
    """The utterances of a track with their words: each word belongs to the nearest one."""
    spans = {one.seq: conversation.sounds(one) for one in utterances}
    by_seq: dict[int, list[Recognised]] = {one.seq: [] for one in utterances}
    for word in words:
        middle = (word.start + word.end) / 2 + (track.offset or 0.0)
        seq = min(spans, key=lambda seq: min(max(start - middle, middle - end, 0.0) for start, end in spans[seq]))
        by_seq[seq].append(word)
    return {one.seq: msgspec.structs.replace(one, heard=_text(by_seq[one.seq], by)) for one in utterances}


def _utterances(words: Sequence[Recognised], by: str) -> Iterator[Utterance]:
    groups = [[words[0]]]
    for before, word in pairwise(words):
        if word.start - before.end >= _PAUSE:
            groups.append([])
        groups[-1].append(word)
    for group in groups:
        segment = Segment(round(group[0].start, 3), round(group[-1].end, 3), _CLOCK)
        yield Utterance(seq=0, speaker=SPEAKER, heard=_text(group, by), segments=(segment,))


def _text(words: Sequence[Recognised], by: str) -> Text:
    """Words in a row; where there are none, the recogniser heard none."""
    known = [word.probability for word in words if word.probability is not None]
    confidence = round(sum(known) / len(known), 4) if known else None
    return Text(" ".join(word.text for word in words), source=by, confidence=confidence)


def _start(event: AnyEvent) -> float:
    """When an event of a recording without a log begins: all of them have a time of one clock."""
    if isinstance(event, Utterance) and event.segments:
        return event.segments[0].start
    return event.time.at if event.time is not None else 0.0


__all__ = ["SPEAKER", "TRANSCRIBED_BY", "has_no_words", "transcribed"]
