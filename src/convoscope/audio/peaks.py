"""Peaks of a track: what a waveform on the page is drawn from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.resources.sound import RecordedTrack

MOST = 4_000
"""Peaks of a track: one of three hours needs no more room than one of seven minutes."""
A_SECOND = 10
_WINDOW = 10.0
"""Seconds that are read together."""


class Peaks(NamedTuple):
    """The loudest sample of each bin, in one byte: 255 is as loud as the file can be, 0 is silence."""

    rate: float
    """Bins in a second of the track."""
    levels: bytes


def peaks(track: RecordedTrack) -> Peaks:
    """The peaks of a track. A level is 255 times the square root of a peak: soft speech is seen, noise stays low.

    The scale is that of the file, never that of its loudest moment: calls can be compared.
    """
    wanted = min(MOST, max(1, math.ceil(track.seconds * A_SECOND)))
    size = max(1, math.ceil(track.seconds * track.rate / wanted))
    levels: list[bytes] = []
    rest = np.empty(0, dtype=np.float32)
    for _, window in track.windows(_WINDOW):
        samples = np.concatenate((rest, window))
        whole = len(samples) - len(samples) % size
        levels.append(_levels(samples[:whole].reshape(-1, size)))
        rest = samples[whole:]
    if len(rest):
        levels.append(_levels(rest.reshape(1, -1)))
    return Peaks(track.rate / size, b"".join(levels))


def _levels(bins: NDArray[np.float32]) -> bytes:
    # A sample that is no number is no sound.
    loudest = np.fmax.reduce(np.abs(bins), axis=1, initial=0.0)
    return bytes(np.rint(255 * np.sqrt(np.minimum(loudest, 1.0))).astype(np.uint8))
