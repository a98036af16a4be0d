"""What the page says of the states of a run: a picture of each flow, the panel of a state, the tables of the tiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as Collection
from typing import NamedTuple
from urllib.parse import urlencode

import msgspec

from convoscope.analysis.answer import Answer, LostConversation
from convoscope.analysis.flows.diagnosis import Analysis, analysis_of
from convoscope.analysis.flows.flow_matrix import FlowFigures, flow_matrix_of
from convoscope.analysis.flows.losses import (
    ALL,
    FlowEnds,
    Gain,
    StateEntry,
    StateKey,
    StateLosses,
    losses_of,
    lost_by_state,
)
from convoscope.analysis.flows.segments import Segments, archetypes_of, segments_of
from convoscope.analysis.flows.state_table import FEW, Matrix, Rate, StateTable, matrix_of
from convoscope.analysis.targets import Check
from convoscope.analysis.words import counted, first_of, percent_text, value_text
from convoscope.metrics.declaration import SHARE
from convoscope.report.flow_tables import ARCHETYPES, FLOWS, SEGMENTS, STATES, PageTable, interval_text, shortened
from convoscope.report.page.flow_layout import Pair
from convoscope.report.page.flow_measures import MeasureCell, MeasureScale, VersionChange, cells_of, scales_of
from convoscope.report.page.flow_picture import FlowColumns, Picture, PictureState, arrange_flow, picture
from convoscope.report.page.overview import cause_key
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.ranking import OUTCOME_METRIC, Ranking
from convoscope.runs.run import Run

MAX_FLOWS = 12
"""Flows that are drawn, those with the most conversations."""
MAX_EDGES = 200
"""Of a flow, so many ways from state to state are named, the most frequent."""
MAX_VERSIONS = 4
"""Agents whose states are compared."""
MAX_DRAWN = 40
"""A flow of more states has no pictures of its versions."""
MAX_GAINS = 3
"""States whose fixes are ranked beside each other."""
WORST = 5
"""Conversations that the panel of a state names."""
GOAL = "goal reached"
"""What is drawn for those that reached the goal without an end that says so."""

_LABELS = STATES.labels


class VersionLoss(msgspec.Struct, frozen=True, array_like=True):
    """How many of one version are lost in a state."""

    version: str
    text: str
    cell: MeasureCell


class WhyLost(msgspec.Struct, frozen=True, array_like=True):
    """How many were lost in a state for one cause."""

    lost: int
    sentence: str
    href: str


class Fix(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What it would bring if a state lost as few as the others."""

    lead: str = ""
    """`+41 calls`."""
    text: str
    verdict: str = ""
    """Against the target."""
    now: float = 0.0
    """Who reaches the goal now, and with the fix, in percent of all."""
    then: float = 0.0
    target: float | None = None
    now_text: str = ""
    target_text: str = ""
    ranked: list[tuple[int, str, float]] = []
    """The states whose fixes bring most: number, words, length of the bar in percent."""


class StateData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"worst": "places"}):
    """What the panel of a state shows, and its row in the table."""

    name: str
    n: int
    counts: list[tuple[int, int, int]] = []
    """How many were in it, got stuck there, were handed over from there: of all, of each version."""
    lost: int = 0
    line: str
    """How many are lost in it, in a sentence."""
    split: str = ""
    """How many of them got stuck, how many were handed over."""
    interval: str = ""
    end: str = ""
    note: str = ""
    why: list[WhyLost] = []
    again: str = ""
    diagnosis: list[str] = []
    fix: Fix | None = None
    cells: dict[str, list[MeasureCell | None]] = {}
    """By measure: of all, of each version."""
    changes: dict[str, VersionChange] = {}
    """By measure: the later of two versions against the earlier one."""
    versions: list[VersionLoss] = []
    calls: str = ""
    worst: list[int] = []
    """Positions in the list of conversations that were lost in it."""
    figures: list[list[str]] = []
    neighbours: list[list[str]] = []


class FlowData(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A flow: its pictures, its states, its tables."""

    name: str
    line: str
    about: str
    """How many enter and arrive, in a sentence."""
    pictures: list[Picture]
    """Of all, then of each version."""
    states: list[StateData]
    opens: int
    """The state that is chosen at first: the one that loses most."""
    goals: list[str]
    """Of all and of each version: how many arrive, in words."""
    versions: list[str] = []
    sizes: list[int] = []
    """Conversations of all, and of each version."""
    measures: list[MeasureScale] = []
    left_out: str = ""
    unseen: list[int] = []
    """States that are not drawn: untested, or an end whose conversations are counted where they came from."""
    tables: Sequence[PageTable] = ()


class FlowScreen(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The states of a run."""

    line: str
    flows: list[FlowData]
    left_out: str = ""
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
    losses: StateLosses
    positions: Mapping[int, int]
    """The position of each conversation in the list."""
    target: Check | None
    """What is demanded of the share that reaches its goal."""

    @property
    def lost_in_flow(self) -> Counter[str]:
        losses = Counter[str]()
        for (flow, _), numbers in self.lost.items():
            losses[flow] += len(numbers)
        return losses


class Flows(NamedTuple):
    """What the page says of states, and where it shows each of them."""

    screen: FlowScreen
    links: Mapping[StateKey, str]
    losses: StateLosses


def flow_screen(
    run: Run,
    answer: Answer,
    ranking: Ranking,
    lost_conversations: Sequence[LostConversation],
    checks: Sequence[Check] = (),
) -> Flows:
    """What the page says of the states of a run that has some."""
    answers = _ask(StateTable([run]), answer, ranking, lost_conversations, checks)
    lost, sizes = answers.lost_in_flow, answers.sizes
    ranked = sorted(sizes, key=lambda flow: (flow == NO_FLOW, -lost[flow], -sizes[flow], flow))
    pages = [_Page(number, flow, answers) for number, flow in enumerate(ranked[:MAX_FLOWS])]
    links = {(page.flow, name): f"#/breaks/{page.number}/{at}" for page in pages for name, at in page.at.items()}
    hidden = [shortened(flow, 80) for flow in ranked[MAX_FLOWS:]]
    tables = (FLOWS.page(answers.flows), ARCHETYPES.page(archetypes_of(answers.segments)))
    screen = FlowScreen(
        line=_line(answers),
        flows=[page.data(links, lost[page.flow]) for page in pages],
        left_out=f"Not drawn: {first_of(hidden)}." if hidden else "",
        tables=[table for table in tables if table.rows],
    )
    return Flows(screen, links, answers.losses)


_SIZES = "SELECT flow, count(*) FILTER (position = 0) FROM s GROUP BY flow"
_ORDER = "SELECT flow, state, avg(position) FROM s GROUP BY flow, state"


def _ask(
    source: StateTable, answer: Answer, ranking: Ranking, lost: Sequence[LostConversation], checks: Sequence[Check]
) -> _Answers:
    targets = (one for one in checks if one.figure.key == OUTCOME_METRIC and not one.figure.reduction and not one.by)
    with source.ask() as connection:
        matrix = matrix_of(connection, source, neighbours=True)
        return _Answers(
            answer=answer,
            source=source,
            matrix=matrix,
            analysis=analysis_of(connection, source, matrix),
            segments=segments_of(connection, source),
            flows=flow_matrix_of(connection, source, ("flow", "agent")).rows,
            order={(flow, state): position for flow, state, position in connection.execute(_ORDER).fetchall()},
            sizes=dict(connection.execute(_SIZES).fetchall()),
            lost=lost_by_state(lost),
            losses=losses_of(connection, source, lost, ranking),
            positions={number: position for position, number in enumerate(ranking.order.tolist())},
            target=next(targets, None),
        )


def _line(answers: _Answers) -> str:
    matrix, noun = answers.matrix, answers.answer.noun
    text = f"{counted(matrix.conversations, noun)} of {counted(len(answers.sizes), 'flow')} went through "
    text += counted(len(matrix.rows), "state")
    if matrix.untested:
        text += f"; {counted(len(matrix.untested), 'declared state')} had no visit"
    if matrix.without_states:
        text += f"; {counted(matrix.without_states, noun)} without any state"
    return f"{text}."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class _Page:
    """One flow: its states by number, its pictures, its tables, and the panel of each state."""

    def __init__(self, number: int, flow: str, answers: _Answers) -> None:
        self.number, self.flow, self.answers = number, flow, answers
        self.noun, self.losses = answers.answer.noun, answers.losses
        self.declared = answers.source.flows.get(flow)
        self.rows = {row.state: row for row in answers.matrix.rows if row.flow == flow}
        counts = {(row.state, to.state): to.transitions for row in self.rows.values() for to in row.led_to or ()}
        untested = {row.state for row in answers.matrix.untested if row.flow == flow}
        names = [*self.rows, *untested, *(target for _, target in counts)]
        self.names = sorted(dict.fromkeys(names), key=lambda name: (self._order(name), name))
        self.at = {name: at for at, name in enumerate(self.names)}
        self.edges = {(self.at[source], self.at[target]): count for (source, target), count in counts.items()}
        self.causes = {cause.state: cause for cause in answers.analysis.causes if cause.flow == flow}
        self.neighbours = self._neighbours()
        versions = self.losses.versions(flow)
        self.versions = versions if 2 <= len(versions) <= MAX_VERSIONS else []
        self.scales = scales_of(self.losses, flow, self.versions, self.noun)
        self.columns = arrange_flow(self._states(ALL), self._entries(ALL))

    def _order(self, name: str) -> float:
        """As declared, else as conversations went; what was never entered comes last."""
        state = self.declared.by_name.get(name) if self.declared is not None else None
        if state is not None and state.rank is not None:
            return state.rank
        return self.answers.order.get((self.flow, name), float(len(self.rows)))

    def _lost(self, name: str) -> Sequence[int]:
        return self.answers.lost.get((self.flow, name), ())

    def _terminal(self, name: str) -> str:
        row = self.rows.get(name)
        if row is not None:
            return row.terminal
        return self.declared.terminals.get(name, "") if self.declared is not None else ""

    def _ends(self, version: str) -> FlowEnds:
        return self.losses.ends.get((self.flow, version), FlowEnds(0, 0, 0))

    # -------------------------------------------------------------- the picture

    def _states(self, version: str) -> list[PictureState]:
        """The states of the flow, and behind them what stands for a goal that no state is."""
        visits = self.losses.visits.get(version, {})
        arrived = Counter[str]()
        for entry in self.losses.entries.get((self.flow, version), ()):
            arrived[entry.target] += entry.conversations
        states = []
        for name in self.names:
            terminal, lost = self._terminal(name), self.losses.lost((self.flow, name), version)
            n = visits.get((self.flow, name), 0) or arrived[name]
            # Who is handed over falls out of the state before: the end itself would count them twice.
            if terminal == "escalation" and self._handed_over(name):
                n = 0
            goal, text = terminal == "success", self._text(name)
            states.append(PictureState(name, self._order(name), n, *lost, goal=goal, end=bool(terminal), text=text))
        finished = sum(self.losses.finishes.get((self.flow, version), {}).values())
        return [*states, PictureState(GOAL, float("inf"), finished, goal=True, link=False)]

    def _handed_over(self, name: str) -> bool:
        """Whether everybody who came to an escalation is counted as lost where they came from."""
        key = (self.flow, name)
        return self.losses.counted_before.get(key, 0) == self.losses.visits[ALL].get(key, 0)

    def _entries(self, version: str) -> dict[Pair, int]:
        entries = self._pairs(self.losses.entries.get((self.flow, version), ()))
        goal = len(self.names)
        finishes = self.losses.finishes.get((self.flow, version), {})
        return entries | {(self.at[name], goal): count for name, count in finishes.items()}

    def _pairs(self, entries: Sequence[StateEntry]) -> dict[Pair, int]:
        return {
            (self.at[one.source], self.at[one.target]): one.conversations
            for one in entries
            if one.source in self.at and one.target in self.at and one.source != one.target
        }

    def _picture(self, version: str) -> Picture:
        transitions = self._pairs(self.losses.returns.get((self.flow, version), ()))
        return picture(self.columns, self._states(version), self._entries(version), transitions, self.noun)

    def _text(self, name: str) -> str:
        """A state in a sentence: how many are lost in it."""
        row, lost = self.rows.get(name), len(self._lost(name))
        if row is None:
            arrived = sum(count for (_, target), count in self.edges.items() if target == self.at[name])
            if arrived:
                return f"Other states led to it {counted(arrived, 'time')}; the log never says that it was entered."
            return f"Untested: the flow declares it, and no {self.noun} was in it."
        if row.terminal in ("success", "unknown") and not lost:
            return f"{counted(row.n, self.noun)} came to this end."
        known = self.losses.rates[ALL].get((self.flow, name), {}).get("lost")
        if known is None:
            return f"{counted(row.n, self.noun)} came here; how they ended is not known."
        whose = "" if known.n == row.n else f", of {row.n:,} that came here"
        if not lost:
            return f"None of {counted(known.n, self.noun)} is lost here{whose}."
        return f"{lost:,} of {counted(known.n, self.noun)} {'is' if lost == 1 else 'are'} lost here{whose}."

    # -------------------------------------------------------------- the screen

    def data(self, links: Mapping[StateKey, str], lost: int) -> FlowData:
        answers = self.answers
        segments = [row for row in answers.segments.rows if row.flow == self.flow]
        tables = (
            STATES.page([*self.rows.values()], lambda row: links.get((row.flow, row.state), ""), self.noun),
            SEGMENTS.page(segments),
        )
        drawn = [one for one in self.columns.shown if one < len(self.names)]
        shown = ["", *(self.versions if len(drawn) <= MAX_DRAWN else ())]
        return FlowData(
            name=shortened(self.flow),
            line=f"{counted(answers.sizes[self.flow], self.noun)}, {lost:,} lost",
            about=self._about(lost),
            pictures=[self._picture(version) for version in shown],
            states=[self._state(name) for name in self.names],
            opens=max(drawn, key=lambda at: (len(self._lost(self.names[at])), -at), default=0),
            goals=[_arrive(self._ends(version)) for version in shown],
            versions=[shortened(version, 40) for version in self.versions],
            sizes=[self._ends(version).entered for version in ("", *self.versions)],
            measures=self.scales,
            left_out=_left_out(self.columns),
            unseen=[at for at in range(len(self.names)) if at not in drawn],
            tables=[table for table in tables if table.rows],
        )

    def _about(self, lost: int) -> str:
        ends = self._ends(ALL)
        if not ends.known:
            return f"{counted(ends.entered, self.noun)} enter; how they ended is not known. Width is traffic."
        unknown = ends.entered - ends.known
        text = f"{counted(ends.entered, self.noun)} enter, {ends.reached:,} reach the goal"
        text += f", how {unknown:,} ended is not known" if unknown else ""
        return f"{text}. Width is traffic; what falls out is lost." if lost else f"{text}. Width is traffic."

    def _state(self, name: str) -> StateData:
        row, cause = self.rows.get(name), self.causes.get(name)
        key, end = (self.flow, name), self._terminal(name)
        if row is None:
            return StateData(name=shortened(name), n=0, line=self._text(name), end=end)
        numbers = self._lost(name)
        query = {**({} if self.flow == NO_FLOW else {"flow": self.flow}), "lost_in": name}
        diagnosis = [cause.headline, *(evidence.text for evidence in cause.evidence)] if cause else []
        cells = list(zip(_LABELS, STATES.page_cells(row), strict=True))[1:]
        stuck, handed_over = self.losses.lost(key)
        measures, changes = cells_of(self.losses, key, self.versions, self.scales)
        lost = measures.get("lost", [])
        return StateData(
            name=shortened(name),
            n=row.n,
            counts=[
                (self.losses.visits.get(version, {}).get(key, 0), *self.losses.lost(key, version))
                for version in ("", *self.versions)
            ],
            lost=len(numbers),
            line=self._text(name),
            split=_split(stuck, handed_over),
            interval=_rate_line(self.losses.rates[ALL].get(key, {}).get("lost")),
            end="" if end == "unknown" else end,
            note=row.caution,
            why=list(self._why(set(numbers))),
            again=f"{counted(row.revisit_n, self.noun)} {'enters' if row.revisit_n == 1 else 'enter'} it more than once"
            if row.revisit_n
            else "",
            diagnosis=[_sentence(text) for text in diagnosis],
            fix=None if end else self._fix(name, len(numbers)),
            cells={} if end else measures,
            changes={} if end else changes,
            versions=[
                VersionLoss(shortened(version, 40), self._lost_of(key, version), cell)
                for version, cell in zip(self.versions, lost[1:], strict=False)
                if cell is not None
            ],
            calls=f"#/calls?{urlencode(query)}" if numbers else "",
            worst=sorted(self.answers.positions[number] for number in numbers)[:WORST],
            figures=[[label, cell.value, cell.under, cell.reason] for label, cell in cells],
            neighbours=self.neighbours.get(self.at[name], []),
        )

    def _lost_of(self, key: StateKey, version: str) -> str:
        rate = self.losses.rates[version][key]["lost"]
        return f"{sum(self.losses.lost(key, version)):,} of {rate.n:,}"

    def _why(self, numbers: Collection[int]) -> Iterator[WhyLost]:
        answer = self.answers.answer
        if not numbers:
            return
        counts = [(len(numbers & set(cause.numbers)), cause) for cause in (*answer.causes, *answer.remaining)]
        for lost, cause in sorted(counts, key=lambda pair: -pair[0]):
            if lost:
                yield WhyLost(lost, cause.sentence, f"#/calls?{urlencode({'cause': cause_key(cause)})}")

    # -------------------------------------------------------------- what a fix would bring

    def _gains(self) -> dict[str, Gain]:
        others = [name for name in self.rows if not self._terminal(name)]
        every = {name: self.losses.gain((self.flow, name), others) for name in others}
        gains = {name: gain for name, gain in every.items() if gain is not None and gain.more >= 1}
        return dict(sorted(gains.items(), key=lambda one: -one[1].more))

    def _fix(self, name: str, lost: int) -> Fix | None:
        rate = self.losses.rates[ALL].get((self.flow, name), {}).get("lost")
        if rate is None:
            return None
        if not lost:
            return Fix(text=f"No {self.noun} is lost here: there is nothing to gain.")
        if lost < FEW:
            return Fix(text=f"Only {counted(lost, self.noun)} lost: too few to say what a fix would bring.")
        gains = self._gains()
        gain = gains.get(name)
        if gain is None:
            return Fix(text="It loses no more than the other states do.")
        outcomes, more = self.answers.answer.outcomes, round(gain.more)
        usual = value_text(gain.usual, SHARE)
        most = max(one.more for one in gains.values())
        check = self.answers.target
        return Fix(
            lead=f"+{counted(more, self.noun)}",
            text=f"95 % interval {gain.low:,.0f} to {gain.high:,.0f}, at the other states' median loss of {usual}.",
            verdict=self._against_target(gain),
            now=round(100 * outcomes.done / outcomes.known, 2),
            then=round(min(100.0, 100 * (outcomes.done + gain.more) / outcomes.known), 2),
            target=None if check is None else round(100 * check.target.value, 2),
            now_text=f"{outcomes.done:,} of {outcomes.known:,} now",
            target_text="" if check is None else f"target {percent_text(check.target.value)}",
            ranked=[
                (self.at[one], f"+{found.more:,.0f}", round(100 * found.more / most, 1))
                for one, found in list(gains.items())[:MAX_GAINS]
            ],
        )

    def _against_target(self, gain: Gain) -> str:
        """Whether it would be enough, by the whole interval of the gain."""
        outcomes, check = self.answers.answer.outcomes, self.answers.target
        done = outcomes.done + round(gain.more)
        text = f"{done:,} of {outcomes.known:,} would be {percent_text(done / outcomes.known)}"
        if check is None:
            return f"{text}."
        ends = [check.target.is_met_by((outcomes.done + more) / outcomes.known) for more in (gain.low, gain.high)]
        enough = (
            "enough for the target"
            if all(ends)
            else "too close to the target to call"
            if any(ends)
            else ("not enough for the target")
        )
        return f"{text}: {enough}."

    def _neighbours(self) -> dict[int, list[list[str]]]:
        """By state: `from`, `to`, and how often, the most frequent first."""
        by_state: dict[int, list[list[str]]] = {}
        for (source, target), count in sorted(self.edges.items(), key=lambda edge: -edge[1])[:MAX_EDGES]:
            to = "itself" if target == source else shortened(self.names[target])
            by_state.setdefault(source, []).append(["leads to", to, f"{count:,}×"])
            if target != source:
                by_state.setdefault(target, []).append(["comes from", shortened(self.names[source]), f"{count:,}×"])
        return by_state


def _split(stuck: int, handed_over: int) -> str:
    """`38 stuck, 7 handed to a person`."""
    parts = [f"{stuck:,} stuck"] if stuck else []
    return ", ".join([*parts, *([f"{handed_over:,} handed to a person"] if handed_over else [])])


def _arrive(ends: FlowEnds) -> str:
    return f"{percent_text(ends.reached / ends.known)} arrive" if ends.known else ""


def _left_out(columns: FlowColumns) -> str:
    parts = [f"{counted(columns.fewer_states, 'state')}, the least visited"] if columns.fewer_states else []
    parts += [counted(columns.fewer_edges, "ribbon")] if columns.fewer_edges else []
    return f"Not drawn: {', and '.join(parts)}." if parts else ""


def _rate_line(rate: Rate | None) -> str:
    if rate is None or rate.value is None:
        return ""
    value = value_text(rate.value, SHARE)
    return f"{value}; 95 % interval {interval_text(rate, SHARE)}" if rate.low is not None else value
