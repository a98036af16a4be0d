"""The audit: visits counted again from the events that a run keeps, against the rows of states (flow-states, Audit)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from convoscope.conversation import from_json
from convoscope.flows.rows import STATE_METRICS, StateRow, state_rows
from convoscope.runs.columns import BETWEEN
from convoscope.runs.parts import CONVERSATIONS
from convoscope.runs.run import Run
from convoscope.runs.states.matrix import untested
from convoscope.runs.states.source import NO_FLOW, Source
from convoscope.runs.tables import STATES, connect

if TYPE_CHECKING:
    import duckdb

ENTERED, EXITED = "state_entered", "state_exited"
_MOVES = frozenset((ENTERED, EXITED))
TOLD = 100
_AT_ONCE = 8_192
"""Conversations that are looked at together, so that memory stays flat."""

Fault = Literal["never_ran", "no_row", "visits_differ", "value_differs", "excluded", "not_untested"]


Value = int | float | str | None


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A row that the events do not bear out, or events without a row."""

    conversation: str
    flow: str
    state: str
    fault: Fault
    """never_ran, no_row, visits_differ; excluded: a row of a conversation that broke; not_untested: marked as such."""
    stored: Value
    counted: Value
    field: str = ""
    """The value that differs, where it is not the number of visits."""

    def __str__(self) -> str:
        where = f"{self.flow} / {self.state}" + (f" in {self.conversation}" if self.conversation else "")
        return f"{where}: {_WORDS[self.fault].format(stored=self.stored, counted=self.counted, field=self.field)}"


_WORDS: dict[Fault, str] = {
    "never_ran": "has a row with {stored} visits, and never ran",
    "no_row": "ran {counted} times, and has no row",
    "visits_differ": "has {stored} visits in its row, and {counted} in the events",
    "value_differs": "has {field} {stored} in its row, and {counted} by its events",
    "excluded": "has a row, and the conversation is excluded",
    "not_untested": "is marked as untested, and ran {counted} times",
}


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What the recount came to."""

    conversations: int
    rows: int
    disagreements: int
    examples: tuple[Disagreement, ...]

    @property
    def holds(self) -> bool:
        return not self.disagreements


class _Event(msgspec.Struct):
    type: str
    state: str = ""
    to_state: str = ""


class _Body(msgspec.Struct):
    timeline: list[_Event] = []


_decode = msgspec.json.Decoder(_Body).decode


def audit(run: Run, *, values: bool = False) -> Audit:
    """Count visits again, and compare with what the run keeps.

    With `values`, all that a row says is computed again from the events, too: that costs as much as it did at first.
    """
    found = _Found()
    ran: dict[str, Counter[str]] = {}
    with connect(memory_mb=512) as connection:
        for conversations, stored in _stretches(connection, run, values=values):
            for number, name, flow, error, body in conversations:
                counted = {} if error or body is None else recount(body)
                ran.setdefault(flow, Counter()).update(counted)
                rows = stored.pop(number, [])
                found.compare(name, flow, _visits(rows), counted, excluded=bool(error))
                if values and body is not None and not error:
                    found.compare_values(name, flow, rows, state_rows(from_json(body)))
            found.strays(row for rows in stored.values() for row in rows)
    # Only what is declared can be untested.
    for one in untested(Source([run])) if run.flows else ():
        if count := ran.get(one.flow, Counter())[one.state]:
            found.add(
                Disagreement(
                    conversation="", flow=one.flow, state=one.state, fault="not_untested", stored=None, counted=count
                )
            )
    return Audit(
        conversations=found.conversations, rows=found.rows, disagreements=found.count, examples=tuple(found.examples)
    )


class _Found:
    def __init__(self) -> None:
        self.conversations = self.rows = self.count = 0
        self.examples: list[Disagreement] = []

    def add(self, one: Disagreement) -> None:
        self.count += 1
        if len(self.examples) < TOLD:
            self.examples.append(one)

    def strays(self, rows: Iterable[_Row]) -> None:
        """Rows of conversations that the run does not have."""
        for row in rows:
            self.rows += 1
            self.add(
                Disagreement(
                    conversation=row.conversation,
                    flow=row.flow,
                    state=row.state,
                    fault="never_ran",
                    stored=row.visits,
                    counted=None,
                )
            )

    def compare(
        self, name: str, flow: str, stored: Mapping[str, int], counted: Mapping[str, int], *, excluded: bool
    ) -> None:
        self.conversations += 1
        self.rows += len(stored)
        if stored == counted:
            return
        for state in dict.fromkeys((*stored, *counted)):
            fault = _fault(stored.get(state), counted.get(state), excluded=excluded)
            if fault is not None:
                self.add(
                    Disagreement(
                        conversation=name,
                        flow=flow,
                        state=state,
                        fault=fault,
                        stored=stored.get(state),
                        counted=counted.get(state),
                    )
                )

    def compare_values(self, name: str, flow: str, stored: Sequence[_Row], computed: Sequence[StateRow]) -> None:
        by_state = {row.state: row for row in computed}
        for row in stored:
            fresh = by_state.get(row.state)
            if fresh is None:
                continue
            told = dict(zip(_VALUES, row.values, strict=True)) | {"flow": row.flow}
            told_now = {field: _plain(getattr(fresh, field)) for field in _VALUES} | {"flow": flow}
            for field, value in told_now.items():
                if _plain(told[field]) != value:
                    self.add(
                        Disagreement(
                            conversation=name,
                            flow=flow,
                            state=row.state,
                            fault="value_differs",
                            stored=_plain(told[field]),
                            counted=value,
                            field=field,
                        )
                    )


def _plain(value: Any) -> Value:
    """A value of a row, however it was kept."""
    if isinstance(value, list | tuple):
        return ", ".join(str(one).replace(BETWEEN, " ") for one in value)
    plain: Value = value
    return plain


def _fault(stored: int | None, counted: int | None, *, excluded: bool) -> Fault | None:
    if stored == counted:
        return None
    if excluded:
        return "excluded"
    if counted is None:
        return "never_ran"
    return "no_row" if stored is None else "visits_differ"


def recount(body: str | bytes) -> dict[str, int]:
    """Visits by state, from the events alone: each entry is one, and so is each exit that no entry stands against.

    A log that tells of no entry at all enters a state by leaving the one before for it.
    """
    moves = [event for event in _decode(body).timeline if event.type in _MOVES and event.state]
    told = any(event.type == ENTERED for event in moves)
    visits: Counter[str] = Counter()
    unanswered: Counter[str] = Counter()
    for event in moves:
        if event.type == ENTERED:
            visits[event.state] += 1
            unanswered[event.state] += 1
            continue
        if unanswered[event.state]:
            unanswered[event.state] -= 1
        else:
            visits[event.state] += 1
        if not told and event.to_state:
            visits[event.to_state] += 1
            unanswered[event.to_state] += 1
    return dict(visits)


class _Row(NamedTuple):
    number: int
    conversation: str
    flow: str
    state: str
    visits: int
    values: tuple[Any, ...]


_VALUES = (
    *("segment", "position", *STATE_METRICS, "to_states", "to_counts", "slot_ready_rate", "front_loaded", "required"),
    *("turns", "latencies", "slots", "unplaced", "tool_calls", "tool_successes", "tool_unknown", "asked", "accepted"),
)
_Conversation = tuple[int, str, str, str | None, str | None]
_Stored = dict[int | None, list[_Row]]


def _stretches(
    connection: duckdb.DuckDBPyConnection, run: Run, *, values: bool
) -> Iterator[tuple[list[_Conversation], _Stored]]:
    """The conversations, some thousands at a time, each time with the rows of states that carry their numbers.

    Of a conversation the body comes along only where it tells of states, which most of a chat run do not. In the
    end come the rows that carry no number of any.
    """
    kept, states = run.table(CONVERSATIONS), run.table(STATES)
    tells = " OR ".join(f"contains(body, '{name}')" for name in (ENTERED, EXITED))
    columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), error, CASE WHEN {tells} THEN body END"
    count = connection.execute(f"SELECT count(*) FROM {kept}").fetchall()[0][0]
    for first in range(0, count, _AT_ONCE):
        some = f"number >= {first} AND number < {min(count, first + _AT_ONCE)}"
        conversations = connection.execute(f"SELECT {columns} FROM {kept} WHERE {some} ORDER BY number").fetchall()
        yield conversations, _rows(connection, states, some, values=values)
    yield [], _rows(connection, states, f"number IS NULL OR number < 0 OR number >= {count}", values=False)


def _rows(connection: duckdb.DuckDBPyConnection, states: str, which: str, *, values: bool) -> _Stored:
    columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), coalesce(state, ''), coalesce(visits, 0)"
    columns += "".join(f", {name}" for name in _VALUES) if values else ""
    found: _Stored = {}
    for row in connection.execute(f"SELECT {columns} FROM {states} WHERE {which}").fetchall():
        found.setdefault(row[0], []).append(_Row(row[0], row[1], row[2], row[3], row[4], row[5:]))
    return found


def _visits(rows: Iterable[_Row]) -> dict[str, int]:
    """Visits by state; a state with two rows has the visits of both."""
    visits: Counter[str] = Counter()
    for row in rows:
        visits[row.state] += row.visits
    return dict(visits)
