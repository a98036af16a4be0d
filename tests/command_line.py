"""Runs the real command in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple


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
    command = [sys.executable, "-c", "from convoscope.cli.main import main; main()", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False
    )
    assert "Traceback" not in done.stderr, done.stderr
    return Ended(done.returncode, done.stdout, done.stderr)
