"""What metrics that wait were told: written down at once, so that a run that was cut short asks only for the rest."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import IO

import msgspec

from convoscope.runs.folder import ANSWERS
from convoscope.scores.observation import ERROR, Observation


class KeptAnswer(msgspec.Struct, frozen=True, array_like=True):
    """One line: what a metric was told of the conversation of a row of the part."""

    row: int
    metric: str
    observations: tuple[Observation, ...]


_encoder = msgspec.json.Encoder(enc_hook=repr)
_decoder = msgspec.json.Decoder(KeptAnswer)


class AnswerFile:
    """The answers of one part. Errors are not kept: what went wrong is tried again."""

    def __init__(self, folder: Path, part: int) -> None:
        self.path = answer_file(folder, part)
        self._file: IO[bytes] | None = None
        self._lines: list[bytes] = []
        self._is_closed = False
        self._lock = Lock()

    def get(self, row: int, metric: str) -> Sequence[Observation] | None:
        """What an earlier attempt was told."""
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


def answer_file(folder: Path, part: int) -> Path:
    """Where the answers of a part are kept while it is not finished."""
    return folder / ANSWERS / f"{part:06d}.jsonl"


__all__ = ["AnswerFile", "answer_file"]
