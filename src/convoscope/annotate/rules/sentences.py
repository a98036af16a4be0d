"""What is said, sentence by sentence, in a plain spelling: straight quotes and single blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from convoscope.annotate.annotator import NO_WORDS, NotAnnotated
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.text.language import has_many_words
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of

LANGUAGES = ("en",)
"""The languages that the rules read."""

_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "'", "“": '"', "”": '"', "–": "-", "—": "-"})
_END = re.compile(r"(?<=[.!?])[\"')”’]*\s+|\n+")
_WORDS = re.compile(r"\w")
_FIRST = 50
"""Utterances that are looked at for words of a language."""
_LONGEST = 1_000
"""Characters of a sentence. Longer ones are cut, so that the time of each rule is bounded."""
_PIECE = re.compile(rf"\S.{{0,{_LONGEST - 1}}}(?!\S)|\S{{{_LONGEST}}}")


class SpokenSentence(NamedTuple):
    """One sentence, who says it and where."""

    text: str
    """In a plain spelling."""
    quote: str
    """As it is in the conversation, with as many characters as `text`."""
    seq: int
    by: str
    """user or assistant; "" where no speaker of the conversation has such a role."""
    speaker: str


def sentences(conversation: Conversation) -> list[SpokenSentence]:
    """Everything that is said. Raises `NotAnnotated` where there are no words, or they are not English."""
    texts = list(_sentences(conversation))
    if not texts:
        raise NotAnnotated(NO_WORDS)
    language = spoken_language(conversation)
    if language not in LANGUAGES:
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


def spoken_language(conversation: Conversation) -> str:
    """The language of the conversation, or "unknown". A few words that say no language are taken for English."""
    language = languages_of(conversation).of_all()
    if language:
        return language
    words = " ".join(conversation.text(one) for one in conversation.utterances[:_FIRST])
    return "unknown" if has_many_words(words) else "en"


_NEGATION = re.compile(
    r"(?:\b(?:not|never|no|without|nobody|cannot|hardly|neither|nor|don't|stop)\b|n't\b)", re.IGNORECASE
)
_CLAUSE = re.compile(
    r"[,;:!?]| - |\b(?:but|because|so|although|though|or else|otherwise|if|unless)\b"
    r"|(?<!think )(?<!believe )(?<!saying )(?<!say )(?<!mean )\b(?:i|we)(?:'ll|'m|'re| will| am| are)\b(?! not)",
    re.IGNORECASE,
)
_REACH = 5
"""Words before a sign in which a negation still reaches it."""
_NO_NEGATION = re.compile(
    r"\bno,? (?:i|we|that|this|it|you)\b|\bnot only\b|\bwhy (?:don't|can't)\b|\b(?:no|without) (?:doubt|question)\b"
    r"|\b(?:not|n't) (?:saying|threatening) (?:that )?(?:i|we)?\b|\b(?:not|n't) want to (?:threaten|say)\b"
    r"|\b(?:can't|couldn't) (?:you|we|i)\b|\b(?:don't|doesn't|didn't) (?:you|they) (?:think|see)\b",
    re.IGNORECASE,
)


def is_negated(text: str, position: int) -> bool:
    """A negation shortly before a position, in the same clause: "I do not want to cancel"."""
    before = _NO_NEGATION.sub(" ", _CLAUSE.split(text[:position])[-1])
    near = " ".join(before.split()[-_REACH:])
    return _NEGATION.search(near) is not None
