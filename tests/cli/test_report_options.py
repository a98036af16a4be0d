"""`report`, and the options that it shares with `score`: targets, JUnit XML, Markdown, exit codes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from command_line import convoscope
from generated import write_lines

MET = "turns > 0"
MISSED = "turns > 100"
UNTOLD = "f1 > 0.5"  # these chats have no ground truth


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs without a ground truth, and a run of them that was scored with a target that it misses: `runs/mine`."""
    folder = tmp_path_factory.mktemp("work")
    write_lines(folder / "chats.jsonl", range(11, 15))
    ended = convoscope("score", "chats.jsonl", "-o", "runs/mine", "--target", MISSED, cwd=folder)
    assert ended.code == 1, ended.err
    return folder


def with_targets(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--target", text)]


def outcomes(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["figure"], one["outcome"], one["source"]) for one in told["targets"]]


class TestScore:
    def test_says_where_the_page_is(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-o", "runs/plain", cwd=work)
        assert (ended.code, ended.err) == (0, "")
        assert "\npage: runs/plain/report.html\n" in ended.out
        assert (work / "runs/plain/report.html").is_file()

    @pytest.mark.parametrize(
        ("targets", "code"),
        [([MET], 0), ([MISSED], 1), ([UNTOLD], 3), ([UNTOLD, MISSED, MET], 1), ([MET, UNTOLD], 3)],
    )
    def test_ends_with_what_the_targets_come_to_again_and_again(
        self, work: Path, targets: list[str], code: int
    ) -> None:
        out = f"runs/score-{'-'.join(targets)}"
        first = convoscope("score", "chats.jsonl", "-o", out, *with_targets(*targets), cwd=work)
        again = convoscope("score", "chats.jsonl", "-o", out, *with_targets(*targets), "--json", cwd=work)
        assert (first.code, again.code) == (code, code)
        assert first.out.count("\ntarget: ") == len(targets)
        assert len(again.json["targets"]) == len(targets)

    def test_a_missed_target_is_said(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-o", "runs/mine", "--target", MISSED, cwd=work)
        assert "target: conversation.turns > 100: missed" in ended.out

    def test_a_typo_fails_before_anything_is_scored(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-o", "runs/typo", "--target", "turn > 1", cwd=work)
        assert ended.code == 2
        assert ended.err.startswith("error: no figure is called 'turn'\n  there is conversation.turns")
        assert not list((work / "runs").glob("typo*"))

    def test_a_place_that_cannot_be_written_fails_before_anything_is_scored(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-o", "runs/place", "--junit", "nowhere/junit.xml", cwd=work)
        assert (ended.code, ended.err.splitlines()[0]) == (
            2,
            "error: cannot write nowhere/junit.xml: there is no folder nowhere",
        )
        assert not list((work / "runs").glob("place*"))

    def test_one_file_cannot_be_two(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "--junit", "same.txt", "--markdown", "./same.txt", cwd=work)
        assert ended.code == 2
        assert "two reports would be written to" in ended.err

    def test_writes_junit_and_markdown_though_a_target_is_missed(self, work: Path) -> None:
        files = ("--junit", "s.xml", "--markdown", "s.md")
        ended = convoscope("score", "chats.jsonl", "-o", "runs/mine", "--target", MISSED, *files, cwd=work)
        assert ended.code == 1
        assert ElementTree.parse(work / "s.xml").getroot().get("failures") == "1"
        assert "**1 target: 1 missed**" in (work / "s.md").read_text()


class TestReport:
    def test_writes_the_page_into_the_run_and_says_how_much_is_in_it(self, work: Path) -> None:
        page = work / "runs/mine/report.html"
        page.unlink(missing_ok=True)
        ended = convoscope("report", "runs/mine", cwd=work)
        size = f"{page.stat().st_size / 1e6:.1f} MB"
        assert ended.out.endswith(f"runs/mine/report.html: {size}, 4 of 4 conversations in full\n")

    def test_or_elsewhere(self, work: Path) -> None:
        told = convoscope("report", "runs/mine", "--out", "page.html", "--conversations", "1", "--json", cwd=work).json
        assert told["page"] == "page.html"
        assert told["bytes"] == (work / "page.html").stat().st_size
        assert (told["conversations"], told["in_full"]) == (4, 1)

    def test_recorded_targets_are_shown_and_change_no_exit_code(self, work: Path) -> None:
        ended = convoscope("report", "runs/mine", "--json", cwd=work)
        assert ended.code == 0
        assert outcomes(ended.json) == [("conversation.turns", "missed", "recorded")]

    @pytest.mark.parametrize(("targets", "code"), [([MET], 0), ([MISSED], 1), ([UNTOLD], 3), ([UNTOLD, MISSED], 1)])
    def test_given_ones_do(self, work: Path, targets: list[str], code: int) -> None:
        assert convoscope("report", "runs/mine", *with_targets(*targets), cwd=work).code == code

    def test_a_given_one_replaces_the_recorded_one(self, work: Path) -> None:
        ended = convoscope("report", "runs/mine", "--target", MET, "--json", cwd=work)
        assert outcomes(ended.json) == [("conversation.turns", "met", "given")]

    def test_writes_junit_and_markdown_with_all_targets(self, work: Path) -> None:
        files = ("--junit", "r.xml", "--markdown", "r.md")
        assert convoscope("report", "runs/mine", "--target", UNTOLD, *files, cwd=work).code == 3
        root = ElementTree.parse(work / "r.xml").getroot()
        assert (root.get("failures"), root.get("errors")) == ("1", "1")
        assert "**2 targets: 1 missed, 1 undetermined**" in (work / "r.md").read_text()

    @pytest.mark.parametrize(
        "options",
        [
            ("--conversations", "-1"),
            ("--max-mb", "0"),
            ("--max-mb", "-2"),
            ("--max-mb", "nan"),
            ("--max-mb", "inf"),
            ("--target", "tools.sucess > 1"),
            ("--target", "success"),
            ("--target", ""),
            ("--out", "nowhere/page.html"),
            ("--out", "runs"),
            ("--junit", "nowhere/junit.xml"),
            ("--markdown", "runs"),
            ("--out", "same", "--markdown", "same"),
            ("--junit", "runs/mine/report.html"),
        ],
    )
    def test_what_makes_no_sense_is_bad_usage_and_writes_nothing(self, work: Path, options: tuple[str, ...]) -> None:
        before = sorted(str(path) for path in work.rglob("*"))
        ended = convoscope("report", "runs/mine", *options, cwd=work)
        assert ended.code == 2
        assert ended.err.startswith("error: ")
        assert sorted(str(path) for path in work.rglob("*")) == before

    def test_a_folder_that_is_no_run_is_bad_usage(self, work: Path) -> None:
        assert convoscope("report", "runs", cwd=work).err.startswith("error: runs is not a run")
        assert convoscope("report", "nowhere", cwd=work).code == 2

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_a_folder_that_may_not_be_written_to_is_said(self, work: Path, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        ended = convoscope("report", "runs/mine", "--junit", tmp_path / "x.xml", cwd=work)
        assert ended.code == 2
        assert "cannot write" in ended.err

    def test_the_options_are_in_the_help(self) -> None:
        told = convoscope("report", "--help", COLUMNS="200").out
        for option in ("--out", "--conversations", "--max-mb", "--target", "--junit", "--markdown", "--json"):
            assert option in told


def test_the_demo_still_works(tmp_path: Path) -> None:
    ended = convoscope("demo", "--json", cwd=tmp_path)
    assert ended.code == 0
    assert json.loads(ended.out)["page"].endswith("/report.html")
