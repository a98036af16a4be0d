"""Folders of logs: what is read, what is passed over without a word, and what is answered."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.errors import InputError, NothingReadable, UsageError
from support.logs import CHAT, as_lines, chat, read, write, write_json, write_lines


def test_files_are_read_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b/2", "a", "b/1", "c"):
        write_json(tmp_path / f"{name}.json", CHAT)
    outcome = read(tmp_path)
    assert outcome.ids == ["a", "b/1", "b/2", "c"]
    assert list(outcome.report.files) == ["a.json", "b/1.json", "b/2.json", "c.json"]
    assert all(file.conversations == 1 for file in outcome.report.files.values())


def test_the_order_of_paths_does_not_matter_and_none_is_read_twice(tmp_path: Path) -> None:
    paths = [write_json(tmp_path / f"{name}.json", CHAT) for name in ("a", "b")]
    assert read(paths[1], paths[0]).ids == ["a", "b"]
    assert read(paths[0], paths[0]).ids == ["a"]


def test_one_bad_file_among_a_hundred(tmp_path: Path) -> None:
    for number in range(100):
        write_json(tmp_path / f"{number:03d}.json", CHAT)
    write(tmp_path / "042.json", '{"messages": [')
    outcome = read(tmp_path)
    assert len(outcome.conversations) == 99
    assert outcome.problem.file == "042.json"
    assert str(outcome.problem) == "042.json:1: JSON is cut off at the end (the JSON must be complete)"
    assert outcome.report.files["042.json"].skipped == "JSON is cut off at the end"


def test_what_is_no_log_is_listed_and_no_problem(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    write(tmp_path / "README.md", "# How these were recorded\n")
    write(tmp_path / "call.wav", b"RIFF\x24\x00\x00\x00WAVEfmt ")
    write(tmp_path / "done.flag", "")
    outcome = read(tmp_path)
    assert outcome.ids == ["call"]
    assert outcome.report.problem_count == 0
    assert {name: file.skipped for name, file in outcome.report.files.items()} == {
        "call.json": "",
        "README.md": "is not JSON",
        "call.wav": "is a recording beside logs; given alone, it is read by itself",
        "done.flag": "is empty",
    }


def test_a_log_by_name_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    write_json(tmp_path / "config.json", {"voice": "low", "speed": 1})
    outcome = read(tmp_path)
    assert outcome.ids == ["call"]
    assert outcome.problem.file == "config.json"
    assert outcome.problem.message == "unknown JSON format; fields: voice, speed"


@pytest.mark.parametrize(
    "odd", [{"role": ["user"], "content": "x"}, {"type": ["object", "null"]}, {"role": {}, "messages": []}]
)
def test_json_of_an_odd_shape_is_a_problem_and_the_rest_is_read(tmp_path: Path, odd: dict[str, Any]) -> None:
    write_json(tmp_path / "call.json", CHAT)
    write_json(tmp_path / "schema.json", odd)
    outcome = read(tmp_path)
    assert outcome.ids == ["call"]
    assert outcome.problem.file == "schema.json"
    assert outcome.problem.message.startswith(("unknown JSON format", "no messages here"))


def test_files_of_one_name_from_two_folders_are_told_apart(tmp_path: Path) -> None:
    paths = [
        write_lines(tmp_path / day / "log.jsonl", *(chat("", "Is it open?", f"Not on {day} {n}.") for n in range(2)))
        for day in ("monday", "tuesday")
    ]
    outcome = read(*paths)
    names = ["monday/log.jsonl", "tuesday/log.jsonl"]
    assert outcome.ids == [f"{name}:{line}" for name in names for line in (1, 2)]
    assert {name: file.conversations for name, file in outcome.report.files.items()} == dict.fromkeys(names, 2)


def test_the_same_file_is_a_problem_when_it_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "README.md", "# How these were recorded\n")
    reading = convoscope.read([path, write_json(tmp_path / "call.json", CHAT)])
    assert [one.id for one in reading] == ["call"]
    assert [str(problem) for problem in reading.report.problems] == [
        "README.md: is not JSON (`convoscope formats` lists what can be read)"
    ]


def test_logs_are_told_by_content_not_by_name(tmp_path: Path) -> None:
    write_lines(tmp_path / "chats.log", chat("one"), chat("two"))
    assert read(tmp_path).ids == ["one", "two"]


def test_runs_of_ours_are_no_logs(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    write_json(tmp_path / "monday" / "receipt.json", {"run_id": "x"})
    write_json(tmp_path / "monday" / "summary.json", CHAT)
    write_json(tmp_path / "tuesday.partial" / "part.json", CHAT)
    write_json(tmp_path / "tuesday.partial" / "journal.jsonl", {"type": "header", "depends_on": {}})
    # Somebody else's folder of such a name is none of ours.
    write_json(tmp_path / "wednesday.partial" / "chat.json", CHAT)
    (tmp_path / "wednesday.partial" / "lock").write_text("of another program")
    outcome = read(tmp_path)
    assert outcome.ids == ["call", "wednesday.partial/chat"]
    assert [name for name, file in outcome.report.files.items() if not file.skipped] == [
        "call.json",
        "wednesday.partial/chat.json",
    ]


def test_a_link_that_leads_nowhere_is_a_problem(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere.json")
    outcome = read(tmp_path)
    assert outcome.ids == ["call"]
    assert outcome.problem.file == "gone.json"


def test_hidden_files_and_folders_are_not_looked_at(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    write_json(tmp_path / ".cache.json", CHAT)
    write_json(tmp_path / ".git" / "chat.json", CHAT)
    assert list(read(tmp_path).report.files) == ["call.json"]


def test_formats_may_be_mixed(tmp_path: Path) -> None:
    write_json(tmp_path / "chat.json", CHAT)
    write_json(tmp_path / "items.json", [{"type": "message", "role": "user", "content": "Open?"}])
    utterance = {"type": "utterance", "seq": 0, "speaker": "u"}
    people = [{"id": "u", "role": "user"}]
    ours = {"schema": "convoscope.conversation/1", "id": "ours", "participants": people, "timeline": [utterance]}
    write_json(tmp_path / "ours.json", ours)
    assert {name: file.format for name, file in read(tmp_path).report.files.items()} == {
        "chat.json": "openai-chat",
        "items.json": "openai-responses",
        "ours.json": "convoscope",
    }


def test_a_missing_path(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file or folder") as caught:
        convoscope.read(tmp_path / "nowhere")
    assert caught.value.file == str(tmp_path / "nowhere")


def test_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(NothingReadable, match="no conversation could be read"):
        list(convoscope.read(tmp_path))


def test_nothing_readable_tells_why(tmp_path: Path) -> None:
    write(tmp_path / "notes.txt", "not a log")
    with pytest.raises(NothingReadable) as caught:
        list(convoscope.read(tmp_path))
    assert "notes.txt: is not JSON" in str(caught.value)
    write(tmp_path / "log.json", '{"messages": [')
    with pytest.raises(NothingReadable) as caught:
        list(convoscope.read(tmp_path))
    assert "log.json:1: JSON is cut off at the end (the JSON must be complete)" in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_without_permission_to_read(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    locked = write_json(tmp_path / "locked.json", CHAT)
    locked.chmod(0)
    outcome = read(tmp_path)
    assert outcome.ids == ["call"]
    assert str(outcome.problem) == "locked.json: cannot be opened: Permission denied (check its permissions)"


def test_a_link_to_nothing_is_passed_over(tmp_path: Path) -> None:
    write_json(tmp_path / "call.json", CHAT)
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere.json")
    assert read(tmp_path).ids == ["call"]


class TestAskedFor:
    def test_a_limit(self, tmp_path: Path) -> None:
        path = write(tmp_path / "log.jsonl", as_lines(chat("one"), chat("two"), chat("three")))
        assert [one.id for one in convoscope.read(path, limit=2)] == ["one", "two"]

    def test_to_be_read_again(self, tmp_path: Path) -> None:
        reading = convoscope.read(write_lines(tmp_path / "log.jsonl", chat("one"), chat("two")))
        assert list(reading) == list(reading)
        assert reading.report.conversations == 2  # what the second reading did, not the sum of both

    def test_a_format(self, tmp_path: Path) -> None:
        path = write_json(tmp_path / "log.json", CHAT)
        assert len(list(convoscope.read(path, format="openai-chat"))) == 1
        with pytest.raises(NothingReadable, match="unknown JSON format"):
            list(convoscope.read(path, format="convoscope"))

    def test_a_format_that_there_is_not(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match="unknown format 'telegraph'") as caught:
            convoscope.read(tmp_path, format="telegraph")
        assert "openai-chat" in caught.value.hint
