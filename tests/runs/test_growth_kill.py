"""A run that grows and is killed at any moment is the old run or the new one, and grows when asked again."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from convoscope.runs.make import make_run as score
from convoscope.runs.run import Run
from support.generated import FEW, chat

ROUNDS = int(os.environ.get("CONVOSCOPE_KILLS", "4"))
SCRIPT = f"""
import sys, duckdb
from convoscope.runs.make import make_run
import convoscope.runs.summarise, convoscope.scoring.partition
print("begun", flush=True)
make_run(sys.argv[1], metrics={FEW}, out=sys.argv[2], workers=1, part_bytes=20_000)
"""


def start(logs: Path, out: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(logs), str(out)], stdout=subprocess.PIPE)
    with process.stdout or open(os.devnull, "rb") as output:
        assert output.readline() == b"begun\n"
    return process


def add(logs: Path, name: str, numbers: range) -> None:
    with (logs / name).open("a") as stream:
        stream.writelines(json.dumps(chat(number)) + "\n" for number in numbers)


def scored(logs: Path, out: Path) -> Run:
    return score(logs, metrics=FEW, out=out, workers=1, part_bytes=20_000)


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes, bytes, float]:
    """A folder with logs that grew and a run from before; its summary, that of one run, and how long it takes."""
    folder = tmp_path_factory.mktemp("growing")
    (folder / "logs").mkdir()
    add(folder / "logs", "b.jsonl", range(60))
    old = (scored(folder / "logs", folder / "run").folder / "summary.json").read_bytes()
    add(folder / "logs", "b.jsonl", range(60, 120))
    add(folder / "logs", "a.jsonl", range(120, 200))
    new = (scored(folder / "logs", folder / "whole").folder / "summary.json").read_bytes()
    shutil.copytree(folder / "run", folder / "timed")
    process = start(folder / "logs", folder / "timed")
    began = time.monotonic()
    assert process.wait() == 0
    return folder, old, new, time.monotonic() - began


@pytest.mark.parametrize("number", range(ROUNDS))
def test_killed_while_it_grows(number: int, before: tuple[Path, bytes, bytes, float], tmp_path: Path) -> None:
    folder, old, new, seconds = before
    out = tmp_path / "run"
    shutil.copytree(folder / "run", out)
    # The first half of the moments lies anywhere; the others near the end, where files are exchanged.
    begin, end = (0.0, 1.0) if number % 2 else (0.7, 1.1)
    process = start(folder / "logs", out)
    try:
        process.wait(timeout=seconds * (begin + (end - begin) * random.Random(number).random()))
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    run = Run.open(out)
    summary = run.tables.own("summary.json").read_bytes()
    assert summary in (old, new)
    ids = [one.id for one in run.conversations()]
    assert len(ids) == len(set(ids)) == run.summary.conversations == (60 if summary == old else 200)
    assert len(run.conversation_scores(all=True)) == len(ids) * len(FEW)
    grown = scored(folder / "logs", out)
    assert (out / "summary.json").read_bytes() == new
    assert sorted(one.id for one in grown.conversations()) == [f"chat-{number:05d}" for number in range(200)]
    # Nothing of the killed one is left: parts that no run names, or an unfinished folder.
    for table in ("scores", "conversations", "conversation_scores"):
        names = {path.name for path in (out / f"{table}.parquet").iterdir()}
        assert names == {f"part-{part:06d}.parquet" for part in grown.tables.order}
    assert not (out / ".partial").exists()


def test_two_processes_that_add_to_one_run(before: tuple[Path, bytes, bytes, float], tmp_path: Path) -> None:
    folder, _, new, _ = before
    out = tmp_path / "run"
    shutil.copytree(folder / "run", out)
    processes = [start(folder / "logs", out) for _ in range(2)]
    codes = [process.wait() for process in processes]
    # Each of them ends well, or says that another one is writing.
    assert 0 in codes
    assert (out / "summary.json").read_bytes() == new
    assert Run.open(out).receipt.generation == 1


def test_a_disk_that_fills_up_leaves_the_run(
    before: tuple[Path, bytes, bytes, float], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, old, new, _ = before
    out = tmp_path / "run"
    shutil.copytree(folder / "run", out)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("convoscope.runs.make.write_summary", full)
        with pytest.raises(OSError, match="No space left"):
            scored(folder / "logs", out)
    assert Run.open(out).tables.own("summary.json").read_bytes() == old
    scored(folder / "logs", out)
    assert (out / "summary.json").read_bytes() == new
