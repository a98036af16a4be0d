"""Runs the real command in a process of its own."""

from __future__ import annotations

import gc
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import IO, Any, NamedTuple

from convoscope.cli.main import main
from support import warm_process


class Ended(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def convoscope(*arguments: object, cwd: Path | None = None, **environment: str) -> Ended:
    """`convoscope ARGUMENTS`, with no terminal."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, open(os.devnull, "rb") as nothing:
        code = run(arguments, cwd=cwd, streams=(nothing, out, err), **environment)
        ended = Ended(code, *(_text(stream) for stream in (out, err)))
    assert "Traceback" not in ended.err, ended.err
    return ended


def convoscope_here(*arguments: object) -> Ended:
    """The same inside of this process, which need not prepare what is used first.

    For tests of what a command prints and writes: the process and its streams have tests of their own.
    """
    out, err = io.StringIO(), io.StringIO()
    argv, thresholds = sys.argv, gc.get_threshold()
    sys.argv = ["convoscope", *map(str, arguments)]
    code: object = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main()
    except SystemExit as end:
        code = end.code
    finally:
        sys.argv = argv
        gc.set_threshold(*thresholds)
    return Ended(int(code or 0), out.getvalue(), err.getvalue())  # type: ignore[call-overload]


def run(arguments: Sequence[object], *, cwd: Path | None, streams: Sequence[IO[bytes]], **environment: str) -> int:
    """The command on three streams."""
    env = {**os.environ, **environment}
    if any(name.startswith("PYTHON") for name in environment):
        # Python reads these when it starts.
        command = [sys.executable, "-c", "from convoscope.cli.main import main; main()", *map(str, arguments)]
        stdin, stdout, stderr = streams
        return subprocess.run(
            command, cwd=cwd, env=env, stdin=stdin, stdout=stdout, stderr=stderr, timeout=120, check=False
        ).returncode
    numbers = [stream.fileno() for stream in streams]
    return warm_process.run("convoscope", arguments, cwd=cwd or Path.cwd(), env=env, streams=numbers)


def _text(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()
