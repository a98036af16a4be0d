"""A run on the terminal."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby

from convoscope.analysis.answer import Answer, rank_texts
from convoscope.analysis.targets import Check, run_checks
from convoscope.analysis.words import (
    EXTREMES,
    NOTHING,
    counted,
    name_text,
    number_text,
    reading_text,
    value_text,
)
from convoscope.harmless import one_line
from convoscope.ingest.report import NoteTally, ReadReport
from convoscope.report.answer_terminal import print_verdict
from convoscope.report.run_tables import FigureRows, group_tables, sections, small_text, visible_figures
from convoscope.report.screen import Screen
from convoscope.report.table import ReportTable, Row, TableCell, print_table
from convoscope.runs.ranking import rank, worst_and_broken
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary
from convoscope.statistics.summary import Figure
from convoscope.views.flow.endings import LOST

MAX_PROBLEMS = 3
_WORST = 3
_MANY_BESIDE = 3
_FIRST_PLACES = 3


def print_run(screen: Screen, run: Run, answer: Answer) -> None:
    """Everything: the verdict, every figure, the groups, what is worst, and what reading did."""
    summary = run.summary
    screen.line(f"{run.folder}: {counted(summary.conversations, 'conversation')}", "bold")
    if not run.receipt.valid:
        by = f", superseded by {run.receipt.superseded_by}" if run.receipt.superseded_by else ""
        when = f"since {run.receipt.invalidated_at}: {run.receipt.invalid_reason}{by}"
        screen.line(f"INVALID {when}", "bold red")
    print_verdict(screen, answer)
    screen.line()
    checks = [check for check in run_checks(run) if not check.by]  # those of groups stand below the tables
    shown = visible_figures(summary, {check.name for check in checks})
    figures = sorted((*shown.figures, *shown.parts), key=summary.figures.index)
    print_table(screen, _figure_table(summary, figures, checks))
    if shown.silent:
        screen.line()
        screen.line("nothing to measure here for:")
        for silence in shown.silent:
            screen.line(f"  {silence.text}")
    print_groups(screen, summary)
    screen.line()
    first, broken = worst_and_broken(run, _WORST)
    extreme = EXTREMES[rank(run).basis]
    for ranked, why in zip(first, rank_texts(run, first, 1), strict=True):
        if ranked.because or ranked.trial or ranked.outcome == LOST:
            screen.line(f"{extreme}: {one_line(ranked.conversation)} ({one_line(why)})")
    for ranked in broken:
        screen.line(f"integration broke: {one_line(ranked.conversation)} ({one_line(ranked.error)})")
    print_reading(screen, run.read_report)


def _figure_table(summary: Summary, figures: Sequence[Figure], checks: Sequence[Check]) -> ReportTable:
    table = FigureRows(summary, figures, checks)
    targeted = {check.name for check in checks}
    rows: list[Row] = []
    made = sections(summary, figures)
    for section in made:
        if any(one.component for one in made):
            rows.append(table.partial_row(TableCell(section.title)))
        rows += [
            table.row(group[0]) if len(group) == 1 else table.partial_row(*_shared_row(group))
            for group in _rows(section.figures, targeted)
        ]
    return ReportTable(table.columns, rows)


def _rows(figures: Sequence[Figure], targeted: Collection[str]) -> Iterator[Sequence[Figure]]:
    """Figures that share a row: many that stand beside one headline, such as p50, p95 and max, share one."""
    for _, group in groupby(
        figures, lambda figure: (figure.metric, figure.variant, figure.judge, bool(figure.reduction))
    ):
        beside = list(group)
        if len(beside) >= _MANY_BESIDE and not any(name_text(figure) in targeted for figure in beside):
            yield beside
        else:
            yield from ([figure] for figure in beside)


def _shared_row(figures: Sequence[Figure]) -> tuple[TableCell, TableCell]:
    """Names and values. What else there is to say of them stands in the row of their headline."""
    first, *others = figures
    values = [NOTHING if figure.value is None else number_text(figure.value, figure.unit) for figure in figures]
    unit = value_text(figures[-1].value, first.unit).removeprefix(values[-1])
    names = [name_text(first), *(figure.reduction for figure in others)]
    return TableCell(", ".join(names)), TableCell(", ".join(values) + unit)


def print_groups(screen: Screen, summary: Summary) -> None:
    """One table per grouping, and how many groups are too small for one."""
    for table in group_tables(summary):
        screen.line()
        print_table(screen, table)
    if summary.small_groups:
        screen.line()
    for small in summary.small_groups:
        screen.line(small_text(small))


def print_reading(screen: Screen, report: ReadReport) -> None:
    """What reading did, in a few lines."""
    screen.line(reading_text(report))
    if report.set_aside:
        screen.line(f"set aside: {', '.join(_set_aside(*one) for one in report.set_aside.items())}")
    for title, tallies in (("repaired", report.repaired), ("inferred", report.inferred)):
        if tallies:
            counts = ", ".join(f"{code.replace('_', ' ')} {tally.count:,}" for code, tally in tallies.items())
            screen.line(f"{title}: {counts}")
    for title, counters in (("ignored", report.ignored), ("unknown names, kept in extras", report.unknown)):
        if counters:
            counts = ", ".join(f"{name} {count:,}" for name, count in list(counters.items())[:8])
            screen.line(f"{title}: {counts}{', …' if len(counters) > 8 else ''}")


def _set_aside(code: str, tally: NoteTally) -> str:
    """How often a kind of value was lost, and where first, so that it can be found."""
    places = "; ".join(one_line(place) for place in tally.examples[:_FIRST_PLACES])
    more = "; …" if tally.count > _FIRST_PLACES else ""
    return f"{code.replace('_', ' ')} {tally.count:,} ({places}{more})"


def print_warnings(screen: Screen, report: ReadReport, *, full: bool = False) -> None:
    """What could not be read, and what else a user should know; on the error stream."""
    shown = report.problems if full else report.problems[:MAX_PROBLEMS]
    for problem in shown:
        screen.line(f"warning: {problem}", "yellow")
    if more := report.problem_count - sum(problem.count for problem in shown):
        screen.line(f"warning: and {more:,} more; see --full and read-report.json", "yellow")
    for warning in report.warnings:
        screen.line(f"note: {warning}", "yellow")
