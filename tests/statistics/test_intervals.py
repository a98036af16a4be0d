"""How sure is a figure? Turns of one conversation go together, and so do trials of one scenario (design, idea 8)."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from convoscope.metrics import RATIO, SHARE, Metric
from convoscope.scores.reducers import Sums, percentile
from convoscope.statistics.intervals import (
    Interval,
    _Clustered,
    percentile_interval,
    ratio_interval,
    student_quantile,
    wilson,
)
from convoscope.statistics.summary import least_value, most_value
from support.tables import headline, ratios, reduced_by, values

Z2 = 3.841458820694124  # the square of 1.959964, the normal deviate of 95 %


def interval(
    above: Sequence[float],
    below: Sequence[float] | None = None,
    clusters: Sequence[int] | None = None,
    *,
    bounded: bool = False,
) -> Interval | None:
    """Of Σ above ÷ Σ below over conversations; each a cluster of its own unless clusters are given."""
    ones = [1.0] * len(above)
    sums = Sums("", np.array(above, dtype=float), np.array(below or ones, dtype=float))
    codes = np.arange(len(above)) if clusters is None else np.array(clusters)
    return ratio_interval(sums, codes.astype(np.int64), bounded=bounded)


def ends(given: Interval | None) -> tuple[float, float]:
    assert given is not None
    return given.lowest, given.highest


def width(given: Interval | None) -> float:
    low, high = ends(given)
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
        one = interval([1, 0, 1, 0, 1, 0, 1, 0, 1, 0], bounded=True)
        assert ends(one) == pytest.approx((0.236593, 0.763407), abs=1e-6)  # 5 of 10
        assert one is not None
        assert (one.method, one.clusters, one.level) == ("wilson", 10, 0.95)

    def test_turns_that_agree_within_conversations_count_as_one(self) -> None:
        one = interval([10] * 5 + [0] * 5, [10] * 10, bounded=True)
        # Residuals ±5, each conversation a tenth of the data: variance = 10 · 25/0.9 ÷ 100² = 1/36, which is
        # 11.1111 times ¼ ÷ 100. Turns that always agree would make it 10 times that, and this counts as two
        # conversations beside the 9 degrees of ten: (9 · 11.1111 + 2 · 10) ÷ 11 = 10.9091. 100 ÷ 10.9091 = 9.1667.
        # Wilson with p = ½: ½ ± 1.959964 ÷ (2 √(9.1667 + z²)) = ½ ± 1.959964 ÷ (2 · 3.606678)
        assert ends(one) == pytest.approx((0.228287, 0.771713), abs=1e-6)
        assert one is not None
        assert (one.method, one.clusters) == ("wilson_effective_n", 10)

    def test_so_that_it_is_wider_than_if_turns_were_alone(self) -> None:
        low, high = wilson(50, 100)
        assert width(interval([10] * 5 + [0] * 5, [10] * 10, bounded=True)) > 2 * (high - low)

    def test_turns_that_do_not_go_together_count_almost_each(self) -> None:
        # 5 of 10 in each conversation but two: hardly any spread between conversations.
        one = interval([5] * 8 + [3, 7], [10] * 10, bounded=True)
        # Residuals −2 and 2: variance = 8/0.9 ÷ 100² = 0.35556 · ¼ ÷ 100; (9 · 0.35556 + 2 · 10) ÷ 11 = 2.109091;
        # 100 ÷ 2.109091 = 47.41379; ½ ± 1.959964 ÷ (2 √(47.41379 + z²)) = ½ ± 1.959964 ÷ (2 · 7.159277)
        assert ends(one) == pytest.approx((0.363117, 0.636883), abs=1e-6)

    # No spread tells how far turns go together, so each of 5 conversations counts once: 5 of 5, 0 of 5.
    @pytest.mark.parametrize(("turns_right", "expected"), [(10, (5 / (5 + Z2), 1.0)), (0, (0.0, Z2 / (5 + Z2)))])
    def test_all_or_none_is_not_certainty(self, turns_right: int, expected: tuple[float, float]) -> None:
        assert ends(interval([turns_right] * 5, [10] * 5, bounded=True)) == pytest.approx(expected, abs=1e-5)

    @pytest.mark.parametrize(("clusters", "turns"), [(5, 10), (49, 1), (48, 3), (7, 7), (1_000, 3)])
    def test_none_and_all_lie_at_an_end_of_their_interval(self, clusters: int, turns: int) -> None:
        # whether each conversation is one trial or several; an end beside the value would set the group apart
        assert ends(interval([0] * clusters, [turns] * clusters, bounded=True))[0] == 0.0
        assert ends(interval([turns] * clusters, [turns] * clusters, bounded=True))[1] == 1.0

    def test_all_of_some_single_trials_is_not_certainty(self) -> None:
        assert ends(interval([1] * 10, bounded=True)) == pytest.approx((10 / (10 + Z2), 1.0))

    def test_one_conversation_leaves_no_way_to_tell(self) -> None:
        assert interval([1], bounded=True) is None
        assert interval([3], [4], bounded=True) is None
        assert interval([1, 1, 1], [2, 2, 2], clusters=[0, 0, 0], bounded=True) is None  # one scenario

    def test_conversations_without_an_opportunity_tell_nothing(self) -> None:
        one = interval([2, 0, 0, 0], [2, 0, 2, 0], bounded=True)
        # Two conversations: p = ½, residuals 1 and −1, each half of the data: variance = 2 · 1/½ ÷ 4² = ¼, four times
        # ¼ ÷ 4. Where turns always agree: 2. (1 · 4 + 2 · 2) ÷ 3 = 2.6667; 4 ÷ 2.6667 = 1.5
        # ½ ± 1.959964 ÷ (2 √(1.5 + z²)) = ½ ± 1.959964 ÷ (2 · 2.311160)
        assert ends(one) == pytest.approx((0.075978, 0.924022), abs=1e-6)
        assert one is not None
        assert (one.method, one.clusters) == ("wilson_effective_n", 2)

    def test_conversations_that_agree_do_not_depend_on_rounding(self) -> None:
        # 48 · (1 ÷ 48) is 1 and 49 · (1 ÷ 49) is not quite: no spread, or next to none.
        widths = [width(interval([1] * 20, [turns] * 20, bounded=True)) for turns in (48, 49)]
        assert widths[0] == pytest.approx(widths[1], rel=0.03)


class TestScores:
    """Scores between 0 and 1 that are no trials."""

    def test_spread_out_they_are_means_like_others(self) -> None:
        one = interval([0.5, 0.2, 0.9], bounded=True)
        assert one is not None
        assert one.method == "student_t"
        assert 0.0 <= one.lowest < 0.5333 < one.highest <= 1.0

    def test_two_at_the_ceiling_are_two_of_two(self) -> None:
        assert ends(interval([1.0, 1.0], bounded=True)) == pytest.approx((2 / (2 + Z2), 1.0))

    def test_nearly_all_at_the_ceiling_leave_room_below(self) -> None:
        one = interval([1.0] * 9 + [0.95], bounded=True)
        assert one is not None
        assert one.method == "wilson_effective_n"
        # Student's t would end at 0.995 − 2.26 · 0.005 = 0.984, as if nine in ten could never be worse.
        assert one.lowest < 0.93

    def test_a_ratio_of_more_than_one_is_not_bounded(self) -> None:
        declared = reduced_by("mean", "mean_of_conversations", RATIO)
        figure = headline(declared, values(0.5), values(1.0), values(4.0))
        assert figure.interval is not None
        assert figure.interval.highest > 4.0


class TestStudent:
    # From tables of Student's t, two-sided 95 %.
    @pytest.mark.parametrize(
        ("degrees", "quantile"), [(1, 12.7062), (2, 4.30265), (4, 2.77645), (9, 2.26216), (29, 2.04523), (199, 1.97196)]
    )
    def test_quantiles(self, degrees: int, quantile: float) -> None:
        assert student_quantile(degrees) == pytest.approx(quantile, rel=1e-5)

    def test_many_degrees_come_near_the_normal_one(self) -> None:
        assert student_quantile(1001) == pytest.approx(student_quantile(1000), abs=1e-5)
        assert student_quantile(1e7) == pytest.approx(1.959964, abs=1e-6)

    def test_degrees_of_equal_clusters(self) -> None:
        data = _Clustered(np.array([1.0, 2.0, 6.0]), np.array([2.0, 2.0, 2.0]), 1.5)
        assert data.degrees() == 2

    def test_degrees_of_unequal_clusters(self) -> None:
        # Shares ¼, ¼, ½. Scales 1/(1 − share) = 4/3, 4/3, 2; pulls 1/3, 1/3, 1; mean pull 2/3, mean square 5/9;
        # diagonal 2 · (1/16) · 16/9 + ¼ · (4 + 4 · (2/3 − 2)) = 2/9 − 1/3 = −1/9;
        # 1 ÷ (2 · 5/9 − 4/9 − 1/9) = 9/5
        data = _Clustered(np.array([1.0, 2.0, 6.0]), np.array([1.0, 1.0, 2.0]), 2.25)
        assert data.degrees() == pytest.approx(1.8)


class TestMeans:
    def test_students_t_over_conversations(self) -> None:
        one = interval([1.0, 2.0, 3.0, 4.0, 5.0])
        assert one is not None
        assert (one.method, one.clusters, one.level) == ("student_t", 5, 0.95)
        # Mean 3, s² = 10 ÷ 4, standard error √(2.5 ÷ 5) = 0.707107, times 2.776445 for 4 degrees
        assert ends(one) == pytest.approx((1.036757, 4.963243), abs=1e-6)

    def test_skewed_values_reach_further_to_their_long_side(self) -> None:
        # Mean 2, standard error 2, skewness 1.5 ÷ √5 = 0.670820, t = 2.776445. Hall's inverse of −t:
        # 3/0.670820 · (∛(1 + 0.670820 · (−2.776445 − 0.111803)) − 1) = 4.472136 · (−0.978717 − 1) = −8.849091
        # above: 2 + 2 · 8.849091; below, the plain 2 − 2 · 2.776445 lies further out than the corrected end
        assert ends(interval([0.0, 0.0, 0.0, 0.0, 10.0])) == pytest.approx((-3.552890, 19.698182), abs=1e-4)

    def test_ten_times_as_much_is_ten_times_as_wide(self) -> None:
        data = [0.3, 1.7, 2.2, 9.1, 4.4, 0.01]
        low, high = ends(interval(data))
        assert ends(interval([10 * value for value in data])) == pytest.approx((10 * low, 10 * high), rel=1e-9)

    def test_one_conversation_leaves_no_way_to_tell(self) -> None:
        assert interval([2.5]) is None
        assert interval([12.0], [5]) is None
        assert interval([1.0, 2.0, 3.0], clusters=[4, 4, 4]) is None  # one scenario

    def test_equal_values_are_no_certainty(self) -> None:
        assert interval([3.0, 3.0]) is None
        assert interval([3.0] * 50) is None

    def test_nothing_has_no_interval(self) -> None:
        assert interval([]) is None
        assert interval([], bounded=True) is None

    def test_scenarios_are_what_counts(self) -> None:
        # Each scenario twice, with the same result: as many facts as before.
        data = [0.0, 2.0] * 30
        twice = interval(data * 2, clusters=[*range(60), *range(60)])
        assert twice == interval(data)
        assert width(interval(data * 2)) < 0.75 * width(twice)  # 1 ÷ √2, were they independent


class TestPercentiles:
    def interval(self, data: Sequence[float], q: float, clusters: Sequence[int] | None = None) -> Interval | None:
        codes = np.arange(len(data)) if clusters is None else np.array(clusters)
        return percentile_interval(np.array(data, dtype=float), codes.astype(np.int64), q)

    def test_binomial_ranks_of_a_median(self) -> None:
        one = self.interval(list(range(101, 0, -1)), 50)
        assert one is not None
        assert (one.method, one.clusters) == ("order_statistics", 101)
        # Of 101 fair coins, 40 or fewer are heads in 2.3 %, 41 or fewer in 3.7 %: ranks 41 and 61
        assert ends(one) == (41, 61)

    def test_six_values_hold_a_median_and_five_do_not(self) -> None:
        # All above the median: 1 in 64, below 2.5 %; of five, 1 in 32, above it.
        assert ends(self.interval([6.0, 2.0, 3.0, 4.0, 5.0, 1.0], 50)) == (1.0, 6.0)
        assert self.interval([2.0, 3.0, 4.0, 5.0, 1.0], 50) is None

    def test_an_end_that_no_value_reaches_is_open(self) -> None:
        # Below the 95th percentile: 16 or fewer of 20 in 1.6 %, 17 or fewer in 7.5 %, so the 17th value is the low end.
        # All 20 are below it in 36 %: no value is surely above.
        one = self.interval(list(range(1, 21)), 95)
        assert one is not None
        assert (one.low, one.high) == (17.0, None)

    def test_p95_has_an_upper_end_from_72_values_on(self) -> None:
        # 0.95^72 = 2.49 %, 0.95^71 = 2.62 %
        assert ends(self.interval(list(range(1, 73)), 95))[1] == 72
        assert ends(self.interval(list(range(1, 72)), 95))[1] == math.inf

    def test_turns_of_one_conversation_go_together(self) -> None:
        alone = self.interval([float(n % 10) for n in range(100)], 50)
        together = self.interval([float(n // 10) for n in range(100)], 50, clusters=[n // 10 for n in range(100)])
        assert width(together) >= 2 * width(alone)

    def test_one_conversation_leaves_no_way_to_tell(self) -> None:
        assert self.interval([1.0, 2.0, 3.0], 50, clusters=[0, 0, 0]) is None


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
        once = interval([10] * 5 + [0] * 5, [10] * 10, bounded=True)
        assert interval([20] * 5 + [0] * 5, [20] * 10, bounded=True) == once

    def test_of_single_trials(self) -> None:
        data = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
        once = interval(data, bounded=True)
        thrice = interval(data * 3, clusters=[*range(8)] * 3, bounded=True)
        assert width(thrice) >= width(once)

    def test_of_all_successes(self) -> None:
        assert ends(interval([20] * 5, [20] * 5, bounded=True)) == ends(interval([10] * 5, [10] * 5, bounded=True))


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


def test_an_interval_stays_on_the_scale_of_its_unit() -> None:
    # Two calls rated 2 and 10: 6 ± 12.7 · 4 reaches far beyond both ends.
    sums = Sums("", np.array([2.0, 10.0]), np.ones(2))
    clusters = np.arange(2)
    free = ratio_interval(sums, clusters, bounded=False)
    shut = ratio_interval(sums, clusters, bounded=False, least=least_value("of 10"), most=most_value("of 10"))
    assert free is not None
    assert free.lowest < 0
    assert free.highest > 10
    assert shut is not None
    assert (shut.low, shut.high) == (0.0, 10.0)
