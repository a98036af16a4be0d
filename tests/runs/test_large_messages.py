"""A message of many megabytes costs the other conversations nothing, whether it can be kept or not."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import convoscope
from convoscope.scores.observation import LONGEST_EVIDENCE, evidence
from support.command_line import convoscope as command

MB = 1024 * 1024
SAID = "This is a sentence that is said again and again. "


def chat(name: str, reply: str, **message: Any) -> bytes:
    messages = [{"role": "user", "content": "Hello there"}, {"role": "assistant", "content": reply, **message}]
    return json.dumps({"id": name, "messages": messages}).encode() + b"\n"


def calling(arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", "arguments": arguments}}]}


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two small chats, and between them: 6 MB, almost 64 MB, more than that, and 36 MB that become 137 MB as JSON."""
    path = tmp_path_factory.mktemp("large") / "chats.jsonl"
    with path.open("wb") as stream:
        stream.write(chat("first", "Hello."))
        stream.write(chat("repeats", SAID * (6 * MB // len(SAID))))
        stream.write(chat("just", "x" * (64 * MB - 1000)))
        stream.write(chat("beyond", "x" * (64 * MB + 1000)))
        # 1e15 is written as 1000000000000000.0
        stream.write(chat("swells", "Adding.", **calling('{"x":[' + ",".join(["1e15"] * (36 * MB // 5)) + "]}")))
        stream.write(chat("last", "Goodbye."))
    return path


@pytest.fixture(scope="module")
def run(logs: Path, tmp_path_factory: pytest.TempPathFactory) -> convoscope.Run:
    out = tmp_path_factory.mktemp("runs") / "run"
    ended = command("score", logs, "--out", out)
    assert ended.code == 0, ended.err
    return convoscope.Run.open(out)


def test_what_can_be_kept_is_scored_and_the_rest_is_told(run: convoscope.Run) -> None:
    assert [one.id for one in run.conversations()] == ["first", "repeats", "just", "last"]
    report = run.read_report
    assert (report.conversations, report.problem_count) == (4, 2)
    beyond, swells = report.problems
    assert str(beyond).startswith("chats.jsonl:4: one record is larger than 64 MB (")
    assert str(swells).startswith("chats.jsonl:5: conversation swells cannot be kept: as JSON it has 143,")
    assert str(swells).endswith(" characters, more than 134,217,728")


def test_evidence_is_cut_and_says_so(run: convoscope.Run) -> None:
    (one,) = [score for score in run.scores("agent.repetition") if score.conversation == "repeats"]
    sentences = 6 * MB // len(SAID)
    assert one.observation.value == (sentences - 1) / sentences
    details = one.observation.details or {}
    assert details["repeated"] == [SAID.strip(". ")] * 100
    # `{"repeated":[` and `]}` around 47 characters in quotes, each but the first with a comma before it
    assert details["cut"] == f"{(sentences - 1) * 50 + 14:,} bytes of evidence, of which the beginning is kept"


def test_the_run_is_there_when_it_is_asked_for_again(run: convoscope.Run, logs: Path) -> None:
    ended = command("score", logs, "--out", run.folder)
    assert ended.code == 0, ended.err
    assert command("show", run.folder, "repeats").code == 0


def test_a_run_that_was_killed_is_continued(run: convoscope.Run, logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    script = "from convoscope.cli.main import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", script, "score", str(logs), "--out", str(out), "--workers", "1"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    journal = tmp_path / "run.partial" / "journal.jsonl"
    while process.poll() is None and not (journal.exists() and journal.read_bytes().count(b"\n") > 1):
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    ended = command("score", logs, "--out", out)
    assert ended.code == 0, ended.err
    assert (out / "summary.json").read_bytes() == (run.folder / "summary.json").read_bytes()
    assert convoscope.Run.open(out).read_report.problems == run.read_report.problems


class TestEvidence:
    def test_what_is_short_is_kept_as_it_is(self) -> None:
        assert evidence(None) is None
        assert evidence({"diff": ["a", 1, None], "at": {"x": 0.5}}) == '{"diff":["a",1,null],"at":{"x":0.5}}'
        assert evidence({"said": "é" * 9_000}) == json.dumps({"said": "é" * 9_000}, ensure_ascii=False).replace(" ", "")

    @pytest.mark.parametrize(
        "details",
        [
            {"said": "x" * MB},
            {"said": ["x" * 100] * 10_000},
            {"x" * MB: 1},
            {str(number): number for number in range(100_000)},
            {"deep": [[["x" * 500] * 50] * 50] * 50},
            {"object": {"x": object, "y": "z" * MB}},
        ],
    )
    def test_what_is_long_is_cut(self, details: dict[str, Any]) -> None:
        kept = evidence(details)
        assert kept is not None
        assert len(kept.encode()) <= LONGEST_EVIDENCE
        assert json.loads(kept)["cut"].endswith(" bytes of evidence, of which the beginning is kept")

    def test_numbers_stay(self) -> None:
        assert json.loads(evidence({"spread": 0.25, "said": "x" * 30_000}) or "") == {
            "spread": 0.25,
            "said": "x" * 999 + "…",
            # {"spread":0.25,"said":""}: 25 characters around the text
            "cut": "30,025 bytes of evidence, of which the beginning is kept",
        }


def test_names_and_reasons_of_a_million_characters(tmp_path: Path) -> None:
    long = "n" * MB
    path = tmp_path / "items.jsonl"
    item = {"turn_id": long, "agent_response": "Paris", "ground_truth": "Paris", "tool_calls": [{"tool_name": long}]}
    path.write_text(json.dumps(item) + "\n")
    run = convoscope.score(path, out=tmp_path / "run")
    scores = list(run.scores())
    assert {len(one.conversation) for one in scores} == {10_000}
    assert {len(one.observation.subject.id) for one in scores if one.observation.subject.kind == "item"} == {1_000}
    assert max(len(one.observation.detail) for one in scores) == 1_000
