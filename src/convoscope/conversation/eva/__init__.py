"""The published fixtures' reading of a call, exact to the letter (voice logs, section 3)."""

from convoscope.conversation.eva.reading import EvaReading, read_eva

__all__ = ["EvaReading", "read_eva"]
