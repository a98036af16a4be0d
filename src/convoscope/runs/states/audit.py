"""The audit: visits counted again from the events that a run keeps, against the rows of states (flow-states, Audit)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from convoscope.runs.parts import CONVERSATIONS, STATES
from convoscope.runs.run import Run
from convoscope.runs.states.matrix import matrix
from convoscope.runs.states.source import NO_FLOW, Source
from convoscope.runs.tables import connect, parquet

ENTERED, EXITED = "state_entered", "state_exited"
_MOVES = frozenset((ENTERED, EXITED))
TOLD = 100
_ROWS = 5_000

Fault = Literal["never_ran", "no_row", "visits_differ", "excluded", "not_untested"]


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A row that the events do not bear out, or events without a row."""

    conversation: str
    flow: str
    state: str
    fault: Fault
    """never_ran, no_row, visits_differ; excluded: a row of a conversation that broke; not_untested: marked as such."""
    stored: int | None
    counted: int | None

    def __str__(self) -> str:
        where = f"{self.flow} / {self.state}" + (f" in {self.conversation}" if self.conversation else "")
        return f"{where}: {_WORDS[self.fault].format(stored=self.stored, counted=self.counted)}"


_WORDS: dict[Fault, str] = {
    "never_ran": "has a row with {stored} visits, and never ran",
    "no_row": "ran {counted} times, and has no row",
    "visits_differ": "has {stored} visits in its row, and {counted} in the events",
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


def audit(run: Run) -> Audit:
    """Count again, and compare with what the run keeps."""
    found = _Found()
    ran: dict[str, Counter[str]] = {}
    stored = _Stored(run.folder)
    for number, name, flow, error, body in _bodies(run.folder):
        found.strays(stored.before(number))
        counted = {} if error or body is None else recount(body)
        ran.setdefault(flow, Counter()).update(counted)
        found.compare(name, flow, stored.of(number), counted, excluded=bool(error))
    found.strays(stored.before(None))
    for one in matrix(Source([run])).untested:
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


def _bodies(folder: Path) -> Iterator[tuple[int, str, str, str | None, str | None]]:
    """Every conversation; its body only where it tells of states, which most of a chat run do not."""
    tells = " OR ".join(f"contains(body::VARCHAR, '{name}')" for name in ("state_entered", "state_exited"))
    columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), error, CASE WHEN {tells} THEN body END"
    return _each(f"SELECT {columns} FROM {parquet(folder / f'{CONVERSATIONS}.parquet')} ORDER BY number")


class _Row(NamedTuple):
    number: int
    conversation: str
    flow: str
    state: str
    visits: int


class _Stored:
    """The rows of states that a run keeps, in the order of its conversations."""

    def __init__(self, folder: Path) -> None:
        columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), coalesce(state, ''), coalesce(visits, 0)"
        path = folder / f"{STATES}.parquet"
        rows = map(_Row._make, _each(f"SELECT {columns} FROM {parquet(path)} ORDER BY number NULLS LAST"))
        self._groups = ((number, list(mine)) for number, mine in groupby(rows, key=attrgetter("number")))
        self._next = next(self._groups, None)

    def before(self, number: int | None) -> Iterator[_Row]:
        """The rows of conversations with lower numbers that nobody asked for; of None, all that are left."""
        while self._next is not None and (number is None or (self._next[0] is not None and self._next[0] < number)):
            yield from self._next[1]
            self._next = next(self._groups, None)

    def of(self, number: int) -> dict[str, int]:
        """Visits by state; a state with two rows has the visits of both."""
        visits: Counter[str] = Counter()
        if self._next is not None and self._next[0] == number:
            for row in self._next[1]:
                visits[row.state] += row.visits
            self._next = next(self._groups, None)
        return dict(visits)


def _each(query: str) -> Iterator[Any]:
    with connect(memory_mb=512) as connection:
        connection.execute(query)
        while rows := connection.fetchmany(_ROWS):
            yield from rows
