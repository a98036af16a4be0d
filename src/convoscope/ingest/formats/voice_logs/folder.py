"""The files of a call's folder: which is which."""

from __future__ import annotations

import os
import wave
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any, NamedTuple

from convoscope.conversation import Track

AUDIT = ("audit_log.json",)
FRAMEWORK = ("pipecat_events.jsonl", "pipecat_logs.jsonl", "framework_logs.jsonl")
SIMULATOR = ("elevenlabs_events.jsonl", "user_simulator_events.jsonl")
RESULT = "result.json"
LOGS = frozenset((*AUDIT, *FRAMEWORK, *SIMULATOR))
PACKED = (".gz", ".zst", ".zstd")

_NAMED = {
    "audit": (("audit_log_path",), AUDIT),
    "framework": (("framework_logs_path", "pipecat_logs_path"), FRAMEWORK),
    "simulator": (("user_simulator_logs_path", "elevenlabs_logs_path"), SIMULATOR),
    "transcript": (("transcript_path",), ("transcript.jsonl",)),
}
"""Each log: the fields of result.json that may name it, and the names that it goes by."""

_SOUND = {
    "assistant": (("audio_assistant_path",), ("audio_assistant.wav",)),
    "user": (("audio_user_path",), ("audio_user.wav",)),
    "user_clean": ((), ("audio_user_clean.wav",)),
    "mixed": (("audio_mixed_path",), ("audio_mixed.wav",)),
}


class MissingFile(NamedTuple):
    """A file that result.json names and that is not there."""

    field: str
    name: str


class CallFolder:
    """What a folder holds, by what it is for."""

    def __init__(self, path: Path, result: dict[str, Any]) -> None:
        self.path = path
        with os.scandir(path) as entries:
            self._names = {entry.name for entry in entries if _is_file(entry)}
        self._result: dict[str, Any] = result
        self.missing: list[MissingFile] = []
        self.audit = self._find(*_NAMED["audit"])
        self.framework = self._find(*_NAMED["framework"])
        self.simulator = self._find(*_NAMED["simulator"])
        self.transcript = self._find(*_NAMED["transcript"])
        self.sounds = {side: found for side, names in _SOUND.items() if (found := self._find(*names)) is not None}

    def file(self, *names: str) -> Path | None:
        """The first of these that is there, packed or not."""
        for name in names:
            for ending in ("", *PACKED):
                if name + ending in self._names:
                    return self.path / (name + ending)
        return None

    def _find(self, fields: tuple[str, ...], names: tuple[str, ...]) -> Path | None:
        """The file that result.json names, if it is there; else the one with a usual name."""
        for field in fields:
            path_in_result = self._result.get(field)
            if isinstance(path_in_result, str) and path_in_result:
                path = self.file(base_name(path_in_result))
                if path is not None:
                    return path
                self.missing.append(MissingFile(field, base_name(path_in_result)))
        return self.file(*names)


def _is_file(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_file()
    except OSError:  # a link that leads to itself, say
        return Path(entry.path).is_file()


def unpacked_name(name: str) -> str:
    """The name of a file without the ending of its packing."""
    return next((name.removesuffix(ending) for ending in PACKED if name.endswith(ending)), name)


def base_name(path: str) -> str:
    """The last part of a path of whatever system: folders are moved, names stay."""
    name = path.rpartition("/")[2]
    if name and name.replace(".", "").replace("_", "").isalnum():
        return name
    return PureWindowsPath(PurePosixPath(path).name).name


def track(path: Path, channels: tuple[str, ...]) -> Track:
    """A recording, with what its header tells."""
    try:
        with wave.open(str(path), "rb") as sound:
            rate = sound.getframerate()
            return Track(
                path=path.name,
                channels=channels,
                format="wav",
                sample_rate=rate,
                duration=sound.getnframes() / rate if rate else None,
            )
    except (wave.Error, EOFError, OSError):
        return Track(path=path.name, channels=channels)
