"""Whether the times of user and agent come from clocks that agree: a constant shift between them shows in the order."""

from __future__ import annotations

from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.views.user_turns import end_of, start_of

LEAST_SHIFT = 30.0
"""Seconds. What is less may be two people who talk at once, or who write at once."""
SLACK = 5.0
"""Seconds that two speakers may overlap by."""


def clock_shift(conversation: Conversation) -> float | None:
    """By about how many seconds the agent's clock is ahead of the user's; None where nothing says that it is.

    In the order of the log, a reply comes after what it answers, and the user goes on after the reply. So a shift is
    at most the shortest time from user to agent, and at least the longest that the user seems to go on too early.
    Where shifts fit that are all far from zero, the clocks disagree. One long pause fits with no shift at all.
    """
    replies: list[float] = []
    returns: list[float] = []
    last = None
    for utterance in conversation.utterances:
        role = conversation.roles[utterance.speaker]
        if role not in (ASSISTANT, USER):
            continue
        if last is not None and last[0] != role:
            end, start = end_of(last[1]), start_of(utterance)
            gap = None if end is None or start is None else conversation.elapsed(end, start)
            if gap is not None:
                (replies if role == ASSISTANT else returns).append(gap)
        last = role, utterance
    if not replies or not returns:
        return None
    least, most = -min(returns), min(replies)
    if least > most + SLACK or (most > -LEAST_SHIFT and least < LEAST_SHIFT):
        return None
    return most


def span_text(seconds: float) -> str:
    """`2 h`, `12 min`, `45 s`: roughly how long."""
    seconds = abs(seconds)
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 0.95 * size:
            return f"{round(seconds / size, 1):,g} {unit}"
    return f"{seconds:,.0f} s"
