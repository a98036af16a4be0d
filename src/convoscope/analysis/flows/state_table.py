"""The rows of states of one or several runs, as a question is asked of them: all, or of one flow or agent."""

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
from convoscope.statistics.across import Floats, ratio_of
from convoscope.statistics.intervals import ratio_interval
from convoscope.statistics.summary import Figure

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


def rate_of(figure: Figure | None, otherwise: str = "not_scored") -> Rate:
    """A figure of the road in short."""
    if figure is None:
        return Rate(value=None, n=0, reason=otherwise)
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
    """Σ above ÷ Σ below of each measure, for each group by `keys` of a table that says to which cluster a row belongs.

    The intervals are those of the summary. What has nothing below has no rate.
    """
    by = ", ".join(keys)
    sums = ", ".join(
        f"sum({above})::DOUBLE AS above{place}, coalesce(sum({below}), 0)::DOUBLE AS below{place}"
        for place, (above, below) in enumerate(measures.values())
    )
    groups = connection.execute(f"SELECT DISTINCT {by} FROM {table} ORDER BY {by}").fetchall()
    rows = connection.execute(
        f"SELECT dense_rank() OVER (ORDER BY {by}) - 1 AS code, * FROM "
        f"(SELECT {by}, cluster, {sums} FROM {table} GROUP BY {by}, cluster) ORDER BY code, cluster"
    ).fetchnumpy()
    bounds = np.searchsorted(np.asarray(rows["code"]), np.arange(len(groups) + 1))
    by_key: dict[tuple[Any, ...], dict[str, Rate]] = {key: {} for key in groups}
    for place, name in enumerate(measures):
        above, below = (np.ma.filled(np.ma.asarray(rows[f"{side}{place}"]), 0.0) for side in ("above", "below"))
        # Groups whose rows say the same have the same rate, which is made once.
        known: dict[tuple[bytes, bytes], Rate | None] = {}
        for number, key in enumerate(groups):
            part = slice(bounds[number], bounds[number + 1])
            facts = (above[part].tobytes(), below[part].tobytes())
            if facts not in known:
                known[facts] = _rate(above[part], below[part], is_share=is_share)
            if (rate := known[facts]) is not None:
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


def few_words(n: int) -> str:
    """What to say of a small number of conversations; "" of one that is large enough."""
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
        self.runs = [one if isinstance(one, Run) else Run.open(one) for one in runs]
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
            # Most runs have one model for each agent: their rows need no look at the conversations.
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
        """A flow or an agent that nobody has is a mistake of the one who asks."""
        for name, wanted in (("flow", self.flow), ("agent", self.agent)):
            if wanted is None:
                continue
            rows = connection.execute(f"SELECT DISTINCT {name} FROM called ORDER BY 1").fetchall()
            values = [row[0] for row in rows]
            if connection.execute(f"SELECT 1 FROM called WHERE {_ASKED[name]} LIMIT 1", [wanted]).fetchall():
                continue
            if not (name == "flow" and wanted in self.flows):
                # Names come from logs: one line each, not endless.
                there = ", ".join(" ".join(one.split())[:60] for one in values[:20]) + (
                    ", …" if len(values) > 20 else ""
                )
                raise UsageError(f"no conversation has the {name} {wanted!r}", hint=f"known: {there}")

    def combined(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
        """What the rows of each state come to, one row for each flow and state."""
        file = self._alone.folder / combined_file(STATE_TABLE.name) if self._alone is not None else None
        if file is None or not file.exists():
            return connection.execute(combined(STATE_TABLE, "flow", "s"))
        flow = f"coalesce(flow, {quoted(NO_FLOW)})"
        return connection.execute(f"SELECT * REPLACE ({flow} AS flow) FROM {parquet(file)} {self.where()}")

    def figures(self, connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], dict[str, Figure]]:
        """The figures of each state: those of the summary, or the same of the rows that the question is about."""
        groups = None
        if self._alone is not None and {one.metric for one in self._alone.summary.declared} >= {*_METRICS}:
            groups = self._alone.summary.by_subject((*AXES[STATE], STATE))
        if groups is None:
            groups = [(one.by, one.figures) for one in self._observed(connection)]
        return {
            (by["flow"], by["state"]): {one.metric.removeprefix("state."): one for one in figures}
            for by, figures in groups
        }

    @property
    def _alone(self) -> Run | None:
        """The run, where it is one and all its agents are asked for: that was answered when it was made."""
        return self.runs[0] if len(self.runs) == 1 and self.agent is None else None

    def _observed(self, connection: duckdb.DuckDBPyConnection) -> list[SubjectGroup]:
        connection.execute(
            "CREATE OR REPLACE TEMP TABLE placed AS SELECT *, row_number() OVER (ORDER BY run, number) - 1 AS place "
            "FROM (SELECT DISTINCT run, number, flow, cluster FROM s)"
        )
        columns = connection.execute("SELECT flow, cluster FROM placed ORDER BY place").fetchnumpy()
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
        """Conversations that did not break and tell of no state."""
        rows = connection.execute(f"""
            SELECT (SELECT count(*) FROM called {self.where("error IS NULL")})
                 - (SELECT count(*) FILTER (position = 0) FROM s)
        """).fetchall()
        return int(rows[0][0])


# What is one cluster in the summary is one here: a scenario of a dataset and domain, else the conversation.
_CLUSTER = "CASE WHEN scenario_id IS NULL THEN hash(run, number) ELSE hash(scenario_id, dataset, domain) END AS cluster"
_CLUSTERED = "(SELECT e.*, c.cluster FROM every AS e JOIN called AS c ON c.run = e.run AND c.number = e.number)"
_METRICS: dict[str, Metric] = {
    one.name: one for one in vars(state_metrics).values() if isinstance(one, Metric) and one.observes == STATE
}
RATES = (
    *("progress", "stall", "escalation", "revisit", "dwell_turns", "guard_error"),
    *("slot_fill_rate", "slot_ready_rate"),
)
"""The metrics of a state that the matrix shows with their intervals."""
_ROWS_OF = """
    SELECT p.place AS number, s.state AS subject, s.{column}::DOUBLE AS value,
           CASE WHEN s.{column} IS NULL THEN json_extract_string(s.reasons, '$.{explained}') END AS reason
    FROM s JOIN placed AS p USING (run, number)
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

# An agent that ran on several models is told apart by them: a run over models must not fall into one row (tier 3).
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
