"""Phrases of a language, looked for in a text as it is written."""

from __future__ import annotations

from convoscope.text.lexicon import folded_phrases, lexicon


def finds(language: str, purpose: str, text: str) -> str:
    """What a list of a language finds in a text; nothing where it finds nothing."""
    known = lexicon(language)
    assert known is not None
    return known.find(purpose, folded_phrases(text))
