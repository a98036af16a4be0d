"""Topics: words and phrases of the vocabulary, weighed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, pattern, table
from convoscope.annotate.rules.negation import is_negated
from convoscope.annotate.rules.risks import is_as_severe
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import Risk, Topic

WEAK, ENOUGH = 1, 2
_REACH = 80
"""Letters before a sign in which "not about" may stand."""
_NOT_ABOUT = re.compile(
    r"(?:not|n't|isn't|nothing) (?:\w+ ){0,2}(?:about|asking for|to do with|calling (?:about|for)|here for|looking for)"
    r" (?:a |an |the |my |any )?(?:\w+ )?$",
    re.IGNORECASE,
)


class _TopicRule(NamedTuple):
    label: str
    strong: re.Pattern[str] | None
    weak: re.Pattern[str] | None
    weak_groups: tuple[re.Pattern[str], ...]
    """Weak words of one group are counted once."""
    unless: re.Pattern[str] | None
    by: str
    negated: bool
    risks: dict[str, str]
    enough: int


@cache
def _rules() -> tuple[_TopicRule, ...]:
    return tuple(
        _TopicRule(
            label,
            any_of(rule["strong"]),
            any_of(rule["weak"]),
            tuple(pattern(text) for text in rule.get("weak_groups", ())),
            any_of(rule.get("unless", ())),
            rule.get("by", ""),
            rule.get("negated", False),
            rule.get("risks", {}),
            rule.get("enough", ENOUGH),
        )
        for label, rule in table("topics").items()
        if isinstance(rule, dict)
    )


def labels() -> tuple[str, ...]:
    """The topics that the rules know."""
    return tuple(rule.label for rule in _rules())


def topics(texts: Sequence[SpokenSentence], risks: Sequence[Risk]) -> tuple[Topic, ...]:
    """The topics that are talked about, each with the utterances that tell it."""
    return tuple(topic for rule in _rules() if (topic := _topic(rule, texts, risks)) is not None)


class _Signs:
    """What tells a topic, by the words that tell it, and where it is said."""

    def __init__(self) -> None:
        self.weights: dict[str, int] = {}
        self.events: set[int] = set()

    def add(self, sign: str, weight: int, *events: int) -> None:
        self.weights[sign] = max(self.weights.get(sign, 0), weight)
        self.events.update(events)


def _topic(rule: _TopicRule, texts: Sequence[SpokenSentence], risks: Sequence[Risk]) -> Topic | None:
    signs = _Signs()
    for sentence in texts:
        if not rule.by or sentence.by in (rule.by, ""):
            _read(rule, sentence, signs)
    for risk in risks:
        if risk.type in rule.risks and is_as_severe(risk.severity, rule.risks[risk.type]):
            signs.add(risk.type, rule.enough, *risk.events)
    if sum(signs.weights.values()) < rule.enough:
        return None
    events = tuple(sorted(signs.events))
    return Topic(label=rule.label, events=events, span=(events[0], events[-1]), evidence=", ".join(signs.weights)[:200])


def _read(rule: _TopicRule, sentence: SpokenSentence, signs: _Signs) -> None:
    text = sentence.text
    if not any(words is not None and words.search(text) for words in (rule.strong, rule.weak)):
        return
    text = rule.unless.sub(" ~ ", text) if rule.unless else text
    for words, weight in ((rule.strong, rule.enough), (rule.weak, WEAK)):
        for match in words.finditer(text) if words else ():
            before = text[: match.start()]
            if _NOT_ABOUT.search(before[-_REACH:]) or (rule.negated and is_negated(text, match.start())):
                continue
            signs.add(_sign(rule, match[0], weight), weight, sentence.seq)


def _sign(rule: _TopicRule, words: str, weight: int) -> str:
    """The words; of a group of weak words, the first of it stands for all."""
    if weight == WEAK:
        for number, group in enumerate(rule.weak_groups):
            if group.fullmatch(words):
                return f"{rule.label} {number}"
    return words.casefold()
