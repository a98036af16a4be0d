"""Figures by subject: "by flow and state" is a grouping like "by agent", with the same figures and intervals.

Of an ordinary group the samples are its conversations, whole; of a subject they are the conversations that have it,
each with what was observed of that subject alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.declaration import AXES, Metric
from convoscope.metrics.registry import Declared
from convoscope.scores.observation import (
    COMPUTED,
    ERROR,
    MEASURED,
    NOT_APPLICABLE,
    STATUSES,
    UNMEASURED,
    Counts,
    Observation,
)
from convoscope.statistics.intervals import Columns, Floats
from convoscope.statistics.summary import Figure, Subjects, Table, figures
from convoscope.statistics.within import ConversationScore, reduce_conversation
from convoscope.views.items import Subject

if TYPE_CHECKING:
    import duckdb

Codes = NDArray[np.int64]


class KnownConversations(NamedTuple):
    """What is known of the conversations that subjects belong to, by their numbers."""

    dimensions: Mapping[str, tuple[Sequence[str], NDArray[np.int32]]]
    """The values of a dimension, and the index of each conversation's; -1 for none."""
    clusters: Codes


class SubjectGroup(NamedTuple):
    """One subject, and what each metric that observes it says of it."""

    by: dict[str, str]
    conversations: int
    figures: list[Figure]


def none_of(dimension: str) -> str:
    """The value in a group of a dimension that its conversations do not have."""
    return f"(no {dimension})"


def axis_of(metrics: Sequence[Declared]) -> list[str]:
    """The kinds of subjects that some of the metrics observe, and that runs are grouped by."""
    return [kind for kind in AXES if any(isinstance(one, Metric) and one.observes == kind for one in metrics)]


def subject_groups(
    observed: Iterable[SubjectRows], names: Sequence[str], conversations: KnownConversations
) -> list[SubjectGroup]:
    """The groups by some dimensions and a kind of subjects, which is the last of `names`.

    Conversations that lack a dimension are a group of their own.
    """
    by_key: dict[tuple[str, ...], list[Figure]] = {}
    for rows in observed:
        for key, several in _figures(rows, names[:-1], conversations):
            by_key.setdefault(key, []).extend(several)
    groups = []
    for key in sorted(by_key):
        by = dict(zip(names, key, strict=True))
        groups.append(SubjectGroup(by, max(one.samples_total for one in by_key[key]), by_key[key]))
    return groups


class SubjectRows(NamedTuple):
    """What one metric, by one judge, says of subjects: one row for each conversation and subject."""

    declared: Metric
    judge: str
    number: Codes
    """The number of its conversation."""
    subject: Codes
    subjects: list[str]
    status: NDArray[np.int8]
    reason: NDArray[np.int32]
    reasons: list[str]
    columns: Columns
    skipped: Floats
    missing: Floats
    pooled: tuple[Floats, Codes] | None = None
    """Where subjects were observed more than once: all values, each with its row."""


def read_scores(
    connection: duckdb.DuckDBPyConnection, scores: str, declared: Metric, judge: str, kind: str
) -> SubjectRows:
    """From a table of scores, whose `number` is an index of conversations."""
    # Where judges speak, what never reached them has a row without a judge, which is theirs too.
    values = [declared.name, declared.variant, judge, COMPUTED, kind]
    where = "metric = $1 AND variant = $2 AND judge IN ($3, $4) AND subject_kind = $5"
    named = f"SELECT DISTINCT subject FROM {scores} WHERE {where} ORDER BY 1"
    subjects = [row[0] for row in connection.execute(named, values).fetchall()]
    distinct_reasons = f"SELECT DISTINCT coalesce(reason, '') FROM {scores} WHERE {where} ORDER BY 1"
    reasons = [row[0] for row in connection.execute(distinct_reasons, values).fetchall()]
    columns = ", ".join(f"s.{name}" for name in (*_NUMBERS, *Counts._fields))
    names = np.empty(len(subjects), dtype=object)
    names[:] = subjects
    connection.register("known", {"subject": names, "code": np.arange(len(subjects), dtype=np.int64)})
    rows = connection.execute(
        f"SELECT s.number, k.code AS subject, list_position($6, coalesce(s.reason, '')) - 1 AS reason, "
        f"list_position($7, s.status) - 1 AS status, (s.judge = $3)::INTEGER AS own, {columns} "
        f"FROM (SELECT * FROM {scores} WHERE {where}) AS s JOIN known AS k USING (subject)",
        [*values, reasons, list(STATUSES)],
    ).fetchnumpy()
    connection.unregister("known")
    number, subject, own = (np.asarray(rows[name], dtype=np.int64) for name in ("number", "subject", "own"))
    order = np.lexsort((-own, subject, number))
    if not own.all():
        order = order[_judged(number[order], subject[order], own[order])]
    number, subject = number[order], subject[order]
    status = np.asarray(rows["status"])[order].astype(np.int8)
    reason = np.asarray(rows["reason"])[order].astype(np.int32)
    numbers = {
        name: np.ma.filled(np.ma.asarray(rows[name]).astype(np.float64), 0.0)[order]
        for name in (*_NUMBERS, *Counts._fields)
    }
    several = (number[1:] == number[:-1]) & (subject[1:] == subject[:-1])
    if several.any():
        return _reduced(declared, judge, number, subject, subjects, status, reason, reasons, numbers)
    measured = (status == STATUSES.index(MEASURED)).astype(np.float64)
    whole = Columns(n=measured, total=numbers["value"], **numbers)
    nothing = np.zeros(len(number))
    missing = _is_missing(status)
    return SubjectRows(declared, judge, number, subject, subjects, status, reason, reasons, whole, nothing, missing)


def _is_missing(status: NDArray[np.int8]) -> Floats:
    """1 for a subject that had an opportunity and has no value."""
    return np.isin(status, (STATUSES.index(UNMEASURED), STATUSES.index(ERROR))).astype(np.float64)


def _judged(number: Codes, subject: Codes, own: Codes) -> NDArray[np.bool_]:
    """Which rows count: a judge's own, and those without a judge where the judge has none of that subject."""
    first = np.ones(len(number), dtype=np.bool_)
    first[1:] = (number[1:] != number[:-1]) | (subject[1:] != subject[:-1])
    has_own = np.repeat(own[first] == 1, np.diff(np.append(np.flatnonzero(first), len(number))))
    counts: NDArray[np.bool_] = (own == 1) | ~has_own
    return counts


_NUMBERS = ("value", "numerator", "denominator")


def read_column(
    connection: duckdb.DuckDBPyConnection, query: str, declared: Metric, no_opportunity: Collection[str]
) -> SubjectRows:
    """From a column of a side table that a metric observes: `number`, `subject`, `value`, and `reason` without one."""
    rows = connection.execute(f"SELECT * FROM ({query}) ORDER BY number, subject").fetchnumpy()
    subjects, subject = np.unique(np.asarray(rows["subject"], dtype=object).astype(str), return_inverse=True)
    missing = np.ma.getmaskarray(np.ma.asarray(rows["value"]))
    value = np.ma.filled(np.ma.asarray(rows["value"]).astype(np.float64), 0.0)
    row_reasons = np.where(missing, np.ma.filled(np.ma.asarray(rows["reason"], dtype=object), ""), "")
    reasons, reason = np.unique(row_reasons.astype(str), return_inverse=True)
    statuses = [NOT_APPLICABLE if one in no_opportunity else UNMEASURED for one in reasons.tolist()]
    codes = np.array([STATUSES.index(one) for one in statuses], dtype=np.int8)
    ones, nothing = (~missing).astype(np.float64), np.zeros(len(value))
    columns = Columns(
        value=value, n=ones, total=value, numerator=value, denominator=ones, tp=nothing, fp=nothing, fn=nothing
    )
    status = np.where(missing, codes[reason], STATUSES.index(MEASURED)).astype(np.int8)
    return SubjectRows(
        declared,
        COMPUTED,
        np.asarray(rows["number"], dtype=np.int64),
        subject.astype(np.int64),
        subjects.tolist(),
        status,
        reason.astype(np.int32),
        reasons.tolist(),
        columns,
        nothing,
        _is_missing(status),
    )


def _reduced(
    declared: Metric,
    judge: str,
    number: Codes,
    subject: Codes,
    subjects: list[str],
    status: NDArray[np.int8],
    reason: NDArray[np.int32],
    reasons: list[str],
    numbers: Mapping[str, Floats],
) -> SubjectRows:
    """Where a subject of a conversation was observed more than once, by repeats, these are reduced first."""
    starts = np.flatnonzero(np.diff(number, prepend=-1) | np.diff(subject, prepend=-1))
    ends = np.append(starts[1:], len(number))
    was_measured = status == STATUSES.index(MEASURED)
    scores: list[ConversationScore] = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        chosen = [
            _observation(index, STATUSES[status[index]], reasons[reason[index]], numbers) for index in range(start, end)
        ]
        scores += reduce_conversation(declared, chosen)
    codes = {code: index for index, code in enumerate(dict.fromkeys([*reasons, *(one.reason for one in scores)]))}

    def column(name: str) -> Floats:
        return np.array([getattr(one, name) or 0.0 for one in scores], dtype=np.float64)

    return SubjectRows(
        declared,
        judge,
        number[starts],
        subject[starts],
        subjects,
        np.array([STATUSES.index(one.status) for one in scores], dtype=np.int8),
        np.array([codes[one.reason] for one in scores], dtype=np.int32),
        list(codes),
        Columns(*(column(name) for name in Columns._fields)),
        np.array([one.not_applicable + one.unmeasured + one.errors for one in scores], dtype=np.float64),
        np.array([one.unmeasured + one.errors for one in scores], dtype=np.float64),
        (numbers["value"][was_measured], np.repeat(np.arange(len(starts)), ends - starts)[was_measured]),
    )


def _observation(index: int, status: Any, reason: str, numbers: Mapping[str, Floats]) -> Observation:
    if status != MEASURED:
        return Observation(subject=Subject(""), status=status, reason=reason)
    value, above, below, *counts = (float(column[index]) for column in numbers.values())
    return Observation(
        subject=Subject(""),
        status=MEASURED,
        value=value,
        numerator=above if below else None,
        denominator=below or None,
        counts=Counts(*counts) if any(counts) else None,
    )


def _figures(
    rows: SubjectRows, dimensions: Sequence[str], conversations: KnownConversations
) -> Iterator[tuple[tuple[str, ...], list[Figure]]]:
    """The figures of each group that the rows fall into."""
    if not len(rows.number):
        return
    columns = [conversations.dimensions[name] for name in dimensions]
    codes = np.stack([*(codes_of[rows.number] for _, codes_of in columns), rows.subject], axis=1)
    groups, group = np.unique(codes, axis=0, return_inverse=True)
    group = group.reshape(-1)
    order = np.argsort(group, kind="stable")
    bounds = np.searchsorted(group[order], np.arange(len(groups) + 1)).tolist()
    known = _KnownFigures(rows, order, conversations.clusters)
    for index, codes_of_group in enumerate(groups.tolist()):
        *values, subject = codes_of_group
        texts = zip(dimensions, columns, values, strict=True)
        key = [known_as[code] if code >= 0 else none_of(name) for name, (known_as, _), code in texts]
        yield (*key, rows.subjects[subject]), known.of(bounds[index], bounds[index + 1])


class _KnownFigures:
    """The figures of groups. Groups whose rows say the same have the same figures, which are made once.

    A log may name thousands of states, most of them of one conversation each.
    """

    def __init__(self, rows: SubjectRows, order: Codes, clusters: Codes) -> None:
        self._rows, self._order, self._clusters = rows, order, clusters
        fields = (*rows.columns, rows.status, rows.reason, rows.skipped, rows.missing)
        self._table = np.column_stack(fields).astype(np.float64)[order]
        self._by_table: dict[tuple[bytes, bytes], list[Figure]] = {}
        # Where each conversation is a cluster of its own, in order, the rows of a group never belong together.
        self._is_clustered = bool((np.diff(clusters) <= 0).any())

    def of(self, start: int, end: int) -> list[Figure]:
        """The figures of the rows from one index in the order to another."""
        members = self._order[start:end]
        if self._rows.pooled is not None:
            return self._made(members)
        clusters = b""
        if end - start > 1 and self._is_clustered:
            # Which of the rows belong together, whatever their clusters are called.
            _, dense = np.unique(self._clusters[self._rows.number[members]], return_inverse=True)
            clusters = dense.tobytes()
        key = (self._table[start:end].tobytes(), clusters)
        made = self._by_table.get(key)
        if made is None:
            made = self._by_table[key] = self._made(members)
        return made

    def _made(self, members: Codes) -> list[Figure]:
        table = _table(self._rows, members, self._clusters)
        return list(figures(self._rows.declared, self._rows.judge, table, np.ones(len(members), dtype=np.bool_)))


def _table(rows: SubjectRows, members: Codes, clusters: Codes) -> Table:
    columns = Columns(*(column[members] for column in rows.columns))
    status = rows.status[members]
    measured = np.flatnonzero(status == STATUSES.index(MEASURED))
    pooled = Subjects(columns.value[measured], measured)
    if rows.pooled is not None:
        values, rows_of_values = rows.pooled
        is_member = np.isin(rows_of_values, members)
        pooled = Subjects(values[is_member], np.searchsorted(members, rows_of_values[is_member]))
    return Table(
        status=status,
        reason=rows.reason[members],
        reasons=rows.reasons,
        columns=columns,
        skipped=rows.skipped[members],
        missing=rows.missing[members],
        clusters=clusters[rows.number[members]],
        subjects=lambda: pooled,
    )


__all__ = [
    "KnownConversations",
    "SubjectGroup",
    "SubjectRows",
    "axis_of",
    "read_column",
    "read_scores",
    "subject_groups",
]
