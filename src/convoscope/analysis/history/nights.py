"""From folders to nights: which runs count, of which day each is, and which conversations count once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from convoscope.analysis.words import counted
from convoscope.errors import RunError, UsageError
from convoscope.harmless import one_line
from convoscope.runs.database import CONVERSATIONS, INSIDE, connect
from convoscope.runs.run import RECEIPT, Run, find_runs

if TYPE_CHECKING:
    import duckdb

Rows = NDArray[np.bool_]
_DAY = "json_extract_string(facts, '$.day')"
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
FIRST_SHARE = 0.1
"""A run is of the first day that has so much of it: one conversation with a wrong clock dates nothing."""


class RunNight(NamedTuple):
    """A run, or a day of it."""

    run: Run
    date: str
    by_logs: bool
    rows: Rows
    """The conversations that count."""

    @property
    def conversations(self) -> int:
        return int(self.rows.sum())


class FoundNights(NamedTuple):
    """The nights in their order, and what is not among them."""

    nights: list[RunNight]
    left_out: list[str]
    notes: list[str]


def find_nights(paths: Sequence[Path], *, by_day: bool) -> FoundNights:
    """The nights of runs, or of folders that hold runs."""
    left_out: list[str] = []
    runs = _without_copies(list(_runs(paths, left_out)), left_out)
    seen = _Seen()
    nights: list[RunNight] = []
    repeated = undated = 0
    for run in sorted(runs, key=lambda one: (one.receipt.started_at, one.name)):
        days = _days(run)
        fresh = seen.fresh(run)
        repeated += int((~fresh).sum())
        if not fresh.any():
            left_out.append(f"{one_line(run.name)}: all its conversations are in earlier runs")
            continue
        if by_day:
            known = days != ""
            undated += int((fresh & ~known).sum())
            nights += [
                RunNight(run, day, True, fresh & (days == day)) for day in np.unique(days[fresh & known]).tolist()
            ]
        else:
            day = _first_day(days[fresh])
            nights.append(RunNight(run, day or run.receipt.started_at[:10], bool(day), fresh))
    notes = []
    if repeated:
        notes.append(f"{counted(repeated, 'conversation')} of earlier runs counted once")
    if undated:
        notes.append(f"{counted(undated, 'conversation')} without a date left out")
    if not nights:
        why = "; ".join(left_out) or "no conversation has a date"
        raise UsageError(f"no run to look at: {why}", hint="name runs, or folders that hold runs")
    return FoundNights(sorted(nights, key=lambda one: one.date), left_out, notes)


def _runs(paths: Sequence[Path], left_out: list[str]) -> Iterator[Run]:
    for path in paths:
        if not path.is_dir():
            raise UsageError(f"there is no folder {path}", hint="name runs, or folders that hold runs")
        damaged: list[RunError] = []
        if (path / RECEIPT).is_file():
            try:
                run = Run.open(path)
                _ = run.summary  # it may be the damaged file
                runs = [run]
            except RunError as error:
                damaged.append(error)
                runs = []
        else:
            runs = list(find_runs(path, damaged))
            left_out += [f"{one_line(name)}: not finished" for name in _unfinished(path)]
        left_out += [f"damaged: {one_line(error.message)}" for error in damaged]
        for run in runs:
            if run.receipt.valid:
                yield run
            else:
                left_out.append(f"{one_line(run.name)}: invalid, {one_line(run.receipt.invalid_reason or '')}")


def _unfinished(path: Path) -> Iterator[str]:
    """Runs that were cut short, in a folder of runs or as the folder itself."""
    for entry in (path, *sorted(path.iterdir())):
        is_made = entry.name.endswith(INSIDE) or (entry / INSIDE).is_dir()
        if entry.is_dir() and is_made and not (entry / RECEIPT).is_file():
            yield entry.name


def _without_copies(runs: Sequence[Run], left_out: list[str]) -> list[Run]:
    """Of runs over the same input, the one that was made last."""
    kept: dict[str, Run] = {}
    folders: set[Path] = set()
    for run in sorted(runs, key=lambda one: one.receipt.finished_at):
        if run.folder.resolve() in folders:
            continue
        folders.add(run.folder.resolve())
        earlier = kept.get(run.receipt.input_hash)
        if earlier is not None:
            left_out.append(f"{one_line(earlier.name)}: same input as {one_line(run.name)}")
        kept[run.receipt.input_hash] = run
    return list(kept.values())


def _days(run: Run) -> NDArray[Any]:
    """The day of each conversation; "" for none."""
    days = np.full(run.summary.conversations, "", dtype="U10")
    with connect(run.folder) as connection:
        query = f"SELECT number, {_DAY} AS day FROM {run.table(CONVERSATIONS)} WHERE day IS NOT NULL"
        rows = connection.execute(query).fetchnumpy()
    known = [bool(_DATE.fullmatch(one)) for one in rows["day"]]
    days[np.asarray(rows["number"], dtype=np.int64)[known]] = np.asarray(rows["day"], dtype=object)[known]
    return days


def _first_day(days: NDArray[Any]) -> str:
    values, counts = np.unique(days[days != ""], return_counts=True)
    enough = values[counts >= FIRST_SHARE * counts.sum()]
    return str(enough[0]) if len(enough) else ""


class _Seen:
    """The conversations of the runs so far, by what they hold. Logs that grow are in every later run, too."""

    def __init__(self) -> None:
        self._names: NDArray[np.uint64] = np.zeros(0, dtype=np.uint64)
        self._runs: list[Run] = []
        self._bodies: dict[Path, NDArray[np.uint64]] = {}

    def fresh(self, run: Run) -> Rows:
        """The conversations of a run that no run before it had. One without a date may come again as it was."""
        fresh = np.ones(run.summary.conversations, dtype=np.bool_)
        with connect(run.folder) as connection:
            where = f"WHERE {_DAY} IS NOT NULL"
            number, names = _hashes(connection, run, f"hash(conversation, {_DAY})", where)
            known = np.isin(names, self._names)
            if known.any():  # the same name on the same day: only then is it worth to look inside
                at, bodies = _hashes(connection, run, "hash(body)", where)
                before = np.concatenate([self._held(one) for one in self._runs])
                fresh[at[np.isin(bodies, before) & np.isin(at, number[known])]] = False
        self._names = np.union1d(self._names, names)
        self._runs.append(run)
        return fresh

    def _held(self, run: Run) -> NDArray[np.uint64]:
        if run.folder not in self._bodies:
            with connect(run.folder) as connection:
                self._bodies[run.folder] = _hashes(connection, run, "hash(body)", "")[1]
        return self._bodies[run.folder]


def _hashes(
    connection: duckdb.DuckDBPyConnection, run: Run, what: str, where: str
) -> tuple[NDArray[np.int64], NDArray[np.uint64]]:
    query = f"SELECT number, {what} AS held FROM {run.table(CONVERSATIONS)} {where} ORDER BY number"
    rows = connection.execute(query).fetchnumpy()
    return np.asarray(rows["number"], dtype=np.int64), np.asarray(rows["held"], dtype=np.uint64)
