"""The state matrix: every state in one line, worst first, its intervals below (flow-states, tier 1 matrix)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convoscope.analysis.flows.state_matrix import Matrix, Neighbour, StateFigures
from convoscope.analysis.flows.state_table import FEW
from convoscope.report.flows.heading import Asked, print_nothing, print_title
from convoscope.report.flows.numbers import (
    MANY,
    NOTHING,
    between,
    excluded_line,
    figure,
    name,
    names,
    reasons_line,
    share_text,
)
from convoscope.report.flows.sheet import NOTE, Head, SheetCell, print_sheet, print_words
from convoscope.report.screen import Column, Screen
from convoscope.report.words import counted

STRONG = 0.3
"""A stall above this must be seen."""

HEADS = (
    Head("Flow", "left", name=True, spare=True),
    Head("State", "left", name=True),
    Head("n"),
    Head("progress"),
    Head("stall"),
    Head("escal"),
    Head("revisit"),
    Head("dwell"),
    Head("lat_p95(s)"),
    Head("slot_fill"),
    Head("guard", spare=True),
    Head("front-loaded", spare=True),
    Head(NOTE, "left", spare=True),
)
LEGEND = (
    "stall=fraction stuck here · progress=fraction that advanced · revisit=oscillation.",
    "High stall + low progress = the state pulling the flow down.",
)
NEIGHBOURS = ("State", "came from", "led to")
NEIGHBOURS_TITLE = "Neighbours, with the number of transitions"
_BELOW = "Below each fraction stands its 95 % interval."


def print_matrix(screen: Screen, asked: Asked, found: Matrix) -> None:
    """The table, its legend, what is not in it; with the states around each where they were asked for."""
    print_title(screen, _title(asked), asked.runs)
    if not found.rows:
        print_nothing(screen, asked)
        _print_rest(screen, found)
        return
    print_sheet(screen, HEADS, [cells(one) for one in found.rows])
    screen.line()
    for line in (*LEGEND, _BELOW, *legend_lines(found.rows)):
        print_words(screen, line)
    if any(one.led_to is not None for one in found.rows):
        _print_neighbours(screen, found.rows)
    screen.line()
    screen.line(
        f"{counted(len(found.rows), 'state')} in {counted(found.conversations, 'conversation')}: {asked.places}"
    )
    _print_rest(screen, found)


def _title(asked: Asked) -> str:
    return f"# Per-state quality — {asked.scope} (worst first)"


def cells(one: StateFigures) -> tuple[SheetCell, ...]:
    stall = one.stall.value
    return (
        SheetCell(name(one.flow)),
        SheetCell(name(one.state)),
        SheetCell(f"{one.n:,}"),
        SheetCell(share_text(one.progress), between(one.progress)),
        SheetCell(share_text(one.stall), between(one.stall), strong=stall is not None and stall > STRONG),
        SheetCell(share_text(one.escalation), between(one.escalation)),
        SheetCell(figure(one.revisit.value)),
        SheetCell(figure(one.dwell_turns.value, 1)),
        SheetCell(figure(None if one.latency_p95_ms is None else one.latency_p95_ms / 1000, 1)),
        SheetCell(share_text(one.slot_fill_rate), between(one.slot_fill_rate)),
        SheetCell(NOTHING if one.guard_errors is None else f"{one.guard_errors:,}"),
        SheetCell(NOTHING if one.front_loaded is None else f"{one.front_loaded:,}"),
        _note(one),
    )


def _note(one: StateFigures) -> SheetCell:
    """What a reader must know before he concludes anything: that it is an end by design, that n is small."""
    said = [f"end: {one.terminal}"] if one.terminal else []
    said += ["too few to conclude"] if one.said else []
    said += [f"{one.unknown:,} outcome unknown"] if one.unknown else []
    first, *rest = said or [""]
    return SheetCell(first, "; ".join(rest))


def legend_lines(rows: Sequence[StateFigures]) -> list[str]:
    """What the legend has to add for these rows."""
    ends = any(one.terminal and (one.stall.value or 0.0) > STRONG for one in rows)
    said = "An end without success is where its conversations stop: look at the states that lead to it." if ends else ""
    return [line for line in (said, reasons_line(_reasons(rows)), _few(rows)) if line]


def _few(rows: Sequence[StateFigures]) -> str:
    few = sum(bool(one.said) for one in rows)
    if not few:
        return ""
    return f"Fewer than {FEW} conversations are too few to conclude from: {few:,} of {counted(len(rows), 'state')}."


def _reasons(rows: Iterable[StateFigures]) -> Iterator[tuple[str, str]]:
    for one in rows:
        for column, rate in (
            ("progress", one.progress),
            ("stall", one.stall),
            ("escal", one.escalation),
            ("revisit", one.revisit),
            ("dwell", one.dwell_turns),
            ("slot_fill", one.slot_fill_rate),
            ("guard", one.guard_error),
        ):
            if rate.value is None:
                yield column, rate.reason
        if one.latency_p95_ms is None:
            yield "lat_p95(s)", one.latency_reason


def _print_neighbours(screen: Screen, rows: Sequence[StateFigures]) -> None:
    """The states around each, with transitions: those that a weak state starves are the ones that it leads to."""
    screen.line()
    screen.table([Column(title) for title in NEIGHBOURS], [neighbours(one) for one in rows], NEIGHBOURS_TITLE)


def neighbours(one: StateFigures) -> tuple[str, ...]:
    """A state, those before it and those after it."""
    return name(one.state), _around(one.came_from), _around(one.led_to)


def _around(found: Sequence[Neighbour] | None) -> str:
    if not found:
        return NOTHING
    more = len(found) - MANY
    told = ", ".join(f"{name(one.state)} {one.transitions:,}" for one in found[:MANY])
    return f"{told} and {more:,} more" if more > 0 else told


def _print_rest(screen: Screen, found: Matrix) -> None:
    for line in rest_lines(found):
        print_words(screen, line)


def rest_lines(found: Matrix) -> list[str]:
    """What is in no row: states that nobody came to, conversations that broke or tell of no state."""
    lines = untested_lines((one.flow, one.state) for one in found.untested)
    if line := excluded_line(found.excluded):
        lines.append(line)
    if found.without_states and found.rows:
        lines.append(without_text(found.without_states))
    return lines


def without_text(count: int) -> str:
    return f"{counted(count, 'conversation')} {'tells' if count == 1 else 'tell'} of no state"


def untested_lines(untested: Iterable[tuple[str, str]]) -> list[str]:
    """The declared states that no conversation came to, flow by flow: untested is not failed."""
    by_flow: dict[str, list[str]] = {}
    for flow, state in untested:
        by_flow.setdefault(flow, []).append(state)
    return [f"untested, no conversation came there: {name(flow)}: {names(found)}" for flow, found in by_flow.items()]
