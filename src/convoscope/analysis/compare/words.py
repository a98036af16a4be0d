"""The words and number formats of comparisons."""

from __future__ import annotations

from convoscope.analysis.answer.model import Noun
from convoscope.analysis.compare.model import ComparedFigure
from convoscope.analysis.words import NOTHING, counted, number_text, value_text
from convoscope.metrics.declaration import COUNT, RATIO, SHARE


def amount_text(amount: float, unit: str) -> str:
    """A size of a difference: `6.1 points`, `0.88 s`."""
    if unit != SHARE:
        return value_text(amount, unit)
    number = number_text(amount, SHARE)
    return f"{number} {'point' if number == '1.0' else 'points'}"


def signed_text(amount: float | None, unit: str) -> str:
    """A difference without its unit, with its sign: `+6.1`, `-0.88`."""
    if amount is None:
        return NOTHING
    text = number_text(abs(amount), unit)
    return f"{'-' if amount < 0 else '+'}{text}"


def difference_text(amount: float | None, unit: str) -> str:
    """A difference with its unit: `+6.1 pts`, `-0.88 s`."""
    short = "pts" if unit == SHARE else "" if unit in (COUNT, RATIO) else unit
    return f"{signed_text(amount, unit)} {short}".rstrip() if amount is not None else NOTHING


def interval_text(row: ComparedFigure) -> str:
    """The 95 % interval of a difference: `+1.0 to +13.0`, `+1.0 or more`; a dot where there is none."""
    low, high = row.low, row.high
    if low is None and high is None:
        return NOTHING
    if high is None:
        return f"{signed_text(low, row.unit)} or more"
    if low is None:
        return f"{signed_text(high, row.unit)} or less"
    return f"{signed_text(low, row.unit)} to {signed_text(high, row.unit)}"


def needs_text(row: ComparedFigure, noun: Noun) -> str:
    """What would decide an open figure: `needs about 810 more scenarios`."""
    needs = rounded(row.needs or 0)
    return (
        f"needs about {counted(needs, 'more scenario')}"
        if row.paired
        else f"needs about {counted(needs, f'more {noun}')} a side"
    )


def rounded(count: int) -> int:
    """Two digits: how many would decide it is known no better."""
    size = max(0, len(str(count)) - 2)
    return round(count, -size)


def values_text(row: ComparedFigure) -> str:
    """`8.9 %, was 1.2 %`."""
    return f"{value_text(row.after, row.unit)}, was {value_text(row.before, row.unit)}"


def number_pair(low: float | None, high: float | None, unit: str) -> str:
    """Both ends of an interval: `+1.0 to +13.0`; nothing where one is open."""
    return "" if low is None or high is None else f"{signed_text(low, unit)} to {signed_text(high, unit)}"


def change_text(figure: ComparedFigure) -> str:
    """`+7.7 points, 95 % +3.4 to +12.0`."""
    interval = number_pair(figure.low, figure.high, figure.unit)
    unit = " points" if figure.unit == SHARE else "" if figure.unit in (COUNT, RATIO) else f" {figure.unit}"
    return f"{signed_text(figure.difference, figure.unit)}{unit}" + (f", 95 % {interval}" if interval else "")


def false_share_text(q: float) -> str:
    """What Benjamini and Hochberg say of a figure: `q 0.012`."""
    return "q < 0.001" if q < 0.001 else f"q {q:.3f}"
