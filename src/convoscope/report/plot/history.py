"""A figure over nights as a picture: values with intervals, levels between changes, target, versions.

One drawing for the page, whose style sheet colours it by class, and for a file, which brings its colours along.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from typing import NamedTuple
from xml.etree.ElementTree import Element, SubElement, tostring

from convoscope.analysis.history.model import FigureChange, FigureLevel, History, HistoryFigure
from convoscope.analysis.history.words import day_text, difference_text, versions_text
from convoscope.analysis.words import NOTHING, axis_text, counted, number_text, value_text
from convoscope.errors import UsageError
from convoscope.harmless import clean
from convoscope.metrics.declaration import RATIO, SHARE
from convoscope.report.plot.drawing import (
    ACCENT,
    BAD,
    BAD_TEXT,
    FONT,
    GOOD,
    GOOD_TEXT,
    INK,
    INK2,
    INK3,
    LINE,
    PAPER,
    SIDE,
    WIDTH,
    cut,
    wrapped,
)
from convoscope.report.plot.make import Plot
from convoscope.runs.distributions import round_width

TONES = {"worse": "bad", "better": "good", "": ""}
_STYLE = f"""
text {{ font: 11px {FONT}; fill: {INK2}; }}
.h1 {{ font-size: 22px; font-weight: 620; fill: {INK}; }} .h2 {{ font-size: 14px; }}
.src {{ font-size: 12px; fill: {INK3}; }}
.grid {{ stroke: {LINE}; }} .ci {{ stroke: {INK3}; opacity: .5; stroke-width: 2; }}
.pt {{ fill: {INK2}; }} .pt.few, .pt.other {{ fill: {PAPER}; stroke: {INK3}; stroke-width: 1.3; }}
.lev {{ stroke: {INK}; stroke-width: 2; }} .lev.bad {{ stroke: {BAD}; }} .lev.good {{ stroke: {GOOD}; }}
.levb {{ fill: {INK}; opacity: .06; }} .levb.bad {{ fill: {BAD}; opacity: .16; }}
.levb.good {{ fill: {GOOD}; opacity: .16; }}
.tgt {{ stroke: {ACCENT}; stroke-width: 2; stroke-dasharray: 2 3; }} .tt {{ fill: {ACCENT}; }}
.cp {{ stroke: {INK2}; stroke-dasharray: 1 3; stroke-width: 1.2; }} .cpt {{ font-weight: 620; fill: {INK}; }}
text.bad {{ fill: {BAD_TEXT}; }} text.good {{ fill: {GOOD_TEXT}; }}
.lvl {{ font-weight: 620; font-size: 12px; fill: {INK}; }}
.ver {{ fill: #f3f3f0; }} .ver.new {{ fill: #eceefb; }} .hov {{ fill: none; pointer-events: all; }}
"""


class ChartFrame(NamedTuple):
    """The size of a chart, and how much it says."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    large: bool = True
    radius: float = 3.6
    dates: int = 9


WIDE = ChartFrame(1160, 296, 54, 84, 46, 50)
PHONE = ChartFrame(340, 250, 36, 8, 44, 50, radius=2.4, dates=4)
SMALL = ChartFrame(260, 84, 2, 4, 6, 6, large=False, radius=1.8)


class ValueScale(NamedTuple):
    """From where to where the figure is drawn, and the lines between."""

    low: float
    high: float
    ticks: Sequence[float]


def scale_of(figure: HistoryFigure) -> ValueScale:
    """Round numbers around everything that is drawn; a share or score that is never far off keeps a wide scale."""
    values = [0.0 if figure.target is None else figure.target.value]
    values = values if figure.target is not None else []
    for night in figure.nights:
        if night is not None:
            values += [one for one in (night.value, night.low, night.high) if one is not None]
    values += [one for level in figure.levels for one in (level.low, level.high) if one is not None]
    values = [one for one in values if math.isfinite(one)] or [0.0, 1.0]
    low, high = min(values), max(values)
    bounded = figure.unit in (SHARE, RATIO) and low >= 0 and high <= 1
    if bounded:
        # Never a scale of a few points, on which chance looks like a fall.
        middle, least = (low + high) / 2, 0.1
        low, high = min(low, middle - least), max(high, middle + least)
    elif low >= 0:
        low = 0.0
    step = round_width((high - low) / 4 or 1.0, whole=False)
    low, high = math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step
    if bounded:
        low, high = max(low, 0.0), min(high, 1.0)
    if high <= low:
        high = low + step
    count = math.ceil((high - low) / step - 1e-9)
    ticks = [min(high, low + index * step) for index in range(count + 1)]
    return ValueScale(low, high, [float(f"{tick:.12g}") for tick in ticks])


def scale_text(figure: HistoryFigure) -> str:
    """`50 to 90`."""
    scale = scale_of(figure)
    return f"{axis_text(scale.low, figure.unit)} to {axis_text(scale.high, figure.unit)}"


class Chart:
    """One figure over the nights."""

    def __init__(self, history: History, figure: HistoryFigure, frame: ChartFrame) -> None:
        self.history, self.figure, self.frame = history, figure, frame
        self.scale = scale_of(figure)
        self.slots = slots_of(history)
        self.count = self.slots[-1] + 1
        self.root = Element(
            "svg",
            {
                "class": "hist",
                "viewBox": f"0 0 {frame.width:g} {frame.height:g}",
                "role": "img",
                "aria-label": clean(self.words),
            },
        )
        self._axes()
        if frame.large:
            self._versions()
        self._levels()
        self._target()
        self._nights()
        self._changes()
        if frame.large:
            self._tips()

    @property
    def words(self) -> str:
        """For those who cannot see it."""
        figure = self.figure
        levels = ", ".join(
            f"{value_text(one.value, figure.unit)} from {day_text(self.history.nights[one.first].date)}"
            for one in figure.levels
        )
        last = figure.last
        shown = levels or (f"last {value_text(last.value, figure.unit)}" if last is not None else "no value")
        return f"{figure.label}, {counted(len(self.slots), self.history.word)}: {shown}"

    @property
    def svg(self) -> str:
        return tostring(self.root, encoding="unicode")

    def x(self, slot: float) -> float:
        frame = self.frame
        return frame.left + (slot + 0.5) / self.count * (frame.width - frame.left - frame.right)

    def start(self, night: int) -> float:
        """Where a night begins; after the last one, the end."""
        return self.x((self.slots[night] if night < len(self.slots) else self.count) - 0.5)

    def y(self, value: float) -> float:
        frame, scale = self.frame, self.scale
        value = min(max(value, scale.low), scale.high)
        return frame.top + (scale.high - value) / (scale.high - scale.low) * (frame.height - frame.top - frame.bottom)

    def _put(self, tag: str, css: str = "", text: str = "", **attributes: float | str) -> Element:
        named = {name.replace("_", "-"): _at(value) for name, value in attributes.items()}
        node = SubElement(self.root, tag, ({"class": css} if css else {}) | named)
        if text:
            node.text = clean(text)
        return node

    def _rule(self, css: str, x1: float, y1: float, x2: float, y2: float) -> None:
        self._put("line", css, x1=x1, y1=y1, x2=x2, y2=y2)

    def _axes(self) -> None:
        frame = self.frame
        right = frame.width - frame.right
        if not frame.large:
            self._rule("grid", 0, frame.height - 4, frame.width, frame.height - 4)
            return
        for tick in self.scale.ticks:
            self._rule("grid", frame.left, self.y(tick), right, self.y(tick))
            words = axis_text(tick, self.figure.unit)
            self._put("text", "", words, x=frame.left - 6, y=self.y(tick) + 4, text_anchor="end")
        dates = dict(zip(self.slots, (one.date for one in self.history.nights), strict=True))
        free = 0.0
        for slot, day in dates.items():
            if slot >= free:
                free = slot + self.count / frame.dates
                self._put("text", "", day_text(day), x=self.x(slot), y=frame.height - 34, text_anchor="middle")

    def _versions(self) -> None:
        """A strip below: which version had how much of the conversations."""
        frame, nights = self.frame, self.history.nights
        if not any(one.versions for one in nights):
            return
        top = frame.height - 22
        starts: list[tuple[int, str]] = []
        for index, night in enumerate(nights):
            names = " ".join(sorted(night.versions))
            if not starts or (names != starts[-1][1] and not night.few):
                starts.append((index, names))
        for number, (start, _) in enumerate(starts):
            end = starts[number + 1][0] if number + 1 < len(starts) else len(nights)
            left, width = self.start(start), self.start(end) - self.start(start) - 2
            css = "ver new" if number % 2 else "ver"
            tip = versions_text(nights[start].versions, self.history.noun) or "no version"
            box = self._put("rect", css, x=left, y=top, width=max(width, 1), height=16, rx=3)
            SubElement(box, "title").text = clean(f"from {day_text(nights[start].date)}: {tip}")
            if width > 40:
                self._put("text", "", cut(clean(tip), width - 10, 11), x=left + 7, y=top + 12)

    def _tone(self, index: int) -> str:
        """Of a level: that of the change which it began with."""
        changes = self.figure.changes
        return TONES[changes[index - 1].direction] if index else ""

    def _levels(self) -> None:
        for index, level in enumerate(self.figure.levels):
            tone = self._tone(index)
            left, right = self.start(self._first(index, level)), self.start(self._end(index))
            high = self.scale.high if level.high is None else level.high
            low = self.scale.low if level.low is None else level.low
            height = max(2.0, self.y(low) - self.y(high))
            self._put("rect", f"levb {tone}".strip(), x=left, y=self.y(high), width=right - left, height=height)
            self._rule(f"lev {tone}".strip(), left, self.y(level.value), right, self.y(level.value))
            if self.frame.large:
                self._level_text(index, level, tone)

    def _level_text(self, index: int, level: FigureLevel, tone: str) -> None:
        is_last = index == len(self.figure.levels) - 1
        words, css = value_text(level.value, self.figure.unit), f"lvl {tone}".strip()
        if is_last and self.frame.right > 40:
            self._put("text", css, words, x=self.frame.width - self.frame.right + 6, y=self.y(level.value) + 4)
        elif is_last:
            x = self.frame.width - self.frame.right - 4
            self._put("text", css, words, x=x, y=self._free(level), text_anchor="end")
        else:
            self._put("text", css, words, x=self.start(self._first(index, level)) + 4, y=self._free(level))

    def _free(self, level: FigureLevel) -> float:
        """Below the intervals of the nights, where there is room; else above them."""
        nights = [one for one in self.figure.nights[level.first : level.last + 1] if one is not None and not one.few]
        lowest = min((one.value if one.low is None else one.low for one in nights), default=level.value)
        highest = max((one.value if one.high is None else one.high for one in nights), default=level.value)
        below = self.y(lowest) + 15
        return below if below < self.frame.height - self.frame.bottom - 2 else self.y(highest) - 8

    def _first(self, index: int, level: FigureLevel) -> int:
        return level.first if index or self.figure.broken_at is not None else 0

    def _end(self, index: int) -> int:
        levels = self.figure.levels
        return levels[index + 1].first if index + 1 < len(levels) else len(self.slots)

    def _target(self) -> None:
        target, frame = self.figure.target, self.frame
        if target is None:
            return
        y = self.y(target.value)
        self._rule("tgt", frame.left, y, frame.width - frame.right, y)
        if frame.large:
            words = f"target {number_text(target.value, self.figure.unit).removesuffix('.0')}"
            x = frame.width - frame.right + 6 if frame.right > 40 else frame.left + 4
            level = self.figure.level
            # Two labels at one height would hide each other.
            near = level is not None and frame.right > 40 and abs(self.y(level.value) - y) < 13
            lift = (-10 if level is not None and self.y(level.value) >= y else 18) if near else 4
            self._put("text", "tt", words, x=x, y=y + (lift if frame.right > 40 else -5))

    def _nights(self) -> None:
        empty = set(range(self.count)) - {
            self.slots[at] for at, one in enumerate(self.figure.nights) if one is not None
        }
        for slot in sorted(empty) if self.frame.large else ():
            y = self.frame.height - self.frame.bottom - 4
            self._put("text", "", NOTHING, x=self.x(slot), y=y, text_anchor="middle")
        for index, night in enumerate(self.figure.nights):
            if night is None:
                continue
            x = self.x(self.slots[index])
            if night.low is not None or night.high is not None:
                low = self.scale.low if night.low is None else night.low
                high = self.scale.high if night.high is None else night.high
                self._rule("ci", x, self.y(low), x, self.y(high))
            css = "pt few" if night.few else "pt" if night.comparable else "pt other"
            self._put("circle", css, cx=x, cy=self.y(night.value), r=self.frame.radius)

    def _changes(self) -> None:
        for change in self.figure.changes:
            tone = TONES[change.direction]
            title = f"{day_text(change.date)}{_version(self.history, change)}"
            words = f"{difference_text(self.figure, change)}{f', {change.direction}' if change.direction else ''}"
            self._mark(change.night, title, words, tone)
        if self.figure.broken_at is not None:
            self._mark(self.figure.broken_at, self.figure.broken, "the two sides cannot be compared", "")

    def _mark(self, night: int, title: str, words: str, tone: str) -> None:
        frame, x = self.frame, self.start(night)
        self._rule("cp", x, 14 if frame.large else frame.top - 4, x, frame.height - frame.bottom)
        if frame.large:
            is_right = x > frame.width * (0.55 if frame.width < 500 else 0.8)
            anchor, at = ("end", x - 5) if is_right else ("start", x + 6)
            self._put("text", "cpt", title, x=at, y=12, text_anchor=anchor)
            self._put("text", tone, words, x=at, y=27, text_anchor=anchor)

    def _tips(self) -> None:
        """What each night says when it is pointed at."""
        frame = self.frame
        width = self.x(1) - self.x(0)
        for index, slot in enumerate(self.slots):
            box = self._put(
                "rect",
                "hov",
                x=self.x(slot - 0.5),
                y=frame.top,
                width=width,
                height=frame.height - frame.top - frame.bottom,
            )
            SubElement(box, "title").text = clean(night_words(self.history, self.figure, index))


def slots_of(history: History) -> list[int]:
    """Where each night is drawn: nights and days by their date, so that a missing one is a gap; runs one by one."""
    if history.word == "run":
        return list(range(len(history.nights)))
    days = [date.fromisoformat(one.date) for one in history.nights]
    slots = [(day - days[0]).days for day in days]
    return slots if len(set(slots)) == len(slots) else list(range(len(slots)))


def night_words(history: History, figure: HistoryFigure, index: int) -> str:
    """A night in words."""
    night, day = figure.nights[index], day_text(history.nights[index].date)
    if night is None:
        return f"{day}: no value"
    ends = [NOTHING if one is None else number_text(one, figure.unit) for one in (night.low, night.high)]
    interval = (
        f"95 % interval {ends[0]} to {ends[1]}" if night.low is not None or night.high is not None else "no interval"
    )
    few = ", too few to conclude" if night.few else ""
    other = ", not comparable" if not night.comparable else ""
    return (
        f"{day}: {value_text(night.value, figure.unit)}\n{interval}\n"
        f"{counted(night.conversations, history.noun)}, n {night.n:,}{few}{other}"
    )


def _version(history: History, change: FigureChange) -> str:
    event = next((one for one in history.changes if one.night == change.night and one.kind == "level"), None)
    return f": {event.version}" if event is not None and event.version else ""


def _at(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.2f}".rstrip("0").rstrip(".")


def history_plot(history: History, name: str = "") -> Plot:
    """The picture of one figure, the first where none is named."""
    figures = [one for one in history.figures if name in (one.name, one.label)] if name else list(history.figures[:1])
    if not figures:
        known = ", ".join(one.name for one in history.figures)
        raise UsageError(f"the history has no figure {name!r}", hint=f"there is {known}" if known else "")
    return Plot(_standalone(history, figures[0]))


def _standalone(history: History, figure: HistoryFigure) -> str:
    """The wide chart with a heading and its source, in colours of its own."""
    title = wrapped(clean(figure.label[:1].upper() + figure.label[1:]), WIDTH - 2 * SIDE, 22, 2)
    span = f"{day_text(history.nights[0].date)} to {day_text(history.nights[-1].date)}"
    note = "each with its 95 % interval; line and band: the level between changes, always-valid 95 %"
    top = 24 + 28 * len(title) + 30
    chart = Chart(history, figure, WIDE._replace(width=WIDTH, left=SIDE + 54, right=SIDE + 74))
    height = top + WIDE.height + 34
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "viewBox": f"0 0 {WIDTH} {height:g}",
            "width": str(WIDTH),
            "height": f"{height:g}",
            "role": "img",
            "aria-label": clean(chart.words),
        },
    )
    SubElement(root, "style").text = _STYLE
    SubElement(root, "rect", {"width": str(WIDTH), "height": f"{height:g}", "fill": PAPER})
    for index, line in enumerate(title):
        SubElement(root, "text", {"class": "h1", "x": str(SIDE), "y": str(44 + 28 * index)}).text = line
    words = f"{counted(len(history.nights), history.word)}, {span}; {note}"
    SubElement(root, "text", {"class": "h2", "x": str(SIDE), "y": f"{top - 12:g}"}).text = clean(words)
    group = SubElement(root, "g", {"transform": f"translate(0 {top:g})"})
    group.extend(list(chart.root))
    source = f"{figure.name}, {history.title}"
    SubElement(root, "text", {"class": "src", "x": str(SIDE), "y": f"{height - 14:g}"}).text = clean(source)
    return tostring(root, encoding="unicode") + "\n"
