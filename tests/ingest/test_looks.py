"""First looks are kept by the content of a piece: what is unchanged is not looked at again, and nothing else is."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import pytest

from convoscope.ingest.discover import Input
from convoscope.ingest.looks import Looks, hash_of_content, hash_of_text
from convoscope.ingest.pieces import InputPiece


class Lengths:
    """Sees the number and the length of each record, and counts at how many pieces it looked."""

    def __init__(self) -> None:
        self.pieces = 0

    def __call__(self, texts: Iterable[tuple[int, bytes]]) -> array[int]:
        self.pieces += 1
        return array("q", (value for number, text in texts for value in (number, len(text))))


def piece_of(path: Path, text: bytes, first: int = 1) -> InputPiece:
    path.write_bytes(text)
    item = Input(str(path), path.name, "openai-chat", "lines", "record", "")
    return InputPiece(item, 0, first, 0, len(text))


def seen(piece: InputPiece, look: Lengths, before: Path, out: Path, content: str = "") -> list[int]:
    with closing(Looks(before, out)) as looks:
        return looks.at(piece, "lengths", 2, look, content).tolist()


def test_a_hash_is_the_same_in_every_process() -> None:
    # printf abc | b2sum -l 64
    assert hash_of_text(b"abc") == int.from_bytes(bytes.fromhex("d8bb14d833d59559"), "little", signed=True)


def test_what_is_unchanged_is_not_looked_at_again(tmp_path: Path) -> None:
    piece, look = piece_of(tmp_path / "a.jsonl", b"[1]\n\n[22]\n", first=7), Lengths()
    # A blank line is no record, and has a number. The piece begins with number 0, wherever it is in its file.
    assert seen(piece, look, tmp_path / "none", tmp_path / "first") == [0, 3, 2, 4]
    assert seen(piece, look, tmp_path / "first", tmp_path / "second") == [0, 3, 2, 4]
    # Not even its file is read where its hash is known.
    (tmp_path / "a.jsonl").unlink()
    known = hash_of_content(b"[1]\n\n[22]\n")
    assert seen(piece, look, tmp_path / "second", tmp_path / "third", known) == [0, 3, 2, 4]
    assert look.pieces == 1
    assert (tmp_path / "first").read_bytes() == (tmp_path / "third").read_bytes()


def test_a_file_that_changed_since_its_hash_was_taken_is_kept_by_what_it_holds(tmp_path: Path) -> None:
    piece, look = piece_of(tmp_path / "a.jsonl", b"[1]\n[22]\n"), Lengths()
    was = hash_of_content(b"[3]\n[44]\n")
    assert seen(piece, look, tmp_path / "none", tmp_path / "first", was) == [0, 3, 1, 4]
    other = piece_of(tmp_path / "b.jsonl", b"[3]\n[44]\n")
    assert seen(other, look, tmp_path / "first", tmp_path / "second", was) == [0, 3, 1, 4]
    assert look.pieces == 2


@pytest.mark.parametrize("damage", ["cut", "another byte", "other text", "longer than the file"])
def test_a_kept_file_that_does_not_fit_is_not_used(tmp_path: Path, damage: str) -> None:
    piece, look = piece_of(tmp_path / "a.jsonl", b"[1]\n[22]\n"), Lengths()
    seen(piece, look, tmp_path / "none", tmp_path / "first")
    kept = (tmp_path / "first").read_bytes()
    damaged = {
        "cut": kept[:-3],
        "another byte": kept[:-1] + bytes([kept[-1] ^ 1]),
        "other text": b"no such file\n" * 40,
        "longer than the file": b"\xff" * 12 + kept,
    }[damage]
    (tmp_path / "first").write_bytes(damaged)
    assert seen(piece, look, tmp_path / "first", tmp_path / "second") == [0, 3, 1, 4]
    assert look.pieces == 2
    assert (tmp_path / "second").read_bytes() == kept
