"""The questions that can be asked of the states of some runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from convoscope.analysis.flows.audit import audit_states
from convoscope.analysis.flows.diagnosis import LATENCY_BUDGET_MS, Analysis, analyse
from convoscope.analysis.flows.flow_matrix import FlowMatrix, flow_matrix
from convoscope.analysis.flows.gate import ASPECTS, DROP, FLOOR, FlowGate, gate
from convoscope.analysis.flows.segments import Archetype, Segments, archetypes, segments
from convoscope.analysis.flows.state_matrix import Matrix, matrix
from convoscope.analysis.flows.state_table import FEW, Runlike, StateTable
from convoscope.runs.audit import Audit
from convoscope.runs.run import Run


class States:
    """The states of some runs, or of one flow or agent of them."""

    def __init__(self, runs: Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> None:
        self._source = StateTable(runs, flow=flow, agent=agent)

    def matrix(self, *, neighbours: bool | None = None) -> Matrix:
        """One row per state, worst first; with the states around each where one flow is asked for."""
        return matrix(self._source, neighbours=neighbours)

    def segments(self) -> Segments:
        """One row per segment of a flow, the least cohesive first."""
        return segments(self._source)

    def flows(self) -> FlowMatrix:
        """One row per flow and agent, the aspects side by side."""
        return flow_matrix(self._source)

    def archetypes(self) -> tuple[Archetype, ...]:
        """One row per kind of segment over all flows, the weakest first."""
        return archetypes(self._source)

    def analyze(self, *, latency_budget_ms: float = LATENCY_BUDGET_MS) -> Analysis:
        """The states that break their flows, why, and what that costs."""
        return analyse(self._source, latency_budget_ms=latency_budget_ms)

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
        return {run.name: audit_states(run, values=True) for run in self._source.runs}


def states(runs: Runlike | Sequence[Runlike], *, flow: str | None = None, agent: str | None = None) -> States:
    """Ask one or several runs which states broke the flow.

    >>> convoscope.states("runs/monday").analyze()   # doctest: +SKIP
    """
    return States(_several(runs), flow=flow, agent=agent)


def _several(runs: Any) -> list[Runlike]:
    return [runs] if isinstance(runs, str | os.PathLike | Run) else list(runs)
