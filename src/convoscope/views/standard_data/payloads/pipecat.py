"""Pipecat's metrics: what an entry of a frame measures, and separate measurements put together by generation.

Each time that a processor generated something is one metric. A bare number does not say what it measures, and two of
Pipecat's classes look alike once they are written. A breakdown is of one wait, from the end of the user's speech to
the first sound of the bot.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from math import isfinite
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import EOU, LLM, STT, TTS, coerce_metric, keep
from convoscope.views.standard_data.values import Warned, Warnings, to_number

TTFB, PROCESSING, TOKENS, CHARACTERS, STT_USAGE = "ttfb", "processing", "tokens", "characters", "stt_usage"
TTFA, TTFAT, TEXT_AGGREGATION, END_OF_TURN = "ttfa", "ttfat", "text_aggregation", "turn"

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
_FIELDS = {
    (TTFB, "llm"): (LLM, "ttft"),
    (TTFB, "tts"): (TTS, "ttfb"),
    # It runs from the end of speech to the final transcript, and that is what the delay of a transcription is.
    (TTFB, "stt"): (EOU, "transcription_delay"),
    (PROCESSING, "llm"): (LLM, "duration"),
    (PROCESSING, "tts"): (TTS, "duration"),
    (PROCESSING, "stt"): (STT, "duration"),
}
_FIELDS_OF_ANY = {
    TOKENS: (LLM, "prompt_tokens"),
    CHARACTERS: (TTS, "characters_count"),
    STT_USAGE: (STT, "audio_duration"),
    TTFA: (TTS, "ttfa"),
    TTFAT: (LLM, "ttfat"),
    TEXT_AGGREGATION: (TTS, "text_aggregation"),
    END_OF_TURN: (EOU, "end_of_utterance_delay"),
}
_REPEATED_TTFB = {TTFA: "ttfa_ttfb", TTFAT: "ttfat_ttfb"}
"""Where the time to first byte goes that such an entry repeats: not where it would be counted again."""
_REPEATED_OF = {TTS: _REPEATED_TTFB[TTFA], LLM: _REPEATED_TTFB[TTFAT]}
_FIRST = {TTS: "ttfb", LLM: "ttft", EOU: "transcription_delay"}
"""The field that a time to first byte becomes."""
_OF_AN_ENTRY = ("timestamp", "source_type", "name", "class", "__class__", "metric", "kind")
"""What each entry may have of its own without being of another generation."""


# One entry


class Measured(NamedTuple):
    """What an entry says: of which component, the field it is about, and every field that it has."""

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
    """The metric that a name says: `TTFBMetricsData`, `ttfb`, `ttfb_llm`; nothing where it is not one of Pipecat's."""
    bare = re.sub(r"[^a-z0-9]|metrics?data$|metrics?$|data$", "", name.rsplit(".", 1)[-1].casefold())
    return _NAMES.get(bare) or _NAMES.get(re.sub(r"(llm|tts|stt)$", "", bare), "")


def is_entry(entry: Mapping[str, Any]) -> bool:
    """Whether this is an entry of a metrics frame: it names its processor and has something that it measured."""
    return isinstance(entry.get("processor"), str) and any(key in entry for key in ("value", TTFA, TTFAT, *_OF_A_TURN))


def stated(entry: Mapping[str, Any]) -> str:
    """What an entry measures, by its name or by its shape; nothing for a bare number of seconds."""
    for key in _NAME_KEYS:
        name = entry.get(key)
        if isinstance(name, str) and metric_named(name):
            return metric_named(name)
    for key in (TTFAT, TTFA):
        if key in entry:
            return key
    value = entry.get("value")
    if isinstance(value, dict):
        return STT_USAGE if "audio_seconds" in value else TOKENS if any("tokens" in str(key) for key in value) else ""
    if "value" not in entry and any(key in entry for key in _OF_A_TURN):
        return END_OF_TURN
    whole = isinstance(to_number(value), int)
    return CHARACTERS if whole and service_of(entry["processor"]) == "tts" else ""


def measured(metric: str, entry: Mapping[str, Any]) -> Measured | None:
    """What an entry says as a metric of a component; None where the component of its processor is unknown."""
    named = _FIELDS_OF_ANY.get(metric) or _FIELDS.get((metric, service_of(str(entry.get("processor", "")))))
    if named is None:
        return None
    component, field = named
    value = entry.get("value")
    several = value if isinstance(value, dict) else {}
    fields: dict[str, Any] = {} if value is None or several else {field: value}
    renamed: dict[Any, str] = {"type": "source_type", TTFB: _REPEATED_TTFB.get(metric, TTFB)}
    for key, member in (*entry.items(), *several.items()):
        if member is not None and not (member is value and key == "value"):
            keep(fields, renamed.get(key, str(key)), member)
    if metric == STT_USAGE and "audio_seconds" in fields and "audio_duration" not in fields:
        fields["audio_duration"] = fields.pop("audio_seconds")
    if metric == TOKENS:
        field = next((key for key in fields if str(key).endswith("_tokens")), field)
    return Measured(component, field, fields)


# Bare numbers

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
    metrics = [entry.metric or TTFB for entry in entries]
    for processor in dict.fromkeys(entry.processor for entry in entries if entry.is_bare):
        for index in _durations(processor, entries):
            metrics[index] = PROCESSING
    return metrics


def _durations(processor: str, entries: Sequence[Timed]) -> Iterator[int]:
    """The indices of bare numbers that are durations."""
    own = [index for index, entry in enumerate(entries) if entry.processor == processor]
    bare = [index for index in own if entries[index].is_bare]
    used = sum(entries[index].metric in (TOKENS, CHARACTERS) for index in own)
    named = any(entries[index].metric in (TTFB, PROCESSING) for index in own)
    if not named and len(bare) == used:
        return
    if not named and len(bare) == 2 * used and _are_pairs(bare, entries):
        yield from bare[1::2]
        return
    for span in _between_utterances(bare, entries) if service_of(processor) == "llm" and not named else [bare]:
        if span is not bare and _are_pairs(span, entries):
            yield from span[1::2]
        else:
            yield from _following(span, entries)


def _are_pairs(bare: Sequence[int], entries: Sequence[Timed]) -> bool:
    """Each second one larger than the one before: a first byte and the whole."""
    values = [entries[index].value or 0 for index in bare]
    return len(values) % 2 == 0 and all(first < second for first, second in zip(values[::2], values[1::2], strict=True))


def _between_utterances(bare: Sequence[int], entries: Sequence[Timed]) -> list[Sequence[int]]:
    """The numbers of a model in one reply after the other; all as they are where no recogniser reports."""
    heard = [
        index
        for index, entry in enumerate(entries)
        if service_of(entry.processor) == "stt" and (entry.is_bare or entry.metric == TTFB)
    ]
    if not heard:
        return [bare]
    spans: dict[int, list[int]] = {}
    for index in bare:
        spans.setdefault(sum(report < index for report in heard), []).append(index)
    return list(spans.values())


def _following(bare: Sequence[int], entries: Sequence[Timed]) -> Iterator[int]:
    """Numbers right behind a smaller one of the same processor in one list, which is no duration itself."""
    last = -1
    for index in bare:
        before, entry = entries[index - 1] if index > 0 else None, entries[index]
        if before is None or last == index - 1 or before.processor != entry.processor:
            continue
        first, second = _IN_A_LIST.fullmatch(before.path), _IN_A_LIST.fullmatch(entry.path)
        if first is None or second is None or first[1] != second[1] or int(first[2]) + 1 != int(second[2]):
            continue
        if before.metric in ("", TTFB) and 0 < (before.value or 0) < (entry.value or 0):
            last = index
            yield index


# Generations


class Added(NamedTuple):
    """The metric that an entry became, or became a part of."""

    metric: dict[str, Any]
    is_new: bool


class _Source(NamedTuple):
    processor: str
    component: str


class Generations:
    """The generations of each processor so far, in the order in which their measurements came.

    A measurement belongs to the last generation of its processor that does not have it yet. A time to
    first byte opens a new one where the last has come to its end, that is, has its duration. What bare
    numbers measure is only known when all entries were seen: `roles` has it, for each entry in turn.
    """

    def __init__(self, warnings: Warnings, roles: Sequence[str] = ()) -> None:
        self.seen: list[Timed] = []
        self._warnings = warnings
        self._roles = roles
        self._made: dict[_Source, list[dict[str, Any]]] = {}
        self._marks: dict[_Source, int] | None = None
        self._inferred: dict[str, list[tuple[str, str, object]]] = {}
        """By processor: path, metric and value of bare numbers."""
        self._first_bytes: dict[tuple[str, int | float], tuple[str, dict[str, Any]]] = {}
        """By processor and value: the kind of source that reported it, and the metric."""

    @contextmanager
    def grouped(self) -> Iterator[None]:
        """Inside, entries come by what they measure and not by time: the first goes to the first generation."""
        self._marks = {source: len(made) for source, made in self._made.items()}
        yield
        self._marks = None

    def begin(self, processor: str, metric: dict[str, Any]) -> None:
        """Let a metric be the generation that a processor is at."""
        self._made.setdefault(_Source(processor, metric["type"]), []).append(metric)

    def add(self, metric: str, entry: Mapping[str, Any], path: str, source: str) -> Added | None:
        """Read an entry, of which `metric` says what it measures where that is known; None where it cannot be read.

        A breakdown repeats the times to first byte that frames have reported, and the other way round: what
        another source has reported is counted once.
        """
        processor = str(entry.get("processor") or "")
        value = to_number(entry.get("value"))
        metric = self._meant(metric or stated(entry), entry, path, value)
        measurement = measured(metric, entry) if metric else None
        if measurement is None:
            return None
        is_first_byte = metric == TTFB and value is not None
        earlier = self._first_bytes.get((processor, value)) if is_first_byte and value else None
        if earlier is not None and earlier[0] != source and value is not None and value > 0:
            message = f"This time to first byte of {processor} is reported twice, and is counted once."
            self._warnings.append(Warned(path, "repeated_metric", message, dict(entry)))
            return Added(earlier[1], is_new=False)
        coerce_metric(measurement.fields, path, self._warnings)
        added = self._put(_Source(processor, measurement.component), metric, measurement)
        if is_first_byte:
            self._first_bytes.setdefault((processor, value), (source, added.metric))  # type: ignore[arg-type]
        return added

    def _put(self, source: _Source, metric: str, measurement: Measured) -> Added:
        generation = self._find(source, measurement)
        is_new = generation is None
        if generation is None:
            generation = {"type": measurement.component, **measurement.fields}
            self.begin(source.processor, generation)
        else:
            for name, value in measurement.fields.items():
                differs = name in _OF_AN_ENTRY and generation.get(name, value) != value
                keep(generation, f"{metric}_{name}" if differs else name, value)
        tokens, duration = generation.get("completion_tokens"), generation.get("duration")
        if generation["type"] == LLM and tokens is not None and duration is not None and duration > 0:
            speed = tokens / duration
            if isfinite(speed):
                generation.setdefault("tokens_per_second", speed)
        return Added(generation, is_new)

    def _find(self, source: _Source, measurement: Measured) -> dict[str, Any] | None:
        if not source.processor and source.component == LLM:  # RTVI counts tokens without saying whose they are
            models = [made for made in self._made if made.component == LLM]
            source = models[0] if len(models) == 1 else source
        generations = self._made.get(source, [])
        last = len(generations) - 1
        since = last if self._marks is None else min(self._marks.get(source, 0), last)
        return next((metric for metric in generations[max(since, 0) :] if _fits(metric, measurement)), None)

    def _meant(self, metric: str, entry: Mapping[str, Any], path: str, value: int | float | None) -> str:
        """What an entry measures: what it says, else what a bare number is taken for; nothing where it is neither."""
        processor = str(entry.get("processor") or "")
        self.seen.append(Timed(processor, metric, value, path))
        if metric or value is None:
            return metric
        index = len(self.seen) - 1
        metric = self._roles[index] if index < len(self._roles) else TTFB
        if measured(metric, entry) is not None:
            self._inferred.setdefault(processor, []).append((path, metric, entry["value"]))
        return metric

    def finish(self) -> None:
        """Decide what only the end shows: which times to first byte were reported once, and what was inferred."""
        for source, generations in self._made.items():
            first, repeated = _FIRST.get(source.component, ""), _REPEATED_OF.get(source.component, "")
            has_first = any(metric.get(first) is not None for metric in generations)
            for metric in generations:
                if repeated in metric and (not has_first or metric.get(first) == metric[repeated]):
                    metric[first] = metric.pop(repeated)
        for processor, inferences in self._inferred.items():
            paths, metrics, values = zip(*inferences, strict=True)
            measures = " and ".join(dict.fromkeys(metrics))
            message = f"Values of {processor} do not say what they measure; they were read as {measures}."
            self._warnings.append(Warned(paths[0], "inferred_metric", message, list(values)))


def _fits(metric: Mapping[str, Any], measurement: Measured) -> bool:
    if measurement.field in metric or (measurement.field == _FIRST.get(measurement.component) and "duration" in metric):
        return False
    return all(metric.get(key, value) == value for key, value in measurement.fields.items() if key not in _OF_AN_ENTRY)


# A breakdown of one wait

_ONLY_HERE = ("user_turn_secs", "total_secs", "user_turn_start_time")
_WITH_A_LIST = ("function_calls", "contributions")
_OF_THE_WHOLE = {"total_secs": "e2e_latency", "type": "source_type"}
_RENAMED = {"duration_secs": "value", "start_time": "timestamp"}


class BreakdownPart(NamedTuple):
    """One measurement of a processor, as an entry of a metrics frame has it."""

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
        isinstance(entry.get(TTFB), list) and any(key in entry for key in _WITH_A_LIST)
    )


def taken_apart(entry: Mapping[str, Any]) -> Breakdown:
    """The parts of a breakdown, each with the names of a metrics frame."""
    parts = []
    for metric in (TTFB, TEXT_AGGREGATION):
        value = entry.get(metric)
        listed = value if isinstance(value, list) else [] if value is None else [value]
        for index, given in enumerate(listed):
            step = f".{metric}[{index}]" if metric == TTFB else f".{metric}"
            part = given
            if isinstance(given, dict):
                part = {}
                for key, member in given.items():
                    name = _RENAMED.get(str(key), str(key))
                    keep(part, key if name in given else name, member)
            parts.append(BreakdownPart(metric, step, part))
    whole: dict[str, Any] = {}
    for key, value in entry.items():
        if key not in (TTFB, TEXT_AGGREGATION, "user_turn_secs") and value is not None and value != []:
            keep(whole, _OF_THE_WHOLE.get(key, key), value)
    ended = entry.get("user_turn_secs")
    return Breakdown({} if ended is None else {"end_of_utterance_delay": ended}, parts, whole)
