"""What no reader knows is called by its name, with what to do; nothing of it is read."""

from __future__ import annotations

import gzip
import io
import json
import pickle
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import convoscope
from convoscope.errors import NothingReadable
from support.logs import CHAT


def zipped(*names: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name in names:
            archive.writestr(name, json.dumps(CHAT))
    return data.getvalue()


def nested_zip() -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inner.zip", zipped("chat.json"))
        archive.writestr("big.json", b"[" + b"0," * 1_000_000 + b"0]")
    return data.getvalue()


TEXT = json.dumps(CHAT)
ODD: dict[str, tuple[bytes, str]] = {
    "a.pdf": (b"%PDF-1.7\n1 0 obj\n", r"is a PDF \(export"),
    "pdf.json": (b"%PDF-1.7\n1 0 obj\n", "is a PDF"),
    "png.json": (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "is a picture"),
    "call.wav": (b"RIFF\x24\0\0\0WAVEfmt " + bytes(100), "is a recording that cannot be read"),
    "call.mp3": (b"ID3\x04\0" + bytes(100), "is a recording that cannot be read"),
    "page.html": (b"<!doctype html><html><body>User: hi</body></html>", "is an HTML page"),
    "gateway.json": (b"<html><body>502 Bad Gateway</body></html>", "is an HTML page"),
    "chat.xml": (b'<?xml version="1.0"?><chat><m who="user">hi</m></chat>', "is XML"),
    "set.ini": (b"[server]\nhost = example.org\n", "is a file of settings"),
    "c.toml": (b"# our settings\n[a.b]\nc = 1\n", "is a file of settings"),
    "one.zip": (zipped("chat.json"), r"is a ZIP archive, which is not opened \(unpack it\)"),
    "nested.zip": (nested_zip(), "is a ZIP archive, which is not opened"),
    "cut.zip": (zipped("chat.json")[:40], "is a ZIP archive, which is not opened"),
    "empty.zip": (zipped(), "is a ZIP archive without files"),
    "sheet.xlsx": (zipped("chat.json"), r"is a spreadsheet \(save it as CSV\)"),
    "chat.7z": (b"7z\xbc\xaf\x27\x1c" + bytes(50), "is a 7z archive"),
    "chat.json.bz2": (b"BZh9" + bytes(50), "is packed with bzip2"),
    "chat.pkl": (pickle.dumps(CHAT), "is a Python pickle"),
    "cut.json.gz": (gzip.compress(TEXT.encode())[:-20], "is cut off"),
    "blanks.json.gz": (gzip.compress(b" " * 1_000_000), "is empty"),
    "utf16.json": (TEXT.encode("utf-16-le"), "is text in UTF-16 or UTF-32"),
    "utf32.json": (TEXT.encode("utf-32"), "is text in UTF-16 or UTF-32"),
    "null.json": (b"null", "is JSON that holds nothing but null"),
    "number.json": (b"42", "nothing but a number"),
    "text.json": (b'"hello"', "nothing but a text"),
    "list.json": (b"[]", "unknown JSON format; an empty list"),
    "numbers.json": (b"[1, 2]", "a list; its first entry is a number"),
    "object.json": (b"{}", "an empty object"),
    "blank.jsonl": (b"\n\n \n", "is empty"),
    "stream.txt": (b'event: ping\ndata: {"type":"ping"}\n\ndata: {"x":1}\n\n', r"server-sent events \(SSE\)"),
    "app.log": (b"10:00:00 INFO it begins\n10:00:01 WARN it is slow\n", "is the log of a program"),
    "conf.yaml": (b"server:\n  host: example.org\n", "is YAML that declares no flow, and no log"),
    "broken.yaml": (b"a: [b\n", r"is not YAML.*\(the YAML must be complete\)"),
    "columns.csv": (b"a,b,c\n", "is a table without rows"),
    "near.json": (
        b'{"observations": [{"a": 1}], "traceId": "t"}',
        "nearest is langfuse, which has observations, t",
    ),
}


@pytest.mark.parametrize("name", ODD)
def test_a_file_that_is_not_read_is_called_by_its_name(tmp_path: Path, name: str) -> None:
    content, words = ODD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(NothingReadable, match=words):
        list(convoscope.read(tmp_path / name))


def database(folder: Path) -> Path:
    with sqlite3.connect(folder / "logs.db") as connection:
        connection.execute("create table messages (role text, content text)")
    connection.close()
    return folder / "logs.db"


def columns(folder: Path) -> Path:
    pq.write_table(pa.table({"x": [1, 2], "y": ["a", "b"]}), folder / "x.parquet")
    return folder / "x.parquet"


def folders(folder: Path) -> Path:
    (folder / "all" / "a" / "b").mkdir(parents=True)
    return folder / "all"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (database, "is an SQLite database .export its table"),
        (columns, "unknown table format; fields: x, y"),
        (folders, "holds no file"),
        (lambda folder: folder, "is an empty folder"),
    ],
)
def test_so_is_what_is_more_than_a_text(tmp_path: Path, make: Callable[[Path], Path], words: str) -> None:
    with pytest.raises(NothingReadable, match=words):
        list(convoscope.read(make(tmp_path)))


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_mark_of_the_encoding_is_read_over(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "chat.json").write_text(TEXT, encoding=encoding)
    assert len(list(convoscope.read(tmp_path / "chat.json"))) == 1
