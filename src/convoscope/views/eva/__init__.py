"""The published fixtures' reading of a call, exact to the letter (voice logs, section 3)."""

from convoscope.views.eva.reading import EvaReading, eva_reading, read_eva

__all__ = ["EvaReading", "eva_reading", "read_eva"]
