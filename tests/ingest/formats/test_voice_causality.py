"""Causes come before effects in a joined call, though sessions of sound are empty and lines come late."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Marker, ToolCall, ToolResult
from support.logs import read

Line = dict[str, Any]
ANSWER = "I found the booking for Natalie Cruz."


class Call:
    """The three logs of a call, line by line."""

    def __init__(self) -> None:
        self.audit: list[Line] = []
        self.framework: list[Line] = []
        self.simulator: list[Line] = []

    def sound(self, who: str, at: float, until: float) -> None:
        for kind, moment in (("audio_start", at), ("audio_end", until)):
            line = {"timestamp": round(1000 * moment), "event_type": kind, "user": who, "audio_timestamp": moment}
            self.simulator.append(line)

    def write_down(self, kind: str, text: str, at: float) -> None:
        self.simulator.append({"timestamp": round(1000 * at), "type": kind, "data": {"text": text}})

    def line(self, kind: str, value: Any, at: float) -> None:
        self.audit.append({"value": value, "timestamp": str(round(1000 * at)), "message_type": kind})

    def agent(self, text: str, at: float, until: float, line: float | None = None) -> None:
        self.sound("framework_agent", at, until)
        self.write_down("assistant_speech", text, at + 0.3)
        for kind, frame, moment in (
            ("turn_start", "", at - 0.1),
            ("tts_text", text, at),
            ("turn_end", "", until + 0.1),
        ):
            self.framework.append({"type": kind, "data": {"frame": frame}, "timestamp": round(1000 * moment)})
        if line is not None:
            self.line("assistant", text, line)

    def tool(self, at: float) -> None:
        self.line("tool_call", {"tool": "get_booking", "parameters": {}}, at)
        self.line("tool_response", {"tool": "get_booking", "response": {"status": "success"}}, at)

    def read(self, folder: Path) -> Conversation:
        folder.mkdir(parents=True, exist_ok=True)
        audit = sorted(self.audit, key=lambda line: int(line["timestamp"]))
        (folder / "audit_log.json").write_text(json.dumps({"transcript": audit}))
        for name, lines in (("pipecat_events.jsonl", self.framework), ("elevenlabs_events.jsonl", self.simulator)):
            ordered = sorted(lines, key=lambda line: line["timestamp"])
            (folder / name).write_text("".join(f"{json.dumps(line)}\n" for line in ordered))
        return read(folder).only


def opening() -> Call:
    call = Call()
    call.agent("Welcome to the desk!", 1.0, 1.8)
    call.sound("elevenlabs_user", 2.0, 3.0)
    call.write_down("user_speech", "Hi, I'm calling about a booking.", 2.5)
    call.line("user", "Hi, I'm calling about a booking.", 3.1)
    call.agent("Could you please tell me your last name?", 3.2, 5.8, 3.15)
    return call


def test_two_empty_sessions_and_an_interruption(tmp_path: Path) -> None:
    """The words of the caller are missing twice, while the agent speaks; the recogniser has them.

    The ends of the empty sessions were taken for the end of the words before them. So the clock of the audit log
    was believed to be seconds away, both sounds were noise, and the answer stood before its tool call.
    """
    call = opening()
    call.sound("elevenlabs_user", 3.7, 4.1)
    call.sound("elevenlabs_user", 4.7, 4.9)
    call.line("user", "My name", 4.3)
    call.line("user", "is Cruz.", 5.3)
    call.tool(6.0)
    call.agent(ANSWER, 6.4, 7.2, 6.3)
    call.sound("elevenlabs_user", 7.9, 8.6)
    call.line("user", "Yes.", 8.8)
    joined = call.read(tmp_path / "call")
    assert [joined.text(one) for one in joined.utterances] == [
        "Welcome to the desk!",
        "Hi, I'm calling about a booking.",
        "Could you please tell me your last name?",
        "My name",
        "is Cruz.",
        ANSWER,
        "Yes.",
    ]
    assert [type(event) for event in joined.timeline[5:8]] == [ToolCall, ToolResult, type(joined.utterances[0])]
    assert [event for event in joined.timeline if isinstance(event, Marker)] == []
    assert [clock.offset for clock in joined.clocks] == [0.0] * len(joined.clocks)


@pytest.mark.parametrize("seed", range(30))
def test_an_answer_follows_its_tool_call(seed: int, tmp_path: Path) -> None:
    """Empty sessions at any time, lines of the recogniser late or lost, and a third session into the answer."""
    chance = random.Random(seed)
    call, ended = opening(), 3.2
    for text in ("My name", "is Cruz."):
        begun = ended + chance.uniform(0.1, 1.0)
        ended = begun + chance.uniform(0.2, 0.6)
        call.sound("elevenlabs_user", begun, ended)
        if chance.random() < 0.6:
            call.line("user", text, ended + chance.uniform(-0.2, 1.5))
    called = max(5.9, ended) + chance.uniform(0, 0.6)
    answered = called + chance.uniform(0.2, 0.8)
    third = answered + chance.uniform(-0.8, 1.5)
    call.sound("elevenlabs_user", third, third + 0.7)
    if chance.random() < 0.7:
        call.write_down("user_speech", "My name is Cruz.", third + 0.35)
    if chance.random() < 0.7:
        call.line("user", "My name is Cruz.", third + chance.uniform(0.2, 1.5))
    call.tool(called)
    call.agent(ANSWER, answered, answered + 0.8, answered - 0.1)
    joined = call.read(tmp_path / "call")
    (answer,) = [one.seq for one in joined.utterances if joined.text(one) == ANSWER]
    assert answer > max(event.seq for event in joined.timeline if isinstance(event, ToolCall | ToolResult))
