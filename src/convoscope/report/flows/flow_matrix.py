"""The flow matrix: flow × agent, the aspects in points of ten, the least correct first (flow-states, tier 3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from convoscope.analysis.flows.flow_matrix import PARTS, Aspect, FlowFigures, FlowMatrix, JudgeVerdict
from convoscope.analysis.words import (
    NOTHING,
    decimal_text,
    excluded_line,
    range_text,
    short_name,
    ten_text,
    unmeasured_line,
)
from convoscope.report.flows.heading import StateQuestion, print_nothing, print_title
from convoscope.report.screen import Screen
from convoscope.report.table import (
    NOTE_COLUMN,
    ReportTable,
    TableCell,
    TableColumn,
    number_column,
    print_table,
    print_words,
    text_table,
)

_PANEL = "panel:"
_COLUMNS = (
    TableColumn("Flow", names_row=True),
    TableColumn("Agent", names_row=True),
    number_column("n"),
    number_column("excluded", spare=True),
    number_column("correctness"),
    number_column("completion"),
    number_column("errors"),
    number_column("lat_mean(s)"),
    number_column("lat_p95(s)"),
    number_column("humanness", spare=True),
    NOTE_COLUMN,
)
_LEGEND = "correctness, completion, errors, humanness=points of ten, 10 is best · below them stands the 95 % interval."


def print_flows(screen: Screen, question: StateQuestion, matrix: FlowMatrix) -> None:
    """The aspects of every flow, then the parts of correctness, then what each judge says."""
    print_title(screen, f"# Flows — {question.scope} (least correct first)", question.runs)
    if not any(flow.n for flow in matrix.rows):
        print_nothing(screen, question)
    else:
        notes = [*filter(None, (_LEGEND, unmeasured_line(_reasons(matrix.rows))))]
        print_table(screen, ReportTable(_COLUMNS, [_row(flow) for flow in matrix.rows], notes=notes))
        for table in (_part_table(matrix.rows), _judge_table(matrix.rows)):
            if table.rows:
                screen.line()
                print_table(screen, table)
    if line := excluded_line(matrix.excluded):
        print_words(screen, line)


def _row(flow: FlowFigures) -> list[TableCell]:
    return [
        *_names(flow),
        TableCell(f"{flow.n:,}"),
        TableCell(f"{flow.excluded:,}"),
        *(TableCell(ten_text(aspect.score), range_text(aspect.low, aspect.high, 1)) for aspect in _aspects(flow)),
        TableCell(decimal_text(flow.latency_mean, 1)),
        TableCell(decimal_text(flow.latency_p95, 1)),
        TableCell(_humanness(flow.humanness)),
        _note(flow),
    ]


def _names(flow: FlowFigures) -> tuple[TableCell, TableCell]:
    return TableCell(short_name(flow.flow)), TableCell(short_name(flow.agent))


def _note(flow: FlowFigures) -> TableCell:
    """What a reader must know before he concludes anything: that n is small, and of how many an aspect is."""
    notes = ["too few to conclude"] if flow.caution else []
    for title, aspect in zip(_TITLES, _aspects(flow), strict=True):
        if aspect.unmeasured and aspect.n:
            notes.append(f"{title} of {aspect.n:,}")
    first, *others = notes or [""]
    return TableCell(first, "; ".join(others))


_TITLES = ("correctness", "completion", "errors")


def _aspects(flow: FlowFigures) -> Sequence[Aspect]:
    return flow.correctness, flow.completion, flow.errors


def _humanness(verdicts: Sequence[JudgeVerdict]) -> str:
    """What the panel says; where there is none, the judge, if there is but one."""
    panels = [verdict for verdict in verdicts if verdict.judge.startswith(_PANEL)]
    chosen = panels if panels else verdicts if len(verdicts) == 1 else ()
    return ten_text(chosen[0].score) if chosen else "below" if verdicts else NOTHING


def _reasons(flows: Sequence[FlowFigures]) -> Iterator[tuple[str, str]]:
    for at, title in enumerate(_TITLES):
        for flow in flows:
            if (aspect := _aspects(flow)[at]).score is None:
                yield title, aspect.reason if flow.n else "every_conversation_excluded"
    if any(flow.latency_p95 is None for flow in flows):
        yield "lat_mean(s), lat_p95(s)", "no_latency_logged"
    if not all(flow.humanness for flow in flows):
        yield "humanness", "no_judge"


def _part_table(flows: Sequence[FlowFigures]) -> ReportTable:
    """Correctness is the mean of its parts: which of them is missing says what to look at."""
    titles = [part for part in PARTS if any(part in flow.parts for flow in flows)]
    measured = [flow for flow in flows if any(part.score is not None for part in flow.parts.values())]
    columns = (*_COLUMNS[:2], *(number_column(title) for title in titles))
    rows = [[*_names(flow), *(_part(flow.parts.get(title)) for title in titles)] for flow in measured]
    reasons = [
        (title, flow.parts[title].reason)
        for flow in measured
        for title in titles
        if title in flow.parts and flow.parts[title].score is None
    ]
    notes = [*filter(None, [unmeasured_line(reasons)])]
    return ReportTable(columns, rows, "Parts of correctness, as fractions of conversations", notes)


def _part(part: Aspect | None) -> TableCell:
    if part is None:
        return TableCell(NOTHING)
    return TableCell(decimal_text(part.score, most=1.0), range_text(part.low, part.high))


def _judge_table(flows: Sequence[FlowFigures]) -> ReportTable:
    columns = ("Flow / Agent", "judge", number_column("score"), number_column("n"), number_column("spread"))
    rows = [
        (
            f"{short_name(flow.flow)} / {short_name(flow.agent)}",
            short_name(verdict.judge),
            ten_text(verdict.score),
            f"{verdict.n:,}",
            "" if verdict.spread is None else decimal_text(verdict.spread, 1),
        )
        for flow in flows
        for verdict in flow.humanness
    ]
    return text_table(columns, rows, "Humanness, judge by judge; spread=from the strictest to the kindest of a panel")
