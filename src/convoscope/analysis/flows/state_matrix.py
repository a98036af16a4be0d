"""The state matrix: one row per flow and state, worst first (flow-states, tier 1 matrix)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.analysis.flows.state_table import RATES, Excluded, Rate, StateTable, dicts, few_words, rate_of
from convoscope.conversation.flow import ESCALATIONS
from convoscope.statistics.summary import Figure
from convoscope.views.flow.segments import segment_of

if TYPE_CHECKING:
    import duckdb


class Neighbour(msgspec.Struct, frozen=True, kw_only=True):
    """A state before or after, and how often it was."""

    state: str
    transitions: int
    conversations: int
    """In which it was so."""


class StateFigures(msgspec.Struct, frozen=True, kw_only=True, rename={"caution": "said"}):
    """What one state did over the conversations that were in it."""

    flow: str
    state: str
    segment: str | None
    terminal: str
    """How a conversation ends that ends here: success, failure, escalation, unknown; "" where it is no end."""
    n: int
    """Conversations that were in it."""
    visits: int
    progress: Rate
    stall: Rate
    escalation: Rate
    revisit: Rate
    dwell_turns: Rate
    latency_p95_ms: float | None
    """Of all turns in it, pooled."""
    latency_n: int
    latency_reason: str
    """Why there is none."""
    guard_error: Rate
    guard_errors: int | None
    guard_n: int
    """Conversations in which a guard failed."""
    slot_fill_rate: Rate
    slot_ready_rate: Rate
    front_loaded: int | None
    """Required slots that were filled before it was entered, in all its conversations."""
    revisit_n: int
    """Conversations that entered it again."""
    unknown: int
    """Conversations that were in it, and of which nobody knows whether they were completed."""
    caution: str
    """A warning where n is small; `said` in JSON."""
    led_to: tuple[Neighbour, ...] | None = None
    """The states that it led to, most often first; asked for with a flow."""
    came_from: tuple[Neighbour, ...] | None = None


class Untested(msgspec.Struct, frozen=True, kw_only=True):
    """A state that the flow declares and no conversation was in."""

    flow: str
    state: str
    segment: str | None


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """The states, worst first, and what is not among them."""

    rows: tuple[StateFigures, ...]
    untested: tuple[Untested, ...]
    excluded: tuple[Excluded, ...]
    conversations: int
    """Those that the rows are of."""
    without_states: int


def matrix(source: StateTable, *, neighbours: bool | None = None) -> Matrix:
    """Every state of the runs. With neighbours where one flow is asked for, or `neighbours` says so."""
    with source.ask() as connection:
        return matrix_of(connection, source, neighbours=source.flow is not None if neighbours is None else neighbours)


def matrix_of(connection: duckdb.DuckDBPyConnection, source: StateTable, *, neighbours: bool) -> Matrix:
    """The same, where a connection is open already."""
    facts = {(one["flow"], one["state"]): one for one in dicts(source.combined(connection))}
    figures = source.figures(connection)
    around = _neighbours(connection) if neighbours else None
    rows = [_figures(source, one, figures.get(key, {}), around) for key, one in facts.items()]
    # Each conversation has one state that it entered first.
    conversations = connection.execute("SELECT count(*) FILTER (position = 0) FROM s").fetchall()
    return Matrix(
        rows=tuple(sorted(rows, key=_worst_first)),
        untested=_untested(connection, source, set(facts)),
        excluded=tuple(source.excluded(connection)),
        conversations=int(conversations[0][0]),
        without_states=source.without_states(connection),
    )


def _worst_first(row: StateFigures) -> tuple[Any, ...]:
    """By stall, the greatest first, then progress, the least first, then n; unknown stalls last."""
    stall = row.stall.value
    return (stall is None, -(stall or 0.0), row.progress.value or 0.0, -row.n, row.flow, row.state)


def _figures(
    source: StateTable,
    row: Mapping[str, Any],
    figures: Mapping[str, Figure],
    around: tuple[Mapping[Any, Any], Mapping[Any, Any]] | None,
) -> StateFigures:
    key = (row["flow"], row["state"])
    declared = source.flows.get(row["flow"])
    n = row["n"]
    rates = {name: rate_of(figures.get(name)) for name in RATES}
    return StateFigures(
        flow=row["flow"],
        state=row["state"],
        segment=row["segment"],
        terminal=terminal_of(source, *key),
        n=n,
        visits=row["visits"],
        latency_p95_ms=row["latency_p95_ms"],
        latency_n=row["latency_n"] or 0,
        latency_reason="" if row["latency_n"] else _reason_of_latency(rates["dwell_turns"], row),
        guard_errors=row["guard_errors"] if rates["guard_error"].n else None,
        guard_n=row["guarded"],
        front_loaded=row["front_loaded"] if declared is not None and rates["slot_fill_rate"].n else None,
        revisit_n=row["revisited"],
        unknown=n - rates["stall"].n,
        caution=few_words(n),
        led_to=None if around is None else tuple(around[0].get(key, ())),
        came_from=None if around is None else tuple(around[1].get(key, ())),
        **rates,
    )


def terminal_of(source: StateTable, flow: str, state: str) -> str:
    """How a conversation ends that ends in a state."""
    declared = source.flows.get(flow)
    if declared is not None:
        return declared.terminals.get(state, "")
    return "escalation" if state in ESCALATIONS else ""


def _reason_of_latency(dwell: Rate, row: Mapping[str, Any]) -> str:
    if not dwell.n:
        return "no_turns_logged"
    return "no_latency_logged" if row["turns"] else "no_turn_ran"


def untested(source: StateTable) -> tuple[Untested, ...]:
    """The declared states that no conversation was in."""
    with source.ask() as connection:
        return _untested(connection, source, set(connection.execute("SELECT DISTINCT flow, state FROM s").fetchall()))


def _untested(
    connection: duckdb.DuckDBPyConnection, source: StateTable, seen: set[tuple[str, str]]
) -> tuple[Untested, ...]:
    """Declared states that no conversation was in. An end that some were left for was reached, if nobody entered it."""
    rows = "s"
    if source.agent is not None:
        # What another agent was in is tested, too.
        rows = "every"
        seen = seen | set(connection.execute("SELECT DISTINCT flow, state FROM every").fetchall())
    unseen = [
        (flow, state) for flow in source.declared() for state in flow.states if (flow.name, state.name) not in seen
    ]
    if any(state.terminal for _, state in unseen):
        led = set(connection.execute(f"SELECT DISTINCT flow, unnest(to_states) FROM {rows}").fetchall())
        unseen = [(flow, state) for flow, state in unseen if not (state.terminal and (flow.name, state.name) in led)]
    return tuple(
        Untested(flow=flow.name, state=state.name, segment=segment_of(flow, state.name) or None)
        for flow, state in unseen
    )


def _neighbours(
    connection: duckdb.DuckDBPyConnection,
) -> tuple[dict[tuple[str, str], list[Neighbour]], dict[tuple[str, str], list[Neighbour]]]:
    """For each state those that it led to, and those that led to it."""
    after: dict[tuple[str, str], list[Neighbour]] = {}
    before: dict[tuple[str, str], list[Neighbour]] = {}
    for flow, state, to_state, count, conversations in connection.execute(_TRANSITIONS).fetchall():
        counts = {"transitions": int(count), "conversations": conversations}
        after.setdefault((flow, state), []).append(Neighbour(state=to_state, **counts))
        before.setdefault((flow, to_state), []).append(Neighbour(state=state, **counts))
    return after, before


_TRANSITIONS = """
    SELECT flow, state, to_state, sum(count) AS count, count(*) AS conversations
    FROM (SELECT flow, state, unnest(to_states) AS to_state, unnest(to_counts) AS count FROM s)
    GROUP BY ALL ORDER BY count DESC, flow, state, to_state
"""
