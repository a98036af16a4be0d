"""The audit: what a side table counts is counted again from the conversations that the run keeps, by another way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from convoscope.conversation import from_json
from convoscope.runs.database import CONVERSATIONS, connect, quoted
from convoscope.runs.part_files import BETWEEN
from convoscope.runs.run import Run
from convoscope.runs.subjects import none_of
from convoscope.scores.side_tables import SideTable

if TYPE_CHECKING:
    import duckdb

NO_FLOW = none_of("flow")
MAX_EXAMPLES = 100
_BATCH = 8_192
"""Conversations that are looked at together, so that memory stays flat."""

Fault = Literal["never_ran", "no_row", "visits_differ", "value_differs", "excluded", "not_untested", "not_recounted"]


Value = int | float | str | None


class Disagreement(msgspec.Struct, frozen=True, kw_only=True):
    """A row that the events do not bear out, or events without a row."""

    conversation: str
    flow: str
    subject: str
    fault: Fault
    """never_ran, no_row, visits_differ; excluded: a row of a conversation that broke; not_untested: marked as such."""
    stored: Value
    counted: Value
    field: str = ""
    """The value that differs, where it is not the number of visits."""

    def __str__(self) -> str:
        where = f"{self.flow} / {self.subject}" + (f" in {self.conversation}" if self.conversation else "")
        return f"{where}: {_WORDS[self.fault].format(stored=self.stored, counted=self.counted, field=self.field)}"


_WORDS: dict[Fault, str] = {
    "never_ran": "has a row with {stored} visits, and never ran",
    "no_row": "ran {counted} times, and has no row",
    "visits_differ": "has {stored} visits in its row, and {counted} in the events",
    "value_differs": "has {field} {stored} in its row, and {counted} by its events",
    "excluded": "has a row, and the conversation is excluded",
    "not_recounted": "cannot be counted again: that raises",
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


def audit(run: Run, table: SideTable, *, values: bool = False) -> Audit:
    """What counting again came to."""
    return recounted(run, table, values=values).audit()


def recounted(run: Run, table: SideTable, *, values: bool = False) -> Recount:
    """Count again, and compare with the rows that the run keeps.

    With `values`, all that a row says is computed again from its conversation, too: that costs as much as it did at
    first. A conversation whose integration broke must have no rows.
    """
    recount = Recount(table)
    with connect(run.folder) as connection:
        for conversations, stored in _batches(connection, run, table, values=values):
            for number, name, flow, error, body in conversations:
                rows = stored.pop(number, [])
                try:
                    counted = {} if error or body is None or table.recount is None else table.recount(body)
                except (Exception, SystemExit):  # whatever a function of the user raises
                    recount.add(name, flow, "", "not_recounted")
                    continue
                if table.recount is not None:
                    recount.compare(name, flow, _counts(rows), counted, excluded=bool(error))
                if values and body is not None and not error:
                    recount.compare_values(name, flow, rows, table.rows(from_json(body)))
            recount.strays(row for rows in stored.values() for row in rows)
    return recount


class Recount:
    """What was counted again, and what the rows of a run say otherwise."""

    def __init__(self, table: SideTable) -> None:
        self._values = _values(table)
        self._key = attrgetter(table.key)
        self.ran: Counter[tuple[str, str]] = Counter()
        """By flow and subject."""
        self.conversations = self.rows = self.count = 0
        self.examples: list[Disagreement] = []

    def audit(self) -> Audit:
        return Audit(
            conversations=self.conversations, rows=self.rows, disagreements=self.count, examples=tuple(self.examples)
        )

    def add(
        self,
        name: str,
        flow: str,
        subject: str,
        fault: Fault,
        stored: Value = None,
        counted: Value = None,
        field: str = "",
    ) -> None:
        """Count a disagreement; the first ones are kept as examples."""
        self.count += 1
        if len(self.examples) < MAX_EXAMPLES:
            self.examples.append(
                Disagreement(
                    conversation=name,
                    flow=flow,
                    subject=subject,
                    fault=fault,
                    stored=stored,
                    counted=counted,
                    field=field,
                )
            )

    def strays(self, rows: Iterable[_Row]) -> None:
        """Rows of conversations that the run does not have."""
        for row in rows:
            self.rows += 1
            self.add(row.conversation, row.flow, row.subject, "never_ran", row.counted)

    def compare(
        self, name: str, flow: str, stored: Mapping[str, int], counted: Mapping[str, int], *, excluded: bool
    ) -> None:
        self.conversations += 1
        self.rows += len(stored)
        for subject, count in counted.items():
            self.ran[flow, subject] += count
        if stored == counted:
            return
        for subject in dict.fromkeys((*stored, *counted)):
            fault = _fault(stored.get(subject), counted.get(subject), excluded=excluded)
            if fault is not None:
                self.add(name, flow, subject, fault, stored.get(subject), counted.get(subject))

    def compare_values(self, name: str, flow: str, stored: Sequence[_Row], computed: Sequence[Any]) -> None:
        by_subject = {self._key(row): row for row in computed}
        for row in stored:
            fresh = by_subject.get(row.subject)
            if fresh is None:
                continue
            kept_values = dict(zip(self._values, row.values, strict=True)) | {"flow": row.flow}
            computed_values = {field: _plain(getattr(fresh, field)) for field in self._values} | {"flow": flow}
            for field, value in computed_values.items():
                if (stored_value := _plain(kept_values[field])) != value:
                    self.add(name, flow, row.subject, "value_differs", stored_value, value, field)


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


class _Row(NamedTuple):
    number: int
    conversation: str
    flow: str
    subject: str
    counted: int
    values: tuple[Any, ...]


def _values(table: SideTable) -> list[str]:
    """The columns that are computed again; reasons, which are JSON, follow from the values that they explain."""
    own = (table.key, table.counted)
    return [column.name for column in table.columns if column.name not in own and not column.is_json]


_Conversation = tuple[int, str, str, str | None, str | None]
_Stored = dict[int | None, list[_Row]]


def _batches(
    connection: duckdb.DuckDBPyConnection, run: Run, table: SideTable, *, values: bool
) -> Iterator[tuple[list[_Conversation], _Stored]]:
    """The conversations, some thousands at a time, each time with the rows that carry their numbers.

    Of a conversation the body comes along only where it can have rows. In the
    end come the rows that carry no number of any.
    """
    source, side = run.table(CONVERSATIONS), run.table(table.name)
    mentioned = " OR ".join(f"contains(body, {quoted(word)})" for word in table.mentions) or "true"
    columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), error, CASE WHEN {mentioned} THEN body END"
    count = connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0]
    for first in range(0, count, _BATCH):
        some = f"number >= {first} AND number < {min(count, first + _BATCH)}"
        conversations = connection.execute(f"SELECT {columns} FROM {source} WHERE {some} ORDER BY number").fetchall()
        yield conversations, _rows(connection, side, table, some, values=values)
    yield [], _rows(connection, side, table, f"number IS NULL OR number < 0 OR number >= {count}", values=False)


def _rows(connection: duckdb.DuckDBPyConnection, side: str, table: SideTable, which: str, *, values: bool) -> _Stored:
    columns = f"number, conversation, coalesce(flow, '{NO_FLOW}'), coalesce(\"{table.key}\", ''), "
    columns += f'coalesce("{table.counted}", 0)' if table.counted else "0"
    columns += "".join(f', "{name}"' for name in _values(table)) if values else ""
    stored: _Stored = {}
    for row in connection.execute(f"SELECT {columns} FROM {side} WHERE {which}").fetchall():
        stored.setdefault(row[0], []).append(_Row(row[0], row[1], row[2], row[3], row[4], row[5:]))
    return stored


def _counts(rows: Iterable[_Row]) -> dict[str, int]:
    """Counts by subject; one with two rows has those of both."""
    counts: Counter[str] = Counter()
    for row in rows:
        counts[row.subject] += row.counted
    return dict(counts)
