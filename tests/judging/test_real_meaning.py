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
    ("metric", "low", "high"),
    [("flow.humanness", 0.0, 1.0)],
)
def test_a_measure_gives_a_value_or_a_reason(
    model: ModelServer, tmp_path: Path, metric: str, low: float, high: float
) -> None:
    call = example("user: Cost?", "assistant: Forty euros.")
    run = convoscope.score(
        [call], judge=model.openai, metrics=metric, out=tmp_path / "run", workers=1, max_answer_tokens=60
    )
    [row] = run.scores()
    assert row.judge.startswith(f"openai/{MODEL}@")
    if row.value is None:
        assert (row.status, row.reason) in {("unmeasured", reason) for reason in REASONS}
    else:
        assert low <= row.value <= high
