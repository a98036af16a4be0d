"""Two sets of conversations in one figure: by pairs of a scenario, within kinds of conversations, or whole.

The error of a difference is computed as if there were none: residuals are taken from the common ratio. So shares of
0 and 1 have an error, and trials of one scenario count as one cluster.

A field of the record counts as a kind where two sets have another mix of its values and it goes with the figure.
Dimensions, and fields that were asked for, count wherever the mix differs.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.answer.samples import NO_VALUE, ConversationArrays
from convoscope.statistics.differences import (
    LEVEL,
    MAX_PERMUTED,
    OPEN,
    SURE,
    ClusterSums,
    Codes,
    DifferenceInterval,
    FigureSample,
    Floats,
    cluster_sums,
    difference_interval,
    distinct,
    permuted,
    pooled_degrees,
    probability,
    wald,
)
from convoscope.statistics.intervals import student_quantile
from convoscope.views.background import FOLDERS, is_kind, is_version
from convoscope.views.fields import is_flag
from convoscope.views.flow.endings import passed_in_words

Rows = NDArray[np.bool_]
NOT_SEEN = 3.0
CLEARLY_CHANCE = 0.3
"""From this probability on, a permutation would not find a claim either."""
MIN_CLUSTERS = 5
"""Fewer independent clusters on a side, or fewer pairs, say too little."""


class GroupComparison(NamedTuple):
    """The second set against the first."""

    first: float
    second: float
    error: float
    degrees: float
    p: float
    """How likely so large a difference is by chance."""
    clusters: int
    """Of the smaller side; of pairs, their number."""
    pairs: int = 0
    """Scenarios that both have, where these are compared; both values are over them alone."""

    @property
    def difference(self) -> float:
        return self.second - self.first

    def lies_within(self, margin: float, *, bounded: bool) -> bool:
        """Whether the whole 95 % interval of the difference is so close to zero.

        Of shares, what has not happened in n clusters may still happen in 3 ÷ n of them.
        """
        reach = student_quantile(self.degrees) * self.error
        return abs(self.difference) + max(reach, NOT_SEEN / self.clusters if bounded else 0.0) <= margin


class Stratum(NamedTuple):
    """Both sets inside of one value of a dimension."""

    value: int
    comparison: GroupComparison
    weight: float


def paired(sample: FigureSample, first: Rows, second: Rows, scenarios: Codes) -> GroupComparison | None:
    """The mean difference inside of the scenarios that both have; None where these are too few."""
    sides = pair_sums(sample, first, second, scenarios)
    if sides is None:
        return None
    before, after = sides[0].above, sides[1].above
    differences, count = after - before, len(before)
    error = float(np.std(differences, ddof=1)) / math.sqrt(count)
    degrees = count - 1.0
    moved = int(np.count_nonzero(differences))
    # With all signs drawn anew, the least probability of so many that moved: few pairs never prove much.
    least = 2.0 ** (1 - moved) if moved else 1.0
    p = max(least, probability(float(differences.mean()), error, degrees))
    return GroupComparison(float(before.mean()), float(after.mean()), error, degrees, min(1.0, p), count, count)


class PairRows(NamedTuple):
    """The conversations of both sides whose scenario the other side has, too."""

    first: Rows
    second: Rows
    shared: int
    """Scenarios of both."""


LEAST_PAIRED = 0.5
"""Of the conversations of one side at least, how many must be of shared scenarios for pairs to speak for it."""


def pair_rows(samples: ConversationArrays, first: Rows, second: Rows) -> PairRows | None:
    """None where few scenarios are shared. Of a scenario with trials that both have, these trials alone."""
    scenarios = samples.scenarios
    known = scenarios >= 0
    if not known.any():
        return None
    shared = np.intersect1d(scenarios[first & known], scenarios[second & known])
    inside = np.isin(scenarios, shared)
    covered = max(float(np.mean(inside[rows])) if rows.any() else 0.0 for rows in (first, second))
    if len(shared) < MIN_CLUSTERS or covered < LEAST_PAIRED:
        return None
    trials = samples.dimension("trial").codes
    if trials.max() >= 0:
        keys = np.where(inside & (trials >= 0), scenarios * (int(trials.max()) + 1) + trials, -1)
        matched = np.intersect1d(keys[first & (keys >= 0)], keys[second & (keys >= 0)])
        by_trial = np.isin(scenarios, np.unique(scenarios[np.isin(keys, matched)]))
        inside &= ~by_trial | np.isin(keys, matched)
    return PairRows(first & inside, second & inside, len(shared))


def pair_sums(
    sample: FigureSample, first: Rows, second: Rows, scenarios: Codes
) -> tuple[ClusterSums, ClusterSums] | None:
    """The value of each scenario that both sides have, each of weight one; None where these are too few."""
    known = scenarios >= 0
    if not known.any():
        return None
    a, b = (_by_cluster(sample, rows & known, scenarios) for rows in (first, second))
    shared, left, right = np.intersect1d(a.codes, b.codes, assume_unique=True, return_indices=True)
    if len(shared) < MIN_CLUSTERS:
        return None
    ones = np.ones(len(shared))
    return tuple(ClusterSums(shared, side.above[at] / side.below[at], ones) for side, at in ((a, left), (b, right)))  # type: ignore[return-value]


def whole(
    sample: FigureSample, first: Rows, second: Rows, clusters: Codes, least_clusters: int = MIN_CLUSTERS
) -> GroupComparison | None:
    """The difference of the two ratios, clusters being independent."""
    a, b = _by_cluster(sample, first, clusters), _by_cluster(sample, second, clusters)
    if min(len(a.codes), len(b.codes)) < least_clusters:
        return None
    common = (a.above.sum() + b.above.sum()) / (a.below.sum() + b.below.sum())
    error = _error(a, b, common)
    degrees = pooled_degrees(a.residuals(common), b.residuals(common))
    p = probability(b.ratio - a.ratio, error, degrees)
    return GroupComparison(a.ratio, b.ratio, error, degrees, p, min(len(a.codes), len(b.codes)))


def redrawn(
    comparison: GroupComparison, sample: FigureSample, first: Rows, second: Rows, codes: Codes, rounds: int
) -> float:
    """How likely a difference is by chance: by permutations, where Student's distribution does not rule a claim out.

    `codes` are the scenarios where pairs were compared, else the clusters.
    """
    if not rounds or not SURE < comparison.p < CLEARLY_CHANCE:
        return comparison.p
    sides = pair_sums(sample, first, second, codes) if comparison.pairs else None
    a, b = sides or (_by_cluster(sample, first, codes), _by_cluster(sample, second, codes))
    if len(a.codes) + len(b.codes) > MAX_PERMUTED:
        return comparison.p
    return permuted(a, b, rounds)


def interval_of(
    comparison: GroupComparison, sample: FigureSample, first: Rows, second: Rows, codes: Codes
) -> DifferenceInterval:
    """Where the difference of a whole or of pairs may lie. `codes` as in `redrawn`.

    Where the values of one side are all the same, that side has no interval: then the error of the difference speaks.
    """
    interval = _interval_of_sides(comparison, sample, first, second, codes)
    if interval == OPEN and 0 < comparison.error < math.inf:
        return wald(comparison.difference, comparison.error, comparison.degrees)
    return interval


def _interval_of_sides(
    comparison: GroupComparison, sample: FigureSample, first: Rows, second: Rows, codes: Codes
) -> DifferenceInterval:
    if comparison.pairs and (sides := pair_sums(sample, first, second, codes)) is not None:
        samples = [FigureSample(side.above, side.below, sample.bounded, sample.least) for side in sides]
        return difference_interval(samples[0], samples[1], (sides[0].codes, sides[1].codes))
    has_value = sample.below > 0
    rows = [np.flatnonzero(side & has_value) for side in (first, second)]
    samples = [sample._replace(above=sample.above[one], below=sample.below[one]) for one in rows]
    return difference_interval(samples[0], samples[1], (codes[rows[0]], codes[rows[1]]))


def strata_of(sample: FigureSample, first: Rows, second: Rows, clusters: Codes, codes: Codes) -> list[Stratum]:
    """The same inside of each value of a dimension that both sets have; weighted by Mantel and Haenszel."""
    has_value = (sample.below > 0) & (codes >= 0)
    strata = []
    for value in np.intersect1d(codes[first & has_value], codes[second & has_value]).tolist():
        inside = codes == value
        within = whole(sample, first & inside, second & inside, clusters, 1)
        sizes = [int(np.count_nonzero(rows & inside & has_value)) for rows in (first, second)]
        if within is not None:
            strata.append(Stratum(value, within, sizes[0] * sizes[1] / sum(sizes)))
    return strata


def standardised(strata: Sequence[Stratum]) -> GroupComparison:
    """The weighted mean of the differences inside of strata."""
    weights = np.array([one.weight for one in strata])
    weights = weights / weights.sum()
    before, after = (float(weights @ [getattr(one.comparison, side) for one in strata]) for side in ("first", "second"))
    error = math.sqrt(float(weights**2 @ np.array([one.comparison.error**2 for one in strata])))
    degrees = sum(one.comparison.degrees for one in strata)
    clusters = sum(one.comparison.clusters for one in strata)
    return GroupComparison(before, after, error, degrees, probability(after - before, error, degrees), clusters)


def _error(first: ClusterSums, second: ClusterSums, ratio: float) -> float:
    """The standard error of the difference. What a cluster of both sides has in common falls out."""
    residuals = np.zeros(1 + max(int(first.codes.max()), int(second.codes.max())))
    residuals[first.codes] -= first.residuals(ratio)
    residuals[second.codes] += second.residuals(ratio)
    scale = float(np.max(np.abs(residuals))) or 1.0  # squares of the largest numbers would be infinite
    return scale * math.sqrt(float(np.sum((residuals / scale) ** 2)))


def _by_cluster(sample: FigureSample, rows: Rows, clusters: Codes) -> ClusterSums:
    indices = np.flatnonzero(rows & (sample.below > 0))
    return cluster_sums(FigureSample(sample.above[indices], sample.below[indices]), clusters[indices])


MAX_VALUES = 20
"""A dimension of more values is no kind of conversations."""
LEAST_OF_A_VALUE = 5
"""Conversations that a value of a fact has on average; with fewer it is a name, and no kind."""
MAX_DIMENSIONS = 6
MAX_CROSSED = 4
COLLECTIONS = ("dataset", "split", *FOLDERS)
"""Dimensions that say where conversations were kept: each version may well have its own."""
OTHER_MIX = 0.1
"""The share of conversations that would have to change their kind for both versions to have the same mix."""
COPY = 0.8
"""Of the spread of a figure: a field that explains more comes of the outcome, unless its name says it is a kind."""
LEAST_CHANGE = 0.15
"""Of a raw difference: a field that was not asked for and that changes it by less is not named."""
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


class Kind(NamedTuple):
    """A field that says what kind of conversation one is."""

    name: str
    values: Sequence[str]
    codes: Codes
    is_fact: bool = False
    """A field of the record that was not asked for: it must go with the figure."""


class WithinKinds(NamedTuple):
    """What is left of a difference within kinds."""

    p: float
    strata: Strata | None = None
    """Within the kinds that change the raw comparison most."""
    mixed: Strata | None = None
    """Within which it is clearly better here and clearly worse there."""
    apart: str = ""
    """A kind of which the two sets have no value, or few, in common."""


def kinds_of(samples: ConversationArrays, rows: Rows, but: Collection[str]) -> Iterator[Kind]:
    """Dimensions and facts of few values, without those that are compared."""
    left_out = {*but, "scenario_id", "trial"}
    kept = 0
    for name in samples.dimension_names:
        if name in left_out:
            continue
        dimension = samples.dimension(name)
        if kept < MAX_DIMENSIONS and 2 <= distinct(dimension.codes[rows]) <= MAX_VALUES:
            kept += 1
            yield Kind(name, dimension.values, dimension.codes)
    count = int(np.count_nonzero(rows))
    for name, fact in samples.fields.items():
        if name in left_out or is_version(name.rpartition(".")[2]):
            continue
        values = distinct(fact.codes[rows])
        if 2 <= values <= MAX_VALUES and values * LEAST_OF_A_VALUE <= count:
            yield Kind(name, fact.values, fact.codes, is_fact=True)


def compare_within(
    raw: GroupComparison, sample: FigureSample, clusters: Codes, kinds: Sequence[Kind], first: Rows, second: Rows
) -> WithinKinds:
    """The difference within each kind of which the mix differs, and within all together: it must hold in all."""
    has_value = sample.below > 0
    a, b = first & has_value, second & has_value
    held: list[Strata] = []
    usable: list[Kind] = []
    apart = ""
    for kind in kinds:
        if mix_distance(kind.codes, a, b) < OTHER_MIX:
            continue
        strata = _held(kind, sample, clusters, first, second, a, b)
        if strata is None:
            has_kinds = kind.name not in COLLECTIONS and (not kind.is_fact or is_kind(kind.name))
            apart = apart or (kind.name if has_kinds else "")
        elif not kind.is_fact or _may_explain(kind, sample, a, b):
            held.append(strata)
            usable.append(kind)
    if not held:
        return WithinKinds(raw.p, apart=apart)

    def change(strata: Strata) -> float:
        return abs(strata.comparison.difference - raw.difference)

    order = sorted(range(len(held)), key=lambda index: (usable[index].is_fact, -change(held[index])))
    together, all_held = usable[order[0]], None
    for index in order[1:MAX_CROSSED]:
        crossed = _crossed(together, usable[index])
        strata = _held(crossed, sample, clusters, first, second, a, b)
        together, all_held = (crossed, strata) if strata is not None else (together, all_held)
    held += [] if all_held is None else [all_held]
    mixed = next((one for one in held if _contradict(one)), None)
    signs = {one.comparison.difference > 0 for one in held}
    p = 1.0 if mixed or len(signs) > 1 else max(one.comparison.p for one in held)
    most = max(held, key=change)
    is_named = any(not kind.is_fact for kind in usable) or change(most) >= LEAST_CHANGE * abs(raw.difference)
    return WithinKinds(p, most if is_named else None, mixed, apart)


def usual_values(whole: FigureSample, part: FigureSample, kinds: Sequence[Kind]) -> Iterator[float]:
    """What the whole would come to with the kinds of conversations that a part of it has."""
    inside = part.below > 0
    rest = (whole.below > 0) & ~inside
    if not inside.any() or not rest.any():
        return
    for kind in kinds:
        if mix_distance(kind.codes, rest, inside) < OTHER_MIX:
            continue
        if kind.is_fact and not _may_explain(kind, whole, rest, inside & (whole.below > 0)):
            continue
        bins = kind.codes + 1
        above, below = np.bincount(bins, weights=whole.above), np.bincount(bins, weights=whole.below)
        weights = np.bincount(bins, weights=part.below, minlength=len(below))
        known = (below > 0) & (weights > 0)
        yield float((above[known] / below[known]) @ weights[known] / weights[known].sum())


def _may_explain(kind: Kind, sample: FigureSample, a: Rows, b: Rows) -> bool:
    """Whether the mix differs by more than chance, and the figure goes with the field without deciding it."""
    if mix_probability(kind.codes, a, b) >= LEVEL:
        return False
    explained = _explained(kind.codes, sample, a, b)
    names_kinds = (is_kind(kind.name) or kind.name in FOLDERS) and not _are_verdicts(kind.values)
    return explained.p < LEVEL and (explained.share <= COPY or names_kinds)


def _held(
    kind: Kind, sample: FigureSample, clusters: Codes, first: Rows, second: Rows, a: Rows, b: Rows
) -> Strata | None:
    """None where the two sets have too few kinds in common."""
    strata = strata_of(sample, first, second, clusters, kind.codes)
    inside = np.isin(kind.codes, [one.value for one in strata])
    if not strata or min(np.mean(inside[a]), np.mean(inside[b])) < LEAST_SHARED:
        return None
    by_weight = sorted(strata, key=lambda one: -one.weight)
    shares = {
        one.value: float(np.mean(kind.codes[b] == one.value) - np.mean(kind.codes[a] == one.value)) for one in strata
    }
    more_of = max(shares, key=lambda value: shares[value])
    named = [(kind.values[one.value], one.comparison) for one in by_weight]
    return Strata(kind.name, named, standardised(strata), kind.values[more_of])


def _crossed(first: Kind, second: Kind) -> Kind:
    """Two kinds together as one."""
    stacked = np.stack([first.codes, second.codes], axis=1)
    pairs, codes = np.unique(stacked, axis=0, return_inverse=True)
    texts = [
        ", ".join(_value(kind, code) for kind, code in zip((first, second), pair, strict=True))
        for pair in pairs.tolist()
    ]
    codes = np.where((stacked >= 0).all(axis=1), codes.reshape(-1), -1)
    return Kind(f"{first.name} and {second.name}", texts, codes.astype(np.int64))


def _value(kind: Kind, code: int) -> str:
    return kind.values[code] if code >= 0 else "·"


def _contradict(strata: Strata) -> bool:
    """Whether one stratum is clearly better and another clearly worse."""
    clear = [one.difference > 0 for _, one in strata.strata if one.p * len(strata.strata) < LEVEL]
    return len(set(clear)) > 1


def mix_distance(codes: Codes, first: Rows, second: Rows) -> float:
    """How many of the conversations of one side would have to change their kind to give the mix of the other."""
    if not first.any() or not second.any():
        return 0.0
    mixes = [counts / counts.sum() for counts in _mixes(codes, first, second)]
    return float(np.abs(mixes[0] - mixes[1]).sum() / 2)


def _mixes(codes: Codes, first: Rows, second: Rows) -> list[Floats]:
    size = int(codes.max()) + 2
    return [np.bincount(codes[rows] + 1, minlength=size).astype(np.float64) for rows in (first, second)]


def mix_probability(codes: Codes, first: Rows, second: Rows) -> float:
    """How likely so different mixes are by chance (Pearson)."""
    table = np.stack(_mixes(codes, first, second))
    table = table[:, table.sum(axis=0) > 0]
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return _chi_square_tail(float(((table - expected) ** 2 / expected).sum()), table.shape[1] - 1)


class _Explained(NamedTuple):
    """How far the figure goes with a kind, on each side by itself."""

    share: float
    """Of its spread."""
    p: float
    """How likely that is by chance."""


def _explained(codes: Codes, sample: FigureSample, first: Rows, second: Rows) -> _Explained:
    spread = between = 0.0
    degrees = 0
    statistic = 0.0
    for rows in (first, second):
        above, below = sample.above[rows], sample.below[rows]
        residuals = above - below * (above.sum() / below.sum())
        squares = float(np.sum(residuals**2))
        sums, counts = np.bincount(codes[rows] + 1, weights=residuals), np.bincount(codes[rows] + 1)
        seen = counts > 0
        of_kinds = float(np.sum(sums[seen] ** 2 / counts[seen]))
        spread, between = spread + squares, between + of_kinds
        statistic += of_kinds / squares * len(residuals) if squares else 0.0
        degrees += int(np.count_nonzero(seen)) - 1 if squares else 0
    return _Explained(between / spread if spread else 0.0, _chi_square_tail(statistic, degrees))


def _are_verdicts(values: Sequence[str]) -> bool:
    """Whether these are true and false, or pass and fail, in some spelling."""
    known = [value for value in values if value != NO_VALUE]
    return all(is_flag(value) or passed_in_words(value) is not None for value in known)


def _chi_square_tail(statistic: float, degrees: int) -> float:
    """The upper tail, by the cube root of Wilson and Hilferty."""
    if degrees < 1:
        return 1.0
    width = 2 / (9 * degrees)
    return math.erfc(((statistic / degrees) ** (1 / 3) - 1 + width) / math.sqrt(2 * width)) / 2


NEARLY_ALL = 0.95
"""From so many on, on both sides, it goes without saying how many have an outcome."""


class KnownOutcomes(NamedTuple):
    """How many of each set have an outcome."""

    first: int
    first_total: int
    second: int
    second_total: int
    is_even: bool
    """Both sets have about as many; then those with an outcome are compared."""


def coverage_of(sample: FigureSample, first: Rows, second: Rows) -> KnownOutcomes | None:
    """None where nearly all have one."""
    known = (sample.below > 0).astype(np.int64)
    totals = [int(np.count_nonzero(rows)) for rows in (first, second)]
    counts = [int(known[rows].sum()) for rows in (first, second)]
    if min(totals) == 0 or all(count >= NEARLY_ALL * total for count, total in zip(counts, totals, strict=True)):
        return None
    is_even = mix_distance(known, first, second) < OTHER_MIX or mix_probability(known, first, second) >= LEVEL
    return KnownOutcomes(counts[0], totals[0], counts[1], totals[1], is_even)


def worst_case(sample: FigureSample, talks: Rows, first: Rows, second: Rows, *, rises: bool) -> FigureSample:
    """The same as if all without an outcome spoke against a difference in this direction."""
    missing = talks & (sample.below == 0)
    above, below = sample.above.copy(), sample.below.copy()
    below[missing] = 1.0
    above[missing & (first if rises else second)] = 1.0
    return FigureSample(above, below)
