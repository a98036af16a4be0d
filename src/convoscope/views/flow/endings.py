"""How a conversation ended, as far as the log and the declaration of the flow say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from convoscope.conversation import Conversation, Flow, Json
from convoscope.conversation.flow import Terminal
from convoscope.conversation.lazy import cached_on_argument
from convoscope.text.folding import name_words, snake_case
from convoscope.text.spoken.vocabulary import listed
from convoscope.views.end_reasons import (
    BROKEN,
    HANDED_OVER,
    IVR,
    OTHER,
    VOICEMAIL,
    handed_over_by,
    kind_of_reason,
    stated_reason,
)
from convoscope.views.flow.walk import walk
from convoscope.views.machines import NO_DIALOGUE, NO_USER_SPEECH, no_dialogue

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
# Verdicts as people and tools write them: of a final status, and of a label that a user names.
_PASS_WORDS = frozenset(
    listed(
        "pass passed passes success succeeded successful resolved solved completed complete done ok okay yes y "
        "true good correct right accepted satisfied positive thumbs_up like liked upvote"
    )
)
_FAIL_WORDS = frozenset(
    listed(
        "fail failed fails failure unsuccessful unresolved unsolved not_resolved not_solved incomplete "
        "not_completed abandoned aborted timeout escalated error no n false bad incorrect wrong rejected "
        "unsatisfied dissatisfied negative thumbs_down dislike disliked downvote"
    )
)


@lru_cache(maxsize=4096)
def passed_in_words(text: str) -> bool | None:
    """Whether a word says pass or fail; None where it says neither."""
    word = snake_case(text)
    return word in _PASS_WORDS if word in _PASS_WORDS or word in _FAIL_WORDS else None


@lru_cache(maxsize=4096)
def is_unsafe_stop(reason: str) -> bool:
    return not _UNSAFE.isdisjoint(name_words(reason))


@lru_cache(maxsize=4096)
def is_loop_stop(reason: str) -> bool:
    return not _LOOP.isdisjoint(name_words(reason))


@lru_cache(maxsize=4096)
def is_turn_limit(reason: str) -> bool:
    given = set(name_words(reason))
    return any(words <= given for words in _LIMIT)


def is_terminal_stop(conversation: Conversation) -> bool | None:
    """Whether the reason for its end is an end of the flow; None where that is unknown.

    The conversation came to a state that ends the flow, or the reason names one or says so in words. A limit of
    turns, a loop or a stop for safety is no end of the flow, wherever it happened.
    """
    reason = conversation.outcome.ended_reason
    if is_turn_limit(reason) or is_unsafe_stop(reason) or is_loop_stop(reason):
        return False
    ends = _ends(conversation.flow)
    if walk(conversation).last in ends.terminals or (reason and snake_case(reason) in ends.names):
        return True
    if reason and (is_end := _is_ending_reason(reason)) is not None:
        return is_end
    # Where the flow declares its ends, it stopped before any of them; else unknown words decide nothing.
    return False if ends.declared else None


@lru_cache(maxsize=4096)
def _is_ending_reason(reason: str) -> bool | None:
    """Whether the words of a reason say that the flow came to its end."""
    words = set(name_words(reason))
    # A caller who ended the call hung up: that is no end of the flow.
    ending = words & _TERMINAL - (_END if words & _CALLER else frozenset())
    if ending and words.isdisjoint(_UNDONE):
        return True
    if not words.isdisjoint(_UNDONE) or (not words.isdisjoint(_BROKEN_OFF | _END) and words.isdisjoint(_AGENT)):
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


@cached_on_argument
def _ends_of(flow: Flow) -> _Ends:
    """Kept with the flow, which many conversations share."""
    names = frozenset(name for name in map(snake_case, flow.terminals) if name)
    declared = any(state.terminal for state in flow.states)
    return _Ends(flow.terminals, names, declared, "success" in flow.terminals.values())


def _ends(flow: Flow | None) -> _Ends:
    return _ends_of(flow or _NO_FLOW)


_NO_FLOW = Flow(name="-")


@cached_on_argument
def contract_of(flow: Flow) -> frozenset[str]:
    """The final statuses that a flow's contract names, folded."""
    return frozenset(map(snake_case, flow.final_status or ()))


def terminal_of(conversation: Conversation) -> Terminal:
    """How the state that it ended in ends a conversation."""
    return _ends(conversation.flow).terminals.get(walk(conversation).last, "")


DONE, LOST, UNKNOWN = "done", "lost", "unknown"
OUTCOMES = (LOST, HANDED_OVER, UNKNOWN, DONE, *NO_DIALOGUE)
"""What came of a conversation, worst first; at the end those that are in no average."""
_NO_USER = {
    NO_USER_SPEECH: "the user said nothing",
    VOICEMAIL: "a mailbox answered",
    IVR: "a phone menu answered",
}


class OutcomeReading(NamedTuple):
    """Whether a conversation reached what it was for, and what says so."""

    done: bool | None
    evidence: str = ""
    other: str = ""
    """An outcome that is neither done nor lost: put through to a person, or no user talked with the agent."""

    @property
    def name(self) -> str:
        return self.other or (UNKNOWN if self.done is None else DONE if self.done else LOST)


def outcome_of(conversation: Conversation) -> OutcomeReading:
    """Whether a conversation is done or lost: the one definition of all reports.

    Where no user talked with the agent, that is the outcome. Where the integration broke, the outcome is not known,
    whatever a label says: it says nothing about the agent. Else the user's label decides; without one, the log's own
    flag; without that, its final status, by the flow's contract or in plain words; without that, the state that it
    ended in, where the flow declares what its ends are: one that is over, and reached no success, is lost. Else a
    hand-over to a person is an outcome of its own, neither done nor lost; without one, the outcome is not known.
    """
    if code := no_dialogue(conversation):
        return OutcomeReading(None, _NO_USER[code], code)
    outcome = conversation.outcome
    if outcome.error:
        return OutcomeReading(None, "the integration broke")
    label = outcome.label
    if label is not None and label.passed is not None:
        return OutcomeReading(label.passed, f"{label.field}: {shown_value(label.value)}")
    if outcome.completed is not None:
        return OutcomeReading(outcome.completed, "the log says so")
    if outcome.final_status and (kept := _kept_status(conversation)) is not None:
        return OutcomeReading(kept, f"final status: {outcome.final_status}")
    if conversation.flow is not None or conversation.contents.has_states:
        ended = terminal_of(conversation)
        if ended in ("success", "failure", "escalation"):
            return OutcomeReading(ended == "success", f"ended in the state {walk(conversation).last}")
        if outcome.ended_reason and _ends(conversation.flow).succeeds:
            return OutcomeReading(False, f"ended before any end of the flow: {outcome.ended_reason}")
    by = handed_over_by(conversation)
    return OutcomeReading(None, by, HANDED_OVER if by else "")


def ending_of(conversation: Conversation) -> str:
    """How it ended, whether it was done or not: a kind of `end_reasons`, or the log's own words for an unknown kind."""
    reason = stated_reason(conversation)
    kind = BROKEN if conversation.outcome.error else kind_of_reason(reason)
    if not kind or kind == OTHER:
        return HANDED_OVER if handed_over_by(conversation) else reason
    return kind


def _kept_status(conversation: Conversation) -> bool | None:
    """Whether the final status is a success, by the flow's contract or in plain words."""
    status, flow = conversation.outcome.final_status, conversation.flow
    if flow is not None and flow.final_status is not None:
        return snake_case(status) in contract_of(flow)
    return None if kind_of_reason(status) == HANDED_OVER else passed_in_words(status)


def shown_value(value: Json) -> str:
    """A value of a field as people write it: `true`, `4`, `4.5`, `solved`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def is_completed(conversation: Conversation) -> bool | None:
    """Whether the caller's task was done; None where neither label, log nor flow says so."""
    return outcome_of(conversation).done
