"""Spoken forms: what is said alike is made equal, and the facts in a turn are found and checked."""

from __future__ import annotations

from convoscope.spoken.entities import Entity, entities
from convoscope.spoken.heard import Checked, Heard, hear, is_heard
from convoscope.spoken.normal import normalise, normalised

__all__ = ["Checked", "Entity", "Heard", "entities", "hear", "is_heard", "normalise", "normalised"]
