"""Lines, one array, or one document: told by the content, whatever the file is called and however it is laid out."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from convoscope.conversation import Conversation, Participant, Text, Utterance
from convoscope.errors import InputError
from convoscope.ingest.discover import HEAD_BYTES
from convoscope.ingest.reader import Detection, Reader, RecordGroup, Sample, installed
from convoscope.ingest.report import Notes
from support.logs import ASK, REPLY, as_lines, chat, read, story, write, write_json, write_lines

STORY = ["user: Is the museum open on Monday?", "assistant: It is closed on Mondays."]
LONG = "x" * HEAD_BYTES
"""More than the part of a file by which it is told what the file is."""

LAYOUTS: dict[str, Callable[[list[Any]], str]] = {
    "lines": lambda records: as_lines(*records),
    "lines without a final newline": lambda records: as_lines(*records).rstrip(),
    "lines with carriage returns": lambda records: as_lines(*records).replace("\n", "\r\n"),
    "lines between blank ones": lambda records: "\n" + as_lines(*records).replace("\n", "\n\n"),
    "an array": json.dumps,
    "a pretty-printed array": lambda records: json.dumps(records, indent=2),
    "an array that is printed without indent": lambda records: json.dumps(records, indent=0),
    "an array with blanks": lambda records: " \n[ " + " , ".join(map(json.dumps, records)) + " ] \n",
    "an array with an element a line": lambda records: "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n",
    "an array that starts in its first line": lambda records: "[" + "\n,".join(map(json.dumps, records)) + "]",
}
layouts = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=list(LAYOUTS))


@layouts
@pytest.mark.parametrize("name", ["log.json", "log.jsonl", "log.ndjson", "log.txt"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_small_files(tmp_path: Path, layout: Callable[[list[Any]], str], name: str, count: int) -> None:
    records = [chat(f"c{number}") for number in range(count)]
    outcome = read(write(tmp_path / name, layout(records)))
    assert outcome.ids == [record["id"] for record in records]
    assert outcome.report.problems == []


@layouts
@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
def test_files_of_which_only_the_head_is_looked_at(
    tmp_path: Path, layout: Callable[[list[Any]], str], name: str
) -> None:
    records = [chat(f"c{number}", "x" * 5000, "y") for number in range(2 * HEAD_BYTES // 5000)]
    outcome = read(write(tmp_path / name, layout(records)))
    assert outcome.ids == [record["id"] for record in records]
    assert outcome.report.problems == []


@pytest.mark.parametrize("content", ["Short.", "x" * 5000])
def test_an_array_with_commas_on_lines_of_their_own(tmp_path: Path, content: str) -> None:
    records = [chat(f"c{number}", content) for number in range(200)]
    path = write(tmp_path / "log.json", "[\n" + "\n,\n".join(map(json.dumps, records)) + "\n]\n")
    assert read(path).ids == [record["id"] for record in records]


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("content", ["Short.", LONG])
@pytest.mark.parametrize("indent", [None, 0, 2])
def test_one_document(tmp_path: Path, name: str, content: str, indent: int | None) -> None:
    record = chat("one", content, "Thanks.")
    outcome = read(write(tmp_path / name, json.dumps(record, indent=indent)))
    assert outcome.ids == ["one"]
    assert story(outcome.only) == [f"user: {content}", "assistant: Thanks."]


@pytest.mark.parametrize("name", ["log.json", "log.jsonl"])
@pytest.mark.parametrize("times", [1, 3000])
def test_a_document_with_its_messages_on_lines_of_their_own(tmp_path: Path, name: str, times: int) -> None:
    said = ",\n".join([json.dumps(ASK), json.dumps(REPLY)] * times)
    outcome = read(write(tmp_path / name, f'{{"id": "one", "messages": [\n{said}\n]}}\n'))
    assert (outcome.only.id, story(outcome.only)) == ("one", STORY * times)


def test_a_first_line_that_is_longer_than_the_head(tmp_path: Path) -> None:
    assert read(write_lines(tmp_path / "log.jsonl", chat("long", LONG), chat("short"))).ids == ["long", "short"]


def test_a_first_line_that_is_an_array_longer_than_the_head(tmp_path: Path) -> None:
    outcome = read(write_lines(tmp_path / "log.jsonl", [ASK, {**REPLY, "content": LONG}], [ASK]))
    assert outcome.ids == ["log.jsonl:1", "log.jsonl:2"]


@pytest.mark.parametrize("length", range(HEAD_BYTES - 2, HEAD_BYTES + 3))
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_document_about_as_long_as_the_head(tmp_path: Path, length: int, end: str) -> None:
    padding = length - len(json.dumps(chat("one", "")))
    path = write_json(tmp_path / "log.json", chat("one", "x" * padding))
    assert path.stat().st_size == length
    assert read(write(path, path.read_text() + end)).ids == ["one"]


@pytest.mark.parametrize("length", range(HEAD_BYTES - 2, HEAD_BYTES + 3))
@pytest.mark.parametrize("end", ["", "\n"])
def test_lines_that_end_about_where_the_head_does(tmp_path: Path, length: int, end: str) -> None:
    padding = length - len(as_lines(chat("one", ""), chat("two")).rstrip())
    text = as_lines(chat("one", "x" * padding), chat("two")).rstrip()
    assert len(text) == length
    assert read(write(tmp_path / "log.jsonl", text + end)).ids == ["one", "two"]


@pytest.mark.parametrize("length", range(HEAD_BYTES - 5, HEAD_BYTES + 3))
@pytest.mark.parametrize("name", ["log.jsonl", "log"])
@pytest.mark.parametrize("before", ["", "\n", "\ufeff"], ids=["", "after a blank line", "after a byte-order mark"])
def test_a_first_line_that_ends_about_where_the_head_does(tmp_path: Path, name: str, length: int, before: str) -> None:
    padding = length - len(json.dumps(chat("one", "")))
    text = as_lines(chat("one", "x" * padding), chat("two"))
    assert text.index("\n") == length
    assert read(write(tmp_path / name, before + text)).ids == ["one", "two"]


def test_a_document_longer_than_the_head_after_a_byte_order_mark(tmp_path: Path) -> None:
    text = json.dumps(chat("one", LONG), indent=1)
    assert read(write(tmp_path / "log.json", "\ufeff" + text)).ids == ["one"]


def test_a_first_line_that_was_cut_when_the_log_was_rotated(tmp_path: Path) -> None:
    cut = as_lines(chat("lost"))[30:]
    outcome = read(write(tmp_path / "log.jsonl", cut + as_lines(chat("one"), chat("two"))))
    assert outcome.ids == ["one", "two"]
    assert outcome.problem.line == 1


def test_a_broken_first_line_of_two(tmp_path: Path) -> None:
    outcome = read(write(tmp_path / "log.jsonl", '{"id": "lost\n' + as_lines(chat("one")).rstrip()))
    assert outcome.ids == ["one"]
    assert outcome.problem.line == 1


def test_an_array_without_its_commas_is_read_line_by_line(tmp_path: Path) -> None:
    outcome = read(write(tmp_path / "log.json", "[\n" + as_lines(chat("one"), chat("two"), chat("three")) + "]\n"))
    assert outcome.ids == ["one", "two", "three"]
    assert [problem.line for problem in outcome.report.problems] == [1, 5]


class _Diary(Reader):
    """Plain text, of which a line that begins with "say " is something said."""

    name, title = "diary", "Diaries"

    def detect(self, sample: Sample) -> Detection | None:
        ours = sample.container == "text" and sample.values[0] == "DIARY"
        return Detection(0.9, "says so", "key") if ours else None

    def build(self, group: RecordGroup, notes: Notes) -> Iterator[Conversation]:
        events = [
            Utterance(seq=seq, speaker="user", heard=Text(f"{record.number} {record.value}", "line"))
            for seq, record in enumerate(group.records)
        ]
        participants = (Participant("user", "user"),)
        yield Conversation(id=group.name, participants=participants, timeline=tuple(events))


class TestPlainText:
    """Files that are neither JSON nor a table are offered to readers as lines of text."""

    @pytest.fixture(autouse=True)
    def _with_a_diary(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setitem(installed().by_name, _Diary.name, _Diary())

    def test_records_are_its_lines_and_blank_ones_are_passed_over(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "may.log", "DIARY\r\n\n{not json}\nü\n"))
        assert outcome.ids == ["may"]
        assert [one.heard and one.heard.text for one in outcome.only.utterances] == ["1 DIARY", "3 {not json}", "4 ü"]
        assert outcome.report.ignored == {"blank_line": 1}

    def test_packed(self, tmp_path: Path) -> None:
        file = tmp_path / "may.log.gz"
        file.write_bytes(gzip.compress(b"DIARY\nx\n"))
        assert len(read(file).only.utterances) == 2

    @pytest.mark.parametrize("data", [b"DIARY\0\n", b"DIARY\n" + b"\xff\xfe" * 9, b"another\n"])
    def test_what_is_no_text_or_of_no_reader_is_said(self, tmp_path: Path, data: bytes) -> None:
        file = tmp_path / "may.log"
        file.write_bytes(data)
        with pytest.raises(InputError, match=r"is not JSON|is a binary file|is not UTF-8 text"):
            read(file)

    def test_in_a_folder_what_nobody_claims_is_skipped_silently(self, tmp_path: Path) -> None:
        write(tmp_path / "a.log", "DIARY")
        write(tmp_path / "b.log", "nothing of the sort")
        write(tmp_path / "c.txt", "nothing of the sort")
        outcome = read(tmp_path)
        assert outcome.ids == ["a"]
        assert outcome.report.problem_count == 0
        assert {name: file.skipped for name, file in outcome.report.files.items()} == {
            "a.log": "",
            "b.log": "is not JSON",
            "c.txt": "is not JSON",
        }
