"""What is said, sentence by sentence, in a plain spelling: straight quotes and single blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from convoscope.annotate.annotator import LANGUAGE_NOT_SUPPORTED, NO_WORDS, NotAnnotated
from convoscope.annotate.rules.data import table
from convoscope.conversation import ASSISTANT, USER, Conversation

_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_END = re.compile(r"(?<=[.!?])[\"')”’]*\s+|\n+")
_WORDS = re.compile(r"\w")
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
_MANY = 20_000
"""So many characters of a conversation tell its language."""
_FEW = 10
"""Fewer words tell no language."""
_LEAST = 0.08
"""Of English words, so many are small ones; far more in fact."""
_LONGEST = 1_000
"""Characters of a sentence. Longer ones are cut, so that the time of each rule is bounded."""
_PIECE = re.compile(rf"\S.{{0,{_LONGEST - 1}}}(?!\S)|\S{{{_LONGEST}}}")


class SpokenSentence(NamedTuple):
    """One sentence, who says it and where."""

    text: str
    """In a plain spelling."""
    quote: str
    """As it stands in the conversation, letter by letter as long as `text`."""
    seq: int
    by: str
    """user or assistant; "" where nobody in the conversation has such a role."""
    speaker: str


def sentences(conversation: Conversation) -> list[SpokenSentence]:
    """Everything that is said. Raises `NotAnnotated` where there are no words, or they are not English."""
    texts = list(_sentences(conversation))
    if not texts:
        raise NotAnnotated(NO_WORDS)
    language = language_of(conversation, texts)
    if language != "en":
        raise NotAnnotated(LANGUAGE_NOT_SUPPORTED, language)
    return texts


def _sentences(conversation: Conversation) -> Iterator[SpokenSentence]:
    has_roles = USER in conversation.roles.values() or ASSISTANT in conversation.roles.values()
    for utterance in conversation.utterances:
        role = conversation.roles[utterance.speaker]
        by = role if role in (USER, ASSISTANT) else "other" if has_roles else ""
        for part in _END.split(conversation.text(utterance)):
            if not _WORDS.search(part):
                continue
            for quote in _PIECE.findall(" ".join(part.split())):
                yield SpokenSentence(quote.translate(_QUOTES), quote, utterance.seq, by, utterance.speaker)


def language_of(conversation: Conversation, texts: list[SpokenSentence]) -> str:
    """The language of the words, or "unknown". A log that says English is believed unless its words say otherwise."""
    name = _declared(conversation)
    if name not in ("", "en"):
        return name
    whole = " ".join(one.text for one in texts)[:_MANY].casefold()
    letters = [letter for letter in whole if letter.isalpha()]
    if letters and 2 * sum(letter > "ɏ" for letter in letters) > len(letters):
        return "unknown"
    words = _WORD.findall(whole)
    counts = {name: sum(word in small for word in words) for name, small in _small_words().items()}
    spoken = max(counts, key=lambda name: (counts[name], name == "en"))
    if name == "en" and len(words) < _FEW:
        return "en"
    if spoken == "en" and len(words) >= _FEW and counts["en"] < _LEAST * len(words):
        return "unknown"
    return spoken


def _declared(conversation: Conversation) -> str:
    """The language that the log tells, as a code; "" where it tells none."""
    language = conversation.extras.get("language")
    if not isinstance(language, str):
        return ""
    name = language.strip().casefold().replace("_", "-").split("-")[0]
    return "en" if name in ("en", "eng", "english") else name


@cache
def _small_words() -> dict[str, frozenset[str]]:
    return {name: frozenset(words) for name, words in table("languages")["words"].items()}
