"""One sample of topics, risks and actions: what was found rightly, found wrongly and missed.

`topic_counts`, `risk_counts` and `action_counts` take labels as they are compared. `labels_of` brings annotations to
the vocabulary first: synonyms and aliases are resolved, a label outside of it counts as wrong. What an annotator does
not provide is not measured, and never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from convoscope.annotate.annotator import ANNOTATION_FAILED, failure_of
from convoscope.conversation import Annotations, Risk
from convoscope.conversation.annotations import ACTIONS, BROKEN, FAMILIES, RISKS, SEVERITY, SKIPPED, TOPICS
from convoscope.metrics.semantic.matching import THRESHOLD, Match, match_actions, match_at
from convoscope.scores.observation import Counts
from convoscope.vocabulary import label_form, semantic_vocabulary

FAILED = ANNOTATION_FAILED
INVALID_GOLD = "invalid_gold_labels"
NO_SEVERITY = "annotator_provides_no_severity"


class PlainRisk(NamedTuple):
    """A risk as it is compared. `segment` is whatever distinguishes two risks of one type and severity."""

    type: str
    severity: str = ""
    segment: Hashable = None


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
    failure: str = FAILED
    """Why the families failed that did."""


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


class SampleScore(NamedTuple):
    """What a sample comes to. What could not be measured is None, and `reasons` says why, by family."""

    topics: Counts | None
    risks: RiskCounts | None
    actions: ActionCounts | None
    reasons: Mapping[str, str]
    sweep: Sequence[tuple[Match, ...]] = ()
    """The matches of actions at further thresholds."""


class RightOfAll(NamedTuple):
    """How many are right of how many that could be."""

    right: int
    total: int


def precision(counts: Counts) -> float | None:
    """TP ÷ predicted; None where nothing was predicted."""
    return counts.tp / (counts.tp + counts.fp) if counts.tp + counts.fp else None


def recall(counts: Counts) -> float | None:
    """TP ÷ gold; None where there is nothing to find."""
    return counts.tp / (counts.tp + counts.fn) if counts.tp + counts.fn else None


def sum_of(counts: Collection[Counts]) -> Counts:
    """The counts of all together."""
    return Counts(*map(sum, zip(*counts, strict=True))) if counts else _NOTHING


_NOTHING = Counts(0, 0, 0)


def topic_counts(predicted: Iterable[str], gold: Iterable[str]) -> Counts:
    """Topics are a set: one that is talked about twice is one topic. Empty labels do not count."""
    predicted_set, gold_set = topic_set(predicted), topic_set(gold)
    both = len(predicted_set & gold_set)
    return Counts(both, len(predicted_set) - both, len(gold_set) - both)


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
    """Risks are a multiset by type, after identical ones are taken as one. Their place never decides.

    Weighted: a pair needs type and severity; what is wrong weighs by its predicted severity, what is missed by gold's.
    Nothing can be weighed where no prediction of the whole run has a severity that is known. If other samples of the
    run have some, `provides_severity` says so, and what has none here is wrong.
    """
    predicted_risks, gold_risks = dict.fromkeys(predicted), dict.fromkeys(gold)
    counts = weigh(predicted_risks, gold_risks, weights, without_severity=without_severity)
    if not provides_severity or (is_whole_run and _lacks_severity(predicted_risks, weights)):
        return counts._replace(weighted=None, weighted_type_only=None)
    return counts


def _lacks_severity(risks: Collection[PlainRisk], weights: Mapping[str, float]) -> bool:
    """Whether there are risks, and none has a severity that is known."""
    return bool(risks) and not any(risk.severity in weights for risk in risks)


def weigh(
    predicted: Iterable[PlainRisk],
    gold: Iterable[PlainRisk],
    weights: Mapping[str, float],
    *,
    without_severity: float = 1.0,
) -> RiskCounts:
    """All four counts in one pass over the types, for there may be very many samples.

    A severity that is unknown, like one that is not given, never agrees.
    """
    types: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
    for side, risks in enumerate((dict.fromkeys(predicted), dict.fromkeys(gold))):
        for kind, severity, _ in risks:
            levels = types.setdefault(kind, ({}, {}))[side]
            levels[severity] = levels.get(severity, 0) + 1
    if not types:
        return RiskCounts(_NOTHING, dict.fromkeys(weights, _NOTHING), _NOTHING, _NOTHING)
    overall, weighted, type_only = [0, 0, 0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]
    by_severity: dict[str, list[int]] = {}
    for kind in sorted(types) if len(types) > 1 else types:
        predicted_levels, gold_levels = types[kind]
        _add(overall, sum(predicted_levels.values()), sum(gold_levels.values()))
        for severity in {**predicted_levels, **gold_levels}:
            wrong, missed = predicted_levels.get(severity, 0), gold_levels.get(severity, 0)
            weight = weights.get(severity)
            if weight is None:  # it agrees with none
                weighted[1] += without_severity * wrong
                weighted[2] += without_severity * missed
            else:
                _add(by_severity.setdefault(severity, [0, 0, 0]), wrong, missed)
                _add(weighted, wrong, missed, weight)
        _add_by_type(type_only, predicted_levels, gold_levels, lambda level: weights.get(level, without_severity))
    counted = {severity: Counts(*counts) for severity, counts in by_severity.items()}
    return RiskCounts(
        Counts(*overall), {**dict.fromkeys(weights, _NOTHING), **counted}, Counts(*weighted), Counts(*type_only)
    )


def _add(counts: list[Any], predicted: int, gold: int, weight: float = 1) -> None:
    both = min(predicted, gold)
    counts[0] += weight * both
    counts[1] += weight * (predicted - both)
    counts[2] += weight * (gold - both)


def _add_by_type(
    counts: list[float], predicted: Mapping[str, int], gold: Mapping[str, int], weight: Callable[[str], float]
) -> None:
    """Type-only pairs of one type, weighed by gold's severity: first those that agree on it, then the heaviest."""
    if not predicted or not gold or predicted == gold:  # most have one side, or agree
        index = 2 if not predicted else 1 if not gold else 0
        counts[index] += sum([weight(severity) * count for severity, count in (gold or predicted).items()])
        return

    def heaviest_first(levels: Counter[str]) -> list[str]:
        return sorted(levels.elements(), key=lambda severity: (-weight(severity), severity))

    agreed = Counter(predicted) & Counter(gold)
    wrong, missed = heaviest_first(Counter(predicted) - agreed), heaviest_first(Counter(gold) - agreed)
    pairs = min(len(wrong), len(missed))
    counts[0] += sum(map(weight, [*agreed.elements(), *missed[:pairs]]))
    counts[1] += sum(map(weight, wrong[pairs:]))
    counts[2] += sum(map(weight, missed[pairs:]))


def action_counts(
    predicted: Sequence[str], gold: Sequence[str], threshold: float | Fraction = THRESHOLD
) -> ActionCounts:
    """Actions are matched one to one by their descriptions. One without a text counts, and is never matched."""
    return _matched_counts(predicted, gold, match_actions(predicted, gold, threshold))


def _matched_counts(predicted: Sequence[str], gold: Sequence[str], matches: tuple[Match, ...]) -> ActionCounts:
    pairs = len(matches)
    return ActionCounts(Counts(pairs, len(predicted) - pairs, len(gold) - pairs), matches)


def labels_of(annotations: Iterable[Annotations], *, min_confidence: float | None = None) -> Labels:
    """The labels of one annotator; what it said in parts, of chunks, is put together."""
    parts = list(annotations)
    vocabulary = semantic_vocabulary()
    failure = next(filter(None, map(failure_of, parts)), None)

    def findings(family: str) -> list[Any] | None:
        given = [items for part in parts if (items := getattr(part, family)) is not None]
        return None if not given else [item for items in given for item in items if is_sure(item.confidence)]

    def is_sure(confidence: float | None) -> bool:
        return min_confidence is None or confidence is None or confidence >= min_confidence

    topics, risks, actions = map(findings, (TOPICS, RISKS, ACTIONS))
    return Labels(
        None if topics is None else tuple(vocabulary.topic(topic.label) for topic in topics),
        None if risks is None else tuple(plain_risk(risk.type, risk.severity, _located(risk)) for risk in risks),
        None
        if actions is None
        else tuple(PlainAction(item.description, item.verbatim, item.assignee_role) for item in actions),
        all(part.extraction.get(SEVERITY) != SKIPPED for part in parts),
        frozenset(FAMILIES)
        if failure is not None
        else frozenset(family for part in parts for family in FAMILIES if part.extraction.get(family) in BROKEN),
        failure.reason if failure is not None else FAILED,
    )


def _located(risk: Risk) -> list[Hashable]:
    """Where a risk was found; segments that the conversation does not have are kept by their ids."""
    unknown = risk.extras.get("segment_ids")
    return [*risk.events, *map(str, unknown if isinstance(unknown, list) else ())]


def plain_risk(kind: str, severity: str, segments: Iterable[Hashable]) -> PlainRisk:
    """A risk in terms of the vocabulary. A severity that its type cannot have stays, and matches no gold."""
    return PlainRisk(semantic_vocabulary().risk(kind), severity.strip().lower(), tuple(dict.fromkeys(segments)))


def score_sample(
    predicted: Labels,
    gold: Labels,
    threshold: float | Fraction = THRESHOLD,
    also: Sequence[float | Fraction] = (),
    *,
    run_has_severity: bool | None = None,
) -> SampleScore:
    """Count each family that both sides have; at the thresholds of `also` actions are matched besides.

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
        predicted_texts, gold_texts = descriptions(predicted), descriptions(gold)
        matches, *sweep = match_at(predicted_texts, gold_texts, (threshold, *also))
        actions = _matched_counts(predicted_texts, gold_texts, matches)
    return SampleScore(topics, risks, actions, reasons, sweep)


def _reasons(predicted: Labels, gold: Labels) -> dict[str, str]:
    """Why families cannot be measured."""
    reasons: dict[str, str] = {}
    if not predicted.failed and None not in predicted[:3] and None not in gold[:3]:
        return reasons
    for family in FAMILIES:
        if family in gold.failed:
            reasons[family] = INVALID_GOLD
        elif getattr(gold, family) is None:
            reasons[family] = f"no_{family}_in_gold"
        elif family in predicted.failed:
            reasons[family] = predicted.failure
        elif getattr(predicted, family) is None:
            reasons[family] = f"annotator_provides_no_{family}"
    return reasons


class Provided:
    """What an annotator provides, over all samples of a run. What no sample has is not provided."""

    def __init__(self, predictions: Iterable[Labels] = ()) -> None:
        self.families: set[str] = set()
        self._declares_none: set[bool] = set()
        self._known: set[bool] = set()
        """Whether severities are known: of each risk, as far as the answers differ."""
        for labels in predictions:
            self.add(labels)

    def add(self, labels: Labels) -> None:
        """One more sample."""
        self.families.update([family for family in FAMILIES if getattr(labels, family) is not None])
        if labels.risks is not None:
            weights = semantic_vocabulary().weights
            self._declares_none.add(not labels.provides_severity)
            self._known.update([risk.severity in weights for risk in labels.risks])

    @property
    def severity(self) -> bool:
        """Whether it gives severities: it does not say otherwise everywhere, and some risk has one if there is any."""
        return self._declares_none != {True} and self._known != {False}

    @property
    def is_complete(self) -> bool:
        """Whether no further sample can add anything."""
        return len(self.families) == len(FAMILIES) and False in self._declares_none and True in self._known


def of_one_run(predictions: Sequence[Labels], provided: Provided) -> list[Labels]:
    """Predictions of one annotator. Where a family lacks that it provides, the annotation failed, and did not find
    nothing."""
    united: list[Labels] = []
    for labels in predictions:
        lacking = [family for family in provided.families if getattr(labels, family) is None]
        united.append(labels._replace(failed=labels.failed.union(lacking)) if lacking else labels)
    return united


def descriptions(labels: Labels) -> list[str]:
    """The descriptions of the actions, in order."""
    return [action.description for action in labels.actions or ()]


def wordings(labels: Labels) -> list[tuple[str, str]]:
    """Description and verbatim of the actions, in order."""
    return [(action.description, action.verbatim) for action in labels.actions or ()]


def assignees(predicted: Labels, gold: Labels, actions: ActionCounts) -> RightOfAll:
    """Of the matched actions whose gold has a role: how many have the same one. The role is no part of the match."""
    predicted_actions, gold_actions = predicted.actions or (), gold.actions or ()
    pairs = [(predicted_actions[match.predicted].role, gold_actions[match.gold].role) for match in actions.matches]
    return RightOfAll(sum(role == true for role, true in pairs if true), sum(bool(true) for _, true in pairs))


def segment_overlap(predicted: Sequence[PlainRisk], gold: Sequence[PlainRisk]) -> RightOfAll:
    """Of the gold risks whose type was found: how many were found in one of their segments. The place of a risk never
    decides a match."""
    segments: dict[str, set[Hashable]] = {}
    for risk in predicted:
        segments.setdefault(risk.type, set()).update(_segments(risk))
    located = [risk for risk in gold if risk.type in segments and _segments(risk)]
    return RightOfAll(sum(not segments[risk.type].isdisjoint(_segments(risk)) for risk in located), len(located))


def _segments(risk: PlainRisk) -> tuple[Hashable, ...]:
    return risk.segment if isinstance(risk.segment, tuple) else ()
