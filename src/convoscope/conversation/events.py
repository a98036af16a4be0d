"""What can happen in a conversation: the typed events of the timeline, when each happened, and by which clock."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite
from typing import Any, Literal, NamedTuple

import msgspec

ClockKind = Literal["wall", "audio", "relative"]


class Clock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One source of times. Two clocks can be compared only where both say how they relate (`offset`)."""

    id: str
    kind: ClockKind
    source: str = ""
    """The file, field or service that the times were read from."""
    resolution: float | None = None
    """The smallest step of this clock, in seconds: 0.2 for 200 ms ticks, 1.0 for whole seconds."""
    offset: float | None = None
    """Seconds to add to reach the conversation's common time; None where that is not known."""
    estimated: bool = False
    """True where `offset` was estimated, for example from texts that two logs share."""


class Time(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A moment, or a stretch where `until` is known, in seconds of the named clock."""

    at: float
    clock: str = "wall"
    until: float | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.at) or not (self.until is None or isfinite(self.until)):
            raise ValueError("a time must be a finite number of seconds")


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
    gc=False,  # No event leads back to itself, and there are millions: cycles need not be looked for.
):
    """What every event has: its position in the order, its time where known, its id in the source."""

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
    """How it was said, where the log says: backchannel, vocal_tic, non_directed, fallback."""

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


LogSource = Literal["audit", "framework", "simulator"]


class Logged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """One record of one log, in that log's own words.

    audit: what the model and its tools did. framework: what was sent to the speech engine, and turn
    boundaries. simulator: what the caller meant to say, heard, and when sound began and ended.
    """

    source: LogSource
    kind: str
    """The type as logged: user, tool_call, tts_text, turn_end, audio_start, user_speech, connection_state, …"""
    ms: int | None = None
    """When it was logged, in milliseconds of that log's clock."""
    sound: float | None = None
    """When the sound itself began or ended, in seconds, where the log has it."""
    speaker: str = ""
    """Role of who is meant: user or assistant."""
    text: str = ""
    value: Json = None
    event: int = -1
    """seq of the event of the timeline that it went into; -1 for none."""


# A number at least this large counts in this unit: 1e8 s is 1973, and so is 1e11 ms.
_UNITS = (
    (1e17, 1e9, "time_in_epoch_ns"),
    (1e14, 1e6, "time_in_epoch_us"),
    (1e11, 1e3, "time_in_epoch_ms"),
    (1e8, 1.0, "time_in_epoch_s"),
)


class Moment(NamedTuple):
    """Seconds, of which clock, and what had to be concluded to say so."""

    at: float
    kind: ClockKind
    inferred: str = ""


def moment(value: object) -> Moment | None:
    """Read a time; None where it is not one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    except ValueError:
        return _from_iso(str(value).strip())
    if not isfinite(number):
        return None
    for least, per_second, inferred in _UNITS:
        if number >= least:
            return Moment(number / per_second, "wall", inferred)
    return Moment(number, "relative", "time_from_start")


def _from_iso(text: str) -> Moment | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        return Moment(when.replace(tzinfo=UTC).timestamp(), "wall", "time_zone_taken_as_utc")
    return Moment(when.timestamp(), "wall")
