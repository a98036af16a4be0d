"""A run while it is being made: a folder `.partial`, with numbered parts and a journal to resume by.

It is `<out>.partial/`, which gets its name in the end. Where `<out>` is there already it may be what cannot be
replaced, such as the volume of a container or a link: then the run is made in `<out>/.partial/`, and moved up.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from time import monotonic, sleep
from typing import IO

import msgspec

from convoscope.errors import RunError
from convoscope.ingest.discover import JOURNAL, LOCK, UNFINISHED, is_unfinished
from convoscope.ingest.known_pieces import hash_of_pieces
from convoscope.ingest.report import ReadReport
from convoscope.runs.database import (
    ANSWERS,
    INSIDE,
    SCRATCH,
    TABLES,
    attempted_file,
    check_folder,
    generation_folder,
    generation_folders,
    is_table_name,
    part_file,
    table_folders,
)
from convoscope.runs.growth import clear_old, gather_own, publish_growth
from convoscope.runs.receipt import Receipt, now
from convoscope.runs.run import READ_REPORT, RECEIPT, Run, read_report
from convoscope.scores.observation import ERROR, Observation
from convoscope.scoring.partition import PartDone
from convoscope.storage import is_remote

FINISHED = "finished"
_PATIENCE = 2.0
"""Seconds to wait for a lock."""
_HOLDER_BYTES = 200
_OF_THE_DISK = "lost+found"
_MOST_PARTS = 1_000_000


class Header(msgspec.Struct, tag="header", kw_only=True):
    """What a partial run depends on."""

    depends_on: dict[str, str]


class Step(msgspec.Struct, tag="step", kw_only=True):
    """Something that is finished once and for all."""

    name: str


class Done(msgspec.Struct, tag="part", kw_only=True):
    """A part whose files are whole."""

    part: PartDone


_Line = Header | Step | Done


class Holder(msgspec.Struct, kw_only=True):
    """The process that writes a run, as its lock tells it to others."""

    pid: int = msgspec.field(default_factory=os.getpid)
    host: str = msgspec.field(default_factory=lambda: platform.node()[:60])
    since: str = msgspec.field(default_factory=now)


def is_taken(out: Path) -> bool:
    """Whether there is something where a run should be made: a run, or what is not ours."""
    if not out.is_dir():
        return os.path.lexists(out)
    if (out / RECEIPT).exists():
        return True
    others = any(entry.name not in (INSIDE, _OF_THE_DISK) for entry in out.iterdir())
    return others and not is_unfinished(out / INSIDE)


class Partial:
    """The folder of an unfinished run. Open it with what the run depends on; close it when done."""

    def __init__(
        self, out: Path, depends_on: Mapping[str, str], base: Receipt | None = None, may_change: Collection[str] = ()
    ) -> None:
        """`base` is the receipt of the run in `out` that is to grow.

        What `may_change` names does not matter for parts that are finished: they are known by what they were read from.
        """
        if base is not None and base.objects:
            hint = "let the run in the store grow, or score the logs into another folder"
            raise RunError(f"{out} is a copy of a run in an object store: it does not grow", hint=hint)
        self.out = out
        self._base = base
        self.folder = out / INSIDE if out.is_dir() else out.with_name(out.name + INSIDE)
        self.done: dict[int, PartDone] = {}
        self.finished = False
        self.is_resumed = False
        """An earlier attempt has finished parts of it."""
        self.is_earlier = False
        """It is finished, and what it was made of has changed since: it is published, and grows."""
        self.notice = ""
        """Why an earlier attempt was not continued."""
        self.address = ""
        """Where the finished parts are kept, too, of a run in an object store."""
        self._journal: IO[bytes] | None = None
        self._lock = self._take_lock()
        self.is_late = is_taken(out) if base is None else _run_id(out) != base.run_id
        """Another process finished the run while we waited for it."""
        if not self.is_late:
            self._journal = self._open(dict(depends_on), may_change)

    @property
    def scratch(self) -> Path:
        return self.folder / SCRATCH

    @property
    def kept(self) -> str:
        """What a later attempt goes on from."""
        if self.finished:
            return f"everything is scored and kept in {self.address or self.folder}"
        parts, conversations = len(self.done), sum(part.conversations for part in self.done.values())
        if not parts:
            answers = kept_answers(self.folder)
            text = f"{answers:,} answers of judges and the like are kept in {self.address or self.folder}"
            return text if answers else "nothing was scored yet"
        where = self.address or self.folder
        return f"{conversations:,} conversations ({parts} part{'s' if parts > 1 else ''}) are kept in {where}"

    @property
    def read_report(self) -> ReadReport:
        """What reading did, once the run is finished."""
        # It may be in its place already.
        folders = [self.folder, self.out]
        if self._base is not None:
            folders = [generation_folder(one, self._base.generation + 1) for one in folders]
        return read_report(next((one for one in folders if (one / READ_REPORT).exists()), self.out) / READ_REPORT)

    def finish_part(self, part: PartDone) -> None:
        """The part's files are whole: from here on it is never computed again.

        They get their names here, one after the other, so that no file of another attempt is among them.
        """
        for table in part.tables if part.attempt else ():
            attempted_file(self.folder, table, part.part, part.attempt).replace(
                part_file(self.folder, table, part.part)
            )
        self.done[part.part] = part
        self._write(Done(part=part))
        answer_file(self.folder, hash_of_pieces(part.pieces)).unlink(missing_ok=True)

    def finish(self) -> None:
        """The run's own files are whole, but for its name."""
        if self._base is not None:
            gather_own(self.folder, self._base.generation + 1)
        self.finished = True
        self._write(Step(name=FINISHED))

    def publish(self) -> Path:
        """Leave nothing but the run's own files, and give the folder its name.

        The journal goes last: until the run is in its place, it is what a resumed run is known by.
        """
        shutil.rmtree(self.scratch, ignore_errors=True)
        shutil.rmtree(self.folder / ANSWERS, ignore_errors=True)
        self._remove_attempts()
        if self._base is not None:
            publish_growth(self.folder, self.out, self._base)
            clear_old(self.out)
        elif self.folder.parent == self.out:
            own = [entry for entry in self.folder.iterdir() if entry.name not in (JOURNAL, LOCK)]
            # A folder with a receipt is a run, so that it comes last.
            for entry in sorted(own, key=lambda entry: entry.name == RECEIPT):
                os.replace(entry, self.out / entry.name)
        else:
            try:
                self.folder.rename(self.out)
            except OSError as error:
                hint = f"move it away, and run the same command again: everything is kept in {self.folder}"
                raise RunError(f"{self.out} was created meanwhile: {error.strerror}", hint=hint) from None
        self.close()
        tidy(self.out)
        return self.out

    def _remove_attempts(self) -> None:
        """Remove what workers left that were killed, or thought to be lost."""
        for folder in table_folders(self.folder):
            for path in folder.iterdir():
                if path.suffix != ".parquet":
                    path.unlink(missing_ok=True)

    def discard(self) -> None:
        """Forget the attempt."""
        # Before the lock is given up: what another process begins there must stay.
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
        self._lock.close()

    def _take_lock(self) -> IO[bytes]:
        # The workers of one that was killed hold it for a moment longer.
        patience = monotonic() + _PATIENCE
        while True:
            # Another process may remove what it had begun, just now.
            with suppress(FileNotFoundError) if monotonic() < patience else nullcontext():
                lock = self._open_lock()
                if not _is_locked(lock, patience):
                    raise self._held(lock)
                if _is_of(lock, self.folder):
                    _sign(lock)
                    return lock
                lock.close()

    def _held(self, lock: IO[bytes]) -> RunError:
        holder = _holder(lock)
        lock.close()
        who = f" (process {holder.pid} on {holder.host}, since {holder.since})" if holder else ""
        return RunError(f"another process is writing {self.folder}{who}", hint="wait for it, or choose another --out")

    def _open_lock(self) -> IO[bytes]:
        folder = self.folder
        # Looked at again, as another process may have begun in between: it signs the lock before anything else.
        if folder.is_symlink() or (
            os.path.lexists(folder) and not (is_unfinished(folder) or _is_empty(folder) or is_unfinished(folder))
        ):
            raise RunError(f"{folder} is not an unfinished run", hint="choose another --out, or move it away")
        folder.mkdir(parents=True, exist_ok=True)
        check_folder(folder)
        return os.fdopen(os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666), "rb+", buffering=0)

    def _open(self, depends_on: dict[str, str], may_change: Collection[str]) -> IO[bytes]:
        path = self.folder / JOURNAL
        lines = _read(path)
        header = lines[0] if lines else None
        if isinstance(header, Header):
            names = {*header.depends_on, *depends_on}
            changed = sorted(name for name in names if header.depends_on.get(name) != depends_on.get(name))
            if {*changed} <= {*may_change}:
                self._continue(lines)
                self.is_earlier = self.finished and bool(changed)
                if not self.is_earlier:
                    lines[0] = Header(depends_on=depends_on)
                # A line that was cut by a kill is dropped, so that the next one starts clean.
                _rewrite(path, lines)
                return path.open("ab")
            self.notice = f"starting afresh: {', '.join(changed)} changed since the unfinished run"
        for folder in (self.folder / SCRATCH, self.folder / ANSWERS, *table_folders(self.folder)):
            shutil.rmtree(folder, ignore_errors=True)
        self._forget_finishing()
        _rewrite(path, [Header(depends_on=depends_on)])
        return path.open("ab")

    def _continue(self, lines: list[_Line]) -> None:
        for line in lines[1:]:
            if isinstance(line, Step) and line.name == FINISHED:
                self.finished = True
            elif isinstance(line, Done):
                self.done[line.part.part] = line.part
        if not self.finished:
            self._forget_finishing()
            self.done = {number: part for number, part in self.done.items() if self._is_whole(part)}
        self.is_resumed = bool(self.done)

    def _forget_finishing(self) -> None:
        """Begin the own files of a run that grows anew."""
        for folder in generation_folders(self.folder) if self._base is not None else ():
            shutil.rmtree(folder, ignore_errors=True)

    def _is_whole(self, done: PartDone) -> bool:
        # The journal may come from anyone: a name in it must not lead out of the folder.
        names = all(map(is_table_name, done.tables)) and {*TABLES} <= {*done.tables} and 0 <= done.part <= _MOST_PARTS
        return names and all(part_file(self.folder, table, done.part).is_file() for table in done.tables)

    def _write(self, line: _Line) -> None:
        if self._journal is not None:
            self._journal.write(msgspec.json.encode(line) + b"\n")
            self._journal.flush()


def _is_empty(folder: Path) -> bool:
    """Nothing is in it, or a lock that was not signed yet."""
    return folder.is_dir() and all(entry.name == LOCK and not entry.stat().st_size for entry in folder.iterdir())


def _is_locked(lock: IO[bytes], patience: float) -> bool:
    """Lock the file, as soon as no other process has it and before patience is over."""
    try:
        import fcntl  # not on Windows
    except ImportError:
        return True
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if monotonic() > patience:
                return False
            sleep(0.05)
        except OSError as error:
            lock.close()
            hint = "choose an --out on another disk"
            raise RunError(f"the folder of the run cannot be locked: {error.strerror}", hint=hint) from None
        else:
            return True


def _is_of(lock: IO[bytes], folder: Path) -> bool:
    """Whether it is still the lock of this folder, which may have been removed, or have got its name, meanwhile."""
    try:
        return os.path.samestat(os.fstat(lock.fileno()), (folder / LOCK).stat())
    except FileNotFoundError:
        return False


def _sign(lock: IO[bytes]) -> None:
    """Say whose the folder is and who writes it, at once and over what was there: it is never without a mark."""
    lock.write((UNFINISHED + msgspec.json.encode(Holder()) + b"\n").ljust(_HOLDER_BYTES))


def _holder(lock: IO[bytes]) -> Holder | None:
    with suppress(msgspec.DecodeError, OSError):
        return msgspec.json.decode(lock.read().removeprefix(UNFINISHED), type=Holder)
    return None


def tidy(run: Path) -> None:
    """Remove what a kill at the very last moment may have left in a finished run, where it can be removed."""
    if is_remote(run):
        return
    inside = run / INSIDE
    if is_unfinished(inside):
        # Unless another process adds to the run right now.
        with suppress(OSError, RunError), (inside / LOCK).open("ab") as lock:
            if _is_locked(lock, 0):
                clear_old(run)
    if is_unfinished(run):
        with suppress(OSError):
            # The lock goes last: without a mark the other would stay for ever.
            for name in (JOURNAL, LOCK):
                (run / name).unlink(missing_ok=True)


def _run_id(out: Path) -> str:
    """The id of the run that is there by now."""
    with suppress(RunError):
        return Run.open(out).receipt.run_id
    return ""


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


def write_journal(folder: Path, lines: list[_Line]) -> None:
    """Make a folder that an unfinished run is gone on from."""
    folder.mkdir(parents=True, exist_ok=True)
    _rewrite(folder / JOURNAL, lines)


def _rewrite(path: Path, lines: list[_Line]) -> None:
    fresh = path.with_suffix(".new")
    fresh.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines))
    os.replace(fresh, path)


class KeptAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One line: what a metric was answered about the conversation of a row of the part."""

    row: int
    metric: str
    observations: tuple[Observation, ...]


_encoder = msgspec.json.Encoder(enc_hook=repr)
_decoder = msgspec.json.Decoder(KeptAnswer)


class AnswerFile:
    """The answers of one part, by its content. Errors are not kept: what went wrong is tried again."""

    def __init__(self, folder: Path, content: str) -> None:
        self.path = answer_file(folder, content)
        self._file: IO[bytes] | None = None
        self._lines: list[bytes] = []
        self._is_closed = False
        self._lock = Lock()

    def get(self, row: int, metric: str) -> Sequence[Observation] | None:
        """What an earlier attempt was answered."""
        return self._known.get((row, metric))

    def keep(self, row: int, metric: str, observations: Sequence[Observation]) -> None:
        """Append a line. Answers that come at the same moment are written together, each moment's at its end.

        What is written is the operating system's, and outlives the process.
        """
        if any(one.status == ERROR for one in observations):
            return
        try:
            line = _encoder.encode(KeptAnswer(row, metric, tuple(observations)))
        except Exception:  # evidence that JSON cannot hold: it is asked for again
            return
        self._lines.append(line)
        if len(self._lines) == 1:
            # Only answers of metrics that wait are kept.
            import asyncio

            asyncio.get_running_loop().call_soon(self._write)

    def close(self) -> None:
        """Answers that come now are too late."""
        self._write()
        with self._lock:
            self._is_closed = True
            if self._file is not None:
                self._file.close()

    def _write(self) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            if self._is_closed or not lines:
                return
            with suppress(OSError):  # a full disk: what is not kept is asked for again
                if self._file is None:
                    self.path.parent.mkdir(exist_ok=True)
                    self._file = self.path.open("ab", buffering=0)
                self._file.write(b"".join(line + b"\n" for line in lines))

    @cached_property
    def _known(self) -> dict[tuple[int, str], tuple[Observation, ...]]:
        answers: dict[tuple[int, str], tuple[Observation, ...]] = {}
        if not self.path.exists():
            return answers
        lines = self.path.read_bytes().split(b"\n")
        if lines[-1]:
            # A line that was cut by a kill is dropped, so that the next one starts clean.
            whole = b"".join(line + b"\n" for line in lines[:-1])
            self.path.write_bytes(whole)
        for line in lines[:-1]:
            with suppress(msgspec.DecodeError):  # what cannot be read is asked for again
                answer = _decoder.decode(line)
                answers[answer.row, answer.metric] = answer.observations
        return answers


def kept_answers(folder: Path) -> int:
    """How many answers an unfinished run has of parts that are not finished."""
    return sum(path.read_bytes().count(b"\n") for path in (folder / ANSWERS).glob("*"))


def answer_file(folder: Path, content: str) -> Path:
    """Where the answers of a part with this content are kept while it is not finished."""
    return folder / ANSWERS / f"{content}.jsonl"
