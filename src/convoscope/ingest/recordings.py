"""Where the recording of a conversation is: as its log says, beside the log, or in a folder that the user names.

A file is found by its name only. Nothing is opened here.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import takewhile
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from convoscope.conversation import AudioFile, Conversation, Track

if TYPE_CHECKING:
    from convoscope.ingest.discover import Input

ENDINGS = frozenset((".wav", ".wave", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aif", ".aiff", ".au", ".caf", ".w64"))
"""Of the files that may be the recording of a conversation because of their name."""
MOST_FILES = 500_000
"""Files of a folder that are looked at."""
_STANDARD_DATA = "standard-data"
_MOST_NAMED = 5


AMBIGUOUS = "recording_ambiguous"
"""What `extras` of a recording have where a file was not taken, since it may be that of another conversation: its
paths. It is the reason of metrics, too."""
ELSEWHERE = "recording_elsewhere"
"""What `extras` have where a file is neither in the folder of the log nor in that of `--audio`: its paths. A log can
name any file of this machine, so these are measured, and never embedded, copied or sent."""
CANDIDATES = "recording_candidates"
"""What `extras` have where several files have the conversation's id as their name: what opens them chooses."""
_BY_ID = "\0"
"""Before an id, among the endings of addresses."""


class AudioFolder(NamedTuple):
    """The recordings in a folder."""

    by_name: dict[str, list[str]]
    """Paths by file name."""
    by_stem: dict[str, list[str]]
    """Paths by file name without its ending."""

    @property
    def paths(self) -> list[str]:
        return [path for paths in self.by_name.values() for path in paths]


class FoundRecording(NamedTuple):
    """A conversation, and how its recording was found, where the log does not give the whole path."""

    conversation: Conversation
    by_id: str = ""
    """The file that was found by the conversation's id alone, or several of them."""
    by_name: str = ""
    """The file of which only the name is that of the log's path."""
    ambiguous: str = ""
    """The files each of which may be the recording, or may be another's; none of them is taken."""
    elsewhere: str = ""
    """The files that are neither in the folder of the log nor in that of `--audio`."""


class _Candidate(NamedTuple):
    """A file that may be there."""

    path: str
    shared: int
    """How many of the last parts of its path are those of the log's path; 0 where the log gives the whole path."""


class RecordingFinder:
    """Finds the recordings of conversations whose logs are in some folders.

    `audio` is the folder that the user names; it counts first, with all folders in it. `contested` are endings of
    paths that several conversations share, as `Claims` has them: no file is taken because of these. Conversations that
    are `made_in_python` were given with their paths by a program, or read before: they keep what was found then.
    """

    def __init__(
        self,
        folders: Sequence[str],
        audio: str = "",
        contested: Set[str] = frozenset(),
        *,
        made_in_python: bool = False,
    ) -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._audio = audio
        self._contested = contested
        self._made_in_python = made_in_python

    @cached_property
    def _roots(self) -> tuple[Path, ...]:
        """The folders whose recordings may leave the machine, without symbolic links."""
        return tuple(Path(os.path.realpath(one)) for one in (*self._folders, self._audio) if one)

    def _elsewhere(self, conversation: Conversation, paths: Iterable[str]) -> list[str]:
        """Of some files, those that are in none of these folders."""
        known = () if conversation.recording is None else conversation.recording.extras.get(ELSEWHERE) or ()
        if self._made_in_python and not known:
            return []
        real = {path: Path(os.path.realpath(path)) for path in paths}
        return [path for path, one in real.items() if not any(map(one.is_relative_to, self._roots))]

    @cached_property
    def _named(self) -> AudioFolder:
        return audio_files(self._audio, is_deep=True) if self._audio else AudioFolder({}, {})

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        stems = [audio_files(folder).by_stem for folder in self._folders]
        return {stem: paths for known in (*reversed(stems), self._named.by_stem) for stem, paths in known.items()}

    def find(self, conversation: Conversation) -> FoundRecording:
        """The conversation with the paths of its recording, where files are found; else it stays as the log has it."""
        tracks = stated_tracks(conversation)
        own = conversation.source.folder
        extras: dict[str, list[str]] = {}
        by_name: list[str] = []
        by_id: list[str] = []
        located: list[Track] = []
        refused: list[str] = []
        for track in tracks:
            candidate = None if _is_file(own, track.path) else self._located(track, refused)
            if candidate is not None:
                track = msgspec.structs.replace(track, path=candidate.path)  # noqa: PLW2901
                by_name += [candidate.path] if candidate.shared == 1 else []
            located.append(track)
        if not any(_is_file(own, track.path) for track in located):
            by_id = self._by_stem.get(conversation.id, [])
            if by_id and _BY_ID + conversation.id in self._contested:
                refused, by_id = [*refused, *by_id], []
            if len(by_id) == 1:
                located = [Track(path=by_id[0]), *located]
            elif by_id:
                extras = {CANDIDATES: by_id}
            elif refused:
                extras = {AMBIGUOUS: list(dict.fromkeys(refused))}
        files = [os.path.join(own, track.path) for track in located if _is_file(own, track.path)]
        if elsewhere := self._elsewhere(conversation, [*files, *extras.get(CANDIDATES, ())]):
            extras[ELSEWHERE] = elsewhere
        changed = _replaced(conversation, tuple(located), extras)
        return FoundRecording(changed, *map(short_paths, (by_id, by_name, extras.get(AMBIGUOUS, ()), elsewhere)))

    def _located(self, track: Track, refused: list[str]) -> _Candidate | None:
        """The first file that is there. What is there and may be another's is put into `refused`."""
        for path, shared in self._candidates(track, refused):
            if not os.path.isfile(path):
                continue
            if not shared or ending(_parts(path), shared) not in self._contested:
                return _Candidate(os.path.abspath(path), shared)
            refused.append(os.path.abspath(path))
        return None

    def _candidates(self, track: Track, refused: list[str]) -> Iterator[_Candidate]:
        """What the user names first, then what the log says, then its name beside the log."""
        named = track.path or file_of_url(track.url) or ""
        address = named or unquote(_path_of_url(track.url))
        name = base_name(address)
        if "\0" in named + name:
            return
        if self._audio and named:
            is_whole = os.path.isabs(named)
            yield _Candidate(os.path.join(self._audio, named), 0 if is_whole else len(_parts(named)))
        alike = _most_alike(self._named.by_name.get(name, []), address)
        if len(alike) == 1:
            yield alike[0]
        else:
            refused += [one.path for one in alike]
        if named and os.path.isabs(named):
            yield _Candidate(named, 0)
        elif named:
            parts = len(_parts(named)) if len(self._folders) > 1 else 0
            yield from (_Candidate(os.path.join(folder, named), parts) for folder in self._folders)
        for folder in self._folders if name else ():
            path = os.path.join(folder, name)
            yield _Candidate(path, _shared(path, address))


def _shared(path: str, named: str) -> int:
    """How many of the last parts of two paths are the same."""
    pairs = zip(_parts(path)[::-1], _parts(named)[::-1], strict=False)
    return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))


def _most_alike(paths: Sequence[str], named: str) -> list[_Candidate]:
    """Of files of one name, those whose folders are called as in the path of the log."""
    candidates = [_Candidate(path, _shared(path, named)) for path in paths]
    best = max((one.shared for one in candidates), default=0)
    return [one for one in candidates if one.shared == best]


def _parts(path: str) -> tuple[str, ...]:
    return PureWindowsPath(path).parts


def ending(parts: Sequence[str], count: int) -> str:
    """The last parts of a path, as a text."""
    return "/".join(parts[-count:])


class Claims:
    """Which conversations may want the same file, where only a part of the path says whose it is.

    Platforms write CALL/recording.wav: what several addresses end with is the recording of none of them.
    """

    def __init__(self, folders: Iterable[str], audio: str = "") -> None:
        near = [audio_files(folder) for folder in dict.fromkeys(folders)]
        near += [audio_files(audio, is_deep=True)] if audio else []
        self._names = {name for files in near for name in files.by_name}
        self._stems = {stem for files in near for stem in files.by_stem}
        self._addresses: dict[str, set[tuple[str, ...]]] = {}
        self._records: dict[str, str] = {}
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        """Whether there is any file to be found by its name."""
        return bool(self._names)

    def add(self, conversation: Conversation, folders: Sequence[str]) -> None:
        """Count what a conversation says of its recording. Its log is in one of the folders."""
        for track in stated_tracks(conversation):
            named = track.path or file_of_url(track.url) or ""
            parts = _parts(named) if named else (_host_of(track.url), *_parts(unquote(_path_of_url(track.url))))
            if parts and parts[-1] in self._names:
                where = _parts(folders[0]) if named and folders and not os.path.isabs(named) else ()
                self._addresses.setdefault(parts[-1], set()).add((*where, *parts))
        if (id := conversation.id) in self._stems:
            record = f"{conversation.source.files} {conversation.source.record}"
            if self._records.setdefault(id, record) != record:
                self._ids.add(_BY_ID + id)

    @property
    def contested(self) -> frozenset[str]:
        """The endings that several addresses share, and the ids that several conversations have."""
        counts = Counter(
            ending(parts, count)
            for addresses in self._addresses.values()
            if len(addresses) > 1
            for parts in addresses
            for count in range(1, len(parts))
        )
        return frozenset(self._ids | {text for text, count in counts.items() if count > 1})


def short_paths(paths: Iterable[str]) -> str:
    """Some files, each by the part of its path that is not the same for all."""
    known = [*paths]
    if len(known) < 2:
        return ", ".join(map(os.path.basename, known))
    folder = os.path.commonpath(list(map(os.path.dirname, known)))
    return ", ".join(os.path.relpath(path, folder) for path in known[:_MOST_NAMED]) + (
        f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    )


def is_elsewhere(conversation: Conversation) -> bool:
    """Whether a recording is where only its log says: such sound stays on this machine."""
    return conversation.recording is not None and bool(conversation.recording.extras.get(ELSEWHERE))


def stated_tracks(conversation: Conversation) -> tuple[Track, ...]:
    """The tracks of a recording as its log has them."""
    tracks = () if conversation.recording is None else conversation.recording.tracks
    if conversation.source.format == _STANDARD_DATA and not any(track.path for track in tracks):
        return _with_path(tracks, _local_path(conversation))
    return tracks


def _with_path(tracks: tuple[Track, ...], path: str) -> tuple[Track, ...]:
    if not path:
        return tracks
    first, others = (tracks[0], tracks[1:]) if tracks else (Track(), ())
    return (msgspec.structs.replace(first, path=path), *others)


def _replaced(
    conversation: Conversation, tracks: tuple[Track, ...], extras: Mapping[str, list[str]] = {}
) -> Conversation:
    recording = conversation.recording or AudioFile()
    # A conversation that was written down may have what was found then.
    kept = {name: value for name, value in recording.extras.items() if name not in (AMBIGUOUS, CANDIDATES, ELSEWHERE)}
    if tracks == recording.tracks and not extras and len(kept) == len(recording.extras):
        return conversation
    changed = msgspec.structs.replace(recording, tracks=tracks, extras={**kept, **extras})
    return msgspec.structs.replace(conversation, recording=changed)


def _local_path(conversation: Conversation) -> str:
    """`metadata.local_audio_path` of the first item that has it (specs: standard-data 2.5)."""
    for extras in (conversation.extras, *(item.extras for item in conversation.items)):
        metadata = extras.get("metadata")
        path = metadata.get("local_audio_path") if isinstance(metadata, dict) else None
        if isinstance(path, str) and path:
            return path
    return ""


def _path_of_url(url: str) -> str:
    """The path of an address; empty where it has no path."""
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _host_of(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def file_of_url(url: str) -> str | None:
    """The path of a `file:` address, or of an address that is a path; None for one that is elsewhere."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return unquote(parts.path)
    # One letter before the colon is a drive of Windows.
    return url if url and len(parts.scheme) < 2 and not url.startswith("//") else None


def base_name(path: str) -> str:
    """The last part of a path of whatever system."""
    return PureWindowsPath(PurePosixPath(path).name).name


def _is_file(folder: str, path: str) -> bool:
    """Whether a path leads to a file: of a folder that is one conversation, or as a whole."""
    is_known = bool(folder) or os.path.isabs(path)
    return is_known and bool(path) and "\0" not in path and os.path.isfile(os.path.join(folder, path))


def audio_files(folder: str, *, is_deep: bool = False) -> AudioFolder:
    """The recordings of a folder; of all folders in it, too, where it is deep."""
    files = AudioFolder({}, {})
    seen = 0
    for where, inner, names in os.walk(folder):
        inner.sort()
        seen += len(names)
        for name in sorted(names):
            stem, ending = os.path.splitext(name)
            if ending.lower() in ENDINGS:
                path = os.path.abspath(os.path.join(where, name))
                files.by_name.setdefault(name, []).append(path)
                files.by_stem.setdefault(stem, []).append(path)
        if not is_deep or seen >= MOST_FILES:
            break
    return files


def folder_of(path: str) -> str:
    """The folder of a log: itself, where a folder is one conversation."""
    return path if os.path.isdir(path) else str(Path(path).parent)


SHARED = "recording_shared"
"""The code of the note on conversations that name the same recording."""


def digest_of(paths: Iterable[Path]) -> str:
    """What is in some files, whole, as a short text; "" where one cannot be read."""
    digest = hashlib.sha256()
    try:
        for path in paths:
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    except OSError:
        return ""
    return digest.hexdigest()[:32]


_SAMPLE = 64 * 1024


class RecordingState(msgspec.Struct, frozen=True, array_like=True):
    """A recording at a path that the log gives, as a run found it."""

    path: str
    size: int = -1
    """-1: there was none."""
    changed: int = 0
    digest: str = ""

    @property
    def is_same(self) -> bool:
        """Whether it is as it was. One that was only touched, or copied anew, is."""
        now = _size_and_time(self.path)
        return now == (self.size, self.changed) or (now[0] == self.size and _sampled_digest(self.path) == self.digest)


def states_elsewhere(conversation: Conversation, near: Sequence[str], audio: str = "") -> Iterator[RecordingState]:
    """The recordings of a conversation that are not beside its log, nor in the folder that the user names."""
    recording = conversation.recording
    for track in () if recording is None else recording.tracks:
        named = track.path or file_of_url(track.url) or ""
        folders = [conversation.source.folder] if conversation.source.folder else near
        for path in [named] if os.path.isabs(named) else [os.path.join(folder, named) for folder in folders if named]:
            whole = os.path.abspath(path) if "\0" not in path else ""
            is_near = os.path.dirname(whole) in map(os.path.abspath, near)
            if whole and not is_near and not (audio and Path(whole).is_relative_to(os.path.abspath(audio))):
                size, changed = _size_and_time(whole)
                yield RecordingState(whole, size, changed, "" if size < 0 else _sampled_digest(whole))


def _size_and_time(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return -1, 0
    return status.st_size, status.st_mtime_ns


def recordings_of(inputs: Iterable[Input], audio: str = "") -> dict[str, str]:
    """A digest of each recording beside the logs, and in the folder that the user names, by its name.

    Of a large file its size, beginning, middle and end count: to score a run again must not take hours.
    """
    folders = dict.fromkeys(folder_of(item.path) for item in inputs if item.data is None)
    listed = [(folder, audio_files(folder)) for folder in folders]
    if audio:
        listed.append((audio, audio_files(audio, is_deep=True)))
    return {
        f"{number}/{name}": digest
        for number, (folder, files) in enumerate(listed)
        for name, digest in digests_of(folder, files).items()
    }


def digests_of(folder: str, files: AudioFolder) -> dict[str, str]:
    """A digest of each recording of a folder, by its path there."""
    return {os.path.relpath(path, folder): _sampled_digest(path) for path in files.paths}


def _sampled_digest(path: str) -> str:
    digest = hashlib.sha256()
    try:
        # What is no file, such as a pipe, might keep us waiting.
        if not os.path.isfile(path):
            return "no file"
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            digest.update(str(size).encode())
            for start in (0, max(0, size // 2 - _SAMPLE // 2), max(0, size - _SAMPLE)):
                stream.seek(start)
                digest.update(stream.read(_SAMPLE))
    except OSError as error:
        return f"cannot be read: {error.strerror or error}"
    return digest.hexdigest()
