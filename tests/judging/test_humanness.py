"""Humanness by a judge: its scale, its evidence, a hostile server, and a panel by the state in which calls ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

import convoscope
from convoscope.conversation import Conversation
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics import example
from convoscope.metrics.flow.humanness import humanness
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered, observe
from support.judge_server import JudgeServer, empty, judge_server, not_json, status

CALL = example("user: A check-up, please.", "assistant: No worries, what day suits you?")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[JudgeServer]:
    monkeypatch.setenv("CONVOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("convoscope.judging.limits.LONGEST_WAIT", 0.01)
    with judge_server() as running:
        yield running


def rated(rating: Any, quote: str = "what day suits you?") -> dict[str, Any]:
    return {"explanation": "natural", "quote": quote, "rating": rating}


def asked(judge: Any, conversation: Conversation = CALL) -> Observation:
    async def ask() -> Sequence[Observation]:
        instrument = Instrument(judge, JudgeSettings(use_cache=False))
        try:
            return await answered(humanness, conversation, {"judge": instrument})
        finally:
            await instrument.aclose()

    [one] = asyncio.run(ask())
    return one


@pytest.mark.parametrize(("rating", "value"), [(0, 0.0), (7, 0.7), ("8", 0.8), (9.0, 0.9), (10, 1.0)])
def test_a_rating_is_a_tenth(rating: Any, value: float) -> None:
    one = asked(lambda prompt, schema: rated(rating))
    assert one.value == pytest.approx(value)
    assert one.details is not None
    assert one.details["quote"] == "what day suits you?"


@pytest.mark.parametrize("rating", [-1, 11, 7.5, True, None, "8/10", "good"])
def test_off_the_scale_there_is_no_value(rating: Any) -> None:
    one = asked(lambda prompt, schema: rated(rating))
    assert (one.value, one.status, one.reason) == (None, "unmeasured", "not_on_scale")


@pytest.mark.parametrize(
    ("rating", "quote", "value"),
    [
        (10, "", 1.0),  # the best needs no words
        (6, "", None),
        (6, "A check-up, please.", None),  # the caller's words say nothing about the agent
        (10, "I am a person.", None),  # invented
    ],
)
def test_it_rests_on_words_of_the_agent(rating: int, quote: str, value: float | None) -> None:
    one = asked(lambda prompt, schema: rated(rating, quote))
    assert (one.value, one.reason) == (value, "" if value is not None else "evidence_not_found")


def test_an_agent_that_says_nothing_is_not_rated() -> None:
    one = asked(lambda prompt, schema: rated(10, ""), example("user: Hello?"))
    assert (one.value, one.status, one.reason) == (None, "not_applicable", "no_assistant_speech")


def test_a_call_that_broke_is_not_asked_about() -> None:
    broken = example("user: Hi", "assistant: Hi", outcome={"error": "socket closed"})
    prompts: list[str] = []

    def judge(prompt: str, schema: Mapping[str, Any]) -> Any:
        prompts.append(prompt)
        return rated(10, "")

    convoscope.score([broken], metrics="flow.humanness", judge=judge, workers=1)
    assert prompts == []
    assert [(one.value, one.reason) for one in observe(humanness, broken)] == [(None, "conversation_errored")]


@pytest.mark.parametrize(
    ("fails", "reason"),
    [
        (status(500), "judge_failed"),
        (status(401), "judge_failed"),
        (not_json, "judge_failed"),
        (empty, "judge_failed"),
        (lambda _: web.json_response({"choices": []}), "judge_failed"),
    ],
)
def test_a_server_that_fails_gives_no_value(server: JudgeServer, fails: Any, reason: str) -> None:
    server.always = fails
    one = asked(server.openai)
    assert (one.value, one.status, one.reason) == (None, "error", reason)


@pytest.mark.parametrize("text", ["It is a 9.", "{}", '{"rating": 9}', '{"rating": 9} {"rating": 2}', "null"])
def test_prose_is_no_rating(server: JudgeServer, text: str) -> None:
    server.answer = lambda prompt, schema: text
    one = asked(server.openai)
    assert (one.value, one.reason) == (None, "verdict_unusable")


def test_a_median_and_its_spread(tmp_path: Path) -> None:
    def kind(prompt: str, schema: Mapping[str, Any]) -> Any:
        return rated(9)

    def strict(prompt: str, schema: Mapping[str, Any]) -> Any:
        return rated(4)

    def between(prompt: str, schema: Mapping[str, Any]) -> Any:
        return rated(6)

    run = convoscope.score(
        [CALL], metrics="flow.humanness", judge=[kind, strict, between], workers=1, out=tmp_path / "run"
    )
    by_judge = {row.judge.partition(":")[0].partition("@")[0]: row for row in run.scores()}
    panel = by_judge.pop("panel")
    # Of 9, 4 and 6 the middle is 6; from the strictest to the kindest it is 5.
    assert panel.value == pytest.approx(0.6)
    assert panel.observation.details is not None
    assert panel.observation.details["spread"] == pytest.approx(0.5)
    assert sorted(row.value or 0.0 for row in by_judge.values()) == pytest.approx([0.4, 0.6, 0.9])


def test_nothing_is_asked_unless_a_judge_is_named() -> None:
    assert [(one.value, one.reason) for one in observe(humanness, CALL)] == [(None, "no_judge")]
