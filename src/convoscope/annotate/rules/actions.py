"""Actions: promises, written as descriptions: `I'll send you the proposal by tomorrow` is "Send proposal"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, pattern, table
from convoscope.annotate.rules.negation import is_negated
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import Action

ROLES = {"user": "customer", "assistant": "agent"}
UNKNOWN = "unknown"
MAX_WORDS = 25
"""A longer promise is a story."""
_PUNCTUATION = " .,!?;:\"'-"


class _Lead(NamedTuple):
    who: str
    pattern: re.Pattern[str]
    is_light: bool = False


class _Promise(NamedTuple):
    words: str
    who: str
    is_own: bool = False
    """Whoever speaks does it."""


class _ActionRules:
    """The data, compiled."""

    def __init__(self) -> None:
        data = table("actions")
        self.leads = [_Lead(one["who"], pattern(one["pattern"]), one.get("light", False)) for one in data["leads"]]
        self.not_promises = _at_start(data["not_promises"])
        self.light = _at_start(data["light"])
        self.fleeting = _at_start(data["fleeting"])
        self.reported = pattern(data["reported"])
        self.softeners = re.compile(rf"(?:{data['softeners']}\s+)+", re.IGNORECASE)
        self.determiners = pattern(data["determiners"])
        self.ends = re.compile(data["ends"], re.IGNORECASE)
        self.trailing = re.compile(rf"[\s,]+{data['trailing']}$", re.IGNORECASE)
        self.deadlines = any_of(data["deadlines"])
        self.passive = re.compile(rf"(?<!\w){data['passive']}(?!\w)", re.IGNORECASE)
        self.giving = frozenset(data["giving"])
        self.verbs = frozenset(data["verbs"])
        self.progressive = re.compile(
            rf"(?<![\w']){data['progressive']}(?P<verb>{'|'.join(_progressive_forms())})(?!\w)", re.IGNORECASE
        )
        self.another = re.compile(
            rf"\s+(?:and|then|and then|and also),?\s+(?:(?:i'll|i will|we'll|we will|then|also)\s+)*"
            rf"(?=(?:{'|'.join(data['verbs'])})\b)",
            re.IGNORECASE,
        )

    def without_softeners(self, words: str) -> str:
        """`go ahead and send it` is `send it`."""
        return self.softeners.sub("", words, count=1) if self.softeners.match(words) else words


def _at_start(text: str) -> re.Pattern[str]:
    return re.compile(rf"{text}(?!\w)", re.IGNORECASE)


@cache
def _rules() -> _ActionRules:
    return _ActionRules()


@cache
def _progressive_forms() -> dict[str, str]:
    """`sending` is of `send`, `issuing` of `issue`, `getting` of `get`."""
    forms = dict[str, str]()
    for verb in table("actions")["verbs"]:
        stem = verb[:-1] if verb.endswith("e") else verb
        forms[f"{stem}ing"] = verb
        forms[f"{verb}{verb[-1]}ing"] = verb
    return forms


def actions(texts: Sequence[SpokenSentence]) -> tuple[Action, ...]:
    """Every promise once, in the order of the conversation."""
    kept: dict[str, Action] = {}
    for sentence in texts:
        for action in _actions_of(sentence):
            kept.setdefault(action.description.casefold(), action)
    return tuple(kept.values())


def _actions_of(sentence: SpokenSentence) -> Iterator[Action]:
    if sentence.text.endswith("?"):
        return
    for promise in _promises(sentence):
        due = _due(promise.words)
        for words in _rules().another.split(_rules().without_softeners(promise.words)):
            description = _description(words, promise.who)
            if description:
                yield Action(
                    description=description,
                    verbatim=sentence.text,
                    evidence=sentence.text[:300],
                    assignee=sentence.speaker if promise.is_own else "",
                    assignee_role=promise.who,
                    due=_due(words) or due,
                    events=(sentence.seq,),
                )


def _promises(sentence: SpokenSentence) -> Iterator[_Promise]:
    """What stands behind the beginning of each promise, up to the next one."""
    rules, text = _rules(), sentence.text
    speaker = ROLES.get(sentence.by, UNKNOWN)
    begins = [(match.start(), match.end(), lead) for lead in rules.leads for match in lead.pattern.finditer(text)]
    begins.sort(key=lambda begin: begin[0])
    for number, (start, end, lead) in enumerate(begins):
        stop = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        words = text[end:stop].strip()
        if _is_promise(lead, text[:start], words, sentence):
            who = speaker if lead.who == "self" else "customer" if speaker == "customer" else lead.who
            yield _Promise(words, who, is_own=lead.who == "self" or who == "customer")
    if begins or sentence.by == "user":
        return
    for match in rules.progressive.finditer(text):
        verb = _progressive_forms()[match["verb"].casefold()]
        if not is_negated(text, match.end()):
            yield _Promise(f"{verb} {text[match.end() :].strip()}", speaker, is_own=True)
            return
    for match in rules.passive.finditer(text):
        if not rules.reported.search(_clause(text[: match.start()])):
            yield _Promise(f"{match['what'].strip()} be {match['done']}{text[match.end() :]}", UNKNOWN)
            return


def _is_promise(lead: _Lead, before: str, words: str, sentence: SpokenSentence) -> bool:
    rules = _rules()
    plain = rules.without_softeners(words)
    if not plain or rules.reported.search(_clause(before)):
        return False
    if lead.who == UNKNOWN and sentence.by == "user":
        return False
    if sentence.by == "user" and rules.reported.match(sentence.text):
        return False
    if rules.not_promises.match(words) or rules.not_promises.match(plain) or rules.fleeting.match(plain):
        return False
    return not (lead.is_light and (rules.light.match(words) or rules.light.match(plain)))


def _clause(text: str) -> str:
    """What stands before a place since the last comma or conjunction."""
    return re.split(r"[,;:]|\b(?:and|but|so|then)\b", text, flags=re.IGNORECASE)[-1]


def _due(words: str) -> str:
    """When it is to be done, in the words of the promise."""
    deadlines = _rules().deadlines
    match = deadlines.search(words) if deadlines else None
    return "" if match is None else match[0].strip(_PUNCTUATION)


def _description(words: str, who: str) -> str:
    """The promise in the imperative: without lead-in, deadline, articles and whom it is said to."""
    rules = _rules()
    text = rules.ends.split(words, maxsplit=1)[0]
    if rules.deadlines:
        text = rules.deadlines.sub(" ", text)
    text = " ".join(text.split()).strip(_PUNCTUATION)
    while (cut := rules.trailing.sub("", text).strip(_PUNCTUATION)) != text:
        text = cut
    text = _without_you(rules.without_softeners(text), who)
    text = " ".join(rules.determiners.sub(" ", text).split()).strip(_PUNCTUATION)
    if len(text.split()) < 2 or len(text.split()) > MAX_WORDS:
        return ""
    return text[0].upper() + text[1:]


def _without_you(text: str, who: str) -> str:
    """Whoever is given something is not part of it, but whoever something is done to is: "Call customer back"."""
    other = "customer" if who != "customer" else "agent"
    words = text.split()
    gives = bool(words) and words[0].casefold() in _rules().giving
    if gives and len(words) > 2 and words[1].casefold() == "you":
        words.pop(1)
    text = " ".join(words)
    if gives and " back to you" not in text:
        text = re.sub(r" (?:to|for) you(?= |$)", "", text)
    return re.sub(r"\byou\b", other, text.removesuffix(" for you"), flags=re.IGNORECASE)
