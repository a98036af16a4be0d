"""The recording of a conversation as tracks: found, opened, and read in windows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio.activity import RATE, speech_probabilities, speech_spans
from convoscope.audio.alike import ambiguous, best_of
from convoscope.audio.decode import SoundHeader, blocks, go_to, opened, read_header, resampled
from convoscope.audio.echo import Voices, without_echo
from convoscope.audio.mpeg_messages import kept_from_screen
from convoscope.audio.separation import mixed_tracks, whole_track
from convoscope.audio.sides import (
    CONTRADICTED,
    NOT_SEPARATE,
    UNKNOWN,
    ChannelSide,
    labels_in_extras,
    stated_sides,
    timeline_sides,
)
from convoscope.conversation import ASSISTANT, USER, Conversation, Track
from convoscope.ingest.recordings import AMBIGUOUS, CANDIDATES
from convoscope.resources.sound import Basis, RecordingError, Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SILENT = 1e-3
"""A track that is never louder than −60 dBFS holds nothing that could be measured."""
SAME = 0.95
"""The correlation of two channels that hold the same sound, whatever the level and the sign of each …"""
LOUD = 0.1
"""… in seconds with at least this share of the energy of the loudest one …"""
SAME_GAIN = 2.0
"""… between which the power of one, as a multiple of the other's, differs by no more than this factor from the middle.
Where each side is heard on the other's line, one channel is now the louder one, now the softer."""
LEAST_REST = 1e-4
"""−80 dBFS: a level that is nearer to zero is left as it is, so that zeros stay zeros."""
_CODES = 1 << 15
_KEPT = "_recorded_tracks"


class FileTrack:
    """One side of a recording, or all of it, in a file."""

    def __init__(
        self,
        path: Path,
        header: SoundHeader,
        channel: int | None,
        side: ChannelSide = UNKNOWN,
        offset: float | None = None,
    ) -> None:
        self.path, self.header, self.channel = path, header, channel
        self.speaker, self.role = side.speaker, side.role
        self.basis: Basis = side.basis
        self.rate, self.seconds, self.offset = header.rate, header.seconds, offset
        self.coding = header.coding
        self.peak = 0.0
        """The loudest sample; known after `speech`."""
        self.others: Sequence[FileTrack] = ()
        """The other tracks of the recording: their echo is no speech of this one."""

    def __repr__(self) -> str:
        return f"<FileTrack {self.path.name} channel {self.channel} {self.role or 'unknown'} {self.seconds:.1f} s>"

    def read(self, start: float = 0.0, end: float | None = None, rate: int | None = None) -> NDArray[np.float32]:
        """The samples between two moments, at the file's rate or another. Raises `RecordingError`."""
        import numpy as np

        first = min(self.header.frames, max(0, round(start * self.rate)))
        last = self.header.frames if end is None else min(self.header.frames, max(first, round(end * self.rate)))
        joined = list(resampled(self._centred(first, last), self.rate, rate or self.rate))
        return np.concatenate(joined) if joined else np.zeros(0, np.float32)

    def windows(self, seconds: float, *, rate: int | None = None) -> Iterator[tuple[float, NDArray[np.float32]]]:
        """All samples, a window of so many seconds after the other, each with its start. Raises `RecordingError`."""
        import numpy as np

        wanted = rate or self.rate
        size = max(1, round(seconds * wanted))
        held: list[NDArray[np.float32]] = []
        count = begun = 0
        for piece in resampled(self._centred(0, self.header.frames), self.rate, wanted):
            held.append(piece)
            count += len(piece)
            while count >= size:
                joined = np.concatenate(held)
                yield begun / wanted, joined[:size]
                held, count, begun = [joined[size:]], count - size, begun + size
        if count:
            yield begun / wanted, np.concatenate(held)

    def _centred(self, first: int, last: int) -> Iterator[NDArray[np.float32]]:
        """The samples between two frames, around zero."""
        rest = self._rest
        for piece in self._blocks(first, last):
            yield piece - rest if rest else piece

    def _blocks(self, first: int, last: int) -> Iterator[NDArray[np.float32]]:
        with opened(self.path) as file:
            yield from blocks(file, self.path, self.channel, first, last)

    @cached_property
    def _rest(self) -> float:
        """Where the sound rests: a converter that is off adds a constant, and it is no sound. It is read once.

        It moves mean and median alike. Speech alone has a mean of zero, or pauses of zeros around it.
        """
        import numpy as np

        total, counts = 0.0, np.zeros(2 * _CODES + 1, np.int64)
        for piece in self._blocks(0, self.header.frames):
            total += float(piece.sum(dtype=np.float64))
            codes = np.clip(np.rint(piece * _CODES), -_CODES, _CODES).astype(np.int64) + _CODES
            counts += np.bincount(codes, minlength=len(counts))
        mean = total / self.header.frames
        median = (int(np.searchsorted(counts.cumsum(), self.header.frames / 2)) - _CODES) / _CODES
        rest = min(mean, median, key=abs) if mean * median > 0 else 0.0
        return rest if abs(rest) >= LEAST_REST else 0.0

    def speech(self) -> tuple[Span, ...]:
        """When there is speech: no echo of the other tracks, and nothing in a silent track. It is computed once.

        Raises `RecordingError`.
        """
        return self._speech

    def holds_all(self) -> None:
        """Both sides are heard on this track: what it has in common with others is no echo."""
        self.others = ()
        vars(self).pop("_speech", None)

    @property
    def has_echo(self) -> bool:
        """Whether another track is heard on this one."""
        return self._speech != self._voices

    @cached_property
    def _speech(self) -> tuple[Span, ...]:
        others = [Voices(other, other._voices) for other in self.others]
        return without_echo(Voices(self, self._voices), others)

    @cached_property
    def _voices(self) -> tuple[Span, ...]:
        spans = speech_spans(speech_probabilities(self._heard()), self.seconds)
        return spans if self.peak >= SILENT else ()

    def _heard(self) -> Iterator[NDArray[np.float32]]:
        import numpy as np

        self.peak = 0.0
        for _, samples in self.windows(4.0, rate=RATE):
            self.peak = max(self.peak, float(np.abs(samples).max(initial=0.0)))
            yield samples


class _Opened(NamedTuple):
    """A file of the log that is there."""

    track: Track
    path: Path
    header: SoundHeader


def load_tracks(conversation: Conversation, *, fetch: bool = False, listen: bool = True) -> Sequence[FileTrack]:
    """The recording of a conversation, track by track; what it does not hold is a `RecordingError` with a reason.

    The tracks are kept with the conversation, so that several metrics share what was computed of them. With `fetch`,
    a recording at an `http` address is fetched. Without `listen`, the sides of two channels are known only if the log
    names them.
    """
    kept = vars(conversation)
    if _KEPT not in kept and not listen:
        return _tracks(conversation, fetch=fetch, listen=False)
    if _KEPT not in kept:
        try:
            kept[_KEPT] = _tracks(conversation, fetch=fetch, listen=True)
        except RecordingError as error:
            kept[_KEPT] = error
    result: tuple[FileTrack, ...] | RecordingError = kept[_KEPT]
    if isinstance(result, RecordingError):
        raise RecordingError(result.reason, result.detail, hint=result.hint)
    return result


def _tracks(conversation: Conversation, *, fetch: bool, listen: bool) -> tuple[FileTrack, ...]:
    if conversation.recording is None:
        is_item = conversation.source.format == "standard-data"
        raise RecordingError("no_raw_complete_audio" if is_item else "no_recording")
    recording = conversation.recording
    if paths := recording.extras.get(AMBIGUOUS):
        raise ambiguous(paths, "may be of another conversation")
    candidates = recording.extras.get(CANDIDATES)
    chosen = () if not candidates else (Track(path=str(best_of(candidates))),)
    files, refusals = _open_files(conversation, (*chosen, *recording.tracks), fetch=fetch)
    if not files:
        raise refusals[0] if refusals else RecordingError("no_recording", "the log names no file and no address")
    tracks: list[FileTrack] = []
    for file in files:
        tracks += _sides_of(conversation, file)
    for track in tracks:
        track.others = [other for other in tracks if other is not track]
    if listen and len(tracks) == 2:
        _compare_with_times(conversation, tracks)
        return _separated(conversation, tracks)
    return tuple(tracks)


def _open_files(
    conversation: Conversation, tracks: Sequence[Track], *, fetch: bool
) -> tuple[list[_Opened], list[RecordingError]]:
    """The files that are used: one for each side where there are such, else the one with most channels."""
    files: list[_Opened] = []
    refusals: list[RecordingError] = []
    for track in _preferred(tracks):
        try:
            path = _located(conversation, track, fetch=fetch)
            files.append(_Opened(track, path, read_header(path)))
        except RecordingError as error:
            refusals.append(error)
    single: dict[str, _Opened] = {}
    for file in files:
        if len(file.track.channels) == 1:
            single.setdefault(file.track.channels[0], file)
    whole = [file for file in files if len(file.track.channels) != 1]
    best = max(whole, key=lambda file: file.header.channels, default=None)
    if len(single) > 1 or best is None:
        return list(single.values()), refusals
    return [best], refusals


def _preferred(tracks: Sequence[Track]) -> list[Track]:
    """Without videos, unless there is nothing else."""
    sounds = [track for track in tracks if track.id != "video" and (track.path or track.url)]
    return sounds or [track for track in tracks if track.path or track.url]


def _located(conversation: Conversation, track: Track, *, fetch: bool) -> Path:
    # Reading has made the paths whole of what it found (`convoscope.ingest.recordings`).
    if track.path:
        if "\0" in track.path:
            raise RecordingError("recording_not_found", "the path holds a null character")
        path = Path(conversation.source.folder, track.path)
        if path.is_absolute() and path.is_file():
            return path
        if not track.url.startswith(("http://", "https://")):
            if path.is_absolute() and path.exists():
                raise RecordingError("recording_not_readable", f"{path.name}: is no regular file")
            hint = "--audio FOLDER says where recordings are"
            raise RecordingError("recording_not_found", track.path[:500], hint=hint)
    if track.url.startswith(("http://", "https://")):
        if not fetch:
            hint = "--fetch-audio fetches it"
            raise RecordingError("recording_remote", "the log names an address", hint=hint)
        from convoscope.audio.remote import fetched

        return fetched(track.url)
    raise RecordingError("recording_not_found", track.url[:500], hint="--audio FOLDER says where recordings are")


def _sides_of(conversation: Conversation, file: _Opened) -> list[FileTrack]:
    """The tracks of one file: one for each channel, with the side that the log names, or one with all."""
    path, header = file.path, file.header
    offset = _offset(conversation, file.track, header.seconds)
    labels = file.track.channels or (
        labels_in_extras(file.track.extras)
        or labels_in_extras({} if conversation.recording is None else conversation.recording.extras)
    )
    if len(labels) == 1:
        [side] = stated_sides(conversation, labels, 1) or [UNKNOWN]
        return [FileTrack(path, header, None if header.channels > 1 else 0, side, offset)]
    channel = 0 if header.channels == 1 else _same_on_both(path, header)
    if channel is not None:
        return [FileTrack(path, header, channel, UNKNOWN, offset)]
    tracks = [FileTrack(path, header, channel, UNKNOWN, offset) for channel in range(header.channels)]
    for track, side in zip(tracks, stated_sides(conversation, labels, header.channels) or (), strict=False):
        track.speaker, track.role, track.basis = side
    return tracks


def _compare_with_times(conversation: Conversation, tracks: Sequence[FileTrack]) -> None:
    """The times of the log say who is on which of two tracks, or that the log's own labels are the wrong way round."""
    roles = [track.role for track in tracks]
    is_open = all(track.basis == "unknown" and not track.role for track in tracks)
    if not is_open and set(roles) != {ASSISTANT, USER}:
        return
    by_times = timeline_sides(conversation, tracks)
    if by_times is None or (not is_open and [side.role for side in by_times] == roles):
        return
    for track, side in zip(tracks, by_times if is_open else (CONTRADICTED, CONTRADICTED), strict=True):
        track.speaker, track.role, track.basis = side


def _separated(conversation: Conversation, tracks: Sequence[FileTrack]) -> tuple[FileTrack, ...]:
    """Tracks on which both sides are heard are no one's; one that holds the whole call is enough."""
    # Of two files it must be known how they lie to each other.
    if tracks[0].path != tracks[1].path and any(track.offset is None for track in tracks):
        return tuple(tracks)
    are_mixed = mixed_tracks(conversation, tracks)
    for track, is_mixed in zip(tracks, are_mixed, strict=True):
        if is_mixed:
            track.speaker, track.role, track.basis = NOT_SEPARATE
            if all(are_mixed):
                track.holds_all()
    whole = whole_track(tracks)
    if whole is not None and are_mixed[whole]:
        other = tracks[1 - whole]
        if not other.role or not other.speech():
            return (tracks[whole],)
    return tuple(tracks)


def _same_on_both(path: Path, header: SoundHeader) -> int | None:
    """The louder of two channels that hold the same sound, as a mono recording that was saved in stereo, or panned."""
    if header.channels != 2:
        return None
    few = _powers(path, header, max(header.rate, header.frames // 20))
    # What is alike in a few seconds may differ in those between: at another level, it may be an echo of one side.
    if not _are_same(few) or not _are_same(every := _powers(path, header, header.rate)):
        return None
    return 0 if sum(one.left for one in every) >= sum(one.right for one in every) else 1


class _PairPower(NamedTuple):
    """The energy of a second of two channels, and what they have in common."""

    left: float
    right: float
    both: float


def _powers(path: Path, header: SoundHeader, step: int) -> list[_PairPower]:
    """Of a second every so many frames."""
    import numpy as np

    seconds: list[_PairPower] = []
    with opened(path) as file:
        for start in range(0, header.frames, step):
            if step != header.rate:
                go_to(file, start)
            with kept_from_screen():
                data = file.read(min(header.rate, header.frames - start), dtype="float32", always_2d=True)
            left, right = np.nan_to_num(data).T.astype(np.float64)
            seconds.append(_PairPower(float(left @ left), float(right @ right), float(left @ right)))
    return seconds


def _are_same(seconds: Sequence[_PairPower]) -> bool:
    # Each channel has noise of its own, which is most of what is in pauses.
    loudest = max(max(one.left, one.right) for one in seconds)
    loud = [one for one in seconds if max(one.left, one.right) >= max(LOUD * loudest, SILENT**2)]
    if not loud:
        return True
    if not all(abs(one.both) >= SAME * math.sqrt(one.left * one.right) > 0 for one in loud):
        return False
    gains = [one.left / one.right for one in loud]
    middle = median(gains)
    return all(middle / SAME_GAIN <= gain <= middle * SAME_GAIN for gain in gains)


def _offset(conversation: Conversation, track: Track, seconds: float) -> float | None:
    """What leads from seconds of a track to the common time; None where no clock of the log says so."""
    offsets = {clock.id: clock.offset for clock in conversation.clocks}
    if track.started is not None:
        is_known = len(offsets) == 1 or offsets.get(track.started.clock) is not None
        return conversation.common(track.started) if is_known else None
    audio = [clock for clock in conversation.clocks if clock.kind == "audio"]
    if len(audio) != 1:
        return None
    moments = [
        moment
        for one in conversation.utterances
        for moment in (
            *(part.end for part in one.segments if part.clock == audio[0].id),
            *((one.time.at,) if one.time is not None and one.time.clock == audio[0].id else ()),
        )
    ]
    # A clock of sounds may count from anywhere: only one that stays within the file counts from its beginning.
    if not moments or min(moments) < 0 or max(moments) > seconds + 1.0:
        return None
    return audio[0].offset or 0.0


__all__ = ["FileTrack", "load_tracks"]
