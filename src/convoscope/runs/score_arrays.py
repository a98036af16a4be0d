"""A written run as arrays over its conversations, in the order of their numbers, read a few metrics at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.conversation import DIMENSIONS
from convoscope.metrics.declaration import GroupSample, Metric
from convoscope.metrics.registry import Declared
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    SCORES,
    Tables,
    dimension_column,
    further_dimensions,
    quoted,
)
from convoscope.runs.subjects import KnownConversations, SubjectGroup, read_scores, subject_groups
from convoscope.scores.judges import speaking_order
from convoscope.scores.observation import COMPUTED, MEASURED, STATUSES, UNMEASURED, Status
from convoscope.scoring.profiles import Absence, Profile
from convoscope.statistics.intervals import Columns, Floats
from convoscope.statistics.summary import Subjects, Table
from convoscope.views.background import is_version

if TYPE_CHECKING:
    import duckdb

MAX_GROUPS = 50
"""A dimension with more values than this is not grouped by unless asked for."""
MIN_GROUP = 5
"""Groups of fewer conversations than this are counted, and have no figures unless asked for."""

_GROUPED = ("flow", "agent", "scenario_id", "model", "domain", "dataset", "split")
"""In the order in which people look at them. Trials of a scenario are repeats, no kinds."""
_ROWS_AT_HAND = 500_000
"""Rows of scores that are held at a time, but for those of one metric."""


class Subset(NamedTuple):
    """The conversations with these values of these dimensions."""

    by: dict[str, str]
    codes: tuple[int, ...]


EVERYTHING = Subset({}, ())


class _Dimension(NamedTuple):
    """The values of a dimension, and for each conversation the index of its value; -1 for none."""

    values: list[str]
    codes: NDArray[np.int32]


class _Extent(NamedTuple):
    """How much a metric has in the table of conversation scores, and the columns that hold one value."""

    rows: int
    judges: list[str]
    constant: dict[str, float]


class _Block(NamedTuple):
    """The rows of one metric."""

    number: NDArray[np.int64]
    judge: NDArray[np.int32]
    status: NDArray[np.int8]
    reason: NDArray[np.int32]
    columns: dict[str, Floats]


class Arrays:
    """What the summary is computed from."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: Tables,
        metrics: Sequence[Declared],
        profiles: Mapping[str, Profile],
    ) -> None:
        self._connection = connection
        self._conversations = tables.table(CONVERSATIONS)
        self._reduced = tables.table(CONVERSATION_SCORES)
        self._scores = tables.table(SCORES)
        self.metrics = metrics
        self._profiles = profiles
        self.count = sum(tables.parts)
        self._extents = self._read_extents()
        self._order = {index: rank for rank, index in enumerate(self._extents)}
        self._blocks: dict[int, _Block] = {}
        # No cache of a method: that would point back at this object, whose arrays are large, and keep it alive.
        self._dimensions: dict[str, _Dimension] = {}

    # Groups

    def rows(self, subset: Subset) -> NDArray[np.bool_]:
        """Which conversations belong to a subset."""
        rows = np.ones(self.count, dtype=np.bool_)
        for name, code in zip(subset.by, subset.codes, strict=True):
            rows &= self._dimension(name).codes == code
        return rows

    def groupings(self, by: Sequence[Sequence[str]] | None) -> list[tuple[str, ...]]:
        """The sets of dimensions that were asked for, or each dimension that has a few values."""
        if by is not None:
            return [tuple(names) for names in by]
        few = [name for name in (*_GROUPED, *self._versions) if 2 <= len(self._dimension(name).values) <= MAX_GROUPS]
        usual: list[tuple[str, ...]] = [(name,) for name in few]
        if few[:2] == ["flow", "agent"]:
            usual.insert(2, ("flow", "agent"))
        return usual

    @cached_property
    def _versions(self) -> list[str]:
        """The further dimensions whose values are versions of the agent."""
        names = further_dimensions(self._connection, self._conversations)
        return [name for name in sorted(names) if is_version(name)]

    def subsets(self, names: Sequence[str]) -> Iterator[tuple[Subset, int]]:
        """The groups by some dimensions, each with the number of its conversations."""
        dimensions = [self._dimension(name) for name in names]
        stacked = np.stack([dimension.codes for dimension in dimensions], axis=1)
        groups, counts = np.unique(stacked[(stacked >= 0).all(axis=1)], axis=0, return_counts=True)
        for codes, conversations in zip(groups.tolist(), counts.tolist(), strict=True):
            values = [dimension.values[code] for dimension, code in zip(dimensions, codes, strict=True)]
            yield Subset(dict(zip(names, values, strict=True)), tuple(codes)), conversations

    @cached_property
    def _users(self) -> NDArray[np.int32]:
        """The user of each conversation; -1 for none, and where the run has a single one."""
        users = self._coded("user_id")
        return users.codes if len(users.values) > 1 else np.full(self.count, -1, dtype=np.int32)

    @cached_property
    def kind_of_clusters(self) -> str:
        """What is independent, where some of it has several conversations."""
        scenarios, users = self._dimension("scenario_id").codes, self._users
        by_kind = {"scenario": scenarios, "user": np.where(scenarios >= 0, -1, users)}
        return " or ".join(kind for kind, codes in by_kind.items() if _repeat(codes))

    @cached_property
    def clusters(self) -> NDArray[np.int64]:
        """What is independent: the scenario of a conversation, else its user, else the conversation."""
        columns = "scenario_id, dataset, domain"
        distinct = (
            f"SELECT {columns}, row_number() OVER (ORDER BY {columns}) - 1 AS code FROM "
            f"(SELECT DISTINCT {columns} FROM {self._conversations} WHERE scenario_id IS NOT NULL)"
        )
        rows = self._connection.execute(
            f"SELECT c.number, d.code FROM {self._conversations} AS c JOIN ({distinct}) AS d "
            "ON d.scenario_id = c.scenario_id AND d.dataset IS NOT DISTINCT FROM c.dataset "
            "AND d.domain IS NOT DISTINCT FROM c.domain"
        ).fetchnumpy()
        clusters = np.arange(2 * self.count, 3 * self.count, dtype=np.int64)
        users = self._users
        clusters = np.where(users >= 0, self.count + users, clusters)
        clusters[np.asarray(rows["number"])] = rows["code"]
        return clusters

    def _dimension(self, name: str) -> _Dimension:
        if name not in self._dimensions:
            self._dimensions[name] = self._coded(dimension_column(name))
        return self._dimensions[name]

    def _coded(self, column: str) -> _Dimension:
        """The values of a column of conversations, in the order of their letters."""
        source = f"(SELECT number, {column} AS v FROM {self._conversations} WHERE v IS NOT NULL)"
        values = [row[0] for row in self._connection.execute(f"SELECT DISTINCT v FROM {source} ORDER BY v").fetchall()]
        if not values:
            return _Dimension([], np.broadcast_to(np.int32(-1), self.count))
        codes = np.full(self.count, -1, dtype=np.int32)
        if len(values) == 1:
            rows = self._connection.execute(f"SELECT number, 0 AS code FROM {source}").fetchnumpy()
            codes[np.asarray(rows["number"])] = 0
        else:
            texts = np.empty(len(values), dtype=object)
            texts[:] = values
            self._connection.register("known", {"v": texts, "code": np.arange(len(values), dtype=np.int32)})
            joined = f"SELECT s.number, k.code FROM {source} AS s JOIN known AS k USING (v)"
            rows = self._connection.execute(joined).fetchnumpy()
            codes[np.asarray(rows["number"])] = rows["code"]
            self._connection.unregister("known")
        return _Dimension([str(value) for value in values], codes)

    @cached_property
    def _profile(self) -> _Dimension:
        return self._coded("profile")

    # Scores

    def _read_extents(self) -> dict[int, _Extent]:
        """Which metrics have rows; by their index among the metrics of the run."""
        bounds = ", ".join(f"min({name}), max({name})" for name in _FETCHED)
        rows = self._connection.execute(
            f"SELECT metric, variant, count(*), list(DISTINCT judge), {bounds} FROM {self._reduced} GROUP BY ALL"
        ).fetchall()
        indices = {(one.name, one.variant): index for index, one in enumerate(self.metrics)}
        extents: dict[int, _Extent] = {}
        for metric, variant, count, judges, *ends in rows:
            pairs = zip(_FETCHED, ends[::2], ends[1::2], strict=True)
            constant = {name: float(low) for name, low, high in pairs if low is not None and low == high}
            extents[indices[metric, variant]] = _Extent(count, judges, constant)
        return dict(sorted(extents.items()))

    def _index_of(self, declared: Declared) -> int:
        """The index of a metric among those of the run."""
        return self.metrics.index(declared)

    def is_silent(self, declared: Declared) -> bool:
        """No conversation was looked at by this metric."""
        return self._index_of(declared) not in self._extents

    def absences(self, declared: Declared) -> list[tuple[Status, str, int]]:
        """Of a metric that looked at nothing: status and reason, and how many conversations say so."""
        index = self._index_of(declared)
        counts = np.bincount(self._profile.codes, minlength=len(self._profile.values)).tolist()
        absences = (self._profiles[key].absent.get(index, _NOT_SCORED) for key in self._profile.values)
        return [(one.status, one.reason, count) for one, count in zip(absences, counts, strict=True)]

    def judges(self, declared: Declared) -> list[str]:
        """Who scored by this metric, the one that speaks for it last: a panel comes after its judges.

        Where judges score, a conversation that never reached them has a row without a judge; it counts
        for each of them (see `table`).
        """
        extent = self._extents.get(self._index_of(declared))
        # No judge: the very object that is the default of a figure, so that it need not be written.
        judges = {COMPUTED if judge == COMPUTED else judge for judge in extent.judges} if extent is not None else set()
        return sorted(judges - {COMPUTED} or judges, key=speaking_order)

    def table(self, declared: Declared, judge: str) -> Table:
        """What one metric, by one judge, says of every conversation."""
        index = self._index_of(declared)
        reasons = [*self._reasons, "not_scored"]
        status = np.full(len(self._profile.values), STATUSES.index(UNMEASURED), dtype=np.int8)
        reason = np.full(len(self._profile.values), len(reasons) - 1, dtype=np.int32)
        for code, key in enumerate(self._profile.values):
            absence = self._profiles[key].absent.get(index)
            if absence is not None:
                status[code] = STATUSES.index(absence.status)
                reason[code] = len(reasons)
                reasons.append(absence.reason)
        status, reason = status[self._profile.codes], reason[self._profile.codes]
        whole: dict[str, Floats] = {name: np.broadcast_to(np.float64(0), self.count) for name in _FETCHED}
        observed: set[str] = set()
        extent = self._extents.get(index)
        if extent is not None:
            block = self._block(index)
            observed = block.columns.keys() & whole.keys()
            # Rows without a judge come first, so that the judge's own replace them.
            for speaker in (COMPUTED, judge) if judge != COMPUTED else (judge,):
                if speaker in extent.judges:
                    self._overlay(whole, status, reason, block, extent.judges, speaker)
            if extent.constant.get("n") == 1.0:
                # Of one subject, the sum of its values is its value.
                whole["total"] = whole["value"]
        missing = whole["errors"] + whole["unmeasured"] if "unmeasured" in observed else whole["errors"]
        return Table(
            status=status,
            reason=reason,
            reasons=reasons,
            columns=Columns(*(whole[name] for name in Columns._fields)),
            skipped=missing + whole["not_applicable"] if "not_applicable" in observed else missing,
            missing=missing,
            clusters=self.clusters,
            subjects=cache(lambda: self._subjects(declared, judge)),
        )

    def _overlay(
        self,
        whole: dict[str, Floats],
        status: NDArray[np.int8],
        reason: NDArray[np.int32],
        block: _Block,
        judges: Sequence[str],
        judge: str,
    ) -> None:
        """Put what was observed by one judge over what conversations say by their profiles."""
        own: Any = block.judge == judges.index(judge) if len(judges) > 1 else slice(None)
        number = block.number[own]
        status[number], reason[number] = block.status[own], block.reason[own]
        is_everywhere = len(number) == self.count and bool((number[1:] > number[:-1]).all())
        for name, values in block.columns.items():
            if is_everywhere:
                whole[name] = values[own]
                continue
            if not whole[name].flags.writeable:
                whole[name] = whole[name].copy()
            whole[name][number] = values[own]

    @cached_property
    def _reasons(self) -> list[str]:
        rows = self._connection.execute(f"SELECT DISTINCT coalesce(reason, '') FROM {self._reduced} ORDER BY ALL")
        return [row[0] for row in rows.fetchall()]

    def _block(self, index: int) -> _Block:
        """The rows of a metric; those of the metrics behind it come along as long as they are few."""
        if index not in self._blocks:
            self._blocks = {}
            wanted: list[int] = []
            total = 0
            for later in list(self._extents)[self._order[index] :]:
                total += self._extents[later].rows
                if wanted and total > _ROWS_AT_HAND:
                    break
                wanted.append(later)
            self._blocks = self._read_blocks(wanted)
        return self._blocks[index]

    def _read_blocks(self, indices: Sequence[int]) -> dict[int, _Block]:
        extents = [self._extents[index] for index in indices]
        several = any(extent.constant.get("n") != 1.0 for extent in extents)
        varying = [
            name
            for name in _FETCHED
            if any(name not in extent.constant for extent in extents) and (several or name != "total")
        ]
        judges = sorted({judge for extent in extents for judge in extent.judges})
        names = ", ".join(
            f"({index}, {quoted(self.metrics[index].name)}, {quoted(self.metrics[index].variant)})" for index in indices
        )
        reasons = _code("coalesce(s.reason, '')", self._reasons)
        rows = self._connection.execute(
            f"SELECT w.metric_index, s.number, {_code('s.status', STATUSES)}::TINYINT AS status, {reasons} AS reason, "
            f"{_code('s.judge', judges)} AS judge{''.join(f', s.{name}' for name in varying)} "
            f"FROM {self._reduced} AS s JOIN (VALUES {names}) AS w(metric_index, metric, variant) "
            "USING (metric, variant)"
        ).fetchnumpy()
        columns = {
            name: np.ma.filled(np.ma.asarray(rows.pop(name)).astype(np.float64, copy=False), 0.0) for name in varying
        }
        counts = np.cumsum([extent.rows for extent in extents])
        # Of one metric, all rows as they are: it may be one that is too large to be copied.
        rows_by_metric = np.split(np.argsort(np.asarray(rows["metric_index"]), kind="stable"), counts[:-1])
        chosen: list[Any] = rows_by_metric if len(indices) > 1 else [slice(None)]
        blocks: dict[int, _Block] = {}
        for index, extent, numbers in zip(indices, extents, chosen, strict=True):
            codes = np.array([extent.judges.index(judge) if judge in extent.judges else -1 for judge in judges])
            alike = {"total"} if extent.constant.get("n") == 1.0 else set[str]()
            own = {
                name: columns[name][numbers] for name in varying if name not in extent.constant and name not in alike
            }
            own |= {
                name: np.broadcast_to(np.float64(value), extent.rows)
                for name, value in extent.constant.items()
                if value
            }
            blocks[index] = _Block(
                np.asarray(rows["number"])[numbers],
                codes[np.asarray(rows["judge"])[numbers]],
                np.asarray(rows["status"])[numbers],
                np.asarray(rows["reason"])[numbers],
                own,
            )
        return blocks

    def _subjects(self, declared: Declared, judge: str) -> Subjects:
        rows = self._connection.execute(
            f"SELECT value, number FROM {self._scores} "
            "WHERE metric = ? AND variant = ? AND judge = ? AND status = 'measured'",
            [declared.name, declared.variant, judge],
        ).fetchnumpy()
        return Subjects(np.asarray(rows["value"], dtype=np.float64), np.asarray(rows["number"], dtype=np.int64))

    def subject_groups(self, names: Sequence[str]) -> list[SubjectGroup]:
        """The groups by some dimensions and a kind of subjects, which is the last of the names."""
        *dimensions, kind = names
        observed = (
            read_scores(self._connection, self._scores, one, judge, kind)
            for one in self.metrics
            if isinstance(one, Metric) and one.observes == kind and not self.is_silent(one)
            for judge in self.judges(one)
        )
        columns = {name: (self._dimension(name).values, self._dimension(name).codes) for name in dimensions}
        return subject_groups(observed, names, KnownConversations(columns, self.clusters))

    # Conversations one by one, for figures that are derived over a group

    @cached_property
    def _ids(self) -> list[str]:
        query = f"SELECT conversation FROM {self._conversations} ORDER BY number"
        return [row[0] for row in self._connection.execute(query).fetchall()]

    def samples(self, table: Table, rows: NDArray[np.bool_]) -> list[GroupSample]:
        """The conversations of some rows, one by one."""
        ids = self._ids
        samples: list[GroupSample] = []
        for row in np.flatnonzero(rows).tolist():
            status = STATUSES[table.status[row]]
            value = float(table.columns.value[row]) if status == MEASURED else None
            samples.append(GroupSample(ids[row], self._dimensions_of(row), status, value))
        return samples

    def _dimensions_of(self, row: int) -> dict[str, str]:
        dimensions: dict[str, str] = {}
        for name in DIMENSIONS:
            dimension = self._dimension(name)
            if dimension.codes[row] >= 0:
                dimensions[name] = dimension.values[dimension.codes[row]]
        return dimensions


_NOT_SCORED = Absence(UNMEASURED, "not_scored")
_FETCHED = (*Columns._fields, "not_applicable", "unmeasured", "errors")


def _repeat(codes: NDArray[np.int32]) -> bool:
    """Whether some value occurs twice."""
    known = codes[codes >= 0]
    return len(np.unique(known)) < len(known)


def _code(column: str, values: Sequence[Any]) -> str:
    """The index of a column's text in a list that holds all there are."""
    return f"(list_position([{', '.join(map(quoted, values))}], {column}) - 1)::INTEGER"
