"""Recordings without a log: who speaks when, by voice activity.

It is a reader of `convoscope.ingest` by its entry point. It lives here because it opens sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio import is_installed
from convoscope.audio.against_log import joined
from convoscope.audio.call_comparison import without_speech
from convoscope.conversation import AudioFile, Clock, Conversation, Outcome, Segment, Source, Time, Track
from convoscope.errors import InputError
from convoscope.ingest.io.audio_heads import audio_kind
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample
from convoscope.ingest.report import Notes
from convoscope.ingest.speaker_labels import UNKNOWN, note_unknown_speakers
from convoscope.ingest.timeline_builder import TimelineBuilder
from convoscope.resources.sound import FROM_SOUND, NOT_SEPARATE_TEXT, RecordedTrack, RecordingError
from convoscope.storage import is_remote

if TYPE_CHECKING:
    from convoscope.audio.files import FileTrack

FORMAT = "recording"
SPEECH = "speech"
"""The marker of a span in which it is not known who speaks."""
SILENT = "recording_silent"
"""What `extras` of the recording say where it is silent: it is the reason of metrics, too."""
LONGEST_PAUSE = 1.0
"""Seconds. Speech of one side after a longer pause is another utterance."""
CLOCK = "audio"


class RecordingReader(Reader):
    """Reads the sound of a call that has no log."""

    name = FORMAT
    title = "A recording"

    def detect(self, sample: Sample) -> Detection | None:
        """The first bytes say what a recording is."""
        if sample.container != "recording":
            return None
        return Detection(0.9, f"{audio_kind(sample.path)} sound", "file")

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        """The conversation that is heard: an utterance for each span of a channel, and words of none."""
        if not is_installed():
            raise InputError("is a recording, and what reads it is missing", hint="pip install 'convoscope[audio]'")
        if is_remote(group.path):
            raise InputError("is a recording in an object store, which is not opened", hint="copy it to this machine")
        path = group.path.resolve()
        timeline = TimelineBuilder(notes)
        try:
            tracks = _opened(path)
            is_mixed = any(track.basis == "not_separate" for track in tracks)
            count = 2 if is_mixed else len(tracks)
            sides = [timeline.participant(UNKNOWN, f"channel {number}") for number in range(1, count + 1) if count > 1]
            if is_mixed:
                notes.set_aside("channels_not_separate", NOT_SEPARATE_TEXT)
                _mark(timeline, joined([span for track in tracks for span in track.speech()], 0.0))
                note_unknown_speakers(timeline)
            elif len(tracks) > 1:
                speech = [track.speech() for track in tracks]
                if any(track.has_echo for track in tracks):
                    notes.inferred("echo_left_out", "one side is heard on the other's channel")
                _say(timeline, sides, speech)
                note_unknown_speakers(timeline)
            else:
                _mark(timeline, tracks[0].speech())
        except RecordingError as error:
            raise InputError(_words(error), hint=error.hint) from None
        refusal = without_speech(tracks)
        is_silent = refusal is not None and refusal.reason == SILENT
        if is_silent:
            notes.inferred(SILENT, "never louder than −60 dBFS")
        notes.inferred("speech_from_sound", f"{len(timeline.events)} utterances or spans", timeline.seq)
        yield Conversation(
            id=group.name,
            source=Source(format=self.name, files=group.file_names),
            participants=timeline.participants,
            clocks=(Clock(id=CLOCK, kind="audio", source=FROM_SOUND, offset=0.0),),
            timeline=tuple(timeline.events),
            recording=AudioFile(tracks=(_track(path, sides, tracks[0]),), extras={SILENT: True} if is_silent else {}),
            outcome=Outcome(duration=round(tracks[0].seconds, 3)),
        )


def _opened(path: Path) -> Sequence[FileTrack]:
    from convoscope.audio.files import load_tracks

    return load_tracks(Conversation(id=path.name, recording=AudioFile(tracks=(Track(path=str(path)),))))


def _track(path: Path, sides: Sequence[str], track: RecordedTrack) -> Track:
    return Track(
        path=str(path), channels=tuple(sides), sample_rate=track.rate, duration=round(track.seconds, 3), format=""
    )


def _words(error: RecordingError) -> str:
    return f"is a recording that cannot be read: {error.detail or error.reason.replace('_', ' ')}"


class _SideSpan(NamedTuple):
    start: float
    end: float
    side: int


def _say(timeline: TimelineBuilder, sides: Sequence[str], speech: Sequence[Sequence[tuple[float, float]]]) -> None:
    """An utterance of a side is its speech without a long pause, and without another side's in a pause of it."""
    spans = [[_SideSpan(start, end, side) for start, end in spans] for side, spans in enumerate(speech)]
    utterances: list[list[_SideSpan]] = []
    current: dict[int, list[_SideSpan]] = {}
    for span in merge(*spans):
        if span.side not in current or span.start - current[span.side][-1].end >= LONGEST_PAUSE:
            current[span.side] = []
            utterances.append(current[span.side])
        current[span.side].append(span)
        for side in [side for side, before in current.items() if side != span.side and before[-1].end <= span.start]:
            del current[side]
    for spans_of_side in utterances:
        segments = [Segment(start, end, CLOCK) for start, end, _ in spans_of_side]
        timeline.say(sides[spans_of_side[0].side], segments=segments)


def _mark(timeline: TimelineBuilder, speech: Iterable[tuple[float, float]]) -> None:
    """Someone speaks: who, and where one speaker ends and another begins, is not known."""
    for start, end in speech:
        timeline.mark(SPEECH, time=Time(start, CLOCK, end))


READER = RecordingReader()
