"""An evaluation item as it comes, coerced: aliases, twins, and a warning for each value that was set aside."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from convoscope.views.standard_data.containers import OBJECT, free_name, key_text
from convoscope.views.standard_data.payloads import component_metrics, from_span
from convoscope.views.standard_data.payloads.fields import METRIC_FIELDS, UNORDERED, in_turns
from convoscope.views.standard_data.shapes import ALIASES, ITEM, METRICS
from convoscope.views.standard_data.values import TEXT, ValueKind, Warned, Warnings

# Not of the schema, but known: what frameworks measure beside it, and where the readers of payloads keep the rest.
_OF_FRAMEWORKS = METRIC_FIELDS | {"envelopes", "metric", "model", "processor", "source", "source_type", UNORDERED}


class ComponentMetrics(ValueKind):
    """Component metrics, each with its `type`; those of a type that the schema does not have stay as they came."""

    def clean(self, value: Any) -> bool:
        if type(value) is not list:
            return False
        for metric in value:
            shape = METRICS.get(metric["type"]) if type(metric) is dict and type(metric.get("type")) is str else None
            # A key that is not of the schema may be another framework's name for one that is.
            if shape is None or not shape.clean(metric) or any(key not in shape.fields for key in metric):
                return False
        return True

    def mend(self, value: Any, path: str, warnings: Warnings, type: str = "") -> list[dict[str, Any]] | None:
        warned = len(warnings)
        read = component_metrics(value, type)
        for notice in read.warnings:
            warnings.append(Warned(path + notice.path, notice.code, notice.message, notice.value))
        result = []
        for index, metric in enumerate(read.metrics):
            shape = METRICS.get(metric.get("type", ""), OBJECT)
            if shape.clean(metric):
                result.append(metric)
            elif (mended := shape.mend(metric, f"{path}[{index}]", warnings)) is not None:
                result.append(mended)
        return result if result or len(warnings) == warned else None

    def unknown(self, value: Any) -> Iterator[str]:
        for metric in value:
            if (shape := METRICS.get(metric.get("type", ""))) is not None:
                yield from (f"[]{name}" for name in shape.unknown(metric) if name[1:] not in _OF_FRAMEWORKS)


COMPONENT_METRICS = ComponentMetrics()


FIELDS = ITEM | {"metrics_collected": COMPONENT_METRICS}
"""Every field of an item with its kind."""

_IS_TEXT = TEXT.clean
_CLEAN = {name: _IS_TEXT if type(kind).clean is type(TEXT).clean else kind.clean for name, kind in FIELDS.items()}


class Tidied(NamedTuple):
    """An item in builtins: its fields that are not null, the keys that the schema does not know, and what was odd.

    Of two twins that say the same, only `agent_task` and `agent_response` are in `fields`. The values are
    the caller's own where they were right already: treat them as read only.
    """

    fields: dict[str, Any]
    unknown: dict[str, Any]
    warnings: list[Warned]


def tidy(payload: object) -> Tidied:
    """Make an item right. Never raises: what cannot be used is null, and a warning says where and why.

    >>> tidy({"question": "Where?", "user_id": 7, "agent_exit": "yes"}).fields
    {'user_id': '7', 'agent_exit': True, 'agent_task': 'Where?'}
    """
    if type(payload) is not dict:
        if not isinstance(payload, Mapping):
            message = "An item should be an object with the fields of the schema."
            return Tidied({}, {}, [Warned("", "not_an_object", message, payload)])
        payload = dict(payload)
    fields: dict[str, Any] = {}
    unknown: dict[str, Any] = {}
    warnings: Warnings = []
    others: list[Any] = []
    # Most values are right already, and most of them are text: this loop is what reading a clean file costs.
    for key, value in payload.items():
        clean = _CLEAN.get(key)
        if clean is _IS_TEXT:
            if type(value) is str:
                fields[key] = value
                continue
        elif clean is None:
            others.append(key)
            continue
        if value is not None:
            if clean(value):
                fields[key] = value
            elif (mended := FIELDS[key].mend(value, key, warnings)) is not None:
                fields[key] = mended
    if others:
        _take_others({key: payload[key] for key in others}, fields, unknown, warnings)
    if "input_text" in fields:
        _sync("agent_task", "input_text", fields, warnings)
    if "output_text" in fields:
        _sync("agent_response", "output_text", fields, warnings)
    return Tidied(fields, unknown, warnings)


def unknown_names(tidied: Tidied) -> list[str]:
    """The names that the schema does not know, at the top and inside: `foo`, `tool_calls[].foo`, `stt_data.*.foo`."""
    names = dict.fromkeys(tidied.unknown)
    for key, value in tidied.fields.items():
        names.update(dict.fromkeys(f"{key}{name}" for name in FIELDS[key].unknown(value)))
    return list(names)


def _take_others(others: dict[Any, Any], fields: dict[str, Any], unknown: dict[str, Any], warnings: Warnings) -> None:
    """Keys that are no fields: those of a trace's span, other names of fields, arrays of metrics, unknown ones."""
    others = _take_span(others, fields, warnings)
    # In the order of the table, so that the order of keys in a file decides nothing.
    for alias, names in ALIASES.items():
        if others.get(alias) is not None:
            _take(alias, others[alias], names, fields, warnings)
    if arrays := [type_ for type_ in METRICS if others.get(type_) is not None]:
        _fold({type_: others[type_] for type_ in arrays}, fields, warnings)
    for key, value in others.items():
        if key not in ALIASES and key not in METRICS:
            unknown[free_name(key_text(key), unknown)] = value


def _take_span(others: dict[Any, Any], fields: dict[str, Any], warnings: Warnings) -> dict[Any, Any]:
    """Keys of a span (section 7), mostly flattened ones, become fields; what is left is returned."""
    span = from_span(others)
    for name, value in span.fields.items():
        if name == "metrics_collected":
            _add_metrics(name, value, fields, warnings)
        elif value is not None:
            _take(name, value, (name,), fields, warnings)
    return span.rest


def _take(path: str, value: Any, names: tuple[str, ...], fields: dict[str, Any], warnings: Warnings) -> None:
    """Give a value to those of the named fields that are null; where none is and none has it, it is set aside."""
    kind = FIELDS[names[0]]
    mended = value if kind.clean(value) else kind.mend(value, path, warnings)
    if mended is None:
        return
    empty = [name for name in names if name not in fields]
    for name in empty:
        fields[name] = mended
    if not empty and not any(_same(fields[name], mended) for name in names):
        message = f"{path} says something else than {names[0]}, which counts."
        warnings.append(Warned(path, "alias_ignored", message, value))


def _fold(arrays: dict[str, Any], fields: dict[str, Any], warnings: Warnings) -> None:
    """Add the metrics of arrays, one for each component, in the order of their turns."""
    new_metrics = [_new_metrics(type_, value, fields, warnings) for type_, value in arrays.items()]
    if any(metrics is not None for metrics in new_metrics):
        added = in_turns([one for metrics in new_metrics for one in metrics or ()])
        fields["metrics_collected"] = [*fields.get("metrics_collected", ()), *added]


def _add_metrics(path: str, value: Any, fields: dict[str, Any], warnings: Warnings) -> None:
    """Add component metrics to those that are there, but for the ones that are there already."""
    if (metrics := _new_metrics(path, value, fields, warnings)) is not None:
        fields["metrics_collected"] = [*fields.get("metrics_collected", ()), *metrics]


def _new_metrics(path: str, value: Any, fields: dict[str, Any], warnings: Warnings) -> list[dict[str, Any]] | None:
    """The metrics that are not there yet. One that is there stands for one that comes, and a warning has that one."""
    metrics = COMPONENT_METRICS.mend(value, path, warnings, path if path in METRICS else "")
    present: dict[tuple[Any, ...], list[Any]] = {}
    for metric in fields.get("metrics_collected", ()) if metrics else ():
        present.setdefault(_at_a_glance(metric), []).append(metric)
    new = []
    for index, metric in enumerate(metrics or ()):
        alike = present.get(_at_a_glance(metric), [])
        same = next((place for place, old in enumerate(alike) if _same(metric, old)), None)
        if same is None:
            new.append(metric)
        else:
            del alike[same]
            message = f"{path}[{index}] is in metrics_collected already, and is counted once."
            warnings.append(Warned(f"{path}[{index}]", "repeated_metric", message, metric))
    return None if metrics is None else new


def _at_a_glance(metric: dict[str, Any]) -> tuple[Any, ...]:
    """What equal metrics have in common, so that not each has to be compared with all others."""
    marks = (metric.get(name) for name in ("type", "timestamp", "request_id"))
    return tuple(mark if isinstance(mark, str | int | float) else None for mark in marks)


def _sync(name: str, twin: str, fields: dict[str, Any], warnings: Warnings) -> None:
    """One twin is enough where they say the same; where they differ both stay (section 1.3, rule 2)."""
    if name not in fields:
        fields[name] = fields.pop(twin)
    elif fields[name] == fields[twin]:
        del fields[twin]
    else:
        message = f"{name} and {twin} should say the same, and do not: {name} counts, and both are kept."
        warnings.append(Warned(twin, "twins_differ", message, fields[twin]))


def _same(first: Any, second: Any) -> bool:
    try:
        return bool(first == second)
    except RecursionError:
        return False
