"""The groups of a summary, by the dimensions that they share."""

from __future__ import annotations

from collections.abc import Iterable

from convoscope.analysis.words import counted
from convoscope.runs.summary import Group, SmallGroups


def groupings(groups: Iterable[Group]) -> dict[tuple[str, ...], list[Group]]:
    """The groups of each set of dimensions, in the order of the summary."""
    by_dimensions: dict[tuple[str, ...], list[Group]] = {}
    for group in groups:
        by_dimensions.setdefault(tuple(group.by), []).append(group)
    return by_dimensions


def small_text(small: SmallGroups) -> str:
    """The groups of a dimension that are too small for figures, in words."""
    groups = counted(small.groups, "group")
    conversations = counted(small.conversations, "conversation")
    names = " and ".join(small.by)
    by = ",".join(small.by)
    return f"by {names}: {groups} of fewer than {small.minimum} ({conversations}) left out; `--by {by}` has them"


def are_alone(groups: Iterable[Group]) -> bool:
    """Groups of one conversation each tell nothing that the conversations do not."""
    return all(group.conversations < 2 for group in groups)
