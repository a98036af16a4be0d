"""The records of a call with what a log lost put back, so that the rule that walks through them can count by it.

The published rule (voice logs, 3) knows turns by turn boundaries and by starts of sound alone. Where those were lost,
the timeline knows what belongs together; here that is written into a copy of the records. A log that lost none of them
stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import ASSISTANT, USER, Conversation, Logged, Utterance

_START, _END = "audio_start", "audio_end"
_SOUND = (_START, _END)
_INFERRED = {"inferred": True}
"""Of a record that no log has."""


class _Insertion(NamedTuple):
    """Records to stand before a place of the log."""

    before: int
    records: list[Logged]


def completed(conversation: Conversation) -> tuple[Logged, ...]:
    """The records of the logs, as the rule can count by them."""
    log = _timed(conversation)
    insertions = [*_lost_starts(log, conversation), *_lost_sounds(log, conversation)]
    if not insertions:
        return tuple(log)
    records: list[Logged] = []
    for place, record in enumerate(log):
        for insertion in insertions:
            if insertion.before == place:
                records += insertion.records
        records.append(record)
    for insertion in insertions:
        if insertion.before == len(log):
            records += insertion.records
    return tuple(records)


def _timed(conversation: Conversation) -> Sequence[Logged]:
    """Texts without a time with that of their utterance's sound, as far as the order of their log allows."""
    log = conversation.log
    events = range(len(conversation.timeline))  # a log may name one that is not there
    untimed = [place for place, record in enumerate(log) if record.ms is None and record.event in events]
    untimed = [place for place in untimed if log[place].source in ("audit", "framework")]
    if not untimed:
        return log
    offsets = {clock.id: clock.offset or 0.0 for clock in conversation.clocks}
    moments = _Moments(log, offsets)
    timed = list(log)
    for place in untimed:
        record = log[place]
        event = conversation.timeline[record.event]
        if not isinstance(event, Utterance):
            continue
        at = _sound_of(event, conversation, moments)
        if at is not None:
            bounded = min(moments.latest(place), max(moments.earliest(place), at))
            timed[place] = msgspec.structs.replace(record, ms=round(1000 * (bounded - offsets[record.source])))
    return timed


def _sound_of(utterance: Utterance, conversation: Conversation, moments: _Moments) -> float | None:
    """When the user had said it, or the agent began to, in common time."""
    time = utterance.time
    is_user = conversation.roles[utterance.speaker] == USER
    if time is not None and time.clock == "audio":
        at = time.until if is_user and time.until is not None else time.at
        return at + moments.offsets.get("audio", 0.0)
    return moments.first_text(utterance.seq) if is_user else None


class _Moments:
    """When each record was logged, in common time."""

    def __init__(self, log: Sequence[Logged], offsets: dict[str, float]) -> None:
        self._log = log
        self.offsets = offsets
        first: dict[str, int] = {}
        for record in log:
            if record.ms is not None:
                first.setdefault(record.source, record.ms)
        self._times: list[float] = []
        latest, source = 0, ""
        for record in log:
            if record.source != source:
                latest, source = first.get(record.source, 0), record.source
            latest = latest if record.ms is None else record.ms
            self._times.append(latest / 1000 + offsets.get(source, 0.0))

    def first_text(self, event: int) -> float | None:
        """When the first text of an utterance of the user was logged: the caller's own words before what was heard."""
        places = [place for place, record in enumerate(self._log) if record.event == event]
        places.sort(key=lambda place: (self._log[place].source != "simulator", place))
        return self._times[places[0]] if places else None

    def latest(self, place: int) -> float:
        """A record without a time was logged before the next of its log that has one."""
        for after in range(place + 1, len(self._log)):
            if self._log[after].source != self._log[place].source:
                break
            if self._log[after].ms is not None:
                return self._times[after]
        return float("inf")

    def earliest(self, place: int) -> float:
        """A record without a time was logged after the one before it in its log."""
        source = self._log[place].source
        known = any(record.source == source and record.ms is not None for record in self._log[:place])
        return self._times[place] if known else float("-inf")


def _lost_starts(log: Sequence[Logged], conversation: Conversation) -> list[_Insertion]:
    """The start of a sound of the user that has but an end: before its first word, when the agent had ended."""
    insertions: list[_Insertion] = []
    for utterance in _said_by_user(conversation):
        places = [place for place, record in enumerate(log) if record.event == utterance.seq]
        sounds = [place for place in places if log[place].kind in _SOUND and log[place].speaker == USER]
        if not sounds or log[sounds[0]].kind == _START:
            continue
        end = sounds[0]
        words = [place for place in places if log[place].kind == "user_speech" and place < end]
        place = min(words, default=end)
        agent = [other for other in range(end) if log[other].speaker == ASSISTANT and log[other].kind in _SOUND]
        before = [other for other in agent if other < place]
        if before and log[before[-1]].kind == _START:
            # The words came while the agent was speaking: nothing says that the user was too.
            place = next((other + 1 for other in agent if other > place and log[other].kind == _END), place)
        insertions.append(_Insertion(place, [_inferred(_START, log[place], log[end].event)]))
    return insertions


def _lost_sounds(log: Sequence[Logged], conversation: Conversation) -> list[_Insertion]:
    """Start and end of the user's sounds around their words, where the log has no sound of the user at all."""
    if any(record.source == "simulator" and record.kind in _SOUND and record.speaker == USER for record in log):
        return []
    insertions: list[_Insertion] = []
    for utterance in _said_by_user(conversation):
        words = [
            place
            for place, record in enumerate(log)
            if record.event == utterance.seq and record.source == "simulator" and record.kind == "user_speech"
        ]
        if words:
            first, last = words[0], words[-1]
            insertions.append(_Insertion(first, [_inferred(_START, log[first], log[first].event)]))
            insertions.append(_Insertion(last + 1, [_inferred(_END, log[last], log[last].event)]))
    return insertions


def _said_by_user(conversation: Conversation) -> list[Utterance]:
    return [event for event in conversation.utterances if conversation.roles[event.speaker] == USER]


def _inferred(kind: str, beside: Logged, event: int) -> Logged:
    return Logged(source="simulator", kind=kind, ms=beside.ms, speaker=USER, value=_INFERRED, event=event)
