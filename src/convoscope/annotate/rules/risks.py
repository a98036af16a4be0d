"""Risks: signs with a severity, who has to say them, and what takes them back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from convoscope.annotate.rules.data import any_of, pattern, table
from convoscope.annotate.rules.negation import is_negated
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import USER, Risk

SEVERITIES = ("low", "medium", "high", "critical")
RESOLVED_BY = "resolved_by"
"""In the extras of a risk: the utterance that deals with it."""


class _Sign(NamedTuple):
    pattern: re.Pattern[str]
    by: str
    severity: str = "low"
    negatable: bool = True
    only_with: re.Pattern[str] | None = None


class _Limit(NamedTuple):
    """A severity that something else in the call makes it."""

    pattern: re.Pattern[str]
    severity: str


class _RiskRule(NamedTuple):
    type: str
    signs: tuple[_Sign, ...]
    unless: re.Pattern[str] | None
    resolutions: tuple[_Sign, ...]
    at_most: tuple[_Limit, ...]
    raised: _Limit | None
    lowered: str
    implied: dict[str, str]


class _Hit(NamedTuple):
    seq: int
    severity: str
    evidence: str
    speaker: str


def _sign(facts: dict[str, Any]) -> _Sign:
    with_words = facts.get("only_with")
    return _Sign(
        pattern(facts["pattern"], cased=facts.get("cased", False)),
        facts["by"],
        facts.get("severity", "low"),
        facts.get("negatable", True),
        re.compile(with_words, re.IGNORECASE) if with_words else None,
    )


def _limit(facts: dict[str, str]) -> _Limit:
    return _Limit(pattern(facts["pattern"]), facts["severity"])


@cache
def _content() -> re.Pattern[str] | None:
    return any_of(table("risks")["content"])


@cache
def _rules() -> tuple[_RiskRule, ...]:
    data = table("risks")
    resolution = data["resolution"]
    return tuple(
        _RiskRule(
            type,
            tuple(map(_sign, rule["signs"])),
            any_of(rule.get("unless", ())),
            tuple(map(_sign, (*resolution["any"], *resolution.get(type, ())))),
            tuple(map(_limit, rule.get("at_most", ()))),
            _limit(rule["raised"]) if "raised" in rule else None,
            rule.get("lowered", ""),
            rule.get("implied", {}),
        )
        for type, rule in data.items()
        if isinstance(rule, dict) and type != "resolution"
    )


@cache
def _no_resolution() -> re.Pattern[str] | None:
    return any_of(table("risks")["resolution"]["unless"])


def types() -> tuple[str, ...]:
    """The types of risk that the rules know."""
    return tuple(rule.type for rule in _rules())


def is_as_severe(severity: str, limit: str) -> bool:
    """A severity is that of a limit, or above it."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(limit)


def risks(texts: Sequence[SpokenSentence]) -> tuple[Risk, ...]:
    """One risk of each type at most, as severe as its most severe sign, with all utterances that tell it."""
    by_type = {rule.type: risk for rule in _rules() if (risk := _risk(rule, texts)) is not None}
    for rule in _rules():
        sign = by_type.get(rule.implied.get("type", ""))
        if sign is None or rule.type in by_type or not is_as_severe(sign.severity, rule.implied["from"]):
            continue
        if not _is_content(texts, sign.events[-1]):
            by_type[rule.type] = msgspec.structs.replace(sign, type=rule.type, severity=rule.implied["severity"])
    return tuple(by_type[type] for type in types() if type in by_type)


def _risk(rule: _RiskRule, texts: Sequence[SpokenSentence]) -> Risk | None:
    hits = [hit for sentence in texts for hit in _hits(rule, sentence)]
    if not hits:
        return None
    worst = max(hits, key=lambda hit: SEVERITIES.index(hit.severity))
    events = tuple(sorted({hit.seq for hit in hits}))
    severity = _moved(rule, worst.severity, texts, events[-1])
    resolved = _resolution(rule, texts, events[-1])
    return Risk(
        type=rule.type,
        severity=severity,
        events=events,
        evidence=worst.evidence,
        speaker=worst.speaker,
        extras={} if resolved is None else {RESOLVED_BY: resolved},
    )


def _moved(rule: _RiskRule, severity: str, texts: Sequence[SpokenSentence], last: int) -> str:
    """The severity of the worst sign, as what else is said in the call raises or lowers it."""
    raised = rule.raised
    if raised and severity != SEVERITIES[0] and any(raised.pattern.search(one.text) for one in texts):
        severity = max(severity, raised.severity, key=SEVERITIES.index)
    if rule.lowered and is_as_severe(rule.lowered, severity) and _is_content(texts, last):
        severity = SEVERITIES[max(SEVERITIES.index(severity) - 1, 0)]
    return severity


def _is_content(texts: Sequence[SpokenSentence], last: int) -> bool:
    """The customer is content after an utterance."""
    content = _content()
    return content is not None and any(
        sentence.seq > last
        and sentence.by in (USER, "")
        and (match := content.search(sentence.text)) is not None
        and not is_negated(sentence.text, match.start())
        for sentence in texts
    )


def _hits(rule: _RiskRule, sentence: SpokenSentence) -> list[_Hit]:
    hits = list[_Hit]()
    for sign in rule.signs:
        if not _may_say(sign, sentence):
            continue
        match = sign.pattern.search(sentence.text)
        if match is None or (sign.negatable and is_negated(sentence.text, match.start())):
            continue
        if sign.only_with is not None and not sign.only_with.search(match[0]):
            continue
        if not hits and rule.unless is not None and rule.unless.search(sentence.text):
            return []
        severity = _limited(rule, sign.severity, sentence.text)
        hits.append(_Hit(sentence.seq, severity, sentence.text[:300], sentence.speaker))
    return hits


def _limited(rule: _RiskRule, severity: str, text: str) -> str:
    for limit in rule.at_most:
        if limit.pattern.search(text):
            severity = min(severity, limit.severity, key=SEVERITIES.index)
    return severity


def _may_say(sign: _Sign, sentence: SpokenSentence) -> bool:
    return sign.by in ("any", sentence.by) or not sentence.by


def _resolution(rule: _RiskRule, texts: Sequence[SpokenSentence], last: int) -> int | None:
    """The first later utterance that deals with the risk."""
    refused = _no_resolution()
    for sentence in texts:
        if sentence.seq <= last or (refused is not None and refused.search(sentence.text)):
            continue
        for sign in rule.resolutions:
            match = sign.pattern.search(sentence.text) if _may_say(sign, sentence) else None
            if match is not None and not is_negated(sentence.text, match.start()):
                return sentence.seq
    return None
