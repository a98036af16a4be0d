"""How high a voice is: the first peak of the autocorrelation of short frames; and where its energy is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RATE = 16_000
FRAME, HOP = 640, 160
"""40 ms every 10 ms (specs: judged 6)."""
LOWEST, HIGHEST = 60.0, 400.0
LEAST_PEAK = 0.45
BELOW, ABOVE = (0.72, 35), (1.6, 50)
"""How far a voice goes below and above the percentiles of what its frames seem to have."""
_SIZE = 2048
_OCTAVE = 0.98
"""A shorter lag wins if its peak is nearly as high: the double of a period fits as well as the period."""


class FramedSound(NamedTuple):
    """What the frames of a stretch of speech give."""

    pitches: NDArray[np.float64]
    """Hertz of the voiced frames."""
    power: NDArray[np.float64]
    """Mean power by frequency, from 0 to 8 kHz."""
    frames: int
    mirror: NDArray[np.complex128]
    """Mean product of the spectrum at each frequency below 4 kHz and at its mirror above it."""
    bands: NDArray[np.float32]
    """Power of each frame in each of the bands that were asked for."""


def framed(samples: NDArray[np.float32], bands: Sequence[tuple[int, int]] = ()) -> FramedSound:
    """The pitches and the spectrum of a sound of 16 kHz; and of each frame the power in bands, from bin to bin."""
    import numpy as np

    pitches: list[NDArray[np.float64]] = []
    power = np.zeros(_SIZE // 2 + 1)
    mirror = np.zeros(_SIZE // 4, np.complex128)
    in_bands: list[NDArray[np.float32]] = [np.zeros((0, len(bands)), np.float32)]
    count = 0
    window = np.hanning(FRAME + 1)[:FRAME]
    # The autocorrelation of a windowed frame falls with the lag by itself: it is divided by that of the window.
    of_window = np.fft.irfft(np.abs(np.fft.rfft(window, _SIZE)) ** 2)
    first, last = int(RATE / HIGHEST), int(RATE / LOWEST) + 1
    if len(samples) < FRAME:
        return FramedSound(np.zeros(0), power, 0, mirror, in_bands[0])
    frames = np.lib.stride_tricks.sliding_window_view(samples, FRAME)[::HOP]
    for start in range(0, len(frames), 2000):
        some = frames[start : start + 2000].astype(np.float64)
        some = some - some.mean(axis=1, keepdims=True)
        waves = np.fft.rfft(some * window, _SIZE)
        spectrum = np.abs(waves) ** 2
        power += spectrum.sum(axis=0)
        mirror += (waves[:, : _SIZE // 4] * waves[:, : _SIZE // 4 : -1]).sum(axis=0)
        sums = [spectrum[:, low:high].sum(axis=1) for low, high in bands]
        in_bands.append(np.array(sums, np.float32).T.reshape(len(some), len(bands)))
        count += len(some)
        correlation = np.fft.irfft(spectrum)[:, : last + 2] / of_window[: last + 2]
        energy = correlation[:, :1]
        normal = np.divide(correlation, energy, out=np.zeros_like(correlation), where=energy > 1e-9)
        pitches.append(_voiced(normal, first, last))
    return FramedSound(
        np.concatenate(pitches), power / max(1, count), count, mirror / max(1, count), np.concatenate(in_bands)
    )


def _voiced(normal: NDArray[np.float64], first: int, last: int) -> NDArray[np.float64]:
    """Hertz of the frames whose autocorrelation has a high peak at a lag of a voice.

    Where the fundamental is missing, as on a telephone, overtones have peaks that are nearly as high. So peaks are
    looked for twice, the second time near what most frames have (after De Looze and Hirst).
    """
    import numpy as np

    within = normal[:, first - 1 : last + 2]
    is_peak = (within[:, 1:-1] > within[:, :-2]) & (within[:, 1:-1] >= within[:, 2:])
    heights = np.where(is_peak, within[:, 1:-1], 0.0)
    lags = first + np.arange(heights.shape[1])
    rough = lags[_best(heights)[1]]
    if not len(rough):
        return np.zeros(0)
    low, high = (share * np.percentile(RATE / rough, part) for share, part in (BELOW, ABOVE))
    frames, best = _best(np.where((lags >= RATE / high) & (lags <= RATE / low), heights, 0.0))
    lag = lags[best]
    before, at, after = (normal[frames, lag + shift] for shift in (-1, 0, 1))
    bend = before - 2 * at + after
    shift = np.divide(0.5 * (before - after), bend, out=np.zeros_like(bend), where=np.abs(bend) > 1e-12)
    hertz = RATE / (lag + np.clip(shift, -0.5, 0.5))
    result: NDArray[np.float64] = hertz[(hertz >= LOWEST) & (hertz <= HIGHEST)]
    return result


def _best(heights: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The frames with a high peak, and where the first of their highest ones is."""
    import numpy as np

    highest = heights.max(axis=1)
    frames = np.flatnonzero(highest >= LEAST_PEAK)
    return frames, (heights[frames] >= _OCTAVE * highest[frames, None]).argmax(axis=1)
