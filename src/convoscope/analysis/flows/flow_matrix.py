"""The flow matrix: one row per flow and agent, the aspects side by side on 0 to 10 (flow-states, tier 3).

And the gate of flows: does a run hold what a baseline held, flow by flow (flow-states, Gate)?
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from convoscope.analysis.flows.state_table import FEW, Excluded, Rate, Runlike, StateTable, dicts, few_text, rates
from convoscope.analysis.gate import GateFigure, Limit, NotWorse, Outcome, Rule, evaluate, overall
from convoscope.errors import UsageError
from convoscope.metrics.declaration import Target
from convoscope.runs.database import quoted
from convoscope.runs.run import Run
from convoscope.scores.judges import speaking_order
from convoscope.scores.observation import COMPUTED

if TYPE_CHECKING:
    import duckdb

POINTS = ("correctness", "completion", "errors")
"""The computed aspects that are points of ten; latencies are seconds."""
HUMANNESS = "humanness"
PARTS = ("success_terminal", "slots_filled", "final_status")
_PARTS = "flow.correctness."
_STATEFUL = "(SELECT run, number FROM every WHERE position = 0)"
"""The conversations with states: each has one that it entered first."""


class Aspect(msgspec.Struct, frozen=True, kw_only=True):
    """The mean of one aspect over the conversations that have it, in points of ten."""

    score: float | None
    n: int
    low: float | None = None
    high: float | None = None
    reason: str = ""
    """Why it has no value: the commonest reason."""
    unmeasured: int = 0
    """Conversations that could have a value and have none."""


class JudgeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one judge, or the panel of them, says of how human the agent is."""

    judge: str
    score: float | None
    n: int
    spread: float | None = None
    """Of a panel: the mean distance between its kindest and its strictest judge."""


class JudgedEnding(JudgeVerdict, frozen=True, kw_only=True):
    """The same of the conversations that ended in one state."""

    flow: str
    agent: str
    ended_in: str


class FlowFigures(msgspec.Struct, frozen=True, kw_only=True, rename={"caution": "said"}):
    """One flow as one agent ran it."""

    flow: str
    agent: str
    n: int
    """Conversations that the figures are of."""
    excluded: int
    """Conversations whose integration broke."""
    correctness: Aspect
    parts: dict[str, Aspect]
    """The parts of correctness, as shares."""
    completion: Aspect
    errors: Aspect
    latency_mean: float | None
    """In seconds, over all turns."""
    latency_p95: float | None
    latency_n: int
    humanness: tuple[JudgeVerdict, ...]
    """One per judge; the panel last."""
    caution: str


class FlowMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """Flow × agent, the least correct first."""

    rows: tuple[FlowFigures, ...]
    excluded: tuple[Excluded, ...]
    humanness_by_ending: tuple[JudgedEnding, ...] = ()
    """By the state in which conversations ended; one per judge, the panel last."""


def flow_matrix_of(connection: duckdb.DuckDBPyConnection, source: StateTable, by: tuple[str, ...]) -> FlowMatrix:
    """Every flow of the runs by some of flow and agent; what it is not by is empty."""
    keys = ", ".join(by)
    counts = connection.execute(f"""
        SELECT {keys}, count(*) FILTER (error IS NULL AND stateful), count(*) FILTER (error IS NOT NULL)
        FROM (
            SELECT c.*, r.number IS NOT NULL AS stateful
            FROM called AS c LEFT JOIN {_STATEFUL} AS r USING (run, number)
        ) {source.where("(stateful OR error IS NOT NULL)")}
        GROUP BY {keys}
    """).fetchall()
    aspects = _aspects(connection, source, by)
    latencies = {
        row[: len(by)]: row[len(by) :]
        for row in connection.execute(f"""
            SELECT {keys}, avg(l) / 1000, quantile_cont(l, 0.95) / 1000, count(*)
            FROM (SELECT {keys}, unnest(latencies) AS l FROM s) GROUP BY {keys}
        """).fetchall()
    }
    rows = [
        _figures(dict(zip(by, row, strict=False)), row[len(by) :], aspects.get(row[: len(by)], []), latencies)
        for row in counts
    ]
    return FlowMatrix(
        rows=tuple(sorted(rows, key=_worst_first)),
        excluded=tuple(source.excluded(connection)),
        humanness_by_ending=_endings(connection, source) if set(by) == {"flow", "agent"} else (),
    )


def _worst_first(row: FlowFigures) -> tuple[Any, ...]:
    order: list[Any] = []
    for aspect in (row.correctness, row.completion):
        order += [aspect.score is None, aspect.score or 0.0]
    return (*order, row.flow, row.agent)


def _aspects(
    connection: duckdb.DuckDBPyConnection, source: StateTable, by: tuple[str, ...]
) -> dict[Any, list[dict[str, Any]]]:
    """The means of the aspects, and of the parts of correctness, by flow and agent."""
    each = f"""(
        SELECT * FROM (
            SELECT c.flow, c.agent, c.named, c.cluster, starts_with(v.metric, {quoted(_PARTS)}) AS part, m.aspect,
                   v.metric, v.judge, v.status, v.reason,
                   CASE WHEN starts_with(v.metric, {quoted(_PARTS)}) THEN v.value ELSE v.score / 10 END AS points
            FROM all_conversation_scores AS v
            JOIN metrics AS m ON m.run = v.run AND m.metric = v.metric AND v.variant = ''
            JOIN called AS c ON c.run = v.run AND c.number = v.number
            SEMI JOIN {_STATEFUL} AS r ON r.run = c.run AND r.number = c.number
            WHERE (m.aspect <> '' OR starts_with(v.metric, {quoted(_PARTS)})) AND c.error IS NULL
        ) {source.where()}
    )"""
    keys = (*by, "part", "aspect", "judge", "metric")
    rows = dicts(
        connection.execute(f"""
            SELECT {", ".join(keys)}, count(*) FILTER (status = 'unmeasured' OR status = 'error') AS unmeasured,
                   mode(reason) AS reason
            FROM {each} GROUP BY ALL ORDER BY ALL
        """)
    )
    points_by_key = rates(connection, each, keys, {"points": ("points", "(points IS NOT NULL)::INTEGER")})
    spreads = _spreads(connection, source, ", ".join(by))
    by_key: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        key = tuple(row[name] for name in by)
        points = points_by_key[tuple(row[name] for name in keys)].get("points")
        by_key.setdefault(key, []).append({**row, "points": points, "spread": spreads.get((*key, row["judge"]))})
    return by_key


def _spreads(connection: duckdb.DuckDBPyConnection, source: StateTable, keys: str) -> dict[Any, float]:
    """How far the judges of a panel lie apart, in points, as a mean over its conversations."""
    rows = connection.execute(f"""
        SELECT {keys}, judge, 10 * avg(spread)
        FROM (
            SELECT c.flow, c.agent, c.named, v.judge, json_extract(v.details, '$.spread')::DOUBLE AS spread
            FROM scores AS v JOIN called AS c ON c.run = v.run AND c.number = v.number
            SEMI JOIN {_STATEFUL} AS r ON r.run = c.run AND r.number = c.number
            WHERE v.metric = 'flow.humanness' AND starts_with(v.judge, 'panel:') AND c.error IS NULL
        ) {source.where()}
        GROUP BY {keys}, judge
    """).fetchall()
    return {row[:-1]: row[-1] for row in rows}


def _endings(connection: duckdb.DuckDBPyConnection, source: StateTable) -> tuple[JudgedEnding, ...]:
    """Humanness by the state in which conversations ended: a panel's verdict ends where its judges' verdicts do."""
    rows = dicts(
        connection.execute(f"""
            SELECT flow, agent, ended_in, judge, avg(points) AS score, count(points) AS n, 10 * avg(spread) AS spread
            FROM (
                SELECT c.flow, c.agent, c.named, e.ended_in, v.judge, 10 * v.value AS points, p.spread
                FROM all_conversation_scores AS v
                JOIN called AS c ON c.run = v.run AND c.number = v.number
                JOIN (
                    SELECT run, number, max(json_extract_string(details, '$.ended_in')) AS ended_in
                    FROM scores WHERE metric = 'flow.humanness' GROUP BY run, number
                ) AS e ON e.run = v.run AND e.number = v.number
                LEFT JOIN (
                    SELECT run, number, judge, max(json_extract(details, '$.spread')::DOUBLE) AS spread
                    FROM scores WHERE metric = 'flow.humanness' AND starts_with(judge, 'panel:') GROUP BY ALL
                ) AS p ON p.run = v.run AND p.number = v.number AND p.judge = v.judge
                WHERE v.metric = 'flow.humanness' AND e.ended_in IS NOT NULL AND c.error IS NULL
            ) {source.where()}
            GROUP BY flow, agent, ended_in, judge HAVING count(points) > 0
        """)
    )
    ordered = sorted(rows, key=lambda row: (row["flow"], row["agent"], row["ended_in"], speaking_order(row["judge"])))
    return tuple(JudgedEnding(**row) for row in ordered)


def _figures(
    key: Mapping[str, str], counts: tuple[int, ...], aspects: list[dict[str, Any]], latencies: Mapping[Any, Any]
) -> FlowFigures:
    computed = {row["aspect"]: row for row in aspects if not row["part"] and row["judge"] == COMPUTED}
    by_part = {row["metric"].removeprefix(_PARTS): row for row in aspects if row["part"]}
    parts = {name: _aspect(by_part[name], most=1.0) for name in PARTS if name in by_part}
    mean, p95, turns = latencies.get(tuple(key.values()), (None, None, 0))
    judges = [row for row in aspects if row["aspect"] == HUMANNESS and row["judge"] != COMPUTED]
    n, excluded = counts
    return FlowFigures(
        flow=key.get("flow", ""),
        agent=key.get("agent", ""),
        n=n,
        excluded=excluded,
        correctness=_aspect(computed.get("correctness")),
        parts=parts,
        completion=_aspect(computed.get("completion")),
        errors=_aspect(computed.get("errors")),
        latency_mean=mean,
        latency_p95=p95,
        latency_n=turns,
        humanness=tuple(
            JudgeVerdict(judge=row["judge"], score=aspect.score, n=aspect.n, spread=row["spread"])
            for row in sorted(judges, key=lambda row: speaking_order(row["judge"]))
            if (aspect := _aspect(row))
        ),
        caution=few_text(n),
    )


def _aspect(row: Mapping[str, Any] | None, *, most: float = 10.0) -> Aspect:
    """A mean in points, with the interval of a share: all or nothing is what most conversations have."""
    if row is None:
        return Aspect(score=None, n=0, reason="not_scored")
    rate: Rate | None = row["points"]
    if rate is None or rate.value is None:
        return Aspect(score=None, n=0, reason=row["reason"] or "nothing_measured", unmeasured=row["unmeasured"])
    low, high = (None if end is None else most * end for end in (rate.low, rate.high))
    return Aspect(score=most * rate.value, n=rate.n, low=low, high=high, unmeasured=row["unmeasured"])


FLOOR = 6.0
DROP = 1.0
COVERAGE = 0.8
"""Of the conversations that could have a value, so many must have one; and so many must not have broken."""
ASPECTS = ("correctness", "completion")


class AspectVerdict(msgspec.Struct, frozen=True, kw_only=True, rename={"reason": "words"}):
    """One aspect of one flow, against the floor and against the baseline."""

    aspect: str
    outcome: Outcome
    score: float | None
    n: int
    baseline: float | None
    baseline_n: int
    reason: str


class FlowVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """One flow: the verdicts on its aspects, and what they come to."""

    flow: str
    outcome: Outcome
    aspects: tuple[AspectVerdict, ...]
    excluded: int
    notes: tuple[str, ...]


class FlowGate(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate says: of each flow, and of all."""

    outcome: Outcome
    flows: tuple[FlowVerdict, ...]
    floor: float
    drop: float
    least: int
    """Conversations that a verdict needs."""


def gate(
    source: StateTable,
    baseline: Sequence[Runlike],
    *,
    floor: float = FLOOR,
    drop: float = DROP,
    least: int = FEW,
    aspects: Sequence[str] = ASPECTS,
) -> FlowGate:
    """Compare the runs with a baseline, on computed aspects only: the same input gives the same verdict."""
    for name in aspects:
        if name not in POINTS:
            raise UsageError(f"{name!r} cannot be gated", hint=f"aspects: {', '.join(POINTS)}")
    if not (math.isfinite(floor) and math.isfinite(drop)) or drop < 0 or least < 1:
        raise UsageError("floor and drop must be numbers, drop at least 0, and least at least 1")
    if not aspects:
        raise UsageError("no aspect to check", hint=f"aspects: {', '.join(POINTS)}")
    before = StateTable(baseline, agent=source.agent)
    invalid = [run for table in (source, before) for run in table.runs if not run.receipt.valid]
    now, then = _by_flow(source), _by_flow(before)
    flows = []
    for name in sorted({*now, *then}):
        if source.flow not in (None, name):
            continue
        figures, earlier = now.get(name), then.get(name)
        verdicts = tuple(aspect_verdict(aspect, figures, earlier, floor, drop, least) for aspect in aspects)
        flows.append(
            FlowVerdict(
                flow=name,
                outcome=overall(verdict.outcome for verdict in verdicts),
                aspects=verdicts,
                excluded=figures.excluded if figures else 0,
                notes=_notes(name, source, before, invalid),
            )
        )
    outcome = overall((flow.outcome for flow in flows), can_pass=not invalid)
    return FlowGate(outcome=outcome, flows=tuple(flows), floor=floor, drop=drop, least=least)


def _by_flow(source: StateTable) -> dict[str, FlowFigures]:
    with source.ask() as connection:
        return {row.flow: row for row in flow_matrix_of(connection, source, ("flow",)).rows}


def _notes(name: str, source: StateTable, before: StateTable, invalid: Sequence[Run]) -> tuple[str, ...]:
    notes = [f"run {run.name} is invalid: {run.receipt.invalid_reason}" for run in invalid]
    if source.flows.get(name) != before.flows.get(name):
        notes.append("the definition of the flow is not the one of the baseline")
    return tuple(notes)


def aspect_verdict(
    name: str, figures: FlowFigures | None, before: FlowFigures | None, floor: float, drop: float, least: int
) -> AspectVerdict:
    """One aspect of a flow: not below the floor, and not below the baseline by more than is allowed."""
    now: Aspect | None = getattr(figures, name, None)
    then: Aspect | None = getattr(before, name, None)
    rules: list[Rule] = [Limit(Target(">=", floor), "floor")]
    if before is not None:
        rules.append(NotWorse(_gate_figure(before, then, least), drop))
    verdict = evaluate(_gate_figure(figures, now, least), *rules)
    reason = verdict.reason
    if verdict.outcome == "passed" and before is None:
        reason += "; the baseline has no such flow"
    return AspectVerdict(
        aspect=name,
        outcome=verdict.outcome,
        score=now.score if now else None,
        n=now.n if now else 0,
        baseline=then.score if then else None,
        baseline_n=then.n if then else 0,
        reason=reason,
    )


def _gate_figure(figures: FlowFigures | None, aspect: Aspect | None, least: int) -> GateFigure:
    """In doubt where too few have a value, or so many are left out that the rest speaks for itself alone."""
    if figures is None or aspect is None:
        return GateFigure(None, "no conversation of this flow in the run")
    if aspect.score is None:
        return GateFigure(None, f"not measured: {aspect.reason.replace('_', ' ')}")
    possible, called = aspect.n + aspect.unmeasured, figures.n + figures.excluded
    doubt = ""
    if aspect.n < least:
        doubt = f"n={aspect.n}: too few to conclude (least {least})"
    elif aspect.n < COVERAGE * possible:
        doubt = f"measured in {aspect.n:,} of {possible:,} conversations only"
    elif figures.n < COVERAGE * called:
        doubt = f"{figures.excluded:,} of {called:,} conversations are excluded"
    # Means of points are sums of floats: 6.0, or a drop of exactly 1.0, must not fail by its last digit.
    return GateFigure(round(aspect.score, 9), doubt, digits=2)
