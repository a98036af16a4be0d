"""Whether two conversations with the same id are one: what was said, when, and in which log it is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import PurePath
from typing import NamedTuple

import msgspec

from convoscope.conversation import Conversation, ToolCall, ToolResult, Utterance
from convoscope.ingest.ids import is_session_row


class LogThen(NamedTuple):
    """What is known of the log that held a conversation, by the one that holds another with its id now."""

    is_same: bool
    """It is that log, whatever it is called now."""
    is_whole: bool
    """No conversation that it held is gone from the logs. A log that is cut, or begun again, has lost some."""
    has_others: bool
    """It has others that are as they were."""


def goes_on_from(earlier: Conversation, later: Conversation) -> bool:
    """Whether all that was said and done in one conversation is in the other, at its times.

    What was said last may have been cut off: it is written as it comes.
    """
    events, before = [*_events_of(later)], [*_events_of(earlier)]
    last = len(before) - 1
    return bool(before) and all(
        any(
            (one.says == known.says or (at == last and _begins(one, known))) and _fits(one.at, known.at)
            for known in events
        )
        for at, one in enumerate(before)
    )


def is_edited(earlier: Conversation, later: Conversation, log: LogThen, *, has_id: bool) -> bool:
    """Whether a conversation is what was made of another: a text was redacted or completed, a message removed.

    An id may be used again by another one. That has other times. Where there are none, most of it says something else,
    and the log was begun again.
    """
    then, now = {*_times(earlier)}, {*_times(later)}
    if (then and now and not then & now) or _begins_later(earlier, later):
        return False
    files = earlier.source.files
    if len(files) > 1 and not {*files} <= {*later.source.files}:
        return False
    own, events = [*_events_of(earlier)], [*_events_of(later)]
    is_alike = 2 * (Counter(one.says for one in own) & Counter(one.says for one in events)).total() > len(own)
    if not log.is_same:
        return is_alike and bool(then & now) and not is_rest_of(later, earlier)
    has_shape = has_id and [one.kind for one in own] == [one.kind for one in events]
    return is_alike or (log.is_whole and (log.has_others or bool(then & now) or has_shape))


def _begins_later(earlier: Conversation, later: Conversation) -> bool:
    """Whether records that are joined by their id have lost the first ones: their log was cut."""
    if not (_is_joined(earlier) and _is_joined(later)):
        return False
    begins = [min(_times(one), default=None) for one in (earlier, later)]
    if begins[0] is not None and begins[1] is not None:
        return begins[0] < begins[1]
    before, first = [one.says for one in _events_of(earlier)], next(_events_of(later), None)
    return first is not None and first.says in before[1:] and first.says != before[0]


def is_one_with(rest: Conversation, whole: Conversation, session_gap: float) -> bool:
    """Whether records that are joined by their id would have been one conversation with those that are gone."""
    if not (_is_joined(rest) and _is_joined(whole)):
        return False
    extras = [(*rest.timeline, *whole.timeline)[0].extras, rest.extras]
    if not any(map(is_session_row, extras)):
        return True
    began, ended = min(_times(rest), default=None), max(_times(whole), default=None)
    return began is None or ended is None or began - ended < session_gap * 3600


def _is_joined(conversation: Conversation) -> bool:
    """Whether it was joined from records of its id. One that is a whole file is called by the file."""
    source = conversation.source
    is_file = any(PurePath(conversation.id).name == PurePath(file).stem for file in source.files)
    return source.record == conversation.id and not is_file and conversation.id not in source.files


def _times(conversation: Conversation) -> Iterator[float]:
    wall = {clock.id for clock in conversation.clocks if clock.kind == "wall"}
    return (event.time.at for event in conversation.timeline if event.time is not None and event.time.clock in wall)


def is_rest_of(rest: Conversation, whole: Conversation) -> bool:
    """Whether all of a conversation is in the other, one event after the other, and at the same times."""
    own, events = [*_events_of(rest)], [*_events_of(whole)]
    return bool(own) and any(
        all(one.says == known.says and _fits(one.at, known.at) for one, known in zip(own, events[start:], strict=False))
        for start in range(len(events) - len(own) + 1)
    )


class _Event(NamedTuple):
    """What was said or done."""

    kind: str
    says: str
    at: float | None
    has_text: bool = False


def _begins(event: _Event, other: _Event) -> bool:
    """Whether a text is the beginning of another."""
    is_said = event.kind == other.kind and event.kind.startswith(_SAID)
    return is_said and event.has_text and other.says.startswith(event.says)


def _fits(at: float | None, when: float | None) -> bool:
    return at is None or when is None or at == when


_SAID = "said by "


def _events_of(conversation: Conversation) -> Iterator[_Event]:
    """What was said and done, each with its time."""
    for event in conversation.timeline:
        at = None if event.time is None else event.time.at
        if isinstance(event, Utterance):
            role, text = conversation.roles[event.speaker], " ".join(event.meant().split())
            yield _Event(f"{_SAID}{role}", f"{role}: {text}", at, bool(text))
        elif isinstance(event, ToolCall):
            yield _Event(f"call of {event.name}", f"{event.name} {_text(event.arguments)}", at)
        elif isinstance(event, ToolResult):
            yield _Event("result", f"result {_text(event.result)}", at)
        else:
            yield _Event(type(event).__name__, _text(msgspec.structs.replace(event, seq=0, time=None)), at)


def _text(value: object) -> str:
    return msgspec.json.encode(value, order="sorted").decode()
