"""Who is heard on which channel of a recording: as the log names them, and by when it says that each speaks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from convoscope.audio.against_log import LoggedTurn, fitting_shift
from convoscope.conversation import ASSISTANT, USER, Conversation
from convoscope.resources.sound import Basis, RecordedTrack, Span

WORDS_A_SECOND = 2.7
"""Where a log has no end of an utterance."""
ASSISTANTS = frozenset(("assistant", "agent", "bot", "ai"))
USERS = frozenset(("user", "caller", "customer", "human", "client"))


class ChannelSide(NamedTuple):
    """Who is heard on a channel."""

    speaker: str
    role: str
    basis: Basis


UNKNOWN = ChannelSide("", "", "unknown")
CONTRADICTED = ChannelSide("", "", "contradicted")
"""The log names the speaker, and by its times it is the other one."""
NOT_SEPARATE = ChannelSide("", "", "not_separate")
"""Both sides are heard on the channel, or nothing says that one is."""


def stated_sides(conversation: Conversation, labels: Sequence[str], channels: int) -> list[ChannelSide] | None:
    """The sides that the log names for a file of so many channels; None where it does not."""
    if len(labels) == channels:
        return [_side(conversation, label, "stated") for label in labels]
    return None


def labels_in_extras(extras: Mapping[str, Any]) -> tuple[str, ...]:
    """`audio_channel_left` and `audio_channel_right` of a trace (specs: standard-data 7)."""
    pair = (extras.get("audio_channel_left"), extras.get("audio_channel_right"))
    return tuple(map(str, pair)) if all(isinstance(one, str) and one for one in pair) else ()


def _side(conversation: Conversation, label: str, basis: Basis) -> ChannelSide:
    """A speaker by id, role, name, or a usual word for one."""
    if label in conversation.roles:
        return ChannelSide(label, conversation.roles[label], basis)
    word = label.casefold()
    role = ASSISTANT if word in ASSISTANTS else USER if word in USERS else ""
    for who in conversation.participants:
        if word in (who.role.casefold(), who.name.casefold()) or (role and who.role == role):
            return ChannelSide(who.id, who.role, basis)
    return ChannelSide("", role, basis if role else "unknown")


def logged_spans(conversation: Conversation, role: str) -> list[Span]:
    """When a role speaks by the log, in seconds of the common time; where the end is not logged, by the words."""
    spans: list[Span] = []
    for utterance in conversation.utterances:
        if conversation.roles.get(utterance.speaker) != role:
            continue
        if utterance.segments:
            spans += [Span(start, end) for start, end in conversation.sounds(utterance) if end > start]
        elif utterance.time is not None:
            start = conversation.common(utterance.time)
            words = len(conversation.text(utterance).split())
            length = max(0.5, words / WORDS_A_SECOND)
            if utterance.time.until is not None:
                length = utterance.time.until - utterance.time.at
            if length > 0:
                spans.append(Span(start, start + length))
    return spans


def timeline_sides(conversation: Conversation, tracks: Sequence[RecordedTrack]) -> list[ChannelSide] | None:
    """Which of two tracks is the assistant's, by when the log says that each side speaks; None where that is open.

    The log has to fit the sound one way round, and not the other, as it has to fit it for any comparison. What the log
    says of the recording's beginning may be wrong: other offsets are tried, too.
    """
    turns = [
        LoggedTurn(seq, role, (span,))
        for role in (ASSISTANT, USER)
        for seq, span in enumerate(logged_spans(conversation, role))
    ]
    has_start = all(track.offset is not None for track in tracks)
    if {turn.speaker for turn in turns} != {ASSISTANT, USER} or not (has_start or tracks[0].path == tracks[1].path):
        return None
    speech = [[(at + (one.offset or 0.0), until + (one.offset or 0.0)) for at, until in one.speech()] for one in tracks]
    orders = ((ASSISTANT, USER), (USER, ASSISTANT))
    stated = 0.0 if has_start else None
    fitting = [order for order in orders if fitting_shift(turns, dict(zip(order, speech, strict=True)), stated)]
    return [_side(conversation, role, "timeline") for role in fitting[0]] if len(fitting) == 1 else None
