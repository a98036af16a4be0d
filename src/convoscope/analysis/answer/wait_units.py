"""Whether the waits of a run are in one unit, or in seconds here and in milliseconds there."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from convoscope.analysis.answer.samples import Samples
from convoscope.runs.summary import Summary

WAIT = "timing.response_latency"
LEAST = 3
"""Conversations of each unit."""
THOUSAND = 1000.0
GAP = 30.0
"""Between the longest of the short waits and the shortest of the long ones."""


class WaitUnits(NamedTuple):
    """How many conversations have waits, and in how many they are a thousand times as long as in the others."""

    waits: int = 0
    long: int = 0

    @property
    def are_two(self) -> bool:
        return self.long > 0


def wait_units(summary: Summary, samples: Samples) -> WaitUnits:
    """Look for two kinds of waits with nothing between them."""
    wait = next((one for one in summary.metrics if one.key == WAIT and not one.reduction), None)
    sample = samples.of(wait) if wait is not None else None
    if sample is None:
        return WaitUnits()
    has_wait = (sample.below > 0) & (sample.above > 0)
    waits = np.sort(sample.above[has_wait] / sample.below[has_wait])
    if len(waits) < 2 * LEAST:
        return WaitUnits()
    steps = waits[1:] / waits[:-1]
    place = int(np.argmax(steps)) + 1
    short, long = waits[:place], waits[place:]
    factor = float(np.median(long) / np.median(short))
    are_two = min(len(short), len(long)) >= LEAST and steps.max() >= GAP and THOUSAND / 3 <= factor <= THOUSAND * 3
    return WaitUnits(len(waits), len(long) if are_two else 0)
