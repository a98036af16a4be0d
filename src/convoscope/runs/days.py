"""The tables of a run in one folder for each day, for programs that load and drop whole days."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from convoscope.errors import RunError, UsageError
from convoscope.runs.database import (
    CONVERSATION_SCORES,
    CONVERSATIONS,
    PROFILES,
    RENAMED,
    SCORES,
    TABLES,
    connect_alone,
    parquet,
    quoted,
)
from convoscope.runs.growth import parts_of
from convoscope.runs.receipt import canonical_hash
from convoscope.runs.run import Run, read_json, write_json
from convoscope.storage import is_remote

MANIFEST = "days.json"
UNDATED = "__HIVE_DEFAULT_PARTITION__"
"""The folder of conversations without a time: readers of such folders take the name for null."""
_SCRATCH = ".new"
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


class Day(msgspec.Struct, frozen=True):
    """A day as it was written."""

    conversations: int
    hash: str
    """Of all that its rows come from: a day of the same hash is not written again."""


class _Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What lies in the folder. It is replaced last."""

    schema: str = "convoscope.days/1"
    run: str
    settings: str
    days: dict[str, Day]


class WrittenDays(NamedTuple):
    """What came of it."""

    folder: Path
    days: dict[str, Day]
    written: list[str]
    removed: list[str]


def write_days(run: Run, out: str | os.PathLike[str], metrics: Sequence[str] = ()) -> WrittenDays:
    """Write the tables of a run into `TABLE/day=2026-11-18/` (UTC), with unique ids. Only what changed is written.

    A day that left the run leaves the folder. `metrics`: only scores of these.
    """
    folder = Path(out)
    if is_remote(out):
        raise UsageError(f"--out {out}: not a folder of this machine", hint="write to a folder, and copy it")
    unknown = sorted(set(metrics) - set(run.receipt.metrics))
    if unknown:
        raise UsageError(f"{run.folder} was not scored with {', '.join(unknown)}")
    settings = canonical_hash([{**run.receipt.config, "since": None, "targets": None}, sorted(metrics)])
    before = _known(folder, run, settings)
    folder.mkdir(parents=True, exist_ok=True)
    scratch = folder / _SCRATCH
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        days = _written(run, scratch, before, metrics)
        changed = [day for day in days if days[day] != before.get(day)]
        removed = [day for day in before if day not in days]
        _publish(run, folder, scratch, settings, days, before, [*changed, *removed])
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return WrittenDays(folder, days, changed, removed)


def _known(folder: Path, run: Run, settings: str) -> dict[str, Day]:
    """The days that the folder holds; a folder with something else, or of another run, is refused."""
    path = folder / MANIFEST
    if not path.exists():
        if folder.exists() and any(one.name != _SCRATCH for one in folder.iterdir()):
            raise RunError(f"{folder} holds something else", hint="choose another --out")
        return {}
    manifest: _Manifest = read_json(path, _Manifest)
    if (manifest.run, manifest.settings) != (run.name, settings):
        raise RunError(
            f"{folder} holds days of another run, or of other metrics or settings", hint="choose another --out"
        )
    return manifest.days


def _written(run: Run, scratch: Path, before: dict[str, Day], metrics: Sequence[str]) -> dict[str, Day]:
    """All days of the run. The tables of those that changed are in `scratch`."""
    tables = run.tables
    names = [name for name in (*TABLES, *tables.side_tables()) if tables.files(name)]
    with connect_alone(scratch, folders=[run.folder, scratch]) as connection:
        renamed = tables.own(RENAMED)
        names_of = f"LEFT JOIN {parquet(renamed)} AS r USING (part, row)" if renamed.exists() else ""
        connection.execute(f"""
            CREATE TEMP TABLE dated AS SELECT part, row, json_extract_string(facts, '$.day') AS day,
                {"coalesce(r.name, t.conversation)" if names_of else "t.conversation"} AS id
            FROM {parquet(*tables.files(CONVERSATIONS))} AS t {names_of}
        """)
        rows = connection.execute("""
            SELECT coalesce(day, ''), part, count(*), md5(string_agg(concat(row, ':', id), chr(10) ORDER BY row))
            FROM dated GROUP BY ALL ORDER BY ALL
        """).fetchall()
        content = {part.part: canonical_hash([part.pieces, part.tables]) for part in parts_of(run)}
        versions = [run.receipt.metrics, run.receipt.depends_on.get("version"), run.receipt.depends_on.get("sources")]
        by_day: dict[str, list[tuple[int, str, int, str]]] = {}
        for day, part, count, ids in rows:
            if day and not _DAY.fullmatch(day):
                raise RunError(f"{run.folder} is damaged: {day!r} is not a day")
            by_day.setdefault(day or UNDATED, []).append((part, content.get(part, ""), count, ids))
        days = {
            day: Day(sum(count for _, _, count, _ in parts), canonical_hash([versions, parts]))
            for day, parts in by_day.items()
        }
        changed = [day for day in days if days[day] != before.get(day)]
        if changed:
            wanted = ", ".join(quoted(day) for day in changed)
            connection.execute(
                f"CREATE TEMP TABLE wanted AS SELECT * FROM dated WHERE coalesce(day, {quoted(UNDATED)}) IN ({wanted})"
            )
        for name in names if changed else ():
            chosen = ""
            if metrics and name in (SCORES, CONVERSATION_SCORES):
                keys = ", ".join(quoted(one) for one in metrics)
                chosen = (
                    f"WHERE if(coalesce(t.variant, '') = '', t.metric, concat(t.metric, '@', t.variant)) IN ({keys})"
                )
            connection.execute(f"""
                COPY (
                    SELECT d.id AS conversation, t.* EXCLUDE (conversation), d.day
                    FROM {parquet(*tables.files(name))} AS t JOIN wanted AS d USING (part, row) {chosen}
                ) TO {quoted(scratch / name)}
                (FORMAT parquet, COMPRESSION zstd, PARTITION_BY (day), FILENAME_PATTERN 'part-{{i}}')
            """)
    return days


def _publish(
    run: Run,
    folder: Path,
    scratch: Path,
    settings: str,
    days: dict[str, Day],
    before: dict[str, Day],
    replaced: Sequence[str],
) -> None:
    """Put the new days in the place of the old ones. After a kill, the same command does again what was not done."""
    if not replaced and (folder / PROFILES).exists():
        return
    stays = {day: one for day, one in before.items() if day not in replaced}
    manifest = _Manifest(run=run.name, settings=settings, days=stays)
    write_json(folder / MANIFEST, manifest)
    for day in replaced:
        for table in folder.iterdir():
            shutil.rmtree(table / f"day={day}", ignore_errors=True)
        for table in scratch.iterdir():
            if (table / f"day={day}").is_dir():
                (folder / table.name).mkdir(exist_ok=True)
                os.replace(table / f"day={day}", folder / table.name / f"day={day}")
    (folder / PROFILES).write_bytes(run.tables.own(PROFILES).read_bytes())
    write_json(folder / MANIFEST, msgspec.structs.replace(manifest, days=dict(sorted(days.items()))))
