"""A run while it is being made: `<out>.partial/`, with numbered parts and a journal to resume by."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from time import monotonic, sleep
from typing import IO

import msgspec

from convoscope.errors import RunError
from convoscope.runs.answers import ANSWERS, answer_file
from convoscope.runs.tables import part_file, table_folders
from convoscope.scoring.partition import PartDone

JOURNAL = "journal.jsonl"
_LOCK = "lock"
_SCRATCH = "scratch"
FINISHED = "finished"
_PATIENCE = 2.0
"""Seconds to wait for a lock."""


class Header(msgspec.Struct, tag="header", kw_only=True):
    """What a partial run depends on. Another header, another run."""

    depends_on: dict[str, str]


class Step(msgspec.Struct, tag="step", kw_only=True):
    """Something that is finished once and for all."""

    name: str


class Done(msgspec.Struct, tag="part", kw_only=True):
    """A part whose files are whole."""

    part: PartDone


_Line = Header | Step | Done


class Partial:
    """The folder of an unfinished run. Open it with what the run depends on; close it when done."""

    def __init__(self, out: Path, depends_on: Mapping[str, str]) -> None:
        self.out = out
        self.folder = out.with_name(out.name + ".partial")
        self.done: dict[int, PartDone] = {}
        self.finished = False
        self.said = ""
        """Why an earlier attempt was, or was not, continued."""
        self._lock = self._take_lock()
        self._journal = self._open(dict(depends_on))

    @property
    def scratch(self) -> Path:
        return self.folder / _SCRATCH

    def finish_part(self, part: PartDone) -> None:
        """The part's files are whole: from here on it is never computed again."""
        self.done[part.part] = part
        self._write(Done(part=part))
        answer_file(self.folder, part.part).unlink(missing_ok=True)

    def finish(self) -> None:
        """The run's own files are whole, but for its name."""
        self.finished = True
        self._write(Step(name=FINISHED))

    def publish(self) -> Path:
        """Leave nothing but the run's own files, and give the folder its name.

        The journal goes last: until the folder has its name, it is what a resumed run is known by.
        """
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.folder / ANSWERS, ignore_errors=True)
        self.folder.rename(self.out)
        self.close()
        tidy(self.out)
        return self.out

    def discard(self) -> None:
        """Forget the attempt."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def close(self) -> None:
        self._journal.close()
        self._lock.close()

    def _take_lock(self) -> IO[str]:
        if self.folder.exists() and not (self.folder / _LOCK).exists() and any(self.folder.iterdir()):
            raise RunError(f"{self.folder} is not an unfinished run of ours", hint="choose another --out")
        self.folder.mkdir(parents=True, exist_ok=True)
        lock = (self.folder / _LOCK).open("a")
        try:
            import fcntl  # not on Windows
        except ImportError:
            return lock
        # The workers of one that was killed hold it for a moment longer.
        patience = monotonic() + _PATIENCE
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if monotonic() < patience:
                    sleep(0.05)
                    continue
                lock.close()
                hint = "wait for it, or choose another --out"
                raise RunError(f"another process is writing {self.folder}", hint=hint) from None
        return lock

    def _open(self, depends_on: dict[str, str]) -> IO[bytes]:
        path = self.folder / JOURNAL
        lines = _read(path)
        header = lines[0] if lines else None
        if isinstance(header, Header) and header.depends_on == depends_on:
            self._continue(lines)
            # A line that was cut by a kill is dropped, so that the next one starts clean.
            _rewrite(path, lines)
            return path.open("ab")
        if isinstance(header, Header):
            names = {*header.depends_on, *depends_on}
            changed = sorted(name for name in names if header.depends_on.get(name) != depends_on.get(name))
            self.said = f"starting afresh: {', '.join(changed)} changed since the unfinished run"
        for place in (self.folder / _SCRATCH, self.folder / ANSWERS, *table_folders(self.folder)):
            shutil.rmtree(place, ignore_errors=True)
        _rewrite(path, [Header(depends_on=depends_on)])
        return path.open("ab")

    def _continue(self, lines: list[_Line]) -> None:
        for line in lines[1:]:
            if isinstance(line, Step) and line.name == FINISHED:
                self.finished = True
            elif isinstance(line, Done):
                self.done[line.part.part] = line.part
        if not self.finished:
            self.done = {number: part for number, part in self.done.items() if self._is_whole(part)}
        if self.finished or self.done:
            self.said = f"resuming: {len(self.done)} parts are done"

    def _is_whole(self, done: PartDone) -> bool:
        return all(part_file(self.folder, table, done.part).exists() for table in done.tables)

    def _write(self, line: _Line) -> None:
        self._journal.write(msgspec.json.encode(line) + b"\n")
        self._journal.flush()


def tidy(run: Path) -> None:
    """Remove what a kill at the very last moment may have left in a finished run."""
    for name in (JOURNAL, _LOCK):
        (run / name).unlink(missing_ok=True)


def _read(path: Path) -> list[_Line]:
    """The whole lines of a journal."""
    if not path.exists():
        return []
    decoder = msgspec.json.Decoder(_Line)
    lines: list[_Line] = []
    for line in path.read_bytes().split(b"\n"):
        try:
            lines.append(decoder.decode(line))
        except msgspec.DecodeError:
            break
    return lines


def _rewrite(path: Path, lines: list[_Line]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    os.replace(fresh, path)
