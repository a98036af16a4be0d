"""What was intended, spoken and heard: texts side by side, with the words marked in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal
from unicodedata import category, normalize

import msgspec
from rapidfuzz.distance import Levenshtein

from convoscope.conversation import Text, Utterance
from convoscope.text.patterns import lazy_pattern

MAX_WORDS = 5_000
"""Longer texts are shown without marks."""

_SIGNS = "%#@&"
_IN_NUMBERS = ".:,/"
_BEFORE_NUMBERS = ".,"

Op = Literal["=", "+", "-"]

# Scripts that write no blanks between words are compared character by character.
_DENSE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_COUNT = r"A-Za-z0-9%#@&$+<=>^`|~"
_ASCII_WORD = lazy_pattern(rf"\S+\s*(?:[^\s{_COUNT}]++(?:\s+|\Z))*")
"""The same for the many texts of ASCII alone: a word, its blanks, and what follows without a character that counts."""
_SIGN_ALONE = lazy_pattern(r"(?:\A|\s)-[.,]")
"""A minus that counts, though no character of its word needs to."""
_WORD = lazy_pattern(rf"[{_DENSE}]\s*|[^\s{_DENSE}]+\s*|\s+")


class DiffPiece(msgspec.Struct, frozen=True, array_like=True):
    """A piece of text: as in the text before (=), only here (+), or only in the text before (-)."""

    op: Op
    text: str


class TextVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of an utterance's texts. Equal texts are one version with several kinds."""

    kinds: tuple[str, ...]
    pieces: tuple[DiffPiece, ...]
    sources: tuple[str, ...] = ()
    confidence: float | None = None
    language: str = ""

    @property
    def is_all(self) -> bool:
        """It is the only text and nothing else is known of it, as in a text chat: it needs no label."""
        return len(self.kinds) == 1 and self.kinds != ("heard",) and self.confidence is None

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if piece.op != "-")


def readings(utterance: Utterance) -> tuple[TextVersion, ...]:
    """What was intended, spoken, heard: each compared with the one before it, equal texts once."""
    given = [("intended", utterance.intended), ("spoken", utterance.spoken), ("heard", utterance.heard)]
    versions: list[TextVersion] = []
    before: Text | None = None
    for kind, text in given:
        if text is None:
            continue
        if before is not None and before.text == text.text and before.confidence is None and text.confidence is None:
            last = versions[-1]
            sources = tuple(dict.fromkeys(filter(None, (*last.sources, text.source))))
            versions[-1] = msgspec.structs.replace(last, kinds=(*last.kinds, kind), sources=sources)
        else:
            pieces = None if before is None else difference(before.text, text.text)
            versions.append(
                TextVersion(
                    kinds=(kind,),
                    pieces=pieces or (DiffPiece("=", text.text),),
                    sources=(text.source,) if text.source else (),
                    confidence=text.confidence,
                    language=text.language,
                )
            )
        before = text
    return tuple(versions)


def difference(before: str, after: str) -> tuple[DiffPiece, ...] | None:
    """`after`, marked with what it has beyond `before` and what it lacks; None where they are too long to compare.

    Case and punctuation do not count.
    """
    if before == after:
        return (DiffPiece("=", after),) if after else ()
    old, new = _words(before), _words(after)
    if len(old) > MAX_WORDS or len(new) > MAX_WORDS:
        return None
    old_keys, new_keys = _keys(old), _keys(new)
    pieces: list[DiffPiece] = []
    gone = came = slice(0, 0)

    def add_change() -> None:
        """What is gone, then what came for it. Text without a word, such as a dash, is neither missed nor added."""
        if any(old_keys[gone]):
            _add(pieces, "-", old[gone])
        _add(pieces, "+" if any(new_keys[came]) else "=", new[came])

    for change in Levenshtein.opcodes(old_keys, new_keys):
        if change.tag == "equal":
            add_change()
            _add(pieces, "=", new[change.dest_start : change.dest_end])
            gone, came = slice(change.src_end, change.src_end), slice(change.dest_end, change.dest_end)
        else:
            gone, came = slice(gone.start, change.src_end), slice(came.start, change.dest_end)
    add_change()
    return tuple(pieces)


def _words(text: str) -> list[str]:
    """The text cut into words, each with what follows it up to the next."""
    if text.isascii() and text[:1].isalnum() and not _SIGN_ALONE.search(text):
        return _ASCII_WORD.findall(text)
    words: list[str] = []
    for part in _WORD.findall(text):
        if words and (category(part[0])[0] == "M" or not _key(part)):
            words[-1] += part
        else:
            words.append(part)
    if len(words) > 1 and not _key(words[0]):
        words[:2] = [words[0] + words[1]]
    return words


def _keys(words: Sequence[str]) -> list[str]:
    return [_short_key(word) if len(word) <= _SHORT else _find_key(word) for word in words]


def _key(word: str) -> str:
    """What of a word counts: letters, digits and signs, in lower case, and what makes a number another number."""
    return _short_key(word) if len(word) <= _SHORT else _find_key(word)


@lru_cache(8192)
def _short_key(word: str) -> str:
    """Most words of a run come again and again."""
    return _find_key(word)


_SHORT = 40


def _find_key(word: str) -> str:
    composed = normalize("NFC", word).casefold().replace("\u2212", "-")
    if composed.isalnum():
        return composed
    return "".join(character for index, character in enumerate(composed) if _counts(composed, index))


def _counts(word: str, index: int) -> bool:
    character, before, after = word[index], word[index - 1 : index], word[index + 1 : index + 2]
    if character in _IN_NUMBERS and before.isdigit() and after.isdigit():
        return True
    if character == "-" and (index == 0 or before.isspace()) and after:
        return after.isdigit() or after in _BEFORE_NUMBERS or category(after) == "Sc"
    return character in _SIGNS or category(character)[0] in "LNMS"


def _add(pieces: list[DiffPiece], op: Op, words: Sequence[str]) -> None:
    text = "".join(words)
    if not text:
        return
    last = pieces[-1] if pieces else None
    if last is not None and last.op == op:
        pieces[-1] = DiffPiece(op, last.text + text)
        return
    # What is gone had blanks around it; what is there keeps its own, so that = and + are exactly the text.
    if last is not None and not last.text[-1].isspace() and not text[0].isspace():
        if op == "-":
            text = f" {text}"
        elif last.op == "-":
            pieces[-1] = DiffPiece("-", f"{last.text} ")
    pieces.append(DiffPiece(op, text))
