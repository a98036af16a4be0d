"""`report`, and the options that it shares with `score`: targets, JUnit XML, Markdown, exit codes."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from convoscope.runs.make import make_run as score
from support.command_line import Ended, convoscope, run
from support.generated import write_lines

MET = "turns > 0"
MISSED = "turns > 100"
FEW = "turns,f1,repetition,tools.calls"
UNTOLD = "f1 > 0.5"  # these chats have no ground truth


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Logs without a ground truth, and two runs of them: `runs/free`, and `runs/mine` with a target that it misses."""
    folder = tmp_path_factory.mktemp("work")
    write_lines(folder / "chats.jsonl", range(11, 15))
    ended = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/mine", "--target", MISSED, cwd=folder)
    assert ended.code == 1, ended.err
    assert convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/free", cwd=folder).code == 0
    return folder


def with_targets(*texts: str) -> list[str]:
    return [part for text in texts for part in ("--target", text)]


def outcomes(told: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["figure"], one["outcome"], one["source"]) for one in told["targets"]]


class TestScore:
    def test_says_where_the_page_is(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/plain", cwd=work)
        assert (ended.code, ended.err) == (0, "")
        assert "\npage  runs/plain/report.html\n" in ended.out
        assert (work / "runs/plain/report.html").is_file()

    @pytest.mark.parametrize(
        ("targets", "code"),
        [([MET], 0), ([UNTOLD, MISSED, MET], 1), ([MET, UNTOLD], 3)],
    )
    def test_ends_with_what_the_targets_come_to_again_and_again(
        self, work: Path, targets: list[str], code: int
    ) -> None:
        out = f"runs/score-{'-'.join(targets)}"
        first = convoscope("score", "chats.jsonl", "-m", FEW, "-o", out, *with_targets(*targets), "--full", cwd=work)
        again = convoscope("score", "chats.jsonl", "-m", FEW, "-o", out, *with_targets(*targets), "--json", cwd=work)
        assert (first.code, again.code) == (code, code)
        assert first.out.count("\ntarget: ") == len(targets)
        assert len(again.json["targets"]) == len(targets)

    def test_a_missed_target_is_said(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/mine", "--target", MISSED, cwd=work)
        assert any(line.endswith("missed: > 100") for line in ended.out.splitlines())

    def test_a_typo_fails_before_anything_is_scored(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/typo", "--target", "turn > 1", cwd=work)
        assert ended.code == 2
        assert ended.err.startswith("error: no figure is called 'turn'\n  did you mean conversation.turns")
        assert not list((work / "runs").glob("typo*"))

    def test_a_place_that_cannot_be_written_fails_before_anything_is_scored(self, work: Path) -> None:
        ended = convoscope(
            "score", "chats.jsonl", "-m", FEW, "-o", "runs/place", "--junit", "nowhere/junit.xml", cwd=work
        )
        assert (ended.code, ended.err.splitlines()[0]) == (
            2,
            "error: cannot write nowhere/junit.xml: there is no folder nowhere",
        )
        assert not list((work / "runs").glob("place*"))

    def test_one_file_cannot_be_two(self, work: Path) -> None:
        ended = convoscope("score", "chats.jsonl", "--junit", "same.txt", "--markdown", "./same.txt", cwd=work)
        assert ended.code == 2
        assert "two reports have the same file" in ended.err

    def test_writes_junit_and_markdown_though_a_target_is_missed(self, work: Path) -> None:
        files = ("--junit", "s.xml", "--markdown", "s.md")
        ended = convoscope("score", "chats.jsonl", "-m", FEW, "-o", "runs/mine", "--target", MISSED, *files, cwd=work)
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

    def test_recorded_targets_count(self, work: Path) -> None:
        ended = convoscope("report", "runs/mine", "--json", cwd=work)
        assert ended.code == 1
        assert outcomes(ended.json) == [("conversation.turns", "missed", "recorded")]

    @pytest.mark.parametrize(
        ("targets", "code"),
        [([], 0), ([MET], 0), ([MISSED], 1), ([UNTOLD], 3), ([UNTOLD, MISSED], 1), ([MET, UNTOLD], 3)],
    )
    def test_given_ones_count(self, work: Path, targets: list[str], code: int) -> None:
        assert convoscope("report", "runs/free", *with_targets(*targets), cwd=work).code == code

    @pytest.mark.parametrize(
        ("targets", "code"),
        [
            # the recorded one is over turns, too, and gives way
            ([MET], 0),
            # but not to one over another figure: it is missed, which weighs more than what nobody can tell
            ([UNTOLD], 1),
            (["repetition >= 0%"], 1),
            ([MET, UNTOLD], 3),
        ],
    )
    def test_both_count_together(self, work: Path, targets: list[str], code: int) -> None:
        assert convoscope("report", "runs/mine", *with_targets(*targets), cwd=work).code == code

    def test_a_given_one_replaces_the_recorded_one(self, work: Path) -> None:
        ended = convoscope("report", "runs/mine", "--target", MET, "--json", cwd=work)
        assert outcomes(ended.json) == [("conversation.turns", "met", "given")]

    def test_writes_junit_and_markdown_with_all_targets(self, work: Path) -> None:
        files = ("--junit", "r.xml", "--markdown", "r.md")
        assert convoscope("report", "runs/mine", "--target", UNTOLD, *files, cwd=work).code == 1
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


@pytest.fixture(scope="module")
def invalid(work: Path) -> Path:
    """Beside the others, `runs/invalid` without a target and `runs/invalid-mine` with one that it misses."""
    for name in ("free", "mine"):
        other = "runs/invalid" if name == "free" else "runs/invalid-mine"
        shutil.copytree(work / "runs" / name, work / other)
        assert convoscope("runs", "invalidate", other, "--reason", "wrong logs", cwd=work).code == 0
    return work


class TestAnInvalidRun:
    @pytest.mark.parametrize(
        ("run", "targets", "code"),
        [
            ("runs/invalid", [], 0),  # nobody asked for anything
            ("runs/invalid", [MET], 3),  # numbers that are not to be relied on meet nothing
            ("runs/invalid", [UNTOLD], 3),
            ("runs/invalid", [MET, MISSED], 1),
            ("runs/invalid-mine", [], 1),
            ("runs/invalid-mine", [MET], 3),
        ],
    )
    def test_meets_no_target(self, invalid: Path, run: str, targets: list[str], code: int) -> None:
        assert convoscope("report", run, *with_targets(*targets), cwd=invalid).code == code


THEIRS = '''
from convoscope.metrics import CONVERSATION, COUNT, LOWER, Target, measured, metric


@metric("theirs.ones", version=1, observes=CONVERSATION, unit=COUNT, better=LOWER, target=Target("<", 1))
def ones(conversation):
    """Is one less than one?"""
    return measured(conversation, 1)
'''


@pytest.fixture(scope="module")
def theirs(work: Path) -> Path:
    """A metric of somebody else's, in `theirs.py`, that declares a target for itself and always misses it."""
    (work / "theirs.py").write_text(THEIRS)
    return work


class TestWhatAMetricDeclares:
    LINE = "target: theirs.ones < 1: missed, but there is no interval (1{whose})"

    def score(self, work: Path, *arguments: object) -> Ended:
        with_theirs = ("-m", "turns,ones", "--metrics-from", "theirs.py")
        return convoscope("score", "chats.jsonl", *with_theirs, *arguments, "--full", cwd=work)

    def test_is_shown_as_such_and_is_nobodys_demand(self, theirs: Path) -> None:
        scored = self.score(theirs, "-o", "runs/declared")
        told = convoscope("report", "runs/declared", cwd=theirs)
        for ended in (scored, told):
            assert ended.code == 0, ended.err
            assert self.LINE.format(whose=", declared by the metric") in ended.out.splitlines()

    def test_is_nobodys_demand_beside_what_a_user_wants(self, theirs: Path) -> None:
        ended = self.score(theirs, "-o", "runs/beside", "--target", MET)
        assert ended.code == 0
        lines = [line for line in ended.out.splitlines() if line.startswith("target: ")]
        assert len(lines) == 2
        assert [", declared by the metric" in line for line in lines] == [False, True]

    def test_until_the_user_wants_it_too(self, theirs: Path) -> None:
        ended = self.score(theirs, "-o", "runs/wanted", "--target", "ones < 1")
        assert ended.code == 1
        assert [line for line in ended.out.splitlines() if line.startswith("target: ")] == [self.LINE.format(whose="")]

    def test_nor_is_it_one_of_an_invalid_run(self, theirs: Path) -> None:
        assert self.score(theirs, "-o", "runs/undone").code == 0
        assert convoscope("runs", "invalidate", "runs/undone", "--reason", "wrong", cwd=theirs).code == 0
        assert convoscope("report", "runs/undone", cwd=theirs).code == 0


def missing(file: Path) -> None:
    file.unlink()


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


class TestADamagedRun:
    @pytest.mark.parametrize("harm", [missing, cut, empty])
    @pytest.mark.parametrize("command", [("report",), ("show", "chat-00011")], ids=lambda command: command[0])
    @pytest.mark.parametrize("table", ["scores", "conversation_scores", "conversations"])
    def test_ends_with_a_sentence_that_names_the_file(
        self, work: Path, tmp_path: Path, table: str, command: tuple[str, ...], harm: Callable[[Path], None]
    ) -> None:
        shutil.copytree(work / "runs" / "free", tmp_path / "run")
        harm(tmp_path / "run" / f"{table}.parquet" / "part-000000.parquet")
        name, *rest = command
        ended = convoscope(name, "run", *rest, cwd=tmp_path)
        assert (ended.code, ended.out) == (2, "")
        first = ended.err.splitlines()[0]
        assert "is missing: the run is not whole" in first or first.startswith(
            "error: a file of the run cannot be read: "
        )
        assert f"{table}.parquet/part-000000.parquet" in first
        assert "bug in convoscope" not in ended.err

    def test_and_nothing_but_that_and_a_hint(self, work: Path, tmp_path: Path) -> None:
        shutil.copytree(work / "runs" / "free", tmp_path / "run")
        missing(tmp_path / "run" / "scores.parquet" / "part-000000.parquet")
        error, hint = convoscope("report", "run", cwd=tmp_path).err.splitlines()
        assert error.startswith("error: ")
        assert hint == "  score the logs again, into another folder"

    @pytest.mark.parametrize("table", ["scores", "conversation_scores", "conversations"])
    def test_a_missing_part_of_several_is_missed(self, tmp_path: Path, table: str) -> None:
        logs = write_lines(tmp_path / "chats.jsonl", range(40))
        run = score(logs, metrics=["turns"], out=tmp_path / "run", workers=1, part_bytes=8000)
        last = max(number for number, count in enumerate(run.receipt.parts) if count)
        assert last > 0
        missing(run.folder / f"{table}.parquet" / f"part-{last:06d}.parquet")
        ended = convoscope("report", "run", cwd=tmp_path)
        assert (ended.code, ended.out) == (2, "")
        assert f"{table}.parquet/part-{last:06d}.parquet" in ended.err.splitlines()[0]


def redirected(into: Path, mode: str, *arguments: str, cwd: Path) -> str:
    """What is in the file after `convoscope ARGUMENTS > into`, or `>>` for the mode `a`."""
    with into.open(f"{mode}b") as stream, open(os.devnull, "r+b") as nothing:
        assert run(arguments, cwd=cwd, streams=(nothing, stream, nothing)) == 0
    return into.read_text()


class TestStandardOutput:
    REPORT = ("report", "runs/free", "--markdown")

    @pytest.mark.parametrize("stream", ["/dev/stdout", "/dev/fd/1"])
    def test_is_written_to_and_never_replaced(self, work: Path, tmp_path: Path, stream: str) -> None:
        log = tmp_path / "log.txt"
        log.write_text("what was there before\n")
        before = log.stat().st_ino
        first, title, *_, last = redirected(log, "a", *self.REPORT, stream, cwd=work).splitlines()
        assert first == "what was there before"
        assert title == "## Convoscope: `free`"
        assert last.endswith("4 of 4 conversations in full")
        assert log.stat().st_ino == before

    def test_both_reports_may_go_there_one_after_the_other(self, work: Path, tmp_path: Path) -> None:
        text = redirected(tmp_path / "log.txt", "a", *self.REPORT, "/dev/stdout", "--junit", "/dev/stdout", cwd=work)
        assert text.count("## Convoscope: `free`") == text.count("<testsuites ") == 1

    @pytest.mark.parametrize("name", ["/dev/stdout", "-"])
    def test_a_pipe_gets_it_too(self, work: Path, name: str) -> None:
        lines = convoscope(*self.REPORT, name, cwd=work).out.splitlines()
        assert not (work / "-").exists()
        assert lines[0] == "## Convoscope: `free`"
        assert lines[-1].endswith("4 of 4 conversations in full")

    def test_a_file_that_it_leads_to_holds_all_of_it(self, work: Path, tmp_path: Path) -> None:
        lines = redirected(tmp_path / "log.txt", "w", *self.REPORT, "/dev/stdout", cwd=work).splitlines()
        assert lines[0] == "## Convoscope: `free`"
        assert lines[-1].endswith("4 of 4 conversations in full")


class TestAPageThatDoesNotFit:
    def test_is_bad_usage_and_says_what_is_needed(self, work: Path) -> None:
        ended = convoscope("report", "runs/free", "--out", "small.html", "--max-mb", "0.001", cwd=work)
        error, hint = ended.err.splitlines()
        assert (ended.code, error) == (2, "error: the page does not fit into 0.001 MB")
        assert re.fullmatch(r"  without a conversation it takes 0\.\d\d MB; raise --max-mb", hint)
        assert not (work / "small.html").exists()
