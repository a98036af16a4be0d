"""Figures below each other, each with its interval: groups of one run, or the same figure before and after."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from convoscope.analysis.targets import LABELS, Check, check, target_text
from convoscope.analysis.words import (
    NOTHING,
    axis_text,
    counted,
    interval_text,
    name_text,
    reason_text,
    short_name,
    value_text,
)
from convoscope.errors import UsageError
from convoscope.metrics.declaration import LOWER, RATIO, SHARE
from convoscope.report.plot.drawing import (
    ACCENT,
    BAD,
    BAD_TEXT,
    BARS,
    GOOD,
    INK,
    INK2,
    INK3,
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
from convoscope.runs.distributions import round_width
from convoscope.runs.run import Run
from convoscope.runs.summary import Summary, empty_figure
from convoscope.statistics.summary import Figure

FEW = 20
"""Of fewer conversations nothing is concluded: their interval is hatched."""
MOST = 30
"""Rows of a picture; the others are counted."""
_LEFT, _RIGHT = SIDE + 210, WIDTH - SIDE - 260
_BAR = 14


class _Row(NamedTuple):
    label: str
    figure: Figure | None
    before: Figure | None = None


def groups_svg(run: Run, figure: Figure, by: Sequence[str], targets: tuple[str, ...]) -> str:
    """One row for each group of a run, worst first."""
    groups = _groups(run.summary, figure, by)
    rows = sorted((_Row(label, one) for label, one in groups.items()), key=_worst_first)
    names = " and ".join(by)
    heading = Heading(
        run.summary.by_key[figure.key].question,
        f"By {names}. All: {figure_words(run, figure)}",
        f"{name_text(figure)} by {names}, run {run.name}",
        _note(rows, targets_of(run, figure, targets), _left_out(run.summary, by)),
    )
    return _svg(heading, rows, targets_of(run, figure, targets), pairs=False)


def before_after_svg(run: Run, before: Run, figure: Figure, by: Sequence[str], targets: tuple[str, ...]) -> str:
    """The same figure in two runs: over all conversations, and for each group that both may have."""
    earlier = figure_like(before.summary, figure)
    rows = [_Row("all", figure, earlier)]
    if by:
        after, earlier_groups = _groups(run.summary, figure, by), _groups(before.summary, figure, by)
        paired = [_Row(label, after.get(label), earlier_groups.get(label)) for label in {**after, **earlier_groups}]
        rows += sorted(paired, key=_worst_first)
    else:
        rows += _reductions(run, before, figure)
    names = f", by {' and '.join(by)}" if by else ""
    then_words = figure_words(before, earlier) if earlier is not None and earlier.value is not None else "not measured"
    heading = Heading(
        run.summary.by_key[figure.key].question,
        f"After ({run.name}): {figure_words(run, figure)}. Before ({before.name}): {then_words}",
        f"{name_text(figure)}{names}, run {run.name} against {before.name}",
        _note(rows, targets_of(run, figure, targets), ""),
    )
    return _svg(heading, rows, targets_of(run, figure, targets), pairs=True)


def figure_like(summary: Summary, figure: Figure) -> Figure | None:
    """The figure of another run, or of a group, that has the same name."""
    return next((one for one in summary.figures if name_text(one) == name_text(figure)), None)


def _reductions(run: Run, before: Run, figure: Figure) -> list[_Row]:
    """Other reductions in the same unit: p50, p95."""
    rows = []
    for other in run.summary.figures:
        same = (other.key, other.judge, other.unit) == (figure.key, figure.judge, figure.unit)
        if same and not figure.reduction and other.reduction and other.value is not None:
            rows.append(_Row(other.reduction, other, figure_like(before.summary, other)))
    return rows


def _groups(summary: Summary, figure: Figure, by: Sequence[str]) -> dict[str, Figure]:
    """The figure of each group by these dimensions; one without a value says why."""
    groups = [group for group in summary.groups if sorted(group.by) == sorted(by)]
    if not groups:
        there = sorted(
            {", ".join(group.by) for group in summary.groups} | {", ".join(one.by) for one in summary.small_groups}
        )
        small = [one for one in summary.small_groups if sorted(one.by) == sorted(by)]
        problem = (
            f"the groups by {', '.join(by)} are too small" if small else f"the run has no groups by {', '.join(by)}"
        )
        hint = f"score again with --by {','.join(by)}" + (
            f"; the run has groups by {'; '.join(there)}" if there else ""
        )
        raise UsageError(problem, hint=hint)
    by_label: dict[str, Figure] = {}
    for group in groups:
        label = ", ".join(short_name(group.by[name]) for name in by)
        same = (one for one in group.metrics if name_text(one) == name_text(figure))
        empty = (
            empty_figure(summary.by_key[figure.key], one) for one in group.not_measured if figure.key in one.metrics
        )
        if (shown := next(same, None) or next(empty, None)) is not None:
            by_label[label] = shown
    return by_label


def _worst_first(row: _Row) -> tuple[bool, float, str]:
    figure = row.figure or row.before
    if figure is None or figure.value is None:
        return (True, 0.0, row.label)
    return (False, -figure.value if figure.better == LOWER else figure.value, row.label)


def _left_out(summary: Summary, by: Sequence[str]) -> str:
    for small in summary.small_groups:
        if sorted(small.by) == sorted(by) and small.groups:
            few = f"{counted(small.groups, 'group')} of fewer than {small.minimum} conversations"
            return f"{few} ({counted(small.conversations, 'conversation')}) are not drawn."
    return ""


def _note(rows: Sequence[_Row], checks: Sequence[Check], left_out: str) -> str:
    words = [f"Target {one.text}." for one in checks]
    if any(_is_few(one) for row in rows for one in (row.figure, row.before)):
        words.append(f"Hatched: fewer than {FEW} conversations, too few to conclude.")
    if len(rows) > MOST:
        words.append(f"{counted(len(rows) - MOST, 'more group')} not drawn.")
    return " ".join([*words, left_out]).strip()


def _svg(heading: Heading, rows: Sequence[_Row], checks: Sequence[Check], *, pairs: bool) -> str:
    shown = rows[:MOST]
    step = 58 if pairs else 34
    top, height = heading.height + 34, 34 + step * len(shown) + 48
    drawing = heading.begin(height, "; ".join(_row_words(row, pairs) for row in shown))
    scale = _scale([one for row in shown for one in (row.figure, row.before) if one is not None], checks)
    floor = top + step * len(shown)
    unit = next((one.unit for row in shown for one in (row.figure, row.before) if one is not None), "")
    for tick in scale.ticks:
        drawing.line(scale.x(tick), top, scale.x(tick), floor, LINE)
        drawing.text(scale.x(tick), floor + 18, axis_text(tick, unit), size=12, colour=INK2, anchor="middle")
    drawing.text((_LEFT + _RIGHT) / 2, floor + 38, axis_name(unit), size=12.5, colour=INK2, anchor="middle")
    drawing.text(_RIGHT + 18, top - 12, "value, 95 % interval", size=12, colour=INK3)
    drawing.text(WIDTH - SIDE, top - 12, "conversations", size=12, colour=INK3, anchor="end")
    for held in checks[:1]:
        x = scale.x(held.target.value)
        drawing.line(x, top, x, floor, BAD, width=1.5, dots="2 4")
        words = f"target {target_text(held.target, held.figure.unit)}"
        drawing.text(x, top - 8, words, size=12, colour=BAD_TEXT, anchor="middle")
    for index, row in enumerate(shown):
        y = top + step * (index + 0.5)
        drawing.text(SIDE, y + 5, row.label, width=_LEFT - SIDE - 14)
        if pairs:
            _bar(drawing, scale, y - 12, row.before, (), "before")
            _bar(drawing, scale, y + 12, row.figure, checks, "after")
        else:
            _bar(drawing, scale, y, row.figure, checks, "")
    return drawing.svg


def _bar(drawing: Drawing, scale: Axis, y: float, figure: Figure | None, checks: Sequence[Check], side: str) -> None:
    x = _RIGHT + 18
    # A colour never speaks alone.
    verdict = _verdict(figure, checks)
    if other := ", ".join(filter(None, (side, verdict))):
        drawing.text(_LEFT - 8, y + 4, other, size=12, colour=INK3, anchor="end")
    if figure is None or figure.value is None:
        reason = "no such group" if figure is None else reason_text(figure.reason)
        drawing.text(x, y + 5, f"{NOTHING} {reason}", size=13, colour=INK3, width=WIDTH - SIDE - x)
        return
    words = f"{side}: {_words(figure)}" if side else _words(figure)
    if figure.interval is not None:
        low = scale.low if figure.interval.low is None else figure.interval.low
        high = scale.high if figure.interval.high is None else figure.interval.high
        start, width = scale.x(low), max(scale.x(high) - scale.x(low), 2)
        fill, opacity = _colour(figure, verdict, side)
        drawing.box(start, y - _BAR / 2, width, _BAR, fill, opacity=opacity, tip=words)
    if side == "before":
        drawing.diamond(scale.x(figure.value), y, INK2)
    else:
        drawing.line(scale.x(figure.value), y - _BAR / 2 - 2, scale.x(figure.value), y + _BAR / 2 + 2, INK, width=2.5)
    drawing.text(x, y + 5, value_text(figure.value, figure.unit), weight=620, width=100)
    drawing.text(x + 92, y + 5, interval_text(figure), size=12.5, colour=INK2, width=110)
    drawing.text(WIDTH - SIDE, y + 5, f"{figure.samples_measured:,}", size=12.5, colour=INK2, anchor="end", tip=words)


def _is_few(figure: Figure | None) -> bool:
    return figure is not None and figure.value is not None and figure.samples_measured < FEW


def _verdict(figure: Figure | None, checks: Sequence[Check]) -> str:
    """`met` or `missed` where the whole interval lies on one side of the target, and there are enough to tell."""
    if figure is None or figure.value is None or not checks or _is_few(figure):
        return ""
    verdict = check(figure, checks[0].target)
    return LABELS[verdict.outcome] if verdict.sure else ""


def _colour(figure: Figure, verdict: str, side: str) -> tuple[str, float]:
    if _is_few(figure):
        return "url(#hatch)", 1
    if verdict:
        return (GOOD if verdict == "met" else BAD), 0.55
    return (BARS, 1) if side == "before" else (ACCENT, 0.35)


def _words(figure: Figure) -> str:
    if figure.value is None:
        return f"not measured: {reason_text(figure.reason)}"
    interval = f", 95 % interval {interval_text(figure)}" if figure.interval else ", no interval"
    n = counted(figure.samples_measured, "conversation")
    return f"{value_text(figure.value, figure.unit)}{interval}, {n}" + (
        ", too few to conclude" if _is_few(figure) else ""
    )


def _row_words(row: _Row, pairs: bool) -> str:
    after = _words(row.figure) if row.figure is not None else "no such group"
    if not pairs:
        return f"{row.label}: {after}"
    return f"{row.label}: before {_words(row.before) if row.before is not None else 'no such group'}; after {after}"


def _scale(figures: Iterable[Figure], checks: Sequence[Check]) -> Axis:
    """Shares and ratios from 0 to 1; amounts from 0, or below where values are, to a round number."""
    values = [one.target.value for one in checks[:1]]
    unit = ""
    for figure in figures:
        unit = figure.unit
        ends = (figure.interval.low, figure.interval.high) if figure.interval else ()
        values += [one for one in (figure.value, *ends) if one is not None and math.isfinite(one)]
    if unit in (SHARE, RATIO) and all(0 <= one <= 1 for one in values):
        return Axis(0.0, 1.0, _LEFT, _RIGHT, 0.25)
    low, high = min([0.0, *values]), max([0.0, *values])
    step = round_width((high - low) / 5 or 1.0, whole=False)
    high = math.ceil(high / step) * step or step
    return Axis(math.floor(low / step) * step, high, _LEFT, _RIGHT, step)
