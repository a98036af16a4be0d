"""What each state of a flow loses, by version: how conversations came to it, what falls out, what a fix would bring.

Every lost conversation is lost in one state: the one it got stuck in, or was handed over from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from convoscope.analysis.answer import LostConversation
from convoscope.analysis.answer.comparison import GroupComparison, whole
from convoscope.analysis.answer.differences import order_key
from convoscope.analysis.flows.state_table import FEW, Rate, StateTable, rates
from convoscope.conversation import from_json
from convoscope.runs.audit import NO_FLOW
from convoscope.runs.ranking import Ranking
from convoscope.scores.observation import MEASURED
from convoscope.statistics.differences import LEVEL, FigureSample, holm
from convoscope.statistics.intervals import student_quantile
from convoscope.views.end_reasons import HANDED_OVER
from convoscope.views.flow.endings import DONE, OUTCOMES, UNKNOWN
from convoscope.views.flow.walk import walk
from convoscope.views.machines import NO_DIALOGUE

if TYPE_CHECKING:
    import duckdb

StateKey = tuple[str, str]
"""A flow and a state."""
MEASURES = ("lost", "stuck", "handed_over", "wait", "objections")
"""What a state can be looked at for; lost is stuck and handed over."""
ALL = ""
"""All versions together."""
MAX_WALKED = 10_000
"""Conversations whose turns are put to their states; of more, objections are not counted by state."""
_ARRIVES = "arrives"
"""Of those that were not lost in a state, who reached the goal."""
_OBJECTIONS = "user.pushback"


class StateEntry(NamedTuple):
    """How many conversations first came to a state from another one."""

    source: str
    target: str
    conversations: int


class FlowEnds(NamedTuple):
    """What came of the conversations of a flow."""

    entered: int
    reached: int
    """The goal."""
    known: int
    """Conversations of which it is known how they ended."""


class VersionDifference(NamedTuple):
    """The later of two versions against the earlier one, in one measure of one state."""

    difference: float
    low: float
    high: float
    holds: bool
    """After correction for how many states of the flow are compared in the measure."""


class Gain(NamedTuple):
    """Conversations that would reach the goal if a state lost as few as the other states of its flow."""

    more: float
    low: float
    high: float
    usual: float
    """The median share that the other states lose."""


class StateLosses(NamedTuple):
    """The measures of all states. A version is named as its agent; `ALL` is all of them together."""

    rates: Mapping[str, Mapping[StateKey, Mapping[str, Rate]]]
    """By version, state and measure. A measure without any value is missing."""
    entries: Mapping[tuple[str, str], Sequence[StateEntry]]
    """By flow and version."""
    returns: Mapping[tuple[str, str], Sequence[StateEntry]]
    """Every transition, by flow and version, and in how many conversations it was made."""
    visits: Mapping[str, Mapping[StateKey, int]]
    """Conversations that were in a state, by version."""
    counted_before: Mapping[StateKey, int]
    """Of the conversations that were in a state, those that were handed over from another one, and count there."""
    ends: Mapping[tuple[str, str], FlowEnds]
    """By flow and version."""
    finishes: Mapping[tuple[str, str], Mapping[str, int]]
    """By flow and version: how many reached the goal without an end that says so, by the state they came to last."""
    differences: Mapping[tuple[str, str, str], VersionDifference]
    """By flow, state and measure: between the two versions of a flow that has two."""

    def lost(self, key: StateKey, version: str = ALL) -> tuple[int, int]:
        """How many got stuck in a state, and how many were handed over from it."""
        of_state = self.rates.get(version, {}).get(key, {})
        return tuple(  # type: ignore[return-value]
            round((rate.value or 0.0) * rate.n) if (rate := of_state.get(name)) is not None else 0
            for name in ("stuck", "handed_over")
        )

    def measures(self, flow: str) -> list[str]:
        """Those that some state of a flow has."""
        known = {name for key, of_state in self.rates[ALL].items() if key[0] == flow for name in of_state}
        return [name for name in MEASURES if name in known]

    def versions(self, flow: str) -> list[str]:
        """The versions that went through a flow."""
        names = {version for version, keys in self.visits.items() if version and any(key[0] == flow for key in keys)}
        return sorted(names, key=order_key)

    def gain(self, key: StateKey, others: Sequence[str]) -> Gain | None:
        """What the median loss of the given other states would bring; None where fewer than ten are lost."""
        of_state = self.rates[ALL].get(key, {})
        lost, arrives = of_state.get("lost"), of_state.get(_ARRIVES)
        all_rates = (self.rates[ALL].get((key[0], name), {}).get("lost") for name in others if name != key[1])
        losses = [one.value for one in all_rates if one is not None and one.value is not None]
        if lost is None or lost.value is None or not losses or round(lost.value * lost.n) < FEW:
            return None
        usual = median(losses)
        if usual >= lost.value or arrives is None or arrives.value is None:
            return None

        def more(share: float | None, reach: float | None) -> float:
            """Of those that stay now, so many would go on, and this share of them would reach the goal."""
            return max(0.0, ((share or 0.0) - usual) * lost.n * (reach or 0.0))

        high = 1.0 if lost.high is None else lost.high
        best = 1.0 if arrives.high is None else arrives.high
        return Gain(more(lost.value, arrives.value), more(lost.low, arrives.low), more(high, best), usual)


def losses_of(
    connection: duckdb.DuckDBPyConnection, source: StateTable, lost: Sequence[LostConversation], ranking: Ranking
) -> StateLosses:
    """Asked of the table `s` of one run."""
    _mark(connection, lost, ranking)
    share = {
        "lost": ("lost", "known"),
        "stuck": ("stuck", "known"),
        "handed_over": ("lost - stuck", "known"),
        "objections": ("objected", "spoken"),
        _ARRIVES: ("done", "known - lost"),
    }
    seconds = {"wait": ("waited", "waits")}
    by_version: dict[str, dict[StateKey, dict[str, Rate]]] = {}
    for keys in (("flow", "state"), ("flow", "state", "agent")):
        for measures, is_share in ((share, True), (seconds, False)):
            for (flow, state, *agent), measured in rates(
                connection, "marked", keys, measures, is_share=is_share
            ).items():
                version = agent[0] if agent else ALL
                by_version.setdefault(version, {}).setdefault((flow, state), {}).update(measured)
    visits: dict[str, dict[StateKey, int]] = {}
    for flow, state, agent, count in connection.execute(
        "SELECT flow, state, agent, count(*) FROM s GROUP BY ALL ORDER BY ALL"
    ).fetchall():
        for version in (ALL, agent):
            of_version = visits.setdefault(version, {})
            of_version[flow, state] = of_version.get((flow, state), 0) + count
    return StateLosses(
        by_version,
        _transitions(connection, _ENTRIES),
        _transitions(connection, _RETURNS),
        visits,
        {(flow, state): count for flow, state, count in connection.execute(_COUNTED_BEFORE).fetchall()},
        _ends(connection),
        _finishes(connection, source),
        dict(_differences(connection, share | seconds)),
    )


def _mark(connection: duckdb.DuckDBPyConnection, lost: Sequence[LostConversation], ranking: Ranking) -> None:
    """Make the table `marked`: the rows of states, what came of each conversation, and where it was lost."""
    outcome = ranking.outcome.copy()
    outcome[list(ranking.errors)] = OUTCOMES.index(UNKNOWN)
    apart = [OUTCOMES.index(name) for name in (HANDED_OVER, *NO_DIALOGUE)]
    outcome[np.isin(outcome, apart)] = OUTCOMES.index(UNKNOWN)
    state = np.full(len(outcome), "", dtype=object)
    handed_over = np.zeros(len(outcome), dtype=np.int8)
    for conversation in lost:
        state[conversation.number] = conversation.state
        handed_over[conversation.number] = conversation.handed_over
    ended = {"number": np.arange(len(outcome)), "outcome": outcome, "lost_in": state, "handed": handed_over}
    connection.register("ended", ended)
    turns = list(_objections(connection))
    connection.register(
        "said",
        {
            "number": np.array([one[0] for one in turns], dtype=np.int64),
            "said_in": np.array([one[1] for one in turns] or [""], dtype=object)[: len(turns)],
            "objected": np.array([one[2] for one in turns], dtype=np.float64),
            "spoken": np.array([one[3] for one in turns], dtype=np.int64),
        },
    )
    connection.execute(f"""
        CREATE TEMP TABLE marked AS
        SELECT flow, state, agent, cluster, number, position, (outcome <> {OUTCOMES.index(UNKNOWN)})::INTEGER AS known,
               (known = 1 AND lost_in = state)::INTEGER AS lost, (lost = 1 AND handed = 0)::INTEGER AS stuck,
               (outcome = {OUTCOMES.index(DONE)})::INTEGER AS reached, (lost = 0 AND reached = 1)::INTEGER AS done,
               (handed = 1 AND lost_in <> '' AND lost_in <> state)::INTEGER AS before,
               list_sum(latencies) / 1000 AS waited, len(latencies) AS waits, objected, spoken
        FROM s JOIN ended USING (number) LEFT JOIN said ON said.number = s.number AND said_in = state
    """)


def _objections(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[int, str, float, int]]:
    """By conversation and state: in how many turns the user objects or asks again, and how many turns there are."""
    ((conversations,),) = connection.execute("SELECT count(*) FILTER (position = 0) FROM s").fetchall()
    if conversations > MAX_WALKED:
        return
    turns: dict[int, list[tuple[int, float]]] = {}
    query = f"SELECT number, position, value FROM scores WHERE metric = '{_OBJECTIONS}' AND status = '{MEASURED}'"
    for number, position, value in connection.execute(query).fetchall():
        turns.setdefault(number, []).append((position, value))
    if not turns:
        return
    rows = connection.execute("SELECT number, body FROM conversations SEMI JOIN s USING (number)")
    while batch := rows.fetchmany(1000):
        for number, body in batch:
            visits = walk(from_json(body)).visits
            sums: dict[str, list[float]] = {}
            for position, value in turns.get(number, ()):
                state = next((one.state for one in reversed(visits) if one.entered <= position), None)
                if state is not None:
                    sums.setdefault(state, []).append(value)
            for state, values in sums.items():
                yield number, state, sum(values), len(values)


# Before it first came to a state, a conversation was only in states that it had entered earlier; the last of those
# that led to it is where it came from. An end that a state was left for need not have been entered.
_ENTRIES = """
    SELECT flow, agent, source, target, count(*) FROM (
        SELECT any_value(a.flow) AS flow, any_value(a.agent) AS agent, arg_max(a.state, a.position) AS source, target
        FROM (SELECT number, flow, agent, state, position, unnest(to_states) AS target FROM s) AS a
        LEFT JOIN s AS b ON b.number = a.number AND b.state = a.target
        WHERE a.state <> target AND (b.position IS NULL OR a.position < b.position)
        GROUP BY a.number, target
    ) GROUP BY ALL ORDER BY ALL
"""
_RETURNS = """
    SELECT flow, agent, state, target, count(*)
    FROM (SELECT flow, agent, state, unnest(to_states) AS target FROM s)
    GROUP BY ALL ORDER BY ALL
"""


def _transitions(connection: duckdb.DuckDBPyConnection, query: str) -> dict[tuple[str, str], list[StateEntry]]:
    sums: dict[tuple[str, str], dict[StateKey, int]] = {}
    for flow, agent, source, target, count in connection.execute(query).fetchall():
        for version in (ALL, agent):
            of_version = sums.setdefault((flow, version), {})
            of_version[source, target] = of_version.get((source, target), 0) + count
    return {key: [StateEntry(*pair, count) for pair, count in found.items()] for key, found in sums.items()}


def _ends(connection: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], FlowEnds]:
    ends: dict[tuple[str, str], FlowEnds] = {}
    query = "SELECT flow, agent, count(*), sum(reached), sum(known) FROM marked WHERE position = 0 GROUP BY ALL"
    for flow, agent, *counts in connection.execute(query).fetchall():
        for version in (ALL, agent):
            before = ends.get((flow, version), FlowEnds(0, 0, 0))
            ends[flow, version] = FlowEnds(*(one + int(count) for one, count in zip(before, counts, strict=True)))
    return ends


def _finishes(connection: duckdb.DuckDBPyConnection, source: StateTable) -> dict[tuple[str, str], dict[str, int]]:
    goals = [
        (flow.name, name) for flow in source.flows.values() for name, end in flow.terminals.items() if end == "success"
    ]
    connection.execute("CREATE TEMP TABLE goals (flow VARCHAR, goal VARCHAR)")
    if goals:
        connection.executemany("INSERT INTO goals VALUES ($1, $2)", goals)
    finishes: dict[tuple[str, str], dict[str, int]] = {}
    for flow, agent, state, count in connection.execute(
        """
        SELECT flow, agent, state, count(*) FROM (
            SELECT any_value(s.flow) AS flow, any_value(s.agent) AS agent, arg_max(s.state, s.position) AS state
            FROM s JOIN ended USING (number)
            LEFT JOIN goals ON goals.flow = s.flow AND (goal = s.state OR list_contains(s.to_states, goal))
            WHERE outcome = $1 GROUP BY number HAVING count(goal) = 0
        ) GROUP BY ALL ORDER BY ALL
    """,
        [OUTCOMES.index(DONE)],
    ).fetchall():
        for version in (ALL, agent):
            of_version = finishes.setdefault((flow, version), {})
            of_version[state] = of_version.get(state, 0) + count
    return finishes


_COUNTED_BEFORE = "SELECT flow, state, sum(before)::BIGINT FROM marked GROUP BY ALL HAVING sum(before) > 0 ORDER BY ALL"
_SUMS = """
    SELECT flow, state, agent, dense_rank() OVER (ORDER BY cluster) - 1 AS code, {sums}
    FROM marked GROUP BY flow, state, agent, cluster
"""


def _differences(
    connection: duckdb.DuckDBPyConnection, measures: Mapping[str, tuple[str, str]]
) -> Iterator[tuple[tuple[str, str, str], VersionDifference]]:
    """Of the flows that two versions went through: the second against the first, state by state."""
    compared = [name for name in measures if name in MEASURES]
    sums = ", ".join(
        f"coalesce(sum({above}), 0)::DOUBLE AS above{at}, coalesce(sum({below}), 0)::DOUBLE AS below{at}"
        for at, (above, below) in enumerate(measures[name] for name in compared)
    )
    versions: dict[str, list[str]] = {}
    for flow, agent in connection.execute("SELECT DISTINCT flow, agent FROM s").fetchall():
        versions.setdefault(flow, []).append(agent)
    for flow, names in sorted(versions.items()):
        if len(names) != 2:
            continue
        first, second = sorted(names, key=order_key)
        rows = connection.execute(f"SELECT * FROM ({_SUMS.format(sums=sums)}) WHERE flow = $1", [flow]).fetchnumpy()
        states, agents, codes = (np.asarray(rows[name]) for name in ("state", "agent", "code"))
        for at, name in enumerate(compared):
            sample = FigureSample(np.asarray(rows[f"above{at}"]), np.asarray(rows[f"below{at}"]))
            compared_states: dict[str, GroupComparison] = {}
            for state in sorted(set(states.tolist())):
                here = states == state
                if sample.above[here].any():  # where it never happened, there is nothing to compare
                    comparison = whole(sample, here & (agents == first), here & (agents == second), codes)
                    compared_states |= {} if comparison is None else {state: comparison}
            # What is compared in one table is corrected together.
            corrected = holm([one.p for one in compared_states.values()])
            for (state, comparison), p in zip(compared_states.items(), corrected, strict=True):
                reach = student_quantile(comparison.degrees) * comparison.error
                low, high = comparison.difference - reach, comparison.difference + reach
                yield (flow, state, name), VersionDifference(comparison.difference, low, high, p <= LEVEL)


def lost_by_state(lost: Sequence[LostConversation]) -> dict[StateKey, list[int]]:
    """The numbers of the conversations that were lost in each state; each at most once."""
    numbers: dict[StateKey, list[int]] = {}
    for conversation in lost:
        if conversation.state:
            numbers.setdefault((conversation.flow or NO_FLOW, conversation.state), []).append(conversation.number)
    return numbers
