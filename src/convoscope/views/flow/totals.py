"""What the rows of one conversation come to, over all states that it was in: made once, for all metrics that ask."""

from __future__ import annotations

from typing import NamedTuple

from convoscope.conversation import Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.views.flow.state_rows import state_rows


class Totals(NamedTuple):
    """Sums over the states of a conversation, and the states that stand out. None is "not measured"."""

    states: int
    progress: int
    stayed: list[str]
    """The states that did not lead on."""
    stall: int | None
    stuck: list[str]
    escalation: int
    escalated: list[str]
    """The states that handed over to somebody else."""
    revisit: int
    again: dict[str, int]
    """How often each state was entered again, where it was."""
    dwell_turns: float | None
    timed: int
    """States in which turns were timed."""
    latency_p95_ms: float
    guard_error: int | None
    failed: dict[str, int]
    """How often guards failed in each state, where they did."""
    fill_rate: float
    filling: int
    """States that require slots."""
    front_loaded: int
    latencies: list[float]
    """Of all turns that ran in a state, in milliseconds."""


@cached_on_argument
def totals(conversation: Conversation) -> Totals:
    """The totals of a conversation."""
    rows = state_rows(conversation)
    stalls = [row.stall for row in rows]
    dwells = [row.dwell_turns for row in rows]
    timed = [row.latency_p95_ms for row in rows if row.latency_p95_ms is not None]
    guards = [row.guard_error for row in rows]
    rates = [row.slot_fill_rate for row in rows if row.slot_fill_rate is not None]
    stayed = [row.state for row in rows if not row.progress]
    escalated = [row.state for row in rows if row.escalation]
    again = {row.state: row.revisit for row in rows if row.revisit}
    return Totals(
        states=len(rows),
        progress=len(rows) - len(stayed),
        stayed=stayed,
        stall=None if None in stalls else sum(stalls),  # type: ignore[arg-type]
        stuck=[row.state for row in rows if row.stall] if any(stalls) else [],
        escalation=len(escalated),
        escalated=escalated,
        revisit=sum(again.values()),
        again=again,
        dwell_turns=None if None in dwells else sum(dwells),  # type: ignore[arg-type]
        timed=len(timed),
        latency_p95_ms=sum(timed),
        guard_error=None if None in guards else sum(guards),  # type: ignore[arg-type]
        failed={row.state: row.guard_error for row in rows if row.guard_error} if any(guards) else {},
        fill_rate=sum(rates),
        filling=len(rates),
        front_loaded=sum([row.front_loaded or 0 for row in rows]),
        latencies=[latency for row in rows for latency in row.latencies],
    )
