"""What the page says of the states of a run: the diagnosis, a picture of each flow, and the tables of the tiers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import numpy as np

from convoscope.analysis.flows.diagnosis import STALL, Analysis, StateCause
from convoscope.analysis.flows.flow_matrix import Aspect, FlowFigures
from convoscope.analysis.flows.segments import Archetype, SegmentFigures
from convoscope.analysis.flows.state_matrix import Matrix, StateFigures
from convoscope.analysis.flows.state_table import Rate, StateTable
from convoscope.analysis.flows.states import States
from convoscope.analysis.words import (
    NOTHING,
    counted,
    number_text,
    percent_text,
    reason_text,
    seconds_text,
    value_text,
)
from convoscope.metrics.declaration import COUNT, SHARE
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.report.page.flow_picture import LEVELS, Picture, Seen, is_no_fault, picture, shortened
from convoscope.report.page.packing import fold
from convoscope.runs.database import connect, quoted
from convoscope.runs.ranking import Ranking
from convoscope.runs.run import Run

if TYPE_CHECKING:
    import duckdb

MAX_FLOWS = 12
"""Flows that are drawn, those with the most conversations."""
MAX_IDS = 50
"""Conversations that the page names of a state."""
MAX_CAUSES = 5
MAX_ROWS = 100
"""Rows of a table; what is left out is counted."""


class FlowCell(NamedTuple):
    """A cell of a table: a value, what stands under it, and why there is none."""

    value: str
    under: str = ""
    reason: str = ""
    weak: bool = False


class StateLink(NamedTuple):
    """A state, and where the page shows it; "" where it is not drawn."""

    name: str
    href: str


class TableRow(NamedTuple):
    name: str
    href: str
    cells: Sequence[FlowCell]


class FlowTable(NamedTuple):
    title: str
    head: str
    columns: Sequence[str]
    rows: Sequence[TableRow]
    more: int
    note: str = ""


class FlowCause(NamedTuple):
    """A state that breaks its flow, in words."""

    state: StateLink
    flow: str
    headline: str
    evidence: str
    cost: str
    caution: str


class DrawnFlow(NamedTuple):
    number: int
    name: str
    conversations: int
    states: int
    untested: int
    picture: Picture
    tables: Sequence[FlowTable]


class FlowSection(NamedTuple):
    line: str
    """What it is of."""
    causes: Sequence[FlowCause]
    surest: FlowCause | None
    """The worst of those that enough conversations tell of."""
    more_causes: int
    looked_at: int
    flows: Sequence[DrawnFlow]
    left_out: Sequence[str]
    more_left_out: int
    tables: Sequence[FlowTable]
    legend: Sequence[tuple[int, str]]
    most_ids: int
    packed: str
    """Of each state what the page shows when it is chosen."""


class _Answers(NamedTuple):
    """Everything that was asked of the run."""

    matrix: Matrix
    analysis: Analysis
    segments: Sequence[SegmentFigures]
    order: Mapping[tuple[str, str], float]
    sizes: Mapping[str, int]
    places: Mapping[tuple[str, str], Sequence[int]]
    stalled: Mapping[tuple[str, str], int]


def flow_section(run: Run, ranking: Ranking) -> FlowSection | None:
    """None where the run holds no state."""
    if not _has_states(run):
        return None
    states = States([run])
    source = StateTable([run])
    with source.ask() as connection:
        sizes = dict(connection.execute(_SIZES).fetchall())
        drawn = sorted(sizes, key=lambda flow: (-sizes[flow], flow))[:MAX_FLOWS]
        order = {(flow, state): place for flow, state, place in connection.execute(_ORDER).fetchall()}
        chosen = _chosen(connection, drawn, ranking)
    answers = _Answers(
        matrix=states.matrix(neighbours=True),
        analysis=states.analyze(),
        segments=states.segments().rows,
        order=order,
        sizes=sizes,
        places={key: places for key, (places, _) in chosen.items()},
        stalled={key: count for key, (_, count) in chosen.items()},
    )
    pages = [_Page(number, flow, answers, source) for number, flow in enumerate(drawn)]
    links = {(page.flow, name): f"#state={page.number}.{place}" for page in pages for name, place in page.at.items()}
    left_out = [flow for flow in sorted(sizes, key=lambda flow: (-sizes[flow], flow)) if flow not in drawn]
    causes = [_cause(cause, links) for cause in answers.analysis.causes[:MAX_CAUSES]]
    return FlowSection(
        line=_line(answers),
        causes=causes,
        surest=next((_cause(cause, links) for cause in answers.analysis.causes if cause.certain), None),
        more_causes=len(answers.analysis.causes) - len(causes),
        looked_at=answers.analysis.states,
        flows=[page.drawn(links) for page in pages],
        left_out=[shortened(flow, 80) for flow in left_out[:MAX_ROWS]],
        more_left_out=max(0, len(left_out) - MAX_ROWS),
        tables=[table for table in _wider(states) if table.rows],
        legend=list(_legend()),
        most_ids=MAX_IDS,
        packed=fold(msgspec.json.encode({"flows": [page.data() for page in pages]})),
    )


def _has_states(run: Run) -> bool:
    if not run.tables.files(STATE_TABLE.name):
        return False
    with connect(memory_mb=256) as connection:
        return bool(connection.execute(f"SELECT count(*) FROM {run.table(STATE_TABLE.name)}").fetchall()[0][0])


_SIZES = "SELECT flow, count(*) FILTER (position = 0) FROM s GROUP BY flow"
_ORDER = "SELECT flow, state, avg(position) FROM s GROUP BY flow, state"


def _chosen(
    connection: duckdb.DuckDBPyConnection, flows: Sequence[str], ranking: Ranking
) -> dict[tuple[str, str], tuple[Sequence[int], int]]:
    """Of each state the places of its conversations in the list, first those that got stuck in it; and how many did."""
    places = np.empty(len(ranking.order), dtype=np.int64)
    places[ranking.order] = np.arange(len(ranking.order))
    connection.register("listed", {"number": np.arange(len(places)), "place": places})
    wanted = ", ".join(quoted(flow) for flow in flows)
    rows = connection.execute(f"""
        SELECT flow, state, min(CASE WHEN stall = 1 THEN place ELSE place + {len(places)} END, {MAX_IDS}),
               count(*) FILTER (stall = 1)
        FROM s JOIN listed USING (number) WHERE flow IN ({wanted}) GROUP BY flow, state
    """).fetchall()
    return {(flow, state): ([value % len(places) for value in least], stalled) for flow, state, least, stalled in rows}


def _line(answers: _Answers) -> str:
    """What the section is of, in a sentence."""
    matrix = answers.matrix
    words = f"{counted(matrix.conversations, 'conversation')} of {counted(len(answers.sizes), 'flow')} went through "
    words += f"{counted(len(matrix.rows), 'state')}"
    if matrix.untested:
        words += f"; {counted(len(matrix.untested), 'declared state')} had no visit"
    if matrix.without_states:
        words += f"; {counted(matrix.without_states, 'conversation')} tell of no state"
    broke = sum(one.n for one in matrix.excluded)
    if broke:
        words += f"; {counted(broke, 'conversation')} left out because the integration broke"
    return f"{words}."


def _legend() -> Iterator[tuple[int, str]]:
    yield 0, "0 %"
    bounds = [f"{100 * bound:g}" for bound in LEVELS[1:]]
    yield 1, f"under {bounds[0]} %"
    yield 2, f"{bounds[0]} to {bounds[1]} %"
    yield 3, f"{bounds[1]} to {bounds[2]} %"
    yield 4, f"from {bounds[2]} %"


def _cause(cause: StateCause, links: Mapping[tuple[str, str], str]) -> FlowCause:
    return FlowCause(
        state=StateLink(shortened(cause.state), links.get((cause.flow, cause.state), "")),
        flow=shortened(cause.flow),
        headline=cause.headline,
        evidence=_sentence("; ".join(one.words for one in cause.evidence)),
        cost=_sentence(cause.cost),
        caution=cause.caution,
    )


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:]


class _Page:
    """One flow: its states by number, its picture, its tables, and the facts for who chooses a state."""

    def __init__(self, number: int, flow: str, answers: _Answers, source: StateTable) -> None:
        self.number, self.flow, self.answers = number, flow, answers
        self.rows = {row.state: row for row in answers.matrix.rows if row.flow == flow}
        self.declared = source.flows.get(flow)
        self.segments = {one.state: one.segment for one in answers.matrix.untested if one.flow == flow}
        counts = {(row.state, one.state): one.transitions for row in self.rows.values() for one in row.led_to or ()}
        names = [*self.rows, *self.segments, *(other for _, other in counts)]
        self.names = sorted(dict.fromkeys(names), key=lambda name: (self._order(name), name))
        self.at = {name: place for place, name in enumerate(self.names)}
        self.edges = {(self.at[one], self.at[other]): count for (one, other), count in counts.items()}
        self.causes = {one.state: one for one in answers.analysis.causes if one.flow == flow}
        self.states = [self._seen(name) for name in self.names]
        self.picture = picture(self.states, self.edges)

    def _order(self, name: str) -> float:
        """As declared, else as conversations went; what nobody entered comes last."""
        state = self.declared.by_name.get(name) if self.declared is not None else None
        if state is not None and state.rank is not None:
            return state.rank
        return self.answers.order.get((self.flow, name), float(len(self.rows)))

    def _seen(self, name: str) -> Seen:
        row = self.rows.get(name)
        place = self.at[name]
        arrived = sum(count for (one, other), count in self.edges.items() if other == place and one != place)
        terminal = row.terminal if row else self.declared.terminals.get(name, "") if self.declared is not None else ""
        words = _state_words(row, terminal) if row else self._nobody(arrived)
        return Seen(
            name, self._order(name), row.n if row else 0, row.stall.value if row else None, terminal, arrived, words
        )

    def _nobody(self, arrived: int) -> str:
        if arrived:
            return f"other states led to it {counted(arrived, 'time')}; the log never says that it was entered"
        return "untested: the flow declares it, and no conversation was in it"

    def drawn(self, links: Mapping[tuple[str, str], str]) -> DrawnFlow:
        matrix = [row for row in self.answers.matrix.rows if row.flow == self.flow]
        segments = [row for row in self.answers.segments if row.flow == self.flow]
        return DrawnFlow(
            number=self.number,
            name=shortened(self.flow),
            conversations=self.answers.sizes[self.flow],
            states=len(self.rows),
            untested=sum(not state.n and not state.arrived for state in self.states),
            picture=self.picture,
            tables=[table for table in (_matrix_table(matrix, links), _segment_table(segments)) if table.rows],
        )

    # ------------------------------------------------------------------ for who chooses a state

    def data(self) -> dict[str, Any]:
        return {
            "name": shortened(self.flow),
            "states": [self._facts(name) for name in self.names],
            "edges": [[one, other, count] for (one, other), count in self.edges.items()],
            "down": self.picture.down,
        }

    def _facts(self, name: str) -> dict[str, Any]:
        row, cause = self.rows.get(name), self.causes.get(name)
        key = (self.flow, name)
        state = self.states[self.at[name]]
        facts: dict[str, Any] = {"name": shortened(name), "n": state.n}
        if state.terminal:
            facts["end"] = state.terminal
        if row is None:
            facts["note"] = state.words
            return facts
        facts |= {
            "figures": [[label, *_plain(cell)] for label, cell in zip(_LABELS, _figures(row), strict=True)],
            "places": list(self.answers.places.get(key, ())),
            "stalled": self.answers.stalled.get(key, 0),
        }
        if row.segment:
            facts["segment"] = shortened(row.segment)
        if row.caution:
            facts["few"] = row.caution
        if cause is not None:
            facts["cause"] = {
                "headline": cause.headline,
                "evidence": [one.words for one in cause.evidence],
                "cost": cause.cost,
                "if_median": list(cause.if_median),
                "starves": [[self.at[one.state], round(one.missed)] for one in cause.starves if one.state in self.at],
            }
        return facts


def _state_words(row: StateFigures, terminal: str) -> str:
    """The figures of a state in a line, for who points at it."""
    parts = [counted(row.n, "conversation")]
    if terminal:
        parts.append("an end of the flow" if terminal == "unknown" else f"an end of the flow: {terminal}")
    for label, rate in (("stall", row.stall), ("progress", row.progress)):
        if rate.value is None:
            parts.append(f"{label} ·: {reason_text(rate.reason)}")
        else:
            parts.append(f"{label} {percent_text(rate.value)} ({_interval(rate, SHARE)})")
    return ", ".join([*parts, row.caution] if row.caution else parts)


def _plain(cell: FlowCell) -> list[str]:
    return [cell.value, cell.under, cell.reason]


# ---------------------------------------------------------------------- the tables

_LABELS = (
    "progress",
    "stall",
    "escalation",
    "revisits",
    "turns a visit",
    "latency p95",
    "guard errors",
    "slots filled here",
    "slots ready",
)


def _figures(row: StateFigures) -> list[FlowCell]:
    slow = row.latency_p95_ms
    latency = (
        FlowCell(seconds_text(slow / 1000), counted(row.latency_n, "turn"))
        if slow is not None
        else _none(row.latency_reason)
    )
    stall = _rate(row.stall, SHARE)
    return [
        _rate(row.progress, SHARE),
        stall._replace(weak=not is_no_fault(row.terminal) and (row.stall.value or 0.0) > STALL),
        _rate(row.escalation, SHARE),
        _rate(row.revisit, COUNT),
        _rate(row.dwell_turns, COUNT),
        latency,
        _rate(row.guard_error, COUNT),
        _rate(row.slot_fill_rate, SHARE),
        _rate(row.slot_ready_rate, SHARE),
    ]


def _rate(rate: Rate, unit: str) -> FlowCell:
    if rate.value is None:
        return _none(rate.reason)
    words = f"n {rate.n:,}"
    return FlowCell(
        value_text(rate.value, unit), f"{_interval(rate, unit)}, {words}" if rate.low is not None else words
    )


def _interval(rate: Rate | Aspect, unit: str) -> str:
    if rate.low is None or rate.high is None:
        return "no interval"
    return f"{number_text(max(0.0, rate.low), unit)} to {number_text(rate.high, unit)}"


def _none(reason: str) -> FlowCell:
    return FlowCell(NOTHING, reason=reason_text(reason) or "nothing measured")


def _share(value: float | None, reason: str) -> FlowCell:
    return _none(reason) if value is None else FlowCell(f"{value:.2f}")


def _matrix_table(rows: Sequence[StateFigures], links: Mapping[tuple[str, str], str]) -> FlowTable:
    return FlowTable(
        title="States, worst first",
        head="state",
        columns=("n", *_LABELS),
        rows=[
            TableRow(
                shortened(row.state), links.get((row.flow, row.state), ""), [FlowCell(f"{row.n:,}"), *_figures(row)]
            )
            for row in rows[:MAX_ROWS]
        ],
        more=max(0, len(rows) - MAX_ROWS),
        note="n counts conversations that were in the state. Stall: the share that got stuck there; progress: that "
        "went on to a next state; revisits: entries beyond the first. High stall with low progress pulls a flow down. "
        "▼ a stall above 0.3. A dot is no number: point at it for the reason.",
    )


def _segment_table(rows: Sequence[SegmentFigures]) -> FlowTable:
    return FlowTable(
        title="Segments, the least cohesive first",
        head="segment",
        columns=("kind", "states", "n", "goal yield", "typed yield", "efficiency", "coherence", "cohesion"),
        rows=[
            TableRow(
                shortened(row.segment),
                "",
                [
                    FlowCell(shortened(row.kind)),
                    FlowCell(f"{len(row.states):,}"),
                    FlowCell(f"{row.n:,}"),
                    _rate(row.goal_yield, SHARE),
                    _typed(row),
                    _share(row.efficiency, "no_turns_logged"),
                    _share(row.transition_coherence, "outcome_unknown"),
                    _share(row.group_cohesion, row.reason),
                ],
            )
            for row in rows[:MAX_ROWS]
        ],
        more=max(0, len(rows) - MAX_ROWS),
        note="Cohesion = goal yield × (0.35 × efficiency + 0.65 × coherence), from 0 to 1.",
    )


def _typed(row: SegmentFigures) -> FlowCell:
    cell = _rate(row.typed_yield, SHARE)
    return cell if row.typed_yield.value is None else cell._replace(under=f"{row.typed_by}, {cell.under}")


def _wider(states: States) -> Iterator[FlowTable]:
    """The tables over all flows."""
    flows = states.flows().rows
    yield FlowTable(
        title="Flows by agent",
        head="flow",
        columns=("agent", "n", "correctness", "completion", "errors", "latency mean", "latency p95", "humanness"),
        rows=[_flow_row(row) for row in flows[:MAX_ROWS]],
        more=max(0, len(flows) - MAX_ROWS),
        note="Points of ten, the least correct first; errors are points left after what went wrong.",
    )
    kinds = states.archetypes()
    yield FlowTable(
        title="Kinds of segments over all flows",
        head="kind",
        columns=("flows", "segments", "cohesion", "spread", "lowest", "highest", "weakest"),
        rows=[_kind_row(row) for row in kinds[:MAX_ROWS]],
        more=max(0, len(kinds) - MAX_ROWS),
        note="A kind that is weak in many flows is no fault of one flow.",
    )


def _flow_row(row: FlowFigures) -> TableRow:
    seconds = [
        _none("no_latency_logged") if value is None else FlowCell(seconds_text(value), counted(row.latency_n, "turn"))
        for value in (row.latency_mean, row.latency_p95)
    ]
    judged = [one for one in row.humanness if one.score is not None]
    humanness = FlowCell(f"{judged[-1].score:.1f}", shortened(judged[-1].judge, 40)) if judged else _none("not_judged")
    points = [_points(aspect) for aspect in (row.correctness, row.completion, row.errors)]
    under = f"{row.excluded:,} left out" if row.excluded else row.caution
    return TableRow(
        shortened(row.flow),
        "",
        [FlowCell(shortened(row.agent)), FlowCell(f"{row.n:,}", under), *points, *seconds, humanness],
    )


def _points(aspect: Aspect) -> FlowCell:
    if aspect.score is None:
        return _none(aspect.reason)
    under = f"n {aspect.n:,}"
    if aspect.low is not None and aspect.high is not None:
        under = f"{aspect.low:.1f} to {aspect.high:.1f}, {under}"
    return FlowCell(f"{aspect.score:.1f}", under)


def _kind_row(row: Archetype) -> TableRow:
    alone = row.reason or "one_segment_alone"
    cells = [
        FlowCell(f"{row.flows:,}"),
        FlowCell(f"{row.segments:,}"),
        _share(row.cohesion, row.reason),
        _share(row.spread, alone),
        _share(row.lowest, row.reason),
        _share(row.highest, row.reason),
        FlowCell(shortened(row.weakest)) if row.weakest else _none(row.reason),
    ]
    return TableRow(shortened(row.kind), "", cells)
