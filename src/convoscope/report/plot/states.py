"""The states of a run as a heat-map: what goes wrong where."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from convoscope.analysis.flows import states
from convoscope.analysis.flows.state_table import FEW, Matrix, Rate, StateFigures
from convoscope.analysis.words import NOTHING, counted, percent_text, range_text, reason_text, state_name
from convoscope.errors import UsageError
from convoscope.report.plot.drawing import BAD, INK2, INK3, LINE, SIDE, WIDTH, Drawing, Heading
from convoscope.runs.run import Run

MOST = 30
"""States of a picture; the others are counted."""
_LEFT, _STEP = SIDE + 280, 32
_LEAST, _SPAN = 0.06, 0.50
"""How opaque a cell is: 6 to 56 %, so that ink on it can be read."""


class _Measure(NamedTuple):
    """A column: its name, where its value is, and whether much of it is good."""

    name: str
    rate: Callable[[StateFigures], Rate]
    good: bool = False


_MEASURES = (
    _Measure("stalls", lambda row: row.stall),
    _Measure("escalates", lambda row: row.escalation),
    _Measure("entered again", lambda row: row.revisit),
    _Measure("guard fails", lambda row: row.guard_error),
    _Measure("moves on", lambda row: row.progress, good=True),
    _Measure("slots filled", lambda row: row.slot_fill_rate, good=True),
)


def states_svg(run: Run, flow: str | None = None) -> str:
    """One row for each state, worst first, and one column for each measure."""
    matrix = states(run, flow=flow).matrix(neighbours=False)
    if not _states(matrix):
        hint = "logs of states are needed; see docs/formats/state-events.md"
        raise UsageError(f"{run.folder} has no states to draw", hint=hint)
    heading = Heading(
        "Which state breaks the flow?",
        f"{counted(matrix.conversations, 'conversation')}, {counted(len(_states(matrix)), 'state')}, worst first. "
        "Share of the conversations in a state: the darker, the worse.",
        f"states{f' of {flow}' if flow else ''}, run {run.name}",
        _note(matrix),
    )
    rows = _shown(matrix)
    drawing = heading.begin(44 + _STEP * len(rows) + 8, "; ".join(map(_words, rows)))
    width = (WIDTH - SIDE - _LEFT - 60) / len(_MEASURES)
    top = heading.height + 44
    drawing.text(_LEFT + 46, top - 12, "n", size=12.5, colour=INK2, anchor="end")
    for index, measure in enumerate(_MEASURES):
        x = _LEFT + 60 + index * width
        drawing.text(x + width / 2, top - 12, measure.name, size=12.5, colour=INK2, anchor="middle")
    for number, row in enumerate(rows):
        y = top + number * _STEP
        drawing.line(SIDE, y, WIDTH - SIDE, y, LINE)
        drawing.text(SIDE, y + 21, state_name(row.flow, row.state), size=13, mono=True, width=_LEFT - SIDE - 20)
        drawing.text(_LEFT + 46, y + 21, f"{row.n:,}", size=13, colour=INK2, anchor="end")
        for index, measure in enumerate(_MEASURES):
            _cell(drawing, _LEFT + 60 + index * width, y, width, measure, row)
    return drawing.svg


def _cell(drawing: Drawing, x: float, y: float, width: float, measure: _Measure, row: StateFigures) -> None:
    rate = measure.rate(row)
    if rate.value is None:
        tip = f"{measure.name}: not measured: {reason_text(rate.reason)}"
        drawing.text(x + width / 2, y + 21, NOTHING, colour=INK3, anchor="middle", tip=tip)
        return
    bad = 1 - rate.value if measure.good else rate.value
    interval = range_text(rate.low, rate.high)
    tip = f"{measure.name} {percent_text(rate.value)}, n {rate.n:,}" + (
        f", 95 % interval {interval}" if interval else ""
    )
    few = rate.n < FEW
    opacity = 1 if few else _LEAST + _SPAN * min(max(bad, 0.0), 1.0)
    drawing.box(x + 1, y + 1, width - 2, _STEP - 2, "url(#hatch)" if few else BAD, opacity=opacity, tip=tip)
    if few:  # Letters on hatching need paper behind them.
        drawing.box(x + width / 2 - 24, y + 7, 48, 19, "#ffffff", opacity=0.85)
    drawing.text(x + width / 2, y + 21, percent_text(rate.value), size=13, anchor="middle", tip=tip)


def _note(matrix: Matrix) -> str:
    words: list[str] = []
    if any(measure.rate(row).n < FEW for row in _shown(matrix) for measure in _MEASURES if measure.rate(row).n):
        words.append(f"Hatched: fewer than {FEW} conversations, too few to conclude.")
    if any(measure.rate(row).value is None for row in _shown(matrix) for measure in _MEASURES):
        words.append(f"{NOTHING} not measured.")
    if ends := len(matrix.rows) - len(_states(matrix)):
        words.append(f"{counted(ends, 'end')} of flows not drawn.")
    if (more := len(_states(matrix)) - MOST) > 0:
        words.append(f"{counted(more, 'more state')} not drawn.")
    if matrix.untested:
        words.append(f"{counted(len(matrix.untested), 'declared state')} in no conversation.")
    if broken := sum(one.n for one in matrix.excluded):
        words.append(f"In no figure: {counted(broken, 'conversation')} whose integration broke.")
    return " ".join(words)


def _shown(matrix: Matrix) -> list[StateFigures]:
    """Worst first, and those of few conversations last."""
    return sorted(_states(matrix), key=lambda row: row.n < FEW)[:MOST]


def _states(matrix: Matrix) -> list[StateFigures]:
    """Those that can be left: an end leads nowhere."""
    return [row for row in matrix.rows if not row.terminal]


def _words(row: StateFigures) -> str:
    cells = [(measure.name, measure.rate(row).value) for measure in _MEASURES]
    shown = ", ".join(f"{name} {percent_text(value)}" for name, value in cells if value is not None)
    return f"{state_name(row.flow, row.state)}, n {row.n:,}: {shown or 'nothing measured'}"
