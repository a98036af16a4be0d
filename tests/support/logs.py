"""Logs as tests write them, and what came of reading them."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

import convoscope
from convoscope.conversation import ComponentMetric, Conversation, ToolCall, ToolResult, Utterance
from convoscope.ingest.report import NoteTally, Problem, ReadReport

EXAMPLES = Path(__file__).parents[2] / "examples"

ASK = {"role": "user", "content": "Is the museum open on Monday?"}
REPLY = {"role": "assistant", "content": "It is closed on Mondays."}
CHAT = {"messages": [ASK, REPLY]}


class Outcome(NamedTuple):
    """Everything that reading gave."""

    conversations: list[Conversation]
    report: ReadReport

    @property
    def ids(self) -> list[str]:
        return [conversation.id for conversation in self.conversations]

    @property
    def only(self) -> Conversation:
        (conversation,) = self.conversations
        return conversation

    @property
    def problem(self) -> Problem:
        (problem,) = self.report.problems
        assert self.report.problem_count == problem.count
        return problem


def read(*paths: Path) -> Outcome:
    reading = convoscope.read(list(paths))
    return Outcome(list(reading), reading.report)


def counts(tallies: dict[str, NoteTally]) -> dict[str, int]:
    """How often each thing was done."""
    return {code: tally.count for code, tally in tallies.items()}


def places(tallies: dict[str, NoteTally]) -> dict[str, list[str]]:
    """Where each thing was done."""
    return {code: tally.examples for code, tally in tallies.items()}


def chat(id: str, *texts: str) -> dict[str, Any]:
    """A record with an id, in which user and agent take turns."""
    roles = ("user", "assistant")
    said = [{"role": roles[number % 2], "content": text} for number, text in enumerate(texts or ("Hello?", "Hello!"))]
    return {"id": id, "messages": said}


def as_lines(*records: Any) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def write_lines(path: Path, *records: Any) -> Path:
    return write(path, as_lines(*records))


def write_text(path: Path, text: str) -> Path:
    """A text that the test indents."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def write_json(path: Path, value: Any) -> Path:
    return write(path, json.dumps(value, ensure_ascii=False))


def talk(conversation: Conversation) -> list[str]:
    """The timeline as `story`, without what components measured."""
    return [_told(conversation, event) for event in conversation.timeline if not isinstance(event, ComponentMetric)]


def measured(conversation: Conversation) -> list[dict[str, float]]:
    """What the components measured, in their order."""
    return [dict(event.values) for event in conversation.timeline if isinstance(event, ComponentMetric)]


def story(conversation: Conversation) -> list[str]:
    """The timeline, one line an event: `user: words`, `tool({arguments})`, `-> result`, `[marker]`."""
    return [_told(conversation, event) for event in conversation.timeline]


def _told(conversation: Conversation, event: Any) -> str:
    if isinstance(event, Utterance):
        return f"{event.speaker}: {conversation.text(event)}"
    if isinstance(event, ToolCall):
        return f"{event.name}({event.raw_arguments or json.dumps(event.arguments)})"
    if isinstance(event, ToolResult):
        return f"-> {json.dumps(event.result)}"
    return f"[{event.name}]" if hasattr(event, "name") else f"[{type(event).__name__}]"
