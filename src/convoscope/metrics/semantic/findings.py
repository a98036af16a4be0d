"""Metrics of topics, risks and actions: what an annotator found in a conversation, against its gold labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import NamedTuple

from convoscope.conversation import Annotations, Conversation
from convoscope.conversation.annotations import ACTIONS, GIVEN, RISKS, TOPICS, Origin
from convoscope.conversation.annotations import SEVERITY as SEVERITY_STATUS
from convoscope.conversation.lazy import cached_on_argument
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, SHARE, SUM_OVER_SUM, axis, metric
from convoscope.metrics.needs import Need
from convoscope.metrics.semantic.samples import (
    FAILED,
    NO_SEVERITY,
    Labels,
    RiskCounts,
    SampleScore,
    assignees,
    descriptions,
    labels_of,
    score_sample,
    topic_set,
    weigh,
)
from convoscope.scores.observation import Counts, Observation, counted, failed, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import COUNTS, MEAN_OF_CONVERSATIONS, POOLED_COUNTS, Reduce
from convoscope.views.items import Subject
from convoscope.vocabulary import semantic_vocabulary

TOPIC = axis("topic")
RISK = axis("risk")
SEVERITY = axis("severity")


GOLD_LABELS = Need(
    "no_gold_labels",
    "annotations of the origin gold",
    "a gold label file, SAMPLE_gold.json, given beside the logs",
    lambda conversation: any(one.origin == "gold" for one in conversation.annotations),
)
PREDICTIONS = Need(
    "no_prediction",
    "annotations of the origin predicted",
    "what an annotator found, as `annotations.semantic` in the transcript",
    lambda conversation: any(one.origin == "predicted" for one in conversation.annotations),
)


class ScoredLabels(NamedTuple):
    """What was predicted and what is true of a conversation, compared once for all metrics."""

    predicted: Labels
    gold: Labels
    score: SampleScore
    risks_by_type: Mapping[str, RiskCounts]


@cached_on_argument
def scored_labels(conversation: Conversation) -> ScoredLabels:
    """The labels of both sides, compared. Of several annotators the first is taken, and the first gold."""
    parts = first_annotations(conversation, "predicted")
    predicted, gold = labels_of(parts), labels_of(first_annotations(conversation, "gold"))
    gives_severity = any(part.extraction.get(SEVERITY_STATUS) == GIVEN for part in parts)
    score = score_sample(predicted, gold, run_has_severity=gives_severity or None)
    by_type: dict[str, RiskCounts] = {}
    if score.risks is not None:
        vocabulary = semantic_vocabulary()
        for kind in sorted({risk.type for risk in (*(predicted.risks or ()), *(gold.risks or ()))}):
            predicted_risks = [risk for risk in predicted.risks or () if risk.type == kind]
            gold_risks = [risk for risk in gold.risks or () if risk.type == kind]
            by_type[kind] = weigh(
                predicted_risks, gold_risks, vocabulary.weights, without_severity=vocabulary.weight_without_severity
            )
    return ScoredLabels(predicted, gold, score, by_type)


def first_annotations(conversation: Conversation, origin: Origin) -> list[Annotations]:
    """What the first annotator of an origin says, in one part or several."""
    of_origin = [item for item in conversation.annotations if item.origin == origin]
    return [item for item in of_origin if (item.annotator, item.model) == (of_origin[0].annotator, of_origin[0].model)]


semantic_metric = partial(
    metric,
    version=2,
    unit=RATIO,
    better=HIGHER,
    needs=(GOLD_LABELS, PREDICTIONS),
    reduce=Reduce(COUNTS, POOLED_COUNTS),
    also={"macro": MEAN_OF_CONVERSATIONS},
    sensitive_to=(),
)
_action_share = partial(semantic_metric, observes=CONVERSATION, unit=SHARE, reduce=SUM_OVER_SUM, also={})


def _unmeasured(conversation: Conversation, reason: str) -> Observation:
    """A failed annotation is an error; what was not labelled, or is not provided, is unmeasured."""
    if reason == FAILED:
        return failed(conversation, reason, "the annotator reports an error, or gives less than elsewhere")
    return unmeasured(conversation, reason)


@semantic_metric("semantic.topic_f1", observes=TOPIC, label="find the right topics")
def topic_f1(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted topics agree with gold?

    Labels are a set, in the words of the vocabulary. F1 = 2 TP ÷ (2 TP + FP + FN), pooled over conversations; a
    label outside the vocabulary is wrong. Not applicable where nothing is to be found and nothing was.

    >>> predicted = {"origin": "predicted", "topics": [{"label": "refund"}, {"label": "billing"}]}
    >>> gold = {"origin": "gold", "topics": [{"label": "refund"}]}
    >>> round(value(topic_f1, example(annotations=[predicted, gold])), 3)  # 2 · 1 ÷ (2 · 1 + 1 + 0)
    0.667
    """
    labels = scored_labels(conversation)
    if reason := labels.score.reasons.get(TOPICS):
        yield _unmeasured(conversation, reason)
        return
    predicted, gold = topic_set(labels.predicted.topics or ()), topic_set(labels.gold.topics or ())
    known = semantic_vocabulary().labels
    for label in sorted(predicted | gold):
        yield counted(
            Subject("topic", label),
            tp=label in predicted and label in gold,
            fp=label not in gold,
            fn=label not in predicted,
            details=None if label in known else {"out_of_vocabulary": True},
        )
    if not predicted | gold:
        yield not_applicable(conversation, "nothing_to_find")


@semantic_metric("semantic.risk_f1", observes=RISK, label="find the right risks")
def risk_f1(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold, by their type?

    Identical entries count once; then TP = Σ min(predicted, gold) by type. Severity and place do not decide.
    F1 is pooled over conversations. Not applicable where nothing is to be found and nothing was.

    >>> predicted = {"origin": "predicted", "risks": [{"type": "escalation", "severity": "low"}]}
    >>> gold = {"origin": "gold", "risks": [{"type": "escalation", "severity": "high"}]}
    >>> value(risk_f1, example(annotations=[predicted, gold]))
    1.0
    """
    return _by_type(conversation, "overall")


@semantic_metric("semantic.risk_f1_weighted", observes=RISK)
def risk_f1_weighted(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold, by type and severity, the severe ones weighing more?

    critical 4, high 2, medium 1, low 0.5. A hit needs type and severity; what is wrong weighs by its predicted
    severity, 1 without one; what is missed by gold's. Unmeasured where the annotator provides no severity.

    >>> predicted = {"origin": "predicted", "risks": [{"type": "escalation", "severity": "low"}]}
    >>> gold = {"origin": "gold", "risks": [{"type": "escalation", "severity": "high"}]}
    >>> value(risk_f1_weighted, example(annotations=[predicted, gold]))  # wrong: 0.5, missed: 2
    0.0
    """
    return _by_type(conversation, "weighted")


@semantic_metric("semantic.risk_f1_weighted_type_only", observes=RISK)
def risk_f1_weighted_type_only(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks agree with gold by their type, the severe ones weighing more?

    A hit needs the type alone, and weighs by gold's severity. Of several risks of a type those that agree in severity
    are paired first, then the heaviest. Unmeasured where the annotator provides no severity.

    >>> predicted = {"origin": "predicted", "risks": [{"type": "escalation", "severity": "low"}]}
    >>> gold = {"origin": "gold", "risks": [{"type": "escalation", "severity": "high"}]}
    >>> value(risk_f1_weighted_type_only, example(annotations=[predicted, gold]))
    1.0
    """
    return _by_type(conversation, "weighted_type_only")


@semantic_metric("semantic.risk_f1_by_severity", observes=SEVERITY)
def risk_f1_by_severity(conversation: Conversation) -> Iterator[Observation]:
    """How well do the predicted risks of each severity agree with gold?

    A hit needs type and severity. A prediction without a known severity belongs to none of the four. Unmeasured where
    the annotator provides no severity.

    >>> predicted = {"origin": "predicted", "risks": [{"type": "escalation", "severity": "low"}]}
    >>> gold = {"origin": "gold", "risks": [{"type": "escalation", "severity": "high"}]}
    >>> value(risk_f1_by_severity, example(annotations=[predicted, gold]))
    0.0
    """
    score = scored_labels(conversation).score
    if score.risks is None or score.risks.weighted is None:
        yield _unmeasured(conversation, score.reasons.get(RISKS) or NO_SEVERITY)
        return
    yield from _subjects(conversation, SEVERITY, {key: one for key, one in score.risks.by_severity.items() if any(one)})


def _by_type(conversation: Conversation, field: str) -> Iterator[Observation]:
    """One observation for each type of risk: whatever is counted, types do not mix."""
    labels = scored_labels(conversation)
    risks = labels.score.risks
    if risks is None or getattr(risks, field) is None:
        yield _unmeasured(conversation, labels.score.reasons.get(RISKS) or NO_SEVERITY)
        return
    by_type = {kind or "(no type)": getattr(counts, field) for kind, counts in labels.risks_by_type.items()}
    yield from _subjects(conversation, RISK, by_type)


def _subjects(conversation: Conversation, kind: str, counts: Mapping[str, Counts]) -> Iterator[Observation]:
    for name, count in counts.items():
        yield counted(Subject(kind, name), **count._asdict())
    if not counts:
        yield not_applicable(conversation, "nothing_to_find")


@semantic_metric("semantic.action_f1", observes=CONVERSATION, label="find the promises made")
def action_f1(conversation: Conversation) -> Observation:
    """How well do the predicted actions agree with gold?

    Descriptions are matched one to one, as many as possible, where 1 − edits ÷ the longer length is at least 0.8.
    F1 is pooled over conversations. Not applicable where nothing is to be found and nothing was.

    >>> predicted = {"origin": "predicted", "actions": [{"description": "Send the form", "assignee_role": "agent"}]}
    >>> actions = [{"description": "Send the forms", "assignee_role": "agent"}, {"description": "Call on Monday"}]
    >>> gold = {"origin": "gold", "actions": actions}
    >>> round(value(action_f1, example(annotations=[predicted, gold])), 3)  # 2 · 1 ÷ (2 · 1 + 0 + 1)
    0.667
    """
    labels = scored_labels(conversation)
    actions = labels.score.actions
    if actions is None:
        return _unmeasured(conversation, labels.score.reasons[ACTIONS])
    predicted, gold = descriptions(labels.predicted), descriptions(labels.gold)
    pairs = [[predicted[row], gold[column], round(similarity, 4)] for row, column, similarity in actions.matches]
    return counted(conversation, **actions.counts._asdict(), details={"matches": pairs})


@_action_share("semantic.action_accuracy")
def action_accuracy(conversation: Conversation) -> Observation:
    """What share of the gold actions was found?

    Matched as for `semantic.action_f1`. Not applicable where gold has no action.

    >>> predicted = {"origin": "predicted", "actions": [{"description": "Send the form", "assignee_role": "agent"}]}
    >>> actions = [{"description": "Send the forms", "assignee_role": "agent"}, {"description": "Call on Monday"}]
    >>> gold = {"origin": "gold", "actions": actions}
    >>> value(action_accuracy, example(annotations=[predicted, gold]))
    0.5
    """
    score = scored_labels(conversation).score
    if score.actions is None:
        return _unmeasured(conversation, score.reasons[ACTIONS])
    counts = score.actions.counts
    return ratio(conversation, counts.tp, counts.tp + counts.fn, empty="nothing_in_gold")


@_action_share("semantic.assignee_accuracy")
def assignee_accuracy(conversation: Conversation) -> Observation:
    """Of the actions that were found, what share is assigned to the right role?

    Over matched pairs whose gold has a role. Not applicable where no such pair is found.

    >>> predicted = {"origin": "predicted", "actions": [{"description": "Send the form", "assignee_role": "agent"}]}
    >>> actions = [{"description": "Send the forms", "assignee_role": "agent"}, {"description": "Call on Monday"}]
    >>> gold = {"origin": "gold", "actions": actions}
    >>> value(assignee_accuracy, example(annotations=[predicted, gold]))
    1.0
    """
    labels = scored_labels(conversation)
    if labels.score.actions is None:
        return _unmeasured(conversation, labels.score.reasons[ACTIONS])
    roles = assignees(labels.predicted, labels.gold, labels.score.actions)
    return ratio(conversation, roles.right, roles.total, empty="no_matched_action_with_a_role")
