"""Metrics that are part of another: `voice.turn_taking.late_rate` belongs to `voice.turn_taking`."""

from __future__ import annotations

from collections.abc import Collection

PUBLISHED = frozenset(("eva", "standard-data"))
"""Variants that keep a published rule beside ours: there to be compared with published figures, not to judge by."""


def parent_metric(name: str, names: Collection[str]) -> str:
    """The metric that this one is a part of, among those given; "" where it stands for itself."""
    whole, _, _ = name.rpartition(".")
    while "." in whole:
        if whole in names:
            return whole
        whole, _, _ = whole.rpartition(".")
    return ""
