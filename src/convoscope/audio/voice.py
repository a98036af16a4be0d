"""What the frames of one speaker's speech give together: pitch, spectrum, and how far the speech is above the noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.audio.levels import TrackLevels, speech_frames
from convoscope.audio.pitch import FRAME, RATE, framed
from convoscope.audio.speakers import SpeakerSound, joined
from convoscope.resources.sound import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TELEPHONE = 4_300.0
"""Hertz: a telephone passes nothing above 3,400 to 4,000."""
_NOTHING = 1e-5
"""50 dB below what is in the band of a telephone: less than what any wideband voice has."""
_FAINT = 1e-2
"""20 dB below it: louder noise may hide what a wideband voice has."""
_FOLLOWS = 0.15
"""A band holds nothing of the voice where less of its power than this comes and goes with it."""
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
_NEAR = 1.0
"""Seconds of a pause, from where the speech has faded, that have the noise that the speech is heard in."""
_LOW = 10
"""The percentile of frames that is the noise: steps, breath and music are louder than it."""
_LONGEST_PIECE = 30.0
_BINS = 1024
"""Of the spectrum, below 8 kHz."""


class VoiceFrames(NamedTuple):
    """Pitches and mean spectrum of all speech of a speaker, and what of the spectrum is the voice's."""

    pitches: NDArray[np.float64]
    power: NDArray[np.float64]
    """By frequency, from 0 to 8 kHz."""
    images: NDArray[np.float64]
    """What of the power is a mirror image of a lower frequency, as resampling without a filter leaves it."""
    noise: NDArray[np.float64]
    """Power in each of `_BANDS` that stays, whether the voice is loud or soft."""
    frames: int

    @property
    def is_telephone(self) -> bool:
        """Nothing of the voice is above the band of a telephone, whatever the rate of the file.

        Mirror images and hiss are no voice. In loud noise a voice could not be heard there: then this is not claimed.
        """
        within = float(self.power[_bin(300.0) : _bin(3_400.0) + 1].sum())
        above, images = (float(one[_bin(TELEPHONE) :].sum()) for one in (self.power, self.images))
        voice = above - images - float(self.noise[-1])
        return within > 0 and above - images < _FAINT * within and voice < max(_NOTHING * within, _FOLLOWS * above)

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
        number = list(THIRDS).index(int(hertz))
        low, high = _BANDS[number]
        all_of_it = float(self.power[low:high].sum())
        voice = all_of_it - float(self.images[low:high].sum()) - float(self.noise[number])
        if voice < _FOLLOWS * all_of_it:
            return 0.0
        share = voice / max(float(self.power.sum()), 1e-30)
        return min(1.0, max(0.0, math.log(max(share, 1e-30) / UNHEARD) / math.log(HEARD / UNHEARD)))


def _bin(hertz: float) -> int:
    return round(hertz / (RATE / 2) * _BINS)


_BANDS = (
    *((_bin(hertz * 2 ** (-1 / 6)), _bin(hertz * 2 ** (1 / 6))) for hertz in THIRDS),
    (_bin(TELEPHONE), _BINS + 1),
)
"""The thirds of octaves, and what is above a telephone: from bin to bin of the spectrum."""


def voice_frames(sound: SpeakerSound) -> VoiceFrames:
    """The frames of a speaker's speech. They are computed once. Raises `RecordingError`."""
    import numpy as np

    kept: dict[tuple[Span, ...], VoiceFrames] = vars(sound.track).setdefault("_voice_frames", {})
    if sound.speech not in kept:
        parts = [framed(samples, _BANDS) for samples in _pieces(sound)]
        count = sum(part.frames for part in parts)
        power = sum((part.power * part.frames for part in parts), np.zeros(_BINS + 1)) / max(1, count)
        mirror = sum((part.mirror * part.frames for part in parts), np.zeros(_BINS // 2, np.complex128))
        bands = np.concatenate([np.zeros((0, len(_BANDS)), np.float32), *(part.bands for part in parts)])
        pitches = np.concatenate([part.pitches for part in parts]) if parts else np.zeros(0)
        kept[sound.speech] = VoiceFrames(pitches, power, _images(power, mirror / max(1, count)), _steady(bands), count)
    return kept[sound.speech]


def _images(power: NDArray[np.float64], mirror: NDArray[np.complex128]) -> NDArray[np.float64]:
    """The power above 4 kHz that follows its mirror below it, frame by frame and in phase: a voice never does."""
    import numpy as np

    half = len(mirror)
    result = np.zeros_like(power)
    result[: -half - 1 : -1] = np.abs(mirror) ** 2 / np.maximum(power[:half], 1e-30)
    return np.minimum(result, power)


def _steady(bands: NDArray[np.float32]) -> NDArray[np.float64]:
    """The power of each band that is always there: what a tenth of the frames stay below, as of noise alone."""
    import numpy as np

    if not len(bands):
        return np.zeros(len(_BANDS))
    # A band of noise has so many independent values in a frame; its power is spread the less, the more they are.
    many = np.array([max(1.0, (high - low) / _BINS * RATE / 2 * FRAME / RATE / 1.5) for low, high in _BANDS])
    tenth = (1 - 1 / (9 * many) - 1.2816 / (3 * np.sqrt(many))) ** 3
    result: NDArray[np.float64] = np.percentile(bands, 10, axis=0) / tenth
    return result


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
            # From an even sample on, mirror images are always in the same phase.
            yield np.ascontiguousarray(samples[low & ~1 : high])


def speech_power(levels: TrackLevels, spans: Sequence[Span]) -> float | None:
    """The mean power of the 20 ms frames inside of spans; None where there is no such frame."""
    frames = speech_frames(levels, spans)
    return float(frames.mean()) if len(frames) else None


def noise_power(levels: TrackLevels, speech: Sequence[Span]) -> float | None:
    """The power that nine of ten 20 ms frames in pauses exceed, near the speech of a track; None without pauses.

    Only pauses between the first speech and the last count, and of a long one its ends: what is before, after, or far
    away, such as music on hold, is not the noise that the speech is heard in.
    """
    import numpy as np

    wide = joined([Span(max(0.0, one.start - _APART), one.end + _APART) for one in speech], 0.0)
    pauses = [Span(one.end, other.start) for one, other in pairwise(wide) if other.start - one.end > 0.05]
    ends = [
        span
        for start, end in pauses
        for span in (
            (Span(start, start + _NEAR), Span(end - _NEAR, end)) if end - start > 2 * _NEAR else (Span(start, end),)
        )
    ]
    if sum(end - start for start, end in ends) < LEAST_PAUSE:
        return None
    frames = speech_frames(levels, ends)
    return float(np.percentile(frames, _LOW)) if len(frames) else None
