"""An evaluation item as it comes, coerced: aliases, twins, and a warning for each value that was set aside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from convoscope.views.standard_data.containers import free_name, key_text
from convoscope.views.standard_data.payloads.fields import in_turns
from convoscope.views.standard_data.payloads.spans import SIGNS, from_span
from convoscope.views.standard_data.schema import ALIASES, COMPONENT_METRICS, FIELDS, METRICS, TWINS
from convoscope.views.standard_data.values import Warned, Warnings, is_text

_VALID = {name: kind.is_valid for name, kind in FIELDS.items()}
_SPECIAL = frozenset({*ALIASES, *METRICS, *SIGNS})
"""Keys that are no fields, and not simply unknown."""


class Tidied(NamedTuple):
    """An item in builtins: its fields that are not null, the keys that the schema does not know, and what was odd.

    Of two twins that say the same, only `agent_task` and `agent_response` are in `fields`. The values are
    the caller's own where they were right already: treat them as read only.
    """

    fields: dict[str, Any]
    unknown: dict[str, Any]
    warnings: list[Warned]


def tidy(payload: object) -> Tidied:
    """Coerce an item. Never raises: what cannot be used is null, and a warning says where and why.

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
    # Most values are valid already, and most of them are text: this loop is what reading a clean file costs.
    for key, value in payload.items():
        is_valid = _VALID.get(key)
        if is_valid is is_text:
            if type(value) is str:
                fields[key] = value
                continue
        elif is_valid is None:
            others.append(key)
            continue
        if value is not None:
            coerced = value if is_valid(value) else FIELDS[key].coerce(value, key, warnings)
            if coerced is not None:
                fields[key] = coerced
    if not others or (_SPECIAL.isdisjoint(others) and all(map(_is_plain, others))):
        for key in others:
            unknown[key] = payload[key]
    else:
        _take_others({key: payload[key] for key in others}, fields, unknown, warnings)
    if "input_text" in fields or "output_text" in fields:
        _join_twins(fields, warnings)
    return Tidied(fields, unknown, warnings)


def unknown_names(tidied: Tidied) -> list[str]:
    """The names that the schema does not know, at the top and inside: `foo`, `tool_calls[].foo`, `stt_data.*.foo`."""
    names = dict.fromkeys(tidied.unknown)
    for key, value in tidied.fields.items():
        names.update(dict.fromkeys(f"{key}{name}" for name in FIELDS[key].unknown(value)))
    return list(names)


def _is_plain(key: Any) -> bool:
    return type(key) is str and key.isascii() and "." not in key


def _take_others(others: dict[Any, Any], fields: dict[str, Any], unknown: dict[str, Any], warnings: Warnings) -> None:
    """Keys that are no fields: those of a trace's span, other names of fields, arrays of metrics, unknown ones."""
    # Keys of a span (section 7), mostly flattened ones.
    span = from_span(others)
    others = span.rest
    for name, value in span.fields.items():
        if name == "metrics_collected":
            metrics = _new_metrics(name, value, fields, warnings)
            if metrics is not None:
                fields[name] = [*fields.get(name, ()), *metrics]
        elif value is not None:
            _take(name, value, (name,), fields, warnings)
    # In the order of the table, so that the order of keys in a file decides nothing.
    for alias, names in ALIASES.items():
        if others.get(alias) is not None:
            _take(alias, others[alias], names, fields, warnings)
    # Arrays of metrics, one for each component: they are added in the order of their turns.
    arrays = [_new_metrics(name, others[name], fields, warnings) for name in METRICS if others.get(name) is not None]
    if any(array is not None for array in arrays):
        added = in_turns([metric for array in arrays for metric in array or ()])
        fields["metrics_collected"] = [*fields.get("metrics_collected", ()), *added]
    for key, value in others.items():
        if key not in ALIASES and key not in METRICS:
            unknown[free_name(key_text(key), unknown)] = value


def _take(path: str, value: Any, names: tuple[str, ...], fields: dict[str, Any], warnings: Warnings) -> None:
    """Give a value to those of the named fields that are null; where none is and none has it, it is set aside."""
    kind = FIELDS[names[0]]
    coerced = value if kind.is_valid(value) else kind.coerce(value, path, warnings)
    if coerced is None:
        return
    empty = [name for name in names if name not in fields]
    for name in empty:
        fields[name] = coerced
    if not empty and not any(_same(fields[name], coerced) for name in names):
        message = f"{path} says something else than {names[0]}, which counts."
        warnings.append(Warned(path, "alias_ignored", message, value))


def _new_metrics(path: str, value: Any, fields: dict[str, Any], warnings: Warnings) -> list[dict[str, Any]] | None:
    """The metrics that are not there yet. Each that is there stands for one that comes, which is in a warning."""
    metrics = COMPONENT_METRICS.coerce(value, path, warnings, path if path in METRICS else "")
    present: dict[tuple[Any, ...], list[Any]] = {}
    for metric in fields.get("metrics_collected", ()) if metrics else ():
        present.setdefault(_marks(metric), []).append(metric)
    new = []
    for index, metric in enumerate(metrics or ()):
        alike = present.get(_marks(metric), [])
        same = next((position for position, old in enumerate(alike) if _same(metric, old)), None)
        if same is None:
            new.append(metric)
        else:
            del alike[same]
            message = f"{path}[{index}] is in metrics_collected already, and is counted once."
            warnings.append(Warned(f"{path}[{index}]", "repeated_metric", message, metric))
    return None if metrics is None else new


def _marks(metric: dict[str, Any]) -> tuple[Any, ...]:
    """What equal metrics have in common, so that not each has to be compared with all others."""
    marks = (metric.get(name) for name in ("type", "timestamp", "request_id"))
    return tuple(mark if isinstance(mark, str | int | float) else None for mark in marks)


def _join_twins(fields: dict[str, Any], warnings: Warnings) -> None:
    """One twin is enough where they say the same; where they differ both stay (section 1.3, rule 2)."""
    for name, twin in TWINS.items():
        if twin not in fields:
            continue
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
