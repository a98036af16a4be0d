"""Pipecat's separate measurements put together: one metric for each time that a processor generated something."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isfinite
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads.fields import keep, number_of, settle
from convoscope.views.standard_data.payloads.kinds import LLM, TTS
from convoscope.views.standard_data.payloads.pipecat import BESIDE, FIRST, TTFA, TTFAT, TTFB, Measured, measured, stated
from convoscope.views.standard_data.payloads.pipecat_numbers import Timed
from convoscope.views.standard_data.warnings import Warned, Warnings

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
        value = number_of(entry.get("value"))
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
        settle(measurement.fields, path, self._warnings)
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
