"""What the page has of a recording: files to play, waveforms, marks, and what became of the words."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec

from convoscope.analysis.answer.model import Noun
from convoscope.analysis.words import counted, reason_text
from convoscope.conversation import ASSISTANT, Conversation
from convoscope.harmless import one_line
from convoscope.ingest.recordings import base_name, is_elsewhere
from convoscope.report.page.marks import (
    SILENCES,
    QualityBar,
    SoundChip,
    SoundMark,
    grave_chips,
    heard_silences,
    mark_chips,
    marks_of,
)
from convoscope.report.page.sound_files import MOST_COPIED, MOST_EMBEDDED, AudioCopies, EmbeddedAudio
from convoscope.report.page.words import TextBlock, fact_chips, fact_remarks, text_block, text_blocks
from convoscope.report.speech_lanes import LaneSpan, Ruler, SpeechLanes, clock_text
from convoscope.resources.sound import CONTRADICTION, NOT_SEPARATE_TEXT, RecordingError
from convoscope.runs.conversations import KeptConversation
from convoscope.runs.growth import AUDIO
from convoscope.storage import is_remote

if TYPE_CHECKING:
    from convoscope.resources.sound import RecordedTrack
    from convoscope.runs.run import Run

_STARTS = "audio.log_jitter"
_DOES_NOT_FIT = "log_does_not_fit_sound"
_AGREE, _FEWEST = 0.5, 3
_PAST = 2.0
"""Seconds by which a log may last longer than its recording: what ends a call is not always heard."""
_TAGS = 60
"""Letters around a block of the page."""
_CAPTIONS = {
    "audio_not_installed": "recorded; pip install 'convoscope[audio]' for its sound",
    "recording_remote": "the recording is at an address; score --fetch-audio fetches it",
    "recordings_not_opened": "recorded; --no-audio was given",
}
_NONE = frozenset(("no_recording", "no_raw_complete_audio"))
_DRAWN = 60 * 3600.0
"""Seconds of sound whose waveforms are drawn: an hour takes about 0.2 s."""
_LISTENED = 1800.0
"""Seconds of calls whose sides are inferred from the sound for the page: an hour takes about 30 s."""


class SoundFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file of a recording, on the clock of the lanes."""

    name: str
    start: float
    seconds: float
    src: str = ""
    inside: int | None = None
    """The number of the block that holds the sound, if it is in the page."""
    type: str = ""


class Wave(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The waveform of one track."""

    file: int
    peaks: str
    rate: float
    lane: int | None = None
    """The lane of its speaker; else it has one of its own. Marks of a recording apart name the wave."""
    name: str = ""
    role: str = ""
    mixed: bool = False


class CallSound(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The sound of a conversation, or what is missing for it."""

    caption: str = ""
    files: tuple[SoundFile, ...] = ()
    waves: tuple[Wave, ...] = ()
    marks: tuple[SoundMark, ...] = ()
    quality: tuple[QualityBar, ...] = ()
    chips: tuple[SoundChip, ...] = ()
    apart: bool = False
    """The log does not say when the recording began: its clock is its own."""
    problem: str = ""
    needs: str = ""
    why: str = ""


class AudioOptions(NamedTuple):
    """Whether recordings are copied into the run, put into the page, and opened at all."""

    copied: bool = False
    embedded: bool = False
    opened: bool = True
    say: Callable[[str], object] | None = None
    """Is given what was left out, and why."""


LINKED = AudioOptions()


def sound_maker(run: Run, page: Path, noun: Noun, options: AudioOptions) -> SoundMaker:
    """What makes the sound of a page. A run that has copies of recordings keeps using them."""
    is_copied = options.copied or (run.folder / AUDIO).is_dir()
    copies = AudioCopies(run.folder) if is_copied else None
    return SoundMaker(page, noun, copies, EmbeddedAudio() if options.embedded else None, opens=options.opened)


class SoundMaker:
    """Makes what one page has of its recordings."""

    def __init__(
        self,
        page: Path,
        noun: Noun,
        copies: AudioCopies | None = None,
        embedded: EmbeddedAudio | None = None,
        *,
        opens: bool = True,
    ) -> None:
        self._folder = page.resolve().parent
        self._noun = noun
        self._opens = opens
        self._copies = copies
        self._embedded = embedded
        self._has_links = False
        self._stay: set[Path] = set()
        """Recordings where only their logs say: a page that goes elsewhere must not hold them."""
        self._drawn = self._listened = 0.0
        self._opened: tuple[Conversation, Sequence[RecordedTrack] | RecordingError] | None = None

    @property
    def blocks(self) -> dict[int, str]:
        """The recordings in the page, by number."""
        return dict(enumerate(self._embedded.blocks)) if self._embedded is not None else {}

    @property
    def letters(self) -> int:
        """How much larger the page is because of them."""
        return sum(len(block) + _TAGS for block in self.blocks.values())

    @property
    def copies(self) -> frozenset[str]:
        """The names of the copies in the run that the page plays."""
        return self._copies.names if self._copies is not None else frozenset()

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and what happened instead."""
        packed = self._embedded.left_out if self._embedded is not None else 0
        copied = self._copies.left_out if self._copies is not None else 0
        stay = len(self._stay) if self._embedded is not None or self._copies is not None else 0
        notes = [
            (
                stay,
                f"{'is' if stay == 1 else 'are'} outside the folder of the log, and linked; score --audio FOLDER "
                "allows to embed and copy what is in FOLDER",
            ),
            (
                packed,
                f"did not fit into the page ({MOST_EMBEDDED / 1e6:g} MB) and {'is' if packed == 1 else 'are'} linked",
            ),
            (
                copied,
                f"could not be copied (at most {MOST_COPIED >> 30} GiB) and {'is' if copied == 1 else 'are'} linked",
            ),
        ]
        return tuple(f"{counted(count, 'recording')} {text}" for count, text in notes if count)

    @property
    def sources(self) -> str:
        """From where the page may play sound, in the words of a Content-Security-Policy."""
        # A page that is opened from a disk is not "itself" to every browser.
        return " ".join([*(("'self'", "file:") if self._has_links else ()), *(("blob:",) if self.blocks else ())])

    def of(self, record: KeptConversation, lanes: SpeechLanes | None, silences: Sequence[LaneSpan]) -> CallSound | None:
        """The sound of a conversation; None where there is nothing to say of it."""
        conversation = record.conversation
        try:
            tracks = self._tracks(record)
            clock = _Clock.of(record, tracks)
            return self._played(record, lanes, tracks, clock, silences)
        except RecordingError as error:
            return self._silent(conversation, lanes, error, silences)

    def _tracks(self, record: KeptConversation) -> Sequence[RecordedTrack]:
        """The tracks, opened once. Sides that only the sound can say are inferred for the first calls, the worst."""
        conversation = record.conversation
        if not self._opens:
            raise RecordingError("recordings_not_opened")
        if self._opened is None or self._opened[0] is not conversation:
            try:
                tracks = _open_tracks(conversation, listen=False)
                doubts = (CONTRADICTION, NOT_SEPARATE_TEXT)
                is_doubtful = any(score.observation.detail in doubts for score in record.scores)
                if len(tracks) == 2 and (is_doubtful or all(track.basis == "unknown" for track in tracks)):
                    self._listened += tracks[0].seconds
                    if self._listened <= _LISTENED:
                        tracks = _open_tracks(conversation, listen=True)
                self._opened = conversation, tracks
            except RecordingError as error:
                self._opened = conversation, error
        opened = self._opened[1]
        if isinstance(opened, RecordingError):
            raise opened
        return opened

    def chips(self, record: KeptConversation) -> dict[int, tuple[tuple[str, bool], ...]]:
        """By the number of the event: how many facts arrived wrong, or may have, and whether that is bad."""
        return {seq: tuple(fact_chips(texts)) for seq, texts in text_blocks(record).items()}

    def words(self, record: KeptConversation) -> dict[int, Callable[[str], TextBlock | None]]:
        """By the number of the event: what makes of the shown text what became of its words."""
        texts = text_blocks(record)
        if not texts:
            return {}
        clock = self._clock(record) or _Clock(0.0, True)
        return {seq: partial(text_block, one, shift=clock.shift) for seq, one in texts.items()}

    def reasons(self, record: KeptConversation) -> Iterator[tuple[float | None, str]]:
        """What went wrong in the sound, with its second on the lanes: facts first, then breaks."""
        remarks = [remark for texts in text_blocks(record).values() for remark in fact_remarks(texts)]
        clock = self._clock(record)
        if clock is None:
            return
        for remark in sorted(remarks, key=lambda remark: (remark.is_open, remark.second)):
            yield None if clock.is_apart else clock.shift(remark.second), remark.text
        for chip in grave_chips(marks_of(record, clock.shift, {})):
            yield None if clock.is_apart else chip.seconds[0], chip.text

    def silences(self, record: KeptConversation) -> tuple[LaneSpan, ...] | None:
        """The silences of the sound on the clock of the lanes; None where only the log says what is silent."""
        clock = self._clock(record)
        return None if clock is None or clock.is_apart else heard_silences(record, clock.shift)

    def starts(self, record: KeptConversation) -> dict[int, float]:
        """When utterances begin in the sound, on the clock of the lanes, by number: those that the run measured."""
        clock = self._clock(record)
        if clock is None or clock.is_apart:
            return {}
        return {seq: clock.shift(start) for seq, start in _of_starts(record, "start")}

    def _clock(self, record: KeptConversation) -> _Clock | None:
        """How the recording relates to the lanes; None where it cannot be read."""
        try:
            return _Clock.of(record, self._tracks(record))
        except RecordingError:
            return None

    def _played(
        self,
        record: KeptConversation,
        lanes: SpeechLanes | None,
        tracks: Sequence[RecordedTrack],
        clock: _Clock,
        silences: Sequence[LaneSpan],
    ) -> CallSound:
        paths = list(dict.fromkeys(track.path for track in tracks))
        starts = {track.path: clock.start(track) for track in tracks}
        longest = {path: max(track.seconds for track in tracks if track.path == path) for path in paths}
        waves = tuple(self._waves(tracks, paths, lanes))
        stays = is_elsewhere(record.conversation)
        files = tuple(self._file(path, starts[path], longest[path], stays=stays) for path in paths)
        rows = lanes.lanes if lanes is not None and not clock.is_apart else ()
        by_speaker = {lane.speaker: at for at, lane in enumerate(rows) if lane.kind == "speaker"}
        if clock.is_apart:
            by_speaker = {track.speaker: at for at, track in enumerate(tracks) if track.speaker}
        # On the lanes of the log they are those of `silences`.
        without = SILENCES if lanes is not None and not clock.is_apart else ""
        marks = marks_of(record, clock.shift, by_speaker, without)
        caption = [_caption(record.conversation, tracks, clock, is_drawn=self._drawn <= _DRAWN)]
        if any(one.metric == _STARTS and one.observation.reason == _DOES_NOT_FIT for one in record.scores):
            caption.append("the times of the log fit nowhere in it: it may be of another call")
        ends = max(starts[path] + longest[path] for path in paths)
        if lanes is not None and not clock.is_apart and ends < lanes.length - _PAST:
            caption.append(
                f"the recording ends at {clock_text(ends)}, and the log goes on to {clock_text(lanes.length)}"
            )
        return CallSound(
            caption="; ".join(caption),
            files=files,
            waves=waves if not clock.is_apart else tuple(map(_alone, waves)),
            marks=marks.marks,
            quality=marks.quality,
            chips=tuple(mark_chips(marks, None, ()) if clock.is_apart else mark_chips(marks, lanes, silences)),
            apart=clock.is_apart,
        )

    def _silent(
        self,
        conversation: Conversation,
        lanes: SpeechLanes | None,
        error: RecordingError,
        silences: Sequence[LaneSpan],
    ) -> CallSound | None:
        """What is shown of a call whose recording is not there, or cannot be read."""
        if lanes is None and error.reason in _NONE:
            return None
        chips = tuple(mark_chips(None, lanes, silences))
        needs, problem, caption = "", "", ""
        if error.reason in _NONE:
            needs = "dropouts, barge-ins, unheard words, quality: need the recording." if self._noun == "call" else ""
        elif error.reason in _CAPTIONS:
            caption = _CAPTIONS[error.reason]
        else:
            problem = self._problem(conversation, error)
        if not (chips or needs or problem or caption):
            return None
        return CallSound(
            caption=caption, chips=chips, needs=needs, why="no recording" if needs else "", problem=problem
        )

    def _problem(self, conversation: Conversation, error: RecordingError) -> str:
        recording = conversation.recording
        named = [track.path or track.url for track in (recording.tracks if recording is not None else ())][:1]
        # A whole path is one of this machine, and says more of it than a page should.
        where = one_line("".join(base_name(one) if os.path.isabs(one) else one for one in named), 300)
        detail = "" if error.detail in named else one_line(error.detail, 300)
        what = detail if detail.startswith(where) and detail else "; ".join(filter(None, (where, detail)))
        reason = f"{reason_text(error.reason)[:1].upper()}{reason_text(error.reason)[1:]}: {what}"
        return "; ".join(filter(None, (reason, error.hint)))

    def _waves(
        self, tracks: Sequence[RecordedTrack], paths: Sequence[Path], lanes: SpeechLanes | None
    ) -> Iterator[Wave]:
        from convoscope.audio.peaks import Peaks, peaks

        speakers = {lane.speaker: at for at, lane in enumerate(lanes.lanes) if lane.kind == "speaker"} if lanes else {}
        for track in tracks:
            self._drawn += track.seconds
            levels = peaks(track) if self._drawn <= _DRAWN else Peaks(1.0, b"")
            lane = speakers.get(track.speaker) if track.speaker else None
            channel = "sound" if track.channel is None else f"channel {track.channel + 1}"
            several = sum(track.path == other.path for other in tracks) > 1
            yield Wave(
                file=paths.index(track.path),
                peaks=base64.b64encode(levels.levels).decode(),
                rate=round(levels.rate, 4),
                lane=lane,
                name="" if lane is not None else track.role or (channel if several else "sound"),
                role=track.role,
                mixed=not track.speaker and not track.role and not several,
            )

    def _file(self, path: Path, start: float, seconds: float, *, stays: bool) -> SoundFile:
        file = SoundFile(name=one_line(path.name, 120), start=start, seconds=round(seconds, 3))
        if stays:
            self._stay.add(path)
        elif self._embedded is not None and (block := self._embedded.add(path)) is not None:
            return msgspec.structs.replace(file, inside=block.number, type=block.type)
        if self._copies is not None and not stays:
            path = self._copies.copy(path)
        self._has_links = True
        return msgspec.structs.replace(file, src=link(path, self._folder))


def link(path: Path, folder: Path) -> str:
    """The address of a file, seen from a folder; what the name holds is never part of the address itself."""
    if is_remote(folder) and not is_remote(path):
        return path.resolve().as_uri()
    try:
        relative = os.path.relpath(path.resolve(), folder)
    except ValueError:  # another drive
        return path.resolve().as_uri()
    parts = [quote(part.encode("utf-8", "surrogateescape"), safe="") for part in Path(relative).parts]
    return "./" + "/".join(parts)


class _Clock(NamedTuple):
    """How seconds of a recording become seconds of the lanes."""

    zero: float
    is_apart: bool
    fitting: int = 0
    """Turns whose sound says when the recording began; 0 where the log says it."""
    late: float = 0.0
    """Seconds by which the log's clock is late against that sound, where the log says when the recording began."""

    @classmethod
    def of(cls, record: KeptConversation, tracks: Sequence[RecordedTrack]) -> _Clock:
        conversation = record.conversation
        ruler, errors = Ruler(conversation), _start_errors(record)
        if all(track.offset is None for track in tracks) and errors:
            zero = _only({ruler.zero_of(clock) for clock in _clocks_of_segments(conversation)})
            return cls(0.0, True) if zero is None else cls(zero - median(errors), False, len(errors))
        zero = _only({ruler.zero_of(clock) for clock in _clocks(conversation)})
        if zero is None or any(track.offset is None for track in tracks):
            return cls(0.0, True)
        late = median(errors) if errors else 0.0
        if abs(late) <= _AGREE:
            return cls(zero, False)
        return cls(zero - late, False, len(errors), late)

    def start(self, track: RecordedTrack) -> float:
        return round((0.0 if self.is_apart else track.offset or 0.0) - self.zero, 3)

    def shift(self, second: float) -> float:
        return round(second - self.zero, 3)


def _only(zeros: set[float | None]) -> float | None:
    return zeros.pop() if len(zeros) == 1 else None


def _start_errors(record: KeptConversation) -> list[float]:
    """Logged start − start in the sound of each turn, where the run measured it, and most agree to half a second.

    A run measures it only where the log fits the sound at one offset: see `audio.log_jitter`.
    """
    known = [error for _, error in _of_starts(record, "error")]
    middle = median(known) if known else 0.0
    near = [one for one in known if abs(one - middle) <= _AGREE]
    return near if len(near) >= _FEWEST and 2 * len(near) > len(known) else []


def _of_starts(record: KeptConversation, name: str) -> Iterator[tuple[int, float]]:
    """A detail of each start that the run found in the sound, by the number of the utterance."""
    for score in record.scores:
        details, (_, _, seq) = score.observation.details, score.observation.subject
        number = details.get(name) if score.metric == _STARTS and isinstance(details, Mapping) else None
        if seq is not None and isinstance(number, int | float) and isfinite(number):
            yield seq, float(number)


def _clocks_of_segments(conversation: Conversation) -> set[str]:
    return {part.clock for one in conversation.utterances for part in one.segments}


def _clocks(conversation: Conversation) -> set[str]:
    """The clocks that say when the files of a recording begin: those named, else the one of the sound."""
    recording = conversation.recording
    named = {track.started.clock for track in recording.tracks if track.started} if recording is not None else set()
    return named or {clock.id for clock in conversation.clocks if clock.kind == "audio"}


def _open_tracks(conversation: Conversation, *, listen: bool) -> Sequence[RecordedTrack]:
    if conversation.recording is None or not (conversation.recording.tracks or conversation.recording.extras):
        raise RecordingError("no_recording")
    try:
        import soundfile  # noqa: F401
    except (ImportError, OSError):
        raise RecordingError("audio_not_installed") from None
    from convoscope.audio.files import load_tracks
    from convoscope.audio.remote import is_fetched

    # What was fetched for the metrics is there; a page fetches nothing.
    addresses = [track.url for track in conversation.recording.tracks if track.url.startswith(("http://", "https://"))]
    return load_tracks(conversation, fetch=all(map(is_fetched, addresses)), listen=listen)


def _alone(wave: Wave) -> Wave:
    name = wave.name or {ASSISTANT: "agent", "user": "caller"}.get(wave.role, wave.role) or "sound"
    return msgspec.structs.replace(wave, lane=None, name=name)


def _caption(conversation: Conversation, tracks: Sequence[RecordedTrack], clock: _Clock, *, is_drawn: bool) -> str:
    channels = len({(track.path, track.channel) for track in tracks})
    parts = [
        f"recording, {'one channel' if channels == 1 else 'two channels' if channels == 2 else f'{channels} tracks'}"
    ]
    if channels == 1 and not tracks[0].speaker and not clock.is_apart:
        parts.append("sides from the times of the log")
    elif any(track.basis == "contradicted" for track in tracks):
        parts.append(CONTRADICTION)
    elif any(track.basis == "not_separate" for track in tracks):
        parts.append(NOT_SEPARATE_TEXT)
    elif channels > 1 and any(track.basis == "unknown" for track in tracks):
        parts.append("whose they are is unknown")
    elif any(track.basis in ("timeline", "voice_activity") for track in tracks):
        parts.append("sides inferred")
    if clock.late:
        parts.append(
            f"the log's clock is {abs(clock.late):.1f} s {'late' if clock.late > 0 else 'early'}: moved by that"
        )
    elif clock.fitting:
        parts.append(f"when it began is estimated: the sound of {clock.fitting} turns fits their times")
    # A bare recording has no turns to play.
    if clock.is_apart and conversation.utterances:
        parts.append("when it began is not in the log, so turns cannot be played")
    if not is_drawn:
        parts.append(f"no waveform: a page draws {_DRAWN / 3600:g} hours")
    return "; ".join(parts)
