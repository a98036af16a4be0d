"""Groups of conversations in which a figure moved, and kinds of conversations that one side has more of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from convoscope.analysis.answer.comparison import OTHER_MIX, interval_of, kinds_of, mix_distance, mix_probability, whole
from convoscope.analysis.answer.differences import (
    LEAST_CONVERSATIONS,
    Difference,
    clusters_of,
    comparable,
    differences,
    is_worse,
    version_names,
)
from convoscope.analysis.answer.model import Noun
from convoscope.analysis.answer.samples import NO_VALUE
from convoscope.analysis.compare.figures import Smallest, row_of
from convoscope.analysis.compare.model import ComparedFigure, MovedGroup, MovedMix
from convoscope.analysis.compare.sides import ComparedSet, ComparedSets
from convoscope.analysis.compare.words import change_text, values_text
from convoscope.analysis.words import cut_text, percent_text
from convoscope.metrics.declaration import AXES
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.reliability import claims_nothing
from convoscope.statistics.differences import LEVEL, DifferenceInterval, holm, wald
from convoscope.views.background import WHEN, is_kind

MOST = 8
MAX_VALUES = 20
MAX_SUBJECTS = 40
"""States, tools and topics of one kind that are looked at."""
ROUNDS = 4_000


class _Look(NamedTuple):
    by: dict[str, str]
    difference: Difference
    interval: DifferenceInterval
    later: ComparedSet


def moved_groups(
    sets: ComparedSets, noun: Noun, smallest: Smallest, figures: Sequence[ComparedFigure]
) -> tuple[MovedGroup, ...]:
    """The groups in which a figure that matters moved, corrected over all groups; worse first.

    A group that only repeats what is claimed of the whole is left out.
    """
    known = {(one.metric, one.finding, one.side) for one in figures}
    if sets.other_reading:
        return ()
    looks = [
        look
        for later in sets.sets[1:]
        for look in (*_of_dimensions(sets, sets.sets[0], later), *_of_subjects(sets, sets.sets[0], later))
    ]
    corrected = holm([one.difference.p for one in looks])
    rows = []
    for look, p in zip(looks, corrected, strict=True):
        compared = look.difference.comparison
        if p > LEVEL or not look.interval.excludes_zero or look.difference.mixed or look.difference.apart:
            continue
        figure, declared = look.difference.figure, look.difference.declared
        least = smallest.of(figure.unit, compared.first)
        if abs(compared.difference) < least:
            continue
        row = replace(
            row_of(figure, declared, compared, look.interval, look.later, noun),
            finding="worse" if is_worse(figure, compared.difference) else "better",
            p=float(look.difference.p),
            p_holm=float(p),
            smallest=float(least),
        )
        if (row.metric, row.finding, row.side) in known:
            continue
        where = " and ".join(f"{name} {cut_text(value, 40)}" for name, value in look.by.items())
        side = f", {cut_text(row.side, 24)}" if len(sets.sets) > 2 else ""
        sentence = f"{where}{side}: {row.finding}, {row.label} {values_text(row)} ({change_text(row)})"
        rows.append(MovedGroup(by=look.by, figure=row, sentence=sentence))
    rows.sort(key=lambda one: (one.figure.finding != "worse", -one.figure.importance, one.figure.p or 0.0))
    # Of a group that moved in several figures, the most important one speaks.
    first = {(*row.by.items(), row.figure.finding, row.figure.side): row for row in reversed(rows)}
    return tuple(row for row in rows if row in first.values())[:MOST]


def _of_dimensions(sets: ComparedSets, baseline: ComparedSet, later: ComparedSet) -> Iterator[_Look]:
    samples = sets.samples
    but = {*version_names(samples.dimension_names), *WHEN, sets.by, "scenario_id", "trial", "dataset", "split"}
    figures = [
        one
        for one in comparable(sets.summary)
        if _is_measured(one[0].key, baseline, later)
        and not (sets.other_labels and one[0].key == OUTCOME_METRIC)
        and not claims_nothing(later.run.summary, one[0], trust_judges=later.run.trusts_judges)
    ]
    named = [name for name in samples.dimension_names if name not in but]
    named += [name for name in samples.fields if name not in but and is_kind(name)]
    for name in named:
        dimension = samples.fields[name] if name in samples.fields else samples.dimension(name)
        if not 2 <= len(dimension.values) <= MAX_VALUES:
            continue
        for code, value in enumerate(dimension.values):
            first, second = (side.rows & (dimension.codes == code) for side in (baseline, later))
            few = min(np.count_nonzero(first), np.count_nonzero(second)) < LEAST_CONVERSATIONS
            if few or value == NO_VALUE:
                continue
            clusters = clusters_of(samples, first, second)
            for difference in differences(figures, samples, first, second, [*but, name], ROUNDS):
                compared, sample = difference.comparison, samples.of(difference.figure)
                interval = wald(compared.difference, compared.error, compared.degrees)
                if sample is not None and not compared.pairs and difference.strata is None:
                    interval = interval_of(compared, sample, first, second, clusters)
                yield _Look({name: value}, difference, interval, later)


def _of_subjects(sets: ComparedSets, baseline: ComparedSet, later: ComparedSet) -> Iterator[_Look]:
    """States, tools, topics and the like, each by its own figures."""
    samples = sets.samples
    clusters = clusters_of(samples, baseline.rows, later.rows)
    looked = 0
    for group in later.run.summary.groups:
        axis = [name for name in group.by if name in AXES]
        if len(axis) != 1 or group.conversations < LEAST_CONVERSATIONS or set(group.by) - {*axis, "flow"}:
            continue
        looked += 1
        if looked > MAX_SUBJECTS:
            return
        for figure in group.metrics:
            declared = later.run.summary.by_key[figure.key]
            if figure.reduction or figure.better == "neither" or declared.importance < 4:
                continue
            if claims_nothing(later.run.summary, figure, trust_judges=later.run.trusts_judges):
                continue
            sample = samples.of_subject(figure, axis[0], group.by[axis[0]])
            if "flow" in group.by:
                flow = samples.dimension("flow")
                inside = flow.codes == (flow.values.index(group.by["flow"]) if group.by["flow"] in flow.values else -1)
                sample = sample._replace(below=np.where(inside, sample.below, 0.0))
            raw = whole(sample, baseline.rows, later.rows, clusters)
            if raw is not None:
                bounded = sample._replace(bounded=figure.unit == "share")
                interval = interval_of(raw, bounded, baseline.rows, later.rows, clusters)
                yield _Look(dict(group.by), Difference(figure, declared, raw, p=raw.p), interval, later)


def _is_measured(key: str, baseline: ComparedSet, later: ComparedSet) -> bool:
    return all(any(name[0] == key for name in side.figures) for side in (baseline, later))


def moved_mix(sets: ComparedSets, noun: Noun) -> tuple[MovedMix, ...]:
    """The kinds of conversations of which a side has clearly more than the baseline."""
    samples, baseline = sets.samples, sets.sets[0]
    moved: list[tuple[float, MovedMix]] = []
    for later in sets.sets[1:]:
        but = [*version_names(samples.dimension_names), *WHEN, *([sets.by] if sets.by else [])]
        for kind in kinds_of(samples, baseline.rows | later.rows, but):
            if kind.is_fact and not is_kind(kind.name):
                continue
            distance = mix_distance(kind.codes, baseline.rows, later.rows)
            if distance < OTHER_MIX or mix_probability(kind.codes, baseline.rows, later.rows) >= LEVEL:
                continue
            shares = [
                [float(np.mean(kind.codes[side.rows] == code)) for side in (baseline, later)]
                for code in range(len(kind.values))
            ]
            code = max(range(len(shares)), key=lambda index: shares[index][1] - shares[index][0])
            before, after = shares[code]
            value = kind.values[code]
            words = f"{later.side.name} has more {noun}s with {kind.name} {cut_text(value, 40)}"
            sentence = f"{words}: {percent_text(after)}, was {percent_text(before)}"
            mix = MovedMix(
                dimension=kind.name, value=value, before=before, after=after, side=later.side.name, sentence=sentence
            )
            moved.append((distance, mix))
    return tuple(mix for _, mix in sorted(moved, key=lambda one: -one[0])[:MOST])
