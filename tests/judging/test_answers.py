"""One JSON object by its schema, or nothing: no number is fished from prose."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.judging.answers import NOT_ON_SCALE, UNUSABLE, UnusableAnswer, read_answer

SCORE: dict[str, Any] = {
    "type": "object",
    "required": ["score"],
    "properties": {"score": {"type": "integer", "minimum": 1, "maximum": 10}, "reasoning": {"type": "string"}},
}
TURNS: dict[str, Any] = {
    "type": "object",
    "required": ["turns"],
    "properties": {
        "turns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["turn_id", "rating"],
                "properties": {
                    "turn_id": {"type": "integer"},
                    "rating": {"type": "integer", "minimum": 1, "maximum": 3},
                },
            },
        }
    },
}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 7}', 7),
        ('{"score": "7"}', 7),  # a number as text
        ('{"score": 7.0}', 7),
        ('```json\n{"score": 7}\n```', 7),
        ('Sure! Here it is: {"score": 7, "reasoning": "fine"} I hope that helps.', 7),
        ('First I note {"a": 1}. Then {"score": 7}.', 7),  # the only object with the required keys
        ('{"score": 7} I repeat: {"score": 7}', 7),
        ('[] and then {"score": 3}', 3),  # EVA takes the first JSON value, and fails here
        ('<think>Maybe {"score": 2}?</think>\n{"score": 7}', 7),  # a draft is no answer
        ('{"score": 7, "reasoning": "first\nsecond"}', 7),  # a line break as it is
        ('{"score": 7, "reasoning": null}', 7),
    ],
)
def test_what_counts(text: str, score: int) -> None:
    assert read_answer(text, SCORE)["score"] == score


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"score": "8/10"}', NOT_ON_SCALE),  # others read 10, or 8
        ('{"score": 85}', NOT_ON_SCALE),
        ('{"score": 0}', NOT_ON_SCALE),
        ('{"score": -1}', NOT_ON_SCALE),
        ('{"score": 7.5}', NOT_ON_SCALE),
        ('{"score": true}', NOT_ON_SCALE),
        ('{"score": null}', NOT_ON_SCALE),
        ('{"score": NaN}', NOT_ON_SCALE),
        ('{"score": Infinity}', NOT_ON_SCALE),
        ('{"score": "high"}', NOT_ON_SCALE),
        ("The score is 7.", UNUSABLE),
        ("misses 2 facts; score 7", UNUSABLE),  # another program reads 2
        ("8/10", UNUSABLE),
        ("", UNUSABLE),
        ('<think>{"score": 7}</think>', UNUSABLE),
        ('{"rating": 7}', UNUSABLE),
        ('{"score": 7', UNUSABLE),
        ("{" * 5000, UNUSABLE),
        ('{"score": 9} On reflection: {"score": 2}', UNUSABLE),  # which of both?
        ('{"score": 9, "score": 2}', UNUSABLE),
    ],
)
def test_what_does_not(text: str, reason: str) -> None:
    with pytest.raises(UnusableAnswer) as refused:
        read_answer(text, SCORE)
    assert refused.value.reason == reason


@pytest.mark.parametrize("name", ["turns", "evaluations", "results", "turn_evaluations"])
def test_a_list_may_be_wrapped_under_another_name(name: str) -> None:
    answer = read_answer(json.dumps({name: [{"turn_id": "1", "rating": "2"}]}), TURNS)
    assert answer["turns"] == [{"turn_id": 1, "rating": 2}]


def test_a_bare_list_is_the_list_that_was_asked_for() -> None:
    assert read_answer('[{"turn_id": 1, "rating": 3}]', TURNS)["turns"] == [{"turn_id": 1, "rating": 3}]
    items = {"type": "object", "required": ["items"], "properties": {"items": TURNS["properties"]["turns"]}}
    assert read_answer('[{"turn_id": 1, "rating": 3}]', items)["items"] == [{"turn_id": 1, "rating": 3}]


def test_a_score_without_bounds_is_a_number_too() -> None:
    """Any comparison with NaN is false: nothing but its type refuses it."""
    with pytest.raises(UnusableAnswer):
        read_answer('{"score": NaN}', {"required": ["score"], "properties": {"score": {"type": "number"}}})


@given(st.text(max_size=200))
def test_no_text_gives_a_number_that_it_does_not_hold(text: str) -> None:
    """Whatever a model writes: either an object of the schema was in it, or there is no answer."""
    try:
        answer = read_answer(text, SCORE)
    except UnusableAnswer:
        return
    assert 1 <= answer["score"] <= 10
    assert "{" in text


@given(st.integers(-100, 100))
def test_only_ratings_on_the_scale_count(score: int) -> None:
    text = json.dumps({"score": score})
    if 1 <= score <= 10:
        assert read_answer(text, SCORE)["score"] == score
    else:
        with pytest.raises(UnusableAnswer):
            read_answer(text, SCORE)
