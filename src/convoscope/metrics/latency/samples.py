"""Samples of latency: what the parts of the stack report of each call, with sentinels and faults set aside."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from typing import Any, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.scores.observation import MEASURED, NOT_APPLICABLE, UNMEASURED, Status
from convoscope.views.items import Case, cases

DAY = 86_400.0
"""Seconds. No part of a call takes longer; a greater number is a fault of the log, or a time of the clock."""

_IDS = ("request_id", "segment_id", "timestamp")
_YES = frozenset(("true", "1", "yes", "on"))


class LatencyReading(NamedTuple):
    """One time in seconds, or why a component metric that speaks of it gives none."""

    seconds: float | None
    status: Status = MEASURED
    reason: str = ""
    detail: str = ""


class Field(NamedTuple):
    """A time that a part of the stack reports, and the values that stand for "there is none" (standard-data, 2.5)."""

    component: str
    names: tuple[str, ...]
    """Its name, then what other frameworks call it. One name is read in a case, never a mixture."""
    below_zero: str = ""
    """What a negative value says of a call that failed; where nothing is said, it is a fault of the log."""
    zero: str = ""
    """What exactly 0 says; where nothing is said, it is a time."""
    zero_status: Status = NOT_APPLICABLE
    drops_cancelled: bool = False

    def reading(self, event: ComponentMetric, names: Sequence[str] = ()) -> LatencyReading | None:
        """The time, by the first of the names that the event has; None where it does not speak of it."""
        given = carried(event, names or self.names) if event.component == self.component else None
        if given is None:
            return None
        if self.drops_cancelled and is_true(event.values.get("cancelled")):
            return LatencyReading(None, NOT_APPLICABLE, "cancelled")
        reading = read_time(given)
        if reading.reason == "negative_time" and self.below_zero:
            return LatencyReading(None, UNMEASURED, self.below_zero, reading.detail)
        if reading.seconds == 0 and self.zero:
            return LatencyReading(None, self.zero_status, self.zero)
        return reading


TTFT = Field("llm", ("ttft", "ttfb"), below_zero="no_token", drops_cancelled=True)
LLM_DURATION = Field("llm", ("duration", "latency", "processing"), drops_cancelled=True)
TTFB = Field("tts", ("ttfb",), below_zero="no_audio", drops_cancelled=True)
TTS_DURATION = Field("tts", ("duration", "processing"))
TTS_AUDIO = Field("tts", ("audio_duration",))
STT_DURATION = Field("stt", ("duration", "latency", "processing"), zero="streamed")
STT_AUDIO = Field("stt", ("audio_duration",))
END_OF_TURN = Field("eou", ("end_of_utterance_delay", "end_of_turn_delay"), zero="not_detected", zero_status=UNMEASURED)
TRANSCRIPTION = Field("eou", ("transcription_delay",))
TURN_COMPLETED = Field("eou", ("on_user_turn_completed_delay",))


class LatencySample(NamedTuple):
    """One component metric, and what it says of one time."""

    event: ComponentMetric
    reading: LatencyReading


def samples(field: Field, events: Sequence[ComponentMetric]) -> list[LatencySample]:
    """What each event says of the time; those that do not speak of it are no samples."""
    candidates = [event for event in events if event.component == field.component]
    for name in field.names:
        if any(event.values.get(name) is not None for event in candidates):
            readings = [(event, field.reading(event, (name,))) for event in candidates]
            return [LatencySample(event, reading) for event, reading in readings if reading is not None]
    return []


def carried(event: ComponentMetric, names: Sequence[str]) -> Any:
    """The first of these values that the event has; null is none."""
    for name in names:
        value = event.values.get(name)
        if value is not None:
            return value
    return None


def read_time(value: Any) -> LatencyReading:
    """A time in seconds as a log may write it: a number, or the text of one."""
    number = read_number(value)
    if number is None:
        return LatencyReading(None, UNMEASURED, "not_a_number", repr(value)[:40])
    if number < 0:
        return LatencyReading(None, UNMEASURED, "negative_time", f"{number:g} s")
    if number > DAY:
        return LatencyReading(None, UNMEASURED, "implausible_time", f"{number:g} s")
    return LatencyReading(number)


def read_number(value: Any) -> float | None:
    """A finite number, also of its text; truth values are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def is_true(value: Any) -> bool:
    """True, also as text or as 1."""
    if value is None:
        return False
    return isinstance(value, bool | int | str) and str(value).strip().lower() in _YES


class Share(NamedTuple):
    """A case, the component metrics that are its own, and those that an item before it has already."""

    case: Case
    metrics: tuple[ComponentMetric, ...]
    repeated: tuple[ComponentMetric, ...] = ()


@cached_on_argument
def shares(conversation: Conversation) -> Sequence[Share]:
    """Each case with its component metrics, every one in the first case that has it.

    Exports may repeat the metrics of a whole conversation in each of its items: each counts in the first item
    that has it. A case all of whose events came before is left out, and so is a conversation
    beside its items that has none of its own: the items speak.
    """
    return list(_shares(conversation))


def _shares(conversation: Conversation) -> Iterator[Share]:
    seen: set[int] = set()
    reported: Counter[Hashable] = Counter()
    for case in cases(conversation):
        events = case.metrics
        if not events and case.item is None and conversation.items:
            continue
        fresh = [event for event in events if event.seq not in seen]
        if fresh or not events:
            seen.update(event.seq for event in fresh)
            yield _share(case, fresh, reported) if len(conversation.items) > 1 else Share(case, tuple(fresh))


def _share(case: Case, events: Sequence[ComponentMetric], reported: Counter[Hashable]) -> Share:
    own: list[ComponentMetric] = []
    repeated: list[ComponentMetric] = []
    counts: Counter[Hashable] = Counter()
    for event in events:
        identity = _identity(event)
        if identity is not None:
            counts[identity] += 1
        (own if identity is None or counts[identity] > reported[identity] else repeated).append(event)
    reported |= counts
    return Share(case, tuple(own), tuple(repeated))


def _identity(event: ComponentMetric) -> Hashable:
    """All that a metric says, where it says which it is: by the id of a speech or a request, or by its time.

    Without one, two equal metrics may well be of two calls.
    """
    if not (event.speech_id or event.time is not None or any(event.values.get(name) for name in _IDS)):
        return None
    return (event.component, event.speech_id, event.label, repr(event.time), repr(sorted(event.values.items())))
