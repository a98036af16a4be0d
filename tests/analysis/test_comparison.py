"""Comparing two sets of conversations: hand-derived figures, and how often chance alone is taken for a difference."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from convoscope.analysis.answer.comparison import paired, standardised, strata_of, whole
from convoscope.analysis.answer.differences import order_key
from convoscope.statistics.differences import FigureSample, holm

RUNS = 300


def shares(values: object) -> FigureSample:
    """One value, 0 or 1, of each conversation."""
    above = np.asarray(values, dtype=np.float64)
    return FigureSample(above, np.ones_like(above))


def halves(count: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    first = np.arange(2 * count) < count
    return first, ~first


def alone(count: int) -> NDArray[np.int64]:
    return np.arange(count, dtype=np.int64)


def none(count: int) -> NDArray[np.int64]:
    return np.full(count, -1, dtype=np.int64)


class TestWhole:
    def test_two_shares(self) -> None:
        """8 of 10 against 2 of 10: together 1/2, so each residual is 1/2."""
        sample = shares([1] * 8 + [0] * 2 + [1] * 2 + [0] * 8)
        result = whole(sample, *halves(10), alone(20))
        assert result is not None
        assert (result.first, result.second, result.clusters) == (0.8, 0.2, 10)
        # each side: √(10 × 1/4) ÷ 10 × √(10 ÷ 9) = 1/6; both: √2 ÷ 6
        assert result.error == pytest.approx(math.sqrt(2) / 6)
        # t = 0.6 ÷ 0.2357 = 2.546 with 18 degrees of freedom: two-sided 0.0203 by any table
        assert result.p == pytest.approx(0.0203, abs=2e-4)

    def test_shares_of_none_and_all_have_an_error(self) -> None:
        result = whole(shares([0] * 10 + [1] * 10), *halves(10), alone(20))
        assert result is not None
        assert result.error == pytest.approx(math.sqrt(2) / 6)  # the residuals are 1/2 again
        assert 0 < result.p < 0.001

    def test_trials_of_one_scenario_are_one_cluster(self) -> None:
        """The same shares, but the ten of each side are of two scenarios: too few to compare."""
        sample = shares([1] * 8 + [0] * 2 + [1] * 2 + [0] * 8)
        assert whole(sample, *halves(10), np.arange(20) // 5) is None

    def test_a_side_without_a_value(self) -> None:
        sample = FigureSample(np.zeros(20), np.where(np.arange(20) < 10, 1.0, 0.0))
        assert whole(sample, *halves(10), alone(20)) is None


class TestPairs:
    def test_a_difference_that_only_pairs_show(self) -> None:
        """Waits of 1 to 10 s by scenario, each half a second shorter in the second: hidden among scenarios."""
        waits = np.arange(1.0, 11.0)
        sample = FigureSample(np.concatenate((waits, waits - 0.5 + 0.01 * (waits % 3))), np.ones(20))
        scenarios = np.tile(np.arange(10), 2)
        result = paired(sample, *halves(10), scenarios)
        assert result is not None
        # the hundredths: 1 to 10 modulo 3 are 1 2 0 1 2 0 1 2 0 1, together 10, in the mean 0.01
        assert (result.first, result.second) == (pytest.approx(5.5), pytest.approx(5.5 - 0.5 + 0.01))
        assert result.pairs == 10
        assert result.p < 0.01
        unpaired = whole(sample, *halves(10), alone(20))
        assert unpaired is not None
        assert unpaired.p > 0.5

    def test_only_scenarios_of_both_count(self) -> None:
        """Six shared scenarios, equal in both; the first side has four more that all fail."""
        sample = shares([1] * 6 + [0] * 4 + [1] * 6)
        first = np.arange(16) < 10
        result = paired(sample, first, ~first, np.concatenate((np.arange(10), np.arange(6))))
        assert result is not None
        assert (result.first, result.second, result.pairs, result.p) == (1.0, 1.0, 6, 1.0)

    @pytest.mark.parametrize(("pairs", "p"), [(5, 2**-4), (8, 2**-7)])
    def test_few_pairs_prove_little(self, pairs: int, p: float) -> None:
        """All turn from 0 to 1 without any spread: no less likely than that all signs agree by chance."""
        result = paired(shares([0] * pairs + [1] * pairs), *halves(pairs), np.tile(np.arange(pairs), 2))
        assert result is not None
        assert result.p == p

    def test_fewer_than_five_are_no_pairs(self) -> None:
        assert paired(shares([0] * 4 + [1] * 4), *halves(4), np.tile(np.arange(4), 2)) is None


class TestStrata:
    def test_the_whole_says_the_opposite(self) -> None:
        """Easy 72 of 80 and 20 of 20, hard 6 of 20 and 32 of 80."""
        cells = ((0, 0, 80, 72), (0, 1, 20, 6), (1, 0, 20, 20), (1, 1, 80, 32))
        sides = np.concatenate([np.full(size, side) for side, _, size, _ in cells])
        kinds = np.concatenate([np.full(size, kind) for _, kind, size, _ in cells])
        values = np.concatenate([np.arange(size) < good for _, _, size, good in cells])
        sample, first = shares(values), sides == 0
        raw = whole(sample, first, ~first, alone(200))
        strata = strata_of(sample, first, ~first, alone(200), kinds.astype(np.int64))
        assert raw is not None
        assert (raw.first, raw.second) == (0.78, 0.52)  # (72 + 6) ÷ 100 and (20 + 32) ÷ 100
        assert [one.weight for one in strata] == [16.0, 16.0]  # 80 × 20 ÷ 100
        adjusted = standardised(strata)
        # equal weights: (0.9 + 0.3) ÷ 2 and (1 + 0.4) ÷ 2
        assert (adjusted.first, adjusted.second) == (pytest.approx(0.6), pytest.approx(0.7))

    def test_only_kinds_of_both_count(self) -> None:
        sample = shares([1] * 10 + [0] * 10)
        kinds = np.array([0] * 5 + [1] * 5 + [1] * 5 + [2] * 5)
        assert [one.value for one in strata_of(sample, *halves(10), alone(20), kinds)] == [1]


class TestChance:
    """How often is chance taken for a difference, at a level of 5 %? Seeded; three standard errors of leeway."""

    MOST = 0.05 + 3 * math.sqrt(0.05 * 0.95 / RUNS)  # 0.088

    @pytest.mark.parametrize(("share", "size"), [(0.5, 12), (0.9, 30), (0.02, 60), (0.5, 200)])
    def test_of_shares(self, share: float, size: int) -> None:
        generator = np.random.default_rng(1)
        claims = 0
        for _ in range(RUNS):
            sample = shares(generator.random(2 * size) < share)
            result = whole(sample, *halves(size), alone(2 * size))
            claims += result is not None and result.p < 0.05
        assert claims / RUNS <= self.MOST

    def test_of_waits_with_a_long_tail(self) -> None:
        generator = np.random.default_rng(2)
        claims = 0
        for _ in range(RUNS):
            sample = FigureSample(generator.lognormal(0.0, 1.0, 60), np.ones(60))
            result = whole(sample, *halves(30), alone(60))
            claims += result is not None and result.p < 0.05
        assert claims / RUNS <= self.MOST

    @pytest.mark.parametrize("trials", [1, 4])
    def test_of_pairs(self, trials: int) -> None:
        """Twenty scenarios of very different difficulty, both versions equally good at each."""
        generator = np.random.default_rng(3)
        claims = 0
        for _ in range(RUNS):
            scenarios = np.tile(np.repeat(np.arange(20), trials), 2)
            sample = shares(generator.random(len(scenarios)) < generator.random(20)[scenarios])
            result = paired(sample, *halves(20 * trials), scenarios)
            assert result is not None
            claims += result.p < 0.05
        assert claims / RUNS <= self.MOST

    def test_within_strata_of_another_mix(self) -> None:
        """Equal within each kind, 0.9 and 0.3; the mix is 80 to 20 and 20 to 80. The raw figures differ always."""
        generator = np.random.default_rng(4)
        kinds = np.array([0] * 80 + [1] * 20 + [0] * 20 + [1] * 80)
        claims = raw_claims = 0
        for _ in range(RUNS):
            sample = shares(generator.random(200) < np.where(kinds == 0, 0.9, 0.3))
            raw = whole(sample, *halves(100), alone(200))
            assert raw is not None
            raw_claims += raw.p < 0.05
            claims += standardised(strata_of(sample, *halves(100), alone(200), kinds)).p < 0.05
        assert claims / RUNS <= self.MOST
        assert raw_claims / RUNS > 0.9

    def test_of_forty_groups_at_once(self) -> None:
        """Forty groups of 25 against the others, with the correction: some claim in at most 5 % of the runs."""
        generator = np.random.default_rng(5)
        groups, claims = np.repeat(np.arange(40), 25), 0
        for _ in range(100):
            sample = shares(generator.random(1000) < 0.7)
            found = [whole(sample, groups != one, groups == one, alone(1000)) for one in range(40)]
            claims += min(holm([one.p for one in found if one is not None])) <= 0.05
        assert claims / 100 <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 100)  # 0.115

    def test_a_true_difference_is_seen(self) -> None:
        """0.9 against 0.6 of a hundred each: by hand z is about 5, so nearly always."""
        generator = np.random.default_rng(6)
        claims = 0
        for _ in range(RUNS):
            sample = shares(generator.random(200) < np.where(np.arange(200) < 100, 0.9, 0.6))
            result = whole(sample, *halves(100), alone(200))
            claims += result is not None and result.p < 0.05
        assert claims / RUNS > 0.95


def test_versions_in_their_order() -> None:
    assert sorted(["v10", "v9", "v2"], key=order_key) == ["v2", "v9", "v10"]
    assert sorted(["2026-11-02", "2026-1-30", "2025-12-01"], key=order_key) == ["2025-12-01", "2026-1-30", "2026-11-02"]
    assert sorted(["1.10", "1.9", "rc", "1"], key=order_key) == ["1", "1.9", "1.10", "rc"]
