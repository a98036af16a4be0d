"""What a judge says of evaluation items: one table of all such metrics, and the function that asks for each of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from convoscope.conversation import USER, Conversation
from convoscope.conversation.events import Utterance
from convoscope.judging.backends import YES_NO
from convoscope.judging.item_questions import ItemQuestion, earlier_turns, item_question, joint_hash, talk_of
from convoscope.judging.questions import Question
from convoscope.judging.rubrics import Rubric, own_rubric, rubric_named
from convoscope.judging.yes_no import form_of, yes_no_verdict
from convoscope.metrics import item_verdicts
from convoscope.metrics.declaration import (
    EVENT,
    FULL_MARKS,
    HIGHER,
    ITEM,
    LOWER,
    MEAN_OF_ALL,
    RATIO,
    SHARE,
    Level,
    Metric,
    TenPoints,
    metric,
)
from convoscope.metrics.g_eval import GEvalPlan, by_criteria, checked_plan
from convoscope.metrics.item_fields import FIELDS, PRESENT, SCORERS, first_absent
from convoscope.metrics.item_verdicts import ItemAnswer, ItemReading, each_call, one_score
from convoscope.metrics.items import ItemView, viewed
from convoscope.metrics.judged_calls import RubricAnswer, verdict_or_reason
from convoscope.metrics.needs import ITEMS, ITEMS_OR_NAMED, Need
from convoscope.resources.judge import Judge, Verdict
from convoscope.scores.observation import COMPUTED, MEASURED, Observation, not_applicable, unmeasured
from convoscope.views.items import Case
from convoscope.views.machines import is_call

if TYPE_CHECKING:
    from convoscope.views.standard_data.model import StandardData

AGENT, CONVERSATIONAL = "agent", "conversational"
"""The types of items, as `novaeval_item_type` has them."""
_OF_TEN = TenPoints(0, 10)


class KnownWithoutJudge(NamedTuple):
    """What is known of an item without a judge: a value, or why there is none."""

    reason: str = ""
    value: float | None = None
    explanation: str = ""
    is_missing: bool = False
    """Not that there is nothing to rate: what it is rated by is missing."""


def _is_blank(text: str | None) -> bool:
    return not (text or "").strip()


Settles = Callable[[Case, "StandardData"], KnownWithoutJudge | None]


def _empty_answer(case: Case, _: StandardData) -> KnownWithoutJudge | None:
    return KnownWithoutJudge("no_claims") if _is_blank(case.answer) else None


def _serves_nothing(case: Case, _: StandardData) -> KnownWithoutJudge | None:
    """An empty answer leaves a question open: that is a failure, and nothing that is missing."""
    return KnownWithoutJudge(value=0.0, explanation="the answer is empty") if _is_blank(case.answer) else None


def _nothing_found(case: Case, data: StandardData) -> KnownWithoutJudge | None:
    """A search that found nothing failed, as one that found nothing useful."""
    if _is_blank(case.expected.ground_truth):
        return KnownWithoutJudge("empty_ground_truth")
    if any(chunk.strip() for found in data.retrieved_context or () for chunk in found):
        return None
    return KnownWithoutJudge(value=0.0, explanation="nothing was retrieved")


def _still_working(_: Case, data: StandardData) -> KnownWithoutJudge | None:
    return KnownWithoutJudge("agent_not_exited") if data.agent_exit is False else None


def _no_calls(_: Case, data: StandardData) -> KnownWithoutJudge | None:
    return KnownWithoutJudge("no_tool_calls") if not data.tool_calls else None


def _nothing_before(case: Case, _: StandardData) -> KnownWithoutJudge | None:
    return KnownWithoutJudge("no_earlier_turns") if not earlier_turns(case) else None


def _no_user(case: Case, _: StandardData) -> KnownWithoutJudge | None:
    roles = case.conversation.roles
    words = (one for one in talk_of(case) if isinstance(one, Utterance) and roles[one.speaker] == USER)
    return None if any(case.conversation.text(one).strip() for one in words) else KnownWithoutJudge("no_user_speech")


_SOUND = ("raw_complete_audio", "stt_data", "tts_data")


def _not_a_call(case: Case, _: StandardData) -> KnownWithoutJudge | None:
    has_sound = is_call(case.conversation) or any(PRESENT[field](case) for field in _SOUND)
    return None if has_sound else KnownWithoutJudge("not_a_call")


class ItemMeasure(NamedTuple):
    """A metric that a judge answers about evaluation items. Its rubric has its name."""

    question: str
    rule: str
    reading: ItemReading
    kind: str = ""
    """The type of items that it fits; empty where it fits all."""
    settles: Settles | None = None
    of_talk: bool = False
    """It can be asked about a chat or a call as a whole, too, if it is named."""
    observes: Level = ITEM
    importance: int = 3
    rates_replies: bool = False
    """The judge rates each turn of the agent. Without any there is nothing to be asked."""
    instead: Mapping[str, str] = {}
    """By a required field: the field that does for it."""
    judges: int = 1
    """How many judges it takes."""
    plan: GEvalPlan | None = None
    """Of `g_eval`: what the judge rates by, unless the item says it."""


_SHARE = "The value is from 0 to 1."
_TEN = "The judge scores from 1 to 10, and the score is the value."

_MEASURES: Mapping[str, ItemMeasure] = {
    "answer.answer_relevancy": ItemMeasure(
        "Does the answer answer what was asked?",
        f"Statements of the answer that serve the question ÷ all its statements. {_SHARE} An empty answer is 0.",
        item_verdicts.STATEMENTS,
        settles=_serves_nothing,
        importance=5,
    ),
    "answer.factual_accuracy": ItemMeasure(
        "Are the facts in the answer right?",
        f"Right claims ÷ (right + wrong claims). {_SHARE} If none can be decided: unmeasured, `no_source`.",
        item_verdicts.TRUE_CLAIMS,
        settles=_empty_answer,
        importance=5,
    ),
    "answer.claim_verification": ItemMeasure(
        "Do the claims of the answer hold?",
        f"Claims that a source supports ÷ all claims. {_SHARE}",
        item_verdicts.BACKED_CLAIMS,
        settles=_empty_answer,
    ),
    "answer.hallucination_detection": ItemMeasure(
        "How much of the answer is made up?",
        f"1 − invented claims ÷ all claims: 1 where nothing is made up. {_SHARE}",
        item_verdicts.INVENTED,
        settles=_empty_answer,
        importance=5,
    ),
    "retrieval.faithfulness": ItemMeasure(
        "Does what was retrieved support the answer?",
        f"Claims of the answer that a retrieved chunk supports ÷ all its claims. {_SHARE}",
        item_verdicts.SUPPORTED,
        settles=_empty_answer,
        importance=6,
    ),
    "retrieval.contextual_precision": ItemMeasure(
        "How much of what was retrieved is to the point?",
        f"Average precision of the chunks by whether each is useful, the mean over queries; of a query that retrieved "
        f"nothing it is 0. {_SHARE}",
        item_verdicts.USEFUL_CHUNKS,
        settles=_nothing_found,
    ),
    "retrieval.contextual_recall": ItemMeasure(
        "How much of the expected answer was retrieved?",
        f"Facts of the ground truth that a chunk holds ÷ all its facts. {_SHARE} Nothing retrieved: 0.",
        item_verdicts.RETRIEVED_TRUTH,
        settles=_nothing_found,
    ),
    "agent.task_progression": ItemMeasure("How far does the answer bring the task?", _TEN, one_score, AGENT),
    "agent.context_relevancy": ItemMeasure(
        "Does the answer fit the task and the agent's role?", _TEN, one_score, AGENT
    ),
    "agent.agent_role_adherence": ItemMeasure(
        "Do answer and tool calls keep to the agent's role?", _TEN, one_score, AGENT
    ),
    "agent.goal_achievement": ItemMeasure(
        "Did the agent reach the goal it was given?", _TEN, one_score, AGENT, _still_working, importance=5
    ),
    "agent.conversation_coherence": ItemMeasure(
        "Do the agent's steps follow from each other?", _TEN, one_score, AGENT, _still_working
    ),
    "tools.tool_relevancy": ItemMeasure(
        "Were these the right tools to call, of those there were?",
        f"Of each tool call. {_TEN}",
        each_call,
        AGENT,
        _no_calls,
        observes=EVENT,
    ),
    "conversation.conversation_relevancy": ItemMeasure(
        "Does the answer follow from the conversation before it?",
        f"By the five turns before it. {_TEN}",
        one_score,
        CONVERSATIONAL,
        _nothing_before,
    ),
    "conversation.intention_fulfillment": ItemMeasure(
        "Does the user get what they came for?",
        f"The mean over what the user wants: fulfilled 1, openly declined 0.8, partly 0.5, ignored 0. {_SHARE}",
        item_verdicts.INTENTIONS,
        CONVERSATIONAL,
        _no_user,
        of_talk=True,
        importance=5,
    ),
    "conversation.knowledge_retention": ItemMeasure(
        "Does the agent remember what the user said?",
        "Of the agent's turns after the first fact that the user gives: those that neither ask for one again nor "
        f"contradict one ÷ all. {_SHARE}",
        item_verdicts.REMEMBERED,
        CONVERSATIONAL,
        _no_user,
        of_talk=True,
        rates_replies=True,
    ),
    "conversation.role_adherence": ItemMeasure(
        "Does the agent stay in its role through the conversation?",
        f"Turns of the agent in its role ÷ its turns. {_SHARE} Without a role, the system prompt says what it is.",
        item_verdicts.IN_ROLE,
        CONVERSATIONAL,
        of_talk=True,
        rates_replies=True,
        instead={"agent_role": "system_prompt"},
    ),
    "telephony.instruction_adherence": ItemMeasure(
        "What share of its instructions does the agent follow?",
        f"Instructions that it follows ÷ (followed + violated). {_SHARE}",
        item_verdicts.FOLLOWED,
        CONVERSATIONAL,
        of_talk=True,
    ),
    "telephony.sentiment_csat": ItemMeasure(
        "How content is the caller, as far as their words show?",
        "The judge sees the user's words only, and scores from 1 to 5: (score − 1) ÷ 4.",
        one_score,
        CONVERSATIONAL,
        _no_user,
        of_talk=True,
    ),
    "telephony.drop_off_node": ItemMeasure(
        "How far through the flow does the caller stay?",
        "The last stage of the system prompt that the call reaches ÷ its stages, in the order of their words there: 1 "
        "where it is completed. Without stages: unmeasured, `stages_unknown`.",
        item_verdicts.STAGES,
        CONVERSATIONAL,
        of_talk=True,
    ),
    "telephony.conversation_context_coherence": ItemMeasure(
        "What share of the agent's turns fits what was said before?",
        "Turns that neither contradict nor repeat nor ignore what was said ÷ the agent's turns after the first. "
        f"{_SHARE}",
        item_verdicts.FITTING,
        CONVERSATIONAL,
        of_talk=True,
        rates_replies=True,
    ),
    "telephony.appropriate_call_termination": ItemMeasure(
        "Does the call end as a call should?",
        "Of four checks (matter resolved or handed over, closing offered, farewell, ended at the right moment) those "
        f"that are met ÷ those that can be made. {_SHARE} Of a chat: not applicable, `not_a_call`.",
        item_verdicts.CHECKS,
        CONVERSATIONAL,
        _not_a_call,
        of_talk=True,
    ),
}


def _no_criteria(_: Case, data: StandardData) -> KnownWithoutJudge | None:
    return None if GEvalPlan().of_item(data).criteria else KnownWithoutJudge("no_criteria", is_missing=True)


MEASURES: Mapping[str, ItemMeasure] = {
    **_MEASURES,
    "answer.g_eval": ItemMeasure(
        "How good is the answer by the criteria that the user wrote?",
        "The criteria, or steps, are in the `context` of the item: `criteria`, `evaluation_steps`. The judge scores "
        "from 1 to 5, and the value is (score − 1) ÷ 4. With log-probabilities, the score is the mean over whole "
        "numbers, each weighted by its probability. Without criteria: unmeasured, `no_criteria`.",
        one_score,
        settles=_no_criteria,
        plan=GEvalPlan(),
    ),
    "answer.panel_judge": ItemMeasure(
        "How good is the answer in the eyes of several judges?",
        "Each judge scores from 1 to 5: (score − 1) ÷ 4. The panel comes to one value, by default the median. With one "
        "judge: unmeasured, `too_few_judges`.",
        one_score,
        judges=2,
    ),
}


def reads_of(name: str) -> tuple[str, ...]:
    """The fields that a metric cannot do without."""
    return SCORERS.get(name.partition(".")[2], SCORERS["g_eval"]).required


def _lacks(measure: ItemMeasure, name: str, case: Case) -> str | None:
    """The first required field that a case does not have, nor the one that does for it. A blank task is missing."""
    wanted = [field for field in reads_of(name) if not ((other := measure.instead.get(field)) and PRESENT[other](case))]
    absent = first_absent(case, wanted)
    if absent is None and "agent_task" in wanted and _is_blank(case.question):
        return "agent_task"
    return absent


def _lacks_answer(measure: ItemMeasure, name: str, case: Case) -> bool:
    """Nothing is there to be rated: the answer is blank, and the metric rates neither calls that are there nor a talk.

    Unless the metric says itself what a blank answer comes to.
    """
    wanted = reads_of(name)
    has_calls = "tool_calls" in wanted and bool(case.tool_calls)
    return "agent_response" in wanted and not measure.of_talk and not has_calls and _is_blank(case.answer)


def _unjudged(measure: ItemMeasure, name: str, case: Case, data: StandardData, judge: str) -> Observation | None:
    """What is said of a case without asking."""
    kind = "" if case.item is None else case.item.kind
    if measure.kind and kind in (AGENT, CONVERSATIONAL) and kind != measure.kind:
        return not_applicable(case.subject, "other_item_type", kind, judge=judge)
    if (absent := _lacks(measure, name, case)) is not None:
        return unmeasured(case.subject, FIELDS[absent].code, absent, judge=judge)
    known = measure.settles(case, data) if measure.settles is not None else None
    if known is None and _lacks_answer(measure, name, case):
        known = KnownWithoutJudge(FIELDS["agent_response"].code, is_missing=True)
    if known is None:
        return None
    if known.value is None:
        explain = unmeasured if known.is_missing else not_applicable
        return explain(case.subject, known.reason, judge=judge)
    details = {"reasoning": known.explanation, "rating": known.value, "asked": False}
    return Observation(subject=case.subject, status=MEASURED, value=known.value, judge=judge, details=details)


def _unseen(measure: ItemMeasure, asked: ItemQuestion, case: Case, judge: str) -> Observation | None:
    """Nothing is rated that is not there, or that the judge does not see because it addresses the judge."""
    rated = asked.replies if measure.rates_replies else ()
    if measure.rates_replies and not rated:
        return not_applicable(case.subject, "no_assistant_speech", judge=judge)
    turns = sorted(set(asked.question.withheld).intersection(rated))
    where = ", ".join([*asked.hidden, *(f"turn {turn}" for turn in turns)])
    return unmeasured(case.subject, "addresses_judge", where, judge=judge) if where else None


async def _of_case(measure: ItemMeasure, name: str, case: Case, data: StandardData, judge: Judge) -> list[Observation]:
    """What a judge says of one case, or why it says nothing."""
    own = rubric_named("answer.g_eval" if measure.plan else name, getattr(judge, "rubric_folders", ()))
    plan = measure.plan and measure.plan.of_item(data)
    group = [own] if form_of(judge) == YES_NO or plan is not None else _asked_together(own, judge)
    # Of several rubrics also where an item settles one of them: who judges must not change from item to item.
    rubric = plan.of(own) if plan is not None else own._replace(hash=joint_hash(group))
    # Without criteria there is no question, and so no judge of it: what is missing counts for all judges.
    who = COMPUTED if plan is not None and not plan.criteria else rubric.judge(judge.identity)
    if (known := _unjudged(measure, name, case, data, who)) is not None:
        return [known]
    if plan is not None:
        return [await by_criteria(plan, rubric, case, data, judge)]
    group = [
        one for one in group if one is own or _unjudged(MEASURES[one.measures], one.measures, case, data, "") is None
    ]
    return await _asked(measure, rubric, group, ItemView(case, data), judge)


async def _asked(
    measure: ItemMeasure, rubric: Rubric, group: Sequence[Rubric], item: ItemView, judge: Judge
) -> list[Observation]:
    """What a judge says to the question of a group of rubrics, as far as it answers one of them."""
    (case, data), form, who = item, form_of(judge), rubric.judge(judge.identity)
    if getattr(judge, "seats", measure.judges) < measure.judges:
        return [unmeasured(case.subject, "too_few_judges", "name several with --judge", judge=who)]
    asked = item_question(group, case, data, lambda field: PRESENT[field](case))
    if (unseen := _unseen(measure, asked, case, who)) is not None:
        return [unseen]
    asking = (
        yes_no_verdict(judge, rubric, _by_number(measure, asked))
        if form == YES_NO
        else judge.ask(asked.question.prompt, asked.question.schema)
    )
    verdict = await verdict_or_reason(asking, case.subject, who)
    if isinstance(verdict, Observation):
        return [verdict]
    answered = RubricAnswer(rubric, asked.question, _part(verdict, rubric.measures, len(group)), form)
    return list(measure.reading(ItemAnswer(case, data, asked, answered)))


def _by_number(measure: ItemMeasure, asked: ItemQuestion) -> Question:
    """The question with the numbers that the yes/no form asks about, one by one."""
    numbers = getattr(measure.reading, "numbers", None)
    texts = asked.question.agent_texts if measure.rates_replies else {}
    return asked.question._replace(rated=tuple(numbers(asked) if numbers else asked.calls), agent_texts=texts)


def _asked_together(rubric: Rubric, judge: Judge) -> list[Rubric]:
    """The rubrics that go with this one in a request: those that show the same. Criteria go alone."""
    folders = getattr(judge, "rubric_folders", ())
    names = {name for name in getattr(judge, "joint_metrics", ()) if name in MEASURES and MEASURES[name].plan is None}
    others = (rubric_named(name, folders) for name in names - {rubric.measures})
    return sorted([rubric, *(one for one in others if one.shows == rubric.shows)], key=lambda one: one.name)


def _part(verdict: Verdict, name: str, of: int) -> Verdict:
    """What a judge says to one of several questions, with its share of what all of them took."""
    if of == 1:
        return verdict
    return verdict.share(of)._replace(answer=verdict.answer[name])


PARTS: Mapping[str, tuple[str, ItemMeasure]] = {
    "answer.factual_accuracy.unknown": (
        "answer.factual_accuracy",
        ItemMeasure(
            "What share of the claims can neither be called right nor wrong?",
            f"Undecided claims ÷ all claims, of which `answer.factual_accuracy` counts the others. {_SHARE} It reads "
            "the answer that `answer.factual_accuracy` reads: the judge is not asked again.",
            item_verdicts.UNKNOWN_CLAIMS,
            settles=_empty_answer,
            importance=1,
        ),
    )
}
"""Further figures from the answer of a metric: by name, with that metric."""


def _needs(name: str, measure: ItemMeasure) -> Iterable[Need]:
    yield ITEMS_OR_NAMED if measure.of_talk else ITEMS
    for field in reads_of(name):
        need = FIELDS[field]
        if (other := measure.instead.get(field)) is not None:
            instead = FIELDS[other]
            unlock = f"`{field}`, or `{other}`, in the items"
            need = msgspec.structs.replace(need, unlock=unlock, present=Either(need.present, instead.present))
        yield need


class Either:
    """A condition that holds where one of two holds."""

    def __init__(self, *conditions: Callable[[Conversation], bool] | None) -> None:
        self.conditions = tuple(one for one in conditions if one is not None)

    def __call__(self, conversation: Conversation) -> bool:
        return any(condition(conversation) for condition in self.conditions)


def item_measure(name: str, measure: ItemMeasure, version: int = 1, part_of: str = "") -> Metric:
    """Declare a metric of the table, or one that is like it; a part of one reads its answer, and lower is better."""
    asked = part_of or name

    async def verdicts(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
        import asyncio  # only where a judge is asked

        answers = await asyncio.gather(
            *(_of_case(measure, asked, case, data, judge) for case, data in viewed(conversation))
        )
        for observations in answers:
            for observation in observations:
                yield observation

    raw = measure.rule.endswith(_TEN)
    verdicts.__doc__ = f"""{measure.question}

    {measure.rule} A score that is off the scale, or that rests on a quote which is not in the item, is unmeasured.

    >>> value("{name}", example("user: Hello?"))
    'not_an_item'
    """
    return metric(
        name,
        version=version,
        observes=measure.observes,
        unit="of 10" if raw else SHARE if part_of else RATIO,
        better=LOWER if part_of else HIGHER,
        needs=tuple(_needs(asked, measure)),
        reduce=MEAN_OF_ALL,
        ten=_OF_TEN if raw else None if part_of else FULL_MARKS,
        importance=measure.importance,
        sensitive_to=(),
    )(verdicts)


def g_eval_scorer(
    name: str,
    *,
    criteria: str = "",
    steps: Sequence[str] = (),
    scale: Sequence[float] = (1, 5),
    iterations: int = 1,
    version: int = 1,
    question: str = "",
) -> Metric:
    """Declare a scorer of answers by criteria, or by steps in their order.

    A judge scores on `scale`, `iterations` times; the value is the mean, from 0 to 1.
    """
    name = name if "." in name else f"custom.{name}"
    plan = checked_plan(name, criteria, steps, scale, iterations)
    rule = f"The judge scores from {plan.low} to {plan.high}, by:\n\n{plan.criteria}\n\n"
    measure = ItemMeasure(question.strip() or f"How good is the answer by the criteria of {name}?", rule, one_score)
    rubric = own_rubric(name, (plan.low, plan.high), plan.mark, version=version, text=plan.criteria, is_raw=False)
    return msgspec.structs.replace(item_measure(name, measure._replace(plan=plan), version), rubric=rubric)


for _name, _measure in MEASURES.items():
    globals()[_name.replace(".", "_")] = item_measure(_name, _measure, version=11)
for _name, (_whole, _measure) in PARTS.items():
    globals()[_name.replace(".", "_")] = item_measure(_name, _measure, part_of=_whole)
