"""Metrics that wait, with a real web server that answers after 50 ms: side by side, bounded, nobody asked twice."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmarks import asking
from benchmarks.slow_server import SlowServer, slow_server

import convoscope
from convoscope.runs.make import make_run
from convoscope.runs.partial import AnswerFile

ASKING = Path(asking.__file__)
METRICS = "asking.politeness,conversation.turns"
SCRIPT = "from convoscope.cli.main import main; main()"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowServer]:
    with slow_server() as running:
        monkeypatch.setenv("SLOW_SERVER", str(running.port))
        yield running


def write_chats(folder: Path, count: int) -> Path:
    messages = [{"role": "user", "content": "Where is it?"}, {"role": "assistant", "content": "On its way."}]
    path = folder / "chats.jsonl"
    path.write_text("".join(json.dumps({"id": f"c{number}", "messages": messages}) + "\n" for number in range(count)))
    return path


def start(logs: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", SCRIPT, "score", str(logs), "--metrics-from", str(ASKING), "-m", METRICS]
    command += ["--out", str(out), "--workers", "1", "--at-once", "20"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)


def answers(out: Path) -> list[list[object]]:
    """The whole lines that are written down beside an unfinished run."""
    paths = (out.with_name(f"{out.name}.partial") / "answers").glob("*.jsonl")
    return [json.loads(line) for path in paths for line in path.read_bytes().split(b"\n")[:-1]]


def wait_for_answers(process: subprocess.Popen[bytes], out: Path, count: int) -> None:
    while len(answers(out)) < count:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


def test_many_are_asked_at_once_and_each_once(server: SlowServer, tmp_path: Path) -> None:
    run = make_run(write_chats(tmp_path, 1000), metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "run", workers=1)
    asked = server.asked()
    assert sorted(asked.questions) == sorted(f"c{number}" for number in range(1000))
    assert 1 < asked.most <= 200
    (polite,) = [figure for figure in run.summary.metrics if figure.metric == "asking.politeness"]
    # every answer is 7
    assert (polite.value, polite.samples_measured, polite.judge) == (7.0, 1000, "local/slow@1")


@pytest.mark.parametrize("workers", [1, 2])
def test_no_more_are_in_flight_than_allowed(workers: int, server: SlowServer, tmp_path: Path) -> None:
    logs = write_chats(tmp_path, 60)
    make_run(
        logs,
        metrics=METRICS,
        metrics_from=[ASKING],
        out=tmp_path / "run",
        workers=workers,
        max_concurrency=6,
        part_bytes=logs.stat().st_size // 4,
    )
    assert len(server.asked().questions) == 60
    assert server.asked().most <= 6


def test_a_limit_is_one_for_questions_too(server: SlowServer, tmp_path: Path) -> None:
    logs = write_chats(tmp_path, 100)
    run = make_run(logs, metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "run", workers=1, limit=7)
    assert run.summary.conversations == 7
    assert sorted(server.asked().questions) == [f"c{number}" for number in range(7)]
    assert "only the first 7 conversations were scored; there are more" in run.read_report.warnings


def test_killed_in_the_middle_it_asks_only_for_what_is_missing(server: SlowServer, tmp_path: Path) -> None:
    logs = write_chats(tmp_path, 400)
    whole = make_run(logs, metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "whole", workers=1)
    assert len(server.asked().questions) == 400

    process = start(logs, tmp_path / "run")
    wait_for_answers(process, tmp_path / "run", 100)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    before = server.asked().questions[400:]
    written = {f"c{row}" for row, *_ in answers(tmp_path / "run")}
    assert 100 <= len(written) < 400

    resumed = make_run(
        logs, metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "run", workers=1, max_concurrency=20
    )
    after = server.asked().questions[400 + len(before) :]
    assert len(after) == len(set(after)) == 400 - len(written)
    assert not written & set(after)
    # Asked twice: those whose answers were on their way, at most 20.
    assert len(before) + len(after) <= 400 + 20
    assert summary_bytes(resumed) == summary_bytes(whole)
    assert not (resumed.folder / "answers").exists()


def test_interrupted_by_hand_it_says_so_and_goes_on_later(server: SlowServer, tmp_path: Path) -> None:
    logs = write_chats(tmp_path, 400)
    process = start(logs, tmp_path / "run")
    wait_for_answers(process, tmp_path / "run", 50)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in err
    assert b"never retrieved" not in err
    written = len(answers(tmp_path / "run"))
    assert b"answers of judges and the like are kept in" in err
    assert b"nothing was scored yet" not in err
    before = len(server.asked().questions)
    make_run(logs, metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "run", workers=1)
    assert len(server.asked().questions) - before == 400 - written


def test_what_went_wrong_is_an_error_of_the_metric_and_tried_again(tmp_path: Path) -> None:
    with slow_server() as gone:
        port = gone.port
    os.environ["SLOW_SERVER"] = str(port)
    try:
        run = make_run(write_chats(tmp_path, 3), metrics=METRICS, metrics_from=[ASKING], out=tmp_path / "run")
    finally:
        del os.environ["SLOW_SERVER"]
    found = [score for score in run.scores() if score.metric == "asking.politeness"]
    assert [(one.status, one.reason) for one in found] == [("error", "metric_raised")] * 3
    assert all("Connect call failed" in one.observation.detail for one in found)
    file = keep_all(AnswerFile(tmp_path, "a"), (0, "asking.politeness", [found[0].observation]))
    assert not file.path.exists()


def test_an_answer_that_was_cut_is_asked_for_again(tmp_path: Path) -> None:
    from convoscope.metrics import WHOLE, measured

    kept = [measured(WHOLE, 0.1, judge="a/b@c", details={"why": "wörter", "n": [1, None]})]
    file = keep_all(AnswerFile(tmp_path, "b"), (5, "x.y", kept), (6, "x.y", kept))
    whole = file.path.read_bytes()
    file.path.write_bytes(whole[:-4])
    again = AnswerFile(tmp_path, "b")
    assert again.get(5, "x.y") == tuple(kept)
    assert again.get(6, "x.y") is None
    assert again.get(5, "x.z") is None
    keep_all(again, (6, "x.y", kept))
    assert file.path.read_bytes() == whole


def keep_all(file: AnswerFile, *answers: Any) -> AnswerFile:
    async def keep() -> None:
        for answer in answers:
            file.keep(*answer)

    asyncio.run(keep())
    file.close()
    return file


def summary_bytes(run: convoscope.Run) -> bytes:
    return (run.folder / "summary.json").read_bytes()
