"""What was set aside while an item was tidied: where, why, and the value as it came."""

from __future__ import annotations

from typing import Any, NamedTuple


class Warned(NamedTuple):
    """One thing in a payload that could not be taken as it came."""

    path: str
    """Where it stands in the payload, such as `tool_calls[1].parameters`; "" is the payload itself."""
    code: str
    message: str
    """What happened, as a sentence for a person."""
    value: Any = None
    """The original value, where it is not in the item any more."""


Warnings = list[Warned]
