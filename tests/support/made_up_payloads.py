"""Hypothesis strategies for the payloads of evaluation items: with real field names, and wrong in every way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from convoscope.views.standard_data import schema
from convoscope.views.standard_data.containers import RecordKind
from convoscope.views.standard_data.schema import FIELDS
from support.strategies import json_values, texts

RECORDS = [record.kind for record in schema.RECORDS if record is not schema.StandardData]
NAMES = sorted(FIELDS) + sorted(schema.ALIASES) + sorted(schema.METRICS)
FLATTENED = ["stt.transcript", "stt.confidence", "tts.input_text", "metrics_collected.metrics.type", "a.b"]
WORDS = ["true", "OFF", "agent", " 12 ", "0.94", "2025-11-15T09:46:40Z", "[]", '{"a": [1]}', "[", "turn_1", "nan"]
NUMBERS = [0, 1, -1, 3.0, 2.5, 1763200000, 1763200000.25, 1763200000250, 1763200000250123456, 10**30, 2**64]
OBVIOUS = {"type": sorted(schema.METRICS), "function": [{"name": "t", "arguments": "{}"}]}


def _record(record: RecordKind) -> SearchStrategy[dict[str, Any]]:
    names = [*record.fields, *record.aliases, *OBVIOUS, "other"]
    return st.dictionaries(st.sampled_from(names), st.deferred(values), max_size=4)


def values() -> SearchStrategy[Any]:
    """Any JSON value, often a record of the schema, often not quite."""
    one = st.one_of(
        st.sampled_from(WORDS),
        st.sampled_from(NUMBERS),
        json_values(),
        *(_record(record) for record in RECORDS),
        *(st.sampled_from(some) for some in OBVIOUS.values()),
    )
    several = st.lists(one, max_size=3) | st.dictionaries(st.sampled_from(["turn_1", "turn_2", "a"]), one, max_size=2)
    return one | several | (one | several).map(json.dumps)


def payloads() -> SearchStrategy[dict[str, Any]]:
    """The payload of an item: real names and others, with any values."""
    names = st.sampled_from(NAMES) | st.sampled_from(FLATTENED) | texts()
    return st.dictionaries(names, values(), max_size=6)


class Marked(NamedTuple):
    """A payload in which every leaf is another, so that each can be looked for."""

    payload: dict[str, Any]
    leaves: list[str | int]


class Marker:
    """Puts marks in the place of leaves: texts and numbers that occur nowhere else."""

    def __init__(self) -> None:
        self.leaves: list[str | int] = []

    def mark(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: self.mark(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.mark(one) for one in value]
        if isinstance(value, str) and value[:1] in ("[", "{"):
            try:
                return json.dumps(self.mark(json.loads(value)))
            except ValueError:
                pass
        if isinstance(value, bool) or value is None or value in OBVIOUS["type"]:
            return value
        number = 1_000_003 + 10 * len(self.leaves)
        self.leaves.append(f"<{number}>" if isinstance(value, str) else number)
        return self.leaves[-1]


def marked_payloads() -> SearchStrategy[Marked]:
    def marked(payload: dict[str, Any]) -> Marked:
        marker = Marker()
        return Marked(marker.mark(payload), marker.leaves)

    return payloads().map(marked)


def is_found(leaf: str | int, blob: str) -> bool:
    """Whether a mark is in what came out; a number may have become seconds out of milliseconds."""
    return str(leaf) in blob or (isinstance(leaf, int) and str(leaf / 1000) in blob)


def texts_in(value: Any) -> Iterator[str]:
    """Every value in a nest of lists and objects, written out; keys too."""
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, dict):
            yield from map(str, one)
            pending.extend(one.values())
        elif isinstance(one, list | tuple):
            pending.extend(one)
        else:
            yield str(one)
