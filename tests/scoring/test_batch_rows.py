"""Metrics look at many conversations of a batch, and give what they would give of each alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from convoscope.conversation import Conversation
from convoscope.metrics import CONVERSATION, HIGHER, Metric, Need, Observation, measured, metric, not_applicable
from convoscope.scoring.batch import CHUNK_SIZE, Batch
from convoscope.scoring.evaluate import observe
from convoscope.views.items import WHOLE, Subject
from support.chats import agent, chat, user


def words(conversation: Conversation) -> Observation:
    """How many characters does the user's last word have? A conversation that begins with ! breaks it."""
    text = conversation.turns[0].user_text
    if text.startswith("!"):
        raise ValueError("what a noise")
    return (
        not_applicable(WHOLE, "a_question")
        if text.startswith("?")
        else measured(WHOLE, len(text), details={"text": text})
    )


def declared(function: Any = words) -> Metric:
    function.__doc__ = "What the test says."
    return metric("test.words", version=1, observes=CONVERSATION, unit="x", better=HIGHER)(function)


def said(*texts: str) -> list[Conversation]:
    return [chat(user(text), agent("yes"), id=f"c{number}") for number, text in enumerate(texts)]


def scored(conversations: list[Conversation], one: Metric) -> tuple[list[Any], list[Any]]:
    batch = Batch([one])
    for conversation in conversations:
        batch.add(conversation)
    rows: list[Any] = []
    details: list[Any] = []
    for columns in batch.columns():
        seen = columns.observed
        both = zip(seen.row.tolist(), seen.status.tolist(), seen.value.tolist(), seen.reason, strict=True)
        rows += [(row, status, None if status else value, reason) for row, status, value, reason in both]
        details += seen.details
    return rows, details


class TestTogether:
    def test_values_and_what_is_no_value(self) -> None:
        rows, details = scored(said("abc", "? why", "ab"), declared())
        assert rows == [(0, 0, 3.0, ""), (1, 1, None, "a_question"), (2, 0, 2.0, "")]
        assert details == [{"text": "abc"}, None, {"text": "ab"}]

    def test_only_the_one_that_breaks_it_has_an_error(self) -> None:
        rows, _ = scored(said("abc", "!", "ab"), declared())
        assert rows == [(0, 0, 3.0, ""), (1, 3, None, "metric_raised"), (2, 0, 2.0, "")]

    def test_more_conversations_than_a_batch_holds(self) -> None:
        texts = ["a" * (1 + number % 5) for number in range(2 * CHUNK_SIZE + 3)]
        rows, _ = scored(said(*texts), declared())
        assert rows == [(number, 0, float(1 + number % 5), "") for number in range(2 * CHUNK_SIZE + 3)]


class TestAlone:
    def test_the_same_of_one_conversation(self) -> None:
        (one,) = observe(declared(), said("abc")[0])
        assert (one.subject, one.value, one.details) == (WHOLE, 3.0, {"text": "abc"})


def nothing(conversation: Conversation) -> list[Observation]:
    """Nothing."""
    return []


def twice(conversation: Conversation) -> Iterator[Observation]:
    """Two scores of one subject."""
    yield measured(WHOLE, 1.0)
    yield measured(WHOLE, 2.0)


def no_number(conversation: Conversation) -> Observation:
    """A value that is not a number."""
    return measured(WHOLE, float("nan"))


def not_a_score(conversation: Conversation) -> Iterator[Any]:
    """Something else than a score."""
    yield 1.0


@pytest.mark.parametrize(
    ("function", "status", "reason"),
    [
        (nothing, "not_applicable", "nothing_to_observe"),
        (twice, "error", "metric_raised"),
        (no_number, "error", "metric_raised"),
    ],
)
def test_what_it_does_wrong_is_an_error_of_each(function: Any, status: str, reason: str) -> None:
    codes = {"not_applicable": 1, "error": 3}
    rows, _ = scored(said("a", "b"), declared(function))
    assert rows == [(0, codes[status], None, reason), (1, codes[status], None, reason)]
    observation: Observation
    (observation,) = observe(declared(function), said("a")[0])
    assert (observation.status, observation.reason) == (status, reason)


def test_what_is_not_a_score_is_an_error_of_each() -> None:
    rows, _ = scored(said("a", "b"), declared(not_a_score))
    assert [(row, status) for row, status, _, _ in rows] == [(0, 3), (1, 3)]


def test_a_need_that_raises_keeps_the_order_of_the_rows() -> None:
    def present(conversation: Conversation) -> bool:
        if conversation.id == "c1":
            raise ValueError("what a noise")
        return True

    need = Need(code="no_noise", field="noise", unlock="noise", present=present)
    with_need = metric("test.words", version=1, observes=CONVERSATION, unit="x", better=HIGHER, needs=(need,))(words)
    rows, _ = scored(said("abc", "ab", "a"), with_need)
    assert rows == [(0, 0, 3.0, ""), (1, 3, None, "metric_raised"), (2, 0, 1.0, "")]


def test_several_subjects_of_one_conversation() -> None:
    def each(conversation: Conversation) -> Iterator[Observation]:
        """Each character."""
        for number, _ in enumerate(conversation.turns[0].user_text):
            yield measured(Subject("character", str(number), number), number)

    rows, _ = scored(said("abc", "d"), declared(each))
    assert rows == [(0, 0, 0.0, ""), (0, 0, 1.0, ""), (0, 0, 2.0, ""), (1, 0, 0.0, "")]
