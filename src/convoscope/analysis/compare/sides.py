"""The sets of conversations that are compared: runs side by side, or the groups of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.answer.comparison import LEAST_PAIRED, MIN_CLUSTERS, Rows
from convoscope.analysis.answer.samples import (
    NO_VALUE,
    ConversationArrays,
    Samples,
    SubjectValues,
    samples_of,
)
from convoscope.analysis.compare.model import Side
from convoscope.errors import UsageError, nearest_names
from convoscope.runs.dimensions import Dimension
from convoscope.runs.run import Run
from convoscope.runs.summary import Group, Summary
from convoscope.statistics.differences import Codes, FigureSample
from convoscope.statistics.summary import Figure

READING = ("turn_rule", "tool_failed", "speech_tools", "session_gap", "speakers")
"""Settings of a run that change what its figures mean."""
LEAST_DISTINCT = 0.5
"""Of the openings that are alike, how many must differ from each other: "Hi" names no test."""
MAX_IDS = 200_000
"""Conversations of a run beyond which pairs would add little, and their ids would fill the memory."""
SAME_OPENINGS = 100
"""Pairs of one id that are looked at for what the user says first."""
LEAST_ALIKE = 0.8
"""Of these, how many must be the same for ids to name tests."""


class JoinedSamples(ConversationArrays):
    """The conversations of several runs as one set of arrays, run after run."""

    def __init__(self, parts: Sequence[Samples]) -> None:
        self.parts = parts
        self.count = sum(part.count for part in parts)
        self._dimensions: dict[str, Dimension] = {}

    @cached_property
    def starts(self) -> list[int]:
        """The index of the first conversation of each run."""
        return [sum(part.count for part in self.parts[:index]) for index in range(len(self.parts))]

    @cached_property
    def dimension_names(self) -> list[str]:
        """Every dimension that some conversation has."""
        return list(dict.fromkeys(name for part in self.parts for name in part.dimension_names))

    def dimension(self, name: str) -> Dimension:
        if name not in self._dimensions:
            joined = _joined([part.dimension(name) for part in self.parts])
            self._dimensions[name] = self._same_ids if name == "scenario_id" and not joined.values else joined
        return self._dimensions[name]

    @cached_property
    def pairs_by_id(self) -> bool:
        """Whether conversations of one id are the same test: no log names scenarios, and they open alike."""
        return bool(self.dimension("scenario_id").values) and not any(
            part.dimension("scenario_id").values for part in self.parts
        )

    @property
    def _same_ids(self) -> Dimension:
        """The ids of conversations as scenarios, where each run has them once and the user opens alike; else none."""
        none = Dimension([], np.full(self.count, -1, dtype=np.int64))
        if max(part.count for part in self.parts) > MAX_IDS:
            return none
        numbers = [part.numbers_by_id() for part in self.parts]
        shared = [id for id in numbers[0] if all(id in one for one in numbers[1:])]
        if len(shared) < MIN_CLUSTERS or len(shared) < LEAST_PAIRED * min(map(len, numbers)):
            return none
        step = max(1, len(shared) // SAME_OPENINGS)
        looked = shared[::step][:SAME_OPENINGS]
        openings = [part.openings([one[id] for id in looked]) for part, one in zip(self.parts, numbers, strict=True)]
        alike = sum(len({*texts}) == 1 and bool(texts[0]) for texts in zip(*openings, strict=True))
        if alike < LEAST_ALIKE * len(looked) or len({*openings[0]}) < LEAST_DISTINCT * len(looked):
            return none
        codes = np.full(self.count, -1, dtype=np.int64)
        for start, number_of in zip(self.starts, numbers, strict=True):
            codes[[start + number_of[id] for id in shared]] = np.arange(len(shared))
        return Dimension(shared, codes)

    @cached_property
    def user_names(self) -> Dimension:
        """Who talks with the agent, as the records say."""
        return _joined([part.user_names for part in self.parts])

    @cached_property
    def fields(self) -> dict[str, Dimension]:
        """Fields of the records that have few values; conversations without one have the value `none`."""
        names = dict.fromkeys(name for part in self.parts for name in part.fields)
        none = [Dimension([NO_VALUE], np.zeros(part.count, dtype=np.int64)) for part in self.parts]
        return {
            name: _joined([part.fields.get(name, empty) for part, empty in zip(self.parts, none, strict=True)])
            for name in names
        }

    @cached_property
    def talks(self) -> NDArray[np.bool_]:
        """The conversations that should have an outcome."""
        return np.concatenate([part.talks for part in self.parts])

    def of(self, figure: Figure) -> FigureSample | None:
        """What each conversation adds to a headline; None where a run has no such figure."""
        samples = [part.of(figure) for part in self.parts]
        return _joined_sample([one for one in samples if one is not None], len(samples))

    def of_subject(self, figure: Figure, kind: str, subject: str) -> FigureSample:
        """What each conversation adds to the figure of one topic, slot or the like."""
        parts = [part.of_subject(figure, kind, subject) for part in self.parts]
        return FigureSample(np.concatenate([one.above for one in parts]), np.concatenate([one.below for one in parts]))

    def values(self, figure: Figure) -> SubjectValues:
        """The values of all subjects of a metric, pooled."""
        parts = [part.values(figure) for part in self.parts]
        numbers = [part.number + start for part, start in zip(parts, self.starts, strict=True)]
        return SubjectValues(np.concatenate([part.value for part in parts]), np.concatenate(numbers))


def _joined(parts: Sequence[Dimension]) -> Dimension:
    index_of: dict[str, int] = {}
    codes = []
    for part in parts:
        new = np.array([index_of.setdefault(value, len(index_of)) for value in part.values], dtype=np.int64)
        codes.append(np.where(part.codes >= 0, new[part.codes], -1) if len(new) else part.codes)
    return Dimension(list(index_of), np.concatenate(codes))


def _joined_sample(parts: Sequence[FigureSample], wanted: int) -> FigureSample | None:
    if len(parts) < wanted:
        return None
    above, below = np.concatenate([one.above for one in parts]), np.concatenate([one.below for one in parts])
    return FigureSample(above, below, all(part.bounded for part in parts), max(part.least for part in parts))


class ComparedSet(NamedTuple):
    """One side, with what is known of it."""

    side: Side
    rows: Rows
    run: Run
    start: int
    """The index of the first conversation of its run in the arrays."""
    figures: dict[tuple[str, str, str], Figure]
    """By metric, reduction and judge; without those that have no value."""
    is_grouped: bool = True
    """Whether `figures` are of this side alone."""


class ComparedSets(NamedTuple):
    """All sides over one set of arrays; the first is the baseline."""

    samples: JoinedSamples | Samples
    sets: list[ComparedSet]
    by: str = ""

    @property
    def runs(self) -> list[Run]:
        return list({id(one.run): one.run for one in self.sets}.values())

    @property
    def labels(self) -> list[str]:
        """The label of each side; "" for none."""
        summaries = [one.run.summary for one in self.sets]
        return [summary.label.label if summary.label is not None else "" for summary in summaries]

    @property
    def other_labels(self) -> str:
        """That sides have other labels, so that their outcomes mean other things; "" where they have the same."""
        if len(set(self.labels)) < 2:
            return ""
        named = [f"--label {label}" if label else "no label" for label in dict.fromkeys(self.labels)]
        return f"the sides have other labels: {' and '.join(named)}"

    @property
    def other_reading(self) -> str:
        """That runs were read with other settings, which may be all that differs; "" where they were not."""
        configs = [run.receipt.config for run in self.runs]
        names = [name for name in READING if len({repr(config.get(name)) for config in configs}) > 1]
        return f"the runs were read with other settings: {', '.join(names)}" if names else ""

    @property
    def summary(self) -> Summary:
        """Of the newest side: what metrics are called, and which way is better."""
        return self.sets[-1].run.summary


def sets_of_runs(runs: Sequence[Run], given: Sequence[str] = ()) -> ComparedSets:
    """Runs side by side, by the names that are given. Runs of the same name are called by their paths."""
    names = list(given) or [run.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    if len(set(names)) < len(names):
        raise UsageError(f"{names[0]} is named twice", hint="name two different runs")
    samples = JoinedSamples([samples_of(run) for run in runs])
    number = np.arange(samples.count)
    sets = []
    for run, name, start in zip(runs, names, samples.starts, strict=True):
        rows = (number >= start) & (number < start + run.summary.conversations)
        side = Side(name=name, conversations=run.summary.conversations, run=str(run.folder))
        sets.append(ComparedSet(side, rows, run, start, _by_name(run.summary.metrics)))
    return ComparedSets(samples, sets)


def sets_by_dimension(
    run: Run, by: str, wanted: Sequence[str] = (), order: Callable[[str], object] = str
) -> ComparedSets:
    """The groups of one run by a dimension, in their order, or those that are wanted, in theirs."""
    samples = samples_of(run)
    known = [*samples.dimension_names, *samples.fields]
    if by not in known:
        near = nearest_names(by, known)
        has = [name for name in known if len(_dimension(samples, name).values) > 1]
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(has) or 'none with two values'}"
        raise UsageError(f"{run.folder} has no dimension {by!r}", hint=hint)
    dimension = _dimension(samples, by)
    for value in wanted:
        if value not in dimension.values:
            raise UsageError(f"{run.folder} has no {by} {value!r}", hint=f"it has {', '.join(dimension.values[:12])}")
    present = [value for index, value in enumerate(dimension.values) if (dimension.codes == index).any()]
    values = list(wanted) or sorted((one for one in present if one != NO_VALUE), key=order)  # type: ignore[arg-type]
    if len(values) < 2:
        only = f"only {values[0]!r}" if values else "no value"
        raise UsageError(f"nothing to compare: {by} has {only} in {run.folder}")
    groups = {group.by[by]: group for group in run.summary.groups if list(group.by) == [by]}
    sets = []
    for value in values:
        rows = dimension.codes == dimension.values.index(value)
        side = Side(name=value, conversations=int(np.count_nonzero(rows)), run=str(run.folder))
        group = groups.get(value)
        figures = _of_group(run.summary, group)
        sets.append(ComparedSet(side, rows, run, 0, figures, is_grouped=group is not None))
    return ComparedSets(samples, sets, by)


def _dimension(samples: Samples, name: str) -> Dimension:
    return samples.fields[name] if name in samples.fields else samples.dimension(name)


def _of_group(summary: Summary, group: Group | None) -> dict[tuple[str, str, str], Figure]:
    return _by_name(summary.metrics if group is None else group.metrics)


def _by_name(figures: Sequence[Figure]) -> dict[tuple[str, str, str], Figure]:
    return {(one.key, one.reduction, one.judge): one for one in figures if one.value is not None}


__all__ = ["Codes", "ComparedSet", "ComparedSets", "JoinedSamples", "sets_by_dimension", "sets_of_runs"]
