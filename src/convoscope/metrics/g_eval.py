"""g_eval: an answer rated by criteria that the user writes, weighted by the probabilities of the scores."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from convoscope.errors import DeclarationError
from convoscope.judging.backends import PROBABILITIES, WEIGHTED
from convoscope.judging.item_questions import item_question
from convoscope.judging.quotes import plain
from convoscope.judging.rubrics import Rubric
from convoscope.judging.yes_no import LEAST_ANSWERED
from convoscope.metrics.item_fields import PRESENT
from convoscope.metrics.judged_calls import RubricAnswer, verdict_or_reason
from convoscope.resources.judge import Judge, Verdict
from convoscope.scores.observation import Observation, unmeasured
from convoscope.views.items import Case

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

LEAST_PROBABILITY = 0.01
"""Scores that are less likely are left out: what a server gives of them is noise."""
_APART = 1000
"""Between the repeats of a run and the iterations of one score, so that answers are not shared."""


class GEvalPlan(NamedTuple):
    """What a judge rates by: criteria, or steps in their order; the ends of the scale; how often it is asked."""

    criteria: str = ""
    low: int = 1
    high: int = 5
    iterations: int = 1

    @property
    def mark(self) -> float:
        """The score that passes."""
        return self.low + 0.7 * (self.high - self.low)

    def of_item(self, data: StandardData) -> GEvalPlan:
        """With the criteria of the item, where the user declared none."""
        if self.criteria:
            return self
        context = data.context if isinstance(data.context, dict) else {}
        steps = context.get("evaluation_steps")
        given = context.get("criteria")
        return self._replace(criteria=criteria_text(given if isinstance(given, str) else "", steps))

    def of(self, rubric: Rubric) -> Rubric:
        """The rubric with these criteria and this scale: another question, which another judge answers."""
        whole = hashlib.sha256(json.dumps([rubric.hash, *self]).encode()).hexdigest()[:12]
        properties = {**rubric.schema["properties"]}
        properties["score"] = {**properties["score"], "minimum": self.low, "maximum": self.high}
        schema = {**rubric.schema, "properties": properties, WEIGHTED: "score"}
        return rubric._replace(low=self.low, high=self.high, passes_at=self.mark, schema=schema, hash=whole)


def criteria_text(criteria: str, steps: Any) -> str:
    """Criteria as they are; of steps, one on each line, by number."""
    listed = [one for one in steps if isinstance(one, str) and one.strip()] if isinstance(steps, list | tuple) else []
    numbered = "\n".join(f"{number}. {one.strip()}" for number, one in enumerate(listed, 1))
    return numbered or criteria.strip()


def checked_plan(name: str, criteria: str, steps: Sequence[str], scale: Sequence[float], iterations: int) -> GEvalPlan:
    """The plan that a user declares. Raises `DeclarationError`."""
    if bool(criteria.strip()) == bool(steps):
        raise DeclarationError(f"{name} needs criteria or steps, and not both", hint='criteria = "Names a next step."')
    whole = all(isinstance(one, int) and not isinstance(one, bool) for one in scale)
    if len(scale) != 2 or not whole or scale[0] >= scale[1]:
        raise DeclarationError(f"{name} has the scale {scale!r}", hint="two whole numbers, the lowest first: [1, 5]")
    if not 1 <= iterations <= 20:
        raise DeclarationError(f"{name} asks {iterations} times", hint="iterations is from 1 to 20")
    return GEvalPlan(criteria_text(criteria, list(steps)), int(scale[0]), int(scale[1]), iterations)


def weighted_score(probabilities: Mapping[str, Any], low: int, high: int) -> float | None:
    """Σ p × k ÷ Σ p over the whole numbers k of the scale that are likely enough; None where they hardly are together.

    None, too, where one of them may be the beginning of another: a tokenizer that splits digits begins 10 with a 1.

    >>> weighted_score({"4": 0.6, "5": 0.2, "9": 0.2}, 1, 5)  # 9 is not on the scale: (2.4 + 1.0) ÷ 0.8
    4.25
    """
    likely = {
        int(score): float(chance)
        for score, chance in probabilities.items()
        if score.isdecimal() and low <= int(score) <= high and _is_chance(chance)
    }
    if any(_may_go_on(score, probabilities, high) for score in likely):
        return None
    total = math.fsum(likely.values())
    return math.fsum(score * chance for score, chance in likely.items()) / total if total >= LEAST_ANSWERED else None


def _may_go_on(score: int, candidates: Mapping[str, Any], high: int) -> bool:
    """Whether a longer number of the scale begins with these digits; not if such a one is a token itself."""
    longer = any(len(one) > len(str(score)) and one.startswith(str(score)) for one in candidates if one.isdecimal())
    return 0 < 10 * score <= high and not longer


def _is_chance(chance: Any) -> bool:
    return isinstance(chance, int | float) and not isinstance(chance, bool) and LEAST_PROBABILITY <= chance <= 1.001


async def by_criteria(plan: GEvalPlan, rubric: Rubric, case: Case, data: StandardData, judge: Judge) -> Observation:
    """The mean of all iterations, by the rubric of a plan. If one of them has no value, the score has none."""
    import asyncio  # only where a judge is asked

    who = rubric.judge(judge.identity)
    asked = item_question([rubric], case, data, lambda field: PRESENT[field](case), criteria=plan.criteria)
    if hidden := [field for field in asked.hidden if field != "context"]:
        return unmeasured(case.subject, "addresses_judge", ", ".join(hidden), judge=who)
    # Where something is missing, the criteria are what asks for it, wherever they are written.
    question = asked.question._replace(texts=(*asked.question.texts, plain(plan.criteria)))
    given = await asyncio.gather(
        *(
            verdict_or_reason(_iteration(judge, number).ask(question.prompt, question.schema), case.subject, who)
            for number in range(plan.iterations)
        )
    )
    if (lacking := next((one for one in given if isinstance(one, Observation)), None)) is not None:
        return lacking
    verdicts = [one for one in given if isinstance(one, Verdict)]
    quotes = [one.answer.get("quote", "") for one in verdicts]
    for verdict, quote in zip(verdicts, quotes, strict=True):
        answered = RubricAnswer(rubric, question, verdict)
        if not answered.rests_on(quote, is_best=verdict.answer["score"] >= rubric.passes_at):
            return answered.unfounded(case.subject, quote)
    weights = [weighted_score(_probabilities(one), plan.low, plan.high) for one in verdicts]
    scores = [one.answer["score"] if weight is None else weight for one, weight in zip(verdicts, weights, strict=True)]
    details = {
        "weighted": all(weight is not None for weight in weights),
        "quote": quotes[0],
        "reasoning": verdicts[0].answer.get("reasoning"),
        "iterations": scores if plan.iterations > 1 else None,
    }
    kept = {name: value for name, value in details.items() if value is not None}
    return RubricAnswer(rubric, question, verdicts[0]).scored(case.subject, math.fsum(scores) / len(scores), kept)


def _probabilities(verdict: Verdict) -> Mapping[str, Any]:
    given = verdict.answer.get(PROBABILITIES)
    return given if isinstance(given, dict) else {}


def _iteration(judge: Judge, number: int) -> Judge:
    """The judge of an iteration; one that knows of no repeats is asked the same again."""
    if not number or not hasattr(judge, "repeated"):
        return judge
    again: Judge = judge.repeated(getattr(judge, "repeat", 0) + number * _APART)
    return again
