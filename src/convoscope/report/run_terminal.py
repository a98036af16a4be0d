"""A run on the terminal: its answer in about twenty lines of 80 columns, or everything."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import groupby

from rich.cells import cell_len

from convoscope.analysis.answer import Answer, Cause, KeyFigure, rank_texts
from convoscope.analysis.targets import Check, run_checks
from convoscope.analysis.words import (
    EXTREMES,
    MADE_OTHER_CHANGES,
    NOTHING,
    counted,
    name_text,
    number_text,
    percent_text,
    reading_text,
    set_aside_text,
    sound_text,
    value_text,
)
from convoscope.harmless import one_line
from convoscope.ingest.report import ReadReport
from convoscope.report.judging import print_judging
from convoscope.report.panels import panels
from convoscope.report.run_tables import FigureRows, group_tables, sections, small_text, visible_figures
from convoscope.report.screen import WIDTH, Screen, wrapped_lines
from convoscope.report.table import ReportTable, Row, TableCell, print_table
from convoscope.runs.ranking import rank, worst_and_broken
from convoscope.runs.run import PAGE, Run
from convoscope.runs.summary import Summary
from convoscope.statistics.summary import Figure
from convoscope.views.flow.endings import LOST

CAUSES = 3
GROUP_LINES = 3
"""For groups that stand apart."""
MOST_LINES = 25
"""Of the whole answer; the groups that do not stand apart are named only within it."""
LABEL = 29
LEAST_COVERAGE = 0.995
"""Below it, the line of a figure says how much it stands for."""


def print_answer(screen: Screen, answer: Answer, run: Run, print_targets: Callable[[], None] = lambda: None) -> None:
    """How good, how sure, what breaks first, and which conversation to open.

    `print_targets` prints those that no line of a figure tells.
    """
    begun = screen.lines
    for line in _invalid(run):
        screen.wrapped(line, "bold red")
    print_verdict(screen, answer)
    if answer.figures:
        screen.line()
        print_figures(screen, answer.figures)
    if answer.more_bad:
        screen.wrapped(f"  {answer.more_bad} (--full)", "red", indent="    ")
    for note in answer.notes:
        screen.wrapped(f"  {note}", "yellow", indent="    ")
    print_targets()
    _print_causes(screen, answer)
    _print_groups(screen, answer)
    print_judging(screen, run.summary)
    for made in panels(run):
        screen.line()
        screen.wrapped(f"{made.title}: {made.line}")
    screen.line()
    if answer.hint:
        screen.wrapped(answer.hint, "yellow")
    if answer.broken:
        screen.wrapped(answer.broken)
    if answer.unread:
        screen.wrapped(answer.unread)
    if answer.sound:
        screen.wrapped(answer.sound, "yellow")
    reading = answer.reading + (f"; {answer.not_measured}" if answer.not_measured else "") + " (--full)"
    rest = len(wrapped_lines(reading)) + 2  # the page, and what is next
    if screen.lines - begun + len(wrapped_lines(answer.alike)) + rest <= MOST_LINES:
        screen.wrapped(answer.alike)
    screen.wrapped(reading)
    print_next(screen, answer, run)


def _invalid(run: Run) -> Iterator[str]:
    receipt = run.receipt
    if not receipt.valid:
        by = f", superseded by {receipt.superseded_by}" if receipt.superseded_by else ""
        yield f"INVALID since {receipt.invalidated_at}: {receipt.invalid_reason}{by}"


def print_verdict(screen: Screen, answer: Answer) -> None:
    """Up to three sentences."""
    for clause in answer.verdict:
        screen.wrapped(clause.text, {"bad": "bold red", "good": "bold green"}.get(clause.tone, "bold"))


def print_figures(screen: Screen, figures: Sequence[KeyFigure]) -> None:
    """A line each: what, how much, from where to where, of how many, and what it is held against."""
    rows = [
        (
            label if len(label := one_line(one.label)) <= LABEL else f"{label[: LABEL - 1]}…",
            value_text(one.value, one.unit),
            interval_words(one),
            f"n {one.n:,}",
            target_words(one),
        )
        for one in figures
    ]
    widths = [max(cell_len(row[column]) for row in rows) for column in range(4)]
    for row, figure in zip(rows, figures, strict=True):
        label = row[0] + " " * (widths[0] - cell_len(row[0]))
        line = f"  {label}  {row[1]:>{widths[1]}}  {row[2]:>{widths[2]}}  {row[3]:<{widths[3]}}"
        style = {"missed": "red", "met": "green"}.get(figure.verdict, "red" if figure.bad else "")
        if cell_len(line) + 2 + cell_len(row[4]) <= WIDTH:
            screen.line(f"{line}  {row[4]}".rstrip(), style)
        else:  # what does not fit is on the next line, at the right
            screen.line(line.rstrip(), style)
            screen.line(row[4].rjust(WIDTH), style)


def interval_words(figure: KeyFigure) -> str:
    """From where to where a figure may be."""
    if figure.low is None and figure.high is None:
        return "·"
    if figure.high is None:
        return f"{number_text(figure.low or 0.0, figure.unit)} or more"
    if figure.low is None:
        return f"{number_text(figure.high, figure.unit)} or less"
    return f"{number_text(figure.low, figure.unit)} to {number_text(figure.high, figure.unit)}"


def target_words(figure: KeyFigure) -> str:
    """What a figure is held against, and how much it stands for if that is not all."""
    covered = f"{percent_text(figure.coverage)} covered" if figure.coverage < LEAST_COVERAGE else ""
    held = f"{figure.verdict_text}: {figure.target}" if figure.verdict else ""
    return ", ".join(filter(None, (held, figure.remark, covered)))


def _print_causes(screen: Screen, answer: Answer) -> None:
    shown = answer.causes[:CAUSES]
    rest = [*answer.causes[CAUSES:], *answer.remaining]
    rough = [] if shown or rest else [one for one in answer.worst[:CAUSES] if one.reasons]
    if shown or rest or rough:
        screen.line()
    width = max((len(f"{one.lost:,}") for one in (*shown, *rest)), default=0)
    for cause in shown:
        _print_cause(screen, cause, width)
    if rest:
        words = ", ".join(f"{one.sentence} {one.lost:,}" for one in rest)
        lost = sum(one.lost for one in rest)
        screen.wrapped(f"{lost:>{width},} lost  {words}", indent=" " * (width + 7))
        first = next((one for one in rest if one.opinion is not None), None)
        if first is not None and not any(one.opinion for one in shown):
            _print_opinion(screen, first, width, names_example=True)
    for worst in rough:
        kind = "trial" if worst.reasons[0].endswith(MADE_OTHER_CHANGES) else "rough"
        _with_id(screen, f"{kind}  {worst.reasons[0]}", worst.conversation)


def _print_groups(screen: Screen, answer: Answer) -> None:
    """Groups that stand apart and are not in the verdict, the surest first; how many more there are."""
    groups = [one.sentence for one in answer.groups if not one.in_verdict]
    for count in range(len(groups), 0, -1):
        more = f" (and {len(groups) - count:,} more)" if count < len(groups) else ""
        shown = [*groups[: count - 1], groups[count - 1] + more]
        if count == 1 or sum(len(wrapped_lines(text)) for text in shown) <= GROUP_LINES:
            for text in shown:
                screen.wrapped(text)
            return


def _print_cause(screen: Screen, cause: Cause, width: int) -> None:
    example = cause.example.conversation if cause.example is not None else ""
    _with_id(screen, f"{cause.lost:>{width},} lost  {cause.sentence}", example)
    _print_opinion(screen, cause, width)


def _print_opinion(screen: Screen, cause: Cause, width: int, *, names_example: bool = False) -> None:
    """What a judge says of the example, as its own words."""
    if cause.opinion is None:
        return
    indent = " " * (width + 7)
    example = f"{cause.example.conversation}: " if names_example and cause.example is not None else ""
    screen.wrapped(f"{indent}{one_line(example + cause.opinion.text, None)}", indent=indent)


def _with_id(screen: Screen, text: str, id: str) -> None:
    """A sentence, and at the right the conversation to open; an id is never cut, because people copy it."""
    text, id = one_line(text), one_line(id)
    room = WIDTH - cell_len(text) - cell_len(id)
    if room >= 2:
        screen.line(f"{text}{' ' * room}{id}")
    else:
        screen.wrapped(text, indent=" " * 9)
        screen.line(f"{'':9}{id}")


def print_next(screen: Screen, answer: Answer, run: Run) -> None:
    """Where the page is, and what to look at next."""
    screen.line(f"page  {run.folder / PAGE}")
    first = next((one.example.conversation for one in answer.causes if one.example is not None), "")
    first = first or (answer.worst[0].conversation if answer.worst else "")
    if first:
        screen.line(f"next  convoscope show {shlex.quote(str(run.folder))} {shlex.quote(one_line(first))}")


MAX_PROBLEMS = 3
_WORST = 3
_MANY = 3


def print_run(screen: Screen, run: Run, answer: Answer) -> None:
    """Everything: the verdict, every figure, the groups, what is worst, and what reading did."""
    summary = run.summary
    screen.line(f"{run.folder}: {counted(summary.conversations, 'conversation')}", "bold")
    for line in _invalid(run):
        screen.line(line, "bold red")
    print_verdict(screen, answer)
    screen.line()
    checks = [check for check in run_checks(run) if not check.by]  # those of groups are below the tables
    shown = visible_figures(summary, {check.name for check in checks})
    figures = sorted((*shown.figures, *shown.parts), key=summary.figures.index)
    print_table(screen, _figure_table(summary, figures, checks))
    if shown.silent:
        screen.line()
        screen.line("without a value:")
        for silence in shown.silent:
            screen.line(f"  {silence.text}")
    print_groups(screen, summary)
    print_judging(screen, summary, full=True)
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
    """Figures that share a row: many of one metric, such as p50, p95 and max, share one."""
    for _, group in groupby(
        figures, lambda figure: (figure.metric, figure.variant, figure.judge, bool(figure.reduction))
    ):
        shared = list(group)
        if len(shared) >= _MANY and not any(name_text(figure) in targeted for figure in shared):
            yield shared
        else:
            yield from ([figure] for figure in shared)


def _shared_row(figures: Sequence[Figure]) -> tuple[TableCell, TableCell]:
    """Names and values. The rest is in the row of their headline."""
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
    if sound := sound_text(report):
        screen.line(sound)
    if lost := set_aside_text(report):
        screen.line(lost)
    for title, tallies in (("repaired", report.repaired), ("inferred", report.inferred)):
        if tallies:
            counts = ", ".join(f"{code.replace('_', ' ')} {tally.count:,}" for code, tally in tallies.items())
            screen.line(f"{title}: {counts}")
    for title, counters in (("ignored", report.ignored), ("unknown names, kept in extras", report.unknown)):
        if counters:
            counts = ", ".join(f"{name} {count:,}" for name, count in list(counters.items())[:8])
            screen.line(f"{title}: {counts}{', …' if len(counters) > 8 else ''}")


def print_warnings(screen: Screen, report: ReadReport, *, full: bool = False) -> None:
    """What could not be read, and what else a user should know; on the error stream."""
    shown = report.problems if full else report.problems[:MAX_PROBLEMS]
    for problem in shown:
        screen.line(f"warning: {problem}", "yellow")
    if more := report.problem_count - sum(problem.count for problem in shown):
        screen.line(f"warning: and {more:,} more; see --full and read-report.json", "yellow")
    for warning in report.warnings:
        screen.line(f"note: {warning}", "yellow")
