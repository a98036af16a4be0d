"""A process that looks at its logs again reads only the files that may have changed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from convoscope.ingest import discover
from convoscope.ingest.discover import Input, fingerprint


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read to be hashed."""
    names: list[str] = []

    def opened(path: Path) -> object:
        names.append(path.name)
        return path.open("rb")

    monkeypatch.setattr(discover, "open_binary", opened)
    return names


def digest(path: Path) -> str:
    return fingerprint(Input(str(path), path.name, "openai-chat", "lines", "record", ""))


def an_hour_ago(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system keeps the time of the last change itself: the clock of the reader goes on instead."""
    now = os.stat(path).st_ctime + 3600
    monkeypatch.setattr(time, "time", lambda: now)


def test_an_old_file_is_read_once(tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text("one")
    an_hour_ago(log, monkeypatch)
    assert digest(log) == digest(log)
    assert read == ["a.jsonl"]


def test_a_file_that_was_just_written_may_still_change(tmp_path: Path, read: list[str]) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text("one")
    first = digest(log)
    log.write_text("two")  # as long as before, and maybe within one tick of the clock
    assert digest(log) != first
    assert read == ["a.jsonl", "a.jsonl"]


def test_a_time_that_was_set_back_hides_nothing(
    tmp_path: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "a.jsonl"
    log.write_text("one")
    times = os.stat(log).st_atime_ns, os.stat(log).st_mtime_ns
    an_hour_ago(log, monkeypatch)
    first = digest(log)
    time_of_change = os.stat(log).st_ctime_ns
    while os.stat(log).st_ctime_ns == time_of_change:
        log.write_text("two")
        os.utime(log, ns=times)
    assert digest(log) != first
