"""Measures of flow, dialogue and summaries with a real model: a value on the scale or a reason, never a default.

SmolLM2 has 135 million parameters. Nothing here is about what it thinks.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import convoscope
from convoscope.annotate import language_model
from convoscope.annotate.annotator import annotations_of, failure_of
from convoscope.annotate.language_model import LanguageModelAnnotator
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics import example
from support.model_server import ModelServer

MODEL = "smollm2-135m"
RUBRIC = """---
name: {name}
version: 1
measures: {measures}
scale: {scale}
fields: {field}
schema: {schema}
---
Rate this: {place}
"""
SHORT = "{type: string, maxLength: 12}"
SUMMARIES = [{"origin": "predicted", "summary": "It costs 40."}, {"origin": "gold", "summary": "The price is 40."}]
REASONS = ("verdict_unusable", "not_on_scale", "not_judged", "evidence_not_found")


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("metric", "field", "scale", "low", "high"),
    [
        ("flow.humanness", "trace", (0, 10), 0.0, 1.0),
        ("dialogue.response_quality", "reply", (1, 5), 1.0, 5.0),
        ("summary.faithfulness", "transcript, summary", (0, 10), 0.0, 10.0),
        ("summary.coverage", "reference, summary", (0, 10), 0.0, 10.0),
        ("summary.clarity", "summary", (0, 10), 0.0, 10.0),
    ],
)
def test_a_measure_gives_a_value_or_a_reason(
    model: ModelServer, tmp_path: Path, metric: str, field: str, scale: tuple[int, int], low: float, high: float
) -> None:
    """By a short rubric: the prompt of ours takes this model some seconds."""
    family, _, name = metric.partition(".")
    name = f"summary_{name}" if family == "summary" else name
    names = ["explanation", "quote", "rating"] if family == "flow" else ["reasoning", "score"]
    rating = names[-1]
    number = f"{{type: integer, minimum: {scale[0]}, maximum: {scale[1]}}}"
    properties = ", ".join(f"{one}: {number if one == rating else SHORT}" for one in names)
    schema = f"{{type: object, required: [{', '.join(names)}], properties: {{{properties}}}}}"
    place = " ".join(f"{{{one}}}" for one in field.split(", "))
    (tmp_path / f"{name}.md").write_text(
        RUBRIC.format(name=name, measures=metric, scale=list(scale), field=field, schema=schema, place=place)
    )
    run = convoscope.score(
        [example("user: Cost?", "assistant: Forty euros.", annotations=SUMMARIES)],
        judge=model.openai,
        metrics=metric,
        rubrics=[tmp_path],
        out=tmp_path / "run",
        workers=1,
        max_answer_tokens=60,
    )
    [row] = run.scores()
    assert row.judge.startswith(f"openai/{MODEL}@")
    if row.value is None:
        assert (row.status, row.reason) in {("unmeasured", reason) for reason in REASONS}
    else:
        assert low <= row.value <= high


def test_a_model_that_annotates_finds_what_is_there_or_fails(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a short question, held to the shape of ours."""
    monkeypatch.setattr(language_model, "_PROMPT", "Topics, risks, actions as JSON.\n{lines}\n")
    annotator = LanguageModelAnnotator(Instrument(model.openai, JudgeSettings(max_answer_tokens=40)))
    try:
        found = annotations_of(example("user: I want a refund.", "assistant: I will send it."), annotator)
    finally:
        annotator.close()
    if found.topics is None:
        assert (found.risks, found.actions) == (None, None)
        failure = failure_of(found)
        assert failure is not None
        assert failure.reason in ("verdict_unusable", "not_on_scale")
    else:
        evidence = [one.evidence for one in (*found.topics, *(found.risks or ()))]
        assert all(words in "I want a refund. I will send it." for words in evidence)
