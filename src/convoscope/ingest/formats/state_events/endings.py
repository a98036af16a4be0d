"""How a conversation ended, by the words of an event stream."""

from __future__ import annotations

from typing import Any

from convoscope.conversation import Outcome
from convoscope.ingest.formats.state_events.lines import JsonObject, folded
from convoscope.ingest.formats.state_events.timeline import error_of, text_of, truth

_NATURAL_ENDS = frozenset(
    {"terminal", "terminal_state", "completed", "complete", "done", "end", "ended", "goodbye", "handoff", "transferred"}
    | {"escalated", "hangup", "user_hangup", "agent_hangup", "caller_hangup", "user_stop", "agent_stop"}
)
_FORCED_ENDS = frozenset(
    {"max_turns", "max_steps", "max_duration", "timeout", "silence_timeout", "loop", "loop_detected", "unsafe"}
    | {"cancelled", "canceled", "aborted", "killed", "too_many_errors"}
)
_BROKEN = frozenset(
    {"error", "errored", "crash", "crashed", "unavailable", "backend_unavailable", "agent_unavailable"}
    | {
        f"{part}_error"
        for part in ("integration", "agent", "backend", "provider", "pipeline", "telephony", "transport")
    }
    | {f"{part}_error" for part in ("connection", "network", "system", "internal", "infrastructure", "api", "fatal")}
)
"""Ends that say that the integration broke, and nothing about the agent."""


def outcome_of(ending: JsonObject) -> Outcome:
    """The outcome that completed, stop_reason, final_status, error, errored and duration_s tell."""
    reason, status = text_of(ending.get("stop_reason")), text_of(ending.get("final_status"))
    error = error_of(ending.get("error"))
    if not error and ending.get("errored") and truth(ending["errored"]) is not False:
        error = status or reason or "errored"
    if not error:
        error = next((said for said in (status, reason) if folded(said) in _BROKEN), "")
    finished = True if folded(reason) in _NATURAL_ENDS else False if folded(reason) in _FORCED_ENDS else None
    return Outcome(
        completed=truth(ending.get("completed")),
        finished=finished,
        ended_reason=reason,
        final_status=status,
        error=error,
        duration=seconds_of(ending.get("duration_s")),
    )


def seconds_of(value: Any) -> float | None:
    """A duration; None where it cannot be one."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None
