"""A call of the invented agent: what happened in it, and what only its maker knows."""

from __future__ import annotations

from typing import Any, NamedTuple

from convoscope.demo.faults import PlantedFault
from convoscope.demo.story import Task

AGENT, CALLER = "agent", "caller"
HUNG_UP, PUT_THROUGH, DROPPED = "caller hung up", "put through to a person", "the line dropped"


class SpeechStep(NamedTuple):
    """Someone speaks; `heard` is what the recogniser wrote of a caller's words."""

    start: float
    end: float
    speaker: str
    text: str
    heard: str = ""
    cut_off: bool = False
    """The caller began to speak, and the agent stopped."""
    waited: float = 0.0
    """Seconds that the caller waited for it, where it is a reply."""


class ToolStep(NamedTuple):
    """A tool is called, and answers."""

    start: float
    end: float
    name: str
    arguments: dict[str, str]
    result: dict[str, Any] | None
    error: str = ""


class StateStep(NamedTuple):
    """The flow leaves a state, if it was in one, and enters another."""

    start: float
    state: str
    former: str


class SlotStep(NamedTuple):
    """The flow learns something."""

    start: float
    slot: str
    value: str
    state: str


Step = SpeechStep | ToolStep | StateStep | SlotStep


class PhoneCall(NamedTuple):
    """A call: what happened, in seconds since it began, and what nobody but its maker knows."""

    id: str
    version: str
    dataset: str
    scenario: str
    """Empty for a call of the live line."""
    trial: int
    started: float
    task: Task
    steps: tuple[Step, ...]
    duration: float
    completed: bool | None
    ended: str
    error: str
    fault: PlantedFault | None
    """None where nothing was lost, or the line dropped."""
