"""What is drawn of a figure: its interval on a scale, and how the conversations spread."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from convoscope.analysis.words import interval_text, value_text
from convoscope.metrics.declaration import HIGHER, LOWER, RATIO, SHARE, Target
from convoscope.runs.distributions import Histogram
from convoscope.statistics.summary import Figure


class ScaledInterval(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A value, its interval and its targets, in percent of the metric's own scale."""

    value: float
    low: float | None = None
    high: float | None = None
    targets: list[float] = []
    text: str
    """The same in words."""


class Spread(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How the conversations spread: bins on the metric's scale, or the two parts of a yes and no."""

    bins: list[int] = []
    bad: list[int] = []
    """The places of the bins that lie beyond the target."""
    tips: list[str] = []
    yes: float | None = None
    """In percent, where every conversation has 0 or 1."""
    tone: str = ""
    """Of the part that is yes."""
    first: str = ""
    middle: str = ""
    last: str = ""


class Scale(msgspec.Struct, frozen=True):
    """From where to where the values of a metric are drawn."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """In percent, never beyond the ends."""
        return round(min(100.0, max(0.0, 100 * (value - self.low) / ((self.high - self.low) or 1.0))), 2)


def scale_of(figures: Sequence[Figure], histogram: Histogram | None, targets: Sequence[Target] = ()) -> Scale:
    """Shares from 0 to 100 %; others as far as their conversations, figures and targets reach."""
    values = [one.value for one in figures if one.value is not None]
    ends = [end for one in figures if one.interval for end in (one.interval.low, one.interval.high) if end is not None]
    reach = [*values, *ends, *(one.value for one in targets)]
    unit = figures[0].unit if figures else ""
    if unit == SHARE or (unit == RATIO and all(0 <= one <= 1 for one in reach)):
        return Scale(0.0, 1.0)
    if histogram is not None:
        reach += [histogram.bins[0].low, histogram.bins[-1].high]
    return Scale(min([0.0, *reach]), max([0.0, *reach]) or 1.0)


def scaled(figure: Figure, scale: Scale, targets: Sequence[Target] = ()) -> ScaledInterval | None:
    """None where there is no value."""
    if figure.value is None:
        return None
    interval = figure.interval
    words = value_text(figure.value, figure.unit)
    return ScaledInterval(
        value=scale.at(figure.value),
        low=scale.at(interval.lowest) if interval else None,
        high=scale.at(interval.highest) if interval else None,
        targets=[scale.at(one.value) for one in targets],
        text=f"{words}, 95 % interval {interval_text(figure)}" if interval else words,
    )


def spread(histogram: Histogram, figure: Figure, targets: Sequence[Target] = ()) -> Spread:
    """The bins of a histogram; those whose middle misses a target are bad."""
    unit, bins = figure.unit, histogram.bins
    counts = [one.n for one in bins]
    if unit == SHARE and histogram.least == 0 and histogram.most == 1 and not any(counts[1:-1]):
        tone = {HIGHER: "good", LOWER: "bad"}.get(figure.better, "")
        yes = f"{counts[-1]:,} of {histogram.n:,}"
        return Spread(yes=round(100 * counts[-1] / histogram.n, 2), tone=tone, middle=yes)
    bad = [
        place
        for place, one in enumerate(bins)
        if not all(target.is_met_by((one.low + one.high) / 2) for target in targets)
    ]
    return Spread(
        bins=counts,
        bad=bad,
        tips=[f"{value_text(one.low, unit)} to {value_text(one.high, unit)}: {one.n:,}" for one in bins],
        middle=f"median {value_text(histogram.p50, unit)}, p95 {value_text(histogram.p95, unit)}",
        first=value_text(histogram.least, unit),
        last=value_text(histogram.most, unit),
    )
