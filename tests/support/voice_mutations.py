"""Folders of voice calls made wrong at random, and what comes of reading one."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.conversation import to_json
from convoscope.ingest.formats.voice_logs.reader import read_call
from convoscope.ingest.report import Note, Notes

Draw = random.Random
Record = dict[str, Any]
OTHER_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 7, 1.5, 10**11, 10**14, 10**20, -(10**12), 1772403723722, 1772403723.722),
    *(
        "",
        " ",
        "two words",
        "1772403723722",
        "2026-03-01T22:22:03.722Z",
        "tts_text",
        "turn_end",
        "user",
        "...",
        "Ärger",
    ),
    *([], ["a", 1], {}, {"frame": "word"}, {"text": "Yes."}, {"state": "session_ended"}),
)
RAW_VALUES = ("NaN", "-Infinity", "1e999", r'"\ud800 half a pair"', '"\t"', "tru", '"open', "[1, 2", "\x00")
"""What JSON does not allow, or only half of it."""


class Outcome(NamedTuple):
    """What came of reading a folder: a conversation as JSON or an error, and what was noted."""

    conversation: bytes
    error: str
    notes: tuple[Note, ...]
    records: int


def outcome(folder: Path) -> Outcome:
    """What reading the call gives."""
    notes = Notes()
    try:
        conversation, error = to_json(read_call(folder, notes)), ""
    except Exception as raised:
        conversation, error = b"", f"{type(raised).__name__}: {raised}"
    return Outcome(conversation, error, tuple(notes.taken), notes.records)


def mutate(folder: Path, draw: Draw) -> list[str]:
    """One to three things of a folder made wrong; what was done, in words."""
    done = []
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        paths = sorted(path for path in folder.iterdir() if path.name.endswith((".json", ".jsonl")))
        if paths:
            path = draw.choice([one for one in paths if "event" in one.name or "log" in one.name] or paths)
            mutation = draw.choice(_MUTATIONS)
            mutation(path, draw)
            done.append(f"{path.name}: {mutation.__name__.strip('_')}")
    return done


# -- files ----------------------------------------------------------------------------------------


def _missing(path: Path, draw: Draw) -> None:
    path.unlink()


def _empty(path: Path, draw: Draw) -> None:
    path.write_bytes(draw.choice((b"", b"\n", b" \n\n", b"{}", b"[]", b"null")))


def _cut(path: Path, draw: Draw) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data) + 1)])


def _blank_line(path: Path, draw: Draw) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    lines.insert(draw.randrange(len(lines) + 1), draw.choice((b"\n", b"  \n", b"\r\n")))
    path.write_bytes(b"".join(lines))


def _other_bytes(path: Path, draw: Draw) -> None:
    data = path.read_bytes()
    at = draw.randrange(len(data) + 1)
    path.write_bytes(data[:at] + draw.choice((b"\xff", b"\xef\xbb\xbf", b"\x00", b'"', b"}", b"\xf0\x9f")) + data[at:])


def _byte_order_mark(path: Path, draw: Draw) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", draw.choice((b"\n", b"\r\n"))))


# -- records --------------------------------------------------------------------------------------


class _Log:
    """The records of a log, be it lines or the entries of a document, to be changed and written back."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.document: Any = None
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        self.records: list[Any] = []
        try:
            if path.name.endswith(".jsonl"):
                self.records = [json.loads(line) for line in text.splitlines() if line.strip()]
            else:
                self.document = json.loads(text)
                held = self.document.get("transcript") if isinstance(self.document, dict) else None
                self.records = held if isinstance(held, list) else [self.document]
        except ValueError:  # broken by a mutation before
            self.records = []

    def write(self, *, raw: dict[str, str] | None = None) -> None:
        if not self.records and self.document is None:
            return
        if self.document is not None:
            text = json.dumps(self.document)
        else:
            text = "".join(json.dumps(record) + "\n" for record in self.records)
        for mark, instead in (raw or {}).items():
            text = text.replace(json.dumps(mark), instead)
        self.path.write_bytes(text.encode("utf-8", "surrogateescape"))


def _of_log(change: Callable[[list[Any], Draw], None]) -> Callable[[Path, Draw], None]:
    def mutation(path: Path, draw: Draw) -> None:
        log = _Log(path)
        if log.records:
            change(log.records, draw)
            log.write()

    mutation.__name__ = change.__name__
    return mutation


def _drop(records: list[Any], draw: Draw) -> None:
    start = draw.randrange(len(records))
    del records[start : start + draw.choice((1, 1, 2, 8))]


def _double(records: list[Any], draw: Draw) -> None:
    at = draw.randrange(len(records))
    records.insert(draw.choice((at, draw.randrange(len(records)))), json.loads(json.dumps(records[at])))


def _out_of_order(records: list[Any], draw: Draw) -> None:
    at = draw.randrange(len(records))
    record = records.pop(at)
    records.insert(max(0, min(len(records), at + draw.choice((-30, -3, -1, 1, 3, 30)))), record)


def _shifted_time(records: list[Any], draw: Draw) -> None:
    record = draw.choice(records)
    stamp = record.get("timestamp") if isinstance(record, dict) else None
    if isinstance(stamp, int | str) and str(stamp).isdigit():
        moved = int(stamp) + draw.choice((-(10**9), -5000, -1, 1, 300, 5000, 10**9))
        record["timestamp"] = str(moved) if isinstance(stamp, str) else moved


def _equal_times(records: list[Any], draw: Draw) -> None:
    start = draw.randrange(len(records))
    stamps = [record["timestamp"] for record in records[start:] if isinstance(record, dict) and "timestamp" in record]
    for record in records[start : start + draw.choice((2, 5, 400))]:
        if isinstance(record, dict) and stamps:
            record["timestamp"] = stamps[0]


def _other_value(records: list[Any], draw: Draw) -> None:
    where = _field(draw.choice(records), draw)
    if where is not None:
        where[0][where[1]] = draw.choice(OTHER_VALUES)


def _other_value_in_all(records: list[Any], draw: Draw) -> None:
    where = _field(draw.choice(records), draw)
    value = draw.choice(OTHER_VALUES)
    for record in records if where is not None else ():
        if isinstance(record, dict) and where[1] in record:
            record[where[1]] = value


def _lost_field(records: list[Any], draw: Draw) -> None:
    where = _field(draw.choice(records), draw)
    if where is not None:
        del where[0][where[1]]


def _extra_field(records: list[Any], draw: Draw) -> None:
    record = draw.choice(records)
    if isinstance(record, dict):
        record[draw.choice(("extra", "type", "event_type", "user", "value", "was_interrupted"))] = draw.choice(
            OTHER_VALUES
        )


def _other_record(records: list[Any], draw: Draw) -> None:
    records[draw.randrange(len(records))] = draw.choice(OTHER_VALUES)


def _phrase(records: list[Any], draw: Draw) -> None:
    """A whole phrase sent before its words, as a preview, or with blanks around a word."""
    at = draw.randrange(len(records))
    words = [record["data"]["frame"] for record in records[at : at + 4] if _is_word(record)]
    if words:
        text = draw.choice((" ".join(words), f" {words[0]}", f"{words[0]} ", words[0].upper()))
        records.insert(at, {**records[at], "data": {"frame": text}, "type": "tts_text"})


def _is_word(record: Any) -> bool:
    data = record.get("data") if isinstance(record, dict) else None
    return isinstance(data, dict) and isinstance(data.get("frame"), str)


def _field(record: Any, draw: Draw) -> tuple[Record, str] | None:
    """A field of a record, or of what it holds."""
    if not isinstance(record, dict) or not record:
        return None
    name = draw.choice(sorted(record))
    held = record[name]
    return (
        (held, draw.choice(sorted(held))) if isinstance(held, dict) and held and draw.random() < 0.7 else (record, name)
    )


def _not_json(path: Path, draw: Draw) -> None:
    log = _Log(path)
    where = _field(draw.choice(log.records), draw) if log.records else None
    if where is not None:
        where[0][where[1]] = "@mark@"
        log.write(raw={"@mark@": draw.choice(RAW_VALUES)})


_MUTATIONS: tuple[Callable[[Path, Draw], None], ...] = (
    *(_missing, _empty, _cut, _blank_line, _other_bytes, _byte_order_mark, _not_json, _not_json),
    *map(
        _of_log,
        (
            *(_drop, _double, _double, _out_of_order, _shifted_time, _shifted_time, _equal_times, _other_value),
            *(_other_value, _other_value, _other_value_in_all, _lost_field, _extra_field, _other_record, _phrase),
        ),
    ),
)
