"""Folders that lead back into themselves, odd names, one file given twice, conversations told apart by id."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import convoscope
from convoscope.runs.making import make_run as score
from ingest.logs import ASK, CHAT, REPLY, chat, read, write_json, write_lines


def test_links_that_lead_back_are_walked_once(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", CHAT)
    (tmp_path / "one").symlink_to(tmp_path)
    (tmp_path / "other").symlink_to(tmp_path)
    assert len(read(tmp_path).ids) == 1


@pytest.mark.skipif(os.name != "posix", reason="names are text elsewhere")
def test_a_name_that_is_not_utf8(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.json"
    with open(path, "wb") as stream:
        stream.write(b'{"messages": [{"role": "user", "content": "hi"}]}')
    run = score(tmp_path, out=tmp_path / "run", workers=1)
    assert [one.id for one in run.conversations()] == ["caf?"]


def test_a_file_given_twice_goes_by_its_shorter_name_in_either_order(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "deep" / "x.jsonl", {"messages": [ASK]}, {"messages": [REPLY]})
    ids = ["x.jsonl:1", "x.jsonl:2"]
    assert read(tmp_path, path).ids == ids
    assert read(path, tmp_path).ids == ids


def test_an_id_in_any_of_the_first_records_groups_by_id(tmp_path: Path) -> None:
    first, second = ({"conversation_id": name, **ASK} for name in "ab")
    outcome = read(write_lines(tmp_path / "a.jsonl", {"role": "system", "content": "S"}, first, second))
    assert sorted(outcome.ids) == ["a", "b"]
    assert outcome.problem.line == 1


def test_a_file_that_vanishes_is_a_problem(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", CHAT, chat("y"))
    gone = write_lines(tmp_path / "b.jsonl", CHAT, chat("z"))
    reading = convoscope.read(tmp_path)
    gone.unlink()
    assert len(list(reading)) == 2
    assert [problem.file for problem in reading.report.problems] == ["b.jsonl"]
