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
    CONVERSATIONS,
    SCORES,
    Tables,
)
from convoscope.runs.dimensions import Dimension, Dimensions
from convoscope.runs.score_columns import COUNTS, VALUES, MetricRows, ScoreColumns
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


class Subset(NamedTuple):
    """The conversations with these values of these dimensions."""

    by: dict[str, str]
    codes: tuple[int, ...]


EVERYTHING = Subset({}, ())


class Arrays:
    """What the summary is computed from."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        tables: Tables,
        metrics: Sequence[Declared],
        profiles: Mapping[str, Profile],
        rows: ScoreColumns,
    ) -> None:
        self._connection = connection
        self._conversations = tables.table(CONVERSATIONS)
        self._rows = rows
        self._scores = tables.table(SCORES)
        self.metrics = metrics
        self._profiles = profiles
        self.count = sum(tables.parts)
        self._dimensions = Dimensions(connection, self._conversations, self.count, np.int32)

    # Groups

    def rows(self, subset: Subset) -> NDArray[np.bool_]:
        """Which conversations belong to a subset."""
        rows = np.ones(self.count, dtype=np.bool_)
        for name, code in zip(subset.by, subset.codes, strict=True):
            rows &= self._dimensions.of(name).codes == code
        return rows

    def groupings(self, by: Sequence[Sequence[str]] | None) -> list[tuple[str, ...]]:
        """The sets of dimensions that were asked for, or each dimension that has a few values."""
        if by is not None:
            return [tuple(names) for names in by]
        named = (*_GROUPED, *self._versions)
        few = [name for name in named if 2 <= len(self._dimensions.of(name).values) <= MAX_GROUPS]
        usual: list[tuple[str, ...]] = [(name,) for name in few]
        if few[:2] == ["flow", "agent"]:
            usual.insert(2, ("flow", "agent"))
        return usual

    @cached_property
    def _versions(self) -> list[str]:
        """The further dimensions whose values are versions of the agent."""
        return [name for name in sorted(self._dimensions.names) if name not in DIMENSIONS and is_version(name)]

    def subsets(self, names: Sequence[str]) -> Iterator[tuple[Subset, int]]:
        """The groups by some dimensions, each with the number of its conversations."""
        dimensions = [self._dimensions.of(name) for name in names]
        stacked = np.stack([dimension.codes for dimension in dimensions], axis=1)
        groups, counts = np.unique(stacked[(stacked >= 0).all(axis=1)], axis=0, return_counts=True)
        for codes, conversations in zip(groups.tolist(), counts.tolist(), strict=True):
            values = [dimension.values[code] for dimension, code in zip(dimensions, codes, strict=True)]
            yield Subset(dict(zip(names, values, strict=True)), tuple(codes)), conversations

    @cached_property
    def _users(self) -> NDArray[np.int32]:
        """The user of each conversation; -1 for none, and where the run has a single one."""
        users = self._dimensions.column("user_id")
        return users.codes if len(users.values) > 1 else np.full(self.count, -1, dtype=np.int32)

    @cached_property
    def kind_of_clusters(self) -> str:
        """What is independent, where some of it has several conversations."""
        scenarios, users = self._dimensions.of("scenario_id").codes, self._users
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
        return np.unique(clusters, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def _profile(self) -> Dimension:
        return self._dimensions.column("profile")

    @cached_property
    def _profile_counts(self) -> list[int]:
        """How many conversations have each profile."""
        counts: list[int] = np.bincount(self._profile.codes, minlength=len(self._profile.values)).tolist()
        return counts

    # Scores

    def _index_of(self, declared: Declared) -> int:
        """The index of a metric among those of the run."""
        return self.metrics.index(declared)

    def is_silent(self, declared: Declared) -> bool:
        """No conversation was looked at by this metric."""
        return (declared.name, declared.variant) not in self._rows.extents

    def absences(self, declared: Declared) -> list[tuple[Status, str, int]]:
        """Of a metric that looked at nothing: status and reason, and how many conversations say so."""
        index = self._index_of(declared)
        absences = (self._profiles[key].absent.get(index, _NOT_SCORED) for key in self._profile.values)
        return [(one.status, one.reason, count) for one, count in zip(absences, self._profile_counts, strict=True)]

    def judges(self, declared: Declared) -> list[str]:
        """Who scored by this metric, the one that speaks for it last: a panel comes after its judges.

        Where judges score, a conversation that never reached them has a row without a judge; it counts
        for each of them (see `table`).
        """
        extent = self._rows.extents.get((declared.name, declared.variant))
        # No judge: the very object that is the default of a figure, so that it need not be written.
        judges = {COMPUTED if judge == COMPUTED else judge for judge in extent.judges} if extent is not None else set()
        return sorted(judges - {COMPUTED} or judges, key=speaking_order)

    def table(self, declared: Declared, judge: str) -> Table:
        """What one metric, by one judge, says of every conversation."""
        index = self._index_of(declared)
        reasons = [*self._rows.reasons, "not_scored"]
        status = np.full(len(self._profile.values), STATUSES.index(UNMEASURED), dtype=np.int8)
        reason = np.full(len(self._profile.values), len(reasons) - 1, dtype=np.int32)
        for code, key in enumerate(self._profile.values):
            absence = self._profiles[key].absent.get(index)
            if absence is not None:
                status[code] = STATUSES.index(absence.status)
                reason[code] = len(reasons)
                reasons.append(absence.reason)
        status, reason = status[self._profile.codes], reason[self._profile.codes]
        whole: dict[str, Floats] = {name: np.broadcast_to(np.float64(0), self.count) for name in (*VALUES, *COUNTS)}
        observed: set[str] = set()
        extent = self._rows.extents.get((declared.name, declared.variant))
        if extent is not None:
            block = self._rows.block((declared.name, declared.variant))
            observed = block.columns.keys() & whole.keys()
            # Rows without a judge come first, so that the judge's own replace them.
            for speaker in (COMPUTED, judge) if judge != COMPUTED else (judge,):
                if speaker in extent.judges:
                    self._overlay(whole, status, reason, block, speaker if len(extent.judges) > 1 else None)
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
        block: MetricRows,
        judge: str | None,
    ) -> None:
        """Put what was observed, by one judge of several, over what conversations say by their profiles."""
        own: Any = slice(None) if judge is None else block.judge == self._rows.judges.index(judge)
        number = block.number[own]
        status[number], reason[number] = block.status[own], block.reason[own]
        is_everywhere = len(number) == self.count and bool((number[1:] > number[:-1]).all())
        for name in block.columns.keys() & whole.keys():
            values = block.column(name, own)
            if is_everywhere:
                whole[name] = values
                continue
            if not whole[name].flags.writeable:
                whole[name] = whole[name].copy()
            whole[name][number] = values

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
        columns = {name: (self._dimensions.of(name).values, self._dimensions.of(name).codes) for name in dimensions}
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
            dimension = self._dimensions.of(name)
            if dimension.codes[row] >= 0:
                dimensions[name] = dimension.values[dimension.codes[row]]
        return dimensions


_NOT_SCORED = Absence(UNMEASURED, "not_scored")


def _repeat(codes: NDArray[np.int32]) -> bool:
    """Whether some value occurs twice."""
    known = codes[codes >= 0]
    return len(np.unique(known)) < len(known)
