"""How human an agent sounds: what a judge says of the whole conversation, or labels that came with the data."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import msgspec

from convoscope.conversation import Conversation, Label
from convoscope.metrics.declaration import CONVERSATION, FULL_MARKS, HIGHER, RATIO, metric
from convoscope.metrics.judged_calls import RubricAnswer, asking
from convoscope.metrics.needs import JUDGE, NOT_BROKEN, Need
from convoscope.resources.judge import Judge
from convoscope.resources.registry import JUDGE as JUDGE_TYPE
from convoscope.scores.observation import Observation, measured, unmeasured
from convoscope.views.flow.walk import walk
from convoscope.views.items import WHOLE

_NAMES = ("humanness", "flow.humanness")
_BOUNDS = re.compile(r"(?:from )?0(?:\.0*)?\s*(?:-|–|to|\.\.\.?|…|/)\s*(\d+(?:\.\d+)?)")


def _labels(conversation: Conversation) -> list[Label]:
    return [label for label in conversation.labels if label.name in _NAMES and label.subject_kind == "conversation"]


def _labelled(conversation: Conversation) -> Iterator[Observation]:
    """What raters said who came with the data, each for itself."""
    repeats: Counter[str] = Counter()
    for label in _labels(conversation):
        judge = f"{label.rater_kind}:{label.rater or 'unnamed'}"
        most = _highest(label.scale)
        value = label.value
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if most is not None and number and 0 <= value <= most:
            details = {"notes": label.notes} if label.notes else None
            yield measured(WHOLE, value / most, judge=judge, repeat=repeats[judge], details=details)
        else:
            detail = f"{value!r} on {label.scale or '0 to 1'}"[:80]
            broken = unmeasured(WHOLE, "not_on_scale", detail, judge=judge)
            yield msgspec.structs.replace(broken, repeat=repeats[judge])
        repeats[judge] += 1


def _highest(scale: str) -> float | None:
    """The upper end of a scale that begins at 0, such as `0-10`; 1 without a scale, None where it is another."""
    if not scale.strip():
        return 1.0
    bounds = _BOUNDS.fullmatch(scale.strip().casefold())
    return float(bounds[1]) if bounds and float(bounds[1]) > 0 else None


def _rating(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """The rating of the conversation. Below the best it rests on words of the agent."""
    given = answer.verdict.answer
    quote, rating = given["quote"], given["rating"]
    is_best = rating == answer.rubric.high and not quote.strip()
    if not is_best and not any(answer.question.has_quote(quote, turn) for turn in answer.question.agent_texts):
        yield answer.unfounded(conversation, quote)
    else:
        yield answer.scored(conversation, rating, {"quote": quote, "reasoning": given["explanation"]})


_asked = asking("humanness", _rating, _labelled, "")


@metric(
    "flow.humanness",
    version=5,
    label="sounds like a person",
    importance=4,
    observes=CONVERSATION,
    unit=RATIO,
    better=HIGHER,
    needs=(
        NOT_BROKEN,
        Need(
            JUDGE.code,
            "labels",
            "a judge (--judge openai:MODEL), or a label `humanness` from 0 to 1, or from 0 to N with that scale",
            lambda conversation: bool(_labels(conversation)),
            resource=JUDGE_TYPE,
        ),
    ),
    aspect="humanness",
    sensitive_to=(),
    ten=FULL_MARKS,
)
async def humanness(conversation: Conversation, judge: Judge | None = None) -> AsyncIterator[Observation]:
    """Does the agent sound like a person who is good at this job?

    A judge rates the conversation from 0 to 10 by its rubric, whether or not the task was done; the value is a tenth
    of that. An answer off the scale, or one that rests on words that the agent does not say, is unmeasured. Without a
    judge, labels named `humanness` speak, with a value from 0 to 1 or to the upper end of the scale that they name.
    Each judge speaks for itself, and a panel is the median of several. The details say in which state it ended.

    >>> value("flow.humanness", example("user: Hello?", labels=[{"name": "humanness", "value": 7, "scale": "0-10"}]))
    0.7
    """
    ended_in = walk(conversation).last
    async for observation in _asked(conversation, judge):
        details = {**(observation.details or {}), "ended_in": ended_in} if ended_in else observation.details
        yield msgspec.structs.replace(observation, details=details)
