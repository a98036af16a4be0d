"""Versions of an agent and groups of conversations that differ, within what, and where the data do not decide.

They are compared by pairs of a scenario where they share scenarios. Where they do not, and another dimension has
another mix in each, they are compared within its values: a difference is claimed only if it holds there. The
probabilities of many groups are corrected by Holm.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Sequence, Set
from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.comparison import (
    MIN_CLUSTERS,
    GroupComparison,
    Kind,
    KnownOutcomes,
    PairRows,
    Rows,
    Strata,
    compare_within,
    coverage_of,
    kinds_of,
    pair_rows,
    paired,
    redrawn,
    usual_values,
    whole,
    worst_case,
)
from convoscope.analysis.answer.model import GroupApart, Noun, metric_label
from convoscope.analysis.answer.samples import ConversationArrays, Samples, wait_units
from convoscope.analysis.words import counted, cut_text, name_text, value_text
from convoscope.metrics.declaration import AXES, HIGHER, NEITHER, SECONDS, SHARE
from convoscope.metrics.registry import PUBLISHED, parent_metric
from convoscope.runs.ranking import OUTCOME_METRIC
from convoscope.runs.reliability import claims_nothing
from convoscope.runs.summary import DeclaredMetric, Group, Summary
from convoscope.statistics.differences import LEVEL, Codes, FigureSample, distinct, holm
from convoscope.statistics.intervals import Z
from convoscope.statistics.summary import Figure
from convoscope.views.background import is_version

VERSIONS = ("version", "agent_version", "prompt_version", "release", "build", "agent", "model", "variant", "experiment")
"""Dimensions whose values are versions of an agent, the first that has two; then any whose name says so."""
SHARED_USERS = 0.9
"""Of the conversations of each side: from so many on, users who talk with both versions make no difference."""
LEAST_IMPORTANCE = 5
"""Of what is said of groups: that one of them takes fewer words is no verdict."""
LEAST_CONVERSATIONS = 10
ROUNDS = 10_000
"""Permutations that a difference between versions must survive."""


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


def compare_versions(summary: Summary, samples: Samples, *, trust_judges: bool = False) -> Versions | None:
    """None where the run has no two versions."""
    pair = version_pair(summary)
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
    clusters = clusters_of(samples, first, second)
    users = [(one, distinct(clusters[rows])) for one, rows in ((before, first), (after, second))]
    if (few_users := [one for one in users if one[1] < MIN_CLUSTERS]) and samples.users[first | second].max() >= 0:
        return Versions(name, before, after, few_users=tuple(few_users))
    names = version_names(samples.dimension_names)
    figures = compared_figures(summary, samples, trust_judges)
    compared = list(differences(figures, samples, first, second, names, ROUNDS))
    kept = _claimed([one.p for one in compared])
    seeming = _claimed([one.raw.p for one in compared])
    claimed: list[Difference] = []
    explained: list[Difference] = []
    undecided: list[Difference] = []
    for difference, holds, seems in zip(compared, kept, seeming, strict=True):
        (claimed if holds else explained if seems or difference.mixed else undecided).append(difference)
    for kind in (claimed, explained, undecided):
        kind.sort(key=lambda one: (-one.declared.importance, one.p))
    return Versions(name, before, after, claimed, explained, undecided)


def _claimed(probabilities: Sequence[float]) -> list[bool]:
    """Which of many differences hold, if the chance of any false one is to stay at 5 %."""
    return [p <= LEVEL for p in holm(probabilities)]


def version_names(names: Collection[str]) -> list[str]:
    """The dimensions whose values are versions of an agent, the likeliest first."""
    return [*VERSIONS, *sorted(name for name in names if name not in VERSIONS and is_version(name))]


def version_pair(summary: Summary) -> tuple[str, Group, Group] | None:
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


def compared_figures(summary: Summary, samples: Samples, trust_judges: bool) -> list[tuple[Figure, DeclaredMetric]]:
    """The figures that groups are compared in.

    No seconds where their unit is in doubt, and nothing of a judge that is not calibrated.
    """
    are_two = wait_units(summary, samples).are_two
    return [
        one
        for one in comparable(summary)
        if not (are_two and one[0].unit == SECONDS) and not claims_nothing(summary, one[0], trust_judges=trust_judges)
    ]


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


def clusters_of(samples: ConversationArrays, first: Rows, second: Rows) -> Codes:
    """What is independent between two sets. Few users who talk with both, such as tenants, are kinds, not clusters."""
    sides = [np.unique(samples.users[rows & (samples.users >= 0)]) for rows in (first, second)]
    shared = np.isin(samples.users, np.intersect1d(sides[0], sides[1]))
    few = min(distinct(samples.clusters[rows]) for rows in (first, second)) < MIN_CLUSTERS
    if few and min(np.mean(shared[first]), np.mean(shared[second])) >= SHARED_USERS:
        return np.arange(samples.count, dtype=np.int64)
    return samples.clusters


def differences(
    figures: Sequence[tuple[Figure, DeclaredMetric]],
    samples: ConversationArrays,
    first: Rows,
    second: Rows,
    but: Collection[str],
    rounds: int = 0,
) -> Iterator[Difference]:
    """The second set against the first in each figure, within other fields of which the mix differs.

    `rounds`: permutations that a difference must survive, too.
    """
    if not (first.any() and second.any()):
        return
    kinds = list(kinds_of(samples, first | second, but))
    clusters = clusters_of(samples, first, second)
    pairs = pair_rows(samples, first, second)
    for figure, declared in figures:
        sample = samples.of(figure)
        if sample is None:
            continue
        codes = _Codes(samples.scenarios, clusters, kinds, pairs)
        difference = _difference(figure, declared, sample, codes, first, second, rounds)
        if difference is not None and figure.key == OUTCOME_METRIC:
            difference = _covered(difference, sample, samples, clusters, first, second)
        if difference is not None:
            yield difference


class _Codes(NamedTuple):
    """What belongs together: conversations of a scenario, of a cluster, of a kind."""

    scenarios: Codes
    clusters: Codes
    kinds: Sequence[Kind]
    pairs: PairRows | None


def _difference(
    figure: Figure,
    declared: DeclaredMetric,
    sample: FigureSample,
    codes: _Codes,
    first: Rows,
    second: Rows,
    rounds: int,
) -> Difference | None:
    scenarios, clusters, kinds, pairs = codes
    raw = None if pairs is None else paired(sample, pairs.first, pairs.second, scenarios)
    if raw is not None and pairs is not None:
        p = redrawn(raw, sample, pairs.first, pairs.second, scenarios, rounds)
        return Difference(figure, declared, raw._replace(p=p), p=p)
    raw = whole(sample, first, second, clusters)
    if raw is None:
        return None
    raw = raw._replace(p=redrawn(raw, sample, first, second, clusters, rounds))
    within = compare_within(raw, sample, clusters, kinds, first, second)
    return Difference(figure, declared, raw, within.strata, within.p, within.mixed, within.apart)


def _covered(
    difference: Difference,
    sample: FigureSample,
    samples: ConversationArrays,
    clusters: Codes,
    first: Rows,
    second: Rows,
) -> Difference:
    """Where one side knows far fewer outcomes, a difference must hold whatever the unknown ones are."""
    coverage = coverage_of(sample, first & samples.talks, second & samples.talks)
    if coverage is None or coverage.is_even:
        return difference._replace(coverage=coverage)
    filled = worst_case(sample, samples.talks, first, second, rises=difference.comparison.difference > 0)
    pairs = pair_rows(samples, first, second)
    if difference.raw.pairs and pairs is not None:
        worst = paired(filled, pairs.first, pairs.second, samples.scenarios)
    else:
        worst = whole(filled, first, second, clusters)
    holds = worst is not None and worst.difference * difference.comparison.difference > 0
    return difference._replace(coverage=coverage, p=max(difference.p, worst.p) if worst is not None and holds else 1.0)


MOST = 5
MAX_NAMED = 8
MAX_LETTERS = 70
ALIKE_SHARE = 0.05
"""Points of a share within which two groups are alike."""
ALIKE_PART = 0.1
"""Of other values, the part of the value."""


class Groups(NamedTuple):
    """Those that stand apart, and sentences on the others."""

    apart: tuple[GroupApart, ...]
    alike: str


_Figures = Sequence[tuple[Figure, DeclaredMetric]]


class _Look(NamedTuple):
    """One group in one figure, held against the rest."""

    group: Group
    difference: Difference
    reference: str = "of the others"


def groups_apart(
    summary: Summary, noun: Noun, samples: Samples, versions: Versions | None, *, trust_judges: bool = False
) -> Groups:
    """Groups whose figure differs from that of the others, corrected by Holm; of two opposite groups only the worse."""
    versioned = _names_of_versions(summary, samples, versions)
    figures = compared_figures(summary, samples, trust_judges)
    looks = [*_of_conversations(summary, samples, versioned, figures), *_of_subjects(summary, samples, figures)]
    kept = _claimed([one.difference.p for one in looks])
    apart = [_apart(one, noun) for one, holds in zip(looks, kept, strict=True) if holds and one.difference.worse]
    if versions is not None:
        apart += _versions_apart(summary, versions, noun)
    order = {
        (tuple(look.group.by.items()), name_text(look.difference.figure)): (
            look.difference.p,
            look.group.conversations,
        )
        for look in looks
    }
    apart.sort(key=lambda group: order.get((tuple(group.by.items()), group.figure), (0.0, 0)))
    first = {tuple(one.by.items()): one for one in reversed(apart)}  # of each group the surest difference
    shown = [one for one in apart if first[tuple(one.by.items())] is one]
    differs = {tuple(one.group.by.items()) for one, holds in zip(looks, kept, strict=True) if holds}
    # The verdict says it of the versions already.
    says_few = versions is None or not versions.too_few
    others = _others(summary, looks, {*first, *differs}, versioned, noun, says_few=says_few)
    return Groups(tuple(shown[:MOST]), others)


def _names_of_versions(summary: Summary, samples: Samples, versions: Versions | None) -> set[str]:
    """The dimension of the versions, which the verdict compares, and those that only name them otherwise."""
    if versions is None:
        return set()
    codes = samples.dimension(versions.dimension).codes
    names = {name for group in summary.groups if len(group.by) == 1 for name in group.by if name not in AXES}
    same = set()
    for name in names:
        other = samples.dimension(name).codes
        pairs = len(np.unique((codes + 1) * (other.max() + 2) + other))
        if pairs == distinct(codes) == distinct(other):
            same.add(name)
    return same


def _of_conversations(summary: Summary, samples: Samples, but: Set[str], figures: _Figures) -> Iterator[_Look]:
    """Groups of conversations, each against all others that have a value of these dimensions.

    Where the mix of other dimensions differs, the group is compared within them.
    """
    for group in summary.groups:
        if any(name in AXES for name in group.by) or not but.isdisjoint(group.by) or "scenario_id" in group.by:
            continue
        if not LEAST_CONVERSATIONS <= group.conversations < summary.conversations:
            continue
        dimensions = [(samples.dimension(name), value) for name, value in group.by.items()]
        known = np.logical_and.reduce([dimension.codes >= 0 for dimension, _ in dimensions])
        inside = np.logical_and.reduce(
            [dimension.codes == dimension.values.index(value) for dimension, value in dimensions]
        )
        for difference in differences(figures, samples, known & ~inside, inside, tuple(group.by)):
            yield _Look(group, difference)


def _of_subjects(summary: Summary, samples: Samples, figures: _Figures) -> Iterator[_Look]:
    """Groups of topics, slots and the like, by their own figures, against the figure of all; states have a screen."""
    whole = {name_text(figure): (figure, declared) for figure, declared in figures}
    for group in summary.groups:
        if not any(name in AXES for name in group.by) or "state" in group.by:
            continue
        if not LEAST_CONVERSATIONS <= group.conversations < summary.conversations:
            continue
        for figure in group.metrics:
            reference, declared = whole.get(name_text(figure), (None, None))
            interval = figure.interval
            if reference is None or declared is None or interval is None or interval.clusters < MIN_CLUSTERS:
                continue
            error = (interval.highest - interval.lowest) / (2 * Z)
            difference = (figure.value or 0.0) - (reference.value or 0.0)
            p = math.erfc(abs(difference) / error / math.sqrt(2)) if 0 < error < math.inf else 1.0
            if p < LEVEL:
                p = max(p, *_within_kinds(figure, reference, group, samples, difference, error), 0.0)
            values, clusters = (reference.value or 0.0, figure.value or 0.0), interval.clusters
            compared = GroupComparison(*values, error, clusters - 1.0, p, clusters)
            yield _Look(group, Difference(figure, declared, compared, p=p), "of all")


def _within_kinds(
    figure: Figure, reference: Figure, group: Group, samples: Samples, difference: float, error: float
) -> Iterator[float]:
    """How likely the difference is by chance, if all had the kinds of conversations that have this subject."""
    kind, subject = next((name, value) for name, value in group.by.items() if name in AXES)
    whole = samples.of(reference)
    if whole is None:
        return
    kinds = list(kinds_of(samples, np.ones(samples.count, dtype=np.bool_), tuple(group.by)))
    for usual in usual_values(whole, samples.of_subject(figure, kind, subject), kinds):
        left = (figure.value or 0.0) - usual
        yield math.erfc(abs(left) / error / math.sqrt(2)) if left * difference > 0 else 1.0


def _apart(look: _Look, noun: Noun) -> GroupApart:
    difference = look.difference
    unit, compared = difference.figure.unit, difference.comparison
    values = f"{value_text(compared.second, unit)} against {value_text(compared.first, unit)} {look.reference}"
    label = metric_label(difference.declared, noun)
    return GroupApart(
        by=look.group.by,
        conversations=look.group.conversations,
        sentence=f"{_where(look.group.by)}: {label} {values}{within_text(difference)}{_caution(difference, noun)}",
        worse=True,
        figure=name_text(difference.figure),
    )


def _caution(difference: Difference, noun: Noun) -> str:
    """That all conversations together say the opposite, and why; or that the cause cannot be separated."""
    strata, raw, unit = difference.strata, difference.raw, difference.figure.unit
    if strata is not None and difference.is_reversed:
        values = f"{value_text(raw.second, unit)} against {value_text(raw.first, unit)}"
        return f"; together {values}, because it has more {cut_text(strata.more_of, 24)} {noun}s"
    return _apart_text(difference)


def _apart_text(difference: Difference) -> str:
    return f"; but their {difference.apart}s differ too, so the cause is not known" if difference.apart else ""


def _where(by: dict[str, str]) -> str:
    return " and ".join(f"{name} {cut_text(value, 40)}" for name, value in by.items())


def _versions_apart(summary: Summary, versions: Versions, noun: Noun) -> Iterator[GroupApart]:
    """Of two versions, the one that is worse, in what was claimed."""
    name = versions.dimension
    sizes = {group.by[name]: group.conversations for group in summary.groups if list(group.by) == [name]}
    in_verdict = [next((one for one in versions.claimed if one.worse == worse), None) for worse in (True, False)]
    for difference in versions.claimed:
        compared, unit = difference.comparison, difference.figure.unit
        value, other = versions.after, versions.before
        this, that = compared.second, compared.first
        if not difference.worse:
            value, other, this, that = other, value, that, this
        by = {versions.dimension: value}
        held = f"{within_text(difference)}{_apart_text(difference)}"
        words = f"{value_text(this, unit)} against {value_text(that, unit)} of {cut_text(other, 40)}"
        yield GroupApart(
            by=by,
            conversations=sizes[value],
            sentence=f"{_where(by)}: {metric_label(difference.declared, noun)} {words}{held}",
            worse=True,
            figure=name_text(difference.figure),
            in_verdict=any(difference is one for one in in_verdict),
        )


def within_text(difference: Difference) -> str:
    """What a comparison was held within, if anything."""
    if difference.raw.pairs:
        return f", in {counted(difference.raw.pairs, 'shared scenario')}"
    return f", within {difference.strata.by}" if difference.strata is not None else ""


_By = tuple[tuple[str, str], ...]


def _others(
    summary: Summary, looks: Sequence[_Look], unlike: Set[_By], versioned: Set[str], noun: Noun, *, says_few: bool
) -> str:
    """Which groups are known to be alike in the figure that matters most, which are open, which are too few."""
    alike: dict[str, None] = {}
    unclear: dict[str, dict[str, None]] = {"No clear difference yet": {}}
    few: dict[str, None] = {}
    label = ""
    by_group: dict[_By, list[_Look]] = {}
    for look in looks:
        by_group.setdefault(tuple(look.group.by.items()), []).append(look)
    for group in summary.groups:
        key = tuple(group.by.items())
        # Of pairs, states and scenarios there are many: other screens show them. The verdict speaks of versions.
        if len(key) != 1 or key in unlike or key[0][0] in {*AXES, *versioned, "scenario_id"}:
            continue
        name = cut_text(key[0][1], 20)
        if not by_group.get(key):
            if group.conversations < summary.conversations:
                few[f"{name} ({group.conversations:,})"] = None
            continue
        main = max((one.difference for one in by_group[key]), key=lambda one: one.declared.importance)
        if _is_alike(main):
            alike[name] = None
            label = metric_label(main.declared, noun)
        else:
            unclear.setdefault(_why_unclear(main), {})[f"{name} (n {group.conversations:,})"] = None
    parts = [
        f"Like the others in {label}: {_listed(alike)}." if alike else "",
        *(f"{why}: {_listed(names)}." for why, names in unclear.items() if names),
        f"Too few to compare: {_listed(few)}." if few and says_few else "",
    ]
    return " ".join(filter(None, parts))


def _is_alike(difference: Difference) -> bool:
    """Whether it is known that the difference is small, whatever the kind of conversation."""
    if difference.mixed is not None or difference.apart:
        return False
    is_share = difference.figure.unit == SHARE
    compared = {difference.comparison, difference.raw}
    margins = [ALIKE_SHARE if is_share else ALIKE_PART * abs(one.first) for one in compared]
    return all(one.lies_within(margin, bounded=is_share) for one, margin in zip(compared, margins, strict=True))


def _why_unclear(difference: Difference) -> str:
    """What is known of a difference that is not claimed."""
    if difference.mixed is not None:
        return f"Better or worse than the others by {difference.mixed.by}"
    if difference.strata is not None:
        return f"No clear difference yet within {difference.strata.by}"
    return "No clear difference yet"


def _listed(names: dict[str, None]) -> str:
    """As many as fit into a short sentence, and how many more there are."""
    shown = list(names)
    while len(shown) > 1 and (len(shown) > MAX_NAMED or sum(len(name) + 2 for name in shown) > MAX_LETTERS):
        shown.pop()
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {counted(more, 'other')}" if more else "")
