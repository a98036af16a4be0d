"""What the page says of the states of a run: the diagnosis, a picture of each flow, and the tables of the tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as Collection
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

import msgspec
import numpy as np

from convoscope.analysis.answer import Answer, LostConversation
from convoscope.analysis.flows.diagnosis import Analysis, StateCause
from convoscope.analysis.flows.segments import SegmentFigures
from convoscope.analysis.flows.state_matrix import Matrix, StateFigures
from convoscope.analysis.flows.state_table import FEW, Rate, StateTable, rates
from convoscope.analysis.flows.states import States
from convoscope.analysis.words import counted, first_of, value_text
from convoscope.metrics.declaration import SHARE
from convoscope.metrics.flow.states import STATE_TABLE
from convoscope.report.page.flow_picture import LEVELS, Picture, Seen, level, picture, shortened
from convoscope.report.page.flow_tables import (
    LABELS,
    FlowCell,
    FlowTable,
    interval_of,
    matrix_table,
    segment_table,
    state_cells,
    wider_tables,
)
from convoscope.report.page.overview import MIN_N, cause_key
from convoscope.report.page.scales import ScaledInterval
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.database import connect
from convoscope.runs.ranking import Ranking
from convoscope.runs.run import Run
from convoscope.views.end_reasons import HANDED_OVER
from convoscope.views.flow.endings import OUTCOMES, UNKNOWN
from convoscope.views.machines import NO_DIALOGUE

if TYPE_CHECKING:
    import duckdb

MAX_FLOWS = 12
"""Flows that are drawn, those with the most conversations."""
MAX_EDGES = 200
"""Of a flow, so many ways from state to state are named, the most frequent."""
MAX_VERSIONS = 4
"""Agents whose states are compared."""
WORST = 5
"""Conversations that the panel of a state names."""


class VersionRate(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The share lost in a state, of one version of the agent."""

    version: str
    text: str
    n: int
    level: int = 0
    """The shade of the cell; -1 where there are too few."""
    bar: ScaledInterval | None = None


class WhyLost(msgspec.Struct, frozen=True, array_like=True):
    """How many were lost in a state for one cause."""

    lost: int
    sentence: str
    href: str


class StateFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the panel of a state tells."""

    name: str
    n: int
    lost: int = 0
    line: str
    """How many are lost in it, in a sentence."""
    interval: str = ""
    end: str = ""
    note: str = ""
    why: list[WhyLost] = []
    diagnosis: list[str] = []
    fix: list[str] = []
    versions: list[VersionRate] = []
    calls: str = ""
    places: list[int] = []
    """Of the conversations lost in it, in the list."""
    figures: list[list[str]] = []
    neighbours: list[list[str]] = []


class FlowFacts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow: its picture, its states, its tables."""

    name: str
    line: str
    picture: Picture
    states: list[StateFacts]
    down: Sequence[tuple[int, int]]
    opens: int
    """The state that is chosen at first: the one that loses most."""
    versions: list[str] = []
    tables: Sequence[FlowTable] = ()


class FlowScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The states of a run."""

    line: str
    flows: list[FlowFacts]
    left_out: str = ""
    legend: Sequence[tuple[int, str]]
    tables: Sequence[FlowTable] = ()


class LostPlaces(NamedTuple):
    """Where conversations were lost: by their numbers the flow and the state, each conversation at most once."""

    states: Mapping[int, tuple[str, str]]
    by_state: Mapping[tuple[str, str], Sequence[int]]


class _Answers(NamedTuple):
    """Everything that was asked of the run."""

    run: Run
    answer: Answer
    matrix: Matrix
    analysis: Analysis
    segments: Sequence[SegmentFigures]
    order: Mapping[tuple[str, str], float]
    sizes: Mapping[str, int]
    lost: LostPlaces
    rates: Mapping[tuple[str, str], Rate]
    versions: Mapping[tuple[str, str], Mapping[str, Rate]]
    places: Mapping[int, int]
    """The place of each conversation in the list."""


class Flows(NamedTuple):
    """What the page says of states, where it shows each of them, and where conversations were lost."""

    screen: FlowScreen
    links: Mapping[tuple[str, str], str]
    lost: LostPlaces


def flow_screen(
    run: Run, answer: Answer, ranking: Ranking, lost_conversations: Sequence[LostConversation]
) -> Flows | None:
    """None where the run holds no state."""
    if not has_states(run):
        return None
    states = States([run])
    source = StateTable([run])
    matrix = states.matrix(neighbours=True)
    lost = _lost_places(lost_conversations)
    with source.ask() as connection:
        sizes = dict(connection.execute(_SIZES).fetchall())
        order = {(flow, state): place for flow, state, place in connection.execute(_ORDER).fetchall()}
        _mark_lost(connection, lost, ranking)
        rates_of = rates(connection, "lost_rows", ("flow", "state"), {"lost": ("lost", "one")})
        by_version = rates(connection, "lost_rows", ("flow", "state", "agent"), {"lost": ("lost", "one")})
    versions: dict[tuple[str, str], dict[str, Rate]] = {}
    for (flow, state, agent), rate in by_version.items():
        if "lost" in rate:
            versions.setdefault((flow, state), {})[agent] = rate["lost"]
    answers = _Answers(
        run=run,
        answer=answer,
        matrix=matrix,
        analysis=states.analyze(),
        segments=states.segments().rows,
        order=order,
        sizes=sizes,
        lost=lost,
        rates={key: rate["lost"] for key, rate in rates_of.items() if "lost" in rate},
        versions=versions,
        places={number: place for place, number in enumerate(ranking.order.tolist())},
    )
    losses = Counter(flow for flow, _ in lost.states.values())
    ranked = sorted(sizes, key=lambda flow: (flow == NO_FLOW, -losses[flow], -sizes[flow], flow))
    pages = [_Page(number, flow, answers, source) for number, flow in enumerate(ranked[:MAX_FLOWS])]
    links = {(page.flow, name): f"#/breaks/{page.number}/{place}" for page in pages for name, place in page.at.items()}
    screen = FlowScreen(
        line=_line(answers),
        flows=[page.facts(links, losses[page.flow]) for page in pages],
        left_out=f"Not drawn: {first_of([shortened(flow, 80) for flow in ranked[MAX_FLOWS:]])}."
        if len(ranked) > MAX_FLOWS
        else "",
        legend=list(_legend()),
        tables=[table for table in wider_tables(states) if table.rows],
    )
    return Flows(screen, links, lost)


def has_states(run: Run) -> bool:
    """Whether any conversation of a run was in a state."""
    if not run.tables.files(STATE_TABLE.name):
        return False
    with connect(run.folder) as connection:
        return bool(connection.execute(f"SELECT count(*) FROM {run.table(STATE_TABLE.name)}").fetchall()[0][0])


_SIZES = "SELECT flow, count(*) FILTER (position = 0) FROM s GROUP BY flow"
_ORDER = "SELECT flow, state, avg(position) FROM s GROUP BY flow, state"


def _lost_places(lost: Sequence[LostConversation]) -> LostPlaces:
    """Each lost conversation in the state that it got stuck in, or was handed over from."""
    states = {one.number: (one.flow or NO_FLOW, one.state) for one in lost if one.state}
    by_state: dict[tuple[str, str], list[int]] = {}
    for number, key in states.items():
        by_state.setdefault(key, []).append(number)
    return LostPlaces(states, by_state)


def _mark_lost(connection: duckdb.DuckDBPyConnection, places: LostPlaces, ranking: Ranking) -> None:
    """Make the table `lost_rows`: the rows of states of which an outcome is known, and whether it was lost there."""
    outcome = ranking.outcome.copy()
    outcome[list(ranking.errors)] = OUTCOMES.index(UNKNOWN)
    apart = [OUTCOMES.index(name) for name in (HANDED_OVER, *NO_DIALOGUE)]
    outcome[np.isin(outcome, apart)] = OUTCOMES.index(UNKNOWN)
    state = np.full(len(outcome), "", dtype=object)
    for number, (_, name) in places.states.items():
        state[number] = name
    connection.register("ended", {"number": np.arange(len(outcome)), "outcome": outcome, "lost_in": state})
    connection.execute(f"""
        CREATE TEMP TABLE lost_rows AS
        SELECT flow, state, agent, cluster, 1 AS one, (lost_in = state)::INTEGER AS lost
        FROM s JOIN ended USING (number) WHERE outcome <> {OUTCOMES.index(UNKNOWN)}
    """)


def _line(answers: _Answers) -> str:
    """What the screen is of, in a sentence."""
    matrix, noun = answers.matrix, answers.answer.noun
    words = f"{counted(matrix.conversations, noun)} of {counted(len(answers.sizes), 'flow')} went through "
    words += f"{counted(len(matrix.rows), 'state')}"
    if matrix.untested:
        words += f"; {counted(len(matrix.untested), 'declared state')} had no visit"
    if matrix.without_states:
        words += f"; {counted(matrix.without_states, noun)} without any state"
    return f"{words}."


def _legend() -> Iterator[tuple[int, str]]:
    yield 0, "0 %"
    bounds = [f"{100 * bound:g}" for bound in LEVELS[1:]]
    yield 1, f"under {bounds[0]} %"
    yield 2, f"{bounds[0]} to {bounds[1]} %"
    yield 3, f"{bounds[1]} to {bounds[2]} %"
    yield 4, f"from {bounds[2]} %"


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


class _Page:
    """One flow: its states by number, its picture, its tables, and the facts for who chooses a state."""

    def __init__(self, number: int, flow: str, answers: _Answers, source: StateTable) -> None:
        self.number, self.flow, self.answers = number, flow, answers
        self.noun = answers.answer.noun
        self.rows = {row.state: row for row in answers.matrix.rows if row.flow == flow}
        self.declared = source.flows.get(flow)
        self.untested = {one.state for one in answers.matrix.untested if one.flow == flow}
        counts = {(row.state, one.state): one.transitions for row in self.rows.values() for one in row.led_to or ()}
        names = [*self.rows, *self.untested, *(other for _, other in counts)]
        self.names = sorted(dict.fromkeys(names), key=lambda name: (self._order(name), name))
        self.at = {name: place for place, name in enumerate(self.names)}
        self.edges = {(self.at[one], self.at[other]): count for (one, other), count in counts.items()}
        self.causes = {one.state: one for one in answers.analysis.causes if one.flow == flow}
        self.arrived = Counter[int]()
        for (source_place, target), count in self.edges.items():
            self.arrived[target] += count if source_place != target else 0
        self.neighbours = self._neighbours()
        self.states = [self._seen(name) for name in self.names]
        self.picture = picture(self.states, self.edges)

    def _order(self, name: str) -> float:
        """As declared, else as conversations went; what nobody entered comes last."""
        state = self.declared.by_name.get(name) if self.declared is not None else None
        if state is not None and state.rank is not None:
            return state.rank
        return self.answers.order.get((self.flow, name), float(len(self.rows)))

    def _lost(self, name: str) -> Sequence[int]:
        return self.answers.lost.by_state.get((self.flow, name), ())

    def _seen(self, name: str) -> Seen:
        row = self.rows.get(name)
        place = self.at[name]
        arrived = self.arrived[place]
        terminal = row.terminal if row else self.declared.terminals.get(name, "") if self.declared is not None else ""
        words = self._words(row, name) if row else self._nobody(arrived)
        rate = self.answers.rates.get((self.flow, name))
        return Seen(
            name, self._order(name), row.n if row else 0, rate.value if rate else None, terminal, arrived, words
        )

    def _nobody(self, arrived: int) -> str:
        if arrived:
            return f"other states led to it {counted(arrived, 'time')}; the log never says that it was entered"
        return f"untested: the flow declares it, and no {self.noun} was in it"

    def _words(self, row: StateFigures, name: str) -> str:
        """A state in a sentence: how many are lost in it."""
        lost = len(self._lost(name))
        if row.terminal in ("success", "unknown") and not lost:
            return f"{counted(row.n, self.noun)} came to this end."
        verb = "is" if lost == 1 else "are"
        return f"{lost:,} of {counted(row.n, self.noun)} {verb} lost here."

    def facts(self, links: Mapping[tuple[str, str], str], lost: int) -> FlowFacts:
        matrix = [row for row in self.answers.matrix.rows if row.flow == self.flow]
        segments = [row for row in self.answers.segments if row.flow == self.flow]
        tables = (matrix_table(matrix, links, self.noun), segment_table(segments))
        versions = sorted(
            {one for (flow, _), mine in self.answers.versions.items() if flow == self.flow for one in mine}
        )
        drawn = [state.number for state in self.picture.states]
        return FlowFacts(
            name=shortened(self.flow),
            line=f"{counted(self.answers.sizes[self.flow], self.noun)}, {lost:,} lost",
            picture=self.picture,
            states=[self._state(name) for name in self.names],
            down=self.picture.down,
            opens=max(drawn, key=lambda place: (len(self._lost(self.names[place])), -place), default=0),
            versions=versions if 2 <= len(versions) <= MAX_VERSIONS else [],
            tables=[table for table in tables if table.rows],
        )

    def _state(self, name: str) -> StateFacts:
        row, cause, state = self.rows.get(name), self.causes.get(name), self.states[self.at[name]]
        if row is None:
            return StateFacts(name=shortened(name), n=0, line=_sentence(state.words), end=state.terminal)
        numbers = self._lost(name)
        rate = self.answers.rates.get((self.flow, name))
        return StateFacts(
            name=shortened(name),
            n=state.n,
            lost=len(numbers),
            line=state.words,
            interval=_rate_line(rate),
            end="" if state.terminal == "unknown" else state.terminal,
            note=row.caution,
            why=list(self._why(set(numbers))),
            diagnosis=[_sentence(one) for one in (cause.headline, *(one.words for one in cause.evidence))]
            if cause
            else [],
            fix=self._fix(cause, len(numbers)),
            versions=[
                _version(agent, one) for agent, one in sorted(self.answers.versions.get((self.flow, name), {}).items())
            ],
            calls=f"#/calls?{urlencode(self._query(name))}" if numbers else "",
            places=sorted(self.answers.places[number] for number in numbers)[:WORST],
            figures=[[label, *_plain(cell)] for label, cell in zip(LABELS, state_cells(row), strict=True)],
            neighbours=self.neighbours.get(self.at[name], []),
        )

    def _query(self, name: str) -> dict[str, str]:
        return {**({} if self.flow == NO_FLOW else {"flow": self.flow}), "lost_in": name}

    def _why(self, numbers: Collection[int]) -> Iterator[WhyLost]:
        answer = self.answers.answer
        if not numbers:
            return
        counts = [(len(numbers & set(one.numbers)), one) for one in (*answer.causes, *answer.remaining)]
        for lost, cause in sorted(counts, key=lambda one: -one[0]):
            if lost:
                yield WhyLost(lost, cause.sentence, f"#/calls?{urlencode({'cause': cause_key(cause)})}")

    def _fix(self, cause: StateCause | None, lost: int) -> list[str]:
        if cause is None or not cause.if_median:
            return []
        if lost < FEW:
            return [f"Only {counted(lost, self.noun)} lost: too few to say what a fix would bring."]
        return [_sentence(one) for one in cause.if_median]

    def _neighbours(self) -> dict[int, list[list[str]]]:
        """By state: `from`, `to`, and how often, the most frequent first."""
        by_state: dict[int, list[list[str]]] = {}
        for (source, target), count in sorted(self.edges.items(), key=lambda edge: -edge[1])[:MAX_EDGES]:
            to = "itself" if target == source else shortened(self.names[target])
            by_state.setdefault(source, []).append(["leads to", to, f"{count:,}×"])
            if target != source:
                by_state.setdefault(target, []).append(["comes from", shortened(self.names[source]), f"{count:,}×"])
        return by_state


def _rate_line(rate: Rate | None) -> str:
    if rate is None or rate.value is None:
        return ""
    words = f"{value_text(rate.value, SHARE)}"
    return f"{words}; 95 % interval {interval_of(rate, SHARE)}" if rate.low is not None else words


def _version(agent: str, rate: Rate) -> VersionRate:
    value = rate.value or 0.0
    low, high = (None if end is None else round(100 * end, 2) for end in (rate.low, rate.high))
    text = value_text(rate.value, SHARE)
    few = rate.n < MIN_N
    return VersionRate(
        version=shortened(agent, 40),
        text=text,
        n=rate.n,
        level=-1 if few else level(value) or 0,
        bar=ScaledInterval(value=round(100 * value, 2), low=low, high=high, text=f"{text}, n {rate.n:,}"),
    )


def _plain(cell: FlowCell) -> list[str]:
    return [cell.value, cell.under, cell.reason]
