"""No text makes an expression or a function of ours slower than its length."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("what", ["patterns", "functions"])
def test_100_000_hostile_characters_come_to_an_end(what: str) -> None:
    script = Path(__file__).parent / "support" / "hostile_texts.py"
    ended = subprocess.run([sys.executable, script, what], capture_output=True, text=True, check=False)
    lines = ended.stdout.splitlines()
    assert lines[-1] == "done", f"{lines[-1]} {ended.stderr}"
    assert len(lines) > 500
