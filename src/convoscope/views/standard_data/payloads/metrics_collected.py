"""Whatever is under `metrics_collected`, as a flat list of component metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from convoscope.views.standard_data.payloads import pipecat
from convoscope.views.standard_data.payloads.fields import (
    COMPONENTS,
    EOU,
    LLM,
    METRIC_FIELDS,
    TTS,
    TURN,
    TURN_KEY,
    UNKNOWN,
    coerce_metric,
    component_from_keys,
    component_of,
    in_turns,
    keep,
)
from convoscope.views.standard_data.payloads.pipecat import Generations, is_breakdown, roles, taken_apart
from convoscope.views.standard_data.payloads.spans import METRICS_PREFIX, unflattened
from convoscope.views.standard_data.values import Warned, parsed, to_epoch

COMPONENT_FIELDS = {
    "end_of_turn_delay": (EOU, "end_of_utterance_delay"),
    "transcription_delay": (EOU, "transcription_delay"),
    "on_user_turn_completed_delay": (EOU, "on_user_turn_completed_delay"),
    "llm_node_ttft": (LLM, "ttft"),
    "llm_node_tps": (LLM, "tokens_per_second"),
    "llm_node_ttfs": (LLM, "ttfs"),
    "tts_node_ttfb": (TTS, "ttfb"),
    "playback_latency": (TTS, "playback_latency"),
}
"""What a chat message measures: of which component it is, and the name that it has there (standard-data.md, 7).

`e2e_latency` is of the whole turn.
"""
METADATA = {"llm_metadata": LLM, "tts_metadata": TTS}
SPEAKING = ("started_speaking_at", "stopped_speaking_at")
OF_THE_ASSISTANT = tuple(key for key, (component, _) in COMPONENT_FIELDS.items() if component != EOU)
OF_A_MESSAGE = (*COMPONENT_FIELDS, *SPEAKING, "e2e_latency")


def of_chat_message(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The metrics of one chat message: of a user's an EOU metric, of an assistant's an LLM and a TTS metric.

    The times of speaking belong to the last of them, since it is the voice that is heard; whatever is of the whole
    turn, above all `e2e_latency`, belongs to the first. Where neither is there, the turn has a metric of its own.
    """
    parts: dict[str, dict[str, Any]] = {}
    for key, (component, name) in COMPONENT_FIELDS.items():
        if metrics.get(key) is not None:
            parts.setdefault(component, {"type": component})[name] = metrics[key]
    made = list(parts.values()) or [{"type": TURN}]
    for key, value in metrics.items():
        if key in COMPONENT_FIELDS or value is None:
            continue
        if METADATA.get(key) in parts:
            parts[METADATA[key]]["metadata"] = value
        elif key in SPEAKING:
            made[-1][key] = value
        else:
            keep(made[0], "source_type" if key == "type" else key, value)
    return made


_DEEPEST = 16
_JSON = ("{", "[", '"')
_TAGS = frozenset({"metrics_collected", "message", "metrics", "MetricsFrame"})
"""Types of envelopes: they say that metrics follow, and nothing of the metrics."""
_ORDER = {EOU: 0, LLM: 1}
_OF_A_METRIC = METRIC_FIELDS | {"processor", "value", "role", "created_at"}
_RESERVED = frozenset({"type", "metrics", "data", "metadata"})


class Components(NamedTuple):
    """Component metrics, each with a `type`, and what there was to say about reading them."""

    metrics: list[dict[str, Any]]
    warnings: list[Warned]


class _Position(NamedTuple):
    """Where a value is, and what it takes over from what it is in."""

    path: str = ""
    depth: int = 0
    label: str | None = None
    component: str = ""
    metric: str = ""
    time: object = None

    def at(self, step: str) -> _Position:
        return self._replace(path=self.path + step, depth=self.depth + 1)


def component_metrics(value: object, type: str = "", path: str = "") -> Components:
    """Read component metrics out of any value; `type` is for entries that do not say what they are.

    A list, one object, a map by turn, the JSON text of one of these; metrics of LiveKit and of Pipecat, in
    their envelopes or without. Nothing is raised and nothing is lost: what cannot be read is in a warning,
    which says where by going on from `path`, the name of the field.
    """
    position = _Position(path, component=component_of(type) or type)
    reading = _Reading({}, value, position)
    if unnamed := reading.unnamed():
        reading = _Reading(unnamed, value, position)
    return Components(reading.metrics, reading.warnings)


class _Reading:
    """The metrics read so far. Those of one list belong together: frames come one measurement at a time."""

    def __init__(self, unnamed: dict[str | None, list[str]], value: object, position: _Position) -> None:
        self._unnamed = unnamed
        """By label: what each of Pipecat's entries measures, as the first reading of all of them has shown."""
        self.metrics: list[dict[str, Any]] = []
        self.warnings: list[Warned] = []
        self._generations: dict[str | None, Generations] = {}
        """By label: what Pipecat measured in one turn, or in one list, belongs together."""
        self._touched: list[dict[str, Any]] = []
        """Metrics that were added, or added to, since an envelope was opened."""
        self._asked: list[dict[str, Any]] = []
        """Metrics of the last message of the user, until an assistant's message answers it."""
        if value is not None:
            self.take(value, position)
        for generations in self._generations.values():
            generations.finish()

    def unnamed(self) -> dict[str | None, list[str]]:
        """What bare numbers measure, by label: only all of them together show it. Empty without bare numbers."""
        return {
            label: roles(generations.seen)
            for label, generations in self._generations.items()
            if any(one.is_bare for one in generations.seen)
        }

    def take(self, value: object, position: _Position) -> None:
        """Any value: see what it is."""
        if position.depth > _DEEPEST:
            self._warn(position, "too_deep", "This lies too deep to be a metric.", value)
        elif isinstance(value, dict):
            self._object(value, position)
        elif isinstance(value, list | tuple):
            self._list(value, position)
        elif (inner := self._opened(value, position)) is not None:
            self.take(inner, position._replace(depth=position.depth + 1))
        else:
            self._warn(position, "not_a_metric", "This is not an object.", value)

    def _opened(self, value: object, position: _Position) -> dict[str, Any] | list[Any] | None:
        """An object or a list, also where it is written as JSON text."""
        if _is_json(value):
            value = parsed(str(value), position.path, self.warnings)
        return value if isinstance(value, dict | list) else None

    def _list(self, values: Sequence[object], position: _Position) -> None:
        for index, value in enumerate(values):
            # A metric that says what it is, as nearly all do, takes the short way.
            own = value.get("type") if type(value) is dict and position.time is None else None
            if type(own) is str and own in COMPONENTS:
                metric = value.copy()  # type: ignore[attr-defined]
                coerce_metric(metric, f"{position.path}[{index}]", self.warnings)
                self._add(metric, position.label)
            else:
                self.take(value, position.at(f"[{index}]"))

    def _object(self, entry: dict[str, Any], position: _Position) -> None:
        own = entry.get("type")
        named = own if isinstance(own, str) and own.strip() else ""
        if not entry:
            self._warn(position, "empty_metric", "This object is empty.", entry)
        elif named and component_of(named):
            self._typed(entry, component_of(named), position)
        elif named.endswith("_metrics") and not pipecat.is_entry(entry):
            self._emit(dict(entry), position)
        elif not (self._enveloped(entry, position) or self._of_pipecat(entry, position)):
            self._plain(entry, named, position)

    def _plain(self, entry: dict[str, Any], named: str, position: _Position) -> None:
        """One metric as it is, or a map of them."""
        if any(key in entry for key in OF_THE_ASSISTANT):
            for metric in of_chat_message(entry):
                self._emit(metric, position)
        elif named:
            self._emit(dict(entry), position)
        elif component := component_from_keys(entry):
            self._typed(entry, component, position)
        elif _is_map(entry):
            self._map(entry, position)
        elif position.component:
            self._typed(entry, position.component, position)
        elif any(key in entry for key in OF_A_MESSAGE):
            self._typed(entry, TURN, position)
        else:
            self._warn(position, "unknown_metric", "Nothing says what this measures; it is kept as it is.")
            self._typed(entry, UNKNOWN, position)

    def _typed(self, entry: dict[str, Any], component: str, position: _Position) -> None:
        own = entry.get("type")
        if own == component:
            metric = entry.copy()
        else:
            metric = {"type": component} | {key: value for key, value in entry.items() if key != "type"}
            if own is not None:
                keep(metric, "source_type", own)
        self._emit(metric, position)

    def _emit(self, metric: dict[str, Any], position: _Position) -> None:
        """Put a metric, which is ours to change, right, and add it to what was read."""
        if position.time is not None and metric.get("timestamp") is None:
            metric["timestamp"] = position.time
        coerce_metric(metric, position.path, self.warnings, known=metric["type"] in COMPONENTS)
        self._add(metric, position.label)

    def _add(self, metric: dict[str, Any], label: str | None) -> None:
        """The turn is the label; what had that name, the plugin, is the `source_label` (specification, 1.3, 4).

        Without such a name, and where the turn is not called one (`turn_3`), an empty one says that this is its turn.
        """
        if label is not None:
            plugin = metric.get("label")
            metric["label"] = label
            if plugin is not None and plugin != label:
                keep(metric, "source_label", plugin)
            elif TURN_KEY.fullmatch(label.strip()) is None:
                metric.setdefault("source_label", "")
        self.metrics.append(metric)
        self._touched.append(metric)

    def _warn(self, position: _Position, code: str, message: str, value: object = None) -> None:
        self.warnings.append(Warned(position.path, code, message, value))

    # Maps

    def _map(self, entry: dict[str, Any], position: _Position) -> None:
        """By turn, by component or by what was measured: `{"turn_1": [...]}`, `{"llm": [...]}`, `{"ttfb": {...}}`."""
        before = len(self.metrics)
        components = 0
        for key, value in entry.items():
            inner = position.at(f".{key}")
            if component := component_of(str(key)):
                inner = inner._replace(component=component)
                components += 1
            elif (metric := pipecat.metric_named(str(key))) and isinstance(value, dict) and pipecat.is_entry(value):
                inner = inner._replace(metric=metric)
            elif position.label is None:
                inner = inner._replace(label=str(key))
            self.take(value, inner)
        if components > 1:
            self.metrics[before:] = in_turns(self.metrics[before:])

    # Envelopes

    def _enveloped(self, entry: dict[str, Any], position: _Position) -> bool:
        """Metrics with something around them: an event, a chat message, a frame, flattened keys."""
        if any(isinstance(key, str) and key.startswith(METRICS_PREFIX) for key in entry):
            self._object(unflattened(entry), position)
            return True
        if component_from_keys(entry):  # it has measurements of its own
            return False
        metrics = self._opened(entry.get("metrics"), position.at(".metrics"))
        data = self._opened(entry.get("data"), position.at(".data"))
        is_of_chat = isinstance(entry.get("role"), str) or entry.get("type") == "message"
        if (
            isinstance(metrics, dict)
            and is_of_chat
            and "type" not in metrics
            and any(key in metrics for key in OF_A_MESSAGE)
        ):
            with self._around(_without(entry, "metrics"), position):
                self._message(entry, metrics, position)
        elif metrics:
            with self._around(_without(entry, "metrics"), position):
                self.take(metrics, position.at(".metrics")._replace(time=_time_around(entry, position)))
        elif data and _is_frame(data):
            with self._around(_without(entry, "data"), position):
                self.take(data, position.at(".data")._replace(time=_time_around(entry, position)))
        else:
            return False
        return True

    @contextmanager
    def _around(self, around: dict[str, Any], position: _Position) -> Iterator[None]:
        """Keep what is around metrics with the first of them."""
        before, self._touched = self._touched, []
        yield
        first = next(iter(self._touched), None)
        for key in ("created_at", "timestamp"):
            time = to_epoch(around.get(key))
            if first is not None and time is not None and time == first.get("timestamp"):
                del around[key]
        if around and first is not None:
            envelopes = first.get("envelopes", [])
            first["envelopes"] = [*(envelopes if isinstance(envelopes, list) else [envelopes]), around]
        elif around:
            self._warn(position, "no_metric", "No metric could be read in this.", around)
        self._touched = [*before, *self._touched][:1]

    def _message(self, entry: dict[str, Any], metrics: dict[str, Any], position: _Position) -> None:
        """A chat message. Its id stands for the speech; a question is of the speech that answers it."""
        parts = of_chat_message(metrics)
        own, role = entry.get("id"), entry.get("role")
        speech = str(own) if isinstance(own, str | int) and not isinstance(own, bool) else None
        named = [part for part in parts if speech is not None and part.setdefault("speech_id", speech) == speech]
        inner = position.at(".metrics")._replace(time=_time_around(entry, position))
        for part in parts:
            self._emit(part, inner)
        if role == "assistant" and speech is not None:
            for question in self._asked:
                if question.get("label") == position.label:
                    question["speech_id"] = speech
        self._asked = named if role == "user" else []

    # Pipecat

    def _of_pipecat(self, entry: dict[str, Any], position: _Position) -> bool:
        """A breakdown of a wait, entries grouped by what they measure, or one entry."""
        if is_breakdown(entry):
            self._breakdown(entry, position)
        elif grouped := [name for name in pipecat.GROUPS if _lists_objects(entry.get(name))]:
            with self._around(_without(entry, *grouped), position), self._of(position).grouped():
                for name in grouped:
                    for index, measurement in enumerate(entry[name]):
                        self._measure(name, measurement, position.at(f".{name}[{index}]"))
        elif pipecat.is_entry(entry):
            self._measure(position.metric, entry, position)
        else:
            return False
        return True

    def _of(self, position: _Position) -> Generations:
        if position.label not in self._generations:
            self._generations[position.label] = Generations(self.warnings, self._unnamed.get(position.label, ()))
        return self._generations[position.label]

    def _measure(self, metric: str, entry: object, position: _Position, source: str = "frame") -> dict[str, Any] | None:
        """One measurement of a processor; the metric that it became a part of."""
        if not isinstance(entry, dict):
            self._warn(position, "not_a_metric", "This is not an object.", entry)
            return None
        plugin = entry.get("label")
        fields = _without(entry, "label") if position.label is not None else dict(entry)
        if position.label is not None and plugin is not None:
            keep(fields, "source_label", plugin)
        if position.time is not None and fields.get("timestamp") is None:
            fields["timestamp"] = position.time
        added = self._of(position).add(metric, fields, position.path, source)
        if added is None:
            raw = dict(entry)
            if metric:
                keep(raw, "metric", metric)
            message = "Nothing says which component measured this; it is kept as it is."
            self._warn(position, "unknown_processor", message)
            own = raw.get("type")
            self._typed(raw, (component_of(own) or own) if isinstance(own, str) and own.strip() else UNKNOWN, position)
            return self.metrics[-1]
        if added.is_new:
            self._add(added.metric, position.label)
        self._touched.append(added.metric)
        return added.metric

    def _breakdown(self, entry: dict[str, Any], position: _Position) -> None:
        """The end of the user's turn, and what each processor took; what is of the whole wait goes to the first."""
        apart = taken_apart(entry)
        metrics: list[dict[str, Any]] = []
        if apart.end_of_turn:
            metrics.append({"type": EOU, **apart.end_of_turn})
            self._emit(metrics[0], position)
        for part in apart.parts:
            if apart.end_of_turn and part.of_recognition:  # the user's turn ends when it is written down
                self._of(position).begin(part.processor, metrics[0])
            metric = self._measure(part.metric, part.entry, position.at(part.step), "breakdown")
            metrics += [metric] if metric is not None else []
        if metrics:
            first = min(metrics, key=lambda metric: _ORDER.get(metric["type"], len(_ORDER)))
            coerce_metric(apart.whole, position.path, self.warnings, known=first["type"] in COMPONENTS)
            for key, value in apart.whole.items():
                keep(first, key, value)
        elif apart.whole:
            self._emit({"type": TURN, **apart.whole}, position)
        else:
            self._warn(position, "empty_metric", "This breakdown is empty.", entry)


def _is_json(value: object) -> bool:
    return isinstance(value, str) and value.lstrip()[:1] in _JSON


def _without(entry: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    """What else an envelope says; that it is an envelope says nothing."""
    return {
        key: value
        for key, value in entry.items()
        if key not in keys and value is not None and not (key == "type" and isinstance(value, str) and value in _TAGS)
    }


def _time_around(entry: Mapping[str, Any], position: _Position) -> object:
    for key in ("created_at", "timestamp"):
        if to_epoch(entry.get(key)) is not None:
            return entry[key]
    return position.time


def _lists_objects(value: object) -> bool:
    return isinstance(value, list) and any(isinstance(one, dict) for one in value)


def _is_frame(data: dict[str, Any] | list[Any]) -> bool:
    if isinstance(data, dict):
        return any(_lists_objects(data.get(name)) for name in pipecat.GROUPS)
    return any(isinstance(one, dict) and pipecat.is_entry(one) for one in data)


def _is_map(entry: Mapping[str, Any]) -> bool:
    """Whether an object holds metrics by some key of theirs, and is not a metric itself."""
    single = {key for key, value in entry.items() if not (isinstance(value, dict | list) or _is_json(value))}
    return len(single) < len(entry) and _OF_A_METRIC.isdisjoint(single) and _RESERVED.isdisjoint(entry)
