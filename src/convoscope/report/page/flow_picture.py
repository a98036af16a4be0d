"""The picture of a flow: from left to right, ribbons as wide as their traffic, losses that fall to the ground.

The script draws it. Each version of the agent has a picture of its own, with the same columns.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from convoscope.analysis.words import counted
from convoscope.report.flow_tables import MAX_NAME, in_one_line, shortened
from convoscope.report.page.flow_layout import ColumnOrder, Layout, Pair, Reach, RibbonPart, arrange, lay_out

MAX_STATES = 120
MAX_EDGES = 300
"""What one picture shows at most; the rest, the least visited, is counted."""
MAX_RETURNS = 5
"""Ways back that are drawn, the most frequent."""
WIDTH = 838
"""Of the card; more columns than fit are scrolled."""
PITCH = 104
"""From column to column, at least."""
BAR = 9
HIGH = 126
"""The height of the highest bar."""
LEAST = 2
"""The height of what is small, so that it can be seen."""
MARGIN = 14
FALL = 46
"""From the lowest bar to the ground, at least."""
_LINE = 14
_TURN = 7
"""The inner radius of what falls out."""
_RISE = 24
"""The height of a way back above the one below it."""


class PictureState(NamedTuple):
    """A state as the picture needs it, of one version or all."""

    name: str
    order: float
    n: int
    """Conversations that were in it."""
    stuck: int = 0
    handed_over: int = 0
    goal: bool = False
    """Who comes here reached the goal."""
    end: bool = False
    text: str = ""
    """Its figures in a sentence."""
    link: bool = True
    """Whether it is a state of the flow that can be chosen."""

    @property
    def lost(self) -> int:
        return self.stuck + self.handed_over


class PlacedText(NamedTuple):
    x: float
    y: float
    text: str


class DrawnState(NamedTuple):
    number: int
    """Its position among the states of the flow; -1 for what cannot be chosen."""
    x: float
    y: float
    height: float
    style: str
    name: Sequence[PlacedText]
    visits: PlacedText
    measure: PlacedText
    """Where the chosen measure is written; of a goal, how many arrive."""
    tip: str


class DrawnRibbon(NamedTuple):
    path: str
    tip: str


class Fall(NamedTuple):
    """What is lost in a state: two bands that turn down to the ground."""

    number: int
    stuck: str
    handed_over: str
    tip: str


class GroundText(NamedTuple):
    """How many are lost in the states of a column: a number, and the lines below it."""

    x: float
    number: int
    total: str
    lines: Sequence[str]


class Return(NamedTuple):
    """A way back to an earlier state."""

    path: str
    head: str
    at: PlacedText


class Picture(NamedTuple):
    width: float
    height: float
    ground: float
    """How far down the ground is."""
    states: Sequence[DrawnState]
    ribbons: Sequence[DrawnRibbon]
    falls: Sequence[Fall]
    lost: Sequence[GroundText]
    returns: Sequence[Return]


class FlowColumns(NamedTuple):
    """What all pictures of a flow have in common."""

    columns: ColumnOrder
    shown: Sequence[int]
    """The states that are drawn."""
    edges: frozenset[Pair]
    fewer_states: int
    fewer_edges: int


def arrange_flow(states: Sequence[PictureState], entries: Mapping[Pair, int]) -> FlowColumns:
    """The columns of a flow. States in the given sequence have the numbers 0, 1, …; entries are by these."""
    visited = [number for number in range(len(states)) if states[number].n]
    shown = sorted(visited, key=lambda number: (-states[number].n, number))[:MAX_STATES]
    at = {number: index for index, number in enumerate(sorted(shown))}
    inner = sorted(
        (pair for pair in entries if pair[0] in at and pair[1] in at), key=lambda pair: (-entries[pair], pair)
    )
    drawn = inner[:MAX_EDGES]
    order = [states[number].order for number in sorted(shown)]
    columns = arrange(order, {(at[one], at[other]): entries[one, other] for one, other in drawn})
    return FlowColumns(columns, sorted(shown), frozenset(drawn), len(visited) - len(shown), len(inner) - len(drawn))


def picture(
    flow: FlowColumns,
    states: Sequence[PictureState],
    entries: Mapping[Pair, int],
    transitions: Mapping[Pair, int],
    noun: str = "conversation",
) -> Picture:
    """The picture of one version: how many came to each state first from which other, and which ways were gone."""
    return _Drawing(flow, states, entries, noun).finish(transitions)


class _Drawing:
    def __init__(
        self, flow: FlowColumns, states: Sequence[PictureState], entries: Mapping[Pair, int], noun: str
    ) -> None:
        self.flow, self.states, self.noun = flow, states, noun
        self.at = {number: index for index, number in enumerate(flow.shown)}
        inner = {pair: count for pair, count in entries.items() if pair in flow.edges}
        leaving: dict[int, int] = {}
        for (source, _), count in inner.items():
            leaving[source] = leaving.get(source, 0) + count
        # Who comes back to a state leaves it twice: its bar is as high as what leaves it.
        sizes = {one: max(states[one].n, leaving.get(one, 0) + states[one].lost) for one in flow.shown}
        self.unit = HIGH / max([*sizes.values(), 1])
        names = {one: wrapped(states[one].name, 1.06 * self._pitch()) for one in flow.shown}
        self.names = names
        label = _LINE * (2 + max((len(lines) for lines in names.values()), default=1)) + 4
        self.layout: Layout = lay_out(
            flow.columns,
            {self.at[one]: max(LEAST, self.unit * size) if size else 0.0 for one, size in sizes.items()},
            {(self.at[one], self.at[other]): self.unit * count for (one, other), count in inner.items()},
            label,
        )
        self.entries = {(self.at[one], self.at[other]): count for (one, other), count in inner.items()}

    def _pitch(self) -> float:
        columns = len(self.flow.columns.rows)
        return max(float(PITCH), min(260.0, (WIDTH - PITCH) / max(1, columns - 1)))

    def _x(self, column: int) -> float:
        return round(MARGIN + column * self._pitch(), 1)

    def finish(self, transitions: Mapping[Pair, int]) -> Picture:
        returns = self._ways_back(transitions)
        top = MARGIN + (_RISE * len(returns) + 8 if returns else 0)
        ground = round(top + self.layout.height + FALL, 1)
        falls: list[Fall] = []
        lost: list[GroundText] = []
        for column, row in enumerate(self.flow.columns.rows):
            here = list(self._falls(column, [one for one in row if isinstance(one, int)], top, ground))
            falls += here
            lost += self._ground(column, [fall.number for fall in here])
        lines = max((len(one.lines) for one in lost), default=0)
        return Picture(
            width=round(self._x(len(self.flow.columns.rows) - 1) + PITCH, 1),
            height=round(ground + (26 + 13 * lines if lost else 4), 1),
            ground=ground,
            states=[self._state(one, top) for one in self.flow.shown if self.at[one] in self.layout.bars],
            ribbons=[self._ribbon(pair, segments, top) for pair, segments in sorted(self.layout.ribbons.items())],
            falls=falls,
            lost=lost,
            returns=[self._return(level, pair, count, top) for level, (pair, count) in enumerate(returns)],
        )

    def _state(self, number: int, top: float) -> DrawnState:
        state, span = self.states[number], self.layout.bars[self.at[number]]
        x, y = self._x(self.flow.columns.at[self.at[number]]), round(top + span.top, 1)
        lines = self.names[number]
        first = y - 7 - _LINE * (1 + len(lines))
        styles = ["state", "goal" if state.goal else "end" if state.end else ""]
        return DrawnState(
            number=number if state.link else -1,
            x=x,
            y=y,
            height=round(span.bottom - span.top, 1),
            style=" ".join(filter(None, styles)),
            name=[PlacedText(x, round(first + _LINE * at, 1), line) for at, line in enumerate(lines)],
            visits=PlacedText(x, round(y - 7 - _LINE, 1), f"{state.n:,}"),
            measure=PlacedText(x, round(y - 7, 1), ""),
            tip=f"{shortened(state.name)}\n{state.text}" if state.text else shortened(state.name),
        )

    def _ribbon(self, pair: Pair, segments: Sequence[RibbonPart], top: float) -> DrawnRibbon:
        parts = []
        for at, segment in enumerate(segments):
            # A ribbon leaves a bar behind it, and a lane where it came.
            left = self._x(segment.column) + (BAR if not at else 0)
            right = self._x(segment.column + 1)
            (a, b), (c, d) = (tuple(round(top + y, 1) for y in span) for span in (segment.left, segment.right))
            middle = round((left + right) / 2, 1)
            parts.append(
                f"M{left:g} {a:g}C{middle:g} {a:g} {middle:g} {c:g} {right:g} {c:g}"
                f"V{d:g}C{middle:g} {d:g} {middle:g} {b:g} {left:g} {b:g}Z"
            )
        source, target = (shortened(self.states[self.flow.shown[one]].name) for one in pair)
        count = counted(self.entries[pair], self.noun)
        return DrawnRibbon("".join(parts), f"{source} → {target}: {count}")

    def _falls(self, column: int, row: Sequence[int], top: float, ground: float) -> Iterator[Fall]:
        """Of the states of a column, the lowest falls next to the bars, the others beyond it."""
        losing = [one for one in row if one in self.layout.bars and self.states[self.flow.shown[one]].lost]
        wide = {one: max(LEAST, self.unit * self.states[self.flow.shown[one]].lost) for one in losing}
        room = self._pitch() - BAR - _TURN - 22
        narrow = min(1.0, room / (sum(wide.values()) + 3 * len(wide))) if wide else 1.0
        x = self._x(column) + BAR
        offset = 0.0
        for index in sorted(losing, key=lambda index: -self.layout.bars[index].top):
            state = self.states[self.flow.shown[index]]
            foot = top + self.layout.bars[index].bottom
            high, across = wide[index], wide[index] * narrow
            part = state.stuck / state.lost  # the inner band
            inner, between = high * part, foot - high * part
            stuck = _turn(x, Reach(between, foot), offset, across * part, ground)
            over = _turn(x, Reach(foot - high, between), offset + across * part, across * (1 - part), ground, inner)
            yield Fall(
                number=self.flow.shown[index],
                stuck=stuck if state.stuck else "",
                handed_over=over if state.handed_over else "",
                tip=f"{shortened(state.name)}\n{lost_words(state.lost, state.stuck, state.handed_over)}",
            )
            offset += across + 3

    def _ground(self, column: int, numbers: Sequence[int]) -> Iterator[GroundText]:
        """One state that loses says how; of several, each says how many."""
        if not numbers:
            return
        x = round(self._x(column) + BAR + _TURN, 1)
        states = [self.states[number] for number in sorted(numbers, key=lambda one: -self.states[one].lost)]
        total = sum(state.lost for state in states)
        if len(states) == 1:
            (state,) = states
            lines = [f"{state.stuck:,} stuck"] if state.stuck else []
            lines += [f"{state.handed_over:,} to a person"] if state.handed_over else []
        else:
            lines = [f"{cut_name(state.name, self._pitch() - 26)} {state.lost:,}" for state in states[:4]]
            lines += [f"and {counted(len(states) - 4, 'more state')}"] if len(states) > 4 else []
        yield GroundText(x, numbers[0], f"{total:,}", lines)

    def _ways_back(self, transitions: Mapping[Pair, int]) -> list[tuple[Pair, int]]:
        """The most frequent first; the last is drawn highest."""
        column = self.flow.columns.at
        back = {
            pair: count
            for pair, count in transitions.items()
            if pair[0] in self.at and pair[1] in self.at and column[self.at[pair[0]]] > column[self.at[pair[1]]]
        }
        frequent = sorted(back.items(), key=lambda one: (-one[1], one[0]))[:MAX_RETURNS]
        return sorted(frequent, key=lambda one: column[self.at[one[0][0]]] - column[self.at[one[0][1]]])

    def _return(self, level: int, pair: Pair, count: int, top: float) -> Return:
        start, end = (self._x(self.flow.columns.at[self.at[one]]) + BAR / 2 for one in pair)
        tops = [top + self.layout.bars[self.at[one]].top - _LINE * (2 + len(self.names[one])) - 6 for one in pair]
        y = round(top - 10 - _RISE * level, 1)
        path = f"M{start:g} {tops[0]:g}C{start:g} {y:g} {start:g} {y:g} {start - 20:g} {y:g}"
        path += f"H{end + 20:g}C{end:g} {y:g} {end:g} {y:g} {end:g} {tops[1] - 6:g}"
        where = cut_name(self.states[pair[1]].name, start - end - 80)
        words = f"{count:,} {'goes' if count == 1 else 'go'} back to {where}"
        return Return(path, f"M{end:g} {tops[1]:g}l-4 -7h8z", PlacedText(round((start + end) / 2, 1), y - 5, words))


def lost_words(lost: int, stuck: int, handed_over: int) -> str:
    """`45 lost: 38 stuck, 7 handed to a person`."""
    parts = [f"{stuck:,} stuck"] if stuck else []
    parts += [f"{handed_over:,} handed to a person"] if handed_over else []
    return f"{lost:,} lost" + (f": {', '.join(parts)}" if parts else "")


def _turn(x: float, span: Reach, offset: float, across: float, ground: float, inside: float = 0.0) -> str:
    """A band that leaves a bar to the right and turns down to the ground, so far off; `inside` lies another."""
    inner_x, inner_y = _TURN + offset, _TURN + inside
    outer_x, outer_y = inner_x + across, inner_y + span.bottom - span.top
    top, bottom = span
    return (
        f"M{x:g} {top:.1f}a{outer_x:.1f} {outer_y:.1f} 0 0 1 {outer_x:.1f} {outer_y:.1f}V{ground:g}h{-across:.1f}"
        f"V{bottom + inner_y:.1f}a{inner_x:.1f} {inner_y:.1f} 0 0 0 {-inner_x:.1f} {-inner_y:.1f}Z"
    )


def cut_name(name: str, width: float) -> str:
    """A name in one line of a given width; what does not fit ends in …"""
    name = in_one_line(name[: 2 * MAX_NAME])
    if _measure(name) <= width:
        return name
    return name[: _fitting(name, width - _measure("…"))].rstrip() + "…"


def wrapped(name: str, width: float = 166) -> list[str]:
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
