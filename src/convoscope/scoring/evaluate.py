"""One conversation through all metrics: its observations, and what they come to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.needs import Need
from convoscope.metrics.registry import Declared
from convoscope.metrics.score import (
    COMPUTED,
    MEASURED,
    NOT_APPLICABLE,
    WHOLE,
    Observation,
    Status,
    failed,
    measured,
    not_applicable,
    unmeasured,
)
from convoscope.statistics.panel import panel
from convoscope.statistics.summary import input_reason
from convoscope.statistics.within import ConversationScore, reduce_conversation


class Evaluated(NamedTuple):
    """What one metric gave for one conversation."""

    declared: Declared
    observations: Sequence[Observation]
    scores: Sequence[ConversationScore]


class Evaluator:
    """Some metrics, made ready to be asked of one conversation after another."""

    def __init__(self, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()) -> None:
        self._metrics = [one for one in metrics if isinstance(one, Metric)]
        derived = [one for one in metrics if isinstance(one, Derived) and one.over == "conversation"]
        self._derived = _in_order(derived)
        self._circular = [one for one in derived if one not in self._derived]
        self._resources = resources

    def evaluate(self, conversation: Conversation) -> list[Evaluated]:
        """Every metric over the conversation. A metric that raises gives an error score; the rest go on.

        Figures derived within a conversation come after the metrics that they need.
        """
        met: dict[int, bool] = {}
        found: list[Evaluated] = []
        for declared in self._metrics:
            unmet = _unmet(declared, conversation, self._resources, met)
            if unmet is None:
                found.append(_reduced(declared, _observed(declared, conversation)))
            elif isinstance(unmet, Need):
                found.append(Evaluated(declared, *_nothing(unmet.code, unmet.otherwise, unmet.detail)))
            else:
                found.append(_reduced(declared, (unmet,)))
        if self._derived:
            done = {one.declared.key: one.scores for one in found}
            for derived in self._derived:
                evaluated = _reduced(derived, (derive(derived, done),))
                done[derived.key] = evaluated.scores
                found.append(evaluated)
        circle = ((one, failed(WHOLE, "circular_inputs", ", ".join(one.inputs))) for one in self._circular)
        found += [_reduced(one, (broken,)) for one, broken in circle]
        return found


def evaluate(
    conversation: Conversation, metrics: Sequence[Declared], resources: frozenset[str] = frozenset()
) -> list[Evaluated]:
    """Every metric over one conversation; for many of them, make an `Evaluator` once."""
    return Evaluator(metrics, resources).evaluate(conversation)


def _in_order(derived: Sequence[Derived]) -> list[Derived]:
    """Each after those that it needs; those that need each other are left out."""
    ordered: list[Derived] = []
    waiting = list(derived)
    while ready := [one for one in waiting if not any(other.key in one.inputs for other in waiting)]:
        ordered += ready
        waiting = [one for one in waiting if one not in ready]
    return ordered


def observe(
    declared: Metric, conversation: Conversation, resources: frozenset[str] = frozenset()
) -> Sequence[Observation]:
    """The observations of one metric, at least one: an unmet need and an exception are observations too."""
    need = _unmet(declared, conversation, resources, {})
    if need is None:
        return _observed(declared, conversation)
    return _nothing(need.code, need.otherwise, need.detail).observations if isinstance(need, Need) else (need,)


def _unmet(
    declared: Metric, conversation: Conversation, resources: frozenset[str], met: dict[int, bool]
) -> Need | Observation | None:
    """The first need that the conversation does not meet, or how looking for it broke.

    Metrics share needs: `met` keeps what is known of this conversation.
    """
    for need in declared.needs:
        known = met.get(id(need))
        if known is None:
            try:
                known = met[id(need)] = need.met(conversation, resources)
            except (Exception, SystemExit) as error:  # whatever a condition raises is the metric's result
                return failed(WHOLE, "metric_raised", _say(error))
        if not known:
            return need
    return None


def _observed(declared: Metric, conversation: Conversation) -> Sequence[Observation]:
    try:
        observations = declared(conversation)
    except (Exception, SystemExit) as error:  # whatever a metric raises is its result
        return (failed(WHOLE, "metric_raised", _say(error)),)
    return observations or (not_applicable(WHOLE, "nothing_to_observe"),)


class _Nothing(NamedTuple):
    observations: Sequence[Observation]
    scores: Sequence[ConversationScore]


@lru_cache(maxsize=1024)
def _nothing(code: str, status: Status, detail: str) -> _Nothing:
    """What a metric gives for want of something: the same for every metric and conversation, so made once."""
    explain = not_applicable if status == NOT_APPLICABLE else unmeasured
    observation = explain(WHOLE, code, detail)
    score = ConversationScore(
        judge=COMPUTED,
        status=status,
        not_applicable=int(status == NOT_APPLICABLE),
        unmeasured=int(status != NOT_APPLICABLE),
        reason=code,
        detail=detail,
    )
    return _Nothing((observation,), [score])


def derive(declared: Derived, done: dict[str, Sequence[ConversationScore]]) -> Observation:
    """A figure of one conversation from others of it: null when an input is."""
    values: list[float] = []
    for key in declared.inputs:
        score = _voice(done.get(key, ()))
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
        return failed(WHOLE, "metric_raised", _say(error))


def _voice(scores: Sequence[ConversationScore]) -> ConversationScore | None:
    """Who speaks for a metric: the panel, else a judge, else nobody's row."""
    order = sorted(scores, key=lambda score: (not score.judge.startswith("panel:"), score.judge == COMPUTED))
    return order[0] if order else None


def _say(error: BaseException) -> str:
    """An exception in words, even one that cannot speak."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:  # its own __str__ is broken
        return type(error).__name__


def _reduced(declared: Declared, observations: Sequence[Observation]) -> Evaluated:
    if len(observations) > 1 and any(one.judge != COMPUTED for one in observations):
        observations = (*observations, *panel(observations))
    try:
        return Evaluated(declared, observations, reduce_conversation(declared, observations))
    except Exception as error:  # a reducer that does not fit the scores
        broken = (failed(WHOLE, "reduction_failed", _say(error)),)
        return Evaluated(declared, broken, reduce_conversation(declared, broken))
