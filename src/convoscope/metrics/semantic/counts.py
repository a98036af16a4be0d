"""What was found rightly, found wrongly and missed: topics, risks and actions of one sample. The plain scorer.

These functions take labels as they are compared. What a label of somebody else means is decided before
(`convoscope.metrics.semantic.samples`): here are no synonyms, no aliases and no limits of severities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from convoscope.metrics.semantic.matching import THRESHOLD, Match, match_actions
from convoscope.scores.observation import Counts
from convoscope.vocabulary.semantic import label_form


class PlainRisk(NamedTuple):
    """A risk as it is compared. `place` is whatever tells two risks of one type and severity apart."""

    type: str
    severity: str = ""
    place: Hashable = None


class RiskCounts(NamedTuple):
    """The risks of a sample, counted in four ways. Without severities in the predictions the weighted are None."""

    overall: Counts
    by_severity: Mapping[str, Counts]
    weighted: Counts | None
    weighted_type_only: Counts | None


class ActionCounts(NamedTuple):
    """The actions of a sample, and which is which."""

    counts: Counts
    matches: tuple[Match, ...]


def precision(counts: Counts) -> float | None:
    """TP ÷ predicted; None where nothing was predicted."""
    return counts.tp / (counts.tp + counts.fp) if counts.tp + counts.fp else None


def recall(counts: Counts) -> float | None:
    """TP ÷ gold; None where there is nothing to find."""
    return counts.tp / (counts.tp + counts.fn) if counts.tp + counts.fn else None


def topic_counts(predicted: Iterable[str], gold: Iterable[str]) -> Counts:
    """Topics are a set: one that is talked about twice is one topic. Empty labels are none."""
    mine, theirs = topic_set(predicted), topic_set(gold)
    both = len(mine & theirs)
    return Counts(both, len(mine) - both, len(theirs) - both)


def topic_set(labels: Iterable[str]) -> set[str]:
    """The labels in their plain form."""
    return {form for label in labels if (form := label_form(label))}


def risk_counts(
    predicted: Iterable[PlainRisk],
    gold: Iterable[PlainRisk],
    weights: Mapping[str, float],
    *,
    without_severity: float = 1.0,
    provides_severity: bool = True,
) -> RiskCounts:
    """Risks are a multiset by type, after identical ones are taken as one. Where they stand never decides.

    Weighted: a pair needs type and severity; what is wrong weighs by its predicted severity, what is missed by gold's.
    Nothing can be weighed where no prediction has a severity that is known.
    """
    mine, theirs = [*dict.fromkeys(predicted)], [*dict.fromkeys(gold)]
    types_mine, types_theirs = Counter(one.type for one in mine), Counter(one.type for one in theirs)
    both_mine, both_theirs = Counter(map(_pair, mine)), Counter(map(_pair, theirs))
    by_severity = {severity: _counted(_only(both_mine, severity), _only(both_theirs, severity)) for severity in weights}
    overall = _counted(types_mine, types_theirs)
    if not provides_severity or (mine and not any(one.severity in weights for one in mine)):
        return RiskCounts(overall, by_severity, None, None)

    weighed = weigh(mine, theirs, weights, without_severity=without_severity)
    return RiskCounts(overall, by_severity, weighed.with_severity, weighed.type_only)


class Weighed(NamedTuple):
    """Risks counted by weight: a hit needs type and severity, or the type alone."""

    with_severity: Counts
    type_only: Counts


def weigh(
    predicted: Iterable[PlainRisk],
    gold: Iterable[PlainRisk],
    weights: Mapping[str, float],
    *,
    without_severity: float = 1.0,
) -> Weighed:
    """What is wrong weighs by its predicted severity, what is missed by gold's; a severity that is unknown, as one
    that is not given, never agrees."""
    mine, theirs = [*dict.fromkeys(predicted)], [*dict.fromkeys(gold)]

    def weight(severity: str) -> float:
        return weights.get(severity, without_severity)

    both_mine, both_theirs = Counter(map(_pair, mine)), Counter(map(_pair, theirs))
    shared = {pair: min(count, both_theirs[pair]) for pair, count in both_mine.items() if pair[1] in weights}
    with_severity = Counts(
        sum(weight(severity) * count for (_, severity), count in shared.items()),
        sum(weight(pair[1]) * (count - shared.get(pair, 0)) for pair, count in both_mine.items()),
        sum(weight(pair[1]) * (count - shared.get(pair, 0)) for pair, count in both_theirs.items()),
    )
    kinds = sorted({one.type for one in (*mine, *theirs)})
    return Weighed(with_severity, sum_of([_weighed_by_type(kind, mine, theirs, weight) for kind in kinds]))


def action_counts(
    predicted: Sequence[str], gold: Sequence[str], threshold: float | Fraction = THRESHOLD
) -> ActionCounts:
    """Actions are matched one to one by their descriptions. One without a text counts, and is never matched."""
    matches = match_actions(predicted, gold, threshold)
    pairs = len(matches)
    return ActionCounts(Counts(pairs, len(predicted) - pairs, len(gold) - pairs), matches)


def sum_of(counts: Collection[Counts]) -> Counts:
    """The counts of all together."""
    return Counts(sum(one.tp for one in counts), sum(one.fp for one in counts), sum(one.fn for one in counts))


def _pair(risk: PlainRisk) -> tuple[str, str]:
    return risk.type, risk.severity


def _only(pairs: Mapping[tuple[str, str], int], severity: str) -> Counter[str]:
    return Counter({kind: count for (kind, level), count in pairs.items() if level == severity})


def _counted(mine: Counter[str], theirs: Counter[str]) -> Counts:
    both = (mine & theirs).total()
    return Counts(both, mine.total() - both, theirs.total() - both)


def _weighed_by_type(
    kind: str, predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk], weight: Callable[[str], float]
) -> Counts:
    """Type-only pairs of one type, weighed by gold's severity: first those that agree on it, then the heaviest."""
    mine = Counter(one.severity for one in predicted if one.type == kind)
    theirs = Counter(one.severity for one in gold if one.type == kind)
    agreed = mine & theirs
    free_mine = sorted((mine - agreed).elements(), key=lambda one: (-weight(one), one))
    free_theirs = sorted((theirs - agreed).elements(), key=lambda one: (-weight(one), one))
    pairs = min(len(free_mine), len(free_theirs))
    return Counts(
        sum(map(weight, [*agreed.elements(), *free_theirs[:pairs]])),
        sum(map(weight, free_mine[pairs:])),
        sum(map(weight, free_theirs[pairs:])),
    )
