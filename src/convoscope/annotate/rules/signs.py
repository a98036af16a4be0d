"""The lexicons and patterns of the rules, and signs: patterns that run only where a word can begin a match.

Hundreds of patterns are looked for in every sentence, and few of them have a chance. What a match must contain is read
from the pattern itself: words, or beginnings of words, of which one has to be there. One look at the words of a text
then gives all patterns that are worth running. What is found is the same as without.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

VERSION = "3"
_FOLDER = Path(__file__).parent
_NAME = re.compile(r"\{([a-z_]+)\}")
_parser: Any = import_module("re._parser")
_WORD = re.compile(r"[\w'-]+")
_PLAIN = re.compile(r"[a-z' -]+")
_LENGTH = 7
"""A beginning of a word is known by so many characters."""
_MANY = 20_000
"""So many words are remembered."""
_SAME = str.maketrans({"İ": "i", "ı": "i", "ſ": "s", "K": "k"})
"""Characters that a pattern takes for others when it ignores case."""
_WEIGHTS = (9.0, 1.0, 0.5, 0.2, 0.08, 0.04, 0.02)
_COMMON_TEXT = (
    "a about all an and any are at be been but can could did do does don't for from get got had has have how i i'd i'll"
    " i'm i've if in is it it's just like me my no not now of on one or our out so some that that's the them then there"
    " they this to up us was we we'll were what when which will with would you you're your"
)
_COMMON = frozenset(_COMMON_TEXT.split())


@cache
def table(name: str) -> dict[str, Any]:
    """One of the data files: topics, risks, actions, words, languages."""
    return tomllib.loads((_FOLDER / "data" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def rules_hash() -> str:
    """`sha256:` over the data files and the programs that read them, by name."""
    whole = hashlib.sha256()
    for path in sorted((*_FOLDER.glob("data/*.toml"), *_FOLDER.glob("*.py"))):
        content = path.read_text(encoding="utf-8").replace("\r\n", "\n")
        whole.update(f"{path.name} {hashlib.sha256(content.encode()).hexdigest()}\n".encode())
    return f"sha256:{whole.hexdigest()}"


def expanded(text: str, **more: str) -> str:
    """A pattern with each `{name}` replaced by its definition in words.toml; definitions may name others."""
    while "{" in text and (whole := _NAME.sub(lambda name: more.get(name[1]) or table("words")[name[1]], text)) != text:
        text = whole
    return text


def pattern(text: str, *, cased: bool = False) -> re.Pattern[str]:
    """A pattern of the data: it matches between words. Sentences have single blanks."""
    return re.compile(rf"(?<![\w'-])(?:{expanded(text)})(?!\w)", 0 if cased else re.IGNORECASE)


def any_of(texts: Iterable[str]) -> re.Pattern[str] | None:
    """One pattern for several; None without any."""
    joined = "|".join(f"(?:{text})" for text in texts)
    return pattern(joined) if joined else None


class Sign:
    """What a pattern finds, by its alternatives: leftmost, and of two at one position the first one."""

    def __init__(self, index: SignIndex, texts: Iterable[str], *, cased: bool) -> None:
        self._index = index
        self._cased = cased
        self._texts = {index.add(text): text for text in texts}
        self._patterns: dict[int, re.Pattern[str]] = {}
        """Compiled when they first have a chance: most never do."""
        self.bits = sum(1 << bit for bit in self._texts)

    def search(self, text: str, start: int = 0) -> re.Match[str] | None:
        """The first match from a position on."""
        chance = self._index.chances(text) & self.bits
        first = None
        while chance:
            lowest = chance & -chance
            chance ^= lowest
            number = lowest.bit_length() - 1
            compiled = self._patterns.get(number)
            if compiled is None:
                compiled = self._patterns[number] = pattern(self._texts[number], cased=self._cased)
            match = compiled.search(text, start)
            if match is not None and (first is None or match.start() < first.start()):
                first = match
        return first

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        """All matches, none of which overlap."""
        position = 0
        while (match := self.search(text, position)) is not None:
            yield match
            position = match.end() if match.end() > match.start() else match.end() + 1

    def removed(self, text: str, replacement: str) -> str:
        """The text with something else in place of each match."""
        parts, position = list[str](), 0
        for match in self.finditer(text):
            parts += (text[position : match.start()], replacement)
            position = match.end()
        return "".join((*parts, text[position:]))


class SignIndex:
    """The patterns of a family, by the words that they need."""

    def __init__(self) -> None:
        self._size = 0
        self._always = (0, 0)
        self._by_word: dict[str, tuple[int, int]] = {}
        self._words: dict[str, tuple[int, int]] = {}
        self.chances = lru_cache(maxsize=4096)(self._chances)

    def sign(self, *texts: str, cased: bool = False) -> Sign:
        """One sign of several patterns. All signs are made before any is looked for."""
        return Sign(self, (part for text in texts for part in alternatives(expanded(text))), cased=cased)

    def add(self, text: str) -> int:
        """The number of a pattern."""
        number, self._size = self._size, self._size + 1
        first, second = (*needed_words(text), None, None)[:2]
        self._always = _either(self._always, ((first is None) << number, (second is None) << number))
        for word in first or ():
            self._by_word[word] = _either(self._by_word.get(word, (0, 0)), (1 << number, 0))
        for word in second or ():
            self._by_word[word] = _either(self._by_word.get(word, (0, 0)), (0, 1 << number))
        return number

    def _chances(self, text: str) -> int:
        """The patterns that may match a text, as bits: whatever they need is there."""
        first, second = self._always
        known = self._words
        for word in _tokens(text):
            bits = known.get(word)
            if bits is None:
                bits = self._bits_of(word)
                if len(known) >= _MANY:
                    known.clear()
                known[word] = bits
            first |= bits[0]
            second |= bits[1]
        return first & second

    def _bits_of(self, word: str) -> tuple[int, int]:
        bits = self._by_word.get(f"{word} ", (0, 0))
        for length in range(1, min(len(word), _LENGTH) + 1):
            bits = _either(bits, self._by_word.get(word[:length], (0, 0)))
        return bits


def _either(bits: tuple[int, int], more: tuple[int, int]) -> tuple[int, int]:
    return bits[0] | more[0], bits[1] | more[1]


@lru_cache(maxsize=4096)
def _tokens(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.translate(_SAME).casefold()))


def alternatives(text: str) -> list[str]:
    """`(?:a|b)|c` is a, b and c: only the outermost level is taken apart."""
    plain = re.sub(r"\\.|\[(?:\\.|[^\]\\])*\]", lambda match: "." * len(match[0]), text)
    depth, begin, parts = 0, 0, list[str]()
    is_one_group = text.startswith("(?:") and text.endswith(")")
    for position, character in enumerate(plain):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            is_one_group = is_one_group and position == len(plain) - 1
            if character == "|":
                parts.append(text[begin:position])
                begin = position + 1
    if is_one_group:
        return alternatives(text[3:-1]) if len(text) > len("(?:)") else [text]
    parts.append(text[begin:])
    return [inner for part in parts for inner in alternatives(part)] if len(parts) > 1 else [text]


def needed_words(text: str) -> list[frozenset[str]]:
    """Words (with a blank at the end) and beginnings of words. Of each set, one is in each match; the rarest two."""
    whole = expanded(text)
    if _PLAIN.fullmatch(whole):  # most are plain words, and need no parser
        *words, last = whole.split(" ")
        sets = [frozenset({f"{word} "}) for word in words if word] + ([frozenset({last[:_LENGTH]})] if last else [])
    else:
        sets = _sets(_parser.parse(whole, re.IGNORECASE).data, "", fresh=True)
    return sorted(sets, key=_cost)[:2]


def _needed(items: list[Any], run: str, *, fresh: bool) -> frozenset[str] | None:
    """The rarest of the sets; None without any."""
    return min(_sets(items, run, fresh=fresh), key=_cost, default=None)


def _sets(items: list[Any], run: str, *, fresh: bool) -> list[frozenset[str]]:
    """`run` is the word that was begun; `fresh` says that a word begins here."""
    choices = list[frozenset[str]]()

    def close(end: str = "") -> None:
        nonlocal run
        if run:
            choices.append(frozenset({run + end if end else run[:_LENGTH]}))
        run = ""

    for operation, value in items:
        name = str(operation)
        if name == "LITERAL":
            character = chr(value).translate(_SAME).casefold()
            if not _WORD.fullmatch(character):
                close(" ")
                fresh = True
            elif fresh or run:
                run, fresh = run + character, False
        elif name in ("AT", "ASSERT", "ASSERT_NOT"):
            continue
        elif name in ("SUBPATTERN", "BRANCH"):
            branches = [value[-1].data] if name == "SUBPATTERN" else [branch.data for branch in value[1]]
            words = [_needed(branch, run, fresh=fresh) for branch in branches]
            if all(words):
                choices.append(frozenset(word for some in words for word in some or ()))
            close()
            fresh = all(_ends_a_word(branch, fresh=False) for branch in branches)
        elif name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            least, _, inner = value
            if least and (inside := _needed(inner.data, run, fresh=fresh)):
                choices.append(inside)
            close()
            fresh = (fresh or least > 0) and _ends_a_word(inner.data, fresh=fresh)
        else:
            close()
            fresh = False
    close()
    return choices


def _ends_a_word(items: list[Any], *, fresh: bool) -> bool:
    """Whether a word begins after this."""
    if not items:
        return fresh
    operation, value = items[-1]
    name = str(operation)
    if name == "LITERAL":
        return not _WORD.fullmatch(chr(value))
    if name == "SUBPATTERN":
        return _ends_a_word(value[-1].data, fresh=False)
    if name == "BRANCH":
        return all(_ends_a_word(branch.data, fresh=False) for branch in value[1])
    return False


def _cost(words: frozenset[str]) -> float:
    """How often one of the words is likely to be there."""
    return sum(1.0 if word.strip() in _COMMON else _WEIGHTS[min(len(word), len(_WEIGHTS) - 1)] for word in words)
