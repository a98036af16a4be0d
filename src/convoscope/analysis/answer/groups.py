"""Groups that differ from the rest, and versions that differ from each other, after correction for many looks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from convoscope.analysis.answer.model import GroupApart, Noun, metric_label
from convoscope.analysis.words import cut_text, name_text, value_text
from convoscope.metrics.declaration import HIGHER, NEITHER
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.summary import DeclaredMetric, Group, Summary
from convoscope.statistics.intervals import Z
from convoscope.statistics.summary import Figure

LEVEL = 0.05
MOST = 5
LEAST_IMPORTANCE = 5
"""Of what is said of two versions: that one of them takes fewer words is no verdict."""
LEAST_CONVERSATIONS = 10
MIN_CLUSTERS = 5
"""An interval from fewer independent clusters says too little to set a group apart."""
VERSIONS = ("version", "agent_version", "release", "agent", "model", "variant")
"""Dimensions whose values are versions of an agent, the first that is there."""


class Groups(NamedTuple):
    """Those that stand apart, and one sentence on the others."""

    apart: tuple[GroupApart, ...]
    alike: str


class Difference(NamedTuple):
    """Two versions in one figure."""

    before: str
    after: str
    figure: Figure
    """Of the later version."""
    earlier: Figure
    declared: DeclaredMetric
    p: float

    @property
    def worse(self) -> bool:
        return _is_worse(self.figure, (self.earlier.value or 0.0))


def groups_apart(summary: Summary, noun: Noun) -> Groups:
    """Groups whose figure differs from that of the run, corrected by Holm; of two opposite groups only the worse."""
    whole = {name_text(figure): figure for figure in summary.metrics}
    looks = [
        (group, figure, reference, _probability(figure, reference.value))
        for group in summary.groups
        if group.conversations >= LEAST_CONVERSATIONS and "state" not in group.by  # states have a place of their own
        for figure in comparable(group, summary.conversations)
        if summary.by_key[figure.key].importance >= LEAST_IMPORTANCE
        and (reference := whole.get(name_text(figure))) is not None
        and reference.value is not None
    ]
    kept = holm([p for *_, p in looks])
    apart = [
        _apart(summary, group, figure, reference, noun)
        for (group, figure, reference, _), holds in sorted(
            zip(looks, kept, strict=True), key=lambda one: (one[0][3], one[0][0].conversations)
        )
        if holds and _is_worse(figure, reference.value or 0.0)
    ]
    unlike = {tuple(one.by.items()) for one in apart}
    once = {tuple(one.by.items()): one for one in reversed(apart)}  # of each group the surest difference
    apart = [one for one in apart if once[tuple(one.by.items())] is one]
    # Of states and other pairs there are many: the picture of the flow tells of them.
    single = [one.by for one in summary.groups if len(one.by) == 1 and tuple(one.by.items()) not in unlike]
    like = [cut_text(value, 20) for by in single for value in by.values()]
    alike = (
        f"Like the rest: {', '.join(dict.fromkeys(like[:8]))}{' and others' if len(like) > 8 else ''}." if like else ""
    )
    return Groups(tuple(apart[:MOST]), alike)


def _apart(summary: Summary, group: Group, figure: Figure, reference: Figure, noun: Noun) -> GroupApart:
    where = " and ".join(f"{name} {value}" for name, value in group.by.items())
    label = metric_label(summary.by_key[figure.key], noun)
    values = f"{value_text(figure.value, figure.unit)} against {value_text(reference.value, figure.unit)} of all"
    return GroupApart(
        by=group.by,
        conversations=group.conversations,
        sentence=f"{where}: {label} {values}",
        worse=True,
        figure=name_text(figure),
    )


def versions_apart(summary: Summary) -> list[Difference]:
    """Where the later of two versions differs from the earlier, after correction; the surest first."""
    pair = _two_versions(summary)
    if pair is None:
        return []
    (before, after), (earlier, later) = pair
    old = {name_text(figure): figure for figure in comparable(earlier, summary.conversations)}
    differences = []
    for figure in comparable(later, summary.conversations):
        other = old.get(name_text(figure))
        declared = summary.by_key.get(figure.key)
        if other is not None and declared is not None and declared.importance >= LEAST_IMPORTANCE:
            differences.append(
                Difference(before, after, figure, other, declared, _probability(figure, other.value, other))
            )
    kept = holm([one.p for one in differences])
    surest = [one for one, holds in zip(differences, kept, strict=True) if holds]
    return sorted(surest, key=lambda one: (-one.declared.importance, one.p))


def _two_versions(summary: Summary) -> tuple[tuple[str, str], tuple[Group, Group]] | None:
    for name in VERSIONS:
        groups = [one for one in summary.groups if list(one.by) == [name]]
        if len(groups) == 2 and all(one.conversations >= LEAST_CONVERSATIONS for one in groups):
            earlier, later = sorted(groups, key=lambda one: one.by[name])
            return (earlier.by[name], later.by[name]), (earlier, later)
    return None


def comparable(group: Group, conversations: int) -> Iterator[Figure]:
    """The figures of a group that can be held against others: headlines with a direction and an interval that tells."""
    if group.conversations == conversations:
        return
    names = {figure.metric for figure in group.metrics}
    for figure in group.metrics:
        is_part = figure.variant in PUBLISHED or parent_metric(figure.metric, names)
        if not figure.reduction and _tells(figure) and not is_part:
            yield figure


def _tells(figure: Figure) -> bool:
    interval = figure.interval
    return figure.better != NEITHER and interval is not None and interval.clusters >= MIN_CLUSTERS


def holm(probabilities: Sequence[float]) -> list[bool]:
    """Which of many differences hold, if the chance of any false one is to stay at 5 %."""
    order = sorted(range(len(probabilities)), key=lambda place: probabilities[place])
    kept = [False] * len(probabilities)
    for rank, place in enumerate(order):
        if probabilities[place] * (len(probabilities) - rank) > LEVEL:
            break
        kept[place] = True
    return kept


def _probability(figure: Figure, value: float | None, other: Figure | None = None) -> float:
    """How likely so large a difference is by chance, by the errors that the intervals tell."""
    error = math.hypot(_error(figure), _error(other) if other is not None else 0.0)
    if value is None or figure.value is None or not error or math.isinf(error):
        return 1.0
    return math.erfc(abs(figure.value - value) / error / math.sqrt(2))


def _error(figure: Figure) -> float:
    """A standard error that is no smaller than the interval tells: few degrees of freedom widen it."""
    interval = figure.interval
    return math.inf if interval is None else (interval.highest - interval.lowest) / (2 * Z)


def _is_worse(figure: Figure, value: float) -> bool:
    return ((figure.value or 0.0) < value) == (figure.better == HIGHER)
