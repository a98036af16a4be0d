"""The folder of a run and its tables: DuckDB with one thread by default and little memory, Parquet in and out."""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from convoscope.conversation import DIMENSIONS
from convoscope.errors import RunError
from convoscope.harmless import is_utf8
from convoscope.scores.observation import COMPUTED
from convoscope.scores.side_tables import is_side_table_name
from convoscope.storage import addresses, is_remote, register_store

if TYPE_CHECKING:
    import duckdb


INSIDE = ".partial"
"""The folder in which a run is made, where the folder of the run is there already."""
ANSWERS = "answers"
"""What metrics that wait were answered, in the folder of an unfinished run."""
SCRATCH = "scratch"
_OWN = (INSIDE, ANSWERS, SCRATCH)
_GENERATION = "generation-"
"""Begins the name of the folder with the own files of a run that grew."""


def check_folder(folder: Path) -> None:
    """Refuse a folder of a run that holds anything but plain files and folders.

    A link would lead reading and writing out of it, and a pipe would wait for ever.
    """
    if is_remote(folder):  # a store holds objects only
        return
    for entry in _entries(folder):
        if entry.is_symlink() or not (entry.is_file(follow_symlinks=False) or entry.is_dir(follow_symlinks=False)):
            what = "a link" if entry.is_symlink() else "neither a file nor a folder"
            raise RunError(
                f"{entry.path} is {what}: a run holds plain files only",
                hint="do not use a run folder that you do not trust; or score the logs again, into another folder",
            )


def _entries(folder: Path | str) -> Iterator[os.DirEntry[str]]:
    """What lies in it and in the folders that a run writes. Other folders are not opened by any command.

    A folder that another process removes meanwhile, as one that adds to the run does, holds nothing.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            yield entry
            if entry.is_dir(follow_symlinks=False) and _is_own(entry.name):
                with suppress(FileNotFoundError):
                    yield from _entries(entry.path)


def _is_own(name: str) -> bool:
    return name in _OWN or name.endswith(".parquet") or name.startswith(_GENERATION)


def generation_folder(folder: Path, generation: int) -> Path:
    """Where a run keeps its own files, other than the receipt, as they were after so many growths."""
    return folder / f"{_GENERATION}{generation:06d}"


_OBJECT = re.compile(
    rf"^(?P<folder>(?P<table>\w+)\.parquet/part-\d{{6,}}|{_GENERATION}\d{{6,}})"
    r"(?:-(?P<attempt>[0-9a-f]{8}))?(?P<rest>\.parquet|/\w[\w.-]*)"
)


def object_name(name: str, attempt: str) -> str:
    """A file of a run as an attempt to write it names it in an object store: `scores.parquet/part-000007-3f9a1c2b…`."""
    return _OBJECT.sub(rf"\g<folder>-{attempt}\g<rest>", name)


def file_name(name: str) -> str:
    """The file of a run that an object is; "" for what is no object of a run. Its name may come from anyone."""
    match = _OBJECT.fullmatch(name)
    if match is None or (match["table"] is None) == (match["rest"] == ".parquet"):
        return ""
    return match["folder"] + match["rest"] if match["table"] is None or is_table_name(match["table"]) else ""


def generation_folders(folder: Path) -> list[Path]:
    """Those that there are."""
    return [path for path in folder.glob(f"{_GENERATION}*") if path.is_dir()]


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
    for path in (*folders, *files):
        register_store(connection, path)
    for setting, paths in (("allowed_directories", folders), ("allowed_paths", files)):
        names = [name for path in paths for name in (*map(quoted, addresses(path)), pattern(path))]
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


def attempted_file(folder: Path, table: str, part: int, attempt: str) -> Path:
    """The same file as a worker leaves it: it gets its name when the part is taken."""
    return part_file(folder, table, part).with_suffix(f".{attempt}")


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


def known_dimensions(connection: duckdb.DuckDBPyConnection, conversations: str) -> set[str]:
    """The dimensions that some of these conversations have: our own, and those from their log."""
    columns = (*DIMENSIONS, "dimensions")
    counted = ", ".join(f"count({name})" for name in columns)
    (counts,) = connection.execute(f"SELECT {counted} FROM {conversations}").fetchall()
    known = {name for name, count in zip(columns, counts, strict=True) if count}
    if "dimensions" in known:
        names = f"SELECT DISTINCT unnest(json_keys(dimensions)) FROM {conversations} WHERE dimensions IS NOT NULL"
        known |= {name for (name,) in connection.execute(names).fetchall()}
    return known - {"dimensions"}


class Tables:
    """The tables of a run as SQL names them: their parts together, and each row with its conversation's number.

    A part file says in which part and which row of it a conversation is. Its number is its index in the run.
    """

    def __init__(
        self,
        folder: Path,
        parts: Sequence[int],
        order: Sequence[int] = (),
        generation: int = 0,
        objects: Sequence[str] = (),
    ) -> None:
        self.folder = folder
        self._objects = {file_name(one): one for one in objects}
        """Of a run in an object store: its objects, by the names that the files of a run have."""
        start = generation_folder(Path(), generation).name
        self._apart = next((one.partition("/")[0] for one in objects if one.startswith(start)), "")
        self.parts = parts
        """Conversations of each part; 0 of one that is no longer there."""
        self.order = list(order) or [number for number, count in enumerate(parts) if count]
        """The numbers of the parts in the order of the input."""
        self.generation = generation
        self.firsts = [0] * len(parts)
        """The number of the first conversation of each part."""
        total = 0
        for part in self.order:
            self.firsts[part] = total
            total += parts[part]

    def own(self, name: str) -> Path:
        """One of the files of the run that belong to no part. Those of a run that grew lie apart by generation.

        A reader that opened the run before it grew goes on with what it saw.
        """
        apart = generation_folder(self.folder, self.generation)
        if self._objects:
            return self.folder / self._apart / name
        return (apart if apart.is_dir() else self.folder) / name

    def files(self, table: str) -> list[Path]:
        """The parts of a table; of a side table, those that have rows."""
        return [path for part in self.order for path in self.of_part(table, part)]

    def check(self) -> None:
        """Refuse a run of which a part is missing: its figures would be of the rest."""
        names = {*TABLES, *(name.partition(".parquet/")[0] for name in self._objects if ".parquet/" in name)}
        for table in sorted(names):
            for path in self.files(table):
                if not path.is_file():
                    raise RunError(
                        f"{path} is missing: the run is not whole", hint="score the logs again, into another folder"
                    )

    def of_part(self, table: str, part: int) -> list[Path]:
        """The file of one part of a table, if it has one. Where one must be, it is named though it is missing."""
        path = part_file(self.folder, table, part)
        if there := self._objects.get(f"{path.parent.name}/{path.name}"):
            return [self.folder / there]
        return [path] if (self.parts[part] and table in TABLES) or (not self._objects and path.exists()) else []

    def side_tables(self) -> list[str]:
        """The names of the side tables that have rows. A folder whose name is not a table's is not of the run."""
        names = {path.stem for path in table_folders(self.folder)}
        if self._objects:
            names = {name.partition(".parquet/")[0] for name in self._objects}
        return sorted(name for name in names if is_side_table_name(name) and self.files(name))

    def table(self, table: str, paths: Sequence[Path] | None = None, where: str = "true") -> str:
        """A table, or some parts of it, for the FROM of a query; "" where it has no row."""
        paths = self.files(table) if paths is None else paths
        if not paths:
            return ""
        number = f"{self.number}::INTEGER AS number"
        source = f"{parquet(*paths)} AS t"
        renamed = self.own(RENAMED)
        if not renamed.exists():
            return f"(SELECT conversation, {number}, * EXCLUDE (conversation, part, row) FROM {source} WHERE {where})"
        return (
            f"(SELECT coalesce(r.name, t.conversation) AS conversation, {number}, "
            f"t.* EXCLUDE (conversation, part, row) FROM {source} "
            f"LEFT JOIN {parquet(renamed)} AS r ON r.part = t.part AND r.row = t.row WHERE {where})"
        )

    def at(self, table: str, numbers: Iterable[int]) -> str:
        """The rows of some conversations. Only the parts that hold them are opened."""
        starts = [self.firsts[part] for part in self.order]
        wanted = sorted(numbers)
        parts = dict.fromkeys(self.order[bisect_right(starts, number) - 1] for number in wanted)
        paths = [path for part in parts for path in self.of_part(table, part)]
        return f"(SELECT * FROM {self.table(table, paths)} WHERE number IN ({', '.join(map(str, wanted))}))"

    @property
    def number(self) -> str:
        """The number of a row's conversation."""
        return "t.row" if len(self.firsts) == 1 else f"(list_extract({self.firsts}, t.part + 1) + t.row)"


def parquet(*paths: Path) -> str:
    """Parquet files as a table, by their very names."""
    return f"read_parquet([{', '.join(pattern(path) for path in paths)}])"


def metadata(*paths: Path) -> str:
    """What Parquet files say of their columns, without their rows."""
    return f"parquet_metadata([{', '.join(pattern(path) for path in paths)}])"


def pattern(path: Path) -> str:
    """A pattern that means this very file: DuckDB would read * ? [ in a name as patterns, and ~ as a home."""
    resolved = path.resolve()
    if not is_utf8(resolved):
        raise RunError(f"the path {os.fsencode(path)!r} is not UTF-8", hint="rename the folder of the run")
    return quoted(re.sub(r"([*?\[])", r"[\1]", str(resolved)))


def write_parquet(connection: duckdb.DuckDBPyConnection, query: str, path: Path, options: str) -> None:
    """Write what a query gives as one file, whole or not at all."""
    # Not its parents: a worker that was thought to be lost must not make the folder of a finished run again.
    path.parent.mkdir(exist_ok=True)
    unfinished = path.with_name(f"{path.name}.unfinished")
    connection.execute(f"COPY ({query}) TO {quoted(unfinished.resolve())} (FORMAT parquet, {options})")
    unfinished.rename(path)


def _absent(tables: Tables, paths: Sequence[Path] | None, columns: str) -> str:
    conversations = tables.table(CONVERSATIONS, paths)
    return (
        f"SELECT c.conversation, c.number, p.metric, p.variant, {columns} "
        f"FROM {conversations} AS c JOIN {parquet(tables.own(PROFILES))} AS p USING (profile)"
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
