"""How scores become fewer: the names of the two steps, declared by each metric.

The names are data; `within` and `across` of `convoscope.statistics` hold what they compute.
"""

from __future__ import annotations

import msgspec

# Subjects → conversation.
MEAN = "mean"
SUM = "sum"
RATIO = "ratio"
COUNTS = "counts"
MEDIAN = "median"
MAXIMUM = "max"
MINIMUM = "min"
LAST = "last"

# Conversations → group.
MEAN_OF_CONVERSATIONS = "mean_of_conversations"
MEAN_OF_SUBJECTS = "mean_of_subjects"
RATIO_OF_SUMS = "ratio_of_sums"
SUM_OF_CONVERSATIONS = "sum_of_conversations"
POOLED_COUNTS = "pooled_counts"
MAXIMUM_OF_SUBJECTS = "max_of_subjects"


def percentile(q: float) -> str:
    """The q-th percentile of the values of all subjects, pooled; linear interpolation."""
    if not 0 < q < 100:
        raise ValueError(f"a percentile lies between 0 and 100, not at {q}")
    return f"percentile:{q:g}"


class Reduce(msgspec.Struct, frozen=True):
    """One way from subjects to a group figure."""

    within: str = MEAN
    across: str = MEAN_OF_CONVERSATIONS
