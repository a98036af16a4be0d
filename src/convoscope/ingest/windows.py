"""Histories that are cut: calls logged with the last messages only, brought together where they overlap.

An agent that sends only the last messages to its model logs windows of one conversation. A window goes on with another
one where its end, answer included, is the beginning of that one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import NamedTuple

from convoscope.ingest.copies import RecordKey
from convoscope.ingest.histories import ModelCall

_LEAST, _LEAST_OF_CHATS = 3, 4
"""So many equal messages are no accident: of calls, and of records that do not say that they are calls."""
_MOST_ALIKE = 50
"""More windows with the same beginning come from a template."""


class Window(NamedTuple):
    """A record that goes on with another one."""

    record: RecordKey
    next: RecordKey
    own: int
    """How many of its messages the next one does not have."""


class Windows(NamedTuple):
    """The windows that go on, and records that overlap in a way that does not say with which they go on."""

    joined: Sequence[Window]
    unclear: Sequence[RecordKey]


class _Overlap(NamedTuple):
    size: int
    earlier: ModelCall
    later: ModelCall


def windows_of(calls: Sequence[ModelCall]) -> Windows:
    """Which records are windows of one conversation. Different ids, labels and trials keep them apart."""
    joined: list[Window] = []
    unclear: set[RecordKey] = set()
    for group in _groups((call.by_content or call.by_id, call) for call in calls):
        _join(_overlaps(group, 1 if group[0].history.conversation else 2), joined, unclear)
    for group in _groups((call.history.apart, call) for call in calls if call.history.conversation):
        unclear |= {
            one.later.record
            for one in _overlaps(group, _LEAST)
            if one.earlier.history.conversation != one.later.history.conversation
        }
    return Windows(joined, sorted(unclear))


def _groups(calls: Iterable[tuple[Hashable, ModelCall]]) -> list[list[ModelCall]]:
    groups: dict[Hashable, list[ModelCall]] = {}
    for key, call in calls:
        groups.setdefault(key, []).append(call)
    return [group for group in groups.values() if len(group) > 1]


def _join(overlaps: Sequence[_Overlap], joined: list[Window], unclear: set[RecordKey]) -> None:
    """Each record goes on with the one that has most of it, if that one goes on from no other record as well."""
    before = _largest(overlaps, lambda one: one.later.record)
    after = _largest(overlaps, lambda one: one.earlier.record)
    for overlap in overlaps:
        earlier, later = overlap.earlier.record, overlap.later.record
        followers = [other for other in after[earlier] if other in before[other.later.record]]
        if overlap not in before[later] or overlap not in followers:
            continue
        if len(followers) == 1 == len(before[later]) and _is_no_accident(overlap):
            joined.append(Window(earlier, later, len(overlap.earlier.prefixes) - overlap.size))
        else:
            unclear.add(later)


def _largest(overlaps: Iterable[_Overlap], key: Callable[[_Overlap], RecordKey]) -> dict[RecordKey, list[_Overlap]]:
    best: dict[RecordKey, list[_Overlap]] = {}
    for overlap in overlaps:
        held = best.setdefault(key(overlap), [overlap])
        if overlap.size > held[0].size:
            best[key(overlap)] = [overlap]
        elif overlap is not held[0] and overlap.size == held[0].size:
            held.append(overlap)
    return best


def _overlaps(group: Sequence[ModelCall], least: int) -> list[_Overlap]:
    """Records of which at least so many messages at the end are the beginning of another one, which goes on."""
    begins: dict[Hashable, list[ModelCall]] = {}
    for call in group:
        begins.setdefault(tuple(call.history.messages[:least]), []).append(call)
    overlaps: list[_Overlap] = []
    for call in group:
        messages = call.history.messages
        for start in range(1, len(messages) - least + 1):
            alike = begins.get(tuple(messages[start : start + least]), ())
            size = len(messages) - start
            if len(alike) <= _MOST_ALIKE:
                overlaps += [_Overlap(size, call, later) for later in alike if _goes_on(call, later, size)]
    return overlaps


def _goes_on(earlier: ModelCall, later: ModelCall, size: int) -> bool:
    """Whether so many messages at the end of one are the beginning of the other, with an answer of the agent."""
    messages, history = earlier.history.messages, later.history
    if size >= len(history.messages) or list(messages[-size:]) != list(history.messages[:size]):
        return False
    if earlier.history.conversation and earlier.history.conversation == history.conversation:
        return True
    return any(history.by_agent[:size]) and any(history.by_user[:size])


def _is_no_accident(overlap: _Overlap) -> bool:
    """Whether an overlap alone says that two records are one conversation."""
    history = overlap.earlier.history
    if history.conversation:
        return True
    if not history.is_call:
        return overlap.size >= _LEAST_OF_CHATS
    # Of a question and its answer, only in windows of one size.
    return overlap.size >= _LEAST or len(history.messages) == len(overlap.later.history.messages)
