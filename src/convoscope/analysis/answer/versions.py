"""Two versions of an agent: where they differ, within what, and where the data do not decide.

Versions, as groups, are compared by pairs of a scenario where they share scenarios. Where they do not, and another
dimension has another mix in each, they are compared within its values: a difference is claimed only if it holds there.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.comparison import (
    LEVEL,
    MIN_CLUSTERS,
    GroupComparison,
    Rows,
    holm,
    paired,
    whole,
)
from convoscope.analysis.answer.coverage import KnownOutcomes, coverage_of, worst_case
from convoscope.analysis.answer.samples import Codes, FigureSample, Samples
from convoscope.analysis.answer.strata import Kind, Strata, compare_within, kinds_of
from convoscope.analysis.answer.wait_units import wait_units
from convoscope.analysis.words import name_text
from convoscope.metrics.declaration import HIGHER, NEITHER, SECONDS
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.summary import DeclaredMetric, Group, Summary
from convoscope.statistics.summary import Figure
from convoscope.views.background import is_version

VERSIONS = ("version", "agent_version", "prompt_version", "release", "build", "agent", "model", "variant", "experiment")
"""Dimensions whose values are versions of an agent, the first that has two; then any whose name says so."""
SHARED_USERS = 0.9
"""Of the conversations of each side: from so many on, users who talk with both versions make no difference."""
LEAST_IMPORTANCE = 5
"""Of what is said of groups: that one of them takes fewer words is no verdict."""
LEAST_CONVERSATIONS = 10


class Difference(NamedTuple):
    """The later version against the earlier, or a group against the others, in one figure."""

    figure: Figure
    declared: DeclaredMetric
    raw: GroupComparison
    """Over all conversations of both, whatever their kind."""
    strata: Strata | None = None
    """Within the dimension that changes the raw comparison most, where the mix differs."""
    p: float = 1.0
    """The largest of all the comparisons that must hold."""
    mixed: Strata | None = None
    """Within which it is clearly better here and clearly worse there."""
    apart: str = ""
    """A dimension of which the versions have no value, or few, in common."""
    coverage: KnownOutcomes | None = None
    """How many have an outcome at all, where some have none."""

    @property
    def comparison(self) -> GroupComparison:
        return self.strata.comparison if self.strata is not None else self.raw

    @property
    def worse(self) -> bool:
        return is_worse(self.figure, self.comparison.difference)

    @property
    def is_reversed(self) -> bool:
        """All conversations together say the opposite."""
        return self.comparison.difference * self.raw.difference < 0

    @property
    def is_hidden(self) -> bool:
        """All conversations together do not show it."""
        return self.strata is not None and (self.is_reversed or self.raw.p >= LEVEL)


class Versions(NamedTuple):
    """What can be said of two versions."""

    dimension: str
    before: str
    after: str
    claimed: list[Difference] = []
    """What differs after correction; the most important first."""
    explained: list[Difference] = []
    """What seems to differ, but only because the kinds of conversations do."""
    open: list[Difference] = []
    """What the data do not decide."""
    too_few: tuple[tuple[str, int], ...] = ()
    """Versions that have too few conversations, and how many."""
    few_users: tuple[tuple[str, int], ...] = ()
    """Versions of which too few users have all conversations, and how many."""
    unshared: bool = False
    """Each was tried on scenarios of its own: nothing can be compared."""


def compare_versions(summary: Summary, samples: Samples) -> Versions | None:
    """None where the run has no two versions."""
    pair = _pair(summary)
    if pair is None:
        return None
    name, earlier, later = pair
    before, after = earlier.by[name], later.by[name]
    if few := [one for one in (earlier, later) if one.conversations < LEAST_CONVERSATIONS]:
        return Versions(name, before, after, too_few=tuple((one.by[name], one.conversations) for one in few))
    dimension = samples.dimension(name)
    first, second = (dimension.codes == dimension.values.index(one) for one in (before, after))
    if _is_unshared(samples.scenarios, first, second):
        return Versions(name, before, after, unshared=True)
    clusters = _clusters(samples, first, second)
    users = [(one, len(np.unique(clusters[rows]))) for one, rows in ((before, first), (after, second))]
    if (few_users := [one for one in users if one[1] < MIN_CLUSTERS]) and samples.users[first | second].max() >= 0:
        return Versions(name, before, after, few_users=tuple(few_users))
    names = version_names(samples.dimension_names)
    compared = list(differences(compared_figures(summary, samples), samples, first, second, names))
    kept = holm([one.p for one in compared])
    seeming = holm([one.raw.p for one in compared])
    claimed: list[Difference] = []
    explained: list[Difference] = []
    undecided: list[Difference] = []
    for difference, holds, seems in zip(compared, kept, seeming, strict=True):
        (claimed if holds else explained if seems or difference.mixed else undecided).append(difference)
    for kind in (claimed, explained, undecided):
        kind.sort(key=lambda one: (-one.declared.importance, one.p))
    return Versions(name, before, after, claimed, explained, undecided)


def version_names(names: Collection[str]) -> list[str]:
    """The dimensions whose values are versions of an agent, the likeliest first."""
    return [*VERSIONS, *sorted(name for name in names if name not in VERSIONS and is_version(name))]


def _pair(summary: Summary) -> tuple[str, Group, Group] | None:
    """The two versions to compare: of several that are numbered or dated, the last and the one before it."""
    grouped = {name for one in summary.groups if len(one.by) == 1 for name in one.by}
    for name in version_names(grouped):
        by_value = {one.by[name]: one for one in summary.groups if list(one.by) == [name]}
        ordered = sorted(by_value, key=order_key)
        if len(ordered) == 2 or (len(ordered) > 2 and all(re.search(r"\d", value) for value in ordered)):
            return name, by_value[ordered[-2]], by_value[ordered[-1]]
    return None


def order_key(value: str) -> tuple[tuple[int, int, str], ...]:
    """v9 before v10, and dates by their numbers."""
    parts = re.findall(r"\d+|\D+", value.casefold()[:200])
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def compared_figures(summary: Summary, samples: Samples) -> list[tuple[Figure, DeclaredMetric]]:
    """The figures that groups are compared in; no seconds where their unit is in doubt."""
    are_two = wait_units(summary, samples).are_two
    return [one for one in comparable(summary) if not (are_two and one[0].unit == SECONDS)]


def comparable(summary: Summary) -> Iterator[tuple[Figure, DeclaredMetric]]:
    """The figures that groups are compared in: headlines with a direction that matter; no parts."""
    names = {declared.name for declared in summary.declared}
    by_name: dict[str, tuple[Figure, DeclaredMetric]] = {}
    for figure in summary.metrics:
        declared = summary.by_key.get(figure.key)
        if declared is None or figure.reduction or figure.better == NEITHER or declared.importance < LEAST_IMPORTANCE:
            continue
        if parent_metric(figure.metric, names) or figure.variant in PUBLISHED:
            continue
        if figure.value is not None:
            by_name[name_text(figure)] = (figure, declared)
    yield from by_name.values()


def is_worse(figure: Figure, difference: float) -> bool:
    """Whether a difference in this direction is for the worse."""
    return (difference < 0) == (figure.better == HIGHER)


def _is_unshared(scenarios: Codes, first: Rows, second: Rows) -> bool:
    """Whether each side was tried on scenarios of its own, several times each: then the scenarios may differ."""
    sides = [scenarios[rows] for rows in (first, second)]
    are_tried_again = all(side.min() >= 0 and len(np.unique(side)) * 2 <= len(side) for side in sides)
    return are_tried_again and len(np.intersect1d(sides[0], sides[1])) < MIN_CLUSTERS


def _clusters(samples: Samples, first: Rows, second: Rows) -> Codes:
    """What is independent between two sets. Few users who talk with both, such as tenants, are kinds, not clusters."""
    sides = [np.unique(samples.users[rows & (samples.users >= 0)]) for rows in (first, second)]
    shared = np.isin(samples.users, np.intersect1d(sides[0], sides[1]))
    few = min(len(np.unique(samples.clusters[rows])) for rows in (first, second)) < MIN_CLUSTERS
    if few and min(np.mean(shared[first]), np.mean(shared[second])) >= SHARED_USERS:
        return np.arange(samples.count, dtype=np.int64)
    return samples.clusters


def differences(
    figures: Sequence[tuple[Figure, DeclaredMetric]], samples: Samples, first: Rows, second: Rows, but: Collection[str]
) -> Iterator[Difference]:
    """The second set against the first in each figure, within other fields of which the mix differs."""
    if not (first.any() and second.any()):
        return
    kinds = list(kinds_of(samples, first | second, but))
    clusters = _clusters(samples, first, second)
    for figure, declared in figures:
        sample = samples.of(figure)
        if sample is None:
            continue
        difference = _difference(figure, declared, sample, samples.scenarios, clusters, kinds, first, second)
        if difference is not None and figure.key == OUTCOME_METRIC:
            difference = _covered(difference, sample, samples, clusters, first, second)
        if difference is not None:
            yield difference


def _difference(
    figure: Figure,
    declared: DeclaredMetric,
    sample: FigureSample,
    scenarios: Codes,
    clusters: Codes,
    kinds: Sequence[Kind],
    first: Rows,
    second: Rows,
) -> Difference | None:
    raw = paired(sample, first, second, scenarios)
    if raw is not None:
        return Difference(figure, declared, raw, p=raw.p)
    raw = whole(sample, first, second, clusters)
    if raw is None:
        return None
    within = compare_within(raw, sample, clusters, kinds, first, second)
    return Difference(figure, declared, raw, within.strata, within.p, within.mixed, within.apart)


def _covered(
    difference: Difference, sample: FigureSample, samples: Samples, clusters: Codes, first: Rows, second: Rows
) -> Difference:
    """Where one side knows far fewer outcomes, a difference must hold whatever the unknown ones are."""
    coverage = coverage_of(sample, first & samples.talks, second & samples.talks)
    if coverage is None or coverage.is_even:
        return difference._replace(coverage=coverage)
    filled = worst_case(sample, samples.talks, first, second, rises=difference.comparison.difference > 0)
    if difference.raw.pairs:
        worst = paired(filled, first, second, samples.scenarios)
    else:
        worst = whole(filled, first, second, clusters)
    holds = worst is not None and worst.difference * difference.comparison.difference > 0
    return difference._replace(coverage=coverage, p=max(difference.p, worst.p) if worst is not None and holds else 1.0)
