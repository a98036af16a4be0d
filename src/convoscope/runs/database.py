"""The folder of a run and its tables: DuckDB with one thread by default and little memory, Parquet in and out."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from convoscope.conversation import DIMENSIONS
from convoscope.errors import RunError
from convoscope.harmless import is_utf8
from convoscope.scores.observation import COMPUTED
from convoscope.scores.side_tables import is_side_table_name

if TYPE_CHECKING:
    import duckdb


INSIDE = ".partial"
"""The folder in which a run is made, where the folder of the run is there already."""
ANSWERS = "answers"
"""What metrics that wait were answered, in the folder of an unfinished run."""
SCRATCH = "scratch"
_OWN = (INSIDE, ANSWERS, SCRATCH)


def check_folder(folder: Path) -> None:
    """Refuse a folder of a run that holds anything but plain files and folders.

    A link would lead reading and writing out of it, and a pipe would wait for ever.
    """
    for entry in _entries(folder):
        if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            what = "a link" if entry.is_symlink() else "neither a file nor a folder"
            raise RunError(
                f"{entry.path} is {what}: a run holds plain files only",
                hint="do not use a run folder that you do not trust; or score the logs again, into another folder",
            )


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """What lies in it and in the folders that a run writes. Other folders are not opened by any command."""
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False) and (entry.name in _OWN or entry.name.endswith(".parquet")):
                yield from _entries(entry.path)


def connect(folder: Path | None = None) -> duckdb.DuckDBPyConnection:
    """A connection that can open the files of this run folder and no others; no file at all where none is given.

    The database behind it is in memory and stays open: only temporary tables and views are the connection's own. To
    open a database costs a hundred times what a connection to an open one does.
    """
    return _shared(None if folder is None else folder.resolve()).cursor()


_open: dict[int, dict[Path | None, duckdb.DuckDBPyConnection]] = {}
"""By process, as a fork can neither use nor close what its parent opened; and by folder."""
_MOST_OPEN = 8


def _shared(folder: Path | None) -> duckdb.DuckDBPyConnection:
    databases = _open.setdefault(os.getpid(), {})
    if folder not in databases:
        while len(databases) >= _MOST_OPEN:
            databases.pop(next(iter(databases)))
        # A file that was written anew is read anew.
        database = _database(2048, 1, {"enable_external_file_cache": False})
        # An unfinished run and the run that it becomes are one: to open a database takes as long as to score a call.
        folders = [] if folder is None else list(dict.fromkeys((folder, _published(folder))))
        _shut_in(database, folders)
        databases[folder] = database
        databases.update(dict.fromkeys(folders, database))
    return databases[folder]


def _published(folder: Path) -> Path:
    """Where a run is put when it is finished; the folder itself, where it is."""
    if folder.name == INSIDE:
        return folder.parent
    return folder.with_name(folder.name.removesuffix(INSIDE))


def connect_alone(
    scratch: Path, *, folders: Sequence[Path] = (), files: Sequence[Path] = (), memory_mb: int = 256, threads: int = 1
) -> duckdb.DuckDBPyConnection:
    """A database of its own, in memory, that spills to `scratch` when it must. It opens nothing but `files`, and the
    files of `folders`."""
    connection = _database(memory_mb, threads, {"temp_directory": str(scratch.resolve())})
    _shut_in(connection, folders, files)
    return connection


def _database(memory_mb: int, threads: int, settings: dict[str, str | bool]) -> duckdb.DuckDBPyConnection:
    import duckdb

    # Nothing is fetched from anywhere, whatever a query asks for.
    local: dict[str, str | bool] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    sizes = {"threads": str(threads), "memory_limit": f"{memory_mb}MB"}
    connection = duckdb.connect(":memory:", config={**local, **sizes, **settings})
    connection.execute("SET enable_progress_bar = false")
    return connection


def _shut_in(connection: duckdb.DuckDBPyConnection, folders: Sequence[Path], files: Sequence[Path] = ()) -> None:
    """From here on the connection opens files of these folders, or these files, and no setting can change that.

    Before anything of a run is read: a run folder may come from anyone.
    """
    for setting, paths in (("allowed_directories", folders), ("allowed_paths", files)):
        names = [name for path in paths for name in (quoted(path.resolve()), pattern(path))]
        connection.execute(f"SET {setting} = [{', '.join(dict.fromkeys(names))}]")
    connection.execute("SET allow_community_extensions = false")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def quoted(text: object) -> str:
    """A string as SQL writes it."""
    return "'" + str(text).replace("'", "''") + "'"


def part_file(folder: Path, table: str, part: int) -> Path:
    """The file of one part of a table."""
    return folder / f"{table}.parquet" / f"part-{part:06d}.parquet"


def table_folders(folder: Path) -> list[Path]:
    """The folders of tables that lie in the folder of a run."""
    return [path for path in folder.glob("*.parquet") if path.is_dir()]


def is_table_name(name: str) -> bool:
    """Whether a table of a run can have this name. It is part of paths and of SQL, and may come from anyone."""
    return name in TABLES or is_side_table_name(name)


CONVERSATIONS = "conversations"
SCORES = "scores"
CONVERSATION_SCORES = "conversation_scores"
TABLES = (CONVERSATIONS, SCORES, CONVERSATION_SCORES)
"""Every part has a file of these; of side tables, only where it has rows."""
PROFILES = "profiles.parquet"
"""For each profile, the metrics that cannot be measured in its conversations, and why."""
RENAMED = "renamed.parquet"
"""The conversations of which another has the id already, and the names that they got."""


def dimension_column(name: str) -> str:
    """A dimension of conversations, as SQL."""
    # A JSON pointer, which can name anything.
    pointer = quoted("/" + name.replace("~", "~0").replace("/", "~1"))
    return f'"{name}"' if name in DIMENSIONS else f"json_extract_string(dimensions, {pointer})"


def further_dimensions(connection: duckdb.DuckDBPyConnection, conversations: str) -> set[str]:
    """The dimensions that these conversations have from their log, beside our own."""
    names = f"SELECT DISTINCT unnest(json_keys(dimensions)) FROM {conversations} WHERE dimensions IS NOT NULL"
    return {name for (name,) in connection.execute(names).fetchall()}


class Tables:
    """The tables of a run as SQL names them: their parts together, and each row with its conversation's number.

    A part file says in which part and which row of it a conversation is. Its number is its index in the run.
    """

    def __init__(self, folder: Path, parts: Sequence[int]) -> None:
        self.folder = folder
        self.parts = parts
        """Conversations of each part."""
        self.firsts = [sum(parts[:number]) for number in range(len(parts))]

    def files(self, table: str) -> list[Path]:
        """The parts of a table; of a side table, those that have rows."""
        return [path for part in range(len(self.parts)) for path in self.of_part(table, part)]

    def check(self) -> None:
        """Refuse a run of which a part is missing: its figures would be of the rest."""
        for table in TABLES:
            for path in self.files(table):
                if not path.is_file():
                    raise RunError(
                        f"{path} is missing: the run is not whole", hint="score the logs again, into another folder"
                    )

    def of_part(self, table: str, part: int) -> list[Path]:
        """The file of one part of a table, if it has one. Where one must be, it is named though it is missing."""
        path = part_file(self.folder, table, part)
        return [path] if (self.parts[part] and table in TABLES) or path.exists() else []

    def side_tables(self) -> list[str]:
        """The names of the side tables that have rows. A folder whose name is not a table's is not of the run."""
        names = (path.stem for path in table_folders(self.folder))
        return sorted(name for name in names if is_side_table_name(name) and self.files(name))

    def table(self, table: str, paths: Sequence[Path] | None = None, where: str = "true") -> str:
        """A table, or some parts of it, for the FROM of a query; "" where it has no row."""
        paths = self.files(table) if paths is None else paths
        if not paths:
            return ""
        number = f"{self.number}::INTEGER AS number"
        source = f"{parquet(*paths)} AS t"
        renamed = self.folder / RENAMED
        if not renamed.exists():
            return f"(SELECT conversation, {number}, * EXCLUDE (conversation, part, row) FROM {source} WHERE {where})"
        return (
            f"(SELECT coalesce(r.name, t.conversation) AS conversation, {number}, "
            f"t.* EXCLUDE (conversation, part, row) FROM {source} "
            f"LEFT JOIN {parquet(renamed)} AS r ON r.part = t.part AND r.row = t.row WHERE {where})"
        )

    def at(self, table: str, numbers: Sequence[int]) -> str:
        """The rows of some conversations: those of each part are looked up in its own file."""
        by_part: dict[int, list[int]] = {}
        for number in sorted(numbers):
            part = bisect_right(self.firsts, number) - 1
            by_part.setdefault(part, []).append(number - self.firsts[part])
        queries: list[str] = []
        for part, rows in by_part.items():
            if paths := self.of_part(table, part):
                wanted = ", ".join(map(str, rows))
                queries.append(f"SELECT * FROM {self.table(table, paths, where=f't.row IN ({wanted})')}")
        return f"({' UNION ALL '.join(queries)})"

    @property
    def number(self) -> str:
        """The number of a row's conversation."""
        return "t.row" if len(self.firsts) == 1 else f"(list_extract({self.firsts}, t.part + 1) + t.row)"


def parquet(*paths: Path) -> str:
    """Parquet files as a table, by their very names."""
    return f"read_parquet([{', '.join(pattern(path) for path in paths)}])"


def pattern(path: Path) -> str:
    """A pattern that means this very file: DuckDB would read * ? [ in a name as patterns, and ~ as a home."""
    if not is_utf8(path.resolve()):
        raise RunError(f"the path {os.fsencode(path)!r} is not UTF-8", hint="rename the folder of the run")
    return quoted(re.sub(r"([*?\[])", r"[\1]", str(path.resolve())))


def write_parquet(connection: duckdb.DuckDBPyConnection, query: str, path: Path, options: str) -> None:
    """Write what a query gives as one file, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    connection.execute(f"COPY ({query}) TO {quoted(unfinished.resolve())} (FORMAT parquet, {options})")
    unfinished.rename(path)


def _absent(tables: Tables, paths: Sequence[Path] | None, columns: str) -> str:
    conversations = tables.table(CONVERSATIONS, paths)
    return (
        f"SELECT c.conversation, c.number, p.metric, p.variant, {columns} "
        f"FROM {conversations} AS c JOIN {parquet(tables.folder / PROFILES)} AS p USING (profile)"
    )


def all_scores(tables: Tables, part: int | None = None) -> str:
    """The scores with a row for each metric that could not look at a conversation; of one part if given."""
    absent = (
        f"'conversation' AS subject_kind, '' AS subject, 0::BIGINT AS position, {quoted(COMPUTED)} AS judge, "
        "0 AS repeat, "
        "p.status, NULL::DOUBLE AS value, NULL::DOUBLE AS numerator, NULL::DOUBLE AS denominator, "
        "NULL::DOUBLE AS tp, NULL::DOUBLE AS fp, NULL::DOUBLE AS fn, "
        "p.reason, p.detail, NULL::VARCHAR AS details"
    )
    return _together(tables, SCORES, part, absent)


def all_conversation_scores(tables: Tables) -> str:
    """The scores of conversations with a row for each metric that could not look at one."""
    absent = (
        f"{quoted(COMPUTED)} AS judge, p.status, NULL::DOUBLE AS value, NULL::DOUBLE AS score, p.unit, 0 AS n, "
        "0.0::DOUBLE AS total, 0.0::DOUBLE AS numerator, 0.0::DOUBLE AS denominator, "
        "0.0::DOUBLE AS tp, 0.0::DOUBLE AS fp, 0.0::DOUBLE AS fn, "
        "(p.status = 'not_applicable')::INTEGER AS not_applicable, "
        "(p.status <> 'not_applicable')::INTEGER AS unmeasured, "
        "0 AS errors, p.reason, p.detail"
    )
    return _together(tables, CONVERSATION_SCORES, None, absent)


def _together(tables: Tables, table: str, part: int | None, absent: str) -> str:
    observed = tables.table(table, None if part is None else tables.of_part(table, part))
    missing = _absent(tables, None if part is None else tables.of_part(CONVERSATIONS, part), absent)
    return f"({f'SELECT * FROM {observed} UNION ALL BY NAME ' if observed else ''}{missing})"
