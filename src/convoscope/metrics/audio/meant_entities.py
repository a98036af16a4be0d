"""The facts of a text, in all ways in which a voice may read them, against the words that were heard."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain

from convoscope.audio.phones import phone_errors
from convoscope.audio.word_alignment import tokens_of
from convoscope.text.patterns import lazy_pattern
from convoscope.text.spoken import FactCheck, RecognisedFact, SpokenEntity, entities, normalise
from convoscope.text.spoken.aloud import aloud, readings_of, written
from convoscope.text.spoken.entities import kind_of
from convoscope.text.spoken.recognition import FactChecker, spoken_fact
from convoscope.text.spoken.short_forms import DECIMALS
from convoscope.text.spoken.vocabulary import CURRENCIES, MONTHS, ORDINALS, WEEKDAYS

NUMBER = "number"
_ANOTHER_NAME = 0.5
"""Names whose phones differ by less are taken for one name in two spellings."""
_SCALES = ("celsius", "fahrenheit")
_VALUES = frozenset((*MONTHS, *CURRENCIES.values(), *_SCALES, *WEEKDAYS, "am", "pm"))
"""Words that make another fact of the same figures."""
_LEAST_CODE = 4
"""Figures of a number that is read one by one: a recogniser loses one, or takes 2 for "to"."""
_MONEY = frozenset(CURRENCIES.values())
_DATES = _VALUES.difference(_MONEY, _SCALES) | {"noon", "midnight"}
_FIGURES = lazy_pattern(r"[0-9]+(?:[.,:][0-9]+)*(?:%|'?s\b)?")
_CLOCK = lazy_pattern(r"[0-9]{1,2}:[0-9]{2}")
_CHUNK = lazy_pattern(r"\S+")
_PLAIN = lazy_pattern(
    r"[$€£]?[0-9]+(?:,[0-9]{3})*(?:\.[0-9]+)?(?:%|st|nd|rd|th|[ap]\.?m)?|[0-9]{1,2}:[0-9]{2}(?:[ap]\.?m)?",
    re.IGNORECASE,
)
"""Numbers that have one meaning, however they are read."""
_NUMBER = lazy_pattern(r"[0-9]+(?:\.[0-9]+)?")
_SIGN = frozenset(("minus", "negative"))
_CENTS = lazy_pattern(r"\.[0-9]{2}$")
_ALIKE = [frozenset(letters) for letters in ("bcdegptvz", "ajkh", "mn", "fsx", "iy", "quw")]
"""Letters whose names sound alike."""


def spoken_entities_in(text: str) -> list[SpokenEntity]:
    """The facts of a text, and each number that it has in figures, in its order."""
    named = [*entities(text)]
    for part in written(text):
        inside = [fact for fact in named if part.start < fact.end and fact.start < part.end]
        start, end = (
            min([part.start, *(fact.start for fact in inside)]),
            max([part.end, *(fact.end for fact in inside)]),
        )
        types = [fact.type for fact in inside if fact.type not in (NUMBER, "phone")]
        type = types[0] if part.type == NUMBER and types else part.type
        canonical = " ".join(normalise(readings_of(text[start:end])[0]))
        named = [fact for fact in named if fact not in inside]
        named.append(SpokenEntity(type, text[start:end], start, end, canonical))
    for figures in _FIGURES.finditer(text):
        start, end = figures.span()
        if not any(start < fact.end and fact.start < end for fact in named):
            named.append(SpokenEntity(NUMBER, figures[0], start, end, " ".join(normalise(figures[0]))))
    named = [fact._replace(type="time") if _CLOCK.fullmatch(fact.text) else fact for fact in named]
    return sorted(named, key=lambda fact: fact.start)


def checked_entities(text: str, heard: str) -> list[FactCheck]:
    """The facts of a text, and each number that it has in figures, with whether they were heard."""
    heard = _with_clocks(text, heard)
    named, tokens = spoken_entities_in(text), normalise(aloud(heard))
    spoken = [spoken_fact(fact, *readings_of(fact.text)) for fact in named]
    checks = []
    for fact, verdict in zip(named, FactChecker(aloud(heard)).check_all(text, spoken), strict=True):
        meant = fact.canonical.split()
        moved = _moved_point(meant, tokens) or _other_side(meant, tokens) if verdict.correct else ""
        checks.append(FactCheck(fact, RecognisedFact(correct=False, instead=moved) if moved else verdict))
    return checks


def _with_clocks(text: str, heard: str) -> str:
    """What was heard, with the times of a text as the text has them: recognisers write "nine thirty" as 9.30, too."""
    for clock in {found[0] for found in _CLOCK.finditer(text)}:
        heard = re.sub(rf"(?<![\d.,$€£]){clock.replace(':', '[.]')}(?![\d%€£]|[.,]\d)", clock, heard)
    return heard


def _moved_point(meant: Sequence[str], heard: Sequence[str]) -> str:
    """What was heard of a number with its figures and the point elsewhere: 35 for 3.5, $250 for $2.50.

    "Two fifty", which names no currency, is $2.50.
    """
    for value in meant:
        if value in heard or not value.replace(".", "").isdecimal():
            continue
        for index, other in enumerate(heard):
            unit = heard[index + 1] if index + 1 < len(heard) else ""
            is_price = "." in value and "." not in other and meant[-1] in _MONEY and unit not in _MONEY
            if other.replace(".", "") == value.replace(".", "") and not is_price:
                return f"{other} {unit}" if unit in _MONEY else other
    return ""


def _other_side(meant: Sequence[str], heard: Sequence[str]) -> str:
    """What was heard of an afternoon as a morning, or of one scale of temperature as the other."""
    number = next((one for one in meant if one.isdecimal()), "")
    if meant[-1] in _SCALES:
        others: list[tuple[str, ...]] = [(number, "degrees", scale) for scale in _SCALES if scale != meant[-1]]
    elif len(meant) == 1 and len(number) == 4 and "1300" <= number < "2400":
        hour, minute = int(number[:2]) - 12, number[2:]
        others = [(f"{hour}{minute}", "am"), *([(f"{hour}", "am")] if minute == "00" else ())]
    else:
        return ""
    rows = [(other, heard[start : start + len(other)]) for other in others for start in range(len(heard))]
    return next((" ".join(other) for other, row in rows if tuple(row) == other), "")


def is_heard(fact: str, heard: str) -> bool:
    """Whether a fact is in some words, in any of its readings."""
    heard = _with_clocks(fact, heard)
    checker, tokens = FactChecker(aloud(heard)), normalise(aloud(heard))
    ways = readings_of(fact)
    if _other_side(normalise(ways[0]), tokens):
        return False
    return any(checker.check(way).correct and not _moved_point(normalise(way), tokens) for way in ways)


def in_context(text: str, start: int, end: int) -> str:
    """A span of a text with all that is written together with it: 6pm/5c."""
    before, behind = text[:start].rsplit(" ", maxsplit=1)[-1], text[end:].split(" ", 1)[0]
    return f"{before}{text[start:end]}{behind}"


def doubt_of(type: str, meant: str, heard: str, context: str = "") -> str:
    """Why something else that was heard may still be the fact that was meant; empty where it cannot.

    `context` is the fact with all that is written together with it.
    """
    kind = kind_of(type)
    if kind == "name":
        errors = phone_errors(_small(meant), _small(heard))
        if errors is None:
            return "no pronunciation is known"
        return "sounds alike" if errors.errors < _ANOTHER_NAME * errors.phones else ""
    if type == "email":
        return "an address has many spellings"
    if kind == "code" or (type == NUMBER and len(meant) >= _LEAST_CODE and meant.isdecimal()):
        return "" if _is_another_code(_code(meant), _code(heard)) else "may be the same code"
    # An amount, a date: convicted by figures, not by words that may be anything.
    spoken, readings = normalise(aloud(heard)), [*map(normalise, readings_of(meant))]
    if kind == "amount" and any(is_scaled(reading, spoken) for reading in readings):
        return ""
    if not any(token in _DATES or any(map(str.isdigit, token)) for token in spoken):
        return "no figure was heard"
    is_another = not _VALUES.intersection(spoken) <= {*chain.from_iterable(readings)}
    for reading in readings if not is_another else ():
        # 2020, 26 is 2026 as recognisers write it.
        if _may_be_same(reading, spoken) or (kind == "date" and _may_be_same(spoken, reading)):
            return "may be the same figures"
    return "" if _is_plain(context or meant) else "can be read in several ways"


def _may_be_same(meant: Sequence[str], heard: Sequence[str]) -> bool:
    """The same figures, or some inside are lost: recognisers write $150 for "twelve hundred fifty"."""
    figures, others = figures_of(meant), figures_of(heard)
    if _VALUES.intersection(heard) - _VALUES.intersection(meant):
        return False
    if figures.lstrip("0") == others.lstrip("0"):
        return True
    ends = figures[:1] == others[:1] and figures[-1:] == others[-1:] and len(others) > 1
    rest = iter(figures)
    return ends and all(figure in rest for figure in others)


def is_scaled(meant: Sequence[str], heard: Sequence[str]) -> bool:
    """Ten times as much, a tenth, or without its minus: the same figures, and no word that may be a point or a minus.

    Not so a price with cents: "two fifty" is $2.50 and $250.
    """
    number, other = ([one for one in tokens if _NUMBER.fullmatch(one)] for tokens in (meant, heard))
    if len(number) != 1 or len(other) != 1 or not set(heard).difference(other) <= {*meant, *_MONEY, "percent"}:
        return False
    is_price = not _MONEY.isdisjoint((*meant, *heard)) and any(_CENTS.search(one) for one in (*number, *other))
    first, second = Decimal(number[0]), Decimal(other[0])
    is_same = first.normalize().as_tuple().digits == second.normalize().as_tuple().digits
    has_lost_sign = first == second and not _SIGN.isdisjoint(meant) and _SIGN.isdisjoint(heard)
    return is_same and (first != second or has_lost_sign) and not is_price


def figures_of(tokens: Sequence[str]) -> str:
    """The digits of tokens in a row; 1/2 is a half, and no 12."""
    figures = (str(ORDINALS.get(token, token)) for token in tokens if token not in DECIMALS)
    return "".join(filter(str.isdigit, chain.from_iterable(figures)))


def _is_plain(meant: str) -> bool:
    """Whether each number of a fact is written in a form that is known."""
    known = {index for one in written(meant) for index in range(one.start, one.end)}
    chunks = [one for one in _CHUNK.finditer(meant) if any(map(str.isdigit, one[0]))]
    return all(
        _PLAIN.fullmatch(one[0].strip(",.;:!?()\"'")) or not known.isdisjoint(range(*one.span())) for one in chunks
    )


def _small(text: str) -> list[str]:
    return [token.text for token in tokens_of(text)]


def _code(text: str) -> str:
    return "".join(sign for sign in "".join(normalise(aloud(text))).lower() if sign.isalnum())


def _is_another_code(meant: str, heard: str) -> bool:
    """Sign by sign: a figure for another figure, or a letter for one whose name sounds otherwise."""
    from rapidfuzz.distance import Levenshtein

    if len(meant) != len(heard):
        return False
    differing = [(one, other) for one, other in zip(meant, heard, strict=True) if one != other]
    # 0169 and 1699: the recogniser lost a sign and wrote another twice.
    is_shifted = Levenshtein.distance(meant, heard) < len(differing)
    return (
        bool(differing)
        and not is_shifted
        and all(
            (one.isdigit() and other.isdigit())
            or (one.isalpha() and other.isalpha() and not any({one, other} <= letters for letters in _ALIKE))
            for one, other in differing
        )
    )


def words_between(aligned_words: Sequence[str], start: int, end: int) -> Iterator[int]:
    """The indices of the words of a row with blanks between, by the characters of the row."""
    position = 0
    for index, word in enumerate(aligned_words):
        if position < end and start < position + len(word):
            yield index
        position += len(word) + 1
