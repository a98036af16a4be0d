"""Loudness of a sound after ITU-R BS.1770-4, for one channel."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

STEP = 0.1
"""Seconds: blocks of 0.4 s begin so far apart."""
_BLOCK = 4
_TAIL = 0.3
"""Seconds after which what the filter still gives is below −140 dB."""


@lru_cache(maxsize=8)
def _response(rate: int) -> NDArray[np.float64]:
    """The impulse response of the K weighting, its shelf and its high pass, at any rate."""
    import numpy as np

    # The analog prototypes of the standard's filters, so that rates other than 48 kHz are weighted alike.
    gain, quality, corner = 3.999843853973347, 0.7071752369554196, 1681.974450955533
    k = math.tan(math.pi * corner / rate)
    high, band = 10 ** (gain / 20), (10 ** (gain / 20)) ** 0.4996667741545416
    below = 1 + k / quality + k * k
    shelf = (
        [
            (high + band * k / quality + k * k) / below,
            2 * (k * k - high) / below,
            (high - band * k / quality + k * k) / below,
        ],
        [2 * (k * k - 1) / below, (1 - k / quality + k * k) / below],
    )
    quality, corner = 0.5003270373238773, 38.13547087602444
    k = math.tan(math.pi * corner / rate)
    below = 1 + k / quality + k * k
    high_pass = ([1.0, -2.0, 1.0], [2 * (k * k - 1) / below, (1 - k / quality + k * k) / below])
    response = np.zeros(int(_TAIL * rate))
    response[0] = 1.0
    for forward, back in (shelf, high_pass):
        x1 = x2 = y1 = y2 = 0.0
        for index, x in enumerate(response.tolist()):
            y = forward[0] * x + forward[1] * x1 + forward[2] * x2 - back[0] * y1 - back[1] * y2
            x1, x2, y1, y2 = x, x1, y, y1
            response[index] = y
    return response


class LoudnessMeter:
    """Takes a sound piece by piece."""

    def __init__(self, rate: int) -> None:
        import numpy as np

        self._step = max(1, round(STEP * rate))
        self._response = _response(rate)
        self._history: NDArray[np.float64] = np.zeros(len(self._response) - 1)
        self._rest: NDArray[np.float64] = np.zeros(0)
        self._powers: list[NDArray[np.float64]] = []

    def add(self, samples: NDArray[np.float32]) -> None:
        import numpy as np

        joined = np.concatenate((self._history, samples.astype(np.float64)))
        size = 1 << (len(joined) - 1).bit_length()
        filtered = np.fft.irfft(np.fft.rfft(joined, size) * np.fft.rfft(self._response, size), size)
        weighted = np.concatenate((self._rest, filtered[len(self._history) : len(joined)]))
        self._history = joined[len(joined) - len(self._history) :]
        whole = len(weighted) // self._step * self._step
        self._powers.append((weighted[:whole] ** 2).reshape(-1, self._step).mean(axis=1))
        self._rest = weighted[whole:]

    def integrated(self) -> float | None:
        """LUFS of all that was added, gated at −70 LUFS and at 10 LU below the rest; None for silence."""
        import numpy as np

        steps = np.concatenate(self._powers) if self._powers else np.zeros(0)
        if len(steps) < _BLOCK:
            return None
        total = np.concatenate(([0.0], np.cumsum(steps)))
        blocks = (total[_BLOCK:] - total[:-_BLOCK]) / _BLOCK
        loud = blocks[blocks > 10 ** ((-70 + 0.691) / 10)]
        if not len(loud):
            return None
        gated = loud[loud > loud.mean() / 10]
        return float(-0.691 + 10 * np.log10(gated.mean()))
