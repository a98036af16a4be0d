"""Phrases of a language, looked for in a text as it is written."""

from __future__ import annotations

from convoscope.text.lexicon import AFTER_STATEMENT, folded_phrases, lexicon


def finds(language: str, purpose: str, text: str) -> str:
    """What a list of a language finds in a text; nothing where it finds nothing."""
    known = lexicon(language)
    assert known is not None
    return known.find(purpose, folded_phrases(text))


def objects(language: str, text: str) -> str:
    """By what a text objects to a statement of the agent; nothing where it does not."""
    return finds(language, "objection", text) or finds(language, AFTER_STATEMENT, text)
