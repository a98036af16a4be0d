"""Topics: words and phrases of the vocabulary, weighed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, table
from convoscope.annotate.rules.negation import is_negated
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import Topic

STRONG, WEAK, ENOUGH = 2, 1, 2
_NOT_ABOUT = re.compile(
    r"(?:not|n't|isn't|nothing) (?:\w+ ){0,2}(?:about|asking for|to do with|calling (?:about|for)|here for|looking for)"
    r" (?:a |an |the |my |any )?(?:\w+ )?$",
    re.IGNORECASE,
)


class _TopicRule(NamedTuple):
    label: str
    strong: re.Pattern[str] | None
    weak: re.Pattern[str] | None
    unless: re.Pattern[str] | None
    by: str
    negated: bool


@cache
def _rules() -> tuple[_TopicRule, ...]:
    return tuple(
        _TopicRule(
            label,
            any_of(rule["strong"]),
            any_of(rule["weak"]),
            any_of(rule.get("unless", ())),
            rule.get("by", ""),
            rule.get("negated", False),
        )
        for label, rule in table("topics").items()
        if isinstance(rule, dict)
    )


def labels() -> tuple[str, ...]:
    """The topics that the rules know."""
    return tuple(rule.label for rule in _rules())


def topics(texts: Sequence[SpokenSentence]) -> tuple[Topic, ...]:
    """The topics that are talked about, each with the utterances that tell it."""
    return tuple(topic for rule in _rules() if (topic := _topic(rule, texts)) is not None)


def _topic(rule: _TopicRule, texts: Sequence[SpokenSentence]) -> Topic | None:
    weights: dict[str, int] = {}
    seqs: dict[int, str] = {}
    for sentence in texts:
        if rule.by and sentence.by not in (rule.by, ""):
            continue
        text = rule.unless.sub(" ~ ", sentence.text) if rule.unless else sentence.text
        for signs, weight in ((rule.strong, STRONG), (rule.weak, WEAK)):
            for match in signs.finditer(text) if signs else ():
                if _NOT_ABOUT.search(text[: match.start()]) or (rule.negated and is_negated(text, match.start())):
                    continue
                words = match[0].casefold()
                weights[words] = max(weights.get(words, 0), weight)
                seqs.setdefault(sentence.seq, words)
    if sum(weights.values()) < ENOUGH:
        return None
    events = tuple(sorted(seqs))
    return Topic(label=rule.label, events=events, span=(events[0], events[-1]), evidence=", ".join(weights)[:200])
