"""Audio files, opened as the hostile input that they are, and read in windows with libsndfile."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from convoscope.audio.mpeg_messages import kept_from_screen
from convoscope.audio.ogg_pages import ogg_fault
from convoscope.resources.sound import RecordingError

if TYPE_CHECKING:
    import numpy as np
    import soundfile
    from numpy.typing import NDArray

MOST_BYTES = 4 * 1024**3
MOST_SECONDS = 12 * 3600.0
MOST_CHANNELS = 8
RATES = (4_000, 192_000)
FORMATS = frozenset(("AIFF", "AU", "CAF", "FLAC", "MP3", "OGG", "RF64", "W64", "WAV", "WAVEX"))
"""Of those that libsndfile reads, the ones that recordings of calls have; others it recognises by too little."""
LOUDEST = 4.0
"""A sample beyond this is no sound: full scale is 1, and a mix of floats may be a little louder."""
_RAW = {
    ".ulaw": "mulaw",
    ".ul": "mulaw",
    ".mulaw": "mulaw",
    ".alaw": "alaw",
    ".al": "alaw",
    ".g722": "g722",
    ".gsm": "gsm",
    ".sln": "s16le",
    ".pcm": "s16le",
    ".raw": "s16le",
}
_BLOCK = 1 << 16


class SoundHeader(NamedTuple):
    """What a file says of itself."""

    rate: int
    channels: int
    frames: int
    format: str
    coding: str = ""
    """What the samples are kept as, such as PCM_16, OPUS or GSM610."""

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def unreadable(path: Path, detail: str, *, hint: str = "") -> RecordingError:
    """A recording that cannot be read, by its name: reports are shared, and a folder may hold names of people."""
    return RecordingError("recording_not_readable", f"{path.name}: {detail}", hint=hint)


@contextmanager
def opened(path: Path) -> Iterator[soundfile.SoundFile]:
    """A file for reading. Only a regular file of a known format is opened: no device, no pipe."""
    import soundfile

    descriptor = _descriptor(path)
    try:
        if not os.fstat(descriptor).st_size:
            raise RecordingError("recording_empty", f"{path.name} has no bytes")
        with kept_from_screen():
            file = soundfile.SoundFile(descriptor, closefd=False)
    except (soundfile.LibsndfileError, TypeError) as error:
        os.close(descriptor)
        words = str(getattr(error, "error_string", error))
        what = "is not a recording" if "not recognised" in words else f"not decoded: {words}"
        raise unreadable(path, what, hint=_hint(path)) from None
    except BaseException:
        os.close(descriptor)
        raise
    try:
        with file:
            yield file
    except soundfile.SoundFileError as error:  # wherever a damaged file is read
        raise unreadable(path, f"not decoded: {getattr(error, 'error_string', error)}") from None
    finally:
        os.close(descriptor)


def _descriptor(path: Path) -> int:
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
    try:
        # What is no file is not even opened: to open a device may do something.
        if not stat.S_ISREG(path.stat().st_mode):
            raise unreadable(path, "is no regular file")
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise RecordingError("recording_not_found", str(path)) from None
    except (OSError, ValueError) as error:
        detail = getattr(error, "strerror", None) or str(error)
        raise unreadable(path, f"cannot be opened: {detail}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > MOST_BYTES:
        os.close(descriptor)
        is_file = stat.S_ISREG(status.st_mode)
        raise unreadable(path, f"larger than {MOST_BYTES >> 30} GiB" if is_file else "is no regular file")
    return descriptor


def _hint(path: Path) -> str:
    kind = _RAW.get(path.suffix.lower())
    return "" if kind is None else f"without a header its rate is unknown: ffmpeg -f {kind} -ar 8000 -i FILE call.wav"


def read_header(path: Path) -> SoundHeader:
    """What a file says of itself, if that can be true. Raises `RecordingError`."""
    with opened(path) as file:
        header = SoundHeader(file.samplerate, file.channels, file.frames, file.format, file.subtype)
    if header.format not in FORMATS:
        raise unreadable(path, f"{header.format} is no format of recordings")
    if not RATES[0] <= header.rate <= RATES[1]:
        raise unreadable(path, f"{header.rate:,} samples per second")
    if not 1 <= header.channels <= MOST_CHANNELS:
        raise unreadable(path, f"{header.channels} channels")
    if header.frames <= 0:
        raise RecordingError("recording_empty", f"{path.name} has no samples")
    if header.seconds > MOST_SECONDS:
        raise unreadable(path, f"{header.seconds / 3600:,.1f} hours; at most {MOST_SECONDS / 3600:g}")
    missing = _missing_bytes(path)
    if missing:
        raise unreadable(path, f"cut short: {missing:,} bytes that its header announces are missing")
    if header.format == "OGG" and (fault := ogg_fault(path)):
        raise unreadable(path, fault)
    return header


def _missing_bytes(path: Path) -> int:
    """How many bytes of a WAV file are announced and not there; a stream announces none, or all that there can be."""
    with suppress(OSError, struct.error), path.open("rb") as stream:
        begin = stream.read(12)
        if begin[:4] != b"RIFF" or begin[8:12] != b"WAVE":
            return 0
        size = os.fstat(stream.fileno()).st_size
        at = 12
        for _ in range(64):
            stream.seek(at)
            name, length = struct.unpack("<4sI", stream.read(8))
            if name == b"data":
                is_stream = length == 0 or length >= 0x7FFFF000
                return 0 if is_stream else max(0, at + 8 + length - size - (length & 1))
            at += 8 + length + (length & 1)
    return 0


def blocks(
    file: soundfile.SoundFile, path: Path, channel: int | None, start: int, end: int
) -> Iterator[NDArray[np.float32]]:
    """The samples of one channel, or of the mean of all, between two frames; a block after the other."""
    import numpy as np
    import soundfile

    at = start
    damaged: list[int] = []
    try:
        if start:
            go_to(file, start)
        while at < end:
            with kept_from_screen(damaged):
                data = file.read(min(_BLOCK, end - at), dtype="float32", always_2d=True)
            if not len(data):
                what = f"damaged at byte {damaged[0]:,}" if damaged else "cut short"
                raise unreadable(path, f"{what}: it ends after {at / file.samplerate:.1f} s")
            samples = data[:, 0] if data.shape[1] == 1 else data.mean(axis=1) if channel is None else data[:, channel]
            largest = float(np.abs(samples).max())
            if not largest <= LOUDEST:  # which is false of NaN, too
                words = "samples that are no numbers" if not np.isfinite(largest) else f"samples of {largest:.3g}"
                raise unreadable(path, f"{words} at {at / file.samplerate:.1f} s; full scale is 1")
            at += len(data)
            yield np.ascontiguousarray(samples)
    except soundfile.LibsndfileError as error:
        what = f"damaged at byte {damaged[0]:,}: " if damaged else ""
        raise unreadable(path, f"{what}not decoded at {at / file.samplerate:.1f} s: {error.error_string}") from None


def go_to(file: soundfile.SoundFile, start: int) -> None:
    """Move a file that was just opened to a frame."""
    if file.seekable():
        with kept_from_screen():
            file.seek(start)
    else:  # GSM in a WAV file is read in order only
        while start > 0 and (count := len(file.read(min(_BLOCK, start), dtype="float32"))):
            start -= count


def resampled(pieces: Iterator[NDArray[np.float32]], rate: int, wanted: int) -> Iterator[NDArray[np.float32]]:
    """The same sound with another number of samples a second."""
    if rate == wanted:
        yield from pieces
        return
    import numpy as np
    import soxr

    stream = soxr.ResampleStream(rate, wanted, 1, dtype="float32")
    for piece in pieces:
        yield stream.resample_chunk(piece)
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)
