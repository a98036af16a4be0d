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
from convoscope.analysis.flows.diagnosis import Analysis, StateCause, analysis_of
from convoscope.analysis.flows.flow_matrix import FlowFigures, flow_matrix_of
from convoscope.analysis.flows.segments import Segments, archetypes_of, segments_of
from convoscope.analysis.flows.state_table import FEW, Matrix, Rate, StateFigures, StateTable, matrix_of, rates
from convoscope.analysis.words import counted, first_of, value_text
from convoscope.metrics.declaration import SHARE
from convoscope.report.flow_tables import ARCHETYPES, FLOWS, SEGMENTS, STATES, PageTable, interval_text, shortened
from convoscope.report.page.figures import ScaledInterval
from convoscope.report.page.flow_picture import LEVELS, Picture, PictureState, level, picture
from convoscope.report.page.overview import MIN_N, cause_key
from convoscope.runs.audit import NO_FLOW
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

_LABELS = STATES.labels
StateKey = tuple[str, str]
"""A flow and a state."""


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


class StateData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"worst": "places"}):
    """What the panel of a state shows."""

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
    worst: list[int] = []
    """Positions in the list of conversations that were lost in it."""
    figures: list[list[str]] = []
    neighbours: list[list[str]] = []


class FlowData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow: its picture, its states, its tables."""

    name: str
    line: str
    picture: Picture
    states: list[StateData]
    down: Sequence[tuple[int, int]]
    opens: int
    """The state that is chosen at first: the one that loses most."""
    versions: list[str] = []
    tables: Sequence[PageTable] = ()


class FlowScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The states of a run."""

    line: str
    flows: list[FlowData]
    left_out: str = ""
    legend: Sequence[tuple[int, str]]
    tables: Sequence[PageTable] = ()


class _Answers(NamedTuple):
    answer: Answer
    source: StateTable
    matrix: Matrix
    analysis: Analysis
    segments: Segments
    flows: Sequence[FlowFigures]
    order: Mapping[StateKey, float]
    """The mean position of each state in its conversations."""
    sizes: Mapping[str, int]
    """Conversations of each flow."""
    lost: Mapping[StateKey, Sequence[int]]
    """The conversations that were lost in each state, by number; each conversation at most once."""
    rates: Mapping[StateKey, Rate]
    versions: Mapping[StateKey, Mapping[str, Rate]]
    positions: Mapping[int, int]
    """The position of each conversation in the list."""

    @property
    def losses(self) -> Counter[str]:
        losses = Counter[str]()
        for (flow, _), numbers in self.lost.items():
            losses[flow] += len(numbers)
        return losses


class Flows(NamedTuple):
    """What the page says of states, and where it shows each of them."""

    screen: FlowScreen
    links: Mapping[StateKey, str]


def flow_screen(run: Run, answer: Answer, ranking: Ranking, lost_conversations: Sequence[LostConversation]) -> Flows:
    """What the page says of the states of a run that has some."""
    answers = _ask(StateTable([run]), answer, ranking, lost_conversations)
    losses, sizes = answers.losses, answers.sizes
    ranked = sorted(sizes, key=lambda flow: (flow == NO_FLOW, -losses[flow], -sizes[flow], flow))
    pages = [_Page(number, flow, answers) for number, flow in enumerate(ranked[:MAX_FLOWS])]
    links = {(page.flow, name): f"#/breaks/{page.number}/{at}" for page in pages for name, at in page.at.items()}
    hidden = [shortened(flow, 80) for flow in ranked[MAX_FLOWS:]]
    tables = (FLOWS.page(answers.flows), ARCHETYPES.page(archetypes_of(answers.segments)))
    screen = FlowScreen(
        line=_line(answers),
        flows=[page.data(links, losses[page.flow]) for page in pages],
        left_out=f"Not drawn: {first_of(hidden)}." if hidden else "",
        legend=list(_legend()),
        tables=[table for table in tables if table.rows],
    )
    return Flows(screen, links)


_SIZES = "SELECT flow, count(*) FILTER (position = 0) FROM s GROUP BY flow"
_ORDER = "SELECT flow, state, avg(position) FROM s GROUP BY flow, state"


def _ask(source: StateTable, answer: Answer, ranking: Ranking, lost: Sequence[LostConversation]) -> _Answers:
    # Each lost conversation is lost in the state that it got stuck in, or was handed over from.
    lost_in: dict[StateKey, list[int]] = {}
    for conversation in lost:
        if conversation.state:
            lost_in.setdefault((conversation.flow or NO_FLOW, conversation.state), []).append(conversation.number)
    measure = {"lost": ("lost", "one")}
    with source.ask() as connection:
        matrix = matrix_of(connection, source, neighbours=True)
        _mark_lost(connection, lost_in, ranking)
        of_state = rates(connection, "lost_rows", ("flow", "state"), measure)
        versions: dict[StateKey, dict[str, Rate]] = {}
        for (flow, state, agent), rate in rates(connection, "lost_rows", ("flow", "state", "agent"), measure).items():
            if "lost" in rate:
                versions.setdefault((flow, state), {})[agent] = rate["lost"]
        return _Answers(
            answer=answer,
            source=source,
            matrix=matrix,
            analysis=analysis_of(connection, source, matrix),
            segments=segments_of(connection, source),
            flows=flow_matrix_of(connection, source, ("flow", "agent")).rows,
            order={(flow, state): position for flow, state, position in connection.execute(_ORDER).fetchall()},
            sizes=dict(connection.execute(_SIZES).fetchall()),
            lost=lost_in,
            rates={(flow, state): rate["lost"] for (flow, state), rate in of_state.items() if "lost" in rate},
            versions=versions,
            positions={number: position for position, number in enumerate(ranking.order.tolist())},
        )


def _mark_lost(
    connection: duckdb.DuckDBPyConnection, lost_in: Mapping[StateKey, Sequence[int]], ranking: Ranking
) -> None:
    """Make the table `lost_rows`: the rows of states of which an outcome is known, and whether it was lost there."""
    outcome = ranking.outcome.copy()
    outcome[list(ranking.errors)] = OUTCOMES.index(UNKNOWN)
    apart = [OUTCOMES.index(name) for name in (HANDED_OVER, *NO_DIALOGUE)]
    outcome[np.isin(outcome, apart)] = OUTCOMES.index(UNKNOWN)
    state = np.full(len(outcome), "", dtype=object)
    for (_, name), numbers in lost_in.items():
        state[list(numbers)] = name
    connection.register("ended", {"number": np.arange(len(outcome)), "outcome": outcome, "lost_in": state})
    connection.execute(f"""
        CREATE TEMP TABLE lost_rows AS
        SELECT flow, state, agent, cluster, 1 AS one, (lost_in = state)::INTEGER AS lost
        FROM s JOIN ended USING (number) WHERE outcome <> {OUTCOMES.index(UNKNOWN)}
    """)


def _line(answers: _Answers) -> str:
    matrix, noun = answers.matrix, answers.answer.noun
    text = f"{counted(matrix.conversations, noun)} of {counted(len(answers.sizes), 'flow')} went through "
    text += counted(len(matrix.rows), "state")
    if matrix.untested:
        text += f"; {counted(len(matrix.untested), 'declared state')} had no visit"
    if matrix.without_states:
        text += f"; {counted(matrix.without_states, noun)} without any state"
    return f"{text}."


def _legend() -> Iterator[tuple[int, str]]:
    yield 0, "0 %"
    bounds = [f"{100 * bound:g}" for bound in LEVELS[1:]]
    yield 1, f"under {bounds[0]} %"
    yield 2, f"{bounds[0]} to {bounds[1]} %"
    yield 3, f"{bounds[1]} to {bounds[2]} %"
    yield 4, f"from {bounds[2]} %"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class _Page:
    """One flow: its states by number, its picture, its tables, and the panel of each state."""

    def __init__(self, number: int, flow: str, answers: _Answers) -> None:
        self.number, self.flow, self.answers = number, flow, answers
        self.noun = answers.answer.noun
        self.declared = answers.source.flows.get(flow)
        self.rows = {row.state: row for row in answers.matrix.rows if row.flow == flow}
        counts = {(row.state, to.state): to.transitions for row in self.rows.values() for to in row.led_to or ()}
        untested = {row.state for row in answers.matrix.untested if row.flow == flow}
        names = [*self.rows, *untested, *(target for _, target in counts)]
        self.names = sorted(dict.fromkeys(names), key=lambda name: (self._order(name), name))
        self.at = {name: at for at, name in enumerate(self.names)}
        self.edges = {(self.at[source], self.at[target]): count for (source, target), count in counts.items()}
        self.causes = {cause.state: cause for cause in answers.analysis.causes if cause.flow == flow}
        self.arrived = Counter[int]()
        for (source, target), count in self.edges.items():
            self.arrived[target] += count if source != target else 0
        self.neighbours = self._neighbours()
        self.states = [self._picture_state(name) for name in self.names]
        self.picture = picture(self.states, self.edges)

    def _order(self, name: str) -> float:
        """As declared, else as conversations went; what was never entered comes last."""
        state = self.declared.by_name.get(name) if self.declared is not None else None
        if state is not None and state.rank is not None:
            return state.rank
        return self.answers.order.get((self.flow, name), float(len(self.rows)))

    def _lost(self, name: str) -> Sequence[int]:
        return self.answers.lost.get((self.flow, name), ())

    def _picture_state(self, name: str) -> PictureState:
        row, arrived = self.rows.get(name), self.arrived[self.at[name]]
        rate = self.answers.rates.get((self.flow, name))
        lost = rate.value if rate else None
        if row is not None:
            return PictureState(name, self._order(name), row.n, lost, row.terminal, arrived, self._text(row))
        terminal = self.declared.terminals.get(name, "") if self.declared is not None else ""
        text = f"untested: the flow declares it, and no {self.noun} was in it"
        if arrived:
            text = f"other states led to it {counted(arrived, 'time')}; the log never says that it was entered"
        return PictureState(name, self._order(name), 0, lost, terminal, arrived, text)

    def _text(self, row: StateFigures) -> str:
        """A state in a sentence: how many are lost in it."""
        lost = len(self._lost(row.state))
        if row.terminal in ("success", "unknown") and not lost:
            return f"{counted(row.n, self.noun)} came to this end."
        return f"{lost:,} of {counted(row.n, self.noun)} {'is' if lost == 1 else 'are'} lost here."

    def data(self, links: Mapping[StateKey, str], lost: int) -> FlowData:
        answers = self.answers
        segments = [row for row in answers.segments.rows if row.flow == self.flow]
        tables = (
            STATES.page([*self.rows.values()], lambda row: links.get((row.flow, row.state), ""), self.noun),
            SEGMENTS.page(segments),
        )
        versions = sorted(
            {name for (flow, _), rates in answers.versions.items() if flow == self.flow for name in rates}
        )
        drawn = [state.number for state in self.picture.states]
        return FlowData(
            name=shortened(self.flow),
            line=f"{counted(answers.sizes[self.flow], self.noun)}, {lost:,} lost",
            picture=self.picture,
            states=[self._state(name) for name in self.names],
            down=self.picture.down,
            opens=max(drawn, key=lambda at: (len(self._lost(self.names[at])), -at), default=0),
            versions=versions if 2 <= len(versions) <= MAX_VERSIONS else [],
            tables=[table for table in tables if table.rows],
        )

    def _state(self, name: str) -> StateData:
        row, cause, state = self.rows.get(name), self.causes.get(name), self.states[self.at[name]]
        if row is None:
            return StateData(name=shortened(name), n=0, line=_sentence(state.text), end=state.terminal)
        numbers = self._lost(name)
        query = {**({} if self.flow == NO_FLOW else {"flow": self.flow}), "lost_in": name}
        diagnosis = [cause.headline, *(evidence.text for evidence in cause.evidence)] if cause else []
        versions = self.answers.versions.get((self.flow, name), {})
        cells = list(zip(_LABELS, STATES.page_cells(row), strict=True))[1:]
        return StateData(
            name=shortened(name),
            n=state.n,
            lost=len(numbers),
            line=state.text,
            interval=_rate_line(self.answers.rates.get((self.flow, name))),
            end="" if state.terminal == "unknown" else state.terminal,
            note=row.caution,
            why=list(self._why(set(numbers))),
            diagnosis=[_sentence(text) for text in diagnosis],
            fix=self._fix(cause, len(numbers)),
            versions=[_version(agent, rate) for agent, rate in sorted(versions.items())],
            calls=f"#/calls?{urlencode(query)}" if numbers else "",
            worst=sorted(self.answers.positions[number] for number in numbers)[:WORST],
            figures=[[label, cell.value, cell.under, cell.reason] for label, cell in cells],
            neighbours=self.neighbours.get(self.at[name], []),
        )

    def _why(self, numbers: Collection[int]) -> Iterator[WhyLost]:
        answer = self.answers.answer
        if not numbers:
            return
        counts = [(len(numbers & set(cause.numbers)), cause) for cause in (*answer.causes, *answer.remaining)]
        for lost, cause in sorted(counts, key=lambda pair: -pair[0]):
            if lost:
                yield WhyLost(lost, cause.sentence, f"#/calls?{urlencode({'cause': cause_key(cause)})}")

    def _fix(self, cause: StateCause | None, lost: int) -> list[str]:
        if cause is None or not cause.if_median:
            return []
        if lost < FEW:
            return [f"Only {counted(lost, self.noun)} lost: too few to say what a fix would bring."]
        return [_sentence(change) for change in cause.if_median]

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
    value = value_text(rate.value, SHARE)
    return f"{value}; 95 % interval {interval_text(rate, SHARE)}" if rate.low is not None else value


def _version(agent: str, rate: Rate) -> VersionRate:
    value, text = rate.value or 0.0, value_text(rate.value, SHARE)
    low, high = (None if end is None else round(100 * end, 2) for end in (rate.low, rate.high))
    return VersionRate(
        version=shortened(agent, 40),
        text=text,
        n=rate.n,
        level=-1 if rate.n < MIN_N else level(value) or 0,
        bar=ScaledInterval(value=round(100 * value, 2), low=low, high=high, text=f"{text}, n {rate.n:,}"),
    )
