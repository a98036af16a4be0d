"""The lines of a log as typed records, whatever some of them look like."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from convoscope.conversation.events import moment
from convoscope.ingest.io import containers as files
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.report import Notes

Line = TypeVar("Line", bound=msgspec.Struct)


def read_lines(path: Path, decoder: msgspec.json.Decoder[Line], notes: Notes) -> list[Line]:
    """Every readable line. Blank lines, a cut last line and lines that are no record are left out, and said."""
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


def _line(text: bytes, decoder: msgspec.json.Decoder[Line], notes: Notes, place: str) -> Line:
    try:
        return decoder.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value, repairs = decode(text)
        for code in repairs:
            notes.repaired(code, place)
        return msgspec.convert(value, decoder.type, strict=False)


def read_document(path: Path, notes: Notes) -> Any:
    """The JSON of a whole file; None, and said, where it has none."""
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
    of its log, is none. A log in which nothing has a time lacks none of them.
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
    """A time of sound in seconds; milliseconds since the epoch are told by their size."""
    if type(value) is float and 0 <= value < _MS:
        return value
    read = moment(value)
    return None if read is None else read.at
