"""Spoken forms: what is said alike is made equal, and the facts in a turn are found and checked."""

from __future__ import annotations

from convoscope.text.spoken.entities import SpokenEntity, entities
from convoscope.text.spoken.normal import normalise, normalised
from convoscope.text.spoken.recognition import FactCheck, RecognisedFact, check_entities, check_fact
from convoscope.text.spoken.recognition import check_entities as check_facts  # the old name, for one release

__all__ = [
    "FactCheck",
    "RecognisedFact",
    "SpokenEntity",
    "check_entities",
    "check_fact",
    "check_facts",
    "entities",
    "normalise",
    "normalised",
]
