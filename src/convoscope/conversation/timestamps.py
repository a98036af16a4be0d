"""Times as logs write them: ISO 8601, or a number since the epoch or since the start."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

from convoscope.conversation.clock import ClockKind

# A number at least this large counts in this unit: 1e8 s is 1973, and so is 1e11 ms.
_UNITS = (
    (1e17, 1e9, "time_in_epoch_ns"),
    (1e14, 1e6, "time_in_epoch_us"),
    (1e11, 1e3, "time_in_epoch_ms"),
    (1e8, 1.0, "time_in_epoch_s"),
)


class Moment(NamedTuple):
    """Seconds, of which clock, and what had to be concluded to say so."""

    at: float
    kind: ClockKind
    inferred: str = ""


def moment(value: object) -> Moment | None:
    """Read a time; None where it is not one."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        try:
            return _from_number(float(value))
        except OverflowError:
            return None
    if isinstance(value, str):
        text = value.strip()
        try:
            return _from_number(float(text))
        except ValueError:
            return _from_iso(text)
    return None


def _from_number(number: float) -> Moment | None:
    if not math.isfinite(number):
        return None
    for least, per_second, inferred in _UNITS:
        if number >= least:
            return Moment(number / per_second, "wall", inferred)
    return Moment(number, "relative", "time_from_start")


def _from_iso(text: str) -> Moment | None:
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return None
    if when.tzinfo is None:
        return Moment(when.replace(tzinfo=UTC).timestamp(), "wall", "time_zone_taken_as_utc")
    return Moment(when.timestamp(), "wall")
