"""What a judge says of each reply (dialogue, 1.11)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from typing import Any

from convoscope.conversation import Conversation
from convoscope.conversation.turns import Turn
from convoscope.judging.questions import GIVEN, MissingField, ShownLine, question_of
from convoscope.judging.rubrics import rubric_named
from convoscope.metrics.declaration import HIGHER, TURN, metric
from convoscope.metrics.dialogue.declared import WHOLE_SYSTEM
from convoscope.metrics.dialogue.frames import (
    dialogue_turns,
    has_predictions,
    has_truth,
    others_speak,
    predicted_replies,
    rules_of,
)
from convoscope.metrics.judged_calls import RubricAnswer, answer_to, quoted_score
from convoscope.metrics.needs import NAMED, Need
from convoscope.resources.judge import Judge
from convoscope.scores.observation import NOT_APPLICABLE, Observation, not_applicable, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, MEAN_OF_SUBJECTS, Reduce

LOWEST, HIGHEST = 1, 5
RUBRIC = "response_quality"
_BEFORE = -2
"""Instead of a turn: what came before the reply."""
_PREDICTED = Need(
    "no_predictions",
    "frames of origin predicted",
    "predictions beside the annotated dialogues: their own replies are those of people",
    lambda conversation: has_predictions(conversation) or not has_truth(conversation),
)
_ASKED_FOR = Need(
    "not_named",
    "frames of origin predicted",
    "predicted replies; or its name in --metrics, for each turn is a question",
    lambda conversation: predicted_replies(conversation) is not None,
    resource=NAMED,
    status_if_missing=NOT_APPLICABLE,
)


@metric(
    "dialogue.response_quality",
    version=9,
    observes=TURN,
    unit="points",
    better=HIGHER,
    needs=(_PREDICTED, _ASKED_FOR),
    reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
    also={"micro": MEAN_OF_SUBJECTS},
    component=WHOLE_SYSTEM,
    label="quality of replies",
    importance=6,
    sensitive_to=(),
)
async def response_quality(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
    """How good is the reply, from 1 to 5, as a judge says?

    It rates correctness, completeness, clarity and whether rules are kept, by its rubric. It sees what was said before,
    what the user wants as far as that is annotated, and the rules: the agent's instructions, and those of booking.
    Where a system predicts the replies of a dialogue that others held, the predicted reply is judged; a turn
    without one, or with an empty one, is unmeasured, and the judge is not asked. In an agent's own log its own
    reply is judged, if the metric is named. A verdict off the scale is unmeasured, never 0, and so is one below 5
    that quotes nothing of the reply. A turn without words on both sides is not applicable.

    >>> quality_score('Good. {"score": 4}'), quality_score({"score": 9})
    (4.0, None)
    """
    predicted = predicted_replies(conversation)
    rubric = rubric_named(RUBRIC, getattr(judge, "rubric_folders", ()))
    who = rubric.judge(judge.identity)
    shown = _Shown(conversation)
    for turn in conversation.turns:
        reply = turn.assistant_text if predicted is None else predicted.get(turn.id)
        if not turn.user_text or reply == "":
            yield not_applicable(turn, "no_exchange", judge=who)
        elif reply is None:
            yield unmeasured(turn, "not_predicted", judge=who)
        else:
            asked = question_of(rubric, shown.fields(turn, reply), "reply")
            if isinstance(asked, MissingField):
                yield unmeasured(turn, f"no_{asked.name}", judge=who)
            elif turn.id in asked.withheld:
                yield unmeasured(turn, "addresses_judge", "the judge did not see this turn", judge=who)
            else:
                answer = await answer_to(rubric, asked, judge, turn)
                yield answer if isinstance(answer, Observation) else _score(answer, turn)
        shown.add(turn)


def _score(answer: RubricAnswer, turn: Turn) -> Observation:
    """The score of an answer in points."""
    given = answer.verdict.answer
    return quoted_score(answer, turn, given["score"], given.get("reasoning") or given.get("reason") or "")


class _Shown:
    """What a judge is shown of a dialogue, turn by turn."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.others_speak = others_speak(conversation)
        self.history: list[ShownLine] = []
        self.states = {turn.number: turn.truth.state for turn in dialogue_turns(conversation)}
        instructions = conversation.agent.instructions
        self.rules = [ShownLine(GIVEN, "instructions of the agent", line) for line in [instructions] if line]
        if has_truth(conversation) or has_predictions(conversation):
            needed = {domain: list(slots) for domain, slots in rules_of(conversation).items()}
            self.rules.append(ShownLine(GIVEN, "what must be known before something is booked", needed))

    def fields(self, turn: Turn, reply: str) -> dict[str, list[ShownLine]]:
        state = self.states.get(turn.id)
        calls = [] if self.others_speak else list(self._calls(turn))
        return {
            "history": [*self.history, *calls],
            "state": [] if state is None else [ShownLine(GIVEN, "state", state)],
            "rules": self.rules,
            "user": [ShownLine(_BEFORE, "user", turn.user_text)],
            "reply": [ShownLine(turn.id, "assistant", reply)],
        }

    def add(self, turn: Turn) -> None:
        """The turn is history from now on."""
        texts = [(turn.user_text, "user"), (turn.assistant_text, "assistant")]
        lines = [ShownLine(_BEFORE, f"[turn {turn.id}] {who}", text) for text, who in texts if text]
        self.history += [*lines[:1], *self._calls(turn), *lines[1:]]

    def _calls(self, turn: Turn) -> Iterator[ShownLine]:
        results = self.conversation.tool_results
        for call in turn.tool_calls:
            asked = {"tool": call.name, "arguments": call.arguments}
            yield ShownLine(_BEFORE, f"[turn {turn.id}] the assistant calls", asked)
            if (result := results.get(call.seq)) is not None:
                yield ShownLine(_BEFORE, f"[turn {turn.id}] it returns", result.error or result.result)


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
