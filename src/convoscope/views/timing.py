"""The times of user and agent: who spoke over whom, and whether their clocks agree."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import NamedTuple

from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.conversation.lazy import cached_on_argument
from convoscope.views.user_turns import end_of, start_of

TOUCH = 0.001
"""Sounds that overlap by no more than this, in seconds, only touch."""


class Interruptions(NamedTuple):
    """Ids of turns, by who broke in."""

    by_assistant: set[int]
    """The assistant began while the user was speaking."""
    by_user: set[int]
    """The user opened the turn while the assistant was speaking."""


class _Sound(NamedTuple):
    start: float
    end: float
    turn: int


@cached_on_argument
def sounds_of(conversation: Conversation) -> dict[int, list[tuple[float, float]]]:
    """Start and end of each span of sound, by utterance, in seconds of the common time."""
    return {one.seq: conversation.sounds(one) for one in conversation.utterances}


def interruptions(conversation: Conversation) -> Interruptions:
    """Overlap of sound decides; a log without sound has only what it says of cuts itself."""
    user: list[_Sound] = []
    assistant: list[_Sound] = []
    heard = sounds_of(conversation)
    for turn in conversation.turns:
        for sounds, utterances in ((user, turn.user), (assistant, turn.assistant)):
            sounds += [_Sound(*span, turn.id) for one in utterances for span in heard[one.seq]]
    if user and assistant:
        return Interruptions(_began_during(assistant, user), _began_during(user, assistant))
    return _logged_interruptions(conversation)


def _began_during(breaking: list[_Sound], broken: list[_Sound]) -> set[int]:
    """The turns of those sounds that began inside another side's sound."""
    ordered = sorted(broken)
    starts = [other.start for other in ordered]
    # The latest end of all that began so far.
    ends = list(accumulate((other.end for other in ordered), max))
    turns: set[int] = set()
    for sound in breaking:
        before = bisect_left(starts, sound.start)
        if before and sound.start + TOUCH < ends[before - 1]:
            turns.add(sound.turn)
    return turns


def _logged_interruptions(conversation: Conversation) -> Interruptions:
    """The turns after, or in which, an utterance was cut off, as the log says."""
    roles = conversation.roles
    turns = Interruptions(set(), set())
    was_cut = False
    for turn in conversation.turns:
        if was_cut and turn.user:
            turns.by_user.add(turn.id)
        if any(roles.get(utterance.cut_off_by) == ASSISTANT for utterance in turn.user if utterance.cut_off_by):
            turns.by_assistant.add(turn.id)
        was_cut = any(roles.get(utterance.cut_off_by) == USER for utterance in turn.assistant if utterance.cut_off_by)
    return turns


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
