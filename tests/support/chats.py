"""Small conversations for tests, written as they would be told."""

from collections.abc import Iterable
from typing import Any

from convoscope.conversation import (
    Clock,
    Conversation,
    Event,
    Participant,
    Segment,
    Text,
    Time,
    ToolCall,
    ToolResult,
    Utterance,
)
from convoscope.metrics import Observation

WALL = Clock(id="wall", kind="wall")
UNPLACED = -1  # the seq of an event until `chat` gives it its place
AUDIO = Clock(id="audio", kind="audio")


def chat(*events: Event, id: str = "c", clocks: Iterable[Clock] = (WALL, AUDIO), **facts: Any) -> Conversation:
    """A conversation of `user` and `agent`; the order of the events is the order in which they happened."""
    people = (Participant("user", "user"), Participant("agent", "assistant"))
    timeline = []
    for seq, event in enumerate(events):
        fields = {name: getattr(event, name) for name in event.__struct_fields__}
        timeline.append(type(event)(**fields | {"seq": seq}))
    return Conversation(id=id, participants=people, clocks=tuple(clocks), timeline=tuple(timeline), **facts)


def user(text: str, at: float | None = None, **facts: Any) -> Utterance:
    return _said("user", text, at, **facts)


def agent(text: str, at: float | None = None, **facts: Any) -> Utterance:
    return _said("agent", text, at, **facts)


def _said(
    speaker: str,
    text: str,
    at: float | None,
    *,
    until: float | None = None,
    clock: str = "wall",
    sound: Iterable[tuple[float, float]] = (),
) -> Utterance:
    return Utterance(
        seq=UNPLACED,
        speaker=speaker,
        spoken=Text(text),
        time=None if at is None else Time(at, clock, until),
        segments=tuple(Segment(start, end, "audio") for start, end in sound),
    )


def call(name: str, call_id: str = "") -> ToolCall:
    return ToolCall(seq=UNPLACED, name=name, call_id=call_id)


def result(
    name: str = "", call_id: str = "", *, success: bool | None = None, error: str = "", result: Any = "done"
) -> ToolResult:
    return ToolResult(seq=UNPLACED, name=name, call_id=call_id, success=success, error=error, result=result)


def told(observations: Iterable[Observation]) -> list[tuple[str, float | str]]:
    """Each subject with its value, or with the status and the reason why it has none."""
    return [
        (str(one.subject), one.value if one.value is not None else f"{one.status}: {one.reason}")
        for one in observations
    ]
