"""What a score is about: the conversation, a turn, a state, an item, or what a family names."""

from __future__ import annotations

from typing import NamedTuple


class Subject(NamedTuple):
    """What was looked at: turn 3, state greeting, tool call 7. `position` is its place in the order."""

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
