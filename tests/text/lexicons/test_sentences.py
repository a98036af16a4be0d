"""Sentences as people write them in chats: each list finds those with `+` and leaves those with `-` alone.

The sentences were written before the lists were changed for them: in small letters, without accents, in capitals,
misspelled, with emojis. An objection is one that follows a statement of the agent.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from convoscope.text.lexicon import AFTER_STATEMENT, folded_phrases, lexicon
from support.lexicons import finds, objects

FOLDER = Path(__file__).with_name("sentences")


class Sentence(NamedTuple):
    """A sentence of a language, and whether a list should find it."""

    language: str
    purpose: str
    is_found: bool
    text: str


def sentences() -> Iterator[Sentence]:
    for path in sorted(FOLDER.glob("*.txt")):
        purpose = ""
        for line in path.read_text(encoding="utf-8").splitlines():
            sign, _, text = line.partition(" ")
            if sign == "#":
                purpose = text
            else:
                yield Sentence(path.stem, purpose, sign == "+", text)


@pytest.mark.parametrize("purpose", ["objection", "thanks", "refusal", "hand_over", "goodbye"])
@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "ja", "pt"])
def test_sentences(language: str, purpose: str) -> None:
    own = [one for one in sentences() if (one.language, one.purpose) == (language, purpose)]
    find = objects if purpose == "objection" else lambda language, text: finds(language, purpose, text)
    found = [one for one in own if find(language, one.text)]
    assert found == [one for one in own if one.is_found]
    assert min(sum(one.is_found for one in own), sum(not one.is_found for one in own)) >= 20


@pytest.mark.parametrize("purpose", ["objection", "thanks", "refusal", "hand_over", "goodbye"])
@pytest.mark.parametrize("language", ["de", "en", "es", "fr", "ja", "pt"])
def test_one_look_at_many_texts_misses_none(language: str, purpose: str) -> None:
    words = lexicon(language)
    assert words is not None
    lists = ("objection", AFTER_STATEMENT) if purpose == "objection" else (purpose,)
    found = [one.text for one in sentences() if (one.language, one.purpose, one.is_found) == (language, purpose, True)]
    # Phrases may be tied to the beginning or the end of a text: the others are around it.
    for text in found:
        assert words.may_hold(lists, [folded_phrases(each) for each in ("Anna 12", text, "Anna 12")]), text
    assert not words.may_hold(lists, [folded_phrases("Anna 12"), folded_phrases("Anna 12")])
