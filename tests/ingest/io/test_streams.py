"""What can be read only once: standard input, pipes, and what a shell substitutes."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import convoscope
from support import warm_process
from support.logs import as_lines, chat, read

LINES = as_lines(chat("one"), chat("two")).encode()
CALL = f"{sys.executable} -m convoscope"


def shell(script: str, given: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    # Arguments are files that a shell makes: bash, for it can substitute processes.
    return subprocess.run(["bash", "-c", script], input=given, capture_output=True, check=False, timeout=120, cwd=cwd)


@pytest.mark.parametrize("path", ["-", "/dev/stdin", "<(cat)"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_every_command_that_reads_logs(path: str, pack: type[bytes], tmp_path: Path) -> None:
    given = pack(LINES)
    # A process that is forked from another has the streams of the shell, but not what the shell substitutes.
    call = CALL if path == "<(cat)" else f"{warm_process.commands()}/convoscope"
    seen = shell(f"{call} inspect {path}", given)
    assert b"read 2 conversations from 1 file (openai-chat)" in seen.stdout, seen.stderr
    shown = shell(f"{call} view trace {path} --id two", given)
    assert b"two  turns by exchange" in shown.stdout, shown.stderr
    scored = shell(f"{call} score {path} --metrics turns --workers 2 --out run", given, tmp_path)
    assert scored.returncode == 0, scored.stderr
    run = convoscope.Run.open(tmp_path / "run")
    assert [one.id for one in run.conversations()] == ["one", "two"]
    names = [one.name for one in run.receipt.inputs]
    assert names == (["stdin"] if path != "<(cat)" else [os.path.basename(names[0])])


def test_a_file_as_standard_input(tmp_path: Path) -> None:
    """Another process, which a worker is, has another standard input."""
    (tmp_path / "log").write_bytes(LINES)
    ended = shell(f"{CALL} score /dev/stdin --metrics turns --workers 2 --out run < log", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert convoscope.Run.open(tmp_path / "run").summary.conversations == 2


def test_the_same_from_standard_input_and_from_a_pipe_of_that_name_is_the_same_run(tmp_path: Path) -> None:
    assert shell(f"{CALL} score - --metrics turns", LINES, tmp_path).returncode == 0
    os.mkfifo(tmp_path / "stdin")
    script = f"exec 3<&0; cat <&3 > stdin & {CALL} score stdin --metrics turns"
    assert shell(script, LINES, tmp_path).returncode == 0
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_a_pipe_goes_by_its_name_and_is_read_beside_files(tmp_path: Path) -> None:
    pipe, file = tmp_path / "pipe.jsonl", tmp_path / "file.jsonl"
    os.mkfifo(pipe)
    file.write_text(as_lines({"messages": chat("x")["messages"]}))
    writer = threading.Thread(target=pipe.write_bytes, args=(as_lines({"messages": chat("x")["messages"]}).encode(),))
    writer.start()
    outcome = read(pipe, file)
    writer.join()
    assert outcome.ids == ["file", "pipe"]
    assert list(outcome.report.files) == ["file.jsonl", "pipe.jsonl"]


def test_nothing_on_standard_input() -> None:
    ended = shell(f"{CALL} inspect -")
    assert ended.returncode == 2
    assert b"stdin: is empty" in ended.stderr


def test_no_standard_input_at_all() -> None:
    ended = shell(f"{CALL} inspect - <&-")
    assert (ended.returncode, ended.stderr) == (2, b"error: standard input: cannot be read: Bad file descriptor\n")
