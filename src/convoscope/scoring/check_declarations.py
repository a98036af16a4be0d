"""Declarations that cannot work are refused before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter

from convoscope.errors import DeclarationError
from convoscope.metrics.declaration import Derived, Metric
from convoscope.metrics.registry import Declared


def check_declarations(metrics: Sequence[Declared]) -> None:
    """Each view must exist; what is derived must not, in the end, be derived from itself."""
    for declared in metrics:
        if isinstance(declared, Metric):
            _ = declared.view  # raises for a type that is not a view
    keys = {one.key for one in metrics}
    for declared in metrics:
        missing = set(declared.inputs) - keys if isinstance(declared, Derived) else None
        if missing:
            names = ", ".join(sorted(missing))
            raise DeclarationError(f"{declared.key} needs unknown metrics: {names}", hint="write whole names")
    derived = [declared for declared in metrics if isinstance(declared, Derived)]
    try:
        TopologicalSorter({declared.key: declared.inputs for declared in derived}).prepare()
    except CycleError as error:
        names = ", ".join(sorted(set(error.args[1])))
        raise DeclarationError(f"{names} depend on each other", hint="break the cycle") from None
    for declared in derived:
        if declared.over == "conversation":
            _check_level(declared, metrics)


def _check_level(declared: Derived, metrics: Sequence[Declared]) -> None:
    for metric in metrics:
        if metric.key in declared.inputs and isinstance(metric, Derived) and metric.over == "group":
            raise DeclarationError(
                f"{declared.key} is of one conversation, but needs {metric.key}, which is of a group",
                hint='derive it over="group"',
            )
