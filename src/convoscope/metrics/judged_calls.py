"""What a judge says of a call: faithfulness, progression, conciseness, speakability, key entities, the caller.

Each is also what people or other programs said of it: a label of the conversation with the metric's name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.judging.answers import NOT_ON_SCALE, UnusableAnswer
from convoscope.judging.backends import SCORES, YES_NO, BudgetSpent, JudgeFailed
from convoscope.judging.questions import MissingField, Question, question
from convoscope.judging.rubrics import Rubric, rubric_named
from convoscope.judging.yes_no import form_of, yes_no_verdict
from convoscope.metrics.declaration import CONVERSATION, HIGHER, RATIO, TURN, Level, Metric, metric
from convoscope.metrics.items import error_text
from convoscope.metrics.needs import JUDGE, NO_ITEMS, Need
from convoscope.metrics.verdicts import has_verdict, labelled
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
from convoscope.views.machines import is_call
from convoscope.views.metric_context import metric_context

EVIDENCE_NOT_FOUND = "evidence_not_found"


class RubricAnswer(NamedTuple):
    """An answer about one conversation, and what it answers."""

    rubric: Rubric
    question: Question
    verdict: Verdict
    form: str = SCORES

    def rests_on(self, quote: str, turn: int | None = None, *, is_best: bool = False) -> bool:
        """Whether the words are in the conversation, or in what the agent says in a turn.

        The best rating needs no words. An answer of one word has none: its score says so.
        """
        return self.form == YES_NO or (is_best and not quote.strip()) or self.question.has_quote(quote, turn)

    def scored(self, what: Subjectlike, rating: float | None, details: Mapping[str, Any]) -> Observation:
        """A rating of the rubric's scale as a score. Without a rating, or off the scale, the score is unmeasured."""
        rubric = self.rubric
        judge = rubric.judge(self.verdict.judge)
        scale: dict[str, Any] = {"scale": [rubric.low, rubric.high], "passes_at": rubric.value(rubric.passes_at)}
        if rubric.values not in ((0, 1), (rubric.low, rubric.high)):
            scale["value_scale"] = list(rubric.values)
        whole = {"rating": rating, **scale, **details, **self._cost()}
        if rating is None:
            return without_value(what, UNMEASURED, "not_judged", "the answer leaves it out", judge, whole)
        if not rubric.low <= rating <= rubric.high:
            detail = f"{rating:g} is not from {rubric.low} to {rubric.high}"
            return without_value(what, UNMEASURED, NOT_ON_SCALE, detail, judge, whole)
        return Observation(
            subject=subject_of(what), status=MEASURED, value=self.rubric.value(rating), judge=judge, details=whole
        )

    def unfounded(self, what: Subjectlike, quote: str) -> Observation:
        """A rating that rests on words which are not in the conversation."""
        judge = self.rubric.judge(self.verdict.judge)
        detail = quote[:200] if quote.strip() else "the answer quotes nothing"
        return without_value(what, UNMEASURED, EVIDENCE_NOT_FOUND, detail, judge, {"quote": quote, **self._cost()})

    def unseen(self, what: Subjectlike) -> Observation:
        """A part of the conversation that addresses the judge, which did not see it."""
        judge = self.rubric.judge(self.verdict.judge)
        return without_value(what, UNMEASURED, "addresses_judge", "the judge did not see this turn", judge)

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
            "form": YES_NO if self.form == YES_NO else None,
            "evidence": "none" if self.form == YES_NO else None,
        }
        return {name: value for name, value in taken.items() if value is not None}


def quoted_score(answer: RubricAnswer, what: Subjectlike, rating: float, reasoning: str, **details: Any) -> Observation:
    """A rating of one thing that a judge was shown. Below the best it rests on a quote, if the rubric asks for one.

    A rubric of the user's own may ask for none.
    """
    quote = str(answer.verdict.answer.get("quote") or "")
    is_best = rating == answer.rubric.high or "quote" not in answer.rubric.schema.get("properties", ())
    if not answer.rests_on(quote, is_best=is_best):
        return answer.unfounded(what, quote)
    return answer.scored(what, rating, {"quote": quote, "reasoning": reasoning, **details})


def without_value(
    what: Subjectlike, status: Status, reason: str, detail: str, judge: str, details: Mapping[str, Any] | None = None
) -> Observation:
    return Observation(
        subject=subject_of(what), status=status, reason=reason, detail=detail, judge=judge, details=details or None
    )


async def judged(rubric: Rubric, conversation: Conversation, judge: Judge) -> RubricAnswer | Observation:
    """The judge's answer to a rubric about a conversation; a score without a value where there is none to be had."""
    name = rubric.judge(judge.identity)
    if not conversation.contents.has_assistant_speech:
        return without_value(WHOLE, NOT_APPLICABLE, "no_assistant_speech", "", name)
    asked = question(rubric, conversation)
    if asked == MissingField("goal"):
        return without_value(WHOLE, NOT_APPLICABLE, "no_scenario", "", name)
    if isinstance(asked, MissingField):
        return without_value(WHOLE, UNMEASURED, f"no_{asked.name}", "", name)
    return await answer_to(rubric, asked, judge)


async def answer_to(
    rubric: Rubric, asked: Question, judge: Judge, what: Subjectlike = WHOLE
) -> RubricAnswer | Observation:
    """The judge's answer to a question about something; a score without a value where there is none to be had."""
    form = form_of(judge)
    asking = (
        yes_no_verdict(judge, rubric, asked, _unasked(asked))
        if form == YES_NO
        else judge.ask(asked.prompt, asked.schema)
    )
    verdict = await verdict_or_reason(asking, what, rubric.judge(judge.identity))
    return verdict if isinstance(verdict, Observation) else RubricAnswer(rubric, asked, verdict, form)


async def verdict_or_reason(asking: Awaitable[Verdict], what: Subjectlike, judge: str) -> Verdict | Observation:
    """What a judge answers; a score without a value where there is nothing to be had of it."""
    try:
        return await asking
    except UnusableAnswer as unusable:
        return without_value(what, UNMEASURED, unusable.reason, unusable.detail, judge, {"raw": unusable.raw})
    except BudgetSpent as spent:
        return without_value(what, UNMEASURED, "budget_spent", spent.message, judge)
    except JudgeFailed as failure:
        return without_value(what, ERROR, "judge_failed", failure.message, judge)
    except Exception as error:  # whatever a judge of the user's own raises is its answer, and no other judge's
        return without_value(what, ERROR, "judge_failed", error_text(error), judge)


def _unasked(asked: Question) -> set[str]:
    """Dimensions without a question: there are no instructions to break, or no tool was called."""
    without_rules = {"violating_policies"} if "instructions" in asked.absent else set()
    return without_rules | (set() if asked.has_calls else set(_ABOUT_CALLS))


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


_ABOUT_CALLS = ("fabricating_tool_parameters", "misrepresenting_tool_result", "unnecessary_tool_calls")
"""Dimensions in which nothing can be wrong where no tool was called."""
_MANY_CALLS = 3
"""So many needless calls are rated 1."""


class RatedDimensions(NamedTuple):
    """What an answer says of each dimension, as far as it counts."""

    by_name: dict[str, dict[str, Any]]
    inconsistent: int
    """How often the answer contradicts itself or what the log shows. The rating counts."""
    is_partial: bool
    """A dimension could not be rated, for want of what it is rated by."""
    unfounded: str | None = None
    """The quote of a dimension that is not in the conversation."""


def rated_dimensions(answer: RubricAnswer) -> RatedDimensions:
    """The dimensions of an answer, by the rules that the judge is given too."""
    names = answer.rubric.schema["properties"]["dimensions"]["properties"]
    is_without_rules = "violating_policies" in names and "instructions" in answer.question.absent
    answered = dict(answer.verdict.answer["dimensions"])
    if not answer.question.has_calls:
        fine = {"explanation": "no tool was called", "quote": "", "flagged": False, "rating": answer.rubric.high}
        answered |= {name: fine for name in _ABOUT_CALLS if name in names and name not in answered}
    by_name: dict[str, dict[str, Any]] = {}
    inconsistent = 0
    for name, dimension in answered.items():
        if name not in names or (name == "violating_policies" and is_without_rules):
            continue
        rating = dimension["rating"]
        if name in _ABOUT_CALLS and not answer.question.has_calls:
            rating = answer.rubric.high
        elif dimension.get("calls", 0) >= _MANY_CALLS:
            rating = answer.rubric.low
        flagged = rating < answer.rubric.high
        inconsistent += flagged != dimension["flagged"] or rating != dimension["rating"]
        if not answer.rests_on(dimension["quote"], is_best=not flagged):
            return RatedDimensions({}, inconsistent, is_without_rules, dimension["quote"])
        by_name[name] = {**dimension, "rating": rating, "flagged": flagged}
    return RatedDimensions(by_name, inconsistent, is_without_rules)


def _by_dimensions(
    answer: RubricAnswer, conversation: Conversation, overall: Callable[[list[int]], int]
) -> Observation:
    rated = rated_dimensions(answer)
    if rated.unfounded is not None:
        return answer.unfounded(conversation, rated.unfounded)
    dimensions = rated.by_name
    rating = overall([dimension["rating"] for dimension in dimensions.values()])
    details = {"dimensions": dimensions, "inconsistent": rated.inconsistent, "partial": rated.is_partial}
    worst = min(dimensions.values(), key=lambda dimension: dimension["rating"])
    return answer.scored(conversation, rating, {**details, "quote": worst["quote"], "reasoning": worst["explanation"]})


def _by_turn(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """The rating of each turn in which the agent speaks. A turn that the answer lacks is unmeasured."""
    del conversation
    for number, turn in rated_turns(answer):
        subject = in_turn(number)
        if isinstance(turn, Observation):
            yield turn
            continue
        flagged = turn["rating"] < answer.rubric.high
        if not answer.rests_on(turn["quote"], number, is_best=not flagged):
            yield answer.unfounded(subject, turn["quote"])
        else:
            details = {"quote": turn["quote"], "reasoning": turn["explanation"], "unknown_turns": turn["unknown_turns"]}
            if "failure_modes" in turn:
                details["failure_modes"] = turn["failure_modes"] if flagged else []
            if "probability" in turn:
                details["probability"] = turn["probability"]
            yield answer.scored(subject, turn["rating"], details)


def rated_turns(answer: RubricAnswer) -> Iterator[tuple[int, Mapping[str, Any] | Observation]]:
    """What the answer says of each turn that was to be rated; a score without a value where it says nothing usable."""
    turns = answer.verdict.answer["turns"]
    times = Counter(turn["turn_id"] for turn in turns)
    by_id = {turn["turn_id"]: turn for turn in turns}
    unknown = len(by_id.keys() - set(answer.question.rated))
    for number in answer.question.rated:
        if number in answer.question.withheld:
            yield number, answer.unseen(in_turn(number))
        elif times[number] != 1:
            yield number, answer.scored(in_turn(number), None, {"given": times[number], "unknown_turns": unknown})
        else:
            yield number, {**by_id[number], "unknown_turns": unknown}


def _entities(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """Entities that arrived ÷ entities, of each turn of the user; of each tool call where the model hears sound."""
    for subject, entities in rated_entities(answer, conversation):
        if isinstance(entities, Observation):
            yield entities
        elif not entities:
            yield not_applicable(subject, "no_entities", judge=answer.rubric.judge(answer.verdict.judge))
        else:
            right = sum(entity["correct"] for entity in entities)
            wrong = next((entity for entity in entities if not entity["correct"]), None)
            details = {
                "entities": entities,
                "quote": wrong["value"] if wrong else "",
                "reasoning": wrong["analysis"] if wrong else "",
            }
            yield answer.scored(subject, right / len(entities), details)


def rated_entities(
    answer: RubricAnswer, conversation: Conversation
) -> Iterator[tuple[Subject, Sequence[Mapping[str, Any]] | Observation]]:
    """The entities of each turn or tool call, without those in words that were cut off."""
    key = "tool_call_id" if answer.rubric.name == BY_CALL else "turn_id"
    subjects = _call_subjects(answer, conversation) if key == "tool_call_id" else _user_subjects(answer, conversation)
    groups = answer.verdict.answer["turns"]
    times = Counter(group[key] for group in groups)
    by_id = {group[key]: group["entities"] for group in groups}
    for number, (turn, subject) in subjects.items():
        if number not in answer.question.rated:
            name = answer.rubric.judge(answer.verdict.judge)
            yield subject, without_value(subject, UNMEASURED, "not_transcribed", "the call ended before that", name)
        elif turn in answer.question.withheld:
            yield subject, answer.unseen(subject)
        elif times[number] != 1:
            yield subject, answer.scored(subject, None, {"given": times[number]})
        else:
            entities = [entity for entity in by_id[number] if not entity["skipped"]]
            lost = next((one["value"] for one in entities if not answer.question.has_quote(one["value"])), None)
            yield subject, entities if lost is None else answer.unfounded(subject, lost)


def _user_subjects(answer: RubricAnswer, conversation: Conversation) -> dict[int, tuple[int, Subject]]:
    """The turns in which the user speaks."""
    spoken = {turn for turn, text in metric_context(conversation).intended_user_turns.items() if text.strip()}
    return {turn: (turn, in_turn(turn)) for turn in sorted(spoken | set(answer.question.rated))}


def _call_subjects(answer: RubricAnswer, conversation: Conversation) -> dict[int, tuple[int, Subject]]:
    """The tool calls by their numbers, each with its turn."""
    context = metric_context(conversation)
    turns = [entry["turn_id"] for entry in context.conversation_trace if entry["type"] == "tool_call"]
    events: Sequence[Any] = conversation.tool_calls
    subjects = [Subject("tool_call", str(number), number) for number in answer.question.rated]
    if len(events) == len(turns):
        subjects = [subject_of(call) for call in events]
    return {number: (turns[number - 1], subjects[number - 1]) for number in answer.question.rated}


def _corruptions(answer: RubricAnswer, conversation: Conversation) -> Iterator[Observation]:
    """1 where the caller did nothing of what the rubric names."""
    if (lost := unfounded_corruption(answer)) is not None:
        yield answer.unfounded(conversation, lost)
        return
    detected = corruptions_of(answer)
    first = next(iter(detected.values()), {"quote": "", "analysis": ""})
    details = {"detected": sorted(detected), "quote": first["quote"], "reasoning": first["analysis"]}
    yield answer.scored(conversation, 0 if detected else 1, details)


def corruptions_of(answer: RubricAnswer) -> dict[str, Mapping[str, Any]]:
    """What the caller did wrong, by its kind; those that the rubric does not name are left out."""
    names = answer.rubric.schema["properties"]["corruption_analysis"]["properties"]
    analysis = answer.verdict.answer["corruption_analysis"]
    return {name: analysis[name] for name in names if analysis[name]["detected"]}


def unfounded_corruption(answer: RubricAnswer) -> str | None:
    """A quote of the answer that is not in the conversation."""
    analysis = answer.verdict.answer["corruption_analysis"]
    for corruption in (
        analysis[name] for name in answer.rubric.schema["properties"]["corruption_analysis"]["properties"]
    ):
        if not answer.rests_on(corruption["quote"], is_best=not corruption["detected"]):
            return str(corruption["quote"])
    return None


def always(_: Conversation) -> str:
    """Every conversation can be judged."""
    return ""


EXAMPLE = """
    >>> label = {{"name": "{name}", "value": 0.5, "rater_kind": "human", "subject_kind": "conversation", "subject": ""}}
    >>> value("judged.{name}", example("user: Hello?", labels=[label]))
    0.5
    """


def _call_metric(
    name: str,
    observes: Level,
    definition: str,
    reading: Reading,
    *,
    version: int,
    importance: int = 6,
    applies: Callable[[Conversation], str] = always,
    first_needs: tuple[Need, ...] = (),
) -> Metric:
    """Declare a judged metric: its rubric has its name.

    `applies` gives the reason why a conversation cannot be judged by it; "" where it can.
    """
    rule = (
        f"{(reading.__doc__ or '').strip()} The scale of the rubric becomes 0 to 1; the rating is in the details. "
        "An answer off the scale, or one that rests on a quote which is not in the conversation, is unmeasured."
    )
    document = f"""{definition}

    {rule} A label named `{name}` with a value from 0 to 1 is a verdict too, of the person or program that gave it.
    {EXAMPLE.format(name=name)}"""
    return metric(
        f"judged.{name}",
        version=version,
        observes=observes,
        unit=RATIO,
        better=HIGHER,
        needs=(*first_needs, judge_or_label(name, partial(has_verdict, name=name))),
        reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS),
        importance=importance,
        sensitive_to=(),
    )(asking(name, reading, partial(labelled, name=name), document, applies))


def judge_or_label(name: str, has_label: Callable[[Conversation], bool]) -> Need:
    """A judge, or a label that says the same."""
    return Need(
        code=JUDGE.code,
        field="labels",
        unlock=f"a judge (--judge openai:MODEL), or a label `{name}` with a value from 0 to 1",
        present=has_label,
        resource=JUDGE_TYPE,
    )


def asking(
    name: str,
    reading: Reading,
    labels: Callable[[Conversation], Iterator[Observation]],
    document: str,
    applies: Callable[[Conversation], str] = always,
) -> Callable[..., AsyncIterator[Observation]]:
    """The function of a judged metric: what a judge answers to the rubric, or the labels where it is given none."""

    async def verdicts(conversation: Conversation, judge: Judge | None = None) -> AsyncIterator[Observation]:
        if judge is None:
            for observation in labels(conversation):
                yield observation
            return
        rubric = rubric_for(name, conversation, judge)
        if reason := applies(conversation):
            yield not_applicable(WHOLE, reason, judge=rubric.judge(judge.identity))
            return
        answer = await judged(rubric, conversation, judge)
        if isinstance(answer, Observation):
            yield answer
            return
        for observation in reading(answer, conversation):
            yield observation

    verdicts.__doc__ = document
    return verdicts


BY_CALL = "transcription_accuracy_key_entities_by_call"


def rubric_for(name: str, conversation: Conversation, judge: Judge) -> Rubric:
    """The rubric of a metric. A model that hears the sound itself shows what it understood in its tool calls."""
    if f"{name}_by_call" == BY_CALL and metric_context(conversation).is_audio_native:
        name = BY_CALL
    return rubric_named(name, getattr(judge, "rubric_folders", ()))


def _no_spoken_text(conversation: Conversation) -> str:
    """Why there is no text that a speech engine is given."""
    if not is_call(conversation):
        return "not_a_call"
    return "speech_to_speech" if conversation.pipeline == "s2s" else ""


def nothing_to_compare(conversation: Conversation) -> str:
    """Why nothing shows what a model that hears the sound understood."""
    context = metric_context(conversation)
    return "no_tool_calls" if context.is_audio_native and not context.num_tool_calls else ""


faithfulness = _call_metric(
    "faithfulness",
    CONVERSATION,
    "Does the agent keep to what its instructions, its tools and the user say?",
    _minimum,
    version=8,
    first_needs=(NO_ITEMS,),
)
conversation_progression = _call_metric(
    "conversation_progression",
    CONVERSATION,
    "Does the agent move the conversation forward, without detours and without asking twice?",
    _progression,
    version=7,
)
conciseness = _call_metric(
    "conciseness", TURN, "Does the agent say what is needed, in words that an ear can follow?", _by_turn, version=7
)
speakability = _call_metric(
    "speakability",
    TURN,
    "Can the text of the agent be spoken as it is written?",
    _by_turn,
    version=6,
    importance=3,
    applies=_no_spoken_text,
)
transcription_accuracy_key_entities = _call_metric(
    "transcription_accuracy_key_entities",
    TURN,
    "Do the names, codes and numbers of the caller arrive?",
    _entities,
    version=6,
    importance=5,
    applies=nothing_to_compare,
)
user_behavioral_fidelity = _call_metric(
    "user_behavioral_fidelity",
    CONVERSATION,
    "Does a simulated caller keep to its task?",
    _corruptions,
    version=7,
    importance=2,
)
