"""Runs that a judge on loopback rated, each call as its first words say: `grade 2`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import Conversation
from convoscope.metrics import example
from convoscope.runs.run import Run
from support.judge_server import best

QUOTE = "The fee is nine crowns."


def call(id: str, grade: int, **fields: Any) -> Conversation:
    """A call of which a judge that `by_grade` answers for says `grade` of 3."""
    return example(
        f"user: Hello, this is {id}, grade {grade}.",
        f"assistant: Good evening. {QUOTE}",
        "user: Thank you, good bye.",
        "assistant: Good bye.",
        id=id,
        **fields,
    )


def by_grade(prompt: str, schema: dict[str, Any], shift: Callable[[str], int] = lambda _: 0) -> Any:
    """The best answer, but for the first thing that is rated: it has the grade that the caller names."""
    answer = best(prompt, schema)
    found = re.search(r"this is (\S+), grade (\d)", prompt)
    if found is None:
        return answer
    grade = min(3, max(1, int(found[2]) + shift(found[1])))
    fault = {"rating": grade, "flagged": grade < 3, "quote": QUOTE if grade < 3 else "", "explanation": "No source."}
    if "dimensions" in answer:
        name = list(answer["dimensions"])[-1]
        answer["dimensions"][name] = {**answer["dimensions"][name], **fault}
    elif "turns" in answer and answer["turns"] and "rating" in answer["turns"][0]:
        answer["turns"][0] |= {"rating": grade, "quote": fault["quote"], "explanation": "Too long."}
    return answer


def judged_run(out: Path, judge: Any, grades: Sequence[int], metrics: str = "judged.faithfulness", **more: Any) -> Run:
    """A run of one call for each grade: `call-00`, `call-01`, …"""
    calls = [call(f"call-{index:02}", grade) for index, grade in enumerate(grades)]
    return convoscope.score(calls, judge=judge, metrics=metrics, out=out, workers=1, **more)


def write_labels(path: Path, ratings: Sequence[float | None], **columns: Any) -> Path:
    """Labels of such a run, as JSON lines; None for a call without one."""
    rows = [
        {"conversation": f"call-{index:02}", "rubric": "faithfulness", "rating": rating, "rater": "Ines", **columns}
        for index, rating in enumerate(ratings)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path
