"""Real chat messages: every audit log that holds some is read as OpenAI chat, and nothing gets lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import convoscope
from convoscope.conversation import ToolCall, ToolResult, Utterance

SPEAKERS = ("user", "assistant")


def text_of(content: object) -> str:
    """What a message says: its text, or that of its parts."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))


def test_messages_of_audit_logs(shared: Callable[[str], Path], ran: Callable[[str, int], None], tmp_path: Path) -> None:
    histories = []
    spoken = 0
    for log in sorted(shared("data/voice-logs").glob("*/audit_log.json")):
        held = json.loads(log.read_text())
        histories += [held["conversation_messages"]] if held.get("conversation_messages") else []
        histories += [call["prompt"] for call in held.get("llm_prompts") or [] if isinstance(call.get("prompt"), list)]
    for number, messages in enumerate(histories):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps(messages))
        reading = convoscope.read(path)
        conversations = list(reading)
        if not any(message.get("role") in ("user", "assistant") and message.get("content") for message in messages):
            continue  # instructions alone are no conversation
        (conversation,) = conversations
        spoken += 1
        assert reading.report.problem_count == 0
        kinds = Counter(type(event) for event in conversation.timeline)
        roles = Counter(message.get("role") for message in messages)
        calls = [call for message in messages for call in message.get("tool_calls") or []]
        assert kinds[ToolCall] == len(calls)
        assert kinds[ToolResult] == roles["tool"]
        said = [conversation.text(event) for event in conversation.timeline if type(event) is Utterance]
        written = [text_of(message.get("content")) for message in messages if message.get("role") in SPEAKERS]
        assert said == [text for text in written if text]
        assert len(conversation.tool_results) == roles["tool"]
    ran("real OpenAI message histories", spoken)
