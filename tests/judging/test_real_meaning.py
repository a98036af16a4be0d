"""Measures of flow, dialogue and summaries with a real model: a value on the scale or a reason, never a default.

SmolLM2 has 135 million parameters. Nothing here is about what it thinks.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import convoscope
from convoscope.metrics import example
from support.model_server import ModelServer, model_server
from support.weights import weights_file

MODEL = "smollm2-135m"
RUBRIC = """---
name: {name}
version: 1
measures: {measures}
scale: {scale}
passes_at: 4
fields: {field}
schema: {schema}
---
Rate this: {place}
"""
SHORT = "{type: string, maxLength: 12}"
REASONS = ("verdict_unusable", "not_on_scale", "not_judged", "evidence_not_found")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    if not weights_file(MODEL).exists():
        pytest.skip(f"no weights of {MODEL}: `make test` fetches them")
    with model_server(weights_file(MODEL), context=2048) as server:
        yield server


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize(
    ("metric", "field", "scale", "low", "high"),
    [
        ("flow.humanness", "trace", (0, 10), 0.0, 1.0),
        ("dialogue.response_quality", "reply", (1, 5), 1.0, 5.0),
    ],
)
def test_a_measure_gives_a_value_or_a_reason(
    model: ModelServer, tmp_path: Path, metric: str, field: str, scale: tuple[int, int], low: float, high: float
) -> None:
    """By a short rubric: the prompt of ours takes this model some seconds."""
    name = metric.partition(".")[2]
    rating = "score" if field == "reply" else "rating"
    names = ["reasoning", "score"] if field == "reply" else ["explanation", "quote", "rating"]
    number = f"{{type: integer, minimum: {scale[0]}, maximum: {scale[1]}}}"
    properties = ", ".join(f"{one}: {number if one == rating else SHORT}" for one in names)
    schema = f"{{type: object, required: [{', '.join(names)}], properties: {{{properties}}}}}"
    place = f"{{{field}}}"
    (tmp_path / f"{name}.md").write_text(
        RUBRIC.format(name=name, measures=metric, scale=list(scale), field=field, schema=schema, place=place)
    )
    run = convoscope.score(
        [example("user: Cost?", "assistant: Forty euros.")],
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
