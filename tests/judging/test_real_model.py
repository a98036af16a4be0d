"""The instrument with a real language model, over both wires.

SmolLM2 has 135 million parameters. What it says of a call is near chance. So nothing here is about what it thinks:
the tests say that whatever a real model answers, over a real server, becomes a verdict on the scale or none.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.analysis.judge_check import by_rubric, check_judge, pairs_of
from convoscope.judging.cache import AnswerCache, cache_file
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.judging.rubrics import rubric_named
from convoscope.judging.rubrics import rubrics as all_rubrics
from convoscope.metrics import example
from convoscope.metrics.declaration import Metric
from convoscope.metrics.judged_items import MEASURES
from convoscope.metrics.registry import known
from convoscope.runs.run import Run
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered
from support.judged_items import item, judged
from support.model_server import ModelServer

MODEL = "smollm2-135m"
RUBRIC = """---
name: speakability
version: 1
measures: judged.speakability
scale: [0, 1]
passes_at: 1
fields: agent_turns
yes_no:
  flags:
    turn: Does it hold Markdown?
schema:
  type: object
  required: [turns]
  properties:
    turns:
      type: array
      minItems: 1
      maxItems: 1
      items:
        type: object
        required: [turn_id, explanation, quote, rating]
        properties:
          turn_id: {type: integer, minimum: 1, maximum: 1}
          explanation: {type: string, maxLength: 12}
          quote: {type: string, maxLength: 12}
          rating: {type: integer, minimum: 0, maximum: 1}
---
Rate turn {turns}: 0 with Markdown, else 1.

## Text
{agent_turns}
"""
CALLS = [
    example("user: Cost?", f"assistant: {text}", id=text, pipeline="cascade")
    for text in ("Forty euros.", "**Total:** - 40 EUR")
]


@pytest.fixture
def rubrics(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A short rubric, and a cache of this test only."""
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "rubrics"
    folder.mkdir()
    (folder / "speakability.md").write_text(RUBRIC)
    return folder


def score(out: Path, judge: str, rubrics: Path, **more: Any) -> Run:
    options = {"metrics": "judged.speakability", "rubrics": [rubrics], "workers": 1, "max_answer_tokens": 80, **more}
    return convoscope.score(CALLS, judge=judge, out=out, **options)


def test_held_to_a_schema_a_model_gives_a_rating_of_the_scale(
    model: ModelServer, rubrics: Path, tmp_path: Path
) -> None:
    run = score(tmp_path / "run", model.openai, rubrics)
    found = list(run.scores())
    assert [row.subject.id for row in found] == ["1", "1"]
    for row in found:
        # A rating below the best needs a quote: an invented one is no evidence. Everything else is on the scale.
        assert (row.value, row.reason) in ((1.0, ""), (0.0, ""), (None, "evidence_not_found"))
        assert row.judge.startswith(f"openai/{MODEL}@")
        assert row.observation.details["input_tokens"] > 0
        assert 0 < row.observation.details["output_tokens"] <= 80
        assert row.observation.details["seconds"] > 0
    kept = AnswerCache(cache_file()).size().answers
    assert kept == 2
    again = score(tmp_path / "again", model.openai, rubrics)
    assert AnswerCache(cache_file()).size().answers == kept
    assert (run.folder / "summary.json").read_bytes() == (again.folder / "summary.json").read_bytes()


def test_without_a_schema_it_is_read_as_strictly(model: ModelServer, rubrics: Path, tmp_path: Path) -> None:
    """This server does not hold a model to a schema over Anthropic's wire: the model writes what it likes."""
    for row in score(tmp_path / "run", model.anthropic, rubrics, max_answer_tokens=40).scores():
        assert row.judge.startswith(f"anthropic/{MODEL}@")
        if row.value is None:
            assert (row.status, row.reason) in (
                ("unmeasured", "verdict_unusable"),
                ("unmeasured", "not_on_scale"),
                ("unmeasured", "not_judged"),
                ("unmeasured", "evidence_not_found"),
            )
            assert row.reason in ("not_judged", "evidence_not_found") or row.observation.details["raw"]
        else:
            assert row.value in (0.0, 1.0)


def test_probabilities_of_a_real_model(model: ModelServer, rubrics: Path, tmp_path: Path) -> None:
    run = score(tmp_path / "run", model.openai, rubrics, judge_form="yesno")
    found = list(run.scores())
    assert [row.status for row in found] == ["measured", "measured"]
    chances = [row.observation.details["probability"] for row in found]
    assert all(0 < chance < 1 for chance in chances)
    # Other words, another probability: it is read from this answer.
    assert chances[0] != chances[1]
    # Yes flags: the rating is 0 where yes is the likelier word.
    assert [row.value for row in found] == [0.0 if chance > 0.5 else 1.0 for chance in chances]
    assert [row.observation.details["output_tokens"] for row in found] == [1, 1]
    assert {row.observation.details["evidence"] for row in found} == {"none"}


def test_a_check_says_what_it_is_worth(model: ModelServer, rubrics: Path) -> None:
    """Near chance means: sometimes right. What counts is that each pair is accounted for."""
    settings = JudgeSettings(form="yesno", rubrics=(str(rubrics),), max_concurrency=1)
    pairs = check_judge(Instrument(model.openai, settings), ["speakability"], (str(rubrics),))
    [checked] = by_rubric(pairs)
    assert checked.pairs == 4
    assert 0 <= checked.right <= checked.ordered <= checked.pairs - checked.unanswered
    assert all((pair.good is None or pair.bad is None) == bool(pair.reason) for pair in pairs)


REASONS = {"verdict_unusable", "not_on_scale", "evidence_not_found", "not_judged", "no_source", "nothing_to_follow"}
ITEM = {
    "agent_task": "Hours?",
    "agent_response": "At ten.",
    "ground_truth": "Ten.",
    "agent_role": "Clerk",
    "system_prompt": "Greet.",
    "retrieval_query": ["hours"],
    "retrieved_context": [["Open at ten."]],
    "conversation_context": {"turns": [{"speaker": "user", "message": "Hours?"}]},
    "tools_available": [{"name": "find"}],
    "tool_calls": [{"tool_name": "find", "parameters": {}, "call_id": "1"}],
    "trace": [{"say": "ten"}],
    "context": {"criteria": "Says ten."},
}


EVERY = [name for name, rubric in sorted(all_rubrics().items()) if not rubric.is_heard]
"""The rubrics that are shipped, but for those that need a sound."""
ALL = bool(os.environ.get("CONVOSCOPE_ALL_RUBRICS"))
"""Try each rubric, which takes some minutes; else a few of each kind. benchmarks/README.md has what came of all."""


@pytest.mark.parametrize("name", EVERY if ALL else ["agent.task_progression", "retrieval.contextual_recall"])
def test_rubrics_as_they_are_shipped(model: ModelServer, name: str) -> None:
    """The whole rubric, about the first good call or item that was written for it: a value on the scale or a reason."""
    settings = JudgeSettings(use_cache=False, max_answer_tokens=64, max_concurrency=1, seconds=600)
    declared = known(rubric_named(name).measures)
    assert isinstance(declared, Metric)

    async def ask() -> Sequence[Observation]:
        instrument = Instrument(model.openai, settings)
        try:
            return await answered(declared, pairs_of(name)[0].conversation("good"), {"judge": instrument})
        finally:
            await instrument.aclose()

    rows = asyncio.run(ask())
    assert rows
    for row in rows:
        assert row.judge.startswith(f"openai/{MODEL}@")
        if row.value is None:
            assert (row.status, row.reason in REASONS) == ("unmeasured", True), row
        else:
            low, high = row.details["scale"]
            assert low <= row.details["rating"] <= high
            assert row.details["output_tokens"] > 0


SHOWN = [field for field in ITEM if field not in ("retrieval_query", "context")]


def short(name: str) -> str:
    """A rubric of the same shape whose answer is short: a small model takes a second for a sentence.

    All show the same, so that the server reads the item once.
    """
    ours = rubric_named(name)
    schema = json.loads(json.dumps(ours.schema))
    held = schema["properties"]
    if "items" in held:
        held["items"] |= {"minItems": 1, "maxItems": 1}
        held = held["items"]["items"]["properties"]
    for key in ("reasoning", "text", "explanation", "strengths", "weaknesses", "confidence", "sentiment"):
        held.pop(key, None)
    for key, member in held.items():
        if key == "quote":
            member["enum"] = ["", "At ten.", "Hours?", "Made up."]
        elif member["type"] == "number":
            member["type"] = "integer"
    (schema if held is schema["properties"] else schema["properties"]["items"]["items"])["required"] = list(held)
    front = {"name": name, "version": 1, "measures": name, "scale": [ours.low, ours.high], "shape": ours.shape}
    front |= {"passes_at": ours.passes_at, "fields": ", ".join(SHOWN), "schema": schema}
    front |= {"value": "rating"} if ours.is_raw else {}
    lines = "\n".join(f"{key}: {json.dumps(value)}" for key, value in front.items())
    return f"---\n{lines}\n---\nJudge it.\n\n## Item\n{{item}}\n"


ONE_OF_EACH_SHAPE = [
    "agent.goal_achievement",
    "answer.factual_accuracy",
    "conversation.role_adherence",
    "retrieval.faithfulness",
    "tools.tool_relevancy",
]


@pytest.mark.parametrize("name", sorted(MEASURES) if ALL else ONE_OF_EACH_SHAPE)
def test_items_of_a_real_model(model: ModelServer, tmp_path: Path, name: str) -> None:
    """Whatever a real model writes is a value on the scale, or it has a reason."""
    (tmp_path / "short.md").write_text(short(name))
    rows = judged(name, item(**ITEM), model.openai, rubrics=(str(tmp_path),), max_answer_tokens=48, max_concurrency=1)
    ten = known(name).ten
    for row in rows:
        if row.value is None:
            assert row.reason in REASONS, row
        else:
            assert ten.zero <= row.value <= ten.ten
            assert row.judge.startswith(f"openai/{MODEL}@")
