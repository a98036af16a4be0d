"""Segments of a flow and how well their states hold together; archetypes over all flows (flow-states, 2 and 4)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.analysis.flows.state_table import Rate, StateTable, dicts, few_text, no_rate, rates
from convoscope.conversation import Flow
from convoscope.runs.database import quoted
from convoscope.views.flow.state_rows import ACT, COLLECT, CONFIRM, has_no_cohesion, kind_of, segment_of

if TYPE_CHECKING:
    import duckdb

EFFICIENCY_WEIGHT, COHERENCE_WEIGHT = 0.35, 0.65
_LEAST_STATES = 2


class SegmentFigures(msgspec.Struct, frozen=True, kw_only=True, rename={"caution": "said"}):
    """One segment of one flow."""

    flow: str
    segment: str
    kind: str
    """Its canonical archetype."""
    states: tuple[str, ...]
    """Those of its states that ran."""
    n: int
    """Conversations that were in it."""
    rows: int
    """(conversation, state) rows that the figures are means of."""
    goal_yield: Rate
    typed_yield: Rate
    typed_by: str
    """What the typed yield counts: slots, confirmations, tool calls; empty where it has no type."""
    efficiency: float | None
    efficiency_reason: str
    transition_coherence: float | None
    group_cohesion: float | None
    reason: str
    """Why there is no cohesion."""
    caution: str


class Unassigned(msgspec.Struct, frozen=True, kw_only=True):
    """States of a flow that belong to no segment, and why."""

    flow: str
    reason: str
    states: tuple[str, ...]


class Segments(msgspec.Struct, frozen=True, kw_only=True):
    """The segments of all flows, the least cohesive first, and the states that are in none."""

    rows: tuple[SegmentFigures, ...]
    unassigned: tuple[Unassigned, ...]


class Archetype(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of segment over all flows."""

    kind: str
    flows: int
    segments: int
    cohesion: float | None
    """Mean over the segments that have one."""
    spread: float | None
    """Standard deviation between them; missing for one alone."""
    lowest: float | None
    highest: float | None
    weakest: str
    """flow and segment with the lowest cohesion."""
    reason: str


def segments_of(connection: duckdb.DuckDBPyConnection, source: StateTable) -> Segments:
    """Every segment of the runs."""
    dwell: dict[_Key, list[tuple[str, float | None]]] = {}
    for flow, segment, state, turns in connection.execute(_DWELL).fetchall():
        dwell.setdefault((flow, segment), []).append((state, turns))
    yields = rates(connection, "(SELECT * FROM s WHERE segment IS NOT NULL)", ("flow", "segment"), _YIELDS)
    slots = _slots(connection, source) if source.flows else {}
    rows = []
    for row in dicts(connection.execute(_SEGMENTS)):
        key = (row["flow"], row["segment"])
        rows.append(_figures(source, row, dwell[key], yields[key], slots.get(key)))
    rows.sort(key=lambda row: (row.group_cohesion is None, row.group_cohesion or 0.0, row.flow, row.segment))
    return Segments(rows=tuple(rows), unassigned=_unassigned(connection))


_Key = tuple[str, str]
_SEGMENTS = """
    SELECT flow, segment, count(*) AS rows, count(DISTINCT (run, number)) AS conversations,
           avg(revisit) AS revisit, avg(stall) AS stall, count(stall) AS stalls, sum(tool_calls) AS calls
    FROM s WHERE segment IS NOT NULL GROUP BY flow, segment ORDER BY flow, segment
"""
_DWELL = """
    SELECT flow, segment, state, avg(dwell_turns) FROM s WHERE segment IS NOT NULL
    GROUP BY flow, segment, state ORDER BY state
"""
_YIELDS = {
    "goal": ("progress", "1"),
    "confirmed": ("accepted", "asked"),
    "worked": ("tool_successes", "tool_calls - tool_unknown"),
}


def _slots(connection: duckdb.DuckDBPyConnection, source: StateTable) -> dict[_Key, Rate]:
    """Of the slots that a segment has to fill, how many are filled in the conversations that came into it, wherever."""
    targets = [
        (flow.name, segment, slot)
        for flow in source.flows.values()
        for segment in {segment_of(flow, state.name) for state in flow.states} - {""}
        for slot in target_slots(flow, segment)
    ]
    if not targets:
        return {}
    listed = ", ".join(f"({', '.join(map(quoted, target))})" for target in targets)
    wanted = f"""(
        WITH inside AS (SELECT DISTINCT run, number, flow, segment, cluster FROM s WHERE segment IS NOT NULL),
             filled AS (SELECT DISTINCT run, number, unnest(list_concat(slots, unplaced)) AS slot FROM s)
        SELECT i.flow, i.segment, i.cluster, f.slot IS NOT NULL AS is_filled
        FROM inside AS i JOIN (VALUES {listed}) AS t(flow, segment, slot) USING (flow, segment)
        LEFT JOIN filled AS f ON f.run = i.run AND f.number = i.number AND f.slot = t.slot
    )"""
    filled = rates(connection, wanted, ("flow", "segment"), {"filled": ("is_filled::INTEGER", "1")})
    return {(flow, segment): rate["filled"] for (flow, segment), rate in filled.items()}


def archetypes_of(segments: Segments) -> tuple[Archetype, ...]:
    """The kinds of segments over all flows, the weakest first."""
    kinds: dict[str, list[SegmentFigures]] = {}
    for segment in segments.rows:
        kinds.setdefault(segment.kind, []).append(segment)
    archetypes = [_archetype(kind, of_kind) for kind, of_kind in kinds.items()]
    return tuple(sorted(archetypes, key=lambda row: (row.cohesion is None, row.cohesion or 0.0, row.kind)))


def _archetype(kind: str, segments: Sequence[SegmentFigures]) -> Archetype:
    scored = [segment for segment in segments if segment.group_cohesion is not None]
    values = [segment.group_cohesion or 0.0 for segment in scored]
    weakest = min(scored, key=lambda segment: segment.group_cohesion or 0.0) if scored else None
    reasons = sorted({segment.reason for segment in segments if segment.reason})
    return Archetype(
        kind=kind,
        flows=len({segment.flow for segment in scored or segments}),
        segments=len(scored),
        cohesion=statistics.fmean(values) if values else None,
        spread=statistics.stdev(values) if len(values) > 1 else None,
        lowest=min(values, default=None),
        highest=max(values, default=None),
        weakest=f"{weakest.flow} / {weakest.segment}" if weakest else "",
        reason="" if values else ", ".join(reasons),
    )


def _figures(
    source: StateTable,
    row: Mapping[str, Any],
    dwell: Sequence[tuple[str, float | None]],
    yields: Mapping[str, Rate],
    slots: Rate | None,
) -> SegmentFigures:
    flow, segment = row["flow"], row["segment"]
    kind = kind_of(source.flows.get(flow), segment)
    goal_yield = yields["goal"]
    turns = [spent for _, spent in dwell]
    efficiency = _efficiency(turns)
    coherence = _clamp(1 - row["revisit"] - row["stall"]) if row["stalls"] else None
    reason = _why_no_cohesion(kind, turns, efficiency, coherence)
    cohesion = None
    if not reason and efficiency is not None and coherence is not None and goal_yield.value is not None:
        cohesion = goal_yield.value * (EFFICIENCY_WEIGHT * efficiency + COHERENCE_WEIGHT * coherence)
    typed, counted = _typed_yield(source.flows.get(flow), row, kind, yields, slots)
    return SegmentFigures(
        flow=flow,
        segment=segment,
        kind=kind,
        states=tuple(state for state, _ in dwell),
        n=row["conversations"],
        rows=row["rows"],
        goal_yield=goal_yield,
        typed_yield=typed,
        typed_by=counted,
        efficiency=efficiency,
        efficiency_reason="" if efficiency is not None else _why_not_efficient(turns),
        transition_coherence=coherence,
        group_cohesion=cohesion,
        reason=reason,
        caution=few_text(row["conversations"]),
    )


def _efficiency(dwell: Sequence[float | None]) -> float | None:
    """States ÷ the sum of their mean turns; None where no turn was logged, or none ran in any of them."""
    logged = [turns for turns in dwell if turns is not None]
    if len(logged) < len(dwell) or not sum(logged):
        return None
    return _clamp(len(logged) / sum(logged))


def _why_no_cohesion(
    kind: str, dwell: Sequence[float | None], efficiency: float | None, coherence: float | None
) -> str:
    if has_no_cohesion(kind):
        return "terminal_kind"
    if len(dwell) < _LEAST_STATES:
        return "fewer_than_two_states"
    if coherence is None:
        return "outcome_unknown"
    return _why_not_efficient(dwell) if efficiency is None else ""


def _why_not_efficient(dwell: Sequence[float | None]) -> str:
    return "no_turns_logged" if None in dwell else "no_turn_ran"


def _typed_yield(
    declared: Flow | None, row: Mapping[str, Any], kind: str, yields: Mapping[str, Rate], slots: Rate | None
) -> tuple[Rate, str]:
    """What the kind of segment is there for, counted where the events allow it."""
    if kind == COLLECT:
        return slots or no_rate("no_flow_definition" if declared is None else "no_target_slots"), "slots"
    if kind == CONFIRM:
        return yields.get("confirmed") or no_rate("confirmations_not_logged"), "confirmations"
    if kind == ACT:
        why = "tool_results_not_logged" if row["calls"] else "no_tool_called"
        return yields.get("worked") or no_rate(why), "tool calls"
    return no_rate("kind_without_typed_yield"), ""


def target_slots(declared: Flow, segment: str) -> list[str]:
    """The slots that a segment has to fill: its required targets, else what its states require."""
    declaration = declared.segment_by_name.get(segment)
    if declaration is not None and declaration.target_slots is not None:
        return [slot.name for slot in declaration.target_slots if slot.required]
    members = [state for state in declared.states if segment_of(declared, state.name) == segment]
    return list(dict.fromkeys(slot for state in members for slot in state.required_slots))


def _unassigned(connection: duckdb.DuckDBPyConnection) -> tuple[Unassigned, ...]:
    rows = connection.execute("""
        SELECT flow, any_value(json_extract_string(reasons, '$.segment')), list(DISTINCT state ORDER BY state)
        FROM s WHERE segment IS NULL GROUP BY flow ORDER BY flow
    """).fetchall()
    return tuple(Unassigned(flow=flow, reason=reason or "unknown", states=tuple(names)) for flow, reason, names in rows)


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))
