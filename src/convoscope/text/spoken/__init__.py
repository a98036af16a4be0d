"""Spoken forms: what is said alike is made equal, and the facts in a turn are found and checked."""

from __future__ import annotations

from convoscope.text.spoken.entities import SpokenEntity, entities
from convoscope.text.spoken.normal import normalise, normalised
from convoscope.text.spoken.recognition import FactCheck, RecognisedFacts, check_fact, check_facts

__all__ = [
    "FactCheck",
    "RecognisedFacts",
    "SpokenEntity",
    "check_fact",
    "check_facts",
    "entities",
    "normalise",
    "normalised",
]
