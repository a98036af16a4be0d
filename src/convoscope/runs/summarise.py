"""From the written scores to the summary: a few metrics at a time, so that memory stays flat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from convoscope.errors import UsageError
from convoscope.metrics.declaration import AXES, Derived
from convoscope.metrics.registry import Declared
from convoscope.runs.database import Tables, connect
from convoscope.runs.score_arrays import EVERYTHING, MIN_GROUP, Arrays, Subset
from convoscope.runs.subjects import SubjectGroup, axis_of
from convoscope.runs.summary import SCHEMA, Group, SmallGroups, Summary, describe, not_measured
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
) -> Summary:
    """Read the run's scores and reduce them, over all conversations and over each group."""
    known = Profiles(metrics, resources)
    with connect(scratch=scratch) as connection:
        arrays = Arrays(connection, tables, metrics, {key: known.with_key(key) for key in profiles})
        groups = _Groups(arrays, by)
        results: list[list[Figure]] = [[] for _ in range(1 + len(groups.whole))]
        rows = [arrays.rows(subset) for subset in (EVERYTHING, *groups.whole)]
        for declared in metrics:
            for number, figure in _figures(arrays, declared, metrics, rows):
                results[number].append(figure)
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
            metrics=_measured(results[0]),
            not_measured=not_measured([one for one in results[0] if not one.samples_measured]),
            groups=[
                Group(
                    by=subset.by,
                    conversations=int(mine.sum()),
                    metrics=_measured(result),
                    not_measured=not_measured([one for one in result if not one.samples_measured and one.key in named]),
                )
                for subset, mine, result in zip(groups.whole, rows[1:], results[1:], strict=True)
            ]
            + by_subject,
            small_groups=groups.small,
            declared=[describe(one) for one in metrics],
        )


def _measured(found: Sequence[Figure]) -> list[Figure]:
    return [figure for figure in found if figure.samples_measured]


class _Groups:
    """The groups that get figures, and how many there are that do not."""

    def __init__(self, arrays: Arrays, by: Sequence[Sequence[str]] | None) -> None:
        self.whole: list[Subset] = []
        self.small: list[SmallGroups] = []
        kinds = axis_of(arrays.metrics)
        asked = [names for names in by or () if any(name in kinds for name in names)]
        self._arrays = arrays
        self._asked = [(*(name for name in names if name not in kinds), *_axes(names, kinds)) for names in asked]
        self._declared = [names for kind in kinds if (names := (*AXES[kind], kind)) not in self._asked]
        for names in arrays.groupings(None if by is None else [names for names in by if names not in asked]):
            found = list(arrays.subsets(names))
            # What was asked for is shown, however small.
            few = [count for _, count in found if by is None and count < MIN_GROUP]
            self.whole += [subset for subset, count in found if by is not None or count >= MIN_GROUP]
            if few:
                self.small.append(
                    SmallGroups(by=list(names), minimum=MIN_GROUP, groups=len(few), conversations=sum(few))
                )

    def by_subject(self) -> Iterator[SubjectGroup]:
        """Groups by subjects: those that are declared are made whatever is asked for, however small.

        Only where names of subjects differ from one conversation to the next, those of few conversations are counted.
        """
        for names in self._asked:
            yield from self._arrays.subject_groups(names)
        for names in self._declared:
            found = self._arrays.subject_groups(names)
            if len(found) <= MAX_SUBJECTS:
                yield from found
                continue
            sizes = sorted((group.conversations for group in found), reverse=True)
            minimum = sizes[MAX_SUBJECTS] + 1
            few = [size for size in sizes if size < minimum]
            self.small.append(SmallGroups(by=list(names), minimum=minimum, groups=len(few), conversations=sum(few)))
            yield from (group for group in found if group.conversations >= minimum)


def _axes(names: Sequence[str], kinds: Sequence[str]) -> tuple[str, ...]:
    """The kind of subjects that a grouping is by; it stands last, wherever it was named."""
    found = tuple(name for name in names if name in kinds)
    if len(found) > 1:
        raise UsageError(f"cannot group by {' and '.join(found)} at once", hint="group by one of them at a time")
    return found


MAX_SUBJECTS = 1000
"""Of a kind of subjects with more names than this, those of the fewest conversations are counted."""


def _figures(
    arrays: Arrays, declared: Declared, metrics: Sequence[Declared], rows: Sequence[NDArray[np.bool_]]
) -> Iterator[tuple[int, Figure]]:
    """The figures of one metric, each with the number of its group."""
    if isinstance(declared, Derived) and declared.over == "group":
        by_key = {one.key: one for one in metrics}
        for number, mine in enumerate(rows):
            yield number, _group_figure(arrays, declared, by_key, mine)
        return
    if arrays.is_silent(declared):
        # Groups speak of what was measured somewhere; this was not.
        yield 0, absent_figure(declared, arrays.absences(declared))
        return
    for judge in arrays.judges(declared):
        table = arrays.table(declared, judge)
        for number, mine in enumerate(rows):
            for figure in figures(declared, judge, table, mine):
                yield number, figure


def _group_figure(arrays: Arrays, declared: Derived, by_key: Mapping[str, Declared], rows: NDArray[np.bool_]) -> Figure:
    """A figure over a group, after those that it needs. A circle of needs was refused before anything ran."""
    given: list[tuple[Figure, Given]] = []
    for name in declared.inputs:
        one = by_key[name]
        if isinstance(one, Derived) and one.over == "group":
            figure = _group_figure(arrays, one, by_key, rows)
            given.append((figure, figure.value or 0.0))
        else:
            # A panel's verdict stands for its judges.
            if arrays.is_silent(one):
                given.append((absent_figure(one, arrays.absences(one)), []))
                continue
            judge = arrays.judges(one)[-1]
            table = arrays.table(one, judge)
            figure = next(figures(one, judge, table, rows))
            given.append((figure, arrays.samples(table, rows) if figure.value is not None else []))
    return derived_figure(declared, given)
