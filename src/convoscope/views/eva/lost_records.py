"""The records of a call with what a log lost put back, so that the rule that walks through them can count by it.

The published rule (voice logs, 3) knows turns by turn boundaries and by starts of sound alone. Where those were lost,
the timeline knows what belongs together; here that is written into a copy of the records. A log that lost none of them
stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Conversation, Logged, Utterance

_START, _END = "audio_start", "audio_end"
_SOUND = (_START, _END)
_INFERRED = {"inferred": True}
"""Of a record that no log has."""


class _Insertion(NamedTuple):
    """A record to insert before an index of the log."""

    before: int
    record: Logged


def completed(conversation: Conversation) -> tuple[Logged, ...]:
    """The records of the logs, as the rule can count by them."""
    log = _timed(conversation)
    insertions = [*_lost_starts(log, conversation), *_lost_sounds(log, conversation)]
    records = list(log)
    # From the back, so that the indexes of the others stay right; several before one record stay in their order.
    for insertion in sorted(insertions, key=lambda insertion: insertion.before)[::-1]:
        records[insertion.before : insertion.before] = [insertion.record]
    return tuple(records)


def _timed(conversation: Conversation) -> Sequence[Logged]:
    """Texts without a time with that of their utterance's sound, as far as the order of their log allows."""
    log = conversation.log
    events = len(conversation.timeline)
    untimed = [index for index, record in enumerate(log) if record.ms is None and 0 <= record.event < events]
    untimed = [index for index in untimed if log[index].source in ("audit", "framework")]
    if not untimed:
        return log
    offsets = {clock.id: clock.offset or 0.0 for clock in conversation.clocks}
    moments = LogTimes(log, offsets)
    timed = list(log)
    for index in untimed:
        record = log[index]
        event = conversation.timeline[record.event]
        if not isinstance(event, Utterance):
            continue
        at = _sound_of(event, conversation, moments)
        if at is not None:
            bounded = min(moments.latest(index), max(moments.earliest(index), at))
            timed[index] = msgspec.structs.replace(record, ms=round(1000 * (bounded - offsets[record.source])))
    return timed


def _sound_of(utterance: Utterance, conversation: Conversation, moments: LogTimes) -> float | None:
    """When the user had said it, or the agent began to, in common time."""
    time = utterance.time
    is_user = conversation.roles[utterance.speaker] == USER
    if time is not None and time.clock == "audio":
        at = time.until if is_user and time.until is not None else time.at
        return at + moments.offsets.get("audio", 0.0)
    # Of the texts of the user, the caller's own log comes before what was heard.
    indexes = [index for index, record in enumerate(moments.log) if is_user and record.event == utterance.seq]
    first = min(indexes, key=lambda index: (moments.log[index].source != "simulator", index), default=None)
    return None if first is None else moments[first]


class LogTimes(list[float]):
    """When each record of a log was logged, in common time: by the clocks' offsets in seconds.

    A record without a time is as late as the one before it in its log; the first, as early as the one behind it.
    """

    def __init__(self, log: Sequence[Logged], offsets: Mapping[str, float]) -> None:
        self.log, self.offsets = log, offsets
        first: dict[str, int] = {}
        for record in log:
            if record.ms is not None:
                first.setdefault(record.source, record.ms)
        latest, source = 0, ""
        for record in log:
            if record.source != source:
                latest, source = first.get(record.source, 0), record.source
            latest = latest if record.ms is None else record.ms
            self.append(latest / 1000 + offsets.get(source, 0.0))

    def latest(self, index: int) -> float:
        """When it was logged at the latest: a record without a time, before the next of its log that has one."""
        if self.log[index].ms is not None:
            return self[index]
        for after in range(index + 1, len(self.log)):
            if self.log[after].source != self.log[index].source:
                break
            if self.log[after].ms is not None:
                return self[after]
        return float("inf")

    def earliest(self, index: int) -> float:
        """When it was logged at the earliest: a record without a time, after the one before it in its log."""
        source = self.log[index].source
        is_timed = any(record.source == source and record.ms is not None for record in self.log[: index + 1])
        return self[index] if is_timed else float("-inf")


def _lost_starts(log: Sequence[Logged], conversation: Conversation) -> list[_Insertion]:
    """The start of a sound of the user that has but an end: before its first word, when the agent had ended."""
    insertions: list[_Insertion] = []
    for utterance in _said_by_user(conversation):
        indexes = [index for index, record in enumerate(log) if record.event == utterance.seq]
        sounds = [index for index in indexes if log[index].kind in _SOUND and log[index].speaker == USER]
        if not sounds or log[sounds[0]].kind == _START:
            continue
        end = sounds[0]
        words = [index for index in indexes if log[index].kind == "user_speech" and index < end]
        index = min(words, default=end)
        agent = [other for other in range(end) if log[other].speaker == ASSISTANT and log[other].kind in _SOUND]
        before = [other for other in agent if other < index]
        if before and log[before[-1]].kind == _START:
            # The words came while the agent was speaking: nothing says that the user was too.
            index = next((other + 1 for other in agent if other > index and log[other].kind == _END), index)
        insertions.append(_Insertion(index, _inferred(_START, log[index], log[end].event)))
    return insertions


def _lost_sounds(log: Sequence[Logged], conversation: Conversation) -> list[_Insertion]:
    """Start and end of the user's sounds around their words, where the log has no sound of the user at all."""
    if any(record.source == "simulator" and record.kind in _SOUND and record.speaker == USER for record in log):
        return []
    insertions: list[_Insertion] = []
    for utterance in _said_by_user(conversation):
        words = [
            index
            for index, record in enumerate(log)
            if record.event == utterance.seq and record.source == "simulator" and record.kind == "user_speech"
        ]
        if words:
            first, last = words[0], words[-1]
            insertions.append(_Insertion(first, _inferred(_START, log[first], log[first].event)))
            insertions.append(_Insertion(last + 1, _inferred(_END, log[last], log[last].event)))
    return insertions


def _said_by_user(conversation: Conversation) -> list[Utterance]:
    return [event for event in conversation.utterances if conversation.roles[event.speaker] == USER]


def _inferred(kind: str, neighbour: Logged, event: int) -> Logged:
    return Logged(source="simulator", kind=kind, ms=neighbour.ms, speaker=USER, value=_INFERRED, event=event)
