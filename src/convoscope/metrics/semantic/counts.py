"""What was found rightly, found wrongly and missed: topics, risks and actions of one sample. The plain scorer.

These functions take labels as they are compared. What a label of somebody else means is decided before
(`convoscope.metrics.semantic.samples`): here are no synonyms, no aliases and no limits of severities.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

from convoscope.metrics.semantic.matching import THRESHOLD, Match, match_actions
from convoscope.scores.observation import Counts
from convoscope.vocabulary import label_form


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
    is_whole_run: bool = True,
) -> RiskCounts:
    """Risks are a multiset by type, after identical ones are taken as one. Where they stand never decides.

    Weighted: a pair needs type and severity; what is wrong weighs by its predicted severity, what is missed by gold's.
    Nothing can be weighed where no prediction of the whole run has a severity that is known. If other samples of the
    run have some, `provides_severity` says so, and what has none here is wrong.
    """
    mine, theirs = dict.fromkeys(predicted), dict.fromkeys(gold)
    tally = _tally(mine, theirs, weights, without_severity)
    if not provides_severity or (is_whole_run and lacks_severity(mine, weights)):
        return RiskCounts(tally.overall, tally.by_severity, None, None)
    return tally


def lacks_severity(risks: Collection[PlainRisk], weights: Mapping[str, float]) -> bool:
    """Whether there are risks, and none has a severity that is known."""
    return bool(risks) and not any(one.severity in weights for one in risks)


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
    tally = _tally(dict.fromkeys(predicted), dict.fromkeys(gold), weights, without_severity)
    return Weighed(tally.weighted or _NOTHING, tally.weighted_type_only or _NOTHING)


_NOTHING = Counts(0, 0, 0)


def _tally(
    predicted: Iterable[PlainRisk], gold: Iterable[PlainRisk], weights: Mapping[str, float], without_severity: float
) -> RiskCounts:
    """Everything in one pass over the types, for there may be very many samples."""
    types: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for side, risks in enumerate((predicted, gold)):
        for kind, severity, _ in risks:
            levels = types.setdefault(kind, ({}, {}))[side]
            levels[severity] = levels.get(severity, 0) + 1
    if not types:
        return _nothing(tuple(weights))
    overall, weighted, type_only = [0, 0, 0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    by_severity: dict[str, list[int]] = {}
    for kind in sorted(types) if len(types) > 1 else types:
        mine, theirs = types[kind]
        _add(overall, sum(mine.values()), sum(theirs.values()))
        for severity in {**mine, **theirs}:
            wrong, missed = mine.get(severity, 0), theirs.get(severity, 0)
            weight = weights.get(severity)
            if weight is None:  # it agrees with none
                weighted[1] += without_severity * wrong
                weighted[2] += without_severity * missed
            else:
                _add(by_severity.setdefault(severity, [0, 0, 0]), wrong, missed)
                _add(weighted, wrong, missed, weight)
        _add_by_type(type_only, mine, theirs, weights, without_severity)
    levels_counted = dict.fromkeys(weights, _NOTHING)
    for severity, counts in by_severity.items():
        levels_counted[severity] = Counts(*counts)
    return RiskCounts(Counts(*overall), levels_counted, Counts(*weighted), Counts(*type_only))


@cache
def _nothing(severities: tuple[str, ...]) -> RiskCounts:
    return RiskCounts(_NOTHING, dict.fromkeys(severities, _NOTHING), _NOTHING, _NOTHING)


def _add(counts: list[Any], predicted: int, gold: int, weight: float = 1) -> None:
    both = min(predicted, gold)
    counts[0] += weight * both
    counts[1] += weight * (predicted - both)
    counts[2] += weight * (gold - both)


def _add_by_type(
    counts: list[float],
    predicted: Mapping[str, int],
    gold: Mapping[str, int],
    weights: Mapping[str, float],
    without_severity: float,
) -> None:
    """Type-only pairs of one type, weighed by gold's severity: first those that agree on it, then the heaviest."""
    if not predicted or not gold or predicted == gold:  # most have one side, or agree
        place = 2 if not predicted else 1 if not gold else 0
        for severity, count in (gold or predicted).items():
            counts[place] += weights.get(severity, without_severity) * count
        return

    def weight(severity: str) -> float:
        return weights.get(severity, without_severity)

    mine, theirs = Counter(predicted), Counter(gold)
    agreed = mine & theirs
    free_mine = sorted((mine - agreed).elements(), key=lambda one: (-weight(one), one))
    free_theirs = sorted((theirs - agreed).elements(), key=lambda one: (-weight(one), one))
    pairs = min(len(free_mine), len(free_theirs))
    counts[0] += sum(map(weight, [*agreed.elements(), *free_theirs[:pairs]]))
    counts[1] += sum(map(weight, free_mine[pairs:]))
    counts[2] += sum(map(weight, free_theirs[pairs:]))


def action_counts(
    predicted: Sequence[str], gold: Sequence[str], threshold: float | Fraction = THRESHOLD
) -> ActionCounts:
    """Actions are matched one to one by their descriptions. One without a text counts, and is never matched."""
    return matched_counts(predicted, gold, match_actions(predicted, gold, threshold))


def matched_counts(predicted: Sequence[str], gold: Sequence[str], matches: tuple[Match, ...]) -> ActionCounts:
    """The counts of a matching."""
    pairs = len(matches)
    return ActionCounts(Counts(pairs, len(predicted) - pairs, len(gold) - pairs), matches)


def sum_of(counts: Collection[Counts]) -> Counts:
    """The counts of all together."""
    return Counts(sum(one.tp for one in counts), sum(one.fp for one in counts), sum(one.fn for one in counts))
