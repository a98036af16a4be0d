"""What a metric may ask of a recording, and of a recogniser that listens to it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from convoscope.conversation import Conversation


class Sound(NamedTuple):
    """One track of a conversation."""

    speaker: str
    """Who is heard: the id of a participant; "" where all are."""
    rate: int
    """Samples in a second."""
    samples: Sequence[float]
    """From -1 to 1."""


class Recording(Protocol):
    """Opens the recordings of conversations."""

    identity: str
    """What reads the files, and its version."""

    def tracks(self, conversation: Conversation) -> Sequence[Sound]:
        """The sound of a conversation that has a recording, track by track. Raises where a file cannot be read."""


class Recognised(NamedTuple):
    """Words that were heard, and when: seconds from the start of the sound."""

    text: str
    start: float
    end: float


class Recogniser(Protocol):
    """Writes down what it hears."""

    identity: str
    """All that its words depend on beside the sound: `provider/model`."""

    async def recognise(self, sound: Sound) -> Sequence[Recognised]:
        """The words of a sound, in order."""


__all__ = ["Recognised", "Recogniser", "Recording", "Sound"]
