"""Differences: exact permutations, intervals from both sides, corrections for many figures."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.statistics.differences import (
    ClusterSums,
    FigureSample,
    benjamini_hochberg,
    clusters_for,
    difference_interval,
    holm,
    normal_quantile,
    permuted,
    pooled_degrees,
)

ROUNDS = 20_000


def clusters(values: list[float], start: int = 0) -> ClusterSums:
    return ClusterSums(np.arange(start, start + len(values)), np.array(values, dtype=float), np.ones(len(values)))


def shares(good: int, count: int) -> FigureSample:
    return FigureSample((np.arange(count) < good).astype(float), np.ones(count), bounded=True)


class TestPermuted:
    def test_two_shares_are_as_likely_as_by_fisher(self) -> None:
        """8 of 10 against 2 of 10: of C(20, 10) = 184,756 ways to deal ten successes, C(10,8)² + C(10,9)² + 1 on each
        side have 8 or more: 2 × (2,025 + 100 + 1) = 4,252, which is 0.0230."""
        found = permuted(clusters([1.0] * 8 + [0.0] * 2), clusters([1.0] * 2 + [0.0] * 8, 10), ROUNDS)
        assert found == pytest.approx(4252 / 184_756, abs=0.003)

    def test_pairs_swap_their_sides(self) -> None:
        """Eight pairs, all turned from 0 to 1: two of 2⁸ ways to swap are as extreme."""
        assert permuted(clusters([0.0] * 8), clusters([1.0] * 8), ROUNDS) == pytest.approx(2 / 256, abs=0.002)

    def test_equal_sides(self) -> None:
        assert permuted(clusters([1.0, 2.0, 3.0]), clusters([3.0, 1.0, 2.0], 3), ROUNDS) == 1.0

    def test_unlike_sizes_by_all_ways_to_deal(self) -> None:
        """Three against five waits: all 56 ways, with the statistic computed one by one."""
        first, second = [1.0, 1.5, 1.2], [2.0, 2.6, 1.9, 3.0, 1.4]
        every = first + second

        def statistic(chosen: tuple[int, ...]) -> float:
            a = [every[index] for index in chosen]
            b = [every[index] for index in range(8) if index not in chosen]
            error = math.sqrt(np.var(a, ddof=1) / 3 + np.var(b, ddof=1) / 5)
            return abs(float(np.mean(b)) - float(np.mean(a))) / error

        seen = statistic((0, 1, 2))
        as_extreme = sum(statistic(one) >= seen * (1 - 1e-9) for one in combinations(range(8), 3))
        found = permuted(clusters(first), clusters(second, 3), ROUNDS)
        assert found == pytest.approx(as_extreme / 56, abs=0.02)

    def test_it_is_the_same_every_time(self) -> None:
        sides = clusters([1.0, 2.0, 5.0, 1.0]), clusters([4.0, 6.0, 7.0, 3.0], 4)
        assert permuted(*sides, 500) == permuted(*sides, 500)

    @given(
        st.lists(st.integers(0, 5), min_size=5, max_size=12),
        st.lists(st.integers(0, 5), min_size=5, max_size=12),
        st.integers(0, 4),
    )
    def test_it_is_a_probability_and_has_no_side(self, first: list[int], second: list[int], shared: int) -> None:
        """With some clusters on both sides, too."""
        a = clusters([float(one) for one in first])
        b = clusters([float(one) for one in second], len(first) - shared)
        found = permuted(a, b, 300)
        assert 0 < found <= 1
        larger = ClusterSums(b.codes, b.above * 3, b.below * 3)  # the same ratio, three times as often
        assert 0 < permuted(a, larger, 300) <= 1


class TestInterval:
    def test_a_published_one(self) -> None:
        """56 of 70 and 48 of 80 (Newcombe 1998, method 10): 0.0524 to 0.3339."""
        found = difference_interval(shares(48, 80), shares(56, 70), (np.arange(80), np.arange(100, 170)))
        assert found.low == pytest.approx(0.0524, abs=1e-4)
        assert found.high == pytest.approx(0.3339, abs=1e-4)
        assert found.excludes_zero

    def test_nothing_happened_on_either_side(self) -> None:
        """0 of 10 twice: Wilson's upper end is 0.2775 on both."""
        found = difference_interval(shares(0, 10), shares(0, 10), (np.arange(10), np.arange(10, 20)))
        assert (found.low, found.high) == (pytest.approx(-0.2775, abs=1e-4), pytest.approx(0.2775, abs=1e-4))

    def test_pairs_that_agree_are_closer(self) -> None:
        """The same 40 scenarios: what they have in common falls out."""
        waits = np.linspace(1.0, 10.0, 40)
        first, second = FigureSample(waits, np.ones(40)), FigureSample(waits + 0.5, np.ones(40))
        apart = difference_interval(first, second, (np.arange(40), np.arange(40, 80)))
        together = difference_interval(first, second, (np.arange(40), np.arange(40)))
        assert apart.low is not None
        assert apart.low < 0
        assert together.low == pytest.approx(0.5, abs=1e-6)

    @given(st.integers(0, 30), st.integers(0, 30))
    def test_it_turns_round_with_the_sides(self, good: int, other: int) -> None:
        codes = np.arange(30), np.arange(30, 60)
        there = difference_interval(shares(good, 30), shares(other, 30), codes)
        back = difference_interval(shares(other, 30), shares(good, 30), codes[::-1])
        assert there.low is not None
        assert there.high is not None
        assert (back.low, back.high) == (pytest.approx(-there.high), pytest.approx(-there.low))
        assert there.low <= (other - good) / 30 <= there.high


class TestCorrections:
    def test_holm_with_weights(self) -> None:
        """0.01 of weight 3 among 5, 0.01 of weight 2: 0.01 ÷ 3 × 5, then 0.01 ÷ 2 × 2."""
        assert holm([0.01, 0.01], [3.0, 2.0]) == pytest.approx([0.01 / 3 * 5, 0.01 / 3 * 5])
        # the lighter one alone: 0.02 ÷ 2 × 2, above the first's 0.001 ÷ 3 × 5
        assert holm([0.001, 0.02], [3.0, 2.0]) == pytest.approx([0.001 / 3 * 5, 0.02])

    @given(st.lists(st.floats(0, 1), max_size=12))
    def test_holm_never_makes_less_of_it(self, probabilities: list[float]) -> None:
        corrected = holm(probabilities)
        assert all(low <= high + 1e-12 and high <= 1 for low, high in zip(probabilities, corrected, strict=True))

    def test_benjamini_and_hochberg(self) -> None:
        """Sorted 0.01, 0.02, 0.04: × 3, × 3 ÷ 2, × 1; each at most what comes after it."""
        assert benjamini_hochberg([0.04, 0.01, 0.02]) == pytest.approx([0.04, 0.03, 0.03])
        assert benjamini_hochberg([]) == []


class TestSizes:
    def test_clusters_for_an_effect(self) -> None:
        """(1.960 + 0.8416)² × (0.05 ÷ 0.1)² × 100."""
        assert clusters_for(0.1, 0.05, 100) == pytest.approx(196.2, abs=0.1)
        assert clusters_for(0.0, 0.05, 100) == math.inf

    @pytest.mark.parametrize(("share", "value"), [(0.5, 0.0), (0.975, 1.959964), (0.999, 3.090232)])
    def test_normal_quantiles(self, share: float, value: float) -> None:
        assert normal_quantile(share) == pytest.approx(value, abs=1e-5)

    def test_degrees_of_a_small_side(self) -> None:
        """Sums of squares 5 × 1² of 5 clusters and 500 × 0.01² of 500: the small side decides."""
        first, second = np.ones(5), np.full(500, 0.01)
        assert pooled_degrees(first, second) == pytest.approx((5.05**2) / (25 / 4 + 0.0025 / 499))
