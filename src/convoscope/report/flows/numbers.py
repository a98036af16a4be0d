"""Numbers of states as they are printed: short as in a table, and never a zero for what is not zero."""

from __future__ import annotations

import math
from collections.abc import Iterable

from convoscope.analysis.flows.flow_matrix import Aspect
from convoscope.analysis.flows.state_table import Excluded, Rate
from convoscope.harmless import one_line
from convoscope.report.words import counted, reason_text

NOTHING = "·"
MAX_NAME = 80
MANY = 8
"""So many names in one line; the others are counted."""


def name(text: str) -> str:
    """A state, a flow or another name out of a log, fit for one cell."""
    return one_line(text, MAX_NAME) or '""'


def node(flow: str, state: str) -> str:
    """A state and the flow that it belongs to."""
    return f"{name(flow)} / {name(state)}"


def figure(value: float | None, digits: int = 2, most: float = math.inf) -> str:
    """A number with the digits that it needs, at least one: 0.0, 0.38. What is less than `most` never prints as it."""
    if value is None:
        return NOTHING
    least = 10**-digits
    if 0 < value < least / 2:
        return f"<{least:g}"
    if most - least / 2 <= value < most:
        return f">{most - least:g}"
    return str(round(float(value), digits) + 0.0)


def share_text(rate: Rate) -> str:
    """A share between 0 and 1."""
    return figure(rate.value, most=1.0)


def points(aspect: Aspect) -> str:
    """Points of ten."""
    return figure(aspect.score, 1, most=10.0)


def interval(low: float | None, high: float | None, digits: int = 2) -> str:
    """From where to where; nothing where there is no interval."""
    return "" if low is None or high is None else f"{low:.{digits}f}–{high:.{digits}f}"


def between(rate: Rate) -> str:
    return interval(rate.low, rate.high)


def names(found: Iterable[str], most: int = MANY) -> str:
    """Some names, and how many more there are."""
    every = [name(one) for one in found]
    more = len(every) - most
    return ", ".join(every[:most]) + (f" and {more:,} more" if more > 0 else "")


def reasons_line(found: Iterable[tuple[str, str]]) -> str:
    """Why dots stand in some columns: `· not measured: stall (outcome unknown)`; nothing where there is none."""
    by_column: dict[str, dict[str, None]] = {}
    for column, reason in found:
        by_column.setdefault(column, {})[reason_text(reason)] = None
    parts = [f"{column} ({name('; '.join(reasons))})" for column, reasons in by_column.items()]
    return f"{NOTHING} not measured: {', '.join(parts)}" if parts else ""


def excluded_line(excluded: Iterable[Excluded]) -> str:
    """Conversations that are in no figure, and why; nothing where there is none."""
    every = tuple(excluded)
    told = [f"{one.n:,} of {name(one.flow)} ({name(reason_text(one.reason))})" for one in every[:MANY]]
    rest = sum(one.n for one in every[MANY:])
    if not told:
        return ""
    total = counted(sum(one.n for one in every), "conversation")
    return f"excluded, in no figure: {total}: {', '.join(told)}" + (f" and {rest:,} more" if rest else "")
