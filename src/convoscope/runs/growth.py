"""A run that grows: parts that are unchanged stay, and the receipt is replaced last, which makes it the new run.

The new run is made in `.partial` inside of its folder, as any run is. Then its new parts move up under numbers that
were never used, and its own files into a folder of their generation. A reader that opened the run before goes on with
what the old receipt names. Copies of the own files lie in the folder of the run, for people.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from convoscope.errors import RunError
from convoscope.runs.database import (
    INSIDE,
    PROFILES,
    RENAMED,
    generation_folder,
    generation_folders,
    is_table_name,
    part_file,
    table_folders,
)
from convoscope.runs.receipt import Receipt
from convoscope.runs.run import FLOWS, LOOKS, OBJECTS, PARTS, READ_REPORT, RECEIPT, SUMMARY, Run, read_json, write_whole
from convoscope.scores.side_tables import COMBINED
from convoscope.scoring.partition import PartDone

PAGE_DUE = "page-due"
"""In the folder of a generation: the page in the folder of the run is of the run as it was before."""
AUDIT = "audit.json"
AUDIO = "audio"
"""The folder of the copies of recordings that the page plays."""
RECORDS = "records"
"""The folder of `--contexts`: a copy of each conversation of the run, for people."""
_OWN = (SUMMARY, READ_REPORT, FLOWS, PARTS, LOOKS, OBJECTS, PROFILES, RENAMED)


def write_parts(folder: Path, parts: Iterable[PartDone]) -> None:
    """Keep what the parts of a run were read from."""
    write_whole(folder / PARTS, msgspec.json.encode(list(parts)))


def parts_of(run: Run) -> list[PartDone]:
    """The parts of a run with what they were read from. One that cannot be known is scored again."""
    try:
        parts: list[PartDone] = read_json(run.tables.own(PARTS), list[PartDone])
    except RunError:
        return []
    return [one for one in parts if _fits(one, run.receipt.parts)]


def _fits(part: PartDone, counts: Sequence[int]) -> bool:
    """Whether a part is one of the run. The file may come from anyone: no name in it may lead out of the folder."""
    count = counts[part.part] if 0 <= part.part < len(counts) else 0
    return part.part >= 0 and part.conversations == count and all(map(is_table_name, part.tables))


def link_parts(run: Run, folder: Path, parts: Iterable[PartDone]) -> None:
    """The files of parts that stay, in the folder of the new run too: it is finished like any other run."""
    for part in parts:
        for table in part.tables:
            there = part_file(folder, table, part.part)
            there.parent.mkdir(exist_ok=True)
            link(part_file(run.folder, table, part.part), there)


def link(source: Path, target: Path) -> None:
    """The same file under a second name, in the stead of what was there; a copy where the disk has no links."""
    fresh = target.with_name(target.name + ".new")
    fresh.unlink(missing_ok=True)
    try:
        os.link(source, fresh)
    except OSError:
        shutil.copy2(source, fresh)
    # Two names of one file would both stay.
    if target.exists() and os.path.samefile(fresh, target):
        fresh.unlink()
    else:
        os.replace(fresh, target)


def own_files(folder: Path) -> Iterator[Path]:
    """The files of a run, other than the receipt, that follow its figures."""
    for path in folder.iterdir():
        if path.is_file() and (path.name in _OWN or path.name.endswith(f"{COMBINED}.parquet")):
            yield path


def gather_own(folder: Path, generation: int) -> None:
    """Put the own files of a new run into the folder of its generation."""
    apart = generation_folder(folder, generation)
    apart.mkdir()
    for path in own_files(folder):
        os.replace(path, apart / path.name)
    (apart / PAGE_DUE).touch()


def publish_growth(folder: Path, out: Path, base: Receipt) -> None:
    """Make the finished run in `folder` the run in `out`. After a kill it can be done again."""
    _keep_first(out, base, folder)
    known = _numbers(base)
    for table in table_folders(folder):
        for path in table.iterdir():
            if _number(path) not in known:
                (out / table.name).mkdir(exist_ok=True)
                os.replace(path, out / table.name / path.name)
    new = generation_folder(folder, base.generation + 1)
    if new.is_dir():
        there = out / new.name
        shutil.rmtree(there, ignore_errors=True)
        os.replace(new, there)
    # They are of the run as it was: some of what they hold may have left it.
    shutil.rmtree(out / RECORDS, ignore_errors=True)
    # From here on it is the new run.
    os.replace(folder / RECEIPT, out / RECEIPT)


def _keep_first(out: Path, base: Receipt, scratch: Path) -> None:
    """What the run was before it grew for the first time, for those that read it right now."""
    there = generation_folder(out, base.generation)
    if there.is_dir():
        return
    fresh = scratch / "before"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    for path in own_files(out):
        link(path, fresh / path.name)
    os.replace(fresh, there)


def clear_old(out: Path) -> None:
    """Leave nothing but the run that the receipt names, and the own files of the one before. The lock is ours."""
    receipt = read_json(out / RECEIPT, Receipt)
    apart = generation_folder(out, receipt.generation)
    if receipt.generation and apart.is_dir():
        current = {path.name for path in own_files(apart)}
        for path in own_files(out):
            if path.name not in current:
                path.unlink()
        for name in current:
            link(apart / name, out / name)
        if (apart / PAGE_DUE).exists():
            (out / AUDIT).unlink(missing_ok=True)
    for path in generation_folders(out):
        if path.name not in (apart.name, generation_folder(out, receipt.generation - 1).name):
            shutil.rmtree(path, ignore_errors=True)
    numbers = _numbers(receipt)
    for table in (one for one in table_folders(out) if is_table_name(one.stem)):
        for path in table.iterdir():
            if _number(path) not in numbers:
                path.unlink()
        with suppress(OSError):  # it holds parts
            table.rmdir()
    shutil.rmtree(out / INSIDE, ignore_errors=True)


def _numbers(receipt: Receipt) -> set[int]:
    return {number for number, count in enumerate(receipt.parts) if count}


def _number(path: Path) -> int:
    """The number of the part that a file is of; -1 for what is no whole file of a part."""
    name = path.name.removeprefix("part-").removesuffix(".parquet")
    return int(name) if name.isascii() and name.isdecimal() else -1
