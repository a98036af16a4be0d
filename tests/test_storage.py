"""Paths in object stores: logs are read there as they are in folders."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

import convoscope
from convoscope import storage
from convoscope.errors import ConvoscopeError, InputError, UsageError
from convoscope.storage import StoreError, as_path, is_remote, open_binary, scheme_of
from support.object_store import BUCKET, object_store, upload

EXAMPLES = Path(__file__).parents[1] / "examples"


@pytest.fixture(scope="module")
def store() -> Iterator[Any]:
    with object_store() as opened:
        yield opened


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("s3://bucket/logs", "s3"),
        ("GS://bucket", "gs"),
        ("memory://a", "memory"),
        ("logs/today", ""),
        ("/logs", ""),
        ("C:\\logs", ""),
        ("file:///logs", "file"),
        ("a:b/c", ""),
        ("-", ""),
    ],
)
def test_an_address_has_a_scheme_and_a_path_has_none(path: str, scheme: str) -> None:
    assert scheme_of(path) == scheme
    assert is_remote(path) is (scheme not in ("", "file"))


def test_a_file_address_is_a_local_path() -> None:
    assert as_path("file:///tmp/logs") == Path("/tmp/logs")


def test_credentials_in_an_address_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="credentials") as refused:
        as_path("s3://key:secret@bucket/logs")
    assert "secret" not in str(refused.value)


def test_an_unknown_kind_of_store_is_named() -> None:
    with pytest.raises(UsageError, match="nowhere"):
        as_path("nowhere://bucket/logs")


# A file of JSON lines, a folder that is one conversation, a table, an archive and plain text: each way of opening.
@pytest.mark.parametrize(
    ("name", "workers"),
    [("openai-chat", 2), ("voice-logs/records/audio-llm", 1), ("multiwoz", 1), ("inspect", 1), ("plain-text", 1)],
)
def test_logs_in_a_store_give_the_summary_of_the_same_logs_on_disk(
    store: Any, name: str, workers: int, tmp_path: Path
) -> None:
    folder = name.split("/", maxsplit=1)[0]
    upload(store, EXAMPLES / folder, folder)
    options = {"metrics": "conversation", "workers": workers, "part_bytes": 20_000}
    remote = convoscope.score(f"s3://{BUCKET}/{name}", out=tmp_path / "remote", **options)
    local = convoscope.score(EXAMPLES / name, out=tmp_path / "local", **options)
    assert remote.summary.conversations > 0
    assert (remote.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()


def test_packed_files_and_parquet_are_read_in_place(store: Any, tmp_path: Path) -> None:
    import duckdb

    lines = (EXAMPLES / "openai-chat" / "support.jsonl").read_bytes()
    store.pipe_file(f"{BUCKET}/packed/chats.jsonl.gz", gzip.compress(lines))
    table = tmp_path / "chats.parquet"
    row = "SELECT 'a' AS id, [{role: 'user', content: 'Hi.'}, {role: 'assistant', content: 'Hello.'}] AS messages"
    duckdb.connect().execute(f"COPY ({row}) TO '{table}'")
    store.pipe_file(f"{BUCKET}/table/odd [1] *.parquet", table.read_bytes())
    packed = convoscope.score(f"s3://{BUCKET}/packed", metrics="turns", out=tmp_path / "a")
    plain = convoscope.score(EXAMPLES / "openai-chat" / "support.jsonl", metrics="turns", out=tmp_path / "b")
    assert packed.summary.conversations == plain.summary.conversations
    assert convoscope.score(f"s3://{BUCKET}/table", metrics="turns", out=tmp_path / "c").summary.conversations == 1


def test_a_range_of_a_large_file_is_read_without_the_rest(store: Any) -> None:
    store.pipe_file(f"{BUCKET}/large", b"x" * 4_000_000 + b"0123456789" + b"x" * 4_000_000)
    with counted_gets(store) as sent, open_binary(as_path(f"s3://{BUCKET}/large")) as stream:
        stream.seek(4_000_000)
        assert stream.read(10) == b"0123456789"
    # One block of one MB, not eight.
    assert sent == [1024 * 1024]


@contextmanager
def counted_gets(store: Any) -> Iterator[list[int]]:
    """The bytes of each object, or range of one, that is fetched."""
    sent: list[int] = []
    kind = type(store)
    call = kind._call_s3

    async def counted(self: Any, method: str, *args: Any, **kwargs: Any) -> Any:
        answer = await call(self, method, *args, **kwargs)
        if method == "get_object":
            sent.append(answer["ContentLength"])
        return answer

    with mock.patch.object(kind, "_call_s3", counted):
        yield sent


def test_a_small_log_is_fetched_once_by_a_command(store: Any, tmp_path: Path) -> None:
    lines = (EXAMPLES / "openai-chat" / "support.jsonl").read_bytes()
    store.pipe_file(f"{BUCKET}/once/a.jsonl", lines)
    with counted_gets(store) as sent:
        convoscope.score(f"s3://{BUCKET}/once", metrics="turns", out=tmp_path / "run", workers=1)
    assert sent == [len(lines)]


def test_an_object_that_was_written_again_is_fetched_again(store: Any) -> None:
    path = as_path(f"s3://{BUCKET}/again")
    for content in (b"first", b"other"):
        store.pipe_file(f"{BUCKET}/again", content)
        with open_binary(path) as stream:
            assert stream.read() == content


def test_what_is_kept_of_objects_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four ranges of 10 bytes where 25 are kept, the two that were used last stay; without a tag, none."""
    monkeypatch.setattr(storage, "_KEPT_BYTES", 25)
    ranges = storage._Ranges()
    for tag, start in (("a", 0), ("a", 20), ("", 0)):
        ranges.keep(tag, start, b"0123456789")
    assert (ranges.find("a", 3), ranges.find("a", 12), ranges.find("", 0)) == (b"3456789", b"", b"")
    ranges.keep("b", 0, b"0123456789")
    assert (ranges.find("a", 29), ranges.find("a", 3), ranges.find("b", 9)) == (b"", b"3456789", b"9")
    ranges.keep("c", 0, b"0123456789")
    assert (ranges.find("a", 3), ranges.find("b", 0), ranges.find("c", 0)) == (b"", b"0123456789", b"0123456789")


@pytest.mark.parametrize("address", ["memory://chats", "memory://chats/a.jsonl", "memory:///chats/a.jsonl"])
def test_logs_in_memory_are_read_as_those_on_disk(address: str, tmp_path: Path) -> None:
    import fsspec

    source = EXAMPLES / "openai-chat" / "support.jsonl"
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/chats/a.jsonl", source.read_bytes())
    try:
        remote = convoscope.score(address, metrics="turns", out=tmp_path / "remote", workers=1)
        (tmp_path / "a.jsonl").write_bytes(source.read_bytes())
        local = convoscope.score(tmp_path / "a.jsonl", metrics="turns", out=tmp_path / "local", workers=1)
        assert remote.summary.conversations == 11
        assert (remote.folder / "summary.json").read_bytes() == (local.folder / "summary.json").read_bytes()
        assert len(list(convoscope.read(address))) == 11
    finally:
        memory.rm("/chats", recursive=True)


def test_two_streams_of_one_file_in_memory_have_positions_of_their_own() -> None:
    import fsspec

    fsspec.filesystem("memory").pipe_file("/two", b"0123456789")
    path = as_path("memory://two")
    with open_binary(path) as one, open_binary(path) as other:
        assert one.read(4) == b"0123"
        assert other.read(2) == b"01"
        assert one.read() == b"456789"
        assert other.seek(-1, 2) == 9
        assert other.read() == b"9"
    fsspec.filesystem("memory").rm("/two")


def test_what_is_not_there_is_an_error_that_names_it(store: Any, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file or folder") as missing:
        convoscope.score(f"s3://{BUCKET}/nothing", out=tmp_path / "run")
    assert f"s3://{BUCKET}/nothing" in str(missing.value)
    with pytest.raises(ConvoscopeError):
        convoscope.score("s3://no-such-bucket/logs", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_store_that_cannot_be_reached_is_an_error_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # the port of discarding: no server listens
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    s3fs.S3FileSystem.clear_instance_cache()
    try:
        with pytest.raises(StoreError, match="s3://logs/today"):
            convoscope.score("s3://logs/today", out=tmp_path / "run")
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
