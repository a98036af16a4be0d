"""The tables of a run that terminal and Markdown share: its figures, and its groups."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from convoscope.analysis.targets import Check, observed
from convoscope.analysis.words import (
    NOTHING,
    coverage_text,
    interval_text,
    name_text,
    points_text,
    reason_text,
    reasons_text,
    value_text,
)
from convoscope.report.groups import are_alone, groupings
from convoscope.report.table import ReportTable, TableCell, TableColumn, number_column
from convoscope.report.visible_figures import headlines
from convoscope.runs.summary import Group, Summary
from convoscope.statistics.summary import Figure

MAX_GROUPS = 12


class FigureRows:
    """Figures as rows: with points of ten where one of them has any, with targets where one is held against them."""

    def __init__(self, summary: Summary, figures: Sequence[Figure], checks: Sequence[Check]) -> None:
        self._summary = summary
        self._has_points = any(figure.ten is not None for figure in figures)
        self._targets = _targets(checks)

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
            TableColumn("not measured"),
        ]

    def row(self, figure: Figure) -> list[TableCell]:
        """A figure."""
        name = name_text(figure)
        declared = self._summary.by_key.get(figure.key) if self._has_points else None
        return [
            TableCell(name),
            TableCell(value_text(figure.value, figure.unit)),
            *([TableCell(points_text(figure.ten, declared))] if self._has_points else []),
            TableCell(interval_text(figure)),
            TableCell(f"{figure.n:,}"),
            TableCell(coverage_text(figure, observed(figure, self._summary))),
            TableCell("" if figure.better == "neither" else figure.better),
            *([TableCell(self._targets.get(name, ""))] if self._targets else []),
            TableCell(self._unmeasured(figure)),
        ]

    def partial_row(self, *cells: TableCell) -> list[TableCell]:
        """A row of which only the first cells say something."""
        return [*cells, *[TableCell("")] * (len(self.columns) - len(cells))]

    def _unmeasured(self, figure: Figure) -> str:
        text = reasons_text(figure, observed(figure, self._summary))
        return reason_text(figure.reason) if figure.value is None and not text else text


def _targets(checks: Sequence[Check]) -> Mapping[str, str]:
    """The verdicts on each figure, by its name."""
    texts: dict[str, str] = {}
    for check in checks:
        before = texts.get(check.name)
        texts[check.name] = f"{before}; {check.text}" if before else check.text
    return texts


def group_tables(summary: Summary, max_columns: int | None = None) -> Iterator[ReportTable]:
    """One table per grouping: groups as rows, headline metrics as columns. Groups of one are not worth a table."""
    for names, groups in groupings(summary.groups).items():
        if not are_alone(groups):
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
