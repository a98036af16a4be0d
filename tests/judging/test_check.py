"""`convoscope judge check`: what a person sees of a judge that says the same of all, or nothing, or is down."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from convoscope.analysis.judge_check import by_rubric, check_judge
from convoscope.judging.instrument import Instrument, JudgeSettings
from support.command_line import convoscope as command
from support.judge_server import JudgeServer, best, judge_server, status


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    with judge_server() as running:
        yield running


def test_a_judge_that_says_the_same_of_all_cannot_do_the_job(server: JudgeServer, tmp_path: Path) -> None:
    ended = command("judge", "check", "--judge", server.openai, "--rubric", "speakability", cwd=tmp_path)
    assert ended.code == 0
    assert "about 8 invented calls; nothing of yours is sent" in ended.err
    # Of two ratings drawn twice, one of four draws has the good call above the bad one: 4 × 1/4 = 1.
    assert "right about 0 of 4 pairs" in ended.out
    assert "Random ratings would be right about 1. This model cannot do the job" in ended.out
    assert ended.out.splitlines()[4].split() == ["can", "be", "spoken", "as", "written", "0", "4", "0", "0"]
    # The answer has a limit: a small model may never come to an end.
    assert {json.loads(body)["max_completion_tokens"] for body in server.bodies} == {1000}


def test_pairs_that_cannot_be_answered_are_named_with_their_reason(server: JudgeServer, tmp_path: Path) -> None:
    server.answer = lambda prompt, schema: "It is fine."
    ended = command("judge", "check", "--judge", server.openai, "--rubric", "speakability", cwd=tmp_path)
    assert "It gave no answer that can be used." in ended.out
    assert "no answer  can be spoken as written, 4 pairs: the answer has no JSON object" in ended.out
    shown = command("judge", "check", "--judge", server.openai, "--rubric", "speakability", "--json", cwd=tmp_path)
    [checked] = json.loads(shown.out)["rubrics"]
    assert (checked["right"], checked["same"], checked["unanswered"], checked["guess"]) == (0, 0, 4, 0)


def rated(prompt: str, good: int, bad: int) -> dict[str, Any]:
    """What a judge of speakability says of the pair about JSON and Markdown, whose bad side has `**Total`."""
    is_bad = "**Total" in prompt.rpartition("<data>")[2]
    rating, quote = (bad, "Total") if is_bad else (good, "")
    return {"turns": [{"turn_id": 1, "explanation": "", "quote": quote, "rating": rating}]}


def test_pairs_without_an_answer_stay_in_the_count(server: JudgeServer, tmp_path: Path) -> None:
    """One pair is answered, rightly; three are not: one of four, and nothing is recommended."""
    server.answer = lambda prompt, schema: rated(prompt, 1, 0) if "otal" in prompt.rpartition("<data>")[2] else "Fine."
    run = ("judge", "check", "--judge", server.openai, "--rubric", "speakability")
    ended = command(*run, cwd=tmp_path)
    words = " ".join(ended.out.split())
    assert "is right about 1 of 4 pairs of a good and a bad call, 3 without an answer." in words
    assert "Random ratings would be right about 0 of the 1 with an answer. Most pairs have no answer" in words
    assert "calibrate" not in words
    total = json.loads(command(*run, "--json", cwd=tmp_path).out)["total"]
    assert total == {"right": 1, "pairs": 4, "unanswered": 3, "guess": 0.25}


def test_a_server_that_was_repaired_is_asked_again(server: JudgeServer, tmp_path: Path) -> None:
    """What could not be used is not kept; what was used is not asked again."""
    server.answer = lambda prompt, schema: "It is fine."
    run = ("judge", "check", "--judge", server.openai, "--rubric", "speakability")
    assert "8 pairs" not in command(*run, cwd=tmp_path).out
    assert len(server.prompts) == 16  # each of the eight calls, and once more to repair the answer
    server.answer = best
    assert "no answer  " not in command(*run, cwd=tmp_path).out
    assert len(server.prompts) == 24
    assert "right about 0 of 4" in command(*run, cwd=tmp_path).out
    assert len(server.prompts) == 24


def test_two_judges_are_an_error(server: JudgeServer, tmp_path: Path) -> None:
    ended = command("judge", "check", "--judge", server.openai, "--judge", "openai:other", cwd=tmp_path)
    assert ended.code == 2
    assert f"one judge is asked here, and 2 are named: {server.openai}, openai:other" in ended.err
    assert server.prompts == []


def test_a_judge_that_is_down_is_an_error(server: JudgeServer, tmp_path: Path) -> None:
    server.always = status(401)
    ended = command("judge", "check", "--judge", server.openai, "--rubric", "speakability", cwd=tmp_path)
    assert ended.code == 2
    assert "the judge answered with HTTP status 401" in ended.err
    assert ended.out == ""


def test_where_nothing_listens_it_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("convoscope.judging.limits.LONGEST_WAIT", 0.01)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        name = f"openai:tiny@http://127.0.0.1:{free.getsockname()[1]}/v1"
        pairs = check_judge(Instrument(name, JudgeSettings(use_cache=False)), ["speakability"])
    assert {pair.reason for pair in pairs} == {"judge_failed"}
    assert all(pair.detail.startswith("the judge cannot be reached") for pair in pairs)


def test_right_same_and_wrong() -> None:
    def backwards(prompt: str, schema: Any) -> Any:
        # Markdown is rated as it should be, JSON the other way round, everything else as good.
        said = prompt.rpartition("<data>")[2]
        bad = "**Total" in said or "Lyon and arrives" in said
        turn = {
            "turn_id": 1,
            "explanation": "",
            "quote": "" if not bad else "Total" if "Total" in said else "Lyon",
            "rating": int(not bad),
        }
        return {"turns": [turn]}

    pairs = check_judge(Instrument(backwards, JudgeSettings(use_cache=False)), ["speakability"])
    [checked] = by_rubric(pairs)
    assert (checked.pairs, checked.right, checked.same, checked.unanswered) == (4, 1, 2, 0)
