"""`--readers-from` on the real command: logs of a format of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.command_line import Ended
from support.command_line import convoscope as run_command
from support.engine_checks import CODE

MINE = CODE.replace("NAME", "notes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_notes.py").write_text(MINE)
    (tmp_path / "talk.txt").write_text("user | WHERE IS IT?\nassistant | Here.\n")
    return tmp_path


def command(folder: Path, *arguments: object) -> Ended:
    return run_command(*arguments, cwd=folder)


def test_score(folder: Path) -> None:
    mine = ("--readers-from", "my_notes.py", "--metrics-from", "my_notes.py")
    ended = command(folder, "score", "talk.txt", *mine, "-m", "mine.shouting", "--json")
    assert ended.code == 0
    assert ended.json["summary"]["metrics"][0]["value"] == 1.0
    assert ended.json["read_report"]["files"]["talk.txt"]["why"] == "lines of who | what"


def test_inspect(folder: Path) -> None:
    ended = command(folder, "inspect", "talk.txt", "--readers-from", "my_notes.py")
    assert "talk.txt: notes, lines of who | what" in ended.out


@pytest.mark.parametrize("view", ["trace", "timeline", "metric-context"])
def test_view(view: str, folder: Path) -> None:
    assert "WHERE IS IT?" in command(folder, "view", view, "talk.txt", "--readers-from", "my_notes.py").out


def test_formats(folder: Path) -> None:
    assert "Notes of a talk" in command(folder, "formats", "--readers-from", "my_notes.py").out
    assert "Notes of a talk" not in command(folder, "formats").out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "my_notes.py declares no reader\n  make one: READER = MyReader()"),
        ("1 / 0", "my_notes.py:1: cannot be loaded: ZeroDivisionError: division by zero"),
        (MINE.replace('name = "notes"', 'name = ""'), "my_notes.py: Talks has no name"),
        (MINE.replace('name = "notes"', 'name = "vapi"'), "my_notes.py: a reader named vapi exists already"),
    ],
)
def test_what_cannot_be_used_is_told(text: str, said: str, folder: Path) -> None:
    (folder / "my_notes.py").write_text(text)
    ended = command(folder, "score", "talk.txt", "--readers-from", "my_notes.py")
    assert ended.code == 2
    assert said in ended.err


def test_a_file_that_is_not_there(folder: Path) -> None:
    ended = command(folder, "inspect", "talk.txt", "--readers-from", "nowhere.py")
    assert ended.err.startswith("error: nowhere.py: there is no such file")
