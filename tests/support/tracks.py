"""Tracks whose speech is given: what metrics are handed where no sound is to be listened to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import Conversation
from convoscope.resources.sound import Basis, Span


@dataclass(eq=False)
class GivenTrack:
    """A track that is silent but for the spans in which it says that there is speech."""

    speaker: str
    role: str
    spans: Sequence[tuple[float, float]]
    seconds: float
    offset: float | None = 0.0
    rate: int = 8_000
    basis: Basis = "stated"
    path: Path = Path("call.wav")
    channel: int | None = 0

    def read(self, start: float = 0.0, end: float | None = None, rate: int | None = None) -> NDArray[np.float32]:
        last = self.seconds if end is None else end
        return np.zeros(round((last - start) * (rate or self.rate)), np.float32)

    def windows(self, seconds: float, *, rate: int | None = None) -> Iterator[tuple[float, NDArray[np.float32]]]:
        yield 0.0, self.read(0.0, seconds, rate)

    def speech(self) -> tuple[Span, ...]:
        return tuple(Span(*span) for span in self.spans)


class GivenRecording:
    """Hands out tracks, whatever the conversation."""

    identity = "given"

    def __init__(self, tracks: Sequence[GivenTrack]) -> None:
        self._tracks = tracks

    def tracks(self, conversation: Conversation) -> Sequence[GivenTrack]:
        del conversation
        return self._tracks
