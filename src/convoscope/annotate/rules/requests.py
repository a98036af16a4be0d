"""What somebody is asked to do, or offers to do, and whether the other one says yes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from convoscope.annotate.rules.data import any_of, pattern, table
from convoscope.annotate.rules.descriptions import Promise, due, without_softeners
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.conversation import ASSISTANT, USER

_TEAM = re.compile(r"we |shall we|my |our |the |an? ", re.IGNORECASE)


class _RequestRules:
    """The data, compiled."""

    def __init__(self) -> None:
        data = table("actions")
        rules = data["requests"]
        self.ask = pattern(rules["ask"])
        self.offer = pattern(rules["offer"])
        self.verbs = any_of(rules["verbs"])
        self.imperatives = any_of(rules["imperatives"])
        self.not_requests = any_of(rules["not_requests"])
        self.accepted = pattern(rules["accepted"])
        self.refused = pattern(rules["refused"])
        self.done = pattern(rules["done"])
        self.taken = pattern(rules["taken"])


@cache
def _rules() -> _RequestRules:
    return _RequestRules()


class _Turn(NamedTuple):
    """What one speaker says before somebody else does, with the numbers of its sentences."""

    by: str
    numbers: list[int]
    text: str


def accepted_requests(texts: Sequence[SpokenSentence]) -> dict[int, list[Promise]]:
    """By the number of its sentence: what is asked for or offered, and then agreed to."""
    turns = _turns(texts)
    accepted = dict[int, list[Promise]]()
    for place, turn in enumerate(turns[:-1]):
        for number in turn.numbers:
            for request in _requests(texts[number]):
                if _is_accepted(turns[place + 1 : place + 3]):
                    time = request.due or due(_first_sentence(turns[place + 1].text))
                    accepted.setdefault(number, []).append(request._replace(due=time))
    return accepted


def _turns(texts: Sequence[SpokenSentence]) -> list[_Turn]:
    turns = list[_Turn]()
    for (by, _), group in groupby(enumerate(texts), key=lambda one: (one[1].by, one[1].speaker)):
        numbered = list(group)
        turns.append(_Turn(by, [number for number, _ in numbered], " ".join(one.text for _, one in numbered)[:500]))
    return turns


def _requests(sentence: SpokenSentence) -> Iterator[Promise]:
    """What the sentence asks the other one for, or offers."""
    rules, text = _rules(), sentence.text
    other = {USER: "agent", ASSISTANT: "customer"}.get(sentence.by)
    if other is None:
        return
    match = rules.ask.search(text)
    if match is not None and (asked := list(_request(text, match.start(), match.end(), other, is_own=False))):
        yield from asked
        return
    match = rules.offer.search(text) if sentence.by == ASSISTANT else None
    if match is not None:
        who = "team" if _TEAM.match(match[0]) else "agent"
        yield from _request(text, match.start(), match.end(), who, is_own=who == "agent")
        return
    start = len(text) - len(without_softeners(text))
    if sentence.by == USER or (rules.imperatives is not None and rules.imperatives.match(text[start:])):
        yield from _request(text, start, start, other, is_own=False)


def _request(text: str, start: int, end: int, who: str, *, is_own: bool) -> Iterator[Promise]:
    rules = _rules()
    words = without_softeners(text[end:].strip())
    if rules.verbs is None or rules.not_requests is None:
        return
    if rules.verbs.match(words) and not rules.not_requests.match(words):
        yield Promise(words, who, is_own, start, len(text), due(words))


def _is_accepted(replies: Sequence[_Turn]) -> bool:
    """The next one says yes, and nobody says that it is done already."""
    rules = _rules()
    answer = replies[0].text
    if rules.refused.match(answer) or not (rules.accepted.match(answer) or rules.taken.search(answer)):
        return False
    return not any(rules.done.search(reply.text) for reply in replies)


def _first_sentence(text: str) -> str:
    return re.split(r"[.!?]", text, maxsplit=1)[0]
