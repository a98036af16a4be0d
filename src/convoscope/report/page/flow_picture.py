"""The picture of a flow: states shaded by what is lost in them, edges as wide as their traffic. The script draws it."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from convoscope.analysis.flows.diagnosis import WITHOUT_SUCCESS
from convoscope.analysis.words import NOTHING, counted, percent_text
from convoscope.report.flow_tables import MAX_NAME, in_one_line, shortened
from convoscope.report.page.flow_layout import Box, Edge, LaidNode, Layout, Point, Route, Size, lay_out

MAX_STATES = 120
MAX_EDGES = 300
"""What one picture shows at most; the rest, the least visited, is counted."""
LEVELS = (0.0, 0.1, 0.3, 0.6)
"""Bounds of the shades: nothing lost, below a tenth, below 0.3 (a weak state), below 0.6, above."""
MARGIN = 14
_SIGNS = {"success": "✓", "failure": "✗", "escalation": "↗", "unknown": "■"}
_LINE = 15
_FOOT = 33
"""Height of a box without the lines of its name."""
_LABELLED = 0.03
"""Edges with a smaller share of the traffic of the strongest have no number."""


class PictureState(NamedTuple):
    """A state as the picture needs it."""

    name: str
    order: float
    n: int
    """Conversations that were in it."""
    lost: float | None
    """The share of those in it that were lost there."""
    terminal: str
    arrived: int
    """How often another state led to it."""
    text: str
    """Its figures in a sentence."""


class PlacedText(NamedTuple):
    x: float
    y: float
    text: str


class DrawnState(NamedTuple):
    number: int
    """Its position among the states of the flow."""
    box: Box
    round: float
    """Radius of the corners: ends are round."""
    style: str
    name: Sequence[PlacedText]
    figures: PlacedText
    bar_x: float
    bar: float
    """Length of the bar of losses at the foot of the box."""
    tip: str


class DrawnEdge(NamedTuple):
    source: int
    target: int
    style: str
    path: str
    head: str
    width: float
    opacity: float
    tip: str


class EdgeLabel(NamedTuple):
    source: int
    target: int
    at: PlacedText


class Picture(NamedTuple):
    width: float
    height: float
    states: Sequence[DrawnState]
    edges: Sequence[DrawnEdge]
    labels: Sequence[EdgeLabel]
    down: Sequence[tuple[int, int]]
    """The edges that lead on, by the numbers of states: what the blast radius is made of."""
    fewer_states: int
    fewer_edges: int


def picture(states: Sequence[PictureState], edges: Mapping[tuple[int, int], int]) -> Picture:
    """States in the given sequence have the numbers 0, 1, …; edges are by these, with how often they were gone."""
    shown = sorted(range(len(states)), key=lambda number: (-states[number].n, -states[number].arrived, number))[
        :MAX_STATES
    ]
    inside = set(shown)
    inner_edges = [(pair, count) for pair, count in edges.items() if inside.issuperset(pair)]
    drawn_edges = dict(sorted(inner_edges, key=lambda one: (-one[1], one[0]))[:MAX_EDGES])
    signs = {number: _SIGNS.get(states[number].terminal, "") for number in shown}
    names = {
        number: wrapped(f"{sign} {states[number].name}" if sign else states[number].name)
        for number, sign in signs.items()
    }
    high = max((len(lines) for lines in names.values()), default=1)
    size = Size(height=_FOOT + _LINE * high, abreast=5 if len(shown) < 40 else 6)
    layout = lay_out(
        [LaidNode(f"{number:06}", states[number].order) for number in shown],
        [Edge(f"{one:06}", f"{other:06}", count) for (one, other), count in drawn_edges.items()],
        size,
    )
    layout = _moved(layout, MARGIN)
    most = max(drawn_edges.values(), default=1)
    return Picture(
        width=layout.width + MARGIN,
        height=layout.height + MARGIN,
        states=[
            _state(number, states[number], names[number], layout.boxes[f"{number:06}"]) for number in sorted(shown)
        ],
        edges=[_edge(route, states, most) for route in sorted(layout.routes, key=lambda one: one.weight)],
        labels=list(_labels(layout.routes, most)),
        down=[
            (int(route.source), int(route.target))
            for route in layout.routes
            if not route.back and route.source != route.target
        ],
        fewer_states=len(states) - len(shown),
        fewer_edges=len(edges) - len(drawn_edges),
    )


def _moved(layout: Layout, by: float) -> Layout:
    boxes = {key: box._replace(x=box.x + by, y=box.y + by) for key, box in layout.boxes.items()}
    routes = tuple(
        route._replace(points=tuple(Point(point.x + by, point.y + by) for point in route.points))
        for route in layout.routes
    )
    return layout._replace(width=layout.width + by, height=layout.height + by, boxes=boxes, routes=routes)


def level(lost: float | None) -> int | None:
    """The shade of a share lost."""
    if lost is None:
        return None
    return sum(lost >= bound for bound in LEVELS[1:]) + (lost > 0)


def _state(number: int, state: PictureState, lines: Sequence[str], box: Box) -> DrawnState:
    middle = box.x + box.width / 2
    blank = (box.height - _FOOT - _LINE * len(lines)) / 2
    name = [PlacedText(middle, round(box.y + blank + 19 + _LINE * at, 1), line) for at, line in enumerate(lines)]
    figures = PlacedText(middle, round(box.y + blank + 19 + _LINE * len(lines), 1), _figures(state))
    styles = ["state"]
    if state.n:
        shade = None if state.terminal in WITHOUT_SUCCESS else level(state.lost)
        styles.append("lost-unknown" if shade is None else f"lost-{shade}")
    else:
        styles.append("unentered" if state.arrived else "untested")
    if state.terminal:
        styles += ["end", state.terminal]
    return DrawnState(
        number=number,
        box=box,
        round=box.height / 2 if state.terminal else 7,
        style=" ".join(styles),
        name=name,
        figures=figures,
        bar_x=box.x + _inset(state),
        bar=0 if state.terminal in WITHOUT_SUCCESS else round((box.width - 2 * _inset(state)) * (state.lost or 0.0), 1),
        tip=f"{shortened(state.name)}\n{state.text}",
    )


def _inset(state: PictureState) -> float:
    return 30 if state.terminal else 8


def _figures(state: PictureState) -> str:
    if not state.n:
        return f"led to {state.arrived:,}×, not entered" if state.arrived else "untested"
    if state.terminal and (not state.lost or state.terminal in WITHOUT_SUCCESS):
        return f"n {state.n:,} · {'end' if state.terminal == 'unknown' else state.terminal}"
    return f"n {state.n:,} · {NOTHING if state.lost is None else percent_text(state.lost)} lost"


def wrapped(name: str, width: float = Size().width - 14) -> list[str]:
    """A name in one line or two, broken after a blank or an underscore if it can be; what does not fit ends in …"""
    name = in_one_line(name[: 2 * MAX_NAME])
    if _measure(name) <= width:
        return [name]
    fits = _fitting(name, width)
    cut = max((at for at in range(1, fits + 1) if name[at - 1] in " _-./:"), default=0)
    cut = cut if cut >= fits // 3 else fits
    second = name[cut:].strip()
    if _measure(second) > width:
        second = second[: _fitting(second, width - _measure("…"))].rstrip() + "…"
    return [name[:cut].rstrip(), second]


def _fitting(text: str, width: float) -> int:
    """How many of its first characters fit; one always does."""
    used, fits = 0.0, 0
    for character in text:
        used += _width(character)
        if used > width:
            break
        fits += 1
    return max(1, fits)


def _measure(text: str) -> float:
    """About the width of a text in a font of 12 px, rather too wide than too narrow."""
    return sum(map(_width, text))


def _width(character: str) -> float:
    if character < "\u0250":
        narrow = next((width for characters, width in _WIDTHS.items() if character in characters), 0.0)
        return narrow or (9.6 if character.isupper() else 8.7)
    if unicodedata.combining(character):
        return 0.0
    # Ligatures of whole words are among these.
    return 30.0 if "\ufb50" <= character <= "\ufdff" else 13.0


_WIDTHS = {"ijl.,:;|!'` ": 4.8, "tfr-()[]": 6.2, "ckszvxy_/": 8.0, "mwMWQ@%#&+<=>~": 12.6}
"""Widths in the widest bold font that browsers choose from."""


def _edge(route: Route, states: Sequence[PictureState], most: float) -> DrawnEdge:
    source, target = int(route.source), int(route.target)
    share = math.sqrt(route.weight / most)
    loop = source == target
    tip = f"{shortened(states[source].name)} → {shortened(states[target].name)}: {counted(int(route.weight), 'time')}"
    tip += ", to itself" if loop else ", back to a state before it" if route.back else ""
    return DrawnEdge(
        source=source,
        target=target,
        style="edge back" if route.back or loop else "edge",
        path=_loop(route) if loop else _path(route),
        head=_head(route, loop),
        width=round(1.2 + 5 * share, 1),
        opacity=round(0.45 + 0.45 * share, 2),
        tip=tip,
    )


def _path(route: Route) -> str:
    """Curves that leave and arrive upright. The line ends where the arrow head begins."""
    points = list(route.points)
    up = -1 if points[-1].y < points[0].y else 1
    points[-1] = points[-1]._replace(y=points[-1].y - 6 * up)
    parts = [f"M{points[0].x:g} {points[0].y:g}"]
    for at in range(1, len(points)):
        start, end = points[at - 1], points[at]
        if at % 2:
            middle = round((start.y + end.y) / 2, 1)
            parts.append(f"C{start.x:g} {middle:g} {end.x:g} {middle:g} {end.x:g} {end.y:g}")
        else:
            parts.append(f"L{end.x:g} {end.y:g}")
    return "".join(parts)


def _loop(route: Route) -> str:
    begin, end = route.points
    out = begin.x + 30
    return f"M{begin.x:g} {begin.y:g}C{out:g} {begin.y - 8:g} {out:g} {end.y + 8:g} {end.x + 6:g} {end.y:g}"


def _head(route: Route, loop: bool) -> str:
    x, y = route.points[-1]
    if loop:
        return f"M{x:g} {y:g}l8 -4.5v9z"
    return f"M{x:g} {y:g}l-4.5 {'8' if route.back else '-8'}h9z"


def _labels(routes: Sequence[Route], most: float) -> Iterator[EdgeLabel]:
    """The counts of strong edges, where they begin; one that would cover another is left out."""
    taken: list[tuple[float, float, float]] = []
    for route in sorted(routes, key=lambda one: (-one.weight, one.source, one.target)):
        if route.weight < _LABELLED * most:
            break
        text = f"{int(route.weight):,}"
        half = 3.6 * len(text) + 3
        for spot in _spots(route):
            if all(abs(spot.x - x) >= half + other or abs(spot.y - y) >= 14 for x, y, other in taken):
                taken.append((spot.x, spot.y, half))
                yield EdgeLabel(
                    int(route.source), int(route.target), PlacedText(round(spot.x, 1), round(spot.y + 4, 1), text)
                )
                break


def _spots(route: Route) -> Iterator[Point]:
    """Points along the first curve of an edge, the middle first."""
    start, end = route.points[:2]
    if route.source == route.target:
        yield Point(start.x + 14, (start.y + end.y) / 2)
        return
    for part in (0.5, 0.38, 0.62):
        smooth = part * part * (3 - 2 * part)
        yield Point(start.x + (end.x - start.x) * smooth, start.y + (end.y - start.y) * part)
