"""A promise in the imperative: `send you it by Friday` is "Send the form", where "it" is the form.

What "it" means is the thing that a call is about at each moment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.signs import any_of, expanded, pattern, table

_TOKEN = re.compile(r"[\w'-]+|[^\w\s]")
_PRONOUN = re.compile(r"\b(?:it|it's|it'll)\b", re.IGNORECASE)
_PERSON_NAME = re.compile(
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
def _noun_rules() -> _NounRules:
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
    named_person = rf"\b(?:the|your|our|my|a) ((?:[\w-]+ )?{not_one}(?:{{person}}|trainee))\b"
    return re.compile(expanded(named_person), re.IGNORECASE)


class NounPhrase(NamedTuple):
    """A thing that is named, without its determiner, and its position among the words."""

    text: str
    position: int
    is_needed: bool


def noun_phrases(text: str) -> list[NounPhrase]:
    """The things that a sentence names: "I've got the rental agreement"."""
    rules = _noun_rules()
    phrases = list[NounPhrase]()
    words = _TOKEN.findall(text)
    index = 0
    while index < len(words):
        if words[index].casefold() not in rules.determiners:
            index += 1
            continue
        start = index = index + 1
        while index < len(words) and index - start < _WORDS and _continues(words[index], is_first=index == start):
            index += 1
        if index > start and _is_thing(words[index - 1], words[index : index + 1]):
            is_needed = start > 1 and words[start - 2].casefold() in ("need", "needs", "want", "require")
            phrases.append(NounPhrase(" ".join(_plain(words[start:index])), start, is_needed))
    return phrases


def _plain(words: list[str]) -> list[str]:
    """`the same box` is the box."""
    return words[1:] if len(words) > 1 and words[0].casefold() in ("same", "whole", "exact", "actual", "own") else words


def _is_thing(last: str, after: list[str]) -> bool:
    plain = last.casefold()
    if plain.endswith(("'s", "'ll", "'re", "'ve")):
        return False
    if plain in _noun_rules().not_things or plain[0].isdigit():
        return False
    return not (plain in _noun_rules().containers and after == ["of"])


def _continues(word: str, *, is_first: bool) -> bool:
    plain = word.casefold()
    if not word[0].isalnum() or plain in _noun_rules().stops:
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
            weight = _SUBJECT if phrase.position <= _EARLY else _NEEDED if phrase.is_needed else _OBJECT
            before = self.weights.pop(phrase.text, 0.0)
            self.weights[phrase.text] = before / 2 + weight * factor
        if len(self.weights) > 2 * _KEPT:
            self._forget()
        names = [*_PERSON_NAME.findall(text), *(f"the {person}" for person in _person().findall(text))]
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


PUNCTUATION = " .,!?;:\"'-"
MAX_WORDS = 20
"""A longer promise is a story."""
_MAX_LENGTH = 300
_PARTICLES = (
    r"(?:on|to|in|over|up|back|out|forward|for|with|at|from|down|off|as|by|and|or|into|through|again|straight|under)\b"
)
_ALONE = rf"(?=$| {_PARTICLES})"
_THING = re.compile(r"\b(?:it|(?:this|that)" + _ALONE + r")\b", re.IGNORECASE)
_MESSAGE = re.compile(r"pass(?:ed)? (?:it|that|this) (?:on|along)\b", re.IGNORECASE)
_SOME = re.compile(r"\b(?:them|these|those)" + _ALONE, re.IGNORECASE)
_ONE = re.compile(r"(?<=\A)(\w+) one$", re.IGNORECASE)
_OWN = re.compile(
    rf"\b(?:(?:your|my|our|his|their|its)(?= \w)|(?:this|that|these|those)(?= (?!{_PARTICLES})\w))", re.IGNORECASE
)
_HER = re.compile(r"\bher(?= (?!(?:to|that|about|know|in|at|on|for|with|back)\b)\w)", re.IGNORECASE)


_IES = ("fy", "py", "ly", "ry", "dy", "ty")


class Promise(NamedTuple):
    """What is said to be done, from its verb on, and where it is in its sentence."""

    words: str
    who: str
    is_own: bool
    """The speaker does it."""
    start: int
    end: int
    due: str = ""


class Sides(NamedTuple):
    """Who is meant by "you" and by "me" when one of the two speaks."""

    you: str
    me: str


AGENT_SPEAKS = Sides(you="the customer", me="the agent")
CUSTOMER_SPEAKS = Sides(you="the agent", me="the customer")


class _DescriptionRules:
    """The data, compiled."""

    def __init__(self) -> None:
        data = table("actions")
        rules = data["description"]
        self.softeners = re.compile(rf"(?:{rules['softeners']},?\s+)+", re.IGNORECASE)
        self.ends = re.compile(rules["ends"])
        self.trailing = re.compile(rf"[\s,]+{rules['trailing']}$", re.IGNORECASE)
        self.conjunction = re.compile(r"[\s,]+(?:and|then|but|so|or|and then|and also)[\s,]*$", re.IGNORECASE)
        self.giving = frozenset(rules["giving"])
        self.speaking = frozenset(rules["speaking"])
        verbs = "|".join(rules["verbs"])
        self.another = re.compile(
            rf",?\s+(?:and|then|and then|and also),?\s+(?:(?:i'll|i will|we'll|we will|then|also)\s+)*"
            rf"(?=(?:{verbs})\b)",
            re.IGNORECASE,
        )
        self.her = re.compile(rf"\b(?:her|him)(?=$| (?:{verbs}|to|that|about|know)\b)", re.IGNORECASE)
        self.deadlines = any_of(data["deadlines"]["patterns"])
        self.urgent = pattern(data["deadlines"]["urgent"])


@cache
def _description_rules() -> _DescriptionRules:
    return _DescriptionRules()


def verb_forms(verbs: Iterable[str]) -> dict[str, str]:
    """`sending`, `sends` and `send` are forms of "send"."""
    forms = dict[str, str]()
    for verb in verbs:
        stem = verb[:-1] if verb.endswith("e") and not verb.endswith("ee") else verb
        doubled = stem + stem[-1]
        third = verb + "es" if verb.endswith(("s", "sh", "ch", "x")) else verb[:-1] + "ies" if verb[-2:] in _IES else ""
        for form in (verb, verb + "s", third, stem + "ing", doubled + "ing"):
            forms.setdefault(form, verb)
    return forms


def without_softeners(words: str) -> str:
    """`go ahead and send it` is `send it`."""
    return (
        _description_rules().softeners.sub("", words, count=1) if _description_rules().softeners.match(words) else words
    )


def parts(words: str) -> list[str]:
    """`check with the depot and call you back` is two promises."""
    return _description_rules().another.split(without_softeners(words[:_MAX_LENGTH]))


def due(words: str) -> str:
    """When it is to be done, as it is said; "" where no time is said."""
    deadlines = _description_rules().deadlines
    match = deadlines.search(words[:_MAX_LENGTH]) if deadlines else None
    return "" if match is None else match[0].strip(PUNCTUATION)


def description(words: str, sides: Sides, focus: Focus) -> str:
    """The promise without lead-in and time, and with names for pronouns; "" where nothing is left."""
    text = _without_time(words[:_MAX_LENGTH])
    text = _with_people(without_softeners(text), sides)
    text = _with_things(text, focus)
    text = " ".join(text.split()).strip(PUNCTUATION)
    if not 2 <= len(text.split()) <= MAX_WORDS:
        return ""
    return text[0].upper() + text[1:]


def _without_time(words: str) -> str:
    rules = _description_rules()
    text = rules.ends.split(rules.conjunction.sub("", words), maxsplit=1)[0]
    if rules.deadlines:
        text = rules.deadlines.sub(" ", text)
    text = " ".join(rules.urgent.sub(" ", text).split()).strip(PUNCTUATION)
    while (cut := rules.trailing.sub("", text).strip(PUNCTUATION)) != text:
        text = cut
    return text


def _with_people(text: str, sides: Sides) -> str:
    """A person who is given something is left out; one to whom something is done is named: "Call the customer"."""
    rules = _description_rules()
    if text.casefold() in rules.speaking:
        return f"{text} to {sides.you}"
    words = text.split()
    if words and words[0].casefold() in rules.giving:
        if len(words) > 2 and words[1].casefold() in ("you", "me", "us") and not _is_particle(words[2]):
            words.pop(1)
        text = re.sub(r"(?<=\w )(?<!back )(?:to|for) (?:you|me|us)(?= |$)", "", " ".join(words[1:]))
        text = " ".join((words[0], *text.split()))
    text = re.sub(r"\b(?:you|yourself)\b", sides.you, text, flags=re.IGNORECASE)
    return re.sub(r"\b(?:me|us)\b", sides.me, text, flags=re.IGNORECASE)


def _is_particle(word: str) -> bool:
    return word.casefold() in ("in", "on", "back", "up", "over", "through", "to", "for", "off", "out", "know", "with")


def _with_things(text: str, focus: Focus) -> str:
    """Pronouns become the things that they mean, and "your" and "that" become "the"."""
    if focus.person:
        text = _description_rules().her.sub(focus.person, text)
    thing, several = focus.thing(text.split(maxsplit=1)[0] if text else ""), focus.things()
    if thing and not _MESSAGE.match(text):
        text = _THING.sub(f"the {thing}", text)
        text = _ONE.sub(rf"\1 {'an' if thing[0] in 'aeiou' else 'a'} {thing}", text)
    if several:
        text = _SOME.sub(f"the {several}", text)
    if _MESSAGE.match(text):
        return text
    return _HER.sub("the", _OWN.sub("the", text))
