"""A run in an object store. It is made in a folder of this machine, and kept in the store part by part.

A store has no locks, no renames and no files that grow, but an object is there whole or not at all. So finished parts
are put below `<out>.partial/<what the run depends on>/`, and after the files of a part the line of the journal that
names them. What a killed attempt leaves is gone on from, by any machine.

The run itself is what its receipt names. Each attempt to write has names of its own for its objects, and the receipt
is put last, and only if the one in the store is still the one that the attempt began with: so a reader sees the run as
it was or as it is, and of two writers one is refused.
"""

from __future__ import annotations

import secrets
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from convoscope.errors import ConvoscopeError, RunError
from convoscope.ingest.discover import LOCK
from convoscope.runs.database import (
    INSIDE,
    attempted_file,
    file_name,
    generation_folder,
    is_table_name,
    object_name,
    part_file,
)
from convoscope.runs.growth import AUDIO, AUDIT, PAGE_DUE, RECORDS, own_files
from convoscope.runs.partial import Done, Header, write_journal
from convoscope.runs.receipt import Receipt, canonical_hash
from convoscope.runs.run import LOOKS, OBJECTS, PARTS, RECEIPT, Run
from convoscope.scoring.partition import PartDone
from convoscope.storage import OwnFolder, as_path, put_if, store_errors

_JOURNAL = "journal"
_PUBLISHED = "published"
_NOT_COPIED = (PARTS, LOOKS, OBJECTS, PAGE_DUE)
_decode = msgspec.json.Decoder(Done).decode


class StoredRun:
    """The making of a run at an address. Used as a context: the folder on this machine is removed at the end."""

    def __init__(self, out: Any, depends_on: Mapping[str, str], may_change: Container[str] = ()) -> None:
        """What `may_change` names does not matter for parts that are finished."""
        self.out = out
        self._store = out.fs
        self._root = str(out.path).rstrip("/")
        self._depends_on, self._may_change = dict(depends_on), may_change
        self._folder = OwnFolder()
        self.local = self._folder.path / "run" / out.name
        self.local.parent.mkdir()
        """Where the run is made on this machine."""
        self._attempt = secrets.token_hex(4)
        self._there: dict[str, _Object] = {}
        """What the store has of the parts of the run, by the names of their files."""
        self._before: bytes | None = None
        """The receipt in the store, when this attempt began."""
        self._tag = ""
        self.receipt: Receipt | None = None
        """The same, decoded; None where there is no run yet, or one that cannot be read."""
        self._partial = ""

    @property
    def partial(self) -> str:
        """The address below which workers keep finished parts."""
        return f"{self.out.fs.unstrip_protocol(self._partial)}"

    def __enter__(self) -> StoredRun:
        try:
            with store_errors(self.out):
                self._begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.remove()

    def _begin(self) -> None:
        name = f"{self._root}/{RECEIPT}"
        self._store.invalidate_cache(self._root)
        with suppress(FileNotFoundError):
            # The ETag first: if the receipt is replaced in between, ours is refused later.
            self._tag = self._store.info(name).get("ETag", "")
            self._before = self._store.cat_file(name)
            with suppress(msgspec.DecodeError):
                self.receipt = msgspec.json.decode(self._before, type=Receipt)
        others = [one for one in self._files(self._root) if not file_name(one)] if self._before is None else []
        if others:
            raise RunError(f"{self.out} exists and is not a run: {others[0]}", hint="choose another --out")
        if self.receipt is not None:
            self._depends_on["run"] = self.receipt.run_id
        same = {name: one for name, one in self._depends_on.items() if name not in self._may_change}
        self._partial = f"{self._root}{INSIDE}/{canonical_hash(same)[7:19]}"

    @property
    def is_taken(self) -> bool:
        """Whether there is a receipt, of whatever kind."""
        return self._before is not None

    def bring(self) -> None:
        """Bring the run, and what an earlier attempt finished of it, to this machine."""
        with store_errors(self.out):
            if self.receipt is not None:
                self._fetch(self.receipt)
            self._resume()

    def finish_earlier(self) -> None:
        """Do what an attempt left undone that was killed after it had put its receipt."""
        receipt = self.receipt
        with store_errors(self.out), suppress(FileNotFoundError, msgspec.DecodeError):
            if receipt is not None:
                left: _Left = msgspec.json.decode(self._store.cat_file(self._mark(receipt)), type=_Left)
                if all(map(file_name, left.objects)) and not any(".." in name for name in left.kept):
                    self._clear(receipt, left)

    def keep(self, part: PartDone, folder: Path) -> None:
        """A part is finished: its files are in the store, and come to `folder` if a worker elsewhere wrote them."""
        with store_errors(self.out):
            for table in part.tables:
                local = attempted_file(folder, table, part.part, part.attempt)
                if not local.exists():
                    local.parent.mkdir(parents=True, exist_ok=True)
                    self._store.get_file(f"{self._partial}/{_attempted(table, part)}", str(local))
                self._note(part_file(Path(), table, part.part), local, f"{self._partial}/{_attempted(table, part)}")
            line = msgspec.json.encode(Done(part=part))
            self._store.pipe_file(f"{self._partial}/{_JOURNAL}/{part.part:06d}.json", line)

    def publish(self, run: Run) -> Run:
        """Put the run in its place: what it is read from, the receipt, and copies of its own files for people."""
        with store_errors(self.out):
            self._adopt(run.folder)
            put: list[str] = []
            objects = [*self._parts_put(run.folder, put), *self._own_put(run, put)]
            receipt = msgspec.structs.replace(run.receipt, objects=sorted(objects))
            left = self._left(receipt)
            put.append(self._mark(receipt))
            self._store.pipe_file(put[-1], msgspec.json.encode(left))
            if put_if(self._store, f"{self._root}/{RECEIPT}", _text(receipt), self._before, self._tag):
                # From here on it is the new run.
                self._clear(receipt, left, run.folder)
            else:
                kept = self._files(self._partial)
                self._remove([*put, *(f"{self._partial}/{name}" for name in kept)])
                self._refuse_other(receipt)
            self._store.invalidate_cache(self._root)
        opened = Run.open(self.out)
        opened.held = run.held if opened.receipt.run_id == receipt.run_id else {}
        return opened

    def _adopt(self, made: Path) -> None:
        """Name the objects of a run that was copied into the store from a folder, before anything of it changes."""
        if self.receipt is None or self.receipt.objects:
            return
        apart = generation_folder(made, self.receipt.generation)
        objects = [
            name for name, one in self._there.items() if one.address == f"{self._root}/{name}" and "/part-" in name
        ]
        for path in sorted(own_files(apart)):
            objects.append(object_name(f"{apart.name}/{path.name}", self._attempt))
            self._store.put_file(str(path), f"{self._root}/{objects[-1]}")
        text = _text(msgspec.structs.replace(self.receipt, objects=sorted(objects)))
        if not put_if(self._store, f"{self._root}/{RECEIPT}", text, self._before, self._tag):
            raise self._other()
        self._before, self._tag = text, self._store.info(f"{self._root}/{RECEIPT}").get("ETag", "")

    def _parts_put(self, folder: Path, put: list[str]) -> Iterator[str]:
        """Put the parts that are not there yet; the names of all of them."""
        for path in sorted(folder.glob("*.parquet/part-*.parquet")):
            name = path.relative_to(folder).as_posix()
            there = self._there.get(name)
            if there is not None and there.file != _state(path):
                there = None
            if there is not None and there.address.startswith(f"{self._root}/"):
                yield there.address.removeprefix(f"{self._root}/")
                continue
            fresh = object_name(name, self._attempt)
            put.append(f"{self._root}/{fresh}")
            if there is None or not self._is_copied(there.address, put[-1]):
                self._store.put_file(str(path), put[-1])
            yield fresh

    def _is_copied(self, source: str, target: str) -> bool:
        """Copy an object within the store, unless another process has removed it meanwhile."""
        try:
            self._store.cp_file(source, target)
        except FileNotFoundError:
            return False
        return True

    def _own_put(self, run: Run, put: list[str]) -> Iterator[str]:
        """Put the files of the run that belong to no part; the names of all of them."""
        current = generation_folder(run.folder, run.receipt.generation)
        folder = current if current.is_dir() else run.folder
        for path in sorted(own_files(folder)):
            name = object_name(f"{current.name}/{path.name}", self._attempt)
            put.append(f"{self._root}/{name}")
            self._store.put_file(str(path), put[-1])
            yield name
        # The page in the store is that of the run before, if any, until it is replaced.
        put.append(f"{self._root}/{object_name(f'{current.name}/{PAGE_DUE}', self._attempt)}")
        self._store.pipe_file(put[-1], b"")

    def _mark(self, receipt: Receipt) -> str:
        """The object that says what is still to be removed when a run has got its receipt."""
        return f"{self._root}{INSIDE}/{_PUBLISHED}/{receipt.run_id}.json"

    def _left(self, receipt: Receipt) -> _Left:
        """What is no longer of any use with this receipt: of parts that were replaced, and of attempts that failed.

        All of it is older than the receipt. What other attempts put later may be of the run after this one. The own
        files of the run before stay: it may be read right now.
        """
        before = generation_folder(Path(), receipt.generation - 1).name if receipt.generation else "-"
        kept = {*receipt.objects, self._due(receipt)}
        there = [name for name in self._files(self._root) if file_name(name) and name not in kept]
        return _Left([name for name in there if not name.startswith(before)], [*self._files(f"{self._root}{INSIDE}")])

    def _due(self, receipt: Receipt) -> str:
        """What says that the page is still to be written."""
        start = generation_folder(Path(), receipt.generation).name
        own = next(name for name in receipt.objects if name.startswith(start))
        return f"{own.rpartition('/')[0]}/{PAGE_DUE}"

    def _clear(self, receipt: Receipt, left: _Left, made: Path | None = None) -> None:
        """Put what is there for people, and remove what is no longer of the run. After a kill it is done again."""
        due = self._due(receipt)
        for name in receipt.objects:
            folder, _, last = name.rpartition("/")
            if folder == due.rpartition("/")[0] and last not in _NOT_COPIED:
                self._store.cp_file(f"{self._root}/{name}", f"{self._root}/{last}")
        if receipt.generation and self._store.exists(f"{self._root}/{due}"):
            records = f"{self._root}/{RECORDS}"
            self._remove([f"{self._root}/{AUDIT}", *(f"{records}/{name}" for name in self._files(records))])
        if made is not None:
            for path in self._for_people(made):
                self._store.put_file(str(path), f"{self._root}/{path.relative_to(made).as_posix()}")
        if made is not None and not (generation_folder(made, receipt.generation) / PAGE_DUE).exists():
            self._remove([f"{self._root}/{due}"])
        # What is to be removed may have been written by another attempt of the same second.
        self._remove(f"{self._root}/{name}" for name in left.objects if name not in receipt.objects)
        self._remove(f"{self._root}{INSIDE}/{name}" for name in left.kept)
        self._remove([self._mark(receipt)])

    def _for_people(self, made: Path) -> Iterator[Path]:
        """The files in the folder of a run beside its own: the page, and the recordings that it plays."""
        yield from sorted((made / AUDIO).glob("*"))
        own = {path.name for path in own_files(made)}
        for path in sorted(made.iterdir()):
            if path.is_file() and path.name not in (*own, RECEIPT, PAGE_DUE, LOCK):
                yield path

    def _refuse_other(self, receipt: Receipt) -> None:
        """Another process has written the run meanwhile: it is as good, if it was made of the same."""
        with suppress(RunError):
            if Run.open(self.out).receipt.depends_on == receipt.depends_on:
                return
        raise self._other()

    def _other(self) -> RunError:
        hint = "run the same command again, or choose another --out"
        return RunError(f"another process has written {self.out} meanwhile", hint=hint)

    def _resume(self) -> None:
        """Bring what an earlier attempt finished to this machine, as the journal of an unfinished run."""
        grows = self.receipt is not None
        folder = self.local / INSIDE if grows else self.local.with_name(self.local.name + INSIDE)
        names = self._files(self._partial)
        lines: list[Done] = []
        for name in sorted(names):
            if name.startswith(f"{_JOURNAL}/"):
                with suppress(msgspec.DecodeError, FileNotFoundError):
                    line = _decode(self._store.cat_file(f"{self._partial}/{name}"))
                    if _is_whole(line.part, names):
                        self._fetch_part(line.part, folder)
                        lines.append(line)
        if lines:
            write_journal(folder, [Header(depends_on=self._depends_on), *lines])

    def _fetch_part(self, part: PartDone, folder: Path) -> None:
        for table in part.tables:
            source, target = f"{self._partial}/{_attempted(table, part)}", part_file(folder, table, part.part)
            target.parent.mkdir(parents=True, exist_ok=True)
            self._store.get_file(source, str(target))
            self._note(part_file(Path(), table, part.part), target, source)

    def _note(self, name: Path, file: Path, address: str) -> None:
        """The store has this very file."""
        self._there[name.as_posix()] = _Object(address, _state(file))

    def _files(self, root: str) -> dict[str, int]:
        """The objects below an address, by their names from there, with their sizes."""
        # Not of all the store: the logs were listed too.
        self._store.invalidate_cache(root)
        try:
            objects: dict[str, Any] = self._store.find(root, detail=True)
        except FileNotFoundError:
            return {}
        return {
            name[len(root) :].lstrip("/"): about["size"] or 0
            for name, about in objects.items()
            if not name.endswith("/")
        }

    def _fetch(self, receipt: Receipt) -> None:
        """Bring the run to this machine, with the names that its files have in a folder."""
        # One that was copied into the store from a folder names no objects.
        names = receipt.objects or [one for one in self._files(self._root) if file_name(one) or "/" not in one]
        start = generation_folder(Path(), receipt.generation).name
        for name in names:
            plain = file_name(name) or name
            if ".." in plain or name == RECEIPT:
                continue
            if not receipt.generation and plain.startswith(start):
                plain = plain.rpartition("/")[2]
            target = self.local / plain
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                self._store.get_file(f"{self._root}/{name}", str(target))
            except FileNotFoundError:
                hint = "run the same command again, unless it is gone for good: then score the logs into another folder"
                raise RunError(f"{self.out}/{name} is missing", hint=hint) from None
            self._note(Path(plain), target, f"{self._root}/{name}")
        here = msgspec.structs.replace(receipt, objects=[])
        (self.local / RECEIPT).write_bytes(msgspec.json.encode(here))

    def _remove(self, names: Iterable[str]) -> None:
        listed = list(names)
        try:
            self._store.rm(listed) if listed else None
        except FileNotFoundError:
            # Another process removed one of them.
            for name in listed:
                with suppress(FileNotFoundError):
                    self._store.rm_file(name)

    @contextmanager
    def named(self) -> Iterator[None]:
        """An error that names the folder on this machine names the address."""
        try:
            yield
        except ConvoscopeError as error:
            error.message, error.hint = (
                text.replace(str(self.local), str(self.out)) for text in (error.message, error.hint)
            )
            raise


class _Left(msgspec.Struct, frozen=True):
    """What is to be removed: objects of the run, and what was kept below `.partial`."""

    objects: list[str]
    kept: list[str]


class _Object(msgspec.Struct, frozen=True):
    """An object that holds a file of this machine, as it was then."""

    address: str
    file: tuple[int, int, int]


def _state(file: Path) -> tuple[int, int, int]:
    """What another file in its stead would not have."""
    about = file.stat()
    return about.st_ino, about.st_size, about.st_mtime_ns


def _text(receipt: Receipt) -> bytes:
    return msgspec.json.format(msgspec.json.encode(receipt), indent=2) + b"\n"


def upload_part(folder: Path, address: str, part: int, attempt: str, tables: Iterable[str]) -> None:
    """A worker has written the files of a part: they are kept below the address."""
    target: Any = as_path(address)
    root = target.path.rstrip("/")
    # On another machine than that which makes the run, nothing of it is left.
    is_elsewhere = not (folder / LOCK).exists()
    with store_errors(address):
        for table in tables:
            file = attempted_file(folder, table, part, attempt)
            target.fs.put_file(str(file), f"{root}/{file.relative_to(folder).as_posix()}")
            if is_elsewhere:
                file.unlink()


def _attempted(table: str, part: PartDone) -> str:
    return attempted_file(Path(), table, part.part, part.attempt).as_posix()


def _is_whole(part: PartDone, names: Container[str]) -> bool:
    # A store may be written by anyone: a name must not lead out of the folder.
    is_named = part.attempt.isalnum() and all(map(is_table_name, part.tables))
    return is_named and all(_attempted(table, part) in names for table in part.tables)


__all__ = ["StoredRun", "upload_part"]
