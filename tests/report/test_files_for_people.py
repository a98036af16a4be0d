"""The files of a run for people follow it: the page, the copies of `--contexts`, the copies of recordings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
import pytest

import convoscope
from convoscope.report import score as report
from convoscope.report.page import LINKED
from convoscope.report.view_terminal import write_contexts
from convoscope.runs.run import Run
from convoscope.scoring.settings import ScoreSettings
from convoscope.storage import as_path
from support.pages import page_facts
from support.sounds import silence, tone, write


@pytest.fixture(params=["disk", "memory"])
def out(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "disk":
        yield str(tmp_path / "run")
        return
    store = fsspec.filesystem("memory")
    store.store.clear()
    yield "memory://runs/pruned"
    store.store.clear()


def chat(day: int) -> str:
    """One of a day of November, called by it."""
    said = [("user", "Hello?", 0), ("assistant", f"It is day {day}.", 2)]
    messages = [
        {"role": role, "content": text, "timestamp": f"2026-11-{day:02d}T10:00:{second:02d}Z"}
        for role, text, second in said
    ]
    return json.dumps({"id": f"day-{day}", "messages": messages}) + "\n"


def made(logs: Path, out: str, *days: int, **options: Any) -> Run:
    logs.mkdir(exist_ok=True)
    (logs / "chats.jsonl").write_text("".join(chat(day) for day in days))
    return convoscope.score(logs, metrics="turns", out=out, workers=1, **options)


def in_page(out: str, scratch: Path) -> int:
    """How many conversations the page is of."""
    (scratch / "page.html").write_bytes((as_path(out) / "report.html").read_bytes())
    total: int = json.loads(page_facts(scratch / "page.html"))["total"]
    return total


def contexts(run: Run) -> list[str]:
    return sorted(path.parent.name for path in run.folder.glob("records/*/metrics.json"))


def test_the_page_follows_also_after_a_kill(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(tmp_path / "logs", out, 1, 2, 3)

    def killed(run: Run) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(report, "write_page", killed)
        with pytest.raises(KeyboardInterrupt):
            convoscope.prune(out, "2026-11-03")
    assert in_page(out, tmp_path) == 3
    assert convoscope.prune(out, "2026-11-03").dropped == 0
    assert in_page(out, tmp_path) == 1


def test_the_copies_of_contexts_are_those_of_the_run(out: str, tmp_path: Path) -> None:
    run = made(tmp_path / "logs", out, 1, 2)
    write_contexts(run)
    assert contexts(run) == ["day-1", "day-2"]
    # The run that grew has none until they are asked for again.
    grown = made(tmp_path / "logs", out, 1, 2, 3)
    assert contexts(grown) == []
    write_contexts(grown)
    pruned = convoscope.prune(grown, "2026-11-03").run
    assert contexts(pruned) == []
    write_contexts(pruned)
    assert contexts(pruned) == ["day-3"]


def test_copies_of_recordings_leave_with_their_calls(tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    logs = tmp_path / "logs"
    logs.mkdir()
    for day in (1, 2):
        write(logs / f"day-{day}.wav", tone(200 * day, 2.0), silence(2.0))
    run = made(logs, str(tmp_path / "run"), 1, 2, audio=logs)
    convoscope.write_page(run, with_audio=True)
    before = {path.name for path in (run.folder / "audio").iterdir()}
    assert len(before) == 2
    pruned = convoscope.prune(run, "2026-11-02").run
    (left,) = (pruned.folder / "audio").iterdir()
    assert left.name in before
    assert left.read_bytes() == (logs / "day-2.wav").read_bytes()


@pytest.mark.parametrize("when", ["with the run", "later"])
def test_recordings_go_into_a_store_with_the_page(when: str, tmp_path: Path) -> None:
    pytest.importorskip("soundfile")
    logs, store = tmp_path / "logs", fsspec.filesystem("memory")
    logs.mkdir()
    write(logs / "day-1.wav", tone(200, 2.0), silence(2.0))
    (logs / "chats.jsonl").write_text(chat(1))
    given = ScoreSettings(metrics="turns", out="memory://runs/heard", workers=1, audio=logs)
    run = report.score_with(logs, given, sound=LINKED._replace(copied=when == "with the run"))
    if when == "later":
        written = convoscope.write_page(run, with_audio=True)
        assert not written.notes
    (copy,) = store.ls("/runs/heard/audio", detail=False)
    assert store.cat_file(copy) == (logs / "day-1.wav").read_bytes()
    (tmp_path / "page.html").write_bytes(store.cat_file("/runs/heard/report.html"))
    assert f'"src":"./audio/{Path(copy).name}"' in page_facts(tmp_path / "page.html", "story-0")
    store.store.clear()
