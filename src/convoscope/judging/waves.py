"""A sound as the bytes of a WAV file: what a judge that listens is sent."""

from __future__ import annotations

import io
import wave
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convoscope.resources.sound import Sound

_FULL_SCALE = 32767


def wave_of(sound: Sound) -> bytes:
    """One channel of 16 bits, at the rate of the sound. The same sound gives the same bytes."""
    import numpy as np

    samples = np.nan_to_num(np.asarray(sound.samples, np.float32), nan=0.0, posinf=1.0, neginf=-1.0)
    whole = np.round(np.clip(samples, -1.0, 1.0) * _FULL_SCALE).astype("<i2")
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(sound.rate)
        writer.writeframes(whole.tobytes())
    return file.getvalue()


__all__ = ["wave_of"]
