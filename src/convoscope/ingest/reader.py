"""What a reader of a format is, and which readers there are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from functools import cache, lru_cache
from importlib.metadata import entry_points
from math import inf
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from convoscope.conversation import Conversation
from convoscope.errors import UsageError
from convoscope.ingest.io.json import decode
from convoscope.ingest.report import Notes
from convoscope.user_code import load, names

ENTRY_POINT_GROUP = "convoscope.readers"

Grouping = Literal["record", "file", "key", "folder", "companion"]
Container = Literal["lines", "array", "members", "document", "table", "text", "yaml", "zip", "folder", "recording"]


class Record(NamedTuple):
    """One JSON value of a file; `number` is its line, or its position in an array or a table.

    Of a file of plain text, a line of it.
    """

    value: Any
    number: int = 1
    repairs: tuple[str, ...] = ()
    """What had to be put right to read it."""
    file: str = ""
    """The name of its file, where records of several files were brought together."""
    before: Sequence[Any] = ()
    """Messages of its conversation that earlier records have, where it holds only the last ones."""


class Sample(msgspec.Struct, frozen=True):
    """What a reader sees of a file before it is read: how it is built, and its first records.

    A container `members` is a large document whose members are read one by one, each as an object of one member. A
    container `text` is a file of plain text, neither JSON nor a table: its records are its lines, as `str`.
    Records of it are not brought together by key. A container `recording` is an audio file, and has no records.
    """

    path: Path
    container: Container
    values: Sequence[Any]
    shared: dict[str, Any] = {}
    """What one reader found out and others need, too: they are asked in turn, and the sample is gone with the last."""


class FolderSample(NamedTuple):
    """What a reader sees of a folder: the names in it."""

    path: Path
    names: frozenset[str]


class Detection(NamedTuple):
    """A reader's claim on a file or folder: how sure, why, and which records belong together.

    record: each is a conversation by itself. file: all of a file are one conversation. key: those that
    `Reader.key` gives the same key are one. folder: the files of a folder are one. companion: no
    conversation, but something that the same reader needs with its folders, such as a dataset.
    """

    confidence: float
    why: str
    grouping: Grouping = "record"


class RecordGroup(NamedTuple):
    """What a reader builds conversations from."""

    name: str
    """An id for a conversation that brings none."""
    path: Path
    records: Sequence[Record] = ()
    files: tuple[str, ...] = ()
    """Their names, where records of several files were brought together."""
    companions: tuple[Path, ...] = ()
    """Companion files that this reader claimed."""
    apart: Set[str] = frozenset()
    """Keys of `Reader.part_keys` that are read elsewhere, with what other files hold of them."""

    @property
    def file_names(self) -> tuple[str, ...]:
        return self.files or (self.path.name.encode("utf-8", "replace").decode(),)


class RawRecord(msgspec.Struct, frozen=True, gc=False):
    """A record that is a conversation by itself: where it is, and its text."""

    name: str
    """An id for a conversation that brings none."""
    number: int
    files: tuple[str, ...]
    text: bytes
    """The record as it is written."""


class Lines(NamedTuple):
    """The lines of one conversation, brought together and not decoded yet."""

    key: str
    texts: Sequence[bytes]
    files: tuple[str, ...]
    """The names of their files."""

    @property
    def file_names(self) -> tuple[str, ...]:
        return _last_parts(self.files)


@lru_cache(maxsize=64)
def _last_parts(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(Path(name).name for name in names))


class CallHistory(NamedTuple):
    """A record as one call of a model, with the messages so far."""

    messages: Sequence[Hashable]
    """What each message says; messages that say the same are equal."""
    by_agent: Sequence[bool]
    """Which of them the agent wrote."""
    by_user: Sequence[bool]
    """Which of them the user wrote."""
    conversation: str = ""
    """The id of its conversation; calls that have different ones are of different conversations."""
    call: str = ""
    """The id of the call alone."""
    apart: Hashable = None
    """Whatever else keeps conversations apart: trials, users."""
    labels: Sequence[Hashable] = ()
    """How it went. Of the records of one conversation, the last one knows it."""
    times: Sequence[float | None] = ()
    """When each message was said."""
    at: Hashable = None
    """Of a session: when the record says that it was."""
    written: float = -inf
    """The latest time that the record itself has."""
    is_call: bool = False
    """It says itself that it is a call: it holds a request or a response, or has the id of one."""
    entries: Sequence[Any] = ()
    """The messages as they are written."""


class Reader:
    """Reads one format. Give it a name, a `detect` or `detect_folder`, and `build`."""

    name = ""
    title = ""
    settings = ""
    """What decides, besides its source, what it reads: a run with other settings is another run."""
    unkeyed_record_is_conversation = False
    """With grouping by key: a record without a key, or with one that no other has, is a conversation by itself."""
    logs_calls = False
    """With grouping by record: a record may be one call of several of its conversation, with all messages so far."""
    joins_files = False
    """With grouping by file: a conversation may go on in other files. Then `part_keys` and `parts` say which, and
    `build` leaves out those of `RecordGroup.apart`, and takes the records of `parts`."""
    joins_messages = False
    """With grouping by key or file: a record is a single message, and its copies are dropped."""
    is_also_companion = False
    """Its files are companions of other logs; where no log is given, they are read as logs."""
    typed: Any = None
    """The type that msgspec decodes a record to for `build_typed`; None for a reader without one."""

    def __init_subclass__(cls) -> None:
        # The name until this release. Remove it with the next.
        if "beside" in cls.__dict__ and "companions" not in cls.__dict__:
            cls.companions = cls.__dict__["beside"]  # type: ignore[method-assign]

    @property
    def loaded(self) -> Reader:
        """The reader itself, where this one only waits to be imported."""
        return self

    def detect(self, sample: Sample) -> Detection | None:
        """Is this file of my format?"""

    def holds_members(self, head: bytes) -> bool:
        """May a large document that begins so be of my format, and its members be read one by one?"""
        del head
        return False

    def detect_folder(self, folder: FolderSample) -> Detection | None:
        """Are the files of this folder one conversation of my format?"""

    def leave_out(self, folder: FolderSample) -> str:
        """Why a folder that was met on the way should not be read; "" where it should."""
        del folder
        return ""

    def companions(self, folder: Path) -> Sequence[Path]:
        """Companions of a folder that lie outside of what was given, such as the settings of its run."""
        del folder
        return ()

    def part_of(self, name: str) -> str:
        """What a file of this name is a part of, where it cannot be read by itself; "" where that is not known."""
        del name
        return ""

    def key(self, value: Any) -> str | None:
        """With grouping by key: the conversation that a record belongs to."""

    def part_keys(self, group: RecordGroup) -> Iterable[Sequence[str]]:
        """Where `joins_files`: of each conversation of a file its key, and other keys of it, such as its traces."""
        del group
        return ()

    def parts(self, group: RecordGroup, keys: Collection[str]) -> Iterable[tuple[str, Any]]:
        """Where `joins_files`: what a file holds of the conversations of these keys, each as one record."""
        del group, keys
        return ()

    def quick_key(self, text: bytes) -> str | None:
        """The key of a record that is still JSON text; without decoding all of it where a reader knows how."""
        return self.key(decode(text).value)

    def quick_keys(self, texts: Sequence[bytes]) -> Sequence[str] | None:
        """The keys of some lines, where each has a usual one; else each is asked for its own."""

    def quick_build(self, lines: Lines) -> Conversation | None:
        """The conversation, where its lines are as usual and there is nothing to note; else `build` looks at them.

        It must be the one that `build` would give.
        """

    def history_keys(self, text: bytes) -> tuple[bytes, bytes]:
        """Where `logs_calls`, by a quick look: how the talk begins, and how its second exchange does.

        Calls of one conversation begin alike, or one begins with the second exchange of another.
        """
        del text
        return b"", b""

    def history(self, value: Any) -> CallHistory | None:
        """Where `logs_calls`: the messages of a record."""

    def says(self, value: Any) -> Hashable:
        """Where `joins_messages`: what a single message says, and when, however it is written; None for the record."""

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        """The conversations in a group. Raise `InputError` where it holds none."""
        del group, notes
        raise TypeError(f"reader {self.name} does not say how to build a conversation")

    def build_typed(self, record: Any, raw: RawRecord, notes: Notes) -> Conversation | None:
        """The conversation of a record of the `typed` type, the quick way, as `build` would give it with these notes.

        `build` is the definition. Whatever it would repair or refuse is None here, and then goes to `build`. The
        record was decoded for this call: it may be changed. Its values go into the conversation as they are, and so
        does no NaN or infinity, which JSON does not hold: it is not looked for when the conversation is written.
        """


Attach = Callable[[Conversation, Notes], Conversation]
"""Gives a conversation what a companion says of it, and notes what it concluded; the same one where that is nothing."""


class Companion:
    """A kind of file that says more about the conversations of logs. Give it a format and a `detect`."""

    format = ""
    """Its name in the read report. Where a reader has the same name, it is for that reader's inputs only."""

    def detect(self, sample: Sample) -> Detection | None:
        """Is this file of my kind? A YAML file comes without values: it is never a log."""

    def load(self, path: Path, name: str, *, is_named: bool) -> bool:
        """Read a file at once, for all conversations; False to have it read with the inputs that it belongs to.

        `is_named`: the user named this file, so whatever is wrong with it is an error.
        """
        del path, name, is_named
        return False

    def attacher(self, reader: str, files: Sequence[Path]) -> Attach | None:
        """What completes the conversations of an input of this reader, which has these files of my kind."""


class Readers(NamedTuple):
    """The readers by name, and the packages whose readers could not be loaded."""

    by_name: dict[str, Reader]
    problems: tuple[str, ...]


def registered(readers_from: str | PathLike[str] | Iterable[str | PathLike[str]] = ()) -> Readers:
    """What is installed, and the readers of these files and modules: `my_reader.py`, `my.reader`, a mapping `my.toml`.

    To name code here is to run it. Two readers of one name are an error.
    """
    by_name, problems = dict(installed().by_name), installed().problems
    for source in names(readers_from):
        declared = _declared(source)
        if not declared:
            raise UsageError(f"{source} declares no reader", hint="make one: READER = MyReader()")
        for reader in declared:
            if not reader.name:
                raise UsageError(f"{source}: {type(reader).__name__} has no name", hint='give it one: name = "…"')
            if by_name.setdefault(reader.name, reader) is not reader:
                raise UsageError(f"{source}: a reader named {reader.name} exists already", hint="give it another name")
            _brought[reader.name] = reader
    return Readers(by_name, problems)


def _declared(source: str) -> list[Reader]:
    if source.endswith(".toml"):
        from convoscope.ingest.mapping.reader import mapped_reader

        return [mapped_reader(source)]
    return [one for one in vars(load(source)).values() if isinstance(one, Reader)]


_brought: dict[str, Reader] = {}
"""Readers of the user's own code, by name, for whatever was recognised by them."""


def reader_named(name: str) -> Reader:
    """The reader that an input was recognised by."""
    reader = installed().by_name.get(name)
    return _brought[name] if reader is None else reader.loaded


@cache
def installed() -> Readers:
    """The readers that installed packages declare. One that cannot be loaded is a problem, not a crash."""
    from convoscope.ingest.marks import MARKS, MarkedReader

    readers: dict[str, Reader] = {}
    problems: list[str] = []
    for point in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value)):
        try:
            is_marked = point.name in MARKS and point.value.startswith("convoscope.ingest.formats.")
            reader = MarkedReader(point) if is_marked else point.load()
            if not isinstance(reader, Reader) or not reader.name:
                raise TypeError("is not a convoscope Reader with a name")
        except Exception as error:  # whatever a module of another package raises
            problems.append(f"reader {point.name} ({point.value}) cannot be loaded: {error}")
            continue
        if reader.name in readers:
            problems.append(f"reader {point.name} ({point.value}) is ignored: {reader.name} is there already")
        else:
            readers[reader.name] = reader
    return Readers(readers, tuple(problems))
