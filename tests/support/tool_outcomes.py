"""What is read from tool results, for tests of readers."""

from __future__ import annotations

from convoscope.conversation import ToolResult
from convoscope.views.result_fields import STATED
from convoscope.views.tool_outcomes import tool_outcome


def stated(result: ToolResult) -> tuple[bool | None, str]:
    """Whether a result states success, and its error; None where it states neither."""
    outcome = tool_outcome(result)
    return (outcome.worked if outcome.basis == STATED else None), outcome.error
