"""Topics: words and phrases of the vocabulary, weighed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.risks import is_as_severe
from convoscope.annotate.rules.sentences import SpokenSentence, is_negated
from convoscope.annotate.rules.signs import Sign, SignIndex, pattern, table
from convoscope.conversation import ASSISTANT, USER, Risk, Topic

WEAK, ENOUGH = 1, 2
_FIRST = 4
"""Utterances in which an agent's word alone is no topic."""
_REACH = 80
"""Characters before a sign in which "not about" may be."""
_NOT_ABOUT = re.compile(
    r"(?:not|n't|isn't|nothing) (?:\w+ ){0,2}(?:about|asking for|to do with|calling (?:about|for)|here for|looking for)"
    r" (?:a |an |the |my |any )?(?:\w+ )?$",
    re.IGNORECASE,
)


class _TopicRule(NamedTuple):
    label: str
    lookup: SignIndex
    strong: Sign
    weak: Sign
    asked: Sign
    """Questions that are enough where the customer asks them."""
    weak_groups: tuple[re.Pattern[str], ...]
    """Weak words of one group are counted once."""
    unless: Sign
    by: str
    negated: bool
    risks: dict[str, str]
    not_with: str
    """What is said where this risk is found is no sign: praise may be irony."""
    enough: int


@cache
def _rules() -> tuple[_TopicRule, ...]:
    index = SignIndex()
    return tuple(
        _TopicRule(
            label,
            index,
            index.sign(*rule["strong"]),
            index.sign(*rule["weak"]),
            index.sign(*rule.get("asked", ())),
            tuple(pattern(text) for text in rule.get("weak_groups", ())),
            index.sign(*rule.get("unless", ())),
            rule.get("by", ""),
            rule.get("negated", False),
            rule.get("risks", {}),
            rule.get("not_with", ""),
            rule.get("enough", ENOUGH),
        )
        for label, rule in table("topics").items()
        if isinstance(rule, dict)
    )


def labels() -> tuple[str, ...]:
    """The topics that the rules know."""
    return tuple(rule.label for rule in _rules())


def topics(texts: Sequence[SpokenSentence], risks: Sequence[Risk]) -> tuple[Topic, ...]:
    """The topics that are talked about, each with the utterances that show it."""
    return tuple(topic for rule in _rules() if (topic := _topic(rule, texts, risks)) is not None)


class _Signs:
    """What shows a topic, by the words that do, and where it is said."""

    def __init__(self) -> None:
        self.weights: dict[str, int] = {}
        self.events: set[int] = set()

    def add(self, sign: str, weight: int, *events: int) -> None:
        self.weights[sign] = max(self.weights.get(sign, 0), weight)
        self.events.update(events)


def _topic(rule: _TopicRule, texts: Sequence[SpokenSentence], risks: Sequence[Risk]) -> Topic | None:
    signs = _Signs()
    ironic = {event for risk in risks if risk.type == rule.not_with for event in risk.events}
    for sentence in texts:
        if sentence.seq in ironic:
            continue
        if not rule.by or sentence.by in (rule.by, ""):
            _read(rule, sentence, signs)
    for risk in risks:
        if risk.type in rule.risks and is_as_severe(risk.severity, rule.risks[risk.type]):
            signs.add(risk.type, rule.enough, *risk.events)
    if sum(signs.weights.values()) < rule.enough:
        return None
    events = tuple(sorted(signs.events))
    if len(events) == 1 and events[0] in _opening(texts):
        return None
    return Topic(label=rule.label, events=events, span=(events[0], events[-1]), evidence=", ".join(signs.weights)[:200])


def _opening(texts: Sequence[SpokenSentence]) -> set[int]:
    """What the agent says at the beginning: who greets with "sales and returns" has no topic yet."""
    return {one.seq for one in texts if one.seq - texts[0].seq < _FIRST and one.by == ASSISTANT}


def _read(rule: _TopicRule, sentence: SpokenSentence, signs: _Signs) -> None:
    text = sentence.text
    if not rule.lookup.chances(text) & (rule.strong.bits | rule.asked.bits | rule.weak.bits):
        return
    kinds = [(rule.strong, rule.enough), (rule.weak, WEAK)]
    if sentence.by in (USER, ""):
        kinds.insert(1, (rule.asked, rule.enough))
    text = rule.unless.removed(text, " ~ ")
    for words, weight in kinds:
        for match in words.finditer(text):
            before = text[: match.start()]
            if _NOT_ABOUT.search(before[-_REACH:]) or (rule.negated and is_negated(text, match.start())):
                continue
            signs.add(_sign(rule, match[0], weight), weight, sentence.seq)


def _sign(rule: _TopicRule, words: str, weight: int) -> str:
    """The words; of a group of weak words, one name for all."""
    if weight == WEAK:
        for number, group in enumerate(rule.weak_groups):
            if group.fullmatch(words):
                return f"{rule.label} {number}"
    return words.casefold()
