"""What a judge is shown where that is more than a conversation: a person who rates the same has to see it, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convoscope.conversation import Conversation
from convoscope.judging.answers import UnusableAnswer
from convoscope.judging.questions import FENCE
from convoscope.judging.rubrics import Rubric
from convoscope.metrics.declaration import Metric
from convoscope.metrics.items import awaited, viewed
from convoscope.metrics.judged import render
from convoscope.metrics.judged_items import g_eval_scorer
from convoscope.metrics.registry import known
from convoscope.resources.judge import Judge, Verdict
from convoscope.scoring.evaluate import answered

_SHOWN = "shown"
_MORE_THAN_TALK = frozenset(("history", "user", "reply", "state", "rules", "transcript", "summary", "reference"))
"""Fields that the page does not show with every conversation."""
_ANSWER = "\n## Your answer\n"
_MARKS = (f"{FENCE}\n<data>\n", "\n</data>")


class _Onlooker(Judge):
    """Answers nothing: what it is asked is the detail of the score."""

    identity = "(onlooker)"

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.rubric_folders = folders

    async def ask(self, prompt: str, schema: Mapping[str, Any]) -> Verdict:
        del schema
        raise UnusableAnswer(_SHOWN, prompt.partition(_ANSWER)[0])


def shown_texts(rubric: Rubric, conversation: Conversation, folders: tuple[str, ...] = ()) -> dict[str, str]:
    """What a judge is shown by a rubric, by the id of what it rates; nothing where that is the conversation alone."""
    if not rubric.shape and _MORE_THAN_TALK.isdisjoint((*rubric.required, *rubric.optional)):
        return {}
    declared = known(rubric.measures)
    if declared is None and rubric.required:  # a template of the user's own
        return {case.subject.id: render(rubric.text, data) for case, data in viewed(conversation)}
    if not isinstance(declared, Metric):
        declared = g_eval_scorer(rubric.name, criteria=rubric.text)
    observations = awaited(answered(declared, conversation, {"judge": _Onlooker(folders)}))
    asked = {one.subject.id: one.detail for one in observations if one.reason == _SHOWN}
    # What is asked is beside it, as the text of the rubric, unless the item itself says it.
    asks_itself = rubric.measures == "answer.g_eval"
    return {
        subject: _for_people(text if asks_itself else text.partition("\n## ")[2]) for subject, text in asked.items()
    }


def _for_people(text: str) -> str:
    """Without the marks that are for a model."""
    for mark in _MARKS:
        text = text.replace(mark, "")
    return text.replace("\\u003c", "<").replace("\\u003e", ">").replace("\\n", "\n").replace('\\"', '"').strip()
