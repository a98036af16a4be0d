"""What a judge says of each reply (dialogue, 1.11)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import HIGHER, TURN, metric
from convoscope.metrics.dialogue.declared import WHOLE_SYSTEM
from convoscope.metrics.dialogue.frames import predicted_replies
from convoscope.resources.judge import Judge
from convoscope.scores.observation import Observation, measured, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, MEAN_OF_SUBJECTS, Reduce

LOWEST, HIGHEST = 1, 5
PROMPT = """Score the reply of an assistant to its user, from 1 (bad) to 5 (good).
Look at correctness, completeness, clarity, and whether it keeps to its rules.

User: {user}
Assistant: {assistant}
"""
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "score": {"type": "integer", "minimum": LOWEST, "maximum": HIGHEST},
        "reason": {"type": "string"},
    },
    "required": ["score"],
}


@metric(
    "dialogue.response_quality",
    version=2,
    observes=TURN,
    unit="points",
    better=HIGHER,
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    also={"micro": MEAN_OF_SUBJECTS},
    component=WHOLE_SYSTEM,
    label="quality of replies",
    importance=6,
    sensitive_to=(),
)
async def response_quality(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
    """How good is the reply, from 1 to 5, as a judge says?

    Where a system predicts the replies of a dialogue that others held, the predicted reply is judged; a turn without
    one is unmeasured. A verdict off the scale is unmeasured, never 0. A turn without words on both sides is not
    applicable.

    >>> quality_score('Good. {"score": 4}'), quality_score({"score": 9})
    (4.0, None)
    """
    predicted = predicted_replies(conversation)
    for turn in conversation.turns:
        reply = turn.assistant_text if predicted is None else predicted.get(turn.id)
        if not turn.user_text or reply == "":
            yield not_applicable(turn, "no_exchange")
            continue
        if reply is None:
            yield unmeasured(turn, "not_predicted")
            continue
        verdict = await judge.ask(PROMPT.format(user=turn.user_text, assistant=reply), SCHEMA)
        score = quality_score(verdict.answer)
        if score is None:
            yield unmeasured(turn, "verdict_unusable", judge=verdict.judge)
        else:
            yield measured(turn, score, judge=verdict.judge, details=dict(verdict.answer))


def quality_score(answer: Any) -> float | None:
    """The score of a verdict; None without one, or off the scale. Of a text, its first JSON object counts."""
    if isinstance(answer, str):
        answer = first_object(answer)
    score = answer.get("score") if isinstance(answer, Mapping) else None
    if isinstance(score, bool) or not isinstance(score, (int, float)):
        return None
    return float(score) if LOWEST <= score <= HIGHEST else None


_MOST_BRACES = 100
_DECODE = json.JSONDecoder(strict=False).raw_decode


def first_object(text: str) -> dict[str, Any] | None:
    """The first JSON object in a text, whatever is around it: models like to explain and to fence."""
    start = text.find("{")
    for _ in range(_MOST_BRACES):
        if start < 0:
            break
        with suppress(ValueError, RecursionError):
            value: dict[str, Any] = _DECODE(text, start)[0]
            return value
        start = text.find("{", start + 1)
    return None
