"""The rows of states of one or several runs, all or of one flow or agent, and the state matrix (flow-states, tier 1).

The matrix has one row per flow and state, worst first.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from convoscope.conversation import Flow
from convoscope.conversation.flow import ESCALATIONS
from convoscope.errors import RunError, UsageError
from convoscope.metrics.declaration import AXES, STATE, Metric
from convoscope.metrics.flow import states as state_metrics
from convoscope.metrics.flow.states import EXPLAINED_BY, NO_OPPORTUNITY, STATE_TABLE
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.database import connect_alone, parquet, quoted
from convoscope.runs.run import Run
from convoscope.runs.sql import combined, combined_file, create_views
from convoscope.runs.subjects import KnownConversations, SubjectGroup, read_column, subject_groups
from convoscope.scores.reducers import Sums
from convoscope.statistics.intervals import Floats, ratio_interval, ratio_of
from convoscope.statistics.summary import Figure
from convoscope.views.flow.state_rows import segment_of

if TYPE_CHECKING:
    import duckdb

Runlike = Run | str | os.PathLike[str]

NO_AGENT = "(no agent)"
_MEMORY_MB = 512
FEW = 10
"""Fewer conversations than this are too few to conclude from."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share or a mean over the conversations that have a value, how many these are, and its 95 % interval."""

    value: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why there is no value."""


def rate_of(figure: Figure | None) -> Rate:
    """A figure of the summary in short."""
    if figure is None:
        return no_rate("not_scored")
    if figure.interval is None:
        return Rate(value=figure.value, n=figure.samples_measured, reason=figure.reason)
    low, high = figure.interval.low, figure.interval.high
    return Rate(value=figure.value, n=figure.samples_measured, low=low, high=high)


def rates(
    connection: duckdb.DuckDBPyConnection,
    table: str,
    keys: Sequence[str],
    measures: Mapping[str, tuple[str, str]],
    *,
    is_share: bool = True,
) -> dict[tuple[Any, ...], dict[str, Rate]]:
    """Σ above ÷ Σ below of each measure, for each group by `keys` of a table whose rows name their cluster.

    The intervals are those of the summary. What has nothing below has no rate.
    """
    by = ", ".join(keys)
    sums = ", ".join(
        f"sum({above})::DOUBLE AS above{at}, coalesce(sum({below}), 0)::DOUBLE AS below{at}"
        for at, (above, below) in enumerate(measures.values())
    )
    groups = connection.execute(f"SELECT DISTINCT {by} FROM {table} ORDER BY {by}").fetchall()
    rows = connection.execute(
        f"SELECT dense_rank() OVER (ORDER BY {by}) - 1 AS code, * FROM "
        f"(SELECT {by}, cluster, {sums} FROM {table} GROUP BY {by}, cluster) ORDER BY code, cluster"
    ).fetchnumpy()
    bounds = np.searchsorted(np.asarray(rows["code"]), np.arange(len(groups) + 1))
    by_key: dict[tuple[Any, ...], dict[str, Rate]] = {key: {} for key in groups}
    for at, name in enumerate(measures):
        above, below = (np.ma.filled(np.ma.asarray(rows[f"{side}{at}"]), 0.0) for side in ("above", "below"))
        # Groups with equal rows have the same rate, which is computed once.
        known: dict[tuple[bytes, bytes], Rate | None] = {}
        for number, key in enumerate(groups):
            part = slice(bounds[number], bounds[number + 1])
            sums_of_rows = (above[part].tobytes(), below[part].tobytes())
            if sums_of_rows not in known:
                known[sums_of_rows] = _rate(above[part], below[part], is_share=is_share)
            if (rate := known[sums_of_rows]) is not None:
                by_key[key][name] = rate
    return by_key


def _rate(above: Floats, below: Floats, *, is_share: bool) -> Rate | None:
    counts = below > 0
    sums = Sums("", above[counts], below[counts])
    value = ratio_of(sums)
    if value is None:
        return None
    clusters = np.arange(len(sums.below), dtype=np.int64)
    interval = ratio_interval(sums, clusters, bounded=is_share, least=0.0)
    low, high = (interval.low, interval.high) if interval else (None, None)
    return Rate(value=value, n=round(float(sums.below.sum())), low=low, high=high)


def no_rate(reason: str) -> Rate:
    """Nothing was measured."""
    return Rate(value=None, n=0, reason=reason)


def few_text(n: int) -> str:
    """A warning where there are few conversations; empty where there are enough."""
    return f"n={n}: too few to conclude" if n < FEW else ""


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations whose integration broke: in no figure, and counted."""

    flow: str
    reason: str
    n: int


class StateTable:
    """The runs that are asked, and which part of them."""

    def __init__(self, runs: Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> None:
        if not runs:
            raise UsageError("no run given", hint="score some logs first, then name the folder of the run")
        self.runs = [run if isinstance(run, Run) else Run.open(run) for run in runs]
        if len({run.name for run in self.runs}) < len(self.runs):
            raise RunError("two runs have the same name", hint="rename one of the folders")
        self.flow, self.agent = flow, agent
        self.flows: dict[str, Flow] = {}
        for run in reversed(self.runs):
            self.flows |= run.flows

    @contextmanager
    def ask(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with the table `s`: the rows of states that the question is about."""
        with (
            tempfile.TemporaryDirectory(prefix="convoscope-") as scratch,
            connect_alone(
                Path(scratch), folders=[run.folder for run in self.runs], memory_mb=_MEMORY_MB, threads=2
            ) as connection,
        ):
            create_views(connection, self.runs)
            # Most runs have one model for each agent: their rows do not need the conversations.
            several = connection.execute(f"{_SEVERAL_MODELS} LIMIT 1").fetchall()
            for view in (_CALLED_BY_MODEL, _EVERY_BY_MODEL) if several else (_CALLED, _EVERY):
                connection.execute(view)
            self._check(connection)
            # Conversations of one scenario are not independent; without any, each is a cluster of its own.
            clustered = connection.execute("SELECT 1 FROM conversations WHERE scenario_id IS NOT NULL LIMIT 1")
            every = _CLUSTERED if clustered.fetchall() else "(SELECT *, hash(run, number) AS cluster FROM every)"
            connection.execute(f"CREATE VIEW s AS SELECT * FROM {every} {self.where()}")
            yield connection

    def where(self, *more: str) -> str:
        conditions = [*more]
        if self.flow is not None:
            conditions.append(f"flow = {quoted(self.flow)}")
        if self.agent is not None:
            conditions.append(f"{quoted(self.agent)} IN (agent, named)")
        return f"WHERE {' AND '.join(conditions)}" if conditions else ""

    def _check(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Refuse a flow or an agent that no conversation has."""
        for name, wanted in (("flow", self.flow), ("agent", self.agent)):
            if wanted is None:
                continue
            rows = connection.execute(f"SELECT DISTINCT {name} FROM called ORDER BY 1").fetchall()
            values = [row[0] for row in rows]
            if connection.execute(f"SELECT 1 FROM called WHERE {_ASKED[name]} LIMIT 1", [wanted]).fetchall():
                continue
            if not (name == "flow" and wanted in self.flows):
                # Names come from logs: one line each, not endless.
                known = [" ".join(value.split())[:60] for value in values[:20]] + ["…"] * (len(values) > 20)
                raise UsageError(f"no conversation has the {name} {wanted!r}", hint=f"known: {', '.join(known)}")

    def combined(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """The rows of each state combined: one row for each flow and state."""
        file = self._alone.tables.own(combined_file(STATE_TABLE.name)) if self._alone is not None else None
        if file is None or not file.exists():
            return connection.execute(combined(STATE_TABLE, "flow", "s"))
        flow = f"coalesce(flow, {quoted(NO_FLOW)})"
        return connection.execute(f"SELECT * REPLACE ({flow} AS flow) FROM {parquet(file)} {self.where()}")

    def figures(self, connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], dict[str, Figure]]:
        """The figures of each state: those of the summary, or the same of the rows that the question is about."""
        groups = None
        if self._alone is not None and {metric.metric for metric in self._alone.summary.declared} >= {*_METRICS}:
            groups = self._alone.summary.by_subject((*AXES[STATE], STATE))
        if groups is None:
            groups = [(group.by, group.figures) for group in self._observed(connection)]
        return {
            (by["flow"], by["state"]): {figure.metric.removeprefix("state."): figure for figure in figures}
            for by, figures in groups
        }

    @property
    def _alone(self) -> Run | None:
        """The run, where it is one and all its agents are asked for: its summary has the answer."""
        return self.runs[0] if len(self.runs) == 1 and self.agent is None else None

    def _observed(self, connection: duckdb.DuckDBPyConnection) -> list[SubjectGroup]:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE indexed AS SELECT *, row_number() OVER (ORDER BY run, number) - 1 AS index "
            "FROM (SELECT DISTINCT run, number, flow, cluster FROM s)"
        )
        columns = connection.execute("SELECT flow, cluster FROM indexed ORDER BY index").fetchnumpy()
        flows, codes = np.unique(np.asarray(columns["flow"], dtype=object).astype(str), return_inverse=True)
        _, first, inverse = np.unique(np.asarray(columns["cluster"]), return_index=True, return_inverse=True)
        clusters = np.argsort(np.argsort(first))[inverse]  # in the order of the conversations, as in a summary
        conversations = KnownConversations(
            {"flow": (flows.tolist(), codes.astype(np.int32))}, clusters.astype(np.int64)
        )
        rows = (
            read_column(
                connection,
                _ROWS_OF.format(column=name, explained=EXPLAINED_BY.get(name, name)),
                _METRICS[f"state.{name}"],
                NO_OPPORTUNITY,
            )
            for name in RATES
        )
        return subject_groups(rows, ("flow", "state"), conversations)

    def declared(self) -> list[Flow]:
        """The declarations that the question is about."""
        return [flow for name, flow in sorted(self.flows.items()) if self.flow in (None, name)]

    def excluded(self, connection: duckdb.DuckDBPyConnection) -> list[Excluded]:
        """The conversations that are in no figure because their integration broke."""
        rows = connection.execute(f"""
            SELECT flow, error, count(*) FROM called {self.where("error IS NOT NULL")}
            GROUP BY ALL ORDER BY count(*) DESC, flow, error
        """).fetchall()
        return [Excluded(flow=flow, reason=reason, n=n) for flow, reason, n in rows]

    def without_states(self, connection: duckdb.DuckDBPyConnection) -> int:
        """Conversations that did not break and have no state in their logs."""
        rows = connection.execute(f"""
            SELECT (SELECT count(*) FROM called {self.where("error IS NULL")})
                 - (SELECT count(*) FILTER (position = 0) FROM s)
        """).fetchall()
        return int(rows[0][0])


# What is one cluster in the summary is one here: a scenario of a dataset and domain, else the conversation.
_CLUSTER = "CASE WHEN scenario_id IS NULL THEN hash(run, number) ELSE hash(scenario_id, dataset, domain) END AS cluster"
_CLUSTERED = "(SELECT e.*, c.cluster FROM every AS e JOIN called AS c ON c.run = e.run AND c.number = e.number)"
_METRICS: dict[str, Metric] = {
    metric.name: metric
    for metric in vars(state_metrics).values()
    if isinstance(metric, Metric) and metric.observes == STATE
}
RATES = (
    *("progress", "stall", "escalation", "revisit", "dwell_turns", "guard_error"),
    *("slot_fill_rate", "slot_ready_rate"),
)
"""The metrics of a state that the matrix shows with their intervals."""
_ROWS_OF = """
    SELECT i.index AS number, s.state AS subject, s.{column}::DOUBLE AS value,
           CASE WHEN s.{column} IS NULL THEN json_extract_string(s.reasons, '$.{explained}') END AS reason
    FROM s JOIN indexed AS i USING (run, number)
"""
_ASKED = {"flow": "flow = $1", "agent": "$1 IN (agent, named)"}

_CALLED = f"""
    CREATE VIEW called AS
    SELECT run, conversation, number, error, coalesce(flow, {quoted(NO_FLOW)}) AS flow, called_agent AS agent,
           called_agent AS named, {_CLUSTER}
    FROM (SELECT *, coalesce(agent, model, {quoted(NO_AGENT)}) AS called_agent FROM conversations)
"""
_EVERY = f"""
    CREATE VIEW every AS
    SELECT *, agent AS named FROM (
        SELECT * REPLACE (
            coalesce(flow, {quoted(NO_FLOW)}) AS flow, coalesce(agent, {quoted(NO_AGENT)}) AS agent
        )
        FROM states
    )
"""

# An agent that ran on several models has a row for each: a run over models must not fall into one row (tier 3).
_SEVERAL_MODELS = (
    "SELECT agent FROM conversations WHERE agent IS NOT NULL GROUP BY agent HAVING count(DISTINCT model) > 1"
)
_CALLED_BY_MODEL = f"""
    CREATE TEMP TABLE called AS
    SELECT run, conversation, number, error, coalesce(flow, {quoted(NO_FLOW)}) AS flow,
           coalesce(agent, model, {quoted(NO_AGENT)}) AS named,
           CASE WHEN agent IN ({_SEVERAL_MODELS})
                THEN agent || ' on ' || coalesce(model, '(no model)') ELSE named END AS agent, {_CLUSTER}
    FROM conversations
"""
_EVERY_BY_MODEL = """
    CREATE VIEW every AS
    SELECT s.* REPLACE (c.flow AS flow, c.agent AS agent), c.named
    FROM states AS s JOIN called AS c ON c.run = s.run AND c.number = s.number
"""


def dicts(result: duckdb.DuckDBPyConnection) -> list[dict[str, Any]]:
    """The rows of an answer by column."""
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]


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
    """How a conversation ends that ends here: success, failure, escalation, unknown; empty where it is no end."""
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
    """Why it is missing."""
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
    """Conversations that were in it and whose completion is unknown."""
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


def matrix_of(connection: duckdb.DuckDBPyConnection, source: StateTable, *, neighbours: bool) -> Matrix:
    """Every state of the runs; with the states around each where they are asked for."""
    by_state = {(row["flow"], row["state"]): row for row in dicts(source.combined(connection))}
    figures = source.figures(connection)
    around = _neighbours(connection) if neighbours else None
    rows = [_figures(source, row, figures.get(key, {}), around) for key, row in by_state.items()]
    # Each conversation has one state that it entered first.
    conversations = connection.execute("SELECT count(*) FILTER (position = 0) FROM s").fetchall()
    return Matrix(
        rows=tuple(sorted(rows, key=_worst_first)),
        untested=untested(connection, source, set(by_state)),
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
        caution=few_text(n),
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


def untested(
    connection: duckdb.DuckDBPyConnection, source: StateTable, seen: set[tuple[str, str]]
) -> tuple[Untested, ...]:
    """Declared states that no conversation was in. An end that a state was left for was reached, entered or not."""
    rows = "s" if source.agent is None else "every"
    if source.agent is not None:
        # What another agent was in is tested, too.
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
