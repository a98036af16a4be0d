"""What reading made of one file of `data/formats`, in the terms that its facts are counted in."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import convoscope
from convoscope.conversation import (
    ASSISTANT,
    USER,
    ComponentMetric,
    Conversation,
    Label,
    Marker,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.events import moment
from convoscope.errors import ConvoscopeError
from convoscope.ingest.report import ReadReport
from convoscope.views.tool_outcomes import tool_outcome
from support.shared_data import begins_with

NO_CONTENT = ("without any message", "has no message", "nothing was said", "the logs that it belongs to are missing")
"""What a refusal says where a file holds nothing that was said."""


def folders(root: Path) -> list[Path]:
    """The folders of kinds."""
    return sorted(path.parent for path in root.glob("*/facts.json"))


def facts_of(folder: Path) -> dict[str, dict[str, Any]]:
    """The facts of the logs of a kind. Files in folders inside are no logs: they hold what others made of one."""
    held: dict[str, dict[str, Any]] = json.loads((folder / "facts.json").read_text())
    return {name: facts for name, facts in held.items() if "/" not in name and (folder / name).exists()}


class Reading:
    """One file as it was read, or the refusal, beside what a script counted in it."""

    def __init__(self, path: Path, facts: dict[str, Any]) -> None:
        self.path, self.facts = path, facts
        self.refusal = ""
        self.conversations: list[Conversation] = []
        self.report = ReadReport()
        try:
            reading = convoscope.read(path)
            self.conversations, self.report = list(reading), reading.report
        except ConvoscopeError as error:
            self.refusal = str(error)

    @cached_property
    def events(self) -> list[tuple[Conversation, Any]]:
        return [(one, event) for one in self.conversations for event in one.timeline]

    def of(self, *kinds: type) -> list[Any]:
        return [event for _, event in self.events if isinstance(event, kinds)]

    @property
    def utterances(self) -> list[Utterance]:
        return self.of(Utterance)

    @property
    def calls(self) -> list[ToolCall]:
        return self.of(ToolCall)

    @property
    def results(self) -> list[ToolResult]:
        return self.of(ToolResult)

    @property
    def labels(self) -> list[Label]:
        return [label for one in self.conversations for label in one.labels]

    @property
    def failed(self) -> list[ToolResult]:
        return [result for result in self.results if tool_outcome(result).failed]

    @property
    def errors(self) -> int:
        """What the log calls an error: results that failed, and conversations that broke."""
        return len(self.failed) + sum(bool(one.outcome.error) for one in self.conversations)

    def marks(self, name: str) -> list[Any]:
        return [mark.value for mark in self.of(Marker) if mark.name == name]

    def said(self, *roles: str) -> list[str]:
        return [
            event.meant()
            for one, event in self.events
            if isinstance(event, Utterance) and one.roles[event.speaker] in roles
        ]

    @property
    def users(self) -> list[str]:
        return self.said(USER)

    @property
    def assistants(self) -> list[str]:
        return self.said(ASSISTANT)

    @property
    def all_said(self) -> list[str]:
        return [one.meant() for one in self.utterances]

    def ignored(self, *codes: str) -> int:
        return sum(count for code, count in self.report.ignored.items() if code.startswith(codes))

    @property
    def names(self) -> Counter[str]:
        """Utterances by the name of who speaks."""
        names = [{entry.id: entry.name or entry.id for entry in one.participants} for one in self.conversations]
        by_conversation = zip(names, self.conversations, strict=True)
        return Counter(named[event.speaker] for named, one in by_conversation for event in one.utterances)

    @property
    def participants(self) -> set[str]:
        return {entry.name or entry.id for one in self.conversations for entry in one.participants}

    @property
    def messages_of_assistants(self) -> int:
        """What models wrote, as messages: words and the calls behind them are one."""
        return sum(len(list(_runs(one))) for one in self.conversations)

    @property
    def messages(self) -> int:
        """As a list of messages counts them: each result is one."""
        return len(self.users) + len(self.results) + self.messages_of_assistants

    @property
    def instructions(self) -> int:
        return sum(bool(one.agent.instructions) for one in self.conversations)

    def values(self, name: str) -> list[float]:
        """One figure of all components."""
        return [metric.values[name] for metric in self.of(ComponentMetric) if name in metric.values]

    @property
    def times(self) -> list[float]:
        """When things were said, called and answered, in the order of the timeline."""
        events = self.of(Utterance, ToolCall, ToolResult, Marker)
        return [event.time.at for event in events if event.time is not None]

    @property
    def ends(self) -> list[float]:
        return [event.time.until or event.time.at for _, event in self.events if event.time is not None]

    @property
    def segments(self) -> list[tuple[float, float]]:
        return [(segment.start, segment.end) for one in self.utterances for segment in one.segments] or [
            (one.time.at, one.time.until or one.time.at) for one in self.utterances if one.time is not None
        ]


def _runs(one: Conversation) -> Iterator[None]:
    """The messages of models in a conversation: words open one, and so does a call that follows no words or call."""
    is_open = False
    for event in one.timeline:
        if isinstance(event, Utterance):
            is_open = one.roles[event.speaker] == ASSISTANT
            if is_open:
                yield
        elif isinstance(event, ToolCall) and one.roles.get(event.caller) != USER:
            if not is_open:
                yield
            is_open = True
        elif isinstance(event, ToolResult):
            is_open = False


def same(texts: Iterable[str], wanted: Iterable[str]) -> bool:
    """Whether the same was said, in the same order; blanks at the ends do not count, a cut text is its beginning."""
    left, right = list(texts), list(wanted)
    return len(left) == len(right) and all(map(begins_with, left, right))


def close(value: float | None, fact: float, within: float = 1e-6) -> bool:
    return value is not None and abs(value - fact) <= within


def at(fact: Any) -> float:
    """A time of the facts, in seconds."""
    if isinstance(fact, list):
        return fact[0] + sum(fact[1:]) / 1e9
    found = moment(fact)
    assert found is not None, fact
    return found.at
