"""Metrics that are part of another: `voice.turn_taking.late_rate` belongs to `voice.turn_taking`."""

from __future__ import annotations

from collections.abc import Collection, Iterable

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


def whole_metrics(keys: Iterable[str]) -> list[str]:
    """The metrics that these keys are of, each once: neither a variant (`a.b@c`) nor a part (`a.b.c`) counts.

    Wherever a number of metrics is printed, it is the length of this.
    """
    names = list(dict.fromkeys(key.partition("@")[0] for key in keys))
    known = set(names)
    return [name for name in names if not parent_metric(name, known)]
