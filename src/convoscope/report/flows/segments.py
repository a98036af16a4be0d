"""Segments of flows and their archetypes, the least cohesive first (flow-states, tiers 2 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convoscope.analysis.flows.segments import Archetype, SegmentFigures, Segments, Unassigned
from convoscope.report.flows.heading import Asked, print_nothing, print_title
from convoscope.report.flows.numbers import (
    between,
    figure,
    interval,
    name,
    names,
    reasons_line,
    share_text,
)
from convoscope.report.flows.sheet import NOTE, Head, SheetCell, print_sheet, print_words
from convoscope.report.screen import Screen
from convoscope.report.words import counted, reason_text

_SEGMENTS = (
    Head("Flow", "left", name=True, spare=True),
    Head("Segment", "left", name=True),
    Head("kind", "left"),
    Head("states"),
    Head("n"),
    Head("cohesion"),
    Head("yield"),
    Head("typed"),
    Head("of", "left"),
    Head("efficiency"),
    Head("coherence"),
    Head(NOTE, "left", spare=True),
)
_SEGMENTS_LEGEND = (
    "yield=states that advanced · typed=what the kind is for: slots filled, confirmations accepted, tool calls that "
    "worked · cohesion=yield × (0.35 × efficiency + 0.65 × coherence).",
    "efficiency=states ÷ turns in them · coherence=1 − revisits − stalls.",
    "Below each fraction stands its 95 % interval.",
)
_ARCHETYPES = (
    Head("Archetype", "left", name=True),
    Head("flows"),
    Head("segments"),
    Head("cohesion"),
    Head("spread"),
    Head("range"),
    Head("weakest", "left"),
)
_ARCHETYPES_LEGEND = "cohesion=mean over the segments of this kind · spread=standard deviation between them."


def print_segments(screen: Screen, asked: Asked, found: Segments) -> None:
    """One row per segment of a flow, and the states that are in none."""
    print_title(screen, f"# Segments — {asked.scope} (least cohesive first)", asked.runs)
    if not found.rows:
        _print_none(screen, asked, found.unassigned)
        return
    print_sheet(screen, _SEGMENTS, [_segment(one) for one in found.rows])
    screen.line()
    for line in (*_SEGMENTS_LEGEND, reasons_line(_segment_reasons(found.rows))):
        if line:
            print_words(screen, line)
    _print_unassigned(screen, found.unassigned)


def _segment(one: SegmentFigures) -> tuple[SheetCell, ...]:
    return (
        SheetCell(name(one.flow)),
        SheetCell(name(one.segment)),
        SheetCell(name(one.kind)),
        SheetCell(f"{len(one.states):,}"),
        SheetCell(f"{one.n:,}"),
        SheetCell(figure(one.group_cohesion, most=1.0)),
        SheetCell(share_text(one.goal_yield), between(one.goal_yield)),
        SheetCell(share_text(one.typed_yield), between(one.typed_yield)),
        SheetCell(f"{one.typed_yield.n:,} {one.typed_by}" if one.typed_yield.n else ""),
        SheetCell(figure(one.efficiency, most=1.0)),
        SheetCell(figure(one.transition_coherence, most=1.0)),
        SheetCell("too few to conclude" if one.said else ""),
    )


def _segment_reasons(rows: Iterable[SegmentFigures]) -> Iterator[tuple[str, str]]:
    for one in rows:
        if one.group_cohesion is None:
            yield "cohesion", one.reason
        if one.typed_yield.value is None:
            yield "typed", one.typed_yield.reason
        if one.efficiency is None:
            yield "efficiency", one.efficiency_reason
        if one.transition_coherence is None:
            yield "coherence", "outcome_unknown"


def _print_none(screen: Screen, asked: Asked, unassigned: Sequence[Unassigned]) -> None:
    if not unassigned:
        print_nothing(screen, asked)
        return
    screen.line("no state belongs to a segment")
    _print_unassigned(screen, unassigned)
    screen.line("  a flow definition tells the segments: `convoscope score --flows FILE`")


def _print_unassigned(screen: Screen, unassigned: Sequence[Unassigned]) -> None:
    for one in unassigned:
        states = f"{counted(len(one.states), 'state')} of {name(one.flow)}"
        print_words(screen, f"in no segment ({name(reason_text(one.reason))}): {states}: {names(one.states)}")


def print_archetypes(screen: Screen, asked: Asked, found: Sequence[Archetype]) -> None:
    """One row per kind of segment over all flows: a weakness in many flows is no fault of one."""
    print_title(screen, f"# Archetypes — {asked.scope} (weakest first)", asked.runs)
    if not found:
        _print_none(screen, asked, asked.states.segments().unassigned)
        return
    print_sheet(screen, _ARCHETYPES, [_archetype(one) for one in found])
    screen.line()
    print_words(screen, _ARCHETYPES_LEGEND)
    unmeasured = [("cohesion", part) for one in found if one.cohesion is None for part in one.reason.split(", ")]
    alone = [("spread", "one segment alone") for one in found if one.cohesion is not None and one.spread is None]
    if line := reasons_line([*unmeasured, *alone]):
        print_words(screen, line)


def _archetype(one: Archetype) -> tuple[SheetCell, ...]:
    return (
        SheetCell(name(one.kind)),
        SheetCell(f"{one.flows:,}"),
        SheetCell(f"{one.segments:,}"),
        SheetCell(figure(one.cohesion, most=1.0)),
        SheetCell(figure(one.spread)),
        SheetCell(interval(one.lowest, one.highest) if one.segments > 1 else ""),
        SheetCell(name(one.weakest) if one.weakest else ""),
    )
