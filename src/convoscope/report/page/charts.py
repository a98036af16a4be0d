"""Where the bars, lines and labels of a chart go. The template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from convoscope.analysis.words import axis_text, counted, value_text
from convoscope.metrics.declaration import COUNT, RATIO, SHARE
from convoscope.runs.distributions import Histogram, OverTurns, round_width

WIDTH, HEIGHT = 420, 216
LEFT, RIGHT, TOP, BOTTOM = 46, 12, 50, 40
LINE = 11
"""Height of a label above the plot."""
FEW = 5
"""A mean of fewer values than this is drawn hollow."""

_NOTHING = 1e-100
_LETTER = 5.7
"""About the width of a letter of a label."""
_AXES = {SHARE: "share of opportunities, %", RATIO: "score, 0 to 1", COUNT: "count", "s": "seconds"}


class Tick(NamedTuple):
    at: float
    label: str


class Bar(NamedTuple):
    """A bar, what it says when pointed at, and the values it stands for."""

    x: float
    y: float
    width: float
    height: float
    tip: str
    low: float
    high: float
    n: int


class ChartLine(NamedTuple):
    """A value that a vertical line marks."""

    x: float
    label: str
    anchor: str
    y: float


class ChartPoint(NamedTuple):
    x: float
    y: float
    tip: str
    few: bool
    label: str
    text: str


class Chart(NamedTuple):
    """What both kinds share: size, ticks and the names of the axes."""

    title: str
    summary: str
    x_name: str
    y_name: str
    x_ticks: Sequence[Tick]
    y_ticks: Sequence[Tick]
    bars: Sequence[Bar] = ()
    lines: Sequence[ChartLine] = ()
    points: Sequence[ChartPoint] = ()
    path: str = ""
    band: str = ""
    note: str = ""
    width: int = WIDTH
    height: int = HEIGHT
    left: int = LEFT
    right: int = WIDTH - RIGHT
    top: int = TOP
    bottom: int = HEIGHT - BOTTOM


def histogram_chart(histogram: Histogram, unit: str, subject: str, headline: float | None = None) -> Chart:
    """Bars for counted values, with mean, median and 95th percentile where they tell something.

    Where the headline of the table is not the mean that is marked here, it is said why.
    """
    bins = histogram.bins
    low, high = bins[0].low, bins[-1].high
    scale = _scale(0, max(one.n for one in bins), lambda value: f"{value:,.0f}", whole=True)
    across = (WIDTH - LEFT - RIGHT) / (high - low)
    bars = []
    for place, bin in enumerate(bins):
        first, last = place == 0, place == len(bins) - 1
        begin = min(bin.low, histogram.least) if first else bin.low
        end = max(bin.high, histogram.most) if last else bin.high
        upto = "" if last else "under "
        where = f"{axis_text(begin, unit)} to {upto}{value_text(end, unit)}"
        tip = f"{where}: {bin.n:,} of {histogram.n:,} {subject}s"
        y = scale.y(bin.n)
        x = round(LEFT + (bin.low - low) * across, 2)
        bars.append(
            Bar(x, y, round((bin.high - bin.low) * across, 2), round(scale.y(0) - y, 2), tip, begin, end, bin.n)
        )
    marked = [("median", histogram.p50), ("mean", histogram.mean), ("95th percentile", histogram.p95)]
    if unit in (SHARE, RATIO):
        marked = [("mean", histogram.mean)]
    lines = []
    for row, (name, value) in enumerate(marked if histogram.n > 1 else ()):
        x = round(LEFT + (min(max(value, low), high) - low) * across, 2)
        label = f"{name} {value_text(value, unit)}"
        anchor = "end" if x + _LETTER * len(label) > WIDTH - RIGHT else "start"
        lines.append(ChartLine(x, label, anchor, TOP - LINE * (len(marked) - row) + 5))
    note = ""
    if histogram.most > high:
        note = f"The last bar reaches to {value_text(histogram.most, unit)}."
    if histogram.least < low:
        note += f" The first bar reaches down to {value_text(histogram.least, unit)}."
    if headline is not None and value_text(headline, unit) != value_text(histogram.mean, unit):
        note += f" Each {subject} weighs the same here; the headline, {value_text(headline, unit)}, weighs otherwise."
    summary = (
        f"{histogram.n:,} {subject}s: median {value_text(histogram.p50, unit)}, "
        f"mean {value_text(histogram.mean, unit)}, 95th percentile {value_text(histogram.p95, unit)}, "
        f"from {value_text(histogram.least, unit)} to {value_text(histogram.most, unit)}"
    )
    return Chart(
        title=f"per {subject}",
        summary=summary,
        x_name=_AXES.get(unit, unit),
        y_name=f"{subject}s",
        x_ticks=[Tick(round(LEFT + (edge - low) * across, 2), axis_text(edge, unit)) for edge in _some(bins)],
        y_ticks=scale.ticks,
        bars=bars,
        lines=lines,
        note=note.strip(),
    )


def turns_chart(over: OverTurns, unit: str) -> Chart:
    """A line through the means, a band for the middle half, hollow points where there are few values."""
    points = over.points
    share = unit in (SHARE, RATIO)
    least = min(min(one.mean, one.p25) for one in points)
    most = 1.0 if share else max(max(one.mean, one.p75) for one in points)
    scale = _scale(least, most, lambda value: axis_text(value, unit), whole=False)
    first, last = points[0].position, points[-1].position
    across = (WIDTH - LEFT - RIGHT - 24) / ((last - first) or 1)

    def x(position: int) -> float:
        return round(LEFT + 12 + (position - first) * across, 2)

    drawn = []
    for point in points:
        text = f"mean {value_text(point.mean, unit)}, {counted(point.n, 'value')}"
        if not share:
            text += f", middle half {axis_text(point.p25, unit)} to {value_text(point.p75, unit)}"
        tip = f"turn {point.position}: {text}"
        drawn.append(ChartPoint(x(point.position), scale.y(point.mean), tip, point.n < FEW, str(point.position), text))
    path = "M" + " L".join(f"{point.x} {point.y}" for point in drawn)
    edge = [f"{x(one.position)} {scale.y(one.p75)}" for one in points]
    edge += [f"{x(one.position)} {scale.y(one.p25)}" for one in reversed(points)]
    note = "The line is the mean." if share else "The line is the mean, the band the middle half."
    if any(point.few for point in drawn):
        note += f" Hollow: fewer than {FEW} values."
    if over.later:
        note += f" {over.later:,} values of later turns are not drawn."
    return Chart(
        title="over the course of the conversation",
        summary=f"mean by turn position, turns {first} to {last}",
        x_name="turn",
        y_name=_AXES.get(unit, unit),
        x_ticks=[Tick(point.x, point.label) for point in _thinned(drawn)],
        y_ticks=scale.ticks,
        points=drawn,
        path=path,
        band="" if share else "M" + " L".join(edge) + " Z",
        note=note.strip(),
    )


def _thinned(points: Sequence[ChartPoint]) -> Iterable[ChartPoint]:
    step = max(1, -(-len(points) // 12))
    return points[::step]


def _some(bins: Sequence[tuple[float, float, int]]) -> list[float]:
    """At most six or so of the edges, evenly spaced."""
    edges = [one[0] for one in bins] + [bins[-1][1]]
    step = max(1, -(-(len(edges) - 1) // 6))
    return edges[::step]


class _Scale(NamedTuple):
    """The values at the two ends of the upright axis, and the ticks between."""

    low: float
    high: float
    ticks: Sequence[Tick]

    def y(self, value: float) -> float:
        part = (value - self.low) / (self.high - self.low)
        return round(HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM), 2)


def _scale(least: float, most: float, name: Callable[[float], str], *, whole: bool) -> _Scale:
    """From zero, or below where values are, to a round number above the greatest."""
    least, most = min(least, 0.0), max(most, 0.0)
    if most - least < _NOTHING:
        most = 1.0
    step = round_width((most - least) / 5, whole=whole)
    first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
    bare = _Scale(first * step, last * step, ())
    ticks = [Tick(bare.y(place * step), name(float(f"{place * step:.12g}"))) for place in range(first, last + 1)]
    return bare._replace(ticks=ticks)
