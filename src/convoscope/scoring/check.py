"""Declarations that cannot work are refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence

from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.registry import Declared


def check(metrics: Sequence[Declared]) -> None:
    """Each view must exist; what is derived must not, in the end, be derived from itself."""
    for declared in metrics:
        if isinstance(declared, Metric) and declared.takes_many and declared.waits:
            raise DeclarationError(f"{declared.key} waits for many conversations", hint="take a Conversation instead")
    keys = {one.key for one in metrics}
    for declared in metrics:
        missing = set(declared.inputs) - keys if isinstance(declared, Derived) else None
        if missing:
            names = ", ".join(sorted(missing))
            raise DeclarationError(f"{declared.key} needs unknown metrics: {names}", hint="write whole names")
    waiting = {one.key: one for one in metrics if isinstance(one, Derived)}
    while waiting:
        ready = [key for key, one in waiting.items() if not waiting.keys() & set(one.inputs)]
        if not ready:
            raise DeclarationError(f"{', '.join(sorted(waiting))} depend on each other", hint="break the cycle")
        for key in ready:
            one = waiting.pop(key)
            if one.over == "conversation":
                _check_level(one, metrics)


def _check_level(declared: Derived, metrics: Sequence[Declared]) -> None:
    for one in metrics:
        if one.key in declared.inputs and isinstance(one, Derived) and one.over == "group":
            raise DeclarationError(
                f"{declared.key} is of one conversation, but needs {one.key}, which is of a group",
                hint='derive it over="group"',
            )
