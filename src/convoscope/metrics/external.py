"""Verdicts of other programs on what we compute, for composites of logs that have no data for our own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, SHARE, Metric, metric
from convoscope.metrics.needs import Need
from convoscope.metrics.verdicts import has_verdict, labelled
from convoscope.scores.observation import Observation
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce

VARIANT = "external"


def _external_metric(name: str, unit: str, question: str) -> Metric:
    """Declare the verdicts of other programs on a metric that we compute: a variant, so that figures do not mix."""
    label = name.partition(".")[2]

    def verdicts(conversation: Conversation) -> Iterator[Observation]:
        return labelled(conversation, label, externally=True)

    verdicts.__doc__ = f"""{question}

    What another program says, in a label `{label}` from 0 to 1. `{name}` is what we compute.

    >>> label = {{"name": "{label}", "value": 1, "rater": "eva", "rater_kind": "external"}}
    >>> value("{name}@external", example("user: Hello?", labels=[label]))
    1.0
    """
    present: Callable[[Conversation], bool] = partial(has_verdict, name=label, externally=True)
    unlock = f"a verdict of another program: a label `{label}`, or EVA's metrics.json"
    need = Need("no_external_verdict", "labels", unlock, present)
    return metric(
        name,
        variant=VARIANT,
        version=1,
        observes=CONVERSATION,
        unit=unit,
        better=HIGHER,
        needs=(need,),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        importance=1,
        sensitive_to=(),
    )(verdicts)


task_completion_external = _external_metric(
    "outcome.task_completion", SHARE, "Is the task done, by the verdict of another program?"
)
conversation_valid_end_external = _external_metric(
    "outcome.conversation_valid_end", SHARE, "Did the simulated call end validly, by the verdict of another program?"
)
turn_taking_external = _external_metric(
    "voice.turn_taking", RATIO, "Does the agent speak when it is its turn, by the verdict of another program?"
)
