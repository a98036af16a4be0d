"""How sure is a figure? Turns of one conversation go together, and so do trials of one scenario (design, idea 8)."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.metrics import SHARE, Metric
from convoscope.scores.reducers import Sums, percentile
from convoscope.statistics.intervals import DRAWS, Interval, percentile_interval, ratio_interval, wilson
from support.tables import headline, ratios, reduced_by, values

Z2 = 3.841458820694124  # the square of 1.959964, the normal deviate of 95 %


def interval(
    above: Sequence[float],
    below: Sequence[float] | None = None,
    clusters: Sequence[int] | None = None,
    *,
    share: bool = False,
) -> Interval | None:
    """Of Σ above ÷ Σ below over conversations; each a cluster of its own unless clusters are given."""
    ones = [1.0] * len(above)
    sums = Sums("", np.array(above, dtype=float), np.array(below or ones, dtype=float))
    codes = np.arange(len(above)) if clusters is None else np.array(clusters)
    return ratio_interval(sums, codes.astype(np.int64), share=share)


def ends(one: Interval | None) -> tuple[float, float]:
    assert one is not None
    return one.low, one.high


def width(one: Interval | None) -> float:
    low, high = ends(one)
    return high - low


@st.composite
def trials_and_successes(draw: st.DrawFn) -> tuple[float, float]:
    """Trials, whole or an effective number, and how many of them went well: none, all, or anything between."""
    trials = draw(st.integers(1, 10**7).map(float) | st.floats(0.01, 1e5, allow_subnormal=False))
    part = draw(st.sampled_from([0.0, 1.0]) | st.floats(0, 1))
    successes = part * trials
    return trials, min(trials, draw(st.sampled_from([successes, math.floor(successes)])))


class TestWilson:
    @pytest.mark.parametrize(
        ("successes", "trials", "low", "high"),
        [
            (0, 10, 0.0, Z2 / (10 + Z2)),  # p = 0: centre and spread are both z²/2n ÷ (1 + z²/n)
            (10, 10, 10 / (10 + Z2), 1.0),
            # p = ½: the formula comes to ½ ± z ÷ (2 √(n + z²)) = ½ ± 1.959964 ÷ (2 · 3.720411)
            (5, 10, 0.236593, 0.763407),
            # Newcombe, Statistics in Medicine 17 (1998), table I, method 3
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ],
    )
    def test_against_values_by_hand_and_published(self, successes: int, trials: int, low: float, high: float) -> None:
        assert wilson(successes, trials) == pytest.approx((low, high), abs=5e-5)

    def test_it_stays_between_0_and_1(self) -> None:
        for successes in range(4):
            low, high = wilson(successes, 3)
            assert 0 <= low < high <= 1

    @pytest.mark.parametrize("trials", [1, 3, 7, 10, 49, 263, 1_000_003, 0.3, 1.5, 9.7, 1234.5])
    def test_none_and_all_are_an_end_to_the_last_digit(self, trials: float) -> None:
        # For p = 0, centre and spread are the same number, and rounding must not tear them apart.
        assert wilson(0, trials)[0] == 0.0
        assert wilson(trials, trials)[1] == 1.0

    @given(trials_and_successes())
    @example((1e-9, 0.0))
    @example((1.5, 1.5))
    @example((49.0, 1.0))
    def test_it_always_holds_the_share_itself(self, drawn: tuple[float, float]) -> None:
        trials, successes = drawn
        low, high = wilson(successes, trials)
        assert 0.0 <= low <= successes / trials <= high <= 1.0
        if successes == 0:
            assert low == 0.0
        if successes == trials:
            assert high == 1.0

    @given(trials_and_successes())
    def test_failures_have_the_same_interval_from_the_other_side(self, drawn: tuple[float, float]) -> None:
        trials, successes = drawn
        low, high = wilson(successes, trials)
        other_low, other_high = wilson(trials - successes, trials)
        assert (1 - other_high, 1 - other_low) == pytest.approx((low, high), abs=1e-9)


class TestShares:
    def test_one_trial_a_conversation_is_plain_wilson(self) -> None:
        one = interval([1, 0, 1, 0, 1, 0, 1, 0, 1, 0], share=True)
        assert ends(one) == pytest.approx((0.236593, 0.763407), abs=1e-6)  # 5 of 10
        assert one is not None
        assert (one.method, one.clusters, one.level) == ("wilson", 10, 0.95)

    def test_turns_that_agree_within_conversations_count_as_one(self) -> None:
        one = interval([10] * 5 + [0] * 5, [10] * 10, share=True)
        # Residuals ±5: variance = 10/9 · 250 ÷ 100² = 1/36; n = ½·½ ÷ (1/36) = 9, where there are 100 turns.
        # Wilson with p = ½, n = 9: ½ ± 1.959964 ÷ (2 √(9 + z²)) = ½ ± 1.959964 ÷ (2 · 3.583498) = ½ ± 0.273471
        assert ends(one) == pytest.approx((0.226529, 0.773471), abs=1e-6)
        assert one is not None
        assert (one.method, one.clusters) == ("wilson_effective_n", 10)

    def test_so_that_it_is_wider_than_if_turns_were_alone(self) -> None:
        low, high = wilson(50, 100)
        assert width(interval([10] * 5 + [0] * 5, [10] * 10, share=True)) > 2 * (high - low)

    def test_turns_that_do_not_go_together_count_almost_each(self) -> None:
        # 5 of 10 in each conversation but two: hardly any spread between conversations.
        low, high = wilson(50, 100)
        one = interval([5] * 8 + [3, 7], [10] * 10, share=True)
        # Residuals −2 and 2: variance = 10/9 · 8 ÷ 100² = 1/1125; ¼ ÷ (1/1125) = 281, but there are 100 turns only
        assert ends(one) == pytest.approx((low, high), abs=1e-9)

    @pytest.mark.parametrize(("turns_right", "expected"), [(10, (5 / (5 + Z2), 1.0)), (0, (0.0, Z2 / (5 + Z2)))])
    def test_all_or_none_is_not_certainty(self, turns_right: int, expected: tuple[float, float]) -> None:
        # No spread tells how far turns go together, so each of 5 conversations counts once: 5 of 5, 0 of 5.
        assert ends(interval([turns_right] * 5, [10] * 5, share=True)) == pytest.approx(expected)

    @pytest.mark.parametrize(("clusters", "turns"), [(5, 10), (49, 1), (48, 3), (7, 7), (1_000, 3)])
    def test_none_and_all_lie_at_an_end_of_their_interval(self, clusters: int, turns: int) -> None:
        # whether each conversation is one trial or several; an end beside the value would set the group apart
        assert ends(interval([0] * clusters, [turns] * clusters, share=True))[0] == 0.0
        assert ends(interval([turns] * clusters, [turns] * clusters, share=True))[1] == 1.0

    def test_all_of_some_single_trials_is_not_certainty(self) -> None:
        assert ends(interval([1] * 10, share=True)) == pytest.approx((10 / (10 + Z2), 1.0))

    def test_one_conversation_of_several_turns_leaves_no_way_to_tell(self) -> None:
        assert interval([3], [4], share=True) is None
        assert interval([1, 1, 1], [2, 2, 2], clusters=[0, 0, 0], share=True) is None  # one scenario

    def test_as_many_trials_as_conversations_is_not_one_each(self) -> None:
        one = interval([2, 0, 0, 0], [2, 0, 2, 0], share=True)
        # p = ½, residuals 1, 0, −1, 0: variance = 4/3 · 2 ÷ 4² = 1/6, n = ¼ ÷ 1/6 = 1.5 of 4 trials
        # ½ ± 1.959964 ÷ (2 √(1.5 + z²)) = ½ ± 1.959964 ÷ (2 · 2.311160) = ½ ± 0.424022
        assert ends(one) == pytest.approx((0.075978, 0.924022), abs=1e-6)
        assert one is not None
        assert one.method == "wilson_effective_n"

    def test_conversations_that_agree_do_not_depend_on_rounding(self) -> None:
        # 48 · (1 ÷ 48) is 1 and 49 · (1 ÷ 49) is not quite: no spread, or next to none. All trials count.
        for turns in (48, 49):
            one = interval([1] * 20, [turns] * 20, share=True)
            assert ends(one) == pytest.approx(wilson(20, 20 * turns), abs=1e-9)
        widths = [width(interval([1] * 20, [turns] * 20, share=True)) for turns in (48, 49)]
        assert widths[0] == pytest.approx(widths[1], rel=0.03)

    def test_a_share_of_fractions_is_not_one_of_trials(self) -> None:
        one = interval([0.5, 0.2, 0.9], share=True)
        assert one is not None
        assert one.method == "cluster_bootstrap"


class TestMeans:
    def test_bootstrap_over_conversations(self) -> None:
        one = interval([1.0, 2.0, 3.0, 4.0, 5.0])
        assert one is not None
        assert (one.method, one.clusters, one.level) == ("cluster_bootstrap", 5, 0.95)
        # The mean of five draws from 1…5 lies between 1 and 5 and its middle is 3.
        assert 1.0 <= one.low < 3.0 < one.high <= 5.0
        # Its standard deviation is √2 ÷ √5 = 0.632; 95 % lie within about 1.96 of these.
        assert width(one) == pytest.approx(2 * 1.96 * 0.632, rel=0.1)

    def test_the_draws_depend_on_the_number_of_clusters_and_nothing_else(self) -> None:
        data = [0.3, 1.7, 2.2, 9.1, 4.4, 0.01]
        low, high = ends(interval(data))
        assert ends(interval(data)) == (low, high)
        # The same draws of other values: ten times as much, ten times as wide.
        assert ends(interval([10 * value for value in data])) == pytest.approx((10 * low, 10 * high), rel=1e-9)

    @pytest.mark.parametrize("count", [2, 6, 7])
    def test_they_are_plain_resampling(self, count: int) -> None:
        data = np.array([0.3, 1.7, 2.2, 9.1, 4.4, 0.01, 3.3])[:count]
        picks = np.random.default_rng(count).integers(0, count, size=(DRAWS, count), dtype=np.int32)
        expected = np.percentile(data[picks].mean(axis=1), [2.5, 97.5])
        assert ends(interval(data.tolist())) == pytest.approx(tuple(expected), rel=1e-9)

    def test_one_conversation_leaves_no_way_to_tell(self) -> None:
        assert interval([2.5]) is None
        assert interval([12.0], [5]) is None
        assert interval([1.0, 2.0, 3.0], clusters=[4, 4, 4]) is None  # one scenario

    def test_nothing_has_no_interval(self) -> None:
        assert interval([]) is None
        assert interval([], share=True) is None

    def test_up_to_5000_clusters_are_drawn(self) -> None:
        methods = []
        for clusters in (5000, 5001):
            one = interval([0.0, 2.0] * (clusters // 2) + [1.0] * (clusters % 2))
            assert one is not None
            methods.append((one.method, one.clusters))
        assert methods == [("cluster_bootstrap", 5000), ("cluster_robust", 5001)]

    def test_the_formula_above_is_that_of_a_mean(self) -> None:
        one = interval([0.0, 2.0] * 5000)
        # Mean 1, s² = 10000 · 1² ÷ 9999, standard error = s ÷ √10000 = √(1/9999)
        spread = 1.959964 * math.sqrt(1 / 9999)
        assert ends(one) == pytest.approx((1 - spread, 1 + spread), abs=1e-7)

    def test_above_scenarios_are_what_counts(self) -> None:
        # Each scenario twice, with the same result: as many facts as before.
        data = [0.0, 2.0] * 3000
        twice = interval(data * 2, clusters=[*range(6000), *range(6000)])
        assert twice == interval(data)
        assert width(interval(data * 2)) < 0.75 * width(twice)  # 1 ÷ √2, were they independent

    def test_above_a_share_stays_between_0_and_1(self) -> None:
        # 0.5 once in 5001: mean 0.0001, standard error 0.5 ÷ 5001; mean − 1.96 of these is below 0.
        low, high = ends(interval([0.5] + [0.0] * 5000, share=True))
        assert low == 0.0
        assert high == pytest.approx(0.5 / 5001 * (1 + 1.959964), rel=1e-3)


class TestPercentiles:
    def interval(self, data: Sequence[float], q: float, clusters: Sequence[int] | None = None) -> Interval | None:
        codes = np.arange(len(data)) if clusters is None else np.array(clusters)
        return percentile_interval(np.array(data, dtype=float), codes.astype(np.int64), q)

    def test_bootstrap_over_conversations(self) -> None:
        one = self.interval(list(range(1, 102)), 50)
        assert one is not None
        assert (one.method, one.clusters) == ("cluster_bootstrap", 101)
        # Binomial ranks of the median of 101: 51 ± 1.96 · √101 ÷ 2, that is 41 and 61
        assert ends(one) == pytest.approx((41, 61), abs=2)

    def test_turns_of_one_conversation_are_drawn_together(self) -> None:
        alone = self.interval([float(n % 10) for n in range(100)], 50)
        together = self.interval([float(n // 10) for n in range(100)], 50, clusters=[n // 10 for n in range(100)])
        assert width(together) > 2 * width(alone)

    def test_three_conversations_by_counting_the_draws(self) -> None:
        # Of the 27 ways to draw three of 1, 2, 3 with repeats, 7 have the median 1 and 7 the median 3:
        # both ends hold more than 2.5 %.
        assert ends(self.interval([1.0, 2.0, 3.0], 50)) == (1.0, 3.0)

    @pytest.mark.parametrize("q", [2, 50, 95, 99])
    @pytest.mark.parametrize("conversations", [4, 60])
    def test_it_is_what_drawing_and_pooling_gives(self, conversations: int, q: float) -> None:
        random = np.random.default_rng(5)
        talks = [random.lognormal(size=size) for size in random.integers(1, 9, size=conversations)]
        pooled = np.concatenate(talks)
        clusters = np.repeat(np.arange(conversations), [len(talk) for talk in talks])
        # Written out: draw whole conversations, pool their turns, take the percentile.
        drawn = [
            np.percentile(np.concatenate([talks[pick] for pick in picks]), q)
            for picks in random.integers(0, conversations, size=(4000, conversations))
        ]
        low, high = ends(self.interval(pooled.tolist(), q, clusters.tolist()))
        # Other draws, so the same but for chance: each end lies where 2.5 % of these draws do, give or take 1.5 %.
        # Ends are rounded to ten digits.
        assert np.mean(np.less(drawn, low * (1 - 1e-9))) <= 0.04
        assert np.mean(np.less_equal(drawn, low * (1 + 1e-9))) >= 0.01
        assert np.mean(np.greater(drawn, high * (1 + 1e-9))) <= 0.04
        assert np.mean(np.greater_equal(drawn, high * (1 - 1e-9))) >= 0.01

    def test_one_conversation_leaves_no_way_to_tell(self) -> None:
        assert self.interval([1.0, 2.0, 3.0], 50, clusters=[0, 0, 0]) is None

    def test_it_is_reproducible(self) -> None:
        data = [math.sin(n) for n in range(40)]
        assert self.interval(data, 95) == self.interval(data, 95)

    def test_up_to_5000_clusters_are_drawn(self) -> None:
        one = self.interval(list(range(5000)), 50)
        assert one is not None
        assert one.method == "cluster_bootstrap"

    def test_woodruff_above(self) -> None:
        one = self.interval(list(range(1, 10002)), 50)
        assert one is not None
        assert (one.method, one.clusters) == ("woodruff", 10001)
        # The median is 5001. Share at or below it: p = 5001/10001, variance p(1 − p) ÷ 10000 = 0.005²
        # ± 1.959964 · 0.5 % = 0.979982 %: percentiles 49.020018 and 50.979982 of 1…10001,
        # which lie at 1 + 10000 · 0.49020018 and 1 + 10000 · 0.50979982.
        assert ends(one) == pytest.approx((4903.0018, 5098.9982), abs=0.001)

    def test_woodruff_counts_scenarios(self) -> None:
        data = list(range(1, 6002))
        once = self.interval(data, 50)
        twice = self.interval(data * 2, 50, clusters=data * 2)
        assert once is not None
        assert twice is not None
        assert twice.clusters == once.clusters == 6001
        assert width(twice) == pytest.approx(width(once), abs=2)


class TestDuplicates:
    """Saying a thing twice does not make it surer."""

    def test_of_turns(self) -> None:
        once = interval([3.0, 8.0, 1.0, 9.0], [4, 9, 5, 9])
        assert interval([6.0, 16.0, 2.0, 18.0], [8, 18, 10, 18]) == once

    def test_of_conversations_of_one_scenario(self) -> None:
        data = [3.0, 8.0, 1.0, 9.0, 4.0, 4.5]
        once = interval(data)
        assert interval(data * 3, clusters=[*range(6)] * 3) == once
        assert width(interval(data * 3)) < 0.7 * width(once)  # were they scenarios of their own

    def test_of_turns_that_go_together(self) -> None:
        once = interval([10] * 5 + [0] * 5, [10] * 10, share=True)
        assert interval([20] * 5 + [0] * 5, [20] * 10, share=True) == once

    def test_of_single_trials(self) -> None:
        data = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
        once = interval(data, share=True)
        thrice = interval(data * 3, clusters=[*range(8)] * 3, share=True)
        assert width(thrice) >= width(once)

    def test_of_all_successes(self) -> None:
        assert ends(interval([20] * 5, [20] * 5, share=True)) == ends(interval([10] * 5, [10] * 5, share=True))


class TestCoverage:
    """An interval of 95 % holds the truth about 95 times in 100: over simulated groups of conversations."""

    CONVERSATIONS, TURNS = 30, 8

    def covered(self, datasets: int, one: Callable[[np.random.Generator], Interval | None], truth: float) -> float:
        random = np.random.default_rng(20240229)
        hits = 0
        for _ in range(datasets):
            low, high = ends(one(random))
            hits += low <= truth <= high
        return hits / datasets

    def turns(self, random: np.random.Generator) -> np.ndarray:
        """Turns around 5 that lean the way of their conversation."""
        leaning = random.normal(0, 1, size=(self.CONVERSATIONS, 1))
        return 5 + leaning + random.normal(0, 0.5, size=(self.CONVERSATIONS, self.TURNS))

    def test_mean_of_all_turns(self) -> None:
        def one(random: np.random.Generator) -> Interval | None:
            return interval(self.turns(random).sum(axis=1).tolist(), [self.TURNS] * self.CONVERSATIONS)

        assert self.covered(200, one, 5.0) >= 0.88

    def test_while_turns_taken_one_by_one_would_claim_too_much(self) -> None:
        def naive(random: np.random.Generator) -> Interval | None:
            return interval(self.turns(random).ravel().tolist())

        # Variance 1.25 ÷ 240 is claimed, 1 ÷ 30 + 0.25 ÷ 240 is true: 0.39 of the standard error.
        assert self.covered(50, naive, 5.0) < 0.8

    def test_share_of_turns(self) -> None:
        def one(random: np.random.Generator) -> Interval | None:
            chance = random.beta(2, 2, size=self.CONVERSATIONS)  # mean ½, and conversations differ
            right = random.binomial(self.TURNS, chance)
            return interval(right.tolist(), [self.TURNS] * self.CONVERSATIONS, share=True)

        assert self.covered(200, one, 0.5) >= 0.88

    def test_median_of_all_turns(self) -> None:
        clusters = np.repeat(np.arange(self.CONVERSATIONS), self.TURNS)

        def one(random: np.random.Generator) -> Interval | None:
            return percentile_interval(self.turns(random).ravel(), clusters, 50)

        assert self.covered(200, one, 5.0) >= 0.88


class TestInAFigure:
    def test_a_share_is_wilsons(self) -> None:
        figure = headline(reduced_by("mean", "mean_of_subjects", SHARE), *[values(1)] * 5, *[values(0)] * 5)
        assert figure.interval is not None
        assert figure.interval.method == "wilson"
        assert ends(figure.interval) == pytest.approx((0.236593, 0.763407), abs=1e-6)

    def test_trials_of_one_scenario_are_one_cluster(self) -> None:
        declared = reduced_by("mean", "mean_of_subjects", SHARE)
        figure = headline(declared, *[values(1)] * 4, *[values(0)] * 4, scenarios=[0, 0, 1, 1, 2, 2, 3, 3])
        assert figure.interval is not None
        assert (figure.interval.method, figure.interval.clusters) == ("wilson_effective_n", 4)

    @pytest.mark.parametrize(
        "declared",
        [
            reduced_by("mean", "mean_of_subjects", SHARE),
            reduced_by("mean", "mean_of_conversations"),
            reduced_by("ratio", "ratio_of_sums", SHARE),
            reduced_by("mean", percentile(50)),
        ],
        ids=lambda declared: declared.reduce.across,
    )
    def test_one_cluster_says_why_there_is_none(self, declared: Metric) -> None:
        figure = headline(declared, ratios((1, 1), (0, 1)))
        assert (figure.value, figure.interval, figure.interval_reason) == (0.5, None, "one_cluster")

    def test_the_same_figure_has_the_same_interval(self) -> None:
        declared = reduced_by("mean")
        data = [values(1, 2), values(5), values(9, 9, 9)]
        assert headline(declared, *data).interval == headline(declared, *data).interval
