"""The rows of states of one or several runs, as a question is asked of them: all, or of one flow or agent."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from convoscope.conversation import Flow
from convoscope.errors import RunError, UsageError
from convoscope.runs.run import Run
from convoscope.runs.sql import create_views
from convoscope.runs.tables import connect, quoted
from convoscope.statistics.intervals import Z, wilson

if TYPE_CHECKING:
    import duckdb

Runlike = Run | str | os.PathLike[str]

NO_FLOW = "(no flow)"
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


class Clusters(NamedTuple):
    """How conversations that belong together (of one scenario) scatter: sums over these clusters.

    `a` is the sum of the values of a cluster, `b` the number of them.
    """

    number: int
    aa: float
    ab: float
    bb: float

    def variance(self, value: float, n: int) -> float:
        """Of a ratio of sums over independent clusters, as `statistics.intervals` has it."""
        residuals = self.aa - 2 * value * self.ab + value * value * self.bb
        return self.number / (self.number - 1) * max(0.0, residuals) / n**2


def share(successes: float, n: int, reason: str = "", clusters: Clusters | None = None) -> Rate:
    """successes ÷ n with Wilson's interval, of as many as the clustering leaves; no value of nothing."""
    if not n:
        return Rate(value=None, n=0, reason=reason or "nothing_measured")
    value, effective = successes / n, float(n)
    if clusters is not None and clusters.number < 2 < n:
        return Rate(value=value, n=n)
    if clusters is not None and clusters.number < n:
        variance = clusters.variance(value, n)
        if value in (0.0, 1.0):
            # All or none: clusters cannot show a spread, so each counts once, which errs to the wide side.
            effective = float(clusters.number)
        elif variance > 0:
            effective = min(effective, value * (1 - value) / variance)
    low, high = wilson(value * effective, effective)
    return Rate(value=value, n=n, low=low, high=high)


def mean(
    value: float | None, deviation: float | None, n: int, reason: str = "", clusters: Clusters | None = None
) -> Rate:
    """A mean of counts with the interval that its spread leaves; one value or one cluster alone leaves none."""
    if value is None or not n:
        return Rate(value=None, n=0, reason=reason or "nothing_measured")
    if deviation is None or n < 2 or (clusters is not None and clusters.number < 2):
        return Rate(value=value, n=n)
    spread = Z * (deviation / n**0.5 if clusters is None else clusters.variance(value, n) ** 0.5)
    return Rate(value=value, n=n, low=max(0.0, value - spread), high=value + spread)


def few_words(n: int) -> str:
    """What to say of a small number of conversations; "" of one that is large enough."""
    return f"n={n}: too few to conclude" if n < FEW else ""


class Excluded(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations whose integration broke: in no figure, and counted."""

    flow: str
    reason: str
    n: int


class Source:
    """The runs that are asked, and which part of them."""

    def __init__(self, runs: Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> None:
        if not runs:
            raise UsageError("there is no run to ask", hint="score some logs first, then name the folder of the run")
        self.runs = [one if isinstance(one, Run) else Run.open(one) for one in runs]
        if len({run.name for run in self.runs}) < len(self.runs):
            raise RunError("two of the runs have one name", hint="rename one of the folders")
        self.flow, self.agent = flow, agent
        self.clustered = False
        """Whether conversations belong to scenarios, so that they are not independent."""
        self.flows: dict[str, Flow] = {}
        for run in reversed(self.runs):
            self.flows |= run.flows

    @contextmanager
    def ask(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection with the table `s`: the rows of states that the question is about."""
        with (
            tempfile.TemporaryDirectory(prefix="convoscope-") as scratch,
            connect(memory_mb=_MEMORY_MB, scratch=Path(scratch), threads=2) as connection,
        ):
            create_views(connection, self.runs)
            # Most runs have one model for each agent: their rows need no look at the conversations.
            several = connection.execute(f"{_SEVERAL_MODELS} LIMIT 1").fetchall()
            for view in (_CALLED_BY_MODEL, _EVERY_BY_MODEL) if several else (_CALLED, _EVERY):
                connection.execute(view)
            self._check(connection)
            self.clustered = bool(connection.execute(_HAS_SCENARIOS).fetchall())
            every = _CLUSTERED if self.clustered else "every"
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
        for name, asked in (("flow", self.flow), ("agent", self.agent)):
            if asked is None:
                continue
            rows = connection.execute(f"SELECT DISTINCT {name} FROM called ORDER BY 1").fetchall()
            known = [row[0] for row in rows]
            if connection.execute(f"SELECT 1 FROM called WHERE {_ASKED[name]} LIMIT 1", [asked]).fetchall():
                continue
            if not (name == "flow" and asked in self.flows):
                # Names come from logs: one line each, not endless.
                there = ", ".join(" ".join(one.split())[:60] for one in known[:20]) + (", …" if len(known) > 20 else "")
                raise UsageError(f"no conversation has the {name} {asked!r}", hint=f"there is {there}")

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


_HAS_SCENARIOS = "SELECT 1 FROM conversations WHERE scenario_id IS NOT NULL LIMIT 1"
# What is one cluster in the summary is one here: a scenario of a dataset and domain, else the conversation.
_CLUSTERED = """(
    SELECT e.*, hash(CASE WHEN c.scenario_id IS NULL THEN c.conversation END, c.run, c.scenario_id,
                     CASE WHEN c.scenario_id IS NOT NULL THEN c.dataset END,
                     CASE WHEN c.scenario_id IS NOT NULL THEN c.domain END) AS cluster
    FROM every AS e JOIN conversations AS c ON c.run = e.run AND c.number = e.number
)"""
_ASKED = {"flow": "flow = $1", "agent": "$1 IN (agent, named)"}

_CALLED = f"""
    CREATE VIEW called AS
    SELECT run, conversation, number, error, coalesce(flow, {quoted(NO_FLOW)}) AS flow, called_agent AS agent,
           called_agent AS named
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
                THEN agent || ' on ' || coalesce(model, '(no model)') ELSE named END AS agent
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
