"""Chats for tests, made from a number: always the same."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

REPLIES = (
    "I have found your order in our system.",
    "Could you tell me the number, please?",
    "It will arrive on Friday.",
)

FEW = [
    "agent.repetition",
    "agent.words_per_turn",
    "answer.exact_match",
    "answer.f1",
    "conversation.turns",
    "timing.response_latency",
    "tools.calls",
    "tools.success",
]
"""Metrics with something to measure in these chats: enough for what is no matter of metrics."""


def chat(number: int) -> dict[str, Any]:
    """A chat of one to four turns; some have tools, times, a truth, dimensions."""
    draw = random.Random(number)
    messages: list[dict[str, Any]] = [{"role": "system", "content": "You help."}]
    clock = 1_760_000_000.0 + number
    for turn in range(draw.randint(1, 4)):
        messages.append({"role": "user", "content": f"Question {turn} of {number}?"})
        messages.append({"role": "assistant", "content": draw.choice(REPLIES)})
        if number % 3:
            messages[-2]["timestamp"] = clock
            clock += draw.uniform(0.2, 4.0)
            messages[-1]["timestamp"] = clock
            clock += draw.uniform(1, 9)
    record: dict[str, Any] = {"id": f"chat-{number:05d}", "messages": messages, "model": f"model-{number % 2}"}
    if number % 4 == 0:
        call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": '{"n": 1}'}}
        answer = {"error": "none"} if number % 8 else {"status": "ok"}
        messages[2:2] = [
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": json.dumps(answer)},
        ]
    if number % 5 == 0:
        record["ground_truth"] = REPLIES[0]
    if number % 2:
        record["metadata"] = {"scenario_id": f"s{number % 7}", "flow": "orders", "agent": f"agent-{number % 3}"}
    return record


def write_lines(path: Path, numbers: range) -> Path:
    path.write_text("".join(json.dumps(chat(number)) + "\n" for number in numbers))
    return path
