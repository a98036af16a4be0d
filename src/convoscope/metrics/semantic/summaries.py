"""How good a summary of a conversation is, as a judge says: faithful, complete, clear (semantic, mode `summary`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from convoscope.conversation import Conversation
from convoscope.judging.questions import MissingField, ShownLine, question_of
from convoscope.judging.rubrics import rubric_named
from convoscope.metrics.declaration import CONVERSATION, HIGHER, Metric, TenPoints, metric
from convoscope.metrics.judged_calls import answer_to
from convoscope.metrics.needs import Need
from convoscope.resources.judge import Judge
from convoscope.scores.observation import Observation, unmeasured
from convoscope.views.items import WHOLE

BANDS = ((10, "excellent"), (7, "good"), (4, "acceptable"), (1, "poor"), (0, "failed"))
"""The lowest score of each band, and its name."""
MEASURES = ("faithfulness", "coverage", "clarity")
_SHOWN, _SUMMARY = -2, 1
"""Instead of turns: what a summary is compared with, and the summary."""


def band(score: float) -> str:
    """The band of a score.

    >>> [band(score) for score in (10, 9, 7, 6, 3, 0)]
    ['excellent', 'good', 'good', 'acceptable', 'poor', 'failed']
    """
    return next(name for lowest, name in BANDS if score >= lowest)


def transcript_lines(conversation: Conversation) -> list[ShownLine]:
    """Everything that was said, each utterance with its number and the role of its speaker."""
    roles = conversation.roles
    texts = [(one, conversation.text(one).strip()) for one in conversation.utterances]
    return [
        ShownLine(_SHOWN, f"[{number}] {roles.get(one.speaker) or 'speaker'}", text)
        for number, (one, text) in enumerate(texts)
        if text
    ]


def _summary(conversation: Conversation, origin: str) -> str:
    texts = (one.summary for one in conversation.annotations if one.origin == origin and one.summary)
    return next((text.strip() for text in texts if text.strip()), "")


def _has_words(conversation: Conversation) -> bool:
    return bool(transcript_lines(conversation))


_MADE = Need(
    "no_summary",
    "annotations.summary",
    "a summary that was made: `summary` of annotations with the origin `predicted`",
    lambda conversation: bool(_summary(conversation, "predicted")),
)
_WORDS = Need("no_transcript", "timeline.utterance", "a conversation with words", _has_words)
_REFERENCE = Need(
    "no_reference_summary",
    "annotations.summary",
    "a reference: `summary` of annotations with the origin `gold`",
    lambda conversation: bool(_summary(conversation, "gold")),
)


async def _judged(name: str, conversation: Conversation, judge: Judge) -> Observation:
    rubric = rubric_named(f"summary_{name}", getattr(judge, "rubric_folders", ()))
    reference = _summary(conversation, "gold")
    fields: dict[str, Sequence[ShownLine]] = {
        "transcript": transcript_lines(conversation),
        "reference": [ShownLine(_SHOWN, "reference", reference)] if reference else [],
        "summary": [ShownLine(_SUMMARY, "summary", _summary(conversation, "predicted"))],
    }
    asked = question_of(rubric, fields, "summary")
    if isinstance(asked, MissingField):
        return unmeasured(WHOLE, f"no_{asked.name}", judge=rubric.judge(judge.identity))
    if asked.withheld:
        detail = "the judge did not see all of it"
        return unmeasured(WHOLE, "addresses_judge", detail, judge=rubric.judge(judge.identity))
    answer = await answer_to(rubric, asked, judge)
    if isinstance(answer, Observation):
        return answer
    given = answer.verdict.answer
    quote, score = given.get("quote") or "", given["score"]
    if quote.strip() and not asked.has_quote(quote):
        return answer.unfounded(WHOLE, quote)
    details = {"quote": quote, "reasoning": given.get("reasoning") or "", "band": band(score)}
    return msgspec.structs.replace(answer.scored(WHOLE, score, details), value=float(score))


def _declared(name: str, question: str, needs: Sequence[Need], rule: str) -> Metric:
    async def verdict(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
        yield await _judged(name, conversation, judge)

    verdict.__doc__ = f"""{question}

    {rule} A judge rates the summary from 0 to 10 by its rubric: 10 excellent, 7 to 9 good, 4 to 6 acceptable, 1 to 3
    poor, 0 failed; the details name the band. An answer off the scale, or one that quotes words which are not in the
    summary, is unmeasured.

    >>> band(8)
    'good'
    """
    return metric(
        f"summary.{name}",
        version=1,
        observes=CONVERSATION,
        unit="of 10",
        better=HIGHER,
        needs=(_MADE, *needs),
        sensitive_to=(),
        ten=TenPoints(0, 10, 7.0),
        importance=3,
    )(verdict)


faithfulness = _declared(
    "faithfulness",
    "Does the summary say nothing that the conversation does not?",
    (_WORDS,),
    "Compared with the whole transcript.",
)
coverage = _declared(
    "coverage",
    "Does the summary have the key points of the reference?",
    (_REFERENCE,),
    "Compared with the reference summary.",
)
clarity = _declared("clarity", "Does the summary read well?", (), "The summary alone is shown.")
