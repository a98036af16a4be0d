"""Times of a voice stack as its parts report them of each call, and as the session states them."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from convoscope.conversation import ComponentMetric, Conversation, Json
from convoscope.conversation.lazy import cached_on_argument
from convoscope.scores.observation import MEASURED, NOT_APPLICABLE, UNMEASURED, Status
from convoscope.text.folding import split_camel
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
    """A time that a part of the stack reports, and the values that mean "not available" (standard-data, 2.5)."""

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
    """The first of these values that the event has; null is missing."""
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
    """A finite number, also of its text; truth values are no numbers."""
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
    in addition to its items that has none of its own: the items speak.
    """
    all_shares: list[Share] = []
    seen: set[int] = set()
    reported: Counter[Hashable] = Counter()
    for case in cases(conversation):
        events = case.metrics
        if not events and case.item is None and conversation.items:
            continue
        fresh = [event for event in events if event.seq not in seen]
        if fresh or not events:
            seen.update(event.seq for event in fresh)
            is_alone = len(conversation.items) < 2
            all_shares.append(Share(case, tuple(fresh)) if is_alone else _share(case, fresh, reported))
    return all_shares


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


Statistic = Literal["mean", "value", "p50", "sum", "count", "other"]

_DEEPEST = 6
_WORDS = re.compile(r"[a-z0-9]+")
_WITH_UNIT = re.compile(r"\s*([0-9.]+)\s*([a-z]+)\s*", re.IGNORECASE)
_PERCENTILE = re.compile(r"p\d+")
_AROUND = frozenset(("latency", "latencies", "metrics", "session", "stats", "summary"))
"""Words that may precede the name of a figure."""
_UNITS: Mapping[str, str] = {
    **dict.fromkeys(("ms", "msec", "msecs", "millis", "millisecond", "milliseconds"), "ms"),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "s"),
}
_STATISTICS: Mapping[str, Statistic] = {
    **dict.fromkeys(("mean", "avg", "average"), "mean"),
    **dict.fromkeys(("p50", "median"), "p50"),
    **dict.fromkeys(("sum", "total"), "sum"),
    **dict.fromkeys(("n", "count", "calls", "samples"), "count"),
    **dict.fromkeys(("min", "max", "minimum", "maximum", "std", "sd", "stddev", "last"), "other"),
    "value": "value",
}
ASSUMED = "s, assumed"
_USABLE: tuple[Statistic, ...] = ("mean", "value", "p50")
_SUMMED: tuple[Statistic, ...] = ("sum", "value")

NAMES: Mapping[str, tuple[str, ...]] = {
    "llm_ttft": ("llm_ttft", "ttft", "llm_ttfb", "llm_node_ttft", "llm_time_to_first_token", "time_to_first_token"),
    "llm_latency": ("llm_latency", "llm_duration", "llm"),
    "tts_ttfb": ("tts_ttfb", "ttfb", "tts_node_ttfb", "tts_time_to_first_byte", "time_to_first_byte"),
    "tts_latency": ("tts_latency", "tts"),
    "tts_duration": ("tts_duration", "tts_processing_duration"),
    "tts_audio_duration": ("tts_audio_duration",),
    "stt_latency": ("stt_latency", "stt", "transcription_delay", "eou_transcription_delay", "stt_transcription_delay"),
    "stt_processing_duration": ("stt_processing_duration", "stt_duration"),
    "stt_audio_duration": ("stt_audio_duration",),
    "end_of_turn_delay": (
        "end_of_turn_delay",
        "end_of_utterance_delay",
        "eou_end_of_utterance_delay",
        "eou_delay",
        "end_of_turn",
        "end_of_utterance",
        "eou",
    ),
    "on_user_turn_completed_delay": (
        "on_user_turn_completed_delay",
        "eou_on_user_turn_completed_delay",
        "on_user_turn_completed",
    ),
    "assistant_latency": ("assistant_latency", "assistant", "agent_latency"),
    "e2e_latency": ("e2e_latency", "e2e", "end_to_end_latency", "end_to_end", "user_bot_latency"),
}
"""The names that a figure may have, without unit and statistic, the likeliest first."""

SUMS = frozenset(("tts_audio_duration", "stt_audio_duration", "stt_processing_duration"))
"""Figures that are the sum of a session, not its mean."""
MAY_BE_ZERO = SUMS | {"on_user_turn_completed_delay"}
"""Of the others a mean of exactly 0 is a field that was never filled, or a sentinel."""
LONGEST = 60.0
"""What a figure without a unit may be, taken for seconds: one above it is more likely in milliseconds."""
_WAITS = frozenset(name for figure, names in NAMES.items() if figure not in SUMS for name in names)


class Stated(NamedTuple):
    """A figure as the session states it."""

    seconds: float
    key: str
    """Where it stands: `llm.ttft_ms`."""
    statistic: Statistic
    unit: str
    """`ms`, `s`, or `s, assumed` where nothing says what it is in."""


class NotStated(NamedTuple):
    """Why the session gives no figure."""

    reason: str
    detail: str


class _Entry(NamedTuple):
    key: str
    name: str
    statistic: Statistic
    unit: str
    value: Json


def stated(latency: Json, figure: str) -> Stated | NotStated | None:
    """The figure in seconds: a mean, else a value without a statistic, else a median; of a sum, the sum.

    Where nothing says its unit it is in seconds, unless it, or another wait of the session, would be too
    long. None where the session does not speak of it at all.
    """
    entries = list(_entries(latency))
    in_seconds = not any(_is_too_long(entry) for entry in entries if entry.name in _WAITS)
    usable = _SUMMED if figure in SUMS else _USABLE
    seen: list[str] = []
    without_unit: list[str] = []
    for name in NAMES[figure]:
        named = [entry for entry in entries if entry.name == name]
        if any(entry.statistic == "count" and read_number(entry.value) == 0 for entry in named):
            continue  # a statistic of no calls at all, whatever its number
        usables = [entry for statistic in usable for entry in named if entry.statistic == statistic]
        statements = [
            statement for entry in usables if (statement := _seconds(entry, figure in MAY_BE_ZERO)) is not None
        ]
        for statement in statements:
            if statement.unit != ASSUMED or (in_seconds and statement.seconds <= LONGEST):
                return statement
        without_unit += [f"{statement.key} {statement.seconds:g}" for statement in statements]
        seen += [f"{one.key} {one.value!r:.20}" for one in named if one.statistic != "count" and one.value is not None]
    if without_unit:
        return NotStated("unit_unknown", "latency states without a unit " + ", ".join(without_unit[:5]))
    if not seen:
        return None
    return NotStated("no_sum" if figure in SUMS else "no_mean", "latency states only " + ", ".join(seen[:5]))


def _is_too_long(entry: _Entry) -> bool:
    """Whether this wait is stated without a unit, and cannot be in seconds: then its neighbours are not, either."""
    statement = _seconds(entry, may_be_zero=True) if entry.statistic != "count" else None
    return statement is not None and statement.unit == ASSUMED and statement.seconds > LONGEST


def _seconds(entry: _Entry, may_be_zero: bool) -> Stated | None:
    value, unit = entry.value, entry.unit
    if isinstance(value, str) and (written := _WITH_UNIT.fullmatch(value)) and written[2].lower() in _UNITS:
        value, unit = written[1], _UNITS[written[2].lower()]
    number = read_number(value)
    seconds = None if number is None else read_time(number / 1000 if unit == "ms" else number).seconds
    if seconds is None or (seconds == 0 and not may_be_zero):
        return None
    return Stated(seconds, entry.key, entry.statistic, unit or ASSUMED)


def _entries(value: Json, path: tuple[str, ...] = (), unit: str = "") -> Iterator[_Entry]:
    """Every value that is no object, with what the keys on its way say of it."""
    if not isinstance(value, dict):
        if path:
            yield _entry(path, value, unit)
        return
    if len(path) >= _DEEPEST:
        return
    for name in ("unit", "units"):
        unit = _UNITS.get(str(value.get(name)).strip().lower(), unit)
    for key, inner in value.items():
        if key not in ("unit", "units"):
            yield from _entries(inner, (*path, str(key)), unit)


def _entry(path: tuple[str, ...], value: Json, unit: str) -> _Entry:
    name: list[str] = []
    statistic: Statistic = "value"
    words: list[str] = []
    for key in path:
        words += _WORDS.findall(split_camel(key, "_").lower())
        if words and words[-1] in _UNITS:
            unit = _UNITS[words.pop()]
    for word in words:
        named_statistic = _STATISTICS.get(word) or ("other" if _PERCENTILE.fullmatch(word) else None)
        if named_statistic is None:
            if word not in name[-1:]:
                name.append(word)
        elif statistic in ("value", "sum") or named_statistic == "other":  # total_calls are calls
            statistic = named_statistic
    while len(name) > 1 and name[0] in _AROUND:
        del name[0]
    return _Entry(".".join(path), "_".join(name), statistic, unit, value)
