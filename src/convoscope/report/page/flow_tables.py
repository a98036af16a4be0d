"""Tables of states, segments and flows, as the page unfolds them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from convoscope.analysis.flows.diagnosis import STALL
from convoscope.analysis.flows.flow_matrix import Aspect, FlowFigures
from convoscope.analysis.flows.segments import Archetype, SegmentFigures
from convoscope.analysis.flows.state_matrix import StateFigures
from convoscope.analysis.flows.state_table import Rate
from convoscope.analysis.flows.states import States
from convoscope.analysis.words import NOTHING, counted, number_text, reason_text, seconds_text, value_text
from convoscope.metrics.declaration import COUNT, SHARE
from convoscope.report.page.flow_picture import is_no_fault, shortened

MAX_ROWS = 40
"""Rows of a table; what is left out is counted."""


class FlowCell(NamedTuple):
    """A cell of a table: a value, what stands under it, and why there is none."""

    value: str
    under: str = ""
    reason: str = ""
    weak: bool = False


class TableRow(NamedTuple):
    name: str
    href: str
    cells: Sequence[FlowCell]


class FlowTable(NamedTuple):
    title: str
    head: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    more: int
    note: str = ""


LABELS = (
    "progress",
    "stall",
    "escalation",
    "revisits",
    "turns a visit",
    "latency p95",
    "guard errors",
    "slots filled here",
    "slots ready",
)


def state_cells(row: StateFigures) -> list[FlowCell]:
    slow = row.latency_p95_ms
    latency = (
        FlowCell(seconds_text(slow / 1000), counted(row.latency_n, "turn"))
        if slow is not None
        else _none(row.latency_reason)
    )
    stall = _rate(row.stall, SHARE)
    return [
        _rate(row.progress, SHARE),
        stall._replace(weak=not is_no_fault(row.terminal) and (row.stall.value or 0.0) > STALL),
        _rate(row.escalation, SHARE),
        _rate(row.revisit, COUNT),
        _rate(row.dwell_turns, COUNT),
        latency,
        _rate(row.guard_error, COUNT),
        _rate(row.slot_fill_rate, SHARE),
        _rate(row.slot_ready_rate, SHARE),
    ]


def _rate(rate: Rate, unit: str) -> FlowCell:
    if rate.value is None:
        return _none(rate.reason)
    words = f"n {rate.n:,}"
    return FlowCell(
        value_text(rate.value, unit), f"{interval_of(rate, unit)}, {words}" if rate.low is not None else words
    )


def interval_of(rate: Rate | Aspect, unit: str) -> str:
    if rate.low is None or rate.high is None:
        return "no interval"
    return f"{number_text(max(0.0, rate.low), unit)} to {number_text(rate.high, unit)}"


def _none(reason: str) -> FlowCell:
    return FlowCell(NOTHING, reason=reason_text(reason) or "nothing measured")


def _share(value: float | None, reason: str) -> FlowCell:
    return _none(reason) if value is None else FlowCell(f"{value:.2f}")


def matrix_table(rows: Sequence[StateFigures], links: Mapping[tuple[str, str], str], noun: str) -> FlowTable:
    return FlowTable(
        title="States, worst first",
        head="state",
        columns=("n", *LABELS),
        rows=[
            TableRow(
                shortened(row.state), links.get((row.flow, row.state), ""), [FlowCell(f"{row.n:,}"), *state_cells(row)]
            )
            for row in rows[:MAX_ROWS]
        ],
        more=max(0, len(rows) - MAX_ROWS),
        note=f"n counts {noun}s that were in the state. Stall: the share that got stuck there. Progress: the share "
        "that went on. Revisits: entries beyond the first.",
    )


def segment_table(rows: Sequence[SegmentFigures]) -> FlowTable:
    return FlowTable(
        title="Segments, the least cohesive first",
        head="segment",
        columns=("kind", "states", "n", "goal yield", "typed yield", "efficiency", "coherence", "cohesion"),
        rows=[
            TableRow(
                shortened(row.segment),
                "",
                [
                    FlowCell(shortened(row.kind)),
                    FlowCell(f"{len(row.states):,}"),
                    FlowCell(f"{row.n:,}"),
                    _rate(row.goal_yield, SHARE),
                    _typed(row),
                    _share(row.efficiency, "no_turns_logged"),
                    _share(row.transition_coherence, "outcome_unknown"),
                    _share(row.group_cohesion, row.reason),
                ],
            )
            for row in rows[:MAX_ROWS]
        ],
        more=max(0, len(rows) - MAX_ROWS),
        note="Cohesion = goal yield × (0.35 × efficiency + 0.65 × coherence), from 0 to 1.",
    )


def _typed(row: SegmentFigures) -> FlowCell:
    cell = _rate(row.typed_yield, SHARE)
    return cell if row.typed_yield.value is None else cell._replace(under=f"{row.typed_by}, {cell.under}")


def wider_tables(states: States) -> Iterator[FlowTable]:
    """The tables over all flows."""
    flows = states.flows().rows
    yield FlowTable(
        title="Flows by agent",
        head="flow",
        columns=("agent", "n", "correctness", "completion", "errors", "latency mean", "latency p95", "humanness"),
        rows=[_flow_row(row) for row in flows[:MAX_ROWS]],
        more=max(0, len(flows) - MAX_ROWS),
        note="Points of ten, the least correct first; errors are points left after what went wrong.",
    )
    kinds = states.archetypes()
    yield FlowTable(
        title="Kinds of segments over all flows",
        head="kind",
        columns=("flows", "segments", "cohesion", "spread", "lowest", "highest", "weakest"),
        rows=[_kind_row(row) for row in kinds[:MAX_ROWS]],
        more=max(0, len(kinds) - MAX_ROWS),
        note="A kind that is weak in many flows is no fault of one flow.",
    )


def _flow_row(row: FlowFigures) -> TableRow:
    seconds = [
        _none("no_latency_logged") if value is None else FlowCell(seconds_text(value), counted(row.latency_n, "turn"))
        for value in (row.latency_mean, row.latency_p95)
    ]
    judged = [one for one in row.humanness if one.score is not None]
    humanness = FlowCell(f"{judged[-1].score:.1f}", shortened(judged[-1].judge, 40)) if judged else _none("not_judged")
    points = [_points(aspect) for aspect in (row.correctness, row.completion, row.errors)]
    under = f"{row.excluded:,} left out" if row.excluded else row.caution
    return TableRow(
        shortened(row.flow),
        "",
        [FlowCell(shortened(row.agent)), FlowCell(f"{row.n:,}", under), *points, *seconds, humanness],
    )


def _points(aspect: Aspect) -> FlowCell:
    if aspect.score is None:
        return _none(aspect.reason)
    under = f"n {aspect.n:,}"
    if aspect.low is not None and aspect.high is not None:
        under = f"{aspect.low:.1f} to {aspect.high:.1f}, {under}"
    return FlowCell(f"{aspect.score:.1f}", under)


def _kind_row(row: Archetype) -> TableRow:
    alone = row.reason or "one_segment_alone"
    cells = [
        FlowCell(f"{row.flows:,}"),
        FlowCell(f"{row.segments:,}"),
        _share(row.cohesion, row.reason),
        _share(row.spread, alone),
        _share(row.lowest, row.reason),
        _share(row.highest, row.reason),
        FlowCell(shortened(row.weakest)) if row.weakest else _none(row.reason),
    ]
    return TableRow(shortened(row.kind), "", cells)
