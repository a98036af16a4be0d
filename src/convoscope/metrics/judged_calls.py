"""What a judge says of a call: faithfulness, progression, conciseness, speakability, key entities, the caller.

Each is also what people or other programs said of it: a label of the conversation with the metric's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

from convoscope.conversation import Conversation, Label
from convoscope.judging.answers import UnusableAnswer
from convoscope.judging.backends import BudgetSpent, JudgeFailed
from convoscope.judging.questions import MissingField, Question, question
from convoscope.judging.rubrics import Rubric, rubric_named
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, TURN, Level, Metric, metric
from convoscope.metrics.needs import JUDGE, Need
from convoscope.resources.judge import Judge, Verdict
from convoscope.resources.registry import JUDGE as JUDGE_TYPE
from convoscope.scores.observation import (
    ERROR,
    MEASURED,
    NOT_APPLICABLE,
    UNMEASURED,
    Observation,
    Status,
    Subjectlike,
    in_turn,
    not_applicable,
    subject_of,
)
from convoscope.scores.reducers import MEAN, MEAN_OF_CONVERSATIONS, Reduce
from convoscope.views.items import WHOLE, Subject

EVIDENCE_NOT_FOUND = "evidence_not_found"
_SUBJECT_KINDS = ("turn", "conversation")


class RubricAnswer(NamedTuple):
    """An answer about one conversation, and what it answers."""

    rubric: Rubric
    question: Question
    verdict: Verdict

    def scored(self, what: Subjectlike, rating: float | None, details: Mapping[str, Any]) -> Observation:
        """A rating of the rubric's scale as a score from 0 to 1. Without a rating the score is unmeasured."""
        judge = self.rubric.judge(self.verdict.judge)
        whole = {"rating": rating, "scale": [self.rubric.low, self.rubric.high], **details, **self._cost()}
        if rating is None:
            return _without(what, UNMEASURED, "not_judged", "the answer leaves it out", judge, whole)
        return Observation(
            subject=subject_of(what), status=MEASURED, value=self.rubric.value(rating), judge=judge, details=whole
        )

    def unfounded(self, what: Subjectlike, quote: str) -> Observation:
        """A rating that rests on words which are not in the conversation."""
        judge = self.rubric.judge(self.verdict.judge)
        return _without(what, UNMEASURED, EVIDENCE_NOT_FOUND, quote[:200], judge, {"quote": quote, **self._cost()})

    def _cost(self) -> dict[str, Any]:
        verdict = self.verdict
        taken = {
            "input_tokens": verdict.input_tokens,
            "output_tokens": verdict.output_tokens,
            "cost": verdict.cost,
            "seconds": verdict.seconds and round(verdict.seconds, 3),
            "withheld": list(self.question.withheld) or None,
            "without": list(self.question.absent) or None,
            "repaired": verdict.is_repaired or None,
        }
        return {name: value for name, value in taken.items() if value is not None}


def _without(
    what: Subjectlike, status: Status, reason: str, detail: str, judge: str, details: Mapping[str, Any] | None = None
) -> Observation:
    return Observation(
        subject=subject_of(what), status=status, reason=reason, detail=detail, judge=judge, details=details or None
    )


async def judged(rubric: Rubric, conversation: Conversation, judge: Judge) -> RubricAnswer | Observation:
    """The judge's answer to a rubric about a conversation; a score without a value where there is none to be had."""
    name = rubric.judge(judge.identity)
    if not conversation.contents.has_assistant_speech:
        return _without(WHOLE, NOT_APPLICABLE, "no_assistant_speech", "", name)
    asked = question(rubric, conversation)
    if asked == MissingField("goal"):
        return _without(WHOLE, NOT_APPLICABLE, "no_scenario", "", name)
    if isinstance(asked, MissingField):
        return _without(WHOLE, UNMEASURED, f"no_{asked.name}", "", name)
    try:
        return RubricAnswer(rubric, asked, await judge.ask(asked.prompt, asked.schema))
    except UnusableAnswer as unusable:
        return _without(WHOLE, UNMEASURED, unusable.reason, unusable.detail, name, {"raw": unusable.raw})
    except BudgetSpent as spent:
        return _without(WHOLE, UNMEASURED, "budget_spent", spent.message, name)
    except JudgeFailed as failure:
        return _without(WHOLE, ERROR, "judge_failed", failure.message, name)


Reading = Callable[[RubricAnswer, Conversation], Iterator[Observation]]


def _minimum(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """The lowest rating of all dimensions."""
    yield _by_dimensions(answer, conversation, min)


def _progression(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """3 where nothing is flagged; 1 where a dimension is rated 1 or three are flagged; else 2."""

    def overall(ratings: list[int]) -> int:
        flagged = sum(rating < 3 for rating in ratings)
        return 3 if not flagged else 1 if min(ratings) == 1 or flagged >= 3 else 2

    yield _by_dimensions(answer, conversation, overall)


def _by_dimensions(
    answer: RubricAnswer, conversation: Conversation, overall: Callable[[list[int]], int]
) -> Observation:
    answered = answer.verdict.answer["dimensions"]
    dimensions: dict[str, dict[str, Any]] = {}
    inconsistent = 0
    for name, dimension in answered.items():
        if name not in answer.rubric.schema["properties"]["dimensions"]["properties"]:
            continue
        if name == "violating_policies" and "instructions" in answer.question.absent:
            continue
        flagged = dimension["rating"] < answer.rubric.high
        inconsistent += flagged != dimension["flagged"]
        if flagged and not answer.question.has_quote(dimension["quote"]):
            return answer.unfounded(conversation, dimension["quote"])
        dimensions[name] = {**dimension, "flagged": flagged}
    rating = overall([dimension["rating"] for dimension in dimensions.values()])
    details = {"dimensions": dimensions, "inconsistent": inconsistent, "partial": len(dimensions) < len(answered)}
    worst = min(dimensions.values(), key=lambda dimension: dimension["rating"])
    return answer.scored(conversation, rating, {**details, "quote": worst["quote"], "reasoning": worst["explanation"]})


def _by_turn(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """The rating of each turn in which the agent speaks. A turn that the answer lacks is unmeasured."""
    turns = answer.verdict.answer["turns"]
    times = Counter(turn["turn_id"] for turn in turns)
    by_id = {turn["turn_id"]: turn for turn in turns}
    spoken = [turn.id for turn in conversation.turns if turn.assistant_text]
    unknown = len(by_id.keys() - set(spoken))
    for number in spoken:
        subject = in_turn(number)
        if number in answer.question.withheld:
            name = answer.rubric.judge(answer.verdict.judge)
            yield _without(subject, UNMEASURED, "addresses_judge", "the judge did not see this turn", name)
        elif times[number] != 1:
            yield answer.scored(subject, None, {"given": times[number], "unknown_turns": unknown})
        else:
            turn = by_id[number]
            flagged = turn["rating"] < answer.rubric.high
            if flagged and not answer.question.has_quote(turn["quote"]):
                yield answer.unfounded(subject, turn["quote"])
            else:
                modes = turn.get("failure_modes", []) if flagged else []
                details = {"quote": turn["quote"], "reasoning": turn["explanation"], "failure_modes": modes}
                yield answer.scored(subject, turn["rating"], {**details, "unknown_turns": unknown})


def _entities(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Entities that arrived ÷ entities, of each turn of the user that has one."""
    by_id = {turn["turn_id"]: turn["entities"] for turn in answer.verdict.answer["turns"]}
    for turn in conversation.turns:
        if not turn.user_text:
            continue
        subject = in_turn(turn.id)
        if turn.id not in by_id:
            yield answer.scored(subject, None, {})
            continue
        entities = [entity for entity in by_id[turn.id] if not entity["skipped"]]
        lost = next((one["value"] for one in entities if not answer.question.has_quote(one["value"])), None)
        if lost is not None:
            yield answer.unfounded(subject, lost)
        elif not entities:
            name = answer.rubric.judge(answer.verdict.judge)
            yield not_applicable(subject, "no_entities", judge=name)
        else:
            right = sum(entity["correct"] for entity in entities)
            wrong = next((entity for entity in entities if not entity["correct"]), None)
            details = {
                "entities": entities,
                "quote": wrong["value"] if wrong else "",
                "reasoning": wrong["analysis"] if wrong else "",
            }
            yield answer.scored(subject, right / len(entities), details)


def _corruptions(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """1 where the caller did nothing of what the rubric names."""
    analysis = answer.verdict.answer["corruption_analysis"]
    detected = {name: corruption for name, corruption in analysis.items() if corruption["detected"]}
    for corruption in detected.values():
        if not answer.question.has_quote(corruption["quote"]):
            yield answer.unfounded(conversation, corruption["quote"])
            return
    first = next(iter(detected.values()), {"quote": "", "analysis": ""})
    details = {"detected": sorted(detected), "quote": first["quote"], "reasoning": first["analysis"]}
    yield answer.scored(conversation, 0 if detected else 1, details)


def _call_metric(
    name: str, observes: Level, definition: str, reading: Reading | None, *, version: int, importance: int = 6
) -> Metric:
    """Declare a judged metric: its rubric has its name. Without a reading, only labels speak: it needs the sound."""

    async def verdicts(conversation: Conversation, judge: Judge | None = None) -> AsyncIterator[Observation]:
        if judge is None or reading is None:
            for observation in labelled(conversation, name):
                yield observation
            return
        rubric = rubric_named(name, getattr(judge, "rubric_folders", ()))
        answer = await judged(rubric, conversation, judge)
        if isinstance(answer, Observation):
            yield answer
            return
        for observation in reading(answer, conversation):
            yield observation

    rule = "Only the sound can answer this: without a label it is unmeasured."
    if reading is not None:
        rule = (
            f"{(reading.__doc__ or '').strip()} The scale of the rubric becomes 0 to 1; the rating is in the details. "
            "An answer off the scale, or one that rests on a quote which is not in the conversation, is unmeasured."
        )
    verdicts.__doc__ = f"""{definition}

    {rule} A label named `{name}` with a value from 0 to 1 is a verdict too, of the person or program that gave it.

    >>> label = {{"name": "{name}", "value": 0.5, "rater_kind": "human", "subject_kind": "conversation", "subject": ""}}
    >>> value("judged.{name}", example("user: Hello?", labels=[label]))
    0.5
    """
    need = Need(
        code=JUDGE.code,
        field="labels",
        unlock=f"{'' if reading is None else 'a judge (--judge openai:MODEL), or '}"
        f"a label `{name}` with a value from 0 to 1",
        present=lambda conversation: any(_is_of(label, name) for label in conversation.labels),
        resource="" if reading is None else JUDGE_TYPE,
    )
    return metric(
        f"judged.{name}",
        version=version,
        observes=observes,
        unit=RATIO,
        better=HIGHER,
        needs=(need,),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        importance=importance,
        sensitive_to=(),
    )(verdicts)


faithfulness = _call_metric(
    "faithfulness",
    CONVERSATION,
    "Does the agent keep to what its instructions, its tools and the user say?",
    _minimum,
    version=2,
)
agent_speech_fidelity = _call_metric(
    "agent_speech_fidelity",
    TURN,
    "Can the names, codes and numbers be heard as the agent meant to say them?",
    None,
    version=1,
)
conversation_progression = _call_metric(
    "conversation_progression",
    CONVERSATION,
    "Does the agent move the conversation forward, without detours and without asking twice?",
    _progression,
    version=2,
)
conciseness = _call_metric(
    "conciseness", TURN, "Does the agent say what is needed, in words that an ear can follow?", _by_turn, version=2
)
speakability = _call_metric(
    "speakability", TURN, "Can the text of the agent be spoken as it is written?", _by_turn, version=1, importance=3
)
transcription_accuracy_key_entities = _call_metric(
    "transcription_accuracy_key_entities",
    TURN,
    "Do the names, codes and numbers of the caller arrive?",
    _entities,
    version=1,
    importance=5,
)
user_behavioral_fidelity = _call_metric(
    "user_behavioral_fidelity",
    CONVERSATION,
    "Does a simulated caller keep to its task?",
    _corruptions,
    version=1,
    importance=2,
)


def labelled(conversation: Conversation, name: str) -> Iterator[Observation]:
    """The verdicts that came with the data. One on each turn says more than one on the whole; they are not mixed."""
    labels = [label for label in conversation.labels if _is_of(label, name)]
    kind = min((label.subject_kind for label in labels), key=_SUBJECT_KINDS.index, default="")
    seen: Counter[tuple[Subject, str]] = Counter()
    for label in labels:
        if label.subject_kind == kind:
            yield _label_score(label, seen)


def _is_of(label: Label, name: str) -> bool:
    return label.name in (name, f"judged.{name}") and label.subject_kind in _SUBJECT_KINDS


def _label_score(label: Label, seen: Counter[tuple[Subject, str]]) -> Observation:
    subject = WHOLE
    if label.subject_kind == "turn":
        subject = in_turn(int(label.subject)) if label.subject.isdecimal() else Subject("turn", label.subject)
    judge = f"{label.rater_kind}:{label.rater or 'unnamed'}"
    repeat = seen[subject, judge]
    seen[subject, judge] += 1
    value = label.value
    details = {"notes": label.notes} if label.notes else None
    if isinstance(value, int | float) and 0 <= value <= 1:
        return Observation(
            subject=subject, status=MEASURED, value=float(value), judge=judge, repeat=repeat, details=details
        )
    return Observation(
        subject=subject, status=UNMEASURED, reason="not_on_scale", detail=f"{value!r}", judge=judge, repeat=repeat
    )
