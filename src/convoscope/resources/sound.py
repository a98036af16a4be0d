"""What a metric may ask of a recording, and of a recogniser that listens to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

from convoscope.errors import ConvoscopeError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    from numpy.typing import NDArray

    from convoscope.conversation import Conversation

Basis = Literal["stated", "timeline", "voice_activity", "contradicted", "not_separate", "unknown"]
"""How it is known who is heard: the log says so; the log's times fit the sound; the sound alone; not at all, since by
its times the log's own labels are the wrong way round; not at all, since both sides are or may be heard there; not at
all."""

FROM_SOUND = "voice activity"
"""The source of a clock whose times were heard in the sound: no log says them."""

CONTRADICTION = "by the times of the log, its labels of the channels are the wrong way round"
NOT_SEPARATE_TEXT = "both sides are heard on one channel, or only one channel has speech of its own"


class RecordingError(ConvoscopeError):
    """A recording that cannot be used: a reason code, such as `recording_not_found`, and what is wrong."""

    def __init__(self, reason: str, detail: str = "", *, hint: str = "") -> None:
        super().__init__(detail or reason, hint=hint)
        self.reason = reason
        self.detail = detail


class Span(NamedTuple):
    """A stretch of sound, in seconds from the start of its track."""

    start: float
    end: float


class Sound(NamedTuple):
    """A clip in memory: what a recogniser, or a judge that listens, is given."""

    speaker: str
    """Who is heard: the id of a participant; "" where all are."""
    rate: int
    """Samples in a second."""
    samples: NDArray[np.float32]
    """Of one channel, from -1 to 1."""


class RecordedTrack(Protocol):
    """One side of a recording, or all of it. It is read in windows: a call may last for hours."""

    speaker: str
    """The id of a participant; "" where all are heard, or it is not known who."""
    role: str
    """The role of the speaker; "" where it is not known."""
    rate: int
    """Samples in a second of the file."""
    coding: str
    """What the samples are kept as, such as PCM_16, OPUS or GSM610; "" where it is not known."""
    seconds: float
    offset: float | None
    """What to add to seconds of the track to reach the common time of the conversation; None where it is not known."""
    basis: Basis
    path: Path
    channel: int | None
    """The channel of the file, from 0; None where all channels are mixed."""

    def read(self, start: float = 0.0, end: float | None = None, rate: int | None = None) -> NDArray[np.float32]:
        """The samples between two moments, at the file's rate or another. Raises `RecordingError`."""

    def windows(self, seconds: float, *, rate: int | None = None) -> Iterator[tuple[float, NDArray[np.float32]]]:
        """All samples, a window of so many seconds after the other, each with its start. Raises `RecordingError`."""

    def speech(self) -> tuple[Span, ...]:
        """When there is speech. It is computed once. Raises `RecordingError`."""


class Recording(Protocol):
    """Opens the recordings of conversations."""

    identity: str
    """What reads the files, and its version."""

    def tracks(self, conversation: Conversation) -> Sequence[RecordedTrack]:
        """The recording of a conversation, track by track. Raises `RecordingError`."""


class Recognised(NamedTuple):
    """Words that were heard, and when: seconds from the start of the sound."""

    text: str
    start: float
    end: float
    probability: float | None = None


class Recogniser(Protocol):
    """Writes down what it hears."""

    identity: str
    """All that its words depend on beside the sound: `provider/model`."""

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        """The words of a sound, in order."""


__all__ = ["Basis", "Recognised", "Recogniser", "RecordedTrack", "Recording", "RecordingError", "Sound", "Span"]
