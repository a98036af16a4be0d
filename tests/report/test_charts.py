"""Where bars, lines and points of a chart go: inside the plot, in proportion, and each says what it stands for."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convoscope.metrics import COUNT, RATIO, SECONDS, SHARE, WORDS
from convoscope.report.page.charts import FEW, Bar, Chart, histogram_chart, turns_chart
from convoscope.runs.distributions import Bin, Histogram, OverTurns, TurnPoint, bin_edges

UNITS = (SHARE, RATIO, COUNT, WORDS, SECONDS, "points")

# The plot is 362 wide (46 to 408) and 126 high (50 to 176).
LEFT, RIGHT, TOP, BOTTOM = 46, 408, 50, 176


def histogram(*bins: tuple[float, float, int], **facts: float) -> Histogram:
    """Bins, with the facts about the values that they would have in the middle of the chart."""
    made = [Bin(*one) for one in bins]
    low, high = made[0].low, made[-1].high
    middle = (low + high) / 2
    usual = {"mean": middle, "p50": middle, "p95": middle, "least": low, "most": high}
    return Histogram(made, sum(one.n for one in made), **usual | facts)


def drawn(*bins: tuple[float, float, int], unit: str = SECONDS, subject: str = "turn", **facts: float) -> Chart:
    return histogram_chart(histogram(*bins, **facts), unit, subject)


def place(bar: Bar) -> tuple[float, float, float, float]:
    return bar.x, bar.y, bar.width, bar.height


def over(*means: float, n: int = 9, later: int = 0, half: float = 0.0) -> OverTurns:
    """Points at turns 1, 2, 3 with these means; the middle half reaches this far to both sides."""
    points = [TurnPoint(number, n, mean, mean - half, mean + half) for number, mean in enumerate(means, 1)]
    return OverTurns(points, later)


class TestTheFrame:
    def test_is_where_these_tests_think(self) -> None:
        chart = drawn((0, 1, 1))
        assert (chart.left, chart.right, chart.top, chart.bottom) == (LEFT, RIGHT, TOP, BOTTOM)


class TestBars:
    def test_stand_side_by_side_and_in_proportion(self) -> None:
        first, second, third = drawn((0, 1, 4), (1, 2, 2), (2, 3, 0)).bars
        # the most is 4, which is a round number of steps: it takes all of the 126; 362 ÷ 3 is 120.67 each
        assert place(first) == (46, 50, 120.67, 126)
        assert place(second) == (166.67, 113, 120.67, 63)
        assert place(third) == (287.33, 176, 120.67, 0)

    def test_the_axis_ends_at_a_round_number_above_the_most(self) -> None:
        chart = drawn((0, 1, 7), (1, 2, 1))
        # 7 ÷ 5 is 1.4, so steps of 2 up to 8: 7 is 7/8 of 126
        assert [tick.label for tick in chart.y_ticks] == ["0", "2", "4", "6", "8"]
        assert [tick.at for tick in chart.y_ticks] == [176, 144.5, 113, 81.5, 50]
        assert chart.bars[0].height == 110.25

    @pytest.mark.parametrize(
        ("most", "labels"),
        [
            (1, ["0", "1"]),
            (3, ["0", "1", "2", "3"]),
            (5, ["0", "1", "2", "3", "4", "5"]),
            (40, ["0", "10", "20", "30", "40"]),
            # 51 ÷ 5 is 10.2, so steps of 20
            (51, ["0", "20", "40", "60"]),
            (4_100, ["0", "1,000", "2,000", "3,000", "4,000", "5,000"]),
            (1_000_001, ["0", "500,000", "1,000,000", "1,500,000"]),
        ],
    )
    def test_counts_are_told_in_whole_round_steps(self, most: int, labels: list[str]) -> None:
        assert [tick.label for tick in drawn((0, 1, most)).y_ticks] == labels

    def test_know_the_values_that_they_stand_for(self) -> None:
        bars = drawn((0, 1, 4), (1, 2, 2)).bars
        assert [(bar.low, bar.high, bar.n) for bar in bars] == [(0, 1, 4), (1, 2, 2)]

    def test_the_outermost_reach_as_far_as_the_values(self) -> None:
        chart = drawn((0, 1, 4), (1, 2, 2), least=-7, most=90)
        assert [(bar.low, bar.high) for bar in chart.bars] == [(-7, 1), (1, 90)]
        assert chart.note == "The last bar reaches to 90.00 s. The first bar reaches down to -7.00 s."

    def test_and_nothing_is_said_where_they_hold_all(self) -> None:
        assert drawn((0, 1, 4), (1, 2, 2), least=0.2, most=1.9).note == ""

    def test_the_x_axis_names_some_of_the_edges(self) -> None:
        chart = drawn(*((place / 10, (place + 1) / 10, 1) for place in range(10)), unit=SHARE, subject="conversation")
        # eleven edges, every second: 362 ÷ 10 × 2 is 72.4 apart
        assert [tick.label for tick in chart.x_ticks] == ["0", "20", "40", "60", "80", "100"]
        assert [tick.at for tick in chart.x_ticks] == [46, 118.4, 190.8, 263.2, 335.6, 408]


class TestTips:
    @pytest.mark.parametrize(
        ("unit", "tip"),
        [
            (SECONDS, "0 to under 1.00 s: 4 of 6 turns"),
            (SHARE, "0 to under 100.0 %: 4 of 6 turns"),
            (RATIO, "0 to under 1.000: 4 of 6 turns"),
            (COUNT, "0 to under 1: 4 of 6 turns"),
            (WORDS, "0 to under 1.00 words: 4 of 6 turns"),
        ],
    )
    def test_name_the_values_the_unit_and_the_count(self, unit: str, tip: str) -> None:
        assert drawn((0, 1, 4), (1, 2, 2), unit=unit).bars[0].tip == tip

    def test_only_the_last_holds_the_value_that_it_ends_with(self) -> None:
        first, last = drawn((0, 1, 4), (1, 2, 2)).bars
        assert (first.tip, last.tip) == ("0 to under 1.00 s: 4 of 6 turns", "1 to 2.00 s: 2 of 6 turns")

    def test_large_counts_are_readable(self) -> None:
        assert drawn((0, 1, 12_345), subject="conversation").bars[0].tip.endswith("12,345 of 12,345 conversations")

    def test_the_outermost_say_how_far_they_reach(self) -> None:
        first, last = drawn((0, 1, 4), (1, 2, 2), least=-7, most=90).bars
        assert first.tip == "-7 to under 1.00 s: 4 of 6 turns"
        assert last.tip == "1 to 90.00 s: 2 of 6 turns"

    def test_a_single_bar_that_reaches_to_both_sides_says_so(self) -> None:
        (only,) = drawn((0, 1, 4), least=-7, most=90).bars
        assert only.tip == "-7 to 90.00 s: 4 of 4 turns"


class TestLines:
    def test_mark_median_mean_and_tail(self) -> None:
        chart = drawn((0, 1, 4), (1, 2, 2), p50=0.5, mean=1.0, p95=2.0)
        # 362 ÷ 2 is 181 for each second
        assert [(line.x, line.label) for line in chart.lines] == [
            (136.5, "median 0.50 s"),
            (227, "mean 1.00 s"),
            (408, "95th percentile 2.00 s"),
        ]

    def test_labels_turn_away_from_the_nearer_side(self) -> None:
        chart = drawn((0, 1, 4), (1, 2, 2), p50=0.1, mean=1.2, p95=1.4)
        # 181 for each second, and 5.7 for each of the 22 letters of `95th percentile 1.40 s`:
        # 46 + 181 × 1.4 + 22 × 5.7 = 424.8 is beyond 408; the 11 letters of the mean end at 325.9
        assert [line.anchor for line in chart.lines] == ["start", "start", "end"]

    @pytest.mark.parametrize(("mean", "anchor"), [(1.65, "start"), (1.66, "end"), (2.0, "end"), (0.0, "start")])
    def test_only_where_they_would_not_fit(self, mean: float, anchor: str) -> None:
        # `mean 1.65 s` has 11 letters: 62.7 wide, so that it may begin at 345.3, which is 1.6536 s
        chart = drawn((0, 1, 4), (1, 2, 2), mean=mean)
        assert chart.lines[1].anchor == anchor

    def test_labels_stand_one_above_the_other(self) -> None:
        rows = [line.y for line in drawn((0, 1, 4)).lines]
        assert rows == [22, 33, 44]
        assert all(row < TOP for row in rows)

    @pytest.mark.parametrize("unit", [SHARE, RATIO])
    def test_of_shares_only_the_mean_tells_something(self, unit: str) -> None:
        assert [line.label.split()[0] for line in drawn((0, 1, 4), unit=unit).lines] == ["mean"]

    def test_one_value_needs_none(self) -> None:
        assert drawn((0, 1, 1)).lines == []

    def test_a_value_beyond_the_bars_is_marked_at_their_end(self) -> None:
        chart = drawn((0, 1, 4), p50=-5, p95=50, least=-9, most=99)
        assert [line.x for line in chart.lines] == [46, 227, 408]


class TestWords:
    def test_the_summary_says_it_all_without_a_picture(self) -> None:
        chart = drawn((0, 1, 4), (1, 2, 2), p50=0.5, mean=0.75, p95=1.5, least=0.1, most=1.6)
        assert chart.summary == "6 turns: median 0.50 s, mean 0.75 s, 95th percentile 1.50 s, from 0.10 s to 1.60 s"

    def test_a_headline_that_weighs_otherwise_is_said(self) -> None:
        chart = histogram_chart(histogram((0, 1, 4), (1, 2, 2), mean=0.75), SECONDS, "conversation", 0.8)
        assert chart.note == "Each conversation weighs the same here; the headline, 0.80 s, weighs otherwise."

    def test_after_what_there_is_to_say_of_the_bars(self) -> None:
        chart = histogram_chart(histogram((0, 1, 4), mean=0.5, least=-7, most=90), SECONDS, "turn", 0.8)
        assert chart.note == (
            "The last bar reaches to 90.00 s. The first bar reaches down to -7.00 s. "
            "Each turn weighs the same here; the headline, 0.80 s, weighs otherwise."
        )

    @pytest.mark.parametrize("headline", [None, 0.75, 0.7504])
    def test_one_that_prints_the_same_is_not(self, headline: float | None) -> None:
        assert histogram_chart(histogram((0, 1, 4), mean=0.75), SECONDS, "turn", headline).note == ""

    def test_axes_have_names(self) -> None:
        chart = drawn((0, 1, 4), subject="event")
        assert (chart.title, chart.x_name, chart.y_name) == ("per event", "seconds", "events")
        assert drawn((0, 1, 4), unit="points").x_name == "points"
        assert turns_chart(over(1, 2), SHARE).y_name == "share of opportunities, %"


class TestTurns:
    def test_points_stand_in_proportion(self) -> None:
        chart = turns_chart(over(1, 4, 2), SECONDS)
        # from 58 to 396 in two steps of 169; the most is 4: 126 for 4 s is 31.5 for each
        assert [(point.x, point.y) for point in chart.points] == [(58, 144.5), (227, 50), (396, 113)]
        assert chart.path == "M58.0 144.5 L227.0 50.0 L396.0 113.0"

    def test_the_band_goes_there_along_the_upper_quartiles_and_back_along_the_lower(self) -> None:
        chart = turns_chart(over(1, 3, half=1), SECONDS)
        # the most is 4, the third quartile of turn 2
        assert chart.band == "M58.0 113.0 L396.0 50.0 L396.0 113.0 L58.0 176.0 Z"

    def test_shares_have_no_band_and_reach_to_one_hundred(self) -> None:
        chart = turns_chart(over(0.5, 0.25), SHARE)
        assert chart.band == ""
        assert [tick.label for tick in chart.y_ticks] == ["0", "20", "40", "60", "80", "100"]
        assert [point.y for point in chart.points] == [113, 144.5]

    def test_positions_keep_their_distances(self) -> None:
        points = [TurnPoint(number, 9, 1, 1, 1) for number in (0, 1, 4)]
        assert [point.x for point in turns_chart(OverTurns(points, 0), COUNT).points] == [58, 142.5, 396]

    def test_few_values_are_hollow_and_it_is_said(self) -> None:
        points = [TurnPoint(1, FEW, 1, 1, 1), TurnPoint(2, FEW - 1, 1, 1, 1)]
        chart = turns_chart(OverTurns(points, 0), SECONDS)
        assert [point.few for point in chart.points] == [False, True]
        assert chart.note.endswith("Hollow: fewer than 5 values.")
        assert "Hollow" not in turns_chart(over(1, 2), SECONDS).note

    def test_what_is_not_drawn_is_said(self) -> None:
        note = turns_chart(over(1, 2, later=1_200), SECONDS).note
        assert note.endswith("1,200 values of later turns are not drawn.")

    def test_what_line_and_band_are_is_said(self) -> None:
        assert turns_chart(over(1, 2), SECONDS).note == "The line is the mean, the band the middle half."
        assert turns_chart(over(1, 1), SHARE).note == "The line is the mean."

    def test_tips_name_turn_mean_number_and_middle_half(self) -> None:
        first, _ = turns_chart(over(1, 3, half=0.5), SECONDS).points
        assert first.tip == "turn 1: mean 1.00 s, 9 values, middle half 0.5 to 1.50 s"
        lonely, _ = turns_chart(over(0.5, 1, n=1), SHARE).points
        assert lonely.tip == "turn 1: mean 50.0 %, 1 value"

    def test_many_turns_have_few_labels(self) -> None:
        chart = turns_chart(over(*range(1, 41)), COUNT)
        # 40 points, every fourth is named
        assert [tick.label for tick in chart.x_ticks] == [str(number) for number in range(1, 41, 4)]

    def test_nothing_but_zeros(self) -> None:
        chart = turns_chart(over(0, 0), COUNT)
        assert [point.y for point in chart.points] == [BOTTOM, BOTTOM]
        assert_sound(chart)

    @pytest.mark.parametrize(
        ("most", "labels"),
        [
            # The most by five, and the next of 1, 2, 5 times a power of ten from there on.
            (1, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),  # 0.2
            (0.9, ["0", "0.2", "0.4", "0.6", "0.8", "1"]),  # 0.18: 0.2
            (2.6, ["0", "1", "2", "3"]),  # 0.52: 1
            (2.5, ["0", "0.5", "1", "1.5", "2", "2.5"]),  # 0.5
            (6, ["0", "2", "4", "6"]),  # 1.2: 2
            (11, ["0", "5", "10", "15"]),  # 2.2: 5
            (0.03, ["0", "0.01", "0.02", "0.03"]),  # 0.006: 0.01
            (0.3, ["0", "0.1", "0.2", "0.3"]),  # 0.06: 0.1, and three times that is 0.3 to a reader
            (120, ["0", "50", "100", "150"]),  # 24: 50
            (9_000, ["0", "2,000", "4,000", "6,000", "8,000", "10,000"]),  # 1,800: 2,000
        ],
    )
    def test_the_upright_axis_has_round_steps(self, most: float, labels: list[str]) -> None:
        chart = turns_chart(over(most, 0), SECONDS)
        assert [tick.label for tick in chart.y_ticks] == labels
        places = [tick.at for tick in chart.y_ticks]
        steps = [one - other for one, other in itertools.pairwise(places)]
        assert steps == pytest.approx([126 / (len(labels) - 1)] * (len(labels) - 1), abs=0.02)

    @pytest.mark.parametrize(
        ("means", "labels"),
        [
            # From −3.5, the quartile below −3, to 2.5: 6 ÷ 5 is 1.2, so steps of 2.
            ((2.0, -3.0), ["-4", "-2", "0", "2", "4"]),
            # From −5.5 to zero, which is always there: 5.5 ÷ 5 is 1.1.
            ((-1.0, -5.0), ["-6", "-4", "-2", "0"]),
        ],
    )
    def test_negative_values_reach_below_zero(self, means: Sequence[float], labels: list[str]) -> None:
        chart = turns_chart(over(*means, half=0.5), SECONDS)
        assert [tick.label for tick in chart.y_ticks] == labels
        assert_sound(chart)
        # each where its value is between the lowest tick and the highest
        low, high = float(labels[0]), float(labels[-1])
        assert [point.y for point in chart.points] == pytest.approx(
            [176 - 126 * (mean - low) / (high - low) for mean in means], abs=0.01
        )

    def test_a_share_below_zero_does_so_too(self) -> None:
        # from −0.5 to 1: 1.5 ÷ 5 is 0.3, so steps of a half
        assert [tick.label for tick in turns_chart(over(-0.5, 0.5), RATIO).y_ticks] == ["-0.5", "0", "0.5", "1"]

    @pytest.mark.parametrize("most", [3.6e-13, 1e-17, 5e-324])
    def test_rounding_errors_around_zero_are_drawn(self, most: float) -> None:
        assert_sound(turns_chart(over(most, 0), SECONDS))


def assert_sound(chart: Chart) -> None:
    """Everything inside the plot, ticks in order, no size below zero and nothing that is not a number."""
    for bar in chart.bars:
        assert all(map(math.isfinite, place(bar)))
        assert bar.width > 0
        assert bar.height >= 0
        assert bar.x >= LEFT - 0.01
        assert bar.x + bar.width <= RIGHT + 0.02  # both are rounded to hundredths
        assert bar.y >= TOP - 0.01
        assert round(bar.y + bar.height, 6) == BOTTOM
    for line in chart.lines:
        assert LEFT <= line.x <= RIGHT
        width = 5.7 * len(line.label)
        begin = line.x if line.anchor == "start" else line.x - width
        assert begin >= 0
        assert begin + width <= RIGHT + 12 + 0.01
    for point in chart.points:
        assert LEFT <= point.x <= RIGHT
        assert TOP - 0.01 <= point.y <= BOTTOM + 0.01
    numbers = [float(one) for one in re.findall(r"[-\d.e]+|nan|inf", f"{chart.path} {chart.band}")]
    assert all(0 <= one <= 420 for one in numbers)
    for ticks, turned in ((chart.x_ticks, 1), (chart.y_ticks, -1)):
        places = [turned * tick.at for tick in ticks]
        assert all(one < other for one, other in itertools.pairwise(places))
        assert len(ticks) <= 13
    assert all(LEFT <= tick.at <= RIGHT for tick in chart.x_ticks)
    assert (chart.y_ticks[0].at, chart.y_ticks[-1].at) == (BOTTOM, TOP)
    assert "nan" not in repr(chart)


def counted_in(values: Sequence[float], unit: str) -> Histogram:
    """A histogram of values, counted without SQL."""
    ordered = sorted(values)
    quartiles = ordered[len(ordered) // 4], ordered[3 * len(ordered) // 4]
    edges = bin_edges(ordered[0], ordered[-1], quartiles, unit)
    places = [sum(edge <= value for edge in edges[1:-1]) for value in ordered]
    bins = [Bin(low, high, places.count(place)) for place, (low, high) in enumerate(itertools.pairwise(edges))]
    median, tail = ordered[len(ordered) // 2], ordered[95 * len(ordered) // 100]
    return Histogram(bins, len(ordered), math.fsum(ordered) / len(ordered), median, tail, ordered[0], ordered[-1])


amounts = st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3))
shares = st.integers(0, 20).map(lambda count: count / 20)


class TestWhateverTheValues:
    @settings(deadline=None)
    @given(st.lists(amounts, min_size=1, max_size=40), st.sampled_from((COUNT, WORDS, SECONDS, "points")))
    def test_amounts(self, values: list[float], unit: str) -> None:
        counts = counted_in(values, unit)
        chart = histogram_chart(counts, unit, "turn")
        assert_sound(chart)
        assert sum(bar.n for bar in chart.bars) == len(values)
        assert min(bar.low for bar in chart.bars) <= min(values)
        assert max(bar.high for bar in chart.bars) >= max(values)
        assert int(chart.y_ticks[-1].label.replace(",", "")) >= max(bar.n for bar in chart.bars)

    @settings(deadline=None)
    @given(st.lists(shares, min_size=1, max_size=40), st.sampled_from((SHARE, RATIO)))
    def test_shares(self, values: list[float], unit: str) -> None:
        chart = histogram_chart(counted_in(values, unit), unit, "conversation")
        assert_sound(chart)
        assert len(chart.bars) == 10

    @settings(deadline=None)
    @given(st.lists(st.integers(0, 2_000_000), min_size=1, max_size=22).filter(any))
    def test_heights_are_in_proportion_to_counts(self, counts: list[int]) -> None:
        chart = histogram_chart(histogram(*((place, place + 1, n) for place, n in enumerate(counts))), COUNT, "turn")
        most = max(chart.bars, key=lambda bar: bar.n)
        for bar in chart.bars:
            assert bar.height == pytest.approx(most.height * bar.n / most.n, abs=0.02)
        assert most.height > 126 / 2  # the axis is not more than twice as high as need be

    @settings(deadline=None)
    @given(
        st.lists(
            st.tuples(st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.floats(-1e9, 1e9), st.integers(1, 10_000)),
            min_size=2,
            max_size=40,
        ),
        st.sampled_from((COUNT, WORDS, SECONDS)),
        st.integers(0, 3),
    )
    def test_turns(self, values: list[tuple[float, float, float, int]], unit: str, first: int) -> None:
        points = [
            TurnPoint(position, n, round(mean, 6), *sorted((round(one, 6), round(other, 6))))
            for position, (mean, one, other, n) in enumerate(values, first)
        ]
        chart = turns_chart(OverTurns(points, 0), unit)
        assert_sound(chart)
        assert len(chart.points) == len(values)
        assert chart.path.count("L") == len(values) - 1
