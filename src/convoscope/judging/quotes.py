"""Whether a judge's quote is in a text: as a person compares them, whatever the quotation marks, dashes and markup.

Judges write quotes off as people do: with straight quotation marks for typographic ones, without the asterisks of
Markdown, with the label of the line before it, with dots where they leave out a part. What is compared is the words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from convoscope.text.comparison import UNSPACED
from convoscope.text.folding import folded, visible

_MARKS = re.compile(r"[\"'`´“”„‟‘’‚‛«»‹›「」『』〝〞〟′″]|\\+[nrt\"]?|\s|…|\.{3}")
"""Quotation marks of all languages, escapes of JSON, blanks, dots of a gap."""
_MARKUP = str.maketrans("", "", "*_|#~")
"""Marks of Markdown and its tables. A quote may be of them, where they are what is wrong."""
_DASHES = str.maketrans(dict.fromkeys("‐‒–—―−", "-"))
GAP = re.compile(r"[\[(]?(?:…|\.{3,})[\])]?")
_LABEL = re.compile(
    r"""[\s"'“„]*+
    (?:\[chunk\s\d+\]\sfor\s"[^"]{1,300}"\s|for\s"[^"]{1,300}"\s(?=")
      |\[(?:(?:turn|chunk|step|call)\s)?\d+\]\s*+|(?:turn|chunk|step|call)\s\d+:\s*+)?
    (?:(?:agent|assistant|user|caller|[a-z]{2,20}_[a-z_]{2,30}|summary|reference):\s*+
      |agent\scalls\s|call\s\d+:\s|"?(?:the\stool|[\w.:/-]{1,64})"\sreturns\s)?""",
    re.VERBOSE,
)
"""What comes before the words of a line as a judge is shown it: `[turn 2] agent:`, `[chunk 1] for "the fee"`."""
_UNSPACED = re.compile(f"[{UNSPACED}]")
LEAST_WORDS = 4
"""Letters and digits of words that show something, in UTF-8: four in Latin script, two in Chinese. `30` is in much."""
LEAST_QUOTE = 2
"""Characters that a quote needs to show anything."""
_LEAST_PART = 8
"""Letters and digits of each part, in UTF-8, where a quote has a gap: shorter ones make any sentence."""


def plain(text: str) -> str:
    """A text for comparison: as a person sees it, in lower case, without blanks and quotation marks."""
    # As a judge is shown < and >, so that no text ends its fence. Some write that off.
    text = text.replace("\\u003c", "<").replace("\\u003e", ">")
    return _MARKS.sub("", folded(visible(_MARKS.sub(" ", text))).translate(_DASHES))


def letters(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(filter(str.isalnum, text.casefold()))


def without_label(quote: str) -> str:
    """A quote without the label of the line that it is from."""
    label = _LABEL.match(quote)
    return quote[label.end() :] if label is not None else quote


def is_quoted(quote: str, texts: Iterable[str]) -> bool:
    """Whether one of these texts, each as `plain` gives it, has the words of a quote, all of them in their order.

    With its markup, or without any.
    """
    wanted = list(_ways_to_read(quote))
    bare = [parts for parts in map(_without_markup, wanted) if parts]
    return any(
        any(_span(parts, text) for parts in wanted) or any(_span(parts, text.translate(_MARKUP)) for parts in bare)
        for text in texts
    )


def found_quote(quote: str, text: str) -> str:
    """The words of a text that a quote means, as the text has them; empty where they are not in it."""
    return next((text[first:end] for first, end in _occurrences(quote, text)), "")


def found_words(quote: str, text: str) -> str:
    """The same of words that show something: whole words, and of `LEAST_WORDS`, unless they are all of the text."""
    wanted = letters(without_label(quote))
    if len(wanted.encode()) < LEAST_WORDS and wanted != letters(text):
        return ""
    whole = (
        text[first:end]
        for first, end in _occurrences(quote, text)
        if not (_is_within_word(text, first) or _is_within_word(text, end))
    )
    return next(whole, "")


def _is_within_word(text: str, at: int) -> bool:
    """Whether a word goes on here. A word may begin at any letter of a writing that does not part all words."""
    around = text[max(at - 1, 0) : at + 1]
    return len(around) == 2 and around.isalnum() and _UNSPACED.search(around) is None


def _occurrences(quote: str, text: str) -> Iterator[tuple[int, int]]:
    """From where to where a text has the words of a quote, wherever it has them."""
    dropped = {at for mark in _MARKS.finditer(text) for at in range(*mark.span())}
    plain_forms = {character: plain(character) for character in set(text)}
    kept = [(at, plain_forms[character]) for at, character in enumerate(text) if at not in dropped]
    bare = [(at, characters.translate(_MARKUP)) for at, characters in kept]
    wanted = list(_ways_to_read(quote))
    for pieces, ways in ((kept, wanted), (bare, [parts for parts in map(_without_markup, wanted) if parts])):
        positions = [at for at, characters in pieces for _ in characters]
        whole = "".join(characters for _, characters in pieces)
        for first, end in (span for parts in ways for span in _spans(parts, whole)):
            yield positions[first], positions[end - 1] + 1


def _ways_to_read(quote: str) -> Iterator[list[str]]:
    """The parts of a quote: all of it; without the label of its line; and what is around its gaps."""
    bare = without_label(quote)
    yield from ([whole] for whole in dict.fromkeys(map(plain, (quote, bare))) if _shows_something(whole))
    parts = [part for part in map(plain, GAP.split(bare)) if part]
    if len(parts) > 1 and all(len(letters(part).encode()) >= _LEAST_PART for part in parts):
        yield parts


def _without_markup(parts: list[str]) -> list[str]:
    """The parts of a quote without marks of Markdown; none where nothing is left that shows something."""
    bare = [part.translate(_MARKUP) for part in parts]
    return bare if all(map(_shows_something, bare)) else []


def _shows_something(words: str) -> bool:
    """Two characters do, or one that is a picture: an emoji."""
    return len(words) >= LEAST_QUOTE or (len(words) == 1 and unicodedata.category(words) == "So")


def _spans(parts: list[str], text: str) -> Iterator[tuple[int, int]]:
    """From where to where a text has these parts, in their order, wherever it has them."""
    span = _span(parts, text)
    while span is not None:
        yield span
        span = _span(parts, text, span[0] + 1)


def _span(parts: list[str], text: str, start: int = 0) -> tuple[int, int] | None:
    """From where to where a text has these parts, in their order, from `start` on."""
    first, end = -1, start
    for part in parts:
        at = text.find(part, end)
        if at < 0:
            return None
        first, end = (at if first < 0 else first), at + len(part)
    return first, end
