"""Figures and summaries as a run has them, for tests that do not care how they were computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from convoscope.metrics import HIGHER
from convoscope.runs.summary import SCHEMA, DeclaredMetric, Group, Summary
from convoscope.scores.observation import MEASURED, UNMEASURED
from convoscope.statistics.intervals import Interval
from convoscope.statistics.summary import Figure


def figure(
    metric: str, value: float | None, low: float | None = None, high: float | None = None, **facts: Any
) -> Figure:
    """A figure of ten conversations; without ends it has no interval, and without a value none was measured."""
    clusters = facts.pop("clusters", 10)
    if low is not None and high is not None:
        facts["interval"] = Interval(low=low, high=high, method="wilson", clusters=clusters)
    usual: dict[str, Any] = {"unit": "share", "better": HIGHER, "coverage": 1.0, "samples_total": 10, "n": 10}
    if value is None:
        facts = {"status": UNMEASURED, "reason": "no_clock"} | facts
        usual |= {"samples_measured": 0, "samples_skipped": 10, "skipped_reasons": {facts["reason"]: 10}}
    else:
        usual |= {"status": MEASURED, "samples_measured": 10}
    return Figure(metric=metric, value=value, **usual | facts)


def group(by: dict[str, str], *figures: Figure, conversations: int = 20) -> Group:
    return Group(by=by, conversations=conversations, metrics=list(figures))


def summary(*figures: Figure, groups: Sequence[Group] = (), declared: Sequence[DeclaredMetric] = ()) -> Summary:
    """Of a hundred conversations. What is not declared is declared here, in the order of the figures."""
    known = {one.metric: one for one in declared}
    for one in figures:
        facts = {"family": "test", "version": 1, "question": "?", "unit": one.unit, "better": one.better}
        known.setdefault(one.key, DeclaredMetric(metric=one.key, observes="conversation", **facts))
    return Summary(
        schema=SCHEMA,
        config_hash="sha256:0",
        input_hash="sha256:0",
        conversations=100,
        metrics=list(figures),
        groups=list(groups),
        declared=list(known.values()),
    )
