"""The order of messages by their times, where the order in which they are written is plainly another one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from typing import NamedTuple

_LEAST = 3
"""So many times must descend before messages are taken for newest first."""
_BACKWARDS = 2
"""So often the speakers' own times must go back before messages are sorted: once, a clock may have been set."""


class TimedMessage(NamedTuple):
    """What is known of a message before it is read."""

    role: str
    at: float | None
    file: str = ""


class TimeOrder(NamedTuple):
    """Indexes in the order of time, and what had to be repaired for it: "" for nothing."""

    order: Sequence[int]
    repaired: str = ""


def in_list(messages: Sequence[TimedMessage]) -> TimeOrder:
    """Messages of one list: as they are written, or the other way round where all times descend."""
    first = next((index for index, one in enumerate(messages) if one.role != "system"), len(messages))
    rest = messages[first:]
    if not _is_newest_first(rest):
        return TimeOrder(range(len(messages)))
    return TimeOrder([*range(first), *range(len(messages) - 1, first - 1, -1)], "newest_first")


def in_rows(messages: Sequence[TimedMessage]) -> TimeOrder:
    """Messages that are records of their own, maybe of several files.

    Files that are newest first are turned round. Files are merged by time where each is in order. Rows of one file are
    sorted where the times of the speakers go back more than once: such a file was written in no order.
    """
    order: list[int] = []
    repaired = ""
    for _, indexes in groupby(range(len(messages)), key=lambda index: messages[index].file):
        rows = list(indexes)
        ordered = in_list([messages[index] for index in rows])
        order += [rows[index] for index in ordered.order]
        repaired = repaired or ordered.repaired
    times = [messages[index].at for index in order]
    if any(at is None for at in times):
        return TimeOrder(order, repaired)
    known = [at for at in times if at is not None]
    is_sorted = all(one <= other for one, other in pairwise(known))
    ordered_messages = [messages[index] for index in order]
    if is_sorted or not (_is_merge(ordered_messages) or _goes_back(ordered_messages)):
        return TimeOrder(order, repaired)
    by_time = [index for _, index in sorted(zip(known, range(len(order)), strict=True))]
    return TimeOrder([order[index] for index in by_time], repaired or "sorted_by_time")


def _is_newest_first(messages: Sequence[TimedMessage]) -> bool:
    times = [one.at for one in messages if one.at is not None]
    if 2 * len(times) < len(messages) or len(times) < 2 or times[0] <= times[-1]:
        return False
    if any(one < other for one, other in pairwise(times)):
        return False
    # Of two, the clock of the agent may be behind; but no reply comes before its question.
    roles = [one.role for one in messages]
    return len(times) >= _LEAST or roles == ["assistant", "user"]


def _is_merge(ordered: Sequence[TimedMessage]) -> bool:
    """Whether there are several files, each in the order of time."""
    backwards = _backwards((one.file, one) for one in ordered)
    return len(backwards) > 1 and not any(backwards)


def _goes_back(ordered: Sequence[TimedMessage]) -> bool:
    backwards = _backwards((one.role, one) for one in ordered)
    if max(backwards) >= _BACKWARDS:
        return True
    # A clock that was set takes all speakers back at one point; speakers who go back at two points are out of order.
    return sum(backwards) >= _BACKWARDS <= _backwards(("", one) for one in ordered)[0]


def _backwards(messages: Iterable[tuple[str, TimedMessage]]) -> list[int]:
    """How often the times of each file, or of each speaker, go back."""
    times: dict[str, list[float]] = {}
    for key, message in messages:
        times.setdefault(key, []).append(message.at or 0.0)
    return [sum(one > other for one, other in pairwise(known)) for known in times.values()]
