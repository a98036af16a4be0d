"""What metrics are handed beside a conversation: a judge, a recording, a recogniser, or something of your own."""

from convoscope.resources.judge import Judge, Verdict
from convoscope.resources.registry import Resource, resource
from convoscope.resources.sound import Recognised, Recogniser, RecordedTrack, Recording, RecordingError, Sound, Span

__all__ = [
    "Judge",
    "Recognised",
    "Recogniser",
    "RecordedTrack",
    "Recording",
    "RecordingError",
    "Resource",
    "Sound",
    "Span",
    "Verdict",
    "resource",
]
