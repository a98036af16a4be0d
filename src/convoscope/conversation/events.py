"""What can happen in a conversation: the typed events of the timeline."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from convoscope.conversation.clock import Time

# Any JSON value: what a log holds where we do not know the shape.
Json = Any


class Text(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Words, and where they were read."""

    text: str
    source: str = ""
    confidence: float | None = None
    language: str = ""


class Segment(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A stretch of sound, in seconds of the named clock."""

    start: float
    end: float
    clock: str = "audio"


class Event(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    tag_field="type",
    gc=False,  # No event leads back to itself, and there are millions: nobody has to look for circles.
):
    """What every event has: its place in the order, its time where known, its id in the source."""

    seq: int
    time: Time | None = None
    id: str = ""
    extras: dict[str, Json] = {}


_MEDIA = re.compile(r"image|audio|video|file|document")


def is_media(part: Any) -> bool:
    """Whether a part of a message is a picture, a sound or a file: nothing that could be read as text."""
    return isinstance(part, dict) and _MEDIA.search(str(part.get("type"))) is not None


class Utterance(Event, frozen=True, kw_only=True, tag="utterance"):
    """One participant says something.

    Three texts, because they differ: what was meant to be said, what was really played or typed
    before a cut, and what the other side's recogniser made of it.
    """

    speaker: str
    intended: Text | None = None
    spoken: Text | None = None
    heard: Text | None = None
    segments: tuple[Segment, ...] = ()
    cut_off_by: str = ""
    """Participant who made the speaker stop."""
    manner: str = ""
    """How it was said, where the log tells: backchannel, vocal_tic, non_directed, fallback."""

    @property
    def is_unread(self) -> bool:
        """Something was said or sent that could not be read: a picture, a number, a stream; it is in `extras`."""
        if self.segments or not ("content" in self.extras or "text" in self.extras):
            return False
        return not (self.meant().strip() or self.received().strip())

    def meant(self) -> str:
        """The words as they were meant; where that is not known, as they were spoken or heard."""
        text = self.intended or self.spoken or self.heard
        return "" if text is None else text.text

    def received(self) -> str:
        """The words as they reached the other side; where that is not known, as they were spoken or meant."""
        text = self.heard or self.spoken or self.intended
        return "" if text is None else text.text


class ToolCall(Event, frozen=True, kw_only=True, tag="tool_call"):
    """The agent (or `caller`) asks a tool to do something."""

    name: str
    arguments: Json = None
    raw_arguments: str | None = None
    """The arguments as logged, kept where they are not valid JSON."""
    call_id: str = ""
    caller: str = ""


class ToolResult(Event, frozen=True, kw_only=True, tag="tool_result"):
    """What a tool answered.

    `success` and `error` are what the log states beside the result. What the result itself says is read by
    `views.tool_outcomes`.
    """

    name: str = ""
    call_id: str = ""
    result: Json = None
    success: bool | None = None
    error: str = ""


class StateEntered(Event, frozen=True, kw_only=True, tag="state_entered"):
    """The flow enters a state."""

    state: str


class StateExited(Event, frozen=True, kw_only=True, tag="state_exited"):
    """The flow leaves a state for another."""

    state: str
    to_state: str = ""
    reason: str = ""


class GuardEvaluated(Event, frozen=True, kw_only=True, tag="guard_evaluated"):
    """A guard of the flow was evaluated; `error` is non-empty where evaluating failed."""

    guard: str = ""
    result: Json = None
    error: str = ""
    state: str = ""


class SlotFilled(Event, frozen=True, kw_only=True, tag="slot_filled"):
    """A slot got its value; 0, False and "" are values."""

    slot: str
    value: Json = None
    state: str = ""


class ComponentMetric(Event, frozen=True, kw_only=True, tag="component_metric"):
    """A figure that some part of the stack reported of itself: vad, stt, tts, llm, eou, turn."""

    component: str
    values: dict[str, Json] = {}
    speech_id: str = ""
    label: str = ""
    state: str = ""
    """The state of the flow that it ran in, where the log says so."""


class Retrieval(Event, frozen=True, kw_only=True, tag="retrieval"):
    """One query to a store, and the chunks it gave, best first."""

    query: str | None = None
    chunks: tuple[str, ...] = ()


class Marker(Event, frozen=True, kw_only=True, tag="marker"):
    """Anything else that happened at a moment: a hand-over, a key press, a turn boundary, noise."""

    name: str
    participant: str = ""
    value: Json = None


AnyEvent = (
    Utterance
    | ToolCall
    | ToolResult
    | StateEntered
    | StateExited
    | GuardEvaluated
    | SlotFilled
    | ComponentMetric
    | Retrieval
    | Marker
)
