"""Tables: rows of CSV, TSV and Parquet are records, ids stay text, and a bad row costs itself."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import convoscope
from convoscope.errors import NothingReadable
from convoscope.ingest.io import containers as files
from convoscope.ingest.io import tables
from convoscope.ingest.io.containers import ByteRange
from ingest.test_partitions import same_however_cut
from support.logs import Outcome, read, write

ITEMS = "task_id,agent_task,agent_response\n007,Where?,Here.\n10,When?,\n"


def rows(path: Path, size: int = 1 << 20) -> dict[int, Any]:
    """The rows by their numbers; a text in place of a row is why it cannot be read."""
    found: dict[int, Any] = {}
    for byte_range in tables.row_ranges(path, size):
        found |= {byte_range.first: byte_range.problem} if byte_range.problem else _numbered(byte_range)
    return found


def _numbered(byte_range: ByteRange) -> dict[int, Any]:
    texts = (byte_range.data or b"").split(tables.BETWEEN_ROWS)
    return {number: json.loads(text) for number, text in enumerate(texts, byte_range.first) if text}


def asked(outcome: Outcome) -> dict[str, list[str]]:
    """What was said in each conversation."""
    return {
        one.id: [utterance.intended.text for utterance in one.utterances if utterance.intended]
        for one in outcome.conversations
    }


def write_parquet(path: Path, query: str) -> Path:
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"COPY ({query}) TO '{path}' (FORMAT parquet)")
    return path


class TestCsv:
    def test_cells_are_text_and_empty_ones_are_null(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "items.csv", ITEMS))
        assert asked(outcome) == {"007": ["Where?", "Here."], "10": ["When?"]}
        assert outcome.report.problems == []
        assert rows(tmp_path / "items.csv") == {
            2: {"task_id": "007", "agent_task": "Where?", "agent_response": "Here."},
            3: {"task_id": "10", "agent_task": "When?", "agent_response": None},
        }

    @pytest.mark.parametrize("delimiter", [",", "\t", ";"])
    @pytest.mark.parametrize("name", ["items.csv", "items.CSV", "items.tsv"])
    def test_delimiters(self, tmp_path: Path, delimiter: str, name: str) -> None:
        text = ITEMS.replace(",", delimiter).replace("Here.", '"Here, there; everywhere.\t"')
        assert asked(read(write(tmp_path / name, text)))["007"] == ["Where?", "Here, there; everywhere.\t"]

    def test_a_delimiter_in_a_column_s_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "items.csv", '"a, b, and c";agent_task\n1;Where?\n')
        assert rows(path) == {2: {"a, b, and c": "1", "agent_task": "Where?"}}

    @pytest.mark.parametrize(
        "wrap",
        [
            str.encode,
            lambda text: codecs.BOM_UTF8 + text.encode(),
            lambda text: text.encode("utf-16"),
            lambda text: text.replace("\n", "\r\n").encode(),
            lambda text: text.replace("\n", "\r").encode(),
            lambda text: text.rstrip().encode(),
            lambda text: ("\n\n" + text.replace("\n", "\n\n")).encode(),
        ],
        ids=["plain", "byte-order mark", "UTF-16", "CRLF", "CR", "no last line end", "blank lines"],
    )
    def test_encodings_and_line_ends(self, tmp_path: Path, wrap: Callable[[str], bytes]) -> None:
        outcome = read(write(tmp_path / "items.csv", wrap(ITEMS.replace("Here", "Thé 🍵"))))
        assert asked(outcome) == {"007": ["Where?", "Thé 🍵."], "10": ["When?"]}
        assert (outcome.report.problems, outcome.report.repaired, outcome.report.ignored) == ([], {}, {})

    @pytest.mark.parametrize(("name", "wrap"), [("a.csv.gz", gzip.compress), ("a.csv.zst", zstd.compress)])
    def test_packed(self, tmp_path: Path, name: str, wrap: Callable[[bytes], bytes]) -> None:
        assert asked(read(write(tmp_path / name, wrap(ITEMS.encode()))))["10"] == ["When?"]

    def test_a_row_over_several_lines_is_named_by_its_first(self, tmp_path: Path) -> None:
        text = 'agent_task,agent_response\n"Where\nis\nit?",Here.\n\nWhen?,Now.\n'
        outcome = read(write(tmp_path / "items.csv", text))
        assert asked(outcome) == {"items.csv:2": ["Where\nis\nit?", "Here."], "items.csv:6": ["When?", "Now."]}

    def test_json_in_cells_is_read(self, tmp_path: Path) -> None:
        calls = json.dumps([{"tool_name": "track", "parameters": {"number": "A-1"}, "call_id": "1"}])
        stream = io.StringIO()
        writer = csv.writer(stream)
        writer.writerow(["agent_task", "tool_calls", "agent_exit", "metadata", "retrieval_query"])
        writer.writerow(["Where?", calls, "TRUE", '{"model": "m-1"}', "parcel A-1"])
        conversation = read(write(tmp_path / "items.csv", stream.getvalue())).only
        assert [call.arguments for call in conversation.tool_calls] == [{"number": "A-1"}]
        assert conversation.items[0].outcome is not None
        assert conversation.items[0].outcome.finished is True
        assert conversation.dimensions == {"model": "m-1"}

    def test_bytes_that_are_no_characters(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "items.csv", "agent_task\nCafé?\n".encode("latin-1")))
        assert asked(outcome) == {"items.csv:2": ["Caf\ufffd?"]}
        assert outcome.report.repaired["invalid_utf8"].count == 1

    def test_a_column_without_a_name(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "items.csv", ",agent_task\n0,Where?\n1,When?\n"))
        assert outcome.report.unknown == {"item.column_1": 2}

    def test_json_that_is_called_csv(self, tmp_path: Path) -> None:
        outcome = read(write(tmp_path / "items.csv", '{"agent_task": "Where?"}\n{"agent_task": "When?"}\n'))
        assert len(outcome.conversations) == 2


class TestBadRows:
    @pytest.mark.parametrize(
        ("bad", "message"),
        [
            ("8,What?", "the row has 2 cells, and the header 3"),
            ("8,What,else,?", "the row has 4 cells, and the header 3"),
            ("8", "the row has 1 cell, and the header 3"),
            ('8,"What"?,Nothing.', "there is text behind the closing quotation mark of a cell"),
            ('8,"What?,Nothing.', "a quotation mark is opened and never closed"),
        ],
    )
    def test_the_rest_goes_on(self, tmp_path: Path, bad: str, message: str) -> None:
        header, first, second = ITEMS.splitlines()
        outcome = read(write(tmp_path / "items.csv", "\n".join([header, first, bad, second])))
        assert outcome.ids == ["007", "10"]
        assert (outcome.problem.line, outcome.problem.message) == (3, message)
        assert outcome.problem.hint.startswith("the row was skipped, and the rest is read")
        assert outcome.report.records_seen == 3

    def test_two_columns_of_one_name(self, tmp_path: Path) -> None:
        path = write(tmp_path / "items.csv", "agent_task,agent_task\na,b\n")
        with pytest.raises(NothingReadable, match="two columns are called 'agent_task'"):
            list(convoscope.read(path))

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("agent_task\n", "is a table without rows"),
            ("\n\n", "is empty"),
            ("agent_task,b\n1,2,3\n", "no row can be read: the row has 3 cells, and the header 2"),
            ("name,age\nAnna,7\n", "unknown table format; fields: name, age"),
        ],
    )
    def test_tables_that_cannot_be_read(self, tmp_path: Path, text: str, message: str) -> None:
        with pytest.raises(NothingReadable, match=message):
            list(convoscope.read(write(tmp_path / "items.csv", text)))

    def test_a_strange_table_in_a_folder_is_just_not_a_log(self, tmp_path: Path) -> None:
        write(tmp_path / "items.csv", ITEMS)
        write(tmp_path / "people.csv", "name,age\nAnna,7\n")
        outcome = read(tmp_path)
        assert outcome.report.problems == []
        assert outcome.report.files["people.csv"].skipped.startswith("unknown table format")

    def test_a_cut_archive_gives_what_it_can(self, tmp_path: Path) -> None:
        text = "agent_task\n" + "".join(f"Question {number * 7919}?\n" for number in range(200))
        packed = gzip.compress(text.encode())
        outcome = read(write(tmp_path / "items.csv.gz", packed[: len(packed) * 3 // 4]))
        assert 0 < len(outcome.conversations) < 200
        assert outcome.problem.message == "the compressed file is cut off"
        assert outcome.problem.line == len(outcome.conversations) + 2  # the header, and the row that is lost

    def test_a_cell_that_is_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_RECORD_BYTES", 1000)
        text = ITEMS + f"11,{'x' * 2000},\n12,Why?,\n"
        outcome = read(write(tmp_path / "items.csv", text))
        assert outcome.ids == ["007", "10", "12"]
        assert (outcome.problem.line, outcome.problem.message) == (4, files.TOO_LONG)


class TestParquet:
    @pytest.mark.skipif(os.name != "posix", reason="names are text elsewhere")
    def test_one_whose_name_is_not_utf8_costs_itself(self, tmp_path: Path) -> None:
        write(tmp_path / os.fsdecode(b"a\xff.parquet"), b"PAR1 and more PAR1")
        write(tmp_path / "items.csv", ITEMS)
        outcome = read(tmp_path)
        assert len(outcome.conversations) == 2
        assert outcome.problem.message == "is a Parquet file whose path is not UTF-8"

    def test_rows_are_records(self, tmp_path: Path) -> None:
        path = write_parquet(
            tmp_path / "items.parquet",
            """SELECT '007' AS task_id, 'Where?' AS agent_task, NULL AS agent_response,
                      [['a', 'b'], ['c']] AS retrieved_context, {'model': 'm-1'} AS metadata
               UNION ALL SELECT '10', 'When?', 'Now.', NULL, NULL""",
        )
        outcome = read(path)
        assert asked(outcome) == {"007": ["Where?"], "10": ["When?", "Now."]}
        first = outcome.conversations[0]
        assert first.dimensions == {"task_id": "007", "model": "m-1"}
        assert len(first.items[0].events) == 2

    def test_numbers_are_ids_too(self, tmp_path: Path) -> None:
        path = write_parquet(
            tmp_path / "items.parquet", "SELECT 7::BIGINT AS task_id, 'Where?' AS question, 4 AS answer"
        )
        assert asked(read(path)) == {"7": ["Where?", "4"]}

    def test_a_name_with_signs_that_are_patterns(self, tmp_path: Path) -> None:
        path = write_parquet(tmp_path / "plain.parquet", "SELECT 'Where?' AS agent_task")
        outcome = read(path.rename(tmp_path / "it[e]m's *?.parquet"))
        assert outcome.ids == ["it[e]m's *?.parquet:1"]

    def test_messages_as_a_column_are_a_chat(self, tmp_path: Path) -> None:
        path = write_parquet(
            tmp_path / "chats.parquet", "SELECT [{'role': 'user', 'content': 'Hello?'}] AS messages, 'c-1' AS id"
        )
        outcome = read(path)
        assert (outcome.ids, outcome.only.source.format) == (["c-1"], "openai-chat")

    def test_whole_numbers_are_the_same_id_as_text(self, tmp_path: Path) -> None:
        # A column of whole numbers with a null in it is one of doubles in many exports: 7.0 is 7.
        write_parquet(tmp_path / "a.parquet", "SELECT 7.0::DOUBLE AS task_id, 'Where?' AS agent_task")
        write(tmp_path / "b.csv", "task_id,agent_task\n7,When?\n")
        outcome = read(tmp_path)
        assert asked(outcome) == {"7": ["Where?", "When?"]}
        assert outcome.only.dimensions == {"task_id": "7"}

    @pytest.mark.parametrize("keep", [4, 40, -5])
    def test_a_file_that_breaks_off(self, tmp_path: Path, keep: int) -> None:
        path = write_parquet(tmp_path / "items.parquet", "SELECT 'Where?' AS agent_task")
        path.write_bytes(path.read_bytes()[:keep])
        told = "items.parquet: begins like a Parquet file, but its end is missing (copy or download it again,"
        assert told in refusal(path)

    @pytest.mark.parametrize("inside", [slice(4, 60), slice(-60, -4)])
    def test_a_file_that_is_damaged_inside(self, tmp_path: Path, inside: slice) -> None:
        path = write_parquet(tmp_path / "items.parquet", "SELECT 'Where?' AS agent_task FROM range(100)")
        content = bytearray(path.read_bytes())
        content[inside] = b"\xff" * 56
        path.write_bytes(content)
        assert "items.parquet: is a Parquet file that is damaged (copy or download it again," in refusal(path)

    def test_not_a_number(self, tmp_path: Path) -> None:
        path = write_parquet(
            tmp_path / "items.parquet", "SELECT 'Where?' AS agent_task, {'ttft': 'NaN'::DOUBLE} AS latency"
        )
        outcome = read(path)
        assert outcome.report.repaired["not_a_number"].count == 1
        assert outcome.only.items[0].extras["latency"] == {"ttft": None}


def refusal(path: Path) -> str:
    """What is said of a file that cannot be read. Where it lies on this machine, and in what, is nobody's business."""
    with pytest.raises(NothingReadable) as refused:
        list(convoscope.read(path))
    said = str(refused.value)
    assert str(path.parent) not in said
    assert "duckdb" not in said.lower()
    return said


TEXTS = st.sampled_from(["", "007", "a,b", 'a"b', "line\nline", "🍵", "[1", "x" * 90])


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cells=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=8),
    strays=st.lists(st.sampled_from(["1,2,3", '"a"b,', ""]), max_size=3),
    size=st.integers(1, 300),
)
def test_however_it_is_cut(tmp_path: Path, cells: list[tuple[str, str]], strays: list[str], size: int) -> None:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["agent_task", "ground_truth"])
    writer.writerow(["Where?", "Here."])
    for row in cells:
        writer.writerow(row)
        if strays:
            stream.write(strays.pop() + "\n")
    same_however_cut(write(tmp_path / "items.csv", stream.getvalue()), tmp_path / "scratch", size)
