"""Metrics that had nothing to measure in a run, gathered, so that the others can be seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from convoscope.analysis.words import counted, name_text, reason_text
from convoscope.metrics.parts import parent_metric
from convoscope.runs.summary import Group, Summary
from convoscope.scores.observation import ERROR
from convoscope.statistics.summary import Figure

FEW = 4
"""So many without a value are named; of more, it is said how many they are."""
REASONS = 3
"""Reasons that are told, the most frequent first."""


class UnmeasuredFigures(NamedTuple):
    """The figures of one family that have no value, and why."""

    family: str
    names: Sequence[str]
    reasons: Mapping[str, int]

    @property
    def text(self) -> str:
        names = (
            ", ".join(self.names)
            if len(self.names) <= FEW
            else f"{counted(len(self.names), 'figure')} of {self.family}"
        )
        reasons = [reason_text(reason) for reason in list(self.reasons)[:REASONS]]
        return f"{names} ({', '.join(reasons)}{', …' if len(self.reasons) > REASONS else ''})"


class VisibleFigures(NamedTuple):
    """The figures of a run that are worth a row each, those of their parts, and the rest."""

    figures: Sequence[Figure]
    parts: Sequence[Figure]
    silent: Sequence[UnmeasuredFigures]


def visible_figures(summary: Summary, targeted: Collection[str] = ()) -> VisibleFigures:
    """Figures with a value, and those without that somebody should see.

    A figure without a value gives up its row, and is told with the others of its family. One that broke,
    or that a target asks for, keeps it. Where nothing at all was measured, everything is shown.
    """
    figures = summary.figures
    names = {figure.metric for figure in figures}
    if all(figure.value is None for figure in figures):
        return VisibleFigures(figures, (), ())
    rows: list[Figure] = []
    parts: list[Figure] = []
    unmeasured: dict[str, list[Figure]] = {}
    for figure in figures:
        is_part = bool(parent_metric(figure.metric, names)) and figure.judge != "(derived)"
        if name_text(figure) in targeted or figure.status == ERROR:
            rows.append(figure)
        elif figure.value is None:
            unmeasured.setdefault(_family(figure), []).append(figure)
        elif is_part:
            parts.append(figure)
        else:
            rows.append(figure)
    return VisibleFigures(rows, parts, [_silence(family, mine) for family, mine in unmeasured.items()])


def headlines(summary: Summary, groups: Sequence[Group]) -> list[Figure]:
    """The figures that stand at the head of a table of groups: no part of another, with a value in one of them."""
    valued = {name_text(one) for group in groups for one in group.metrics if one.value is not None}
    return [
        one
        for one in visible_figures(summary).figures
        if not one.reduction and one.value is not None and name_text(one) in valued
    ]


def _family(figure: Figure) -> str:
    return str(figure.metric.split(".", 1)[0])


def _silence(family: str, figures: Sequence[Figure]) -> UnmeasuredFigures:
    names = list(dict.fromkeys(name_text(figure) for figure in figures))
    reasons = Counter(figure.reason for figure in figures)
    return UnmeasuredFigures(family, names, dict(reasons.most_common()))
