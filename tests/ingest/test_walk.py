"""Folders that lead back into themselves, odd names, one file given twice, conversations told apart by id."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

import convoscope
from convoscope.runs.make import make_run as score
from support.logs import ASK, CHAT, EXAMPLES, REPLY, chat, read, write_json, write_lines


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


class TestFilesOfOneName:
    """They are told apart by the folders above them, as far as it takes, however their paths were written."""

    @pytest.fixture
    def logs(self, tmp_path: Path) -> list[Path]:
        places = [tmp_path / place / "calls.jsonl" for place in ("a/x", "b/x", "c")]
        return [write_lines(place, {"messages": [ASK, REPLY]}, {"messages": [ASK]}) for place in places]

    def test_by_the_shortest_names_that_differ(self, logs: list[Path]) -> None:
        assert list(read(*logs).report.files) == ["a/x/calls.jsonl", "b/x/calls.jsonl", "c/calls.jsonl"]
        assert list(read(*logs[:2]).report.files) == ["a/x/calls.jsonl", "b/x/calls.jsonl"]
        assert list(read(*logs[1:]).report.files) == ["c/calls.jsonl", "x/calls.jsonl"]

    def test_in_folders(self, logs: list[Path]) -> None:
        names = list(read(*(path.parent for path in logs)).report.files)
        assert names == ["a/x/calls.jsonl", "b/x/calls.jsonl", "c/calls.jsonl"]

    def test_the_run_is_the_same_however_the_paths_are_written(
        self, logs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (tmp_path / "elsewhere").symlink_to(tmp_path / "b")
        monkeypatch.chdir(tmp_path / "a")
        written = [
            [str(path) for path in logs],
            ["../c/calls.jsonl", "x/calls.jsonl", "../b/x/calls.jsonl"],
            ["./x/../x/calls.jsonl", "../elsewhere/x/calls.jsonl", "../c/../c/calls.jsonl"],
        ]
        runs = [
            convoscope.score(paths, metrics="turns", out=tmp_path / f"run-{number}", workers=1)
            for number, paths in enumerate(written)
        ]
        one, *others = [(run.folder / "summary.json").read_bytes() for run in runs]
        assert others == [one, one]
        assert {run.receipt.input_hash for run in runs} == {runs[0].receipt.input_hash}
        for run in runs:
            for name in ("summary.json", "receipt.json", "read-report.json", "report.html"):
                assert str(tmp_path) not in (run.folder / name).read_text()

    def test_names_that_are_not_utf8_and_alike_without_it(self, tmp_path: Path) -> None:
        for name in (b"caf\xe9.jsonl", b"caf\xe8.jsonl"):
            write_lines(tmp_path / os.fsdecode(name), {"messages": [ASK]})
        outcome = read(tmp_path)
        assert len(outcome.ids) == 2
        assert len(set(outcome.report.files)) == 2

    def test_definitions_of_flows_do_not_tell_where_they_lie(self, tmp_path: Path) -> None:
        log = write_lines(tmp_path / "log.jsonl", CHAT)
        flow = "flow: viewing\nstates:\n  greet:\n    next: [bye]\n  bye: {}\n"
        (tmp_path / "deep").mkdir()
        (tmp_path / "deep" / "viewing.yaml").write_text(flow)
        for given in (tmp_path / "deep", tmp_path / "deep" / "viewing.yaml"):
            reading = convoscope.read(log, flows=[given])
            list(reading)
            (name,) = set(reading.report.files) - {"log.jsonl"}
            assert name in ("…/deep/viewing.yaml", "…/viewing.yaml")


@pytest.mark.parametrize("written", [".", "../call", "../call/."])
def test_a_call_is_called_by_its_folder_however_that_is_written(
    written: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(EXAMPLES / "voice-logs" / "records" / "agent-interrupts", tmp_path / "call")
    monkeypatch.chdir(tmp_path / "call")
    assert list(read(Path(written)).report.files) == ["call"]
