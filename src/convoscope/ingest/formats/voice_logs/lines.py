"""The lines of a log as typed records: what can be read of them, when they were logged, and in which order."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from convoscope.conversation import Logged
from convoscope.conversation.events import moment
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.report import Notes


class FrameworkLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the framework's log: turn_start, turn_end, tts_text or llm_response."""

    ms: int | None
    kind: str
    text: str
    interrupted: bool | None = None
    """Of turn_end: whether the user ended it."""


Line = TypeVar("Line", bound=msgspec.Struct)
Timed = TypeVar("Timed", Logged, FrameworkLine)
_UNDECODABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_HOURS = 6 * 3_600_000
_SMALL = 10**8
_MS = 10**11
_US = 10**14
_LONG = 300
_DONE = ("user", "assistant", "tool_call", "tool_response", "llm_call")


def read_lines(path: Path, decoder: msgspec.json.Decoder[Line], notes: Notes) -> list[Line]:
    """Every readable line. Blank lines, a cut last line and lines that are no record are left out, and noted."""
    data = files.whole(path)
    try:
        records = decoder.decode_lines(data)
    except _UNDECODABLE:
        pass
    else:
        if data.count(b"\n") + (not data.endswith(b"\n")) > max(1, len(records)):
            notes.repaired("blank_line", path.name)
        return records
    records = []
    texts = data.rstrip().split(b"\n")
    numbered = [(number, text) for number, text in enumerate(texts, 1) if text.strip()]
    if len(numbered) < len(texts):
        notes.repaired("blank_line", path.name)
    for number, text in numbered:
        where = f"{path.name} line {number}"
        try:
            try:
                records.append(decoder.decode(text))
            except _UNDECODABLE:
                value = _decoded(text, where, notes)
                records.append(msgspec.convert(value, decoder.type, strict=False))
        except (BadJson, msgspec.ValidationError) as error:
            is_cut = number == numbered[-1][0] and isinstance(error, BadJson)
            notes.repaired("cut_last_line" if is_cut else "line_left_out", f"{where}: {error}")
    return records


def read_document(path: Path, notes: Notes) -> Any:
    """The JSON of a whole file; None, and noted, where it has none."""
    try:
        return _decoded(files.whole(path), path.name, notes)
    except BadJson as error:
        notes.repaired("file_left_out", f"{path.name}: {error}")
        return None


def _decoded(data: bytes, where: str, notes: Notes) -> Any:
    value, repairs = decode(data)
    for code in repairs:
        notes.repaired(code, where)
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


def times_of(stamps: Sequence[object], name: str, notes: Notes) -> list[int | None]:
    """When the lines of a log were logged; most count milliseconds since the epoch as they are."""
    times = [
        stamp if type(stamp) is int and _MS <= stamp < _US else milliseconds(stamp)  # spares most of them a call
        for stamp in stamps
    ]
    return plausible(stamps, times, name, notes)


def plausible(stamps: Sequence[object], times: Sequence[int | None], name: str, notes: Notes) -> list[int | None]:
    """The times of one log without those that cannot be: `stamps` as logged, `times` what was read of them.

    No call lasts hours, so that a time before the epoch, or more than six hours from the middle one
    of its log, is wrong. In a log without any times none is missing.
    """
    checked = list(times)
    ordered = sorted([ms for ms in times if ms is not None])
    middle = ordered[len(ordered) // 2] if ordered else 0
    for index, ms in enumerate(times) if ordered else ():
        if ms is None:
            notes.repaired("unreadable_time", f"{name}: {str(stamps[index])[:40]!r}")
        elif ms < 0 or abs(ms - middle) > _HOURS:
            notes.repaired("implausible_time", f"{name}: {str(stamps[index])[:40]!r}")
            checked[index] = None
    return checked


def seconds(value: object) -> float | None:
    """A time of sound in seconds; milliseconds since the epoch are known by their size."""
    if type(value) is float and 0 <= value < _MS:
        return value
    read = moment(value)
    return None if read is None else read.at


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


def in_order(records: list[Timed], is_by_file: bool, name: str, notes: Notes) -> list[Timed]:
    """The records in the order that is believed, of file or of times. Noted either way."""
    times = [record.ms for record in records]
    if not is_by_file:
        notes.repaired("out_of_order", f"{name}: its lines were put in the order of their times")
        return [records[index] for index in by_time(times)]
    notes.repaired("late_timestamp", f"{name}: times that contradict the order of its lines were left out")
    return [
        record if record.ms == ms else msgspec.structs.replace(record, ms=ms)
        for record, ms in zip(records, steadied(times), strict=True)
    ]


def is_believed(records: Sequence[Logged]) -> bool:
    """For an audit log: whether fewer things happen before what they follow from in its order than by its times."""
    sorted_by_time = [records[index] for index in by_time([record.ms for record in records])]
    return _contradictions(records) < _contradictions(sorted_by_time)


def _contradictions(records: Sequence[Logged]) -> int:
    """How often a tool answers before it is called, a reply comes before its call to the model, and the like."""
    acts = [record for record in records if record.kind in _DONE]
    called = any(record.kind == "llm_call" for record in acts)
    # The first call to the model needs someone to have spoken as well.
    count = int(bool(acts) and acts[0].kind in ("llm_call", "tool_call"))
    for before, after in pairwise(acts):
        if after.kind == "tool_response":
            count += before.kind != "tool_call" or tool_name(before) != tool_name(after)
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


def tool_name(record: Logged) -> object:
    value = record.value
    return (value.get("tool") or value.get("tool_name")) if isinstance(value, dict) else None
