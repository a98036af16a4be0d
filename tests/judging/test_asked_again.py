"""What a judge did not answer is asked again by the same command, and nothing else is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from convoscope.runs.make import make_run
from convoscope.runs.run import Run
from support.generated import chat
from support.judge_server import JudgeServer, judge_server

CHATS = 12
LATE = 3


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    with judge_server() as opened:
        yield opened


def add(folder: Path, *numbers: int) -> None:
    folder.mkdir(exist_ok=True)
    with (folder / "chats.jsonl").open("a") as stream:
        stream.writelines(json.dumps(chat(number)) + "\n" for number in numbers)


def scored(server: JudgeServer, logs: Path, out: Path, **options: Any) -> Run:
    server.prompts.clear()
    return make_run(
        logs,
        judge=server.openai,
        metrics="judged.faithfulness",
        out=out,
        workers=1,
        max_concurrency=1,
        part_bytes=3_000,
        **options,
    )


def failed(run: Run) -> int:
    return sum(row.reason == "judge_failed" for row in run.scores())


def summary(run: Run) -> bytes:
    return (run.folder / "summary.json").read_bytes()


def refuse_every_third(server: JudgeServer) -> None:
    asked = [0]

    def refused(request: web.Request) -> web.Response | None:
        asked[0] += 1
        return web.Response(status=400) if asked[0] % 3 == 0 else None

    server.always = refused


def test_the_same_command_asks_for_what_was_not_answered(server: JudgeServer, tmp_path: Path) -> None:
    add(tmp_path / "logs", *range(CHATS))
    refuse_every_third(server)
    run = scored(server, tmp_path / "logs", tmp_path / "run")
    assert failed(run) == 4  # of 12 chats, every third
    assert 1 < run.receipt.unanswered <= 4
    server.always = None
    again = scored(server, tmp_path / "logs", tmp_path / "run")
    assert len(server.prompts) == 4
    assert (failed(again), again.receipt.unanswered) == (0, 0)
    # Nothing is left to be asked, and the run stays as it is.
    assert scored(server, tmp_path / "logs", tmp_path / "run").receipt == again.receipt
    assert not server.prompts
    assert summary(again) == summary(scored(server, tmp_path / "logs", tmp_path / "whole"))


def test_a_run_that_grows_asks_for_what_was_not_answered(server: JudgeServer, tmp_path: Path) -> None:
    add(tmp_path / "logs", *range(CHATS))
    refuse_every_third(server)
    scored(server, tmp_path / "logs", tmp_path / "run")
    server.always = None
    add(tmp_path / "logs", *range(CHATS, CHATS + LATE))
    run = scored(server, tmp_path / "logs", tmp_path / "run")
    assert len(server.prompts) == 4 + LATE
    assert (failed(run), run.summary.conversations) == (0, CHATS + LATE)


def test_without_kept_answers_nothing_is_asked_again(server: JudgeServer, tmp_path: Path) -> None:
    add(tmp_path / "logs", *range(CHATS))
    refuse_every_third(server)
    run = scored(server, tmp_path / "logs", tmp_path / "run", judge_cache=False)
    assert failed(run) == 4
    again = scored(server, tmp_path / "logs", tmp_path / "run", judge_cache=False)
    assert not server.prompts
    assert again.receipt == run.receipt
