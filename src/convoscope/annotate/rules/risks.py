"""Risks: signs with a severity, who has to say them, and what takes them back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

from convoscope.annotate.rules.sentences import SpokenSentence, is_negated
from convoscope.annotate.rules.signs import Sign, SignIndex, any_of, pattern, table
from convoscope.conversation import ASSISTANT, USER, Risk

SEVERITIES = ("low", "medium", "high", "critical")
_IN_VAIN = frozenset({"customer_frustration", "agent_error"})
"""Risks that make praise irony."""
_YES = re.compile(
    r"(?:yes|yeah|yep|please|do|ok(?:ay)?|all right|fine|sure|i'd (?:like|appreciate) that)\b", re.IGNORECASE
)
RESOLVED_BY = "resolved_by"
"""In the extras of a risk: the utterance that deals with it."""


class _Sign(NamedTuple):
    pattern: Sign
    bits: int
    by: str
    severity: str = "low"
    negatable: bool = True
    only_with: re.Pattern[str] | None = None


class _Limit(NamedTuple):
    """A severity that something else in the call makes it."""

    pattern: re.Pattern[str]
    severity: str
    least: str = "medium"
    """What is less severe is not raised."""
    by: str = "any"


class _RiskRule(NamedTuple):
    type: str
    lookup: SignIndex
    bits: int
    """Of all its signs, in the index."""
    signs: tuple[_Sign, ...]
    unless: Sign
    resolutions: tuple[_Sign, ...]
    at_most: tuple[_Limit, ...]
    raised: tuple[_Limit, ...]
    repeated: _Limit | None
    several: dict[str, str]
    irony: re.Pattern[str] | None
    offered: re.Pattern[str] | None
    withdrawn: re.Pattern[str] | None
    lowered: str


class _Hit(NamedTuple):
    seq: int
    severity: str
    evidence: str
    speaker: str
    words: str


def _sign(fields: dict[str, Any], index: SignIndex) -> _Sign:
    with_words = fields.get("only_with")
    sign = index.sign(fields["pattern"], cased=fields.get("cased", False))
    return _Sign(
        sign,
        sign.bits,
        fields["by"],
        fields.get("severity", "low"),
        fields.get("negatable", True),
        re.compile(with_words, re.IGNORECASE) if with_words else None,
    )


def _limit(fields: dict[str, str]) -> _Limit:
    return _Limit(pattern(fields["pattern"]), fields["severity"], fields.get("from", "medium"), fields.get("by", "any"))


def _optional(text: str | None) -> re.Pattern[str] | None:
    return None if text is None else pattern(text)


@cache
def _content() -> re.Pattern[str] | None:
    return any_of(table("risks")["content"])


@cache
def _rules() -> tuple[_RiskRule, ...]:
    data = table("risks")
    resolution, index = data["resolution"], SignIndex()
    signs = {type: tuple(_sign(fields, index) for fields in data[type]["signs"]) for type in _types(data)}
    return tuple(
        _RiskRule(
            type,
            index,
            sum(sign.bits for sign in signs[type]),
            signs[type],
            index.sign(*rule.get("unless", ())),
            tuple(_sign(fields, index) for fields in (*resolution["any"], *resolution.get(type, ()))),
            tuple(map(_limit, rule.get("at_most", ()))),
            tuple(map(_limit, rule.get("raised", ()))),
            _limit(rule["repeated"]) if "repeated" in rule else None,
            rule.get("several", {}),
            _optional(rule.get("irony")),
            _optional(rule.get("offered")),
            _optional(rule.get("withdrawn")),
            rule.get("lowered", ""),
        )
        for type in _types(data)
        for rule in (data[type],)
    )


def _types(data: dict[str, Any]) -> list[str]:
    return [type for type, rule in data.items() if isinstance(rule, dict) and type != "resolution"]


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
    """One risk of each type at most, as severe as its most severe sign, with all utterances that show it."""
    by_type = {rule.type: risk for rule in _rules() if (risk := _risk(rule, texts)) is not None}
    for rule in _rules():
        if rule.irony is not None and rule.type not in by_type and _IN_VAIN & by_type.keys():
            for risk in filter(None, (_irony(rule, one) for one in texts)):
                by_type[rule.type] = risk
    return tuple(by_type[type] for type in types() if type in by_type)


def _accepted(rule: _RiskRule, texts: Sequence[SpokenSentence]) -> list[_Hit]:
    """What an agent offers and the customer accepts: "Shall I get my supervisor?" "Yes, please"."""
    if rule.offered is None:
        return []
    return [
        _Hit(answer.seq, _lowest(rule), answer.text[:300], answer.speaker, "")
        for offer, answer in pairwise(texts)
        if offer.by == ASSISTANT and answer.by == USER and rule.offered.search(offer.text) and _YES.match(answer.text)
    ]


def _irony(rule: _RiskRule, sentence: SpokenSentence) -> Risk | None:
    """Praise and no more than that, in a call in which something went wrong."""
    if rule.irony is None or sentence.by not in (USER, "") or not rule.irony.fullmatch(sentence.text):
        return None
    return Risk(
        type=rule.type,
        severity=SEVERITIES[0],
        events=(sentence.seq,),
        evidence=sentence.text[:300],
        speaker=sentence.speaker,
    )


def _risk(rule: _RiskRule, texts: Sequence[SpokenSentence]) -> Risk | None:
    hits = [hit for sentence in texts for hit in _hits(rule, sentence)] or _accepted(rule, texts)
    if not hits:
        return None
    worst = max(hits, key=lambda hit: SEVERITIES.index(hit.severity))
    events = tuple(sorted({hit.seq for hit in hits}))
    severity = _moved(rule, _together(rule, hits, worst.severity, texts), texts, events)
    resolved = _resolution(rule, texts, events[-1])
    return Risk(
        type=rule.type,
        severity=severity,
        events=events,
        evidence=worst.evidence,
        speaker=worst.speaker,
        extras={} if resolved is None else {RESOLVED_BY: resolved},
    )


def _together(rule: _RiskRule, hits: Sequence[_Hit], severity: str, texts: Sequence[SpokenSentence]) -> str:
    """The severity of all signs: several strong words are more than one, and so is a demand made again."""
    if rule.several:
        strong = {hit.words for hit in hits if is_as_severe(hit.severity, rule.several["from"])}
        if len(strong) > 1:
            severity = max(severity, rule.several["severity"], key=SEVERITIES.index)
    if rule.repeated:
        demands = [hit.seq for hit in hits if is_as_severe(hit.severity, rule.repeated.least)]
        if demands and any(
            demands[0] < one.seq < demands[-1] and one.by != USER and rule.repeated.pattern.search(one.text)
            for one in texts
        ):
            severity = max(severity, rule.repeated.severity, key=SEVERITIES.index)
    return severity


def _moved(rule: _RiskRule, severity: str, texts: Sequence[SpokenSentence], events: Sequence[int]) -> str:
    """The severity of the signs, as what else is said in the call raises or lowers it."""
    for raised in rule.raised:
        if is_as_severe(severity, raised.least) and any(
            raised.by in ("any", one.by) and raised.pattern.search(one.text) for one in texts
        ):
            severity = max(severity, raised.severity, key=SEVERITIES.index)
    content = rule.lowered and is_as_severe(rule.lowered, severity) and _is_content(texts, events[-1])
    if content or _is_withdrawn(rule, texts, events[0]):
        severity = SEVERITIES[max(SEVERITIES.index(severity) - 1, SEVERITIES.index(_lowest(rule)))]
    return severity


def _lowest(rule: _RiskRule) -> str:
    """The least severity of a sign of the type."""
    return min((sign.severity for sign in rule.signs), key=SEVERITIES.index)


def _is_withdrawn(rule: _RiskRule, texts: Sequence[SpokenSentence], first: int) -> bool:
    """The customer takes it back: "then I'll stay"."""
    return rule.withdrawn is not None and any(
        one.seq >= first and one.by in (USER, "") and rule.withdrawn.search(one.text) for one in texts
    )


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
    chances = rule.lookup.chances(sentence.text) & rule.bits
    if not chances:
        return hits
    for sign in rule.signs:
        if not sign.bits & chances or not _may_say(sign, sentence):
            continue
        match = sign.pattern.search(sentence.text)
        if match is None or (sign.negatable and is_negated(sentence.text, match.start())):
            continue
        if sign.only_with is not None and not sign.only_with.search(match[0]):
            continue
        if not hits and rule.unless.search(sentence.text):
            return []
        severity = _limited(rule, sign.severity, sentence.text)
        hits.append(_Hit(sentence.seq, severity, sentence.text[:300], sentence.speaker, match[0].casefold()))
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
