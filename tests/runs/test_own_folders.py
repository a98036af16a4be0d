"""The temporary folders of processes that were killed are removed by the next one, and no others."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from convoscope.storage import OwnFolder

MAKES = """
from convoscope.storage import OwnFolder
folder = OwnFolder()
(folder.path / "run").mkdir()
(folder.path / "run" / "part").write_text("x" * 1000)
print(folder.path, flush=True)
input()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no lock that the system opens")
def test_of_a_process_that_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    other = tmp_path / "convoscope-of-another-kind"
    other.mkdir()
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", MAKES], stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout is not None
        theirs = Path(process.stdout.readline().strip())
        # As long as it lives, its folder stays.
        own = OwnFolder()
        assert sorted(tmp_path.iterdir()) == sorted([other, theirs, own.path])
        process.kill()
        process.wait()
    again = OwnFolder()
    assert sorted(tmp_path.iterdir()) == sorted([other, own.path, again.path])
    own.remove()
    again.remove()
    assert [*tmp_path.iterdir()] == [other]
