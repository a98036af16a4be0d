"""What real instrumentations write of a chat with a real model is what we read: each message once, in its order."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import ComponentMetric
from support import instrumented_chat
from support.model_server import ModelServer, model_server
from support.weights import weights_file

MODEL = "smollm2-135m"


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    if not weights_file(MODEL).exists():
        pytest.skip(f"no weights of {MODEL}: `make test` fetches them")
    with model_server(weights_file(MODEL), context=1024) as server:
        yield server


@pytest.mark.parametrize(("instrumentation", "format"), [("openinference", "openinference"), ("otel", "otel-genai")])
def test_what_was_said_is_what_is_read(instrumentation: str, format: str, model: ModelServer, tmp_path: Path) -> None:
    out = tmp_path / "spans.jsonl"
    program = [sys.executable, instrumented_chat.__file__, instrumentation, f"{model.address}/v1", model.model]
    printed = subprocess.run([*program, str(out)], check=True, capture_output=True, text=True, timeout=120).stdout
    client = json.loads(printed)
    assert [text for role, text in client["said"] if role == "user"] == list(instrumented_chat.QUESTIONS)
    assert all(text for _, text in client["said"])
    stream = convoscope.read(out)
    (conversation,) = stream
    assert stream.report.files["spans.jsonl"].format == format
    assert stream.report.problem_count == 0
    spoken = [[conversation.roles[one.speaker], one.meant()] for one in conversation.utterances]
    assert spoken == client["said"]
    assert conversation.agent.instructions == instrumented_chat.INSTRUCTIONS
    assert MODEL in conversation.agent.models["llm"]
    usage = [event.values for event in conversation.timeline if isinstance(event, ComponentMetric)]
    assert [[one["prompt_tokens"], one["completion_tokens"]] for one in usage] == client["tokens"]
    assert all(one["duration"] > 0 for one in usage)
