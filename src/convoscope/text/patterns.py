r"""Regular expressions that come with the data, tried by an engine that always comes to an end.

Python's own engine tries one way after the other through a text, and there are patterns and texts with
more ways than can ever be tried. RE2 goes through the text once, whatever the pattern. Patterns are
written as Python has them and mean what they mean there: digits, letters and blanks are those of
Unicode. What RE2 does not have (looking ahead or behind, back references, groups that keep what they
took, conditions) is refused, and so is a pattern that takes too much memory or too many steps. `$`
is for the very end, also where the last character is a line break.
"""

from __future__ import annotations

import re
import warnings
from ast import literal_eval
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

LONGEST_TEXT = 10_000
"""Characters of a text that a pattern of the data is tried on."""
LONGEST_PATTERN = 1_000
_MOST_MEMORY = 2**20
_MOST_STEPS = 5 * 10**7
"""Of one search: characters times states of the pattern."""
_MOST_STEPS_OF_ALL = 10**9
"""Of all searches for the matches in one text."""


class _LazyPattern:
    """A pattern of our own; each of its methods is looked up once."""

    def __init__(self, pattern: str, flags: int) -> None:
        self._arguments = pattern, flags

    def __repr__(self) -> str:
        return f"re.compile{self._arguments}"

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        method = self.__dict__[name] = getattr(re.compile(*self._arguments), name)
        return method


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern that is compiled when it is first used: a run uses few of all, and compiling them takes long."""
    return cast(re.Pattern[str], _LazyPattern(pattern, flags))


class BadPattern(ValueError):
    """A pattern that cannot be used; the reason is a code, beside the words."""

    reason = "bad_pattern"


class UnsupportedPattern(BadPattern):
    """A pattern of Python's that the engine cannot try."""

    reason = "pattern_not_supported"


class Untried(ValueError):
    """A text that a pattern cannot be tried on; `code` goes on from the name of the text: `answer_too_long`."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class PatternCheck:
    """A pattern that may be tried. On a text that it cannot be tried on, `Untried` is raised."""

    def __init__(self, text: str, flags: int) -> None:
        self.text, self.flags = text, flags
        self.states = _engine(text, flags, ascii=True).programsize
        self.has_boundaries = any(token in _BOUNDARIES for token in _TOKEN.findall(text))

    def search(self, text: str) -> Any:
        """What is found first, as `re` gives it; None where nothing is."""
        return self._engine(text).search(_plain(text))

    def fullmatch(self, text: str) -> Any:
        return self._engine(text).fullmatch(_plain(text))

    def finditer(self, text: str) -> Iterator[Any]:
        engine = self._engine(text)
        most = _MOST_STEPS_OF_ALL // (self.states * (len(text) + 1))
        for number, match in enumerate(engine.finditer(_plain(text)), 1):
            if number > most:
                raise Untried("too_long", f"{len(text)} characters; the first {most} matches of this pattern are tried")
            yield match

    def _engine(self, text: str) -> Any:
        """RE2 for this text. In ASCII, the short classes of RE2 mean the same as Python's."""
        longest = min(LONGEST_TEXT, _MOST_STEPS // self.states)
        if len(text) > longest:
            raise Untried("too_long", f"{len(text)} characters; this pattern is tried on {longest}")
        if text.isascii():
            return _engine(self.text, self.flags, ascii=True)
        if self.has_boundaries and any(one.isalnum() for one in text if not one.isascii()):
            raise Untried("not_ascii", r"\b and \B are not supported in a text with letters beyond ASCII")
        try:
            return _engine(self.text, self.flags, ascii=False)
        except UnsupportedPattern as error:
            raise Untried("not_ascii", f"not supported in a text beyond ASCII: {error}") from None


@lru_cache(maxsize=128)
def checked(text: str, flags: int = 0) -> PatternCheck:
    """The pattern of a text. Refused with `BadPattern`: what is not a pattern, and what cannot be tried.

    >>> checked(r"(\\d+) items").search("½ or 12 items")[1]
    '12'
    """
    if len(text) > LONGEST_PATTERN:
        raise BadPattern(f"longer than {LONGEST_PATTERN} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pattern of the data that Python finds odd is not ours to repair
            read = re.compile(text, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise BadPattern(str(error) or type(error).__name__) from None
    if read.flags & re.VERBOSE:
        raise UnsupportedPattern("a verbose pattern")
    return PatternCheck(text, flags)


@lru_cache(maxsize=128)
def _engine(text: str, flags: int, ascii: bool) -> Any:
    import re2

    options = re2.Options()
    options.max_mem = _MOST_MEMORY
    options.log_errors = False
    signs = "".join(sign for sign, flag in _FLAGS.items() if flags & flag)
    translated = (f"(?{signs})" if signs else "") + "".join(_translated(token, ascii) for token in _TOKEN.findall(text))
    try:
        return re2.compile(translated, options)
    except re2.error as error:
        (message,) = error.args
        raise UnsupportedPattern(
            message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        ) from None
    except UnicodeEncodeError:
        raise UnsupportedPattern("a lone surrogate") from None


def _plain(text: str) -> str:
    """A text that can be written as UTF-8; halves of characters become question marks."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


# From Python's way of writing to RE2's


def _translated(token: str, ascii: bool) -> str:
    if token in _ANCHORS:
        return _ANCHORS[token]
    if token.startswith("\\"):
        if token[1] in "123456789" and len(token) < 4:
            raise UnsupportedPattern("a back reference")
        return f"[^{_WORD}]" if token == r"\W" and not ascii else f"[{_member(token, ascii)}]"
    if token.startswith("[") and len(token) > 1:
        return _class(token, ascii)
    if token.startswith("(?#"):
        return ""
    return f"{{0,{token[2:]}" if token.startswith("{,") else token


def _class(token: str, ascii: bool) -> str:
    """A class of characters. RE2 has none inside of another, as which "no letter" would have to be written."""
    opening = "[^" if token.startswith("[^") else "["
    members = _TOKEN_OF_CLASS.findall(token[len(opening) : -1])
    others = [one for one in members if ascii or one != r"\W"]
    last = len(others) - 1
    inside = "".join(
        "-" if one == "-" and 0 < index < last else _member(one, ascii) for index, one in enumerate(others)
    )
    if len(others) == len(members):
        return f"{opening}{inside}]"
    if opening == "[":
        return f"(?:[^{_WORD}]|[{inside}])" if others else f"[^{_WORD}]"
    word = _WORD_WITHOUT.get("".join(sorted(set(others))))
    if word is None:
        raise UnsupportedPattern(rf"\W beside others in {token}")
    return f"[{word}]"


def _member(token: str, ascii: bool) -> str:
    """A character, or a class of them that has a short name, as it is between brackets."""
    if token in _BLANKS:
        return _BLANKS[token]
    if token in _SHORT:
        return token if ascii else _SHORT[token]
    if len(token) > 1:
        # An escape means the same character in a pattern as in a string of Python.
        token = literal_eval(f"'{token}'") if token[1].isascii() and token[1].isalnum() else token[1]
    if "\ud800" <= token <= "\udfff":
        raise UnsupportedPattern("a lone surrogate")
    return f"\\x{{{ord(token):x}}}"


_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_ESCAPE = r"\\(?:[0-7]{3}|0[0-7]?|x..|u.{4}|U.{8}|N\{[^}]*\}|.)"
_TOKEN = lazy_pattern(rf"{_ESCAPE}|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\{{,\d*\}}|.", re.DOTALL)
_TOKEN_OF_CLASS = lazy_pattern(rf"{_ESCAPE}|.", re.DOTALL)
_BOUNDARIES = (r"\b", r"\B")
_ANCHORS = {**{index: index for index in (*_BOUNDARIES, r"\A")}, r"\Z": r"\z"}
_WORD = r"\p{L}\p{N}_"
_WORD_WITHOUT = {
    "": _WORD,
    "_": r"\p{L}\p{N}",
    r"\d": r"\p{L}\p{Nl}\p{No}_",
    r"\d_": r"\p{L}\p{Nl}\p{No}",
}
_SHORT = {r"\d": r"\p{Nd}", r"\D": r"\P{Nd}", r"\w": _WORD, r"\W": r"\W"}
_BLANKS = {
    r"\s": r"\t-\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}",
    r"\S": r"\x00-\x08\x0e-\x1b\x21-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}"
    r"\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff}",
}
