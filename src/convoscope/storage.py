"""Paths of files and folders: on this machine, or in an object store, such as s3://bucket/logs."""

from __future__ import annotations

import hashlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from pathlib import Path
from threading import Lock
from typing import IO, TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast

from convoscope.errors import ConvoscopeError, UsageError

if TYPE_CHECKING:
    import duckdb

if sys.platform != "win32":
    import fcntl

PathLike: TypeAlias = str | os.PathLike[str]

# A letter of a drive on Windows is no scheme.
_URL = re.compile(r"([a-z][a-z0-9+.-]+)://", re.IGNORECASE)
_CREDENTIALS = re.compile(r"://[^/@]*@")
_PACKAGES = {"s3": "", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "abfss": "adlfs"}
"""What a store needs beside the extra `store`."""
_BLOCK_BYTES = 1024 * 1024
_SMALL_BYTES = 4 * 1024 * 1024
"""What is not larger is fetched whole."""
_KEPT_BYTES = 32 * 1024 * 1024


class StoreError(ConvoscopeError):
    """An object store cannot be reached, or refuses what it is asked for."""


def is_remote(path: object) -> bool:
    """Whether a path is that of an object store."""
    return scheme_of(path) not in ("", "file")


def scheme_of(path: object) -> str:
    """`s3` of s3://bucket/logs; empty for a local path."""
    if isinstance(path, Path):
        return ""
    match = _URL.match(str(path))
    return match[1].lower() if match else ""


def as_path(path: PathLike) -> Path:
    """A path with the methods of `pathlib`, wherever its file is. Nothing is asked of the store yet."""
    if not is_remote(path):
        text = os.fspath(path) if not isinstance(path, str) else path
        return Path(text.removeprefix("file://") if text.startswith("file://") else text)
    if not isinstance(path, str):
        return cast("Path", path)
    if _CREDENTIALS.search(path):
        raise UsageError(
            f"{_CREDENTIALS.sub('://…@', path)} holds credentials",
            hint="they would be kept in the run: use the environment variables or files of the store's own tools",
        )
    try:
        opened: Any = _store_path(path)
        _ = opened.fs
    except ImportError as error:
        scheme = scheme_of(path)
        known = f"pip install 'convoscope[store]' {_PACKAGES.get(scheme, '')}".rstrip()
        missing = known if scheme in _PACKAGES else f"{known}, and its package for fsspec: {error}"
        raise UsageError(f"{path} cannot be opened: {scheme}:// needs more packages", hint=missing) from None
    except ValueError as error:
        raise UsageError(f"{path} is no address of a store: {error}", hint="s3://bucket/folder") from None
    return cast("Path", opened)


@cache
def _path_class() -> Any:
    from upath.extensions import ProxyUPath

    class StorePath(ProxyUPath):
        """A path in a store that is taken wherever a path is: `os.fspath` gives its address."""

        def __fspath__(self) -> str:
            return str(self)

        def __reduce__(self) -> tuple[Any, ...]:
            return (_store_path, (str(self),))

    return StorePath


def _store_path(address: str) -> Any:
    return _path_class()(address)


def only_here(path: PathLike, what: str) -> None:
    """Refuse an address in a store for what is opened on this machine only."""
    if is_remote(path):
        raise UsageError(f"{what} {path} is in an object store", hint="copy it to this machine, and name the copy")


def open_binary(path: Path) -> IO[bytes]:
    """A file to be read. One in a store is read in blocks, as far as it is needed."""
    return io.BufferedReader(_StoredFile(path), _BLOCK_BYTES) if is_remote(path) else path.open("rb")


def tag_of(path: Path) -> str:
    """What a store says of the content of an object: a hash of its address, ETag and size; "" where it gives none."""
    remote: Any = path
    return _tag(remote, remote.fs.info(remote.path))


def _tag(remote: Any, about: Mapping[str, Any]) -> str:
    mark = about.get("ETag") or about.get("etag")
    return hashlib.sha256(f"{remote} {mark} {about['size']}".encode()).hexdigest()[:32] if mark else ""


class _Ranges:
    """What was fetched of objects lately: a command looks at a log several times, and at a piece of it again soon."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        """By the tag of an object and where in it the bytes begin."""
        self._starts: dict[str, list[int]] = {}
        self._lock = Lock()
        self._size = 0

    def find(self, tag: str, at: int) -> bytes:
        """The bytes of an object from a position on, as far as they are kept."""
        with self._lock:
            for start in self._starts.get(tag, ()):
                data = self._kept[tag, start]
                if start <= at < start + len(data):
                    self._kept.move_to_end((tag, start))
                    return data[at - start :] if at > start else data
        return b""

    def keep(self, tag: str, start: int, data: bytes) -> None:
        """What has no tag may change unseen, and is not kept."""
        with self._lock:
            if not tag or (tag, start) in self._kept:
                return
            self._kept[tag, start] = data
            self._starts.setdefault(tag, []).append(start)
            self._size += len(data)
            while self._size > _KEPT_BYTES:
                (old, begin), dropped = self._kept.popitem(last=False)
                self._starts[old].remove(begin)
                if not self._starts[old]:
                    del self._starts[old]
                self._size -= len(dropped)


_ranges = _Ranges()


class _StoredFile(io.RawIOBase):
    """An object, read by ranges. Each has a position of its own, which files of fsspec's memory do not have."""

    def __init__(self, path: Path) -> None:
        remote: Any = path
        self._store, self._path, self._address = remote.fs, remote.path, str(path)
        with _failing_store(self._address):
            about = self._store.info(self._path)
        if about["type"] != "file":
            raise IsADirectoryError(f"{path} is a folder")
        self._size, self._tag, self._at = int(about["size"] or 0), _tag(remote, about), 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = max(0, offset + {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        end = min(self._at + len(buffer), self._size)
        if self._at >= end:
            return 0
        if not (data := _ranges.find(self._tag, self._at)):
            start, stop = (0, self._size) if self._size <= _SMALL_BYTES else (self._at, end)
            fetched = self._fetch(start, stop)
            _ranges.keep(self._tag, start, fetched)
            data = fetched[self._at - start :]
        data = data[: end - self._at]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _fetch(self, start: int, end: int) -> bytes:
        # S3 refuses to give a range of an object that is another one by now.
        with (
            _failing_store(self._address),
            self._store.open(self._path, "rb", block_size=end - start, cache_type="none") as stream,
        ):
            stream.seek(start)
            data: bytes = stream.read(end - start)
        return data


@contextmanager
def _failing_store(address: str) -> Iterator[None]:
    """A store that fails is an error that ends the work: it says nothing of the object, which would be left out.

    One object that is gone, or that may not be read, is its own problem.
    """
    try:
        yield
    except (FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # each client has error classes of its own
        raise StoreError(f"{address}: {reason_of(error)}", hint=HINT) from None


def put_if(store: Any, name: str, data: bytes, before: bytes | None, tag: str) -> bool:
    """Put a small object, if there still is what was read `before`, of which `tag` is the ETag; None: nothing is.

    On S3 the store itself compares. Others are asked just before, which leaves a moment.
    """
    if "s3" not in _protocols(store):
        if _content(store, name) != before:
            return False
        store.pipe_file(name, data)
        return True
    try:
        store.pipe_file(name, data, **({"mode": "create"} if before is None else {"IfMatch": tag}))
    except OSError:
        # Refused; or the answer was lost, the client tried again, and met what it had put itself.
        there = _content(store, name)
        if there == before:
            raise
        return there == data
    return True


def _content(store: Any, name: str) -> bytes | None:
    store.invalidate_cache(name)
    try:
        content: bytes = store.cat_file(name)
    except FileNotFoundError:
        return None
    return content


def file_names(folder: Path) -> set[str]:
    """The names of the files in a folder. Of a folder on this machine, its entries are not asked one by one."""
    if is_remote(folder):
        return {entry.name for entry in folder.iterdir() if entry.is_file()}
    with os.scandir(folder) as entries:
        return {entry.name for entry in entries if _is_file(entry)}


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself, say
        return Path(entry.path).is_file()


def addresses(path: Path) -> tuple[str, ...]:
    """How a path is written: one in a store by its address, and as its client writes it."""
    if not is_remote(path):
        return (str(path.resolve()),)
    remote: Any = path
    return (str(path), *(f"{name}://{remote.path}" for name in _protocols(remote.fs)))


def list_ahead(folder: Path) -> None:
    """List a folder in a store once, as it is now: its client then knows what is there without asking for each file."""
    if is_remote(folder):
        remote: Any = folder
        remote.fs.invalidate_cache(remote.path)
        with suppress(FileNotFoundError):
            remote.fs.find(remote.path)


def forget(folder: Path) -> None:
    """Ask the store again for what is in a folder."""
    remote: Any = folder
    remote.fs.invalidate_cache()


class LogState(NamedTuple):
    """What a log is: its size, when it was written, in nanoseconds, and what a store says of its content."""

    size: int
    changed: int
    tag: str = ""


def changes_below(folder: Path) -> dict[str, LogState]:
    """What each object of a store below a path is now."""
    remote: Any = folder
    remote.fs.invalidate_cache()
    return {
        name: LogState(
            int(entry.get("size") or 0), _nanoseconds(entry), str(entry.get("ETag") or entry.get("etag") or "")
        )
        for name, entry in remote.fs.find(remote.path, detail=True).items()
    }


def _nanoseconds(entry: Mapping[str, Any]) -> int:
    """When an object was written; stores call it by different names."""
    times = (entry.get(name) for name in ("LastModified", "mtime", "last_modified", "updated", "created"))
    return next((int(one.timestamp() * 1e9) for one in times if isinstance(one, datetime)), 0)


def register_store(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    """Let a connection to DuckDB open what is in the store of a path."""
    if is_remote(path):
        remote: Any = path
        if not set(connection.list_filesystems()).intersection(_protocols(remote.fs)):
            connection.register_filesystem(remote.fs)


def _protocols(store: Any) -> tuple[str, ...]:
    names = store.protocol
    return (names,) if isinstance(names, str) else tuple(names)


HINT = "check the address, the network and the credentials of the store"
_CLIENTS = ("adlfs", "aiobotocore", "aiohttp", "azure", "botocore", "fsspec", "gcsfs", "google", "s3fs")


@contextmanager
def store_errors(path: object) -> Iterator[None]:
    """What the client of a store raises, as an error that names the path."""
    try:
        yield
    except Exception as error:
        if is_remote(path) and (isinstance(error, OSError) or is_client_error(error)):
            raise StoreError(f"{path}: {reason_of(error)}", hint=HINT) from None
        raise


def is_client_error(error: BaseException) -> bool:
    """Whether the client of a store raised it, in its own type or as an error of the system."""
    seen: BaseException | None = error
    while seen is not None:
        if type(seen).__module__.split(".")[0] in _CLIENTS:
            return True
        seen = seen.__cause__
    return False


def reason_of(error: BaseException) -> str:
    """The first line of what a client says."""
    return str(error).strip().split("\n")[0][:300] or type(error).__name__


class OwnFolder:
    """A temporary folder of this process. Before it is made, those of processes that were killed are removed.

    A process that lives holds the lock in its folder; the system opens it when the process dies, however it died.
    """

    def __init__(self) -> None:
        for left in Path(tempfile.gettempdir()).glob(f"convoscope-*/{_OWN_LOCK}"):
            _remove_if_left(left)
        self.path = Path(tempfile.mkdtemp(prefix="convoscope-"))
        self._lock = -1
        if sys.platform != "win32":
            # It gets its name when it is locked: another process may look for folders right now.
            fresh = self.path / f"{_OWN_LOCK}.new"
            self._lock = os.open(fresh, os.O_CREAT | os.O_RDWR, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            fresh.rename(self.path / _OWN_LOCK)

    def remove(self) -> None:
        """Remove it with all that is in it."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


_OWN_LOCK = "in-use"


def _remove_if_left(lock: Path) -> None:
    """Remove a folder that no process holds the lock of."""
    if sys.platform == "win32":
        return
    with suppress(OSError):  # of another user, held, or removed just now
        opened = os.open(lock, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.parent, ignore_errors=True)
        finally:
            os.close(opened)


__all__ = [
    "HINT",
    "LogState",
    "OwnFolder",
    "StoreError",
    "addresses",
    "as_path",
    "changes_below",
    "file_names",
    "forget",
    "is_client_error",
    "is_remote",
    "list_ahead",
    "only_here",
    "open_binary",
    "put_if",
    "reason_of",
    "register_store",
    "scheme_of",
    "store_errors",
    "tag_of",
]
