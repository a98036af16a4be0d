"""Logs in other wrappings: gzip, zstd and UTF-16 are told by content and read like any other."""

from __future__ import annotations

import codecs
import gc
import gzip
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from backports import zstd

import convoscope
from convoscope.errors import NothingReadable
from support.logs import as_lines, chat, read, story, write

CHATS = [chat(f"c{number}", f"Question {number}?", "An answer.") for number in range(200)]
LINES = as_lines(*CHATS).encode()
IDS = [one["id"] for one in CHATS]
PACKERS: dict[str, Callable[[bytes], bytes]] = {"gz": gzip.compress, "zst": zstd.compress}

# Letters of no pattern, so that a cut of the packed bytes is a cut of the text.
LETTERS = random.Random(7)
NOISY = [chat(f"c{number}", "".join(LETTERS.choices("abcdefgh ", k=2000))) for number in range(300)]
NOISE = as_lines(*NOISY).encode()

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


@packings
@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.packed"])
def test_what_stands_before_a_cut_is_read(tmp_path: Path, packing: str, name: str) -> None:
    packed = PACKERS[packing](NOISE)
    outcome = read(write(tmp_path / name, packed[: len(packed) * 3 // 4]))
    # 225 of 300 stand before the cut; a packer holds back at most its last block, of 128 KB or 64 lines.
    assert 160 < len(outcome.ids) <= 225
    assert outcome.ids == [one["id"] for one in NOISY[: len(outcome.ids)]]
    assert outcome.report.problems[-1].message == "the compressed file is cut off"
    assert all(problem.line == len(outcome.ids) + 1 for problem in outcome.report.problems)


@packings
def test_what_stands_before_a_cut_of_an_array_is_read(tmp_path: Path, packing: str) -> None:
    packed = PACKERS[packing](json.dumps(NOISY).encode())
    outcome = read(write(tmp_path / "log.json", packed[: len(packed) * 3 // 4]))
    assert outcome.ids == [one["id"] for one in NOISY[: len(outcome.ids)]]
    assert len(outcome.ids) > 160
    assert outcome.problem.message == "the compressed file is cut off"


def test_what_stands_before_a_wrong_checksum_is_read(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(LINES))
    packed[-6] ^= 255
    outcome = read(write(tmp_path / "log.jsonl.gz", bytes(packed)))
    assert outcome.ids == IDS
    assert outcome.problem.message.startswith("the file is damaged: CRC check failed")
    assert outcome.problem.hint == "everything before it was read"


@packings
@pytest.mark.parametrize("at", [0, 30, len(LINES) // 2, len(LINES)])
def test_archives_that_were_put_together_are_read_as_one(tmp_path: Path, packing: str, at: int) -> None:
    pack = PACKERS[packing]
    outcome = read(write(tmp_path / f"log.jsonl.{packing}", pack(LINES[:at]) + pack(LINES[at:])))
    assert (outcome.ids, outcome.report.problems) == (IDS, [])


def test_zeros_after_a_gzip_file_are_padding(tmp_path: Path) -> None:
    outcome = read(write(tmp_path / "log.jsonl.gz", gzip.compress(LINES) + bytes(512)))
    assert (outcome.ids, outcome.report.problems) == (IDS, [])


def test_what_stands_after_a_gzip_file_is_told(tmp_path: Path) -> None:
    outcome = read(write(tmp_path / "log.jsonl.gz", gzip.compress(LINES) + b"more"))
    assert outcome.ids == IDS
    assert outcome.problem.message.startswith("the file is damaged: Not a gzipped file")


@packings
def test_a_byte_order_mark_inside(tmp_path: Path, packing: str) -> None:
    outcome = read(write(tmp_path / f"log.jsonl.{packing}", PACKERS[packing](codecs.BOM_UTF8 + LINES)))
    assert (outcome.ids, outcome.report.problems) == (IDS, [])


@packings
@pytest.mark.parametrize("content", [b"", b" \n", codecs.BOM_UTF8])
def test_an_archive_of_nothing(tmp_path: Path, packing: str, content: bytes) -> None:
    reading = convoscope.read(write(tmp_path / f"log.jsonl.{packing}", PACKERS[packing](content)))
    with pytest.raises(NothingReadable):
        list(reading)
    (problem,) = reading.report.problems
    assert problem.message == "is empty"


@pytest.mark.parametrize("wrap", [*PACKERS.values(), lambda text: text.decode().encode("utf-16")])
def test_a_reading_that_is_given_up_leaves_no_file_open(tmp_path: Path, wrap: Callable[[bytes], bytes]) -> None:
    reading = iter(convoscope.read(write(tmp_path / "log.jsonl", wrap(LINES))))
    assert next(reading).id == IDS[0]
    del reading  # warnings are errors: an unclosed file would fail this test
    gc.collect()


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
