"""A written run as arrays over its conversations, in the order of their ids, read one metric at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import DIMENSIONS
from convoscope.metrics.declaration import Sample
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import COMPUTED, MEASURED, UNMEASURED
from convoscope.runs.parts import CONVERSATION_SCORES, CONVERSATIONS, SCORES
from convoscope.runs.tables import parquet, quoted
from convoscope.statistics.across import Columns
from convoscope.statistics.summary import STATUSES, Subjects, Table

if TYPE_CHECKING:
    import duckdb

MAX_GROUPS = 50
"""A dimension with more values than this is not grouped by unless asked for."""

_GROUPED = ("flow", "agent", "scenario_id", "model", "domain", "dataset", "split")
"""In the order in which people look at them. Trials of a scenario are repeats, no kinds."""
_COLUMNS = ", ".join(Columns._fields)
_AT_HAND = 8
_ROWS_AT_HAND = 1_000_000
"""Tables that are kept at hand hold no more rows than this together, but for the one that is looked at."""
_FEW_ROWS = 400_000
"""A file of so few rows is read once, since asking it for each metric takes longer than holding it."""


class Subset(NamedTuple):
    """The conversations with these values of these dimensions."""

    by: dict[str, str]
    codes: tuple[int, ...]


EVERYTHING = Subset({}, ())


class _Dimension(NamedTuple):
    """The values of a dimension, and for each conversation the place of its value; -1 for none."""

    values: list[str]
    codes: NDArray[np.int32]


class Arrays:
    """What the summary is computed from."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection = connection
        self._conversations = parquet(folder / f"{CONVERSATIONS}.parquet")
        self._reduced = self._held(folder / f"{CONVERSATION_SCORES}.parquet")
        self._scores = self._held(folder / f"{SCORES}.parquet")
        self._tables: dict[tuple[str, str, str], Table] = {}
        query = (
            "SELECT dense_rank() OVER (ORDER BY scenario_id IS NULL, coalesce(scenario_id, conversation), "
            "CASE WHEN scenario_id IS NOT NULL THEN dataset END, CASE WHEN scenario_id IS NOT NULL THEN domain END) "
            "AS cluster "
            f"FROM {self._conversations} ORDER BY number"
        )
        self.clusters = np.asarray(connection.execute(query).fetchnumpy()["cluster"], dtype=np.int64)
        self.count = len(self.clusters)
        self._dimension = cache(self._read_dimension)

    def _held(self, path: Path) -> str:
        """A file as SQL names it, held in memory where it is small."""
        counted = self._connection.execute(f"SELECT count(*) FROM {parquet(path)}").fetchone()
        if counted is None or counted[0] > _FEW_ROWS:
            return parquet(path)
        name = f"held_{path.stem}"
        self._connection.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM {parquet(path)}")
        return name

    def rows(self, subset: Subset) -> NDArray[np.bool_]:
        """Which conversations belong to a subset."""
        rows = np.ones(self.count, dtype=np.bool_)
        for name, code in zip(subset.by, subset.codes, strict=True):
            rows &= self._dimension(name).codes == code
        return rows

    def subsets(self, by: Sequence[Sequence[str]] | None) -> Iterator[Subset]:
        """The groups that were asked for, or one for each value of each dimension that has a few."""
        for names in self._usual() if by is None else by:
            dimensions = [self._dimension(name) for name in names]
            stacked = np.stack([dimension.codes for dimension in dimensions], axis=1)
            for codes in np.unique(stacked[(stacked >= 0).all(axis=1)], axis=0).tolist():
                values = [dimension.values[code] for dimension, code in zip(dimensions, codes, strict=True)]
                yield Subset(dict(zip(names, values, strict=True)), tuple(codes))

    def _usual(self) -> list[tuple[str, ...]]:
        few = [name for name in _GROUPED if 2 <= len(self._dimension(name).values) <= MAX_GROUPS]
        usual: list[tuple[str, ...]] = [(name,) for name in few]
        if few[:2] == ["flow", "agent"]:
            usual.insert(2, ("flow", "agent"))
        return usual

    def _read_dimension(self, name: str) -> _Dimension:
        # A JSON pointer, which can name anything.
        path = quoted("/" + name.replace("~", "~0").replace("/", "~1"))
        column = f'"{name}"' if name in DIMENSIONS else f"json_extract_string(dimensions, {path})"
        distinct = f"SELECT DISTINCT {column} AS v FROM {self._conversations} WHERE v IS NOT NULL"
        values = self._connection.execute(f"{distinct} ORDER BY v").fetchall()
        query = (
            f"SELECT coalesce(code, -1) AS code FROM (SELECT number, {column} AS v FROM {self._conversations}) "
            f"LEFT JOIN (SELECT v, row_number() OVER (ORDER BY v) - 1 AS code FROM ({distinct})) USING (v) "
            "ORDER BY number"
        )
        codes = np.asarray(self._connection.execute(query).fetchnumpy()["code"], dtype=np.int32)
        return _Dimension([str(row[0]) for row in values], codes)

    def judges(self, declared: Declared) -> list[str]:
        """Who scored by this metric; a panel comes after its judges.

        Where judges speak, a conversation that never reached them has a row of nobody's; it is
        theirs, too (see `table`).
        """
        found = self._judges.get((declared.name, declared.variant), set())
        return sorted(found - {COMPUTED} or found, key=lambda judge: (judge.startswith("panel:"), judge))

    @cached_property
    def _judges(self) -> dict[tuple[str, str], set[str]]:
        rows = self._connection.execute(f"SELECT DISTINCT metric, variant, judge FROM {self._reduced}").fetchall()
        found: dict[tuple[str, str], set[str]] = {}
        for metric, variant, judge in rows:
            found.setdefault((metric, variant), set()).add(judge)
        return found

    def table(self, declared: Declared, judge: str) -> Table:
        """What one metric, by one judge, says of every conversation; the last few are kept at hand."""
        which = (declared.name, declared.variant, judge)
        if which not in self._tables:
            while len(self._tables) >= max(1, min(_AT_HAND, _ROWS_AT_HAND // (self.count + 1))):
                del self._tables[next(iter(self._tables))]
            self._tables[which] = self._table(which)
        return self._tables[which]

    def _table(self, which: tuple[str, str, str]) -> Table:
        mine = f"FROM {self._reduced} WHERE metric = ? AND variant = ? AND judge IN (?, '{COMPUTED}')"
        found = self._connection.execute(f"SELECT DISTINCT coalesce(reason, '') {mine} ORDER BY ALL", list(which))
        reasons = [str(row[0]) for row in found.fetchall()]
        # Texts become numbers here: as Python's objects a million of them would weigh more than all the rest.
        rows = self._connection.execute(
            f"SELECT number, {_code('status', STATUSES)} AS status, {_code('reason', reasons)} AS reason, "
            f"not_applicable + unmeasured + errors AS skipped, {_COLUMNS} {mine} "
            f"QUALIFY row_number() OVER (PARTITION BY number ORDER BY judge = '{COMPUTED}') = 1 ORDER BY number",
            list(which),
        ).fetchnumpy()
        number = np.asarray(rows["number"])
        status = np.full(self.count, STATUSES.index(UNMEASURED), dtype=np.int8)
        status[number] = rows["status"]
        names = [*reasons, "not_scored"]
        reason = np.full(self.count, len(names) - 1, dtype=np.int32)
        reason[number] = rows["reason"]

        def column(name: str) -> NDArray[np.float64]:
            whole = np.zeros(self.count)
            whole[number] = np.ma.filled(rows[name].astype(np.float64), 0.0)
            return whole

        return Table(
            status=status,
            reason=reason,
            reasons=names,
            columns=Columns(*(column(name) for name in Columns._fields)),
            skipped=column("skipped"),
            clusters=self.clusters,
            subjects=cache(lambda: self._subjects(which)),
        )

    def _subjects(self, which: Sequence[str]) -> Subjects:
        rows = self._connection.execute(
            f"SELECT value, number FROM {self._scores} "
            "WHERE metric = ? AND variant = ? AND judge = ? AND status = 'measured'",
            which,
        ).fetchnumpy()
        return Subjects(np.asarray(rows["value"], dtype=np.float64), np.asarray(rows["number"], dtype=np.int64))

    @cached_property
    def _ids(self) -> list[str]:
        query = f"SELECT conversation FROM {self._conversations} ORDER BY number"
        return [row[0] for row in self._connection.execute(query).fetchall()]

    def samples(self, table: Table, rows: NDArray[np.bool_]) -> list[Sample]:
        """The conversations of some rows, one by one."""
        ids = self._ids
        samples: list[Sample] = []
        for row in np.flatnonzero(rows).tolist():
            status = STATUSES[table.status[row]]
            value = float(table.columns.value[row]) if status == MEASURED else None
            samples.append(Sample(ids[row], self._dimensions_of(row), status, value))
        return samples

    def _dimensions_of(self, row: int) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in DIMENSIONS:
            dimension = self._dimension(name)
            if dimension.codes[row] >= 0:
                found[name] = dimension.values[dimension.codes[row]]
        return found


def _code(column: str, values: Sequence[str]) -> str:
    """The place of a column's text in a list that holds all there are; an empty text where it has none."""
    return f"list_position([{', '.join(map(quoted, values))}], coalesce({column}, ''))::INTEGER - 1"
