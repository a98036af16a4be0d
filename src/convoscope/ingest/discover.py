"""What the given paths hold: each file or folder, what it is taken for, and why."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from convoscope.conversation import Flow
from convoscope.errors import InputError, UsageError
from convoscope.ingest.companions import gold
from convoscope.ingest.companions.companion import companions
from convoscope.ingest.companions.dialogue_files import VenueTable, VenueTables
from convoscope.ingest.companions.flows import FlowDefinitions, PathLike, is_yaml
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import packed, tables
from convoscope.ingest.io.audio_heads import audio_kind
from convoscope.ingest.io.containers import ARCHIVE_ENDINGS, is_binary, legacy_text
from convoscope.ingest.io.json import BadJson, decode
from convoscope.ingest.known_objects import KnownObject, ObjectState, known_object
from convoscope.ingest.reader import (
    Companion,
    Container,
    Detection,
    FolderSample,
    Grouping,
    Reader,
    Sample,
    reader_named,
    registered,
)
from convoscope.ingest.refusals import looks_like_settings, unknown_file
from convoscope.ingest.report import RECORDING, FileRead, Problem, ReadReport
from convoscope.storage import as_path, forget, is_remote, open_binary, store_errors, tag_of

HEAD_BYTES = 256 * 1024
SAMPLE_RECORDS = 5
MANY_LINES = 100

WENT_AWAY = "went away before it was read"
_MOST_NAMED = 5
_ATTEMPTS = 10
"""At a folder in which files come and go."""

_LINE_ENDINGS = (".jsonl", ".ndjson")
_LOG_ENDINGS = (".json", *_LINE_ENDINGS, *tables.ENDINGS)
_SUBTITLE_ENDINGS = (".srt", ".vtt", ".sbv")
_TEXT_ENDINGS = (".txt", ".log", *_SUBTITLE_ENDINGS)


class CompanionFile(msgspec.Struct, frozen=True):
    """A file that an input is read together with, and its kind: the format of a `Companion`, or of a reader."""

    path: str
    format: str


OBJECTS = "conversations made in Python"
"""Why conversations of a program are read as what they are."""


class Input(msgspec.Struct, frozen=True):
    """One file, or one folder that is a single conversation, and how it will be read."""

    path: str
    name: str
    """The path below the one that was given; ids and reports use it."""
    reader: str
    container: Container
    grouping: Grouping
    why: str
    companions: tuple[CompanionFile, ...] = ()
    data: bytes | None = None
    """Its lines, where they are in memory and not in a file."""
    state: ObjectState | None = None
    """Of one in an object store that gives ETags."""

    def companions_of(self, format: str) -> list[Path]:
        """The paths of its companions of one kind."""
        return [as_path(companion.path) for companion in self.companions if companion.format == format]


class FoundInput(NamedTuple):
    """The inputs in a fixed order, and what was seen on the way to them."""

    inputs: tuple[Input, ...]
    report: ReadReport
    flows: tuple[Flow, ...] = ()
    """Definitions of flows, for all conversations."""
    venues: tuple[VenueTable, ...] = ()
    """The database of venues, for all conversations."""


def find_inputs(
    paths: Sequence[PathLike],
    *,
    format: str | None = None,
    flows: Iterable[PathLike | Flow] = (),
    readers_from: Iterable[PathLike] = (),
    known: Mapping[str, KnownObject] = {},
) -> FoundInput:
    """Every input below the paths, in the order of names: the order of `paths` does not matter.

    `flows` are definitions of flows, or their paths; those below the paths are found.
    `readers_from` are Python files and modules whose readers are added to the installed ones. `known` are objects
    that an earlier run read, by their tags.
    """
    registry = registered(readers_from)
    readers = chosen_readers(registry.by_name, format)
    report = ReadReport(warnings=list(registry.problems))
    definitions, venues = FlowDefinitions(flows, report), VenueTables(report)
    unread = registry.by_name.keys() - readers.keys()
    kinds = [kind for kind in (*companions(definitions), venues) if kind.format not in unread]
    inputs: dict[str, Input] = {}
    for given in paths:
        path = as_path(given)
        with store_errors(path):
            if not path.exists():
                raise InputError("there is no such file or folder", file=str(given))
            entries = list(_walk(path, readers, report))
        if not entries and path.is_dir() and not report.files:
            what = "holds no file; hidden files and runs are not read" if any(path.iterdir()) else "is an empty folder"
            report.files[_utf8(_name(path))] = FileRead(skipped=what)
        for below, entry in entries:
            name, is_named = _utf8(below), entry == path
            if (best := _detect_folder(entry, readers) if entry.is_dir() else None) is not None:
                item: Input | None = Input(str(entry), name, best.name, "folder", "folder", best.claim.why)
            elif (object := known_object(entry, known)) is not None:
                item = _known_input(name, entry, object)
            else:
                item = _file_input(name, entry, [*readers.values(), *kinds], report, is_named=is_named)
            if item is None or _is_loaded(item, kinds, is_named=is_named):
                continue
            # Given twice, as itself and in a folder, it goes by its shorter name, whatever came first.
            real = str(entry.resolve())
            inputs[real] = min(item, inputs.get(real, item), key=lambda one: (len(one.name), one.name))
    inputs = _without_recordings(inputs, report)
    if not any(item.grouping != "companion" for item in inputs.values()):
        inputs |= dict(_logs_alone(inputs, readers, report))
    held = [item for item in inputs.values() if item.grouping == "companion"]
    for companion in held:
        report.files[companion.name] = FileRead(companion.reader, companion.why, is_companion=True)
    logs = {real: item for real, item in inputs.items() if item.grouping != "companion"}
    labels = [item for item in held if item.reader == gold.FORMAT]
    others = [item for item in held if item.reader != gold.FORMAT]
    named = _distinct_names(_labelled(_accompanied(logs, others, readers), labels))
    return FoundInput(tuple(sorted(named, key=lambda item: item.name)), report, definitions.flows, venues.tables)


def _without_recordings(inputs: dict[str, Input], report: ReadReport) -> dict[str, Input]:
    """The inputs; without recordings where there are logs: they belong to a log, and are no conversations beside it."""
    if not any(item.grouping != "companion" and item.container != "recording" for item in inputs.values()):
        return inputs
    for item in inputs.values():
        if item.container == "recording":
            why = "is a recording beside logs; given alone, it is read by itself"
            report.files[item.name] = FileRead(RECORDING, skipped=why, is_companion=True)
    return {real: item for real, item in inputs.items() if item.container != "recording"}


def _logs_alone(
    inputs: Mapping[str, Input], readers: Mapping[str, Reader], report: ReadReport
) -> Iterator[tuple[str, Input]]:
    """Files of predictions that hold what was said, too: where no log is given, they are logs."""
    able = [reader for reader in readers.values() if reader.is_also_companion]
    for real, item in inputs.items():
        with suppress(InputError, BadJson):
            if best_claim(sample_of(as_path(item.path)), able) is not None:
                yield real, _file_input(item.name, as_path(item.path), able, report, is_named=False) or item


def _is_loaded(item: Input, kinds: Iterable[Companion], *, is_named: bool) -> bool:
    """Whether it is a companion that was read at once, for all conversations."""
    return item.grouping == "companion" and any(
        kind.load(as_path(item.path), item.name, is_named=is_named) for kind in kinds if kind.format == item.reader
    )


def _distinct_names(inputs: Mapping[str, Input]) -> list[Input]:
    """The inputs, which are by their real paths. Those of one name get as many of the folders above as they need.

    How their paths were written does not matter, nor where the folders lie.
    """
    names = {real: item.name for real, item in inputs.items()}
    while True:
        counts = Counter(names.values())
        clashing = sorted(real for real, name in names.items() if counts[name] > 1)
        if not clashing:
            return [msgspec.structs.replace(item, name=names[real]) for real, item in inputs.items()]
        for number, real in enumerate(clashing, 1):
            whole = _utf8("/".join(as_path(real).parts[1:]))
            folders = whole.split("/")[: -len(names[real].split("/"))]
            # Names that are not UTF-8 may be alike to the end.
            names[real] = f"{folders[-1]}/{names[real]}" if folders else f"{names[real]}~{number}"


def _utf8(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _accompanied(logs: Mapping[str, Input], held: Sequence[Input], readers: Mapping[str, Reader]) -> dict[str, Input]:
    """Each input with the companions that it is read together with.

    A companion belongs to the inputs below its folder, the nearest first; one that lies above none
    was given for all of them. One that a reader claimed is for that reader's inputs only.
    """
    companions = sorted(((as_path(one.path).resolve(), one) for one in held), key=lambda pair: str(pair[0]))
    by_folder: dict[Path, list[Input]] = {}
    for real_path, companion in companions:
        by_folder.setdefault(real_path.parent, []).append(companion)
    near: dict[str, list[Input]] = {}
    for real, item in logs.items() if companions else ():
        path = as_path(item.path).resolve()
        above = (one for folder in (path, *path.parents) for one in by_folder.get(folder, ()))
        near[real] = [one for one in above if _is_for(one, item, readers)]
    placed = {one.path for above in near.values() for one in above}
    loose = [one for _, one in companions if one.path not in placed]
    accompanied: dict[str, Input] = {}
    for real, item in logs.items():
        free = [one for one in loose if _is_for(one, item, readers)]
        files = [CompanionFile(one.path, one.reader) for one in (*near.get(real, ()), *free)]
        if item.grouping == "folder":
            known = {as_path(one.path).resolve() for one in files}
            outside = reader_named(item.reader).companions(as_path(item.path))
            files += [CompanionFile(str(path), item.reader) for path in outside if path.resolve() not in known]
        accompanied[real] = msgspec.structs.replace(item, companions=tuple(files)) if files else item
    return accompanied


def _labelled(logs: dict[str, Input], labels: Sequence[Input]) -> dict[str, Input]:
    """Each input with the gold labels of its sample, wherever these lie; those of no input may be of any."""
    stems = {gold.stem(item.name) for item in logs.values()}
    own: dict[str, tuple[CompanionFile, ...]] = {}
    loose: list[tuple[str, str]] = []
    for label in labels:
        sample = gold.stem(label.name).removesuffix(gold.NAME_ENDING)
        if sample in stems:
            own[sample] = (*own.get(sample, ()), CompanionFile(label.path, gold.FORMAT))
        else:
            loose.append((sample, label.path))
    for_all = tuple(CompanionFile(path, gold.FORMAT) for _, path in sorted(loose))
    return {
        real: msgspec.structs.replace(item, companions=item.companions + own.get(gold.stem(item.name), ()) + for_all)
        for real, item in logs.items()
    }


def _is_for(companion: Input, item: Input, readers: Mapping[str, Reader]) -> bool:
    return companion.reader == item.reader or companion.reader not in readers


def size_of(item: Input) -> int:
    """Bytes of the file, of the files in a folder, or of what is in memory; 0 where it cannot be opened."""
    path = as_path(item.path)
    try:
        if item.data is not None:
            return len(item.data)
        if path.is_dir():
            return sum(inner.stat().st_size for inner in path.iterdir() if inner.is_file())
        return path.stat().st_size
    except OSError:
        return 0


def changed_at(item: Input) -> float:
    """When a file, or a file of a folder, was last written to, in seconds since 1970; 0 where it cannot be known."""
    path = as_path(item.path)
    try:
        inner = path.iterdir() if path.is_dir() else ()
        return max(float(one.stat().st_mtime) for one in (path, *inner))
    except OSError:
        return 0.0


def fingerprint(item: Input) -> str:
    """`sha256:` of the input's bytes; for a folder, of the names and bytes in it and of its companions."""
    path = as_path(item.path)
    if item.data is not None:
        return "sha256:" + hashlib.sha256(item.data).hexdigest()
    known = item.state.digest if item.state is not None else ""
    is_folder = not known and path.is_dir()
    if not is_folder and not item.companions:
        return "sha256:" + (known or digest_of(path))
    whole = hashlib.sha256()
    if not is_folder:
        whole.update(f"{known or digest_of(path)}\n".encode())
    for inner in sorted(inner for inner in path.rglob("*") if inner.is_file()) if is_folder else ():
        whole.update(f"{inner.relative_to(path).as_posix()} {digest_of(inner)}\n".encode())
    for companion in item.companions:
        whole.update(f"{digest_of(as_path(companion.path))}\n".encode())
    return "sha256:" + whole.hexdigest()


def hashed_inputs(inputs: Iterable[Input], report: ReadReport) -> list[tuple[Input, str]]:
    """The inputs that are still there, each with its fingerprint. The report names those that went away."""
    hashed: list[tuple[Input, str]] = []
    gone: list[str] = []
    for item in inputs:
        if (there := _hashed(item)) is not None:
            hashed.append(there)
        else:
            gone.append(item.name)
            report.files[item.name] = FileRead(item.reader, item.why, skipped=WENT_AWAY)
    if gone:
        names = ", ".join(gone[:_MOST_NAMED]) + (", …" if len(gone) > _MOST_NAMED else "")
        what = "1 log" if len(gone) == 1 else f"{len(gone):,} logs"
        report.warnings.append(f"{what} went away before being read: {names}")
    return hashed


def _hashed(item: Input) -> tuple[Input, str] | None:
    """An input and its fingerprint, without companions that went away; None where it went away itself."""
    for _ in range(_ATTEMPTS):
        try:
            return item, fingerprint(item)
        except FileNotFoundError:
            if not _exists(as_path(item.path)):
                return None
            left = tuple(one for one in item.companions if _exists(as_path(one.path)))
            item = msgspec.structs.replace(item, companions=left)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", file=item.path) from None
    raise InputError("changes all the time", file=item.path, hint="wait until it is written")


def _exists(path: Path) -> bool:
    if is_remote(path):
        forget(path)
    return path.exists()


FileState = tuple[int, int, int, int]
_digests: dict[str, tuple[FileState, str]] = {}
"""The hashes of files that this process has read, for one that looks at its logs again and again."""
_MOST_HASHED = 50_000
_MAY_CHANGE = 2.0
"""Seconds after its last change in which a file could change once more without another time."""


def digest_of(path: Path) -> str:
    name, before = str(path), None if is_remote(path) else _state_of(path)
    state, digest = _digests.get(name, (None, ""))
    if before is not None and state == before:
        return digest
    began = time.time()
    with open_binary(path) as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()  # type: ignore[arg-type, unused-ignore]
    if before is not None and before == _state_of(path) and began - max(before[2:]) / 1e9 > _MAY_CHANGE:
        if len(_digests) >= _MOST_HASHED:
            _digests.clear()
        _digests[name] = before, digest
    return digest


def _state_of(path: Path) -> FileState | None:
    """What changes with the content of a file: who has its name, its size, and the times that the system keeps."""
    if os.name == "nt":  # it has no time of the last change that programs cannot set
        return None
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def chosen_readers(installed: Mapping[str, Reader], format: str | None) -> Mapping[str, Reader]:
    if format is None:
        return installed
    if format not in installed:
        raise UsageError(f"unknown format {format!r}", hint=f"the formats are {', '.join(sorted(installed))}")
    return {format: installed[format].loaded}


def _walk(path: Path, readers: Mapping[str, Reader], report: ReadReport) -> Iterator[tuple[str, Path]]:
    """The files below a path, and the folders that a reader claims as one conversation, with their names."""
    if not path.is_dir():
        yield _name(path), path
        return
    pending, seen, inside = [path], set[Path](), path.resolve()
    if _is_of_the_system(inside):
        raise InputError("is of the operating system, and holds no logs", file=str(path), hint="name another folder")
    while pending:
        folder = pending.pop()
        # A link may lead back to where we were.
        if folder.resolve() in seen:
            continue
        seen.add(folder.resolve())
        if folder != path and (reason := _left_out(folder, readers)):
            report.files[folder.relative_to(path).as_posix()] = FileRead(skipped=reason)
            report.ignore("folder_left_out")
            continue
        if _detect_folder(folder, readers) is not None:
            yield (_name(path) if folder == path else folder.relative_to(path).as_posix()), folder
            continue
        try:
            entries = sorted(folder.iterdir())
        except OSError as error:
            _note_unopened(folder.relative_to(path).as_posix(), error, "check its permissions", report)
            continue
        for entry in entries:
            if entry.name.startswith("."):
                continue
            name = entry.relative_to(path).as_posix()
            try:
                is_folder = entry.is_dir()
                if wrong := _cannot_be_entered(entry, inside, is_folder=is_folder):
                    report.problem(Problem(name, 0, wrong.message, hint=wrong.hint))
                elif not is_folder:
                    yield name, entry
                elif not _is_run(entry):
                    pending.append(entry)
            except OSError as error:
                # A path may be longer than the system allows, deep in folders.
                _note_unopened(name, error, _SHORTER, report)


def _note_unopened(name: str, error: OSError, hint: str, report: ReadReport) -> None:
    """What cannot be opened is a problem, unless it went away since it was listed."""
    if isinstance(error, FileNotFoundError):
        report.files[name] = FileRead(skipped=WENT_AWAY)
    else:
        report.problem(Problem(name, 0, f"cannot be opened: {error.strerror or error}", hint=hint))


_SHORTER = "move it to a folder whose path is shorter"
_OF_THE_SYSTEM = (Path("/proc"), Path("/sys"))


def _is_of_the_system(path: Path) -> bool:
    return any(path == root or root in path.parents for root in _OF_THE_SYSTEM)


def _cannot_be_entered(entry: Path, inside: Path, *, is_folder: bool) -> InputError | None:
    """Why an entry of a folder is not read: a link that leads out of what was given, a pipe; None for the rest."""
    if not is_folder and not entry.is_file():
        if entry.is_symlink() and not entry.exists():
            return InputError("is a broken link")
        if not entry.exists():
            raise FileNotFoundError
        return InputError("is neither a file nor a folder", hint="a pipe is read where it is named itself")
    if entry.is_symlink():
        target = entry.resolve()
        if _is_of_the_system(target) or (is_folder and not target.is_relative_to(inside)):
            words = "is a link that leads out of the folder, and was not followed"
            return InputError(words, hint="name its target too")
    return None


def _name(path: Path) -> str:
    """What a path leads to is called, however it is written: `.` is a folder of some name, too."""
    return path.resolve().name if path.name in ("", "..") else path.name


def _is_run(folder: Path) -> bool:
    """A run of ours, finished or not, is an answer and not a log."""
    return {"receipt.json", "summary.json"} <= _sample(folder).names or is_unfinished(folder)


JOURNAL = "journal.jsonl"
LOCK = "lock"
UNFINISHED = b"an unfinished run of convoscope\n"
"""Begins the lock of one."""
_HEADER = re.compile(rb'\{"type":\s*"header",\s*"depends_on":')


def is_unfinished(folder: Path) -> bool:
    """Whether a folder carries the mark of a run that is being made: its lock or its journal begins as ours do."""
    return _begin(folder / LOCK).startswith(UNFINISHED) or _HEADER.match(_begin(folder / JOURNAL)) is not None


def _begin(path: Path) -> bytes:
    # What is no file, such as a pipe, might keep us waiting.
    with suppress(OSError):
        if path.is_file():
            with open_binary(path) as stream:
                return stream.read(100)
    return b""


def _sample(folder: Path) -> FolderSample:
    try:
        return FolderSample(folder, frozenset(entry.name for entry in folder.iterdir()))
    except OSError:
        return FolderSample(folder, frozenset())


def _left_out(folder: Path, readers: Mapping[str, Reader]) -> str:
    sample = _sample(folder)
    for reader in readers.values():
        with suppress(Exception):  # a reader that fails on an unknown folder does not leave it out
            if reason := reader.leave_out(sample):
                return reason
    return ""


def _detect_folder(folder: Path, readers: Mapping[str, Reader]) -> Claim | None:
    return _surest(_sample(folder), ((reader.name, reader.detect_folder) for reader in readers.values()))


def _file_input(
    name: str, path: Path, claimants: Sequence[Reader | Companion], report: ReadReport, *, is_named: bool
) -> Input | None:
    """How a file will be read; None, and an entry in the report, where no reader knows it.

    That is a problem where the file was named, or is a log by its own name.
    """
    is_log = is_named or files.unpacked_name(path.name).endswith((*_LOG_ENDINGS, *_SUBTITLE_ENDINGS, *ARCHIVE_ENDINGS))
    try:
        return _recognised(name, path, claimants)
    except BadJson as error:
        kind = "YAML" if is_yaml(path) else "JSON"
        refusal = Problem(name, error.line, str(error), hint=f"the {kind} must be complete")
    except InputError as error:
        refusal = Problem(name, 0, error.message, hint=error.hint)
        is_log = is_named or (is_log and not isinstance(error, tables.UnknownTable))
    except OSError as error:
        if isinstance(error, FileNotFoundError) and not is_named:
            report.files[name] = FileRead(skipped=WENT_AWAY)
            return None
        refusal = Problem(name, 0, f"cannot be opened: {error.strerror or error}", hint="check its permissions")
    report.files[name] = FileRead(skipped=refusal.message)
    if is_log:
        report.problem(refusal)
    return None


def _known_input(name: str, path: Path, known: KnownObject) -> Input:
    state = ObjectState(known.tag, known.is_plain, known.digest, known.name)
    container, grouping = cast("Container", known.container), cast("Grouping", known.grouping)
    return Input(str(path), name, known.reader, container, grouping, known.why, state=state)


def object_state(path: Path) -> ObjectState | None:
    """What a store says of a log that is read for the first time."""
    tag = tag_of(path) if is_remote(path) else ""
    return ObjectState(tag, files.is_plain(path)) if tag else None


def _recognised(name: str, path: Path, claimants: Sequence[Reader | Companion]) -> Input:
    kinds = [claimant for claimant in claimants if not isinstance(claimant, Reader)]
    if is_yaml(path) and (best := best_claim(Sample(path, "text", ()), kinds)) is not None:
        return Input(str(path), name, best.name, "text", best.claim.grouping, best.claim.why)
    sample = sample_of(path, [one for one in claimants if isinstance(one, Reader)])
    container = sample.container
    best = best_claim(sample, claimants) if sample.values or container != "text" else None
    if best is None and sample.values:
        # Before it is refused, readers whose marks it does not have are asked, too.
        best = best_claim(sample, [one.loaded for one in claimants if isinstance(one, Reader)])
    if best is None:
        readers = [claimant for claimant in claimants if isinstance(claimant, Reader)]
        raise unknown_file(path, files.head_of(path, HEAD_BYTES), container, sample.values, readers)
    grouping = "file" if container == "text" and best.claim.grouping == "key" else best.claim.grouping
    return Input(str(path), name, best.name, container, grouping, best.claim.why, state=object_state(path))


def sample_of(path: Path, readers: Iterable[Reader] = (), *, most: int = SAMPLE_RECORDS) -> Sample:
    """How a file is built, and its first records. Raises `InputError` or `BadJson` for one that holds none.

    Of a large document that one of the readers can read member by member, these are its first members.
    """
    if audio_kind(path):
        return Sample(path, "recording", ())
    head = files.head_of(path, HEAD_BYTES)
    if not head.strip():
        raise InputError("is empty", hint="nothing was written to it, or it was not closed")
    container: Container = "table" if tables.is_table(path, head) else _container(path.name, head)
    if container == "table":
        if not tables.is_parquet(path) and b"\0" in head[:1024]:
            raise InputError("is not a text file", hint="write it again")
        return Sample(path, container, tables.first_rows(path, most))
    if packed.is_zip(head):
        with suppress(BadJson):
            return Sample(path, "zip", _first_of(packed.zip_ranges(path, 1), most))
        return Sample(path, "zip", ())
    if is_binary(head) or (container != "lines" and not _begins_like_json(path, head)):
        if is_yaml(path):
            return Sample(path, "yaml", _first_of(packed.yaml_ranges(path, 1), most))
        return Sample(path, "text", _first_lines(head))
    if container == "document" and len(head) >= HEAD_BYTES and any(one.holds_members(head) for one in readers):
        container = "members"
    return Sample(path, container, _first_values(path, head, container, most))


def _begins_like_json(path: Path, head: bytes) -> bool:
    """A bracket at the beginning of a text file may also open a time or a label: `[00:12] Agent: …`."""
    begin = head.lstrip()
    if looks_like_settings(head):
        return False
    if path.suffix.lower() in _TEXT_ENDINGS and re.match(rb"\[[^\[\]{}\"\n]{1,60}\]", begin):
        return _is_json(head)
    return begin[:1] in (b"{", b"[")


class Claim(NamedTuple):
    """What a reader or a companion says of a file, and its name."""

    claim: Detection
    name: str


def best_claim(sample: Sample, claimants: Iterable[Reader | Companion]) -> Claim | None:
    """The surest claim on a file. A claimant that fails on an unknown file does not know it."""
    named = ((one.name if isinstance(one, Reader) else one.format, one.detect) for one in claimants)
    return _surest(sample, named)


def _surest(sample: Any, detectors: Iterable[tuple[str, Callable[[Any], Detection | None]]]) -> Claim | None:
    claims: list[Claim] = []
    for name, detect in detectors:
        with suppress(Exception):  # whatever odd shapes and names do to a reader
            if (claim := detect(sample)) is not None:
                claims.append(Claim(claim, name))
    return max(claims, key=lambda claim: (claim.claim.confidence, claim.name), default=None)


def _container(name: str, head: bytes) -> Container:
    """Lines of JSON, one array, or one document, by the first lines; in doubt, by the name."""
    one_value: Container = "array" if head.lstrip().startswith(b"[") else "document"
    lines = head.lstrip().split(b"\n")
    if not any(line.strip() for line in lines[1:]):
        return one_value
    if len(head) < HEAD_BYTES and _is_json(head):
        return one_value
    # The last line may have been cut by the size of the head.
    ended = lines[:-1] if len(head) >= HEAD_BYTES else lines
    whole = [line for line in ended if line.strip()][:MANY_LINES]
    alone = [line for line in whole if _is_whole_json(line)]
    if alone and (alone[0] == whole[0] or (len(alone) > 1 and 2 * len(alone) > len(whole))):
        return "lines"
    named_lines = any(f"{ending}." in f"{name.lower()}." for ending in _LINE_ENDINGS)
    if named_lines and any(_is_whole_json(line.strip()) for line in whole):
        return "lines"
    return one_value


def _is_json(text: bytes) -> bool:
    try:
        decode(text)
    except BadJson:
        return False
    return True


def _is_whole_json(line: bytes) -> bool:
    return line[:1] in (b"{", b"[") and _is_json(line)


def _first_values(path: Path, head: bytes, container: Container, most: int) -> list[Any]:
    if container == "document":
        return [decode(head if len(head) < HEAD_BYTES else files.whole(path)).value]
    if container == "lines":
        values: list[Any] = []
        for line in [line for line in head.split(b"\n") if line.strip()][: max(most, MANY_LINES)]:
            try:
                values.append(decode(line).value)
            except BadJson:
                continue
            if len(values) == most:
                break
        return values
    ranges = files.member_ranges if container == "members" else files.element_ranges
    return _first_of(ranges(path, 1), most)


def _first_of(ranges: Iterable[files.ByteRange], most: int) -> list[Any]:
    """The values of the first records; raises where there is none because the file is broken."""
    values: list[Any] = []
    for element in ranges:
        if element.problem:
            if not values:
                raise BadJson(element.problem)
            break
        try:
            values.append(decode(element.data or b"").value)
        except BadJson:
            continue
        if len(values) >= most:
            break
    return values


def _first_lines(head: bytes) -> list[Any]:
    """The first lines of a file of plain text; none where it is no text."""
    # The last line may have been cut by the size of the head, in the middle of a letter.
    whole = head.rpartition(b"\n")[0] if len(head) >= HEAD_BYTES else head
    text = None if is_binary(whole) else legacy_text(whole)
    return [] if text is None else [line.strip() for line in text.split("\n") if line.strip()][:MANY_LINES]
