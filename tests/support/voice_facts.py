"""A voice call in short, so that a test can say what happened in it."""

from __future__ import annotations

from typing import Any, NamedTuple

from convoscope.conversation import Conversation
from convoscope.views import metric_context


class Told(NamedTuple):
    """A call in short: what was said and done, who sounded when, who broke in, how long the user waited."""

    trace: list[str]
    user: dict[int, list[tuple[float, float]]]
    agent: dict[int, list[tuple[float, float]]]
    waits: dict[int, float]
    agent_broke_in: set[int] = set()
    user_broke_in: set[int] = set()


def told(conversation: Conversation) -> Told:
    context = metric_context(conversation)
    return Told(
        [line(entry) for entry in context.conversation_trace],
        context.audio_timestamps_user_turns,
        context.audio_timestamps_assistant_turns,
        context.latency_assistant_turns,
        context.assistant_interrupted_turns,
        context.user_interrupted_turns,
    )


def line(entry: dict[str, Any]) -> str:
    """`1 user: words`, with a star where the other side's text stands in; `1 tool(…)`, `1 tool ->` for tools."""
    match entry["type"]:
        case "tool_call":
            return f"{entry['turn_id']} {entry['tool_name']}({', '.join(map(str, entry['parameters'].values()))})"
        case "tool_response":
            return f"{entry['turn_id']} {entry['tool_name']} -> {entry['tool_response']['status']}"
    star = "" if (entry["role"], entry["type"]) in {("user", "transcribed"), ("assistant", "intended")} else "*"
    return f"{entry['turn_id']} {entry['role']}{star}: {entry['content']}"
