"""What was found in a conversation: topics, risks that were not dealt with, promises that are open or unowned.

What a language model found is a score of that model, like a judge's: uncalibrated, it decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from convoscope.annotate.annotator import judge_behind
from convoscope.conversation import Action, Annotations, Conversation, Risk
from convoscope.metrics.declaration import CONVERSATION, COUNT, LOWER, NEITHER, SHARE, SUM_OVER_SUM, axis, metric
from convoscope.metrics.needs import Need
from convoscope.scores.observation import Observation, measured, not_applicable, ratio, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.text.result_words import says_done
from convoscope.views.items import Subject
from convoscope.views.languages import LANGUAGE_NOT_SUPPORTED, languages_of

TOPIC = axis("topic")
RISK = axis("risk")
RESOLUTION = "resolution"
"""In `extraction`: the annotator also looked whether a risk was dealt with later."""
RESOLVED_BY = "resolved_by"
_OWNERS = frozenset({"agent", "customer", "team"})


def predicted(conversation: Conversation) -> Annotations | None:
    """What an annotator found: the last one that looked for resolutions, else the last one."""
    held = [one for one in conversation.annotations if one.origin == "predicted"]
    looked = [one for one in held if RESOLUTION in one.extraction]
    return next(reversed(looked or held), None)


ANNOTATED = Need(
    "not_annotated",
    "annotations",
    "--annotate rules, or a transcript that holds what was found in it",
    lambda conversation: predicted(conversation) is not None,
)
_counted = partial(
    metric,
    observes=CONVERSATION,
    unit=COUNT,
    needs=(ANNOTATED,),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    sensitive_to=(),
)
_left_open = partial(metric, unit=SHARE, better=LOWER, needs=(ANNOTATED,), reduce=SUM_OVER_SUM, sensitive_to=())


@_counted("semantic.topics_found", version=2, label="topics in a conversation", importance=1, better=NEITHER)
def topics_found(conversation: Conversation) -> Observation:
    """How many topics does the annotator find?

    Unmeasured where it did not look for topics, or could not. The details name them.

    >>> annotation = {"origin": "predicted", "topics": [{"label": "refund"}, {"label": "billing"}]}
    >>> value(topics_found, example(annotations=[annotation]))
    2.0
    """
    annotations = predicted(conversation)
    if annotations is None or annotations.topics is None:
        return _unmeasured(annotations, "topics")
    labels = list(dict.fromkeys(topic.label for topic in annotations.topics))
    details = {"topics": labels} if labels else None
    return measured(conversation, len(labels), judge=judge_behind(annotations), details=details)


@_counted("semantic.unresolved_risks", version=2, label="risks not dealt with", importance=6, better=LOWER)
def unresolved_risks(conversation: Conversation) -> Observation:
    """How many risks are left that nothing said later deals with?

    A risk is resolved where a later utterance has a cue for it, by the rule of the annotator. Unmeasured where the
    annotator did not look for risks or for resolutions, or could not. The details name type, severity and utterances.

    >>> risks = [{"type": "churn_risk"}, {"type": "churn_risk", "extras": {"resolved_by": 4}}]
    >>> annotation = {"origin": "predicted", "extraction": {"resolution": "success"}, "risks": risks}
    >>> value(unresolved_risks, example(annotations=[annotation]))
    1.0
    """
    annotations = predicted(conversation)
    risks = _risks(annotations)
    if annotations is None or risks is None:
        return _unmeasured(annotations, "risks")
    left = [
        {"type": risk.type, "severity": risk.severity, "events": list(risk.events)} for risk in risks if _is_open(risk)
    ]
    details = {"risks": left} if left else None
    return measured(conversation, len(left), judge=judge_behind(annotations), details=details)


@_left_open("semantic.risk_unresolved", version=2, label="risks left unresolved", importance=2, observes=RISK)
def risk_unresolved(conversation: Conversation) -> Iterator[Observation]:
    """What share of the risks that are found is left unresolved?

    A subject for each type of risk, so that a run is grouped by them. Not applicable where no risk is found.

    >>> risks = [{"type": "churn_risk"}, {"type": "churn_risk", "extras": {"resolved_by": 4}}]
    >>> annotation = {"origin": "predicted", "extraction": {"resolution": "success"}, "risks": risks}
    >>> value(risk_unresolved, example(annotations=[annotation]))
    0.5
    """
    annotations = predicted(conversation)
    risks = _risks(annotations)
    if risks is None:
        yield _unmeasured(annotations, "risks")
        return
    if not risks:
        yield not_applicable(conversation, "no_risk_found", judge=judge_behind(annotations))
    for type in dict.fromkeys(risk.type for risk in risks):
        same = [risk for risk in risks if risk.type == type]
        yield ratio(Subject("risk", type), sum(map(_is_open, same)), len(same), judge=judge_behind(annotations))


@_left_open(
    "semantic.topic_unresolved", version=2, label="topics with an unresolved risk", importance=2, observes=TOPIC
)
def topic_unresolved(conversation: Conversation) -> Iterator[Observation]:
    """In what share of its topics does a conversation leave a risk unresolved?

    A subject for each topic, so that a run is grouped by them: of the conversations on a topic, the share that has an
    unresolved risk. Not applicable where no topic is found.

    >>> annotation = {"origin": "predicted", "extraction": {"resolution": "success"}, "topics": [{"label": "refund"}]}
    >>> value(topic_unresolved, example(annotations=[{**annotation, "risks": [{"type": "churn_risk"}]}]))
    1.0
    """
    annotations = predicted(conversation)
    risks = _risks(annotations)
    if annotations is None or risks is None or annotations.topics is None:
        yield _unmeasured(annotations, "topics and risks")
        return
    is_open = any(map(_is_open, risks))
    labels = dict.fromkeys(topic.label for topic in annotations.topics)
    if not labels:
        yield not_applicable(conversation, "no_topic_found", judge=judge_behind(annotations))
    for label in labels:
        yield ratio(Subject("topic", label), is_open, 1, judge=judge_behind(annotations))


@_counted("semantic.actions_found", version=2, label="promises in a conversation", importance=1, better=NEITHER)
def actions_found(conversation: Conversation) -> Observation:
    """How many promises does the annotator find?

    Unmeasured where it did not look for actions, or could not. The details hold the descriptions.

    >>> annotation = {"origin": "predicted", "actions": [{"description": "Send the form"}]}
    >>> value(actions_found, example(annotations=[annotation]))
    1.0
    """
    return _promises(conversation, lambda actions: actions)


@_counted(
    "semantic.open_actions",
    version=4,
    label="promises that are still to be kept",
    importance=2,
    better=NEITHER,
    languages=("en",),
)
def open_actions(conversation: Conversation) -> Observation:
    """How many promises are open when the conversation ends?

    A promise is done where its `status` says so, else where a later utterance does: "I've sent it", "that's done".
    Such words are read in English: without a status, a conversation in another language is unmeasured. Unmeasured
    too where the annotator did not look for actions, or neither gives their status nor looks for what follows.
    The details hold the descriptions.

    >>> actions = [{"description": "Send the form", "status": "done"}, {"description": "Call back", "status": "open"}]
    >>> value(open_actions, example(annotations=[{"origin": "predicted", "actions": actions}]))
    1.0
    """
    annotations = predicted(conversation)
    if annotations is None or annotations.actions is None:
        return _unmeasured(annotations, "actions")
    have_status = all(action.status for action in annotations.actions if action.description)
    if annotations.extraction.get(RESOLUTION) != "success" and not have_status:
        return _unmeasured(annotations, "whether actions were done")
    language = languages_of(conversation).of_all()
    if language not in ("", "en") and not have_status:
        return unmeasured(conversation, LANGUAGE_NOT_SUPPORTED, language, judge=judge_behind(annotations))
    return _promises(conversation, lambda actions: [one for one in actions if not _is_done(one, conversation)])


_DONE = frozenset({"done", "complete", "completed", "closed", "finished", "resolved", "cancelled", "canceled"})


def _is_done(action: Action, conversation: Conversation) -> bool:
    if action.status:
        return action.status.strip().lower() in _DONE
    last = max(action.events, default=None)
    return last is not None and any(
        utterance.seq > last and says_done(conversation.text(utterance), action.description)
        for utterance in conversation.utterances
    )


@_counted("semantic.unowned_actions", version=2, label="promises without an owner", importance=4, better=LOWER)
def unowned_actions(conversation: Conversation) -> Observation:
    """How many promises are made without an owner?

    "It will be fixed", "someone will call": it is not said who does it, neither by role nor by name. Unmeasured
    where the annotator did not look for actions, or could not. The details hold the descriptions.

    >>> actions = [{"description": "Send the form", "assignee_role": "agent"}, {"description": "Call back"}]
    >>> value(unowned_actions, example(annotations=[{"origin": "predicted", "actions": actions}]))
    1.0
    """
    return _promises(
        conversation,
        lambda actions: [one for one in actions if one.assignee_role not in _OWNERS and not one.assignee],
    )


def _promises(conversation: Conversation, chosen: Callable[[Sequence[Action]], Sequence[Action]]) -> Observation:
    """How many of the actions that were found are chosen."""
    annotations = predicted(conversation)
    if annotations is None or annotations.actions is None:
        return _unmeasured(annotations, "actions")
    descriptions = [action.description for action in chosen(annotations.actions) if action.description]
    details = {"actions": descriptions} if descriptions else None
    return measured(conversation, len(descriptions), judge=judge_behind(annotations), details=details)


def _risks(annotations: Annotations | None) -> tuple[Risk, ...] | None:
    """The risks, where it is also known which of them were dealt with."""
    if annotations is None or annotations.extraction.get(RESOLUTION) != "success":
        return None
    return None if annotations.risks is None else tuple(risk for risk in annotations.risks if risk.type)


def _is_open(risk: Risk) -> bool:
    return RESOLVED_BY not in risk.extras


def _unmeasured(annotations: Annotations | None, family: str) -> Observation:
    """Why there is nothing: the annotator's own reason, or that it does not provide this."""
    extras = {} if annotations is None else annotations.extras
    reason, judge = extras.get("reason"), judge_behind(annotations)
    if isinstance(reason, str) and reason:
        return unmeasured(Subject("conversation"), reason, str(extras.get("detail", "")), judge=judge)
    return unmeasured(Subject("conversation"), "annotator_does_not_provide", family, judge=judge)
