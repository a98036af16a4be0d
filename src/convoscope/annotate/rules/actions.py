"""Actions: what a speaker promises, or accepts to do when asked, with who has to do it and the time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from typing import NamedTuple

from convoscope.annotate.rules.descriptions import (
    AGENT_SPEAKS,
    CUSTOMER_SPEAKS,
    PUNCTUATION,
    Focus,
    Promise,
    description,
    due,
    parts,
    verb_forms,
    without_softeners,
)
from convoscope.annotate.rules.sentences import SpokenSentence
from convoscope.annotate.rules.signs import Sign, SignIndex, any_of, expanded, pattern, table
from convoscope.conversation import ASSISTANT, USER, Action

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
def _request_rules() -> _RequestRules:
    return _RequestRules()


class _Turn(NamedTuple):
    """What one speaker says before the next one does, with the numbers of its sentences."""

    by: str
    numbers: list[int]
    text: str


def accepted_requests(texts: Sequence[SpokenSentence]) -> dict[int, list[Promise]]:
    """By the number of its sentence: what is asked for or offered, and then agreed to."""
    turns = _turns(texts)
    accepted = dict[int, list[Promise]]()
    for index, turn in enumerate(turns[:-1]):
        for number in turn.numbers:
            for request in _requests(texts[number]):
                if _is_accepted(turns[index + 1 : index + 3]):
                    time = request.due or due(_first_sentence(turns[index + 1].text))
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
    rules, text = _request_rules(), sentence.text
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
    rules = _request_rules()
    words = without_softeners(text[end:].strip())
    if rules.verbs is None or rules.not_requests is None:
        return
    if rules.verbs.match(words) and not rules.not_requests.match(words):
        yield Promise(words, who, is_own, start, len(text), due(words))


def _is_accepted(replies: Sequence[_Turn]) -> bool:
    """The next one says yes, and no reply says that it is done already."""
    rules = _request_rules()
    answer = replies[0].text
    if rules.refused.match(answer) or not (rules.accepted.match(answer) or rules.taken.search(answer)):
        return False
    return not any(rules.done.search(reply.text) for reply in replies)


def _first_sentence(text: str) -> str:
    return re.split(r"[.!?]", text, maxsplit=1)[0]


ROLES = {USER: "customer", ASSISTANT: "agent"}
UNKNOWN = "unknown"
_REACH = 200
"""Characters before a promise in which something may take it back."""
_MEMORY = 300
"""Characters before a promise in which what it is about may be named."""
_NEAR = 40
"""Characters before a promise in which its time may be."""
_SAME, _NEARBY = 5.0, 1.5
"""How much more a thing weighs that the same promise names, or the same sentence."""
_RECENT = 50
"""So many actions back, a promise may be the same one again."""
_CLAUSE = re.compile(r"[,;:]|\b(?:and|but|so|then)\b", re.IGNORECASE)


class _Lead(NamedTuple):
    who: str
    pattern: Sign
    by: str
    is_light: bool
    is_timed: bool
    """A promise only where a later time is said: "I'm sending it tonight"."""
    is_doing: bool
    """A promise only where a known verb follows: "the bill will come" is no promise."""


class _ActionRules:
    """The data, compiled."""

    def __init__(self) -> None:
        data, index = table("actions"), SignIndex()
        self.leads = [
            _Lead(
                lead["who"],
                index.sign(lead["pattern"], cased=lead.get("cased", False)),
                lead.get("by", ""),
                lead.get("light", False),
                lead.get("timed", False),
                lead.get("doing", False),
            )
            for lead in data["leads"]
        ]
        not_promises = data["not_promises"]
        self.never = any_of(not_promises["never"])
        self.on_call = any_of(not_promises["on_call"])
        self.never_of_users = any_of(not_promises["user"])
        self.on_call_of_users = any_of(not_promises["user_on_call"])
        self.light = any_of(not_promises["kept_when_light"])
        self.done = pattern(data["requests"]["done_at_once"])
        self.habits = frozenset(data["description"]["habits"])
        self.verbs = verb_forms(data["description"]["verbs"])
        self.reported = pattern(data["reported"]["clause"])
        self.next_to = re.compile(rf"\b{data['reported']['beside']} $", re.IGNORECASE)
        self.user_start = pattern(data["reported"]["user_start"])
        self.participles: dict[str, str] = data["passive"]["participles"]
        participles = "|".join(sorted(self.participles, key=len, reverse=True))
        self.doer = re.compile(r"by (?:our|the|my) (?:[\w-]+ )?[\w-]+\s*", re.IGNORECASE)
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
        if promises and _is_done_immediately(texts[number + 1 : number + 2], sentence.seq):
            promises = []
        for promise in promises:
            before = focus.copy()
            before.read(sentence.text[max(0, promise.start - _MEMORY) : promise.start], _NEARBY)
            for action in _actions_of(promise, sentence, before):
                _add(kept, action)
        focus.read(sentence.text)
    return tuple(kept)


def _is_done_immediately(after: Sequence[SpokenSentence], seq: int) -> bool:
    """`I'll block it. Done.`"""
    return any(one.seq == seq and _rules().done.match(one.text) is not None for one in after)


def _add(kept: list[Action], action: Action) -> None:
    """An action that was promised before, in the same words or more of them, is the same action."""
    words = action.description.casefold()
    for index in range(max(0, len(kept) - _RECENT), len(kept)):
        other = kept[index]
        before = other.description.casefold()
        if other.assignee_role == action.assignee_role and (before.startswith(words) or words.startswith(before)):
            kept[index] = other if len(before) >= len(words) else action
            return
    kept.append(action)


def _actions_of(promise: Promise, sentence: SpokenSentence, focus: Focus) -> Iterator[Action]:
    sides = CUSTOMER_SPEAKS if sentence.by == USER else AGENT_SPEAKS
    for words in parts(promise.words):
        text = description(words, sides, focus)
        focus.read(words, _SAME)
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
    """What follows the beginning of each promise, up to the next one."""
    text = sentence.text
    if text.endswith("?"):
        return
    begins = sorted(
        ((match.start(), match.end(), lead) for lead in _rules().leads for match in lead.pattern.finditer(text)),
        key=lambda begin: begin[0],
    )
    begins = _beginnings(begins, text)
    speaker, has_promise = ROLES.get(sentence.by, UNKNOWN), False
    for number, (start, end, lead) in enumerate(begins):
        stop = begins[number + 1][0] if number + 1 < len(begins) else len(text)
        words = _with_verb(lead, text[end:stop].strip())
        if _is_promise(lead, text[:start], words, sentence):
            who = speaker if lead.who == "self" else "customer" if speaker == "customer" else lead.who
            is_own = lead.who == "self" or who == "customer"
            has_promise = True
            yield Promise(words, who, is_own, start, stop, _due_before(text[:start]))
    if not has_promise and sentence.by != USER:
        yield from _passive_promise(text)


def _beginnings(begins: Sequence[tuple[int, int, _Lead]], text: str) -> list[tuple[int, int, _Lead]]:
    """Those that begin something: "the web team" of `I'll pass it to the web team` does not."""
    kept = list[tuple[int, int, _Lead]]()
    for start, end, lead in begins:
        if kept and start < kept[-1][1]:
            continue
        if lead.is_timed or lead.is_doing:
            follows = bool(kept) and not _CLAUSE.search(text[kept[-1][1] : start])
            if follows or not _with_verb(lead, text[end:].strip()):
                continue
        kept.append((start, end, lead))
    return kept


def _with_verb(lead: _Lead, words: str) -> str:
    """What follows a beginning, with its verb in the plain form; "" where none that is known begins it."""
    if not (lead.is_timed or lead.is_doing):
        return words
    plain = without_softeners(words)
    first, _, rest = plain.partition(" ")
    verb = _rules().verbs.get(first.casefold().strip(PUNCTUATION))
    if lead.is_timed and lead.is_doing and verb in _rules().habits:
        return ""
    return f"{verb} {rest}" if verb else ""


def _passive_promise(text: str) -> Iterator[Promise]:
    """`Your card will be replaced on Friday` is "replace your card on Friday", and has no owner."""
    rules = _rules()
    match = rules.passive.search(text)
    if match is None or rules.reported.search(_clause(text[: match.start()])):
        return
    verb, *particles = rules.participles[match["done"].casefold()].split()
    what = match["what"].strip()
    particle, rest = (match["particle"] or "").strip(), text[match.end() :].strip()
    doer = rules.doer.match(rest)
    rest = rest[doer.end() :] if doer else rest
    words = " ".join((verb, *particles, particle, what[0].lower() + what[1:], rest)).replace("  ", " ")
    yield Promise(words, "team" if doer else UNKNOWN, False, match.start(), len(text))


def _is_promise(lead: _Lead, before: str, words: str, sentence: SpokenSentence) -> bool:
    rules = _rules()
    if lead.by and sentence.by not in (lead.by, ""):
        return False
    if lead.is_timed and not (due(words.partition(", and ")[0]) or _due_before(before)):
        return False
    plain = without_softeners(words)
    if not plain.strip(PUNCTUATION) or rules.reported.search(_clause(before)) or rules.next_to.search(before[-20:]):
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
    """The end of a text since its last comma or conjunction."""
    return _CLAUSE.split(text[-_REACH:])[-1]
