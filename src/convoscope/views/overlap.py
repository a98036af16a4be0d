"""Who spoke over whom, from the sound where there is any."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from convoscope.conversation.events import Utterance
from convoscope.conversation.lazy import cached_on_argument

if TYPE_CHECKING:
    from convoscope.conversation.model import Conversation

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
    """Start and end of each stretch of sound, by utterance, in seconds of the common time."""
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
    return _told(conversation)


def _began_during(breaking: list[_Sound], broken: list[_Sound]) -> set[int]:
    """The turns of those sounds that began inside another side's sound."""
    ordered = sorted(broken)
    starts = [other.start for other in ordered]
    # The latest end of all that began so far.
    ends = list(accumulate((other.end for other in ordered), max))
    found: set[int] = set()
    for one in breaking:
        before = bisect_left(starts, one.start)
        if before and one.start + TOUCH < ends[before - 1]:
            found.add(one.turn)
    return found


def _told(conversation: Conversation) -> Interruptions:
    """The turns after, or in which, an utterance was cut off, as the log says."""
    roles = conversation.roles
    found = Interruptions(set(), set())
    cut = False
    for turn in conversation.turns:
        if cut and turn.user:
            found.by_user.add(turn.id)
        if any(_is_cut_by(one, "assistant", roles) for one in turn.user):
            found.by_assistant.add(turn.id)
        cut = any(_is_cut_by(one, "user", roles) for one in turn.assistant)
    return found


def _is_cut_by(utterance: Utterance, role: str, roles: dict[str, str]) -> bool:
    return bool(utterance.cut_off_by) and roles.get(utterance.cut_off_by) == role
