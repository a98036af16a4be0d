"""What remains to be done when all parts are written: cut at the limit, name what shares an id, store the profiles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from convoscope.metrics.registry import Declared
from convoscope.runs.database import (
    CONVERSATIONS,
    PROFILES,
    RENAMED,
    Tables,
    connect,
    parquet,
    part_file,
    table_folders,
    write_parquet,
)
from convoscope.runs.part_files import ColumnBuffer
from convoscope.scoring.partition import PartDone
from convoscope.scoring.profiles import Profiles

if TYPE_CHECKING:
    import duckdb


class Finished(Tables):
    """The tables of a run whose parts are all there."""

    def __init__(self, tables: Tables, profiles: Sequence[str], shared: Sequence[str]) -> None:
        super().__init__(tables.folder, tables.parts, tables.order)
        self.profiles = profiles
        """The keys of all profiles that conversations have."""
        self.shared = shared
        """The ids that more than one conversation had."""


def finish_tables(
    folder: Path,
    done: Sequence[PartDone],
    metrics: Sequence[Declared],
    limit: int | None,
    resources: frozenset[str] = frozenset(),
) -> Finished:
    """Make the parts, in the order of the input, the tables of a run. Only the part that a limit cuts is rewritten."""
    counts = [part.conversations for part in done]
    if limit is not None:
        counts = _cut(folder, done, limit)
    _remove_strays(folder, [part for part, count in zip(done, counts, strict=True) if count])
    profiles = sorted({key for part, count in zip(done, counts, strict=True) if count for key in part.profiles})
    write_profiles(folder, metrics, profiles, resources)
    parts = [0] * (1 + max(part.part for part in done))
    for part, count in zip(done, counts, strict=True):
        parts[part.part] = count
    (folder / RENAMED).unlink(missing_ok=True)
    tables = Tables(folder, parts, [part.part for part, count in zip(done, counts, strict=True) if count])
    return Finished(tables, profiles, _rename(tables))


def _cut(folder: Path, done: Sequence[PartDone], limit: int) -> list[int]:
    """How many conversations of each part are within the limit."""
    counts: list[int] = []
    left = limit
    for part in done:
        counts.append(min(left, part.conversations))
        left -= counts[-1]
        if 0 < counts[-1] < part.conversations:
            with connect(folder) as connection:
                for table in part.tables:
                    path = part_file(folder, table, part.part)
                    query = f"SELECT * FROM {parquet(path)} WHERE row < {counts[-1]}"
                    write_parquet(connection, query, path, "COMPRESSION zstd")
    return counts


def _remove_strays(folder: Path, parts: Sequence[PartDone]) -> None:
    """Files of parts that are not of this run: beyond a limit, or never finished."""
    for table in table_folders(folder):
        expected = {part_file(folder, table.stem, part.part) for part in parts if table.stem in part.tables}
        for path in table.glob("*"):
            if path not in expected:
                path.unlink()


def _rename(tables: Tables) -> list[str]:
    """A second conversation of an id gets `~2` at its end. Gives back the ids that several had."""
    conversations = tables.table(CONVERSATIONS)
    with connect(tables.folder) as connection:
        # Hashes are enough to know that there is nothing to do, which is the rule.
        hashes = connection.execute(f"SELECT hash(conversation) AS h FROM {conversations}").fetchnumpy()["h"]
        ordered = np.sort(np.asarray(hashes))
        again = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        if not len(again):
            return []
        connection.register("again", {"h": again})
        rows = connection.execute(
            f"SELECT conversation, number FROM {conversations} SEMI JOIN again ON h = hash(conversation) "
            "ORDER BY number"
        ).fetchall()
        nth: dict[str, int] = {}
        second: list[tuple[int, str, int]] = []
        for id, number in rows:
            nth[id] = nth.get(id, 0) + 1
            if nth[id] > 1:
                second.append((number, id, nth[id]))
        if not second:
            return []
        # More tildes where an id of the logs ends in ~2.
        for tildes in range(1, 100):
            names = [f"{id}{'~' * tildes}{count}" for _, id, count in second]
            if len(set(names)) == len(names) and not _taken(connection, conversations, names):
                break
        _write_names(tables, [number for number, _, _ in second], names)
    return sorted(id for id, count in nth.items() if count > 1)


def _taken(connection: duckdb.DuckDBPyConnection, conversations: str, names: Sequence[str]) -> bool:
    """Whether a conversation has one of these names as its own id."""
    wanted = np.empty(len(names), dtype=object)
    wanted[:] = names
    connection.register("wanted", {"name": wanted})
    query = f"SELECT 1 FROM {conversations} SEMI JOIN wanted ON name = conversation LIMIT 1"
    return bool(connection.execute(query).fetchall())


def _write_names(tables: Tables, numbers: Sequence[int], names: Sequence[str]) -> None:
    rows_of_run = np.asarray(numbers, dtype=np.int64)
    firsts, order = np.asarray(tables.firsts, dtype=np.int64), np.asarray(tables.order, dtype=np.int64)
    parts = order[np.searchsorted(firsts[order], rows_of_run, side="right") - 1]
    columns = ColumnBuffer(len(names))
    columns.numbers("part", int, parts)
    columns.numbers("row", int, rows_of_run - firsts[parts])
    columns.texts("name", names)
    with connect(tables.folder) as connection:
        columns.write(connection, tables.folder / RENAMED)


def write_profiles(
    folder: Path, metrics: Sequence[Declared], keys: Iterable[str], resources: frozenset[str] = frozenset()
) -> None:
    """One row for each profile and each metric that cannot look at conversations of that profile."""
    profiles = Profiles(metrics, resources)
    rows = [
        (key, metrics[index].name, metrics[index].variant, metrics[index].unit, *absence)
        for key in sorted(keys)
        for index, absence in sorted(profiles.with_key(key).absent.items())
    ]
    columns = ColumnBuffer(len(rows))
    names = ("profile", "metric", "variant", "unit", "status", "reason", "detail")
    values = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    for name, column in zip(names, values, strict=True):
        columns.texts(name, [text or None for text in column] if name == "detail" else column)
    with connect(folder) as connection:
        columns.write(connection, folder / PROFILES)
