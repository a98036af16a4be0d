"""One conversation through one metric, or through all: its observations, and what they come to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import GeneratorType
from typing import Any, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.judging.answers import UnusableAnswer
from convoscope.judging.backends import BudgetSpent, JudgeFailed
from convoscope.metrics.declaration import AXES, Derived, Metric
from convoscope.metrics.needs import Need
from convoscope.metrics.registry import Declared
from convoscope.scores.judges import speaking_order
from convoscope.scores.observation import (
    COMPUTED,
    MEASURED,
    NOT_APPLICABLE,
    Observation,
    failed,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.scoring.profiles import Absence, Profiles, in_order
from convoscope.statistics.panels import MEDIAN, PanelRule, panels
from convoscope.statistics.summary import input_reason
from convoscope.statistics.within import ConversationScore, reduce_conversation
from convoscope.views.items import WHOLE

_NO_RESOURCES: Mapping[str, Any] = {}


class Evaluated(NamedTuple):
    """What one metric gave for one conversation."""

    declared: Declared
    observations: Sequence[Observation]
    scores: Sequence[ConversationScore]


def evaluate(
    conversation: Conversation, metrics: Sequence[Declared], resources: Mapping[str, Any] = _NO_RESOURCES
) -> list[Evaluated]:
    """Every metric over one conversation. A metric that raises gives an error score; the rest go on.

    `resources` are those to hand to metrics, by the whole names of their types. Figures derived within a
    conversation come after the metrics that they need. Many conversations are scored faster by a `Batch`.
    """
    names = frozenset(resources)
    profile = Profiles(metrics, names).of(conversation)
    seen = {
        index: observations_of(declared, conversation, _given(declared, resources)) for index, declared in profile.ready
    }
    seen |= {index: (raised(need, conversation, names),) for index, need in profile.broken}
    seen |= {index: (absence_score(absence),) for index, absence in profile.absent.items()}
    evaluated = [
        reduce_one(declared, seen[index]) for index, declared in enumerate(metrics) if isinstance(declared, Metric)
    ]
    done = {one.declared.key: one.scores for one in evaluated}
    ordered = [declared for _, declared in in_order(metrics)]
    for figure in ordered:
        derived = reduce_one(figure, (derive(figure, done),))
        done[figure.key] = derived.scores
        evaluated.append(derived)
    circular = (
        one for one in metrics if isinstance(one, Derived) and one.over == "conversation" and one not in ordered
    )
    return evaluated + [reduce_one(one, (failed(WHOLE, "circular_inputs", ", ".join(one.inputs)),)) for one in circular]


def observe(
    declared: Metric, conversation: Conversation, resources: Mapping[str, Any] = _NO_RESOURCES
) -> Sequence[Observation]:
    """The observations of one metric, at least one: an unmet need and an exception are observations too."""
    names = frozenset(resources)
    profile = Profiles([declared], names).of(conversation)
    if profile.broken:
        return (raised(profile.broken[0][1], conversation, names),)
    if profile.absent:
        return (absence_score(profile.absent[0]),)
    return observations_of(declared, conversation, _given(declared, resources))


def _given(declared: Metric, resources: Mapping[str, Any]) -> Mapping[str, Any]:
    """The resources that a metric asks for, by parameter."""
    return {name: resources[asked] for name, asked in declared.resources.items() if asked in resources}


def raised(need: Need, conversation: Conversation, resources: frozenset[str]) -> Observation:
    """What a metric says of which a need cannot be looked for."""
    try:
        need.met(conversation, resources)
    except (Exception, SystemExit) as error:  # as it did when the profile was made
        return failed(WHOLE, "metric_raised", say(error))
    return failed(WHOLE, "metric_raised", f"{need.code} could not be looked for at first")


def absence_score(absence: Absence) -> Observation:
    """What a metric says of a conversation that it cannot look at."""
    explain = not_applicable if absence.status == NOT_APPLICABLE else unmeasured
    return explain(WHOLE, absence.reason, absence.detail)


class RowBuffer:
    """What one metric observed so far, each with the row of its conversation."""

    __slots__ = ("observations", "rows")

    def __init__(self) -> None:
        self.rows: list[int] = []
        self.observations: list[Observation] = []

    def add(self, row: int, observations: Sequence[Observation]) -> None:
        self.observations += observations
        self.rows += [row] * len(observations)

    def observe(
        self, declared: Metric, conversations: Iterable[tuple[int, Conversation]], given: Mapping[str, Any]
    ) -> None:
        """Append what a metric that can be measured gives, with the resources it asks for; at least one observation."""
        observations, rows = self.observations, self.rows
        measure = partial(declared.measure, **given) if given else declared.measure
        is_grouped = declared.observes in AXES
        for row, conversation in conversations:
            first = len(observations)
            try:
                result = measure(conversation)
                kind = type(result)
                if kind is Observation:
                    observations.append(result)
                elif kind is list or kind is GeneratorType:
                    observations += result
                else:
                    observations += declared.checked(result)
                count = len(observations) - first
                if count > 1:
                    declared.refuse_twins(observations[first:])
                if is_grouped:
                    _check_subjects(declared, observations[first:])
            except (Exception, SystemExit) as error:  # whatever a metric raises is its result
                observations[first:] = [failed(WHOLE, "metric_raised", say(error))]
                count = 1
            if count == 0:
                observations.append(not_applicable(WHOLE, "nothing_to_observe"))
            if count < 2:
                rows.append(row)
            else:
                rows += [row] * count


def observations_of(
    declared: Metric, conversation: Conversation, given: Mapping[str, Any] = _NO_RESOURCES
) -> Sequence[Observation]:
    """What a metric that can speak says of one conversation; at least one observation."""
    buffer = RowBuffer()
    buffer.observe(declared, [(0, conversation)], given)
    return buffer.observations


async def answered(
    declared: Metric, conversation: Conversation, given: Mapping[str, Any] = _NO_RESOURCES
) -> Sequence[Observation]:
    """The same of a metric that waits."""
    # Only what waits needs it.
    import asyncio

    try:
        observations = await declared.ask(conversation, **given)
        if odd := next((one for one in observations if not isinstance(one, Observation)), None):
            raise TypeError(f"gave {odd!r}, not a score")
        _check_subjects(declared, observations)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # the run was given up
            raise
        return (failed(WHOLE, "metric_raised", say(error)),)
    except BudgetSpent as spent:
        return (unmeasured(WHOLE, "budget_spent", spent.message),)
    except JudgeFailed as failure:
        return (failed(WHOLE, "judge_failed", failure.message),)
    except UnusableAnswer as unusable:
        return (unmeasured(WHOLE, unusable.reason, unusable.detail),)
    except (Exception, SystemExit) as error:  # whatever a metric raises is its result
        return (failed(WHOLE, "metric_raised", say(error)),)
    return observations or (not_applicable(WHOLE, "nothing_to_observe"),)


def _check_subjects(declared: Metric, observations: Sequence[Observation]) -> None:
    """A value of another subject than those that a run is grouped by would be in the figure, and in no group."""
    if declared.observes not in AXES:
        return
    for observation in observations:
        if observation.subject.kind != declared.observes and observation.status == MEASURED:
            raise TypeError(f"observes a {declared.observes}, but gave a value of a {observation.subject.kind}")


def derive(declared: Derived, done: Mapping[str, Sequence[ConversationScore]]) -> Observation:
    """A figure of one conversation from others of it: null when an input is."""
    values: list[float] = []
    voices = [(key, _input_score(declared, key, done)) for key in declared.inputs]
    for key, score in voices:
        if declared.fails_at is not None and score and score.value is not None and score.value <= declared.fails_at:
            return measured(WHOLE, 0, details={"failed": key})
    for key, score in voices:
        if score is None:
            return unmeasured(WHOLE, "input_not_scored", key)
        if score.status != MEASURED or score.value is None:
            explain = not_applicable if score.status == NOT_APPLICABLE else unmeasured
            return explain(WHOLE, input_reason(score.reason), key)
        values.append(score.value)
    try:
        value = declared.function(*values)
        return unmeasured(WHOLE, declared.unscored) if value is None else measured(WHOLE, value)
    except (Exception, SystemExit) as error:  # whatever it raises is its result
        return failed(WHOLE, "metric_raised", say(error))


def _input_score(
    declared: Derived, key: str, done: Mapping[str, Sequence[ConversationScore]]
) -> ConversationScore | None:
    """What an input says; where it has no value, what is used instead, if that has one."""
    score = _voice(done.get(key, ()))
    if (score is None or score.value is None) and key in declared.instead:
        other = _voice(done.get(declared.instead[key], ()))
        return other if other is not None and other.value is not None else score
    return score


def _voice(scores: Sequence[ConversationScore]) -> ConversationScore | None:
    """Who speaks for a metric: the judges that were asked, as a panel where they are several, else people."""
    return max(scores, key=lambda score: speaking_order(score.judge), default=None)


def say(error: BaseException) -> str:
    """An exception in words, even one that cannot speak."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ is broken
        return type(error).__name__


def for_each_judge(observations: Sequence[Observation]) -> Sequence[Observation]:
    """What is said of a subject without a judge counts for each judge: a turn that was not asked about is in its
    denominator. A conversation as a whole is left as it is: one judge may have failed, and another not."""
    judges = list(dict.fromkeys(one.judge for one in observations if one.judge != COMPUTED))
    seen = {(one.judge, one.subject) for one in observations}
    shared = {one.subject: one for one in observations if one.judge == COMPUTED and one.subject != WHOLE}
    kept = [one for one in observations if one.subject not in shared or one.judge != COMPUTED]
    return kept + [
        msgspec.structs.replace(one, judge=judge)
        for judge in judges
        for one in shared.values()
        if (judge, one.subject) not in seen
    ]


def reduce_one(declared: Declared, observations: Sequence[Observation], rule: PanelRule = MEDIAN) -> Evaluated:
    """The observations of one conversation, with those of the panel, and what they come to."""
    try:
        if len(observations) > 1 and any(one.judge != COMPUTED for one in observations):
            observations = for_each_judge(observations)
            observations = (*observations, *panels(observations, declared, rule))
        return Evaluated(declared, observations, reduce_conversation(declared, observations))
    except Exception as error:  # a reducer that does not fit the scores, or a panel whose mean no number can hold
        broken = (failed(WHOLE, "reduction_failed", say(error)),)
        return Evaluated(declared, broken, reduce_conversation(declared, broken))
