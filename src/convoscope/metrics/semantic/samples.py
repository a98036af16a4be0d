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

from convoscope.conversation import Annotations
from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.metrics.semantic.matching import THRESHOLD, Match, match_actions, match_at
from convoscope.scores.observation import Counts
from convoscope.vocabulary import SemanticVocabulary, label_form, semantic_vocabulary


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


FAILED = "annotation_failed"
NO_SEVERITY = "annotator_provides_no_severity"
_NOT_PROVIDED = {family: f"annotator_provides_no_{family}" for family in FAMILIES}
_NOT_IN_GOLD = {family: f"no_{family}_in_gold" for family in FAMILIES}


class PlainAction(NamedTuple):
    """An action as it is compared."""

    description: str
    verbatim: str = ""
    role: str = ""


class Labels(NamedTuple):
    """What one annotator, or gold, says of a sample. A family that is None was not labelled; `failed` says where that
    is because the annotator broke."""

    topics: tuple[str, ...] | None = None
    risks: tuple[PlainRisk, ...] | None = None
    actions: tuple[PlainAction, ...] | None = None
    provides_severity: bool = True
    failed: frozenset[str] = frozenset()
    failure: str = "annotation_failed"
    """Why the families failed that did."""


class SampleScore(NamedTuple):
    """What a sample comes to. What could not be measured is None, and `reasons` says why, by family."""

    topics: Counts | None
    risks: RiskCounts | None
    actions: ActionCounts | None
    reasons: Mapping[str, str]
    sweep: Sequence[tuple[Match, ...]] = ()
    """The matches of actions at further thresholds."""


def labels_of(annotations: Iterable[Annotations], *, min_confidence: float | None = None) -> Labels:
    """The labels of one annotator; what it said in parts, of chunks, is put together."""
    parts = list(annotations)
    vocabulary = semantic_vocabulary()

    def sure(confidence: float | None) -> bool:
        return min_confidence is None or confidence is None or confidence >= min_confidence

    topics = [one.topics for one in parts if one.topics is not None]
    risks = [one.risks for one in parts if one.risks is not None]
    actions = [one.actions for one in parts if one.actions is not None]
    return Labels(
        tuple(vocabulary.topic(one.label) for some in topics for one in some if sure(one.confidence))
        if topics
        else None,
        tuple(
            plain_risk(one.type, one.severity, one.events, vocabulary)
            for some in risks
            for one in some
            if sure(one.confidence)
        )
        if risks
        else None,
        tuple(
            PlainAction(one.description, one.verbatim, one.assignee_role)
            for some in actions
            for one in some
            if sure(one.confidence)
        )
        if actions
        else None,
        all(one.extraction.get(SEVERITY) != SKIPPED for one in parts),
        frozenset(family for one in parts for family in FAMILIES if one.extraction.get(family) in BROKEN),
    )


def plain_risk(kind: str, severity: str, place: Iterable[int], vocabulary: SemanticVocabulary) -> PlainRisk:
    """A risk in the words of the vocabulary. A severity that its type cannot have stays, and matches no gold."""
    return PlainRisk(vocabulary.risk(kind), severity.strip().lower(), tuple(place))


def score_sample(
    predicted: Labels,
    gold: Labels,
    threshold: float | Fraction = THRESHOLD,
    also: Sequence[float | Fraction] = (),
    *,
    run_has_severity: bool | None = None,
) -> SampleScore:
    """Count each family that both sides have; `also` are thresholds at which actions are matched beside.

    `run_has_severity`: whether the annotator gives severities in the run that the sample is of; None: the sample is
    all there is.
    """
    vocabulary = semantic_vocabulary()
    reasons = _reasons(predicted, gold)
    topics = risks = actions = None
    sweep: list[tuple[Match, ...]] = []
    if TOPICS not in reasons:
        topics = topic_counts(predicted.topics or (), gold.topics or ())
    if RISKS not in reasons:
        risks = risk_counts(
            predicted.risks or (),
            gold.risks or (),
            vocabulary.weights,
            without_severity=vocabulary.weight_without_severity,
            provides_severity=predicted.provides_severity if run_has_severity is None else run_has_severity,
            is_whole_run=run_has_severity is None,
        )
        if risks.weighted is None:
            reasons[SEVERITY] = NO_SEVERITY
    if ACTIONS not in reasons:
        mine, theirs = descriptions(predicted), descriptions(gold)
        matches, *sweep = match_at(mine, theirs, (threshold, *also))
        actions = matched_counts(mine, theirs, matches)
    return SampleScore(topics, risks, actions, reasons, sweep)


def why_not(predicted: Labels, gold: Labels, family: str) -> str:
    """Why a family cannot be measured; nothing where it can."""
    if getattr(gold, family) is None:
        return _NOT_IN_GOLD[family]
    if family in predicted.failed:
        return predicted.failure
    return _NOT_PROVIDED[family] if getattr(predicted, family) is None else ""


def of_one_run(predictions: Sequence[Labels]) -> list[Labels]:
    """Predictions of one annotator. A family that some samples have is one that it provides: where it lacks, the
    annotation failed, and did not find nothing. What no sample has is not provided."""
    given = [family for family in FAMILIES if any(getattr(one, family) is not None for one in predictions)]
    united: list[Labels] = []
    for labels in predictions:
        lacking = [family for family in given if getattr(labels, family) is None]
        united.append(labels._replace(failed=labels.failed.union(lacking)) if lacking else labels)
    return united


def has_severity(predictions: Sequence[Labels]) -> bool:
    """Whether an annotator gives severities: it does not say otherwise everywhere, and some risk has one if any is."""
    weights = semantic_vocabulary().weights
    made = [one for one in predictions if one.risks is not None]
    if made and not any(one.provides_severity for one in made):
        return False
    return not lacks_severity([risk for one in made for risk in one.risks or ()], weights)


def _reasons(predicted: Labels, gold: Labels) -> dict[str, str]:
    if not predicted.failed and None not in predicted[:3] and None not in gold[:3]:
        return {}
    return {family: why for family in FAMILIES if (why := why_not(predicted, gold, family))}


def descriptions(labels: Labels) -> list[str]:
    """The descriptions of the actions, in order."""
    return [one.description for one in labels.actions or ()]


class RightOfAll(NamedTuple):
    """How many are right of how many that could be."""

    right: int
    total: int


def assignees(predicted: Labels, gold: Labels, actions: ActionCounts) -> RightOfAll:
    """Of the matched actions whose gold has a role: how many have the same one. The role is no part of the match."""
    mine, theirs = predicted.actions or (), gold.actions or ()
    pairs = [(mine[one.predicted].role, theirs[one.gold].role) for one in actions.matches if theirs[one.gold].role]
    return RightOfAll(sum(role == true for role, true in pairs), len(pairs))


def wordings(labels: Labels) -> list[tuple[str, str]]:
    """Description and verbatim of the actions, in order."""
    return [(one.description, one.verbatim) for one in labels.actions or ()]


def segment_overlap(predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk]) -> RightOfAll:
    """Of the gold risks whose type was found: how many were found in one of their segments. Where a risk stands never
    decides a match."""
    places: dict[str, set[int]] = {}
    for risk in predicted:
        places.setdefault(risk.type, set()).update(_segments(risk))
    located = [one for one in gold if one.type in places and _segments(one)]
    return RightOfAll(sum(not places[one.type].isdisjoint(_segments(one)) for one in located), len(located))


def _segments(risk: PlainRisk) -> tuple[int, ...]:
    return risk.place if isinstance(risk.place, tuple) else ()
