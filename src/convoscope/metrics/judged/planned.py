"""Scorers of items that a judge has to give: what is asked, on which scale, what the judge sees.

They are declared so that a log can be checked for what they need, and a report can say that they
are missing. Nobody is asked yet: without a judge each of them is unmeasured.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.metrics.declaration import (
    HIGHER,
    ITEM,
    LOWER,
    RATIO,
    SHARE,
    Better,
    Metric,
    TenPoints,
    metric,
)
from convoscope.metrics.judged.fields import SCORERS, needs_of, silence
from convoscope.metrics.needs import JUDGE
from convoscope.scores import reducers as reduction
from convoscope.scores.observation import Observation, unmeasured
from convoscope.scores.reducers import MEAN, MEAN_OF_SUBJECTS, RATIO_OF_SUMS, Reduce
from convoscope.views.items import cases

OF_TEN = "of 10"
OF_FIVE = "of 5"


class Scale(NamedTuple):
    """What a verdict is a number of, and the map from it to 0–10."""

    unit: str
    better: Better
    ten: TenPoints
    words: str
    reduce: Reduce = Reduce(MEAN, MEAN_OF_SUBJECTS)


# A rating from 1 to 10 has always been shown as it is, with the pass mark at 7 (StandardData, 2.1).
RATING = Scale(OF_TEN, HIGHER, TenPoints(zero=0, ten=10), "The rating is its own 0–10 score.")
DEFECT = Scale(OF_TEN, LOWER, TenPoints(zero=11, ten=1), "The 0–10 score is 11 − rating: a fault counts against.")
CHECKED = Scale(
    SHARE, HIGHER, TenPoints(0, 1), "The 0–10 score is ten times the share.", Reduce(reduction.RATIO, RATIO_OF_SUMS)
)
GRADE = Scale(RATIO, HIGHER, TenPoints(0, 1), "The 0–10 score is ten times the value.")
CSAT = Scale(OF_FIVE, HIGHER, TenPoints(zero=1, ten=5), "The 0–10 score is 10 × (rating − 1) ÷ 4.")


def definition(*paragraphs: str) -> str:
    """The text of a docstring: paragraphs, in lines as short as those that were written by hand."""
    return "\n\n".join(textwrap.fill(one, 98, break_on_hyphens=False) for one in paragraphs)


def _judged(name: str, question: str, method: str, scale: Scale = RATING) -> Metric:
    scorer = name.partition(".")[2]

    def verdicts(conversation: Conversation) -> Iterator[Observation]:
        for case in cases(conversation):
            yield silence(case, scorer) or unmeasured(case.subject, JUDGE.code, JUDGE.words)

    verdicts.__doc__ = definition(question, f"{method} {scale.words}", f"{_seen(scorer)} Unmeasured without a judge.")
    return metric(
        name,
        version=1,
        observes=ITEM,
        unit=scale.unit,
        better=scale.better,
        needs=needs_of(scorer),
        reduce=scale.reduce,
        ten=scale.ten,
    )(verdicts)


def _seen(scorer: str) -> str:
    reads = SCORERS[scorer]
    also = f", and {_listed(reads.optional)} where given" if reads.optional else ""
    return f"The judge sees {_listed(reads.required)}{also}."


def _listed(fields: tuple[str, ...]) -> str:
    *before, last = (f"`{field}`" for field in fields)
    return f"{', '.join(before)} and {last}" if before else last


answer_relevancy = _judged(
    "answer.answer_relevancy",
    "Does the answer answer what was asked?",
    "The judge rates from 1 (about something else) to 10 (all of the question, and nothing beside it).",
)
hallucination_detection = _judged(
    "answer.hallucination_detection",
    "How much of the answer is made up?",
    "The judge rates from 1 (nothing) to 10 (all of it) how much the answer states that the question does not say and "
    "that is not known to be true.",
    DEFECT,
)
claim_verification = _judged(
    "answer.claim_verification",
    "Do the claims of the answer hold?",
    "The judge lists the claims and rates from 1 (refuted) to 10 (all verified); an answer without a claim is not "
    "applicable.",
)
factual_accuracy = _judged(
    "answer.factual_accuracy",
    "Are the facts in the answer right?",
    "The judge rates from 1 (wrong where it matters) to 10 (every fact right).",
)
g_eval = _judged(
    "answer.g_eval",
    "How good is the answer by the criteria that the user wrote?",
    "The judge follows written steps and rates on a written range, 1 to 5 unless told otherwise; the value is "
    "(rating − lowest) ÷ (highest − lowest), the mean where it is asked several times.",
    GRADE,
)
panel_judge = _judged(
    "answer.panel_judge",
    "How good is the answer in the eyes of several judges?",
    "Each judge rates from 1 to 5, which is worth (rating − 1) ÷ 4; the panel's value is made of these as the user "
    "says, by their mean unless told otherwise.",
    GRADE,
)

faithfulness = _judged(
    "retrieval.faithfulness",
    "Does what was retrieved support the answer?",
    "The judge lists the claims of the answer and rates each from 1 (contradicted, or not there) to 10 (stated); the "
    "value is their mean. An answer without a claim is not applicable.",
)
contextual_precision = _judged(
    "retrieval.contextual_precision",
    "How much of what was retrieved is to the point?",
    "The judge rates each chunk from 1 (of no use for the expected answer) to 10 (needed); the value is their mean.",
)
contextual_recall = _judged(
    "retrieval.contextual_recall",
    "How much of the expected answer was retrieved?",
    "The judge lists the facts of the expected answer and rates each from 1 (not in any chunk) to 10 (there); the "
    "value is their mean.",
)

task_progression = _judged(
    "agent.task_progression",
    "How far does the answer bring the task?",
    "The judge rates from 1 (no step towards it) to 10 (done).",
)
context_relevancy = _judged(
    "agent.context_relevancy",
    "Does the answer fit the task and the agent's role?",
    "The judge rates from 1 (out of place) to 10 (fitting).",
)
agent_role_adherence = _judged(
    "agent.agent_role_adherence",
    "Do answer and tool calls keep to the agent's role?",
    "The judge rates from 1 (acts as somebody else) to 10 (always in its role). No tool call at all is fine.",
)
goal_achievement = _judged(
    "agent.goal_achievement",
    "Did the agent reach the goal it was given?",
    "The judge finds the original task in the trace and rates from 1 (not at all) to 10 (fully).",
)
conversation_coherence = _judged(
    "agent.conversation_coherence",
    "Do the agent's steps follow from each other?",
    "The judge finds the original task in the trace and rates from 1 (erratic) to 10 (each step follows).",
)
tool_relevancy = _judged(
    "tools.tool_relevancy",
    "Were these the right tools to call, of those there were?",
    "The judge rates each call from 1 (of no use) to 10 (the best of the tools available); the value is their mean. "
    "An item without a call is not applicable.",
)

conversation_relevancy = _judged(
    "conversation.conversation_relevancy",
    "Does the answer follow from the conversation before it?",
    "The judge rates from 1 (as if nothing had been said) to 10 (fitting) against the last five turns.",
)
intention_fulfillment = _judged(
    "conversation.intention_fulfillment",
    "Does the user get what they came for?",
    "The judge lists what the user wants in the conversation and rates from 1 (nothing of it met) to 10 (all).",
)
knowledge_retention = _judged(
    "conversation.knowledge_retention",
    "Does the agent remember what the user told it?",
    "The judge lists the facts that the user gave and rates from 1 (asks for them again, or contradicts) to 10 (uses "
    "them all).",
)
role_adherence = _judged(
    "conversation.role_adherence",
    "Does the agent stay in its role through the conversation?",
    "The judge rates from 1 (leaves it) to 10 (never does).",
)

instruction_adherence = _judged(
    "telephony.instruction_adherence",
    "What share of its instructions does the agent follow?",
    "The judge splits the instructions into single ones and says of each whether it was followed, violated (with the "
    "turn) or had no occasion: followed ÷ (followed + violated).",
    CHECKED,
)
sentiment_csat = _judged(
    "telephony.sentiment_csat",
    "How content is the caller, as far as their words show?",
    "From the user's turns alone the judge predicts the rating that the caller would give, from 1 to 5; the sentiment "
    "from −1 to 1 stands in the details.",
    CSAT,
)
drop_off_node = _judged(
    "telephony.drop_off_node",
    "How far through the flow does the caller stay?",
    "The judge finds the stages in the instructions, in order, and the deepest one reached: 1 where the goal was "
    "reached, else stages reached ÷ stages; the stage where the caller left stands in the details.",
    GRADE,
)
conversation_context_coherence = _judged(
    "telephony.conversation_context_coherence",
    "What share of the agent's turns fits what was said before?",
    "The judge looks at each turn of the agent for a contradiction, a repetition or an ignored turn: turns without "
    "one ÷ turns of the agent.",
    CHECKED,
)
appropriate_call_termination = _judged(
    "telephony.appropriate_call_termination",
    "Does the call end as a call should?",
    "Four checks: the request is resolved or handed over; a closing is offered; both say goodbye; the call is cut "
    "neither early nor late. The value is checks passed ÷ 4.",
    CHECKED,
)
