"""Ranges: cut at any size, the lines of a file and the elements of an array come out whole and in order."""

from __future__ import annotations

import codecs
import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from backports import zstd

from convoscope.ingest.io import containers as files
from convoscope.ingest.io.containers import BETWEEN_ELEMENTS, ByteRange, element_ranges, line_ranges
from support.logs import write

SIZES = range(1, 201)
WRAPPINGS: dict[str, Callable[[bytes], bytes]] = {"plain": bytes, "gzip": gzip.compress, "zstd": zstd.compress}
wrappings = pytest.mark.parametrize("wrap", WRAPPINGS.values(), ids=list(WRAPPINGS))

TEXTS: dict[str, bytes] = {
    "a final newline": b'{"a": 1}\n{"b": 2}\n',
    "no final newline": b'{"a": 1}\n{"b": 2}',
    "one line": b'{"a": 1}\n',
    "one line without a newline": b'{"a": 1}',
    "blank lines": b'\n\n{"a": 1}\n\n  \n{"b": 2}\n\n\n',
    "nothing but newlines": b"\n\n\n",
    "carriage returns": b'{"a": 1}\r\n\r\n{"b": 2}\r\n',
    "a byte-order mark": codecs.BOM_UTF8 + b'{"a": 1}\n{"b": 2}\n',
    "characters of several bytes": '{"thé": "🍵"}\n{"日本": "語"}\n'.encode(),
    "bytes that are no characters": b'{"a": "\xff\xe9"}\n\xf0\x9f\n{"b": "\xed\xa0\x80"}',
    "lines longer than most ranges": b"x" * 150 + b"\n" + b"y" * 90 + b"\n" + b"z" * 170,
}

ELEMENTS: list[bytes] = [
    b'{"a": [1, {"b": "],[}"}]}',
    '{"thé": "🍵 日本"}'.encode(),
    b'{"a": "caf\xe9 \xf0\x9f \xed\xa0\x80"}',  # bytes that are no characters go out as they came in
    b'{"a": "\\ud83d \\" \\\\"}',
    b'{"a": NaN, "b": "line\nline"}',
    b'"text"',
    b"[]",
    b"7",
    b"null",
    b'{"last": true}',
]
BETWEEN: dict[str, bytes] = {
    "commas": b",",
    "lines": b",\n",
    "carriage returns": b"\r\n,\r\n",
    "many blanks": b" \t\n , \n" + b" " * 70,
}


def contents(ranges: Sequence[ByteRange], text: bytes) -> list[bytes]:
    """The bytes of each range, whether it holds them or says where they are."""
    return [text[one.start : one.end] if one.data is None else one.data for one in ranges]


@wrappings
@pytest.mark.parametrize("text", TEXTS.values(), ids=list(TEXTS))
def test_lines(tmp_path: Path, text: bytes, wrap: Callable[[bytes], bytes]) -> None:
    path = write(tmp_path / "log.jsonl", wrap(text))
    for size in SIZES:
        ranges = list(line_ranges(path, size))
        parts = contents(ranges, text)
        assert b"".join(parts) == text
        assert all(part.endswith(b"\n") for part in parts[:-1])
        assert all(parts)
        lines_before = [b"".join(parts[:place]).count(b"\n") for place in range(len(parts))]
        assert [one.first for one in ranges] == [1 + count for count in lines_before]
        assert [one.start for one in ranges] == [len(b"".join(parts[:place])) for place in range(len(parts))]


@pytest.mark.parametrize("text", ["thé\n🍵\n", "日本\r\n\r\n語", "\n\n🍵"])
@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_lines_in_utf_16(tmp_path: Path, text: str, encoding: str) -> None:
    path = write(tmp_path / "log.jsonl", ("\ufeff" + text).encode(encoding))
    for size in SIZES:
        parts = contents(list(line_ranges(path, size)), b"")
        assert b"".join(parts).decode() == text
        assert all(part.endswith(b"\n") for part in parts[:-1])


def test_a_file_as_long_as_a_block_is_one_range(tmp_path: Path) -> None:
    text = b'{"a": 1}\n' * 3
    path = write(tmp_path / "log.jsonl", text)
    assert list(line_ranges(path, len(text))) == [ByteRange(1, 0, len(text), None)]


def test_nothing_is_no_range(tmp_path: Path) -> None:
    path = write(tmp_path / "log.jsonl", b"")
    assert list(line_ranges(path, 10)) == []


@wrappings
@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_that_is_too_long_is_one_range_with_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrap: Callable[[bytes], bytes], place: int, end: bytes
) -> None:
    monkeypatch.setattr(files, "MAX_RECORD_BYTES", 300)
    lines = [b'{"a": 1}', b'{"b": 2}', b'{"c": 3}']
    lines.insert(place, b"x" * 1000)
    text = b"\n".join(lines) + end
    path = write(tmp_path / "log.jsonl", wrap(text))
    for size in SIZES:
        monkeypatch.setattr(files, "_READ_BYTES", size)
        ranges = list(line_ranges(path, size))
        assert [one.first for one in ranges if one.problem] == [place + 1]
        assert {one.problem for one in ranges} <= {"", files.TOO_LONG}
        parts = contents(ranges, text)
        assert b"".join(parts).splitlines() == [line for line in lines if len(line) < 300]
        for byte_range, part in zip(ranges, parts, strict=True):
            assert byte_range.problem or part.splitlines()[0] == lines[byte_range.first - 1]


@wrappings
@pytest.mark.parametrize("between", BETWEEN.values(), ids=list(BETWEEN))
@pytest.mark.parametrize("start", [b"[", codecs.BOM_UTF8 + b"[", b" \n[\n "])
def test_elements(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrap: Callable[[bytes], bytes], between: bytes, start: bytes
) -> None:
    path = write(tmp_path / "log.json", wrap(start + between.join(ELEMENTS) + b" ]\n"))
    for block in SIZES:
        monkeypatch.setattr(files, "_READ_BYTES", block)
        ranges = list(element_ranges(path, 2 * block))
        parts = [part.split(BETWEEN_ELEMENTS) for part in contents(ranges, b"")]
        assert [element for part in parts for element in part] == ELEMENTS
        assert [one.first for one in ranges] == [
            1 + sum(len(part) for part in parts[:place]) for place in range(len(parts))
        ]
        assert not any(one.problem for one in ranges)


def test_what_stands_between_elements_may_stand_in_a_text(tmp_path: Path) -> None:
    path = write(tmp_path / "log.json", b'["a' + BETWEEN_ELEMENTS + b'b", "c"]')
    (byte_range,) = element_ranges(path, 1000)
    assert byte_range.data == b'"a\\u001eb"' + BETWEEN_ELEMENTS + b'"c"'


@pytest.mark.parametrize("text", [b"[]", b" [ ] ", b"[\n]\n"])
def test_an_array_of_nothing(tmp_path: Path, text: bytes) -> None:
    path = write(tmp_path / "log.json", text)
    assert list(element_ranges(path, 10)) == []


@pytest.mark.parametrize(
    ("end", "problem"),
    [
        (b',{"a', "the JSON array is cut off at the end"),
        (b',{"a": "b', "the JSON array is cut off at the end"),
        (b",", "the JSON array is cut off at the end"),
        (b"", "the JSON array is cut off at the end"),
        (b" \n", "the JSON array is cut off at the end"),
        (b",{oops}]", "not JSON at line 1, near 'oops}]'"),
        (b"] ]", "there is more after the end of the array at line 1, near ']'"),
    ],
)
def test_where_an_array_breaks_does_not_depend_on_the_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: bytes, problem: str
) -> None:
    path = write(tmp_path / "log.json", b'[{"a": 1},{"b": 2}' + end)
    for block in SIZES:
        monkeypatch.setattr(files, "_READ_BYTES", block)
        *good, broken = element_ranges(path, 1)
        assert [one.data for one in good] == [b'{"a": 1}', b'{"b": 2}']
        assert (broken.first, broken.problem) == (3, problem)
