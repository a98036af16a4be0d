"""The groups of a summary, by the dimensions that they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


def groupings(groups: Iterable[Mapping[str, Any]]) -> dict[tuple[str, ...], list[Mapping[str, Any]]]:
    """The groups of each set of dimensions, in the order of the summary."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for group in groups:
        found.setdefault(tuple(group["by"]), []).append(group)
    return found


def are_alone(groups: Iterable[Mapping[str, Any]]) -> bool:
    """Groups of one conversation each tell nothing that the conversations do not."""
    return all(group["conversations"] < 2 for group in groups)
