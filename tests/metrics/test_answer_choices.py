"""Multiple choice: which letter an answer picks, which is right, and candidates for the truth."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.metrics.answer.multiple_choice import (
    Offered,
    Picked,
    choice_accuracy_of,
    chosen_of,
    multi_pattern_of,
    offered_by,
    picked_of,
    right_choice,
)

CAPITALS = ("London", "Paris", "Rome", "Oslo")


def letter(answer: str, choices: tuple[str, ...] = ()) -> str | None:
    place = chosen_of(answer, choices)
    return None if place is None else "ABCDEFGHIJ"[place]


class TestWhichLetterIsPicked:
    @pytest.mark.parametrize(
        ("answer", "picked"),
        [
            ("Answer: B", "B"),
            ("answer: b because ...", "B"),
            ("The correct answer is C.", "C"),
            ("The answer to question 3 is: **J**", "J"),
            ("The answer is definitely (D)", "D"),
            ("Final answer - option E", "E"),
            ("I would go with option (D).", "D"),
            ("I pick b", "B"),
            ("I chose A because it fits", "A"),
            ("A is tempting, but C is correct.", "C"),
            ("It must be D.", "D"),
            ("Therefore, B", "B"),
            (r"so $\boxed{C}$", "C"),
            (r"\boxed{\text{C}}", "C"),
        ],
    )
    def test_one_that_is_stated(self, answer: str, picked: str) -> None:
        assert letter(answer) == picked

    def test_of_several_statements_the_last(self) -> None:
        assert letter("The answer is A. Wait: B is wrong too. The answer is C.") == "C"
        assert letter("My first answer was A, but the answer is B") == "B"

    @pytest.mark.parametrize(
        ("answer", "picked"),
        [
            ("**B**", "B"),
            ("**B) Paris**", "B"),
            ("(B) Paris", "B"),
            ("[B]", "B"),
            ("Option c", "C"),
            ("A or B?\n\nB", "B"),  # on a line of its own
            ("(A) London, (B) Paris", None),  # both are marked: it is a list
        ],
    )
    def test_one_that_is_marked(self, answer: str, picked: str | None) -> None:
        assert letter(answer) == picked

    @pytest.mark.parametrize(
        ("answer", "picked"),
        [
            ("D", "D"),
            ("A.", "A"),
            ("'B'", "B"),
            ("Ｂ", "B"),
            ("B) Paris", "B"),
            ("B. I am sure of that", "B"),
            ("I think it is\nC", "C"),
            ("答案：B", "B"),
            ("答案是B。", "B"),
            ("Réponse : B", "B"),
            ("c", "C"),
            ("A because it is so", "A"),
            ("A or B", None),  # it does not say which
            ("", None),
        ],
    )
    def test_one_that_stands_alone(self, answer: str, picked: str | None) -> None:
        assert letter(answer) == picked

    @pytest.mark.parametrize(
        ("answer", "picked"),
        [
            ("It is not A but B", "B"),
            ("The answer is not A but B", "B"),
            ("The answer isn't A; it's B.", "B"),
            ("neither A nor B, so C", "C"),
            ("not A or B but D", "D"),
            ("B rather than A", "B"),
            ("A is wrong, C remains", "C"),
            ("A cannot be it. D", "D"),
            ("not A", None),
        ],
    )
    def test_never_one_that_is_ruled_out(self, answer: str, picked: str | None) -> None:
        assert letter(answer) == picked

    @pytest.mark.parametrize(
        "answer",
        [
            "Madrid",
            "Canada",
            "A cat and a dog",
            "The answer is a bit complicated",
            "I don't know",
            "I am not sure",
            "a B-tree",
            "vitamin-A",
            "D'Artagnan",
            "K",
        ],
    )
    def test_never_a_part_of_a_word_nor_an_article(self, answer: str) -> None:
        assert letter(answer) is None

    @pytest.mark.parametrize(
        ("answer", "picked"),
        [
            ("paris.", "B"),
            ("The capital is Paris.", "B"),
            ("A: Paris", "B"),  # "A" may stand for "answer": the text says more
            ("The answer is C, not Paris", "C"),  # a letter that is stated goes before
            ("Paris or Rome", None),
            ("Not Paris but Rome", "C"),
            ("Paris is wrong, it is Rome", "C"),
            ("Not Paris, I said: Paris or nothing", "B"),  # once it is not ruled out
            ("Not Paris", None),
            ("Answer: D", "D"),
        ],
    )
    def test_the_text_of_a_choice(self, answer: str, picked: str | None) -> None:
        assert letter(answer, CAPITALS) == picked

    def test_a_choice_that_stands_in_another_is_not_meant(self) -> None:
        assert letter("It is New York, I think", ("York", "New York")) == "B"
        assert letter("Not New York", ("York", "New York")) is None


class TestWhichIsRight:
    @pytest.mark.parametrize(
        ("truth", "choices", "index", "right"),
        [
            ("B", (), None, 1),
            ("(b)", (), None, 1),
            ("Option B", (), None, 1),
            ("J", (), None, 9),
            ("K", (), None, None),
            ("Paris", (), None, None),
            ("1", (), None, None),  # a place among no choices
            ("paris", CAPITALS, None, 1),
            ("B) Paris", CAPITALS, None, 1),
            ("1", CAPITALS, None, 1),  # counted from 0, as answer_index is
            ("1", ("1", "2"), None, 0),  # the text of a choice goes before its place
            ("A", ("B", "A"), None, 1),  # and before its letter
            ("yes", ("yes", "yes"), 1, 1),
            ("Madrid", CAPITALS, None, None),
            ("Madrid", CAPITALS, 2, 2),
            ("Madrid", CAPITALS, 9, None),
            ("Paris", CAPITALS, 3, 1),  # the truth goes before the index
            ("", CAPITALS, 1, None),
        ],
    )
    def test_truths(self, truth: str, choices: tuple[str, ...], index: int | None, right: int | None) -> None:
        assert right_choice(truth, choices, index) == right

    def test_a_letter_out_of_range_picks_none_of_them(self) -> None:
        assert choice_accuracy_of("Answer: D", "Paris", choices=["London", "Paris"]) == 0.0

    def test_a_choice_that_is_listed_twice_is_one_choice(self) -> None:
        assert choice_accuracy_of("yes", "yes", choices=["yes", "yes"], answer_index=1) == 1.0
        assert choice_accuracy_of("Answer: A", "yes", choices=["yes", "no", "yes"], answer_index=2) == 1.0

    def test_no_multiple_choice_is_not_applicable(self) -> None:
        assert picked_of("B", "Paris") == Picked(None, None)
        assert choice_accuracy_of("B", "Paris") is None


class TestWhatAnItemOffers:
    @pytest.mark.parametrize(
        ("context", "offered"),
        [
            (None, ()),
            ("a text", ()),
            ({}, ()),
            ({"choices": ["London", "Paris"]}, ("London", "Paris")),
            ({"choices": ["A) London", "B. Paris"]}, ("London", "Paris")),
            ({"choices": {"B": "Paris", "A": "London"}}, ("London", "Paris")),
            ({"choices": [{"text": "London"}, {"label": "Paris"}]}, ("London", "Paris")),
            ({"choices": [1, None, 2.5]}, ("1", "", "2.5")),
            ({"choices": "London"}, ()),
        ],
    )
    def test_choices(self, context: Any, offered: tuple[str, ...]) -> None:
        assert offered_by(context).choices == offered

    def test_where_it_offers_none_those_of_the_declaration(self) -> None:
        assert offered_by({}, ["yes", "no"]).choices == ("yes", "no")
        assert offered_by({"choices": ["maybe"]}, ["yes", "no"]).choices == ("maybe",)

    @pytest.mark.parametrize(("told", "index"), [(1, 1), ("1", 1), (" 2 ", 2), (True, None), ("b", None), (1.5, None)])
    def test_the_index(self, told: Any, index: int | None) -> None:
        assert offered_by({"answer_index": told}) == Offered((), index)


class TestMultiPattern:
    @pytest.mark.parametrize(
        ("answer", "truth"),
        [
            ("Madrid", "madrid"),
            ("Madrid.", "Madrid"),
            ("Answer: Paris", "paris"),
            ("Answer: New York", "New York"),
            ("Answer: New York. That is certain.", "New York"),
            ("The answer is 3.14", "3.14"),
            ("the final answer was: 42 crowns!", "42 crowns"),
            ("Solution => 7", "7"),
            ("It is **Paris**, I think", "Paris"),
            ("Use `git push` then", "git push"),
            (r"$\boxed{12}$", "12"),
            ("Let me think\nParis\nYes", "Paris"),
            ("It is not A but B", "B"),
            ("It is not A but B", "A"),  # any candidate counts
            ("A a", "a"),
            ("答案：B", "B"),
        ],
    )
    def test_the_truth_is_a_candidate(self, answer: str, truth: str) -> None:
        assert multi_pattern_of(answer, truth) == 1.0

    @pytest.mark.parametrize(
        ("answer", "truth"),
        [
            ("Paris is nice", "Paris"),
            ("The answer is Paris", "Par"),
            ("Madrid", "d"),
            ("a cat", "a"),
            ("Answer: 3.14", "3"),
            ("", "Paris"),
        ],
    )
    def test_the_truth_is_no_candidate(self, answer: str, truth: str) -> None:
        assert multi_pattern_of(answer, truth) == 0.0

    def test_patterns_of_ones_own(self) -> None:
        total = [re.compile(r"total=(\d+)")]
        assert multi_pattern_of("total=12; total=15", "15", patterns=total) == 1.0
        assert multi_pattern_of("Answer: 15", "15", patterns=total) == 0.0
        assert multi_pattern_of("15", "15", patterns=total) == 1.0  # the answer itself is always one
        assert multi_pattern_of("x 12", "12", patterns=[re.compile(r"\d+")]) == 1.0

    def test_choices(self) -> None:
        for truth in ("Paris", "B", "1"):
            assert multi_pattern_of("Answer: B", truth, choices=CAPITALS) == 1.0
            assert multi_pattern_of("Answer: Paris", truth, choices=CAPITALS) == 1.0
            assert multi_pattern_of("Answer: C", truth, choices=CAPITALS) == 0.0

    def test_an_empty_truth_is_not_applicable(self) -> None:
        assert multi_pattern_of("x", " ") is None


@given(st.text(max_size=60), st.text(max_size=5), st.lists(st.text(max_size=5), max_size=3), st.none() | st.integers())
def test_any_text_picks_one_choice_or_none(answer: str, truth: str, choices: list[str], index: int | None) -> None:
    chosen, right = picked_of(answer, truth, choices=choices, answer_index=index)
    assert chosen is None or 0 <= chosen < 10
    assert right is None or 0 <= right < 10
    assert choice_accuracy_of(answer, truth, choices=choices, answer_index=index) in (None, 0.0, 1.0)


@given(
    st.sampled_from("ABCDEFGHIJ"), st.sampled_from(["{}", "Answer: {}", "The answer is {}.", "({})", "**{}**", "{}."])
)
def test_every_letter_can_be_picked(picked: str, phrase: str) -> None:
    assert letter(phrase.format(picked)) == picked
    assert letter(phrase.format(picked.lower())) == picked
