"""Copies: what is there twice is read once, and what only looks alike is kept."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.ingest.discover import find_inputs
from convoscope.ingest.report import ReadReport
from convoscope.ingest.split import cut, read_partition
from support.logs import Outcome, chat, read, write, write_json, write_lines

SHARED = Path(__file__).parents[3] / "shared" / "data" / "formats" / "tau-bench"
LONG = ("Where is the parcel that I ordered on Monday?", "It left our warehouse in Leeds this morning.")


def same(outcome: Outcome) -> dict[str, int]:
    return {kind: tally.count for kind, tally in outcome.report.same.items()}


def plain(*texts: str, **fields: Any) -> dict[str, Any]:
    """A chat without an id."""
    return {"messages": chat("", *texts)["messages"], **fields}


class TestCopies:
    def test_one_id_in_one_file(self, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "a.jsonl", chat("a"), chat("b"), chat("a")))
        assert outcome.ids == ["a", "b"]
        assert same(outcome) == {"copies": 1}
        assert (outcome.report.records_seen, outcome.report.records_used) == (3, 3)

    @pytest.mark.parametrize("field", ["timestamp", "ingested_at", "@timestamp", "created"])
    def test_when_it_was_written_does_not_matter(self, field: str, tmp_path: Path) -> None:
        records = [{**chat("a"), field: at} for at in ("2026-01-01T10:00:00Z", "2026-01-01T10:07:31.5+00:00")]
        assert same(read(write_lines(tmp_path / "a.jsonl", *records))) == {"copies": 1}

    def test_when_it_was_said_matters(self, tmp_path: Path) -> None:
        records = [{"id": "a", "messages": [{"role": "user", "content": "Hi", "timestamp": at}]} for at in (1e9, 2e9)]
        outcome = read(write_lines(tmp_path / "a.jsonl", *records))
        assert (len(outcome.conversations), same(outcome)) == (2, {})

    def test_in_a_session_the_same_may_be_said_again(self, tmp_path: Path) -> None:
        records = [{**plain("Hi", "Hello"), "session_id": "s", "timestamp": at} for at in (1e9, 1e9 + 60)]
        assert len(read(write_lines(tmp_path / "a.jsonl", *records)).conversations) == 2

    def test_blanks_do_not_matter(self, tmp_path: Path) -> None:
        """A blank at the end, line ends of another system, two blanks between sentences."""
        texts = ("Where is the parcel? I ordered it\non Monday.", "It left our warehouse  in Leeds this morning.")
        write_lines(tmp_path / "a.jsonl", plain(*texts), plain("Hi", "Hello"))
        write_lines(
            tmp_path / "b.jsonl", plain(texts[0].replace("\n", "\r\n"), f"{texts[1]} "), plain("Hi ", "Hello\n")
        )
        outcome = read(tmp_path)
        assert (len(outcome.conversations), same(outcome)) == (2, {"copies": 2})

    def test_however_it_is_written(self, tmp_path: Path) -> None:
        """Lines, an indented array, a packed file, and fields in another order."""
        record = {"id": "a", "model": "m", **plain(*LONG)}
        write_lines(tmp_path / "a.jsonl", record)
        write(tmp_path / "b.json", json.dumps([record], indent=2))
        write(tmp_path / "c.jsonl", gzip.compress(json.dumps(record).encode()))
        outcome = read(tmp_path)
        assert (len(outcome.conversations), same(outcome)) == (1, {"copies": 2})

    def test_without_an_id_the_file_with_most_counts(self, tmp_path: Path) -> None:
        """Twice in one file are two users; the other file has a copy of one of them."""
        write_lines(tmp_path / "a.jsonl", plain("Hi", "Hello"), plain("Bye", "Bye"))
        write_lines(tmp_path / "b.jsonl", plain("Hi", "Hello"), plain("Hi", "Hello"))
        outcome = read(tmp_path)
        assert (len(outcome.conversations), same(outcome)) == (3, {"copies": 1, "equal": 1})

    def test_a_text_under_two_names(self, tmp_path: Path) -> None:
        for name, end in {"a.txt": "\n", "b.txt": "\r\n"}.items():
            lines = ("Agent: How can I help?", f"Customer: {LONG[0]}", f"Agent: {LONG[1]}")
            write(tmp_path / name, "".join(line + end for line in lines).encode())
        outcome = read(tmp_path)
        assert (outcome.ids, same(outcome)) == (["a"], {"copies": 1})
        assert outcome.report.files["b.txt"].skipped == "a copy of a.txt"

    @pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not there")
    def test_files_that_overlap(self) -> None:
        """The small files hold trials of the large one: by hand, each (task, trial) once."""
        held = [json.loads(path.read_text()) for path in sorted(SHARED.glob("*.json")) if path.name != "facts.json"]
        trials = [(one["task_id"], one["trial"]) for records in held for one in records]
        outcome = read(SHARED)
        assert len(outcome.conversations) == len(set(trials)) < len(trials)
        assert same(outcome) == {"copies": len(trials) - len(set(trials))}


class TestAlike:
    @pytest.mark.parametrize("field", ["trial", "reward", "resolved", "outcome", "id"])
    def test_one_field_differs(self, field: str, tmp_path: Path) -> None:
        outcome = read(write_lines(tmp_path / "a.jsonl", *({**plain(*LONG), field: value} for value in (0, 1))))
        assert len(outcome.conversations) == 2
        assert "copies" not in same(outcome)

    def test_next_to_nothing_in_files_of_its_own(self, tmp_path: Path) -> None:
        for number in range(20):
            write_json(tmp_path / f"{number}.json", plain("hi", "hello"))
        assert len(read(tmp_path).conversations) == 20

    def test_trials_by_the_names_of_files(self, tmp_path: Path) -> None:
        for number in (0, 1):
            write_json(tmp_path / f"trial_{number}" / "run.json", {"id": "task-1", **plain(*LONG)})
        assert len(read(tmp_path).conversations) == 2

    @pytest.mark.parametrize("id", [None, "", "null", "undefined"])
    def test_an_empty_id_is_none(self, id: Any, tmp_path: Path) -> None:
        records = [{"conversation_id": id, **plain("hi", "hello")} for _ in range(3)]
        outcome = read(write_lines(tmp_path / "a.jsonl", *records))
        assert (len(outcome.conversations), same(outcome)) == (3, {"equal": 2})


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 5), st.booleans()), min_size=1, max_size=14),
    st.integers(50, 900),
)
@settings(deadline=None, max_examples=40)
def test_each_id_is_read_once_however_it_is_cut(
    tmp_path_factory: pytest.TempPathFactory, records: list[tuple[int, int, bool]], size: int
) -> None:
    """Any records in any of three files, some with another word: one conversation for each id and word."""
    folder = tmp_path_factory.mktemp("copies")
    for file, id, is_other in records:
        with (folder / f"{file}.jsonl").open("a") as stream:
            stream.write(json.dumps(chat(f"c{id}", "Hi.", "Other" if is_other else "Hello")) + "\n")
    report = ReadReport()
    parts = list(cut(find_inputs([folder]).inputs, report, folder / "scratch", size=size))
    ids = [one.conversation.id for part in parts for one in read_partition(part, report)]
    assert len(ids) == len({(id, is_other) for _, id, is_other in records})
    assert report.records_seen == report.records_used == len(records)
