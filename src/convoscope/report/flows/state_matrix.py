"""The state matrix: every state in one line, worst first, its intervals below (flow-states, tier 1 matrix)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convoscope.analysis.flows.state_matrix import Matrix, Neighbour, StateFigures
from convoscope.analysis.flows.state_table import FEW
from convoscope.analysis.words import (
    NOTHING,
    counted,
    decimal_text,
    excluded_line,
    first_of,
    rate_interval_text,
    rate_text,
    short_name,
    unmeasured_line,
)
from convoscope.report.flows.heading import StateQuestion, print_nothing, print_title
from convoscope.report.screen import Screen
from convoscope.report.table import (
    NOTE_COLUMN,
    ReportTable,
    TableCell,
    TableColumn,
    code,
    number_column,
    padded_table,
    plain,
    print_table,
    print_words,
    text_table,
)

STRONG = 0.3
"""A stall above this must be seen."""

_COLUMNS = (
    TableColumn("Flow", names_row=True, spare=True),
    TableColumn("State", names_row=True),
    number_column("n"),
    number_column("progress"),
    number_column("stall"),
    number_column("escal"),
    number_column("revisit"),
    number_column("dwell"),
    number_column("lat_p95(s)"),
    number_column("slot_fill"),
    number_column("guard", spare=True),
    number_column("front-loaded", spare=True),
    NOTE_COLUMN,
)
_LEGEND = (
    "stall=fraction stuck here · progress=fraction that advanced · revisit=oscillation.",
    "High stall + low progress = the state pulling the flow down.",
)
_BELOW = "Below each fraction stands its 95 % interval."


def print_matrix(screen: Screen, question: StateQuestion, matrix: Matrix) -> None:
    """The table, its legend, what is not in it; with the states around each where they were asked for."""
    print_title(screen, _title(question.scope), question.runs)
    if not matrix.rows:
        print_nothing(screen, question)
        _print_outside(screen, matrix)
        return
    print_table(screen, _table(matrix, (*_LEGEND, _BELOW, *_remarks(matrix.rows))))
    if _has_neighbours(matrix):
        screen.line()
        print_table(screen, _neighbour_table(matrix.rows))
    screen.line()
    states, conversations = counted(len(matrix.rows), "state"), counted(matrix.conversations, "conversation")
    screen.line(f"{states} in {conversations}: {question.places}")
    _print_outside(screen, matrix)


def matrix_markdown(question: StateQuestion, matrix: Matrix) -> list[str]:
    """The same as Markdown, for a pull request or a wiki; the intervals stand in a table of their own."""
    lines = [_title(plain(question.scope)), ""]
    for run in question.runs:
        if not run.receipt.valid:
            lines += [f"**INVALID** {code(str(run.folder))}: {code(run.receipt.invalid_reason or '')}", ""]
    outside = _outside_lines(matrix)
    if not matrix.rows:
        lines.append(f"None of {matrix.without_states:,} conversations tells of states.")
        return lines + [part for line in outside for part in ("", plain(line))]
    table = _table(matrix, (*_LEGEND, *_remarks(matrix.rows), *outside))
    lines += padded_table(_without_intervals(table))
    if _has_neighbours(matrix):
        around = _neighbour_table(matrix.rows)
        lines += ["", f"{around.title}:", "", *padded_table(around)]
    return [*lines, "", "95 % intervals:", "", *padded_table(_intervals(table))]


def _title(scope: str) -> str:
    return f"# Per-state quality — {scope} (worst first)"


def _table(matrix: Matrix, notes: Sequence[str]) -> ReportTable:
    return ReportTable(_COLUMNS, [_row(state) for state in matrix.rows], notes=notes)


def _without_intervals(table: ReportTable) -> ReportTable:
    rows = [[*(cell._replace(below="") for cell in row[:-1]), TableCell(row[-1].words)] for row in table.rows]
    return table._replace(rows=rows)


def _intervals(table: ReportTable) -> ReportTable:
    """The names, and what stands below the figures."""
    names = range(table.name_count)
    rows = [
        [*row[: len(names)], *(TableCell(cell.below or NOTHING) for cell in row[len(names) :])] for row in table.rows
    ]
    measured = [at for at, column in enumerate(table.columns) if column != NOTE_COLUMN and _has_below(table, at)]
    return table._replace(rows=rows, notes=()).only([*names, *measured])


def _has_below(table: ReportTable, at: int) -> bool:
    return any(row[at].below for row in table.rows)


def _row(state: StateFigures) -> tuple[TableCell, ...]:
    stall = state.stall.value
    latency = None if state.latency_p95_ms is None else state.latency_p95_ms / 1000
    return (
        TableCell(short_name(state.flow)),
        TableCell(short_name(state.state)),
        TableCell(f"{state.n:,}"),
        TableCell(rate_text(state.progress), rate_interval_text(state.progress)),
        TableCell(rate_text(state.stall), rate_interval_text(state.stall), strong=stall is not None and stall > STRONG),
        TableCell(rate_text(state.escalation), rate_interval_text(state.escalation)),
        TableCell(decimal_text(state.revisit.value)),
        TableCell(decimal_text(state.dwell_turns.value, 1)),
        TableCell(decimal_text(latency, 1)),
        TableCell(rate_text(state.slot_fill_rate), rate_interval_text(state.slot_fill_rate)),
        TableCell(NOTHING if state.guard_errors is None else f"{state.guard_errors:,}"),
        TableCell(NOTHING if state.front_loaded is None else f"{state.front_loaded:,}"),
        _note(state),
    )


def _note(state: StateFigures) -> TableCell:
    """What a reader must know before he concludes anything: that it is an end by design, that n is small."""
    notes = [f"end: {state.terminal}"] if state.terminal else []
    notes += ["too few to conclude"] if state.caution else []
    notes += [f"{state.unknown:,} outcome unknown"] if state.unknown else []
    first, *others = notes or [""]
    return TableCell(first, "; ".join(others))


def _remarks(rows: Sequence[StateFigures]) -> list[str]:
    """What the legend has to add for these rows."""
    ends = any(state.terminal and (state.stall.value or 0.0) > STRONG for state in rows)
    end = "An end without success is where its conversations stop: look at the states that lead to it." if ends else ""
    return [line for line in (end, unmeasured_line(_reasons(rows)), _few(rows)) if line]


def _few(rows: Sequence[StateFigures]) -> str:
    few = sum(bool(state.caution) for state in rows)
    if not few:
        return ""
    return f"Fewer than {FEW} conversations are too few to conclude from: {few:,} of {counted(len(rows), 'state')}."


def _reasons(rows: Iterable[StateFigures]) -> Iterator[tuple[str, str]]:
    for state in rows:
        for column, rate in (
            ("progress", state.progress),
            ("stall", state.stall),
            ("escal", state.escalation),
            ("revisit", state.revisit),
            ("dwell", state.dwell_turns),
            ("slot_fill", state.slot_fill_rate),
            ("guard", state.guard_error),
        ):
            if rate.value is None:
                yield column, rate.reason
        if state.latency_p95_ms is None:
            yield "lat_p95(s)", state.latency_reason


def _has_neighbours(matrix: Matrix) -> bool:
    return any(state.led_to is not None for state in matrix.rows)


def _neighbour_table(rows: Sequence[StateFigures]) -> ReportTable:
    """The states around each, with transitions: those that a weak state starves are the ones that it leads to."""
    return text_table(
        ("State", "came from", "led to"),
        [(short_name(state.state), _neighbours(state.came_from), _neighbours(state.led_to)) for state in rows],
        "Neighbours, with the number of transitions",
    )


def _neighbours(neighbours: Sequence[Neighbour] | None) -> str:
    return first_of([f"{short_name(state.state)} {state.transitions:,}" for state in neighbours or ()]) or NOTHING


def _print_outside(screen: Screen, matrix: Matrix) -> None:
    for line in _outside_lines(matrix):
        print_words(screen, line)


def _outside_lines(matrix: Matrix) -> list[str]:
    """What is in no row: states that nobody came to, conversations that broke or tell of no state."""
    lines = untested_lines((state.flow, state.state) for state in matrix.untested)
    if line := excluded_line(matrix.excluded):
        lines.append(line)
    if matrix.without_states and matrix.rows:
        lines.append(without_text(matrix.without_states))
    return lines


def without_text(count: int) -> str:
    """How many conversations have no state in their logs."""
    return f"{counted(count, 'conversation')} {'tells' if count == 1 else 'tell'} of no state"


def untested_lines(untested: Iterable[tuple[str, str]]) -> list[str]:
    """The declared states that no conversation came to, flow by flow: untested is not failed."""
    by_flow: dict[str, list[str]] = {}
    for flow, state in untested:
        by_flow.setdefault(flow, []).append(short_name(state))
    return [
        f"untested, no conversation came there: {short_name(flow)}: {first_of(states)}"
        for flow, states in by_flow.items()
    ]
