"""Generated chats: six turns, tool calls in some, timestamps, a ground truth in some. Seeded, so always the same."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

_OPENERS = [
    "I need to move my appointment",
    "Where is my parcel",
    "My card was charged twice",
    "Can you reset my login",
]
_MIDDLES = ["It is the one from last week", "Yes, the second address", "No, I have not tried that", "That works for me"]
_REPLIES = [
    "Thank you, I have found it in our system. It was sent on Monday and should reach you within two days.",
    "I am sorry to hear that. Could you please tell me the last four digits of the number on your letter?",
    "Let me check that for you. I can see two entries here, and the second one can be changed without a fee.",
    "Done. You will get a message with all the details in a few minutes.",
]
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "look_up",
            "description": "Finds a record.",
            "parameters": {"type": "object", "properties": {"id": {"type": "string"}}},
        },
    }
]


def write_chats(path: Path, count: int, seed: int = 1) -> None:
    """Write `count` chats as JSON lines."""
    with path.open("w", encoding="utf-8") as stream:
        for chat in chats(count, seed):
            stream.write(json.dumps(chat, separators=(",", ":")) + "\n")


def chats(count: int, seed: int = 1) -> Iterator[dict[str, object]]:
    """The same, as they are before they are written."""
    draw = random.Random(seed)
    return (_chat(number, draw) for number in range(count))


def _chat(number: int, draw: random.Random) -> dict[str, object]:
    clock = 1_760_000_000 + number * 60.0
    messages: list[dict[str, object]] = [{"role": "system", "content": "You help customers of a parcel service."}]
    for turn in range(6):
        clock += draw.uniform(2, 20)
        text = draw.choice(_MIDDLES if turn else _OPENERS)
        messages.append({"role": "user", "content": f"{text}, number {draw.randrange(10_000)}.", "timestamp": clock})
        if turn == 1:
            clock += 0.2
            call = {"name": "look_up", "arguments": json.dumps({"id": str(number)})}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "timestamp": clock,
                    "tool_calls": [{"id": f"call_{number}", "type": "function", "function": call}],
                }
            )
            answer = {"error": "not found"} if draw.random() < 0.1 else {"status": "ok", "weight": 3}
            messages.append({"role": "tool", "tool_call_id": f"call_{number}", "content": json.dumps(answer)})
        clock += draw.uniform(0.3, 3)
        reply = f"{draw.choice(_REPLIES)} Reference {draw.randrange(1000)}."
        messages.append({"role": "assistant", "content": reply, "timestamp": clock})
    record: dict[str, object] = {"id": f"chat-{number:07d}", "model": f"model-{number % 3}", "tools": _TOOLS}
    record["messages"] = messages
    if number % 2:
        record["ground_truth"] = messages[-1]["content"] if draw.random() < 0.7 else "Nothing was found."
    return record
