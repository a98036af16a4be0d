"""Chats with an outcome or with times, for scenarios about figures and versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from support.scenarios import Record, chat

FEW = ("-m", "outcome.success,timing.response_latency,agent.unanswered_turns")
"""The metrics that matter here: less to compute."""


def ended(id: str, good: bool, **fields: Any) -> Record:
    """A chat that says whether it was resolved; both kinds say as much."""
    return chat("Book it, please.", "It is booked now." if good else "It did not work.", id=id, resolved=good, **fields)


def cells(*kinds: tuple[dict[str, str], int, int]) -> list[Record]:
    """Of each kind so many chats, so many of them resolved."""
    return [
        ended("-".join((*fields.values(), str(number))), number < good, **fields)
        for fields, size, good in kinds
        for number in range(size)
    ]


def timed(id: str, *messages: tuple[str, str, float], **fields: Any) -> Record:
    """A chat with times."""
    dated = [
        {"role": role, "content": f"{text} {id}" if role == "user" else text, "timestamp": 1_770_000_000 + at}
        for role, text, at in messages
    ]
    return {"id": id, "messages": dated, **fields}


def turns(count: int, wait: float, *, agent: float = 0.0, user: float = 0.0) -> Iterator[tuple[str, str, float]]:
    """Question and answer each minute, by clocks that may be ahead."""
    for number in range(count):
        yield "user", f"What about item {number}?", 60.0 * number + user
        yield "assistant", f"Item {number} is in stock, at a good price.", 60.0 * number + wait + agent
