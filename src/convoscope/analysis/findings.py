"""Where it breaks, as far as the figures can tell: groups that stand apart from the whole run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from convoscope.analysis.words import name_text
from convoscope.metrics.declaration import HIGHER, NEITHER
from convoscope.metrics.parts import PUBLISHED, parent_metric
from convoscope.runs.summary import Group, Summary
from convoscope.statistics.summary import Figure

MIN_CLUSTERS = 5
"""An interval from fewer independent clusters says too little to set a group apart."""

Side = Literal["worse", "better"]


class Apart(NamedTuple):
    """A group whose whole 95 % interval lies on one side of the run's figure."""

    by: Mapping[str, str]
    conversations: int
    figure: Figure
    whole: Figure
    side: Side

    @property
    def distance(self) -> float:
        """From the run's figure to the nearest end of the group's interval, in widths of that interval."""
        interval, value = self.figure.interval, self.whole.value
        if interval is None or value is None:
            return 0.0
        gap = max(interval.lowest - value, value - interval.highest)
        return gap / ((interval.highest - interval.lowest) or 1.0)


class Findings(NamedTuple):
    """Those that stand apart, furthest first, and how many figures of groups could be compared."""

    apart: list[Apart]
    compared: int

    @property
    def worse(self) -> list[Apart]:
        return [one for one in self.apart if one.side == "worse"]

    @property
    def telling(self) -> list[Apart]:
        """The worse ones, without those of which a larger group says the same already."""
        return [one for one in self.worse if not any(_holds(other, one) for other in self.worse)]


def _holds(larger: Apart, smaller: Apart) -> bool:
    same = name_text(larger.figure) == name_text(smaller.figure)
    return same and len(larger.by) < len(smaller.by) and larger.by.items() <= smaller.by.items()


def findings(summary: Summary) -> Findings:
    """Compare each group with the whole, in every headline that has a direction and an interval worth the name."""
    whole = {name_text(figure): figure for figure in summary.metrics}
    apart: list[Apart] = []
    compared = 0
    for group in summary.groups:
        for figure in comparable(group, summary.conversations):
            reference = whole.get(name_text(figure))
            if reference is None or reference.value is None:
                continue
            compared += 1
            where = side(figure, reference)
            if where is not None:
                apart.append(Apart(group.by, group.conversations, figure, reference, where))
    apart.sort(key=lambda one: (-one.distance, sorted(one.by.items()), name_text(one.figure)))
    return Findings(apart, compared)


def side(figure: Figure, whole: Figure) -> Side | None:
    """On which side of the run's figure a group's interval lies; None where it reaches across, or tells nothing."""
    interval = figure.interval
    if whole.value is None or figure.value is None or interval is None or not _tells(figure):
        return None
    if interval.lowest <= whole.value <= interval.highest:
        return None
    if math.isclose(figure.value, whole.value, rel_tol=1e-9, abs_tol=1e-12):
        return None
    above = interval.lowest > whole.value
    return "better" if above == (figure.better == HIGHER) else "worse"


def comparable(group: Group, conversations: int) -> Iterator[Figure]:
    if group.conversations == conversations:
        return
    names = {figure.metric for figure in group.metrics}
    for figure in group.metrics:
        is_part = figure.variant in PUBLISHED or parent_metric(figure.metric, names)
        if not figure.reduction and _tells(figure) and not is_part:
            yield figure


def _tells(figure: Figure) -> bool:
    interval = figure.interval
    return figure.better != NEITHER and interval is not None and interval.clusters >= MIN_CLUSTERS
