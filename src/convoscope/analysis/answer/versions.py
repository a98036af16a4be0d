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
    Stratum,
    holm,
    paired,
    standardised,
    strata_of,
    whole,
)
from convoscope.analysis.answer.samples import Codes, FigureSample, Samples
from convoscope.analysis.words import name_text
from convoscope.metrics.declaration import HIGHER, NEITHER
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.summary import DeclaredMetric, Group, Summary
from convoscope.statistics.summary import Figure

VERSIONS = ("version", "agent_version", "release", "agent", "model", "variant")
"""Dimensions whose values are versions of an agent, the first that has two."""
LEAST_IMPORTANCE = 5
"""Of what is said of groups: that one of them takes fewer words is no verdict."""
LEAST_CONVERSATIONS = 10
MAX_VALUES = 20
"""A dimension of more values is no kind of conversations."""
MAX_STRATIFIED = 6
COLLECTIONS = ("dataset", "split")
"""Dimensions that say where conversations were kept: each version may well have its own."""
OTHER_MIX = 0.1
"""The share of conversations that would have to change their kind for both versions to have the same mix."""
LEAST_SHARED = 0.5
"""Of the conversations, how many must be of kinds that both versions have."""


class Strata(NamedTuple):
    """A comparison within the values of a dimension."""

    by: str
    strata: list[tuple[str, GroupComparison]]
    """The largest first."""
    comparison: GroupComparison
    more_of: str
    """The value of which the later version has more."""

    @property
    def all_agree(self) -> bool:
        """Whether each stratum shows the sign of the whole, or no difference."""
        return all(one.difference * self.comparison.difference >= 0 for _, one in self.strata)


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
    compared = list(differences(list(comparable(summary)), samples, first, second, VERSIONS))
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


def _pair(summary: Summary) -> tuple[str, Group, Group] | None:
    """The two versions to compare: of several that are numbered or dated, the last and the one before it."""
    for name in VERSIONS:
        by_value = {one.by[name]: one for one in summary.groups if list(one.by) == [name]}
        ordered = sorted(by_value, key=order_key)
        if len(ordered) == 2 or (len(ordered) > 2 and all(re.search(r"\d", value) for value in ordered)):
            return name, by_value[ordered[-2]], by_value[ordered[-1]]
    return None


def order_key(value: str) -> tuple[tuple[int, int, str], ...]:
    """v9 before v10, and dates by their numbers."""
    parts = re.findall(r"\d+|\D+", value.casefold()[:200])
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts)


def comparable(summary: Summary) -> Iterator[tuple[Figure, DeclaredMetric]]:
    """The figures that groups are compared in: headlines with a direction that matter; no parts."""
    names = {declared.name for declared in summary.declared}
    by_name: dict[str, tuple[Figure, DeclaredMetric]] = {}
    for figure in summary.metrics:
        declared = summary.by_key.get(figure.key)
        if declared is None or figure.reduction or figure.better == NEITHER or declared.importance < LEAST_IMPORTANCE:
            continue
        if not parent_metric(figure.metric, names) and figure.variant not in PUBLISHED and figure.value is not None:
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


def differences(
    figures: Sequence[tuple[Figure, DeclaredMetric]], samples: Samples, first: Rows, second: Rows, but: Collection[str]
) -> Iterator[Difference]:
    """The second set against the first in each figure, within other dimensions of which the mix differs."""
    kinds = list(_kinds(samples, first | second, but))
    for figure, declared in figures:
        sample = samples.of(figure)
        if sample is None:
            continue
        raw = paired(sample, first, second, samples.scenarios)
        if raw is not None:
            yield Difference(figure, declared, raw, p=raw.p)
            continue
        raw = whole(sample, first, second, samples.clusters)
        if raw is not None:
            yield _stratified(Difference(figure, declared, raw), sample, samples, kinds, first, second)


def _kinds(samples: Samples, rows: Rows, but: Collection[str]) -> Iterator[str]:
    """Dimensions that say what kind of conversation one is: of few values, and none of those that are compared."""
    names = [one for one in samples.dimension_names if one not in (*but, "scenario_id", "trial")]
    kept = 0
    for name in names:
        values = len(np.unique(samples.dimension(name).codes[rows]))
        if kept < MAX_STRATIFIED and 2 <= values <= MAX_VALUES:
            kept += 1
            yield name


def _stratified(
    difference: Difference, sample: FigureSample, samples: Samples, kinds: Sequence[str], first: Rows, second: Rows
) -> Difference:
    """Held within each dimension of which the mix differs: the comparison must hold in all of them."""
    held: list[Strata] = []
    has_value = sample.below > 0
    a, b = first & has_value, second & has_value
    differing = [name for name in kinds if _mix_distance(samples.dimension(name).codes, a, b) >= OTHER_MIX]
    columns = [(name, samples.dimension(name).values, samples.dimension(name).codes) for name in differing]
    if len(columns) > 1:
        columns.append(_crossed(columns))
    for name, values, codes in columns:
        strata = strata_of(sample, first, second, samples.clusters, codes)
        inside = np.isin(codes, [one.value for one in strata])
        if not strata or min(np.mean(inside[a]), np.mean(inside[b])) < LEAST_SHARED:
            if name in differing and name not in COLLECTIONS:
                difference = difference._replace(apart=difference.apart or name)
            continue
        held.append(_strata(name, values, codes, strata, a, b))
    if not held:
        return difference._replace(p=difference.raw.p)
    raw = difference.raw
    most = max(held, key=lambda one: abs(one.comparison.difference - raw.difference))
    mixed = next((one for one in held if _contradict(one)), None)
    signs = {one.comparison.difference > 0 for one in held}
    p = 1.0 if mixed or len(signs) > 1 else max(one.comparison.p for one in held)
    return difference._replace(strata=most, p=p, mixed=mixed)


def _crossed(columns: Sequence[tuple[str, list[str], Codes]]) -> tuple[str, list[str], Codes]:
    """All dimensions together as one."""
    stacked = np.stack([codes for _, _, codes in columns], axis=1)
    kinds, codes = np.unique(stacked, axis=0, return_inverse=True)
    texts = [
        ", ".join(values[code] if code >= 0 else "·" for code, (_, values, _) in zip(kind, columns, strict=True))
        for kind in kinds.tolist()
    ]
    codes = np.where((stacked >= 0).all(axis=1), codes.reshape(-1), -1)
    return " and ".join(name for name, _, _ in columns), texts, codes.astype(np.int64)


def _strata(name: str, values: list[str], codes: Codes, strata: list[Stratum], a: Rows, b: Rows) -> Strata:
    by_weight = sorted(strata, key=lambda one: -one.weight)
    shares = {one.value: float(np.mean(codes[b] == one.value) - np.mean(codes[a] == one.value)) for one in strata}
    more_of = max(shares, key=lambda value: shares[value])
    named = [(values[one.value], one.comparison) for one in by_weight]
    return Strata(name, named, standardised(strata), values[more_of])


def _contradict(strata: Strata) -> bool:
    """Whether one stratum is clearly better and another clearly worse."""
    clear = [one.difference > 0 for _, one in strata.strata if one.p * len(strata.strata) < LEVEL]
    return len(set(clear)) > 1


def _mix_distance(codes: Codes, first: Rows, second: Rows) -> float:
    """How many of the conversations of one side would have to change their kind to give the mix of the other."""
    size = int(codes.max()) + 2 if len(codes) else 1
    if not first.any() or not second.any():
        return 0.0
    mixes = [np.bincount(codes[rows] + 1, minlength=size) / np.count_nonzero(rows) for rows in (first, second)]
    return float(np.abs(mixes[0] - mixes[1]).sum() / 2)
