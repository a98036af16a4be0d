"""Of several files that may be the recording of one call: the best one, if all hold the same sound."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convoscope.audio.decode import SoundHeader, go_to, opened, read_header
from convoscope.audio.mpeg_messages import kept_from_screen
from convoscope.ingest.recordings import AMBIGUOUS, short_paths
from convoscope.resources.sound import RecordingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_LOSSY = ("MPEG", "OPUS", "VORBIS", "GSM", "ULAW", "ALAW", "ADPCM")
"""How the names of lossy codings begin, or go on."""
_SECONDS = 0.15
"""By which the lengths of the same sound may differ: MP3 adds up to 0.1 s of silence."""
_CLIPS, _CLIP = 20, 3.0
_FRAME = 0.05
_ALIKE = 0.9
"""The correlation of levels, frame by frame: a codec leaves 0.99, and another call is near 0."""
_MOST = 8


def best_of(paths: Sequence[str]) -> Path:
    """The lossless file, with most channels, of several with the same sound. Raises `RecordingError` otherwise."""
    files = [(Path(path), read_header(Path(path))) for path in paths[:_MOST]]
    first, levels = files[0], _levels(*files[0])
    if len(paths) > _MOST or not all(_same(first[1], levels, *other) for other in files[1:]):
        raise ambiguous(paths, "hold different sound")
    # Of equals the first: they are in the order of their names.
    return max(files, key=lambda file: (file[1].channels, not _is_lossy(file[1]), file[1].rate))[0]


def ambiguous(paths: Sequence[str], what: str) -> RecordingError:
    """The error where each of some files may be the recording."""
    hint = "name the right one in the log, or give it the id of the conversation as its name"
    return RecordingError(AMBIGUOUS, f"{short_paths(paths)}: {what}", hint=hint)


def _is_lossy(header: SoundHeader) -> bool:
    return any(name in header.coding for name in _LOSSY)


def _same(header: SoundHeader, levels: NDArray[np.float64], path: Path, other: SoundHeader) -> bool:
    import numpy as np

    if abs(header.seconds - other.seconds) > _SECONDS:
        return False
    others = _levels(path, other)
    if header.channels != other.channels:
        levels, others = levels.mean(axis=1, keepdims=True), others.mean(axis=1, keepdims=True)
    # A codec may shift its sound a little.
    for shift in (0, 1, -1, 2, -2):
        left, right = levels[max(0, shift) :], others[max(0, -shift) :]
        count = min(len(left), len(right))
        left, right = (part[:count].ravel() - part[:count].mean() for part in (left, right))
        powers = float(left @ left), float(right @ right)
        if all(powers) == any(powers) and float(left @ right) >= _ALIKE * float(np.sqrt(powers[0] * powers[1])):
            return True
    return False


def _levels(path: Path, header: SoundHeader) -> NDArray[np.float64]:
    """How loud each channel is, frame by frame, in clips from its beginning to its end."""
    import numpy as np

    return np.concatenate(list(_clips(path, header)))


def _clips(path: Path, header: SoundHeader) -> Iterator[NDArray[np.float64]]:
    import numpy as np

    size, frame = round(_CLIP * header.rate), max(1, round(_FRAME * header.rate))
    seconds = header.seconds
    starts = {0.0} if seconds <= _CLIP else {number * (seconds - _CLIP) / (_CLIPS - 1) for number in range(_CLIPS)}
    for start in sorted(starts):
        with opened(path) as file:
            go_to(file, min(header.frames, round(start * header.rate)))
            with kept_from_screen():
                data = file.read(size, dtype="float32", always_2d=True).astype(np.float64)
        count = len(data) // frame
        yield np.sqrt((data[: count * frame].reshape(count, frame, -1) ** 2).mean(axis=1))
