"""Words and sentences of a text, and two texts compared: equal, contained, words shared. None is "not applicable"."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, TypeVar

import msgspec

from convoscope.conversation.lazy import remembered
from convoscope.text.folding import comparable, composed, fold
from convoscope.text.patterns import PatternCheck, lazy_pattern

# Each looks at a run of characters from its beginning alone: from every position in it, a long one would take hours.
_WORD = lazy_pattern(r"(?<!\S)\S*?[^\W_]")
_LETTERS_OF_A_WORD = 2
"""In such a writing, so many letters count as a word where a text must have some length."""
_SENTENCE_END = lazy_pattern(r"(?<![.!?…])[.!?…]++(?:\s+|$)|[。！？\n]+")


def count_words(text: str) -> int:
    """Words are between blanks and hold a letter or a digit."""
    if text.isascii():
        # Without its signs, a run between blanks that holds neither letter nor digit is gone.
        return len(text.encode().translate(_AS_BLANKS, _ASCII_SIGNS).split())
    return len(_WORD.findall(text))


def is_without_blanks(text: str) -> bool:
    """Whether most letters of a text are of a writing in which no blank parts one word from the next."""
    return not text.isascii() and 2 * len(_BY_CHARACTER.findall(text)) > sum(map(str.isalpha, text))


def tokens(text: str) -> list[str]:
    """Runs of letters, digits and underscores, in lower case; vowel signs and accents belong to their letter."""
    if text.isascii():
        return text.encode().translate(_SMALL_LETTERS).decode().split()
    composed = unicodedata.normalize("NFC", text.lower())
    is_word = [one.isalnum() or one == "_" or _is_mark(one) for one in composed]
    return "".join(one if kept else " " for one, kept in zip(composed, is_word, strict=True)).split()


def sentences(text: str) -> list[str]:
    """The text cut after . ! ? before a blank, and at line ends."""
    if not text.isascii():
        parts = _SENTENCE_END.split(text)
    elif "\n" in text:
        parts = [part for line in text.split("\n") for part in _sentences_of_line(line)]
    else:
        parts = _sentences_of_line(text)
    return [sentence for part in parts if (sentence := part.strip())]


def _sentences_of_line(line: str) -> list[str]:
    """The same for ASCII, without a pattern that is tried at every character."""
    marked = line.encode().translate(_MARKS)
    parts = []
    start = 0
    while (end := marked.find(b". ", start)) >= 0:
        parts.append(line[start:end].rstrip(".!?"))
        start = end + 2
    parts.append(line[start:].rstrip(".!?"))
    return parts


class Sentence(msgspec.Struct, frozen=True, gc=False):
    """A sentence, and what it has in common with all that say the same."""

    normalised_words: str
    text: str


def long_sentences(text: str, least: int) -> list[Sentence]:
    """The sentences of a text that have so many words or more."""
    if not text.isascii() or "\n" in text:
        return [
            Sentence(normalised_words(sentence), sentence)
            for sentence in sentences(text)
            if count_words(sentence) >= least
            or (is_without_blanks(sentence) and sum(map(str.isalpha, sentence)) >= least * _LETTERS_OF_A_WORD)
        ]
    # The same without a text for each step: what all of the text needs is done once.
    encoded = text.encode()
    marked, small = encoded.translate(_MARKS), encoded.translate(_SMALL_LETTERS).decode()
    signs = len(encoded.translate(None, _LETTERS_AND_BLANKS))
    long = []
    start = 0
    while start < len(marked):
        end = marked.find(b". ", start)
        end = len(marked) if end < 0 else end
        plain = small[start:end].split()
        # A sign parts a word into tokens, or is a token: there are no fewer words than tokens without signs.
        if len(plain) - signs >= least or (
            len(plain) >= least and len(marked[start:end].translate(None, _ASCII_SIGNS).split()) >= least
        ):
            long.append(Sentence(" ".join(plain), text[start:end].rstrip(".!?").strip()))
        start = end + 2
    return long


def normalised_words(text: str) -> str:
    """Lower case, words only, one blank between: texts that differ in punctuation become equal."""
    return " ".join(tokens(text if text.isascii() else text.casefold()))


_ASCII = [chr(code) for code in range(128)]
_AS_BLANKS = bytes(32 if one.isspace() else ord(one) for one in _ASCII) + bytes(128)
_ASCII_SIGNS = bytes(ord(one) for one in _ASCII if not one.isalnum() and not one.isspace())
_LETTERS_AND_BLANKS = bytes(ord(one) for one in _ASCII if one.isalnum() or one.isspace())
_MARKS = bytes(32 if one.isspace() else ord("." if one in "!?" else one) for one in _ASCII) + bytes(128)


_Word = TypeVar("_Word", str, bytes)


class Overlap(msgspec.Struct, frozen=True, gc=False):
    """How many words a text shares with another, and how many each has; a word counts as often as both have it."""

    shared: int
    given: int
    wanted: int

    @property
    def precision(self) -> float | None:
        """shared ÷ words of the answer; None where it has none."""
        return self.shared / self.given if self.given else None

    @property
    def recall(self) -> float:
        """shared ÷ words of the truth."""
        return self.shared / self.wanted

    @property
    def f1(self) -> float:
        """2 · shared ÷ (words of the answer + words of the truth), which is 2PR ÷ (P + R)."""
        return 2 * self.shared / (self.given + self.wanted)


def exact_match_of(
    answer: str, truth: str, *, strip: bool = True, collapse: bool = False, case_sensitive: bool = True
) -> float | None:
    """1 if both texts are equal, else 0. None where the truth is blank.

    How an accented letter is composed never counts. `strip` cuts off blanks at both ends, `collapse`
    takes every run of blanks for one, and without `case_sensitive` STRASSE equals straße.

    >>> exact_match_of(" Paris\\n", "Paris"), exact_match_of("paris", "Paris")
    (1.0, 0.0)
    """
    if not truth or truth.isspace():
        return None
    if not (answer.isascii() and truth.isascii()):
        answer, truth = composed(answer), composed(truth)
    if strip:
        answer, truth = answer.strip(), truth.strip()
    if collapse:
        answer, truth = _BLANKS.sub(" ", answer), _BLANKS.sub(" ", truth)
    if not case_sensitive:
        answer, truth = fold(answer, "NFC"), fold(truth, "NFC")
    return 1.0 if answer == truth else 0.0


def accuracy_of(answer: str, truth: str, *, pattern: re.Pattern[str] | PatternCheck | None = None) -> float | None:
    """1 if the truth is in the answer as whole words, else the share of its words that are. None for a blank truth.

    Both are compared after NFKC, in lower case, with single blanks and without punctuation at the
    edges; a text that equals the truth contains it. Words of the truth count as often as it has
    them. With `pattern`, only what it finds first is the answer: its first group that took part, or all
    of it; where it finds nothing, there is no answer and the value is 0.

    >>> accuracy_of("You can do that under Settings > Billing.", "settings > billing")
    1.0
    >>> accuracy_of("Under Billing.", "Settings > Billing")
    0.5
    """
    if pattern is not None:
        match = pattern.search(answer)
        answer = "" if match is None else candidate(match)
    return Comparison(answer, truth).accuracy()


Tokenize = Literal["auto", "words", "characters"] | Callable[[str], Sequence[str]]
"""How a text is cut into what is counted: into words, and in writings without blanks into characters (auto); into
words alone; into characters without blanks; or by a function of your own."""


TOKENIZERS = ("auto", "words", "characters")


def is_tokenizer(tokenize: object) -> bool:
    """Whether something says how a text is cut. True and False do not."""
    return callable(tokenize) or tokenize in TOKENIZERS


def overlap_of(answer: str, truth: str, *, case_sensitive: bool = False, tokenize: Tokenize = "auto") -> Overlap | None:
    """The words that answer and truth share, repeats counted. None where the truth has no word.

    >>> overlap_of("the the cat", "the cat sat")
    Overlap(shared=2, given=3, wanted=3)
    """
    if not case_sensitive and tokenize == "auto":
        return Comparison(answer, truth).overlap
    if not is_tokenizer(tokenize):
        raise ValueError(f"tokenize is one of {', '.join(TOKENIZERS)} or a function, not {tokenize!r}")
    if not case_sensitive and callable(tokenize):
        answer, truth = fold(answer, "NFC"), fold(truth, "NFC")
    if callable(tokenize):
        return _overlap([str(token) for token in tokenize(answer)], [str(token) for token in tokenize(truth)])
    cut = {"auto": words_or_characters, "words": words, "characters": _characters}[tokenize]
    return _overlap(cut(answer, case_sensitive=case_sensitive), cut(truth, case_sensitive=case_sensitive))


def f1_of(answer: str, truth: str, *, case_sensitive: bool = False, tokenize: Tokenize = "auto") -> float | None:
    """2PR ÷ (P + R) of the words that answer and truth share: P of the answer's words, R of the truth's.

    In writings that set no blanks between words, each character is a word.

    >>> f1_of("well I think it is Paris", "Paris") == 2 / 7
    True
    >>> f1_of("東京です", "東京") == 2 / 3
    True
    """
    overlap = overlap_of(answer, truth, case_sensitive=case_sensitive, tokenize=tokenize)
    return None if overlap is None else overlap.f1


class Comparison:
    """An answer and its truth, in the forms that scorers compare: each is made once for all of them."""

    def __init__(self, answer: str, truth: str) -> None:
        self.answer = answer
        self.truth = truth

    @remembered
    def overlap(self) -> Overlap | None:
        """The words that both share."""
        if self.is_plain:
            given, wanted = self.answer.encode(), self.truth.encode()
            return _overlap(given.translate(_SMALL_LETTERS).split(), wanted.translate(_SMALL_LETTERS).split())
        return _overlap(words_or_characters(self.answer), words_or_characters(self.truth))

    @remembered
    def is_plain(self) -> bool:
        """Both are ASCII without digits and `_`, so that their words are their runs of letters, whatever is around."""
        both = self.answer + self.truth
        return both.isascii() and not both.encode().translate(None, _NOT_OF_NAMES)

    @remembered
    def folded(self) -> tuple[str, str]:
        """Answer and truth, both as `comparable` gives them."""
        return comparable(self.answer), comparable(self.truth)

    @property
    def lacks_a_word(self) -> bool:
        """The truth has a word that the answer does not have as often: for certain, it is nowhere in the answer."""
        return self.is_plain and (overlap := self.overlap) is not None and overlap.shared < overlap.wanted

    def accuracy(self) -> float | None:
        """See `accuracy_of`."""
        if self.is_plain and (overlap := self.overlap) is not None:
            return overlap.recall  # which is 1 where the truth is in the answer
        given, wanted = self.folded
        if not wanted:
            return None
        if occurs(wanted, given):
            return 1.0
        both = self.answer + self.truth
        alike = both.isascii() and "_" not in both  # folding takes away nothing that is part of a word
        overlap = self.overlap if alike else _overlap(words(given), words(wanted))
        return overlap.recall if overlap else 0.0


def _overlap(given: Sequence[_Word], wanted: Sequence[_Word]) -> Overlap | None:
    if not wanted:
        return None
    each = set(wanted)
    if len(each) == len(wanted):
        return Overlap(len(each.intersection(given)), len(given), len(wanted))
    left: dict[_Word, int] = {}
    for word in wanted:
        left[word] = left.get(word, 0) + 1
    shared = 0
    for word in given:
        if left.get(word):
            left[word] -= 1
            shared += 1
    return Overlap(shared, len(given), len(wanted))


def candidate(match: re.Match[str]) -> str:
    """What a pattern found: its first group that took part, or all of it where it has no group."""
    return next((group for group in match.groups() if group is not None), "") if match.re.groups else match[0]


# Words


def words(text: str, *, case_sensitive: bool = False) -> list[str]:
    """Runs of letters, digits and `_`, in lower case; accents and vowel signs belong to their letter.

    A number is one word, with its sign and its decimals: -5, 3.14; commas between its thousands are
    left out, so that 1,000 is 1000.
    """
    if not text.isascii():
        alike = composed(text) if case_sensitive else fold(text, "NFC")
        chunks = alike.translate(_WORD_CHARACTERS).split()
    else:
        plain = text.encode() if case_sensitive else text.lower().encode()
        if not plain.translate(None, _NO_DIGITS):
            return plain.translate(_LETTERS).decode().split()
        chunks = plain.translate(_LETTERS_AND_SIGNS).decode().rstrip("-., ").split()
    if "".join(chunks).isalnum():
        return chunks
    result: list[str] = []
    for chunk in chunks:
        if chunk.isalnum() or (chunk := chunk.rstrip("-.,")).isalnum():
            result.append(chunk)
        elif chunk:
            parts = [part for part in _NOT_OF_A_NUMBER.split(chunk) if part]
            result += [part.replace(",", "") if "," in part and _THOUSANDS.fullmatch(part) else part for part in parts]
    return result


def words_or_characters(text: str, *, case_sensitive: bool = False) -> list[str]:
    """The words of a text; where a writing sets no blanks between words, its characters. Korean sets blanks."""
    parts = words(text, case_sensitive=case_sensitive)
    if text.isascii() or _BY_CHARACTER.search(text) is None:
        return parts
    return [token for part in parts for token in _apart(part)]


def _apart(word: str) -> list[str]:
    """A word cut before and after each character of a writing without blanks; what is between stays whole."""
    tokens: list[str] = []
    whole = False
    for character in word:
        if _is_mark(character) and tokens:
            tokens[-1] += character
        elif _BY_CHARACTER.match(character):
            tokens.append(character)
            whole = False
        elif whole:
            tokens[-1] += character
        else:
            tokens.append(character)
            whole = True
    return tokens


def _characters(text: str, *, case_sensitive: bool) -> list[str]:
    """The characters of a text without blanks; vowel signs and accents belong to theirs."""
    characters: list[str] = []
    for character in "".join(words(text, case_sensitive=case_sensitive)):
        if _is_mark(character) and characters:
            characters[-1] += character
        else:
            characters.append(character)
    return characters


def occurs(wanted: str, given: str) -> bool:
    """Whether a folded text is in another as whole words, and its numbers as whole numbers.

    "art" is not in "party", nor "user" in "user_id", nor 3 in 3.14, nor 5 in -5; a `_` that joins nothing,
    as in _Paris_, is no part of a word. Writings that set no blanks between words (Chinese, Japanese, Thai,
    …) and Korean endings are no obstacle: "B" is in "答案是B".
    """
    return wanted == given or (wanted in given and next(positions_of(wanted, given), None) is not None)


def positions_of(wanted: str, given: str) -> Iterator[int]:
    """Where a folded text is in another as whole words."""
    for start in _starts(wanted, given):
        end = start + len(wanted)
        if (start == 0 or _opens(given, start)) and (end == len(given) or _closes(given, end)):
            yield start


def _starts(wanted: str, given: str) -> Iterator[int]:
    """Where a text is in another, in time that grows with both and not with their product.

    A text that overlaps itself by half or more repeats something. Where it was found at such a distance,
    it is found at the same distance again just if what is repeated goes on.
    """
    start, period = given.find(wanted), 0
    while start >= 0:
        yield start
        if period and given.startswith(wanted[-period:], start + len(wanted)):
            start += period
            continue
        following = given.find(wanted, start + 1)
        period = following - start if 0 < following - start <= len(wanted) // 2 else 0
        start = following


def _opens(text: str, start: int) -> bool:
    """A word may begin here: what is before does not belong to it."""
    before, first = text[start - 1], text[start]
    if not first.isalnum():
        return True
    if before.isalnum():
        return is_unspaced(before) or is_unspaced(first)
    if before == "_":
        while start and text[start - 1] == "_":
            start -= 1
        return not text[max(0, start - 1) : start].isalnum()
    if first.isdigit():
        earlier = text[start - 2] if start > 1 else " "
        if before in ".," and earlier.isdigit():
            return False
        return before != "-" or earlier.isalnum()
    return not _is_mark(before) or is_unspaced(before)


def _closes(text: str, end: int) -> bool:
    """A word may end here: what follows does not belong to it."""
    last, after = text[end - 1], text[end]
    if after.isascii():
        if after.isalnum():
            return not last.isalnum() or is_unspaced(last)
        if after == "_":
            while text[end : end + 1] == "_":
                end += 1
            return not (last.isalnum() and text[end : end + 1].isalnum())
        return not (last.isdigit() and after in ".," and text[end + 1 : end + 2].isdigit())
    if _is_mark(after):
        return False
    return not (after.isalnum() and last.isalnum()) or is_unspaced(after) or is_unspaced(last)


def is_unspaced(character: str) -> bool:
    """A character of a writing in which a blank does not part one word from the next."""
    return character > "\u0dff" and _UNSPACED.match(character) is not None


def _is_mark(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character)[0] == "M"


class _WordCharacters(dict[int, int]):
    """What `str.translate` makes of each character: what words and numbers consist of stays, the rest is a blank."""

    def __missing__(self, code: int) -> int:
        character = chr(code)
        self[code] = replacement = code if character.isalnum() or character in "_-.," or _is_mark(character) else 32
        return replacement


_WORD_CHARACTERS = _WordCharacters()
"""One for all texts: what it learns of a character is known for the next."""
_WITHOUT_BLANKS = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = _WITHOUT_BLANKS + r"\u1100-\u11ff\u3130-\u318f\uac00-\ud7af"
"""Thai, Lao, Burmese, Khmer, Kana, Han and Hangul, as a class of a pattern has them."""
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_BY_CHARACTER = lazy_pattern(f"[{_WITHOUT_BLANKS}]")
_BLANKS = lazy_pattern(r"\s+")
_NOT_OF_A_NUMBER = lazy_pattern(r"(?<!\d)[.,]|[.,](?!\d)|(?<=[^-.,])-|-(?!\d)")
_THOUSANDS = lazy_pattern(r"-?\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_NO_DIGITS = bytes(one for one in range(256) if not 48 <= one < 58)
_NOT_OF_NAMES = bytes(one for one in _NO_DIGITS if one != ord("_"))
_LETTERS = bytes(one if chr(one).isalnum() or one == ord("_") else 32 for one in range(128)) + bytes([32] * 128)
_SMALL_LETTERS = bytes(_LETTERS).lower()
_LETTERS_AND_SIGNS = bytes(one if chr(one) in "-.," else _LETTERS[one] for one in range(256))
