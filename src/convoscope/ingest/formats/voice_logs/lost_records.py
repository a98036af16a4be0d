"""The records of a call with what a log lost put back, so that a rule that walks through them can count by it.

The published rule (voice logs, 3) knows turns by turn boundaries and by starts of sound alone. Where
those were lost the join has found out what belongs together; here that is written into the records.
A log that lost none of them stays as it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from convoscope.conversation import Logged
from convoscope.ingest.formats.voice_logs.join import Join, Joined, Say
from convoscope.ingest.formats.voice_logs.replies import Reply
from convoscope.ingest.formats.voice_logs.sounds import END, START
from convoscope.ingest.report import Notes

_USER, _AGENT = "user", "assistant"
_BOUNDARIES = ("turn_start", "turn_end")
_INFERRED = {"inferred": True}
"""Of a record that no log has."""


class _Put(NamedTuple):
    """Records to stand before a place of the log."""

    before: int
    records: list[Logged]


def completed(
    log: Sequence[Logged], join: Join, joined: Joined, event_of_reply: Mapping[int, int], notes: Notes
) -> tuple[Logged, ...]:
    """The records as they are to be kept. `event_of_reply`: the event that each reply, by number, became."""
    log = _timed(log, join, joined)
    instead = _parted(log, join, joined.replies, event_of_reply)
    puts = [put for say in joined.says if (put := _start(log, say)) is not None]
    for put in puts:
        notes.inferred("audio_start_placed", f"user, before {log[put.before].kind} at {log[put.before].ms} ms")
    puts += _alone(log, joined.says, notes)
    if not instead and not puts:
        return tuple(log)
    found: list[Logged] = []
    for place, record in enumerate(log):
        for put in puts:
            if put.before == place:
                found += put.records
        found += instead.get(place, [record])
    for put in puts:
        if put.before == len(log):
            found += put.records
    return tuple(found)


def _timed(log: Sequence[Logged], join: Join, joined: Joined) -> Sequence[Logged]:
    """Texts without a time with that of the sound that they were laid on, as far as the order of their log allows."""
    found = {place: say.until for say in joined.says for place in say.heard if log[place].ms is None}
    for reply in joined.replies:
        for place in reply.records if reply.sounds else ():
            if log[place].ms is None:
                found.setdefault(place, reply.sounds[0].at)
    if not found:
        return log
    shift = {"audit": join.offsets.audit, "framework": join.offsets.framework}
    kept = list(log)
    for place, at in found.items():
        moment = min(join.latest(place), max(join.earliest(place), at)) - shift[log[place].source]
        kept[place] = msgspec.structs.replace(log[place], ms=round(1000 * moment))
    return kept


def _parted(
    log: Sequence[Logged], join: Join, replies: Sequence[Reply], event_of_reply: Mapping[int, int]
) -> dict[int, list[Logged]]:
    """What was sent to the speech engine, one record for each stretch between two lines or sounds of the user.

    Only where the framework's log has no turn boundary at all: else those part it.
    """
    if any(record.source == "framework" and record.kind in _BOUNDARIES for record in log):
        return {}
    heard = sorted(join.at(place) for place in join.order("audit") if _is_timed_line(join.log[place]))
    instead: dict[int, list[Logged]] = {}
    for place, record in enumerate(log):
        if record.source != "framework":
            continue
        mine = [number for number, reply in enumerate(replies) if place in reply.records and reply.text]
        mine.sort(key=lambda number: (replies[number].slot, replies[number].sent))
        parts: dict[tuple[int, int], list[int]] = {}
        for number in mine:
            reply = replies[number]
            parts.setdefault((reply.slot, bisect_right(heard, reply.sent)), []).append(number)
        if len(parts) < 2:
            continue
        instead[place] = [
            msgspec.structs.replace(
                record,
                ms=round(1000 * (replies[numbers[0]].sent - join.offsets.framework)),
                text=" ".join(replies[number].text for number in numbers),
                event=event_of_reply.get(numbers[0], -1),
            )
            for numbers in parts.values()
        ]
    return instead


def _is_timed_line(record: Logged) -> bool:
    return record.kind == _USER and record.ms is not None


def _start(log: Sequence[Logged], say: Say) -> _Put | None:
    """The start of a sound of the user that has but an end: before its first word, when the agent had ended."""
    sound = say.sounds[0] if say.sounds else None
    if sound is None or sound.start is not None or not sound.records:
        return None
    end = sound.records[-1]
    place = min([one for one in say.meant if log[one].source == "simulator" and one < end], default=end)
    spoken = [one for one in range(end) if log[one].speaker == _AGENT and log[one].kind in (START, END)]
    before = [one for one in spoken if one < place]
    if before and log[before[-1]].kind == START:
        # The words came while the agent was speaking: nothing says that the user was too.
        place = next((one + 1 for one in spoken if one > place and log[one].kind == END), place)
    return _Put(place, [_made(START, log[place], log[end].event)])


def _alone(log: Sequence[Logged], says: Sequence[Say], notes: Notes) -> list[_Put]:
    """Start and end of the user's sounds around their words, where the log has no sound of the user at all."""
    if any(record.source == "simulator" and record.kind in (START, END) and record.speaker == _USER for record in log):
        return []
    puts: list[_Put] = []
    for say in says:
        if say.meant:
            first, last = min(say.meant), max(say.meant)
            puts.append(_Put(first, [_made(START, log[first], log[first].event)]))
            puts.append(_Put(last + 1, [_made(END, log[last], log[last].event)]))
            notes.inferred("audio_start_placed", f"user, before {log[first].text[:60]!r}")
    return puts


def _made(kind: str, beside: Logged, event: int) -> Logged:
    return Logged(source="simulator", kind=kind, ms=beside.ms, speaker=_USER, value=_INFERRED, event=event)
