"""What a log supports, from declarations alone: what can be measured, what is missing, what would unlock it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import Metric
from convoscope.metrics.needs import DIALOGUE, Need
from convoscope.metrics.registry import Declared


class Missing(msgspec.Struct, frozen=True):
    """A need that some conversations do not meet."""

    code: str
    field: str
    unlock: str
    conversations: int
    status: str


class Planned(msgspec.Struct, frozen=True):
    """One metric: in how many conversations it can speak, and what keeps it silent in the others."""

    metric: str
    question: str
    conversations: int
    applies_to: int
    missing: tuple[Missing, ...] = ()


class Plan(msgspec.Struct, frozen=True):
    """What these metrics can do with these conversations."""

    conversations: int
    metrics: tuple[Planned, ...]

    @property
    def ready(self) -> tuple[Planned, ...]:
        return tuple(one for one in self.metrics if one.applies_to)

    @property
    def locked(self) -> tuple[Planned, ...]:
        return tuple(one for one in self.metrics if not one.applies_to)


def plan(
    metrics: Sequence[Declared], conversations: Iterable[Conversation], resources: frozenset[str] = frozenset()
) -> Plan:
    """Check each metric's needs against each conversation; nothing is measured."""
    planner = Planner(metrics, resources)
    for conversation in conversations:
        planner.see(conversation)
    return planner.plan()


class Planner:
    """Looks at conversations one by one, so that a reader may do something else with them too."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = metrics
        self._resources = resources
        self._seen = 0
        self._applies: Counter[str] = Counter()
        self._missing: dict[str, dict[str, tuple[Need, int]]] = {declared.key: {} for declared in metrics}

    def see(self, conversation: Conversation) -> None:
        self._seen += 1
        met: dict[int, bool] = {}
        can = {one.key for one in self._metrics if isinstance(one, Metric) and self._check(one, conversation, met)}
        waiting = [one for one in self._metrics if not isinstance(one, Metric)]
        while ready := [one for one in waiting if can.issuperset(one.inputs)]:
            can.update(one.key for one in ready)
            waiting = [one for one in waiting if one not in ready]
        self._applies.update(can)

    def _check(self, declared: Metric, conversation: Conversation, met: dict[int, bool]) -> bool:
        for need in (*DIALOGUE, *declared.needs):
            if id(need) not in met:
                met[id(need)] = self._is_met(need, conversation)
            if not met[id(need)]:
                # Two needs may have one reason, and differ in what they miss.
                reason = f"{need.code} {need.detail}"
                _, count = self._missing[declared.key].get(reason, (need, 0))
                self._missing[declared.key][reason] = (need, count + 1)
                return False
        return True

    def _is_met(self, need: Need, conversation: Conversation) -> bool:
        try:
            return need.met(conversation, self._resources)
        except Exception:  # a condition that cannot be checked is not met
            return False

    def plan(self) -> Plan:
        return Plan(
            self._seen,
            tuple(
                Planned(
                    declared.key,
                    declared.question,
                    self._seen,
                    self._applies[declared.key],
                    tuple(
                        Missing(need.code, need.field, need.unlock, count, need.status_if_missing)
                        for need, count in self._missing[declared.key].values()
                    ),
                )
                for declared in self._metrics
            ),
        )
