"""One sample of the semantic benchmark: what was predicted and what is true, brought to the words of the vocabulary.

Here the plain scorer meets the product: synonyms of topics and aliases of risk types are resolved, a label outside the
vocabulary stays and counts as wrong, and what an annotator does not provide is nobody's zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from convoscope.conversation import Annotations
from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.metrics.semantic.counts import (
    ActionCounts,
    PlainRisk,
    RiskCounts,
    lacks_severity,
    matched_counts,
    risk_counts,
    topic_counts,
)
from convoscope.metrics.semantic.matching import THRESHOLD, Match, match_at
from convoscope.scores.observation import Counts
from convoscope.vocabulary import SemanticVocabulary, semantic_vocabulary

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
