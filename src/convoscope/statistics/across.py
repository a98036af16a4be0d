"""The second step of reduction: conversations become a group figure."""

from __future__ import annotations

from itertools import chain
from math import fsum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.scores.reducers import Sums

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
        computed: dict[int, Floats] = {}
        for column in self:
            if id(column) not in computed:
                single = column.strides == (0,)
                computed[id(column)] = np.broadcast_to(column[:1].sum(), count) if single else column[rows]
        return Columns(*(computed[id(column)] for column in self))


def ratio_of(sums: Sums) -> float | None:
    """Σ above ÷ Σ below; None where that below is zero."""
    below = total(sums.below)
    return total(sums.above) / below if below else None


def percentile(values: Floats, q: float) -> float:
    """Linear interpolation between the two nearest ranks."""
    return float(np.percentile(values, q))


_EXACT = 2.0**53
"""Sums of whole numbers below this are exact in whatever order they are added."""


def are_whole(values: Floats) -> bool:
    """Whether all are whole numbers, so few and small that any order gives their exact sum."""
    return bool((values == np.floor(values)).all() and np.abs(values).max() < _EXACT / len(values))


def total(values: Floats, block: int = 65536) -> float:
    """The exactly rounded sum: the same on every machine and in every order."""
    if len(values) and are_whole(values):
        return float(values.sum()) + 0.0
    blocks = (values[start : start + block].tolist() for start in range(0, len(values), block))
    return fsum(chain.from_iterable(blocks))
