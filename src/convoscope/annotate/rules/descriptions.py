"""A promise in the imperative: `send you it by Friday` is "Send the form", where "it" is the form."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, pattern, table
from convoscope.annotate.rules.nouns import Focus

PUNCTUATION = " .,!?;:\"'-"
MAX_WORDS = 20
"""A longer promise is a story."""
_MAX_LETTERS = 300
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
    """What somebody says that will be done, from its verb on, and where it stands in its sentence."""

    words: str
    who: str
    is_own: bool
    """Whoever speaks does it."""
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
def _rules() -> _DescriptionRules:
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
    return _rules().softeners.sub("", words, count=1) if _rules().softeners.match(words) else words


def parts(words: str) -> list[str]:
    """`check with the depot and call you back` is two promises."""
    return _rules().another.split(without_softeners(words[:_MAX_LETTERS]))


def due(words: str) -> str:
    """When it is to be done, as it is said; "" where no time is said."""
    deadlines = _rules().deadlines
    match = deadlines.search(words[:_MAX_LETTERS]) if deadlines else None
    return "" if match is None else match[0].strip(PUNCTUATION)


def description(words: str, sides: Sides, focus: Focus) -> str:
    """The promise without lead-in and time, and with names for pronouns; "" where nothing is left."""
    text = _without_time(words[:_MAX_LETTERS])
    text = _with_people(without_softeners(text), sides)
    text = _with_things(text, focus)
    text = " ".join(text.split()).strip(PUNCTUATION)
    if not 2 <= len(text.split()) <= MAX_WORDS:
        return ""
    return text[0].upper() + text[1:]


def _without_time(words: str) -> str:
    rules = _rules()
    text = rules.ends.split(rules.conjunction.sub("", words), maxsplit=1)[0]
    if rules.deadlines:
        text = rules.deadlines.sub(" ", text)
    text = " ".join(rules.urgent.sub(" ", text).split()).strip(PUNCTUATION)
    while (cut := rules.trailing.sub("", text).strip(PUNCTUATION)) != text:
        text = cut
    return text


def _with_people(text: str, sides: Sides) -> str:
    """Whoever is given something is left out; whoever something is done to is named: "Call the customer"."""
    rules = _rules()
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
    """Pronouns become the things that they stand for, and "your" and "that" become "the"."""
    if focus.person:
        text = _rules().her.sub(focus.person, text)
    thing, several = focus.thing(text.split(maxsplit=1)[0] if text else ""), focus.things()
    if thing and not _MESSAGE.match(text):
        text = _THING.sub(f"the {thing}", text)
        text = _ONE.sub(rf"\1 {'an' if thing[0] in 'aeiou' else 'a'} {thing}", text)
    if several:
        text = _SOME.sub(f"the {several}", text)
    if _MESSAGE.match(text):
        return text
    return _HER.sub("the", _OWN.sub("the", text))
