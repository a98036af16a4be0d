"""What metrics of voice calls need, and the facts of a call that several of them ask for."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, TypeGuard

from convoscope.audio.reader import FORMAT
from convoscope.conversation import Conversation
from convoscope.metrics.needs import Need, in_timeline
from convoscope.scores.observation import NOT_APPLICABLE, Observation, in_turn, not_applicable, unmeasured
from convoscope.text.folding import folded_name
from convoscope.views import MetricContext
from convoscope.views.machines import is_call
from convoscope.views.user_turns import AT_END, user_turns

INACTIVITY = "inactivity_timeout"
NO_REPLY = "no_reply"


def has_sound(conversation: Conversation) -> bool:
    """Some utterance says when its sound began and ended."""
    return conversation.contents.has_sound


CALL = Need(
    code="not_a_call",
    field="pipeline",
    unlock="a voice call: a `pipeline` of cascade, audio_llm or s2s, or utterances with segments of sound",
    present=is_call,
    status_if_missing=NOT_APPLICABLE,
)
SOUND = Need(
    code="no_sound",
    field="timeline.utterance.segments",
    unlock="when the sound of each utterance began and ended",
    present=in_timeline("has_sound"),
)

LOGGED_SOUND = Need(
    "times_from_sound",
    "clocks.source",
    "the log of the call: the times of a bare recording are those of its sound",
    lambda conversation: conversation.source.format != FORMAT,
    status_if_missing=NOT_APPLICABLE,
)


def is_quantity(value: Any) -> TypeGuard[float]:
    """A finite number from 0 on, such as a time or a count."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value) and value >= 0


@lru_cache(maxsize=4096)
def inapplicable(turn: int, reason: str) -> Observation:
    """A turn to which a metric does not apply. Many metrics say so of the same turns for the same few reasons."""
    return not_applicable(in_turn(turn), reason)


def without_reply(conversation: Conversation, turn: int, last: int) -> Observation:
    """A turn that got no reply: a failure that `agent.unanswered_turns` counts, but for the last of a user who left."""
    turns = user_turns(conversation) if turn == last else []
    reply = turns[-1].reply if turns else "no"
    return unanswered(turn, AT_END.get(reply, NO_REPLY))


def unanswered(turn: int, reason: str) -> Observation:
    return inapplicable(turn, reason) if reason == "user_left" else unmeasured(in_turn(turn), reason)


def user_spoke_last(context: MetricContext) -> bool | None:
    """The user's sound ended after the assistant's; None where neither made a sound."""
    user = last_end(context.audio_timestamps_user_turns)
    assistant = last_end(context.audio_timestamps_assistant_turns)
    if user is None or assistant is None:
        return None if user is assistant else assistant is None
    return user > assistant


def last_end(audio: dict[int, Any]) -> float | None:
    """When the last of these sounds ended; a turn without sound may hold nothing, or None."""
    return max((end for spans in audio.values() for _, end in spans or ()), default=None)


def left_waiting(context: MetricContext) -> bool | None:
    """The call ended in silence, and it was the agent's turn; None where the sound leaves that open."""
    if folded_name(context.conversation_ended_reason or "") != INACTIVITY:
        return False
    return user_spoke_last(context)


def turns_with_tools(context: MetricContext) -> set[int]:
    """The turns in which the agent called a tool."""
    return {entry["turn_id"] for entry in context.conversation_trace if entry["type"] == "tool_call"}


def turn_ids(context: MetricContext) -> list[int]:
    """Every turn with speech or a sound, in order."""
    spoken = (
        context.transcribed_assistant_turns,
        context.transcribed_user_turns,
        context.intended_assistant_turns,
        context.intended_user_turns,
        context.audio_timestamps_assistant_turns,
        context.audio_timestamps_user_turns,
    )
    return sorted({turn for texts in spoken for turn in texts})


def user_spoke(context: MetricContext, turn: int) -> bool:
    return bool(
        context.audio_timestamps_user_turns.get(turn)
        or context.intended_user_turns.get(turn)
        or context.transcribed_user_turns.get(turn)
    )


def assistant_spoke(context: MetricContext, turn: int) -> bool:
    return bool(
        context.audio_timestamps_assistant_turns.get(turn)
        or context.intended_assistant_turns.get(turn)
        or context.transcribed_assistant_turns.get(turn)
    )
