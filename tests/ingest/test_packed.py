"""Logs in other wrappings: gzip, zstd and UTF-16 are told by content and read like any other."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

import convoscope
from convoscope.errors import NothingReadable
from ingest.logs import as_lines, chat, read, story, write

CHATS = [chat(f"c{number}", f"Question {number}?", "An answer.") for number in range(200)]
LINES = as_lines(*CHATS).encode()
IDS = [one["id"] for one in CHATS]
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstd.compress}

# The file below the decompressor is left open (files.open_bytes). Remove this line when it is closed.

packings = pytest.mark.parametrize("packing", PACKERS)


@packings
def test_lines(tmp_path: Path, packing: str) -> None:
    outcome = read(write(tmp_path / f"log.jsonl.{packing}", PACKERS[packing](LINES)))
    assert outcome.ids == IDS
    assert outcome.report.problems == []


@packings
def test_an_array(tmp_path: Path, packing: str) -> None:
    data = json.dumps(CHATS).encode()
    assert read(write(tmp_path / f"log.json.{packing}", PACKERS[packing](data))).ids == IDS


@packings
def test_a_document_whose_name_gives_the_id(tmp_path: Path, packing: str) -> None:
    data = json.dumps({"messages": CHATS[0]["messages"]}, indent=1).encode()
    assert read(write(tmp_path / f"monday.json.{packing}", PACKERS[packing](data))).ids == ["monday"]


@packings
def test_told_by_content_not_by_name(tmp_path: Path, packing: str) -> None:
    assert read(write(tmp_path / "log.jsonl", PACKERS[packing](LINES))).ids == IDS


@packings
def test_a_bad_line_inside(tmp_path: Path, packing: str) -> None:
    lines = LINES.splitlines(keepends=True)
    lines[2] = b"{oops\n"
    outcome = read(write(tmp_path / f"log.jsonl.{packing}", PACKERS[packing](b"".join(lines))))
    assert outcome.ids == IDS[:2] + IDS[3:]
    assert (outcome.problem.file, outcome.problem.line) == (f"log.jsonl.{packing}", 3)


def test_what_stands_well_before_the_cut_of_a_gzip_file_is_read(tmp_path: Path) -> None:
    # Letters of no pattern, so that a cut of the packed bytes is a cut of the text.
    letters = random.Random(7)
    chats = [chat(f"c{number}", "".join(letters.choices("abcdefgh ", k=2000))) for number in range(2000)]
    packed = gzip.compress(as_lines(*chats).encode(), 1)
    outcome = read(write(tmp_path / "log.jsonl.gz", packed[: len(packed) * 3 // 4]))
    assert 500 < len(outcome.ids) < 1600
    assert outcome.ids == [one["id"] for one in chats[: len(outcome.ids)]]
    assert "the compressed file is cut off" in [problem.message for problem in outcome.report.problems]
    assert all(problem.line >= len(outcome.ids) for problem in outcome.report.problems)


@packings
@pytest.mark.parametrize("keep", [6, 12])
def test_a_cut_before_any_content(tmp_path: Path, packing: str, keep: int) -> None:
    path = write(tmp_path / f"log.jsonl.{packing}", PACKERS[packing](LINES)[:keep])
    reading = convoscope.read(path)
    with pytest.raises(NothingReadable):
        list(reading)
    (problem,) = reading.report.problems
    assert (problem.message, problem.hint) == ("the compressed file is cut off", "make the file again")


@packings
def test_a_damaged_file(tmp_path: Path, packing: str) -> None:
    packed = bytearray(PACKERS[packing](LINES))
    packed[20:40] = bytes(20)
    reading = convoscope.read(write(tmp_path / f"log.jsonl.{packing}", bytes(packed)))
    with pytest.raises(NothingReadable, match="the file is damaged"):
        list(reading)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16(tmp_path: Path, encoding: str) -> None:
    text = "\ufeff" + as_lines(chat("tea", "Un thé?"), chat("cup", "🍵?"))
    outcome = read(write(tmp_path / "log.jsonl", text.encode(encoding)))
    assert [story(one) for one in outcome.conversations] == [["user: Un thé?"], ["user: 🍵?"]]
