"""Copies among records that are brought together: single messages and lines of logs, from one file or several."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import msgspec

from convoscope.ingest.hash_buckets import KeyedRecords, SortedRun
from convoscope.ingest.ids import comparable, has_time, message_id
from convoscope.ingest.reader import Reader, Record
from convoscope.ingest.report import ReadReport

_encode = msgspec.json.Encoder(order="deterministic").encode


class Row(NamedTuple):
    """A single message, or a line of a log: what it says, and the file that it is in."""

    file: str
    text: Hashable
    id: str | None = None
    is_timed: bool = False


def message_row(file: str, value: Any, says: Hashable) -> Row:
    """A message as its copies have it; `says` is what its reader makes of it, None for nothing."""
    if not isinstance(value, dict):
        return Row(file, _encode(value))
    id = message_id(value)
    text = says if says is not None else _encode(value if id is None else comparable(value))
    return Row(file, text, id, has_time(value))


def copied_rows(rows: Sequence[Row]) -> list[int]:
    """The indexes of the rows of one conversation that are copies of others.

    Equal rows with one id or time are copies, where that id is of no other row. Of the others the file that has most
    of them is believed: somebody may say the same twice.
    """
    if len({row.text for row in rows}) == len(rows):
        return []
    texts_of: dict[str, set[Hashable]] = {}
    for row in rows:
        if row.id is not None:
            texts_of.setdefault(row.id, set()).add(row.text)
    by_text: dict[Hashable, list[int]] = {}
    for index, row in enumerate(rows):
        by_text.setdefault(row.text, []).append(index)
    copies: list[int] = []
    for same in by_text.values():
        row = rows[same[0]]
        if row.is_timed or (row.id is not None and len(texts_of[row.id]) == 1):
            copies += same[1:]
        elif len({rows[index].file for index in same}) > 1:
            counts = Counter(rows[index].file for index in same)
            most = min(counts, key=lambda file: (-counts[file], file))
            copies += [index for index in same if rows[index].file != most]
    return sorted(copies)


def without_copied_lines(keyed: KeyedRecords, report: ReadReport) -> KeyedRecords:
    """The lines of one key without those that other files have, too."""
    if len({run.name for run in keyed.runs}) < 2:
        return keyed
    copies = set(copied_rows([Row(run.name, text) for run in keyed.runs for text in run.texts]))
    if not copies:
        return keyed
    runs: list[SortedRun] = []
    index = 0
    for run in keyed.runs:
        kept = [at for at in range(len(run.texts)) if index + at not in copies]
        for at in range(len(run.texts)):
            if index + at in copies:
                report.drop_copy(run.name, run.numbers[at])
        index += len(run.texts)
        repairs = {new: run.repairs[at] for new, at in enumerate(kept) if at in run.repairs}
        if kept:
            texts, offsets = [run.texts[at] for at in kept], [run.offsets[at] for at in kept]
            runs.append(run._replace(texts=texts, offsets=offsets, repairs=repairs))
    return keyed._replace(runs=runs)


def without_copied_messages(
    records: tuple[Record, ...], reader: Reader, name: str, report: ReadReport
) -> tuple[Record, ...]:
    """The messages of one conversation without copies, and without what was written before they were edited."""
    rows = [message_row(record.file or name, record.value, reader.says(record.value)) for record in records]
    copies = frozenset(copied_rows(rows)) | frozenset(_earlier_versions(records))
    for index in copies:
        report.drop_copy(records[index].file or name, records[index].number)
    return tuple(record for index, record in enumerate(records) if index not in copies) if copies else records


_IDS_OF_MESSAGES = ("message_id", "messageId", "msg_id")
_EDITED = frozenset({"edited", "is_edited", "isEdited", "edited_at", "editedAt", "edit_date", "edit_of"})


def _earlier_versions(records: Sequence[Record]) -> list[int]:
    """The indexes of messages that a later one of the same id replaces: it was edited, or its text went on."""
    latest: dict[tuple[str, str], int] = {}
    replaced: list[int] = []
    for index, record in enumerate(records):
        value = record.value
        id = next((value[name] for name in _IDS_OF_MESSAGES if value.get(name)), None) if type(value) is dict else None
        if not isinstance(id, str | int):
            continue
        key = (str(id), str(value.get("role")))
        earlier = latest.get(key)
        if earlier is not None and (
            any(value.get(name) for name in _EDITED) or _goes_on(records[earlier].value, value)
        ):
            replaced.append(earlier)
        latest[key] = index
    return replaced


def _goes_on(earlier: Any, later: Any) -> bool:
    texts = (earlier.get("content"), later.get("content"))
    return (
        all(isinstance(text, str) and text for text in texts) and texts[0] != texts[1] and texts[1].startswith(texts[0])
    )
