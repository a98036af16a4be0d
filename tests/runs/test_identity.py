"""A run is reused only by the very code that made it: whatever could change a number makes another run."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import convoscope
from support.generated import write_lines

OURS = Path(convoscope.__file__).parent
DEPENDS_ON = ["input", "metrics", "settings", "sources", "version"]


class Change(NamedTuple):
    """One edit of the code, and what an existing run says of it; nothing where it does not matter."""

    file: str
    old: str
    new: str
    changed: str


CHANGES = {
    "rows of states": Change("views/flow/state_rows.py", "divmod(95 *", "divmod(50 *", "metrics, sources changed"),
    "a reader": Change("ingest/formats/openai/chat.py", "Detection(0.9,", "Detection(0.8,", "sources changed"),
    "the version": Change("__init__.py", '__version__ = "', '__version__ = "9', "version, sources changed"),
    "what is only shown": Change("report/screen.py", '"""', '"""Now: ', ""),
}


COMMANDS = """
import contextlib, io, json, sys
from convoscope.cli.main import main
ended = []
for sys.argv in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code or 0
    ended.append((code, err.getvalue()))
print(json.dumps(ended))
"""


class Ended(NamedTuple):
    """How a command ended, and what it wrote to the error stream."""

    code: int
    err: str


class Code:
    """A copy of the package that can be changed."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "convoscope"
        shutil.copytree(OURS, self.root)

    def edit(self, change: Change) -> None:
        file = self.root / change.file
        text = file.read_text()
        assert change.old in text, f"{change.file} was rewritten: name another line of it"
        file.write_text(text.replace(change.old, change.new, 1))

    def score(self, logs: Path, *each: Sequence[str], cwd: Path) -> list[Ended]:
        """`convoscope score LOGS --metrics turns OPTIONS` with each of these options, one after the other."""
        commands = [["convoscope", "score", str(logs), "--metrics", "turns", *options] for options in each]
        env = {**os.environ, "PYTHONPATH": str(self.root.parent)}
        ended = subprocess.run(
            [sys.executable, "-c", COMMANDS, json.dumps(commands)],
            cwd=cwd,
            env=env,
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        return [Ended(*one) for one in json.loads(ended.stdout)]


class Before(NamedTuple):
    """What was there before the change: the logs, and the folder with a run of them."""

    logs: Path
    folder: Path


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> Before:
    """The logs scored twice by the code as it is: into a folder that was named, and into one that was not."""
    folder = tmp_path_factory.mktemp("before")
    logs = write_lines(folder / "chats.jsonl", range(6))
    code = Code(folder / "code")
    for ended in code.score(logs, [], ["--out", "mine"], cwd=folder):
        assert ended.code == 0, ended.err
    assert len(list((folder / "runs").iterdir())) == 1
    return Before(logs, folder)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_could_change_a_number_makes_another_run(change: Change, before: Before, tmp_path: Path) -> None:
    for name in ("runs", "mine"):
        shutil.copytree(before.folder / name, tmp_path / name)
    (first,) = (tmp_path / "runs").iterdir()
    code = Code(tmp_path / "code")
    code.edit(change)
    again, elsewhere = code.score(before.logs, ["--out", "mine"], [], cwd=tmp_path)
    assert elsewhere.code == 0, elsewhere.err
    made = sorted(path.name for path in (tmp_path / "runs").iterdir())
    if change.changed:
        assert again.code == 2
        assert f"mine holds another run: {change.changed}" in re.sub(r"\s+", " ", again.err)
        assert len(made) == 2
    else:
        assert again.code == 0, again.err
        assert made == [first.name]


def test_the_receipt_says_what_a_run_depends_on(before: Before) -> None:
    receipt = json.loads((before.folder / "mine" / "receipt.json").read_text())
    assert receipt["schema"] == "convoscope.receipt/2"
    assert sorted(receipt["depends_on"]) == DEPENDS_ON
    assert receipt["depends_on"]["version"] == convoscope.__version__
    assert receipt["depends_on"]["input"] == receipt["input_hash"]
    assert receipt["depends_on"]["settings"] == receipt["config_hash"]
    assert receipt["parts"] == [6]


def test_it_says_what_took_how_long(before: Before) -> None:
    receipt = json.loads((before.folder / "mine" / "receipt.json").read_text())
    # No conversation tells of states, so that there is nothing to audit.
    assert sorted(receipt["timings"]) == [
        "annotating",
        "encoding",
        "finishing",
        "metrics",
        "reading",
        "reducing",
        "writing",
    ]
    assert receipt["audit"] == {}


def test_an_unfinished_run_of_other_code_starts_afresh(before: Before, tmp_path: Path) -> None:
    # As a kill leaves it: a lock, and the journal of what it depended on.
    partial = tmp_path / "mine.partial"
    partial.mkdir()
    (partial / "lock").touch()
    depends_on = json.loads((before.folder / "mine" / "receipt.json").read_text())["depends_on"]
    header = {"type": "header", "depends_on": {**depends_on, "sources": "sha256:other"}}
    (partial / "journal.jsonl").write_text(json.dumps(header) + "\n")
    for part in (0, 7):
        (partial / "scores.parquet").mkdir(exist_ok=True)
        (partial / "scores.parquet" / f"part-{part:06d}.parquet").write_bytes(b"of other code")
    (ended,) = Code(tmp_path / "code").score(before.logs, ["--out", "mine"], cwd=tmp_path)
    assert ended.code == 0, ended.err
    report = json.loads((tmp_path / "mine" / "read-report.json").read_text())
    (said,) = report["warnings"]
    # The size of parts is no part of a receipt, so that it is new, too.
    assert said == "starting afresh: part_bytes, sources changed since the unfinished run"
    # What it had written is gone: six chats, whose turns were counted.
    assert [path.name for path in (tmp_path / "mine" / "scores.parquet").iterdir()] == ["part-000000.parquet"]
    assert len(list(convoscope.Run.open(tmp_path / "mine").scores("turns"))) == 6
