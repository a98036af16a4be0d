"""The outcomes that a tool's result can have, and what all ways of reading results share."""

from __future__ import annotations

from itertools import islice
from typing import Literal, NamedTuple

from convoscope.conversation import Json

Status = Literal["succeeded", "failed", "not_stated"]
SUCCEEDED: Status = "succeeded"
FAILED: Status = "failed"
NOT_STATED: Status = "not_stated"
STATED, INFERRED = "stated", "inferred"
HOUSE_RULE = "--tool-failed"
"""The name in the extras of a result under which the user's own rule is kept."""
UNTRIED_RULE = "--tool-failed not tried"
"""The same of a rule that cannot be tried on the result."""

EMPTY, NOTHING_FOUND = "empty_tool_result", "tool_found_nothing"
UNSTATED, CONTRADICTS = "tool_result_says_neither", "tool_result_contradicts_itself"
RULE_NOT_TRIED = "tool_rule_not_tried"


class ToolOutcome(NamedTuple):
    """What a result says."""

    status: Status
    basis: str = STATED
    """`stated`, or `inferred` for a success that only the data show; empty where nothing is stated."""
    sign: str = ""
    """What decided it."""
    error: str = ""
    """Of a failure: what the result says of it."""
    reason: str = ""
    """Where it is not stated: why."""
    is_strong: bool = True
    """Of a failure: no other reading of the same words is likely, also inside of another result."""

    @property
    def failed(self) -> bool:
        return self.status == FAILED

    @property
    def worked(self) -> bool | None:
        """Whether it succeeded; None where that is not stated."""
        return None if self.status == NOT_STATED else self.status == SUCCEEDED


def failed_by(sign: str, error: str, is_strong: bool = True) -> ToolOutcome:
    return ToolOutcome(FAILED, STATED, sign[:80], error[:LONGEST_ERROR], "", is_strong)


def unstated(reason: str, sign: str = "") -> ToolOutcome:
    return ToolOutcome(NOT_STATED, "", sign[:80], "", reason)


LONGEST_ERROR = 500
NOTHING = unstated(EMPTY)
NO_DATA = unstated(NOTHING_FOUND)
NEITHER = unstated(UNSTATED)
DATA = ToolOutcome(SUCCEEDED, INFERRED, "returned data")
DEEPEST = 4
"""Levels of a result that are read."""


def is_filled(value: Json, depth: int = 0) -> bool:
    """Whether there is anything in it: an empty list inside of a list is nothing."""
    if isinstance(value, str):
        return value != "" and not value.isspace()
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list | tuple):
        return value is not None
    # A loop, because this runs for each field of each result, and a generator costs more than the rest.
    for inner in islice(value, 50):  # noqa: SIM110
        if depth > DEEPEST or is_filled(inner, depth + 1):
            return True
    return False
