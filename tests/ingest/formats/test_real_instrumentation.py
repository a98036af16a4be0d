"""What real instrumentations write of a chat over real HTTP is what we read: each message once, in its order."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import convoscope
from convoscope.conversation import ComponentMetric
from support import instrumented_chat
from support.judge_server import judge_server


@pytest.mark.parametrize(("instrumentation", "format"), [("openinference", "openinference"), ("otel", "otel-genai")])
def test_what_was_said_is_what_is_read(instrumentation: str, format: str, tmp_path: Path) -> None:
    answers = iter(("Yes, it is.", "Until six.", "Yes, it is."))
    out = tmp_path / "spans.jsonl"
    with judge_server() as server:
        server.answer = lambda prompt, schema: next(answers)
        address = f"http://127.0.0.1:{server.port}/v1"
        command = [sys.executable, instrumented_chat.__file__, instrumentation, address, str(out)]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout
    stream = convoscope.read(out)
    (conversation,) = stream
    assert stream.report.files["spans.jsonl"].format == format
    spoken = [(conversation.roles[one.speaker], one.meant()) for one in conversation.utterances]
    first, second, third = instrumented_chat.QUESTIONS
    assert spoken == [
        ("user", first),
        ("assistant", "Yes, it is."),
        ("user", second),
        ("assistant", "Until six."),
        ("user", third),
        ("assistant", "Yes, it is."),
    ]
    assert [text for _, text in spoken] == printed.splitlines()
    assert conversation.agent.instructions == "You are the desk of a library."
    usage = [event.values for event in conversation.timeline if isinstance(event, ComponentMetric)]
    assert [(one["prompt_tokens"], one["completion_tokens"]) for one in usage] == [(100, 20)] * 3
