"""How many conversations of two sets have an outcome, and what a comparison is worth where many have none."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.comparison import LEVEL, Rows
from convoscope.analysis.answer.samples import FigureSample
from convoscope.analysis.answer.strata import OTHER_MIX, mix_distance, mix_probability

NEARLY_ALL = 0.95
"""From so many on, on both sides, it goes without saying how many have an outcome."""


class KnownOutcomes(NamedTuple):
    """How many of each set have an outcome."""

    first: int
    first_total: int
    second: int
    second_total: int
    is_even: bool
    """Both sets have about as many; then those with an outcome are compared."""


def coverage_of(sample: FigureSample, first: Rows, second: Rows) -> KnownOutcomes | None:
    """None where nearly all have one."""
    known = (sample.below > 0).astype(np.int64)
    totals = [int(np.count_nonzero(rows)) for rows in (first, second)]
    counts = [int(known[rows].sum()) for rows in (first, second)]
    if min(totals) == 0 or all(count >= NEARLY_ALL * total for count, total in zip(counts, totals, strict=True)):
        return None
    is_even = mix_distance(known, first, second) < OTHER_MIX or mix_probability(known, first, second) >= LEVEL
    return KnownOutcomes(counts[0], totals[0], counts[1], totals[1], is_even)


def worst_case(sample: FigureSample, talks: Rows, first: Rows, second: Rows, *, rises: bool) -> FigureSample:
    """The same as if all without an outcome spoke against a difference in this direction."""
    missing = talks & (sample.below == 0)
    above, below = sample.above.copy(), sample.below.copy()
    below[missing] = 1.0
    above[missing & (first if rises else second)] = 1.0
    return FigureSample(above, below)
