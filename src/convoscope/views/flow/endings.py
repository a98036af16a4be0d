"""How a conversation ended, as far as the log and the flow's declaration tell."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from convoscope.conversation import Conversation, Flow
from convoscope.conversation.flow import ESCALATIONS, Terminal
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.identifiers import name_words, snake_case
from convoscope.views.flow.walk import walk

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


@lru_cache(maxsize=4096)
def is_unsafe_stop(reason: str) -> bool:
    return not _UNSAFE.isdisjoint(name_words(reason))


@lru_cache(maxsize=4096)
def is_loop_stop(reason: str) -> bool:
    return not _LOOP.isdisjoint(name_words(reason))


@lru_cache(maxsize=4096)
def is_turn_limit(reason: str) -> bool:
    said = set(name_words(reason))
    return any(words <= said for words in _LIMIT)


def is_terminal_stop(conversation: Conversation) -> bool | None:
    """Whether the reason for its end is an end of the flow; None where nothing tells.

    The conversation came to a state that ends the flow, or the reason names one or says so in words. A limit of
    turns, a loop or a stop for safety is none, wherever it happened.
    """
    reason = conversation.outcome.ended_reason
    if is_turn_limit(reason) or is_unsafe_stop(reason) or is_loop_stop(reason):
        return False
    ends = _ends(conversation.flow)
    if walk(conversation).last in ends.terminals or (reason and snake_case(reason) in ends.names):
        return True
    if reason and (said := _said_end(reason)) is not None:
        return said
    # Where the flow declares its ends, it stopped before any of them; else words that nobody knows decide nothing.
    return False if ends.declared else None


@lru_cache(maxsize=4096)
def _said_end(reason: str) -> bool | None:
    """Whether the words of a reason say that the flow came to its end."""
    said = set(name_words(reason))
    # A caller who ended the call hung up: that is no end of the flow.
    words = said & _TERMINAL - (_END if said & _CALLER else frozenset())
    if words and said.isdisjoint(_UNDONE):
        return True
    if not said.isdisjoint(_UNDONE) or (not said.isdisjoint(_BROKEN_OFF | _END) and said.isdisjoint(_AGENT)):
        return False
    return None


class _Ends(NamedTuple):
    """The states that end a flow."""

    terminals: Mapping[str, Terminal]
    names: frozenset[str]
    """The same, folded as reasons are."""
    declared: bool
    """The flow declares some of them itself."""
    succeeds: bool
    """Some are a success."""


def _ends(flow: Flow | None) -> _Ends:
    return _USUAL_ENDS if flow is None else _ends_of_flow(flow)


@cached_on_argument
def _ends_of_flow(flow: Flow) -> _Ends:
    """Kept with the flow, which many conversations share."""
    return _ends_of(flow.terminals, declared=any(state.terminal for state in flow.states))


def _ends_of(terminals: Mapping[str, Terminal], *, declared: bool) -> _Ends:
    names = frozenset(name for name in map(snake_case, terminals) if name)
    return _Ends(terminals, names, declared, "success" in terminals.values())


_USUAL_ENDS = _ends_of(dict.fromkeys(ESCALATIONS, "escalation"), declared=False)


@cached_on_argument
def contract_of(flow: Flow) -> frozenset[str]:
    """The final statuses that a flow's contract names, folded."""
    return frozenset(map(snake_case, flow.final_status or ()))


def terminal_of(conversation: Conversation) -> Terminal:
    """How the state that it ended in ends a conversation."""
    return _ends(conversation.flow).terminals.get(walk(conversation).last, "")


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
        status, flow = snake_case(outcome.final_status), conversation.flow
        if flow is not None and flow.final_status is not None:
            return status in contract_of(flow)
        if status in _SUCCESS or status in _FAILURE:
            return status in _SUCCESS
    ended = terminal_of(conversation)
    if ended in ("success", "failure", "escalation"):
        return ended == "success"
    return False if outcome.ended_reason and _ends(conversation.flow).succeeds else None
