"""The figures of a run for terminal, Markdown and page: which are worth a row, their headings, and their tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from convoscope.analysis.answer.figures import few_clusters
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.targets import Check, observed
from convoscope.analysis.words import (
    NOTHING,
    counted,
    coverage_text,
    interval_text,
    name_text,
    points_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.metrics.declaration import COMPONENTS
from convoscope.metrics.registry import parent_metric
from convoscope.report.table import ReportTable, TableCell, TableColumn, number_column
from convoscope.runs.reliability import claims_nothing, reliability
from convoscope.runs.summary import Group, SmallGroups, Summary
from convoscope.scores.observation import ERROR
from convoscope.statistics.summary import Figure

FEW = 4
"""So many without a value are named; of more, it is said how many they are."""
REASONS = 3
"""Reasons that are named, the most frequent first."""


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
    """Figures with a value, and those without that should be seen.

    A figure without a value gives up its row, and is named with the others of its family. One that broke,
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
            unmeasured.setdefault(figure.metric.split(".", 1)[0], []).append(figure)
        else:
            (parts if is_part else rows).append(figure)
    silent = []
    for family, group in unmeasured.items():
        reasons = Counter(figure.reason for figure in group).most_common()
        silent.append(UnmeasuredFigures(family, list(dict.fromkeys(map(name_text, group))), dict(reasons)))
    return VisibleFigures(rows, parts, silent)


def headlines(summary: Summary, groups: Sequence[Group]) -> list[Figure]:
    """The figures at the head of a table of groups: no part of another, with a value in one of them.

    Groups that only parts of metrics have, such as failure modes, have these.
    """
    valued = {name_text(one): one for group in groups for one in group.metrics if one.value is not None}
    wholes = [
        one
        for one in visible_figures(summary).figures
        if not one.reduction and one.value is not None and name_text(one) in valued
    ]
    return wholes or [valued[name] for name in sorted(valued)]


class FigureSection(NamedTuple):
    """The figures of a family, or those of them that test one component."""

    family: str
    component: str
    figures: list[Figure]

    @property
    def title(self) -> str:
        return f"{self.family}: {self.component}" if self.component else self.family


def main_component(component: str) -> str:
    """The component that a metric tests first of all: it may name several."""
    return component.partition(",")[0]


def component_rank(component: str) -> int:
    """Where a component is on the way through a system; after all others where it is not known."""
    name = main_component(component)
    return COMPONENTS.index(name) if name in COMPONENTS else len(COMPONENTS)


def sections(summary: Summary, figures: Iterable[Figure]) -> list[FigureSection]:
    """The figures by family and component. Families stay in their order; components go from triage to end-to-end."""
    by_title: dict[str, dict[str, list[Figure]]] = {}
    for figure in figures:
        declared = summary.by_key.get(figure.key)
        component = main_component(declared.component) if declared else ""
        by_title.setdefault(figure.metric.split(".", 1)[0], {}).setdefault(component, []).append(figure)
    return [
        FigureSection(family, component, components[component])
        for family, components in by_title.items()
        for component in sorted(components, key=component_rank)
    ]


def small_text(small: SmallGroups) -> str:
    """The groups of a dimension that are too small for figures, in words."""
    groups = counted(small.groups, "group")
    conversations = counted(small.conversations, "conversation")
    names = " and ".join(small.by)
    by = ",".join(small.by)
    return f"by {names}: {groups} of fewer than {small.minimum} ({conversations}) left out; `--by {by}` has them"


MAX_GROUPS = 12


def interval_and_clusters(figure: Figure, summary: Summary, noun: Noun = "conversation") -> str:
    """The 95 % interval, and how few clusters make it wide."""
    return ", ".join(filter(None, (interval_text(figure), few_clusters(figure, summary.clusters, noun))))


def calibration_text(summary: Summary, figure: Figure) -> str:
    """`κ 0.61 (0.48 to 0.72), 69 labels`, `not calibrated`; nothing where no judge is behind a figure."""
    judged = reliability(summary, figure) if figure.value is not None else None
    return judged.text if judged is not None else ""


class FigureRows:
    """Figures as rows: with points of ten where one of them has any, with targets where one is held against them."""

    def __init__(self, summary: Summary, figures: Sequence[Figure], checks: Sequence[Check]) -> None:
        self._summary = summary
        self._has_points = any(figure.ten is not None for figure in figures)
        self._judged = {name_text(figure): calibration_text(summary, figure) for figure in figures}
        self._targets: dict[str, str] = {}
        for check in checks:
            before = self._targets.get(check.name)
            self._targets[check.name] = f"{before}; {check.text}" if before else check.text

    @property
    def columns(self) -> list[TableColumn]:
        """The heading."""
        return [
            TableColumn("metric"),
            number_column("value"),
            *([number_column("of 10")] if self._has_points else []),
            number_column("95 % interval"),
            number_column("n"),
            number_column("coverage"),
            TableColumn("better"),
            *([TableColumn("target")] if self._targets else []),
            *([TableColumn("judge against people")] if any(self._judged.values()) else []),
            TableColumn("not measured"),
        ]

    def row(self, figure: Figure) -> list[TableCell]:
        """A figure."""
        name, observes = name_text(figure), observed(figure, self._summary)
        unmeasured = reasons_text(figure, observes)
        if figure.value is None and not unmeasured:
            unmeasured = reason_text(figure.reason)
        # Without a declared mark, points neither pass nor fail.
        is_marked = self._has_points and not claims_nothing(self._summary, figure)
        declared = self._summary.by_key.get(figure.key) if is_marked else None
        return [
            TableCell(name),
            TableCell(value_text(figure.value, figure.unit)),
            *([TableCell(points_text(figure.ten, declared))] if self._has_points else []),
            TableCell(interval_and_clusters(figure, self._summary)),
            TableCell(f"{figure.n:,}"),
            TableCell(coverage_text(figure, observes)),
            TableCell("" if figure.better == "neither" else figure.better),
            *([TableCell(self._targets.get(name, ""))] if self._targets else []),
            *([TableCell(self._judged.get(name, ""))] if any(self._judged.values()) else []),
            TableCell(unmeasured),
        ]

    def partial_row(self, *cells: TableCell) -> list[TableCell]:
        """A row of which only the first cells say something."""
        return [*cells, *[TableCell("")] * (len(self.columns) - len(cells))]


def groupings(groups: Iterable[Group]) -> dict[tuple[str, ...], list[Group]]:
    """The groups of each set of dimensions, in the order of the summary."""
    by_dimensions: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        by_dimensions.setdefault(tuple(group.by), []).append(group)
    return by_dimensions


def group_tables(summary: Summary, max_columns: int | None = None) -> Iterator[ReportTable]:
    """One table per grouping: groups as rows, headline metrics as columns. Groups of one are not worth a table."""
    for names, groups in groupings(summary.groups).items():
        if any(group.conversations > 1 for group in groups):
            yield _group_table(names, groups, headlines(summary, groups), max_columns)


def _group_table(
    names: Sequence[str], groups: Sequence[Group], heads: Sequence[Figure], max_columns: int | None
) -> ReportTable:
    shown = [name_text(figure) for figure in heads[:max_columns]]
    columns = [*(TableColumn(name, names_row=True) for name in names), number_column("conversations")]
    columns += [number_column(name.split(".", 1)[1]) for name in shown]
    rows = []
    for group in groups[:MAX_GROUPS]:
        values = {name_text(figure): value_text(figure.value, figure.unit) for figure in group.metrics}
        texts = [*(group.by[name] for name in names), f"{group.conversations:,}"]
        rows.append([TableCell(text) for text in (*texts, *(values.get(name, NOTHING) for name in shown))])
    hidden = ((len(groups) - MAX_GROUPS, "groups"), (len(heads) - len(shown), "metrics"))
    notes = [f"and {count:,} more {noun}, in summary.json" for count, noun in hidden if count > 0]
    return ReportTable(columns, rows, f"by {' and '.join(names)}", notes)
