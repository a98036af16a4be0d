"""Spoken forms: what is said alike is made equal, and the facts in a turn are found and checked."""

from __future__ import annotations

from convoscope.text.spoken.entities import Entity, entities
from convoscope.text.spoken.normal import normalise, normalised
from convoscope.text.spoken.recognition import Checked, Heard, hear, is_heard

__all__ = ["Checked", "Entity", "Heard", "entities", "hear", "is_heard", "normalise", "normalised"]
