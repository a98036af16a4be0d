"""Levels and changes of figures over nights, with numbers that are derived by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convoscope.statistics.sequences import (
    MIN_NIGHTS,
    NightSums,
    _log_ratio,
    _weights,
    evidence,
    find_changes,
    level_of,
    night_noise,
    night_sums,
    noise,
    not_seen,
)


def sums_of(nights: list[list[float]], clusters: list[list[int]] | None = None) -> NightSums:
    """Values of each night; each conversation is a cluster of its own, unless clusters are named."""
    values = [value for night in nights for value in night]
    night = np.repeat(np.arange(len(nights)), [len(one) for one in nights])
    names = list(range(len(values))) if clusters is None else [code for one in clusters for code in one]
    return night_sums(np.array(values, float), np.ones(len(values)), np.array(names), night, len(nights))


def coins(shares: list[float], size: int) -> list[list[float]]:
    """Nights of coins, of which exactly this share shows heads."""
    return [[1.0] * round(share * size) + [0.0] * (size - round(share * size)) for share in shares]


class TestSums:
    def test_clusters_of_one_night_and_of_two(self) -> None:
        # Cluster 7 has 1 and 2 in the first night, 4 in the second; cluster 8 has 5 in the second alone.
        sums = sums_of([[1, 2], [4, 5]], [[7, 7], [7, 8]])
        assert sums.above.tolist() == [3, 9]
        assert sums.below.tolist() == [2, 2]
        assert sums.cells.tolist() == [1, 2]
        assert sums.fresh.tolist() == [1, 1]
        # above × above: 3² = 9 in the first night, 4² + 5² = 41 in the second, 3 × 4 = 12 between them.
        assert sums.squares[0].tolist() == [9, 41]
        assert sums.blocks[0].tolist() == [[0, 0, 0], [0, 9, 21], [0, 21, 9 + 12 + 12 + 41]]
        # above × below: 3 × 2 = 6; 4 × 1 + 5 × 1 = 9.
        assert sums.squares[1].tolist() == [6, 9]

    def test_what_has_no_value_is_nowhere(self) -> None:
        below, night = np.array([1.0, 0.0]), np.array([0, 0])
        sums = night_sums(np.array([1.0, 9.0]), below, np.array([0, 1]), night, 1)
        assert (sums.above.tolist(), sums.below.tolist(), sums.cells.tolist()) == ([1.0], [1.0], [1.0])


class TestNoise:
    def test_of_conversations_that_come_once_it_is_their_variance(self) -> None:
        # Two coins a night, one heads: the ratio is 1/2, and each coin is 1/2 off: 1/4 each. A night has 2 × 1/4 ÷ 2 =
        # 1/4; both have 1/2. What the mean of both took from it is 4 × 1/4 ÷ 4 = 1/4. One degree is left: 1/4.
        assert noise(sums_of([[1, 0], [1, 0]])) == pytest.approx(0.25)

    def test_scenarios_that_come_out_the_same_each_night_have_none(self) -> None:
        each = [0, 1, 2, 3]
        assert noise(sums_of([[1, 0, 1, 0]] * 5, [each] * 5)) == pytest.approx(0, abs=1e-12)
        # As conversations of their own, the same values are as noisy as coins: 5 nights × 1/4 − 1/4, over 4.
        assert noise(sums_of([[1, 0, 1, 0]] * 5)) == pytest.approx(0.25)


class TestEvidence:
    def test_the_ratio_of_students_t(self) -> None:
        # ½ ln ¼ + 5/2 × (ln(1 + 8/4) − ln(1 + ¼ × 8/4)) = −ln 2 + 5/2 × ln(3 ÷ 1.5) = 3/2 ln 2.
        made = _log_ratio(np.array(8.0), 4.0, np.array(0.25))
        assert made == pytest.approx(1.5 * math.log(2))

    @pytest.mark.parametrize("nights", [10, 400, 100_000])
    def test_weights_never_add_up_to_more_than_one(self, nights: int) -> None:
        assert _weights(nights, None).sum() <= 1
        assert _weights(nights, np.ones(nights, dtype=np.bool_)).sum() <= 1
        # A night with the first new version has 1/4 beside its share of the other half.
        marked = np.arange(nights) == 5
        assert _weights(nights, marked)[5] == pytest.approx(0.25 + _weights(nights, None)[5] / 2)

    def test_nights_alone_cannot_make_it_strong(self) -> None:
        """One night far off is no level, and all alike is no change."""
        assert find_changes(sums_of(coins([0.5] * 30, 20))) == []
        assert find_changes(sums_of(coins([0.5] * 20 + [0.0] + [0.5] * 9, 40))) == []

    @given(st.floats(0.1, 1000), st.floats(-100, 100), st.integers(0, 2**32 - 1))
    def test_the_unit_and_the_zero_do_not_matter(self, unit: float, zero: float, seed: int) -> None:
        nights = np.random.default_rng(seed).normal(1.0, 0.3, (12, 8)).round(3)
        plain = evidence(sums_of(nights.tolist()))
        other = evidence(sums_of((nights * unit + zero).tolist()))
        assert other.log == pytest.approx(plain.log, abs=1e-4)
        assert other.at == plain.at

    @given(st.integers(0, 2**32 - 1))
    def test_some_nights_of_many_are_those_nights(self, seed: int) -> None:
        random = np.random.default_rng(seed)
        nights = random.random((14, 6)).round(2).tolist()
        clusters = random.integers(0, 20, (14, 6)).tolist()
        part, alone = sums_of(nights, clusters).nights(3, 13), sums_of(nights[3:13], clusters[3:13])
        assert noise(part) == pytest.approx(noise(alone))
        assert np.allclose(part.squares, alone.squares)


class TestChanges:
    def test_too_few_nights_name_nothing(self) -> None:
        shares = [0.9] * 4 + [0.1] * 3
        assert len(shares) < MIN_NIGHTS
        assert find_changes(sums_of(coins(shares, 100))) == []

    def test_a_fall_and_a_rise_are_two_changes(self) -> None:
        # Nights vary by a point, so that no level is without noise.
        shares = [0.80, 0.82, 0.81, 0.79] * 3 + [0.50, 0.52, 0.51] * 3 + [0.80, 0.79, 0.82] * 3
        changes = find_changes(sums_of(coins(shares, 100)))
        assert [one.at for one in changes] == [12, 21]
        assert all(one.named_at > one.at for one in changes)

    def test_a_new_version_makes_a_small_change_known_sooner(self) -> None:
        random = np.random.default_rng(4)
        nights = [(random.random(200) < (0.7 if night < 20 else 0.6)).astype(float).tolist() for night in range(45)]
        sums, marked = sums_of(nights), np.arange(45) == 20
        (plain,), (known,) = find_changes(sums, 0.01), find_changes(sums, 0.01, marked)
        assert known.at == 20
        assert known.named_at <= plain.named_at

    def test_under_no_change_hardly_any_is_ever_named(self) -> None:
        """200 histories of 40 nights, a look after each: at most 5 % may name one; 8 % is three errors above."""
        random = np.random.default_rng(20)
        heads = random.binomial(50, 0.1, (200, 40)).astype(float)
        below = np.full(heads.shape, 50.0)
        squares = np.stack([heads, heads, below])
        blocks = np.zeros((3, 200, 41, 41))
        blocks[..., 1:, 1:] = np.minimum(
            np.cumsum(squares, -1)[..., :, None], np.cumsum(squares, -1)[..., None, :]
        )  # coins of one night meet no others
        sums = NightSums(heads, below, squares, blocks, below, below)
        named = np.zeros(200, dtype=np.bool_)
        for night in range(MIN_NIGHTS, 41):
            named |= evidence(sums.nights(0, night)).log >= -math.log(0.05)
        assert named.mean() <= 0.08


class TestLevels:
    def test_a_share_never_seen_may_still_be(self) -> None:
        # (1 − p)ⁿ = 0.05 ÷ (n + 1): for one coin 1 − p = 0.025.
        assert not_seen(1) == pytest.approx(0.975)
        assert (1 - not_seen(99)) ** 99 == pytest.approx(0.0005)

    def test_the_level_is_that_of_all_conversations_and_narrows(self) -> None:
        few, many = (sums_of(coins([0.6, 0.7, 0.65, 0.65] * count, 40)) for count in (2, 20))
        first, second = (level_of(one, *night_noise([one]), recurring=False) for one in (few, many))
        assert first.value == pytest.approx(0.65)
        assert first.low < second.low < 0.65 < second.high < first.high
        # The band is never narrower than the usual 95 % interval: 1.96 × √(0.65 × 0.35 ÷ 3200) = 0.0165.
        assert second.high - second.value > 0.0165

    def test_scenarios_that_recur_have_a_level_of_their_own(self) -> None:
        """Ten scenarios that come out the same each night: their level is known, that of all scenarios is not."""
        values = [[1.0] * 7 + [0.0] * 3] * 8
        sums = sums_of(values, [list(range(10))] * 8)
        own = level_of(sums, *night_noise([sums]), recurring=True)
        general = level_of(sums, *night_noise([sums]), recurring=False)
        assert own.high - own.low == pytest.approx(0, abs=1e-6)
        assert general.high - general.low > 0.5
