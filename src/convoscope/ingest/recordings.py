"""Where the recording of a conversation is: as its log says, beside the log, or in a folder that the user names.

A file is found by its name only. Nothing is opened here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
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


class AudioFolder(NamedTuple):
    """The recordings in a folder."""

    by_name: dict[str, list[str]]
    """Paths by file name."""
    by_stem: dict[str, list[str]]
    """Paths by file name without its ending: one of each folder, since two formats of one call are one recording."""

    @property
    def paths(self) -> list[str]:
        return [path for paths in self.by_name.values() for path in paths]


class FoundRecording(NamedTuple):
    """A conversation, and the file that was found by the conversation's id alone; empty where there is none."""

    conversation: Conversation
    by_id: str = ""
    ambiguous: str = ""
    """The name that several files have, each of which may be the recording; none of them is taken."""


class RecordingFinder:
    """Finds the recordings of conversations whose logs are in some folders.

    `audio` is the folder that the user names; it counts first, with all folders in it.
    """

    def __init__(self, folders: Sequence[str], audio: str = "") -> None:
        self._folders = tuple(dict.fromkeys(folders))
        self._audio = audio

    @cached_property
    def _named(self) -> AudioFolder:
        return audio_files(self._audio, is_deep=True) if self._audio else AudioFolder({}, {})

    @cached_property
    def _by_stem(self) -> dict[str, list[str]]:
        stems = [audio_files(folder).by_stem for folder in self._folders]
        return {stem: paths for known in (*reversed(stems), self._named.by_stem) for stem, paths in known.items()}

    def find(self, conversation: Conversation) -> FoundRecording:
        """The conversation with the paths of its recording, where files are found; else it stays as the log has it."""
        recording = conversation.recording
        tracks = () if recording is None else recording.tracks
        if conversation.source.format == _STANDARD_DATA and not any(track.path for track in tracks):
            tracks = _with_path(tracks, _local_path(conversation))
        own = conversation.source.folder
        tracks = tuple(track if _is_file(own, track.path) else self._located(track) for track in tracks)
        by_id = ambiguous = ""
        if not any(_is_file(own, track.path) for track in tracks):
            paths = self._by_stem.get(conversation.id, [])
            if len(paths) == 1:
                tracks, by_id = (Track(path=paths[0]), *tracks), os.path.basename(paths[0])
            names = [base_name(track.path or unquote(_path_of_url(track.url))) for track in tracks]
            several = [name for name in names if len(self._named.by_name.get(name, ())) > 1]
            ambiguous = "" if by_id else next(iter(several), os.path.basename(paths[0]) if paths else "")
        return FoundRecording(_replaced(conversation, tracks), by_id, ambiguous)

    def _located(self, track: Track) -> Track:
        path = next((path for path in self._candidates(track) if os.path.isfile(path)), None)
        return track if path is None else msgspec.structs.replace(track, path=os.path.abspath(path))

    def _candidates(self, track: Track) -> Iterator[str]:
        """What the user names first, then what the log says, then its name beside the log."""
        named = track.path or file_of_url(track.url) or ""
        name = base_name(track.path or unquote(_path_of_url(track.url)))
        if "\0" in named + name:
            return
        if self._audio and named:
            yield os.path.join(self._audio, named)
        yield _most_alike(self._named.by_name.get(name, []), named or unquote(_path_of_url(track.url)))
        if named and os.path.isabs(named):
            yield named
        elif named:
            yield from (os.path.join(folder, named) for folder in self._folders)
        if name:
            yield from (os.path.join(folder, name) for folder in self._folders)


def _most_alike(paths: Sequence[str], named: str) -> str:
    """Of files of one name, the one whose folders are called as in the path of the log; empty where several are."""

    def shared(path: str) -> int:
        pairs = zip(PurePosixPath(path).parts[::-1], PureWindowsPath(named).parts[::-1], strict=False)
        return len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))

    best = max(map(shared, paths), default=0)
    alike = [path for path in paths if shared(path) == best]
    return alike[0] if len(alike) == 1 else ""


def _with_path(tracks: tuple[Track, ...], path: str) -> tuple[Track, ...]:
    if not path:
        return tracks
    first, others = (tracks[0], tracks[1:]) if tracks else (Track(), ())
    return (msgspec.structs.replace(first, path=path), *others)


def _replaced(conversation: Conversation, tracks: tuple[Track, ...]) -> Conversation:
    recording = conversation.recording
    if tracks == (() if recording is None else recording.tracks):
        return conversation
    changed = AudioFile(tracks=tracks) if recording is None else msgspec.structs.replace(recording, tracks=tracks)
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
                stems = files.by_stem.setdefault(stem, [])
                if not any(os.path.dirname(one) == os.path.dirname(path) for one in stems):
                    stems.append(path)
        if not is_deep or seen >= MOST_FILES:
            break
    return files


def folder_of(path: str) -> str:
    """The folder of a log: itself, where a folder is one conversation."""
    return path if os.path.isdir(path) else str(Path(path).parent)


_SAMPLE = 64 * 1024


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
