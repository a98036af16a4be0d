"""Records on their way to buckets and back: which belong together, where each stood, and in which order."""

from __future__ import annotations

from pathlib import Path

import convoscope
from convoscope.ingest.keyed_records import KeyedPiece, read_bucket, spread

ONE = '{"conversation_id": "a", "timestamp": 1760000000.0, "event": "state_entered", "state": "greet"}'
TWO = '{"conversation_id": "b", "timestamp": 1760000001.0, "event": "state_entered", "state": "greet"}'
ODD = '{"conversation_id": "a", "timestamp": "soon", "event": "turn_complete", "latency_ms": 5}'


def gathered(pieces: list[KeyedPiece], scratch: Path, buckets: int) -> dict[str, list[tuple[str, int, bytes]]]:
    found: dict[str, list[tuple[str, int, bytes]]] = {}
    for _, bucket in spread("state-events", pieces, scratch, buckets):
        for mine in read_bucket(Path(bucket.path)):
            assert mine.key not in found, "a key is in one bucket"
            found[mine.key] = [
                (run.name, number, text)
                for run in mine.runs
                for number, text in zip(run.numbers, run.texts, strict=True)
            ]
    return found


def test_records_come_back_by_key_in_order_with_their_file_and_number(tmp_path: Path) -> None:
    pieces = [
        KeyedPiece("x.jsonl", range(1, 4), [b"1", b"2", b"3"], ["a", "b", "a"]),
        KeyedPiece("x.jsonl", [7, 9], [b"7", b"9"], ["b", "a"]),  # 8 was blank
        KeyedPiece("y.jsonl", range(1, 2), [b"y"], ["a"]),
    ]
    for buckets in (1, 5, 100_000):
        assert gathered(pieces, tmp_path / str(buckets), buckets) == {
            "a": [("x.jsonl", 1, b"1"), ("x.jsonl", 3, b"3"), ("x.jsonl", 9, b"9"), ("y.jsonl", 1, b"y")],
            "b": [("x.jsonl", 2, b"2"), ("x.jsonl", 7, b"7")],
        }


def test_keys_may_be_any_text(tmp_path: Path) -> None:
    keys = ["", "\0", "é\n\t", '"', "x" * 5000, "漢字"]
    texts = [str(place).encode() for place in range(len(keys))]
    found = gathered([KeyedPiece("x", range(1, 7), texts, keys)], tmp_path, 3)
    assert found == {key: [("x", place + 1, texts[place])] for place, key in enumerate(keys)}


def test_repairs_stay_with_their_record(tmp_path: Path) -> None:
    piece = KeyedPiece("x", range(1, 4), [b"1", b"2", b"3"], ["a", "b", "a"], {2: ("control_character",)})
    ((_, bucket),) = spread("state-events", [piece], tmp_path, 1)
    runs = {mine.key: mine.runs[0].repairs for mine in read_bucket(Path(bucket.path))}
    assert runs == {"a": {1: ("control_character",)}, "b": {}}


def test_nothing_is_spread_of_nothing(tmp_path: Path) -> None:
    assert list(spread("state-events", [], tmp_path, 2)) == []


def test_notes_name_the_line_that_they_are_about(tmp_path: Path) -> None:
    # Line 4 of the second file has a time that nobody can read; a blank line and line ends of two kinds are before it.
    (tmp_path / "x.jsonl").write_text(f"{ONE}\n{TWO}\n")
    (tmp_path / "y.jsonl").write_text(f"{TWO}\r\n\r\n{TWO}\r\n{ODD}\n", newline="")
    reading = convoscope.read(tmp_path)
    told = {
        read.conversation.id: [(note.code, note.file, note.line) for note in read.notes]
        for read in reading.with_notes()
    }
    assert told["a"] == [("unreadable_time", "y.jsonl", 4)]
    assert reading.report.ignored["blank_line"] == 1
    assert (reading.report.records_seen, reading.report.records_used) == (5, 5)
