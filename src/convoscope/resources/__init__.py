"""What metrics are handed beside a conversation: a judge, a recording, a recogniser, or something of your own."""

from convoscope.resources.judge import Judge, Verdict
from convoscope.resources.registry import Resource, resource
from convoscope.resources.sound import Recognised, Recogniser, Recording, Sound

__all__ = ["Judge", "Recognised", "Recogniser", "Recording", "Resource", "Sound", "Verdict", "resource"]
