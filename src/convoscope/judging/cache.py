"""Answers that were paid for, in one SQLite file that only its owner can read; and what a run has spent."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from convoscope.errors import UsageError

VARIABLE = "CONVOSCOPE_CACHE"


class CachedAnswer(NamedTuple):
    """What a model wrote, and what it took."""

    text: str
    input_tokens: int | None
    output_tokens: int | None
    seconds: float
    repair: str = ""
    """What it wrote when it was asked again because the first answer was unusable."""


class CacheSize(NamedTuple):
    """What the cache holds."""

    file: Path
    answers: int
    bytes: int


def cache_file() -> Path:
    """Where answers are kept: `CONVOSCOPE_CACHE`, else the user's cache folder."""
    given = os.environ.get(VARIABLE)
    if given:
        return Path(given) / "judge.sqlite"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "convoscope" / "judge.sqlite"


def cache_key(judge: str, prompt: str, schema: Mapping[str, Any], repeat: int, wave: bytes = b"") -> str:
    """What makes two questions the same question: judge and address, the words, the shape, the repeat, the sound."""
    clip = [hashlib.sha256(wave).hexdigest()] if wave else []
    whole = json.dumps([judge, prompt, schema, repeat, *clip], ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()


class AnswerCache:
    """Answers by the key of their question. Several processes may use one file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._connection: sqlite3.Connection | None = None

    def get(self, key: str) -> CachedAnswer | None:
        columns = "text, input_tokens, output_tokens, seconds, repair"
        row = self._open().execute(f"SELECT {columns} FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else CachedAnswer(*row)

    def put(self, key: str, judge: str, answer: CachedAnswer) -> None:
        self._open().execute(
            "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)", (key, judge, *answer, time.time())
        )

    def size(self) -> CacheSize:
        if not self.file.exists():
            return CacheSize(self.file, 0, 0)
        count = self._open().execute("SELECT count(*) FROM answers").fetchone()[0]
        return CacheSize(self.file, count, self.file.stat().st_size)

    def clear(self) -> int:
        """Forget all answers; how many there were."""
        count = self.size().answers
        self.close()
        for ending in ("", "-wal", "-shm"):
            self.file.with_name(self.file.name + ending).unlink(missing_ok=True)
        return count

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                os.close(os.open(self.file, os.O_CREAT | os.O_RDWR, 0o600))
                self.file.chmod(0o600)
                connection = sqlite3.connect(self.file, timeout=30, isolation_level=None, check_same_thread=False)
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, judge TEXT, text TEXT, "
                    "input_tokens INTEGER, output_tokens INTEGER, seconds REAL, repair TEXT, created REAL)"
                )
            except (OSError, sqlite3.Error) as error:
                raise UsageError(
                    f"the cache of judges {self.file} cannot be opened: {error}",
                    hint=f"--no-cache works without it; {VARIABLE} names another folder",
                ) from None
            self._connection = connection
        return self._connection
