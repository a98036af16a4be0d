"""Domain, intent, acts and slots of a turn, predicted against true (dialogue, 1.1 to 1.6)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import NamedTuple

from convoscope.metrics.dialogue.values import State

_GENERAL = "general-"
_NO_SLOTS: dict[str, str] = {}
NO_INTENT = "none"


class SetMatch(NamedTuple):
    """Two sets compared: what both have, what was predicted, what is true."""

    is_equal: bool
    right: int
    predicted: int
    true: int

    @property
    def recall(self) -> float:
        """1 where nothing is true and nothing was predicted; 0 where nothing is true and something was."""
        return self.right / self.true if self.true else float(self.is_equal)

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else float(self.is_equal)

    @property
    def f1(self) -> float:
        return 2 * self.right / (self.predicted + self.true) if self.predicted + self.true else 1.0


class PairCount(NamedTuple):
    """How many slot-value pairs there are, and how many of them are right (or wrong)."""

    number: int
    total: int

    @property
    def share(self) -> float | None:
        """None where there are no pairs."""
        return self.number / self.total if self.total else None


def intent_domain(intent: str) -> str:
    """The domain of an intent: what follows its last underscore, or all of it (dialogue, 1.1)."""
    return intent.rpartition("_")[2].casefold()


def is_intent(intent: str) -> bool:
    """Whether it is an intent at all: annotations write NONE where there is none."""
    return bool(intent) and intent.casefold() != NO_INTENT


def folded(names: Iterable[str]) -> frozenset[str]:
    """Names as a set, in small letters."""
    return frozenset([name.strip().casefold() for name in names])


def domain_is_right(predicted: Collection[str], true: Collection[str]) -> bool:
    """Whether the turn was routed to a domain with an active intent, and to none besides."""
    return bool(predicted) and all(domain in true for domain in predicted)


@lru_cache(65536)
def match_domains(predicted: tuple[str, ...], true: tuple[str, ...]) -> tuple[bool, bool]:
    """Whether the routing is right, and whether it is to the first of the true domains."""
    return domain_is_right(predicted, true), predicted[:1] == true[:1]


@lru_cache(65536)
def match_sets(predicted: frozenset[str], true: frozenset[str]) -> SetMatch:
    """Intents or act types as sets: order does not matter, and only equal sets are right."""
    if predicted == true:
        return SetMatch(True, len(true), len(true), len(true))
    return SetMatch(False, len(predicted & true), len(predicted), len(true))


@lru_cache(65536)
def without_general(acts: frozenset[str]) -> frozenset[str]:
    """Acts without greetings, thanks and goodbyes."""
    return frozenset([act for act in acts if not act.startswith(_GENERAL)])


@lru_cache(65536)
def match_acts(predicted: frozenset[str], true: frozenset[str]) -> tuple[SetMatch, bool]:
    """Act types as sets, and whether they are equal without greetings, thanks and goodbyes."""
    return match_sets(predicted, true), without_general(predicted) == without_general(true)


def matching_pairs(predicted: State, true: State) -> int:
    """How many (domain, slot, value) both states hold."""
    right = 0
    for domain, slots in true.items():
        ours = predicted.get(domain)
        if ours is not None:
            right += len(slots) if ours is slots or ours == slots else len(ours.items() & slots.items())
    return right


def pairs(state: State) -> int:
    """How many (domain, slot, value) a state holds."""
    return sum(map(len, state.values()))


class StateMatch(NamedTuple):
    """Two states compared in one look."""

    slots: PairCount
    is_equal: bool
    invented: PairCount


_MANY = 256
_EQUAL = [StateMatch(PairCount(number, number), True, PairCount(0, number)) for number in range(_MANY)]
"""What comes of states that are equal, by the number of their pairs: most are, and it is looked up."""


def match_states(predicted: State, true: State) -> StateMatch:
    """Slot recall, joint goal and invented pairs of two states."""
    expected = sum(map(len, true.values()))
    if predicted == true:
        if expected < _MANY:
            return _EQUAL[expected]
        return StateMatch(PairCount(expected, expected), True, PairCount(0, expected))
    right, total = matching_pairs(predicted, true), sum(map(len, predicted.values()))
    return StateMatch(_pair(right, expected), False, _pair(total - right, total))


@lru_cache(65536)
def _pair(number: int, total: int) -> PairCount:
    return PairCount(number, total)


def invented_pairs(predicted: State, true: State, domains: Collection[str] | None = None) -> PairCount:
    """Predicted pairs that are not true, of all predicted ones: in the given domains, or in all."""
    if domains is not None and len(domains) == 1:
        (domain,) = domains
        ours, gold = predicted.get(domain, _NO_SLOTS), true.get(domain, _NO_SLOTS)
        return _pair(0 if ours == gold else len(ours) - len(ours.items() & gold.items()), len(ours))
    if domains is not None:
        predicted = {domain: predicted[domain] for domain in domains if domain in predicted}
    total = pairs(predicted)
    return _pair(total - matching_pairs(predicted, true), total)
