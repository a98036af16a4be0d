"""What the frames of one speaker's speech give together: pitch, spectrum, and how far the speech is above the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.audio.levels import TrackLevels, speech_frames
from convoscope.audio.pitch import RATE, framed
from convoscope.audio.speakers import SpeakerSound, joined
from convoscope.resources.sound import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TELEPHONE = 4_300.0
"""Hertz: a telephone passes nothing above 3,400 to 4,000."""
_NOTHING = 1e-5
"""50 dB below what is in the band of a telephone: less than what any wideband voice has."""
TELEPHONE_NEEDS = 2_500.0
"""Hertz: the third of an octave that every telephone passes, up to 2,800 Hz. A voice without it is muffled."""
THIRDS = {
    160: 83, 200: 95, 250: 150, 315: 289, 400: 440, 500: 578, 630: 653, 800: 711, 1000: 818, 1250: 844, 1600: 882,
    2000: 898, 2500: 868, 3150: 844, 4000: 771, 5000: 527, 6300: 364,
}  # fmt: skip
"""What the thirds of octaves below 7 kHz weigh for understanding, in parts of 10,000 (ANSI S3.5-1997, table 3)."""
UNHEARD, HEARD = 10 ** (-48 / 10), 10 ** (-38 / 10)
"""Shares of the energy of a voice: with the first a third of an octave is not heard, with the second it is."""
LEAST_PAUSE = 0.5
"""Seconds without speech that the noise is measured in, at least."""
_APART = 0.2
"""Seconds from speech: it fades into the room."""
_LONGEST_PIECE = 30.0


class VoiceFrames(NamedTuple):
    """Pitches and mean spectrum of all speech of a speaker."""

    pitches: NDArray[np.float64]
    power: NDArray[np.float64]
    """By frequency, from 0 to 8 kHz."""
    frames: int

    @property
    def is_telephone(self) -> bool:
        """Nothing of the voice is above the band of a telephone, whatever the rate of the file."""
        within = float(self.power[_bin(self.power, 300.0) : _bin(self.power, 3_400.0) + 1].sum())
        return within > 0 and float(self.power[_bin(self.power, TELEPHONE) :].sum()) < _NOTHING * within

    @property
    def is_muffled(self) -> bool:
        """Less of the voice is left than a telephone passes."""
        return self._heard(TELEPHONE_NEEDS) == 0

    @property
    def band_share(self) -> float:
        """How much of the frequencies that speech is understood by holds something of the voice."""
        return sum(weight * self._heard(hertz) for hertz, weight in THIRDS.items()) / sum(THIRDS.values())

    def _heard(self, hertz: float) -> float:
        """From 0 to 1, by how far the third of an octave is below all of the voice; linear in decibels."""
        low, high = (_bin(self.power, hertz * 2 ** (step / 6)) for step in (-1, 1))
        share = float(self.power[low:high].sum()) / max(float(self.power.sum()), 1e-30)
        return min(1.0, max(0.0, math.log(max(share, 1e-30) / UNHEARD) / math.log(HEARD / UNHEARD)))


def _bin(power: NDArray[np.float64], hertz: float) -> int:
    return round(hertz / (RATE / 2) * (len(power) - 1))


def voice_frames(sound: SpeakerSound) -> VoiceFrames:
    """The frames of a speaker's speech. They are computed once. Raises `RecordingError`."""
    import numpy as np

    kept: dict[tuple[Span, ...], VoiceFrames] = vars(sound.track).setdefault("_voice_frames", {})
    if sound.speech not in kept:
        parts = [framed(samples) for samples in _pieces(sound)]
        count = sum(part.frames for part in parts)
        power = sum((part.power * part.frames for part in parts), np.zeros(1025)) / max(1, count)
        pitches = np.concatenate([part.pitches for part in parts]) if parts else np.zeros(0)
        kept[sound.speech] = VoiceFrames(pitches, power, count)
    return kept[sound.speech]


def _pieces(sound: SpeakerSound) -> Any:
    """The speech, read from the file in order, once."""
    import numpy as np

    spans = list(sound.speech)
    first = 0
    for start, samples in sound.track.windows(_LONGEST_PIECE, rate=RATE):
        end = start + len(samples) / RATE
        while first < len(spans) and spans[first].end <= start:
            first += 1
        for span in spans[first:]:
            if span.start >= end:
                break
            low, high = (round((moment - start) * RATE) for moment in (max(start, span.start), min(end, span.end)))
            yield np.ascontiguousarray(samples[low:high])


def speech_power(levels: TrackLevels, spans: Sequence[Span]) -> float | None:
    """The mean power of the 20 ms frames inside of spans; None where there is no such frame."""
    frames = speech_frames(levels, spans)
    return float(frames.mean()) if len(frames) else None


def noise_power(levels: TrackLevels, speech: Sequence[Span], seconds: float) -> float | None:
    """The median power of the 20 ms frames that are away from all speech of a track; None without pauses."""
    import numpy as np

    wide = joined([Span(max(0.0, one.start - _APART), one.end + _APART) for one in speech], 0.0)
    edges = [0.0, *(edge for span in wide for edge in span), seconds]
    pauses = [Span(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end - start > 0.05]
    if sum(end - start for start, end in pauses) < LEAST_PAUSE:
        return None
    frames = speech_frames(levels, pauses)
    return float(np.median(frames)) if len(frames) else None
