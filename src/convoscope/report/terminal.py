"""A run on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from convoscope.harmless import one_line
from convoscope.ingest.report import NoteTally, ReadReport
from convoscope.report.groups import are_alone, groupings, small_text
from convoscope.report.screen import Column, Screen
from convoscope.report.targets import observed, run_checks
from convoscope.report.unmeasured import headlines, heard
from convoscope.report.words import (
    counted,
    coverage_text,
    interval_text,
    name_text,
    number_text,
    points_text,
    reading_text,
    reasons_text,
    standing_text,
    value_text,
)
from convoscope.runs.ranking import worst
from convoscope.runs.run import Run
from convoscope.runs.summary import DeclaredMetric, Summary
from convoscope.statistics.summary import Figure

_COLUMNS = (
    Column("metric"),
    Column("value", "right"),
    Column("95 % interval", "right"),
    Column("n", "right"),
    Column("coverage", "right"),
    Column("better"),
)
_POINTS = Column("of 10", "right")
_TARGET = Column("target")
_SKIPPED = Column("not measured")
MAX_PROBLEMS = 5
_MANY_GROUPS = 12
_WORST = 3
_MANY_BESIDE = 3
_FIRST_PLACES = 3


def print_run(screen: Screen, run: Run, *, parts: bool = False) -> None:
    """The summary, the groups, what reading did, and where it all is. `parts` of metrics are told if asked for."""
    summary = run.summary
    screen.line(f"{run.folder}: {counted(summary.conversations, 'conversation')}", "bold")
    if not run.receipt.valid:
        by = f", superseded by {run.receipt.superseded_by}" if run.receipt.superseded_by else ""
        when = f"since {run.receipt.invalidated_at}: {run.receipt.invalid_reason}{by}"
        screen.line(f"INVALID {when}", "bold red")
    screen.line()
    checks: dict[str, str] = {}
    for one in run_checks(run):
        if one.by:
            continue  # told below the tables, with all targets
        name = one.name
        checks[name] = f"{checks[name]}; {one.text}" if name in checks else one.text
    shown = heard(summary, checks)
    rows = sorted((*shown.figures, *shown.parts), key=summary.figures.index) if parts else shown.figures
    pointed = any(one.ten is not None for one in rows)
    declared = summary.by_key if pointed else {}
    columns = [*_COLUMNS[:2], *([_POINTS] if declared else []), *_COLUMNS[2:], *([_TARGET] if checks else []), _SKIPPED]
    told = [_row(figures, summary, checks, declared) for figures in _together(rows, checks)]
    screen.table(columns, told)
    if shown.parts and not parts:
        screen.line()
        screen.line(f"and {counted(len(shown.parts), 'figure')} of their parts, with --parts and in the page")
    if shown.silent:
        screen.line()
        screen.line("nothing to measure here for:")
        for silence in shown.silent:
            screen.line(f"  {silence.text}")
    print_groups(screen, summary)
    screen.line()
    for standing in worst(run, _WORST):
        if standing.because or standing.error:
            why = one_line(standing_text(standing, 1))
            screen.line(f"furthest behind: {one_line(standing.conversation)} ({why})")
    print_reading(screen, run.read_report)


def _together(rows: Sequence[Figure], checks: Mapping[str, str]) -> Iterator[Sequence[Figure]]:
    """Figures that share a row: many that stand beside one headline, such as p50, p95 and max, share one."""
    for _, group in groupby(rows, lambda one: (one.metric, one.variant, one.judge, bool(one.reduction))):
        figures = list(group)
        if len(figures) >= _MANY_BESIDE and not any(name_text(one) in checks for one in figures):
            yield figures
        else:
            yield from ([one] for one in figures)


def _row(
    figures: Sequence[Figure],
    summary: Summary,
    checks: Mapping[str, str],
    declared: Mapping[str, DeclaredMetric],
) -> tuple[str, ...]:
    figure = figures[0]
    if len(figures) > 1:
        # What else there is to say of them stands in the row of their headline.
        values = [number_text(one.value, one.unit) if one.value is not None else "·" for one in figures]
        unit = value_text(figures[-1].value, figure.unit).removeprefix(values[-1])
        rest = [""] * (len(_COLUMNS) - 1 + bool(declared) + bool(checks))
        return (
            ", ".join([name_text(figure), *(one.reduction for one in figures[1:])]),
            ", ".join(values) + unit,
            *rest,
        )
    facts = declared.get(figure.key)
    return (
        name_text(figure),
        value_text(figure.value, figure.unit),
        *([points_text(figure.ten, facts)] if declared else []),
        interval_text(figure),
        f"{figure.n:,}",
        coverage_text(figure),
        "" if figure.better == "neither" else figure.better,
        *([checks.get(name_text(figure), "")] if checks else []),
        reasons_text(figure, observed(figure, summary)),
    )


def print_groups(screen: Screen, summary: Summary) -> None:
    """One table per grouping: groups as rows, headline metrics as columns. Groups of one are not worth a table."""
    for names, groups in groupings(summary.groups).items():
        if are_alone(groups):
            continue
        screen.line()
        heads = headlines(summary, groups)
        columns = [Column(name) for name in names] + [Column("conversations", "right")]
        columns += [Column(name_text(figure).split(".", 1)[1], "right") for figure in heads]
        rows = []
        for group in groups[:_MANY_GROUPS]:
            found = {name_text(figure): figure for figure in group.metrics}
            cells = [found.get(name_text(figure)) for figure in heads]
            rows.append(
                [
                    *(group.by[name] for name in names),
                    f"{group.conversations:,}",
                    *("·" if figure is None else value_text(figure.value, figure.unit) for figure in cells),
                ]
            )
        more = len(groups) - _MANY_GROUPS
        screen.table(columns, rows, f"by {' and '.join(names)}")
        if more > 0:
            screen.line(f"and {more} more; `convoscope runs show --json` has them all")
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


def print_warnings(screen: Screen, report: ReadReport) -> None:
    """What could not be read, and what else a user should know; on the error stream."""
    shown = report.problems[:MAX_PROBLEMS]
    for problem in shown:
        screen.line(f"warning: {problem}", "yellow")
    if more := report.problem_count - sum(problem.count for problem in shown):
        screen.line(f"warning: and {more:,} more; see read-report.json", "yellow")
    for warning in report.warnings:
        screen.line(f"note: {warning}", "yellow")
