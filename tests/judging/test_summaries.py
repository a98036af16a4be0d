"""The quality of a summary by servers that fail and judges that write what is no rating: a reason, never a number."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from convoscope.conversation import Annotations, Conversation
from convoscope.judging.instrument import Instrument, JudgeSettings
from convoscope.metrics import Metric, example
from convoscope.metrics.semantic.summaries import clarity, coverage, faithfulness
from convoscope.scores.observation import Observation
from convoscope.scoring.evaluate import answered
from support.judge_server import JudgeServer, empty, judge_server, not_json, status

MEASURES = (faithfulness, coverage, clarity)
CALL: Conversation = example(
    "user: I want my money back.",
    "assistant: It is on its way.",
    annotations=[
        Annotations(origin="predicted", annotator="a", summary="The user gets a refund."),
        Annotations(origin="gold", annotator="b", summary="A refund was asked for and promised."),
    ],
)


@pytest.fixture(scope="module")
def running() -> Iterator[JudgeServer]:
    with judge_server() as server:
        yield server


@pytest.fixture
def server(running: JudgeServer, monkeypatch: pytest.MonkeyPatch) -> JudgeServer:
    monkeypatch.setattr("convoscope.judging.limits.LONGEST_WAIT", 0.01)
    running.always = None
    return running


def scores(judge: str, call: Conversation = CALL) -> list[Observation]:
    """What a judge says by the three measures."""

    async def ask(measure: Metric) -> Observation:
        instrument = Instrument(judge, JudgeSettings(use_cache=False))
        try:
            [one] = await answered(measure, call, {"judge": instrument})
            return one
        finally:
            await instrument.aclose()

    return [asyncio.run(ask(measure)) for measure in MEASURES]


def test_a_model_that_rates_its_own_words_is_named(server: JudgeServer) -> None:
    """By whatever name it wrote: as an annotator it has other questions. A summary of a file is of another."""
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "gets a refund", "score": 6}
    made, gold = CALL.annotations

    def own(model: str) -> list[bool]:
        written = msgspec.structs.replace(made, model=model)
        call = msgspec.structs.replace(CALL, annotations=(written, gold))
        rated = [one.details or {} for one in scores(server.openai, call)]
        assert {one["summary"] for one in rated} == {"The user gets a refund."}
        return ["own_words" in one for one in rated]

    assert own("judge/3:openai/tiny@1a2b3c4d+5e6f7a8b") == [True] * 3
    assert own("judge/3:openai/other@1a2b3c4d+5e6f7a8b") == [False] * 3
    assert own("rules/3@sha256:12") == [False] * 3


def test_a_rating_is_the_value_of_each(server: JudgeServer) -> None:
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "gets a refund", "score": 6}
    assert [one.value for one in scores(server.openai)] == [6.0, 6.0, 6.0]


@pytest.mark.parametrize("fails", [status(500), status(401), not_json, empty])
def test_a_server_that_fails_gives_no_value(server: JudgeServer, fails: Any) -> None:
    server.always = fails
    assert {(one.status, one.value, one.reason) for one in scores(server.openai)} == {("error", None, "judge_failed")}


@pytest.mark.parametrize("score", [-1, 11, 7.5, True, None, "8/10"])
def test_off_the_scale_there_is_no_value(server: JudgeServer, score: Any) -> None:
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "", "score": score}
    assert {(one.status, one.value) for one in scores(server.openai)} == {("unmeasured", None)}


@pytest.mark.parametrize("text", ["It is a 9.", "{}", '{"score": 9}', "null"])
def test_prose_is_no_rating(server: JudgeServer, text: str) -> None:
    server.answer = lambda prompt, schema: text
    assert {(one.status, one.value) for one in scores(server.openai)} == {("unmeasured", None)}


def test_words_that_are_not_in_the_summary_carry_no_rating(server: JudgeServer) -> None:
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "was refused twice", "score": 2}
    assert {one.reason for one in scores(server.openai)} == {"evidence_not_found"}


@pytest.mark.parametrize(("score", "quote"), [(0, ""), (9, " "), (9, ".")])
def test_below_the_best_a_rating_needs_a_quote(server: JudgeServer, score: int, quote: str) -> None:
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": quote, "score": score}
    assert {(one.value, one.reason) for one in scores(server.openai)} == {(None, "evidence_not_found")}


def test_the_best_rating_needs_none(server: JudgeServer) -> None:
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "", "score": 10}
    assert [one.value for one in scores(server.openai)] == [10.0, 10.0, 10.0]


def test_what_a_summary_lacks_is_quoted_from_the_reference(server: JudgeServer) -> None:
    """Only coverage is shown the reference."""
    server.answer = lambda prompt, schema: {"reasoning": "so", "quote": "and promised", "score": 5}
    assert [(one.value, one.reason) for one in scores(server.openai)] == [
        (None, "evidence_not_found"),
        (5.0, ""),
        (None, "evidence_not_found"),
    ]
