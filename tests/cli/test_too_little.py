"""A machine that has too little of something: what to do about it, and that nothing done is lost."""

from __future__ import annotations

import json
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import convoscope
from support.generated import write_lines


def score(logs: Path, out: Path, limit: Callable[[], None] | None = None) -> subprocess.CompletedProcess[str]:
    """The command, in a process that is allowed less."""
    # Python itself must write nothing: half a module would be in the way of all that come later.
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run(
        command(logs, out), capture_output=True, text=True, check=False, timeout=120, preexec_fn=limit, env=env
    )


def command(logs: Path, out: Path) -> list[str]:
    arguments = ["score", str(logs), "--metrics", "turns,calls", "--workers", "2", "--out", str(out)]
    return [sys.executable, "-m", "convoscope", *arguments]


def go_on(logs: Path, out: Path) -> str:
    again = shlex.join(["convoscope", *command(logs, out)[3:]])
    return f", and run the same command again, which goes on from there: {again}"


def allow(what: int, amount: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(what, (amount, amount))


class TestRoom:
    @pytest.mark.parametrize("amount", [2_000, 60_000], ids=["parts", "the page"])
    def test_a_disk_that_is_full(self, amount: int, tmp_path: Path) -> None:
        """No file may become larger than so many bytes, which is told as a full disk is."""
        logs, out = write_lines(tmp_path / "chats.jsonl", range(100)), tmp_path / "run"
        ended = score(logs, out, allow(resource.RLIMIT_FSIZE, amount))
        assert ended.returncode == 2
        assert ended.stderr == f"error: there is no more room on the disk\n  free some{go_on(logs, out)}\n"
        assert score(logs, out).returncode == 0
        assert convoscope.Run.open(out).summary.conversations == 100
        assert (out / "report.html").stat().st_size > 60_000
        assert not out.with_name("run.partial").exists()


class TestOpenFiles:
    @pytest.mark.parametrize("amount", [12, 15, 16, 17])
    def test_few_of_them_are_enough_or_a_clear_error(self, amount: int, tmp_path: Path) -> None:
        logs, out = write_lines(tmp_path / "chats.jsonl", range(10)), tmp_path / "run"
        ended = score(logs, out, allow(resource.RLIMIT_NOFILE, amount))
        if ended.returncode:
            hint = "  allow more, for example with `ulimit -n 1024`"
            assert ended.stderr == f"error: too many open files\n{hint}{go_on(logs, out)}\n"
            assert score(logs, out).returncode == 0
        assert convoscope.Run.open(out).summary.conversations == 10

    def test_more_are_asked_for_where_that_is_allowed(self, tmp_path: Path) -> None:
        """Records that are brought together by an id are spread over many files: 40 of 1,000 bytes here."""
        logs = tmp_path / "items.jsonl"
        lines = [{"conversation_id": f"c{number // 2}", "agent_response": "x" * 100} for number in range(300)]
        logs.write_text("".join(json.dumps(line) + "\n" for line in lines))
        script = (
            "import convoscope, resource, sys\n"
            "hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (24, hard))\n"
            "run = convoscope.score(sys.argv[1], metrics='turns', out=sys.argv[2], workers=1, part_bytes=1000)\n"
            "print(run.summary.conversations)\n"
        )
        ended = subprocess.run(
            [sys.executable, "-c", script, str(logs), str(tmp_path / "run")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert (ended.returncode, ended.stdout) == (0, "150\n"), ended.stderr
