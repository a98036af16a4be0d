"""The lines of a log as typed records: what can be read of them, when they were logged, and in which order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from convoscope.conversation import Logged
from convoscope.conversation.events import moment
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.report import Notes

Line = TypeVar("Line", bound=msgspec.Struct)


def read_lines(path: Path, decoder: msgspec.json.Decoder[Line], notes: Notes) -> list[Line]:
    """Every readable line. Blank lines, a cut last line and lines that are no record are left out, and noted."""
    data = files.whole(path)
    try:
        records = decoder.decode_lines(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        records = _one_by_one(path, data, decoder, notes)
    else:
        if data.count(b"\n") + (not data.endswith(b"\n")) > max(1, len(records)):
            notes.repaired("blank_line", path.name)
    return records


def _one_by_one(path: Path, data: bytes, decoder: msgspec.json.Decoder[Line], notes: Notes) -> list[Line]:
    records: list[Line] = []
    texts = data.rstrip().split(b"\n")
    if not all(text.strip() for text in texts):
        notes.repaired("blank_line", path.name)
    last = max((number for number, text in enumerate(texts) if text.strip()), default=-1)
    for number, text in enumerate(texts):
        if not text.strip():
            continue
        try:
            records.append(_line(text, decoder, notes, f"{path.name} line {number + 1}"))
        except (BadJson, msgspec.ValidationError) as error:
            code = "cut_last_line" if number == last and isinstance(error, BadJson) else "line_left_out"
            notes.repaired(code, f"{path.name} line {number + 1}: {error}")
    return records


def _line(text: bytes, decoder: msgspec.json.Decoder[Line], notes: Notes, index: str) -> Line:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, repairs = decode(text)
        for code in repairs:
            notes.repaired(code, index)
        return msgspec.convert(value, decoder.type, strict=False)


def read_document(path: Path, notes: Notes) -> Any:
    """The JSON of a whole file; None, and noted, where it has none."""
    try:
        value, repairs = decode(files.whole(path))
    except BadJson as error:
        notes.repaired("file_left_out", f"{path.name}: {error}")
        return None
    for code in repairs:
        notes.repaired(code, path.name)
    return value


def milliseconds(value: object) -> int | None:
    """A logged time in whole milliseconds: ISO 8601, or a number since the epoch; a small one counts in ms."""
    # Longer ones are no times, and more than a float can hold.
    if type(value) is str and value.isdecimal() and len(value) < _LONG:
        value = int(value)
    if type(value) is int and (_MS <= value < 10**_LONG or 0 <= value < _SMALL):
        return value if value < _US else round(value / 1000)
    read = moment(value)
    if read is None:
        return None
    return round(1000 * read.at) if read.kind == "wall" else round(read.at)


def all_milliseconds(stamps: Sequence[object]) -> list[int | None]:
    """The same of many, most of which count milliseconds since the epoch as they are."""
    return [
        stamp if type(stamp) is int and _MS <= stamp < _US else milliseconds(stamp)  # spares most of them a call
        for stamp in stamps
    ]


def plausible(stamps: Sequence[object], times: Sequence[int | None], name: str, notes: Notes) -> list[int | None]:
    """The times of one log without those that cannot be: `stamps` as logged, `times` what was read of them.

    No call lasts hours, so that a time before the epoch, or more than six hours from the middle one
    of its log, is wrong. In a log without any times none is missing.
    """
    ordered = sorted([ms for ms in times if ms is not None])
    if not ordered:
        return list(times)
    middle = ordered[len(ordered) // 2]
    if len(ordered) == len(times) and ordered[0] >= 0 and are_of_one_call(ordered):
        return list(times)
    checked: list[int | None] = []
    for stamp, ms in zip(stamps, times, strict=True):
        if ms is None:
            notes.repaired("unreadable_time", f"{name}: {str(stamp)[:40]!r}")
        elif ms < 0 or abs(ms - middle) > _HOURS:
            notes.repaired("implausible_time", f"{name}: {str(stamp)[:40]!r}")
            checked.append(None)
            continue
        checked.append(ms)
    return checked


def are_of_one_call(times: Sequence[int]) -> bool:
    """Whether no time, in their order, is hours away from the middle one."""
    middle = times[len(times) // 2]
    return times[0] >= middle - _HOURS and times[-1] <= middle + _HOURS


_HOURS = 6 * 3_600_000
_SMALL = 10**8
_MS = 10**11
_US = 10**14
_LONG = 300


def seconds(value: object) -> float | None:
    """A time of sound in seconds; milliseconds since the epoch are known by their size."""
    if type(value) is float and 0 <= value < _MS:
        return value
    read = moment(value)
    return None if read is None else read.at


Order = Literal["file", "time"]
_DONE = ("user", "assistant", "tool_call", "tool_response", "llm_call")


def agree(times: Sequence[int | None]) -> bool:
    """Whether no record is earlier than the one before it."""
    logged = [ms for ms in times if ms is not None]
    return logged == sorted(logged)


def by_time(times: Sequence[int | None]) -> list[int]:
    """Indexes by time; a record without one stays behind the record before it."""
    logged: list[int] = []
    for ms in times:
        logged.append(ms if ms is not None else logged[-1] if logged else 0)
    return sorted(range(len(times)), key=logged.__getitem__)


def steadied(times: Sequence[int | None]) -> list[int | None]:
    """Times of records whose order is known: those that fit it stay, the others come just before what follows them."""
    in_order = _longest_rise(times)
    steady: list[int | None] = list(times)
    coming: int | None = None
    for index in reversed(range(len(times))):
        if index in in_order:
            coming = times[index]
        elif times[index] is not None and coming is not None:
            # An instant before: two phrases at one time would be taken for one and its preview.
            steady[index] = coming - 1
    latest = 0
    for index, ms in enumerate(steady):
        if ms is not None:
            latest = max(latest, ms)
            steady[index] = latest
    return steady


def _longest_rise(times: Sequence[int | None]) -> set[int]:
    """The most indexes whose times do not fall."""
    tails: list[int] = []
    ends: list[int] = []
    before: list[int] = [-1] * len(times)
    for index, ms in enumerate(times):
        if ms is None:
            continue
        at = bisect_right(tails, ms)
        before[index] = ends[at - 1] if at else -1
        tails[at : at + 1] = [ms]
        ends[at : at + 1] = [index]
    indexes: set[int] = set()
    index = ends[-1] if ends else -1
    while index >= 0:
        indexes.add(index)
        index = before[index]
    return indexes


def in_order(records: list[Logged], order: Order, name: str, notes: Notes) -> list[Logged]:
    """The records in the order that is believed. Noted either way."""
    times = [record.ms for record in records]
    if order == "time":
        notes.repaired("out_of_order", f"{name}: its lines were put in the order of their times")
        return [records[index] for index in by_time(times)]
    notes.repaired("late_timestamp", f"{name}: times that contradict the order of its lines were left out")
    return [
        record if record.ms == ms else msgspec.structs.replace(record, ms=ms)
        for record, ms in zip(records, steadied(times), strict=True)
    ]


def believed(records: Sequence[Logged]) -> Order:
    """For an audit log: the order in which fewer things happen before what they follow from."""
    sorted_by_time = [records[index] for index in by_time([record.ms for record in records])]
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
