"""The diagnosis: which states break their flow, what is wrong with them, and what it costs (flow-states, Analyse)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from convoscope.analysis.flows.state_table import (
    Excluded,
    Matrix,
    Rate,
    StateFigures,
    StateTable,
    Untested,
    few_text,
    rates,
    terminal_of,
)
from convoscope.runs.database import quoted
from convoscope.runs.part_files import BETWEEN

if TYPE_CHECKING:
    import duckdb

STALL = 0.3
"""Also of those that a state sends to a declared failure: they are lost, too, but elsewhere."""
PROGRESS = 0.5
REVISIT = 1.0
SLOT_FILL = 0.5
SLOT_FILL_PROGRESS = 0.7
LATENCY_BUDGET_MS = 4000.0

IDS = 3
WITHOUT_SUCCESS = ("failure", "escalation")
"""Ends in which conversations stay by design: the cause is a state before them."""
DETAILED = 20
"""The causes, worst first, that are followed down the flow; each needs a scan of all rows."""

Fault = Literal["stall", "failure", "progress", "revisit", "guard_error", "latency", "slots"]


class StateEvidence(msgspec.Struct, frozen=True, kw_only=True, rename={"text": "words"}):
    """One thing that is wrong, with the number behind it."""

    fault: Fault
    text: str
    value: float
    threshold: float
    n: int
    low: float | None = None
    high: float | None = None


class BlockedState(msgspec.Struct, frozen=True, kw_only=True):
    """A later state that gets fewer conversations because of this one."""

    state: str
    reached: int
    """Conversations that went on and came to it."""
    missed: float
    """About so many more would have come to it, had all gone on."""


class StateCause(msgspec.Struct, frozen=True, kw_only=True, rename={"caution": "said"}):
    """A state that pulls its flow down."""

    flow: str
    state: str
    segment: str | None
    n: int
    headline: str
    evidence: tuple[StateEvidence, ...]
    conversations: tuple[str, ...]
    """Three to open."""
    runs: tuple[str, ...]
    """The run of each of them."""
    lost: float
    """n × stall, conversations that got stuck in it, and those that it sent to a declared failure."""
    not_advanced: float
    """n × (1 − progress)."""
    cost: str
    starves: tuple[BlockedState, ...]
    if_median: tuple[str, ...]
    """What would change if it were as good as the median state of its flow."""
    caution: str
    """A warning where n is small; `said` in JSON."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        return tuple(evidence.fault for evidence in self.evidence)

    @property
    def certain(self) -> bool:
        """There are enough conversations to conclude from."""
        return not self.caution


class End(msgspec.Struct, frozen=True, kw_only=True):
    """An end without success, and the states that led to it."""

    flow: str
    state: str
    terminal: str
    n: int
    """Conversations that reached it, entered or only left for."""
    came_from: tuple[str, ...]
    """The states that led to it, and how often of all conversations that were in them."""


class UnknownOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """Conversations that were in a state and whose completion is unknown."""

    flow: str
    state: str
    n: int


class Healthy(msgspec.Struct, frozen=True, kw_only=True):
    """A state that collects little because its callers gave everything before: no fault."""

    flow: str
    state: str
    slot_fill_rate: float
    front_loaded: int
    progress: float


class Analysis(msgspec.Struct, frozen=True, kw_only=True):
    """The causes, the worst first, and what else is worth knowing."""

    causes: tuple[StateCause, ...]
    states: int
    """States that were looked at."""
    conversations: int
    ends: tuple[End, ...]
    unknown: tuple[UnknownOutcome, ...]
    """They are in no stall: whether they got stuck there is unknown."""
    front_loaded: tuple[Healthy, ...]
    untested: tuple[Untested, ...]
    excluded: tuple[Excluded, ...]
    without_states: int
    latency_budget_ms: float


def analysis_of(
    connection: duckdb.DuckDBPyConnection,
    source: StateTable,
    matrix: Matrix,
    *,
    latency_budget_ms: float = LATENCY_BUDGET_MS,
) -> Analysis:
    """Look at every state of a matrix that has neighbours."""
    failures = _failures(connection, source)
    suspects = []
    for row in matrix.rows:
        failed = failures[row.flow, row.state]["failure"]
        if evidence := _evidence(row, failed, _budget(source, row, latency_budget_ms)):
            suspects.append(_Suspect(row, tuple(evidence), round((failed.value or 0.0) * failed.n)))
    # By conversations lost, then by those that did not go on.
    suspects.sort(
        key=lambda suspect: (
            -suspect.lost,
            -_not_advanced(suspect.row),
            -suspect.row.n,
            suspect.row.flow,
            suspect.row.state,
        )
    )
    examples = _examples(connection, suspects)
    others = _Others(matrix)
    causes = []
    for rank, suspect in enumerate(suspects):
        after = _after(connection, suspect.row) if rank < DETAILED else _After(0, 0, {})
        causes.append(_cause(others, suspect, after, examples.get((suspect.row.flow, suspect.row.state), ())))
    return Analysis(
        causes=tuple(causes),
        states=len(matrix.rows),
        conversations=matrix.conversations,
        ends=tuple(_ends(connection, source, matrix)),
        unknown=tuple(
            UnknownOutcome(flow=row.flow, state=row.state, n=row.unknown) for row in matrix.rows if row.unknown
        ),
        front_loaded=tuple(_front_loaded(matrix, {(cause.flow, cause.state) for cause in causes})),
        untested=matrix.untested,
        excluded=matrix.excluded,
        without_states=matrix.without_states,
        latency_budget_ms=latency_budget_ms,
    )


class _Suspect(NamedTuple):
    row: StateFigures
    evidence: tuple[StateEvidence, ...]
    failures: int
    """Conversations that it sent to a declared failure."""

    @property
    def lost(self) -> float:
        return min(self.row.n, self.row.n * (self.row.stall.value or 0.0) + self.failures)


def _failures(connection: duckdb.DuckDBPyConnection, source: StateTable) -> dict[tuple[Any, ...], dict[str, Rate]]:
    """Of each state the share of conversations that it sent to a declared failure."""
    declared = [
        f"{name}{BETWEEN}{state}"
        for name, flow in source.flows.items()
        for state, kind in flow.terminals.items()
        if kind == "failure"
    ]
    connection.execute("SET VARIABLE failures = $1", [declared])
    return rates(connection, "s", ("flow", "state"), {"failure": (f"({_INTO_FAILURE})::INTEGER", "1")})


def _not_advanced(row: StateFigures) -> float:
    return 0.0 if _is_end(row) else row.n * (1 - (row.progress.value or 0.0))


def _budget(source: StateTable, row: StateFigures, default: float) -> float:
    """What the state declares, else its flow, else the default."""
    flow = source.flows.get(row.flow)
    state = flow.by_name.get(row.state) if flow is not None else None
    for declared in (state, flow):
        if declared is not None and declared.latency_budget_ms is not None:
            return declared.latency_budget_ms
    return default


def _is_end(row: StateFigures) -> bool:
    """A state that leads nowhere by design: a declared end, or one that was never left and few got stuck in."""
    return bool(row.terminal) or (not row.led_to and (row.stall.value or 0.0) < STALL)


def _evidence(row: StateFigures, failures: Rate, budget: float) -> list[StateEvidence]:
    """What is wrong with a state. An end of a flow is not blamed for the conversations that end there."""
    evidence: list[StateEvidence] = []

    def add(fault: Fault, text: str, rate: Rate, threshold: float) -> None:
        value = rate.value or 0.0
        evidence.append(
            StateEvidence(
                fault=fault, text=text, value=value, threshold=threshold, n=rate.n, low=rate.low, high=rate.high
            )
        )

    stall, progress, revisit, fill = row.stall, row.progress, row.revisit, row.slot_fill_rate
    is_end = _is_end(row)
    if not is_end and stall.value is not None and stall.value >= STALL:
        add("stall", f"{round(stall.value * stall.n):,} of {stall.n:,} conversations got stuck here", stall, STALL)
    if not is_end and failures.value is not None and failures.value >= STALL:
        left = round(failures.value * failures.n)
        add("failure", f"{left:,} of {row.n:,} conversations left for a failure", failures, STALL)
    if not is_end and progress.value is not None and progress.value < PROGRESS:
        went = round(progress.value * progress.n)
        text = f"{f'only {went:,}' if went else 'none'} of {progress.n:,} went on to a next state"
        if row.escalation.value:
            text += f"; handed over: {round(row.escalation.value * row.n):,}"
        add("progress", text, progress, PROGRESS)
    if not is_end and revisit.value is not None and revisit.value >= REVISIT:
        times = f"{revisit.value:.1f} times"
        text = f"conversations enter it again {'once' if times == '1.0 times' else times} on average"
        add("revisit", text, revisit, REVISIT)
    # A caller who says everything at once leaves it at 0, and all is well: only one that also stays is stuck.
    stays = (progress.value or 0.0) < SLOT_FILL_PROGRESS
    if not is_end and stays and fill.value is not None and fill.value < SLOT_FILL:
        add("slots", f"it collects {100 * fill.value:.0f} % of the slots that it requires", fill, SLOT_FILL)
    if row.guard_errors:
        times = _many(row.guard_errors, "time", "times")
        add("guard_error", f"a guard could not be evaluated {times}", row.guard_error, 0.0)
    if row.latency_p95_ms is not None and row.latency_p95_ms > budget:
        text = f"one turn in twenty takes {row.latency_p95_ms / 1000:.1f} s or longer (budget {budget / 1000:g} s)"
        add("latency", text, Rate(value=row.latency_p95_ms, n=row.latency_n), budget)
    return evidence


def _cause(others: _Others, suspect: _Suspect, after: _After, examples: Sequence[tuple[str, str]]) -> StateCause:
    row = suspect.row
    not_advanced = _not_advanced(row)
    return StateCause(
        flow=row.flow,
        state=row.state,
        segment=row.segment,
        n=row.n,
        headline=_HEADLINES[suspect.evidence[0].fault],
        evidence=suspect.evidence,
        conversations=tuple(conversation for _, conversation in examples),
        runs=tuple(run for run, _ in examples),
        lost=suspect.lost,
        not_advanced=not_advanced,
        cost=_cost(suspect),
        starves=_blocked(after, max(suspect.lost, not_advanced)),
        if_median=tuple(_if_median(others, suspect, after)),
        caution=few_text(row.n),
    )


_HEADLINES: dict[Fault, str] = {
    "stall": "conversations get stuck",
    "failure": "it sends conversations into failure",
    "progress": "few get past it",
    "revisit": "it is entered again and again",
    "guard_error": "a guard fails",
    "latency": "it is slow",
    "slots": "it does not collect what it needs",
}


def _cost(suspect: _Suspect) -> str:
    row, first = suspect.row, suspect.evidence[0].fault
    stuck, stays = round((row.stall.value or 0.0) * row.stall.n), round(_not_advanced(row))
    whose = "" if row.stall.n == row.n else " and whose outcome is known"
    ended = f"{stuck:,} of {row.stall.n:,} conversations that came here{whose} ended here, unfinished" if stuck else ""
    failed = f"{suspect.failures:,} of {row.n:,} went from here into failure" if suspect.failures else ""
    if ended or failed:
        return "; ".join(filter(None, (ended, failed)))
    if stays:
        return f"{stays:,} of {row.n:,} conversations that came here did not go on"
    affected = {"guard_error": row.guard_n, "revisit": row.revisit_n}.get(first)
    many = "" if affected is None else f"; {affected:,} of {row.n:,} that came are affected"
    return f"no conversation is known to be lost here{many}"


_LED_TO = f"list_transform(to_states, lambda state: flow || {quoted(BETWEEN)} || state)"
_INTO_FAILURE = f"list_has_any({_LED_TO}, getvariable('failures'))"
"""A row was left for a state that its flow declares as a failure."""


class _After(NamedTuple):
    """What became of the conversations that got past a state, and not into failure."""

    passed: int
    unstuck: int
    """Of those, the ones that got stuck nowhere."""
    reached: dict[str, int]


def _after(connection: duckdb.DuckDBPyConnection, row: StateFigures) -> _After:
    rows = connection.execute(f"""
        WITH past AS (
            SELECT run, number, position FROM s
            WHERE flow = {quoted(row.flow)} AND state = {quoted(row.state)} AND progress = 1
              AND stall IS DISTINCT FROM 1 AND NOT {_INTO_FAILURE}
        )
        SELECT d.state, count(*) FILTER (d.position > p.position), count(*) FILTER (d.stall IS DISTINCT FROM 0),
               count(*)
        FROM past AS p JOIN s AS d ON d.run = p.run AND d.number = p.number
        GROUP BY d.state
    """).fetchall()
    # Each of them has one row of the state itself.
    passed = next((every for state, _, _, every in rows if state == row.state), 0)
    stuck = sum(count for _, _, count, _ in rows)
    return _After(passed, max(0, passed - stuck), {state: count for state, count, _, _ in rows if count})


def _blocked(after: _After, stays: float) -> tuple[BlockedState, ...]:
    """Later states, and how many conversations they miss: as many as stay, at the rate of those that went on."""
    if not after.passed or stays < 1:
        return ()
    blocked = [
        BlockedState(state=state, reached=count, missed=stays * count / after.passed)
        for state, count in after.reached.items()
        if stays * count / after.passed >= 1
    ]
    return tuple(sorted(blocked, key=lambda state: (-state.missed, state.state)))


class _Change(NamedTuple):
    """A figure of a state, whether less of it is better, and what the median of its flow would bring."""

    value: Callable[[StateFigures], float | None]
    is_less_better: bool
    text: Callable[[StateFigures, float, float, _After], str]
    """From the state, its value, the median and what became of its conversations."""


class _Others:
    """The states of each flow that are no ends, and the medians of their figures."""

    def __init__(self, matrix: Matrix) -> None:
        self._states: dict[str, list[StateFigures]] = {}
        for row in matrix.rows:
            if not _is_end(row):
                self._states.setdefault(row.flow, []).append(row)
        self._ordered: dict[tuple[str, Fault], list[float]] = {}

    def median(self, row: StateFigures, fault: Fault) -> float | None:
        """The median of the other states of the flow."""
        value_of = _CHANGES[fault].value
        if (row.flow, fault) not in self._ordered:
            values = (value_of(state) for state in self._states.get(row.flow, ()))
            self._ordered[row.flow, fault] = sorted(value for value in values if value is not None)
        ordered, own = self._ordered[row.flow, fault], value_of(row)
        # Its own value is among them, unless it is an end or has none.
        is_among = own is not None and not _is_end(row)
        own_at = bisect_left(ordered, own) if is_among and own is not None else len(ordered)
        count = len(ordered) - is_among
        low, high = (at + (at >= own_at) for at in ((count - 1) // 2, count // 2))
        return (ordered[low] + ordered[high]) / 2 if count else None


def _if_median(others: _Others, suspect: _Suspect, after: _After) -> Iterator[str]:
    """What would change if it were as good as the median of the other states of its flow."""
    row = suspect.row
    if suspect.failures:
        yield f"if it sent no conversation into failure, {suspect.failures:,} more of {row.n:,} would go on"
    for evidence in suspect.evidence:
        if evidence.fault not in _CHANGES:
            continue
        change = _CHANGES[evidence.fault]
        now, usual = change.value(row), others.median(row, evidence.fault)
        if now is not None and usual is not None and (usual < now if change.is_less_better else usual > now):
            yield change.text(row, now, usual, after)


def _less_stalling(row: StateFigures, now: float, usual: float, after: _After) -> str:
    more = row.n * (now - usual)
    text = f"at the median stall of its flow ({100 * usual:.0f} %) about {more:,.0f} more of {row.n:,} would go on"
    rate = after.unstuck / after.passed if after.passed else 0.0
    if more * rate < 1:
        return text
    unstuck = f"{100 * rate:.0f} % of those that go on get stuck nowhere"
    return f"{text}; {unstuck}, so about {more * rate:,.0f} more would finish"


def _more_progress(row: StateFigures, now: float, usual: float, _: _After) -> str:
    more = row.n * (usual - now)
    return f"at the median progress of its flow ({100 * usual:.0f} %) about {more:,.0f} more of {row.n:,} would go on"


def _fewer_revisits(row: StateFigures, now: float, usual: float, _: _After) -> str:
    fewer = row.n * (now - usual)
    text = f"at the median of its flow ({usual:.1f}) about {_many(fewer, 'entry', 'entries')} less"
    if row.dwell_turns.value:
        text += f", which saves about {_many(fewer * row.dwell_turns.value, 'turn', 'turns')}"
    return text


def _fewer_guard_errors(row: StateFigures, now: float, usual: float, _: _After) -> str:
    less = _many(row.n * (now - usual), "guard error", "guard errors")
    return f"at the median of its flow ({usual:.1f} a conversation) about {less} less"


_CHANGES: dict[Fault, _Change] = {
    "stall": _Change(lambda row: row.stall.value, True, _less_stalling),
    "progress": _Change(lambda row: row.progress.value, False, _more_progress),
    "revisit": _Change(lambda row: row.revisit.value, True, _fewer_revisits),
    "guard_error": _Change(lambda row: row.guard_error.value, True, _fewer_guard_errors),
    "latency": _Change(
        lambda row: row.latency_p95_ms,
        True,
        lambda _row, now, usual, _after: (
            f"at the median of its flow its slow turns would take {usual / 1000:.1f} s, not {now / 1000:.1f} s"
        ),
    ),
    "slots": _Change(
        lambda row: row.slot_fill_rate.value,
        False,
        lambda _row, _now, usual, _after: (
            f"at the median of its flow it would collect {100 * usual:.0f} % of its slots"
        ),
    ),
}


def _examples(
    connection: duckdb.DuckDBPyConnection, suspects: Sequence[_Suspect]
) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Three conversations of each, in which its first fault shows most."""
    examples: dict[tuple[str, str], list[tuple[str, str]]] = {}
    by_fault: dict[Fault, list[StateFigures]] = {}
    for suspect in suspects:
        by_fault.setdefault(suspect.evidence[0].fault, []).append(suspect.row)
    for fault, rows in by_fault.items():
        pairs = ", ".join(f"({quoted(row.flow)}, {quoted(row.state)})" for row in rows)
        order = f"({_SHOWS[fault].order}, -number, run)"
        answer: list[Any] = connection.execute(f"""
            SELECT flow, state, arg_max((run, conversation), {order}, {IDS})
            FROM s WHERE (flow, state) IN ({pairs}) AND {_SHOWS[fault].only} GROUP BY flow, state
        """).fetchall()
        examples |= {(flow, state): list(chosen) for flow, state, chosen in answer}
    return examples


class _Shown(NamedTuple):
    """In which rows a fault shows, and in which most."""

    only: str
    order: str


_SHOWS: dict[Fault, _Shown] = {
    "stall": _Shown("stall = 1", "coalesce(turns, 0)"),
    "failure": _Shown(_INTO_FAILURE, "coalesce(turns, 0)"),
    "progress": _Shown("progress = 0", "coalesce(turns, 0)"),
    "revisit": _Shown("revisit > 0", "revisit"),
    "guard_error": _Shown("guard_error > 0", "guard_error"),
    "latency": _Shown("len(latencies) > 0", "list_max(latencies)"),
    "slots": _Shown("progress = 0", "1 - coalesce(slot_fill_rate, 1)"),
}


_REACHED = """
    SELECT count(DISTINCT (run, number)) FROM s
    WHERE flow = $1 AND (state = $2 OR list_contains(to_states, $2))
"""


def _ends(connection: duckdb.DuckDBPyConnection, source: StateTable, matrix: Matrix) -> list[End]:
    """Ends without success that were reached, entered or not."""
    n = {(row.flow, row.state): row.n for row in matrix.rows}
    feeders: dict[tuple[str, str, str], list[tuple[int, str]]] = {}
    for row in matrix.rows:
        for to in row.led_to or ():
            kind = terminal_of(source, row.flow, to.state)
            if kind in WITHOUT_SUCCESS:
                feeders.setdefault((row.flow, to.state, kind), []).append((to.conversations, row.state))
    for row in matrix.rows:
        if row.terminal in WITHOUT_SUCCESS:
            feeders.setdefault((row.flow, row.state, row.terminal), [])
    ends = []
    for (flow, state, kind), fed in feeders.items():
        reached = connection.execute(_REACHED, [flow, state]).fetchall()[0][0]
        came = tuple(f"{name} ({count:,} of {n[flow, name]:,})" for count, name in sorted(fed, reverse=True)[:IDS])
        ends.append(End(flow=flow, state=state, terminal=kind, n=reached, came_from=came))
    return sorted(ends, key=lambda end: (-end.n, end.flow, end.state))


def _front_loaded(matrix: Matrix, named: set[tuple[str, str]]) -> list[Healthy]:
    return [
        Healthy(
            flow=row.flow,
            state=row.state,
            slot_fill_rate=row.slot_fill_rate.value,
            front_loaded=row.front_loaded,
            progress=row.progress.value or 0.0,
        )
        for row in matrix.rows
        if row.front_loaded
        and row.slot_fill_rate.value is not None
        and row.slot_fill_rate.value < SLOT_FILL
        and (row.progress.value or 0.0) >= SLOT_FILL_PROGRESS
        and (row.flow, row.state) not in named
    ]


def _many(count: float, singular: str, plural: str) -> str:
    return f"{count:,.0f} {singular if round(count) == 1 else plural}"
