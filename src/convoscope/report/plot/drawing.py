"""An SVG picture that grows by shapes, with a question above it and its source below.

Text of logs becomes text nodes and attributes, and nothing else.
"""

from __future__ import annotations

from typing import Literal, NamedTuple
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from convoscope.analysis.targets import Check, observed, run_checks
from convoscope.analysis.words import counted, coverage_text, interval_text, value_text
from convoscope.harmless import clean
from convoscope.metrics.declaration import COUNT, RATIO, SECONDS, SHARE
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure

WIDTH = 960
SIDE = 40
"""Free space to the left and right."""

PAPER, LINE, BARS = "#ffffff", "#e5e5e0", "#bcbcb5"
INK, INK2, INK3 = "#18191b", "#4f5258", "#696c73"
ACCENT, GOOD, BAD = "#4149b8", "#177b71", "#dd6b3d"
GOOD_TEXT, BAD_TEXT = "#0a6e66", "#ae350d"

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"
MONO = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_LETTER = 0.56
"""About the width of a letter, in the size of the type."""

Anchor = Literal["start", "middle", "end"]


class Drawing:
    """A picture with a title and a description for those who cannot see it."""

    def __init__(self, height: float, title: str, description: str) -> None:
        self.height = height
        size = f"{height:g}"
        self._root = Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg",
                "viewBox": f"0 0 {WIDTH} {size}",
                "width": str(WIDTH),
                "height": size,
                "role": "img",
                "aria-labelledby": "title desc",
                "font-family": FONT,
            },
        )
        SubElement(self._root, "title", {"id": "title"}).text = clean(title)
        SubElement(self._root, "desc", {"id": "desc"}).text = clean(description)
        hatch = SubElement(SubElement(self._root, "defs"), "pattern", {"id": "hatch", **_box(0, 0, 6, 6)})
        hatch.attrib.update({"patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"})
        SubElement(hatch, "rect", {**_box(0, 0, 2, 6), "fill": BARS})
        self.box(0, 0, WIDTH, height, PAPER)

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, *, opacity: float = 1, tip: str = ""
    ) -> None:
        """A filled box; `tip` is what it says when pointed at."""
        attributes = {**_box(x, y, max(width, 0), height), "fill": fill}
        if opacity < 1:
            attributes["fill-opacity"] = f"{opacity:.2f}"
        _tip(SubElement(self._root, "rect", attributes), tip)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str, *, width: float = 1, dots: str = ""
    ) -> None:
        attributes = {"x1": _at(x1), "y1": _at(y1), "x2": _at(x2), "y2": _at(y2), "stroke": colour}
        attributes |= {"stroke-width": f"{width:g}"} | ({"stroke-dasharray": dots} if dots else {})
        SubElement(self._root, "line", attributes)

    def diamond(self, x: float, y: float, colour: str) -> None:
        """A hollow mark for the value before."""
        points = f"{_at(x)},{_at(y - 6)} {_at(x + 6)},{_at(y)} {_at(x)},{_at(y + 6)} {_at(x - 6)},{_at(y)}"
        SubElement(self._root, "polygon", {"points": points, "fill": PAPER, "stroke": colour, "stroke-width": "2"})

    def text(
        self,
        x: float,
        y: float,
        words: str,
        *,
        size: float = 14,
        colour: str = INK,
        anchor: Anchor = "start",
        weight: int = 400,
        mono: bool = False,
        width: float | None = None,
        halo: bool = False,
        tip: str = "",
    ) -> None:
        """Words on one line, cut where they are wider than `width`; `halo` keeps them legible across lines."""
        attributes = {"x": _at(x), "y": _at(y), "font-size": f"{size:g}", "fill": colour}
        if anchor != "start":
            attributes["text-anchor"] = anchor
        if weight != 400:
            attributes["font-weight"] = str(weight)
        if mono:
            attributes["font-family"] = MONO
        if halo:
            attributes |= {"stroke": PAPER, "stroke-width": "4", "paint-order": "stroke"}
        node = SubElement(self._root, "text", attributes)
        words = clean(words)
        shown = words if width is None else cut(words, width, size)
        _tip(node, tip or (words if shown != words else ""))
        if len(node):
            node[-1].tail = shown
        else:
            node.text = shown

    @property
    def svg(self) -> str:
        indent(self._root)
        return tostring(self._root, encoding="unicode") + "\n"


def cut(words: str, width: float, size: float) -> str:
    """As much of a text as fits into a width, by about the width of its letters."""
    most = max(1, int(width / (size * _LETTER)))
    return words if len(words) <= most else words[: most - 1].rstrip() + "…"


def wrapped(words: str, width: float, size: float, most: int) -> list[str]:
    """A text in at most so many lines; the last is cut."""
    lines: list[str] = []
    rest = words.split()
    while rest and len(lines) < most - 1:
        line = rest.pop(0)
        while rest and cut(f"{line} {rest[0]}", width, size) == f"{line} {rest[0]}":
            line = f"{line} {rest.pop(0)}"
        lines.append(cut(line, width, size))
    return [*lines, cut(" ".join(rest), width, size)] if rest else lines


def _box(x: float, y: float, width: float, height: float) -> dict[str, str]:
    return {"x": _at(x), "y": _at(y), "width": _at(width), "height": _at(height)}


def _at(number: float) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _tip(node: Element, words: str) -> None:
    if words:
        SubElement(node, "title").text = clean(words)


class Axis(NamedTuple):
    """From values to positions."""

    low: float
    high: float
    left: float
    right: float
    step: float = 1.0

    def x(self, value: float) -> float:
        """Never beyond the ends."""
        part = (min(max(value, self.low), self.high) - self.low) / (self.high - self.low)
        return self.left + part * (self.right - self.left)

    @property
    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [float(f"{self.low + index * self.step:.12g}") for index in range(count + 1)]


_INSIDE = WIDTH - 2 * SIDE
_TITLE, _SMALL = 22, 14


class Heading(NamedTuple):
    """The words around a picture."""

    title: str
    subtitle: str
    source: str
    """The metric and the run, at the foot."""
    note: str = ""

    @property
    def height(self) -> float:
        """Of what is above the picture."""
        return 24 + 28 * len(self._title) + 20 * len(self._subtitle) + 16

    @property
    def foot(self) -> float:
        """Of what is below the picture."""
        return 34 + 18 * len(self._note)

    @property
    def _title(self) -> list[str]:
        return wrapped(self.title, _INSIDE, _TITLE, 2)

    @property
    def _subtitle(self) -> list[str]:
        return wrapped(self.subtitle, _INSIDE, _SMALL, 2)

    @property
    def _note(self) -> list[str]:
        return wrapped(self.note, _INSIDE, 12.5, 3)

    def begin(self, height: float, description: str) -> Drawing:
        """A picture of a height between heading and foot."""
        drawing = Drawing(self.height + height + self.foot, self.title, f"{self.subtitle}. {description}")
        y = 24.0
        for line in self._title:
            y += 28
            drawing.text(SIDE, y - 8, line, size=_TITLE, weight=620)
        for line in self._subtitle:
            y += 20
            drawing.text(SIDE, y - 4, line, size=_SMALL, colour=INK2)
        y = drawing.height - self.foot + 14
        for line in self._note:
            drawing.text(SIDE, y, line, size=12.5, colour=INK2)
            y += 18
        drawing.text(SIDE, drawing.height - 14, self.source, size=12, colour=INK3, mono=True, width=_INSIDE)
        return drawing


def axis_name(unit: str) -> str:
    """What is below an axis."""
    return {SHARE: "%", RATIO: "from 0 to 1", COUNT: "", SECONDS: "seconds"}.get(unit, unit)


def figure_words(run: Run, figure: Figure) -> str:
    """The value, how sure it is, and what it is of."""
    name = f"{figure.reduction} " if figure.reduction else ""
    interval = f", 95 % interval {interval_text(figure)}" if figure.interval else ", no interval"
    observes = observed(figure, run.summary).replace("_", " ")
    pooled = "" if observes == "conversation" else f" of {counted(figure.samples_measured, 'conversation')}"
    noun = "conversation" if observes in ("conversation", "group") else observes
    covered = coverage_text(figure, observes)
    n = counted(figure.n, noun)
    return f"{name}{value_text(figure.value, figure.unit)}{interval}; n {n}{pooled}; coverage {covered}"


def targets_of(run: Run, figure: Figure, given: tuple[str, ...]) -> list[Check]:
    """The targets of a figure over all conversations."""
    same = (figure.key, figure.reduction, figure.judge)
    return [
        check
        for check in run_checks(run, given)
        if not check.by and (check.figure.key, check.figure.reduction, check.figure.judge) == same
    ]
