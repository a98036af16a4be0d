"""Files that go away between the listing and the reading of a folder are as if they had gone away before."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from convoscope.ingest.discover import CompanionFile, find_inputs, hashed_inputs
from convoscope.runs.make import make_run as score
from support.generated import chat


def write(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for number, name in enumerate(names):
        (folder / name).write_text(json.dumps(chat(number)))


@pytest.fixture
def at_the_first_hash(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Something that happens when all is listed, and nothing is hashed."""

    def then(happens: Callable[[], None]) -> None:
        def hashed(*args: object) -> object:
            happens()
            return hashed_inputs(*args)  # type: ignore[arg-type]

        monkeypatch.setattr("convoscope.runs.make.hashed_inputs", hashed)

    return then


def test_a_log_is_skipped_with_a_note(tmp_path: Path, at_the_first_hash: Callable[[Callable[[], None]], None]) -> None:
    logs = tmp_path / "logs"
    write(logs, "a.json", "b.json", "c.json")
    at_the_first_hash((logs / "a.json").unlink)
    run = score(logs, metrics="conversation.turns", out=tmp_path / "run", workers=1)
    assert [one.name for one in run.receipt.inputs] == ["b.json", "c.json"]
    assert run.read_report.problem_count == 0
    assert run.read_report.files["a.json"].skipped == "went away before it was read"
    assert "1 log went away before being read: a.json" in run.read_report.warnings
    at_the_first_hash(lambda: None)
    whole = score(logs, metrics="conversation.turns", out=tmp_path / "whole", workers=1)
    assert (run.folder / "summary.json").read_bytes() == (whole.folder / "summary.json").read_bytes()


def test_a_companion(tmp_path: Path) -> None:
    """The log is read as if nothing had ever been beside it."""
    logs = tmp_path / "logs"
    write(logs, "a.json", "b.json")
    found = find_inputs([logs / "a.json"])
    (item,) = found.inputs
    beside = msgspec.structs.replace(item, companions=(CompanionFile(str(logs / "b.json"), "gold"),))
    (logs / "b.json").unlink()
    assert hashed_inputs([beside], found.report) == hashed_inputs([item], found.report)


def test_while_the_folder_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = tmp_path / "logs"
    write(logs, "a.json", "b.json")
    listed = Path.iterdir

    def then_gone(folder: Path) -> object:
        entries = list(listed(folder))
        (logs / "a.json").unlink(missing_ok=True)
        return iter(entries)

    monkeypatch.setattr(Path, "iterdir", then_gone)
    found = find_inputs([logs])
    assert [one.name for one in found.inputs] == ["b.json"]
    assert found.report.problem_count == 0


def test_all_of_them(tmp_path: Path, at_the_first_hash: Callable[[Callable[[], None]], None]) -> None:
    from convoscope.errors import NothingReadable

    logs = tmp_path / "logs"
    write(logs, "a.json")
    at_the_first_hash((logs / "a.json").unlink)
    with pytest.raises(NothingReadable, match="went away before it was read"):
        score(logs, metrics="conversation.turns", out=tmp_path / "run", workers=1)
    assert os.listdir(tmp_path) == ["logs"]
