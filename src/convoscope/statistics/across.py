"""The second step of reduction: conversations become a group figure.

Every reducer but a percentile and the maximum is a ratio of two sums over conversations. That one
shape serves the figure, its interval and any grouping.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.metrics.reduction import (
    MAXIMUM_OF_SUBJECTS,
    MEAN_OF_CONVERSATIONS,
    MEAN_OF_SUBJECTS,
    POOLED_COUNTS,
    RATIO_OF_SUMS,
    SUM_OF_CONVERSATIONS,
)

_PERCENTILE = re.compile(r"percentile:(\d+(?:\.\d+)?)")

Floats = NDArray[np.float64]


class Columns(NamedTuple):
    """The measured conversations of a group, in the order of their ids, column by column."""

    value: Floats
    n: Floats
    total: Floats
    numerator: Floats
    denominator: Floats
    tp: Floats
    fp: Floats
    fn: Floats

    def at(self, rows: NDArray[np.bool_]) -> Columns:
        """Those of some conversations. A column that holds one value takes no room, and two that are one stay one."""
        count = int(rows.sum())
        made: dict[int, Floats] = {}
        for column in self:
            if id(column) not in made:
                single = column.strides == (0,)
                made[id(column)] = np.broadcast_to(column[:1].sum(), count) if single else column[rows]
        return Columns(*(made[id(column)] for column in self))


class Ratio(NamedTuple):
    """One figure as Σ numerator ÷ Σ denominator, with the reason where the denominator is zero."""

    name: str
    numerator: Floats
    denominator: Floats
    empty: str = "nothing_to_average"

    @property
    def value(self) -> float | None:
        below = total(self.denominator)
        return total(self.numerator) / below if below else None


def _pooled_counts(columns: Columns) -> list[Ratio]:
    tp, fp, fn = columns.tp, columns.fp, columns.fn
    return [
        Ratio("", 2 * tp, 2 * tp + fp + fn, empty="nothing_to_find"),
        Ratio("precision", tp, tp + fp, empty="nothing_predicted"),
        Ratio("recall", tp, tp + fn, empty="nothing_in_gold"),
    ]


ACROSS: dict[str, Callable[[Columns], list[Ratio]]] = {
    MEAN_OF_CONVERSATIONS: lambda columns: [Ratio("", columns.value, np.ones_like(columns.value))],
    MEAN_OF_SUBJECTS: lambda columns: [Ratio("", columns.total, columns.n)],
    # n times the mean, so that a sum has an interval like any other figure.
    SUM_OF_CONVERSATIONS: lambda columns: [
        Ratio("", columns.value, np.full_like(columns.value, 1 / max(1, len(columns.value))))
    ],
    RATIO_OF_SUMS: lambda columns: [Ratio("", columns.numerator, columns.denominator)],
    POOLED_COUNTS: _pooled_counts,
}
"""The reducers from conversations to a group, by name. The first ratio is the headline."""


MAXIMUM = 100.0
"""The percentile that is the greatest value of all."""


def percentile_of(across: str) -> float | None:
    """The q of `percentile:q`, `MAXIMUM` for the greatest subject, or None for anything else."""
    if across == MAXIMUM_OF_SUBJECTS:
        return MAXIMUM
    found = _PERCENTILE.fullmatch(across)
    q = float(found[1]) if found else 0.0
    return q if 0 < q < 100 else None


def percentile(values: Floats, q: float) -> float:
    """Linear interpolation between the two nearest ranks."""
    return float(np.percentile(values, q))


def total(values: Floats, block: int = 65536) -> float:
    """The exactly rounded sum: the same on every machine and in every order."""
    blocks = (values[start : start + block].tolist() for start in range(0, len(values), block))
    return fsum(chain.from_iterable(blocks))
