"""`convoscope history` on the command line: terminal, JSON, page and picture."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

import convoscope
from support.command_line import convoscope as command
from support.nightly import FIRST, make_night, write_night

HOSTILE = "<img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of twelve days; from the seventh on, nearly all chats fail, with a version of a hostile name."""
    folder = tmp_path_factory.mktemp("history")
    chats = [
        one
        for index in range(12)
        for one in make_night(
            FIRST + timedelta(days=index),
            index,
            count=40,
            share=0.9 if index < 6 else 0.1,
            wait=1.0,
            versions={"v1": 1} if index < 6 else {HOSTILE: 1},
        )
    ]
    file = write_night(folder / "logs", FIRST, chats)
    metrics = ["outcome.success", "timing.response_latency"]
    convoscope.score(file, out=folder / "runs" / "autumn", metrics=metrics, label="resolved")
    return folder


def test_the_answer_first_and_the_next_command_last(folder: Path) -> None:
    ended = command("history", "runs/autumn", "--by", "day", "--target", "success >= 80%", cwd=folder)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert "of the chats reach their goal since 24 Oct, " in lines[0]
    assert lines[0].endswith("points fewer than before.")
    assert lines[-2:] == ["page  runs/autumn/history.html", "next  convoscope runs show runs/autumn"]
    assert all(len(line) <= 80 for line in lines)
    assert "\x1b" not in ended.out
    assert "below 80 %" in ended.out


def test_json_has_what_the_terminal_says(folder: Path) -> None:
    made = command("history", "runs/autumn", "--by", "day", "--json", cwd=folder).json
    goal = next(one for one in made["figures"] if one["name"] == "outcome.success")
    assert len(made["nights"]) == len(goal["nights"]) == 12
    (change,) = goal["changes"]
    assert (change["date"], change["direction"], change["night"]) == ("2026-10-24", "worse", 6)
    assert goal["levels"][-1]["low"] < change["now"] < goal["levels"][-1]["high"]
    assert made["changes"][0]["figures"] == ["outcome.success"]


def test_the_page_and_the_picture_hold_no_markup_of_the_log(folder: Path, tmp_path: Path) -> None:
    page, picture = tmp_path / "h.html", tmp_path / "h.svg"
    ended = command(
        "history",
        "runs/autumn",
        "--by",
        "day",
        "--out",
        page,
        "--plot",
        picture,
        "--figure",
        "outcome.success",
        cwd=folder,
    )
    assert ended.out.splitlines()[-1] == f"wrote {picture}"
    for file in (page, picture):
        text = file.read_text()
        assert "<img" not in text
        assert "&lt;img src=x" in text
        assert "\x1b" not in text
    assert "default-src 'none'; script-src 'sha256-" in page.read_text().replace("&#x27;", "'")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none"], "there is no folder none"),
        (["runs/autumn", "--by", "week"], "a history is by run or by day, not by 'week'"),
        (["runs/autumn", "--figure", "x"], "--figure names what is drawn"),
        (["runs/autumn", "--plot", "x.gif"], "a plot is a file that ends in .svg or .png"),
        (["runs/autumn", "--plot", "x.svg", "--figure", "x"], "the history has no figure 'x'"),
    ],
)
def test_bad_usage(folder: Path, arguments: list[str], words: str) -> None:
    ended = command("history", *arguments, cwd=folder)
    assert ended.code == 2
    assert words in ended.err
