"""Phrases that say something in a language: an objection, thanks, a refusal, a hand-over, a goodbye. They are data.

`lexicons/<code>.toml` is a language. A phrase is written in small letters; `(a|b)` is a choice, `[a|b]` may be absent,
`..` stands for up to three words, `^` and `$` for the beginning and the end of a sentence. Texts and phrases are
compared without accents, apostrophes and commas. All phrases of a list become one pattern of RE2, which takes time
that is linear in the text.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from convoscope.errors import UsageError
from convoscope.text.folding import visible

FOLDER = Path(__file__).with_name("lexicons")
PURPOSES = ("objection", "thanks", "refusal", "hand_over", "goodbye", "request", "agreement", "murmur")
"""The lists that each file has."""
AFTER_STATEMENT = "objection_to_a_statement"
"""Objections only where the agent did not ask: after a question, these words are its answer."""
AGENT_REQUEST = "agent_request"
"""How an agent asks for something without a question mark; a language may leave it out."""
_LISTS = (*PURPOSES, AFTER_STATEMENT, AGENT_REQUEST)
LONGEST_TEXT = 4_000
"""Characters of a text that are looked at: its beginning and its end."""
_LONGEST_PHRASE = 2_000
_MOST_PHRASES = 500
_CODE = re.compile(r"[a-z]{2,3}")
_PASSES = 3

_ENDS = ".!…。！\n;"
_QUESTIONS = "?？؟"
_APOSTROPHES = "'’‘ʼ´`"
_FOLDED = {
    **dict.fromkeys(map(ord, _ENDS), " . "),
    **dict.fromkeys(map(ord, _QUESTIONS), " ? "),
    **dict.fromkeys(map(ord, _APOSTROPHES), None),
    **dict.fromkeys(map(ord, ',:"“”„«»()[]{}*_¿¡–—・、「」\\|<>^$+#~'), " "),
}
_ASCII_APOSTROPHES = b"'`"
_ASCII = bytes(ord((_FOLDED.get(code, chr(code)) or " ").strip() or " ") for code in range(128)).lower() + bytes(128)
_SPELLED_OUT = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue"})
"""As they are typed without their keys; the letter without its dots is understood as well."""
_ACCENTS = re.compile("[\u0300-\u036f]")
_PIECE = re.compile(r"\.\.|[()\[\]|^$]|[^\s()\[\]|^$.]+|\s+|.")


def folded_phrases(text: str) -> str:
    """Small letters without accents and apostrophes; one blank between words; a sentence ends with `.` or `?`."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} . {text[-LONGEST_TEXT // 2 :]}"
    if text.isascii():
        # The same without a dictionary that is asked for every character.
        plain = text.encode().translate(_ASCII, _ASCII_APOSTROPHES)
        return f" {' '.join(plain.replace(b'.', b' . ').replace(b'?', b' ? ').decode().split())} "
    parted = unicodedata.normalize("NFD", visible(text).casefold())
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", parted)).encode("utf-8", "replace").decode()
    return f" {' '.join(text.lower().translate(_FOLDED).split())} "


class Lexicon(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """What is known of one language."""

    language: str
    name: str
    has_blanks: bool
    """Words are separated by blanks."""
    common: frozenset[str]
    """Words that carry no content, and by which the language is known."""
    phrases: Mapping[str, tuple[str, ...]]
    exceptions: Mapping[str, tuple[str, ...]]

    def find(self, purpose: str, text: str) -> str:
        """The first phrase of a list in a text, as `folded_phrases` gives it; nothing where there is none.

        A phrase in a sentence that holds an exception of the list does not count.
        """
        patterns = _patterns(self, purpose)
        if not self.has_blanks:
            text = text.replace(" ", "")
        match = patterns[0].search(text) if patterns[0] is not None else None
        if match is None:
            return ""
        if patterns[1] is None or not patterns[1].search(text):
            return str(match[0]).strip(" .?")
        for sentence in SENTENCE.findall(text):
            match = patterns[0].search(sentence)
            if match is not None and not patterns[1].search(sentence):
                return str(match[0]).strip(" .?")
        return ""

    def without(self, purpose: str, text: str) -> str:
        """A short folded text without the phrases of a list."""
        pattern = _patterns(self, purpose)[0]
        text = text if self.has_blanks else text.replace(" ", "")
        for _ in range(_PASSES if pattern is not None else 0):
            # Two phrases share the blank between them: one is taken away at a time.
            text = str(pattern.sub(" ", text))
        return text


SENTENCE = re.compile(r"[^.?]+[.?]?|[.?]")


def lexicon_languages() -> tuple[str, ...]:
    """The codes of the languages that have a file."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.toml")))


@cache
def lexicon(language: str) -> Lexicon | None:
    """The lexicon of a language; None where there is no file for it."""
    path = FOLDER / f"{language}.toml"
    return _read(path) if _CODE.fullmatch(language) and path.is_file() else None


@cache
def lexicons() -> tuple[Lexicon, ...]:
    """All of them."""
    return tuple(one for language in lexicon_languages() if (one := lexicon(language)) is not None)


def lexicon_digest() -> str:
    """A hash of all files, for the signatures of metrics that read them."""
    whole = hashlib.sha256()
    for language in lexicon_languages():
        content = (FOLDER / f"{language}.toml").read_text(encoding="utf-8").replace("\r\n", "\n")
        whole.update(f"{language}\0{content}\0".encode())
    return "sha256:" + whole.hexdigest()[:16]


def _read(path: Path) -> Lexicon:
    try:
        facts = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    lists: dict[str, tuple[str, ...]] = {}
    exceptions: dict[str, tuple[str, ...]] = {}
    for name in _LISTS:
        part = facts.get(name, None if name in PURPOSES else {"phrases": []})
        if not isinstance(part, dict):
            raise UsageError(f"{path}: [{name}] is missing", hint=f"a language has {', '.join(PURPOSES)}")
        lists[name] = _texts(path, f"{name}.phrases", part.get("phrases"))
        exceptions[name] = _texts(path, f"{name}.except", part.get("except", []))
        _refuse_unknown(path, name, part, ("phrases", "except"))
    _refuse_unknown(path, "", facts, ("name", "blanks", "common", *_LISTS))
    if not isinstance(facts.get("name"), str) or not isinstance(facts.get("blanks"), bool):
        raise UsageError(f"{path}: name must be a text and blanks true or false")
    read = Lexicon(
        language=path.stem,
        name=facts["name"],
        has_blanks=facts["blanks"],
        common=frozenset(
            word for text in _texts(path, "common", facts.get("common")) for word in folded_phrases(text).split()
        ),
        phrases=lists,
        exceptions=exceptions,
    )
    for name in _LISTS:
        for field, phrases in ((f"{name}.phrases", lists[name]), (f"{name}.except", exceptions[name])):
            for phrase in phrases:
                _checked(path, field, phrase, read.has_blanks)
    return read


def _refuse_unknown(path: Path, name: str, facts: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for field in facts:
        if field not in known:
            whole = f"{name}.{field}" if name else field
            raise UsageError(f"{path}: unknown field {whole}", hint=f"there is {', '.join(known)}")


def _texts(path: Path, field: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one.strip() for one in value):
        raise UsageError(f"{path}: {field} must be a list of texts")
    if len(value) > _MOST_PHRASES or any(len(one) > _LONGEST_PHRASE for one in value):
        limits = f"{_MOST_PHRASES} texts of {_LONGEST_PHRASE} characters"
        raise UsageError(f"{path}: {field} is too long", hint=f"at most {limits}")
    return tuple(value)


def _checked(path: Path, field: str, phrase: str, has_blanks: bool) -> None:
    try:
        re.compile(_pattern(phrase, has_blanks))
    except (re.error, ValueError) as error:
        raise UsageError(f"{path}: {field}: {phrase!r}: {error}") from None


def _patterns(lexicon: Lexicon, purpose: str) -> tuple[Any, Any]:
    """The compiled list and its exceptions, kept with the lexicon."""
    kept: tuple[Any, Any] | None = lexicon.__dict__.get(purpose)
    if kept is None:
        both = (lexicon.phrases[purpose], lexicon.exceptions[purpose])
        kept = lexicon.__dict__[purpose] = tuple(_compiled(phrases, lexicon.has_blanks) for phrases in both)
    return kept


def _compiled(phrases: tuple[str, ...], has_blanks: bool) -> Any:
    if not phrases:
        return None
    import re2

    return re2.compile("|".join(f"(?:{_pattern(phrase, has_blanks)})" for phrase in phrases))


def _pattern(phrase: str, has_blanks: bool) -> str:
    """A phrase as a pattern of folded text. Each word brings the blank before it; the last is followed by one."""
    parts: list[str] = []
    depth = 0
    for piece in _PIECE.findall(phrase):
        if piece.isspace():
            continue
        if piece == "..":
            parts.append(r"(?: [^ .?]+){0,3}" if has_blanks else r"[^.?]{0,8}")
        elif piece in "([":
            parts.append("(?:")
            depth += 1
        elif piece in ")]":
            depth -= 1
            parts.append(")" if piece == ")" else ")?")
        elif piece == "|":
            parts.append("|")
        elif piece == "^":
            parts.append(r"(?:^| [.?])" if has_blanks else r"(?:^|[.?])")
        elif piece == "$":
            parts.append(r"(?: *$| [.?])" if has_blanks else r"(?:$|[.?])")
        else:
            word = folded_phrases(piece).strip()
            if not word or not word[0].isalnum() or piece[0] in _APOSTROPHES or piece[-1] in _APOSTROPHES:
                raise ValueError(f"{piece!r} is no whole word")
            spelled = folded_phrases(piece.casefold().translate(_SPELLED_OUT)).strip()
            written = re.escape(word) if spelled == word else f"(?:{re.escape(word)}|{re.escape(spelled)})"
            parts.append(f" {written}" if has_blanks else written)
    if depth:
        raise ValueError("a bracket is not closed")
    if any(empty in "".join(parts) for empty in ("(?:|", "||", "|)", "(?:)")):
        raise ValueError("a choice is empty; what may be absent is written [so]")
    return f"{''.join(parts)}(?: |$)" if has_blanks and not phrase.endswith("$") else "".join(parts)
