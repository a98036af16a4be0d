"""Logs in an object store that did not change are not fetched again; those that did are, however they changed."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import convoscope
from convoscope import storage
from convoscope.runs.run import Run
from support.generated import chat
from support.object_store import BUCKET, object_store

METRICS = ["conversation.turns", "agent.words_per_turn"]
LOGS = f"s3://{BUCKET}/grown-logs"


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as opened:
        yield opened


@pytest.fixture
def fetched(store: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of logs of which something is fetched. Each command begins as a process does, with nothing kept."""
    names: list[str] = []
    fetch = storage._StoredFile._fetch

    def noted(self: Any, start: int, end: int) -> bytes:
        names.append(self._path.rpartition("/")[2])
        return fetch(self, start, end)

    monkeypatch.setattr(storage._StoredFile, "_fetch", noted)
    return names


def scored(out: str, logs: str = LOGS, **options: Any) -> Run:
    storage._ranges = storage._Ranges()
    return convoscope.score(logs, metrics=METRICS, out=out, workers=1, part_bytes=4_000, **options)


def lines(*numbers: int) -> bytes:
    return "".join(json.dumps(chat(number)) + "\n" for number in numbers).encode()


def distinct(*numbers: int) -> bytes:
    """Chats that have no letters in common order: a log with a record that may be a copy of another is read again."""
    words = {number: hashlib.sha256(str(number).encode()).hexdigest() for number in numbers}
    chats = (
        {"id": word[:9], "messages": [{"role": "user", "content": word}, {"role": "assistant", "content": word[::-1]}]}
        for word in words.values()
    )
    return "".join(json.dumps(one) + "\n" for one in chats).encode()


def put(store: Any, name: str, content: bytes) -> None:
    store.pipe_file(f"{LOGS.removeprefix('s3://')}/{name}", content)


def clear(store: Any) -> None:
    if store.exists(LOGS):
        store.rm(LOGS, recursive=True)


def test_only_what_is_new_is_fetched(store: Any, fetched: list[str], tmp_path: Path) -> None:
    clear(store)
    for at in range(4):
        put(store, f"{at}.jsonl", distinct(*range(10 * at, 10 * at + 10)))
    scored(f"s3://{BUCKET}/runs/only")
    assert sorted(fetched) == ["0.jsonl", "1.jsonl", "2.jsonl", "3.jsonl"]
    fetched.clear()
    scored(f"s3://{BUCKET}/runs/only")
    assert fetched == []
    put(store, "4.jsonl", distinct(*range(40, 44)))
    grown = scored(f"s3://{BUCKET}/runs/only")
    assert {*fetched} == {"4.jsonl"}
    assert grown.summary.conversations == 44


def test_the_logs_of_a_run_on_this_machine_are_known_too(store: Any, fetched: list[str], tmp_path: Path) -> None:
    clear(store)
    put(store, "a.jsonl", lines(1, 2, 3))
    scored(str(tmp_path / "run"))
    fetched.clear()
    scored(str(tmp_path / "run"))
    assert fetched == []


LATE = lines(90, 91)
CHANGES: dict[str, Callable[[Any], None]] = {
    "lines are added": lambda store: put(store, "a.jsonl", lines(*range(12)) + LATE),
    "changed at equal length": lambda store: put(store, "a.jsonl", lines(*range(12)).replace(b"order", b"o r d", 3)),
    "shorter": lambda store: put(store, "a.jsonl", lines(*range(10))),
    "a line is put first": lambda store: put(store, "a.jsonl", LATE + lines(*range(12))),
    "the last line ends": lambda store: put(store, "cut.jsonl", lines(20, 21)),
    "packed again": lambda store: put(store, "packed.jsonl.gz", gzip.compress(lines(30, 31, 32))),
    "an array": lambda store: put(store, "array.json", b"[" + b",".join(lines(40, 41, 42).strip().split(b"\n")) + b"]"),
    "two logs change names": lambda store: [
        put(store, "a.jsonl", lines(50, 51)),
        put(store, "b.jsonl", lines(*range(12))),
    ],
    "a log of the same content": lambda store: put(store, "c.jsonl", lines(50, 51)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_that_grew_is_that_of_all_its_logs(store: Any, tmp_path: Path, change: str) -> None:
    clear(store)
    put(store, "a.jsonl", lines(*range(12)))
    put(store, "b.jsonl", lines(50, 51))
    put(store, "cut.jsonl", lines(20, 21)[:-40])
    put(store, "packed.jsonl.gz", gzip.compress(lines(30, 31)))
    put(store, "array.json", b"[" + lines(40).strip() + b"," + lines(41).strip() + b"]")
    scored(str(tmp_path / "grown"), prune=True)
    CHANGES[change](store)
    grown = scored(str(tmp_path / "grown"), prune=True)
    whole = scored(str(tmp_path / "whole"))
    assert (grown.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    assert [one.id for one in grown.conversations()] == [one.id for one in whole.conversations()]


def test_a_log_of_the_name_that_another_one_had_is_not_taken_for_it(store: Any, tmp_path: Path) -> None:
    """`day/a.jsonl` is `a.jsonl` when its folder is scored: what is known of the other `a.jsonl` is not of it."""
    clear(store)
    put(store, "a.jsonl", lines(*range(6)))
    put(store, "day/a.jsonl", lines(*range(50, 56)))
    scored(str(tmp_path / "run"))
    grown = scored(str(tmp_path / "run"), f"{LOGS}/day", prune=True)
    whole = scored(str(tmp_path / "whole"), f"{LOGS}/day")
    assert [one.id for one in grown.conversations()] == [one.id for one in whole.conversations()]
    assert (grown.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()


def test_a_reader_that_was_installed_since_is_asked(store: Any, fetched: list[str], tmp_path: Path) -> None:
    clear(store)
    put(store, "a.jsonl", lines(1, 2))
    scored(str(tmp_path / "run"))
    kept = json.loads((tmp_path / "run" / "objects.json").read_text())
    kept["readers"].remove("openai-chat")
    (tmp_path / "run" / "objects.json").write_text(json.dumps(kept))
    fetched.clear()
    scored(str(tmp_path / "run"))
    assert fetched == ["a.jsonl"]


@pytest.mark.parametrize("failure", [OSError(errno.EIO, "InternalError"), ConnectionResetError("reset")])
def test_a_store_that_fails_while_logs_are_read_is_an_error_and_no_log_less(
    store: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    clear(store)
    put(store, "a.jsonl", lines(*range(20)))
    put(store, "b.jsonl.gz", gzip.compress(lines(*range(20, 30))))
    rows = "SELECT 'p' || i AS id, [{'role': 'user', 'content': 'Hello ' || i}] AS messages FROM range(4) AS t(i)"
    duckdb.sql(f"COPY ({rows}) TO '{tmp_path}/c.parquet'")
    put(store, "c.parquet", (tmp_path / "c.parquet").read_bytes())
    # Nothing is kept, as of logs that are large.
    monkeypatch.setattr(storage, "_SMALL_BYTES", 100)
    monkeypatch.setattr(storage, "_KEPT_BYTES", 0)
    reads, most = [0], [10_000]
    asked = type(store)._call_s3

    async def failing(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        reads[0] += method == "get_object"
        if reads[0] > most[0]:
            raise failure
        return await asked(self, method, *args, **kwargs)

    monkeypatch.setattr(type(store), "_call_s3", failing)
    whole = scored(str(tmp_path / "whole"))
    assert whole.summary.conversations == 20 + 10 + 4
    # Each attempt goes on from what those before it finished, and reads less.
    attempts = range(0, reads[0] - 8, 5)
    assert len(attempts) > 5
    for most[0] in attempts:
        reads[0] = 0
        with pytest.raises(storage.StoreError, match="check the address, the network"):
            scored(str(tmp_path / "run"))
    most[0] = 10_000
    run = scored(str(tmp_path / "run"))
    assert not run.read_report.problem_count
    assert (run.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
