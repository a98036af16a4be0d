"""How much work something is, counted and not timed: the same on every machine, whatever else it does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps(work: Callable[..., object], *arguments: object) -> int:
    """The lines of Python that are run. What a library in C does in one of them is not seen."""
    count = 0

    def see(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return see

    before = sys.gettrace()
    sys.settrace(see)
    try:
        work(*arguments)
    finally:
        sys.settrace(before)
    return count
