"""Segments of a flow and how well their states hold together; archetypes over all flows (flow-states, 2 and 4)."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.analysis.flows.state_table import Rate, StateTable, dicts, few_words, no_rate, rates
from convoscope.conversation import Flow
from convoscope.runs.database import quoted
from convoscope.views.flow.segments import ACT, COLLECT, CONFIRM, has_no_cohesion, kind_of, segment_of

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
    """What the typed yield counts: slots, confirmations, tool calls; "" where it has no type."""
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
    """Standard deviation between them; of one alone there is none."""
    lowest: float | None
    highest: float | None
    weakest: str
    """flow and segment with the lowest cohesion."""
    reason: str


def segments(source: StateTable) -> Segments:
    """Every segment of the runs."""
    with source.ask() as connection:
        return segments_of(connection, source)


def segments_of(connection: duckdb.DuckDBPyConnection, source: StateTable) -> Segments:
    facts = dicts(connection.execute(_FACTS))
    dwell: dict[_Key, list[tuple[str, float | None]]] = {}
    for flow, segment, state, turns in connection.execute(_DWELL).fetchall():
        dwell.setdefault((flow, segment), []).append((state, turns))
    known = rates(connection, "(SELECT * FROM s WHERE segment IS NOT NULL)", ("flow", "segment"), _YIELDS)
    slots = _slots(connection, source) if source.flows else {}
    rows = [
        _figures(source, one, dwell[key], known[key], slots.get(key))
        for one in facts
        if (key := (one["flow"], one["segment"]))
    ]
    order = sorted(rows, key=lambda one: (one.group_cohesion is None, one.group_cohesion or 0.0, one.flow, one.segment))
    return Segments(rows=tuple(order), unassigned=_unassigned(connection))


_Key = tuple[str, str]
_FACTS = """
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
    listed = ", ".join(f"({', '.join(map(quoted, one))})" for one in targets)
    wanted = f"""(
        WITH inside AS (SELECT DISTINCT run, number, flow, segment, cluster FROM s WHERE segment IS NOT NULL),
             filled AS (SELECT DISTINCT run, number, unnest(list_concat(slots, unplaced)) AS slot FROM s)
        SELECT i.flow, i.segment, i.cluster, f.slot IS NOT NULL AS is_filled
        FROM inside AS i JOIN (VALUES {listed}) AS t(flow, segment, slot) USING (flow, segment)
        LEFT JOIN filled AS f ON f.run = i.run AND f.number = i.number AND f.slot = t.slot
    )"""
    found = rates(connection, wanted, ("flow", "segment"), {"filled": ("is_filled::INTEGER", "1")})
    return {(flow, segment): one["filled"] for (flow, segment), one in found.items()}


def archetypes(source: StateTable) -> tuple[Archetype, ...]:
    """The kinds of segments over all flows, the weakest first."""
    return archetypes_of(segments(source))


def archetypes_of(found: Segments) -> tuple[Archetype, ...]:
    """The same, from segments that are known already."""
    kinds: dict[str, list[SegmentFigures]] = {}
    for one in found.rows:
        kinds.setdefault(one.kind, []).append(one)
    made = [_archetype(kind, mine) for kind, mine in kinds.items()]
    return tuple(sorted(made, key=lambda one: (one.cohesion is None, one.cohesion or 0.0, one.kind)))


def _archetype(kind: str, mine: Sequence[SegmentFigures]) -> Archetype:
    scored = [(one.group_cohesion, one) for one in mine if one.group_cohesion is not None]
    values = [value for value, _ in scored]
    weakest = min(scored, key=lambda pair: pair[0])[1] if scored else None
    reasons = sorted({one.reason for one in mine if one.reason})
    return Archetype(
        kind=kind,
        flows=len({one.flow for _, one in scored} if scored else {one.flow for one in mine}),
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
    one: Mapping[str, Any],
    dwell: Sequence[tuple[str, float | None]],
    known: Mapping[str, Rate],
    slots: Rate | None,
) -> SegmentFigures:
    flow, segment = one["flow"], one["segment"]
    kind = kind_of(source.flows.get(flow), segment)
    goal_yield = known["goal"]
    turns = [spent for _, spent in dwell]
    efficiency = _efficiency(turns)
    coherence = _clamp(1 - one["revisit"] - one["stall"]) if one["stalls"] else None
    reason = _why_no_cohesion(kind, turns, efficiency, coherence)
    cohesion = None
    if not reason and efficiency is not None and coherence is not None and goal_yield.value is not None:
        cohesion = goal_yield.value * (EFFICIENCY_WEIGHT * efficiency + COHERENCE_WEIGHT * coherence)
    typed, counted = _typed_yield(source.flows.get(flow), one, kind, known, slots)
    return SegmentFigures(
        flow=flow,
        segment=segment,
        kind=kind,
        states=tuple(state for state, _ in dwell),
        n=one["conversations"],
        rows=one["rows"],
        goal_yield=goal_yield,
        typed_yield=typed,
        typed_by=counted,
        efficiency=efficiency,
        efficiency_reason="" if efficiency is not None else _why_not_efficient(turns),
        transition_coherence=coherence,
        group_cohesion=cohesion,
        reason=reason,
        caution=few_words(one["conversations"]),
    )


def _efficiency(dwell: Sequence[float | None]) -> float | None:
    """States ÷ the sum of their mean turns; where no turn was logged, or none ran in any of them, there is none."""
    known = [turns for turns in dwell if turns is not None]
    if len(known) < len(dwell) or not sum(known):
        return None
    return _clamp(len(known) / sum(known))


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
    declared: Flow | None, one: Mapping[str, Any], kind: str, known: Mapping[str, Rate], slots: Rate | None
) -> tuple[Rate, str]:
    """What the kind of segment is there for, counted where the events allow it."""
    if kind == COLLECT:
        return slots or no_rate("no_flow_definition" if declared is None else "no_target_slots"), "slots"
    if kind == CONFIRM:
        return known.get("confirmed") or no_rate("confirmations_not_logged"), "confirmations"
    if kind == ACT:
        why = "tool_results_not_logged" if one["calls"] else "no_tool_called"
        return known.get("worked") or no_rate(why), "tool calls"
    return no_rate("kind_without_typed_yield"), ""


def target_slots(declared: Flow, segment: str) -> list[str]:
    """The slots that a segment has to fill: its required targets, else what its states require."""
    found = declared.segment_by_name.get(segment)
    if found is not None and found.target_slots is not None:
        return [slot.name for slot in found.target_slots if slot.required]
    members = [state for state in declared.states if segment_of(declared, state.name) == segment]
    return list(dict.fromkeys(slot for state in members for slot in state.required_slots))


def _unassigned(connection: duckdb.DuckDBPyConnection) -> tuple[Unassigned, ...]:
    rows = connection.execute("""
        SELECT flow, any_value(json_extract_string(reasons, '$.segment')), list(DISTINCT state ORDER BY state)
        FROM s WHERE segment IS NULL GROUP BY flow ORDER BY flow
    """).fetchall()
    return tuple(Unassigned(flow=flow, reason=reason or "unknown", states=tuple(found)) for flow, reason, found in rows)


def _clamp(value: float) -> float:
    return min(1.0, max(0.0, value))
