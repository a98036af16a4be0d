"""What a conversation lacks decides which metrics can be measured in it, and which reason the others give.

Conversations that meet the same needs have one profile. It is made once, and stored once in a run. The plan of a log
counts the profiles of its conversations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence, Set
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import DIALOGUE, DIALOGUE_IN_SOUND, Need
from convoscope.metrics.registry import Declared
from convoscope.resources.registry import RECORDING
from convoscope.scores.observation import NOT_APPLICABLE, UNMEASURED, Status
from convoscope.statistics.summary import input_reason, whole_reasons, why_absent

_UNMET, _MET, _BROKEN, _NOT_ASKED = range(4)
_ANSWERS = 4
_DIGITS = "0123456789abcdef"
"""A character of a key holds the answers to two needs."""


class Absence(NamedTuple):
    """What a metric says of every conversation of a profile, without looking."""

    status: Status
    reason: str
    detail: str = ""


class Profile(NamedTuple):
    """Which metrics look at a conversation, and what the others say of it. Metrics are named by their index."""

    key: str
    """The answers to all needs, in short; with the metrics of a run it says everything else."""
    ready: tuple[tuple[int, Metric], ...]
    broken: tuple[tuple[int, Need], ...]
    """Metrics of which the first need that is not met could not be looked for: it raises."""
    derived: tuple[tuple[int, Derived], ...]
    """Figures of one conversation from others of it, each after those that it needs."""
    absent: dict[int, Absence]
    speaking: tuple[tuple[int, Metric], ...]
    """Of the metrics that are ready, those that need not wait for an answer."""
    waiting: tuple[tuple[int, Metric], ...]
    """And those that wait, for many conversations at the same time."""


class _Question:
    """A need that some metric comes to, after what was answered before, and where each answer leads."""

    __slots__ = ("answers", "metric", "need", "next", "present")

    def __init__(self, metric: int, need: Need, index: int, answers: tuple[int, ...]) -> None:
        self.metric = metric
        """Those before it have all answers that they come to."""
        self.need = index
        self.present = need.present
        self.answers = answers
        self.next: dict[int, _Question | Profile] = {}


class Profiles:
    """The profiles of some metrics, made when a conversation first has them.

    Needs are asked one after the other, and only those that a metric comes to: where there is no call, what was
    heard in it is not asked for. Each answer leads to the next question, so that most conversations take a known way.
    """

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = [(index, one) for index, one in enumerate(metrics) if isinstance(one, Metric)]
        self._derived = in_order(metrics)
        all_needs = [_all_needs(metric) for _, metric in self._metrics]
        index_of: dict[int, int] = {}
        for need in (need for needs in all_needs for need in needs if need.present is not None):
            index_of.setdefault(id(need), len(index_of))
        self._count = len(index_of)
        self._needs = {
            metric.key: [(need, index_of.get(id(need))) for need in needs if need.resource not in resources]
            for (_, metric), needs in zip(self._metrics, all_needs, strict=True)
        }
        """Of each metric, with the index of the answer; None where it is never met."""
        self._first = self._after((_NOT_ASKED,) * self._count)

    def of(self, conversation: Conversation) -> Profile:
        """The profile of a conversation."""
        at = self._first
        while type(at) is _Question:
            try:
                answer = _MET if at.present(conversation) else _UNMET  # type: ignore[misc]
            except (Exception, SystemExit):  # a condition that raises is a result of the metrics that ask for it
                answer = _BROKEN
            following = at.next.get(answer)
            if following is None:
                answers = (*at.answers[: at.need], answer, *at.answers[at.need + 1 :])
                following = at.next[answer] = self._after(answers, at.metric)
            at = following
        return at  # type: ignore[return-value]

    def _after(self, answers: tuple[int, ...], first: int = 0) -> _Question | Profile:
        """The next question after these answers; the profile where nothing is left to ask."""
        for position in range(first, len(self._metrics)):
            for need, index in self._needs[self._metrics[position][1].key]:
                if index is None or answers[index] in (_UNMET, _BROKEN):
                    break
                if answers[index] == _NOT_ASKED:
                    return _Question(position, need, index, answers)
        return self._make(answers)

    def with_key(self, key: str) -> Profile:
        """The profile that has this key."""
        return self._make(self._answers(key))

    def first_unmet(self, declared: Metric, key: str) -> Need | None:
        """The first need of a metric that conversations of a profile do not meet; one that raises is not met."""
        return self._first_unmet(declared, self._answers(key))[0]

    def _answers(self, key: str) -> tuple[int, ...]:
        codes = [_DIGITS.index(character) for character in key]
        return tuple(answer for code in codes for answer in (code % _ANSWERS, code // _ANSWERS))[: self._count]

    def _make(self, answers: tuple[int, ...]) -> Profile:
        ready: list[tuple[int, Metric]] = []
        broken: list[tuple[int, Need]] = []
        absent: dict[int, Absence] = {}
        silent: dict[str, Absence] = {}
        for index, declared in self._metrics:
            need, answer = self._first_unmet(declared, answers)
            if need is None:
                ready.append((index, declared))
            elif answer == _BROKEN:
                broken.append((index, need))
            else:
                absent[index] = silent[declared.key] = Absence(need.status_if_missing, need.code, need.detail)
        derived: list[tuple[int, Derived]] = []
        for index, figure in self._derived:
            # Inputs are looked at in their order, and the first without a value says why there is none.
            missing = silent.get(figure.inputs[0])
            instead = figure.instead.get(figure.inputs[0])
            if missing is None or (instead is not None and instead not in silent):
                derived.append((index, figure))
            else:
                absent[index] = silent[figure.key] = derived_absence(missing, figure.inputs[0])
        return Profile(
            _key(answers),
            tuple(ready),
            tuple(broken),
            tuple(derived),
            absent,
            tuple(pair for pair in ready if not pair[1].waits),
            tuple(pair for pair in ready if pair[1].waits),
        )

    def _first_unmet(self, declared: Metric, answers: tuple[int, ...]) -> tuple[Need | None, int]:
        for need, index in self._needs[declared.key]:
            answer = _UNMET if index is None else answers[index]
            if answer != _MET:
                return need, answer
        return None, _MET


def _all_needs(declared: Metric) -> tuple[Need, ...]:
    """A need of a dialogue first, then those of the metric."""
    is_of_sound = set(declared.resources.values()) == {RECORDING}
    return (*(DIALOGUE_IN_SOUND if is_of_sound else DIALOGUE), *declared.needs)


def _has_inputs(figure: Derived, ready: Set[str]) -> bool:
    """Whether each input of a figure can be measured, or what is used instead."""
    return all(key in ready or figure.instead.get(key, "") in ready for key in figure.inputs)


def derived_absence(missing: Absence, key: str) -> Absence:
    """What a figure says of which an input has no value."""
    status = NOT_APPLICABLE if missing.status == NOT_APPLICABLE else UNMEASURED
    return Absence(status, input_reason(missing.reason), key)


def in_order(metrics: Sequence[Declared]) -> list[tuple[int, Derived]]:
    """Figures that are derived within a conversation, each after those that it needs; without those in a circle."""
    waiting = [(index, one) for index, one in enumerate(metrics) if isinstance(one, Derived) and one.over != "group"]
    ordered: list[tuple[int, Derived]] = []
    while ready := [pair for pair in waiting if not any(other.key in pair[1].inputs for _, other in waiting)]:
        ordered += ready
        waiting = [pair for pair in waiting if pair not in ready]
    return ordered


def _key(answers: tuple[int, ...]) -> str:
    pairs = zip(answers[::2], (*answers[1::2], _UNMET), strict=False)
    return "".join(_DIGITS[first + _ANSWERS * second] for first, second in pairs)


class Missing(msgspec.Struct, frozen=True):
    """A need that some conversations do not meet."""

    code: str
    field: str
    unlock: str
    conversations: int
    status: Status


class Planned(msgspec.Struct, frozen=True):
    """One metric: in how many conversations it can be measured, and what is missing in the others."""

    metric: str
    question: str
    conversations: int
    applies_to: int
    missing: tuple[Missing, ...] = ()

    @property
    def reason(self) -> Missing | None:
        """Of several, the gravest, and the commonest of these."""
        _, code = why_absent((one.status, one.code, one.conversations) for one in self.missing)
        return next((one for one in self.missing if one.code == code), None)


class Plan(msgspec.Struct, frozen=True):
    """What these metrics can do with these conversations."""

    conversations: int
    metrics: tuple[Planned, ...]

    @property
    def whole_metrics(self) -> dict[str, Missing | None]:
        """The metrics, without variants and parts, each with why it cannot be measured, as `score` has it."""
        measured = {one.metric.partition("@")[0] for one in self.ready}
        absent = {one.metric: reason for one in self.locked if (reason := one.reason) is not None}
        return whole_reasons([one.metric for one in self.metrics], measured, absent)

    @property
    def ready(self) -> tuple[Planned, ...]:
        return tuple(one for one in self.metrics if one.applies_to)

    @property
    def locked(self) -> tuple[Planned, ...]:
        return tuple(one for one in self.metrics if not one.applies_to)


class Planner:
    """Counts the profiles of conversations, one by one, so that a reader may do something else with them too."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = metrics
        self._profiles = Profiles(metrics, resources)
        self._seen: Counter[str] = Counter()

    def see(self, conversation: Conversation) -> None:
        self._seen[self._profiles.of(conversation).key] += 1

    def plan(self) -> Plan:
        """What the conversations that were seen support; nothing is measured."""
        applies: Counter[str] = Counter()
        missing: dict[str, dict[tuple[str, str], tuple[Need, int]]] = {declared.key: {} for declared in self._metrics}
        for key, count in self._seen.items():
            ready: set[str] = set()
            for declared in self._metrics:
                need = self._profiles.first_unmet(declared, key) if isinstance(declared, Metric) else None
                if need is not None:
                    # Two needs may have one reason, and differ in what they miss.
                    reason = (need.code, need.detail)
                    _, before = missing[declared.key].get(reason, (need, 0))
                    missing[declared.key][reason] = (need, before + count)
                elif isinstance(declared, Metric):
                    ready.add(declared.key)
            derived = [declared for declared in self._metrics if isinstance(declared, Derived)]
            while usable := [one for one in derived if one.key not in ready and _has_inputs(one, ready)]:
                ready.update(one.key for one in usable)
            applies.update(dict.fromkeys(ready, count))
        total = self._seen.total()
        planned = {
            declared.key: Planned(
                declared.key,
                declared.question,
                total,
                applies[declared.key],
                tuple(
                    Missing(need.code, need.field, need.unlock, count, need.status_if_missing)
                    for need, count in missing[declared.key].values()
                ),
            )
            for declared in self._metrics
        }
        waiting = [one for one in self._metrics if isinstance(one, Derived) and not applies[one.key]]
        while first := [one for one in waiting if not any(other.key in one.inputs for other in waiting)]:
            for figure in first:
                inputs = (planned[name] for name in figure.inputs if name in planned)
                absent = next((made.reason for made in inputs if not made.applies_to and made.reason), None)
                if absent is not None:
                    lacks = msgspec.structs.replace(absent, code=input_reason(absent.code))
                    planned[figure.key] = msgspec.structs.replace(planned[figure.key], missing=(lacks,))
            waiting = [one for one in waiting if one not in first]
        return Plan(total, tuple(planned.values()))


def plan(
    metrics: Sequence[Declared], conversations: Iterable[Conversation], resources: frozenset[str] = frozenset()
) -> Plan:
    """What a log supports, from declarations alone: what can be measured, what is missing, what would unlock it."""
    planner = Planner(metrics, resources)
    for conversation in conversations:
        planner.see(conversation)
    return planner.plan()
