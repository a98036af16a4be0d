"""What "it" stands for: the thing that a call is about at each moment."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import expanded, table

_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")
_PRONOUN = re.compile(r"\b(?:it|it's|it'll)\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:(?:Doctor|Dr|Mr|Mrs|Ms|Miss|Professor)\.? [A-Z]\w+"
    r"|(?!(?:The|Our|My|Your|And|But|So|Then|With|From|To|If|Is|Was|Hello|Hi|Good|Dear|No|Yes)\b)"
    r"[A-Z][a-z]+ [A-Z][a-z]+)"
)
_VERBAL = re.compile(r"\w+(?:ed|ing|ly|n't|'ll|'ve|'s|'re)$")
_WORDS = 3
_KEPT = 12
"""So many things are remembered at most."""
_FADING = 0.7
_SUBJECT, _OBJECT, _NEEDED, _AGAIN = 1.3, 1.0, 2.0, 0.8
_LIKELY = 4.0
_EARLY = 2
"""A thing among so many words of a sentence is what the sentence is about."""


class _NounRules(NamedTuple):
    determiners: frozenset[str]
    stops: frozenset[str]
    not_things: frozenset[str]
    containers: frozenset[str]


class _Kind(NamedTuple):
    """What a verb is likely to be about, and what it is not."""

    things: frozenset[str]
    not_things: frozenset[str]

    def factor(self, thing: str) -> float:
        head = thing.rsplit(maxsplit=1)[-1].casefold()
        return _LIKELY if head in self.things else 1 / _LIKELY if head in self.not_things else 1.0


@cache
def _rules() -> _NounRules:
    data = table("actions")["nouns"]
    return _NounRules(*(frozenset(data[name]) for name in _NounRules._fields))


@cache
def _kinds() -> dict[str, _Kind]:
    return {
        verb: _Kind(frozenset(kind.get("things", ())), frozenset(kind.get("not_things", ())))
        for kind in table("actions")["nouns"]["kinds"]
        for verb in kind["verbs"]
    }


@cache
def _person() -> re.Pattern[str]:
    not_one = (
        r"(?!(?:office|department|depot|desk|branch|shop|store|warehouse|workshop|kitchen|lab|teams?|people|staff)\b)"
    )
    somebody = rf"\b(?:the|your|our|my|a) ((?:[\w-]+ )?{not_one}(?:{{person}}|trainee))\b"
    return re.compile(expanded(somebody), re.IGNORECASE)


class NounPhrase(NamedTuple):
    """A thing that is named, without its determiner, and where it stands among the words."""

    text: str
    place: int
    is_needed: bool


def noun_phrases(text: str) -> list[NounPhrase]:
    """The things that a sentence names: "I've got the rental agreement"."""
    rules = _rules()
    phrases = list[NounPhrase]()
    words = _TOKEN.findall(text)
    place = 0
    while place < len(words):
        if words[place].casefold() not in rules.determiners:
            place += 1
            continue
        start = place = place + 1
        while place < len(words) and place - start < _WORDS and _continues(words[place], is_first=place == start):
            place += 1
        if place > start and _is_thing(words[place - 1], words[place : place + 1]):
            is_needed = start > 1 and words[start - 2].casefold() in ("need", "needs", "want", "require")
            phrases.append(NounPhrase(" ".join(_plain(words[start:place])), start, is_needed))
    return phrases


def _plain(words: list[str]) -> list[str]:
    """`the same box` is the box."""
    return words[1:] if len(words) > 1 and words[0].casefold() in ("same", "whole", "exact", "actual", "own") else words


def _is_thing(last: str, after: list[str]) -> bool:
    plain = last.casefold()
    if plain.endswith(("'s", "'ll", "'re", "'ve")):
        return False
    if plain in _rules().not_things or plain[0].isdigit():
        return False
    return not (plain in _rules().containers and after == ["of"])


def _continues(word: str, *, is_first: bool) -> bool:
    plain = word.casefold()
    if not word[0].isalnum() or plain in _rules().stops:
        return False
    return is_first or _VERBAL.fullmatch(plain) is None


class Focus:
    """The things named so far; those named lately, or spoken of as "it", weigh more."""

    def __init__(self) -> None:
        self.weights: dict[str, float] = {}
        self.person = ""

    def copy(self) -> Focus:
        """A focus that may be moved on by itself."""
        focus = Focus()
        focus.weights, focus.person = dict(self.weights), self.person
        return focus

    def fade(self) -> None:
        """Another utterance begins."""
        self._forget()
        self.weights = {thing: weight * _FADING for thing, weight in self.weights.items()}

    def _forget(self) -> None:
        """Keep the things that weigh most, so that a long text costs no more than its length."""
        if len(self.weights) > _KEPT:
            kept = sorted(self.weights, key=lambda thing: -self.weights[thing])[:_KEPT]
            self.weights = {thing: weight for thing, weight in self.weights.items() if thing in kept}

    def read(self, text: str, factor: float = 1.0) -> None:
        """What is named in a text comes into focus; "it" keeps what is there in focus."""
        if _PRONOUN.search(text) and self.weights:
            self.weights[self.thing()] += _AGAIN
        for phrase in noun_phrases(text):
            weight = _SUBJECT if phrase.place <= _EARLY else _NEEDED if phrase.is_needed else _OBJECT
            before = self.weights.pop(phrase.text, 0.0)
            self.weights[phrase.text] = before / 2 + weight * factor
        if len(self.weights) > 2 * _KEPT:
            self._forget()
        names = [*_NAME.findall(text), *(f"the {person}" for person in _person().findall(text))]
        self.person = names[-1] if names else self.person

    def thing(self, verb: str = "") -> str:
        """The thing that weighs most, the later one of two; "" where nothing was named."""
        kind = _kinds().get(verb.casefold())
        return self._heaviest(list(self.weights), kind)

    def things(self) -> str:
        """The same of several things."""
        return self._heaviest([one for one in self.weights if one.endswith("s") and not one.endswith("ss")], None)

    def _heaviest(self, things: list[str], kind: _Kind | None) -> str:
        def weight(thing: str) -> float:
            return self.weights[thing] * (kind.factor(thing) if kind else 1.0)

        return max(reversed(things), key=weight, default="")
