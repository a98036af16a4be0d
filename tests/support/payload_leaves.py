"""Whether everything that a payload says is found again in what was read of it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

from convoscope.conversation.events import moment
from convoscope.views.standard_data.payloads.metrics_collected import Components

# Types of envelopes: that metrics follow is said by the metrics that follow.
TAGS = {"metrics_collected", "message", "metrics", "MetricsFrame"}


def leaves(value: object) -> Iterator[Any]:
    """Every single value in it, null excepted; JSON text is opened."""
    if isinstance(value, dict):
        for one in value.values():
            yield from leaves(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from leaves(one)
    elif isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            yield from leaves(json.loads(value))
        except (ValueError, RecursionError):
            yield value
    elif value is not None:
        yield value


def lost(payload: object, read: Components) -> list[Any]:
    """The values of the payload that neither the metrics nor the warnings have."""
    there = set(leaves(read.metrics)) | {leaf for warned in read.warnings for leaf in leaves(warned.value)}
    return [leaf for leaf in leaves(payload) if leaf not in TAGS and there.isdisjoint(_readings(leaf))]


def _readings(leaf: Any) -> set[Any]:
    """A value as it is, and as the number, the time, the truth value or the text that it spells."""
    readings = {leaf, str(leaf).lower() if isinstance(leaf, bool) else str(leaf)}
    if isinstance(leaf, float) and leaf.is_integer():
        readings.add(str(int(leaf)))  # an id
    if isinstance(leaf, str):
        word = leaf.strip().lower()
        readings |= {True} if word in ("true", "yes", "on") else {False} if word in ("false", "no", "off") else set()
        with contextlib.suppress(ValueError):
            readings.add(float(leaf))
    if (time := moment(leaf)) is not None:
        readings.add(time.at)
    return readings
