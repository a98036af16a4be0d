"""Pipecat's metrics: what an entry measures, and separate measurements put together by generation.

A bare number does not say what it measures, and two of Pipecat's classes look alike once they are written. Each time
that a processor generated something is one metric. A breakdown is of one wait, from the end of the user's speech to
the first sound of the bot."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import EOU, LLM, STT, TTS, coerce_metric, keep
from convoscope.views.standard_data.values import Warned, Warnings, to_number

TTFB = "ttfb"
PROCESSING = "processing"
TOKENS = "tokens"
CHARACTERS = "characters"
STT_USAGE = "stt_usage"
TTFA = "ttfa"
TTFAT = "ttfat"
TEXT_AGGREGATION = "text_aggregation"
END_OF_TURN = "turn"

GROUPS = (TTFB, TTFA, TTFAT, TEXT_AGGREGATION, PROCESSING, TOKENS, CHARACTERS, STT_USAGE)
"""The keys under which RTVI groups entries, in the order in which they are read."""

_NAMES = {
    **{name.replace("_", ""): name for name in GROUPS},
    "llmusage": TOKENS,
    "ttsusage": CHARACTERS,
    "sttusage": STT_USAGE,
}
_NAME_KEYS = ("type", "name", "class", "__class__", "metric", "kind")
_OF_A_TURN = ("e2e_processing_time_ms", "is_complete", "probability")


class Measured(NamedTuple):
    """What an entry says: of which component, the field it is about, and every field that it gives."""

    component: str
    field: str
    fields: dict[str, Any]


@lru_cache(maxsize=1024)
def service_of(processor: str) -> str:
    """`llm`, `tts` or `stt`, as the class in a processor's name says (`OpenAILLMService#0`), or nothing.

    Capitals first, since the letters of one may arise by chance in another: `FastTTSService`.
    """
    name = processor.split("#", 1)[0]
    services = re.findall(r"LLM|TTS|STT", name) or re.findall(
        r"\b(?:llm|tts|stt)\b", re.sub(r"[\W_]+", " ", name.lower())
    )
    return services[-1].lower() if services else ""


@lru_cache(maxsize=1024)
def metric_named(name: str) -> str:
    """The metric that a name says: `TTFBMetricsData`, `ttfb`, `ttfb_llm`; nothing where it is none of Pipecat's."""
    bare = re.sub(r"[^a-z0-9]|metrics?data$|metrics?$|data$", "", name.rsplit(".", 1)[-1].casefold())
    return _NAMES.get(bare) or _NAMES.get(re.sub(r"(llm|tts|stt)$", "", bare), "")


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether this is an entry of a metrics frame: it names its processor and gives something that it measured."""
    return isinstance(entry.get("processor"), str) and (
        "value" in entry or TTFA in entry or TTFAT in entry or any(key in entry for key in _OF_A_TURN)
    )


def stated(entry: Mapping[str, Any]) -> str:
    """What an entry measures, by its name or by its shape; nothing for a bare number of seconds."""
    for key in _NAME_KEYS:
        name = entry.get(key)
        if isinstance(name, str) and metric_named(name):
            return metric_named(name)
    if TTFAT in entry:
        return TTFAT
    if TTFA in entry:
        return TTFA
    value = entry.get("value")
    if isinstance(value, dict):
        return STT_USAGE if "audio_seconds" in value else TOKENS if any("tokens" in str(key) for key in value) else ""
    if "value" not in entry and any(key in entry for key in _OF_A_TURN):
        return END_OF_TURN
    whole = isinstance(to_number(value), int)
    return CHARACTERS if whole and service_of(entry["processor"]) == "tts" else ""


_FIELDS = {
    (TTFB, "llm"): (LLM, "ttft"),
    (TTFB, "tts"): (TTS, "ttfb"),
    # It runs from the end of speech to the final transcript, and that is what the delay of a transcription is.
    (TTFB, "stt"): (EOU, "transcription_delay"),
    (PROCESSING, "llm"): (LLM, "duration"),
    (PROCESSING, "tts"): (TTS, "duration"),
    (PROCESSING, "stt"): (STT, "duration"),
}
_ALWAYS = {
    TOKENS: (LLM, "prompt_tokens"),
    CHARACTERS: (TTS, "characters_count"),
    STT_USAGE: (STT, "audio_duration"),
    TTFA: (TTS, "ttfa"),
    TTFAT: (LLM, "ttfat"),
    TEXT_AGGREGATION: (TTS, "text_aggregation"),
    END_OF_TURN: (EOU, "end_of_utterance_delay"),
}
BESIDE = {TTFA: "ttfa_ttfb", TTFAT: "ttfat_ttfb"}
"""Where the time to first byte stands that such an entry repeats: not where it would be counted again."""
FIRST = {TTS: "ttfb", LLM: "ttft", EOU: "transcription_delay"}
"""The field that a time to first byte becomes."""


def measured(metric: str, entry: Mapping[str, Any]) -> Measured | None:
    """What an entry says as a metric of a component; None where its processor is of no component we know."""
    named = _ALWAYS.get(metric) or _FIELDS.get((metric, service_of(str(entry.get("processor", "")))))
    if named is None:
        return None
    component, field = named
    value = entry.get("value")
    several = value if isinstance(value, dict) else {}
    fields: dict[str, Any] = {} if value is None or several else {field: value}
    for key, member in (*entry.items(), *several.items()):
        if member is None or (member is value and key == "value"):
            continue
        keep(fields, "source_type" if key == "type" else BESIDE.get(metric, TTFB) if key == TTFB else key, member)
    if metric == STT_USAGE and "audio_seconds" in fields and "audio_duration" not in fields:
        fields["audio_duration"] = fields.pop("audio_seconds")
    if metric == TOKENS:
        field = next((key for key in fields if str(key).endswith("_tokens")), field)
    return Measured(component, field, fields)


_USAGE = (TOKENS, CHARACTERS)
_IN_A_LIST = re.compile(r"(.*)\[(\d+)\]", re.DOTALL)


class Timed(NamedTuple):
    """One entry as it came: what it measures, where that is known, else nothing."""

    processor: str
    metric: str
    value: int | float | None
    path: str

    @property
    def is_bare(self) -> bool:
        # A processor reports 0 when it starts: nothing was measured by that.
        return not self.metric and bool(self.value)


def roles(entries: Sequence[Timed]) -> list[str]:
    """What each entry measures. A bare number is a time to first byte, unless something says it is a duration.

    Of a processor that also reports its usage, once for each generation, the counts say it: twice as many
    numbers come in pairs, as many are one each. Numbers of a model come in pairs where they do so between
    two reports of the recogniser. Else a number that directly follows the time to first byte of its
    processor in the same list, and is larger, is the duration.
    """
    metrics = [one.metric or TTFB for one in entries]
    for processor in dict.fromkeys(one.processor for one in entries if one.is_bare):
        places = [place for place, one in enumerate(entries) if one.processor == processor]
        for place in _durations(processor, places, entries):
            metrics[place] = PROCESSING
    return metrics


def _durations(processor: str, places: Sequence[int], entries: Sequence[Timed]) -> Iterator[int]:
    """The places of bare numbers that are durations."""
    bare = [place for place in places if entries[place].is_bare]
    used = sum(entries[place].metric in _USAGE for place in places)
    named = any(entries[place].metric in (TTFB, PROCESSING) for place in places)
    if not named and len(bare) == used:
        return
    if not named and len(bare) == 2 * used and _are_pairs(bare, entries):
        yield from bare[1::2]
        return
    for stretch in _between_utterances(bare, entries) if service_of(processor) == "llm" and not named else [bare]:
        if stretch is not bare and _are_pairs(stretch, entries):
            yield from stretch[1::2]
        else:
            yield from _following(stretch, entries)


def _are_pairs(bare: Sequence[int], entries: Sequence[Timed]) -> bool:
    """Each second one larger than the one before: a first byte and the whole."""
    values = [entries[place].value or 0 for place in bare]
    return len(values) % 2 == 0 and all(first < second for first, second in zip(values[::2], values[1::2], strict=True))


def _between_utterances(bare: Sequence[int], entries: Sequence[Timed]) -> list[Sequence[int]]:
    """The numbers of a model in one reply after the other; all as they are where no recogniser reports."""
    heard = [
        place
        for place, one in enumerate(entries)
        if service_of(one.processor) == "stt" and (one.is_bare or one.metric == TTFB)
    ]
    if not heard:
        return [bare]
    stretches: dict[int, list[int]] = {}
    for place in bare:
        stretches.setdefault(sum(one < place for one in heard), []).append(place)
    return list(stretches.values())


def _following(bare: Sequence[int], entries: Sequence[Timed]) -> Iterator[int]:
    """Numbers that directly follow a smaller one of the same processor, which is no duration itself."""
    last = -1
    for place in bare:
        before = entries[place - 1] if place > 0 else None
        if before is None or last == place - 1 or not _adjoin(before, entries[place]):
            continue
        if before.metric in ("", TTFB) and 0 < (before.value or 0) < (entries[place].value or 0):
            last = place
            yield place


def _adjoin(before: Timed, after: Timed) -> bool:
    """Whether one stands right behind the other in one list, and is of the same processor."""
    first, second = _IN_A_LIST.fullmatch(before.path), _IN_A_LIST.fullmatch(after.path)
    if first is None or second is None or before.processor != after.processor:
        return False
    return first[1] == second[1] and int(first[2]) + 1 == int(second[2])


_OF_AN_ENTRY = ("timestamp", "source_type", "name", "class", "__class__", "metric", "kind")
"""What each entry may have of its own without being of another generation."""
_REPEATED = {TTS: BESIDE[TTFA], LLM: BESIDE[TTFAT]}


class Added(NamedTuple):
    """The metric that an entry became, or became a part of."""

    metric: dict[str, Any]
    is_new: bool


class _Whose(NamedTuple):
    processor: str
    component: str


class _Reported(NamedTuple):
    source: str
    metric: dict[str, Any]


class _Inferred(NamedTuple):
    path: str
    metric: str
    value: object


class Generations:
    """The generations of each processor so far, in the order in which their measurements came.

    A measurement belongs to the last generation of its processor that does not have it yet. A time to
    first byte opens a new one where the last has come to its end, that is, has its duration. What bare
    numbers measure can only be told when all entries were seen: `roles` has it, for each entry in turn.
    """

    def __init__(self, warnings: Warnings, roles: Sequence[str] = ()) -> None:
        self.seen: list[Timed] = []
        self._warnings = warnings
        self._roles = roles
        self._made: dict[_Whose, list[dict[str, Any]]] = {}
        self._marks: dict[_Whose, int] | None = None
        self._inferred: dict[str, list[_Inferred]] = {}
        self._first_bytes: dict[tuple[str, int | float], _Reported] = {}

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Inside, entries come by what they measure and not by time: the first goes to the first generation."""
        self._marks = {whose: len(made) for whose, made in self._made.items()}
        yield
        self._marks = None

    def begin(self, processor: str, metric: dict[str, Any]) -> None:
        """Let a metric be the generation that a processor is at."""
        self._made.setdefault(_Whose(processor, metric["type"]), []).append(metric)

    def add(self, metric: str, entry: Mapping[str, Any], path: str, source: str) -> Added | None:
        """Read an entry, of which `metric` says what it measures where that is known; None where it cannot be read.

        A breakdown repeats the times to first byte that frames have told, and the other way round: what
        another source has told is counted once.
        """
        processor = str(entry.get("processor") or "")
        value = to_number(entry.get("value"))
        metric = self._meant(metric or stated(entry), entry, path, value)
        measurement = measured(metric, entry) if metric else None
        if measurement is None:
            return None
        earlier = (
            self._first_bytes.get((processor, value)) if metric == TTFB and value is not None and value > 0 else None
        )
        if earlier is not None and earlier.source != source:
            message = f"This time to first byte of {processor} is told twice, and is counted once."
            self._warnings.append(Warned(path, "repeated_metric", message, dict(entry)))
            return Added(earlier.metric, is_new=False)
        coerce_metric(measurement.fields, path, self._warnings)
        added = self._put(_Whose(processor, measurement.component), metric, measurement)
        if metric == TTFB and value is not None:
            self._first_bytes.setdefault((processor, value), _Reported(source, added.metric))
        return added

    def _put(self, whose: _Whose, metric: str, measurement: Measured) -> Added:
        generation = self._find(whose, measurement)
        if generation is None:
            generation = {"type": measurement.component, **measurement.fields}
            self.begin(whose.processor, generation)
            _add_speed(generation)
            return Added(generation, is_new=True)
        for name, value in measurement.fields.items():
            keep(
                generation,
                f"{metric}_{name}" if name in _OF_AN_ENTRY and generation.get(name, value) != value else name,
                value,
            )
        _add_speed(generation)
        return Added(generation, is_new=False)

    def _find(self, whose: _Whose, measurement: Measured) -> dict[str, Any] | None:
        if not whose.processor and whose.component == LLM:  # RTVI counts tokens without saying whose they are
            models = [one for one in self._made if one.component == LLM]
            whose = models[0] if len(models) == 1 else whose
        generations = self._made.get(whose, [])
        last = len(generations) - 1
        since = last if self._marks is None else min(self._marks.get(whose, 0), last)
        return next((one for one in generations[max(since, 0) :] if _fits(one, measurement)), None)

    def _meant(self, metric: str, entry: Mapping[str, Any], path: str, value: int | float | None) -> str:
        """What an entry measures: what it says, else what a bare number is taken for; nothing where it is neither."""
        processor = str(entry.get("processor") or "")
        self.seen.append(Timed(processor, metric, value, path))
        if metric or value is None:
            return metric
        place = len(self.seen) - 1
        metric = self._roles[place] if place < len(self._roles) else TTFB
        if measured(metric, entry) is not None:
            self._inferred.setdefault(processor, []).append(_Inferred(path, metric, entry["value"]))
        return metric

    def finish(self) -> None:
        """Settle what only the end can tell: which times to first byte were told once, and what was inferred."""
        for whose, generations in self._made.items():
            first, beside = FIRST.get(whose.component, ""), _REPEATED.get(whose.component, "")
            has_first = any(one.get(first) is not None for one in generations)
            for generation in generations:
                if beside in generation and (not has_first or generation.get(first) == generation[beside]):
                    generation[first] = generation.pop(beside)
        for processor, inferences in self._inferred.items():
            measures = " and ".join(dict.fromkeys(one.metric for one in inferences))
            message = f"Values of {processor} do not say what they measure; they were read as {measures}."
            self._warnings.append(
                Warned(inferences[0].path, "inferred_metric", message, [one.value for one in inferences])
            )


def _fits(metric: Mapping[str, Any], measurement: Measured) -> bool:
    if measurement.field in metric or (measurement.field == FIRST.get(measurement.component) and "duration" in metric):
        return False
    return all(metric.get(key, one) == one for key, one in measurement.fields.items() if key not in _OF_AN_ENTRY)


def _add_speed(metric: dict[str, Any]) -> None:
    """Tokens per second, from the tokens of a completion and the time that it took."""
    tokens, duration = metric.get("completion_tokens"), metric.get("duration")
    if metric["type"] == LLM and tokens is not None and duration is not None and duration > 0:
        speed = tokens / duration
        if isfinite(speed):
            metric.setdefault("tokens_per_second", speed)


_ONLY_HERE = ("user_turn_secs", "total_secs", "user_turn_start_time")
_BESIDE_A_LIST = ("function_calls", "contributions")
_OF_THE_WHOLE = {"total_secs": "e2e_latency", "type": "source_type"}
_RENAMED = {"duration_secs": "value", "start_time": "timestamp"}


class BreakdownPart(NamedTuple):
    """One measurement of a processor, as an entry of a metrics frame would tell it."""

    metric: str
    step: str
    entry: object

    @property
    def processor(self) -> str:
        return str(self.entry.get("processor") or "") if isinstance(self.entry, dict) else ""

    @property
    def of_recognition(self) -> bool:
        return self.metric == TTFB and service_of(self.processor) == "stt"


class Breakdown(NamedTuple):
    """The end of the user's turn, what each processor took, and what is of the whole wait."""

    end_of_turn: dict[str, Any]
    parts: list[BreakdownPart]
    whole: dict[str, Any]


def is_breakdown(entry: Mapping[str, Any]) -> bool:
    """Whether this is a breakdown: it says how long the user's turn or the whole wait took, or lists what it was."""
    return any(key in entry for key in _ONLY_HERE) or (
        isinstance(entry.get(TTFB), list) and any(key in entry for key in _BESIDE_A_LIST)
    )


def taken_apart(entry: Mapping[str, Any]) -> Breakdown:
    """The parts of a breakdown, each in the words of the others."""
    parts = [
        *(BreakdownPart(TTFB, f".{TTFB}[{index}]", _as_entry(one)) for index, one in enumerate(_listed(entry, TTFB))),
        *(
            BreakdownPart(TEXT_AGGREGATION, f".{TEXT_AGGREGATION}", _as_entry(one))
            for one in _listed(entry, TEXT_AGGREGATION)
        ),
    ]
    whole: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in (TTFB, TEXT_AGGREGATION, "user_turn_secs") and value is not None and value != []:
            keep(whole, _OF_THE_WHOLE.get(key, key), value)
    ended = entry.get("user_turn_secs")
    return Breakdown({} if ended is None else {"end_of_utterance_delay": ended}, parts, whole)


def _listed(entry: Mapping[str, Any], key: str) -> list[Any]:
    value = entry.get(key)
    return value if isinstance(value, list) else [] if value is None else [value]


def _as_entry(part: object) -> object:
    if not isinstance(part, dict):
        return part
    entry: dict[str, Any] = {}
    for key, value in part.items():
        name = _RENAMED.get(str(key), str(key))
        keep(entry, key if name in part else name, value)
    return entry
