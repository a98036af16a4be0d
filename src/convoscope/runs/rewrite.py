"""Parts of a run that are written again from what they hold: several small ones as one, or without some rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from convoscope.conversation import Flow
from convoscope.ingest.report import ReadReport
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    SCORES,
    TABLES,
    connect,
    parquet,
    part_file,
    write_parquet,
)
from convoscope.scoring.partition import PartDone, Timings

SMALL_BYTES = 256 * 1024
"""Of the scores of a part that may be put together with its neighbours."""
FULL_BYTES = 1024 * 1024
LEAST = 16
"""So many small neighbours become one: a part is written again once for sixteen that come."""
MOST_PIECES = 500


def with_fewer_parts(folder: Path, parts: Sequence[PartDone], free: int) -> list[PartDone]:
    """The parts, small neighbours put together under numbers from `free` on."""
    one_of = {group[0].part: group for group in small_neighbours(folder, parts)}
    inner = {part.part for group in one_of.values() for part in group[1:]}
    fewer: list[PartDone] = []
    for part in parts:
        if part.part in one_of:
            fewer.append(write_again(folder, one_of[part.part], free))
            free += 1
        elif part.part not in inner:
            fewer.append(part)
    return fewer


def small_neighbours(folder: Path, parts: Sequence[PartDone]) -> Iterator[list[PartDone]]:
    """Parts that follow each other and are better one: each of them is opened for every question."""
    group: list[PartDone] = []
    size = 0
    for part in [*parts, None]:
        own = FULL_BYTES if part is None or not part.conversations else _size(folder, part)
        is_small = own <= SMALL_BYTES and part is not None and not part.running
        pieces = sum(len(one.pieces) for one in group) + (len(part.pieces) if part is not None else 0)
        # What is gone from the logs stays apart from what may change with them.
        is_other = bool(group) and part is not None and bool(group[0].pieces) != bool(part.pieces)
        if group and (not is_small or is_other or size + own > FULL_BYTES or pieces > MOST_PIECES):
            if len(group) >= LEAST:
                yield group
            group, size = [], 0
        if is_small and part is not None:
            group.append(part)
            size += own


def _size(folder: Path, part: PartDone) -> int:
    return sum(part_file(folder, table, part.part).stat().st_size for table in part.tables)


def write_again(
    folder: Path, parts: Sequence[PartDone], number: int, kept: Mapping[int, Sequence[int]] | None = None
) -> PartDone:
    """One part of several, or of the rows of them that are `kept`, by the numbers of the parts."""
    rows_of = {part.part: range(part.conversations) if kept is None else kept[part.part] for part in parts}
    old = np.repeat([*rows_of], [len(rows) for rows in rows_of.values()])
    before = np.array([row for rows in rows_of.values() for row in rows], dtype=np.int32)
    tables: list[str] = []
    with connect(folder) as connection:
        connection.register("rows", {"old": old, "before": before, "now": np.arange(len(before), dtype=np.int32)})
        for table in dict.fromkeys(name for part in parts for name in part.tables):
            paths = [part_file(folder, table, part.part) for part in parts if table in part.tables]
            source = parquet(*paths).removesuffix(")") + ", file_row_number = true)"
            # The order that a part has when it is written: metric by metric.
            first = "t.metric, t.variant, " if table in (SCORES, CONVERSATION_SCORES) else ""
            query = (
                f"SELECT t.* EXCLUDE (file_row_number) REPLACE ({number}::INTEGER AS part, r.now AS row) "
                f"FROM {source} AS t JOIN rows AS r ON r.old = t.part AND r.before = t.row "
                f"ORDER BY {first}r.now, t.file_row_number"
            )
            ((count,),) = connection.execute(f"SELECT count(*) FROM ({query})").fetchall()
            if count or (len(before) and table in TABLES):
                write_parquet(connection, query, part_file(folder, table, number), "COMPRESSION zstd")
                tables.append(table)
        profiles: list[tuple[str]] = []
        if len(before):
            source = parquet(part_file(folder, CONVERSATIONS, number))
            profiles = connection.execute(f"SELECT DISTINCT profile FROM {source} ORDER BY 1").fetchall()
    return _joined(parts, number, len(before), tables, [profile for (profile,) in profiles])


def _joined(
    parts: Sequence[PartDone], number: int, conversations: int, tables: Sequence[str], profiles: Sequence[str]
) -> PartDone:
    report, timings, flows = ReadReport(), Timings(), dict[str, Flow]()
    for part in parts:
        report.merge(part.report)
        timings.add(part.timings)
        flows = part.flows | flows
    report.conversations += conversations - sum(part.conversations for part in parts)
    return PartDone(
        part=number,
        conversations=conversations,
        tables=tuple(tables),
        profiles=tuple(profiles),
        report=report,
        timings=timings,
        flows=flows,
        pieces=tuple(piece for part in parts for piece in part.pieces),
    )
