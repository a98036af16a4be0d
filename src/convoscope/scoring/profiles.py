"""Absence is a plan: what a conversation lacks decides which metrics can speak of it, and what the others say.

Conversations that meet the same needs have one profile. It is made once, and stored once in a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need, together
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import NOT_APPLICABLE, UNMEASURED, Status
from convoscope.statistics.summary import input_reason

_UNMET, _MET, _BROKEN = 0, 1, 2
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_PER_DIGIT = 3
"""Needs that share a character of a key: each has three answers, and 27 of 36 characters are used."""


class Absence(NamedTuple):
    """What a metric says of every conversation of a profile, without looking."""

    status: Status
    reason: str
    detail: str = ""


class Profile(NamedTuple):
    """Which metrics look at a conversation, and what the others say of it. Metrics are named by their place."""

    key: str
    """The answers to all needs, in short; with the metrics of a run it says everything else."""
    ready: tuple[tuple[int, Metric], ...]
    broken: tuple[tuple[int, Need], ...]
    """Metrics of which the first need that is not met could not be looked for: it raises."""
    derived: tuple[tuple[int, Derived], ...]
    """Figures of one conversation from others of it, each after those that it needs."""
    absent: dict[int, Absence]


class Profiles:
    """The profiles of some metrics, made when a conversation first has them."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._resources = resources
        self._metrics = [(place, one) for place, one in enumerate(metrics) if isinstance(one, Metric)]
        self._derived = in_order(metrics)
        needs: dict[int, Need] = {}
        for _, one in self._metrics:
            needs.update((id(need), need) for need in one.needs if need.present is not None)
        self._place = {key: place for place, key in enumerate(needs)}
        self._needs = list(needs.values())
        self._answers = together([need.present for need in self._needs if need.present is not None])
        self._known: dict[tuple[int, ...], Profile] = {}

    def of(self, conversation: Conversation) -> Profile:
        """The profile of a conversation."""
        try:
            answers: tuple[int, ...] = tuple(map(bool, self._answers(conversation)))
        except (Exception, SystemExit):  # a condition that raises is a result of the metrics that ask for it
            answers = tuple([self._answer(need, conversation) for need in self._needs])
        profile = self._known.get(answers)
        if profile is None:
            profile = self._known[answers] = self._make(answers)
        return profile

    def _answer(self, need: Need, conversation: Conversation) -> int:
        try:
            return _MET if need.met(conversation, self._resources) else _UNMET
        except (Exception, SystemExit):
            return _BROKEN

    def with_key(self, key: str) -> Profile:
        """The profile that has this key."""
        answers: list[int] = []
        for character in key:
            code = _DIGITS.index(character)
            answers += [code % 3, code // 3 % 3, code // 9]
        return self._make(tuple(answers[: len(self._needs)]))

    def _make(self, answers: tuple[int, ...]) -> Profile:
        ready: list[tuple[int, Metric]] = []
        broken: list[tuple[int, Need]] = []
        absent: dict[int, Absence] = {}
        silent: dict[str, Absence] = {}
        for place, declared in self._metrics:
            need, answer = self._first_unmet(declared, answers)
            if need is None:
                ready.append((place, declared))
            elif answer == _BROKEN:
                broken.append((place, need))
            else:
                absent[place] = silent[declared.key] = Absence(need.otherwise, need.code, need.detail)
        derived: list[tuple[int, Derived]] = []
        for place, figure in self._derived:
            # Inputs are looked at in their order, and the first without a value says why there is none.
            missing = silent.get(figure.inputs[0])
            if missing is None:
                derived.append((place, figure))
            else:
                absent[place] = silent[figure.key] = derived_absence(missing, figure.inputs[0])
        return Profile(_key(answers), tuple(ready), tuple(broken), tuple(derived), absent)

    def _first_unmet(self, declared: Metric, answers: tuple[int, ...]) -> tuple[Need | None, int]:
        for need in declared.needs:
            place = self._place.get(id(need))
            answer = answers[place] if place is not None else int(need.resource in self._resources)
            if answer != _MET:
                return need, answer
        return None, _MET


def derived_absence(missing: Absence, key: str) -> Absence:
    """What a figure says of which an input has no value."""
    status = NOT_APPLICABLE if missing.status == NOT_APPLICABLE else UNMEASURED
    return Absence(status, input_reason(missing.reason), key)


def in_order(metrics: Sequence[Declared]) -> list[tuple[int, Derived]]:
    """Figures that are derived within a conversation, each after those that it needs; without those in a circle."""
    waiting = [(place, one) for place, one in enumerate(metrics) if isinstance(one, Derived) and one.over != "group"]
    ordered: list[tuple[int, Derived]] = []
    while ready := [pair for pair in waiting if not any(other.key in pair[1].inputs for _, other in waiting)]:
        ordered += ready
        waiting = [pair for pair in waiting if pair not in ready]
    return ordered


def _key(answers: tuple[int, ...]) -> str:
    characters: list[str] = []
    for start in range(0, len(answers), _PER_DIGIT):
        some = answers[start : start + _PER_DIGIT]
        characters.append(_DIGITS[sum(answer * 3**place for place, answer in enumerate(some))])
    return "".join(characters)
