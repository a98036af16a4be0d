"""What the states of a flow did, asked of one or several runs: which state broke the flow, and how sure that is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import msgspec

from convoscope.analysis.flows.diagnosis import LATENCY_BUDGET_MS, Analysis, analysis_of
from convoscope.analysis.flows.flow_matrix import ASPECTS, DROP, FLOOR, FlowGate, FlowMatrix, flow_matrix_of, gate
from convoscope.analysis.flows.segments import Archetype, Segments, archetypes_of, segments_of
from convoscope.analysis.flows.state_table import FEW, Matrix, Runlike, StateTable, matrix_of, untested
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.runs.audit import Audit, Disagreement, recounted
from convoscope.runs.run import Run

__all__ = ["States", "states"]


class States:
    """The states of some runs, or of one flow or agent of them."""

    def __init__(self, runs: Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> None:
        self._source = StateTable(runs, flow=flow, agent=agent)

    def matrix(self, *, neighbours: bool | None = None) -> Matrix:
        """One row per state, worst first; with the states around each where one flow is asked for."""
        with self._source.ask() as connection:
            wanted = self._source.flow is not None if neighbours is None else neighbours
            return matrix_of(connection, self._source, neighbours=wanted)

    def segments(self) -> Segments:
        """One row per segment of a flow, the least cohesive first."""
        with self._source.ask() as connection:
            return segments_of(connection, self._source)

    def flows(self) -> FlowMatrix:
        """One row per flow and agent, the aspects side by side."""
        with self._source.ask() as connection:
            return flow_matrix_of(connection, self._source, ("flow", "agent"))

    def archetypes(self) -> tuple[Archetype, ...]:
        """One row per kind of segment over all flows, the weakest first."""
        return archetypes_of(self.segments())

    def analyze(self, *, latency_budget_ms: float = LATENCY_BUDGET_MS) -> Analysis:
        """The states that break their flows, why, and what that costs."""
        with self._source.ask() as connection:
            matrix = matrix_of(connection, self._source, neighbours=True)
            return analysis_of(connection, self._source, matrix, latency_budget_ms=latency_budget_ms)

    def gate(
        self,
        baseline: Runlike | Sequence[Runlike],
        *,
        floor: float = FLOOR,
        drop: float = DROP,
        least: int = FEW,
        aspects: Sequence[str] = ASPECTS,
    ) -> FlowGate:
        """Compare the runs with a baseline, flow by flow."""
        return gate(self._source, _several(baseline), floor=floor, drop=drop, least=least, aspects=aspects)

    def audit(self) -> dict[str, Audit]:
        """Count visits and compute values again from the events of each run, against its rows; by the run's name."""
        return {run.name: _audit(run) for run in self._source.runs}


def states(runs: Runlike | Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> States:
    """Ask one or several runs which states broke the flow.

    >>> convoscope.states("runs/monday").analyze()   # doctest: +SKIP
    """
    return States(_several(runs), flow=flow, agent=agent)


def _several(runs: Any) -> list[Runlike]:
    return [runs] if isinstance(runs, str | os.PathLike | Run) else list(runs)


class StateDisagreement(Disagreement, frozen=True, kw_only=True, rename={"subject": "state"}):
    """The same of a state, under its name."""


def _audit(run: Run) -> Audit:
    """The audit of the rows of states, and of what is marked as untested: only what is declared can be that."""
    recount = recounted(run, STATE_TABLE, values=True)
    if run.flows:
        source = StateTable([run])
        with source.ask() as connection:
            seen = set(connection.execute("SELECT DISTINCT flow, state FROM s").fetchall())
            unseen = untested(connection, source, seen)
        for row in unseen:
            if count := recount.ran[row.flow, row.state]:
                recount.add("", row.flow, row.state, "not_untested", counted=count)
    examples = [StateDisagreement(**msgspec.structs.asdict(example)) for example in recount.examples]
    return msgspec.structs.replace(recount.audit(), examples=tuple(examples))
