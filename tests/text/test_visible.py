"""Texts as a person sees them: characters that are not drawn, wide letters, letters that look alike."""

from __future__ import annotations

import pytest

from convoscope.text.folding import visible
from convoscope.text.language import language_of
from convoscope.text.lexicon import folded_phrases

PLAIN = "No, that is wrong, I already told you my number"
WRITTEN = {
    "zero width": "\u200b".join(PLAIN),
    "soft hyphens": PLAIN.replace("r", "\u00adr"),
    "byte order mark": "\ufeff" + PLAIN,
    "full width": "".join(chr(ord(one) + 0xFEE0) if "!" <= one <= "~" else one for one in PLAIN),
    "bold of mathematics": "".join(chr(0x1D41A + ord(one) - 97) if "a" <= one <= "z" else one for one in PLAIN),
    "Cyrillic letters": PLAIN.translate(str.maketrans("aeopcy", "аеорсу")),
    "Greek letters": PLAIN.translate(str.maketrans("oa", "οα")),
    "wide blanks": PLAIN.replace(" ", "\u3000"),
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_what_looks_alike_is_alike(text: str) -> None:
    assert folded_phrases(text) == folded_phrases(PLAIN)
    assert language_of(text) == "en"


@pytest.mark.parametrize("text", ["Нет, это неправильно", "Όχι, αυτό είναι λάθος", "Das ist größer", "違います"])
def test_other_scripts_stay(text: str) -> None:
    assert visible(text) == text


def test_both_scripts_in_one_text() -> None:
    """A Russian sentence with a name in Latin letters: only the word that mixes both is put right."""
    assert visible("Мой iPhone не работает, bаttery тоже") == "Мой iPhone не работает, battery тоже"
