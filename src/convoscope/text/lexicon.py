"""Phrases that say something in a language: an objection, thanks, a refusal, a hand-over, a goodbye. They are data.

`lexicons/<code>.toml` is a language. In a phrase, `(a|b)` is a choice, `[a|b]` may be absent, `..` is up to three
words, `^` and `$` are the beginning and the end of a sentence. Texts and phrases are compared without accents,
apostrophes and commas. All phrases of a list become one pattern of RE2, which takes time that is linear in the text,
and is asked only where a text holds one of the words that every phrase needs.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from convoscope.errors import UsageError
from convoscope.text.folding import visible
from convoscope.text.patterns import lazy_pattern

_PIECE = lazy_pattern(r"\.\.|[()\[\]|^$]|[^\s()\[\]|^$.]+|\s+|.")
_DEEPEST = 8


class Word(NamedTuple):
    """A word, in all the ways it is written."""

    spellings: tuple[str, ...]


class Alternatives(NamedTuple):
    """One of several sequences; none of them where it may be absent."""

    sequences: tuple[tuple[Piece, ...], ...]
    may_be_absent: bool


Piece = Word | Alternatives | str
"""A string is one of `..`, `^`, `$`."""


def parsed(phrase: str, spell: Callable[[str], tuple[str, ...]]) -> tuple[Piece, ...]:
    """A phrase as its pieces. `spell` returns the spellings of a word, and raises ValueError for what is not a word."""
    pieces = [piece for piece in _PIECE.findall(phrase) if not piece.isspace()]
    sequences, rest = _sequences(pieces, spell, 0)
    if rest:
        raise ValueError("a bracket is closed that was not opened")
    if len(sequences) > 1:
        raise ValueError("a choice is written in brackets")
    return sequences[0]


def _sequences(
    pieces: Sequence[str], spell: Callable[[str], tuple[str, ...]], depth: int
) -> tuple[tuple[tuple[Piece, ...], ...], Sequence[str]]:
    """Sequences up to the bracket that closes them, and what comes from that bracket on."""
    if depth > _DEEPEST:
        raise ValueError(f"more than {_DEEPEST} brackets are open")
    sequences: list[list[Piece]] = [[]]
    while pieces and pieces[0] not in ")]":
        piece, pieces = pieces[0], pieces[1:]
        if piece == "|":
            sequences.append([])
        elif piece in "([":
            inner, pieces = _sequences(pieces, spell, depth + 1)
            if not pieces or pieces[0] != {"(": ")", "[": "]"}[piece]:
                raise ValueError("a bracket is not closed")
            pieces = pieces[1:]
            sequences[-1].append(Alternatives(inner, piece == "["))
        else:
            sequences[-1].append(piece if piece in ("..", "^", "$") else Word(spell(piece)))
    if not all(sequences):
        raise ValueError("a choice is empty; what may be absent is written [so]")
    return tuple(map(tuple, sequences)), pieces


_SIGNS: Mapping[bool, Mapping[str, str]] = {
    True: {"..": r"(?: [^ .?]+){0,3}", "^": r"(?:^| [.?])", "$": r"(?: *$| [.?])"},
    False: {"..": r"[^.?]{0,8}", "^": r"(?:^|[.?])", "$": r"(?:$|[.?])"},
}


def pattern(phrase: Sequence[Piece], has_blanks: bool) -> str:
    """A phrase as a pattern of folded text. Each word brings the blank before it; the last is followed by one."""
    whole = "".join(_pattern(piece, has_blanks) for piece in phrase)
    return f"{whole}(?: |$)" if has_blanks and phrase[-1] != "$" else whole


def _pattern(piece: Piece, has_blanks: bool) -> str:
    if isinstance(piece, str):
        return _SIGNS[has_blanks][piece]
    if isinstance(piece, Word):
        written = "|".join(map(re.escape, piece.spellings))
        return f"{' ' if has_blanks else ''}{written if len(piece.spellings) == 1 else f'(?:{written})'}"
    choices = "|".join("".join(_pattern(one, has_blanks) for one in sequence) for sequence in piece.sequences)
    return f"(?:{choices}){'?' if piece.may_be_absent else ''}"


def anchors(phrase: Sequence[Piece], common: Collection[str]) -> frozenset[str]:
    """Words one of which is in each text that a phrase fits, as few and as rare as can be; none where all may miss."""
    sets: list[frozenset[str]] = []
    for piece in phrase:
        if isinstance(piece, Word):
            # A spelling of two words is found by its first.
            sets.append(frozenset(spelling.split()[0] for spelling in piece.spellings))
        elif isinstance(piece, Alternatives) and not piece.may_be_absent:
            inner = [anchors(sequence, common) for sequence in piece.sequences]
            sets.append(frozenset().union(*inner) if all(inner) else frozenset())
    # How often one of some words is met, roughly: of common words, the short ones are met most.
    frequency = {words: sum(1 / len(word) ** 2 for word in words if word in common) for words in sets if words}
    return min(frequency, key=lambda words: (frequency[words], len(words)), default=frozenset())


FOLDER = Path(__file__).with_name("lexicons")
PURPOSES = ("objection", "thanks", "refusal", "hand_over", "goodbye", "request", "agreement", "murmur")
"""The lists that each file has."""
AFTER_STATEMENT = "objection_to_a_statement"
"""Objections only where the agent did not ask: after a question, these words are its answer."""
AGENT_REQUEST = "agent_request"
"""How an agent asks for something without a question mark; a language may leave it out."""
PERSON_REQUEST = "person_request"
"""How a user asks for a person instead of the agent; a language may leave it out."""
_LISTS = (*PURPOSES, AFTER_STATEMENT, AGENT_REQUEST, PERSON_REQUEST)
LONGEST_TEXT = 4_000
"""Characters of a text that are looked at: its beginning and its end."""
_LONGEST_PHRASE = 2_000
_MOST_PHRASES = 500
_CODE = lazy_pattern(r"[a-z]{2,3}")
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
_ACCENTS = lazy_pattern("[\u0300-\u036f]")
_PICTURES = lazy_pattern("[\u2600-\u27bf\ufe0f\u200d\U0001f000-\U0001faff]+")
"""Emojis: a sentence ends before them."""


def folded_phrases(text: str) -> str:
    """Lower case without accents and apostrophes; one blank between words; a sentence ends with `.` or `?`."""
    if len(text) > LONGEST_TEXT:
        text = f"{text[: LONGEST_TEXT // 2]} . {text[-LONGEST_TEXT // 2 :]}"
    if text.isascii():
        # The same without a dictionary that is asked for every character.
        plain = text.encode().translate(_ASCII, _ASCII_APOSTROPHES)
        return f" {' '.join(plain.replace(b'.', b' . ').replace(b'?', b' ? ').decode().split())} "
    text = _PICTURES.sub(" . ", text)
    parted = unicodedata.normalize("NFD", visible(text).casefold())
    text = unicodedata.normalize("NFC", _ACCENTS.sub("", parted)).encode("utf-8", "replace").decode()
    return f" {' '.join(text.lower().translate(_FOLDED).split())} "


_QUOTED = lazy_pattern(r'(?<!\w)"[^"]{1,300}"(?!\w)|“[^”]{1,300}”|„[^“”]{1,300}[“”]|«[^»]{1,300}»|「[^」]{1,300}」')


def without_quotes(text: str) -> str:
    """A text without what it quotes, unless that is all it says."""
    if '"' not in text and (text.isascii() or not _QUOTED.search(text)):
        return text
    rest = _QUOTED.sub(" ", text)
    return rest if any(map(str.isalpha, rest)) else text


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
    spellings: Mapping[str, tuple[str, ...]]
    """How words are written in a hurry, by the word: in English, "u" is "you"."""

    def may_hold(self, purposes: tuple[str, ...], texts: Iterable[str]) -> bool:
        """Whether one of some folded texts may have a phrase of one of some lists; false where none has.

        One look at all that is said costs less than one at each message.
        """
        phrases = _any_phrase(self, purposes)
        lines = "\n".join(texts)
        lines = lines if self.has_blanks else lines.replace(" ", "")
        return phrases is not None and phrases.search(lines.encode()) is not None

    def find(self, purpose: str, text: str) -> str:
        """The first phrase of a list in a text, as `folded_phrases` gives it; nothing where it has none.

        A phrase in a sentence that holds an exception of the list does not count.
        """
        known = _list(self, purpose)
        if known.anchors and known.anchors.isdisjoint(text.split()):
            return ""
        if not self.has_blanks:
            text = text.replace(" ", "")
        match = known.pattern.search(text) if known.pattern is not None else None
        if match is None:
            return ""
        if known.exceptions is None or not known.exceptions.search(text):
            return str(match[0]).strip(" .?")
        for sentence in SENTENCE.findall(text):
            match = known.pattern.search(sentence)
            if match is not None and not known.exceptions.search(sentence):
                return str(match[0]).strip(" .?")
        return ""

    def without(self, purpose: str, text: str) -> str:
        """A short folded text without the phrases of a list."""
        phrases = _list(self, purpose).pattern
        text = text if self.has_blanks else text.replace(" ", "")
        for _ in range(_PASSES if phrases is not None else 0):
            # Two phrases share the blank between them: one is taken away at a time.
            text = str(phrases.sub(" ", text))
        return text


SENTENCE = lazy_pattern(r"[^.?]+[.?]?|[.?]")


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


def word_lists(path: Path) -> dict[str, frozenset[str]]:
    """The lists of words in a TOML file, each a text with blanks between its words; tables inside are taken apart."""
    data = tomllib.loads(path.read_text(encoding="utf-8"))
    tables = [value for value in data.values() if isinstance(value, dict)]
    lists = {name: words for table in (data, *tables) for name, words in table.items() if isinstance(words, str)}
    return {name: frozenset(words.split()) for name, words in lists.items()}


def lexicon_digest() -> str:
    """A hash of all files, for the signatures of metrics that read them."""
    whole = hashlib.sha256()
    for language in lexicon_languages():
        content = (FOLDER / f"{language}.toml").read_text(encoding="utf-8").replace("\r\n", "\n")
        whole.update(f"{language}\0{content}\0".encode())
    return "sha256:" + whole.hexdigest()[:16]


def _read(path: Path) -> Lexicon:
    try:
        fields = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}") from None
    lists: dict[str, tuple[str, ...]] = {}
    exceptions: dict[str, tuple[str, ...]] = {}
    for name in _LISTS:
        part = fields.get(name, None if name in PURPOSES else {"phrases": []})
        if not isinstance(part, dict):
            raise UsageError(f"{path}: [{name}] is missing", hint=f"a language has {', '.join(PURPOSES)}")
        lists[name] = _texts(path, f"{name}.phrases", part.get("phrases"))
        exceptions[name] = _texts(path, f"{name}.except", part.get("except", []))
        _refuse_unknown(path, name, part, ("phrases", "except"))
    _refuse_unknown(path, "", fields, ("name", "blanks", "common", "spellings", *_LISTS))
    if not isinstance(fields.get("name"), str) or not isinstance(fields.get("blanks"), bool):
        raise UsageError(f"{path}: name must be a text and blanks true or false")
    spellings = fields.get("spellings", {})
    if not isinstance(spellings, dict):
        raise UsageError(f"{path}: [spellings] must be a table", hint='a line of it is: you = ["u"]')
    read = Lexicon(
        language=path.stem,
        name=fields["name"],
        has_blanks=fields["blanks"],
        common=frozenset(
            word for text in _texts(path, "common", fields.get("common")) for word in folded_phrases(text).split()
        ),
        phrases=lists,
        exceptions=exceptions,
        spellings={
            folded_phrases(word).strip(): tuple(
                folded_phrases(way).strip() for way in _texts(path, f"spellings.{word}", ways)
            )
            for word, ways in spellings.items()
        },
    )
    # Those that come along are compiled when they are used: to try each phrase here takes a tenth of a small run.
    for name in () if path.is_relative_to(Path(__file__).parents[1]) else _LISTS:
        for field, phrases in ((f"{name}.phrases", lists[name]), (f"{name}.except", exceptions[name])):
            for phrase in phrases:
                try:
                    re.compile(pattern(_parsed_with(phrase, read.spellings), read.has_blanks))
                except (re.error, ValueError) as error:
                    raise UsageError(f"{path}: {field}: {phrase!r}: {error}") from None
    return read


def _refuse_unknown(path: Path, name: str, fields: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for field in fields:
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


class _List(NamedTuple):
    """A list of phrases, ready to be looked for."""

    pattern: Any
    exceptions: Any
    anchors: frozenset[str]
    """One of these is in each text that holds a phrase; none where that is not known."""


def _list(lexicon: Lexicon, purpose: str) -> _List:
    """A compiled list, kept with the lexicon."""
    kept: _List | None = lexicon.__dict__.get(purpose)
    if kept is None:
        phrases = [_parsed_with(phrase, lexicon.spellings) for phrase in lexicon.phrases[purpose]]
        exceptions = [_parsed_with(phrase, lexicon.spellings) for phrase in lexicon.exceptions[purpose]]
        words = [anchors(phrase, lexicon.common) for phrase in phrases] if lexicon.has_blanks else []
        kept = lexicon.__dict__[purpose] = _List(
            _compiled(phrases, lexicon.has_blanks),
            _compiled(exceptions, lexicon.has_blanks),
            frozenset().union(*words) if all(words) else frozenset(),
        )
    return kept


def _any_phrase(lexicon: Lexicon, purposes: tuple[str, ...]) -> Any:
    """Several lists compiled together, for texts that are lines, kept with the lexicon."""
    name = "any " + " ".join(purposes)  # a list by itself is kept under its purpose
    if name not in lexicon.__dict__:
        phrases = [phrase for purpose in purposes for phrase in lexicon.phrases[purpose]]
        parsed_phrases = [_parsed_with(phrase, lexicon.spellings) for phrase in phrases]
        lexicon.__dict__[name] = _compiled(parsed_phrases, lexicon.has_blanks, "(?m)")
    return lexicon.__dict__[name]


def _compiled(phrases: Sequence[Sequence[Piece]], has_blanks: bool, flags: str = "") -> Any:
    if not phrases:
        return None
    import re2

    return re2.compile(flags + "|".join(f"(?:{pattern(phrase, has_blanks)})" for phrase in phrases))


def _parsed_with(phrase: str, spellings: Mapping[str, tuple[str, ...]]) -> tuple[Piece, ...]:
    def spell(piece: str) -> tuple[str, ...]:
        """A word as it is compared, in all the ways it is written."""
        word = folded_phrases(piece).strip()
        if not word or not word[0].isalnum() or piece[0] in _APOSTROPHES or piece[-1] in _APOSTROPHES:
            raise ValueError(f"{piece!r} is no whole word")
        without_keys = folded_phrases(piece.casefold().translate(_SPELLED_OUT)).strip()
        return tuple(dict.fromkeys((word, without_keys, *spellings.get(word, ()))))

    return parsed(phrase, spell)
