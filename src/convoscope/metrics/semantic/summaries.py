"""How good a summary of a conversation is, as a judge says: faithful, complete, clear (semantic, mode `summary`)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from convoscope.annotate.annotator import judge_behind
from convoscope.conversation import Annotations, Conversation
from convoscope.judging.questions import MissingField, ShownLine, question_of
from convoscope.judging.rubrics import rubric_named
from convoscope.metrics.declaration import CONVERSATION, HIGHER, Metric, TenPoints, metric
from convoscope.metrics.judged_calls import answer_to, quoted_score
from convoscope.metrics.needs import Need
from convoscope.resources.judge import Judge
from convoscope.scores.judges import model_of
from convoscope.scores.observation import Observation, unmeasured
from convoscope.views.items import WHOLE

BANDS = ((10, "excellent"), (7, "good"), (4, "acceptable"), (1, "poor"), (0, "failed"))
"""The lowest score of each band, and its name."""
NO_REFERENCE = "no_reference_summary"
MEASURES = ("faithfulness", "coverage", "clarity")
_SHOWN, _SUMMARY = -2, 1
"""Instead of turns: what a summary is compared with, and the summary."""
_LONGEST = 1000
"""Characters of a summary that are kept with its score."""


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


def _holder(conversation: Conversation, origin: str) -> Annotations | None:
    """The first annotations with a summary."""
    held = (one for one in conversation.annotations if one.origin == origin)
    return next((one for one in held if one.summary and one.summary.strip()), None)


def _summary(conversation: Conversation, origin: str) -> str:
    held = _holder(conversation, origin)
    return "" if held is None or held.summary is None else held.summary.strip()


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
    NO_REFERENCE,
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
    asked = question_of(rubric, fields, "summary", also_quoted=("reference",) if name == "coverage" else ())
    if isinstance(asked, MissingField):
        return unmeasured(WHOLE, f"no_{asked.name}", judge=rubric.judge(judge.identity))
    if asked.withheld:
        detail = "the judge did not see all of it"
        return unmeasured(WHOLE, "addresses_judge", detail, judge=rubric.judge(judge.identity))
    answer = await answer_to(rubric, asked, judge)
    if isinstance(answer, Observation):
        return answer
    given, made = answer.verdict.answer, _summary(conversation, "predicted")
    # Models rate their own words kindly: a reader of the score should know.
    is_own = model_of(judge_behind(_holder(conversation, "predicted"))) == model_of(judge.identity)
    details = {
        "band": band(rubric.value(given["score"])),
        "summary": made[:_LONGEST],
        **({"own_words": True} if is_own else {}),
    }
    return quoted_score(answer, WHOLE, given["score"], given.get("reasoning") or "", **details)


def _declared(name: str, question: str, needs: Sequence[Need], rule: str) -> Metric:
    async def verdict(conversation: Conversation, judge: Judge) -> AsyncIterator[Observation]:
        yield await _judged(name, conversation, judge)

    verdict.__doc__ = f"""{question}

    {rule} A judge rates the summary from 0 to 10 by its rubric: 10 excellent, 7 to 9 good, 4 to 6 acceptable, 1 to 3
    poor, 0 failed; the details name the band. An answer off the scale, or one below 10 that quotes no words of the
    summary, is unmeasured.

    >>> band(8)
    'good'
    """
    return metric(
        f"summary.{name}",
        version=6,
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
