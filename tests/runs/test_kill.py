"""A run that is killed at any moment is continued, and comes out to the byte as if nothing had happened."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convoscope import score
from convoscope.runs.run import Run
from support.generated import FEW, write_lines

ROUNDS = int(os.environ.get("CONVOSCOPE_KILLS", "5"))

SCRIPT = f"""
import sys, duckdb
import convoscope.report.page
from convoscope import score
print("begun", flush=True)
score(sys.argv[1], metrics={FEW}, out=sys.argv[2], workers=2, part_bytes=20_000)
"""


def start(logs: Path, out: Path) -> subprocess.Popen[bytes]:
    """A process that has imported what it needs and begins to score."""
    command = [sys.executable, "-c", SCRIPT, str(logs), str(out)]
    process = subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE)
    with process.stdout or open(os.devnull, "rb") as told:
        assert told.readline() == b"begun\n"
    return process


@pytest.fixture(scope="module")
def scored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Run, float]:
    """Logs, an uninterrupted run of them, and how long that took."""
    folder = tmp_path_factory.mktemp("kill")
    logs = write_lines(folder / "chats.jsonl", range(300))
    process = start(logs, folder / "whole")
    began = time.monotonic()
    assert process.wait() == 0
    return logs, Run.open(folder / "whole"), time.monotonic() - began


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_kill_and_resume(round_number: int, scored: tuple[Path, Run, float], tmp_path: Path) -> None:
    logs, whole, seconds = scored
    out = tmp_path / "run"
    # The moments spread over the whole of the run: start, parts, names, summary, renaming, page.
    moment = seconds * (round_number + random.Random(round_number).random()) / ROUNDS
    process = start(logs, out)
    try:
        process.wait(timeout=moment)
    except subprocess.TimeoutExpired:
        # The process alone: its workers must notice by themselves.
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    resumed = score(logs, metrics=FEW, out=out, workers=1, part_bytes=20_000)
    assert (resumed.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()
    assert list(map(str, resumed.scores())) == list(map(str, whole.scores()))
    assert [one.id for one in resumed.conversations()] == [f"chat-{number:05d}" for number in range(300)]
    assert not out.with_name("run.partial").exists()
    # A page is whole or not there, and the same command writes one that is missing.
    assert (resumed.folder / "report.html").read_text().rstrip().endswith("</html>")
    assert {path.name for path in resumed.folder.iterdir()} == {path.name for path in whole.folder.iterdir()}


def test_finished_parts_are_not_computed_again(tmp_path: Path) -> None:
    logs = write_lines(tmp_path / "chats.jsonl", range(300))
    out = tmp_path / "run"
    process = start(logs, out)
    journal = tmp_path / "run.partial" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 3):
        time.sleep(0.002)
    process.kill()
    process.wait()
    if out.exists():
        pytest.skip("the run was finished before it could be killed")
    run = score(logs, metrics=FEW, out=out, workers=1, part_bytes=20_000)
    (said,) = [warning for warning in run.read_report.warnings if warning.startswith("resuming")]
    assert int(said.split()[1]) >= 1
    assert run.summary.conversations == 300
