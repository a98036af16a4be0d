"""When something happened, and by whose clock."""

from __future__ import annotations

from math import isfinite
from typing import Literal

import msgspec

ClockKind = Literal["wall", "audio", "relative"]


class Clock(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One source of times. Two clocks can be compared only where both say how they relate (`offset`)."""

    id: str
    kind: ClockKind
    source: str = ""
    """The file, field or service that the times were read from."""
    resolution: float | None = None
    """The smallest step this clock can tell, in seconds: 0.2 for 200 ms ticks, 1.0 for whole seconds."""
    offset: float | None = None
    """Seconds to add to reach the conversation's common time; None where that is not known."""
    estimated: bool = False
    """True where `offset` was estimated, for example from texts that two logs share."""


class Time(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, gc=False):
    """A moment, or a stretch where `until` is known, in seconds of the named clock."""

    at: float
    clock: str = "wall"
    until: float | None = None

    def __post_init__(self) -> None:
        if not isfinite(self.at) or not (self.until is None or isfinite(self.until)):
            raise ValueError("a time must be a finite number of seconds")
