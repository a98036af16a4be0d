"""Segments of flows and their archetypes, the least cohesive first (flow-states, tiers 2 and 4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from convoscope.analysis.flows.segments import Archetype, SegmentFigures, Segments, Unassigned
from convoscope.analysis.words import (
    counted,
    decimal_text,
    first_of,
    range_text,
    rate_interval_text,
    rate_text,
    reason_text,
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
    number_column,
    print_table,
    print_words,
)

_SEGMENTS = (
    TableColumn("Flow", names_row=True, spare=True),
    TableColumn("Segment", names_row=True),
    TableColumn("kind", whole=True),
    number_column("states"),
    number_column("n"),
    number_column("cohesion"),
    number_column("yield"),
    number_column("typed"),
    TableColumn("of", whole=True),
    number_column("efficiency"),
    number_column("coherence"),
    NOTE_COLUMN,
)
_SEGMENTS_LEGEND = (
    "yield=states that advanced · typed=what the kind is for: slots filled, confirmations accepted, tool calls that "
    "worked · cohesion=yield × (0.35 × efficiency + 0.65 × coherence).",
    "efficiency=states ÷ turns in them · coherence=1 − revisits − stalls.",
    "Below each fraction stands its 95 % interval.",
)
_ARCHETYPES = (
    TableColumn("Archetype", names_row=True),
    number_column("flows"),
    number_column("segments"),
    number_column("cohesion"),
    number_column("spread"),
    number_column("range"),
    TableColumn("weakest", whole=True),
)
_ARCHETYPES_LEGEND = "cohesion=mean over the segments of this kind · spread=standard deviation between them."


def print_segments(screen: Screen, question: StateQuestion, segments: Segments) -> None:
    """One row per segment of a flow, and the states that are in none."""
    print_title(screen, f"# Segments — {question.scope} (least cohesive first)", question.runs)
    if not segments.rows:
        _print_none(screen, question, segments.unassigned)
        return
    notes = [*_SEGMENTS_LEGEND, unmeasured_line(_segment_reasons(segments.rows))]
    rows = [_segment_row(segment) for segment in segments.rows]
    print_table(screen, ReportTable(_SEGMENTS, rows, notes=[*filter(None, notes)]))
    _print_unassigned(screen, segments.unassigned)


def _segment_row(segment: SegmentFigures) -> tuple[TableCell, ...]:
    return (
        TableCell(short_name(segment.flow)),
        TableCell(short_name(segment.segment)),
        TableCell(short_name(segment.kind)),
        TableCell(f"{len(segment.states):,}"),
        TableCell(f"{segment.n:,}"),
        TableCell(decimal_text(segment.group_cohesion, most=1.0)),
        TableCell(rate_text(segment.goal_yield), rate_interval_text(segment.goal_yield)),
        TableCell(rate_text(segment.typed_yield), rate_interval_text(segment.typed_yield)),
        TableCell(f"{segment.typed_yield.n:,} {segment.typed_by}" if segment.typed_yield.n else ""),
        TableCell(decimal_text(segment.efficiency, most=1.0)),
        TableCell(decimal_text(segment.transition_coherence, most=1.0)),
        TableCell("too few to conclude" if segment.caution else ""),
    )


def _segment_reasons(rows: Iterable[SegmentFigures]) -> Iterator[tuple[str, str]]:
    for segment in rows:
        if segment.group_cohesion is None:
            yield "cohesion", segment.reason
        if segment.typed_yield.value is None:
            yield "typed", segment.typed_yield.reason
        if segment.efficiency is None:
            yield "efficiency", segment.efficiency_reason
        if segment.transition_coherence is None:
            yield "coherence", "outcome_unknown"


def _print_none(screen: Screen, question: StateQuestion, unassigned: Sequence[Unassigned]) -> None:
    if not unassigned:
        print_nothing(screen, question)
        return
    screen.line("no state belongs to a segment")
    _print_unassigned(screen, unassigned)
    screen.line("  a flow definition tells the segments: `convoscope score --flows FILE`")


def _print_unassigned(screen: Screen, unassigned: Sequence[Unassigned]) -> None:
    for group in unassigned:
        states = f"{counted(len(group.states), 'state')} of {short_name(group.flow)}"
        names = first_of([short_name(state) for state in group.states])
        print_words(screen, f"in no segment ({short_name(reason_text(group.reason))}): {states}: {names}")


def print_archetypes(screen: Screen, question: StateQuestion, archetypes: Sequence[Archetype]) -> None:
    """One row per kind of segment over all flows: a weakness in many flows is no fault of one."""
    print_title(screen, f"# Archetypes — {question.scope} (weakest first)", question.runs)
    if not archetypes:
        _print_none(screen, question, question.states.segments().unassigned)
        return
    notes = [_ARCHETYPES_LEGEND, unmeasured_line(_archetype_reasons(archetypes))]
    rows = [_archetype_row(archetype) for archetype in archetypes]
    print_table(screen, ReportTable(_ARCHETYPES, rows, notes=[*filter(None, notes)]))


def _archetype_reasons(archetypes: Sequence[Archetype]) -> Iterator[tuple[str, str]]:
    for archetype in archetypes:
        if archetype.cohesion is None:
            yield from (("cohesion", reason) for reason in archetype.reason.split(", "))
    for archetype in archetypes:
        if archetype.cohesion is not None and archetype.spread is None:
            yield "spread", "one segment alone"


def _archetype_row(archetype: Archetype) -> tuple[TableCell, ...]:
    return (
        TableCell(short_name(archetype.kind)),
        TableCell(f"{archetype.flows:,}"),
        TableCell(f"{archetype.segments:,}"),
        TableCell(decimal_text(archetype.cohesion, most=1.0)),
        TableCell(decimal_text(archetype.spread)),
        TableCell(range_text(archetype.lowest, archetype.highest) if archetype.segments > 1 else ""),
        TableCell(short_name(archetype.weakest) if archetype.weakest else ""),
    )
