"""How the values of a metric spread, with the marks that people ask for."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import NamedTuple

from convoscope.analysis.targets import Check, target_text
from convoscope.analysis.words import axis_text, name_text, value_text
from convoscope.errors import UsageError
from convoscope.metrics.declaration import RATIO, SHARE
from convoscope.report.plot.drawing import (
    ACCENT,
    BAD,
    BAD_TEXT,
    BARS,
    INK2,
    LINE,
    SIDE,
    WIDTH,
    Axis,
    Drawing,
    Heading,
    axis_name,
    figure_words,
    targets_of,
)
from convoscope.runs.distributions import Histogram, distribution
from convoscope.runs.ranking import Headline
from convoscope.runs.run import Run
from convoscope.statistics.summary import Figure

_HEIGHT, _LABELS, _AXIS = 340, 74, 46
"""Of the whole, of the labels above the bars, of the axis below."""
_LEFT, _RIGHT = SIDE + 40, WIDTH - SIDE


class _Mark(NamedTuple):
    value: float
    words: str
    target: bool = False


def distribution_svg(run: Run, figure: Figure, targets: tuple[str, ...]) -> str:
    """Bars for counted values; median, 95th percentile and targets as lines."""
    declared = run.summary.by_key[figure.key]
    if declared.observes == "group":
        hint = "give --by or --against: it is computed over all conversations at once, and has no distribution"
        raise UsageError(f"{figure.key} has one value for a group of conversations", hint=hint)
    headline = Headline(figure.metric, figure.variant, figure.judge, figure.unit, figure.better)
    spread = distribution(run, headline)
    histogram = spread and (spread.by_subject or spread.by_conversation)
    if spread is None or histogram is None:
        raise UsageError(f"{figure.key} has no distribution that could be drawn", hint="see `convoscope report`")
    subject = spread.observes.replace("_", " ") if spread.by_subject else "conversation"
    checks = [check for name in ("", "p95") for check in _checks(run, figure, name, targets)]
    marks = _marks(run, histogram, figure, checks)
    heading = Heading(
        declared.question,
        figure_words(run, figure),
        f"{name_text(figure)}, run {run.name}",
        _note(histogram, figure.unit, checks),
    )
    unit = figure.unit
    span = f"from {value_text(histogram.least, unit)} to {value_text(histogram.most, unit)}"
    words = [f"{histogram.n:,} {subject}s", *(mark.words for mark in marks), span]
    drawing = heading.begin(_HEIGHT, ", ".join(words))
    across = Axis(histogram.bins[0].low, histogram.bins[-1].high, _LEFT, _RIGHT)
    _draw_bars(drawing, heading.height, across, histogram, unit, subject, checks)
    _draw_marks(drawing, heading.height, across, marks)
    return drawing.svg


def _checks(run: Run, figure: Figure, reduction: str, targets: tuple[str, ...]) -> list[Check]:
    same = (figure.key, reduction, figure.judge)
    figures = [one for one in run.summary.figures if (one.key, one.reduction, one.judge) == same]
    return [check for one in figures for check in targets_of(run, one, targets)]


def _note(histogram: Histogram, unit: str, checks: Sequence[Check]) -> str:
    words = []
    if histogram.least < histogram.bins[0].low:
        words.append(f"The first bar reaches down to {value_text(histogram.least, unit)}.")
    if histogram.most > histogram.bins[-1].high:
        words.append(f"The last bar reaches to {value_text(histogram.most, unit)}.")
    words += [f"Target {'for p95 ' if one.figure.reduction else ''}{one.text}." for one in checks]
    if any(_is_beyond(one.low, one.high, checks) for one in histogram.bins if one.n):
        words.append("Orange bars lie beyond the target.")
    return " ".join(words)


def _marks(run: Run, histogram: Histogram, figure: Figure, checks: Sequence[Check]) -> list[_Mark]:
    """Median and 95th percentile of amounts, the value of shares, and targets."""
    marks: list[_Mark] = []
    if figure.unit in (SHARE, RATIO):
        if figure.value is not None:
            marks.append(_Mark(figure.value, f"value {value_text(figure.value, figure.unit)}"))
    elif histogram.n > 1:
        for name, reduction, value in (("median", "p50", histogram.p50), ("95th percentile", "p95", histogram.p95)):
            shown = _as_in_summary(run, figure, reduction, value)
            marks.append(_Mark(shown, f"{name} {value_text(shown, figure.unit)}"))
    for check in checks[:2]:
        reduction = f"{check.figure.reduction} " if check.figure.reduction else ""
        marks.append(_Mark(check.target.value, f"target {reduction}{target_text(check.target, figure.unit)}", True))
    return marks


def _as_in_summary(run: Run, figure: Figure, reduction: str, value: float) -> float:
    """A percentile to the last bit as the summary has it, if it is of the same values: so that it prints the same."""
    same = (figure.key, reduction, figure.judge)
    for other in run.summary.metrics:
        is_same = (other.key, other.reduction, other.judge) == same
        if is_same and other.value is not None and isclose(other.value, value):
            return other.value
    return value


def _draw_bars(
    drawing: Drawing, top: float, across: Axis, histogram: Histogram, unit: str, subject: str, checks: Sequence[Check]
) -> None:
    """The bars from left to right; those that lie wholly beyond a target of the headline in another colour."""
    bins = histogram.bins
    floor, ceiling = top + _HEIGHT - _AXIS, top + _LABELS
    most = max(one.n for one in bins)
    for bin in bins:
        height = (floor - ceiling) * bin.n / most
        x, width = across.x(bin.low), across.x(bin.high) - across.x(bin.low)
        fill = BAD if _is_beyond(bin.low, bin.high, checks) else BARS
        where = f"{axis_text(bin.low, unit)} to {value_text(bin.high, unit)}"
        drawing.box(x + 1, floor - height, width - 2, height, fill, tip=f"{where}: {bin.n:,} of {histogram.n:,}")
        if bin.n:
            drawing.text(x + width / 2, floor - height - 5, f"{bin.n:,}", size=11, colour=INK2, anchor="middle")
    drawing.line(_LEFT, floor, _RIGHT, floor, LINE, width=1.5)
    edges = [one.low for one in bins] + [bins[-1].high]
    for edge in edges[:: max(1, -(-(len(edges) - 1) // 8))]:
        drawing.text(across.x(edge), floor + 18, axis_text(edge, unit), size=12, colour=INK2, anchor="middle")
    drawing.text((_LEFT + _RIGHT) / 2, floor + 38, axis_name(unit), size=12.5, colour=INK2, anchor="middle")
    drawing.text(SIDE, top + _LABELS - 24, f"{subject}s", size=12.5, colour=INK2)


def _draw_marks(drawing: Drawing, top: float, across: Axis, marks: Sequence[_Mark]) -> None:
    floor = top + _HEIGHT - _AXIS
    heights = [top + 16 + 16 * row for row in range(len(marks))]
    for y, mark in zip(heights, marks, strict=True):
        x = across.x(mark.value)
        drawing.line(x, y, x, floor, BAD if mark.target else ACCENT, width=1.5, dots="2 4" if mark.target else "")
    for y, mark in zip(heights, marks, strict=True):
        x, colour = across.x(mark.value), BAD_TEXT if mark.target else ACCENT
        if x > (_LEFT + _RIGHT) / 2:
            drawing.text(x - 6, y, mark.words, size=13, colour=colour, anchor="end", halo=True)
        else:
            drawing.text(x + 6, y, mark.words, size=13, colour=colour, halo=True)


def _is_beyond(low: float, high: float, checks: Sequence[Check]) -> bool:
    targets = [check.target for check in checks if not check.figure.reduction]
    middle = (low + high) / 2
    return any(not (one.is_met_by(low) or one.is_met_by(middle) or one.is_met_by(high)) for one in targets)
