"""Metrics of topics, risks and actions: what an annotator found in a conversation, against its gold labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from convoscope.conversation import Annotations, Conversation
from convoscope.conversation.annotations import ACTIONS, RISKS, TOPICS, Origin
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, axis, metric
from convoscope.metrics.needs import Need
from convoscope.metrics.presets import share_metric
from convoscope.metrics.semantic.samples import (
    FAILED,
    NO_SEVERITY,
    Labels,
    PlainRisk,
    Weighed,
    action_counts,
    assignees,
    descriptions,
    labels_of,
    risk_counts,
    score_sample,
    topic_set,
    weigh,
    why_not,
)
from convoscope.scores.observation import Counts, Observation, counted, failed, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import COUNTS, MEAN_OF_CONVERSATIONS, POOLED_COUNTS, Reduce
from convoscope.views.items import Subject
from convoscope.vocabulary import semantic_vocabulary

TOPIC = axis("topic")
RISK = axis("risk")
SEVERITY = axis("severity")


def _has(origin: Origin) -> Callable[[Conversation], bool]:
    return lambda conversation: any(one.origin == origin for one in conversation.annotations)


GOLD_LABELS = Need(
    code="no_gold_labels",
    field="annotations of the origin gold",
    unlock="a gold label file, SAMPLE_gold.json, given beside the logs",
    present=_has("gold"),
)
PREDICTIONS = Need(
    code="no_prediction",
    field="annotations of the origin predicted",
    unlock="what an annotator found, as `annotations.semantic` in the transcript",
    present=_has("predicted"),
)


class _Sides(NamedTuple):
    predicted: Labels
    gold: Labels


def sides(conversation: Conversation) -> _Sides:
    """What was predicted and what is true. Of several annotators the first is taken, and the first gold."""
    return _Sides(labels_of(_first(conversation, "predicted")), labels_of(_first(conversation, "gold")))


def _first(conversation: Conversation, origin: Origin) -> list[Annotations]:
    of_origin = [one for one in conversation.annotations if one.origin == origin]
    who = (of_origin[0].annotator, of_origin[0].model)
    return [one for one in of_origin if (one.annotator, one.model) == who]


semantic_metric = partial(
    metric,
    unit=RATIO,
    better=HIGHER,
    needs=(GOLD_LABELS, PREDICTIONS),
    reduce=Reduce(COUNTS, POOLED_COUNTS),
    also={"macro": MEAN_OF_CONVERSATIONS},
    sensitive_to=(),
)


def _unmeasured(conversation: Conversation, reason: str) -> Observation:
    """A failed annotation is an error; what was not labelled, or is not provided, is unmeasured."""
    if reason == FAILED:
        return failed(conversation, reason, "the annotator reports an error")
    return unmeasured(conversation, reason)


@semantic_metric("semantic.topic_f1", version=1, observes=TOPIC, label="find the right topics")
def topic_f1(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted topics agree with gold?

    Labels are a set, in the words of the vocabulary. F1 = 2 TP ÷ (2 TP + FP + FN), pooled over conversations; a
    label outside the vocabulary is wrong. Not applicable where nothing is to be found and nothing was.
    """
    predicted, gold = sides(conversation)
    if why := why_not(predicted, gold, TOPICS):
        yield _unmeasured(conversation, why)
        return
    mine, theirs = topic_set(predicted.topics or ()), topic_set(gold.topics or ())
    known = semantic_vocabulary().labels
    for label in sorted(mine | theirs):
        yield counted(
            Subject("topic", label),
            tp=label in mine and label in theirs,
            fp=label not in theirs,
            fn=label not in mine,
            details=None if label in known else {"out_of_vocabulary": True},
        )
    if not mine | theirs:
        yield not_applicable(conversation, "nothing_to_find")


@semantic_metric("semantic.risk_f1", version=1, observes=RISK, label="find the right risks")
def risk_f1(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold, by their type?

    Identical entries count once; then TP = Σ min(predicted, gold) by type. Severity and place do not decide.
    F1 is pooled over conversations. Not applicable where nothing is to be found and nothing was.
    """
    weights = semantic_vocabulary().weights
    return _by_type(conversation, lambda mine, theirs: risk_counts(mine, theirs, weights).overall)


@semantic_metric("semantic.risk_f1_weighted", version=1, observes=RISK)
def risk_f1_weighted(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold, by type and severity, the severe ones weighing more?

    critical 4, high 2, medium 1, low 0.5. A hit needs type and severity; what is wrong weighs by its predicted
    severity, 1 without one; what is missed by gold's. Unmeasured where the annotator provides no severity.
    """
    return _weighted(conversation, lambda weighed: weighed.with_severity)


@semantic_metric("semantic.risk_f1_weighted_type_only", version=1, observes=RISK)
def risk_f1_weighted_type_only(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold by their type, the severe ones weighing more?

    A hit needs the type alone, and weighs by gold's severity. Of several risks of a type those that agree in severity
    are paired first, then the heaviest. Unmeasured where the annotator provides no severity.
    """
    return _weighted(conversation, lambda weighed: weighed.type_only)


@semantic_metric("semantic.risk_f1_by_severity", version=1, observes=SEVERITY)
def risk_f1_by_severity(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks of each severity agree with gold?

    A hit needs type and severity. A prediction without a known severity belongs to none of the four. Unmeasured where
    the annotator provides no severity.
    """
    predicted, gold = sides(conversation)
    score = score_sample(predicted, gold)
    if score.risks is None or score.risks.weighted is None:
        yield _unmeasured(conversation, score.reasons.get(RISKS) or NO_SEVERITY)
        return
    for severity, counts in score.risks.by_severity.items():
        if any(counts):
            yield counted(Subject("severity", severity), **counts._asdict())
    if not any(any(counts) for counts in score.risks.by_severity.values()):
        yield not_applicable(conversation, "nothing_to_find")


def _weighted(conversation: Conversation, pick: Callable[[Weighed], Counts]) -> Iterator[Observation]:
    predicted, gold = sides(conversation)
    score = score_sample(predicted, gold)
    if score.risks is not None and score.risks.weighted is None:
        return iter([_unmeasured(conversation, NO_SEVERITY)])
    vocabulary = semantic_vocabulary()

    def count(mine: Risks, theirs: Risks) -> Counts:
        weighed = weigh(mine, theirs, vocabulary.weights, without_severity=vocabulary.weight_without_severity)
        return pick(weighed)

    return _by_type(conversation, count)


Risks = Sequence[PlainRisk]


def _by_type(conversation: Conversation, count: Callable[[Risks, Risks], Counts]) -> Iterator[Observation]:
    """One observation for each type of risk: whatever is counted, types do not mix."""
    predicted, gold = sides(conversation)
    if why := why_not(predicted, gold, RISKS):
        yield _unmeasured(conversation, why)
        return
    mine, theirs = predicted.risks or (), gold.risks or ()
    for kind in sorted({one.type for one in (*mine, *theirs)}):
        counts = count([one for one in mine if one.type == kind], [one for one in theirs if one.type == kind])
        yield counted(Subject("risk", kind or "(no type)"), **counts._asdict())
    if not mine and not theirs:
        yield not_applicable(conversation, "nothing_to_find")


@semantic_metric("semantic.action_f1", version=1, observes=CONVERSATION, label="find the promises made")
def action_f1(conversation: Conversation) -> Observation:
    """How well do the predicted actions agree with gold?

    Descriptions are matched one to one, as many as possible, where 1 − edits ÷ the longer length is at least 0.8.
    F1 is pooled over conversations. Not applicable where nothing is to be found and nothing was.
    """
    predicted, gold = sides(conversation)
    if why := why_not(predicted, gold, ACTIONS):
        return _unmeasured(conversation, why)
    mine, theirs = descriptions(predicted), descriptions(gold)
    counts, matches = action_counts(mine, theirs)
    pairs = [[mine[one.predicted], theirs[one.gold], round(one.similarity, 4)] for one in matches]
    return counted(conversation, **counts._asdict(), details={"matches": pairs})


@share_metric(
    "semantic.action_accuracy",
    version=1,
    observes=CONVERSATION,
    better=HIGHER,
    needs=(GOLD_LABELS, PREDICTIONS),
    sensitive_to=(),
)
def action_accuracy(conversation: Conversation) -> Observation:
    """What share of the gold actions was found?

    Matched as for `semantic.action_f1`. Not applicable where gold has no action.
    """
    predicted, gold = sides(conversation)
    if why := why_not(predicted, gold, ACTIONS):
        return _unmeasured(conversation, why)
    counts = action_counts(descriptions(predicted), descriptions(gold)).counts
    return ratio(conversation, counts.tp, counts.tp + counts.fn, empty="nothing_in_gold")


@share_metric(
    "semantic.assignee_accuracy",
    version=1,
    observes=CONVERSATION,
    better=HIGHER,
    needs=(GOLD_LABELS, PREDICTIONS),
    sensitive_to=(),
)
def assignee_accuracy(conversation: Conversation) -> Observation:
    """Of the actions that were found, what share is assigned to the right role?

    Over matched pairs whose gold has a role. Not applicable where there is none.
    """
    predicted, gold = sides(conversation)
    if why := why_not(predicted, gold, ACTIONS):
        return _unmeasured(conversation, why)
    roles = assignees(predicted, gold, action_counts(descriptions(predicted), descriptions(gold)))
    return ratio(conversation, roles.right, roles.total, empty="no_matched_action_with_a_role")
