"""Metric classes of EVA through the adapter. The classes are written here by the documented protocol."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.errors import DeclarationError
from convoscope.metrics import eva_metric, example
from convoscope.metrics.declaration import Metric
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import observe
from support.command_line import convoscope as command

CALL = example(
    "assistant: Hello.",
    "user: I need help.",
    'tool: find {"code": "K7M"} -> {"ok": true}',
    "assistant: I found it.",
    pipeline="cascade",
)


@dataclass
class MetricScore:
    name: str
    score: float | None
    normalized_score: float | None = None
    details: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    skipped: bool = False
    version: str | None = None
    prompt_hash: str | None = None
    sub_metrics: dict[str, MetricScore] | None = None


class PipelineType(StrEnum):
    CASCADE = "cascade"
    S2S = "s2s"


class ToolTalk:
    """Share of the turns of the trace in which the agent speaks after a tool call."""

    name = "tool_talk"
    version = "v0.1"

    async def compute(self, context: Any) -> MetricScore:
        await asyncio.sleep(0)
        assert context.pipeline_type == PipelineType.CASCADE
        assert not context.is_audio_native
        calls = [entry for entry in context.conversation_trace if entry["type"] == "tool_call"]
        spoken = [entry for entry in context.conversation_trace if entry["role"] == "assistant"]
        part = MetricScore("calls", float(len(calls)))
        return MetricScore(
            self.name, len(spoken), len(calls) / len(spoken), {"by": "rule"}, sub_metrics={"calls": part}
        )


def giving(result: Any, **attributes: Any) -> Metric:
    """A metric of a class whose `compute` gives this, or raises it."""

    async def compute(self: Any, context: Any) -> Any:
        del self, context
        if isinstance(result, Exception):
            raise result
        return result

    return eva_metric(type("Given", (), {"name": "given", "compute": compute, **attributes}))


def scored(metric: Metric) -> Observation:
    (one,) = observe(metric, CALL)
    return one


def test_a_class_is_a_metric() -> None:
    metric = eva_metric(ToolTalk)
    assert (metric.name, metric.observes, metric.unit) == ("custom.tool_talk", "conversation", "ratio")
    one = scored(metric)
    assert (one.value, one.judge) == (0.5, "(computed)")  # one call, and the agent speaks twice
    assert one.details is not None
    assert one.details["sub_metrics"] == {"calls": {"score": 1.0}}
    assert one.details["details"] == {"by": "rule"}


def test_an_object_of_a_class_and_a_class_that_does_not_wait() -> None:
    class Plain:
        def compute(self, context: Any) -> dict[str, Any]:
            return {"score": context.num_tool_calls, "normalized_score": 1.0}

    assert scored(eva_metric(Plain(), name="mine.plain")).value == 1.0
    counted = eva_metric(Plain, of="score", unit="count", better="neither")
    assert (counted.name, scored(counted).value) == ("custom.plain", 1.0)


def test_a_score_with_a_prompt_is_a_judges() -> None:
    one = scored(giving(MetricScore("given", 2, 0.5, prompt_hash="abc123")))
    assert (one.value, one.judge) == (0.5, "external:given@abc123")


@pytest.mark.parametrize(
    ("result", "told"),
    [
        (MetricScore("given", 0.0, 0.0, error="the judge timed out"), ("error", "rater_failed", "the judge timed out")),
        (MetricScore("given", None, None, skipped=True), ("unmeasured", "skipped_by_rater", "")),
        (MetricScore("given", None, None), ("unmeasured", "skipped_by_rater", "")),
        (MetricScore("given", 5.6, None), ("unmeasured", "not_on_scale", "normalized_score is None")),
        (MetricScore("given", 3.0, 3.0), ("unmeasured", "not_on_scale", "normalized_score is 3.0")),
        (MetricScore("given", 1, float("nan")), ("unmeasured", "not_on_scale", "normalized_score is nan")),
        (MetricScore("given", 1, True), ("unmeasured", "not_on_scale", "normalized_score is True")),
        (ValueError("no key"), ("error", "metric_raised", "ValueError: no key")),
    ],
)
def test_what_is_no_value_is_no_number(result: Any, told: tuple[str, str, str]) -> None:
    one = scored(giving(result))
    assert (one.status, one.reason, one.detail) == told
    assert one.value is None


@pytest.mark.parametrize("result", [None, 1.0, "good", {}])
def test_what_is_no_score_is_an_error(result: Any) -> None:
    one = scored(giving(result))
    assert (one.status, one.reason) == ("error", "metric_raised")
    assert "MetricScore" in one.detail


def test_a_pipeline_that_the_class_does_not_know() -> None:
    metric = giving(MetricScore("given", 1, 1), supported_pipeline_types=frozenset([PipelineType.S2S]))
    one = scored(metric)
    assert (one.status, one.reason, one.detail) == ("not_applicable", "pipeline_not_supported", "cascade")


def test_what_is_no_metric_class_is_refused() -> None:
    with pytest.raises(DeclarationError, match="has no method compute"):
        eva_metric(int)  # type: ignore[type-var]
    with pytest.raises(DeclarationError, match="of='points'"):
        eva_metric(ToolTalk, of="points")  # type: ignore[arg-type]


MODULE = '''
from types import SimpleNamespace

from convoscope.metrics import eva_metric


class Courtesy:
    """Does the agent greet?"""

    name = "courtesy"

    def __init__(self):
        self.word = "hello"

    async def compute(self, context):
        first = context.intended_assistant_turns[0]
        good = self.word in first.lower()
        return SimpleNamespace(score=good, normalized_score=float(good), error=None, skipped=False)


courtesy = eva_metric(Courtesy)
'''


def test_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "my_eva.py").write_text(MODULE)
    talk = [{"role": "assistant", "content": "Hello!"}, {"role": "user", "content": "Hi."}]
    (tmp_path / "chat.json").write_text(json.dumps({"messages": talk}))
    out = tmp_path / "run"
    done = command(
        "score",
        str(tmp_path / "chat.json"),
        "--metrics-from",
        str(tmp_path / "my_eva.py"),
        "--metrics",
        "custom.courtesy",
        "--workers",
        "2",
        "--out",
        str(out),
    )
    assert done.code == 0, done.err
    assert convoscope.Run.open(out)["custom.courtesy"].value == 1.0
