"""A large JSON document whose members are records: they are read one by one."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.ingest import discover
from convoscope.ingest.io import containers
from convoscope.ingest.io.containers import BETWEEN_ELEMENTS, member_ranges
from support.logs import EXAMPLES, read, write

DIALOGUE = next(iter(json.loads((EXAMPLES / "multiwoz" / "dialogues-2.1.json").read_text()).values()))
MB = 1024 * 1024


def texts(path: Path, size: int = 10) -> list[bytes]:
    return [text for one in member_ranges(path, size) for text in (one.data or b"").split(BETWEEN_ELEMENTS)]


def problems(path: Path) -> list[str]:
    return [one.problem for one in member_ranges(path, MB) if one.problem]


class TestMembers:
    def test_each_is_an_object_of_one_member(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.json", ' { "a" : {"b": [1, "}"]} ,\n"c\\"d":2}\n')
        assert [json.loads(text) for text in texts(path)] == [{"a": {"b": [1, "}"]}}, {'c"d': 2}]

    def test_an_empty_object_has_none(self, tmp_path: Path) -> None:
        assert list(member_ranges(write(tmp_path / "a.json", "{}"), MB)) == []

    @pytest.mark.parametrize(
        ("text", "problem"),
        [
            ("[1]", "is not a JSON object"),
            ('{"a": 1', "the JSON object is cut off at the end"),
            ('{"a": 1 "b": 2}', "a comma is missing at line 1, near '\"b\": 2}'"),
            ('{"a" 1}', "a colon is missing at line 1, near '1}'"),
            ("{1: 2}", "a name is missing at line 1, near '1: 2}'"),
            ('{"a": 1} x', "there is more after the end of the object at line 1, near 'x'"),
        ],
    )
    def test_what_is_wrong_is_told(self, tmp_path: Path, text: str, problem: str) -> None:
        assert problems(write(tmp_path / "a.json", text)) == [problem]


class TestLargeDocument:
    """MultiWOZ is one object of 10,438 dialogues, four times as large as one record may be."""

    def document(self, path: Path, dialogues: int) -> Path:
        """`dialogues` times the example, of about 4 KB each: 120 of them are more than a look at the head of a file."""
        return write(path, json.dumps({f"BAY{number:04}.json": DIALOGUE for number in range(dialogues)}, indent=1))

    def test_it_may_be_larger_than_a_record(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.document(tmp_path / "data.json", 600)
        monkeypatch.setattr(containers, "MAX_RECORD_BYTES", path.stat().st_size // 4)
        outcome = read(path)
        assert outcome.ids == [f"BAY{number:04}.json" for number in range(600)]
        assert outcome.report.problems == []
        assert outcome.report.records_seen == outcome.report.records_used == 600

    def test_it_is_read_as_a_small_one_is(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = self.document(tmp_path / "data.json", 120)
        by_member = read(path).conversations
        monkeypatch.setattr(discover, "HEAD_BYTES", 10 * path.stat().st_size)
        assert read(path).conversations == by_member

    def test_packed(self, tmp_path: Path) -> None:
        path = self.document(tmp_path / "data.json", 120)
        packed = write(tmp_path / "packed" / "data.json.gz", gzip.compress(path.read_bytes()))
        assert read(packed).ids == read(path).ids

    def test_one_that_is_cut_off_is_read_up_to_there(self, tmp_path: Path) -> None:
        path = self.document(tmp_path / "data.json", 120)
        text = path.read_text()
        cut = write(tmp_path / "cut.json", text[: text.index('"BAY0119.json"') + 100])
        outcome = read(cut)
        assert len(outcome.ids) == 119
        (problem,) = outcome.report.problems
        assert (problem.file, problem.message) == ("cut.json", "the JSON object is cut off at the end")


@given(
    st.dictionaries(st.text(max_size=5), st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5)),
    st.integers(1, 50),
    st.sampled_from([None, 2]),
)
def test_members_are_those_of_the_object(value: dict[str, object], size: int, indent: int | None) -> None:
    """Whatever an object holds, however it is written and cut: its members in their order, each once."""
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "a.json", json.dumps(value, indent=indent))
        members = [json.loads(text) for text in texts(path, size)] if value else list(member_ranges(path, size))
        assert members == [{name: held} for name, held in value.items()]
        ranges = list(member_ranges(path, size))
        counts = [len((one.data or b"").split(BETWEEN_ELEMENTS)) for one in ranges]
        assert [one.first for one in ranges] == [1 + sum(counts[:place]) for place in range(len(counts))]
