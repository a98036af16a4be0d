"""Actions: what somebody promises, or accepts to do when asked, with whoever has to do it and the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, expanded, pattern, table
from convoscope.annotate.rules.descriptions import (
    AGENT_SPEAKS,
    CUSTOMER_SPEAKS,
    PUNCTUATION,
    Promise,
    description,
    due,
    parts,
    without_softeners,
)
from convoscope.annotate.rules.nouns import Focus
from convoscope.annotate.rules.requests import accepted_requests
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import ASSISTANT, USER, Action

ROLES = {USER: "customer", ASSISTANT: "agent"}
UNKNOWN = "unknown"
_REACH = 200
"""Letters before a promise in which something may take it back."""
_NEAR = 40
"""Letters before a promise in which its time may stand."""
_RECENT = 50
"""So many actions back, a promise may be the same one again."""
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|so|then)\b", re.IGNORECASE)


class _Lead(NamedTuple):
    who: str
    pattern: re.Pattern[str]
    by: str
    is_light: bool


class _ActionRules:
    """The data, compiled."""

    def __init__(self) -> None:
        data = table("actions")
        self.leads = [
            _Lead(
                lead["who"],
                pattern(lead["pattern"], cased=lead.get("cased", False)),
                lead.get("by", ""),
                lead.get("light", False),
            )
            for lead in data["leads"]
        ]
        not_promises = data["not_promises"]
        self.never = any_of(not_promises["never"])
        self.on_call = any_of(not_promises["on_call"])
        self.never_of_users = any_of(not_promises["user"])
        self.on_call_of_users = any_of(not_promises["user_on_call"])
        self.light = any_of(not_promises["kept_when_light"])
        self.reported = pattern(data["reported"]["clause"])
        self.beside = re.compile(rf"\b{data['reported']['beside']} $", re.IGNORECASE)
        self.user_start = pattern(data["reported"]["user_start"])
        self.participles: dict[str, str] = data["passive"]["participles"]
        participles = "|".join(sorted(self.participles, key=len, reverse=True))
        self.passive = pattern(expanded(data["passive"]["pattern"], participles=participles))


@cache
def _rules() -> _ActionRules:
    return _ActionRules()


def actions(texts: Sequence[SpokenSentence]) -> tuple[Action, ...]:
    """Every promise once, in the order of the conversation."""
    kept = list[Action]()
    requests = accepted_requests(texts)
    focus, seq = Focus(), -1
    for number, sentence in enumerate(texts):
        if sentence.seq != seq:
            focus.fade()
            seq = sentence.seq
        promises = list(_promises(sentence)) or requests.get(number, [])
        for promise in promises:
            before = focus.copy()
            before.read(sentence.text[: promise.start])
            for action in _actions_of(promise, sentence, before):
                _add(kept, action)
        focus.read(sentence.text)
    return tuple(kept)


def _add(kept: list[Action], action: Action) -> None:
    """An action that was promised before, in the same words or more of them, is the same action."""
    words = action.description.casefold()
    for place in range(max(0, len(kept) - _RECENT), len(kept)):
        other = kept[place]
        before = other.description.casefold()
        if other.assignee_role == action.assignee_role and (before.startswith(words) or words.startswith(before)):
            kept[place] = other if len(before) >= len(words) else action
            return
    kept.append(action)


def _actions_of(promise: Promise, sentence: SpokenSentence, focus: Focus) -> Iterator[Action]:
    sides = CUSTOMER_SPEAKS if sentence.by == USER else AGENT_SPEAKS
    for words in parts(promise.words):
        text = description(words, sides, focus)
        focus.read(words)
        if text:
            yield Action(
                description=text,
                verbatim=sentence.quote[promise.start : promise.end].strip(),
                evidence=sentence.text[:300],
                assignee=sentence.speaker if promise.is_own else "",
                assignee_role=promise.who,
                due=due(words) or promise.due,
                events=(sentence.seq,),
            )


def _promises(sentence: SpokenSentence) -> Iterator[Promise]:
    """What stands behind the beginning of each promise, up to the next one."""
    text = sentence.text
    if text.endswith("?"):
        return
    begins = sorted(
        ((match.start(), match.end(), lead) for lead in _rules().leads for match in lead.pattern.finditer(text)),
        key=lambda begin: begin[0],
    )
    speaker = ROLES.get(sentence.by, UNKNOWN)
    for number, (start, end, lead) in enumerate(begins):
        stop = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        words = text[end:stop].strip()
        if _is_promise(lead, text[:start], words, sentence):
            who = speaker if lead.who == "self" else "customer" if speaker == "customer" else lead.who
            is_own = lead.who == "self" or who == "customer"
            yield Promise(words, who, is_own, start, stop, _due_before(text[:start]))
    if not begins and sentence.by != USER:
        yield from _passive_promise(text)


def _passive_promise(text: str) -> Iterator[Promise]:
    """`Your card will be replaced on Friday` is "replace your card on Friday", and nobody's promise."""
    rules = _rules()
    match = rules.passive.search(text)
    if match is None or rules.reported.search(_clause(text[: match.start()])):
        return
    verb, *particles = rules.participles[match["done"].casefold()].split()
    what = match["what"].strip()
    words = " ".join((verb, *particles, what[0].lower() + what[1:], text[match.end() :].strip()))
    yield Promise(words, UNKNOWN, False, match.start(), len(text))


def _is_promise(lead: _Lead, before: str, words: str, sentence: SpokenSentence) -> bool:
    rules = _rules()
    if lead.by and sentence.by not in (lead.by, ""):
        return False
    plain = without_softeners(words)
    if not plain.strip(PUNCTUATION) or rules.reported.search(_clause(before)) or rules.beside.search(before[-20:]):
        return False
    if sentence.by == USER and rules.user_start.match(sentence.text):
        return False
    if _begins(rules.never, words) or _begins(rules.never, plain):
        return False
    if sentence.by == USER and _begins(rules.never_of_users, plain):
        return False
    if _begins(rules.on_call, plain) or (sentence.by == USER and _begins(rules.on_call_of_users, plain)):
        return bool(due(plain))
    return not lead.is_light or _begins(rules.light, plain)


def _begins(signs: re.Pattern[str] | None, words: str) -> bool:
    return signs is not None and signs.match(words) is not None


def _due_before(text: str) -> str:
    """The time right before a promise: `Tomorrow I'll send it`."""
    near = text[-_NEAR:].rstrip(" ,")
    time = due(near)
    return time if time and near.endswith(time) else ""


def _clause(text: str) -> str:
    """What stands before a place since the last comma or conjunction."""
    return _CLAUSE.split(text[-_REACH:])[-1]
