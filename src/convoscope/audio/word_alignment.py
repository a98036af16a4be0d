"""Which of the words that were heard belong to which text of a script, by the words alone: times of logs may be off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convoscope.resources.sound import Recognised
from convoscope.text.patterns import lazy_pattern

_TOKEN = lazy_pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_CHARACTER = lazy_pattern(r"[^\W_]")
_TAG = lazy_pattern(r"\[[^\[\]]*\]|<[^<>]*>")
_BY_CHARACTER = frozenset(("ja", "zh", "ko", "yue"))


class Token(NamedTuple):
    """A word of a text in small letters, and where it is."""

    text: str
    start: int
    end: int


class AlignedText(NamedTuple):
    """A text of a script, and what was heard of it."""

    text: str
    """As it was meant; labels in brackets and tags, which no voice says, are blanks."""
    tokens: tuple[Token, ...]
    words: tuple[Recognised, ...]
    """The words that were heard where this text is in the script."""
    ranges: tuple[tuple[int, int], ...]
    """For each token, from and to which of the words it was heard: nothing was heard of it where both are the same."""
    matched: tuple[bool, ...]
    """Which of the tokens were heard as they are."""

    @property
    def heard(self) -> str:
        """The words in a row."""
        return " ".join(word.text for word in self.words)

    @property
    def matched_share(self) -> float:
        """How much of the text was heard as it is: where that is little, it may be other speech that was heard."""
        return sum(self.matched) / len(self.tokens) if self.tokens else 0.0

    @property
    def reached(self) -> int:
        """Where in the text the last token ends that was heard as it is: what is behind it may never have been said."""
        return max((token.end for token, matched in zip(self.tokens, self.matched, strict=True) if matched), default=0)

    def words_at(self, start: int, end: int) -> tuple[Recognised, ...]:
        """The words that were heard for a span of the text."""
        ranges = [
            range_
            for range_, token in zip(self.ranges, self.tokens, strict=True)
            if token.start < end and start < token.end
        ]
        return self.words[min(p[0] for p in ranges) : max(p[1] for p in ranges)] if ranges else ()

    def added_before(self, position: int) -> tuple[Recognised, ...]:
        """The words right before a position of the text that were heard for none of its tokens."""
        ends = [0, *(end for (_, end), token in zip(self.ranges, self.tokens, strict=True) if token.end <= position)]
        starts = [start for (start, _), token in zip(self.ranges, self.tokens, strict=True) if token.end > position]
        return self.words[ends[-1] : starts[0] if starts else len(self.words)]

    def moment(self, start: int, end: int) -> tuple[float, float] | None:
        """When a span of the text was heard; where nothing was, when it would have been."""
        if heard := self.words_at(start, end):
            return heard[0].start, heard[-1].end
        before = self.words_at(0, start)
        behind = self.words_at(end, len(self.text))
        if not before and not behind:
            return None
        from_ = before[-1].end if before else behind[0].start
        return from_, max(from_, behind[0].start if behind else from_)


def tokens_of(text: str, language: str = "en") -> list[Token]:
    """The words of a text; of languages that are written without blanks, its characters."""
    pattern = _CHARACTER if language[:3].lower().rstrip("-_") in _BY_CHARACTER else _TOKEN
    return [Token(found[0].lower().replace("’", "'"), *found.span()) for found in pattern.finditer(text)]


def spoken_part(text: str) -> str:
    """A text whose labels and tags are blanks."""
    return _TAG.sub(lambda found: " " * len(found[0]), text)


class _Heard(NamedTuple):
    """The tokens of the words that were heard, each with the word that it is of."""

    texts: list[str]
    word_of: list[int]


def align(script: Sequence[str], words: Sequence[Recognised], language: str = "en") -> list[AlignedText]:
    """Each text of a script with the words that were heard of it. Every word belongs to one text.

    The whole script is compared with all words, by the fewest changes. Between two texts, the words that are in
    neither go apart where the pause is longest.
    """
    texts = [spoken_part(text) for text in script]
    tokens = [tokens_of(text, language) for text in texts]
    heard = _tokens_of_words(words, language)
    equal = dict(_equal([token.text for each in tokens for token in each], heard.texts))
    bounds, position = [0], 0
    for each in tokens[:-1]:
        position += len(each)
        lowest = max((heard.word_of[equal[one]] + 1 for one in equal if one < position), default=0)
        highest = min((heard.word_of[equal[one]] for one in equal if one >= position), default=len(words))
        bounds.append(max(bounds[-1], _longest_pause(words, lowest, max(lowest, highest))))
    bounds.append(len(words))
    if not texts:
        return []
    return [
        _aligned(text, each, words[start:end], language)
        for text, each, start, end in zip(texts, tokens, bounds, bounds[1:], strict=False)
    ]


def _tokens_of_words(words: Sequence[Recognised], language: str) -> _Heard:
    pairs = [(token.text, index) for index, word in enumerate(words) for token in tokens_of(word.text, language)]
    return _Heard([text for text, _ in pairs], [index for _, index in pairs])


def _equal(texts: Sequence[str], others: Sequence[str]) -> Iterator[tuple[int, int]]:
    """The pairs of equal tokens on the shortest way from the one to the other."""
    from rapidfuzz.distance import Levenshtein

    number = {text: index for index, text in enumerate(dict.fromkeys((*texts, *others)))}
    for step in Levenshtein.opcodes([number[text] for text in texts], [number[text] for text in others]):
        if step.tag == "equal":
            yield from zip(range(step.src_start, step.src_end), range(step.dest_start, step.dest_end), strict=True)


def _longest_pause(words: Sequence[Recognised], lowest: int, highest: int) -> int:
    """The word from which on the next text begins."""

    def pause(index: int) -> float:
        if index in (0, len(words)):
            return 0.0
        return words[index].start - words[index - 1].end

    return max(range(lowest, highest + 1), key=pause)


def _aligned(text: str, tokens: Sequence[Token], words: Sequence[Recognised], language: str) -> AlignedText:
    heard = _tokens_of_words(words, language)
    equal = [*_equal([token.text for token in tokens], heard.texts), (len(tokens), len(heard.texts))]
    ranges: list[tuple[int, int]] = []
    matched: list[bool] = []
    first, heard_first = 0, 0
    for index, heard_index in equal:
        # Between two words that were heard as they are, as many for as many, or all for all: forty two, 42.
        gap, heard_gap = index - first, heard_index - heard_first
        for step in range(gap):
            from_, to = (heard_first, heard_index) if gap != heard_gap else (heard_first + step, heard_first + step + 1)
            ranges.append(_words_of(heard.word_of, from_, to, len(words)))
            matched.append(False)
        if index < len(tokens):
            ranges.append(_words_of(heard.word_of, heard_index, heard_index + 1, len(words)))
            matched.append(True)
        first, heard_first = index + 1, heard_index + 1
    return AlignedText(text, tuple(tokens), tuple(words), tuple(ranges), tuple(matched))


def _words_of(word_of: Sequence[int], start: int, end: int, count: int) -> tuple[int, int]:
    """The words that some tokens are of."""
    if start < end:
        return word_of[start], word_of[end - 1] + 1
    here = word_of[start] if start < len(word_of) else count
    return here, here
