"""One-to-one matching of actions: the most pairs, then the most similar, at an exact and inclusive threshold."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.metrics.semantic.matching import best_pairs, match_actions, match_in_any_wording
from convoscope.text.folding import description_similarity, plain_description


def pairs(predicted: list[str], gold: list[str], threshold: float = 0.8) -> list[tuple[int, int]]:
    return [(one.predicted, one.gold) for one in match_actions(predicted, gold, threshold)]


def test_the_threshold_is_reached_by_equality() -> None:
    # Two edits in ten letters: 1 − 2/10 = 0.8. As binary numbers 1 − 0.2 and 0.8 need not agree.
    assert pairs(["abcdefghij"], ["abcdefghxy"]) == [(0, 0)]
    assert pairs(["abcdefghij"], ["abcdefgxyz"]) == []  # three edits: 0.7


def test_three_tenths_at_a_threshold_of_seven_tenths() -> None:
    # 1 − 3/10 in floats is 0.7 exactly or a bit less; whole numbers know: 3 ≤ (1 − 7/10) × 10.
    assert pairs(["abcdefghij"], ["abcdefgxyz"], 0.7) == [(0, 0)]


def test_a_greedy_choice_does_not_cost_a_pair() -> None:
    # The first prediction is close to both gold actions, the second to the first only: two pairs are possible.
    predicted, gold = ["aaaaaaaaaa", "aaaaaaaabb"], ["aaaaaaaaab", "aaaaaaaaba"]
    assert len(pairs(predicted, gold)) == len(pairs(predicted[::-1], gold)) == 2


def test_of_as_many_pairs_the_most_similar_are_taken() -> None:
    # Straight: 1 + 1. Crossed: 0.9 + 0.9.
    assert pairs(["aaaaaaaaaa", "aaaaaaaaab"], ["aaaaaaaaaa", "aaaaaaaaab"]) == [(0, 0), (1, 1)]
    assert pairs(["aaaaaaaaab", "aaaaaaaaaa"], ["aaaaaaaaaa", "aaaaaaaaab"]) == [(0, 1), (1, 0)]


@pytest.mark.parametrize("text", ["", "...", "—", " \t"])
def test_a_text_without_letters_is_never_matched(text: str) -> None:
    assert pairs([text], [text]) == []


def test_a_threshold_beyond_the_scale_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        match_actions(["a"], ["a"], 1.2)


TEXTS = st.lists(st.text("ab ", max_size=6), max_size=4)


@given(TEXTS, TEXTS, st.sampled_from([Fraction(1, 2), Fraction(4, 5), Fraction(1)]))
def test_no_other_matching_is_larger_or_more_similar(predicted: list[str], gold: list[str], limit: Fraction) -> None:
    def likeness(i: int, j: int) -> float:
        return description_similarity(plain_description(predicted[i]), plain_description(gold[j]))

    best = (0, 0.0)
    places = [*range(len(gold)), *[None] * len(predicted)]
    for chosen in set(itertools.permutations(places, len(predicted))):
        kept = [
            likeness(i, j)
            for i, j in enumerate(chosen)
            if j is not None and likeness(i, j) > 0 and likeness(i, j) >= limit - Fraction(1, 10**9)
        ]
        best = max(best, (len(kept), round(sum(kept), 6)))
    matches = match_actions(predicted, gold, limit)
    assert (len(matches), round(sum(one.similarity for one in matches), 6)) == best
    assert len({one.gold for one in matches}) == len({one.predicted for one in matches}) == len(matches)


@given(TEXTS, TEXTS)
def test_who_predicts_does_not_matter(first: list[str], second: list[str]) -> None:
    assert len(match_actions(first, second)) == len(match_actions(second, first))
    assert len(match_actions(first[::-1], second)) == len(match_actions(first, second))


@given(
    st.integers(1, 6).flatmap(
        lambda width: st.lists(st.lists(st.integers(-9, 9), min_size=width, max_size=width), min_size=1, max_size=6)
    )
)
def test_no_other_pairs_gain_more(gains: list[list[int]]) -> None:
    wide = gains if len(gains) <= len(gains[0]) else [list(column) for column in zip(*gains, strict=True)]
    all_ways = itertools.permutations(range(len(wide[0])), len(wide))
    most = max(sum(row[column] for row, column in zip(wide, way, strict=True)) for way in all_ways)
    assert sum(gains[row][column] for row, column in best_pairs(gains)) == most


@given(st.lists(st.text("ab ", max_size=6), max_size=5), st.lists(st.text("ab ", max_size=6), max_size=5))
def test_actions_of_one_wording_are_matched_alike(predicted: list[str], gold: list[str]) -> None:
    alone = match_in_any_wording([(one, "") for one in predicted], [(one,) for one in gold])
    assert alone == match_actions(predicted, gold)


def test_the_nearest_wording_counts_and_still_each_action_once() -> None:
    # Both predictions are the first gold action in one of their texts; only one can be it.
    predicted = [("send it", "mail the form"), ("mail the form", "")]
    assert len(match_in_any_wording(predicted, [("Mail the form!", "x"), ("call", "")])) == 1
