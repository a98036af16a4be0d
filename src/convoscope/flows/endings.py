"""How a conversation ended, as far as the log and the flow's declaration tell."""

from __future__ import annotations

import re
from functools import lru_cache

from convoscope.conversation import Conversation
from convoscope.conversation.flow import ESCALATIONS, Terminal
from convoscope.flows.visits import walk

_WORDS = re.compile(r"[^\W_]+")

# Words of stop reasons. A reason that says none of these is neither known as an end of the flow nor as another stop.
_TERMINAL = frozenset(
    ("terminal", "completed", "complete", "success", "succeeded", "done", "finished", "final", "goal", "end", "ended")
)
_UNSAFE = frozenset(("unsafe", "safety", "guardrail", "guardrails", "filtered", "blocked", "harmful"))
_LOOP = frozenset(("loop", "loops", "looping", "looped"))
_UNDONE = frozenset(("not", "no", "without", "error", "failed", "early"))
_END, _CALLER = frozenset(("end", "ended")), frozenset(("user", "caller", "customer", "client"))
_AGENT = frozenset(("agent", "assistant", "bot"))
_BROKEN_OFF = frozenset(
    ("hangup", "hung", "hang", "timeout", "timed", "abandoned", "dropped", "disconnected", "cancelled", "silence")
)
_LIMIT = tuple(
    frozenset(words.split())
    for words in ("max turns", "max turn", "turn limit", "turns limit", "max steps", "step limit", "too many turns")
)
_SUCCESS = frozenset(("completed", "complete", "success", "succeeded", "successful", "done", "resolved", "ok"))
_FAILURE = frozenset(("failed", "failure", "abandoned", "incomplete", "aborted", "timeout", "escalated", "unresolved"))


def folded(text: str) -> str:
    """`Max turns`, `max-turns` and `maxTurns` are one reason."""
    return "_".join(_words(text))


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[str, ...]:
    # Reasons and names of states repeat from conversation to conversation.
    return tuple(_WORDS.findall(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text).casefold()))


def is_unsafe_stop(reason: str) -> bool:
    return not _UNSAFE.isdisjoint(_words(reason))


def is_loop_stop(reason: str) -> bool:
    return not _LOOP.isdisjoint(_words(reason))


def is_turn_limit(reason: str) -> bool:
    said = set(_words(reason))
    return any(words <= said for words in _LIMIT)


def is_terminal_stop(conversation: Conversation) -> bool | None:
    """Whether the reason for its end is an end of the flow; None where nothing tells.

    The conversation came to a state that ends the flow, or the reason names one or says so in words. A limit of
    turns, a loop or a stop for safety is none, wherever it happened.
    """
    reason = conversation.outcome.ended_reason
    ends = _terminals(conversation)
    if is_turn_limit(reason) or is_unsafe_stop(reason) or is_loop_stop(reason):
        return False
    said_end = folded(reason)
    if walk(conversation).last in ends or (said_end and said_end in {folded(name) for name in ends}):
        return True
    if reason:
        said = set(_words(reason))
        # A caller who ended the call hung up: that is no end of the flow.
        words = said & _TERMINAL - (_END if said & _CALLER else frozenset())
        if words and said.isdisjoint(_UNDONE):
            return True
        if not said.isdisjoint(_UNDONE) or (not said.isdisjoint(_BROKEN_OFF | _END) and said.isdisjoint(_AGENT)):
            return False
    # Where the flow declares its ends, it stopped before any of them; else words that nobody knows decide nothing.
    declares = conversation.flow is not None and any(state.terminal for state in conversation.flow.states)
    return False if declares else None


def terminal_of(conversation: Conversation) -> Terminal:
    """How the state that it ended in ends a conversation."""
    return _terminals(conversation).get(walk(conversation).last, "")


def _terminals(conversation: Conversation) -> dict[str, Terminal]:
    return conversation.flow.terminals if conversation.flow is not None else dict.fromkeys(ESCALATIONS, "escalation")


def is_completed(conversation: Conversation) -> bool | None:
    """Whether the caller's task was done; None where neither the log nor the flow tells.

    The log's own flag decides; without one, its final status, by the flow's contract or in plain words; without
    that, the state that it ended in, where the flow declares what its ends are: one that is over, and reached
    no success, did not complete.
    """
    outcome = conversation.outcome
    if outcome.completed is not None:
        return outcome.completed
    if outcome.final_status:
        contract = conversation.flow.final_status if conversation.flow is not None else None
        status = folded(outcome.final_status)
        if contract is not None:
            return status in {folded(one) for one in contract}
        if status in _SUCCESS or status in _FAILURE:
            return status in _SUCCESS
    ended = terminal_of(conversation)
    if ended in ("success", "failure", "escalation"):
        return ended == "success"
    return False if outcome.ended_reason and "success" in _terminals(conversation).values() else None
