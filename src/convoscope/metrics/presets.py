"""Declarations that many metrics share: each preset is `metric` with some of its arguments given.

Name and version are always given where a metric is declared; any argument of a preset can be given anew there.
"""

from __future__ import annotations

from functools import partial

from convoscope.metrics.declaration import (
    CONVERSATION,
    HIGHER,
    ITEM,
    LOWER,
    SECONDS,
    SHARE,
    TURN,
    TenPoints,
    metric,
)
from convoscope.scores.reducers import (
    MEAN,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    RATIO,
    RATIO_OF_SUMS,
    Reduce,
    percentile,
)

MEAN_OF_ALL = Reduce(MEAN, MEAN_OF_SUBJECTS)
"""The mean of all turns, events or items, whichever conversation they are of."""
SUM_OVER_SUM = Reduce(RATIO, RATIO_OF_SUMS)
"""Σ numerators ÷ Σ denominators."""
P50_P95 = {"p50": percentile(50), "p95": percentile(95)}
FULL_MARKS = TenPoints(zero=0.0, ten=1.0)
"""0 to 1 is worth 0 to 10."""

share_metric = partial(metric, unit=SHARE, reduce=SUM_OVER_SUM)
"""What share of the opportunities was taken: each observation counts a numerator of a denominator."""
conversation_share_metric = partial(
    metric, observes=CONVERSATION, unit=SHARE, better=HIGHER, reduce=Reduce(MEAN, MEAN_OF_CONVERSATIONS)
)
"""What share of the conversations is good: 1 or 0 of each."""
item_metric = partial(metric, observes=ITEM, better=HIGHER, reduce=MEAN_OF_ALL, ten=FULL_MARKS)
"""How good is an item, from 0 to 1."""
wait_metric = partial(metric, observes=TURN, unit=SECONDS, better=LOWER, reduce=MEAN_OF_ALL, also=P50_P95)
"""How long something takes in each turn; longer is worse."""

__all__ = [
    "FULL_MARKS",
    "MEAN_OF_ALL",
    "P50_P95",
    "SUM_OVER_SUM",
    "conversation_share_metric",
    "item_metric",
    "share_metric",
    "wait_metric",
]
