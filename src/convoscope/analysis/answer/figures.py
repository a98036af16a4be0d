"""The few figures that matter most: by importance and coverage, never by the alphabet."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from convoscope.analysis.answer.model import KeyFigure, Noun, Verdict, metric_label
from convoscope.analysis.targets import Check, target_text
from convoscope.analysis.words import name_text
from convoscope.metrics.declaration import NEITHER, SECONDS
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.statistics.summary import Figure

MOST = 8
MOST_OF_A_FAMILY = 2
"""Metrics of one family, or of one component of the agent, move together: two of them are enough."""
LEAST_N = 20
TARGET_COUNTS = 3
SLOWEST = "p95"


def chosen_figures(summary: Summary, checks: Sequence[Check], noun: Noun) -> list[KeyFigure]:
    """At most eight, the most important first."""
    targets = {check.name: check for check in checks}
    ranked = sorted(
        ((_weight(figure, declared, targets), figure, declared) for figure, declared in _candidates(summary, targets)),
        key=lambda one: -one[0],
    )
    enough = [one for one in ranked if one[1].n >= LEAST_N or name_text(one[1]) in targets] or ranked
    families: dict[str, int] = {}
    twins: set[tuple[float, int]] = set()
    chosen: list[KeyFigure] = []
    for weight, figure, declared in enough:
        named = name_text(figure) in targets
        family = declared.component or declared.family
        twin = (round(figure.value or 0.0, 6), figure.n)  # the same number of the same things says nothing new
        if twin in twins and not named:
            continue
        if weight > 0 and len(chosen) < MOST and (named or families.get(family, 0) < MOST_OF_A_FAMILY):
            twins.add(twin)
            families[family] = families.get(family, 0) + 1
            chosen.append(_key_figure(figure, declared, targets, noun))
    return chosen


def _weight(figure: Figure, declared: DeclaredMetric, targets: dict[str, Check]) -> float:
    importance = declared.importance + (TARGET_COUNTS if name_text(figure) in targets else 0)
    return importance * math.sqrt(_coverage(figure))


def _coverage(figure: Figure) -> float:
    """The smaller of the conversations, and the turns, calls or items, that have a value."""
    return min(figure.coverage or 0.0, figure.subject_coverage)


def _candidates(summary: Summary, targets: dict[str, Check]) -> Iterator[tuple[Figure, DeclaredMetric]]:
    """Headlines with a direction; of waits the slowest. Parts, published variants and the like are left to ours."""
    names = {declared.name for declared in summary.declared}
    measured = {figure.key for figure in summary.figures if figure.value is not None}
    slowest = {one.key: one for one in summary.figures if one.reduction == SLOWEST and one.value is not None}
    for figure in summary.figures:
        declared = summary.by_key.get(figure.key)
        if declared is None or figure.value is None:
            continue
        if name_text(figure) in targets:
            yield figure, declared
            continue
        is_twin = parent_metric(figure.metric, names) or figure.variant in PUBLISHED
        made_of_others = any(name in measured for name in declared.inputs)
        if figure.reduction or figure.better == NEITHER or is_twin or made_of_others or declared.observes == "group":
            continue
        slow = slowest.get(figure.key) if figure.unit == SECONDS else None
        yield (slow if slow is not None and name_text(slow) not in targets else figure), declared


def _key_figure(figure: Figure, declared: DeclaredMetric, targets: dict[str, Check], noun: Noun) -> KeyFigure:
    check = targets.get(name_text(figure))
    label = metric_label(declared, noun)
    if figure.reduction == SLOWEST:
        label += ", slowest 5 %"
    mark = declared.ten_points
    return KeyFigure(
        name=name_text(figure),
        label=label,
        unit=figure.unit,
        better=figure.better,
        value=figure.value or 0.0,
        low=figure.interval.low if figure.interval else None,
        high=figure.interval.high if figure.interval else None,
        n=figure.n,
        coverage=_coverage(figure),
        target="" if check is None else target_text(check.target, figure.unit),
        verdict="" if check is None else _verdict(check),
        met=None if check is None else check.verdict.outcome == "met",
        passes=None if mark is None or figure.ten is None else figure.ten >= mark.passes_at,
    )


def _verdict(check: Check) -> Verdict:
    if check.verdict.outcome == "undetermined":
        return ""
    if not check.verdict.sure:
        return "too close"
    return "met" if check.verdict.outcome == "met" else "missed"
