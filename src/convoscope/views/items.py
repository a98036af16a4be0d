"""What metrics look at: the subject of a score, and each item of a conversation, or the conversation as a whole."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple, TypeVar

from convoscope.conversation import ASSISTANT, USER, Conversation, Expected, Item
from convoscope.conversation.events import (
    AnyEvent,
    ComponentMetric,
    Json,
    Retrieval,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.conversation.lazy import cached_on_argument, remembered
from convoscope.text.comparison import Comparison


class Subject(NamedTuple):
    """What was looked at: turn 3, state greeting, tool call 7. `position` is its number in the order."""

    kind: str
    id: str = ""
    position: int = 0

    def __str__(self) -> str:
        return f"{self.kind.replace('_', ' ')} {self.id}" if self.id else self.kind


WHOLE = Subject("conversation")


class State(NamedTuple):
    """A state of the flow as a subject; `position` is the order in which it was first entered."""

    name: str
    position: int = 0


_Event = TypeVar("_Event", bound=AnyEvent)
_NO_EXTRAS: Mapping[str, Json] = {}


class Case:
    """One thing to be judged: an item, or, where `item` is None, the conversation itself.

    Metrics share the cases of a conversation: what one of them asked for is known to the others.
    """

    def __init__(self, conversation: Conversation, subject: Subject, item: Item | None = None) -> None:
        self.conversation = conversation
        self.subject = subject
        self.item = item

    @property
    def expected(self) -> Expected:
        return self.conversation.expected if self.item is None else self.item.expected

    @property
    def extras(self) -> Mapping[str, Json]:
        """What an item carries beside the facts that the model names: context, metadata, trace, latency, …"""
        return _NO_EXTRAS if self.item is None else self.item.extras

    @remembered
    def question(self) -> str | None:
        """What the user asked; the last words of the user where there are no items."""
        return self._text(None if self.item is None else self.item.asked, USER)

    @remembered
    def answer(self) -> str | None:
        """What the agent answered: "" where it spoke without words, None where the log has nothing of it.

        A user who is left without a reply got an empty one: that is a failure, and nothing that is missing.
        """
        answer = self._text(None if self.item is None else self.item.answered, ASSISTANT)
        return "" if answer is None and self.item is None and self.question is not None else answer

    @remembered
    def comparison(self) -> Comparison | None:
        """The answer beside the truth; None where the log has not both."""
        answer, truth = self.answer, self.expected.ground_truth
        return None if answer is None or truth is None else Comparison(answer, truth)

    @remembered
    def events(self) -> tuple[AnyEvent, ...]:
        """What happened for it. In a conversation of one item, or of none, that is all that happened."""
        if self.item is None or len(self.conversation.items) == 1:
            return self.conversation.timeline
        timeline = self.conversation.timeline
        return tuple(_event(timeline, seq) for seq in sorted(set(self.item.events)))

    @remembered
    def tool_calls(self) -> tuple[ToolCall, ...]:
        conversation = self.conversation
        return conversation.tool_calls if self.events is conversation.timeline else self._of(ToolCall)

    @remembered
    def tool_results(self) -> tuple[ToolResult, ...]:
        return self._of(ToolResult)

    @remembered
    def retrievals(self) -> tuple[Retrieval, ...]:
        return self._of(Retrieval)

    @remembered
    def metrics(self) -> tuple[ComponentMetric, ...]:
        return self._of(ComponentMetric)

    def _of(self, kind: type[_Event]) -> tuple[_Event, ...]:
        return tuple([event for event in self.events if type(event) is kind])

    def _text(self, seq: int | None, role: str) -> str | None:
        conversation = self.conversation
        if self.item is None:
            return last_words(conversation, role)
        if seq is None:
            return None
        event = _event(conversation.timeline, seq)
        return conversation.text(event) if type(event) is Utterance else None


def _event(timeline: Sequence[AnyEvent], seq: int) -> AnyEvent:
    """The event that an item points at, which is always there; found without a look at all the others.

    Events ascend, and where they are counted from 0 without a gap, each is at its own number.
    """
    if seq < len(timeline) and timeline[seq].seq == seq:
        return timeline[seq]
    return timeline[bisect_left(timeline, seq, key=attrgetter("seq"))]


@cached_on_argument
def cases(conversation: Conversation) -> Sequence[Case]:
    """The conversation itself where it has no items, or says itself what is expected; then its items."""
    items = conversation.items
    of_items = [Case(conversation, Subject("item", item.id, position), item) for position, item in enumerate(items)]
    if items and conversation.expected == _NOTHING_EXPECTED:
        return of_items
    return [Case(conversation, WHOLE), *of_items]


def last_words(conversation: Conversation, role: str) -> str | None:
    """The last words of this role; "" where it spoke without words, None where the log has nothing of it."""
    spoke = False
    roles = conversation.roles
    for utterance in reversed(conversation.utterances):
        if roles[utterance.speaker] == role:
            spoke = True
            if (text := conversation.text(utterance)).strip():
                return text
    return "" if spoke else None


_NOTHING_EXPECTED = Expected()
