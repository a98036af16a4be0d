"""Chats and calls for scenarios about ends."""

from __future__ import annotations

from typing import Any

from support.scenarios import chat

GREETING = "Hello, this is Anna of Lakeside Repairs, how can I help?"


def served(number: int, **fields: Any) -> dict[str, Any]:
    """A plain chat in which the agent answers."""
    return chat(
        f"Where is parcel {number}?", f"Parcel {number} arrives tomorrow.", "Thank you!", id=f"c{number}", **fields
    )


def retell(number: int, reason: str, *lines: tuple[str, str], **fields: Any) -> dict[str, Any]:
    """A call as Retell exports it."""
    turns = [
        {
            "role": role,
            "content": text,
            "words": [
                {"word": word, "start": 5 * at + 0.3 * i, "end": 5 * at + 0.3 * i + 0.2}
                for i, word in enumerate(text.split())
            ],
        }
        for at, (role, text) in enumerate(lines)
    ]
    return {
        "call_id": f"call-{number}",
        "call_type": "phone_call",
        "call_status": "ended",
        "disconnection_reason": reason,
        "start_timestamp": 1_700_000_000_000 + 60_000 * number,
        "end_timestamp": 1_700_000_030_000 + 60_000 * number,
        "transcript_with_tool_calls": turns,
        **fields,
    }


TALK = (
    ("agent", GREETING),
    ("user", "My dryer is broken"),
    ("agent", "I can send a technician"),
    ("user", "Fine, bye"),
)
