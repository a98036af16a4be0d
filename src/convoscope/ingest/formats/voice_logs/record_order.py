"""The order of a log's records, where the order of the file and that of the times do not agree."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from convoscope.conversation import Logged
from convoscope.ingest.report import Notes

Order = Literal["file", "time"]
_DONE = ("user", "assistant", "tool_call", "tool_response", "llm_call")


def agree(times: Sequence[int | None]) -> bool:
    """Whether no record is earlier than the one before it."""
    known = [ms for ms in times if ms is not None]
    return known == sorted(known)


def by_time(times: Sequence[int | None]) -> list[int]:
    """Places by time; a record without one stays behind the record before it."""
    known: list[int] = []
    for ms in times:
        known.append(ms if ms is not None else known[-1] if known else 0)
    return sorted(range(len(times)), key=known.__getitem__)


def steadied(times: Sequence[int | None]) -> list[int | None]:
    """Times of records whose order is known: those that fit it stay, the others come just before what follows them."""
    kept = _longest_rise(times)
    steady: list[int | None] = list(times)
    coming: int | None = None
    for place in reversed(range(len(times))):
        if place in kept:
            coming = times[place]
        elif times[place] is not None and coming is not None:
            # An instant before: two phrases at one time would be taken for one and its preview.
            steady[place] = coming - 1
    latest = 0
    for place, ms in enumerate(steady):
        if ms is not None:
            latest = max(latest, ms)
            steady[place] = latest
    return steady


def _longest_rise(times: Sequence[int | None]) -> set[int]:
    """The most places whose times do not fall."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = [-1] * len(times)
    for place, ms in enumerate(times):
        if ms is None:
            continue
        at = bisect_right(tails, ms)
        before[place] = ends[at - 1] if at else -1
        tails[at : at + 1] = [ms]
        ends[at : at + 1] = [place]
    places: set[int] = set()
    place = ends[-1] if ends else -1
    while place >= 0:
        places.add(place)
        place = before[place]
    return places


def in_order(records: list[Logged], order: Order, name: str, notes: Notes) -> list[Logged]:
    """The records in the order that is believed. Said either way."""
    times = [record.ms for record in records]
    if order == "time":
        notes.repaired("out_of_order", f"{name}: its lines were put in the order of their times")
        return [records[place] for place in by_time(times)]
    notes.repaired("late_timestamp", f"{name}: times that contradict the order of its lines were left out")
    return [
        record if record.ms == ms else msgspec.structs.replace(record, ms=ms)
        for record, ms in zip(records, steadied(times), strict=True)
    ]


def believed(records: Sequence[Logged]) -> Order:
    """For an audit log: the order in which fewer things happen before what they follow from."""
    sorted_by_time = [records[place] for place in by_time([record.ms for record in records])]
    return "file" if _contradictions(records) < _contradictions(sorted_by_time) else "time"


def _contradictions(records: Sequence[Logged]) -> int:
    """How often a tool answers before it is called, a reply comes before its call to the model, and the like."""
    acts = [record for record in records if record.kind in _DONE]
    called = any(record.kind == "llm_call" for record in acts)
    # The first call to the model needs someone to have spoken as well.
    count = int(bool(acts) and acts[0].kind in ("llm_call", "tool_call"))
    for before, after in pairwise(acts):
        if after.kind == "tool_response":
            count += before.kind != "tool_call" or _tool(before) != _tool(after)
        elif before.kind == "tool_call":
            count += after.kind != "tool_call"
        elif called and after.kind in ("assistant", "tool_call"):
            count += not _follows(before, after)
        elif after.kind == "llm_call":
            count += before.kind == "assistant"
    return count


def _follows(before: Logged, after: Logged) -> bool:
    if before.kind != "llm_call" or not isinstance(before.value, dict):
        return after.kind == "tool_call" and before.kind == "tool_response"
    return after.kind == "tool_call" or before.value.get("response") == after.text or not after.text


def _tool(record: Logged) -> object:
    value = record.value
    return (value.get("tool") or value.get("tool_name")) if isinstance(value, dict) else None
