"""Recordings without sound, whose speech is where it is said to be, and a recogniser that reads what was written."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from convoscope.conversation import Conversation
from convoscope.resources import Recognised, Sound
from convoscope.resources.sound import RecordingError, Span


class Tape:
    """A track whose speech is where it is said to be."""

    rate, channel, basis, offset = 100, 0, "stated", 0.0

    def __init__(self, speaker: str, role: str, *speech: tuple[float, float], seconds: float = 60.0) -> None:
        self.speaker, self.role, self.seconds = speaker, role, seconds
        self._speech = tuple(Span(*one) for one in speech)

    def read(self, start: float = 0.0, end: float | None = None, rate: int | None = None) -> Any:
        # The samples say when they are: each is the second that it is at.
        return np.arange(start * 100, (self.seconds if end is None else end) * 100, dtype=np.float32) / 100

    def speech(self) -> tuple[Span, ...]:
        return self._speech


class Tapes:
    identity = "tapes/1"

    def __init__(self, *tracks: Tape) -> None:
        self._tracks = tracks

    def tracks(self, conversation: Conversation) -> Sequence[Tape]:
        if not self._tracks:
            raise RecordingError("recording_not_found", "call.wav")
        return self._tracks


class Reader:
    """A recogniser that hears, in each clip of a speaker, the words that begin within it."""

    identity = "reader:test@1"

    def __init__(self, *words: Recognised, again: Sequence[Recognised] | None = None) -> None:
        self._words, self._again = words, again
        self.clips: list[tuple[float, float]] = []

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        start, end = float(sound.samples[0]), float(sound.samples[-1])
        words = self._words
        if self._again is not None and self.clips:
            words = tuple(self._again)
        self.clips.append((start, end))
        return [
            Recognised(text, begin - start, until - start, probability)
            for text, begin, until, probability in words
            if start <= begin <= end
        ]


def spoken(text: str, start: float, probability: float | None = 0.9) -> list[Recognised]:
    """Words of 0.4 seconds each, from a moment on."""
    return [
        Recognised(word, start + 0.4 * index, start + 0.4 * (index + 1), probability)
        for index, word in enumerate(text.split())
    ]
