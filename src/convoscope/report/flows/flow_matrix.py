"""The flow matrix: flow × agent, the aspects in points of ten, the least correct first (flow-states, tier 3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convoscope.analysis.flows.flow_matrix import PARTS, Aspect, FlowFigures, FlowMatrix, FlowVerdict
from convoscope.report.flows.heading import Asked, print_nothing, print_title
from convoscope.report.flows.numbers import NOTHING, excluded_line, figure, interval, name, points, reasons_line
from convoscope.report.flows.sheet import NOTE, Head, SheetCell, print_sheet, print_words
from convoscope.report.screen import Column, Screen

_PANEL = "panel:"
_HEADS = (
    Head("Flow", "left", name=True),
    Head("Agent", "left", name=True),
    Head("n"),
    Head("excluded", spare=True),
    Head("correctness"),
    Head("completion"),
    Head("errors"),
    Head("lat_mean(s)"),
    Head("lat_p95(s)"),
    Head("humanness", spare=True),
    Head(NOTE, "left", spare=True),
)
_LEGEND = (
    "correctness, completion, errors, humanness=points of ten, 10 is best · below them stands the 95 % interval.",
)


def print_flows(screen: Screen, asked: Asked, found: FlowMatrix) -> None:
    """The aspects of every flow, then the parts of correctness, then what each judge says."""
    print_title(screen, f"# Flows — {asked.scope} (least correct first)", asked.runs)
    if not any(one.n for one in found.rows):
        print_nothing(screen, asked)
    else:
        print_sheet(screen, _HEADS, [_cells(one) for one in found.rows])
        screen.line()
        for line in (*_LEGEND, reasons_line(_reasons(found.rows))):
            if line:
                print_words(screen, line)
        _print_parts(screen, found.rows)
        _print_judges(screen, found.rows)
    if line := excluded_line(found.excluded):
        print_words(screen, line)


def _cells(one: FlowFigures) -> tuple[SheetCell, ...]:
    return (
        SheetCell(name(one.flow)),
        SheetCell(name(one.agent)),
        SheetCell(f"{one.n:,}"),
        SheetCell(f"{one.excluded:,}"),
        *(SheetCell(points(aspect), interval(aspect.low, aspect.high, 1)) for aspect in _aspects(one)),
        SheetCell(figure(one.latency_mean, 1)),
        SheetCell(figure(one.latency_p95, 1)),
        SheetCell(_humanness(one.humanness)),
        _note(one),
    )


def _note(one: FlowFigures) -> SheetCell:
    """What a reader must know before he concludes anything: that n is small, and of how many an aspect is."""
    said = ["too few to conclude"] if one.said else []
    for title, aspect in zip(_TITLES, _aspects(one), strict=True):
        if aspect.unmeasured and aspect.n:
            said.append(f"{title} of {aspect.n:,}")
    first, *rest = said or [""]
    return SheetCell(first, "; ".join(rest))


_TITLES = ("correctness", "completion", "errors")


def _aspects(one: FlowFigures) -> Sequence[Aspect]:
    return one.correctness, one.completion, one.errors


def _humanness(verdicts: Sequence[FlowVerdict]) -> str:
    """What the panel says; where there is none, the judge, if there is but one."""
    panels = [one for one in verdicts if one.judge.startswith(_PANEL)]
    chosen = panels if panels else verdicts if len(verdicts) == 1 else ()
    return figure(chosen[0].score, 1, most=10.0) if chosen else "below" if verdicts else NOTHING


def _reasons(rows: Iterable[FlowFigures]) -> Iterator[tuple[str, str]]:
    every = tuple(rows)
    for at, title in enumerate(_TITLES):
        for one in every:
            if (aspect := _aspects(one)[at]).score is None:
                yield title, aspect.reason if one.n else "every_conversation_excluded"
    if any(one.latency_p95 is None for one in every):
        yield "lat_mean(s), lat_p95(s)", "no_latency_logged"
    if not all(one.humanness for one in every):
        yield "humanness", "no_judge"


def _print_parts(screen: Screen, rows: Sequence[FlowFigures]) -> None:
    """Correctness is the mean of its parts: which of them is missing says what to look at."""
    titles = [part for part in PARTS if any(part in one.parts for one in rows)]
    told = [one for one in rows if any(part.score is not None for part in one.parts.values())]
    if not told:
        return
    heads = (*_HEADS[:2], *(Head(title) for title in titles))
    screen.line()
    screen.line("Parts of correctness, as fractions of conversations", "bold")
    print_sheet(screen, heads, [_part_cells(one, titles) for one in told])
    unmeasured = [
        (title, one.parts[title].reason)
        for one in told
        for title in titles
        if title in one.parts and one.parts[title].score is None
    ]
    if line := reasons_line(unmeasured):
        print_words(screen, line)


def _part_cells(one: FlowFigures, titles: Sequence[str]) -> tuple[SheetCell, ...]:
    cells = [SheetCell(name(one.flow)), SheetCell(name(one.agent))]
    for title in titles:
        part = one.parts.get(title)
        cells.append(SheetCell(NOTHING) if part is None else _part(part))
    return tuple(cells)


def _part(part: Aspect) -> SheetCell:
    return SheetCell(figure(part.score, most=1.0), interval(part.low, part.high))


def _print_judges(screen: Screen, rows: Sequence[FlowFigures]) -> None:
    told = [
        (
            f"{name(one.flow)} / {name(one.agent)}",
            name(verdict.judge),
            figure(verdict.score, 1, most=10.0),
            f"{verdict.n:,}",
            "" if verdict.spread is None else figure(verdict.spread, 1),
        )
        for one in rows
        for verdict in one.humanness
    ]
    if not told:
        return
    screen.line()
    columns = [
        Column("Flow / Agent"),
        Column("judge"),
        Column("score", "right"),
        Column("n", "right"),
        Column("spread", "right"),
    ]
    screen.table(columns, told, "Humanness, judge by judge; spread=from the strictest to the kindest of a panel")
