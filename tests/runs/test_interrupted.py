"""Ctrl-C ends in one sentence that says what is kept and how to go on, whatever was being done."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from fsspec import AbstractFileSystem

import convoscope
from convoscope.errors import is_interrupt, raised_inside
from support import warm_process
from support.command_line import convoscope as command
from support.generated import write_lines

PARTS = 12
CHATS = 120
# The real command, in a session of its own. At a certain stage, all processes of it get what Ctrl-C sends.
STOPPED_AT = """
import contextlib, os, signal, sys
os.setsid()
import msgspec
from convoscope.cli.main import main
from convoscope.report import score as road, screen

stage, size = sys.argv[1], int(sys.argv[2])
del sys.argv[1:3]

@contextlib.contextmanager
def stopping():
    def tell(progress):
        if progress.stage == stage and progress.parts in (0, 2):
            os.killpg(0, signal.SIGINT)
    yield tell

screen.progress_bar = stopping
score_with = road.score_with
def in_parts(source, settings, *more):
    return score_with(source, msgspec.structs.replace(settings, part_bytes=size), *more)
road.score_with = in_parts
main()
"""


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(tmp_path_factory.mktemp("logs") / "chats.jsonl", range(CHATS))


@pytest.fixture(scope="module")
def whole(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    """A run of them that nothing interrupts."""
    out = tmp_path_factory.mktemp("whole") / "run"
    return convoscope.score(logs, metrics="turns,calls", out=out, workers=1, part_bytes=part_bytes(logs))


def part_bytes(logs: Path) -> int:
    return logs.stat().st_size // PARTS + 1


def stopped(stage: str, logs: Path, out: Path, workers: int) -> subprocess.CompletedProcess[str]:
    arguments = ["score", str(logs), "--metrics", "turns,calls", "--out", str(out), "--workers", str(workers)]
    script = out.with_name("stopped.py")
    script.write_text(STOPPED_AT)
    return subprocess.run(
        [f"{warm_process.commands()}/python", script, stage, str(part_bytes(logs)), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("stage", "kept"),
    [
        ("scoring", r"\d+ conversations \(2 parts\) are kept in {out}.partial"),
        ("writing", rf"{CHATS} conversations \(\d+ parts\) are kept in {{out}}.partial"),
        ("reducing", rf"{CHATS} conversations \(\d+ parts\) are kept in {{out}}.partial"),
        ("writing the page", "the run is kept in {out}; only its page is missing"),
    ],
)
def test_it_says_what_is_kept_and_how_to_go_on(
    stage: str, kept: str, workers: int, logs: Path, whole: convoscope.Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    ended = stopped(stage, logs, out, workers)
    assert ended.returncode == 130, ended.stderr
    first, second, *more = ended.stderr.splitlines()
    assert re.fullmatch(f"interrupted: {kept.format(out=re.escape(str(out)))}", first)
    go_on = f"convoscope score {logs} --metrics turns,calls --out {out} --workers {workers}"
    assert second == f"  to go on: {go_on}"
    assert (more, ended.stdout) == ([], "")
    # It does go on, to the same end as if nothing had happened.
    resumed = convoscope.score(logs, metrics="turns,calls", out=out, workers=1, part_bytes=part_bytes(logs))
    assert (out / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    assert (out / "report.html").exists()
    assert resumed.summary.conversations == CHATS
    assert not out.with_name("run.partial").exists()


def test_while_it_reads_nothing_is_kept(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "convoscope", "score", str(pipe), "--out", str(tmp_path / "run")],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with pipe.open("w"):  # which is as soon as the command reads
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    go_on = f"convoscope score {pipe} --out {tmp_path / 'run'}"
    assert (out, err) == ("", f"interrupted: nothing was scored yet\n  to go on: {go_on}\n")
    assert [path.name for path in tmp_path.iterdir()] == ["pipe.jsonl"]


def test_a_query_that_is_stopped(whole: convoscope.Run) -> None:
    """The database has an error of its own for it."""
    # It would run for hours: it is stopped inside.
    slow = "SELECT count(*) FROM range(10_000_000) AS t(i), range(10_000_000) AS u(j) WHERE hash(i, j) % 7 = 3"
    script = """
import os, signal, sys, threading, time
from convoscope.cli.main import main
from convoscope.runs import sql
create_views = sql.create_views
def soon(*arguments):
    create_views(*arguments)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
sql.create_views = soon
main()
"""
    ended = subprocess.run(
        [sys.executable, "-c", script, "sql", "--run", str(whole.folder), slow],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "interrupted\n")


def test_a_query_that_takes_too_long(whole: convoscope.Run) -> None:
    slow = "SELECT count(*) FROM range(10_000_000) AS t(i), range(10_000_000) AS u(j) WHERE hash(i, j) % 7 = 3"
    ended = command("sql", "--run", whole.folder, "--timeout", 0.2, slow)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == (
        "error: the query took more than 0.2 seconds, and was stopped\n  ask for less, or allow more with --timeout\n"
    )


def test_an_answer_without_end_is_stopped_while_it_is_fetched(whole: convoscope.Run) -> None:
    ended = command(
        "sql", "--run", whole.folder, "--timeout", 0.2, "SELECT i, repeat('x', 100) FROM range(1_000_000_000) t(i)"
    )
    assert (ended.code, ended.out) == (2, "")
    assert "the query took more than 0.2 seconds" in ended.err


class _Stopped(AbstractFileSystem):
    """A store in which something is raised while the database reads."""

    protocol = "stopped"

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def exists(self, *arguments: object, **options: object) -> bool:
        return True

    def open(self, *arguments: object, **options: object) -> None:
        raise self.error


@pytest.mark.parametrize(
    ("raised", "reason"),
    [
        (KeyboardInterrupt(), "KeyboardInterrupt"),
        (OSError(5, "Input/output error"), "OSError: [Errno 5] Input/output error"),
    ],
)
def test_what_is_raised_inside_of_a_query(raised: BaseException, reason: str) -> None:
    """The database wraps it into an error of its own, whose text may be a traceback."""
    with duckdb.connect() as connection:
        connection.register_filesystem(_Stopped(raised))
        with pytest.raises(duckdb.Error) as caught:
            connection.execute("SELECT * FROM read_parquet(['stopped://x.parquet'])")
        assert raised_inside(caught.value) == reason
        assert is_interrupt(caught.value) == isinstance(raised, KeyboardInterrupt)
        with pytest.raises(duckdb.Error) as own:
            connection.execute("SELECT 'KeyboardInterrupt: '::INTEGER")
        assert not raised_inside(own.value)
        assert not is_interrupt(own.value)
