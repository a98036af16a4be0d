"""From the written scores to the summary: a few metrics at a time, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from convoscope.errors import UsageError
from convoscope.ingest.companions import gold
from convoscope.ingest.discover import Input
from convoscope.ingest.report import ReadReport
from convoscope.metrics.declaration import AXES, Derived, Metric
from convoscope.metrics.registry import Declared
from convoscope.metrics.semantic.findings import GOLD_LABELS
from convoscope.runs.database import CONVERSATIONS, Tables, connect, connect_alone
from convoscope.runs.score_arrays import EVERYTHING, MIN_GROUP, Arrays, Subset
from convoscope.runs.score_columns import ScoreColumns
from convoscope.runs.subjects import SubjectGroup, axis_of
from convoscope.runs.summary import (
    SCHEMA,
    Group,
    LabelCounts,
    OutcomeCounts,
    SmallGroups,
    Summary,
    describe,
    not_measured,
)
from convoscope.scoring.labels import LabelRule
from convoscope.scoring.profiles import Profiles
from convoscope.statistics.summary import Figure, Given, absent_figure, derived_figure, figures


def summarise(
    tables: Tables,
    metrics: Sequence[Declared],
    *,
    profiles: Sequence[str],
    config_hash: str,
    input_hash: str,
    by: Sequence[Sequence[str]] | None,
    scratch: Path,
    resources: frozenset[str] = frozenset(),
    label: LabelCounts | None = None,
    absent: int = 0,
    rows: ScoreColumns | None = None,
) -> Summary:
    """Read the run's scores and reduce them, over all conversations and over each group.

    `rows` are the scores, where the caller wants them afterwards. `absent` are samples that have gold labels and no
    conversation.
    """
    planned = Profiles(metrics, resources)
    # What is small needs no database of its own that could spill to the disk.
    is_small = sum(tables.parts) <= SMALL_RUN
    opened = connect(tables.folder) if is_small else connect_alone(scratch, folders=[tables.folder])
    with opened as connection:
        known = {key: planned.with_key(key) for key in profiles}
        arrays = Arrays(connection, tables, metrics, known, rows or ScoreColumns(tables))
        groups = _Groups(arrays, by)
        results: list[list[Figure]] = [[] for _ in range(1 + len(groups.whole))]
        members = [arrays.rows(subset) for subset in (EVERYTHING, *groups.whole)]
        for declared in metrics:
            for number, figure in _figures(arrays, declared, metrics, members):
                results[number].append(figure if number else counted_in(figure, declared, absent))
        named = {figure.key for figure in results[0] if figure.samples_measured}
        by_subject = [
            Group(
                by=group.by,
                conversations=group.conversations,
                metrics=_measured(group.figures),
                not_measured=not_measured([one for one in group.figures if not one.samples_measured]),
            )
            for group in groups.by_subject()
        ]
        return Summary(
            schema=SCHEMA,
            config_hash=config_hash,
            input_hash=input_hash,
            conversations=arrays.count,
            outcomes=count_outcomes(tables),
            label=label,
            clusters=arrays.kind_of_clusters,
            metrics=_measured(results[0]),
            not_measured=not_measured([one for one in results[0] if not one.samples_measured]),
            groups=[
                Group(
                    by=subset.by,
                    conversations=int(chosen.sum()),
                    metrics=_measured(result),
                    not_measured=not_measured([one for one in result if not one.samples_measured and one.key in named]),
                )
                for subset, chosen, result in zip(groups.whole, members[1:], results[1:], strict=True)
            ]
            + by_subject,
            small_groups=groups.small,
            declared=[describe(one) for one in metrics],
        )


def _measured(figures: Sequence[Figure]) -> list[Figure]:
    return [figure for figure in figures if figure.samples_measured]


class _Groups:
    """The groups that get figures, and how many there are that do not."""

    def __init__(self, arrays: Arrays, by: Sequence[Sequence[str]] | None) -> None:
        self.whole: list[Subset] = []
        self.small: list[SmallGroups] = []
        kinds = axis_of(arrays.metrics)
        by_subjects = [names for names in by or () if any(name in kinds for name in names)]
        self._arrays = arrays
        self._asked = [(*(name for name in names if name not in kinds), *_axes(names, kinds)) for names in by_subjects]
        self._declared = [names for kind in kinds if (names := (*AXES[kind], kind)) not in self._asked]
        for names in arrays.groupings(None if by is None else [names for names in by if names not in by_subjects]):
            subsets = list(arrays.subsets(names))
            # What was asked for is shown, however small, unless there is no end to it.
            minimum = MIN_GROUP if by is None else _least([count for _, count in subsets], MAX_ASKED)
            few = [count for _, count in subsets if count < minimum]
            self.whole += [subset for subset, count in subsets if count >= minimum]
            if few:
                self.small.append(SmallGroups(by=list(names), minimum=minimum, groups=len(few), conversations=sum(few)))

    def by_subject(self) -> Iterator[SubjectGroup]:
        """Groups by subjects: those that are declared are made whatever is asked for, however small.

        Only where names of subjects differ from one conversation to the next, those of few conversations are counted.
        """
        for names in self._asked:
            yield from self._arrays.subject_groups(names)
        for names in self._declared:
            groups = self._arrays.subject_groups(names)
            minimum = _least([group.conversations for group in groups], MAX_SUBJECTS)
            few = [group.conversations for group in groups if group.conversations < minimum]
            if few:
                self.small.append(SmallGroups(by=list(names), minimum=minimum, groups=len(few), conversations=sum(few)))
            yield from (group for group in groups if group.conversations >= minimum)


def _axes(names: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """The kind of subjects that a grouping is by; it is the last of the names, wherever it was given."""
    axes = tuple(name for name in names if name in kinds)
    if len(axes) > 1:
        raise UsageError(f"cannot group by {' and '.join(axes)} at once", hint="group by one of them at a time")
    return axes


SMALL_RUN = 5000
"""Conversations that are summarised in memory."""
MAX_SUBJECTS = 1000
"""Of a kind of subjects with more names than this, those of the fewest conversations are counted."""
MAX_ASKED = 200
"""Of a field with more values than this that was asked for by `--by`, those of the fewest conversations are counted."""


def _least(sizes: Sequence[int], most: int) -> int:
    """The conversations that a group needs so that no more than `most` groups have them."""
    return 0 if len(sizes) <= most else sorted(sizes, reverse=True)[most] + 1


def _figures(
    arrays: Arrays, declared: Declared, metrics: Sequence[Declared], rows: Sequence[NDArray[np.bool_]]
) -> Iterator[tuple[int, Figure]]:
    """The figures of one metric, each with the number of its group."""
    if isinstance(declared, Derived) and declared.over == "group":
        by_key = {one.key: one for one in metrics}
        for number, members in enumerate(rows):
            yield number, _group_figure(arrays, declared, by_key, members)
        return
    if arrays.is_silent(declared):
        # Groups speak of what was measured somewhere; this was not.
        yield 0, absent_figure(declared, arrays.absences(declared))
        return
    for judge in arrays.judges(declared):
        table = arrays.table(declared, judge)
        for number, members in enumerate(rows):
            for figure in figures(declared, judge, table, members):
                yield number, figure


def _group_figure(arrays: Arrays, declared: Derived, by_key: Mapping[str, Declared], rows: NDArray[np.bool_]) -> Figure:
    """A figure over a group, after those that it needs. A circle of needs was refused before anything ran."""
    given: list[tuple[Figure, Given]] = []
    for name in declared.inputs:
        needed = by_key[name]
        if isinstance(needed, Derived) and needed.over == "group":
            figure = _group_figure(arrays, needed, by_key, rows)
            given.append((figure, figure.value or 0.0))
        else:
            # A panel's verdict stands for its judges.
            if arrays.is_silent(needed):
                given.append((absent_figure(needed, arrays.absences(needed)), []))
                continue
            judge = arrays.judges(needed)[-1]
            table = arrays.table(needed, judge)
            figure = next(figures(needed, judge, table, rows))
            given.append((figure, arrays.samples(table, rows) if figure.value is not None else []))
    return derived_figure(declared, given)


NO_CONVERSATION = "no_conversation"


def absent_samples(inputs: Iterable[Input], tables: Tables, report: ReadReport) -> list[str]:
    """The samples of usable gold files that no conversation has the id of, nor a file that was read the name."""
    inputs = list(inputs)
    companions = {path for item in inputs for path in item.companions_of(gold.FORMAT)}
    paths = sorted(path for path in companions if path.name.endswith(gold.FILE_ENDING))
    if not paths:
        return []
    with connect(tables.folder) as connection:
        rows = connection.execute(f"SELECT conversation FROM {tables.table(CONVERSATIONS)}").fetchall()
    present = {name for (id,) in rows for name in (id, gold.stem(id))}
    present |= {gold.stem(item.name) for item in inputs if _is_read(item, report)}
    return sorted(gold.load(paths).by_sample.keys() - present)


def _is_read(item: Input, report: ReadReport) -> bool:
    file = report.files.get(item.name)
    return file is not None and file.conversations > 0


def counted_in(figure: Figure, declared: Declared, absent: int) -> Figure:
    """A figure that needs gold, with the samples that have nothing but gold among those without a value."""
    if not absent or not isinstance(declared, Metric) or GOLD_LABELS not in declared.needs:
        return figure
    total = figure.samples_total + absent
    applicable = total - figure.samples_not_applicable
    return msgspec.structs.replace(
        figure,
        coverage=figure.samples_measured / applicable,
        samples_total=total,
        samples_skipped=figure.samples_skipped + absent,
        skipped_reasons={**figure.skipped_reasons, NO_CONVERSATION: absent},
        bounds=None,
    )


MAX_NAMED = 5
"""So many texts that say neither pass nor fail are named."""


def count_outcomes(tables: Tables) -> OutcomeCounts:
    """Count the outcomes of all conversations."""
    with connect(tables.folder) as connection:
        query = f"SELECT outcome, count(*) FROM {tables.table(CONVERSATIONS)} GROUP BY outcome"
        return OutcomeCounts(**dict(connection.execute(query).fetchall()))


class LabelReading(msgspec.Struct, frozen=True):
    """What a label comes to in a run, and what has to be said about it."""

    counts: LabelCounts
    warnings: list[str]


def read_label(tables: Tables, rule: LabelRule, warning: str) -> LabelReading:
    """Count what the label says, and tell of conversations that it says nothing of."""
    query = f"SELECT label, count(*) FROM {tables.table(CONVERSATIONS)} WHERE label IS NOT NULL GROUP BY 1 ORDER BY 1"
    with connect(tables.folder) as connection:
        values: list[tuple[str, int]] = connection.execute(query).fetchall()
    passed = sum(count for text, count in values if rule.passed(text))
    failed = sum(count for text, count in values if rule.passed(text) is False)
    conversations, total = sum(count for _, count in values), sum(tables.parts)
    warnings = [warning] if warning else []
    if conversations < total:
        warnings.append(f"label {rule.field}: {total - conversations:,} of {total:,} conversations do not have it")
    silent = [(text, count) for text, count in values if rule.passed(text) is None]
    if silent and not warning:
        some = ", ".join(repr(text) for text, _ in silent[:MAX_NAMED]) + (", …" if len(silent) > MAX_NAMED else "")
        count = sum(count for _, count in silent)
        warnings.append(f"label {rule.field}: {count:,} of {total:,} say neither pass nor fail: {some}")
    counts = LabelCounts(label=rule.text, conversations=conversations, passed=passed, failed=failed)
    return LabelReading(counts, warnings)
